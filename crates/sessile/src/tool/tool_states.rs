//! State of tools in a session's room, compared with the originals.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::Result;
use crate::session::Session;
use crate::tool::plan::Plan;
use crate::tool::seed::{DEEPEST, SeedCopy, digest, digest_all};

/// A tool's state in a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolState {
    /// The tool.
    pub tool: String,
    /// Bindings of the context.
    pub bound: Vec<String>,
    /// Reason why it is shared, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<String>,
    /// The copies.
    pub copies: Vec<Copy>,
}

/// One copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Copy {
    /// Path of the original.
    pub original: Vec<PathBuf>,
    /// Path of the copy.
    pub copy: PathBuf,
    /// Whether the session has changed it.
    pub changed: bool,
    /// Whether the user's own has changed since it was copied.
    pub original_changed: bool,
}

/// State of the tools in a session's room, without tools that have none.
pub fn tool_states(session: &Session) -> Result<Vec<ToolState>> {
    let plan = Plan::load(session.room().dir())?;
    let mut copied = Plan::copies(session.room().dir())?;
    let mut all = Vec::new();
    for prepared in &plan.tools {
        let copies: Vec<Copy> = copied
            .remove(&prepared.tool)
            .unwrap_or_default()
            .into_iter()
            .map(|seeded| Copy {
                changed: digest(&seeded.to) != seeded.digest && !is_empty_dir(&seeded.to),
                original_changed: digest_all(&seeded.from) != seeded.original,
                original: seeded.from,
                copy: seeded.to,
            })
            // A placeholder that the session never used is nothing to report.
            .filter(|copy| !copy.original.is_empty() || copy.changed)
            .collect();
        let bound: Vec<String> = plan
            .bound
            .iter()
            .filter(|bound| bound.tool == prepared.tool)
            .flat_map(|bound| {
                bound.bindings.iter().map(|(key, value)| match value.as_str() {
                    Some(text) => format!("{key}={text}"),
                    None => format!("{key}={value}"),
                })
            })
            .collect();
        if !copies.is_empty() || !bound.is_empty() || prepared.shared.is_some() {
            all.push(ToolState {
                tool: prepared.tool.clone(),
                bound,
                shared: prepared.shared.clone(),
                copies,
            });
        }
    }
    Ok(all)
}

/// The copies that a session has changed. Only what was touched after the room was prepared is read.
pub fn changed_copies(session: &Session) -> Result<Vec<PathBuf>> {
    let room = session.room().dir();
    let Some(prepared) = Plan::prepared_at(room) else { return Ok(Vec::new()) };
    let copies = Plan::copies(room)?;
    let is_changed = |copy: &SeedCopy| {
        // Most tools have no state, and nothing is there.
        if copy.digest.is_none() && copy.to.symlink_metadata().is_err() {
            return false;
        }
        // Digests read whole files, change times only their inodes.
        is_touched(&copy.to, prepared, 0) && digest(&copy.to) != copy.digest && !is_empty_dir(&copy.to)
    };
    Ok(copies.into_values().flatten().filter(is_changed).map(|copy| copy.to).collect())
}

/// Whether something at a path or below was changed at a time or later.
fn is_touched(path: &Path, since: (i64, i64), depth: usize) -> bool {
    // A copy that is gone was changed.
    let Ok(found) = path.symlink_metadata() else { return true };
    // Equal counts as later: time stamps are as coarse as the kernel's clock tick.
    if (found.ctime(), found.ctime_nsec()) >= since {
        return true;
    }
    found.is_dir()
        && depth < DEEPEST
        && std::fs::read_dir(path)
            .is_ok_and(|entries| entries.flatten().any(|entry| is_touched(&entry.path(), since, depth + 1)))
}

/// A directory that was made because a tool expects it holds nothing.
fn is_empty_dir(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}
