//! `sessile config schema`: the schema takes what the program takes.

use serde_json::{Value, json};

use crate::home;

fn schema() -> Value {
    home().call(&["config", "schema"]).ok().json()
}

/// Whether a document fits, by the few keywords that the schema uses.
fn fits(schema: &Value, document: &Value) -> bool {
    let kind = match document {
        Value::Object(_) => "object",
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Bool(_) => "boolean",
        _ => "integer",
    };
    let types = match &schema["type"] {
        Value::Array(types) => types.clone(),
        one => vec![one.clone()],
    };
    if !types.contains(&json!(kind)) {
        return false;
    }
    match document {
        Value::Object(members) => members.iter().all(|(name, value)| match &schema["properties"][name] {
            Value::Null => {
                schema["additionalProperties"].is_object() && fits(&schema["additionalProperties"], value)
            }
            known => fits(known, value),
        }),
        Value::Array(items) => items.iter().all(|item| fits(&schema["items"], item)),
        Value::Number(number) => {
            let at = |key: &str| schema[key].as_i64();
            let number = number.as_i64().unwrap();
            at("minimum").is_none_or(|least| number >= least)
                && at("maximum").is_none_or(|most| number <= most)
        }
        other => schema["enum"].as_array().is_none_or(|words| words.contains(other)),
    }
}

#[test]
fn schema_accepts_valid_settings() {
    let settings = json!({
        "context": "dev", "expect-context": "dev", "output": "jsonl", "color": "never", "lock-timeout": 0,
        "isolate": "home", "passthrough": ["A"], "session": { "idle": "1h30m", "max": "7d" },
        "tools": { "only": ["git"], "except": [] }, "env": { "A": "1", "B_2": "" },
        "vault": { "backend": "file" }, "server": "https://s.example",
        "agents": { "helper": { "url": "https://a.example", "credential": "c" } },
    });
    let home = home();
    let file = home.write("all.json", settings.to_string());
    home.call(&["config", "validate"]).arg(&file).ok();
    assert!(fits(&schema(), &settings));
}

#[test]
fn schema_refuses_invalid_settings() {
    for wrong in [
        json!({ "lock-timeout": 5 }),
        json!({ "color": "pink" }),
        json!({ "color": true }),
        json!({ "tools": { "only": "git" } }),
        json!({ "env": { "A": 1 } }),
    ] {
        let home = home();
        let file = home.write("wrong.json", wrong.to_string());
        let done = home.call(&["config", "validate"]).arg(&file).run();
        assert!(!fits(&schema(), &wrong), "{wrong}");
        assert_eq!(done.status(), Some(1), "{wrong}: {}", done.told());
    }
    assert!(!fits(&schema(), &json!({ "colour": "never" })), "an editor marks what the program warns of");
}

#[test]
fn schema_describes_every_setting_except_the_secret() {
    let schema = schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["properties"]["session"]["properties"]["idle"]["default"], "2h");
    assert!(schema["properties"]["color"]["description"].is_string());
    assert_eq!(schema["properties"]["token"], Value::Null);
}
