//! Authorization of changes that weaken a guard.
//!
//! [`history::perform`](crate::history::perform) passes the effects of every recorded change to [`authorize`] before it
//! writes anything. So the rule holds for each command that edits, replaces, renames or deletes a context, for what an
//! editor wrote, for `undo`, and for undoing an undo.
//!
//! Not for: asking for the guard when a context is used (see [`Guard`]).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::app::App;
use crate::confirm::can_ask;
use crate::context::definition::{KEYS, misspelt};
use crate::context::selection::pointing_to;
use crate::context::unprotect::authorize_unprotecting;
use crate::context::{Context, Guard, approval, is_pin_set};
use crate::error::{Error, GuardError, Result, SessionError};
use crate::history::Effect;
use crate::names::ContextName;
use crate::settings::rules::is_users_own;
use crate::settings::{Document, Layer, Node, SettingKey, SettingSource, Stack};
use crate::state::State;
use crate::store::PointerKind;
use crate::text::quoted;

/// Largest number of segments of a setting's key.
const MOST_SEGMENTS: usize = 8;

/// The change of one context in a file.
#[derive(Clone, Debug)]
pub(crate) struct ContextChange {
    name: String,
    path: PathBuf,
    /// Table of the context before the change; `None` for a new context.
    before: Option<Node>,
    /// Guard after the change; `None` for a context that is removed.
    after: Option<Guard>,
}

impl ContextChange {
    /// The change of a context to one with this guard, or its removal.
    pub(super) fn of(existing: &Context, after: Option<Guard>) -> Self {
        ContextChange {
            name: existing.name.to_string(),
            path: existing.path().to_owned(),
            before: Some(existing.root().clone()),
            after,
        }
    }

    /// Guard before the change; `None` for a new context.
    fn guard(&self) -> Option<Guard> {
        self.before.as_ref().map(guard_of)
    }

    fn is_guarded(&self) -> bool {
        self.guard() > Some(Guard::None)
    }

    /// Whether the context demands less afterwards. A removed context demands nothing: its name is free for another.
    fn is_weakening(&self) -> bool {
        self.is_guarded() && self.after < self.guard()
    }
}

/// Fails unless this call may make the effects. Returns the names of the contexts that they remove.
pub(crate) fn authorize(state: &State, effects: &[Effect]) -> Result<Vec<ContextName>> {
    refuse_to_lead_others(state, effects)?;
    let changes: Vec<ContextChange> = effects.iter().flat_map(changes_in).collect();
    authorize_changes(state, &changes)?;
    authorize_unprotecting(state, effects)?;
    let removed = changes.iter().filter(|change| change.after.is_none());
    Ok(removed.filter_map(|change| change.name.parse().ok()).collect())
}

/// Fails unless this call may change contexts in this way.
///
/// Inside a session, guarded contexts and contexts of live sessions cannot change. Weakening the guard `approval`
/// requires a valid approval, or a person at a terminal if no PIN is set.
pub(super) fn authorize_changes(state: &State, changes: &[ContextChange]) -> Result<()> {
    for change in changes {
        refuse_in_session(state, change)?;
        if change.guard() == Some(Guard::Approval) && change.is_weakening() {
            require_authority(state, change)?;
        }
    }
    Ok(())
}

pub(super) fn require_authority(state: &State, change: &ContextChange) -> Result<()> {
    // With a PIN a terminal alone does not prove a person: agents have terminals too.
    let is_person = can_ask(state) && state.call().interactive_terminal().is_some() && !is_pin_set(state)?;
    let is_approved = || match &change.before {
        Some(table) => approval::is_table_approved(state, &change.name, &change.path, table),
        None => Ok(false),
    };
    if is_person || is_approved()? {
        return Ok(());
    }
    Err(GuardError::Weakened(change.name.clone()).into())
}

/// Neither a guard nor a pin would be a rail if what runs in a session could change it.
fn refuse_in_session(state: &State, change: &ContextChange) -> Result<()> {
    // Both: a variable puts a process inside, a flag or the terminal makes a call act in a session.
    let is_inside = || {
        let is_inside = state.inside_session().is_some() || state.session()?.is_some();
        let is_outside = state.is_outside_hook_session();
        Ok::<_, Error>((is_inside && !is_outside) || state.is_in_inherited_shell())
    };
    if change.before.is_none() || !is_inside()? {
        return Ok(());
    }
    let name = quoted(&change.name);
    let what = match change.name.parse::<ContextName>() {
        _ if change.is_guarded() => format!("changing the guarded context {name}"),
        Ok(parsed) if is_pinned(state, &parsed)? => {
            format!("changing context {name}, to which live sessions are pinned,")
        }
        _ => return Ok(()),
    };
    state.refuse_in_session(what, "do it outside the session")
}

