//! Copies of the output of commands that were run with `--log`: files in the session's room, which go with the room.
//!
//! Each command has a copy of its own in `output/`, of at most the last [`KEPT`] bytes that a reader gets. A full file
//! replaces the one before it, so that no write copies what was written before. Files are appended to without a buffer: they
//! have everything that a process passed on, even if it was killed.
//!
//! A copy has the bytes of the output, which a reader sanitizes before a terminal gets them, with [`plain_output`] for example.
//! Values of secret variables are the exception: each is overwritten with asterisks before it reaches the file.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use zeroize::Zeroizing;

use super::StartedCommand;
use crate::files::{NO_FOLLOW, read_up_to};
use crate::secrets::redacted_words;
use crate::session::Room;
use crate::world::World;

/// Number of bytes of a command's output that are kept, the last ones. A copy takes at most twice as much.
const KEPT: u64 = 1024 * 1024;

/// Number of commands of a session whose output is kept, the last ones.
const MOST_COPIES: usize = 8;

/// Largest description of a command that is read.
const LARGEST_HEAD: u64 = 64 * 1024;

/// Shorter secrets occur by chance.
const SHORTEST_SECRET: usize = 8;

/// Copy of the output of a running command.
#[derive(Debug)]
pub struct OutputLog {
    path: PathBuf,
    secrets: Arc<Vec<Zeroizing<Vec<u8>>>>,
    written: Mutex<LogFile>,
}

/// File that is written to.
#[derive(Debug)]
struct LogFile {
    file: File,
    size: u64,
    /// First error; nothing is written after it.
    failed: Option<std::io::Error>,
}

/// Copy of the output of a command that was run, as it is stored.
#[derive(Clone, Debug)]
pub struct LoggedOutput {
    /// Command.
    pub command: StartedCommand,
    /// Size of the output that is kept, in bytes.
    pub size: u64,
    /// Whether earlier output was dropped.
    pub is_truncated: bool,
    path: PathBuf,
}

/// Redaction of the secrets in one stream of output.
#[derive(Debug)]
pub struct OutputRedactor {
    secrets: Arc<Vec<Zeroizing<Vec<u8>>>>,
    /// End of what was read that may be the beginning of a secret.
    held: Zeroizing<Vec<u8>>,
}

impl Room {
    /// Starts a copy of a command's output. Values of `secrets` are redacted in it.
    #[expect(clippy::disallowed_methods, reason = "the copy may be lost in a power cut, so it needs no sync")]
    pub fn open_output_log<'a>(
        &self,
        world: &World,
        words: &[OsString],
        secrets: impl IntoIterator<Item = &'a [u8]>,
    ) -> std::io::Result<OutputLog> {
        let dir = self.output_dir();
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        // The oldest ones go first; what still writes to one goes on without it.
        for old in self.logged_outputs().into_iter().skip(MOST_COPIES - 1) {
            for ending in ["old.log", "log", "json"] {
                let _ = std::fs::remove_file(old.path.with_extension(ending));
            }
        }
        let command = StartedCommand {
            at_ms: world.now().as_millisecond(),
            pid: std::process::id(),
            words: redacted_words(words),
        };
        let path = dir.join(format!("{:015}-{}.log", command.at_ms, command.pid));
        let file = open_for_append(&path)?;
        // Behind the file that it describes: a description is what makes a copy count.
        let mut head = open_for_append(&path.with_extension("json"))?;
        head.write_all(serde_json::to_string(&command)?.as_bytes())?;
        let secrets = secrets.into_iter().flat_map(|secret| secret.split(|byte| *byte == b'\n'));
        // A terminal writes line breaks in its own way, so a secret of several lines is found line by line.
        let secrets: Vec<_> = secrets
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
            .filter(|line| line.len() >= SHORTEST_SECRET)
            .map(|line| Zeroizing::new(line.to_vec()))
            .collect();
        let written = Mutex::new(LogFile { file, size: 0, failed: None });
        Ok(OutputLog { path, secrets: Arc::new(secrets), written })
    }

    /// Copies of the output of its commands, the newest first.
    pub fn logged_outputs(&self) -> Vec<LoggedOutput> {
        let names = std::fs::read_dir(self.output_dir()).into_iter().flatten().flatten();
        let heads =
            names.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "json"));
        let mut logs: Vec<LoggedOutput> = heads
            .filter_map(|head| {
                let command = serde_json::from_str(&read_up_to(&head, LARGEST_HEAD).ok()??).ok()?;
                let path = head.with_extension("log");
                let size = |path: PathBuf| path.symlink_metadata().map_or(0, |found| found.len());
                let (older, newer) = (size(path.with_extension("old.log")), size(path.clone()));
                let size = older + newer;
                Some(LoggedOutput { command, size: size.min(KEPT), is_truncated: size > KEPT, path })
            })
            .collect();
        logs.sort_by(|one, other| other.path.cmp(&one.path));
        logs
    }

    fn output_dir(&self) -> PathBuf {
        self.dir().join("output")
    }
}

