//! One effect of an operation: a thing, its value before, and its value after.
//!
//! A missing value and the JSON value null differ: the fields `before_is_null` and `after_is_null` mark null.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value as Json;

use crate::error::{Error, FileError, Result};
use crate::history::rewrite::{
    TrustRule, is_in_missing_project, is_managed, replace_setting, replace_text, value_in_file,
};
use crate::settings::{SettingKey, Value};
use crate::state::State;
use crate::store::{EntryKind, EntryPlace, PointerKey, PointerKind, Scope};

/// Marks of a value that is null and not missing.
const BEFORE_IS_NULL: &str = "before_is_null";
const AFTER_IS_NULL: &str = "after_is_null";

/// Value of a pointer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointerValue {
    /// Selected name; `None` if a settings file selects.
    pub value: Option<String>,
    /// Previously selected name.
    pub previous: Option<String>,
}

/// An effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Effect {
    /// One key in a settings file.
    Setting {
        /// The file.
        #[serde(with = "crate::path_text")]
        path: PathBuf,
        /// The key.
        key: String,
        /// Value before.
        before: Option<Json>,
        /// Value after.
        after: Option<Json>,
        /// Whether the content comes from a project's file that was not trusted.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        untrusted: bool,
    },
    /// A whole file.
    Text {
        /// The file.
        #[serde(with = "crate::path_text")]
        path: PathBuf,
        /// Content before.
        before: Option<String>,
        /// Content after.
        after: Option<String>,
        /// Whether the content comes from a project's file that was not trusted.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        untrusted: bool,
    },
    /// Selection of a scope.
    Pointer {
        /// `context` or `session`.
        target: PointerKind,
        /// Scope of the selection.
        scope: Scope,
        /// The terminal or directory.
        place: String,
        /// The account.
        account: String,
        /// Content before.
        before: Option<PointerValue>,
        /// Content after.
        after: Option<PointerValue>,
    },
    /// A session's setting or value.
    Entry {
        /// The session.
        session: String,
        /// `setting` or `state`.
        entry: EntryKind,
        /// The key.
        key: String,
        /// Value before.
        before: Option<Json>,
        /// Value after.
        after: Option<Json>,
    },
    /// A session's name.
    SessionName {
        /// The session.
        session: String,
        /// Value before.
        before: Option<String>,
        /// Value after.
        after: Option<String>,
    },
    /// The contents of a project's file that are trusted.
    Trust {
        /// The file.
        path: String,
        /// The fingerprints that were trusted.
        before: Vec<String>,
        /// Entries after.
        after: Vec<String>,
    },
    /// Event that undo cannot revert.
    Event {
        /// Reason why undo refuses.
        reason: String,
    },
}

/// One side of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    After,
}

impl Side {
    pub(super) fn other(self) -> Self {
        match self {
            Side::Before => Side::After,
            Side::After => Side::Before,
        }
    }

    fn of<T>(self, before: T, after: T) -> T {
        match self {
            Side::Before => before,
            Side::After => after,
        }
    }
}

impl Effect {
    /// The change of a key in a file.
    pub(crate) fn setting(path: &Path, key: &SettingKey, old: Option<&Value>, new: Option<&Value>) -> Self {
        Effect::Setting {
            path: path.to_owned(),
            key: key.to_string(),
            before: old.map(|value| serde_json::json!(value)),
            after: new.map(|value| serde_json::json!(value)),
            untrusted: false,
        }
    }

    /// The same with its sides exchanged.
    pub(super) fn reversed(&self) -> Self {
        let mut reversed = self.clone();
        match &mut reversed {
            Effect::Setting { before, after, .. } | Effect::Entry { before, after, .. } => {
                std::mem::swap(before, after);
            }
            Effect::Text { before, after, .. } | Effect::SessionName { before, after, .. } => {
                std::mem::swap(before, after);
            }
            Effect::Trust { before, after, .. } => std::mem::swap(before, after),
            Effect::Pointer { before, after, .. } => std::mem::swap(before, after),
            Effect::Event { .. } => {}
        }
        reversed
    }

    /// Text of the subject before and after; none where it did not exist, and on both sides of an event.
    pub fn texts(&self) -> (Option<String>, Option<String>) {
        let value = |side: &Option<Json>| side.as_ref().map(json_text);
        match self {
            Effect::Setting { before, after, .. } | Effect::Entry { before, after, .. } => {
                (value(before), value(after))
            }
            Effect::Text { before, after, .. } | Effect::SessionName { before, after, .. } => {
                (before.clone(), after.clone())
            }
            Effect::Pointer { before, after, .. } => {
                let value = |side: &Option<PointerValue>| side.as_ref().and_then(|side| side.value.clone());
                (value(before), value(after))
            }
            Effect::Trust { before, after, .. } => (Some(before.join("\n")), Some(after.join("\n"))),
            Effect::Event { .. } => (None, None),
        }
    }

