//! One user's sessions: starting, finding, listing, forgetting them.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::clock::{Moment, rfc3339};
use crate::error::{Error, FileError, Result, SessionError};
use crate::files::{Locker, check_marked, check_private_path};
use crate::names::ContextName;
use crate::session::lifecycle::{Lifecycle, Times};
use crate::session::room::{Room, RunningProcess};
use crate::session::spare_room::{self, RoomRecord, TakenRoom};
use crate::session::{Owner, SessionId, SessionName};
use crate::store::{InitialContent, SessionRow, Store};
use crate::world::World;

/// Part of the idle limit that passes before another use is marked: writing the mark costs as much as the rest of an append.
const UNMARKED_PART: i64 = 1000;

/// Parameters of a new session.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Name.
    pub name: Option<SessionName>,
    /// Context that the session is pinned to. `None` is permanent too.
    pub context: Option<ContextName>,
    /// Owner.
    pub owner: Owner,
    /// Labels to find it by.
    pub labels: BTreeMap<String, String>,
    /// Longest idle time.
    pub idle: Duration,
    /// Longest lifetime.
    pub max: Duration,
}

/// A session.
#[derive(Clone, Debug)]
pub struct Session {
    /// Id.
    pub id: SessionId,
    /// Name.
    pub name: Option<String>,
    /// The context it is pinned to.
    pub context: Option<String>,
    /// Owner.
    pub owner: Owner,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Idle limit, in milliseconds.
    pub idle_ms: i64,
    /// Lifetime limit, in milliseconds.
    pub max_ms: i64,
    /// Start.
    pub started: Moment,
    /// Time and reason of the end.
    pub ended: Option<(i64, String)>,
    room: Room,
}

/// Current state of a session, including facts from its room.
#[derive(Clone, Debug, Serialize)]
pub struct SessionSnapshot {
    /// Lifecycle state.
    pub state: Lifecycle,
    /// Idle time, in milliseconds.
    pub idle_ms: i64,
    /// Expiry unless used before.
    pub expires_at: Option<String>,
    /// Running processes.
    pub running: Vec<RunningProcess>,
}

impl Session {
    pub(crate) fn of_row(row: SessionRow, dir: &Path) -> Result<Self> {
        let id: SessionId = row.id.parse()?;
        Ok(Session {
            room: Room::of(dir, &id),
            id,
            name: row.name,
            context: row.context,
            // A row that was damaged or restored must not make the session unusable: the owner is only
            // displayed.
            owner: serde_json::from_str(&row.owner).unwrap_or_else(|_| Owner {
                user: row.user.clone(),
                host: String::new(),
                terminal: None,
                process: None,
                agent: None,
            }),
            labels: serde_json::from_str(&row.labels).unwrap_or_default(),
            idle_ms: row.idle_ms,
            max_ms: row.max_ms,
            started: Moment {
                wall_ms: row.started_ms,
                boot: row.boot,
                boot_ms: row.started_boot_ms,
                awake_ms: row.started_awake_ms,
            },
            ended: row.ended_ms.map(|at| (at, row.end_reason.unwrap_or_default())),
        })
    }

    /// Room.
    pub fn room(&self) -> &Room {
        &self.room
    }

