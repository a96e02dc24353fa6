//! Profiles of tools.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::files::read_up_to;
use crate::tool::seed::LARGEST_UNDERSTOOD;
use crate::tool::target::{TargetPlace, TargetSelection, TargetSet};
use crate::tool::tree::Notation;

/// The home in a room.
pub(crate) const ROOM_HOME: &str = "home";

/// Isolation of a tool by variables alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// All state that can be switched.
    Full,
    /// Part of the state; the profile lists the rest.
    Partial,
    /// No isolation.
    None,
}

impl Isolation {
    /// Word.
    pub fn as_str(self) -> &'static str {
        match self {
            Isolation::Full => "full",
            Isolation::Partial => "partial",
            Isolation::None => "none",
        }
    }
}

/// Profile of a tool.
#[derive(Clone, Debug, Serialize)]
pub struct Profile {
    /// Name.
    pub name: String,
    /// Description, in a few words.
    pub about: String,
    /// The family it belongs to.
    pub group: String,
    /// The programs that share its state, the main one first.
    pub programs: Vec<String>,
    /// Tools whose targets its programs use too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub follows: Vec<String>,
    /// Version of the tool that the profile was tested with; `None` if untested.
    pub verified: Option<String>,
    /// Isolation by variables alone.
    pub env_level: Isolation,
    /// Whether moving the home directory isolates it.
    pub home_level: bool,
    /// State that users rely on and only a moved home isolates, in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home_only: Option<String>,
    /// Whether the tool is isolated only on request.
    pub on_request: bool,
    /// Locations of the tool's state.
    pub keeps: Vec<String>,
    /// State that stays shared in every session.
    pub not_isolated: Vec<String>,
    /// Targets that a guarded context cannot keep out of other sessions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_protected: Vec<String>,
    /// Variables that would override a context's bindings; a `*` matches any text, a leading `~` ignores case.
    pub clears: Vec<String>,
    /// Variables that would point out of the session.
    pub always_clears: Vec<String>,
    /// The same for commands only: a shell that the hook brings into the session keeps them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command_clears: Vec<String>,
    /// Command that prints the selected target.
    pub current: Option<Vec<String>>,
    /// Command that prints the account; may use the network.
    pub user: Option<Vec<String>>,
    /// Commands that switch or log in.
    pub switches: Vec<String>,
    /// Files below the home that get private copies at the `home` level.
    pub home: Vec<String>,
    /// Login that cannot be copied and is in the same file as the selection.
    pub shared_when: Option<SharedWhen>,
    /// Variables that point into the room.
    pub variables: Vec<(String, String)>,
    /// Variables that are set only where the user has none.
    pub unless_set: Vec<(String, String)>,
    /// Path whose existence replaces the variables.
    pub unless_exists: Option<String>,
    /// Files that are copied into the room.
    #[serde(rename = "seeds")]
    pub seed: Vec<Seed>,
    /// Files that are copied within a working directory.
    pub work: Vec<Seed>,
    /// Files of a project that the tool reads beside the user's own.
    #[serde(rename = "projects", skip_serializing_if = "Vec::is_empty")]
    pub project: Vec<ProjectFile>,
    /// Bindings that a context can have.
    pub bind: Vec<(String, Binding)>,
    /// The entries of its files that a context can bind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetSet>,
    /// Targets of other tools that its programs reach by variables of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reaches: Vec<TargetReach>,
    /// Places outside rooms that the import reads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<ImportPlace>,
    /// Demonstration of a race on its state.
    #[serde(skip)]
    pub race: Option<Race>,
}

/// Variables by which programs reach a target beside what is selected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReachVariables {
    /// Variables that name the target.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub selects: Vec<String>,
    /// Fields of its entry, each with the variables that give it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<(String, Vec<String>)>,
    /// Fields that reach the target without the others, which its files may share with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub completes: Vec<String>,
    /// Variables whose names contain that of the target, with `{}` for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<String>,
    /// Variables that lead to files of the user with targets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// Variables by which the programs of a tool reach the targets of another one.
