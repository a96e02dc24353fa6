//! JSON that is kept as it was sent.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use sessile::json::ObjectMembers;

/// JSON text as it was sent: the digits of numbers, escapes, the order of keys and duplicate keys are kept. Only white space
/// between tokens is not.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JsonText(Box<RawValue>);

impl JsonText {
    /// Checks a text strictly, as every reader will: strings are Unicode, and numbers are within the range of a double.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        // Parsed once and thrown away: a raw value alone is checked for syntax, not for ranges and escapes.
        sessile::json::from_str::<Value>(text)?;
        RawValue::from_string(minified(text)).map(JsonText)
    }

    /// The text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// The value as Rust has it: large numbers are rounded, and of duplicate keys the last one counts.
    pub fn to_value(&self) -> Value {
        sessile::json::from_str(self.get()).unwrap_or_default()
    }

    /// Whether both say the same: keys may be in another order, and characters escaped in another way.
    pub fn is_same(&self, other: &JsonText) -> bool {
        // Most retries repeat the same bytes; only others pay for the canonical form.
        self.get() == other.get() || canonical(&self.0) == canonical(&other.0)
    }
}

/// A text of the store, which was checked when it was stored. A damaged one is an error: `null` would pass for what somebody
/// stored.
impl FromStr for JsonText {
    type Err = DamagedJson;

    fn from_str(text: &str) -> Result<Self, DamagedJson> {
        RawValue::from_string(text.to_owned()).map(JsonText).map_err(DamagedJson)
    }
}

/// Stored text that is not JSON.
#[derive(Debug, thiserror::Error)]
#[error("stored JSON is damaged: {0}")]
pub struct DamagedJson(serde_json::Error);

/// A value of the store.
#[derive(Clone, Debug)]
pub(crate) struct StoredValue(pub(crate) Value);

impl FromStr for StoredValue {
    type Err = DamagedJson;

    fn from_str(text: &str) -> Result<Self, DamagedJson> {
        serde_json::from_str(text).map(StoredValue).map_err(DamagedJson)
    }
}

impl From<Value> for JsonText {
    fn from(value: Value) -> Self {
        JsonText(to_raw_value(&value).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }
}

impl From<JsonText> for Box<RawValue> {
    fn from(text: JsonText) -> Self {
        text.0
    }
}

impl PartialEq for JsonText {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl PartialEq<Value> for JsonText {
    fn eq(&self, other: &Value) -> bool {
        self.to_value() == *other
    }
}

/// Valid JSON without white space between tokens.
fn minified(text: &str) -> String {
    // By hand, because a parser would rewrite numbers and escapes.
    let (mut quoted, mut escaped) = (false, false);
    let is_kept = |c: &char| {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ' ' | '\t' | '\n' | '\r' if !quoted => return false,
            _ => {}
        }
        true
    };
    text.chars().filter(is_kept).collect()
}

/// A form in which the same JSON is the same text: sorted keys, plain escapes, numbers as they are written.
pub(crate) fn canonical(raw: &RawValue) -> String {
    let text = raw.get();
    let written = match text.as_bytes().first() {
        Some(b'{') => serde_json::from_str(text).map(|ObjectMembers(mut members)| {
            // The order of duplicate keys counts: the sort is stable.
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            let members = members
                .iter()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), canonical(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }),
        Some(b'[') => serde_json::from_str(text).map(|items: Vec<Box<RawValue>>| {
            format!("[{}]", items.iter().map(|item| canonical(item)).collect::<Vec<_>>().join(","))
        }),
        Some(b'"') => serde_json::from_str(text).map(|text: String| Value::from(text).to_string()),
        _ => return text.to_owned(),
    };
    written.unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::JsonText;

    #[test]
    fn text_is_kept_except_white_space() {
        let sent = "{ \"n\" : 123456789012345678901234567890,\n \"n\":0.10000000000000000000001, \"s\": \" \\\" \\u00e9\" }";
        let kept =
            "{\"n\":123456789012345678901234567890,\"n\":0.10000000000000000000001,\"s\":\" \\\" \\u00e9\"}";
        assert_eq!(JsonText::parse(sent).unwrap().get(), kept);
        let stored = serde_json::to_string(&JsonText::parse(sent).unwrap()).unwrap();
        assert_eq!(serde_json::from_str::<JsonText>(&stored).unwrap().get(), kept);
    }

    #[test]
    fn invalid_text_is_refused() {
        for text in ["", "{", "nul", "01", "1e999", "\"\\ud800\"", "\"\n\"", "[1,]", "1 2"] {
            assert!(JsonText::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn same_json_is_recognized_and_other_numbers_are_not() {
        let of = |text: &str| JsonText::parse(text).unwrap();
        assert!(of("{\"a\":1,\"b\":[\"\\u00e9\"]}").is_same(&of("{ \"b\": [\"\u{e9}\"], \"a\": 1 }")));
        assert!(!of("123456789012345678901234567890").is_same(&of("123456789012345678901234567891")));
        assert!(!of("{\"a\":1,\"a\":2}").is_same(&of("{\"a\":2,\"a\":1}")));
        assert!(!of("1").is_same(&of("1.0")));
    }
}
