//! One context, as its file says it.

use std::path::Path;
use std::rc::Rc;

use serde::Serialize;

use crate::app::App;
use crate::context::{ContextLocation, Guard};
use crate::error::{Error, FileError, ProjectError, Result};
use crate::names::{ContextName, CredentialName, nearest, without_name};
use crate::settings::{Data, Document, Layer, Node, SettingKey, SettingSource, Stack, UnknownSetting, Value};
use crate::text::HIDDEN;

/// A variable's value: written out, or a reference to a credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Variable {
    /// The value itself.
    Plain(String),
    /// The credential whose secret it gets when a command is run.
    Credential {
        /// The credential's name.
        credential: String,
    },
}

/// Bindings of one tool: context, namespace, profile and so on.
pub type Bindings = Vec<(String, serde_json::Value)>;

/// A context.
#[derive(Clone, Debug)]
pub struct Context {
    /// Name.
    pub name: ContextName,
    /// Owner.
    pub home: ContextLocation,
    /// Whether it may be used: a project's must be trusted first.
    pub trusted: bool,
    /// Purpose.
    pub description: Option<String>,
    /// Guard.
    pub guard: Guard,
    /// Values of its own, such as a workspace or a branch.
    pub values: Vec<(String, Value)>,
    /// Variables for commands that run in it.
    pub env: Vec<(String, Variable)>,
    /// Bindings, by tool.
    pub tools: Vec<(String, Bindings)>,
    /// Credentials of agents, by URL.
    pub agents: Vec<(String, String)>,
    /// Keys that mean nothing in a context.
    pub unknown: Vec<UnknownSetting>,
    document: Rc<Document>,
    within: Vec<String>,
}

/// Number of unknown keys that are kept; a stranger's file may hold any number.
const MOST_UNKNOWN: usize = 20;

/// The keys a context file has at its top.
pub(super) const KEYS: &[&str] = &["description", "guard", "settings", "values", "env", "tools", "agents"];

/// The key of a context that an unknown key is a misspelling of, probably.
pub(super) fn misspelt(key: &str) -> Option<String> {
    nearest(key, KEYS.iter().copied())
}

impl Context {
    /// Reads a context out of its file, or out of a table of a file with many.
    pub(crate) fn read(
        app: &App,
        name: ContextName,
        home: ContextLocation,
        trusted: bool,
        document: Rc<Document>,
        within: Vec<String>,
    ) -> Result<Self> {
        let file = Rc::clone(&document);
        let root = table_in(&file, &within);
        let mut context = Context {
            name,
            home,
            trusted,
            description: None,
            guard: Guard::None,
            values: Vec::new(),
            env: Vec::new(),
            tools: Vec::new(),
            agents: Vec::new(),
            unknown: Vec::new(),
            document,
            within,
        };
        let reader = Reader { file: &file };
        for (key, node) in root.members() {
            match key.as_str() {
                "description" => context.description = Some(reader.text(key, node)?.to_owned()),
                "guard" => {
                    let text = reader.text(key, node)?;
                    context.guard = Guard::parse(text).ok_or_else(|| {
                        reader.wrong(key, node, format!("one of {}", Guard::NAMES.join(", ")))
                    })?;
                }
                "settings" => drop(reader.table(key, node)?),
                "values" => context.values = reader.values(key, node)?,
                "env" => context.env = reader.variables(key, node)?,
                "tools" => context.tools = reader.tools(key, node)?,
                "agents" => context.agents = reader.agents(key, node)?,
                _ => {
                    let shown = if file.hides_keys() { HIDDEN } else { key };
                    let place = file.place(node.offset);
                    // Its author meant the other key: a guard that is ignored protects nothing.
                    if let Some(near) = misspelt(key) {
                        let (place, key) = (Box::new(place), shown.to_owned());
                        return Err(FileError::MisspeltKey { place, key, near }.into());
                    }
                    if context.unknown.len() < MOST_UNKNOWN {
                        let key = SettingKey::new([shown]);
                        context.unknown.push(UnknownSetting { key, place, near: None });
                    }
                }
            }
        }
        // Checked here, so that a wrong setting is reported with the context and not at its first use.
        let settings = Stack::new(app, vec![context.settings()]);
        settings.check()?;
        context.unknown.extend(settings.unknown(MOST_UNKNOWN).0);
        Ok(context)
    }

    /// Settings, as a layer.
    pub fn settings(&self) -> SettingSource {
        let mut within = self.within.clone();
        within.push("settings".to_owned());
        SettingSource::File {
            layer: Layer::Context,
            name: Some(self.name.to_string()),
            document: Rc::clone(&self.document),
            within,
            trusted: true,
        }
    }