#[derive(Clone, Debug, Serialize)]
pub struct TargetReach {
    /// The other tool.
    pub tool: String,
    /// Key of its binding.
    pub key: String,
    /// The variables.
    #[serde(flatten)]
    pub variables: ReachVariables,
    /// Variables that would override what a context binds for the other tool.
    pub clears: Vec<String>,
}

/// Place outside rooms that the import reads.
#[derive(Clone, Debug, Serialize)]
pub struct ImportPlace {
    /// Kind of its entries.
    pub what: ImportedThing,
    /// Files: below a directory of the user in braces, or below the working directory. A `*` in the last part matches
    /// any text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Copy in the room whose originals are read, also where a variable of the tool names them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy: Option<String>,
    /// File that lists more files, and the path of the list in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listed: Option<(String, String)>,
    /// Format of the files, and their entries.
    #[serde(flatten)]
    pub place: TargetPlace,
    /// Field with the path of the file that describes an entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub through: Option<String>,
    /// Imported parts, and the fields of an entry that hold them. `{}` is the entry's name, `{file}` its file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<(String, String)>,
    /// Fields that must have one of the values between `|`, for the entry to count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<(String, String)>,
    /// File whose existence allows the import of a file of the working directory. `{sha256}` is the digest of its path, a line
    /// end and its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<String>,
    /// Whether the targets join contexts of other targets, and make none by themselves.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub joins: bool,
}

/// Kind of the entries of an imported place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ImportedThing {
    /// Values of a binding.
    Target(String),
    /// Values of a binding that the user has used lately.
    Recent(String),
    /// A2A agents, by name.
    Agent,
    /// Conversations with A2A agents.
    Conversation,
    /// Secrets in clear text, of this kind.
    Credential(String),
    /// Variables that a shell sets in the working directory.
    Variable,
}

/// File that a tool reads in the directory of a project. It is the user's own file where that directory is the home.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectFile {
    /// Name of the file.
    pub file: String,
    /// The user's own file that it can be.
    pub own: String,
    /// Entries of the project's directory: the nearest directory with one of them, else the working directory.
    pub roots: Vec<String>,
    /// Whether the tool reads the files of all directories above as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ancestors: bool,
    /// File of a directory above the project that can make it the project's directory, and a text that it holds then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<FileMark>,
}

impl ProjectFile {
    /// The directories whose file the tool may read, for a working directory.
    pub(crate) fn dirs<'d>(&self, cwd: &'d Path) -> Vec<&'d Path> {
        if self.ancestors {
            return cwd.ancestors().collect();
        }
        let is_root = |dir: &&Path| self.roots.iter().any(|root| dir.join(root).exists());
        let root = cwd.ancestors().find(is_root).unwrap_or(cwd);
        let is_above = |dir: &&Path| self.above.as_ref().is_some_and(|mark| mark.is_in(dir));
        [root].into_iter().chain(root.ancestors().skip(1).filter(is_above)).collect()
    }
}

/// File that holds a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMark {
    /// Name of the file.
    pub file: String,
    /// Text.
    pub holds: String,
}

impl FileMark {
    fn is_in(&self, dir: &Path) -> bool {
        // A file that cannot be read may hold it.
        let text = read_up_to(&dir.join(&self.file), LARGEST_UNDERSTOOD);
        text.map_or(true, |text| text.is_some_and(|text| text.contains(&self.holds)))
    }
}

/// Marker of a login whose tokens rotate: a file that contains the text must not be copied.
#[derive(Clone, Debug, Serialize)]
pub struct SharedWhen {
    /// The file.
    pub file: String,
    /// The text.
    pub holds: String,
}

