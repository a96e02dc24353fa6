//! Rules for values of settings: those of sessions, and those that must not be secrets.

use std::collections::BTreeMap;

use crate::app::App;
use crate::error::{Result, SessionError, UsageError};
use crate::secrets::{USE_THE_VAULT, is_secret, refuse_secret};
use crate::settings::{SettingKey, Value};

/// Fails unless `config set` could set the settings of an exported session in a session.
pub(crate) fn check_imported(app: &App, settings: &BTreeMap<String, serde_json::Value>) -> Result<()> {
    for (name, json) in settings {
        let key: SettingKey = name.parse()?;
        let definition = crate::settings::definition(app, &key)?;
        require_session_setting(&key)?;
        refuse_secret(name, json)?;
        let value = definition.kind.of_json(json).ok_or_else(|| UsageError::InvalidValue {
            place: key.to_string(),
            // An error does not quote the file.
            value: "the value in the file".into(),
            expected: definition.kind.expected(),
        })?;
        refuse_secret_value(&key, &value, name)?;
    }
    Ok(())
}

/// Whether a session can have a setting. Its context is pinned. Credentials are the user's, and a program can keep them,
/// which nobody who may set a value for a session may select.
pub(crate) fn is_session_setting(key: &SettingKey) -> bool {
    !is_context(key) && key.segments().first().is_none_or(|first| first != "vault")
}

pub(crate) fn is_context(key: &SettingKey) -> bool {
    matches!(key.segments(), [name] if name == "context")
}

pub(crate) fn require_session_setting(key: &SettingKey) -> Result<()> {
    if is_context(key) {
        return Err(SessionError::RefusedInside {
            what: "changing the context".into(),
            instead: "a session keeps the context it was started with; start another session",
        }
        .into());
    }
    if !is_session_setting(key) {
        return Err(SessionError::RefusedInside {
            what: format!("setting {}", crate::text::quoted(key.to_string())),
            instead: "a session has no vault of its own; set it for the user, outside any session",
        }
        .into());
    }
    Ok(())
}

/// Fails if a value is a secret: a variable for commands whose name says so, or a URL with a password.
pub(crate) fn refuse_secret_value(key: &SettingKey, value: &Value, place: &str) -> Result<()> {
    let is_refused = match (key.segments(), value) {
        ([table, name], Value::Text(text)) if table == "env" => is_secret(name, text),
        _ => value.has_url_password(),
    };
    match is_refused {
        true => Err(UsageError::SecretRefused { place: place.to_owned(), instead: USE_THE_VAULT }.into()),
        false => Ok(()),
    }
}