    /// Label for people: the name, else the id.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(self.id.as_str())
    }

    fn times(&self) -> Times {
        self.times_since(self.room.last_use())
    }

    fn times_since(&self, used: Option<Moment>) -> Times {
        let used = used.unwrap_or_else(|| self.started.clone());
        Times { started: self.started.clone(), used, idle_ms: self.idle_ms, max_ms: self.max_ms }
    }

    /// Marks a use, unless the last mark is so recent that the idle limit hardly tells the two apart.
    pub(super) fn mark_use(&self, world: &World, last: Option<&Moment>) -> Result<()> {
        let recent = self.idle_ms / UNMARKED_PART;
        match last {
            Some(last) if Moment::now(world).since(last) < recent => Ok(()),
            _ => self.room.touch(world),
        }
    }

    /// Lifecycle state of the session. Idle time counts from the end of the last command, which a watcher records.
    /// Without a watcher, the first call that finds the room left starts the idle time.
    pub fn life(&self, world: &World) -> Lifecycle {
        self.life_and_use(world).0
    }

    /// The same, with the mark of the last use.
    pub(super) fn life_and_use(&self, world: &World) -> (Lifecycle, Option<Moment>) {
        if self.ended.is_some() {
            return (Lifecycle::Ended, None);
        }
        let (busy, used) = self.room.occupancy();
        let mut times = self.times_since(used.clone());
        // A watcher that lives notices the end within a moment; whoever looks in this moment does it instead.
        if !busy && self.room.has_records() && (!self.room.was_watched() || self.room.is_watched()) {
            let _ = self.room.notice_leaving(world);
            times = self.times();
        }
        let life = match times.life(&Moment::now(world), busy) {
            // Looking through `/proc` is expensive, so it is done only before a session is declared expired.
            Lifecycle::Expired if !busy && self.room.is_looked_at() => {
                self.times().life(&Moment::now(world), true)
            }
            life => life,
        };
        (life, used)
    }

    /// Looks at it.
    pub fn look(&self, world: &World) -> SessionSnapshot {
        let state = self.life(world);
        let now = Moment::now(world);
        let times = self.times();
        let running = self.room.running();
        SessionSnapshot {
            state,
            idle_ms: if running.is_empty() {
                now.since(&times.used).min(now.since(&self.started))
            } else {
                0
            },
            expires_at: (state == Lifecycle::Live).then(|| rfc3339(times.expires_ms(&now))),
            running,
        }
    }

    /// The same, if it can be used; the error says why not.
    pub fn require_live(self, world: &World) -> Result<Self> {
        match self.life(world) {
            Lifecycle::Live => Ok(self),
            life => Err(self.over(life == Lifecycle::Ended)),
        }
    }

    /// The error that it can no longer be used.
    pub(super) fn over(&self, ended: bool) -> Error {
        Error::Session(SessionError::Expired {
            session: self.label().to_owned(),
            ended,
            name: self.name.clone(),
            context: self.context.clone(),
        })
    }
}

/// A user's sessions. Another user's do not exist here.
pub struct Sessions {
    pub(super) store: Store,
    pub(super) dir: PathBuf,
    pub(super) user: String,
    pub(super) world: World,
    pub(super) locker: Locker,
}

impl Sessions {
    /// Opens the sessions of a user below a state directory. Each thread opens its own; concurrent writes share a
    /// transaction.
    pub fn open(dir: &Path, user: &str, world: World, locker: Locker) -> Result<Self> {
        let store = Store::open_for_writing(&dir.join("state.db"), &locker)?.join_group()?;
        Ok(Self::of(store, dir, user, world, locker))
    }

    /// The sessions of a user in a store that is open.
    pub(super) fn of(store: Store, dir: &Path, user: &str, world: World, locker: Locker) -> Self {
        Sessions { store, dir: dir.to_owned(), user: user.to_owned(), world, locker }
    }

    /// The same, for sessions that need not survive a power cut.
    pub(crate) fn without_sync(self) -> Result<Self> {
        Ok(Sessions { store: self.store.without_sync()?, ..self })
    }

    /// Starts a session. Nothing else is stopped, replaced or pointed elsewhere by it.
    pub fn start(&mut self, new: NewSession) -> Result<Session> {
        self.start_with(new, &InitialContent::default())
    }

    /// The same with something in it from the start.
    pub(super) fn start_with(&mut self, new: NewSession, contents: &InitialContent) -> Result<Session> {
        self.start_in(new, contents, None).map(|(session, _)| session)
    }

    /// The same in the spare room, if one was prepared from the inputs with this fingerprint.
    pub(super) fn start_in(
        &mut self,
        new: NewSession,
        contents: &InitialContent,
        spare_key: Option<&str>,
    ) -> Result<(Session, Option<RoomRecord>)> {
        let now = Moment::now(&self.world);
        if let Some(name) = &new.name {
            self.expire_named(name.as_str())?;
        }
        let id = SessionId::new(now.wall_ms)?;
        let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let row = SessionRow {
            user: self.user.clone(),
            id: id.to_string(),
            name: new.name.as_ref().map(ToString::to_string),
            context: new.context.map(|context| context.to_string()),
            owner: serde_json::to_string(&new.owner).unwrap_or_default(),
            labels: serde_json::to_string(&new.labels).unwrap_or_default(),
            idle_ms: millis(new.idle),
            max_ms: millis(new.max),
            started_ms: now.wall_ms,
            boot: now.boot,
            started_boot_ms: now.boot_ms,
            started_awake_ms: now.awake_ms,
            ended_ms: None,
            end_reason: None,
        };
        // The room comes first: a row without one would be a session that cannot be used.
        let room = Room::of(&self.dir, &id);
        // While its lock is held nobody takes it for one that was left behind.
        let (_in_use, record) = match spare_key.and_then(|key| spare_room::take(&room, &self.world, key)) {
            Some(TakenRoom { lock, record }) => (lock, Some(record)),
            None => (room.create(&self.world, new.name.is_some())?, None),
        };
        // The earliest time at which it can expire: until then `gc` need not look at it.
        let check_ms = now.wall_ms.saturating_add(row.idle_ms.min(row.max_ms));
        let added = self.store.add_session(&row, check_ms, contents);
        if !matches!(added, Ok(true)) {
            // The first error counts; `session gc` sweeps a room without a row.
            let _ = room.remove(&self.world);
            added?;
            let name = new.name.map(|name| name.to_string()).unwrap_or_default();
            return Err(SessionError::Exists(name).into());
        }
        Ok((Session::of_row(row, &self.dir)?, record))
    }

