//! JSON from outside: from the network, from files and from other programs.
//!
//! serde_json with the feature `raw_value` parses an object whose first key is `$serde_json::private::RawValue` into a
//! `Value` as an embedded document: by a new parser, with a recursion limit of its own. Documents embedded in each other
//! have no depth limit then, and overflow the stack. Untrusted JSON is parsed by [`from_str`] and [`from_slice`], which
//! refuse such keys before anything is parsed.

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Object keys with a meaning of their own in serde_json.
const RESERVED_KEYS: [&str; 2] = ["$serde_json::private::RawValue", "$serde_json::private::Number"];

/// Length of the longest spelling of a reserved key: quotes, and `\u0024` for each character.
const LONGEST_SPELLING: usize = 2 + 6 * RESERVED_KEYS[0].len();

/// A reserved object key in a JSON text.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("key {key:?} is reserved")]
pub struct ReservedKey {
    key: &'static str,
    /// Offset of the opening quote.
    offset: usize,
}

/// Whether an object key is reserved.
pub fn is_reserved(key: &str) -> bool {
    RESERVED_KEYS.contains(&key)
}

/// Refuses a JSON text with a reserved object key, however the key is spelled. The check is one pass without recursion; a text
/// that is not valid JSON is left to the parser.
pub fn check(text: &[u8]) -> Result<(), ReservedKey> {
    let mut at = 0;
    while let Some(start) = text[at..].iter().position(|byte| *byte == b'"').map(|found| at + found) {
        let Some(end) = string_end(text, start + 1) else { break };
        at = end + 1;
        // Only these can begin a reserved key; the cheap test comes first, as few strings pass it.
        if matches!(text[start + 1], b'$' | b'\\')
            // Only keys have a meaning of their own; the same text as a value is harmless.
            && text[at..].trim_ascii_start().starts_with(b":")
            && let Some(key) = reserved_key(&text[start..at])
        {
            return Err(ReservedKey { key, offset: start });
        }
    }
    Ok(())
}

/// Position of the quote that closes a string.
fn string_end(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match text.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The reserved key that a string in its quotes spells.
fn reserved_key(string: &[u8]) -> Option<&'static str> {
    // A long string is not decoded, so the check stays one pass.
    if string.len() > LONGEST_SPELLING {
        return None;
    }
    let key: String = serde_json::from_slice(string).ok()?;
    RESERVED_KEYS.into_iter().find(|reserved| *reserved == key)
}

/// Parses untrusted JSON.
pub fn from_slice<'a, T: Deserialize<'a>>(text: &'a [u8]) -> serde_json::Result<T> {
    check(text).map_err(|reserved| {
        let before = &text[..reserved.offset];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let column = 1 + before.iter().rev().take_while(|byte| **byte != b'\n').count();
        // serde_json takes the position from the end of the message.
        serde_json::Error::custom(format!("{reserved} at line {line} column {column}"))
    })?;
    serde_json::from_slice(text)
}

/// Parses untrusted JSON.
pub fn from_str<'a, T: Deserialize<'a>>(text: &'a str) -> serde_json::Result<T> {
    from_slice(text.as_bytes())
}

/// Members of an object, in order and with duplicates.
#[derive(Debug)]
pub struct ObjectMembers(pub Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for ObjectMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = ObjectMembers;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ObjectMembers, A::Error> {
                let mut members = Vec::new();
                // A map would keep one of two equal keys, and a copy must lose nothing.
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(ObjectMembers(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    #[test]
    fn reserved_keys_are_refused_in_every_spelling() {
        let all: String = RESERVED_KEYS[0].chars().map(|c| format!("\\u{:04X}", u32::from(c))).collect();
        for key in [
            RESERVED_KEYS[0],
            RESERVED_KEYS[1],
            "\\u0024serde_json::private::RawValue",
            "$serde_json::private::Raw\\u0056alue",
            &all,
        ] {
            for text in [
                format!("{{\"{key}\":\"1\"}}"),
                format!("[[{{\"a\":1,\"{key}\" \t\r\n: \"1\"}}]]"),
                format!("{{\"a\\\\\":\"\\\"\",\"{key}\":1"),
            ] {
                assert!(check(text.as_bytes()).is_err(), "{text}");
                assert!(from_str::<Value>(&text).is_err(), "{text}");
            }
        }
    }

    #[test]
    fn reserved_keys_as_data_are_accepted() {
        let key = RESERVED_KEYS[0];
        for text in [
            format!("\"{key}\""),
            format!("[\"{key}\",\"{key}\"]"),
            format!("{{\"a\":\"{key}\"}}"),
            format!("{{\"x{key}\":1,\"{key}x\":1,\"\\\\{key}\":1}}"),
            serde_json::json!({ "a": format!("{{\"{key}\":\"1\"}}") }).to_string(),
            "{\"$\":1,\"\":2,\"\\\\\":3}".to_owned(),
        ] {
            assert_eq!(check(text.as_bytes()), Ok(()), "{text}");
            assert_eq!(from_str::<Value>(&text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn refusal_has_the_position_of_the_key() {
        let error =
            from_str::<Value>("{\n  \"a\": {\"$serde_json::private::RawValue\": \"1\"}\n}").unwrap_err();
        assert_eq!((error.line(), error.column()), (2, 9));
        let text = "key \"$serde_json::private::RawValue\" is reserved at line 2 column 9";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn broken_text_is_left_to_the_parser() {
        for text in ["", "\"", "\"\\", "\"$", "\"$\\\"", "{\"$\"", "{\"\\", "\"\\u00"] {
            assert_eq!(check(text.as_bytes()), Ok(()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn accepted_text_has_no_embedded_document(
            pieces in proptest::collection::vec(proptest::sample::select(vec![
                "{", "}", "[", "]", ":", ",", "\"", "\\", "\\u0024", "$", "serde_json::private::RawValue", " ", "a", "\"1\"",
                "{\"$serde_json::private::RawValue\":", "\"a\":",
            ]), 0..12),
        ) {
            let text = pieces.concat();
            if let Ok(value) = from_str::<Value>(&text) {
                let written = value.to_string();
                prop_assert!(!written.contains("{\"$serde_json::private::RawValue\":"), "{written}");
                prop_assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), value);
            }
        }
    }
}
