//! Anonymous contexts: bindings that a call names instead of a context.
//!
//! An anonymous context has no file, and nothing but bindings. Its name is the list of them, `a.context=x,b.profile=y`. So a
//! session that is pinned to one needs no other record, and a call that names the same bindings means the same context.
//! Other characters than letters, digits and `._@:/+-` are percent-encoded: the name is printed in prompts, where shells
//! expand the rest.

use std::path::Path;
use std::rc::Rc;

use crate::app::App;
use crate::context::transfer::refuse_secrets;
use crate::context::{Context, ContextEdit, ContextLocation, change};
use crate::error::{Error, Result, UsageError};
use crate::names::ContextName;
use crate::settings::{Document, SettingKey, Value, empty_text};

/// Place of an anonymous context, where others have a file.
const PLACE: &str = "(anonymous)";

/// Most bytes of a name.
const LONGEST: usize = 4096;

/// The changes that put bindings, each `TOOL.KEY=VALUE`, into a context. Several values of one key are a list.
pub fn binding_edits(pairs: &[String], flag: &str) -> Result<Vec<ContextEdit>> {
    let mut edits: Vec<ContextEdit> = Vec::new();
    for (key, value) in bindings(pairs.iter().map(String::as_str), flag)? {
        let key = SettingKey::new(["tools".to_owned()].into_iter().chain(key.segments().iter().cloned()));
        let known = edits.iter_mut().find(|edit| edit.key == key).and_then(|edit| edit.value.as_mut());
        match (known, value.as_str()) {
            (Some(Value::List(values)), _) => values.push(value),
            (Some(first), _) => *first = Value::List(vec![first.to_string(), value]),
            (None, "true" | "false") => {
                edits.push(ContextEdit { key, value: Some(Value::Bool(value == "true")) });
            }
            (None, _) => edits.push(ContextEdit { key, value: Some(Value::Text(value)) }),
        }
    }
    Ok(edits)
}

/// The name of the anonymous context with these bindings, each `TOOL.KEY=VALUE`.
pub fn name_of(pairs: &[String], flag: &str) -> Result<ContextName> {
    refuse_secrets(&binding_edits(pairs, flag)?)?;
    let mut sorted = bindings(pairs.iter().map(String::as_str), flag)?;
    // The order of keys means nothing; that of the values of one key does.
    sorted.sort_by(|(one, _), (other, _)| one.cmp(other));
    let text = sorted.iter().map(|(key, value)| format!("{key}={}", encoded(value)));
    parse(&text.collect::<Vec<_>>().join(","))
}

/// The bindings of an anonymous context, each `TOOL.KEY=VALUE`; none if the name is that of another context.
pub fn bindings_of(name: &str) -> Option<Vec<String>> {
    crate::names::is_anonymous(name).then(|| name.split(',').map(decoded).collect())
}

/// The name of a session's context for people.
pub fn label(name: &str) -> String {
    match bindings_of(name) {
        Some(bindings) => format!("anonymous ({})", bindings.join(", ")),
        None => name.to_owned(),
    }
}

/// The name of an anonymous context, from a session or a call.
pub(crate) fn parse(text: &str) -> Result<ContextName> {
    let invalid = |reason: &'static str| {
        let name = crate::text::shortened(text, 80);
        Error::Usage(UsageError::InvalidName { what: "context", name, reason: reason.into() })
    };
    if text.len() > LONGEST {
        return Err(invalid("the bindings are longer than 4096 bytes"));
    }
    let is_plain = |c: char| is_kept(c) || c == '%';
    for pair in text.split(',') {
        let value = pair.split_once('=').map(|(_, value)| value).unwrap_or_default();
        if value.is_empty() || !value.chars().all(is_plain) {
            return Err(invalid("expected a list of bindings, each TOOL.KEY=VALUE"));
        }
    }
    bindings(text.split(','), "bindings")?;
    Ok(ContextName::of_bindings(text.to_owned()))
}

/// The definition of an anonymous context.
pub(super) fn definition(app: &App, name: &ContextName) -> Result<Context> {
    let pairs = bindings_of(name.as_str()).unwrap_or_default();
    let path = Path::new(PLACE);
    let text = change::apply(path, empty_text(path), &[], &binding_edits(&pairs, "bindings")?)?;
    let document = Rc::new(Document::parse(path, text)?);
    Context::read(app, name.clone(), ContextLocation::Anonymous, true, document, Vec::new())
}

/// Keys and values of pairs.
fn bindings<'a>(pairs: impl Iterator<Item = &'a str>, flag: &str) -> Result<Vec<(SettingKey, String)>> {
    let mut all = Vec::new();
    for pair in pairs {
        let invalid = || {
            Error::Usage(UsageError::InvalidValue {
                place: flag.to_owned(),
                value: crate::text::shortened(pair, 80),
                expected: "TOOL.KEY=VALUE".to_owned(),
            })
        };
        let (key, value) = pair.split_once('=').ok_or_else(invalid)?;
        let is_word = |word: &str| {
            !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
        };
        let words: Vec<&str> = key.split('.').collect();
        if words.len() != 2 || !words.iter().all(|word| is_word(word)) {
            return Err(invalid());
        }
        all.push((SettingKey::new(words), value.to_owned()));
    }
    Ok(all)
}

fn is_kept(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._@:/+-".contains(c)
}

fn encoded(value: &str) -> String {
    let encode = |byte: u8| match char::from(byte) {
        c if is_kept(c) => c.to_string(),
        _ => format!("%{byte:02X}"),
    };
    value.bytes().map(encode).collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let code = after.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(code.unwrap_or(b'%'));
        rest = if code.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pairs(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn order_of_keys_names_the_same_context() {
        let one = name_of(&pairs(&["b.y=2", "a.x=1"]), "--bind").unwrap();
        assert_eq!(one.as_str(), "a.x=1,b.y=2");
        assert_eq!(one, name_of(&pairs(&["a.x=1", "b.y=2"]), "--bind").unwrap());
        assert!(one.is_anonymous());
    }

    #[test]
    fn several_values_of_a_key_are_a_list_in_their_order() {
        let edits = binding_edits(&pairs(&["a.x=2", "a.x=1", "a.flag=true"]), "--bind").unwrap();
        assert_eq!(edits[0].value, Some(Value::List(vec!["2".into(), "1".into()])));
        assert_eq!(edits[1].value, Some(Value::Bool(true)));
    }

    #[test]
    fn invalid_binding_is_refused() {
        for wrong in ["", "a", "a=1", "a.b.c=1", ".b=1", "a.=1", "a.b", "a.b="] {
            assert!(name_of(&pairs(&[wrong]), "--bind").is_err(), "{wrong:?}");
        }
        for wrong in ["a.b=$(x)", "a.b=1,", "a.b=x y", "a.b=x\n"] {
            assert!(ContextName::of_session(wrong).is_err(), "{wrong:?}");
        }
    }

    proptest! {
        /// A name is printed in prompts and parsed again from the store.
        #[test]
        fn any_value_survives_in_a_plain_name(value in "\\PC{1,20}|[\\x01-\\x7f]{1,8}") {
            let pair = format!("tool.key={value}");
            let name = name_of(std::slice::from_ref(&pair), "--bind").unwrap();
            prop_assert!(name.as_str().bytes().all(|byte| byte.is_ascii_graphic() && !b"$`\\!'\"".contains(&byte)));
            prop_assert_eq!(bindings_of(name.as_str()).unwrap(), vec![pair]);
            prop_assert_eq!(ContextName::of_session(name.as_str()).unwrap(), name);
        }
    }
}
