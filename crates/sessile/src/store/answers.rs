//! Answers of the store that the hot commands can read without SQLite.
//!
//! `run`, `env`, `prompt`, `status` and `context current` ask the store the same few questions at every call: which session has a
//! name, what a terminal selects, whether a file is trusted. Opening SQLite for them costs about 60 system calls. So the first call
//! that asks keeps the answers in a small file beside the database, `state.db-answers`, and the next calls read that file.
//!
//! | step | order |
//! |---|---|
//! | a writer | takes the directory's lock, removes the file, commits |
//! | a writer of a session for one command | the same, and puts the answers back that do not name the session, under the same lock |
//! | a reader without the file | asks SQLite, takes the directory's lock if it is free, checks that nothing was committed meanwhile (`PRAGMA data_version`), replaces the file atomically |
//! | a reader with the file | uses an answer as long as the file that it has opened is still in its place |
//!
//! A file that exists therefore agrees with the database. A writer that is killed between the removal and the commit leaves no
//! file, and no reader can write one while a writer is between the two. Neither step is synced, so a power cut may bring a removed file
//! back: its first line has the boot id and counts in no other boot. The line also has the inode, size and times of the database and
//! of its log, so that changes by any other program (an older version, the `sqlite3` shell, a copied backup) are noticed too.
//!
//! Readers ask SQLite as before if a condition is not met: no boot id, a read-only directory, a network file system, a database
//! that is a link or the state of a `--config` file. Losing the file costs one slow call.

use std::cell::{Cell, RefCell};
use std::fmt::Write;
use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Result;
use crate::files::{LockedDir, NO_FOLLOW, check_private, network_file_system, with_ending};
use crate::process::boot_id;
use crate::store::{Store, migrate};

/// End of the file's name, after the database's.
pub(crate) const ENDING: &str = "-answers";

/// Layout of the file.
const LAYOUT: u32 = 1;

/// Largest file. Every hot command reads all of it.
const LIMIT: usize = 16 * 1024;

/// Largest answer that is kept.
const ANSWER_LIMIT: usize = 4 * 1024;

/// Answers of a store that is opened for reading.
#[derive(Debug, Default)]
pub(super) struct Answers {
    loaded: RefCell<Option<AnswerFile>>,
    /// Answers of SQLite that the file does not have, as question and JSON.
    new: RefCell<Vec<(String, String)>>,
    /// Number that SQLite changes with every commit of another connection, from before the first answer.
    data_version: Cell<Option<i64>>,
}

/// File of answers that was valid when it was read.
#[derive(Debug)]
struct AnswerFile {
    file: File,
    /// Lines of a question, a tab and the answer.
    lines: String,
}

impl AnswerFile {
    /// Loads the file beside a database, if it is valid.
    fn load(database: &Path) -> Option<Self> {
        let path = with_ending(database, ENDING);
        let mut file = OpenOptions::new().read(true).custom_flags(NO_FOLLOW).open(&path).ok()?;
        let found = file.metadata().ok().filter(Metadata::is_file)?;
        check_private(&path, &found).ok()?;
        let mut text = String::with_capacity(LIMIT + 1);
        file.by_ref().take(LIMIT as u64 + 1).read_to_string(&mut text).ok()?;
        let header = header(database)?;
        text.starts_with(&header).then(|| AnswerFile { file, lines: text.split_off(header.len()) })
    }

    /// Whether no writer has removed it since it was opened.
    fn is_in_place(&self) -> bool {
        self.file.metadata().is_ok_and(|found| found.nlink() > 0)
    }

    fn get(&self, question: &str) -> Option<&str> {
        answer_in(&self.lines, question)
    }
}

/// The answer to a question in the lines of a file.
fn answer_in<'l>(lines: &'l str, question: &str) -> Option<&'l str> {
    lines.lines().find_map(|line| line.strip_prefix(question)?.strip_prefix('\t'))
}

/// The lines that do not name a subject.
fn lines_without(lines: &str, subject: &str) -> String {
    lines.split_inclusive('\n').filter(|line| !line.contains(subject)).collect()
}

impl Answers {
    /// Remembers the state of a connection from which answers will come.
    pub(super) fn begin(&self, connection: &Connection) {
        self.data_version.set(data_version(connection));
    }
}