    /// The settings it says, by key.
    pub fn setting_values(&self, app: &App) -> Result<Vec<(SettingKey, Value)>> {
        let stack = Stack::new(app, vec![self.settings()]);
        let mut values = Vec::new();
        for key in stack.keys(false) {
            let said = stack.explain(&key)?.into_iter().find(|found| found.origin.layer == Layer::Context);
            values.extend(said.map(|found| (key, found.value)));
        }
        Ok(values)
    }

    /// Content of the context's file, with likely secrets masked.
    pub fn content(&self, app: &App) -> Result<ContextContent> {
        let settings = self.setting_values(app)?.into_iter().map(|(key, value)| {
            let value = serde_json::json!(value.masked_for(&key));
            (key.to_string(), value)
        });
        let values = self
            .values
            .iter()
            .map(|(name, value)| (name.clone(), serde_json::json!(value.clone().masked_if_secret(name))));
        let env =
            self.env.iter().map(|(name, value)| (name.clone(), masked(name, &serde_json::json!(value))));
        let tools = self.tools.iter().map(|(tool, bindings)| {
            let bindings = bindings.iter().map(|(name, value)| (name.clone(), masked(name, value)));
            (tool.clone(), serde_json::Value::Object(bindings.collect()))
        });
        let agents = self
            .agents
            .iter()
            .map(|(url, credential)| (url.clone(), serde_json::json!({ "credential": credential })));
        Ok(ContextContent {
            description: self.shown_description(),
            guard: self.guard,
            settings: settings.collect(),
            values: values.collect(),
            env: env.collect(),
            tools: tools.collect(),
            agents: agents.collect(),
        })
    }

    /// Description, masked if a URL in it has a password.
    pub fn shown_description(&self) -> Option<String> {
        self.description.clone().map(|text| Value::Text(text).masked_if_secret("description").to_string())
    }

    /// File of the context.
    pub fn path(&self) -> &Path {
        self.document.path()
    }

    /// The file's content.
    pub(crate) fn document(&self) -> &Document {
        &self.document
    }

    /// Name of a credential that the context provides. The error contains it only if the file's content may be
    /// disclosed.
    pub(crate) fn credential_name(&self, name: &str, key: &str) -> Result<CredentialName> {
        name.parse().map_err(|error| match self.document.is_quotable() {
            true => error,
            false => without_name(error, format_args!("{key} of context {}", self.name)),
        })
    }

    /// Whether its own file may have lost its guard by accident: the file has no keys, or an unknown one and none for a guard.
    pub(super) fn may_lack_guard(&self) -> bool {
        let keys = self.root().members();
        let is_unknown = |key: &str| !KEYS.contains(&key);
        self.home != ContextLocation::File
            && keys.iter().all(|(key, _)| key != "guard")
            && (keys.is_empty() || keys.iter().any(|(key, _)| is_unknown(key)))
    }

    /// Table of the context in its file.
    pub(super) fn within(&self) -> &[String] {
        &self.within
    }

    /// The table of the file that says what it is.
    pub(super) fn root(&self) -> &Node {
        table_in(&self.document, &self.within)
    }

    /// Fails unless it may be used.
    pub fn require_trust(&self, state: &crate::State) -> Result<()> {
        match state.project() {
            Some(project) if !self.trusted => Err(ProjectError::Untrusted {
                path: self.path().to_owned(),
                project: project.root().to_owned(),
            }
            .into()),
            _ => Ok(()),
        }
    }
}

/// The table at a place of a file; the whole file if it has none there.
fn table_in<'d>(document: &'d Document, within: &[String]) -> &'d Node {
    within.iter().try_fold(document.root(), |node, name| node.get(name)).unwrap_or(document.root())
}

fn masked(name: &str, value: &serde_json::Value) -> serde_json::Value {
    match value.as_str() {
        Some(text) => serde_json::json!(Value::Text(text.to_owned()).masked_if_secret(name)),
        None => value.clone(),
    }
}

/// Content of a context's file, with its values as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct ContextContent {
    /// Description.
    pub description: Option<String>,
    /// Guard.
    pub guard: Guard,
    /// Settings, by key.
    pub settings: serde_json::Map<String, serde_json::Value>,
    /// Values, by key.
    pub values: serde_json::Map<String, serde_json::Value>,
    /// Variables of commands, by name.
    pub env: serde_json::Map<String, serde_json::Value>,
    /// Bindings, by tool.
    pub tools: serde_json::Map<String, serde_json::Value>,
    /// Credentials, by the URL of the agent.
    pub agents: serde_json::Map<String, serde_json::Value>,
}