fn open_for_append(path: &std::path::Path) -> std::io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(NO_FOLLOW).open(path)
}

impl OutputLog {
    /// Redactor of one stream of the output.
    pub fn redactor(&self) -> OutputRedactor {
        OutputRedactor { secrets: Arc::clone(&self.secrets), held: Zeroizing::default() }
    }

    /// Adds output that was redacted. After an error nothing more is written.
    pub fn append(&self, bytes: &[u8]) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.failed.is_none()
            && let Err(error) = self.write(&mut written, bytes)
        {
            written.failed = Some(error);
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the copy may be lost in a power cut, so it needs no sync")]
    fn write(&self, written: &mut LogFile, bytes: &[u8]) -> std::io::Result<()> {
        let length = bytes.len() as u64;
        // Both files together have the last bytes: the older one as many as are kept, or more.
        if written.size > 0 && written.size + length > KEPT {
            std::fs::rename(&self.path, self.path.with_extension("old.log"))?;
            *written = LogFile { file: open_for_append(&self.path)?, size: 0, failed: None };
        }
        written.file.write_all(bytes)?;
        written.size += length;
        Ok(())
    }

    /// The error that ended the copy, if any.
    pub fn take_error(&self) -> Option<std::io::Error> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).failed.take()
    }
}

impl LoggedOutput {
    /// The last bytes of the output, at most `limit` of them.
    pub fn read_last(&self, limit: u64) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let limit = limit.min(KEPT);
        let newer = read_end(&self.path, limit)?;
        if (newer.len() as u64) < limit {
            bytes = read_end(&self.path.with_extension("old.log"), limit - newer.len() as u64)?;
        }
        bytes.extend(newer);
        Ok(bytes)
    }
}

fn read_end(path: &std::path::Path, limit: u64) -> std::io::Result<Vec<u8>> {
    let flags = NO_FOLLOW | rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut bytes = Vec::new();
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(mut file) => {
            let size = file.metadata()?.len();
            file.seek(SeekFrom::Start(size.saturating_sub(limit)))?;
            file.take(limit).read_to_end(&mut bytes)?;
            Ok(bytes)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(bytes),
        Err(error) => Err(error),
    }
}

impl OutputRedactor {
    /// Takes output, and returns what may be written: without secrets, and without an end that may begin one.
    pub fn push(&mut self, bytes: &[u8]) -> Zeroizing<Vec<u8>> {
        let mut text = std::mem::take(&mut self.held);
        text.extend_from_slice(bytes);
        let mut end = text.len();
        for secret in self.secrets.iter() {
            end = end.min(redact(&mut text, secret));
        }
        self.held = Zeroizing::new(text.split_off(end));
        text
    }

    /// The rest, at the end of the output.
    pub fn finish(mut self) -> Zeroizing<Vec<u8>> {
        std::mem::take(&mut self.held)
    }
}

/// Most bytes of a text that one secret is looked for in: an endless sequence must not hold back all output.
const LONGEST_SPLIT: usize = 16 * 1024;

/// Most bytes of a sequence with parameters.
const LONGEST_CONTROL: usize = 64;

/// Overwrites a secret in a text, also where sequences of a terminal are between its bytes. Returns where an end begins that
/// may be its beginning.
fn redact(text: &mut [u8], secret: &[u8]) -> usize {
    let Some(first) = secret.first() else { return text.len() };
    let mut from = 0;
    // By the first byte, because this runs over all output.
    while let Some(at) = text[from..].iter().position(|byte| byte == first).map(|at| from + at) {
        from = match occurrence(&text[at..], secret) {
            Occurrence::Whole(bytes) => {
                bytes.iter().for_each(|byte| text[at + byte] = b'*');
                at + bytes.last().map_or(1, |last| last + 1)
            }
            Occurrence::Begun => return at,
            Occurrence::None => at + 1,
        };
    }
    text.len()
}

/// Occurrence of a secret at the beginning of a text.
enum Occurrence {
    /// Positions of its bytes.
    Whole(Vec<usize>),
    /// The text ends within it.
    Begun,
    None,
}

