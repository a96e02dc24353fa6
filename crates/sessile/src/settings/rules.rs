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
        require_session_setting(app, &key)?;
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

/// Whether a setting can be set in a session. The context is pinned. The vault, programs and files to send are the user's
/// choice.
pub(crate) fn is_session_setting(app: &App, key: &SettingKey) -> bool {
    !is_context(key) && !is_users_own(app, key)
}

/// Whether only the user sets a setting.
pub(crate) fn is_users_own(app: &App, key: &SettingKey) -> bool {
    // All of the vault, also keys that only another version knows.
    key.segments().first().is_some_and(|first| first == "vault")
        || app.setting(key.segments()).is_some_and(|setting| setting.is_users_own)
}

pub(crate) fn is_context(key: &SettingKey) -> bool {
    matches!(key.segments(), [name] if name == "context")
}

pub(crate) fn require_session_setting(app: &App, key: &SettingKey) -> Result<()> {
    if is_context(key) {
        return Err(SessionError::RefusedInside {
            what: "changing the context".into(),
            instead: "the context of a session never changes; start another session",
        }
        .into());
    }
    if is_users_own(app, key) {
        return Err(SessionError::RefusedInside {
            what: format!("setting {}", crate::text::quoted(key.to_string())),
            instead: "no session sets it; set it for the user, outside any session: pass --global",
        }
        .into());
    }
    Ok(())
}

/// Fails if a value is a secret: a variable for commands whose name says so, or a URL with a password.
pub(crate) fn refuse_secret_value(key: &SettingKey, value: &Value, place: &str) -> Result<()> {
    let is_refused = match (key.segments(), value) {
        ([table, name], Value::Text(text)) if table == "env" => is_secret(name, text),
        ([table, _, member], Value::List(headers)) if table == "agents" && member == "headers" => {
            headers.iter().any(|header| crate::agents::is_secret_header(header))
        }
        _ => value.has_url_password(),
    };
    match is_refused {
        true => Err(UsageError::SecretRefused { place: place.to_owned(), instead: USE_THE_VAULT }.into()),
        false => Ok(()),
    }
}