/// Reads typed parts, and says where one is wrong.
struct Reader<'a> {
    file: &'a Document,
}

impl Reader<'_> {
    fn wrong(&self, key: &str, node: &Node, expected: impl Into<String>) -> Error {
        Error::File(FileError::Value {
            place: self.file.place(node.offset).into(),
            key: match key.split_once('.') {
                // The first word is one of the program's.
                Some((table, _)) if self.file.hides_keys() => format!("{table}.{HIDDEN}"),
                _ => key.to_owned(),
            },
            expected: expected.into(),
            found: self.file.describe(node),
        })
    }

    fn text<'n>(&self, key: &str, node: &'n Node) -> Result<&'n str> {
        node.as_str().ok_or_else(|| self.wrong(key, node, "text"))
    }

    fn table<'n>(&self, key: &str, node: &'n Node) -> Result<&'n [(String, Node)]> {
        match &node.data {
            Data::Table(members) => Ok(members),
            _ => Err(self.wrong(key, node, "a table")),
        }
    }

    fn values(&self, key: &str, node: &Node) -> Result<Vec<(String, Value)>> {
        let members = self.table(key, node)?.iter();
        members.map(|(name, node)| Ok((name.clone(), self.value(&format!("{key}.{name}"), node)?))).collect()
    }

    fn value(&self, key: &str, node: &Node) -> Result<Value> {
        free_value(node)
            .ok_or_else(|| self.wrong(key, node, "a string, a list of strings, an integer, true or false"))
    }

    fn variables(&self, key: &str, node: &Node) -> Result<Vec<(String, Variable)>> {
        let mut variables = Vec::new();
        for (name, node) in self.table(key, node)? {
            if !is_variable_name(name) {
                let is_shown = self.file.is_quotable();
                let key = if is_shown { format!("{key}.{name}") } else { format!("{key}.{HIDDEN}") };
                return Err(self.wrong(&key, node, "named like a variable (letters, digits and _)"));
            }
            let key = format!("{key}.{name}");
            let value = match (&node.data, node.get("credential")) {
                // A variable cannot hold a NUL byte.
                (Data::Text(text), _) if !text.contains('\0') => Variable::Plain(text.clone()),
                // Another key beside it would be ignored, although its author meant something by it.
                (Data::Table(members), Some(credential)) if members.len() == 1 => {
                    Variable::Credential { credential: self.text(&key, credential)?.to_owned() }
                }
                _ => return Err(self.wrong(&key, node, "text or { credential = \"NAME\" }")),
            };
            variables.push((name.clone(), value));
        }
        Ok(variables)
    }

    fn tools(&self, key: &str, node: &Node) -> Result<Vec<(String, Bindings)>> {
        let mut tools = Vec::new();
        for (tool, node) in self.table(key, node)? {
            let key = format!("{key}.{tool}");
            let mut bindings = Vec::new();
            for (name, node) in self.table(&key, node)? {
                let value = self.value(&format!("{key}.{name}"), node)?;
                bindings.push((name.clone(), serde_json::json!(value)));
            }
            tools.push((tool.clone(), bindings));
        }
        Ok(tools)
    }

    fn agents(&self, key: &str, node: &Node) -> Result<Vec<(String, String)>> {
        let mut agents = Vec::new();
        for (url, node) in self.table(key, node)? {
            let key = format!("{key}.{url:?}");
            let credential =
                node.get("credential").ok_or_else(|| self.wrong(&key, node, "a table with credential"))?;
            agents.push((url.clone(), self.text(&format!("{key}.credential"), credential)?.to_owned()));
        }
        Ok(agents)
    }
}

/// A value that a key of a context can have, whatever the key is; `None` for tables, floats and dates.
pub(super) fn free_value(node: &Node) -> Option<Value> {
    Some(match &node.data {
        Data::Text(text) => Value::Text(text.clone()),
        Data::Bool(value) => Value::Bool(*value),
        Data::Integer(value) => Value::Integer(*value),
        Data::Array(nodes) => {
            Value::List(nodes.iter().map(|node| node.as_str().map(str::to_owned)).collect::<Option<_>>()?)
        }
        Data::Table(_) | Data::Other(_) => return None,
    })
}

/// Whether a variable can have this name.
pub fn is_variable_name(name: &str) -> bool {
    !name.is_empty()
        // Shells do not take such a name for a variable.
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