    /// A session by its id, its name, or an unambiguous beginning of its id.
    pub fn get(&self, text: &str) -> Result<Session> {
        let mut found = self.store.sessions_named(&self.user, text)?;
        match found.len() {
            0 => Err(SessionError::NotFound(crate::text::shortened(text, 80)).into()),
            1 => Session::of_row(found.remove(0), &self.dir),
            _ => Err(SessionError::Ambiguous(text.to_owned()).into()),
        }
    }

    /// A session that can be used.
    pub fn get_live(&self, text: &str) -> Result<Session> {
        self.get(text)?.require_live(&self.world)
    }

    /// The sessions, the newest first: those that have not ended, or all.
    pub fn list(&self, before: Option<&str>, only_live: bool, limit: usize) -> Result<Vec<Session>> {
        let rows = self.store.sessions(&self.user, before, only_live, limit)?;
        rows.into_iter().map(|row| Session::of_row(row, &self.dir)).collect()
    }

    /// Gives a session another name, or none. Returns the old one.
    pub fn rename(&mut self, session: &Session, name: Option<&SessionName>) -> Result<Option<String>> {
        let new = name.map(SessionName::as_str);
        if let Some(name) = new {
            self.expire_named(name)?;
        }
        if !self.store.rename_session(&self.user, session.id.as_str(), new)? {
            return Err(SessionError::Exists(new.unwrap_or_default().to_owned()).into());
        }
        Ok(session.name.clone())
    }

    /// Deletes a session that has ended. Returns whether it existed.
    pub fn forget(&mut self, session: &Session) -> Result<bool> {
        self.store.forget_session(&self.user, session.id.as_str())
    }

    /// Ends at most `limit` expired sessions and removes their rooms. Returns their ids.
    pub fn gc(&mut self, limit: usize) -> Result<Vec<SessionId>> {
        let now = Moment::now(&self.world);
        let mut ended = Vec::new();
        // A session that cannot be ended must not keep the others from it.
        let mut failed = Ok(());
        // Who wants all looked at does not go by the time at which they are due.
        let all = limit == usize::MAX;
        for row in self.store.sessions_to_check(if all { i64::MAX } else { now.wall_ms }, limit)? {
            let user = row.user.clone();
            let session = Session::of_row(row, &self.dir)?;
            // What is looked at is not cut off; what tools left behind goes with the session.
            let is_over = session.life(&self.world) == Lifecycle::Expired
                && !session.room().is_busy()
                && !session.room().is_looked_at();
            if is_over {
                // Something that cannot be ended keeps the room busy, and `end` below then returns false.
                let _ = super::stop::end_others(&session);
            }
            let is_ended = is_over
                && self.end(&user, &session, "expired").unwrap_or_else(|error| {
                    failed = std::mem::replace(&mut failed, Ok(())).and(Err(error));
                    false
                });
            if is_ended {
                ended.push(session.id);
            } else if !all {
                // At least a second: an expired session that is still in use would otherwise be looked at by
                // every call.
                let check_ms = session.times().expires_ms(&now).max(now.wall_ms + 1000);
                self.store.put_off_check(&user, session.id.as_str(), check_ms)?;
            }
        }
        failed.map(|()| ended)
    }

