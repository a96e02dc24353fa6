//! The fields of a JSON object that may hold tokens.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use sessile::vault::Secret;

use super::OAuthError;

/// Maximum lifetime: a century, so that adding it to a time cannot overflow.
const LONGEST: u64 = 100 * 366 * 24 * 60 * 60;

/// An object whose values are still where they were read. A field that is `null` or empty is not there.
pub(super) struct JsonFields<'a>(HashMap<String, &'a RawValue>);

impl<'a> JsonFields<'a> {
    /// The fields of an answer.
    pub(super) fn read(body: &'a Secret) -> Result<Self, OAuthError> {
        // The parser's own words would repeat what it read.
        sessile::json::from_str(body.expose())
            .map(JsonFields)
            .map_err(|_| OAuthError::Malformed("not a JSON object".to_owned()))
    }

    /// A text.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, OAuthError> {
        Ok(self.get::<String>(name, "a text")?.filter(|text| !text.is_empty()))
    }

    /// Secret text field.
    pub(super) fn secret(&self, name: &str) -> Result<Option<Secret>, OAuthError> {
        Ok(self.get::<Secret>(name, "a text")?.filter(|secret| !secret.is_empty()))
    }

    /// Whether a field is `true`.
    pub(super) fn is_true(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|raw| raw.get() == "true")
    }

    /// A number of seconds, which some servers write as a text.
    pub(super) fn seconds(&self, name: &str) -> Result<Option<u64>, OAuthError> {
        let Some(raw) = self.0.get(name).map(|raw| raw.get()).filter(|raw| *raw != "null") else {
            return Ok(None);
        };
        let digits = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(raw);
        match digits.trim().parse::<u64>() {
            Ok(seconds) => Ok(Some(seconds.min(LONGEST))),
            Err(_) => Err(OAuthError::Malformed(format!("{name} is not a number of seconds"))),
        }
    }

    fn get<T: for<'de> Deserialize<'de>>(&self, name: &str, kind: &str) -> Result<Option<T>, OAuthError> {
        let Some(raw) = self.0.get(name) else { return Ok(None) };
        serde_json::from_str(raw.get()).map_err(|_| OAuthError::Malformed(format!("{name} is not {kind}")))
    }
}

/// The value of a field that must be there.
pub(super) fn required<T>(name: &str, value: Option<T>) -> Result<T, OAuthError> {
    value.ok_or_else(|| OAuthError::Malformed(format!("{name} is missing")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_numbers_or_texts_of_digits() {
        let body = Secret::new(
            r#"{"a": 3600, "b": "60", "c": 18446744073709551615, "d": -1, "e": 1.5, "f": "soon", "g": null, "h": []}"#,
        );
        let fields = JsonFields::read(&body).unwrap();
        let read = |name| fields.seconds(name).map_err(|error| error.to_string());
        assert_eq!([read("a"), read("b"), read("c")], [Ok(Some(3600)), Ok(Some(60)), Ok(Some(LONGEST))]);
        assert_eq!([read("g"), read("absent")], [Ok(None), Ok(None)]);
        for name in ["d", "e", "f", "h"] {
            assert!(read(name).unwrap_err().ends_with(&format!(": {name} is not a number of seconds")));
        }
    }

    #[test]
    fn unexpected_field_is_named_without_its_value() {
        for body in [r#""hunter2""#, r#"["hunter2"]"#, "hunter2", "", r#"{"a": "hunter2""#] {
            let told = JsonFields::read(&Secret::new(body)).err().unwrap().to_string();
            assert!(told.ends_with("not a JSON object"), "{told}");
        }
        let body = Secret::new(r#"{"a": ["hunter2"], "b": "", "c": null, "d": "\u0041"}"#);
        let fields = JsonFields::read(&body).unwrap();
        assert!(fields.text("a").unwrap_err().to_string().ends_with(": a is not a text"));
        assert_eq!(fields.secret("a").unwrap_err(), OAuthError::Malformed("a is not a text".to_owned()));
        assert_eq!(fields.text("b"), Ok(None));
        assert_eq!(fields.secret("c").unwrap(), None);
        assert_eq!(fields.text("d"), Ok(Some("A".to_owned())));
        assert!(
            required("b", fields.text("b").unwrap()).unwrap_err().to_string().ends_with(": b is missing")
        );
    }
}
