//! File locks with a timeout: try the lock, report the wait, wait, and name the holder at the timeout.
//!
//! A thread waits in the kernel's queue, without polling, so that the next holder starts at once. A newcomer can
//! still overtake a waiter that is waking up. The timeout starts again whenever the lock changes hands, because the
//! queue then makes progress.

use std::any::Any;
use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Error, FileError, FileLockHolder, Result};

/// How long a lock is waited for in silence.
pub(crate) const SILENCE: Duration = Duration::from_millis(300);

/// Poll interval where no thread can be started to wait for a lock.
// Threads are refused under `ulimit -u` or a memory limit only, so polling is rare.
const POLL: Duration = Duration::from_millis(20);

/// Number of timeouts after which a wait ends even if the lock changes hands.
// With a stream of short holders the wait would otherwise have no end.
const MOST_TURNS: u32 = 12;

/// The longest wait: SQLite counts milliseconds in 32 bits.
const LONGEST: Duration = Duration::from_hours(24 * 24);

/// Wait for a lock, reported to the user.
#[derive(Clone, Debug)]
pub struct LockWait<'a> {
    /// Locked path.
    pub path: &'a Path,
    /// Holder, if the kernel tells.
    pub holder: Option<FileLockHolder>,
    /// Remaining wait.
    pub remaining: Duration,
    /// Place in the queue of a named lock, and its holder.
    pub line: Option<LinePosition>,
}

/// Place of a waiter in the queue of a named lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinePosition {
    /// Name of the lock.
    pub name: String,
    /// Number of the waiter: 1 is next.
    pub position: usize,
    /// First holder in one line, if the lock is held at this moment.
    pub holder: Option<String>,
}

/// Value that the reporter of a wait keeps alive while the wait goes on, such as a progress line.
pub type WaitNotice = Box<dyn Any>;

/// Function that is called when a lock is waited for. The wait drops what it returns when it ends.
pub type WaitCallback = Arc<dyn Fn(&LockWait<'_>) -> WaitNotice + Send + Sync>;

/// Policy of lock waits: timeout and notification.
#[derive(Clone)]
pub struct Locker {
    timeout: Duration,
    on_wait: WaitCallback,
}

impl fmt::Debug for Locker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locker").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl Locker {
    /// Locker with this timeout, without a wait report.
    pub fn new(timeout: Duration) -> Self {
        Locker { timeout, on_wait: Arc::new(|_| Box::new(())) }
    }

    /// Sets the function that is called once a wait is long. The wait drops what it returns when it ends.
    #[must_use]
    pub fn on_wait(mut self, tell: WaitCallback) -> Self {
        self.on_wait = tell;
        self
    }

    /// Waits this long instead.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Timeout per holder.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Tells the user about a wait.
    pub(crate) fn report(&self, waiting: &LockWait<'_>) -> WaitNotice {
        (self.on_wait)(waiting)
    }

    /// How long it waits while the lock changes hands.
    pub(crate) fn longest(&self) -> Duration {
        (self.timeout * MOST_TURNS).min(LONGEST)
    }

    /// Takes the lock on an opened file or directory; it is free again when the file is dropped.
    pub(crate) fn lock(&self, file: File, path: &Path) -> Result<File> {
        let held =
            || Error::File(FileError::Locked { path: path.to_owned(), holder: None, waited: self.timeout });
        self.lock_unless(file, path, || false)?.ok_or_else(held)
    }

    /// Takes the lock, or returns `None` once `is_pointless` is true. The closure is called at intervals.
    #[expect(clippy::disallowed_methods, reason = "the only place that acquires kernel locks")]
    pub(crate) fn lock_unless(
        &self,
        file: File,
        path: &Path,
        is_pointless: impl Fn() -> bool,
    ) -> Result<Option<File>> {
        // An uncontended lock costs one system call, no clock and no thread.
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", path, error)),
        }
        let begun = Instant::now();
        // `/proc/locks` names locks by device and inode.
        let inode = file.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()));
        let holder = || inode.and_then(|(dev, ino)| find_holder(dev, ino));
        let held = || {
            Error::File(FileError::Locked {
                path: path.to_owned(),
                holder: holder(),
                waited: begun.elapsed(),
            })
        };
        // A zero timeout is a single try: no thread, no queue.
        if self.timeout.is_zero() {
            return Err(held());
        }

        let mut queue = KernelQueue::enter(file);
        let mut wait = Wait::new(self, path);
        loop {
            let turn =
                // In slices, so that the notice appears after `SILENCE` and a new holder restarts the
                // timeout.
                queue.wait(wait.left().min(SILENCE)).map_err(|error| Error::io("lock", path, error))?;
            if turn.is_some() {
                return Ok(turn);
            }
            if is_pointless() {
                return Ok(None);
            }
            if !wait.goes_on(holder()) {
                return Err(held());
            }
        }
    }
}

