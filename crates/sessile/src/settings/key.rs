//! The key of a setting: `lock-timeout`, `session.idle`, `agents."a.b".url`.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::error::{Error, UsageError};

/// A key: one or more segments, written with dots between them as in TOML.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SettingKey(Vec<String>);

impl SettingKey {
    /// A key from its segments.
    pub fn new(segments: impl IntoIterator<Item = impl Into<String>>) -> Self {
        SettingKey(segments.into_iter().map(Into::into).collect())
    }

    /// The segments, at least one.
    pub fn segments(&self) -> &[String] {
        &self.0
    }
}

impl FromStr for SettingKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        // TOML's own grammar, so that a key is written in a command as in a file.
        let segments = toml_edit::Key::parse(text).map_err(|_| UsageError::InvalidName {
            what: "setting",
            name: crate::text::shortened(text, 80),
            reason: "expected a key such as lock-timeout or session.idle".into(),
        })?;
        Ok(SettingKey(segments.iter().map(|segment| segment.get().to_owned()).collect()))
    }
}

impl fmt::Display for SettingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, segment) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(".")?;
            }
            f.write_str(&toml_edit::Key::new(segment).display_repr())?;
        }
        Ok(())
    }
}

impl Serialize for SettingKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What is printed can be pasted back, whatever the segments are.
        #[test]
        fn a_printed_key_is_the_same_key(
            segments in prop::collection::vec("[a-z0-9_-]{0,6}|[ .\"'\\\\#=a\\[\\]]{0,6}|\\PC{0,4}|[\\x00-\\x7f]{0,3}", 1..5)
        ) {
            let key = SettingKey::new(segments);
            let printed = key.to_string();
            prop_assert!(!printed.contains('\x1b'));
            prop_assert_eq!(printed.parse::<SettingKey>().unwrap(), key);
        }

        #[test]
        fn any_text_is_a_key_or_refused(text in any::<String>()) {
            if let Ok(key) = text.parse::<SettingKey>() {
                prop_assert!(!key.segments().is_empty());
            }
        }
    }
}