fn is_pinned(state: &State, name: &ContextName) -> Result<bool> {
    Ok(pointing_to(state, name)?.iter().any(|(_, origin)| origin.layer == Layer::Session))
}

/// The contexts that an effect changes.
fn changes_in(effect: &Effect) -> Vec<ContextChange> {
    let Effect::Text { path, before, after, .. } = effect else { return Vec::new() };
    let (mut before, after) = (contexts_in(path, before.as_deref()), contexts_in(path, after.as_deref()));
    let names: BTreeSet<String> = before.keys().chain(after.keys()).cloned().collect();
    let changes = names.into_iter().filter_map(|name| {
        let (before, after) = (before.remove(&name), after.get(&name));
        // By meaning: comments and the order of keys do not change the context.
        let is_same = before.as_ref().zip(after).is_some_and(|(before, after)| before.is_same_as(after));
        let after = after.map(guard_of);
        (!is_same).then(|| ContextChange { name, path: path.clone(), before, after })
    });
    changes.collect()
}

/// The tables of the contexts in the text of a file. They are found by the shape of the path, not by the directories of
/// this call: an undo may come from elsewhere. A text that does not parse defines no context that could be used.
fn contexts_in(path: &Path, text: Option<&str>) -> BTreeMap<String, Node> {
    let Some(document) = text.and_then(|text| Document::parse(path, text.to_owned()).ok()) else {
        return BTreeMap::new();
    };
    let tables = document.root().get("contexts").map(Node::members).unwrap_or_default();
    let mut contexts: BTreeMap<String, Node> = tables.iter().cloned().collect();
    if is_context_file(path)
        && let Some(name) = path.file_stem()
    {
        contexts.insert(name.to_string_lossy().into_owned(), document.root().clone());
    }
    contexts
}

/// The guard of a context in the text of a file; none if the text does not define it.
pub(super) fn guard_in(path: &Path, text: Option<&str>, name: &str) -> Guard {
    contexts_in(path, text).get(name).map(guard_of).unwrap_or_default()
}

fn is_context_file(path: &Path) -> bool {
    path.parent().and_then(Path::file_name).is_some_and(|dir| dir == "contexts")
}

/// The guard in a context's table. One that is not valid, or has a misspelt key, counts as the strictest: its context cannot
/// be used.
pub(super) fn guard_of(context: &Node) -> Guard {
    let is_misspelt = |key: &str| !KEYS.contains(&key) && misspelt(key).as_deref() == Some("guard");
    match context.get("guard") {
        _ if context.members().iter().any(|(key, _)| is_misspelt(key)) => Guard::Approval,
        None => Guard::None,
        Some(guard) => guard.as_str().and_then(Guard::parse).unwrap_or(Guard::Approval),
    }
}

/// Refuses, inside a session, changes that affect commands outside of it: selections and settings that require trust.
fn refuse_to_lead_others(state: &State, effects: &[Effect]) -> Result<()> {
    if state.inside_session().is_none() {
        return Ok(());
    }
    for effect in effects {
        let what = match effect {
            Effect::Setting { key, .. } => {
                let key: SettingKey = key.parse()?;
                leads_others(state.app(), &key).then_some(key)
            }
            Effect::Text { path, before, after, .. } => {
                let (before, after) = (before.as_deref(), after.as_deref());
                // Settings of a context lead only its own sessions, except for what only the user sets.
                let leading = match is_context_file(path) {
                    true => None,
                    false => leading_change(state.app(), path, before, after),
                };
                leading.or_else(|| users_own_change(state.app(), path, before, after))
            }
            Effect::Pointer { target: PointerKind::Context, before, after, .. } => {
                let value = |side: &Option<crate::history::PointerValue>| {
                    side.as_ref().and_then(|side| side.value.clone())
                };
                (value(before) != value(after)).then(|| SettingKey::new(["context"]))
            }
            _ => None,
        };
        if let Some(key) = what {
            return Err(leads_others_refused(&key));
        }
    }
    Ok(())
}

fn leads_others_refused(key: &SettingKey) -> Error {
    Error::Session(SessionError::RefusedInside {
        what: format!("changing {} outside the session", quoted(key.to_string())),
        instead: "do it outside the session",
    })
}