    /// Notes that the content comes from an untrusted file.
    pub(super) fn mark_untrusted(&mut self) {
        if let Effect::Setting { untrusted, .. } | Effect::Text { untrusted, .. } = self {
            *untrusted = true;
        }
    }

    /// Whether it makes content trusted.
    pub(super) fn grants_trust(&self) -> bool {
        // Withdrawing trust is always allowed, so only added fingerprints count.
        matches!(self, Effect::Trust { before, after, .. } if after.iter().any(|new| !before.contains(new)))
    }

    /// Whether both change the same thing.
    pub(super) fn is_about_the_same(&self, other: &Effect) -> bool {
        match (self, other) {
            (Effect::Setting { path, key, .. }, Effect::Setting { path: other, key: other_key, .. }) => {
                path == other && key == other_key
            }
            (Effect::Text { path, .. }, Effect::Text { path: other, .. }) => path == other,
            (Effect::Trust { path, .. }, Effect::Trust { path: other, .. }) => path == other,
            (
                Effect::Entry { session, entry, key, .. },
                Effect::Entry { session: s, entry: e, key: k, .. },
            ) => session == s && entry == e && key == k,
            (Effect::SessionName { session, .. }, Effect::SessionName { session: other, .. }) => {
                session == other
            }
            (
                Effect::Pointer { target, scope, place, .. },
                Effect::Pointer { target: t, scope: s, place: p, .. },
            ) => target == t && scope == s && place == p,
            _ => false,
        }
    }

    /// Subject, for people.
    pub fn subject(&self) -> String {
        match self {
            Effect::Setting { path, key, .. } => format!("{key} in {}", path.display()),
            Effect::Text { path, .. } => path.display().to_string(),
            Effect::Pointer { place, scope, .. } => format!("the selection of {} {place}", scope.as_str()),
            Effect::Entry { key, session, .. } => format!("{key} in session {session}"),
            Effect::SessionName { session, .. } => format!("the name of session {session}"),
            Effect::Trust { path, .. } => format!("the trust in {path}"),
            Effect::Event { reason } => reason.clone(),
        }
    }

    /// The file that it changes, if Sessile does not write that file. A restored history can name any.
    pub(super) fn unmanaged_file(&self, state: &State) -> Option<&Path> {
        match self {
            Effect::Setting { path, .. } | Effect::Text { path, .. } if !is_managed(state, path) => {
                Some(path)
            }
            _ => None,
        }
    }

    /// The file that it changes, if that would make a project of a directory that is none.
    pub(super) fn file_of_missing_project(&self, state: &State) -> Option<&Path> {
        match self {
            Effect::Setting { path, .. } | Effect::Text { path, .. }
                if is_in_missing_project(state, path) =>
            {
                Some(path)
            }
            _ => None,
        }
    }

    /// Whether the thing is now as one side says.
    pub(super) fn is_at(&self, state: &State, side: Side) -> Result<bool> {
        Ok(match self {
            Effect::Setting { path, key, before, after, .. } => {
                let now = value_in_file(state, path, &key.parse()?)?;
                // Compared as JSON, the form in which the history stores values.
                json_of(now.as_ref()) == *side.of(before, after)
            }
            Effect::Text { path, before, after, .. } => state.read(path)? == *side.of(before, after),
            Effect::Pointer { before, after, .. } => {
                let now = state
                    .fresh_store()?
                    .map(|store| store.pointer(&self.pointer_key()))
                    .transpose()?
                    .flatten();
                let now = now.map(|row| PointerValue { value: row.value, previous: row.previous });
                now == *side.of(before, after)
            }
            Effect::Entry { session, entry, key, before, after } => {
                let user = state.account();
                let place = EntryPlace { user: &user, session, kind: entry.as_str() };
                let now = state.fresh_store()?.map(|store| store.entry(place, key)).transpose()?.flatten();
                let now = now.map(|row| crate::json::from_str::<Json>(&row.value).unwrap_or_default());
                now == *side.of(before, after)
            }
            Effect::SessionName { session, before, after } => {
                let row = state
                    .fresh_store()?
                    .map(|store| store.session(&state.account(), session))
                    .transpose()?
                    .flatten();
                // A session that is gone is on neither side.
                row.is_some_and(|row| row.name == *side.of(before, after))
            }
            Effect::Trust { path, before, after } => {
                let now = state.fresh_store()?.map(|store| store.trusted_contents(path)).transpose()?;
                now.unwrap_or_default() == *side.of(before, after)
            }
            // An event has no sides, and must not keep an operation from being settled.
            Effect::Event { .. } => true,
        })
    }

