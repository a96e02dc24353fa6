//! Which context a call is about, and changing that for a scope.

use std::path::PathBuf;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::names::ContextName;
use crate::settings::project::Project;
use crate::settings::{Candidate, Document, Layer, Origin, SettingKey, Value, trust, write};
use crate::state::{ConfigSource, State};
use crate::store::{PointerKey, PointerRow, Scope};
use crate::terminal::Terminal;
use crate::text::quoted;

/// The context a call is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Selected {
    /// Its name.
    pub name: ContextName,
    /// What selected it.
    pub origin: Origin,
}

/// Where a selection is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SwitchScope {
    /// In this terminal.
    Terminal,
    /// In this directory, for this person.
    Directory,
    /// For the user, everywhere.
    Global,
}

/// What a switch did.
#[derive(Clone, Debug, Serialize)]
pub struct Switched {
    /// Where it holds.
    pub scope: SwitchScope,
    /// The terminal or file that says it now.
    pub place: String,
    /// What was selected there before.
    pub old: Option<String>,
    /// What is selected there now.
    pub new: ContextName,
}

/// Applies the order of precedence to the question which context is meant.
pub(crate) fn select(state: &State) -> Result<Option<Selected>> {
    let key = SettingKey::new(["context"]);
    let candidates = state.base()?.explain(&key)?;
    let strongest = candidates.into_iter().find(|candidate| candidate.ignored.is_none());
    let found = match strongest {
        Some(explicit) if explicit.origin.layer.is_explicit() => Some(explicit),
        weaker => terminal_selection(state)?.or(weaker),
    };
    let selected = found.and_then(|Candidate { value, origin, .. }| {
        value.as_str().and_then(|name| name.parse().ok()).map(|name| Selected { name, origin })
    });
    warn_if_unexpected(state, selected.as_ref())?;
    Ok(selected)
}

fn terminal_selection(state: &State) -> Result<Option<Candidate>> {
    let Some(key) = terminal_key(state) else { return Ok(None) };
    let Some(store) = state.store()? else { return Ok(None) };
    let value = store.pointer(&key)?.and_then(|pointer| pointer.value);
    let origin = || Origin::named(Layer::Terminal, Terminal::key_device(&key.place));
    Ok(value.map(|name| Candidate { value: Value::Text(name), origin: origin(), ignored: None }))
}

fn terminal_key(state: &State) -> Option<PointerKey> {
    if state.inside_session().is_some() {
        return None;
    }
    let terminal = state.world().terminal()?;
    Some(PointerKey { scope: Scope::Terminal, place: terminal.key(), account: state.account() })
}

fn warn_if_unexpected(state: &State, selected: Option<&Selected>) -> Result<()> {
    let Some(expected) = state.base()?.get("expect-context")? else { return Ok(()) };
    let name = selected.map(|selected| selected.name.as_str());
    if name != expected.value.as_str() {
        let in_use = match selected {
            Some(selected) => {
                format!("context {} is in use ({})", quoted(selected.name.as_str()), selected.origin)
            }
            None => "no context is in use".to_owned(),
        };
        state.warn(
            format!("{in_use}, but {} is expected ({})", quoted(expected.value.to_string()), expected.origin),
            Some(format!("name it: --context {}", expected.value)),
        );
    }
    Ok(())
}

/// Selects a context for a scope; `None` goes back to the one before.
pub fn switch(state: &State, name: Option<&ContextName>, scope: Option<SwitchScope>) -> Result<Switched> {
    state.refuse_in_session("switching the context", "a session keeps the context it was started with")?;
    let scope = match scope {
        Some(scope) => scope,
        None if state.world().terminal().is_some() => SwitchScope::Terminal,
        None => {
            return Err(Error::ScopeRequired {
                what: "there is no terminal whose context could be switched".into(),
                flags: "--dir for this directory or --global for this user, or name the context with --context",
            });
        }
    };
    let target = Target::resolve(state, scope)?;
    let store = state.store()?;
    let pointer = store.map(|store| store.pointer(&target.key)).transpose()?.flatten();
    let old = target.value(state, pointer.as_ref().and_then(|pointer| pointer.value.clone()))?;
    let new: ContextName = match name {
        Some(name) => name.clone(),
        None => {
            let previous = pointer.as_ref().and_then(|pointer| pointer.previous.as_deref());
            previous.ok_or(Error::NoPreviousContext)?.parse()?
        }
    };
    state.contexts().get(&new)?.require_trust(state)?;
    let previous = if old.as_deref() == Some(new.as_str()) {
        pointer.as_ref().and_then(|pointer| pointer.previous.clone())
    } else {
        old.clone()
    };

    // The file comes last: it is what counts, and once it is written nothing can fail any more.
    let mut store = state.store_for_writing()?;
    let value = target.file.is_none().then_some(new.as_str());
    store.set_pointer(&target.key, value, previous.as_deref(), state.now_ms())?;
    if let Some(file) = &target.file {
        let name = Value::Text(new.to_string());
        let written = write::change_file(state, file, &SettingKey::new(["context"]), Some(&name));
        if let Err(error) = written {
            let _ = match &pointer {
                Some(PointerRow { value, previous, .. }) => {
                    store.set_pointer(&target.key, value.as_deref(), previous.as_deref(), state.now_ms())
                }
                None => store.remove_pointers(&[target.key]),
            };
            return Err(error);
        }
    }
    let _ = forget_dead_terminals(&mut store);
    Ok(Switched { scope, place: target.place, old, new })
}

