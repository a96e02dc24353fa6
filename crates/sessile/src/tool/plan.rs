//! Plan of a room: the state and bindings that it was prepared with, stored in the room as `plan.json`.
//!
//! Preparing costs milliseconds and reads dozens of files. Only the first command of a session pays for it; every later
//! one reads the plan. A plan of another version counts as missing. The copies are listed in a file of their own,
//! `copies.json`, which only preparing, comparing, leaving and `run --dry-run` read.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::files::LockedDir;
use crate::tool::bind::AppliedBinding;
use crate::tool::seed::SeedCopy;
use crate::tool::withheld::{Withheld, WithheldTarget};

/// Another layout of the file is another number; such a room is prepared again.
const VERSION: u32 = 2;

/// A tool whose state is in the room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedTool {
    /// The tool.
    pub tool: String,
    /// Variables that lead into the room.
    pub variables: Vec<(String, String)>,
    /// Variables that are set where the user has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unless_set: Vec<(String, String)>,
    /// Variables that would lead out of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clears: Vec<String>,
    /// The same for commands, and not for a shell that the hook brings in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command_clears: Vec<String>,
    /// Files that are copied within a working directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub work: Vec<WorkSeed>,
    /// Reason why it is shared, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<String>,
    /// State that only a moved home isolates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home_only: Option<HomeOnlyState>,
    /// State that is missing in the room because it is too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oversized: Option<OversizedState>,
    /// Originals that are linked into the room because they are too large.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub linked: Vec<PathBuf>,
}

/// State of a tool that only a moved home isolates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HomeOnlyState {
    /// The state, in a few words.
    pub state: String,
    /// Programs that use it.
    pub programs: Vec<String>,
}

/// State of a tool that is too large for a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OversizedState {
    /// Path of the file.
    pub path: PathBuf,
    /// Programs that use it.
    pub programs: Vec<String>,
}

/// State that a tool keeps in the working directory, and where a session keeps its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkSeed {
    /// The directory, below the working directory.
    pub from: PathBuf,
    /// The session's, below it too.
    pub to: PathBuf,
    /// Entries that are left out.
    pub except: Vec<String>,
    /// Entries that are linked.
    pub link: Vec<String>,
    /// Entries that are left out if the context binds a key, each with the key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pinned_by: Vec<(String, String)>,
}

/// Copies in a room, by tool.
pub type Copies = BTreeMap<String, Vec<SeedCopy>>;

/// Plan of a room.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    version: u32,
    /// Whether the plan has every tool that is isolated by default.
    pub complete: bool,
    /// The home in it, if it has one.
    pub home: Option<PathBuf>,
    /// The user's home that the room's home replaces.
    #[serde(default)]
    pub real_home: Option<PathBuf>,
    /// Configuration directory in the room's home, and the user's directory that it replaces.
    #[serde(default)]
    pub config: Option<(PathBuf, PathBuf)>,
    /// The tools.
    pub tools: Vec<PreparedTool>,
    /// Applied bindings of the context.
    pub bound: Vec<AppliedBinding>,
    /// Protected targets that it does not hold; none if that was never decided.
    #[serde(default)]
    pub withheld: Option<Withheld>,
    /// Whether this call has prepared it.
    #[serde(skip)]
    pub(crate) is_new: bool,
    /// Stamps of the user's files that it depends on, if another session may use the room.
    #[serde(skip)]
    pub(crate) inputs: Option<Vec<String>>,
}

impl Plan {
    /// The protected targets that it lacks, with their tools. Without a home of its own, files below the user's home are in
    /// place.
    pub fn withheld_targets(&self) -> impl Iterator<Item = (&str, &WithheldTarget)> {
        let has_home = self.home.is_some();
        let all = self.withheld.iter().flat_map(Withheld::targets);
        all.filter(move |(_, target)| has_home || !target.is_in_home())
    }

    /// The file in a room.
    pub fn path(room: &Path) -> PathBuf {
        room.join(NAME)
    }

    /// Reads a room's; an empty one if it was not prepared yet, or by another version of this program.
    pub fn load(room: &Path) -> Result<Self> {
        let text = crate::files::read(&Self::path(room))?.unwrap_or_default();
        let plan: Self = serde_json::from_str(&text).unwrap_or_default();
        Ok(if plan.version == VERSION { plan } else { Plan { version: VERSION, ..Plan::default() } })
    }

    pub(crate) fn save(&self, dir: &LockedDir, durable: bool) -> Result<()> {
        let text = serde_json::to_string(self).unwrap_or_default();
        put(dir, NAME, &text, durable)
    }

    /// Copies in a room. Running a command does not read them.
    pub fn copies(room: &Path) -> Result<Copies> {
        let text = crate::files::read(&room.join(COPIES))?.unwrap_or_default();
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }

    /// Modification time of the list of copies, in seconds and nanoseconds; `None` if it does not exist.
    pub(super) fn prepared_at(room: &Path) -> Option<(i64, i64)> {
        let found = room.join(COPIES).metadata().ok()?;
        // The change time cannot be set by a program, unlike the modification time.
        Some((found.ctime(), found.ctime_nsec()))
    }

    pub(crate) fn save_copies(copies: &Copies, dir: &LockedDir, durable: bool) -> Result<()> {
        let text = serde_json::to_string(copies).unwrap_or_default();
        put(dir, COPIES, &text, durable)
    }

    /// Whether this call has prepared it.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// The originals that are linked into the room because they are too large to copy, with their tools.
    pub fn linked(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.tools.iter().flat_map(|tool| tool.linked.iter().map(|path| (tool.tool.as_str(), path.as_path())))
    }

    /// A tool of it.
    pub fn tool(&self, name: &str) -> Option<&PreparedTool> {
        self.tools.iter().find(|prepared| prepared.tool == name)
    }
}

const NAME: &str = "plan.json";
const COPIES: &str = "copies.json";

/// A session for one command ends with the machine; to wait for the disk would be in vain.
fn put(dir: &LockedDir, name: &str, text: &str, durable: bool) -> Result<()> {
    let name = Path::new(name);
    if durable { dir.replace(name, text, 0o600) } else { dir.replace_for_now(name, text, 0o600) }
}