    /// Changes the subject to one side, if it is at the other. `rule` decides about trust for content that does not
    /// come from an untrusted file.
    pub(super) fn bring_to(&self, state: &State, side: Side, rule: TrustRule) -> Result<()> {
        let rule_for = |untrusted: bool| if untrusted { TrustRule::Withhold } else { rule };
        let changed =
            || Error::File(FileError::ConcurrentChange { path: PathBuf::from(self.subject()), kept: None });
        match self {
            Effect::Setting { path, key, before, after, untrusted } => {
                let key: SettingKey = key.parse()?;
                let (from, to) = (side.other().of(before, after), side.of(before, after));
                replace_setting(state, path, &key, from.as_ref(), to.as_ref(), rule_for(*untrusted))
            }
            Effect::Text { path, before, after, untrusted } => {
                let (from, to) = (side.other().of(before, after), side.of(before, after));
                replace_text(state, path, from.as_deref(), to.as_deref(), rule_for(*untrusted))
            }
            Effect::Pointer { before, after, .. } => {
                let (from, to) = (side.other().of(before, after), side.of(before, after));
                let (key, now) = (self.pointer_key(), state.now_ms());
                let pair = |side: &Option<PointerValue>| side.clone().map(|side| (side.value, side.previous));
                if state.store_for_writing()?.swap_pointer(
                    &key,
                    pair(from).as_ref(),
                    pair(to).as_ref(),
                    now,
                )? {
                    Ok(())
                } else {
                    Err(changed())
                }
            }
            Effect::Entry { session, entry, key, before, after } => {
                let (from, to) = (side.other().of(before, after), side.of(before, after));
                let mut sessions = state.sessions()?;
                let session = sessions.get(session)?;
                let now = sessions.entry(&session, *entry, key)?;
                if now.as_ref().map(|now| &now.value) != from.as_ref() {
                    return Err(changed());
                }
                let revision = now.map_or(0, |now| now.revision);
                // By revision: the value may change and change back between the read and the write.
                sessions.change_entry(&session, *entry, key, to.as_ref(), Some(revision)).map(drop)
            }
            Effect::SessionName { session, before, after } => {
                let mut sessions = state.sessions()?;
                let session = sessions.get(session)?;
                if session.name != *side.other().of(before, after) {
                    return Err(changed());
                }
                // Parsed again: a restored history can hold any text as a name.
                let name = side.of(before, after).as_deref().map(str::parse).transpose()?;
                sessions.rename(&session, name.as_ref()).map(drop)
            }
            Effect::Trust { path, before, after } => {
                let (from, to) = (side.other().of(before, after), side.of(before, after));
                let now = state.now_ms();
                if state.store_for_writing()?.swap_trust(path, from, to, now)? {
                    Ok(())
                } else {
                    Err(changed())
                }
            }
            Effect::Event { .. } => Ok(()),
        }
    }

    fn pointer_key(&self) -> PointerKey {
        match self {
            Effect::Pointer { target, scope, place, account, .. } => {
                PointerKey { kind: *target, scope: *scope, place: place.clone(), account: account.clone() }
            }
            _ => PointerKey {
                kind: PointerKind::Context,
                scope: Scope::Global,
                place: String::new(),
                account: String::new(),
            },
        }
    }
}

/// Effects as the history stores them. A missing value and the value null are both `null` there; a mark beside it tells
/// them apart.
pub(super) fn encode(effects: &[Effect]) -> String {
    Json::Array(effects.iter().map(marked).collect()).to_string()
}

/// Effects from their stored form; none if it cannot be read.
pub(super) fn decode(text: &str) -> Vec<Effect> {
    let stored: Vec<Json> = crate::json::from_str(text).unwrap_or_default();
    let effects: Option<Vec<Effect>> = stored.into_iter().map(unmarked).collect();
    // None at all: half of an operation's effects must not be undone.
    effects.unwrap_or_default()
}

/// Serializes effects in their stored form.
pub(super) fn serialize<S: Serializer>(
    effects: &[Effect],
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_seq(effects.iter().map(marked))
}

pub(super) fn marked(effect: &Effect) -> Json {
    let mut stored = serde_json::to_value(effect).unwrap_or_default();
    if let Effect::Setting { before, after, .. } | Effect::Entry { before, after, .. } = effect {
        for (side, mark) in [(before, BEFORE_IS_NULL), (after, AFTER_IS_NULL)] {
            if *side == Some(Json::Null) {
                stored[mark] = Json::Bool(true);
            }
        }
    }
    stored
}

fn unmarked(stored: Json) -> Option<Effect> {
    // Read before the conversion, which turns a null and a missing value both into `None`.
    let is_null = [BEFORE_IS_NULL, AFTER_IS_NULL].map(|mark| stored[mark] == Json::Bool(true));
    let mut effect: Effect = serde_json::from_value(stored).ok()?;
    if let Effect::Setting { before, after, .. } | Effect::Entry { before, after, .. } = &mut effect {
        for (side, is_null) in [before, after].into_iter().zip(is_null) {
            if is_null {
                *side = Some(Json::Null);
            }
        }
    }
    Some(effect)
}

/// A value on as many lines as it has parts. A text has no quotes.
fn json_text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        value => serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string()),
    }
}

/// A setting's value as the history keeps it.
pub(crate) fn json_of(value: Option<&Value>) -> Option<Json> {
    value.map(|value| serde_json::to_value(value).unwrap_or_default())
}
