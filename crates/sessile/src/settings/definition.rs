//! Definitions of settings: key, kind, default and meaning.

use crate::duration;
use crate::error::{Error, FileError, Result, UsageError};
use crate::settings::document::{Data, Node};
use crate::settings::{SettingKey, Value};
use crate::site::{Site, agent_url, without_user};
use sessile_wire::secret::Secret;

/// Kind of a setting's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    /// `true` or `false`.
    Bool,
    /// Any text.
    Text,
    /// A duration such as `10s`.
    Duration,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of words.
    List,
    /// The name of a context.
    Context,
    /// The URL of a server that a credential may be sent to; an empty text names none.
    Url,
    /// A secret, allowed only in a file given with `--config`, used for that call and stored nowhere.
    Secret,
}

impl SettingKind {
    /// Expected value, for error messages.
    pub fn expected(self) -> String {
        match self {
            SettingKind::Bool => "true or false".into(),
            SettingKind::Text | SettingKind::Secret => "text".into(),
            SettingKind::Duration => duration::EXPECTED.into(),
            SettingKind::Choice(words) => format!("one of {}", words.join(", ")),
            SettingKind::List => "a list of words".into(),
            SettingKind::Context => "a context name".into(),
            SettingKind::Url => "a URL such as https://HOST/PATH; http only for loopback addresses".into(),
        }
    }

    /// The kind's name in the reference.
    pub fn as_str(self) -> &'static str {
        match self {
            SettingKind::Bool => "bool",
            SettingKind::Text => "text",
            SettingKind::Duration => "duration",
            SettingKind::Choice(_) => "choice",
            SettingKind::List => "list",
            SettingKind::Context => "context",
            SettingKind::Url => "url",
            SettingKind::Secret => "secret",
        }
    }

    /// A value from an argument or a variable.
    pub fn parse(self, text: &str) -> Option<Value> {
        Some(match self {
            SettingKind::Bool => Value::Bool(parse_bool(text)?),
            // As files write it.
            SettingKind::List if text.trim_start().starts_with('[') => {
                Value::List(serde_json::from_str(text).ok()?)
            }
            SettingKind::List => Value::List(
                text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect(),
            ),
            SettingKind::Secret => Value::Secret(Secret::new(text)),
            _ => Value::Text(self.fits(text).then(|| text.to_owned())?),
        })
    }

    /// A value from a file.
    fn read(self, node: &Node) -> Option<Value> {
        Some(match (self, &node.data) {
            (SettingKind::Bool, Data::Bool(value)) => Value::Bool(*value),
            (SettingKind::List, Data::Array(nodes)) => Value::List(
                nodes
                    .iter()
                    .map(|node| match &node.data {
                        Data::Text(text) => Some(text.clone()),
                        _ => None,
                    })
                    .collect::<Option<_>>()?,
            ),
            (SettingKind::Secret, Data::Text(text)) => Value::Secret(Secret::new(text.as_str())),
            (SettingKind::Bool | SettingKind::List, _) => return None,
            (_, Data::Text(text)) => Value::Text(self.fits(text).then(|| text.clone())?),
            // `lock-timeout = 0` reads naturally; any other number would have no unit.
            (SettingKind::Duration, Data::Integer(0)) => Value::Text("0".to_owned()),
            _ => return None,
        })
    }

    /// A value from the store.
    pub fn of_json(self, json: &serde_json::Value) -> Option<Value> {
        match (self, json) {
            (SettingKind::Bool, serde_json::Value::Bool(value)) => Some(Value::Bool(*value)),
            (SettingKind::List, serde_json::Value::Array(items)) => items
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect::<Option<_>>()
                .map(Value::List),
            // No secret is ever in the store.
            (SettingKind::Bool | SettingKind::List | SettingKind::Secret, _) => None,
            (_, serde_json::Value::String(text)) => self.parse(text),
            _ => None,
        }
    }

    fn fits(self, text: &str) -> bool {
        match self {
            SettingKind::Duration => duration::parse(text).is_some(),
            SettingKind::Choice(words) => words.contains(&text),
            SettingKind::Context => text.parse::<crate::names::ContextName>().is_ok(),
            // An empty text overrides a weaker layer's URL with none.
            SettingKind::Url => text.trim().is_empty() || is_private_url(text.trim()),
            _ => true,
        }
    }
}

/// Whether a credential may be sent to an address.
fn is_private_url(url: &str) -> bool {
    !url.contains(char::is_whitespace)
        && agent_url(url).is_ok_and(|url| Site::of_url(&url).is_ok_and(|site| site.is_private()))
}

/// Boolean in the words that people use in variables.
pub(crate) fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// One setting. A `*` segment in the key matches any name.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// The key, for instance `session.idle` or `env.*`.
    pub key: &'static str,
    /// Kind of values.
    pub kind: SettingKind,
    /// The built-in value, written as an argument would be.
    pub default: Option<&'static str>,
    /// Whether a project's file may say it only once the project is trusted.
    pub needs_trust: bool,
    /// Whether only the user sets it: neither a session nor a change inside one. For programs that Sessile starts, and for
    /// files whose content it sends.
    pub is_users_own: bool,
    /// Description, in one sentence.
    pub about: &'static str,
}