/// File or directory that is copied into the room.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Seed {
    /// Sources: the first that exists, or all of them merged.
    pub from: Vec<String>,
    /// Destination in the room.
    pub to: String,
    /// Variable of the user that overrides the source.
    pub variable: Option<String>,
    /// Format, for a file that is parsed.
    pub format: Option<Format>,
    /// Whether several sources are merged.
    pub merge: bool,
    /// Keys of the file that are copied; all if it is empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Places with paths that are relative to the file.
    pub absolute: Vec<String>,
    /// Places with commands, which are relative to the file if they hold a slash.
    pub absolute_commands: Vec<String>,
    /// Value that is appended to a list.
    pub append: Option<Append>,
    /// Entries of a directory that are left out.
    pub except: Vec<String>,
    /// Entries of a directory that are linked to the user's own.
    pub link: Vec<String>,
    /// Placeholder if the user has no such file.
    pub make: Option<Placeholder>,
    /// Whether backups and editors' files in a directory are left out.
    pub skip_backups: bool,
    /// Entries of a working directory's state that are left out if the context binds a key, each with the key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pinned_by: Vec<(String, String)>,
}

/// Format of a seeded file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// YAML.
    Yaml,
    /// JSON.
    Json,
    /// Sections with keys, and includes that are relative to the file.
    Gitconfig,
}

impl Format {
    /// Notation, for a format of trees.
    pub(crate) fn notation(self) -> Option<Notation> {
        match self {
            Format::Yaml => Some(Notation::Yaml),
            Format::Json => Some(Notation::Json),
            Format::Gitconfig => None,
        }
    }
}

/// Placeholder for a missing source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Placeholder {
    /// An empty file.
    File,
    /// An empty directory.
    Dir,
}

/// Text that is added to a list in a file.
#[derive(Clone, Debug, Serialize)]
pub struct Append {
    /// The list.
    pub key: String,
    /// The text.
    pub value: String,
}

/// Effect of a context's key on a tool.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Binding {
    /// Description.
    pub about: String,
    /// Other keys that must be bound too.
    pub needs: Vec<String>,
    /// Default value for the templates of other keys.
    pub default: Option<String>,
    /// Whether the value is a boolean.
    pub flag: bool,
    /// Whether a guarded context keeps variables with this value out of other sessions, although no file has an entry for it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub protects: bool,
    /// Variables that it sets.
    pub variables: Vec<(String, String)>,
    /// Copy in the room that is made from the files which the value names, instead of the user's usual ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_of: Option<String>,
    /// Checks, one of which must pass for the value to exist.
    pub exists: Vec<ExistenceCheck>,
    /// Changes to the room's files.
    pub edit: Vec<Edit>,
}

/// Check that a bound value exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExistenceCheck {
    /// A line of a file in the room.
    Line {
        /// The file.
        file: String,
        /// The line, without the space around it.
        line: String,
    },
    /// A path in the room.
    Path(String),
    /// This literal value.
    Is(String),
    /// An entry of the key's set of targets.
    Entry,
}

/// Format of a file that a binding changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EditFormat {
    /// YAML.
    Yaml,
    /// JSON.
    Json,
    /// TOML; a path is a key at the top.
    Toml,
    /// Sections in brackets; a path is `SECTION.KEY`.
    Ini,
    /// The same, with includes and a last value that counts.
    Gitconfig,
    /// One value, which is the whole file.
    Text,
}

/// A change to a file in the room.
#[derive(Clone, Debug, Serialize)]
pub struct Edit {
    /// The file.
    pub file: String,
    /// Format of the file.
    pub format: EditFormat,
    /// Path that must exist in the tree.
    pub require: Option<String>,
    /// Path that gets a value.
    pub set: Option<String>,
    /// The value, if it is not the bound one.
    pub value: Option<String>,
    /// Path whose value is copied.
    pub from: Option<String>,
    /// File with sections that `from` is a path in, if it is not the changed file.
    pub source: Option<String>,
    /// The flag that the required element gets, and its siblings lose.
    pub mark: Option<String>,
}

