//! Text that is used and never printed.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Deserializer};
use zeroize::Zeroizing;

/// Secret text. It cannot be printed or serialized; its memory is overwritten when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

/// Placeholder of a secret in output.
pub const MASK: &str = "********";

impl Secret {
    /// Secret of this text.
    pub fn new(text: impl Into<String>) -> Self {
        Secret(Zeroizing::new(text.into()))
    }

    /// Text itself, for its recipient.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Secret::new)
    }
}

/// Base 64 forms of a text at every alignment: three forms, without the letters at the ends that depend
/// on the bytes beside the text.
pub fn base64_forms(text: &str) -> Vec<Zeroizing<Vec<u8>>> {
    let form = |before: usize| {
        let mut padded = Zeroizing::new(vec![0u8; before]);
        padded.extend_from_slice(text.as_bytes());
        let encoded = Zeroizing::new(STANDARD_NO_PAD.encode(padded.as_slice()));
        // The first letters of a shifted form mix in the bytes before the text: 2 after one byte, 3 after
        // two.
        let first = [0, 2, 3][before];
        // Only whole groups of three bytes: the last letters of a part depend on what follows.
        let last = padded.len() / 3 * 4;
        encoded.as_bytes().get(first..last).map(|part| Zeroizing::new(part.to_vec()))
    };
    (0..3).filter_map(form).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_of_secret_is_masked() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "******** Some(********)");
        assert_eq!(secret.expose(), "hunter2");
    }

    #[test]
    fn base64_form_occurs_in_the_base64_of_any_text_with_the_secret() {
        let forms = base64_forms("hunter2hunter2");
        for (before, after) in [("", ""), ("a", "b"), ("ab", "cd"), ("user:", "")] {
            let text = STANDARD_NO_PAD.encode(format!("{before}hunter2hunter2{after}"));
            let has = |form: &[u8]| text.as_bytes().windows(form.len()).any(|part| part == form);
            assert!(forms.iter().any(|form| has(form)), "{text}");
        }
    }
}