/// The kernel's queue for a lock.
enum KernelQueue {
    /// A thread waits in it. If this side gives up, the send fails, the file is dropped there, and the lock with it.
    Thread(mpsc::Receiver<std::io::Result<File>>),
    /// The system refused a thread (`ulimit -u`, memory): the lock is tried again and again.
    Poll(Option<File>),
}

#[expect(clippy::disallowed_methods, reason = "the only place that acquires kernel locks")]
impl KernelQueue {
    fn enter(file: File) -> Self {
        let (sender, receiver) = mpsc::channel();
        // A thread that is refused must not take the file with it.
        let shared = Arc::new(Mutex::new(Some(file)));
        let theirs = Arc::clone(&shared);
        // A poisoned mutex still holds the file, and losing it would lose the lock's descriptor.
        let take = |place: &Mutex<Option<File>>| place.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The thread only blocks in `flock`. A small stack lets it start under a tight memory limit.
        let started = std::thread::Builder::new().stack_size(1 << 17).spawn(move || {
            if let Some(file) = take(&theirs) {
                // The receiver is gone after a timeout. Dropping the file then gives up the lock that came
                // too late.
                let _ = sender.send(file.lock().map(|()| file));
            }
        });
        match started {
            Ok(_) => KernelQueue::Thread(receiver),
            Err(_) => KernelQueue::Poll(take(&shared)),
        }
    }

    /// The locked file, if its turn comes within this time.
    fn wait(&mut self, time: Duration) -> std::io::Result<Option<File>> {
        let file = match self {
            KernelQueue::Thread(receiver) => {
                return match receiver.recv_timeout(time) {
                    Ok(locked) => locked.map(Some),
                    Err(RecvTimeoutError::Timeout) => Ok(None),
                    // The thread ended without a result, which only a panic can cause.
                    Err(RecvTimeoutError::Disconnected) => Err(std::io::ErrorKind::Interrupted.into()),
                };
            }
            KernelQueue::Poll(file) => file,
        };
        let begun = Instant::now();
        loop {
            match file.as_ref().map(File::try_lock) {
                Some(Err(TryLockError::WouldBlock)) if begun.elapsed() < time => {
                    // A zero or short timeout must not sleep for a whole interval.
                    std::thread::sleep(POLL.min(time));
                }
                Some(Err(TryLockError::Error(error))) => return Err(error),
                Some(Ok(())) => return Ok(file.take()),
                Some(Err(TryLockError::WouldBlock)) | None => return Ok(None),
            }
        }
    }
}

/// A wait for a lock: how long it goes on, by who holds the lock meanwhile.
pub(crate) struct Wait<'a> {
    locker: &'a Locker,
    path: &'a Path,
    begun: Instant,
    /// Start of the current holder's time.
    since: Instant,
    seen: Option<FileLockHolder>,
    /// Notice of the reporter, kept until the end of the wait.
    notice: Option<WaitNotice>,
}