/// Commands that demonstrate the race. `{agent}` and `{round}` are replaced by numbers.
#[derive(Clone, Debug)]
pub struct Race {
    /// Shared state, in the user's words.
    pub state: String,
    /// Rounds per agent; fewer for tools that start slowly.
    pub rounds: usize,
    /// Whether it is quick enough for a demonstration.
    pub demo: bool,
    /// Command run once per agent before the race.
    pub seed: Vec<Vec<String>>,
    /// Command that selects an agent's own value.
    pub switch: Vec<String>,
    /// Command that prints the selected value.
    pub probe: Vec<String>,
    /// Expected output after an agent's switch.
    pub expect: String,
    /// Command that writes a key of this agent only.
    pub write: Option<Vec<String>>,
    /// Command that prints all written keys.
    pub read_all: Option<Vec<String>>,
    /// Expected line for each write.
    pub written: String,
    /// Paths outside the room that the tool may change, as `not_isolated` says.
    pub declared: Vec<String>,
}

impl Profile {
    /// Main program of the tool.
    pub fn program(&self) -> &str {
        self.programs.first().map_or("", String::as_str)
    }

    /// Short description of the state that only the level `home` isolates.
    pub(crate) fn only_at_home(&self) -> Option<String> {
        let part = self.home_only.as_ref().map(|part| format!("the {part} of {}", self.name));
        let whole = || (self.env_level == Isolation::None).then(|| self.name.clone());
        part.or_else(whole).filter(|_| self.home_level)
    }

    /// The paths below a room that bindings and targets use, up to their first placeholder.
    pub(crate) fn used_paths(&self) -> Vec<PathBuf> {
        let targets = self.targets.iter().flat_map(|set| {
            let selected = set.selected.iter().flat_map(TargetSelection::files);
            set.places.iter().map(|place| place.file.as_str()).chain(selected)
        });
        let bindings = self.bind.iter().flat_map(|(_, binding)| {
            let checked = binding.exists.iter().filter_map(|check| match check {
                ExistenceCheck::Line { file, .. } | ExistenceCheck::Path(file) => Some(file.as_str()),
                ExistenceCheck::Is(_) | ExistenceCheck::Entry => None,
            });
            binding.edit.iter().map(|edit| edit.file.as_str()).chain(checked)
        });
        let fixed = |path: &str| {
            let is_fixed = |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(['{', '*']);
            Path::new(path).components().take_while(is_fixed).collect()
        };
        targets.chain(bindings).map(fixed).collect()
    }

    /// The binding of a key.
    pub fn binding(&self, key: &str) -> Option<&Binding> {
        self.bind.iter().find(|(name, _)| name == key).map(|(_, binding)| binding)
    }

    /// The files that get private copies at the `home` level, as seeds.
    pub(crate) fn home_seeds(&self) -> impl Iterator<Item = Seed> {
        self.home.iter().map(|name| Seed {
            from: vec![format!("{{home}}/{name}")],
            to: format!("{ROOM_HOME}/{name}"),
            ..Seed::default()
        })
    }

    /// Whether entries of its targets are in files that only a moved home isolates.
    pub(crate) fn has_targets_in_home(&self) -> bool {
        self.targets.iter().any(|set| self.is_in_home(&set.name))
    }

    /// Whether entries of a set are in such a file.
    pub(crate) fn is_in_home(&self, set: &str) -> bool {
        let mut places = self.targets.iter().filter(|one| one.name == set).flat_map(|set| &set.places);
        places.any(|place| Path::new(&place.file).starts_with(ROOM_HOME))
    }

    /// JSON of the profile, with pairs as maps.
    pub fn to_json(&self) -> Value {
        let mut json = serde_json::to_value(self).unwrap_or_default();
        let pairs = |pairs: &[(String, String)]| -> Value {
            pairs.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect()
        };
        json["variables"] = pairs(&self.variables);
        json["unless_set"] = pairs(&self.unless_set);
        json["bind"] = self
            .bind
            .iter()
            .map(|(key, binding)| {
                let mut json = serde_json::to_value(binding).unwrap_or_default();
                json["variables"] = pairs(&binding.variables);
                (key.clone(), json)
            })
            .collect();
        json
    }
}
