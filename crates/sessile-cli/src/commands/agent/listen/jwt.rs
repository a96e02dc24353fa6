//! JWTs of notifications (RFC 7519), signed by a key of a JWK set.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use sessile_wire::hex::hex;

use crate::a2a::signature;

/// Clocks of two machines may differ by so much.
const LEEWAY: i64 = 60;

/// Age of a JWT that has no expiry of its own.
const MAX_AGE: i64 = 300;

/// Pause between two fetches of the JWK set because of an unknown key.
const REFETCH: Duration = Duration::from_secs(60);

/// Number of ids of JWTs that are remembered, so that none counts twice.
const MAX_IDS: usize = 10_000;

/// Verifier of JWTs.
pub(super) struct JwtVerifier {
    fetch: Box<dyn Fn() -> Result<Value, String> + Send + Sync>,
    keys: Mutex<(Value, Instant)>,
    audience: Option<String>,
    ids: Mutex<VecDeque<String>>,
}

impl JwtVerifier {
    /// Fetches the JWK set, which must exist at the start.
    pub(super) fn new(
        fetch: impl Fn() -> Result<Value, String> + Send + Sync + 'static,
        audience: Option<String>,
    ) -> Result<Self, String> {
        let keys = Mutex::new((fetch()?, Instant::now()));
        Ok(JwtVerifier { fetch: Box::new(fetch), keys, audience, ids: Mutex::default() })
    }

