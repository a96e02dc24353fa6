//! JSON bodies, and their errors in terms of JSON, because clients do not know this program's types.

use axum::body::Body;
use axum::extract::FromRequest;
use axum::http::Request;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;
use sessile::text::shortened;

use super::app::AppState;
use super::input;
use super::problem::ApiProblem;
use crate::json_text::JsonText;

/// A body that is an object of a known form.
#[derive(Debug)]
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<AppState> for Json<T> {
    type Rejection = ApiProblem;

    async fn from_request(request: Request<Body>, app: &AppState) -> Result<Self, ApiProblem> {
        let (head, body) = request.into_parts();
        let bytes = input::taken(&head.headers, body, app).await?;
        // The parser takes an array of the members for an object.
        if let Some(other) = other_than_object(&bytes)
            // Text that is not JSON at all gets the parser's message, with its line and column.
            && serde_json::from_slice::<IgnoredAny>(&bytes).is_ok()
        {
            return Err(ApiProblem::invalid(format!("the body must be a JSON object, not {other}")));
        }
        serde_json::from_slice(&bytes).map(Json).map_err(|error| not_expected(&error))
    }
}

/// A body that is any JSON.
#[derive(Debug)]
pub(crate) struct AnyJson(pub(crate) JsonText);

impl FromRequest<AppState> for AnyJson {
    type Rejection = ApiProblem;

    async fn from_request(request: Request<Body>, app: &AppState) -> Result<Self, ApiProblem> {
        let (head, body) = request.into_parts();
        let bytes = input::taken(&head.headers, body, app).await?;
        let text =
            String::from_utf8(bytes).map_err(|_| ApiProblem::invalid("invalid body: not valid UTF-8"))?;
        JsonText::parse(&text).map(AnyJson).map_err(|error| not_expected(&error))
    }
}

/// Parts of a body that are any JSON, checked and kept as they were sent.
pub(crate) fn as_sent(parts: &[Box<RawValue>]) -> Result<Vec<JsonText>, ApiProblem> {
    let parsed = parts.iter().map(|part| JsonText::parse(part.get())).collect::<Result<_, _>>();
    parsed.map_err(|error| not_expected(&error))
}

fn not_expected(error: &serde_json::Error) -> ApiProblem {
    let detail = shortened(&in_words_of_json(&error.to_string()), 300);
    ApiProblem::invalid(format!("invalid body: {detail}"))
}

/// Kind of JSON that a text begins, unless it is an object.
fn other_than_object(bytes: &[u8]) -> Option<&'static str> {
    match bytes.trim_ascii_start().first()? {
        b'{' => None,
        b'[' => Some("an array"),
        b'"' => Some("a string"),
        b't' | b'f' => Some("a boolean"),
        b'n' => Some("null"),
        _ => Some("a number"),
    }
}

/// Names of the parser for the input, and those of JSON.
const CAME: &[(&str, &str)] = &[
    ("invalid type: sequence", "invalid type: array"),
    ("invalid type: map", "invalid type: object"),
    ("unknown variant ", "unknown value "),
];

/// Names of the parser for what it expected, and those of JSON.
const EXPECTED: &[(&str, &str)] = &[
    ("i64", "a whole number"),
    ("a map", "an object"),
    ("a sequence", "an array"),
    ("variant identifier", "a string"),
];

/// Error of the parser in terms of JSON, without names of types. Quoted input stays unchanged.
fn in_words_of_json(text: &str) -> String {
    const MARK: &str = ", expected ";
    // The last one, because the input that the parser quotes may contain the same words.
    let (came, expected) = match text.rfind(MARK) {
        Some(at) => text.split_at(at + MARK.len()),
        None => (text, ""),
    };
    let replaced = |text: &str, words: &[(&str, &str)]| {
        let found = words.iter().find_map(|(theirs, ours)| Some((ours, text.strip_prefix(theirs)?)));
        found.map_or_else(|| text.to_owned(), |(ours, rest)| format!("{ours}{rest}"))
    };
    let expected = match expected.strip_prefix("struct ") {
        Some(name) => format!("an object{}", name.find(" at line ").map_or("", |at| &name[at..])),
        None => replaced(expected, EXPECTED),
    };
    replaced(came, CAME) + &expected
}

#[cfg(test)]
mod tests {
    use super::in_words_of_json;

    #[test]
    fn only_type_names_of_the_parser_are_replaced() {
        for (theirs, ours) in [
            (
                "invalid type: map, expected a sequence at line 1",
                "invalid type: object, expected an array at line 1",
            ),
            (
                "unknown variant `map, expected i64`, expected `a` or `b`",
                "unknown value `map, expected i64`, expected `a` or `b`",
            ),
            (
                "invalid type: null, expected struct New with 2 elements at line 1 column 4",
                "invalid type: null, expected an object at line 1 column 4",
            ),
            ("missing field `token`", "missing field `token`"),
        ] {
            assert_eq!(in_words_of_json(theirs), ours);
        }
    }
}
