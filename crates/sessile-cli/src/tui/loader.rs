//! The thread that reads the state for the panes, and the one that asks the session service.
//!
//! The kernel reports changes of files (`file_watch`). The loader then reads the store once, for any number of changes, and
//! pauses in proportion to the time that took. It watches the rooms on the page and those of the newest sessions, and looks into the
//! ones that changed. Of the others it compares the time of the last use every few seconds: looking into each of thousands of rooms
//! would cost more than reading the store.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant, SystemTime};

use sessile::session::Session;
use sessile::session::lifecycle::Lifecycle;

use super::action::{ApprovalQuestion, UndoQuestion, failure_line};
use super::call_source::CallSource;
use super::model::{Detail, DetailKey, ServiceSnapshot, SessionItem, Snapshot};
use super::terminal::ScreenWaker;
use super::{detail_loader, snapshot_loader};
use crate::chat::engine::ChatEvent;
use crate::cli::Cx;
use crate::error::Failure;
use crate::file_watch::{FileChange, FileWatch, WatchedDirs};
use crate::view::SessionView;

/// Shortest time between two reads of the store.
const PAUSE: Duration = Duration::from_millis(150);

/// Time between two looks where nothing is reported: the store does not exist yet, or the system reports no changes.
const UNREPORTED: Duration = Duration::from_secs(1);

/// Time between two looks where changes are reported. An approval ends without a change of any file.
const RECHECK: Duration = Duration::from_secs(60);

/// Shortest time until the next look where a session is about to end.
const SHORTEST_RECHECK: Duration = Duration::from_secs(1);

/// Time between two requests to the service.
const SERVICE_INTERVAL: Duration = Duration::from_secs(5);

/// Rooms that the kernel watches for the loader, beside those on the page. A user may have a few thousand watches only.
const MOST_WATCHED: usize = 500;

/// Shortest time between two sweeps over the rooms that are not watched.
const SWEEP: Duration = Duration::from_secs(2);

/// Ratio of the time between two sweeps to the time of one, for any number of sessions.
const SWEEP_SHARE: u32 = 200;

/// Longest time between two changes of a file that can have the same time.
const COARSE_TIME: Duration = Duration::from_millis(20);

/// Message of a thread to the screen.
#[derive(Debug)]
pub(crate) enum LoaderMessage {
    /// Everything was read.
    Snapshot(Box<Snapshot>),
    /// Rooms were looked into again.
    Sessions(Vec<SessionItem>),
    /// The opened thing was read.
    Detail(Result<Detail, String>),
    /// The service answered, or did not.
    Service(ServiceSnapshot),
    /// Event of a job of the chat.
    Chat(Box<ChatEvent>),
    /// Question of an approval, or the reason why the context cannot be approved.
    Approval(Result<ApprovalQuestion, String>),
    /// Question of an undo.
    Undo(UndoQuestion),
    /// A change was made, or failed.
    Done(Result<String, String>),
}

/// Request of the screen to the loader.
#[derive(Debug)]
enum LoadRequest {
    Changed(FileChange),
    Reload,
    /// Ids of the sessions on the page.
    Page(Vec<String>),
    Open(Option<DetailKey>),
}

/// Handle of the loader.
#[derive(Debug)]
pub(crate) struct Loader {
    requests: Sender<LoadRequest>,
    service: Sender<()>,
}

impl Loader {
    /// Starts the threads.
    pub(crate) fn start(calls: &CallSource, waker: &ScreenWaker<LoaderMessage>) -> std::io::Result<Self> {
        let (requests, received) = mpsc::channel();
        let (calls_of_reader, waker_of_reader, own) = (calls.clone(), waker.clone(), requests.clone());
        std::thread::Builder::new().name("loader".to_owned()).spawn(move || {
            Reader::new(calls_of_reader, waker_of_reader, own).run(&received);
        })?;
        let (service, asked) = mpsc::channel();
        let (calls, waker) = (calls.without_prompts(), waker.clone());
        std::thread::Builder::new()
            .name("service".to_owned())
            .spawn(move || follow_service(&calls, &waker, &asked))?;
        Ok(Loader { requests, service })
    }