impl<'a> Wait<'a> {
    pub(crate) fn new(locker: &'a Locker, path: &'a Path) -> Self {
        let begun = Instant::now();
        Wait { locker, path, begun, since: begun, seen: None, notice: None }
    }

    /// Remaining wait for this holder.
    pub(crate) fn left(&self) -> Duration {
        self.locker.timeout.saturating_sub(self.since.elapsed())
    }

    /// Duration of the wait.
    pub(crate) fn waited(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Whether to keep waiting for the current holder. Notifies the user once.
    pub(crate) fn goes_on(&mut self, now: Option<FileLockHolder>) -> bool {
        // Between two holders there is none for a moment; that is no sign of anything.
        if now.is_some() && now.as_ref().map(|now| now.pid) != self.seen.as_ref().map(|seen| seen.pid) {
            // The first holder seen is the one that the wait began with, so its time has been running since
            // then.
            if self.seen.is_some() {
                self.since = Instant::now();
            }
            self.seen = now;
        }
        if self.notice.is_none() {
            let (path, holder, remaining) = (self.path, self.seen.clone(), self.left());
            let holder_pid = holder.as_ref().map(|holder| holder.pid);
            tracing::info!(path = %path.display(), holder_pid, ?remaining, "waiting for lock");
            self.notice = Some(self.locker.report(&LockWait { path, holder, remaining, line: None }));
        }
        !self.left().is_zero() && self.begun.elapsed() < self.locker.longest()
    }

    /// The same where the holder cannot always be seen: then the lock is taken to change hands.
    pub(crate) fn goes_on_unseen(&mut self, now: Option<FileLockHolder>) -> bool {
        if now.is_none() {
            self.since = Instant::now();
        }
        self.goes_on(now)
    }
}

/// Opens a lock file, or creates it. Its content is ignored. A symbolic link is an error.
pub(crate) fn open_lock_file(path: &Path) -> Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(super::NO_FOLLOW)
        .open(path)
        .map_err(|error| Error::io("write", path, error))
}

/// The process that holds the kernel's lock on an inode, where the system tells.
#[cfg(target_os = "linux")]
fn find_holder(dev: u64, ino: u64) -> Option<FileLockHolder> {
    holder_of("FLOCK", dev, ino)
}

/// The process that holds one of SQLite's exclusive locks on a file, where the system tells.
#[cfg(target_os = "linux")]
pub(crate) fn find_writer(path: &Path) -> Option<FileLockHolder> {
    let found = path.metadata().ok()?;
    holder_of("POSIX", found.dev(), found.ino())
}

#[cfg(target_os = "linux")]
fn holder_of(kind: &str, dev: u64, ino: u64) -> Option<FileLockHolder> {
    let own = i32::try_from(std::process::id()).ok();
    let locks = crate::process::read_kernel_file("/proc/locks")?;
    let device = format!("{:02x}:{:02x}", rustix::fs::major(dev), rustix::fs::minor(dev));
    let holder = |exact: bool| {
        locks.lines().find_map(|line| {
            // "1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF"; a waiter's line has "->" after the number.
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let [_, found_kind, _, mode, pid, place, ..] = words[..] else { return None };
            if found_kind != kind || (kind == "POSIX" && mode != "WRITE") {
                return None;
            }
            let (found_device, found_inode) = place.rsplit_once(':')?;
            let same = found_inode.parse() == Ok(ino) && (!exact || found_device == device);
            // SQLite's POSIX locks belong to the process and never block it. A thread can wait for a `flock`
            // of its own process.
            let is_other = |pid: &i32| *pid > 0 && (kind == "FLOCK" || Some(*pid) != own);
            same.then(|| pid.parse::<i32>().ok().filter(is_other))?
        })
    };
    // Some file systems show another device number here than stat does.
    let pid = holder(true).or_else(|| holder(false))?;
    Some(FileLockHolder {
        pid,
        command: command_of(pid),
        running: running_for(pid),
        is_stopped: crate::process::is_stopped(pid),
    })
}

