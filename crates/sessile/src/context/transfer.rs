//! Contexts on the move: one file with `[contexts.NAME]` tables and no secret in it.

use std::path::Path;
use std::rc::Rc;

use crate::agents::is_secret_header;
use crate::app::App;
use crate::context::change::{ContextWrite, WriteMode};
use crate::context::definition::{KEYS, free_value};
use crate::context::guard_weakening::refuse_users_own;
use crate::context::{Context, ContextEdit, ContextLocation, Contexts, Guard, Variable, change};
use crate::error::{ContextError, Error, FileError, Result, UsageError};
use crate::names::{ContextName, nearest};
use crate::secrets::{USE_THE_VAULT, has_url_password, is_secret, looks_secret};
use crate::settings::rules::is_users_own;
use crate::settings::{Data, Document, Node, SettingKey, Stack, Value, empty_text};
use crate::text::{quoted, shown};

/// The keys beside `contexts` that name the selected context: this application's own, and the one that others use.
const SELECTIONS: &[&str] = &["context", "current_context", "current-context"];

/// An exported file.
#[derive(Clone, Debug)]
pub struct ContextExport {
    /// Text.
    pub text: String,
    /// Omitted variables that look like secrets: context and variable.
    pub left_out: Vec<(ContextName, String)>,
}

/// Writes contexts into the text of one file, whose name decides the format. A value whose name says that it is a
/// secret stays behind, and so does a URL with a password.
pub fn export(app: &App, path: &Path, contexts: &[Context]) -> Result<ContextExport> {
    let mut exported = ContextExport { text: empty_text(path).to_owned(), left_out: Vec::new() };
    for context in contexts {
        let prefix = ["contexts".to_owned(), context.name.to_string()];
        let (secret, plain): (Vec<ContextEdit>, Vec<ContextEdit>) =
            edits(app, context)?.into_iter().partition(is_hidden);
        exported.text = change::apply(path, &exported.text, &prefix, &plain)?;
        exported.left_out.extend(secret.iter().map(|change| (context.name.clone(), change.key.to_string())));
    }
    Ok(exported)
}

/// Contexts read from a file, to be imported.
#[derive(Clone, Debug)]
pub struct ContextImport {
    /// The contexts.
    pub contexts: Vec<Context>,
    /// Name of the context that the file selects.
    pub current: Option<String>,
}

/// Parses exported contexts; the file name decides the format. Unknown keys of a context become values. A part that
/// cannot be kept is an error.
pub fn read(app: &App, path: &Path, text: String) -> Result<ContextImport> {
    let document = Rc::new(Document::parse(path, text)?);
    let Some(all) = document.root().get("contexts") else {
        return Err(FileError::Syntax {
            place: document.place(0).into(),
            message: "no [contexts.NAME] table found; `context export` writes an example".into(),
        }
        .into());
    };
    let Data::Table(all_contexts) = &all.data else {
        return Err(FileError::Value {
            place: document.place(all.offset).into(),
            key: "contexts".into(),
            expected: "a table with a table for each context".into(),
            found: document.describe(all),
        }
        .into());
    };
    let mut import = ContextImport { contexts: Vec::new(), current: None };
    for (key, node) in document.root().members() {
        match node.as_str() {
            Some(name) if SELECTIONS.contains(&key.as_str()) => import.current = Some(name.to_owned()),
            _ if key == "contexts" => {}
            // Ignoring a key would lose it without a word.
            _ => return Err(unknown_key(&document, key, node, &["contexts"])),
        }
    }
    for (name, node) in all_contexts {
        let within = vec!["contexts".to_owned(), name.clone()];
        let name = document.context_name(name, node)?;
        let mut context =
            Context::read(app, name, ContextLocation::File, true, Rc::clone(&document), within)?;
        keep_unknown(app, &document, &mut context)?;
        import.contexts.push(context);
    }
    Ok(import)
}

