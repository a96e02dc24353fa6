//! What an agent made, saved where it can do no harm: one plain file each, in the directory that was named.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use sessile::Error;
use sessile::error::FileError;
use sessile_wire::a2a::{ArtifactUpdate, Part};

/// The longest name of a file.
const LONGEST: usize = 100;

/// Saves the parts of an artifact as files; the paths. Nothing is written over, and nothing outside the directory.
pub(crate) fn save(dir: &Path, artifact: &ArtifactUpdate) -> Result<Vec<PathBuf>, Error> {
    let mut saved = Vec::new();
    for part in together(artifact.parts()) {
        let given = match &part {
            Part::File { name, .. } => name.clone(),
            _ => None,
        };
        let name = given.or_else(|| artifact.name.clone()).or_else(|| artifact.artifact_id.clone());
        let (content, ending) = match &part {
            Part::Text(text) => (text.clone().into_bytes(), "txt"),
            Part::File { bytes, .. } => (bytes.clone(), "bin"),
            Part::Data(data) | Part::Other(data) => (format!("{data:#}\n").into_bytes(), "json"),
            // What is elsewhere is not fetched: the address is the agent's word.
            Part::Link { url, .. } => (format!("{url}\n").into_bytes(), "url"),
        };
        let name = plain(name.as_deref().unwrap_or("artifact"), ending);
        saved.push(write(dir, &name, &content)?);
    }
    Ok(saved)
}

/// Texts that follow each other are one: they may have come in pieces.
fn together(parts: Vec<Part>) -> Vec<Part> {
    let mut all: Vec<Part> = Vec::new();
    for part in parts {
        match (all.last_mut(), part) {
            (Some(Part::Text(text)), Part::Text(more)) => text.push_str(&more),
            (_, part) => all.push(part),
        }
    }
    all
}

/// A name that is one plain file, whatever the agent called it.
fn plain(name: &str, ending: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let allowed = |c: char| if c.is_alphanumeric() || "._- ".contains(c) { c } else { '_' };
    let clean: String = last.chars().map(allowed).take(LONGEST).collect();
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
    fn whatever_an_agent_calls_it_is_one_plain_file() {
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
            assert_eq!(plain(given, "bin"), name, "{given:?}");
        }
        assert!(plain(&"x".repeat(5000), "bin").len() < 120);
    }

    #[test]
    fn nothing_is_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let first = write(dir.path(), "a.txt", b"1").unwrap();
        let second = write(dir.path(), "a.txt", b"2").unwrap();
        assert_ne!(first, second);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