    /// Reads everything again.
    pub(crate) fn reload(&self) {
        let _ = self.requests.send(LoadRequest::Reload);
        self.load_service();
    }

    /// Asks the service now.
    pub(crate) fn load_service(&self) {
        let _ = self.service.send(());
    }

    /// Follows the sessions on the page.
    pub(crate) fn follow(&self, page: Vec<String>) {
        let _ = self.requests.send(LoadRequest::Page(page));
    }

    /// Reads one thing in full, now and after each change.
    pub(crate) fn open(&self, key: Option<DetailKey>) {
        let _ = self.requests.send(LoadRequest::Open(key));
    }
}

/// Last look into the room of a session.
struct Look {
    view: SessionView,
    at_ms: i64,
    drift: usize,
    /// Time of the last use at the look, as the file system has it.
    stamp: Option<SystemTime>,
}

/// State of the loader's thread.
struct Reader {
    calls: CallSource,
    waker: ScreenWaker<LoaderMessage>,
    requests: Sender<LoadRequest>,
    watch: Option<FileWatch>,
    looks: HashMap<String, Look>,
    /// Ids of the sessions, the newest first.
    order: Vec<String>,
    page: Vec<String>,
    open: Option<DetailKey>,
    /// Ids of the sessions whose rooms have changed.
    changed: HashSet<String>,
    next_read: Instant,
    next_sweep: Instant,
}

impl Reader {
    fn new(calls: CallSource, waker: ScreenWaker<LoaderMessage>, requests: Sender<LoadRequest>) -> Self {
        let now = Instant::now();
        Reader {
            calls,
            waker,
            requests,
            watch: None,
            looks: HashMap::new(),
            order: Vec::new(),
            page: Vec::new(),
            open: None,
            changed: HashSet::new(),
            next_read: now,
            next_sweep: now,
        }
    }

