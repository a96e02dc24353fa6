//! Fuzz target: what a token endpoint answers.

use sessile::vault::Secret;

use super::fields::JsonFields;
use super::tokens::Tokens;

/// The answer of a token endpoint. An error repeats nothing of it.
pub fn token_response(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let body = Secret::new(text);
    let tokens = JsonFields::read(&body).and_then(|fields| Tokens::read(&fields));
    match tokens {
        Ok(tokens) => {
            let shown = format!("{tokens:?}");
            assert!(tokens.access.expose().len() < 12 || !shown.contains(tokens.access.expose()), "{shown}");
        }
        Err(error) => assert!(error.to_string().len() < 500, "{error}"),
    }
}
