//! What is known about one tool.

use serde::Serialize;
use serde_json::Value;

use crate::tool::target::TargetSet;
use crate::tool::tree::Notation;

/// How far redirecting variables alone isolate a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// Everything that can be switched.
    Full,
    /// A part; the profile says what is left.
    Partial,
    /// Nothing.
    None,
}

impl Isolation {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Isolation::Full => "full",
            Isolation::Partial => "partial",
            Isolation::None => "none",
        }
    }
}

/// What is known about a tool.
#[derive(Clone, Debug, Serialize)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// What it is, in a few words.
    pub about: String,
    /// The family it belongs to.
    pub group: String,
    /// The programs that share its state, the main one first.
    pub programs: Vec<String>,
    /// Tools whose targets its programs use too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub follows: Vec<String>,
    /// The version with which this was measured; none if it was only read about.
    pub verified: Option<String>,
    /// What its variables alone achieve.
    pub env_level: Isolation,
    /// Whether moving the home directory isolates it.
    pub home_level: bool,
    /// Whether it is left as it is unless asked for.
    pub on_request: bool,
    /// Where it keeps state.
    pub keeps: Vec<String>,
    /// What stays shared in any session.
    pub not_isolated: Vec<String>,
    /// Targets that a guarded context cannot keep out of other sessions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_protected: Vec<String>,
    /// Variables that would override what a context binds; a trailing `*` stands for any rest.
    pub clears: Vec<String>,
    /// Variables that would lead out of the session.
    pub always_clears: Vec<String>,
    /// Prints what is selected.
    pub current: Option<Vec<String>>,
    /// Prints who one is; may ask the network.
    pub user: Option<Vec<String>>,
    /// Commands that switch or log in.
    pub switches: Vec<String>,
    /// Files below the home that get private copies at the `home` level.
    pub home: Vec<String>,
    /// A login that cannot be copied and stands in the same file as the selection.
    pub shared_when: Option<SharedWhen>,
    /// Variables that lead into the room.
    pub variables: Vec<(String, String)>,
    /// Variables that are set only where the user has none.
    pub unless_set: Vec<(String, String)>,
    /// What, if it is there, stands for those.
    pub unless_exists: Option<String>,
    /// What is copied into the room.
    #[serde(rename = "seeds")]
    pub seed: Vec<Seed>,
    /// What is copied within a working directory.
    pub work: Vec<Seed>,
    /// What a context can say about it.
    pub bind: Vec<(String, Binding)>,
    /// The entries of its files that a context can bind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetSet>,
    /// How to show that parallel processes fight over its state.
    #[serde(skip)]
    pub race: Option<Race>,
}

/// If the file holds the text, the login in it rotates and must not be copied.
#[derive(Clone, Debug, Serialize)]
pub struct SharedWhen {
    /// The file.
    pub file: String,
    /// The text.
    pub holds: String,
}

/// Something that is copied into the room.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Seed {
    /// Where from: the first that is there, or all of them united.
    pub from: Vec<String>,
    /// Where to, in the room.
    pub to: String,
    /// The user's variable that says where it is instead.
    pub variable: Option<String>,
    /// What the file is written in, if it has to be understood.
    pub format: Option<Format>,
    /// Whether several sources become one.
    pub merge: bool,
    /// Places with paths that are relative to the file.
    pub absolute: Vec<String>,
    /// Places with commands, which are relative to the file if they hold a slash.
    pub absolute_commands: Vec<String>,
    /// Something that is added to a list.
    pub append: Option<Append>,
    /// Entries of a directory that are left out.
    pub except: Vec<String>,
    /// Entries of a directory that are linked to the user's own.
    pub link: Vec<String>,
    /// What is made if the user has none.
    pub make: Option<Placeholder>,
}

/// What a seeded file is written in.
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
    /// How a tree is written in it, if it is one of trees.
    pub(crate) fn notation(self) -> Option<Notation> {
        match self {
            Format::Yaml => Some(Notation::Yaml),
            Format::Json => Some(Notation::Json),
            Format::Gitconfig => None,
        }
    }
}

/// Something that is made when there is nothing to copy.
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

/// What a context's key does to a tool.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Binding {
    /// What it says.
    pub about: String,
    /// Other keys that must be said too.
    pub needs: Vec<String>,
    /// What other keys take it for if it is not said.
    pub default: Option<String>,
    /// Whether it is a yes or no.
    pub flag: bool,
    /// Variables it sets.
    pub variables: Vec<(String, String)>,
    /// One of these must hold for the value to exist.
    pub exists: Vec<ExistenceCheck>,
    /// Changes to the room's files.
    pub edit: Vec<Edit>,
}

/// By what a value is known to exist.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExistenceCheck {
    /// A line of a file in the room.
    Line {
        /// The file.
        file: String,
        /// The line, without the space around it.
        line: String,
    },
    /// Something in the room.
    Path(String),
    /// It is this value.
    Is(String),
}

/// A change to a file in the room.
#[derive(Clone, Debug, Serialize)]
pub struct Edit {
    /// The file.
    pub file: String,
    /// What it is written in.
    pub format: Format,
    /// A place that must be there.
    pub require: Option<String>,
    /// A place that gets a value.
    pub set: Option<String>,
    /// The value, if it is not the bound one.
    pub value: Option<String>,
    /// The place whose value it gets.
    pub from: Option<String>,
    /// The flag that the required element gets, and its siblings lose.
    pub mark: Option<String>,
}

/// Commands that show the race. `{agent}` and `{round}` stand for numbers.
#[derive(Clone, Debug)]
pub struct Race {
    /// What is shared, in the user's words.
    pub state: String,
    /// Rounds per agent; fewer for tools that start slowly.
    pub rounds: usize,
    /// Whether it is quick enough for a demonstration.
    pub demo: bool,
    /// Run once per agent before the race.
    pub seed: Vec<Vec<String>>,
    /// Selects an agent's own value.
    pub switch: Vec<String>,
    /// Prints the value that is selected.
    pub probe: Vec<String>,
    /// What an agent must read after its switch.
    pub expect: String,
    /// Writes a key that no other agent writes.
    pub write: Option<Vec<String>>,
    /// Prints everything that was written.
    pub read_all: Option<Vec<String>>,
    /// What must be found there for each write.
    pub written: String,
    /// Paths outside the room that the tool may change, as `not_isolated` says.
    pub declared: Vec<String>,
}

impl Profile {
    /// The program that stands for the tool.
    pub fn program(&self) -> &str {
        self.programs.first().map_or("", String::as_str)
    }

    /// The binding of a key.
    pub fn binding(&self, key: &str) -> Option<&Binding> {
        self.bind.iter().find(|(name, _)| name == key).map(|(_, binding)| binding)
    }

    /// As JSON, with maps where there are pairs.
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
