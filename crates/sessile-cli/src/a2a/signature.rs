//! Signatures of agent cards: JWS (RFC 7515) over the canonical JSON (RFC 8785) of the card, with keys of a JWK set.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, UnparsedPublicKey};
use serde_json::{Map, Value};
use sessile::text::{quoted, shortened};

/// Deepest nesting of a card that is canonicalized.
const MAX_DEPTH: usize = 64;

/// Result of checking one signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SignatureStatus {
    /// Valid signature by the key with this id, from this source.
    Verified {
        /// Id of the key.
        kid: String,
        /// Source of the key.
        source: String,
    },
    /// Signature that could not be checked, with the reason.
    Unverifiable(String),
    /// Signature that does not hold, with the reason.
    Invalid(String),
}

/// Source of JWK sets.
pub(crate) trait JwkSource {
    /// Set with the keys of a signature, and where it came from. `url` is what the signature names.
    fn keys(&self, url: Option<&str>) -> Result<(Value, String), String>;
}

/// Checks every signature of a card.
pub(crate) fn verify_card(card: &Value, keys: &dyn JwkSource) -> Vec<SignatureStatus> {
    let signatures = card.get("signatures").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if signatures.is_empty() {
        return Vec::new();
    }
    let payloads = payloads(card);
    signatures.iter().map(|one| verify(one, &payloads, keys)).collect()
}

fn verify(signature: &Value, payloads: &[String], keys: &dyn JwkSource) -> SignatureStatus {
    let invalid = |reason: &str| SignatureStatus::Invalid(reason.to_owned());
    let field = |name: &str| signature.get(name).and_then(Value::as_str);
    let (Some(protected), Some(encoded)) = (field("protected"), field("signature")) else {
        return invalid("the protected header or the signature is missing");
    };
    let header = URL_SAFE_NO_PAD.decode(protected).ok();
    let header = header.and_then(|text| sessile::json::from_slice::<Value>(&text).ok());
    let (Some(header), Ok(signed)) = (header, URL_SAFE_NO_PAD.decode(encoded)) else {
        return invalid("the protected header or the signature is not base64url");
    };
    let named = |name: &str| header.get(name).and_then(Value::as_str);
    let Some(algorithm) = named("alg") else { return invalid("the header has no alg") };
    if algorithm.eq_ignore_ascii_case("none") {
        return invalid("unsigned: alg is none");
    }
    // Extensions that change the meaning of a signature and are not understood make it invalid (RFC 7515, 4.1.11).
    if header.get("crit").is_some() {
        return invalid("the header has unsupported critical extensions");
    }
    if algorithm.starts_with("HS") {
        let reason = format!("{} requires a shared secret", quoted(algorithm));
        return SignatureStatus::Unverifiable(reason);
    }
    let kid = named("kid").unwrap_or_default();
    let (set, source) = match keys.keys(named("jku")) {
        Ok(found) => found,
        Err(reason) => return SignatureStatus::Unverifiable(reason),
    };
    let all = set.get("keys").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let is_named = |key: &&Value| {
        let id = key.get("kid").and_then(Value::as_str);
        // A set of one key needs no ids.
        id.map_or(all.len() == 1, |id| id == kid)
    };
    let candidates: Vec<&Value> = all.iter().filter(is_named).collect();
    if candidates.is_empty() {
        return SignatureStatus::Unverifiable(format!(
            "key {} not found in {source}",
            quoted(shortened(kid, 80))
        ));
    }
    let mut known = false;
    for key in candidates {
        for payload in payloads {
            let message = format!("{protected}.{}", URL_SAFE_NO_PAD.encode(payload));
            match check(algorithm, key, message.as_bytes(), &signed) {
                Some(true) => return SignatureStatus::Verified { kid: kid.to_owned(), source },
                Some(false) => known = true,
                None => {}
            }
        }
    }
    match known {
        true => invalid("the card was changed after it was signed, or another key signed it"),
        false => SignatureStatus::Unverifiable(format!(
            "alg {} is not supported",
            quoted(shortened(algorithm, 40))
        )),
    }
}

/// Whether a signature holds; `None` if the algorithm or the key is not supported.
pub(crate) fn check(algorithm: &str, key: &Value, message: &[u8], signed: &[u8]) -> Option<bool> {
    let text = |name: &str| key.get(name).and_then(Value::as_str);
    let bytes =
        |name: &str| text(name).and_then(|text| URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok());
    let curve = |name: &str| text("crv") == Some(name);
    let point = || -> Option<Vec<u8>> {
        let (x, y) = (bytes("x")?, bytes("y")?);
        Some([&[4][..], &x, &y].concat())
    };
    let rsa = |parameters: &'static signature::RsaParameters| -> Option<bool> {
        let (n, e) = (bytes("n")?, bytes("e")?);
        let components = signature::RsaPublicKeyComponents { n: &n, e: &e };
        Some(components.verify(parameters, message, signed).is_ok())
    };
    match algorithm {
        "ES256" if curve("P-256") => {
            let key = UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point()?);
            Some(key.verify(message, signed).is_ok())
        }
        "ES384" if curve("P-384") => {
            let key = UnparsedPublicKey::new(&signature::ECDSA_P384_SHA384_FIXED, point()?);
            Some(key.verify(message, signed).is_ok())
        }
        "EdDSA" | "Ed25519" if curve("Ed25519") => {
            let key = UnparsedPublicKey::new(&signature::ED25519, bytes("x")?);
            Some(key.verify(message, signed).is_ok())
        }
        "RS256" => rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
        "RS384" => rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
        "RS512" => rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
        "PS256" => rsa(&signature::RSA_PSS_2048_8192_SHA256),
        "PS384" => rsa(&signature::RSA_PSS_2048_8192_SHA384),
        "PS512" => rsa(&signature::RSA_PSS_2048_8192_SHA512),
        _ => None,
    }
}

