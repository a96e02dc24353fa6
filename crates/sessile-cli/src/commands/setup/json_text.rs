//! Edits of a JSON file that people write: one member is added or removed, and every other byte stays.
//!
//! Comments and trailing commas are allowed, because editors and agents read them. A new member comes first in its object, so
//! that it is one inserted text and removing that text restores the file.

use serde_json::{Map, Value};

/// A text inserted at a position.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Insertion {
    pub(super) at: usize,
    pub(super) text: String,
}

impl Insertion {
    pub(super) fn applied_to(&self, text: &str) -> String {
        format!("{}{}{}", &text[..self.at], self.text, &text[self.at..])
    }
}

/// A member of an object, as positions in the text.
#[derive(Debug)]
struct Member {
    key: String,
    key_start: usize,
    value_start: usize,
    value_end: usize,
}

/// An object, as positions in the text.
#[derive(Debug)]
struct Object {
    /// Position after the opening brace.
    start: usize,
    /// Position of the closing brace.
    end: usize,
    members: Vec<Member>,
}

/// The value at a path of keys, if the text has one. `None` for a text that is not an object.
pub(super) fn value_at(text: &str, keys: &[String]) -> Option<Value> {
    let mut value = parsed(text)?;
    for key in keys {
        value = value.get_mut(key)?.take();
    }
    Some(value)
}

/// The text as a value, without comments and trailing commas.
pub(super) fn parsed(text: &str) -> Option<Value> {
    sessile::json::from_str(&plain(text)).ok()
}

/// The insertion that adds a value at a path of keys. Objects on the path that do not exist are added with it. `None` if the text
/// is not JSON, something else than an object is in the way, or the key exists.
pub(super) fn insertion(text: &str, keys: &[String], value: &Value) -> Option<Insertion> {
    let before = parsed(text)?;
    let unit = indentation(text);
    let mut object = object_at(text, skip_blanks(text, 0))?;
    let mut depth = 1;
    let mut rest = keys;
    while let [key, below @ ..] = rest {
        let Some(member) = object.members.iter().find(|member| member.key == *key) else { break };
        if below.is_empty() {
            return None;
        }
        object = object_at(text, member.value_start)?;
        depth += 1;
        rest = below;
    }
    let (key, below) = rest.split_first()?;
    let nested = below.iter().rev().fold(value.clone(), |inner, key| {
        let mut outer = Map::new();
        outer.insert(key.clone(), inner);
        Value::Object(outer)
    });
    let pad = unit.repeat(depth);
    let member = format!("{}: {}", Value::from(key.as_str()), pretty(&nested, &unit, depth));
    let text_after = &text[object.start..object.end];
    let inserted = if !object.members.is_empty() {
        format!("\n{pad}{member},")
    } else if text_after.is_empty() {
        format!("\n{pad}{member}\n{}", unit.repeat(depth - 1))
    } else {
        // Blanks or comments stand there already.
        format!("\n{pad}{member}")
    };
    let insertion = Insertion { at: object.start, text: inserted };
    // The file belongs to somebody else: nothing is written that does not read back as meant.
    let mut expected = before;
    let mut place = &mut expected;
    for key in &keys[..keys.len() - 1] {
        place = place.as_object_mut()?.entry(key.clone()).or_insert_with(|| Value::Object(Map::new()));
    }
    place.as_object_mut()?.insert(keys.last()?.clone(), value.clone());
    (parsed(&insertion.applied_to(text)).as_ref() == Some(&expected)).then_some(insertion)
}

/// The text without the member at a path of keys. The last `added` objects above it are removed too where nothing else is in
/// them. `None` if the text has no such member.
pub(super) fn without(text: &str, keys: &[String], added: usize) -> Option<String> {
    let mut text = removed(text, keys)?;
    for length in (1..keys.len()).rev().take(added) {
        let is_empty = value_at(&text, &keys[..length])?.as_object().is_some_and(Map::is_empty);
        if !is_empty {
            break;
        }
        text = removed(&text, &keys[..length])?;
    }
    Some(text)
}

