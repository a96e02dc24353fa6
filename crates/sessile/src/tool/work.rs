//! State that tools keep in the working directory: a session has its own beside the user's, which begins as a copy.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::files::{LockedDir, Locker};
use crate::tool::plan::{Plan, WorkSeed};
use crate::tool::prepare::Wanted;
use crate::tool::seed::copy_parts;

/// Where the session has put something, so that it goes with it.
const RECORD: &str = "work.json";
/// How far below the working directory such state is looked for when a room is prepared.
const DEEPEST: usize = 4;
const MOST_DIRS: usize = 2000;

/// Copies what is in a working directory, and with `below` in those below it, unless the session has it already.
pub(crate) fn plant(
    plan: &Plan,
    wanted: &Wanted,
    cwd: &Path,
    room: &Path,
    locker: &Locker,
    below: bool,
) -> Result<()> {
    let is_bound = |tool: &str| plan.bound.iter().any(|bound| bound.tool == tool);
    let tools = plan.tools.iter().filter(|tool| wanted.wants(&tool.tool, false, is_bound(&tool.tool)));
    for seed in tools.flat_map(|tool| &tool.work) {
        let dirs = if below { dirs_with(cwd, &seed.from) } else { vec![cwd.to_owned()] };
        for dir in dirs {
            plant_in(&dir, seed, room, locker)?;
        }
    }
    Ok(())
}

fn plant_in(dir: &Path, seed: &WorkSeed, room: &Path, locker: &Locker) -> Result<()> {
    let (from, to) = (dir.join(&seed.from), dir.join(&seed.to));
    if !from.is_dir() || to.symlink_metadata().is_ok() {
        return Ok(());
    }
    // Before it is there, or a crash would leave it without a record.
    record(room, &to, locker)?;
    // A directory in which one may not write is one in which the tool cannot work either; it will say so.
    let _ = copy_parts(&from, &to, &seed.except, &seed.link);
    Ok(())
}

fn record(room: &Path, path: &Path, locker: &Locker) -> Result<()> {
    let dir = LockedDir::lock(locker, room, 0o700)?;
    let mut all = recorded(room);
    all.push(path.to_owned());
    dir.replace_for_now(Path::new(RECORD), &serde_json::to_string(&all).unwrap_or_default(), 0o600)
}

/// What a session has put into working directories.
pub(crate) fn recorded(room: &Path) -> Vec<PathBuf> {
    let text = crate::files::read(&room.join(RECORD)).ok().flatten().unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// The directories that have such state, from the working directory down.
fn dirs_with(cwd: &Path, name: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut level = vec![cwd.to_owned()];
    let mut seen = 0;
    for _ in 0..=DEEPEST {
        let mut next = Vec::new();
        for dir in level {
            if dir.join(name).is_dir() {
                found.push(dir.clone());
            }
            for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
                let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
                if !is_hidden && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    next.push(entry.path());
                }
            }
            seen += 1;
            if seen > MOST_DIRS {
                return found;
            }
        }
        level = next;
    }
    found
}