/// Fails inside a session if a change of a context sets what only the user sets: a vault or another program, which would
/// receive the secrets of everyone who uses the context.
pub(super) fn refuse_users_own(state: &State, before: Option<&Node>, after: Option<&Node>) -> Result<()> {
    match changed_users_own(state.app(), before, after).filter(|_| state.inside_session().is_some()) {
        Some(key) => Err(leads_others_refused(&key)),
        None => Ok(()),
    }
}

/// The first setting that only the user sets and that differs between the contexts in two texts of a file.
fn users_own_change(app: &App, path: &Path, before: Option<&str>, after: Option<&str>) -> Option<SettingKey> {
    let (before, after) = (contexts_in(path, before), contexts_in(path, after));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    names.into_iter().find_map(|name| changed_users_own(app, before.get(name), after.get(name)))
}

/// The first setting that only the user sets and that differs between two tables of a context.
fn changed_users_own(app: &App, before: Option<&Node>, after: Option<&Node>) -> Option<SettingKey> {
    let (before, after) = (users_own_settings(app, before), users_own_settings(app, after));
    let keys: BTreeSet<&SettingKey> = before.keys().chain(after.keys()).collect();
    let is_same = |key: &SettingKey| match (before.get(key), after.get(key)) {
        (Some(before), Some(after)) => before.is_same_as(after),
        _ => false,
    };
    keys.into_iter().find(|key| !is_same(key)).cloned()
}

/// The settings in a table of a context that only the user sets.
fn users_own_settings<'n>(app: &App, context: Option<&'n Node>) -> BTreeMap<SettingKey, &'n Node> {
    let mut found = BTreeMap::new();
    if let Some(settings) = context.and_then(|context| context.get("settings")) {
        collect_users_own(app, settings, &mut Vec::new(), &mut found);
    }
    found
}

fn collect_users_own<'n>(
    app: &App,
    node: &'n Node,
    above: &mut Vec<String>,
    found: &mut BTreeMap<SettingKey, &'n Node>,
) {
    for (name, member) in node.members() {
        above.push(name.clone());
        let key = SettingKey::new(above.iter().map(String::as_str));
        // No setting has more segments.
        match is_users_own(app, &key) && member.members().is_empty() {
            true => drop(found.insert(key, member)),
            false if above.len() < MOST_SEGMENTS => collect_users_own(app, member, above, found),
            false => {}
        }
        above.pop();
    }
}

/// Whether a setting leads the commands that it holds for: to a context, a server, a credential or a variable.
pub(crate) fn leads_others(app: &App, key: &SettingKey) -> bool {
    app.setting(key.segments()).is_some_and(|setting| setting.needs_trust)
}

/// The first setting that leads others and differs between two texts of a settings file.
fn leading_change(app: &App, path: &Path, before: Option<&str>, after: Option<&str>) -> Option<SettingKey> {
    let parse = |text: Option<&str>| Document::parse(path, text?.to_owned()).ok();
    let sides = [parse(before), parse(after)];
    let keys: BTreeSet<SettingKey> = sides.iter().flatten().flat_map(|side| keys_in(app, side)).collect();
    let mut leading = keys.into_iter().filter(|key| leads_others(app, key));
    leading.find(|key| match sides.each_ref().map(|side| node_in(side.as_ref()?, key)) {
        [Some(before), Some(after)] => !before.is_same_as(after),
        [None, None] => false,
        _ => true,
    })
}

fn keys_in(app: &App, document: &Document) -> Vec<SettingKey> {
    let document = std::rc::Rc::new(document.clone());
    let source =
        SettingSource::File { layer: Layer::File, name: None, document, within: Vec::new(), trusted: true };
    Stack::new(app, vec![source]).keys(false)
}