fn occurrence(text: &[u8], secret: &[u8]) -> Occurrence {
    // Most are plain, and need no list.
    if text.starts_with(secret) {
        return Occurrence::Whole((0..secret.len()).collect());
    }
    let (mut at, mut found) = (0, Vec::new());
    for wanted in secret {
        loop {
            match text.get(at) {
                _ if at > LONGEST_SPLIT => return Occurrence::None,
                None => return Occurrence::Begun,
                Some(byte) if byte == wanted => break,
                Some(_) => match sequence(&text[at..]) {
                    Sequence::Whole(length) => at += length,
                    Sequence::Begun => return Occurrence::Begun,
                    Sequence::None => return Occurrence::None,
                },
            }
        }
        found.push(at);
        at += 1;
    }
    Occurrence::Whole(found)
}

/// Sequence of a terminal at the beginning of a text: a color, a movement, a title.
enum Sequence {
    Whole(usize),
    /// The text ends within it.
    Begun,
    None,
}

fn sequence(text: &[u8]) -> Sequence {
    let ends = |found: Option<usize>, longest: usize| match found {
        Some(at) => Sequence::Whole(at + 1),
        None if text.len() > longest => Sequence::None,
        None => Sequence::Begun,
    };
    match text {
        // The shifts of a character set, and fillers.
        [0 | 0x0e | 0x0f, ..] => Sequence::Whole(1),
        [0x1b] => Sequence::Begun,
        [0x1b, b'[', rest @ ..] => {
            let end = rest.iter().position(|byte| !(b' '..=b'?').contains(byte));
            match end {
                Some(end) if !(b'@'..=b'~').contains(&rest[end]) => Sequence::None,
                end => ends(end.map(|end| end + 2), LONGEST_CONTROL),
            }
        }
        [0x1b, b']' | b'P' | b'X' | b'^' | b'_', rest @ ..] => {
            let is_end =
                |at: &usize| rest[*at] == 0x07 || (rest[*at] == b'\\' && *at > 0 && rest[*at - 1] == 0x1b);
            ends((0..rest.len()).find(is_end).map(|end| end + 2), LONGEST_SPLIT)
        }
        [0x1b, b' '..=b'/'] => Sequence::Begun,
        [0x1b, b' '..=b'/', ..] => Sequence::Whole(3),
        [0x1b, b'0'..=b'~', ..] => Sequence::Whole(2),
        _ => Sequence::None,
    }
}