impl Definition {
    /// A setting without a default that any file may say.
    pub const fn new(key: &'static str, kind: SettingKind, about: &'static str) -> Self {
        Definition { key, kind, default: None, needs_trust: false, is_users_own: false, about }
    }

    /// The same with a built-in value.
    #[must_use]
    pub const fn with_default(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    /// The same, but a project's file must be trusted before it can say it: for what can run a command, set a
    /// variable, name an endpoint or choose a credential.
    #[must_use]
    pub const fn needing_trust(mut self) -> Self {
        self.needs_trust = true;
        self
    }

    /// The same, but neither a session nor a change inside one sets it, and a project's file only if trusted: for what names
    /// a program to start, or a file to send.
    #[must_use]
    pub const fn set_by_user_only(mut self) -> Self {
        self.is_users_own = true;
        self.needing_trust()
    }

    /// Whether this is the definition of a key.
    pub fn matches(&self, segments: &[impl AsRef<str>]) -> bool {
        let mut own = self.key.split('.');
        let mut given = segments.iter().map(AsRef::as_ref);
        loop {
            match (own.next(), given.next()) {
                (None, None) => return true,
                (Some(own), Some(given)) if own == "*" || own == given => {}
                _ => return false,
            }
        }
    }

    /// Whether the key begins with these segments and goes on.
    pub(crate) fn is_below(&self, segments: &[String]) -> bool {
        let mut own = self.key.split('.');
        segments.iter().all(|given| own.next().is_some_and(|own| own == "*" || own == given))
            && own.next().is_some()
    }

    /// Whether the key has a `*` segment.
    pub fn is_pattern(&self) -> bool {
        self.key.contains('*')
    }

    /// The variable that says it, below the application's prefix; patterns have none.
    pub fn variable(&self) -> Option<String> {
        // Variables are inherited by every child, which no secret setting may be.
        (!self.is_pattern() && self.kind != SettingKind::Secret)
            .then(|| self.key.to_ascii_uppercase().replace(['.', '-'], "_"))
    }

    /// Value from a file, or the problem.
    pub fn read(&self, node: &Node, key: &SettingKey, document: &super::Document) -> Result<Value> {
        let found = || match (self.kind, &node.data) {
            (SettingKind::Url, Data::Text(text)) if document.is_quotable() => {
                crate::text::quoted(self.repeated(text))
            }
            _ => document.describe(node),
        };
        self.kind.read(node).ok_or_else(|| {
            Error::File(FileError::Value {
                place: document.place(node.offset).into(),
                // The definition's own key is the program's text, and may be shown.
                key: if document.hides_keys() { self.key.to_owned() } else { key.to_string() },
                expected: self.kind.expected(),
                found: found(),
            })
        })
    }

    /// Value from an argument or variable, or the problem.
    pub fn parse(&self, text: &str, place: impl Into<String>) -> Result<Value> {
        self.kind.parse(text).ok_or_else(|| {
            Error::Usage(UsageError::InvalidValue {
                place: place.into(),
                value: self.repeated(text),
                expected: self.kind.expected(),
            })
        })
    }

    /// Invalid value for an error message; a URL may contain a password.
    fn repeated(&self, text: &str) -> String {
        match self.kind {
            SettingKind::Url => crate::text::shortened(&without_user(text), 80),
            _ => crate::text::shortened(text, 80),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names_and_nothing_longer() {
        let env = Definition::new("env.*", SettingKind::Text, "");
        assert!(env.matches(&["env", "PATH"]));
        assert!(!env.matches(&["env"]));
        assert!(!env.matches(&["env", "A", "B"]));
    }

    #[test]
    fn the_variable_follows_from_the_key() {
        assert_eq!(
            Definition::new("session.idle", SettingKind::Text, "").variable().unwrap(),
            "SESSION_IDLE"
        );
        assert_eq!(Definition::new("env.*", SettingKind::Text, "").variable(), None);
    }

    #[test]
    fn kinds_refuse_what_does_not_fit() {
        assert_eq!(SettingKind::Bool.parse("maybe"), None);
        assert_eq!(SettingKind::Duration.parse("5"), None);
        assert_eq!(SettingKind::Choice(&["a", "b"]).parse("c"), None);
        assert_eq!(SettingKind::Context.parse("../x"), None);
        assert_eq!(SettingKind::List.parse(r#"["a", "b"]"#), Some(Value::List(vec!["a".into(), "b".into()])));
        assert_eq!(SettingKind::List.parse("[a"), None);
        assert_eq!(SettingKind::List.parse("a, b,"), Some(Value::List(vec!["a".into(), "b".into()])));
    }
}