    /// Removes leftovers of killed processes: rooms without a live session, and files of deleted tickets. Returns
    /// their number. The spare room is removed too, and not counted.
    pub fn sweep(&mut self) -> Result<usize> {
        let mut swept = self.sweep_tickets()?;
        // The state beside a `--config` file has no spare room: one found there is somebody else's file.
        if !self.store.is_marked() {
            spare_room::remove(&self.dir, &self.world)?;
        }
        let dir = self.dir.join("rooms");
        let Ok(rooms) = std::fs::read_dir(&dir) else { return Ok(swept) };
        check_private_path(&dir)?;
        let live = self.store.live_ids()?;
        // A room that cannot be removed must not keep the others from it.
        let mut failed = Ok(());
        for name in rooms.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
            // Anything else in the directory was not made by this program.
            let Some(id) = name.parse::<SessionId>().ok().filter(|id| !live.contains(id.as_str())) else {
                continue;
            };
            let room = Room::of(&self.dir, &id);
            // A pull can add a room to the state beside a `--config` file, with a plan of its own.
            if self.store.is_marked() {
                check_marked(room.dir())?;
            }
            // It may have been started since; whoever starts one holds the lock until its row is there.
            match room.try_alone() {
                Ok(Some(_alone)) if !self.store.session_lives(id.as_str())? => {
                    match room.remove(&self.world) {
                        Ok(()) => swept += 1,
                        Err(error) => failed = failed.and(Err(error)),
                    }
                }
                Ok(_) => {}
                Err(_) => room.remove_remains(&self.world),
            }
        }
        failed.map(|()| swept)
    }

    /// A young file may belong to a ticket that is just being drawn.
    fn sweep_tickets(&self) -> Result<usize> {
        // A ticket is drawn within moments, so an hour leaves no doubt.
        const YOUNG: Duration = Duration::from_secs(3600);
        let is_old = |entry: &std::fs::DirEntry| {
            let changed = entry.metadata().and_then(|found| found.modified()).ok();
            changed.and_then(|changed| changed.elapsed().ok()).is_some_and(|age| age > YOUNG)
        };
        let files = std::fs::read_dir(self.dir.join("tickets")).into_iter().flatten().flatten();
        let names = files.filter(is_old).filter_map(|entry| entry.file_name().into_string().ok());
        let mut swept = 0;
        for token in names.filter_map(|name| name.parse::<i64>().ok()) {
            if !self.store.has_ticket(token)? {
                crate::lock::forget_ticket_file(&self.dir, token);
                swept += 1;
            }
        }
        Ok(swept)
    }

    /// Ends a session in which nothing runs. Returns false if something does.
    pub(super) fn end(&mut self, user: &str, session: &Session, reason: &str) -> Result<bool> {
        let (id, now_ms) = (session.id.as_str(), self.now_ms());
        self.leave(session, None, |store| store.end_session(user, id, now_ms, reason).map(drop))
    }

    /// The same, and deletes it, in one transaction. With a record that the room still fits, the room becomes the spare one.
    pub(super) fn end_and_forget(
        &mut self,
        user: &str,
        session: &Session,
        record: Option<&RoomRecord>,
    ) -> Result<bool> {
        let id = session.id.as_str();
        self.leave(session, record, |store| store.end_and_forget_session(user, id).map(drop))
    }

    /// Changes the row of a session in which nothing runs, and removes the room. Returns false if something runs.
    fn leave(
        &mut self,
        session: &Session,
        record: Option<&RoomRecord>,
        change: impl FnOnce(&mut Store) -> Result<()>,
    ) -> Result<bool> {
        let room = session.room();
        if !room.exists() {
            return change(&mut self.store).map(|()| true);
        }
        let alone = match room.try_alone() {
            // Another removes it at this moment, or was killed at that.
            Err(Error::File(FileError::Io { source, .. })) if source.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
            Ok(None) => return Ok(false),
            Ok(alone) => alone,
        };
        // The row first: a room without a live session is swept up, a live session without a room is broken.
        change(&mut self.store)?;
        if !record.is_some_and(|record| spare_room::keep(room, &self.world, record)) {
            room.remove(&self.world)?;
        }
        // Held until the room is gone, so that no command enters it meanwhile.
        drop(alone);
        Ok(true)
    }

    /// A name is free again once its session has expired, whether anyone has swept it up or not.
    fn expire_named(&mut self, name: &str) -> Result<()> {
        // A prefix of an id can match too, so the name is compared.
        let found = self.store.sessions_named(&self.user, name)?;
        let Some(row) =
            found.into_iter().find(|row| row.name.as_deref() == Some(name) && row.ended_ms.is_none())
        else {
            return Ok(());
        };
        let session = Session::of_row(row, &self.dir)?;
        if session.life(&self.world) == Lifecycle::Expired {
            let user = self.user.clone();
            self.end(&user, &session, "expired")?;
        }
        Ok(())
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.world.now().as_millisecond()
    }
}