    /// Fails unless a JWT is valid now, for this body.
    #[expect(
        clippy::disallowed_methods,
        reason = "a receiver runs for days, and the call's clock stops at its start"
    )]
    pub(super) fn verify(&self, token: &str, body: &str) -> Result<(), &'static str> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.verify_at(token, body, i64::try_from(now.as_secs()).unwrap_or(i64::MAX))
    }

    pub(super) fn verify_at(&self, token: &str, body: &str, now: i64) -> Result<(), &'static str> {
        let mut parts = token.split('.');
        let (Some(header), Some(payload), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err("the JWT is malformed");
        };
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| "the JWT is not base64url");
        let parse = |part: &str| {
            sessile::json::from_slice::<Value>(&decode(part)?).map_err(|_| "the JWT is not JSON")
        };
        let (head, claims, signature) = (parse(header)?, parse(payload)?, decode(signature)?);
        let algorithm = head["alg"].as_str().ok_or("the JWT names no algorithm")?;
        // Extensions that are not understood make it invalid (RFC 7515, 4.1.11).
        if head.get("crit").is_some() {
            return Err("the JWT has critical extensions");
        }
        // By the first two parts as they came: the signature is for those bytes.
        let message = &token[..header.len() + 1 + payload.len()];
        if !self.is_signed(algorithm, head["kid"].as_str(), message.as_bytes(), &signature) {
            return Err("no key of the JWK set signed the JWT");
        }
        self.check_claims(&claims, body, now)
    }

    fn is_signed(&self, algorithm: &str, kid: Option<&str>, message: &[u8], signed: &[u8]) -> bool {
        let mut known = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let is_valid = |set: &Value| {
            let keys = set["keys"].as_array().map_or(&[][..], Vec::as_slice);
            let mut named = keys.iter().filter(|key| kid.is_none() || key["kid"].as_str() == kid);
            named.any(|key| signature::check(algorithm, key, message, signed) == Some(true))
        };
        if is_valid(&known.0) {
            return true;
        }
        // The agent may have new keys. Requests of others must not make this machine fetch at every call.
        if known.1.elapsed() < REFETCH {
            return false;
        }
        known.1 = Instant::now();
        match (self.fetch)() {
            Ok(set) => {
                known.0 = set;
                is_valid(&known.0)
            }
            Err(_) => false,
        }
    }

    fn check_claims(&self, claims: &Value, body: &str, now: i64) -> Result<(), &'static str> {
        let (expires, issued, begins) =
            (claims["exp"].as_i64(), claims["iat"].as_i64(), claims["nbf"].as_i64());
        match (expires, issued) {
            (Some(expires), _) if expires.saturating_add(LEEWAY) < now => return Err("the JWT has expired"),
            (None, Some(issued)) if now.saturating_sub(issued) > MAX_AGE => return Err("the JWT is too old"),
            (None, None) => return Err("the JWT has neither an expiry nor a time of issue"),
            _ => {}
        }
        if issued.max(begins).is_some_and(|begins| begins.saturating_sub(LEEWAY) > now) {
            return Err("the JWT is not valid yet");
        }
        if let Some(audience) = &self.audience {
            let is_meant = |value: &Value| value.as_str() == Some(audience);
            let is_in = |value: &Value| value.as_array().is_some_and(|all| all.iter().any(is_meant));
            if !is_meant(&claims["aud"]) && !is_in(&claims["aud"]) {
                return Err("the JWT is for another audience");
            }
        }
        // Some agents sign the body this way; the signature of others says nothing about it.
        if let Some(digest) = claims["request_body_sha256"].as_str() {
            let actual = hex(ring::digest::digest(&ring::digest::SHA256, body.as_bytes()).as_ref());
            if !digest.eq_ignore_ascii_case(&actual) {
                return Err("the JWT is for another body");
            }
        }
        // Without an id the claims and the body count once: an agent may send two events in the same second.
        let id = claims["jti"].as_str().map_or_else(
            || {
                let sent = format!("{claims}\n{body}");
                hex(ring::digest::digest(&ring::digest::SHA256, sent.as_bytes()).as_ref())
            },
            |id| format!("jti {id}"),
        );
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        if ids.contains(&id) {
            return Err("the JWT was used before");
        }
        ids.push_back(id);
        if ids.len() > MAX_IDS {
            ids.pop_front();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{Ed25519KeyPair, KeyPair};
    use serde_json::json;

    use super::*;

    fn key() -> (Ed25519KeyPair, Value) {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap();
        let x = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
        (pair, json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "k", "x": x}]}))
    }

    fn jwt(pair: &Ed25519KeyPair, alg: &str, claims: &Value) -> String {
        let header = URL_SAFE_NO_PAD.encode(json!({"alg": alg, "kid": "k"}).to_string());
        let message = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
        let signature = URL_SAFE_NO_PAD.encode(pair.sign(message.as_bytes()).as_ref());
        format!("{message}.{signature}")
    }

    #[test]
    fn jwt_counts_once_while_it_is_valid() {
        let (pair, set) = key();
        let verifier = JwtVerifier::new(move || Ok(set.clone()), Some("me".into())).unwrap();
        let sign = |claims: Value| jwt(&pair, "EdDSA", &claims);
        let good = sign(json!({"aud": ["me"], "iat": 1000, "exp": 1100, "jti": "1"}));
        assert_eq!(verifier.verify_at(&good, "", 1010), Ok(()));
        assert_eq!(verifier.verify_at(&good, "", 1011), Err("the JWT was used before"));
        for (claims, reason) in [
            (json!({"aud": "me", "exp": 900}), "the JWT has expired"),
            (json!({"aud": "me", "iat": 100}), "the JWT is too old"),
            (json!({"aud": "me"}), "the JWT has neither an expiry nor a time of issue"),
            (json!({"aud": "me", "iat": 2000}), "the JWT is not valid yet"),
            (json!({"aud": "you", "iat": 1000}), "the JWT is for another audience"),
            (json!({"aud": "me", "iat": 1000, "request_body_sha256": "00"}), "the JWT is for another body"),
        ] {
            assert_eq!(verifier.verify_at(&sign(claims), "body", 1010), Err(reason));
        }
        let digest = "230d8358dc8e8890b4c58deeb62912ee2f20357ae92a5cc861b98e68fe31acb5";
        let bound = sign(json!({"aud": "me", "iat": 1000, "request_body_sha256": digest}));
        assert_eq!(verifier.verify_at(&bound, "body", 1010), Ok(()));
        assert_eq!(verifier.verify_at(&bound, "body", 1011), Err("the JWT was used before"), "without an id");
    }

    #[test]
    fn jwt_without_a_signature_of_the_key_set_is_refused() {
        let ((pair, _), (other, set)) = (key(), key());
        let verifier = JwtVerifier::new(move || Ok(set.clone()), None).unwrap();
        let claims = json!({"iat": 1000});
        let unsigned = "no key of the JWK set signed the JWT";
        assert_eq!(verifier.verify_at(&jwt(&other, "EdDSA", &claims), "", 1000), Ok(()));
        assert_eq!(verifier.verify_at(&jwt(&pair, "EdDSA", &claims), "", 1000), Err(unsigned));
        for alg in ["none", "HS256", "RS256"] {
            assert_eq!(verifier.verify_at(&jwt(&other, alg, &claims), "", 1000), Err(unsigned), "{alg}");
        }
        for malformed in ["", "a.b", "a.b.c.d", "!.!.!", "e30.e30."] {
            assert!(verifier.verify_at(malformed, "", 1000).is_err(), "{malformed}");
        }
    }
}