/// Makes the keys of an imported context that mean nothing its values. Fails if one cannot be kept: a table, a float, or
/// a key of a table with a fixed meaning.
fn keep_unknown(app: &App, document: &Document, context: &mut Context) -> Result<()> {
    let mut values = Vec::new();
    for (key, node) in context.root().members().iter().filter(|(key, _)| !KEYS.contains(&key.as_str())) {
        match free_value(node) {
            Some(value) => values.push((key.clone(), value)),
            None => return Err(unknown_key(document, key, node, KEYS)),
        }
        if let Some(twice) = context.root().get("values").and_then(|values| values.get(key)) {
            return Err(unknown_key(document, &format!("values.{key}"), twice, &[]));
        }
    }
    for (_, agent) in context.root().get("agents").map(Node::members).unwrap_or_default() {
        if let Some((key, node)) = agent.members().iter().find(|(key, _)| key != "credential") {
            return Err(unknown_key(document, key, node, &["credential"]));
        }
    }
    if let Some(unknown) = Stack::new(app, vec![context.settings()]).unknown(1).0.pop() {
        let message = format!("unknown setting {}", quoted(unknown.key.to_string()));
        return Err(FileError::Syntax { place: unknown.place.into(), message }.into());
    }
    context.values.extend(values);
    context.unknown.clear();
    Ok(())
}

fn unknown_key(document: &Document, key: &str, node: &Node, known: &[&'static str]) -> Error {
    let near = nearest(key, known.iter().copied());
    let near = near.map_or_else(String::new, |near| format!("; did you mean {}?", quoted(near)));
    // A duplicate is unknown nowhere: which of the two counts is.
    let what = if known.is_empty() { "duplicate key" } else { "cannot import unknown key" };
    let message = format!("{what} {}{near}", quoted(key));
    Error::File(FileError::Syntax { place: document.place(node.offset).into(), message })
}

impl Contexts<'_> {
    /// Takes contexts in as one change. Everything is checked before anything is written.
    pub fn import(&self, contexts: &[Context], in_project: bool, replace: bool) -> Result<Vec<Context>> {
        for context in contexts {
            refuse_secrets(&edits(self.state.app(), context)?)?;
            let existing = self.find(&context.name)?;
            let bound = existing.as_ref().map(|existing| existing.tools.as_slice()).unwrap_or_default();
            self.check_bindings(context, bound)?;
            refuse_users_own(self.state, existing.as_ref().map(Context::root), Some(context.root()))?;
            match existing {
                Some(existing) if !replace => {
                    let path = existing.path().to_owned();
                    return Err(ContextError::Exists {
                        name: context.name.to_string(),
                        path,
                        replaceable: true,
                    }
                    .into());
                }
                Some(existing) => self.authorize_replacing(&existing, context.guard)?,
                None => {}
            }
        }
        let mut writes = Vec::new();
        for context in contexts {
            let (name, edits) = (&context.name, edits(self.state.app(), context)?);
            writes.push(ContextWrite { name, edits, mode: WriteMode::Create { in_project, replace } });
        }
        let imported = self.write_all("context import", &writes)?;
        if !in_project {
            self.warn_of_shared_targets(&imported)?;
        }
        for context in &imported {
            self.warn_of_users_own(context)?;
        }
        Ok(imported)
    }
}

impl Contexts<'_> {
    /// Warns about settings of an imported context that choose a vault, start a program or send a file.
    fn warn_of_users_own(&self, context: &Context) -> Result<()> {
        let app = self.state.app();
        let values = context.setting_values(app)?;
        let keys: Vec<String> =
            values.iter().filter(|(key, _)| is_users_own(app, key)).map(|(key, _)| key.to_string()).collect();
        if !keys.is_empty() {
            let name = quoted(context.name.as_str());
            self.state.warn(
                format!("the imported context {name} sets {}", shown(keys.join(", "))),
                Some(format!("review it before you use it: {} context show {}", app.name(), context.name)),
            );
        }
        Ok(())
    }
}

/// The changes that make a context out of nothing.
pub(crate) fn edits(app: &App, context: &Context) -> Result<Vec<ContextEdit>> {
    let mut edits = Vec::new();
    let mut add = |segments: &[&str], value: Value| {
        edits.push(ContextEdit { key: SettingKey::new(segments.iter().copied()), value: Some(value) });
    };
    if let Some(description) = &context.description {
        add(&["description"], Value::Text(description.clone()));
    }
    // Always said, so that an empty context is seen too.
    add(&["guard"], Value::Text(context.guard.as_str().to_owned()));
    debug_assert!(Guard::parse(context.guard.as_str()).is_some());
    for (key, value) in context.setting_values(app)? {
        let mut segments = vec!["settings"];
        segments.extend(key.segments().iter().map(String::as_str));
        add(&segments, value);
    }
    for (name, value) in &context.values {
        add(&["values", name], value.clone());
    }
    for (name, variable) in &context.env {
        match variable {
            Variable::Plain(text) => add(&["env", name], Value::Text(text.clone())),
            Variable::Credential { credential } => {
                add(&["env", name, "credential"], Value::Text(credential.clone()));
            }
        }
    }
    for (tool, bindings) in &context.tools {
        for (name, value) in bindings {
            let value = match value {
                serde_json::Value::Bool(value) => Value::Bool(*value),
                serde_json::Value::Number(value) => Value::Integer(value.as_i64().unwrap_or_default()),
                serde_json::Value::Array(names) => {
                    Value::List(names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect())
                }
                other => Value::Text(other.as_str().unwrap_or_default().to_owned()),
            };
            add(&["tools", tool, name], value);
        }
    }
    for (url, credential) in &context.agents {
        add(&["agents", url, "credential"], Value::Text(credential.clone()));
    }
    Ok(edits)
}