fn node_in<'d>(document: &'d Document, key: &SettingKey) -> Option<&'d Node> {
    key.segments().iter().try_fold(document.root(), |node, name| node.get(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &str, before: Option<&str>, after: Option<&str>) -> Effect {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Effect::Text { path: path.into(), before: owned(before), after: owned(after), untrusted: false }
    }

    /// Name, guard before and guard after.
    type Change = (String, Option<Guard>, Option<Guard>);

    fn change(name: &str, before: Option<Guard>, after: Option<Guard>) -> Change {
        (name.to_owned(), before, after)
    }

    fn changes(effect: &Effect) -> Vec<Change> {
        let changes = changes_in(effect).into_iter();
        changes.map(|change| (change.name.clone(), change.guard(), change.after)).collect()
    }

    const APPROVAL: &str = "guard = \"approval\"\n";

    #[test]
    fn context_file_is_one_context_named_after_it() {
        for (before, after, expected) in [
            (Some(APPROVAL), Some(""), change("prod", Some(Guard::Approval), Some(Guard::None))),
            (Some(APPROVAL), None, change("prod", Some(Guard::Approval), None)),
            (None, Some(APPROVAL), change("prod", None, Some(Guard::Approval))),
            (Some("guard = 1"), Some(""), change("prod", Some(Guard::Approval), Some(Guard::None))),
        ] {
            for path in ["/home/a/.config/sessile/contexts/prod.toml", "/p/.sessile/contexts/prod.toml"] {
                assert_eq!(changes(&text(path, before, after)), std::slice::from_ref(&expected));
            }
        }
    }

    #[test]
    fn config_file_is_compared_context_by_context() {
        let before = "[contexts.a]\nguard = \"approval\"\n[contexts.b]\nguard = \"explicit\"\n";
        let after = "color = \"never\"\n[contexts.b]\nguard = \"none\"\n[contexts.c]\n";
        let expected = [
            change("a", Some(Guard::Approval), None),
            change("b", Some(Guard::Explicit), Some(Guard::None)),
            change("c", None, Some(Guard::None)),
        ];
        assert_eq!(changes(&text("/x/team.toml", Some(before), Some(after))), expected);
        let moved = "# moved\n[contexts.b]\nguard = \"explicit\"\n[contexts.a]\nguard = \"approval\"\n";
        assert_eq!(changes(&text("/x/team.toml", Some(before), Some(moved))), []);
    }

    #[test]
    fn weakening_is_a_lower_guard_or_none_at_all() {
        let sides = [None, Some("none"), Some("explicit"), Some("approval")];
        let file = |guard: Option<&str>| guard.map(|guard| format!("guard = \"{guard}\"\n# {guard}\n"));
        for (i, before) in sides.into_iter().enumerate() {
            for (j, after) in sides.into_iter().enumerate() {
                let (before, after) = (file(before), file(after));
                let effect = text("/x/contexts/prod.toml", before.as_deref(), after.as_deref());
                let is_weakening = changes_in(&effect).iter().any(ContextChange::is_weakening);
                assert_eq!(is_weakening, i > 1 && j < i, "{before:?} {after:?}");
            }
        }
    }

    #[test]
    fn vault_of_a_context_is_found_in_both_kinds_of_files() {
        let app = App::new("demo");
        let find = |path: &str, before, after| users_own_change(&app, Path::new(path), before, after);
        let helper = Some(SettingKey::new(["vault", "helper"]));
        let context = "/x/contexts/prod.toml";
        assert_eq!(find(context, None, Some("settings.vault.helper = \"x\"")), helper);
        assert_eq!(find(context, Some("settings.vault.helper = \"x\""), None), helper);
        assert_eq!(
            find(context, Some("settings.vault.helper = 'x'"), Some("[settings.vault]\nhelper = \"x\"")),
            None
        );
        assert_eq!(find(context, Some(""), Some("settings.output = \"json\"")), None);
        let (one, other) =
            ("[contexts.a.settings]\nvault.helper = 'x'", "[contexts.a.settings]\nvault.helper = 'y'");
        assert_eq!(find("/x/ci.toml", Some(one), Some(other)), helper);
        assert_eq!(find("/x/ci.toml", Some(one), Some(one)), None);
    }

    #[test]
    fn leading_setting_is_found_whatever_changed_beside_it() {
        let app = App::new("demo");
        let find = |before, after| leading_change(&app, Path::new("c.toml"), before, after);
        let context = Some(SettingKey::new(["context"]));
        assert_eq!(find(None, Some("context = \"a\"")), context);
        assert_eq!(find(Some("context = \"a\""), None), context);
        assert_eq!(find(Some("context = \"a\""), Some("color = \"never\"\ncontext = \"b\"")), context);
        assert_eq!(
            find(Some("context ="), Some("context = \"b\"")),
            context,
            "what does not parse sets nothing"
        );
        assert_eq!(find(Some("context = \"a\""), Some("color = \"never\"\ncontext = 'a'")), None);
        assert_eq!(
            find(Some(""), Some("vault = { helper = \"x\" }")),
            Some(SettingKey::new(["vault", "helper"]))
        );
    }
}
