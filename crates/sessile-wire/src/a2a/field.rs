//! Fields of JSON objects whose shape is not known in advance.

use serde_json::{Map, Value};

/// First of these fields that is a string.
pub(super) fn string(raw: &Value, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| raw.get(key)?.as_str()).map(str::to_owned)
}

/// Field with a string that is not empty: protocol buffers send absent ids as empty strings.
pub(super) fn non_empty(raw: &Value, key: &str) -> Option<String> {
    string(raw, &[key]).filter(|text| !text.is_empty())
}

/// Items of a field that is a list; none if it is anything else.
pub(super) fn list<'a>(raw: &'a Value, key: &str) -> &'a [Value] {
    raw.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether a field is `true`.
pub(super) fn flag(raw: &Value, key: &str) -> bool {
    raw.get(key).and_then(Value::as_bool).unwrap_or(false)
}

/// Inserts a field that has a value.
pub(super) fn insert_some(map: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        map.insert(key.to_owned(), value.into());
    }
}
