//! Artifacts of an agent, saved as plain files in one directory.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use sessile::Error;
use sessile::error::FileError;
use sessile_wire::a2a::{AgentReply, ArtifactUpdate, Part};

/// Maximum length of a file name in bytes, without an ending and a number.
const MAX_NAME: usize = 100;

/// Saves the parts of an artifact as files below the directory and returns their paths. Existing files are not
/// overwritten.
pub(crate) fn save_artifact(dir: &Path, artifact: &ArtifactUpdate) -> Result<Vec<PathBuf>, Error> {
    let name = artifact.name.as_deref().or(artifact.artifact_id.as_deref());
    save_parts(dir, name.unwrap_or("artifact"), artifact.parts())
}

/// Saves the files of a reply below the directory. Returns the paths of those that were saved, and the first failure.
pub(crate) fn save_reply(dir: &Path, reply: &AgentReply) -> (Vec<PathBuf>, Option<Error>) {
    let mut saved = Vec::new();
    let mut save = || -> Result<(), Error> {
        for artifact in reply.artifacts() {
            saved.extend(save_artifact(dir, artifact)?);
        }
        let files = reply.message().into_iter().flat_map(|message| message.parts());
        saved.extend(save_parts(dir, "message", files.filter(|part| !part.is_text()).collect())?);
        Ok(())
    };
    let failure = save().err();
    (saved, failure)
}

/// Fails if files cannot be created in a directory, which may not exist yet. Called before a message is sent, because
/// its reply comes once.
pub(crate) fn check_dir(dir: &Path) -> Result<(), Error> {
    let failed = |source: std::io::Error| {
        Error::File(FileError::Io { action: "save files in", path: dir.to_owned(), source })
    };
    // A directory that does not exist is created below its nearest existing parent.
    let Some(base) = dir.ancestors().find(|path| path.symlink_metadata().is_ok()) else { return Ok(()) };
    if !std::fs::metadata(base).map_err(failed)?.is_dir() {
        return Err(failed(std::io::ErrorKind::NotADirectory.into()));
    }
    access(base, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| failed(error.into()))
}

/// Saves parts as files, by their own names or a common one.
pub(crate) fn save_parts(dir: &Path, name: &str, parts: Vec<Part>) -> Result<Vec<PathBuf>, Error> {
    let mut saved = Vec::new();
    for part in join_texts(parts) {
        let given = match &part {
            Part::File { name, .. } => name.as_deref(),
            Part::TextFile { name, .. } => Some(name.as_str()),
            _ => None,
        };
        let (content, ending) = match &part {
            Part::Typed { part, .. } => (part.summary().into_bytes(), "txt"),
            Part::Text(text) | Part::TextFile { text, .. } => (text.clone().into_bytes(), "txt"),
            Part::File { bytes, .. } => (bytes.clone(), "bin"),
            Part::Data(data) | Part::Other(data) => (format!("{data:#}\n").into_bytes(), "json"),
            // The URL is a claim of the agent, so it is not fetched.
            Part::Link { url, .. } => (format!("{url}\n").into_bytes(), "url"),
        };
        let name = sanitize_name(given.unwrap_or(name), ending);
        saved.push(write(dir, &name, &content)?);
    }
    Ok(saved)
}

/// Joins adjacent texts: they may be chunks of one.
fn join_texts(parts: Vec<Part>) -> Vec<Part> {
    let mut all: Vec<Part> = Vec::new();
    for part in parts {
        let rest = match all.last_mut() {
            Some(last) => last.append(part),
            None => Some(part),
        };
        all.extend(rest);
    }
    all
}

/// Sanitized file name: one path component without a leading dot or dash.
fn sanitize_name(name: &str, ending: &str) -> String {
    // Agents on Windows send backslashes.
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let allowed = |c: char| if c.is_alphanumeric() || "._- ".contains(c) { c } else { '_' };
    let mut clean: String = last.chars().map(allowed).take(MAX_NAME).collect();
    // File systems limit bytes, of which a letter has up to four.
    clean.truncate(clean.floor_char_boundary(MAX_NAME));
    // A dash would make a name an option of other tools, a dot would hide the file.
    let clean = clean.trim_matches(['.', ' ', '-']).to_owned();
    match clean.is_empty() {
        true => format!("artifact.{ending}"),
        false if clean.contains('.') => clean,
        false => format!("{clean}.{ending}"),
    }
}

fn write(dir: &Path, name: &str, content: &[u8]) -> Result<PathBuf, Error> {
    sessile::files::create_dir(dir, 0o755)?;
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, "bin"));
    for number in 1..1000 {
        let name = if number == 1 { name.to_owned() } else { format!("{stem}-{number}.{ending}") };
        let path = dir.join(name);
        let failed = |source| Error::File(FileError::Io { action: "write", path: path.clone(), source });
        // O_EXCL follows no link, so a link in the directory cannot redirect the write.
        match OpenOptions::new().write(true).create_new(true).mode(0o644).open(&path) {
            Ok(mut file) => {
                file.write_all(content).map_err(failed)?;
                return Ok(path);
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Err(FileError::Exists(dir.join(name)).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_an_artifact_is_sanitized() {
        for (given, name) in [
            ("report.pdf", "report.pdf"),
            ("../../evil", "evil.bin"),
            ("/etc/passwd", "passwd.bin"),
            ("..\\..\\evil.sh", "evil.sh"),
            ("..", "artifact.bin"),
            ("", "artifact.bin"),
            (".bashrc", "bashrc.bin"),
            ("a\u{1b}[31m\0b", "a__31m_b.bin"),
            ("-rf", "rf.bin"),
        ] {
            assert_eq!(sanitize_name(given, "bin"), name, "{given:?}");
        }
        assert!(sanitize_name(&"x".repeat(5000), "bin").len() < 120);
    }

    #[test]
    fn name_of_many_bytes_is_a_name_that_a_file_system_takes() {
        let dir = tempfile::tempdir().unwrap();
        for letter in ["x", "\u{e9}", "\u{6587}", "\u{20000}"] {
            let name = sanitize_name(&letter.repeat(5000), "bin");
            assert!(name.starts_with(letter) && name.len() < 120, "{name}");
            write(dir.path(), &name, b"").unwrap();
        }
    }

    #[test]
    fn existing_file_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let first = write(dir.path(), "a.txt", b"1").unwrap();
        let second = write(dir.path(), "a.txt", b"2").unwrap();
        assert_ne!(first, second);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
