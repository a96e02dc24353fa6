//! Fuzz target: a notification's JWT.

use super::jwt::JwtVerifier;

/// Time at which the tokens of the corpus are valid, in seconds.
const NOW: i64 = 1_700_000_000;

/// A JWT, a JWK set and a body, each but the last on a line of its own.
pub fn notification_jwt(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut parts = text.splitn(3, '\n');
    let (Some(token), Some(set), Some(body)) = (parts.next(), parts.next(), parts.next()) else { return };
    let Ok(set) = sessile::json::from_str::<serde_json::Value>(set) else { return };
    let verifier = |audience: Option<&str>| {
        let set = set.clone();
        JwtVerifier::new(move || Ok(set.clone()), audience.map(str::to_owned))
    };
    let (Ok(open), Ok(other)) = (verifier(None), verifier(Some("somebody else's"))) else { return };
    if open.verify_at(token, body, NOW).is_ok() {
        // The signature is for the first two parts, and the claims for this time.
        let changed = format!("e30.{token}");
        assert!(open.verify_at(&changed, body, NOW).is_err());
        if let Some((_, rest)) = token.split_once('.') {
            assert!(open.verify_at(&format!("e30.{rest}"), body, NOW).is_err(), "another header is verified");
        }
        assert!(open.verify_at(token, body, i64::MAX).is_err(), "a token without expiry is accepted");
    }
    assert!(other.verify_at(token, body, NOW).is_err(), "valid for another audience");
}
