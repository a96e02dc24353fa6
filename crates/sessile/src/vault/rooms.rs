//! Copies of a secret that tools have put into sessions' rooms.

use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::vault::Credential;
use crate::vault::vault::Vault;

/// The largest file that is looked into. What tools keep logins in is small.
const LARGEST: u64 = 16 * 1024 * 1024;
/// Shorter secrets would be found everywhere.
const SHORTEST: usize = 6;

impl Vault<'_> {
    /// Blots out every copy of a credential's secrets in the rooms of this user's sessions: as they are, and in base 64.
    /// The files where there was one.
    pub fn blot_out(&self, credentials: &[Credential]) -> Result<Vec<PathBuf>> {
        let mut wanted: Vec<Zeroizing<Vec<u8>>> = Vec::new();
        for secret in credentials.iter().flat_map(Credential::secrets) {
            let text = secret.expose();
            if text.len() >= SHORTEST {
                wanted.push(Zeroizing::new(text.as_bytes().to_vec()));
                wanted.extend(in_base64(text));
            }
        }
        let mut blotted = Vec::new();
        if let (false, Ok(state_dir)) = (wanted.is_empty(), self.state.dirs().state()) {
            search(&state_dir.join("rooms"), &wanted, &mut blotted)?;
        }
        Ok(blotted)
    }
}

/// What a text looks like in base 64, wherever in it it begins: three forms, without the letters at the ends that depend
/// on what stands around it.
fn in_base64(text: &str) -> Vec<Zeroizing<Vec<u8>>> {
    let form = |before: usize| {
        let mut padded = Zeroizing::new(vec![0u8; before]);
        padded.extend_from_slice(text.as_bytes());
        let encoded = Zeroizing::new(STANDARD_NO_PAD.encode(padded.as_slice()));
        let first = [0, 2, 3][before];
        let last = padded.len() / 3 * 4;
        encoded.as_bytes().get(first..last).map(|part| Zeroizing::new(part.to_vec()))
    };
    (0..3).filter_map(form).filter(|part| part.len() >= SHORTEST).collect()
}

fn search(dir: &Path, wanted: &[Zeroizing<Vec<u8>>], blotted: &mut Vec<PathBuf>) -> Result<()> {
    // A room may go meanwhile, and a directory may be another's: both hold nothing for us.
    let Ok(entries) = std::fs::read_dir(dir) else { return Ok(()) };
    for entry in entries.flatten() {
        let path = entry.path();
        // A link leads to the user's own files, which are not the session's.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => search(&path, wanted, blotted)?,
            Ok(kind) if kind.is_file() && blot_out(&path, wanted)? => blotted.push(path),
            _ => {}
        }
    }
    Ok(())
}

/// Writes asterisks over every occurrence. The length stays, so that whatever else is in the file stays readable.
fn blot_out(path: &Path, wanted: &[Zeroizing<Vec<u8>>]) -> Result<bool> {
    let failed = |error| Error::io("write", path, error);
    let Ok(mut file) = OpenOptions::new().read(true).open(path) else { return Ok(false) };
    if file.metadata().is_ok_and(|found| found.len() > LARGEST) {
        return Ok(false);
    }
    let mut content = Zeroizing::new(Vec::new());
    if file.read_to_end(&mut content).is_err() {
        return Ok(false);
    }
    let mut places = Vec::new();
    for secret in wanted {
        let mut from = 0;
        while let Some(at) = find(&content[from..], secret) {
            places.push((from + at, secret.len()));
            from += at + secret.len();
        }
    }
    if places.is_empty() {
        return Ok(false);
    }
    let mut file = OpenOptions::new().write(true).open(path).map_err(failed)?;
    for (at, length) in places {
        file.seek(SeekFrom::Start(at as u64)).map_err(failed)?;
        file.write_all(&vec![b'*'; length]).map_err(failed)?;
    }
    file.sync_all().map_err(failed)?;
    Ok(true)
}

fn find(content: &[u8], secret: &[u8]) -> Option<usize> {
    content.windows(secret.len()).position(|window| window == secret)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::STANDARD;

    #[test]
    fn a_copy_goes_and_what_is_around_it_stays() {
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
        wanted.extend(in_base64("hunter2hunter2"));
        let mut blotted = Vec::new();
        search(dir.path(), &wanted, &mut blotted).unwrap();
        assert_eq!(blotted.len(), 4, "{blotted:?}");
        assert_eq!(crate::files::read(&plain).unwrap().unwrap(), "token: **************\nuser: me\n");
        for path in around {
            let text = crate::files::read(&path).unwrap().unwrap();
            assert!(text.contains("****"), "{text}");
        }
        assert_eq!(crate::files::read(&other).unwrap().unwrap(), "nothing here");
    }
}