/// Texts that a signature may be for: the card without its signatures, as it is and without empty values, which signers
/// leave out.
pub(super) fn payloads(card: &Value) -> Vec<String> {
    let mut card = card.clone();
    if let Some(fields) = card.as_object_mut() {
        fields.remove("signatures");
    }
    let mut texts = Vec::new();
    for form in [Some(card.clone()), without_empty(&card)].into_iter().flatten() {
        let mut text = String::new();
        if canonicalize(&form, &mut text, 0) && !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

fn without_empty(value: &Value) -> Option<Value> {
    match value {
        Value::Object(fields) => {
            let kept: Map<String, Value> = fields
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), without_empty(value)?)))
                .collect();
            (!kept.is_empty()).then(|| kept.into())
        }
        Value::Array(items) => {
            let kept: Vec<Value> = items.iter().filter_map(without_empty).collect();
            (!kept.is_empty()).then(|| kept.into())
        }
        Value::String(text) => (!text.is_empty()).then(|| value.clone()),
        other => Some(other.clone()),
    }
}

/// Writes canonical JSON (RFC 8785). Returns whether the value is not nested too deeply.
fn canonicalize(value: &Value, out: &mut String, depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
            // By UTF-16 code units, not by characters.
            sorted.sort_by(|(one, _), (two, _)| one.encode_utf16().cmp(two.encode_utf16()));
            out.push('{');
            for (at, (name, value)) in sorted.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                if !canonicalize(value, out, depth + 1) {
                    return false;
                }
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                if !canonicalize(item, out, depth + 1) {
                    return false;
                }
            }
            out.push(']');
        }
        Value::Number(number) => out.push_str(&canonical_number(number)),
        other => out.push_str(&other.to_string()),
    }
    true
}

/// Number as ECMAScript writes it.
fn canonical_number(number: &serde_json::Number) -> String {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else { return number.to_string() };
    let size = float.abs();
    match size {
        _ if float == 0.0 => "0".to_owned(),
        1e-6..1e21 => format!("{float}"),
        _ => {
            let text = format!("{float:e}");
            // ECMAScript writes a plus before a positive exponent.
            text.split_once('e').map_or(text.clone(), |(digits, exponent)| match exponent.starts_with('-') {
                true => format!("{digits}e{exponent}"),
                false => format!("{digits}e+{exponent}"),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{Ed25519KeyPair, KeyPair};
    use serde_json::json;

    use super::*;

    struct Keys(Value);

    impl JwkSource for Keys {
        fn keys(&self, _url: Option<&str>) -> Result<(Value, String), String> {
            Ok((self.0.clone(), "test".to_owned()))
        }
    }

    fn signed(alg: &str) -> (Value, Keys) {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap();
        let mut card = json!({"name": "a", "skills": [], "capabilities": {"streaming": true}});
        let protected = URL_SAFE_NO_PAD.encode(json!({"alg": alg, "kid": "k"}).to_string());
        let payload = r#"{"capabilities":{"streaming":true},"name":"a"}"#;
        let message = format!("{protected}.{}", URL_SAFE_NO_PAD.encode(payload));
        let signature = URL_SAFE_NO_PAD.encode(pair.sign(message.as_bytes()));
        card["signatures"] = json!([{"protected": protected, "signature": signature}]);
        let x = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
        (card, Keys(json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "k", "x": x}]})))
    }

    #[test]
    fn good_signature_is_verified_and_a_changed_card_is_not() {
        let (mut card, keys) = signed("EdDSA");
        assert!(matches!(verify_card(&card, &keys)[..], [SignatureStatus::Verified { .. }]));
        card["name"] = "b".into();
        assert!(matches!(verify_card(&card, &keys)[..], [SignatureStatus::Invalid(_)]));
    }

    #[test]
    fn unsigned_algorithm_is_invalid_in_every_spelling() {
        for alg in ["none", "None", "NONE"] {
            let (card, keys) = signed(alg);
            assert!(matches!(verify_card(&card, &keys)[..], [SignatureStatus::Invalid(_)]), "{alg}");
        }
        let (card, keys) = signed("HS256");
        assert!(matches!(verify_card(&card, &keys)[..], [SignatureStatus::Unverifiable(_)]));
    }

    #[test]
    fn json_is_canonical() {
        let mut text = String::new();
        let value =
            json!({"\u{20ac}": 1.0, "\r": 1e21, "1": 1e-7, "\u{1f600}": [true, null], "b": "\u{f}\"\n"});
        assert!(canonicalize(&value, &mut text, 0));
        let expected =
            "{\"\\r\":1e+21,\"1\":1e-7,\"b\":\"\\u000f\\\"\\n\",\"\u{20ac}\":1,\"\u{1f600}\":[true,null]}";
        assert_eq!(text, expected);
        let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
        assert!(!canonicalize(&deep, &mut String::new(), 0));
    }
}
