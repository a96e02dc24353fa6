//! The value of a setting.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::secrets::has_url_password;
use crate::secrets::looks_secret;
use sessile_wire::secret::{MASK, Secret};

/// A value, checked against its setting's [`SettingKind`](super::SettingKind).
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// Yes or no.
    Bool(bool),
    /// A whole number; no setting takes one, a tool's binding may.
    Integer(i64),
    /// Text; also durations and choices, as they were written.
    Text(String),
    /// A list of words.
    List(Vec<String>),
    /// A secret. It is used, never shown.
    Secret(Secret),
}

impl Value {
    /// The text, for kinds that are text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Value {
    /// Value for display: masked if its name suggests a secret, or if a URL in it has a password.
    #[must_use]
    pub fn masked_if_secret(self, name: &str) -> Self {
        match self {
            Value::Text(text) if looks_secret(name) || has_url_password(&text) => {
                Value::Secret(Secret::new(text))
            }
            other => other,
        }
    }

    /// Whether a URL in it has a password.
    pub(crate) fn has_url_password(&self) -> bool {
        match self {
            Value::Text(text) => has_url_password(text),
            Value::List(words) => words.iter().any(|word| has_url_password(word)),
            _ => false,
        }
    }

    /// The same for the value of a setting: variables are named by people.
    #[must_use]
    pub fn masked_for(self, key: &super::SettingKey) -> Self {
        match key.segments() {
            [table, name] if table == "env" => self.masked_if_secret(name),
            _ if self.has_url_password() => Value::Secret(Secret::new(self.to_string())),
            _ => self,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => write!(f, "{value}"),
            Value::Integer(value) => write!(f, "{value}"),
            Value::Text(text) => f.write_str(text),
            Value::List(items) => f.write_str(&items.join(",")),
            Value::Secret(_) => f.write_str(MASK),
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Through `Display`, which masks secrets.
        write!(f, "{:?}", self.to_string())
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Bool(value) => value.serialize(serializer),
            Value::Integer(value) => value.serialize(serializer),
            Value::Text(text) => text.serialize(serializer),
            Value::List(items) => items.serialize(serializer),
            Value::Secret(_) => MASK.serialize(serializer),
        }
    }
}
