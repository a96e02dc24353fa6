//! Redaction of copies of a secret that tools made in sessions' rooms.

use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use sessile_wire::secret::base64_forms;
use zeroize::Zeroizing;

use crate::vault::Credential;
use crate::vault::vault::Vault;

/// Maximum size of a searched file. Files with logins are small.
const LARGEST: u64 = 16 * 1024 * 1024;
/// Shorter secrets would be found everywhere.
const SHORTEST: usize = 8;
/// Length from which a secret does not occur by chance.
const LONG: usize = 16;

/// Report of redacted copies.
#[derive(Clone, Debug, Default)]
pub struct RedactionReport {
    /// Files that held a copy.
    pub files: Vec<PathBuf>,
    /// Files that still hold a copy, because they cannot be changed.
    pub failed: Vec<PathBuf>,
}

impl Vault<'_> {
    /// Redacts every copy of a credential's secrets in the rooms of this user's sessions, plain and in base 64.
    pub fn redact_copies(&self, credentials: &[Credential]) -> RedactionReport {
        let mut wanted: Vec<Zeroizing<Vec<u8>>> = Vec::new();
        for secret in credentials.iter().flat_map(Credential::secrets) {
            let text = secret.expose();
            if text.len() >= SHORTEST {
                wanted.push(Zeroizing::new(text.as_bytes().to_vec()));
                // Tools keep logins in base 64 too, as a header of basic authentication has them.
                wanted.extend(base64_forms(text).into_iter().filter(|form| form.len() >= SHORTEST));
            }
        }
        let mut blotted = RedactionReport::default();
        if let (false, Ok(state_dir)) = (wanted.is_empty(), self.state.dirs().state()) {
            search(&state_dir.join("rooms"), &wanted, &mut blotted);
        }
        blotted
    }
}

fn search(dir: &Path, wanted: &[Zeroizing<Vec<u8>>], blotted: &mut RedactionReport) {
    // A room may go meanwhile, and a directory may be another's: both hold nothing for us.
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        // A link leads to the user's own files, which are not the session's.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => search(&path, wanted, blotted),
            Ok(kind) if kind.is_file() => match redact_copies(&path, wanted) {
                Ok(true) => blotted.files.push(path),
                Ok(false) => {}
                Err(_) => blotted.failed.push(path),
            },
            _ => {}
        }
    }
}

/// Overwrites every occurrence with asterisks, so that the file keeps its length and format. A file with other hard
/// links, or without write permission, is replaced in the room only.
fn redact_copies(path: &Path, wanted: &[Zeroizing<Vec<u8>>]) -> std::io::Result<bool> {
    // A pipe in a room must not be waited for.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let open = |write: bool| OpenOptions::new().read(true).write(write).custom_flags(flags).open(path);
    let (mut file, may_write) = match open(true) {
        Ok(file) => (file, true),
        Err(_) => match open(false) {
            Ok(file) => (file, false),
            // Who may not even read it has not been told anything by it.
            Err(_) => return Ok(false),
        },
    };
    let found = file.metadata()?;
    if !found.is_file() || found.len() > LARGEST {
        return Ok(false);
    }
    let mut content = Zeroizing::new(Vec::new());
    Read::by_ref(&mut file).take(LARGEST + 1).read_to_end(&mut content)?;
    let mut places = Vec::new();
    for secret in wanted {
        let mut from = 0;
        while let Some(at) = find(&content[from..], secret).map(|at| from + at) {
            if is_separate(&content, at, secret.len()) {
                places.push((at, secret.len()));
            }
            from = at + secret.len();
        }
    }
    if places.is_empty() {
        return Ok(false);
    }
    // A hard link: writing in place would change the user's own file.
    if may_write && found.nlink() == 1 {
        for (at, length) in places {
            file.seek(SeekFrom::Start(at as u64))?;
            file.write_all(&vec![b'*'; length])?;
        }
        // A crash must not bring the secret back.
        file.sync_all()?;
    } else {
        for (at, length) in places {
            content[at..at + length].fill(b'*');
        }
        crate::files::put_in_place(path, &content, &found)?;
    }
    Ok(true)
}

/// Whether an occurrence is the secret and not part of a longer word, which a short one may well be.
fn is_separate(content: &[u8], at: usize, length: usize) -> bool {
    let is_word = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let before = at.checked_sub(1).and_then(|before| content.get(before));
    length >= LONG || !(is_word(before) || is_word(content.get(at + length)))
}

fn find(content: &[u8], secret: &[u8]) -> Option<usize> {
    content.windows(secret.len()).position(|window| window == secret)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    #[test]
    fn copy_of_a_secret_is_redacted_in_place() {
        let dir = tempfile::tempdir().unwrap();
        let files = dir.path().join("rooms/id/gh");
        crate::files::create_dir(&files, 0o700).unwrap();
        let write = |name: &str, text: &str| {
            let path = files.join(name);
            Write::write_all(&mut std::fs::File::create_new(&path).unwrap(), text.as_bytes()).unwrap();
            path
        };
        let plain = write("hosts.yml", "token: hunter2hunter2\nuser: me\n");
        let around: Vec<PathBuf> = ["", "a", "ab"]
            .iter()
            .map(|before| {
                write(&format!("base{before}"), &STANDARD.encode(format!("{before}hunter2hunter2:x")))
            })
            .collect();
        let other = write("other", "nothing here");
        let mut wanted = vec![Zeroizing::new(b"hunter2hunter2".to_vec())];
        wanted.extend(base64_forms("hunter2hunter2"));
        // What has another name elsewhere stays as it is there; what may not be written is replaced.
        let elsewhere = dir.path().join("elsewhere");
        let linked = write("linked", "x hunter2hunter2 y");
        std::fs::hard_link(&linked, &elsewhere).unwrap();
        let sealed = write("sealed", "hunter2hunter2");
        std::fs::set_permissions(&sealed, std::os::unix::fs::PermissionsExt::from_mode(0o444)).unwrap();
        std::os::unix::fs::symlink(&elsewhere, files.join("link")).unwrap();
        let part = write("part", "xhunter2hunter2x");
        let mut blotted = RedactionReport::default();
        search(&dir.path().join("rooms"), &wanted, &mut blotted);
        assert_eq!((blotted.files.len(), blotted.failed.len()), (6, 0), "{blotted:?}");
        assert_eq!(crate::files::read(&elsewhere).unwrap().unwrap(), "x hunter2hunter2 y");
        assert_eq!(crate::files::read(&linked).unwrap().unwrap(), "x ************** y");
        assert_eq!(crate::files::read(&sealed).unwrap().unwrap(), "**************");
        assert_eq!(crate::files::read(&part).unwrap().unwrap(), "xhunter2hunter2x");
        assert_eq!(crate::files::read(&plain).unwrap().unwrap(), "token: **************\nuser: me\n");
        for path in around {
            let text = crate::files::read(&path).unwrap().unwrap();
            assert!(text.contains("****"), "{text}");
        }
        assert_eq!(crate::files::read(&other).unwrap().unwrap(), "nothing here");
    }
}
