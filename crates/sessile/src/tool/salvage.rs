//! Leaving a room: the session's own files outside of it are removed, new work is moved out.
//!
//! Copies belong to the session. New files in the moved home are work, and new files of unknown tools among the
//! settings are theirs: neither may vanish with the room.

use std::path::{Path, PathBuf};

use crate::error::{Error, FileError, Result, SessionError};
use crate::tool::paths::UserPaths;
use crate::tool::plan::Plan;
use crate::tool::seed::{make_dir, remove};
use crate::tool::workdir_state;
use crate::world::World;

/// Saves files that are not the session's before its room is removed. On an error the room must stay.
pub(crate) fn salvage(room: &Path, world: &World) -> Result<()> {
    let id = room.file_name().unwrap_or_default();
    workdir_state::remove_copies(room);
    // A room without a readable plan has no moved directories to bring anything out of.
    let Ok(plan) = Plan::load(room) else { return Ok(()) };
    // A plan that was tampered with must not move what is outside the room.
    let is_inside = |moved: &Path| {
        room.canonicalize().is_ok_and(|room| moved.canonicalize().is_ok_and(|moved| moved.starts_with(room)))
    };
    if let (Some(moved), Some(real)) = (&plan.home, &plan.real_home)
        && is_inside(moved)
    {
        // Hidden files in a moved home are state of tools, which ends with the session.
        let new: Vec<PathBuf> = new_in(moved).into_iter().filter(|path| !is_hidden(path)).collect();
        if !new.is_empty() {
            require_own(room, real, &UserPaths::of(world).homes)?;
        }
        for path in new {
            move_out(&path, real, &id.to_string_lossy())?;
        }
    }
    // Looked at first: most sessions leave nothing.
    if let Some((moved, real)) = &plan.config
        && let new = new_in(moved)
        && !new.is_empty()
        && is_inside(moved)
    {
        let copies = Plan::copies(room).unwrap_or_default();
        let is_tools = |path: &PathBuf| copies.values().flatten().any(|copy| copy.to.starts_with(path));
        for path in new.into_iter().filter(|path| !is_tools(path)) {
            let target = path.file_name().map(|name| real.join(name));
            // A name that the user has by now stays the user's; the session's entry goes with the room.
            if target.is_some_and(|target| target.symlink_metadata().is_err()) {
                require_own(room, real, &UserPaths::of(world).configs)?;
                move_out(&path, real, "")?;
            }
        }
    }
    Ok(())
}

/// Fails unless a directory in a plan is one that a session of the user can replace, because a manipulated plan must
/// not put files anywhere else. The room stays unchanged.
fn require_own(room: &Path, real: &Path, own: &[PathBuf]) -> Result<()> {
    if own.iter().any(|own| own == real) {
        return Ok(());
    }
    Err(SessionError::ForeignTarget { room: room.to_owned(), target: real.to_owned() }.into())
}

/// Entries of a symlink farm that are not links.
fn new_in(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_file()))
        .map(|entry| entry.path())
        .collect()
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Moves something into a directory of the user's; under another name if the name is taken.
#[expect(clippy::disallowed_methods, reason = "any kind of file is moved unread")]
fn move_out(path: &Path, into: &Path, session: &str) -> Result<()> {
    let Some(name) = path.file_name() else { return Ok(()) };
    // A home may have no settings directory yet.
    if into.symlink_metadata().is_err() {
        make_dir(into)?;
    }
    let mut target = into.join(name);
    if target.symlink_metadata().is_ok() {
        let mut other = name.to_owned();
        other.push(format!(".{session}"));
        target = into.join(other);
    }
    // Never over a file of the user's, not even one that an earlier session left.
    if target.symlink_metadata().is_ok() {
        return Err(FileError::Exists(target).into());
    }
    if std::fs::rename(path, &target).is_ok() {
        return Ok(());
    }
    // Rooms may be on another disk.
    copy_work(path, &target).map_err(|error| Error::io("copy", path, error)).inspect_err(|_| {
        // The next try begins anew.
        let _ = remove(&target);
    })
}

/// Copies what a command has made: links stay links, wherever they lead.
fn copy_work(from: &Path, to: &Path) -> std::io::Result<()> {
    let kind = from.symlink_metadata()?.file_type();
    match () {
        () if kind.is_symlink() => std::os::unix::fs::symlink(from.read_link()?, to),
        () if kind.is_file() => std::fs::copy(from, to).map(drop),
        () if kind.is_dir() => {
            std::fs::create_dir(to)?;
            for entry in std::fs::read_dir(from)? {
                let entry = entry?;
                copy_work(&entry.path(), &to.join(entry.file_name()))?;
            }
            std::fs::set_permissions(to, from.metadata()?.permissions())
        }
        // Sockets and pipes belong to whoever listens at them.
        () => Ok(()),
    }
}
