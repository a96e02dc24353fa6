//! Secrets of the requests of a call, so that an agent that repeats one puts it into no log and no error text.
//!
//! Found in the forms in which programs repeat a secret: as it is, in a JSON string, in a query, in base 64. An agent
//! that transforms a secret otherwise is not stopped by this: it has the secret anyway.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sessile::secrets::looks_secret;
use sessile_wire::secret::base64_forms;
use zeroize::Zeroizing;

use crate::http::form;

/// Stand-in for a secret.
pub(crate) const REDACTED: &str = "[redacted]";

/// Shorter secrets would be found in ordinary words.
const SHORTEST: usize = 4;

/// Shorter base 64 would be found in other data.
const SHORTEST_BASE64: usize = 8;

/// Fields of the protocol that are named like secrets and hold none.
const PLAIN_FIELDS: [&str; 4] = ["pageToken", "nextPageToken", "tokenUrl", "securitySchemes"];

/// Secrets of the requests of a call.
#[derive(Default)]
pub(crate) struct SentSecrets {
    forms: Mutex<SecretForms>,
}

/// Texts to look for.
#[derive(Default)]
struct SecretForms {
    plain: Vec<Zeroizing<String>>,
    encoded: Vec<Zeroizing<String>>,
}

impl SecretForms {
    fn all(&self) -> impl Iterator<Item = &str> {
        self.plain.iter().chain(&self.encoded).map(|form| form.as_str())
    }
}

impl std::fmt::Debug for SentSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SentSecrets").finish_non_exhaustive()
    }
}

impl SentSecrets {
    /// Adds a secret.
    pub(crate) fn add(&self, secret: &str) {
        let mut forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        if secret.len() < SHORTEST || forms.plain.iter().any(|form| form.as_str() == secret) {
            return;
        }
        forms.plain.push(Zeroizing::new(secret.to_owned()));
        let json = Zeroizing::new(Value::String(secret.to_owned()).to_string());
        let escaped = json.trim_start_matches('"').trim_end_matches('"');
        let query = form(&[("", secret)]);
        let mut all = vec![Zeroizing::new(escaped.to_owned())];
        all.push(Zeroizing::new(query.trim_start_matches('=').to_owned()));
        for form in base64_forms(secret).iter().filter(|form| form.len() >= SHORTEST_BASE64) {
            let form = Zeroizing::new(String::from_utf8_lossy(form).into_owned());
            all.push(Zeroizing::new(form.replace('+', "-").replace('/', "_")));
            all.push(form);
        }
        for form in all {
            if !forms.all().any(|known| known == form.as_str()) {
                forms.encoded.push(form);
            }
        }
    }

    /// Adds the secret of a header that carries a credential.
    pub(crate) fn add_header(&self, name: &str, value: &str) {
        self.add(value);
        if !name.to_ascii_lowercase().ends_with("authorization") {
            return;
        }
        let Some((scheme, secret)) = value.split_once(' ') else { return };
        self.add(secret);
        if scheme.eq_ignore_ascii_case("basic")
            && let Ok(login) = STANDARD.decode(secret.trim())
            && let Ok(login) = String::from_utf8(login).map(Zeroizing::new)
            && let Some((_, password)) = login.split_once(':')
        {
            self.add(password);
        }
    }

    /// Adds the texts of a body whose fields are named like secrets.
    pub(crate) fn add_fields(&self, body: &Value) {
        match body {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match value.as_str() {
                        Some(secret) if is_secret_field(name) => self.add(secret),
                        _ => self.add_fields(value),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.add_fields(item)),
            _ => {}
        }
    }

    /// Places of the secrets in a text, in order and apart from each other.
    pub(crate) fn places(&self, text: &str) -> Vec<Range<usize>> {
        let forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found: Vec<Range<usize>> = forms
            .all()
            .flat_map(|form| text.match_indices(form).map(|(at, found)| at..at + found.len()))
            .collect();
        found.sort_by_key(|place| place.start);
        let mut places: Vec<Range<usize>> = Vec::new();
        for place in found {
            match places.last_mut() {
                Some(last) if place.start < last.end => last.end = last.end.max(place.end),
                _ => places.push(place),
            }
        }
        places
    }

    /// Length of the end of a text that may be the beginning of a secret as it is.
    pub(crate) fn partial_end(&self, text: &str) -> usize {
        let forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        let longest = |form: &str| {
            let is_end = |length: &usize| form.get(..*length).is_some_and(|begin| text.ends_with(begin));
            (1..form.len()).rev().find(is_end).unwrap_or(0)
        };
        forms.plain.iter().map(|form| longest(form.as_str())).max().unwrap_or(0)
    }

    /// Text without the secrets.
    pub(crate) fn redact(&self, text: &str) -> String {
        let (mut out, mut from) = (String::with_capacity(text.len()), 0);
        for place in self.places(text) {
            out.push_str(&text[from..place.start]);
            out.push_str(REDACTED);
            from = place.end;
        }
        out.push_str(&text[from..]);
        out
    }

    /// The same for a text that was cut off, maybe in the middle of a secret.
    pub(crate) fn redact_excerpt(&self, text: &str) -> String {
        let text = self.redact(text);
        let whole = text.trim_end_matches(['.', '\u{2026}']);
        match self.partial_end(whole) {
            length if length >= SHORTEST => format!("{}{REDACTED}", &whole[..whole.len() - length]),
            _ => text,
        }
    }
}

/// Whether a field of the protocol is named like a secret and holds one.
pub(crate) fn is_secret_field(name: &str) -> bool {
    looks_secret(name) && !PLAIN_FIELDS.contains(&name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secret_is_redacted_in_every_form() {
        let secrets = SentSecrets::default();
        secrets.add_header("Authorization", "Bearer hunter2\"hunter3");
        let encoded = STANDARD.encode("x hunter2\"hunter3 y");
        for text in [
            "say hunter2\"hunter3 now",
            r#"{"a":"hunter2\"hunter3"}"#,
            "/?t=hunter2%22hunter3&x=1",
            encoded.as_str(),
            "cut: Bearer hunter2\u{2026}",
        ] {
            let shown = secrets.redact_excerpt(text);
            assert!(shown.contains(REDACTED) && !shown.contains("hunter"), "{shown}");
            assert_ne!(shown, text);
        }
        assert_eq!(secrets.redact("hunter's text"), "hunter's text");
    }

    #[test]
    fn basic_password_and_tokens_of_a_body_are_secrets() {
        let secrets = SentSecrets::default();
        secrets.add_header("authorization", &format!("Basic {}", STANDARD.encode("ann:pass:word")));
        secrets.add_fields(&json!({"push": [{"token": "t0k3n"}], "text": "plain", "pageToken": "page2"}));
        assert_eq!(
            secrets.redact("ann pass:word t0k3n plain page2"),
            "ann [redacted] [redacted] plain page2"
        );
        assert!(!format!("{secrets:?}").contains("t0k3n"));
    }

    #[test]
    fn overlapping_secrets_are_redacted_once() {
        let secrets = SentSecrets::default();
        secrets.add("abcdef");
        secrets.add("defghi");
        secrets.add("a");
        assert_eq!(secrets.redact("abcdefghi a"), "[redacted] a");
        assert_eq!((secrets.partial_end("x abcd"), secrets.partial_end("none")), (4, 0));
    }
}
