//! The only code that writes files.
//!
//! A write needs a [`LockedDir`]: the kernel's lock on the directory that holds the file. The lock has no file of its
//! own, is first come first served, and dies with its holder. Under it a file is replaced whole: one temporary file,
//! synced, renamed over the old one, and the directory synced. A new file that replaces nothing is a [`NewFile`].
//! Copies in a session's room are the exception: they are made under the room's lock.
//!
//! `PlainDir` is for directories that a stranger may have arranged, `Beneath` for the files of a project. Neither
//! follows a link out of its root.
//!
//! Not for the store, which brings its own locks and its own durability.

mod beneath;
mod filesystem;
mod lock;
mod locked_dir;
mod marked;
mod new_file;
mod plain_dir;
mod read;
mod trusted;

/// The flag of `open` that makes a link in the place of a file an error.
pub(crate) const NO_FOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

pub use filesystem::network_file_system;
pub use lock::{Locker, Waiting};
pub(crate) use locked_dir::put_in_place;
pub use locked_dir::{LockedDir, TEMPORARY, create_dir};
pub(crate) use marked::{MARK, check_marked, check_marked_state, is_marked, make_file, mark_file};
pub use new_file::{NewFile, with_ending};
pub(crate) use plain_dir::PlainDir;
pub use read::{LIMIT, read, resolve_links};
pub(crate) use trusted::{check_private, check_state_dir};
pub use trusted::{check_trusted, check_trusted_database};

pub(crate) use beneath::{Beneath, is_own};
pub(crate) use lock::{Wait, find_writer, open_lock_file};
pub(crate) use read::{read_up_to, require_file};