/// Output as a person would have read it on a terminal, line by line: without sequences that color text or move the cursor,
/// and without what a carriage return or a backspace overwrote. Other control characters stay, for `text::shown_lines`.
pub fn plain_output(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut plain = String::with_capacity(text.len());
    let mut line = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\x1b' => match letters.next() {
                // Control sequence: parameters, then a letter.
                Some('[') => drop(letters.by_ref().find(|c| ('@'..='~').contains(c))),
                // String of the system, such as a title: up to BEL or ESC \.
                Some(']' | 'P' | 'X' | '^' | '_') => {
                    let mut last = '\0';
                    for c in letters.by_ref() {
                        if c == '\x07' || (last == '\x1b' && c == '\\') {
                            break;
                        }
                        last = c;
                    }
                }
                // Character set: one more.
                Some('(' | ')' | '#') => drop(letters.next()),
                _ => {}
            },
            '\n' => {
                plain.push_str(&line);
                plain.push('\n');
                line.clear();
            }
            '\r' => {
                // The end of the line, or a line that is written again.
                while letters.next_if_eq(&'\r').is_some() {}
                if letters.peek().is_some_and(|next| *next != '\n') {
                    line.clear();
                }
            }
            '\x08' => drop(line.pop()),
            letter => line.push(letter),
        }
    }
    plain + &line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room() -> (tempfile::TempDir, Room, World) {
        let dir = tempfile::tempdir().unwrap();
        let (room, world) = (Room::at(dir.path().join("rooms/id")), World::empty());
        drop(room.create(&world, false).unwrap());
        (dir, room, world)
    }

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn last_bytes_of_a_long_output_are_kept() {
        let (_dir, room, world) = room();
        let log = room.open_output_log(&world, &words("make all"), []).unwrap();
        let mut expected = Vec::new();
        for number in 0..700_u32 {
            let chunk = number.to_be_bytes().repeat(1024);
            log.append(&chunk);
            expected.extend(chunk);
            let files = std::fs::read_dir(room.output_dir()).unwrap().flatten();
            let used: u64 = files.map(|entry| entry.metadata().unwrap().len()).sum();
            assert!(used <= 2 * KEPT + 4096, "{used}");
        }
        assert!(log.take_error().is_none());
        let [logged] = &room.logged_outputs()[..] else { panic!() };
        assert_eq!((logged.size, logged.is_truncated), (KEPT, true));
        assert_eq!(logged.command.words, ["make", "all"]);
        let kept = logged.read_last(u64::MAX).unwrap();
        let last = &expected[expected.len() - usize::try_from(KEPT).unwrap()..];
        assert!(kept == last, "{}", kept.len());
        assert_eq!(logged.read_last(5).unwrap(), expected[expected.len() - 5..]);
    }

    #[test]
    fn copies_of_old_commands_are_removed() {
        let (_dir, room, world) = room();
        for at in 0..20 {
            let world = world.clone().with_now(jiff::Timestamp::from_millisecond(1_000 + at).unwrap());
            room.open_output_log(&world, &words("x"), []).unwrap().append(b"text");
        }
        let times: Vec<i64> = room.logged_outputs().iter().map(|logged| logged.command.at_ms).collect();
        assert_eq!(times, (1_012..1_020).rev().collect::<Vec<i64>>());
        assert_eq!(std::fs::read_dir(room.output_dir()).unwrap().count(), 2 * MOST_COPIES);
    }

    #[test]
    fn copy_is_private_and_follows_no_link() {
        use std::os::unix::fs::PermissionsExt;
        let (dir, room, world) = room();
        room.open_output_log(&world, &words("x"), []).unwrap().append(b"text");
        for entry in std::fs::read_dir(room.output_dir()).unwrap().flatten() {
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{entry:?}");
        }
        let [logged] = &room.logged_outputs()[..] else { panic!() };
        std::os::unix::fs::symlink(dir.path(), logged.path.with_extension("old.log")).unwrap();
        assert!(logged.read_last(KEPT).is_err());
    }

    fn redacted_in_chunks(
        (room, world): (&Room, &World),
        secret: &[u8],
        text: &[u8],
        size: usize,
    ) -> Vec<u8> {
        let log = room.open_output_log(world, &words("x"), [secret]).unwrap();
        let mut redactor = log.redactor();
        let mut written = Vec::new();
        for chunk in text.chunks(size) {
            written.extend_from_slice(&redactor.push(chunk));
        }
        written.extend_from_slice(&redactor.finish());
        written
    }

    #[test]
    fn secrets_are_redacted_wherever_the_output_is_cut() {
        let (_dir, room, world) = room();
        let secret: &[u8] = b"hunter2hunter2\nsecond-line-of-it\nx";
        let text = b"a hunter2hunter2 b hunter2hun second-line-of-it\r\nhunter2hunter2hunter2hunter2 x";
        let redacted = b"a ************** b hunter2hun *****************\r\n**************************** x";
        for size in 1..text.len() {
            let written = redacted_in_chunks((&room, &world), secret, text, size);
            assert_eq!(String::from_utf8_lossy(&written), String::from_utf8_lossy(redacted), "{size}");
        }
    }

    #[test]
    fn secret_split_by_colors_and_movements_is_redacted() {
        let (_dir, room, world) = room();
        let secret: &[u8] = b"hunter2hunter2";
        let text = b"a \x1b[31mhunt\x1b[1;32mer2\x1b[0mhun\x1b(B\x0fter\x1b[1C2\x1b]0;t\x07 b \x1b[1mhunter\x1b[0m c hunter2\x1b]8;;http://x\x1b\\hunter2";
        let plain = "a ************** b hunter c **************";
        for size in 1..=text.len() {
            let written = redacted_in_chunks((&room, &world), secret, text, size);
            assert_eq!(plain_output(&written).replace('\x0f', ""), plain, "{size}");
            assert_eq!(written.len(), text.len(), "only bytes of the secret change");
        }
    }

    #[test]
    fn endless_sequence_holds_back_no_output() {
        let (_dir, room, world) = room();
        let log = room.open_output_log(&world, &words("x"), [&b"hunter2hunter2"[..]]).unwrap();
        for endless in [b"\x1b]0;".to_vec(), b"\x1b[1;".to_vec(), b"\x1b[0m".to_vec()] {
            let mut redactor = log.redactor();
            let mut text = b"hunter".to_vec();
            text.extend(endless.iter().cycle().take(3 * LONGEST_SPLIT));
            let written: usize = text.chunks(1000).map(|chunk| redactor.push(chunk).len()).sum();
            assert!(written > LONGEST_SPLIT, "{written}");
        }
    }

    #[test]
    fn terminal_output_is_plain_lines() {
        for (output, plain) in [
            ("a\r\nb\r\n", "a\nb\n"),
            ("\x1b[1;31mred\x1b[0m \x1b]0;title\x07text\x1b]8;;http://x\x1b\\link", "red textlink"),
            ("10%\r50%\r100%\r\r\nok", "100%\nok"),
            ("abc\x08\x08de", "ade"),
            ("\x1b(Bx\x1b=y\x1b[2", "xy"),
            ("\u{202e}\x01", "\u{202e}\x01"),
        ] {
            assert_eq!(plain_output(output.as_bytes()), plain, "{output:?}");
        }
        assert_eq!(plain_output(b"a\xffb"), "a\u{fffd}b");
    }
}
