//! A JSON Schema of the settings file, for editors.

use serde_json::{Value, json};

use crate::app::App;
use crate::settings::{Definition, SettingKind};

/// The schema of `config.toml`.
pub fn settings(app: &App) -> Value {
    let mut root = object(&format!("{} settings", app.name()));
    // An editor would offer the key, and a secret does not belong into that file.
    for setting in app.settings().filter(|setting| setting.kind != SettingKind::Secret) {
        let segments: Vec<&str> = setting.key.split('.').collect();
        insert(&mut root, &segments, setting);
    }
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root
}

fn object(title: &str) -> Value {
    json!({ "title": title, "type": "object", "properties": {}, "additionalProperties": false })
}

fn insert(table: &mut Value, segments: &[&str], setting: &Definition) {
    let Some((first, rest)) = segments.split_first() else { return };
    let place = match *first {
        "*" => &mut table["additionalProperties"],
        name => &mut table["properties"][name],
    };
    if rest.is_empty() {
        *place = leaf(setting);
        return;
    }
    // `additionalProperties` is `false` until a pattern replaces it.
    if !place.is_object() {
        *place = object(first);
    }
    insert(place, rest, setting);
}

fn leaf(setting: &Definition) -> Value {
    let mut schema = match setting.kind {
        SettingKind::Bool => json!({ "type": "boolean" }),
        SettingKind::List => json!({ "type": "array", "items": { "type": "string" } }),
        SettingKind::Choice(words) => json!({ "type": "string", "enum": words }),
        // The bare number 0 needs no unit.
        SettingKind::Duration => json!({
            "type": ["string", "integer"],
            "pattern": "^(0|([0-9]+(ms|s|m|h|d|w))+)$",
            "minimum": 0,
            "maximum": 0,
        }),
        SettingKind::Context => json!({ "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._@-]*$" }),
        // Without a user part: the pattern refuses a password in a URL.
        SettingKind::Url => json!({ "type": "string", "pattern": "^(https?://[^@\\s]+)?$" }),
        SettingKind::Text | SettingKind::Secret => json!({ "type": "string" }),
    };
    schema["description"] = setting.about.into();
    if let Some(default) = setting.default {
        schema["default"] = default.into();
    }
    schema
}