fn removed(text: &str, keys: &[String]) -> Option<String> {
    let (key, above) = keys.split_last()?;
    let mut object = object_at(text, skip_blanks(text, 0))?;
    for key in above {
        let member = object.members.iter().find(|member| member.key == *key)?;
        object = object_at(text, member.value_start)?;
    }
    let at = object.members.iter().position(|member| member.key == *key)?;
    let own = &object.members[at];
    let (from, to) =
        match (at.checked_sub(1).map(|before| &object.members[before]), object.members.get(at + 1)) {
            (_, Some(next)) => (own.key_start, next.key_start),
            (Some(previous), None) => (previous.value_end, own.value_end),
            (None, None) => (object.start, object.end),
        };
    Some(format!("{}{}", &text[..from], &text[to..]))
}

/// The value with the indentation of the file, as agents write it.
fn pretty(value: &Value, unit: &str, depth: usize) -> String {
    let pad = unit.repeat(depth + 1);
    let close = unit.repeat(depth);
    let lines = |open: char, items: Vec<String>, end: char| {
        if items.is_empty() {
            return format!("{open}{end}");
        }
        let items: Vec<String> = items.into_iter().map(|item| format!("{pad}{item}")).collect();
        format!("{open}\n{}\n{close}{end}", items.join(",\n"))
    };
    match value {
        Value::Object(members) => {
            let items = members.iter().map(|(key, value)| {
                format!("{}: {}", Value::from(key.as_str()), pretty(value, unit, depth + 1))
            });
            lines('{', items.collect(), '}')
        }
        Value::Array(values) => {
            lines('[', values.iter().map(|value| pretty(value, unit, depth + 1)).collect(), ']')
        }
        other => other.to_string(),
    }
}

/// One level of indentation: that of the first indented line, else two spaces.
fn indentation(text: &str) -> String {
    let indented = text.lines().find(|line| line.starts_with([' ', '\t']) && !line.trim().is_empty());
    let unit: String = indented
        .into_iter()
        .flat_map(|line| line.chars().take_while(|letter| matches!(letter, ' ' | '\t')))
        .collect();
    if unit.is_empty() || unit.len() > 8 { "  ".to_owned() } else { unit }
}

/// The object whose opening brace is at this position.
fn object_at(text: &str, at: usize) -> Option<Object> {
    let bytes = text.as_bytes();
    if bytes.get(at) != Some(&b'{') {
        return None;
    }
    let mut object = Object { start: at + 1, end: 0, members: Vec::new() };
    let mut at = skip_blanks(text, at + 1);
    while *bytes.get(at)? != b'}' {
        let key_end = string_end(bytes, at)?;
        let key = serde_json::from_str(&text[at..key_end]).ok()?;
        let colon = skip_blanks(text, key_end);
        if bytes.get(colon) != Some(&b':') {
            return None;
        }
        let value_start = skip_blanks(text, colon + 1);
        let value_end = value_end(text, value_start)?;
        object.members.push(Member { key, key_start: at, value_start, value_end });
        at = skip_blanks(text, value_end);
        if bytes.get(at) == Some(&b',') {
            at = skip_blanks(text, at + 1);
        }
    }
    object.end = at;
    Some(object)
}

/// Position after the value that begins here.
fn value_end(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut at = start;
    loop {
        match *bytes.get(at)? {
            b'"' => at = string_end(bytes, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            b',' | b':' if depth > 0 => at += 1,
            // A number or a word.
            byte if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.') => {
                let rest = bytes[at..].iter();
                at += rest.take_while(|byte| byte.is_ascii_alphanumeric() || b"-+.".contains(byte)).count();
            }
            _ => return None,
        }
        if depth == 0 {
            return Some(at);
        }
        at = skip_blanks(text, at);
    }
}

/// Position after the string whose opening quote is here.
fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    if bytes.get(start) != Some(&b'"') {
        return None;
    }
    let mut at = start + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Position of the next byte that is neither blank nor in a comment.
fn skip_blanks(text: &str, mut at: usize) -> usize {
    let bytes = text.as_bytes();
    loop {
        let rest = &bytes[at.min(bytes.len())..];
        if rest.first().is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        } else if rest.starts_with(b"//") {
            at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        } else if rest.starts_with(b"/*") {
            at += rest.windows(2).skip(2).position(|two| two == b"*/").map_or(rest.len(), |end| end + 4);
        } else {
            return at;
        }
    }
}