/// Where a scope's selection stands.
struct Target {
    key: PointerKey,
    file: Option<PathBuf>,
    place: String,
}

impl Target {
    fn resolve(state: &State, scope: SwitchScope) -> Result<Self> {
        let account = state.account();
        let in_file = |scope, place: String, file: PathBuf| Target {
            key: PointerKey { scope, place, account: account.clone() },
            place: file.to_string_lossy().into_owned(),
            file: Some(file),
        };
        Ok(match scope {
            SwitchScope::Terminal => {
                let key = terminal_key(state).ok_or_else(|| Error::TerminalRequired {
                    what: "switching a terminal's context".into(),
                    instead: "add --dir or --global".into(),
                })?;
                Target { place: Terminal::key_device(&key.place).to_owned(), key, file: None }
            }
            SwitchScope::Directory => {
                let file = write::directory(state)?.local_settings();
                in_file(Scope::Directory, trust::key(&file), file)
            }
            SwitchScope::Global => in_file(Scope::Global, String::new(), write::user_file(state)?),
        })
    }

    fn value(&self, state: &State, pointer: Option<String>) -> Result<Option<String>> {
        let Some(file) = &self.file else { return Ok(pointer) };
        let document = match (state.source(), Document::load(file)?) {
            (ConfigSource::Nothing, _) | (_, None) => return Ok(None),
            (_, Some(document)) => document,
        };
        Ok(document.root().get("context").and_then(|node| node.as_str()).map(str::to_owned))
    }
}

/// Terminals come and go; what was selected in those that are gone is of no use.
fn forget_dead_terminals(store: &mut crate::store::Store) -> Result<()> {
    let dead: Vec<PointerKey> = store
        .pointers()?
        .into_iter()
        .map(|pointer| pointer.key)
        .filter(|key| key.scope == Scope::Terminal && !Terminal::key_is_alive(&key.place))
        .collect();
    if dead.is_empty() { Ok(()) } else { store.remove_pointers(&dead) }
}

/// Every scope that has a context selected: the terminals, directories and files that point to it.
pub(crate) fn pointing_to(state: &State, name: &ContextName) -> Result<Vec<(Option<PointerKey>, Origin)>> {
    let mut found = Vec::new();
    let in_file = |path: &std::path::Path, layer| -> Result<Option<Origin>> {
        let Ok(Some(document)) = Document::load(path) else { return Ok(None) };
        let node = document.root().get("context").filter(|node| node.as_str() == Some(name.as_str()));
        Ok(node.map(|node| Origin::in_file(layer, path, document.line(node.offset))))
    };
    for pointer in state.store()?.map(|store| store.pointers()).transpose()?.unwrap_or_default() {
        match pointer.key.scope {
            Scope::Terminal => {
                let selected = pointer.value.as_deref() == Some(name.as_str());
                if selected && Terminal::key_is_alive(&pointer.key.place) {
                    let device = Terminal::key_device(&pointer.key.place).to_owned();
                    found.push((Some(pointer.key), Origin::named(Layer::Terminal, device)));
                }
            }
            Scope::Directory => {
                let file = PathBuf::from(&pointer.key.place);
                found.extend(in_file(&file, Layer::Directory)?.map(|origin| (Some(pointer.key), origin)));
            }
            Scope::Global => {}
        }
    }
    let project = state.project().map(|project: &Project| [project.local_settings(), project.settings()]);
    let mut files: Vec<(Layer, PathBuf)> =
        project.into_iter().flatten().map(|file| (Layer::Directory, file)).collect();
    match state.source() {
        ConfigSource::Usual => {
            files.extend(state.dirs().user_settings().map(|file| (Layer::User, file)));
            files.push((Layer::System, state.dirs().system_settings()));
        }
        ConfigSource::File(file) => files.push((Layer::File, file.clone())),
        ConfigSource::Nothing => {}
    }
    for (layer, file) in files {
        let known = |origin: &Origin| {
            origin.path.as_deref().is_some_and(|path| trust::key(path) == trust::key(&file))
        };
        if !found.iter().any(|(_, origin)| known(origin)) {
            found.extend(in_file(&file, layer)?.map(|origin| (None, origin)));
        }
    }
    Ok(found)
}

/// Takes a context out of every place that points to it and that this user owns, or puts another in.
pub(crate) fn repoint(state: &State, name: &ContextName, to: Option<&ContextName>) -> Result<()> {
    let pointing = pointing_to(state, name)?;
    let mut store = state.store_for_writing()?;
    if let Some(to) = to {
        store.repoint(name.as_str(), to.as_str())?;
    }
    let mut gone = Vec::new();
    for (pointer, origin) in pointing {
        match (&origin.path, origin.layer) {
            (Some(_), Layer::System) => {}
            (Some(path), _) => {
                let value = to.map(|to| Value::Text(to.to_string()));
                write::change_file(state, path, &SettingKey::new(["context"]), value.as_ref())?;
            }
            (None, _) if to.is_none() => gone.extend(pointer),
            (None, _) => {}
        }
    }
    if gone.is_empty() { Ok(()) } else { store.remove_pointers(&gone) }
}