impl Store {
    /// Opens a store for reading whose database is opened only for a question that has no answer in the file beside it; `None`
    /// if the store does not exist.
    pub(crate) fn open_for_answers(path: &Path, locker: &crate::files::Locker) -> Result<Option<Self>> {
        let Some(found) = Self::find(path)? else { return Ok(None) };
        let is_plain = !crate::files::is_marked(&found) && found.nlink() == 1;
        // Another path to the same database would have other answers beside it.
        let is_link = || path.symlink_metadata().map_or(true, |found| found.is_symlink());
        if !is_plain || is_link() || boot_id().is_empty() {
            return Self::open_for_reading(path, locker);
        }
        let mut store = Self::unopened(path, locker);
        store.answers = Some(Answers::default());
        Ok(Some(store))
    }

    /// Answers a question from the file of answers, else from the database.
    pub(super) fn answer<T: Serialize + DeserializeOwned>(
        &self,
        question: &impl Serialize,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T> {
        let Some(answers) = &self.answers else { return self.read(query) };
        // JSON has neither tabs nor line ends in it.
        let question = serde_json::to_string(question).unwrap_or_default();
        if let Some(found) = self.find_answer(answers, &question) {
            return Ok(found);
        }
        let found = self.read(query)?;
        if let Ok(answer) = serde_json::to_string(&found)
            && question.len() + answer.len() < ANSWER_LIMIT
        {
            let mut new = answers.new.borrow_mut();
            // Asked twice, because the answer may have changed; one that has is not kept.
            if !new.iter().any(|(asked, _)| *asked == question) {
                new.push((question, answer));
            }
        }
        Ok(found)
    }

    fn find_answer<T: DeserializeOwned>(&self, answers: &Answers, question: &str) -> Option<T> {
        let mut loaded = answers.loaded.borrow_mut();
        if !loaded.as_ref().is_some_and(AnswerFile::is_in_place) {
            *loaded = AnswerFile::load(&self.path);
        }
        serde_json::from_str(loaded.as_ref()?.get(question)?).ok()
    }

    /// Keeps the answers of this call for the next ones. A failure is ignored: the next call asks SQLite again.
    pub(crate) fn save_answers(&self) {
        let (Some(answers), Some(connection)) = (&self.answers, self.opened()) else { return };
        let new = answers.new.take();
        let is_unchanged =
            || answers.data_version.get().is_some_and(|before| data_version(connection) == Some(before));
        // Before the lock as well: where others write all the time, they are not kept waiting in vain.
        if new.is_empty() || !is_unchanged() {
            return;
        }
        let dir = self.path.parent().unwrap_or(Path::new("."));
        // Not waited for: a writer that holds the lock is about to change the answers.
        let Some(alone) = LockedDir::try_lock(dir) else { return };
        // In this order: what is committed after the first line was made changes the line, and what was committed before it
        // changes the number.
        let Some(mut text) = header(&self.path) else { return };
        if !is_unchanged() || network_file_system(dir).is_some() {
            return;
        }
        // The file of this moment: others may have added to it.
        let old = AnswerFile::load(&self.path);
        let old = old.as_ref().map_or("", |old| old.lines.as_str()).lines().map(str::to_owned);
        let new: Vec<String> =
            new.into_iter().map(|(question, answer)| format!("{question}\t{answer}")).collect();
        // The newest first: the oldest are left out of a file that is full.
        for line in new.iter().cloned().chain(old.filter(|line| !new.contains(line))) {
            if text.len() + line.len() >= LIMIT {
                break;
            }
            text.push_str(&line);
            text.push('\n');
        }
        if let Some(name) = self.path.file_name() {
            let _ = alone.replace_for_now(&with_ending(Path::new(name), ENDING), &text, 0o600);
        }
    }
}

/// Makes the answers beside a database invalid. The caller has the lock of the directory, and commits afterwards.
pub(super) fn discard(dir: &LockedDir, database: &Path) -> Result<()> {
    dir.remove_for_now(&with_ending(database, ENDING)).map(drop)
}

/// Answers that a change leaves valid, taken away while it is made.
pub(super) struct KeptAnswers {
    lines: String,
}

/// Takes the answers beside a database away, for a change that makes only those invalid that contain `subject`. The caller has the
/// lock of the directory.
pub(super) fn take(dir: &LockedDir, path: &Path, name: &Path, subject: &str) -> Result<KeptAnswers> {
    let lines = AnswerFile::load(path).map_or_else(String::new, |file| file.lines);
    discard(dir, name)?;
    Ok(KeptAnswers { lines: lines_without(&lines, subject) })
}

/// Puts the answers back after the commit. A failure is ignored: the next reader asks SQLite again.
pub(super) fn put_back(dir: &LockedDir, path: &Path, name: &Path, kept: &KeptAnswers) {
    if !kept.lines.is_empty()
        && let Some(mut text) = header(path)
    {
        text.push_str(&kept.lines);
        let _ = dir.replace_for_now(&with_ending(name, ENDING), &text, 0o600);
    }
}

/// First line of a valid file: everything that has to be the same for its answers to count.
fn header(database: &Path) -> Option<String> {
    let boot = Some(boot_id()).filter(|boot| !boot.is_empty())?;
    let mut line =
        format!("sessile {} answers {LAYOUT} {} {boot}", env!("CARGO_PKG_VERSION"), migrate::VERSION);
    let found = database.metadata().ok()?;
    add_stamp(&mut line, &found);
    // A copied backup can have any time of modification. Writing to a string cannot fail.
    let _ = write!(line, " {}.{:09}", found.ctime(), found.ctime_nsec());
    match with_ending(database, "-wal").metadata() {
        // A reader that finds no log creates an empty one. SQLite as root changes the owner of the log at every open, and the time
        // of change with it.
        Ok(log) if log.len() > 0 => add_stamp(&mut line, &log),
        _ => line.push_str(" -"),
    }
    line.push('\n');
    Some(line)
}

fn add_stamp(line: &mut String, found: &Metadata) {
    let (dev, ino, size) = (found.dev(), found.ino(), found.len());
    let _ = write!(line, " {dev} {ino} {size} {}.{:09}", found.mtime(), found.mtime_nsec());
}

fn data_version(connection: &Connection) -> Option<i64> {
    connection.query_row("PRAGMA data_version", [], |row| row.get(0)).ok()
}

/// The file beside a database.
pub(crate) fn path_beside(database: &Path) -> PathBuf {
    with_ending(database, ENDING)
}

/// Fuzz target: the lines of a file of answers.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzz_lines(lines: &str) {
    for question in ["[\"session\",\"web\"]", "[\"trusted\",\"/p\",\"f\"]", ""] {
        let Some(answer) = answer_in(lines, question) else { continue };
        assert!(!answer.contains('\n') && lines.contains(&format!("{question}\t{answer}")));
        let _ = crate::json::from_str::<serde_json::Value>(answer);
        let _ = serde_json::from_str::<Vec<super::SessionRow>>(answer);
        let _ = serde_json::from_str::<bool>(answer);
    }
    for subject in ["web", "\"", "x"] {
        let kept = lines_without(lines, subject);
        assert!(!kept.contains(subject) && kept.len() <= lines.len());
        assert_eq!(lines_without(&kept, subject), kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Locker;
    use std::time::Duration;

    fn locker() -> Locker {
        Locker::new(Duration::from_secs(5))
    }

    /// A store that trusts one file, and its path.
    fn store(dir: &Path) -> PathBuf {
        let path = dir.join("state.db");
        let mut store = Store::open_for_writing(&path, &locker()).unwrap();
        store.trust(&[("file".into(), "content".into())], 0).unwrap();
        path
    }

    fn reader(path: &Path) -> Store {
        Store::open_for_answers(path, &locker()).unwrap().unwrap()
    }

    fn is_trusted(store: &Store) -> bool {
        store.is_trusted("file", "content").unwrap()
    }

    /// Asks, keeps the answer, and checks that the next reader opens no database for it.
    fn keep(path: &Path) {
        let first = reader(path);
        assert!(is_trusted(&first));
        first.save_answers();
        let second = reader(path);
        assert!(is_trusted(&second) && second.opened().is_none());
    }

    #[test]
    fn kept_answer_needs_no_database() {
        let dir = tempfile::tempdir().unwrap();
        let path = store(dir.path());
        keep(&path);
        let mode = path_beside(&path).metadata().unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn commit_makes_answers_invalid_for_readers_that_have_them_open() {
        let dir = tempfile::tempdir().unwrap();
        let path = store(dir.path());
        keep(&path);
        let open = reader(&path);
        assert!(is_trusted(&open));
        let mut writer = Store::open_for_writing(&path, &locker()).unwrap();
        writer.trust(&[("file".into(), "other content".into())], 0).unwrap();
        assert!(!is_trusted(&open) && !is_trusted(&reader(&path)));
    }

    #[test]
    fn writer_killed_before_its_commit_leaves_no_answers() {
        let dir = tempfile::tempdir().unwrap();
        let path = store(dir.path());
        keep(&path);
        let alone = LockedDir::lock(&locker(), dir.path(), 0o700).unwrap();
        discard(&alone, Path::new("state.db")).unwrap();
        // Readers save no answers while the writer has the lock.
        let other = reader(&path);
        assert!(is_trusted(&other));
        other.save_answers();
        assert!(!path_beside(&path).exists());
        drop(alone);
        keep(&path);
    }

    #[test]
    fn answer_from_before_a_commit_is_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = store(dir.path());
        let slow = reader(&path);
        assert!(is_trusted(&slow));
        let mut writer = Store::open_for_writing(&path, &locker()).unwrap();
        writer.trust(&[("file".into(), "other content".into())], 0).unwrap();
        slow.save_answers();
        assert!(!path_beside(&path).exists() && !is_trusted(&reader(&path)));
    }

    #[test]
    fn change_by_another_program_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = store(dir.path());
        keep(&path);
        let other = Connection::open(&path).unwrap();
        other.execute("DELETE FROM trusted", []).unwrap();
        assert!(!is_trusted(&reader(&path)), "in the log");
        drop(other);
        assert!(!is_trusted(&reader(&path)), "in the database");
    }

    #[test]
    fn copied_backup_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = store(dir.path());
        let empty = dir.path().join("empty.db");
        drop(Store::open_for_writing(&empty, &locker()).unwrap());
        keep(&path);
        std::fs::copy(&empty, &path).unwrap();
        assert!(!is_trusted(&reader(&path)));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test damages the file on purpose")]
    fn answers_of_another_boot_or_version_are_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let path = store(dir.path());
        keep(&path);
        let file = path_beside(&path);
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains("\ttrue\n"));
        let lie = text.replace("\ttrue\n", "\tfalse\n");
        let version = env!("CARGO_PKG_VERSION");
        let others = [
            lie.replace(&boot_id(), "00000000-0000-0000-0000-000000000000"),
            lie.replacen(version, "0.0.0", 1),
            lie.replace("\tfalse\n", "\t???\n"),
            lie[..lie.len() / 2].to_owned(),
            String::new(),
        ];
        for other in others {
            std::fs::write(&file, &other).unwrap();
            assert!(is_trusted(&reader(&path)), "{other}");
        }
        std::fs::write(&file, [0xff; 20]).unwrap();
        assert!(is_trusted(&reader(&path)));
        std::fs::write(&file, &lie).unwrap();
        assert!(!is_trusted(&reader(&path)), "only the whole first line decides");
    }

    #[test]
    fn unsuitable_places_have_no_answers() {
        let dir = tempfile::tempdir().unwrap();
        let path = store(dir.path());
        let link = dir.path().join("link.db");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let linked = reader(&link);
        assert!(is_trusted(&linked) && linked.answers.is_none());
        // Somebody else can write to the file.
        keep(&path);
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        std::fs::set_permissions(path_beside(&path), open).unwrap();
        let other = reader(&path);
        assert!(is_trusted(&other) && other.opened().is_some());
    }

    #[test]
    fn full_file_keeps_the_newest_answers() {
        let dir = tempfile::tempdir().unwrap();
        let path = store(dir.path());
        for round in 0..40 {
            let store = reader(&path);
            let long = format!("{round}-{}", "x".repeat(1000));
            assert!(!store.is_trusted(&long, "content").unwrap());
            store.save_answers();
            let again = reader(&path);
            assert!(!again.is_trusted(&long, "content").unwrap() && again.opened().is_none(), "{round}");
        }
        assert!(path_beside(&path).metadata().unwrap().len() < LIMIT as u64);
    }

    #[test]
    fn approval_that_a_clock_set_back_makes_valid_again_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = store(dir.path());
        let approval = crate::store::NewApproval {
            context: "production".into(),
            granted_ms: 0,
            expires_ms: 1000,
            boot: String::new(),
            expires_boot_ms: 1000,
            granted_by: String::new(),
            terminal: String::new(),
            with_pin: false,
            path: None,
            digest: None,
        };
        Store::open_for_writing(&path, &locker()).unwrap().add_approval(&approval).unwrap();
        let count = |now_ms| {
            let store = reader(&path);
            let found = store.approvals(Some("production"), now_ms).unwrap().len();
            store.save_answers();
            found
        };
        assert_eq!([count(500), count(999), count(1000), count(2000), count(999)], [1, 1, 0, 0, 1]);
    }
}