/// The text as plain JSON: comments and trailing commas are blanks.
fn plain(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = String::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() {
        let next = skip_blanks(text, at);
        if next > at {
            plain.push(' ');
            at = next;
            continue;
        }
        if bytes[at] == b'"' {
            let end = string_end(bytes, at).unwrap_or(bytes.len()).min(bytes.len());
            plain.push_str(text.get(at..end).unwrap_or_default());
            at = end;
            continue;
        }
        let is_trailing =
            bytes[at] == b',' && matches!(bytes.get(skip_blanks(text, at + 1)), Some(b'}' | b']'));
        let length = text[at..].chars().next().map_or(1, char::len_utf8);
        if !is_trailing {
            plain.push_str(&text[at..at + length]);
        }
        at += length;
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn keys(path: &str) -> Vec<String> {
        path.split('.').map(str::to_owned).collect()
    }

    fn entry() -> Value {
        json!({ "command": "sessile", "args": ["mcp"] })
    }

    #[test]
    fn member_is_added_in_the_style_of_the_file() {
        let text =
            "{\n    // mine\n    \"a\": 1,\n    \"mcpServers\": {\n        \"x\": {}, // last\n    }\n}\n";
        let insertion = insertion(text, &keys("mcpServers.sessile"), &entry()).unwrap();
        let changed = insertion.applied_to(text);
        assert_eq!(
            changed,
            "{\n    // mine\n    \"a\": 1,\n    \"mcpServers\": {\n        \"sessile\": {\n            \"command\": \
             \"sessile\",\n            \"args\": [\n                \"mcp\"\n            ]\n        },\n        \"x\": {}, // \
             last\n    }\n}\n"
        );
        assert_eq!(without(&changed, &keys("mcpServers.sessile"), 0).unwrap(), text);
    }

    #[test]
    fn objects_that_were_added_go_with_the_member() {
        for text in ["{}", "{\n  \"a\": [1, {\"b\": 2}]\n}", "{ /* empty */ }", "{\"a\":\"}\"}"] {
            let insertion = insertion(text, &keys("mcp.sessile"), &entry()).unwrap();
            let changed = insertion.applied_to(text);
            assert_eq!(value_at(&changed, &keys("mcp.sessile")), Some(entry()), "{changed}");
            assert!(!without(&changed, &keys("mcp.sessile"), 1).unwrap().contains("sessile"));
            assert!(without(&changed, &keys("mcp.sessile"), 0).unwrap().contains("\"mcp\""));
        }
    }

    #[test]
    fn texts_that_cannot_be_edited_are_left_alone() {
        for text in ["", "[]", "{", "{\"mcp\": 1}", "{\"mcp\": {\"sessile\": 1}}", "{\"a\" 1}", "nonsense"] {
            assert_eq!(insertion(text, &keys("mcp.sessile"), &entry()), None, "{text}");
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[ -~é\n]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z/,{}\"]{0,4}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn removal_reverts_an_insertion_also_after_a_rewrite(
            members in prop::collection::btree_map("[a-m]{1,3}|mcp", values(), 0..4),
            is_pretty in any::<bool>(),
        ) {
            let value = Value::Object(members.into_iter().collect());
            let text = if is_pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let text = text.unwrap();
            let path = keys("mcp.sessile");
            let added = usize::from(value.get("mcp").is_none());
            let Some(insertion) = insertion(&text, &path, &entry()) else {
                prop_assert!(value.get("mcp").is_some_and(|mcp| !mcp.is_object()));
                return Ok(());
            };
            let changed = insertion.applied_to(&text);
            prop_assert_eq!(changed.replacen(&insertion.text, "", 1), text.clone());
            // Agents rewrite their whole file, each in its own style.
            let rewritten = serde_json::to_string_pretty(&parsed(&changed).unwrap()).unwrap();
            let left = without(&rewritten, &path, added).unwrap();
            prop_assert_eq!(left, serde_json::to_string_pretty(&value).unwrap());
        }

        #[test]
        fn any_text_is_edited_without_a_panic(text in "[{}\\[\\]\",:/*a\\\\ é\n1]{0,24}") {
            let _ = insertion(&text, &keys("a.b"), &entry());
            let _ = without(&text, &keys("a"), 1);
        }
    }
}
