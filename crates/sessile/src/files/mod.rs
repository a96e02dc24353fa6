//! The only code that writes files.
//!
//! A write needs a [`LockedDir`]: the kernel's lock on the directory that holds the file. The lock has no file of its
//! own, is first come first served, and dies with its holder. Under it a file is replaced whole: one temporary file,
//! synced, renamed over the old one, and the directory synced. A new file that replaces nothing is a [`NewFile`].
//! Copies in a session's room are the exception: they are made under the room's lock.
//!
//! `NoFollowDir` is for directories that a stranger may have arranged, `ProjectDir` for the files of a project. Neither
//! follows a link out of its root.
//!
//! Not for the store, which brings its own locks and its own durability.

mod filesystem;
mod lock;
mod locked_dir;
mod new_file;
mod nofollow_dir;
mod ownership;
mod project_dir;
mod provenance_mark;
mod read;

/// The flag of `open` that makes a link in the place of a file an error.
pub(crate) const NO_FOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

pub(crate) use filesystem::has_current_times;
pub use filesystem::network_file_system;
pub use lock::{LinePosition, LockWait, Locker, WaitCallback, WaitNotice};
pub(crate) use locked_dir::put_in_place;
pub use locked_dir::{LockedDir, TEMPORARY, create_dir};
pub use new_file::{NewFile, with_ending};
pub(crate) use nofollow_dir::NoFollowDir;
pub(crate) use ownership::{
    check_private, check_private_beside, check_private_path, check_state_dir, create_private_dir,
};
pub use ownership::{check_trusted, check_trusted_database};
pub(crate) use provenance_mark::{MARK, check_marked, check_marked_state, is_marked, make_file, mark_file};
pub use read::{LIMIT, read, read_up_to, resolve_links};

pub(crate) use lock::{SILENCE, Wait, find_writer, open_lock_file};
pub(crate) use project_dir::{ProjectDir, is_own};
pub(crate) use read::{read_checked, require_file, require_no_dangling_link};