    fn run(mut self, requests: &Receiver<LoadRequest>) {
        let (mut is_all_asked, mut is_detail_asked) = (true, false);
        loop {
            let start = Instant::now();
            is_detail_asked |= is_all_asked || !self.changed.is_empty();
            if is_all_asked {
                self.start_watch();
                if !self.load_all() {
                    return;
                }
                let limit = if self.watch.is_some() { RECHECK } else { UNREPORTED };
                self.next_read =
                    Instant::now() + self.time_to_first_end().map_or(limit, |end| limit.min(end));
            } else if !self.load_changed() {
                return;
            }
            if is_detail_asked && !self.load_detail() {
                return;
            }
            // Half of the time is left to others, however long a read takes.
            std::thread::sleep(PAUSE.max(start.elapsed()));
            (is_all_asked, is_detail_asked) = (false, false);
            let mut next = match requests.recv_timeout(self.time_to_wait()) {
                Ok(request) => Some(request),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            while let Some(request) = next {
                match request {
                    LoadRequest::Changed(FileChange::State) | LoadRequest::Reload => is_all_asked = true,
                    LoadRequest::Changed(FileChange::Room(room)) => self.note_change(&room),
                    LoadRequest::Page(page) => {
                        self.page = page;
                        self.changed.extend(self.page.iter().cloned());
                        self.follow();
                    }
                    LoadRequest::Open(key) => {
                        self.open = key;
                        is_detail_asked = true;
                    }
                }
                next = requests.try_recv().ok();
            }
            is_all_asked |= Instant::now() >= self.next_read;
            if Instant::now() >= self.next_sweep {
                self.sweep();
            }
        }
    }

    /// Time until the next read or sweep.
    fn time_to_wait(&self) -> Duration {
        if !self.changed.is_empty() {
            return Duration::ZERO;
        }
        let watched = self.watch.as_ref().map_or(0, FileWatch::count);
        let has_unwatched = self.looks.len() > watched;
        let next = if has_unwatched { self.next_read.min(self.next_sweep) } else { self.next_read };
        next.saturating_duration_since(Instant::now())
    }

    /// Time until the first session ends if it is not used again, which changes no file.
    fn time_to_first_end(&self) -> Option<Duration> {
        let first_ms = self.looks.values().filter_map(Look::end_ms).min()?;
        let left_ms = first_ms.saturating_sub(self.calls.now_ms());
        Some(Duration::from_millis(u64::try_from(left_ms).unwrap_or(0)).max(SHORTEST_RECHECK))
    }

    fn start_watch(&mut self) {
        if self.watch.is_none()
            && let Ok(cx) = self.calls.call("status")
        {
            let requests = self.requests.clone();
            self.watch = FileWatch::start(&WatchedDirs::of(&cx.state), move |change| {
                let _ = requests.send(LoadRequest::Changed(change));
            });
        }
    }

    fn load_all(&mut self) -> bool {
        let now_ms = self.calls.now_ms();
        let mut snapshot = match self.calls.call("status") {
            Ok(cx) => snapshot_loader::load(&cx, now_ms, |sessions| self.rows(&cx, &sessions, now_ms)),
            Err(failure) => Snapshot { problems: vec![failure_line(&failure)], ..Snapshot::default() },
        };
        snapshot.taken_ms = now_ms;
        self.order = snapshot.sessions.iter().map(|row| row.id.clone()).collect();
        self.follow();
        self.waker.wake(LoaderMessage::Snapshot(Box::new(snapshot)))
    }

    /// Watches the rooms on the page and those of the newest sessions.
    fn follow(&mut self) {
        let Some(watch) = &mut self.watch else { return };
        let ids = self.page.iter().chain(self.order.iter().take(MOST_WATCHED));
        let rooms: Vec<PathBuf> = ids.filter_map(|id| self.looks.get(id)?.room()).collect();
        for room in watch.follow_rooms(&rooms) {
            // It may have changed between the look and the begin of the watch.
            let id = id_of(&room);
            if self.looks.get(&id).is_some_and(|look| look.is_outdated(&room)) {
                self.changed.insert(id);
            }
        }
    }

    fn note_change(&mut self, room: &Path) {
        self.changed.insert(id_of(room));
        if let Some(watch) = &mut self.watch {
            watch.renew_room(room);
        }
    }

    /// Finds changes in rooms that are not watched.
    fn sweep(&mut self) {
        let start = Instant::now();
        let is_watched = |room: &Path| self.watch.as_ref().is_some_and(|watch| watch.follows(room));
        for (id, look) in &self.looks {
            if look.room().is_some_and(|room| !is_watched(&room) && look.is_outdated(&room)) {
                self.changed.insert(id.clone());
            }
        }
        self.next_sweep = Instant::now() + SWEEP.max(start.elapsed() * SWEEP_SHARE);
    }

    /// Rows of sessions. New, changed and expired sessions are looked at; the rows of the others are those of the last look.
    fn rows(&mut self, cx: &Cx, sessions: &[Session], now_ms: i64) -> Vec<SessionItem> {
        let changed = std::mem::take(&mut self.changed);
        let mut looks = HashMap::with_capacity(sessions.len());
        let mut rows = Vec::with_capacity(sessions.len());
        for session in sessions {
            let known = self.looks.remove(session.id.as_str());
            let is_current = |look: &Look| !changed.contains(session.id.as_str()) && !look.is_over(now_ms);
            let look = match known {
                Some(look) if is_current(&look) => Look { view: look.view.renamed(session), ..look },
                known => Look::at(cx, session, now_ms, known.as_ref()),
            };
            rows.push(look.row());
            looks.insert(session.id.to_string(), look);
        }
        self.looks = looks;
        rows
    }

    /// Looks into the rooms that changed.
    fn load_changed(&mut self) -> bool {
        let changed = std::mem::take(&mut self.changed);
        if changed.is_empty() {
            return true;
        }
        let now_ms = self.calls.now_ms();
        let Ok(cx) = self.calls.call("status") else { return true };
        let Ok(Some(sessions)) = cx.state.sessions_to_look_at() else { return true };
        let mut rows = Vec::new();
        for id in changed {
            let Some(last) = self.looks.get_mut(&id) else { continue };
            let Ok(session) = sessions.get(&id) else { continue };
            *last = Look::at(&cx, &session, now_ms, Some(last));
            rows.push(last.row());
        }
        rows.is_empty() || self.waker.wake(LoaderMessage::Sessions(rows))
    }

    fn load_detail(&mut self) -> bool {
        let Some(key) = &self.open else { return true };
        let detail = self.calls.call("status").and_then(|cx| detail_loader::load(&cx, key));
        self.waker.wake(LoaderMessage::Detail(detail.map_err(|failure| failure_line(&failure))))
    }
}

impl Look {
    fn at(cx: &Cx, session: &Session, now_ms: i64, last: Option<&Look>) -> Self {
        // Taken before reading, so that the next sweep finds changes made during this one.
        let stamp = last_change(session.room().dir());
        // A file system has coarse times: a use right after this one may have the same, so the next sweep looks again.
        let is_settled = |at: &SystemTime| at.elapsed().is_ok_and(|age| age > COARSE_TIME);
        let stamp = stamp.filter(is_settled);
        let view = SessionView::from((session, session.look(cx.state.world())));
        // Only a command can move a pinned value.
        let is_unused = |last: &&Look| {
            view.running.is_empty()
                && last.view.running.is_empty()
                && last.at_ms - last.view.idle_ms >= now_ms - view.idle_ms
        };
        let drift = match last.filter(is_unused) {
            Some(last) => last.drift,
            None if session.context.is_some() => {
                sessile::tool::drift(&cx.state, session).map_or(0, |drift| drift.len())
            }
            None => 0,
        };
        Look { view, at_ms: now_ms, drift, stamp }
    }

