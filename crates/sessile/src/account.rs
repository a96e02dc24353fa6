//! The entry of a user in the password database.
//!
//! `/etc/passwd` is read first, and by this program itself. The C library finds users of a directory service through shared objects
//! (NSS), which a static program cannot load safely. Only a program with a shared C library asks for users that the file does not
//! have.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Password database of the machine itself.
const FILE: &str = "/etc/passwd";

/// Most bytes of it that are read.
const LIMIT: u64 = 16 * 1024 * 1024;

/// Entry of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AccountEntry {
    pub name: String,
    pub home: PathBuf,
    pub shell: PathBuf,
}

impl AccountEntry {
    /// The entry of a user by number.
    pub(crate) fn of_user(uid: u32) -> Option<Self> {
        let of_file = read().and_then(|file| find(&file, |found, _| found == uid));
        of_file.or_else(|| of_directory_service(uid))
    }

    /// Whether the file has no user of this name.
    pub(crate) fn is_free(name: &str) -> bool {
        find(&read().unwrap_or_default(), |_, found| found == name.as_bytes()).is_none()
    }
}

fn read() -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(8 * 1024);
    File::open(FILE).ok()?.take(LIMIT).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The first entry with this number and name: `name:password:uid:gid:comment:home:shell` (passwd(5)).
fn find(file: &[u8], is_meant: impl Fn(u32, &[u8]) -> bool) -> Option<AccountEntry> {
    file.split(|byte| *byte == b'\n').find_map(|line| {
        let mut fields = line.split(|byte| *byte == b':');
        let name = fields.next()?;
        let uid = std::str::from_utf8(fields.nth(1)?).ok()?.parse().ok()?;
        if !is_meant(uid, name) {
            return None;
        }
        let (home, shell) = (fields.nth(2)?, fields.next()?);
        let path = |bytes: &[u8]| Path::new(OsStr::from_bytes(bytes)).to_owned();
        Some(AccountEntry {
            name: String::from_utf8_lossy(name).into_owned(),
            home: path(home),
            shell: path(shell),
        })
    })
}

#[cfg(not(target_feature = "crt-static"))]
fn of_directory_service(uid: u32) -> Option<AccountEntry> {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(uid)).ok().flatten()?;
    Some(AccountEntry { name: user.name, home: user.dir, shell: user.shell })
}

#[cfg(target_feature = "crt-static")]
fn of_directory_service(_uid: u32) -> Option<AccountEntry> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &[u8] = b"root:x:0:0:root:/root:/bin/bash\n# comment\n\nbroken:x\nalice:x:1000:1000:Alice,,,:/home/alice:/bin/zsh\n";

    fn by_number(uid: u32) -> Option<AccountEntry> {
        find(PASSWD, |found, _| found == uid)
    }

    #[test]
    fn entry_of_a_user_is_found_by_number() {
        let alice =
            AccountEntry { name: "alice".into(), home: "/home/alice".into(), shell: "/bin/zsh".into() };
        assert_eq!(by_number(1000), Some(alice));
        assert_eq!(by_number(0).map(|root| root.home), Some(PathBuf::from("/root")));
        assert_eq!(by_number(1), None);
    }

    #[test]
    fn users_of_this_machine_are_those_of_the_c_library() {
        let own = nix::unistd::getuid();
        let expected = nix::unistd::User::from_uid(own).unwrap().map(|user| user.name);
        assert_eq!(AccountEntry::of_user(own.as_raw()).map(|user| user.name), expected);
        assert!(!AccountEntry::is_free("root") && AccountEntry::is_free("no such user"));
    }
}
