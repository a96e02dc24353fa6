//! Form bodies: `application/x-www-form-urlencoded`.

use sessile_wire::percent::{encode_form, encode_pairs_into};
use zeroize::Zeroizing;

/// The pairs as one text, which may hold secrets and is overwritten when it is dropped.
pub(crate) fn form(pairs: &[(&str, &str)]) -> Zeroizing<String> {
    // Enough for all of it, so that growing leaves no copy behind.
    let length: usize = pairs.iter().map(|(name, value)| 3 * (name.len() + value.len()) + 2).sum();
    let mut out = Zeroizing::new(String::with_capacity(length));
    encode_pairs_into(pairs, &mut out);
    out
}

/// The header by which a client says its name and password, each encoded like a form's (RFC 6749, 2.3.1).
pub(crate) fn basic(name: &str, password: &str) -> Zeroizing<String> {
    use base64::Engine;
    let mut pair = Zeroizing::new(String::with_capacity(3 * (name.len() + password.len()) + 1));
    encode_form(name, &mut pair);
    pair.push(':');
    encode_form(password, &mut pair);
    let mut header = Zeroizing::new(String::with_capacity(6 + pair.len().div_ceil(3) * 4));
    header.push_str("Basic ");
    base64::engine::general_purpose::STANDARD.encode_string(pair.as_bytes(), &mut header);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_characters_of_a_form_are_encoded() {
        let pairs = [("a b", "c&d=e"), ("x", "caf\u{e9}+~%"), ("", "")];
        assert_eq!(*form(&pairs), "a+b=c%26d%3De&x=caf%C3%A9%2B%7E%25&=");
        assert_eq!(*form(&[]), "");
    }

    #[test]
    fn a_colon_in_a_name_does_not_end_it() {
        // printf 'robot%%3A1:a+b' | base64
        assert_eq!(*basic("robot:1", "a b"), "Basic cm9ib3QlM0ExOmErYg==");
    }
}
