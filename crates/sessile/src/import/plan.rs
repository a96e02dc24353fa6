//! Plans of an import: the contexts to create, as text, and creating them.

use std::path::Path;

use serde::Serialize;

use crate::context::change::{ContextWrite, WriteMode};
use crate::context::{Context, ContextEdit, Guard, Variable, change, transfer};
use crate::error::Result;
use crate::import::{FoundTarget, ProposedContext, ProposedVariable};
use crate::names::ContextName;
use crate::settings::{SettingKey, Value, empty_text};
use crate::state::State;

/// Imported context with its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImportedContext {
    /// Name.
    pub name: ContextName,
    /// Result of the import.
    pub result: ImportResult,
    /// Bindings that were added, as `TOOL.KEY=VALUE`.
    pub added: Vec<String>,
}

/// Result of importing a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ImportResult {
    /// The context was created.
    Created,
    /// The context existed and got bindings of further tools.
    Extended,
    /// The context existed and already binds all these tools.
    Unchanged,
}

/// The proposed contexts without the targets that a context binds already, and without contexts that are left empty.
pub fn new_contexts(existing: &[Context], proposed: Vec<ProposedContext>) -> Vec<ProposedContext> {
    let is_bound = |target: &FoundTarget| existing.iter().any(|context| binds(context, target));
    let has_key = |context: &Context, target: &FoundTarget| {
        let mut bindings = context.tools.iter().filter(|(tool, _)| *tool == target.tool);
        bindings.any(|(_, bindings)| bindings.iter().any(|(key, _)| *key == target.key))
    };
    let mut new = Vec::new();
    for mut context in proposed {
        let context_name = context.name.clone();
        context.targets.retain(|target| !is_bound(target));
        // An existing context of that name is extended, but keeps what it binds.
        let taken = existing.iter().find(|one| one.name.as_str() == context.name);
        if let Some(taken) = taken {
            context.targets.retain(|target| !has_key(taken, target));
        }
        let has_variable = |(name, value): &(String, ProposedVariable)| {
            // A context of that name keeps its own value; another one may have taken it over under its name.
            existing.iter().any(|one| {
                let is_taken = one.name.as_str() == context_name;
                one.env.iter().any(|(known, own)| known == name && (is_taken || is_like(own, value)))
            })
        };
        context.env.retain(|variable| !has_variable(variable));
        if !context.targets.is_empty() || !context.env.is_empty() {
            new.push(context);
        }
    }
    new
}

/// Whether a context's variable has the proposed value already.
fn is_like(own: &Variable, proposed: &ProposedVariable) -> bool {
    match (own, proposed) {
        (Variable::Plain(own), ProposedVariable::Plain(text)) => own == text,
        (Variable::Credential { credential: own }, ProposedVariable::Credential { credential }) => {
            own == credential.as_str()
        }
        _ => false,
    }
}

/// The names of the contexts that bind a target.
pub fn contexts_of(contexts: &[Context], target: &FoundTarget) -> Vec<String> {
    contexts.iter().filter(|context| binds(context, target)).map(|context| context.name.to_string()).collect()
}

fn binds(context: &Context, target: &FoundTarget) -> bool {
    let bindings = context.tools.iter().filter(|(tool, _)| *tool == target.tool);
    bindings.flat_map(|(_, bindings)| bindings).any(|(key, value)| {
        let is_name = |value: &serde_json::Value| value.as_str() == Some(target.name.as_str());
        *key == target.key
            && (is_name(value) || value.as_array().is_some_and(|names| names.iter().any(is_name)))
    })
}

/// The text of a plan: a file of contexts as `context export` writes it.
pub fn plan_text(path: &Path, contexts: &[ProposedContext]) -> Result<String> {
    let mut text = empty_text(path).to_owned();
    for context in contexts {
        let prefix = ["contexts".to_owned(), context.name.clone()];
        // The default needs no line in a file that people read.
        let guard = (context.guard > Guard::None)
            .then(|| edit(&["guard"], Value::Text(context.guard.as_str().to_owned())));
        let bindings = context.targets.iter().flat_map(|target| {
            let beside = target.beside.iter().map(|(key, value)| (key.as_str(), value.as_str()));
            beside
                .chain([(target.key.as_str(), target.name.as_str())])
                .map(|(key, value)| edit(&["tools", &target.tool, key], Value::Text(value.to_owned())))
        });
        let variables = context.env.iter().map(|(name, value)| match value {
            ProposedVariable::Plain(text) => edit(&["env", name], Value::Text(text.clone())),
            ProposedVariable::Credential { credential } => {
                edit(&["env", name, "credential"], Value::Text(credential.to_string()))
            }
        });
        let edits: Vec<ContextEdit> = guard.into_iter().chain(variables).chain(bindings).collect();
        text = change::apply(path, &text, &prefix, &edits)?;
    }
    Ok(text)
}

fn edit(segments: &[&str], value: Value) -> ContextEdit {
    ContextEdit { key: SettingKey::new(segments.iter().copied()), value: Some(value) }
}

/// Creates the contexts of a plan as one change: all or none. A context that exists keeps its guard and what it binds, and gets
/// bindings of other tools.
pub fn apply(state: &State, planned: &[Context]) -> Result<Vec<ImportedContext>> {
    let contexts = state.contexts();
    let (mut results, mut writes) = (Vec::new(), Vec::new());
    for context in planned {
        let edits = transfer::edits(state.app(), context)?;
        let existing = contexts.find(&context.name)?;
        let is_missing = |edit: &&ContextEdit| match (edit.key.segments(), &existing) {
            (_, None) => true,
            ([table, tool, ..], Some(existing)) if table == "tools" => {
                !existing.tools.iter().any(|(bound, _)| bound == tool)
            }
            ([table, name, ..], Some(existing)) if table == "env" => {
                !existing.env.iter().any(|(known, _)| known == name)
            }
            _ => false,
        };
        let edits: Vec<ContextEdit> = edits.iter().filter(is_missing).cloned().collect();
        let added = edits.iter().filter_map(shown_binding).collect();
        let (result, mode) = match existing {
            None => (ImportResult::Created, WriteMode::Create { in_project: false, replace: false }),
            Some(_) if edits.is_empty() => (ImportResult::Unchanged, WriteMode::Extend),
            Some(_) => (ImportResult::Extended, WriteMode::Extend),
        };
        if result != ImportResult::Unchanged {
            writes.push(ContextWrite { name: &context.name, edits, mode });
        }
        results.push(ImportedContext { name: context.name.clone(), result, added });
    }
    let written = contexts.write_all("import apply", &writes)?;
    contexts.warn_of_shared_targets(&written)?;
    Ok(results)
}

/// A binding as `TOOL.KEY=VALUE`.
fn shown_binding(edit: &ContextEdit) -> Option<String> {
    match (edit.key.segments(), &edit.value) {
        ([table, tool, key], Some(value)) if table == "tools" => Some(format!("{tool}.{key}={value}")),
        ([table, name, ..], Some(_)) if table == "env" => Some(name.clone()),
        _ => None,
    }
}