#[cfg(not(target_os = "linux"))]
fn find_holder(_dev: u64, _ino: u64) -> Option<FileLockHolder> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn find_writer(_path: &Path) -> Option<FileLockHolder> {
    None
}

/// The program's name and the plain words after it: never a value, which may be a secret.
#[cfg(target_os = "linux")]
fn command_of(pid: i32) -> Option<String> {
    let line = crate::process::read_kernel_file(&format!("/proc/{pid}/cmdline"))?;
    let mut words = line.split('\0');
    let program = PathBuf::from(words.next()?);
    let mut command = program.file_name()?.to_str()?.to_owned();
    let plain = |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase());
    // Two words are a command and its subcommand. A later plain word can already be a name or a value.
    for word in words.take_while(plain).take(2) {
        command.push(' ');
        command.push_str(word);
    }
    Some(crate::text::shown(command))
}

#[cfg(target_os = "linux")]
fn running_for(pid: i32) -> Option<Duration> {
    let started = crate::process::ProcessId::of(pid)?.started;
    let ticks = rustix::param::clock_ticks_per_second();
    // The start time in `/proc/PID/stat` counts from boot and includes suspended time.
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let running = now.tv_sec.unsigned_abs().checked_sub(started / ticks)?;
    Some(Duration::from_secs(running))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn open(path: &Path) -> File {
        File::open(path).unwrap()
    }

    #[test]
    fn a_held_lock_is_named_told_and_given_up() {
        let dir = tempfile::tempdir().unwrap();
        let _held = Locker::new(Duration::ZERO).lock(open(dir.path()), dir.path()).unwrap();
        let told = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&told);
        let tell =
            move |_: &LockWait<'_>| -> Box<dyn Any> { Box::new(count.fetch_add(1, Ordering::Relaxed)) };
        let locker = Locker::new(Duration::from_millis(400)).on_wait(Arc::new(tell));
        let error = locker.lock(open(dir.path()), dir.path()).unwrap_err();
        let Error::File(FileError::Locked { holder, waited, .. }) = error else { panic!("{error}") };
        assert_eq!(holder.unwrap().pid, i32::try_from(std::process::id()).unwrap());
        assert!(waited >= Duration::from_millis(400));
        assert_eq!(told.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn progress_of_the_queue_extends_the_wait() {
        let dir = tempfile::tempdir().unwrap();
        // Each holder is a process of its own and keeps the lock for less than the time-out.
        let chain = "for i in 1 2 3 4; do flock \"$0\" sleep 0.7; done";
        let mut holders =
            std::process::Command::new("sh").args(["-c", chain]).arg(dir.path()).spawn().unwrap();
        while Locker::new(Duration::ZERO).lock(open(dir.path()), dir.path()).is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let begun = Instant::now();
        Locker::new(Duration::from_secs(2)).lock(open(dir.path()), dir.path()).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(60));
        holders.wait().unwrap();
    }

    #[test]
    fn no_timeout_means_no_wait() {
        let dir = tempfile::tempdir().unwrap();
        let _held = Locker::new(Duration::ZERO).lock(open(dir.path()), dir.path()).unwrap();
        let begun = Instant::now();
        assert!(Locker::new(Duration::ZERO).lock(open(dir.path()), dir.path()).is_err());
        assert!(begun.elapsed() < Duration::from_secs(1));
    }

    #[test]
    fn a_waiter_that_gave_up_leaves_nothing_locked() {
        let dir = tempfile::tempdir().unwrap();
        let held = Locker::new(Duration::ZERO).lock(open(dir.path()), dir.path()).unwrap();
        assert!(Locker::new(Duration::from_millis(20)).lock(open(dir.path()), dir.path()).is_err());
        drop(held);
        Locker::new(Duration::from_secs(5)).lock(open(dir.path()), dir.path()).unwrap();
    }
}