/// Whether an export leaves a change out.
fn is_hidden(change: &ContextEdit) -> bool {
    let is_named = match change.key.segments() {
        [place, name] if place == "env" || place == "values" => looks_secret(name),
        // The setting `credential` names one.
        [place, .., name] if place == "settings" && name == "credential" => false,
        [place, .., name] if place == "tools" || place == "settings" => looks_secret(name),
        _ => false,
    };
    is_named || has_password(change) || has_secret_header(change)
}

/// Whether a change sets a header of requests to an agent that is a secret.
fn has_secret_header(change: &ContextEdit) -> bool {
    let is_headers = matches!(change.key.segments(), [place, table, _, member]
        if place == "settings" && table == "agents" && member == "headers");
    is_headers
        && match &change.value {
            Some(Value::Text(header)) => is_secret_header(header),
            Some(Value::List(headers)) => headers.iter().any(|header| is_secret_header(header)),
            _ => false,
        }
}

fn has_password(change: &ContextEdit) -> bool {
    change.value.as_ref().is_some_and(Value::has_url_password)
        // A URL can be a key too: agents are named by theirs.
        || change.key.segments().iter().any(|segment| has_url_password(segment))
}

/// Fails if a change would put a secret into a context's file.
pub(super) fn refuse_secrets(changes: &[ContextEdit]) -> Result<()> {
    let is_refused = |change: &&ContextEdit| match (change.key.segments(), &change.value) {
        ([place, name], Some(Value::Text(text))) if place == "env" || place == "values" => {
            is_secret(name, text)
        }
        ([place, table, name], Some(Value::Text(text))) if place == "settings" && table == "env" => {
            is_secret(name, text)
        }
        ([place, .., name], Some(Value::Text(text))) if place == "tools" => is_secret(name, text),
        _ => has_password(change) || has_secret_header(change),
    };
    match changes.iter().filter(|change| change.value.is_some()).find(is_refused) {
        Some(change) => {
            // A key may be a URL, and hold the password itself.
            let shown = if change.key.segments().iter().any(|part| has_url_password(part)) {
                "a URL".to_owned()
            } else {
                change.key.to_string()
            };
            Err(UsageError::SecretRefused { place: shown, instead: USE_THE_VAULT }.into())
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn export_reads_back_without_the_secrets() {
        let app = App::new("demo");
        let text = r#"
            [contexts.staging]
            description = "the \"test\" place"
            guard = "explicit"
            settings.lock-timeout = "9s"
            env = { PLAIN = "a b", GH_TOKEN = "t0psecret", BOT = { credential = "bot" } }
            tools.cluster = { name = "c1", strict = true, depth = 3 }
            agents."https://a.example/x" = { credential = "a" }
            [contexts.empty]
        "#;
        let contexts = read(&app, Path::new("in.toml"), text.into()).unwrap().contexts;
        let exported = export(&app, Path::new("out.toml"), &contexts).unwrap();
        assert!(!exported.text.contains("t0psecret"));
        assert_eq!(exported.left_out[0].1, "env.GH_TOKEN");
        let back = read(&app, Path::new("back.toml"), exported.text.clone()).unwrap().contexts;
        assert_eq!(back.len(), 2);
        let again = export(&app, Path::new("out.toml"), &back).unwrap();
        assert_eq!(again.text, exported.text);
        assert!(again.left_out.is_empty());
        assert_eq!(back[0].guard, Guard::Explicit);
        assert_eq!(back[0].tools, contexts[0].tools);
        assert_eq!(back[0].agents, contexts[0].agents);
        assert_eq!(back[0].env[1], contexts[0].env[2]);
    }
}