    fn row(&self) -> SessionItem {
        SessionItem { drift: self.drift, ..SessionItem::new(&self.view, self.at_ms) }
    }

    fn room(&self) -> Option<PathBuf> {
        self.view.room.as_ref().map(PathBuf::from)
    }

    /// Whether the session was used after the look.
    fn is_outdated(&self, room: &Path) -> bool {
        last_change(room) != self.stamp
    }

    /// Time at which the session ends if it is not used again; none if it has ended.
    fn end_ms(&self) -> Option<i64> {
        let view = &self.view;
        let by_age = view.started_ms.saturating_add(view.max_ms);
        let by_idleness = (self.at_ms - view.idle_ms).saturating_add(view.idle_limit_ms);
        let end_ms = if view.running.is_empty() { by_age.min(by_idleness) } else { by_age };
        (view.state == Lifecycle::Live).then_some(end_ms)
    }

    /// Whether the session has expired after the look.
    fn is_over(&self, now_ms: i64) -> bool {
        self.end_ms().is_some_and(|end_ms| now_ms >= end_ms)
    }
}

/// Time at which a room was last used. Every command marks its begin and its end in the same file.
fn last_change(room: &Path) -> Option<SystemTime> {
    room.join("lock").metadata().and_then(|found| found.modified()).ok()
}

/// Id of the session that a room belongs to.
fn id_of(room: &Path) -> String {
    room.file_name().map_or_else(String::new, |id| id.to_string_lossy().into_owned())
}

/// Asks the service for its sessions, again and again. The screen never waits for it.
fn follow_service(calls: &CallSource, waker: &ScreenWaker<LoaderMessage>, asked: &Receiver<()>) {
    loop {
        let loaded: Result<Option<Vec<SessionItem>>, Failure> = snapshot_loader::service_sessions(calls);
        let taken_ms = calls.now_ms();
        let answer = match loaded {
            // Nothing is asked of a service that is not set, until the settings are read again.
            Ok(None) => None,
            Ok(Some(sessions)) => Some(Ok(sessions)),
            Err(failure) => Some(Err(failure_line(&failure))),
        };
        let has_server = answer.is_some();
        if let Some(sessions) = answer
            && !waker.wake(LoaderMessage::Service(ServiceSnapshot { sessions, taken_ms }))
        {
            return;
        }
        let limit = if has_server { SERVICE_INTERVAL } else { RECHECK };
        match asked.recv_timeout(limit) {
            Ok(()) | Err(RecvTimeoutError::Timeout) => while asked.try_recv().is_ok() {},
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
