//! Percent-encoding of text in URLs and forms.

use percent_encoding::{
    AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode_str, percent_encode, utf8_percent_encode,
};

/// Bytes that are encoded in one segment of a path or one value of a query: all but the unreserved ones of RFC 3986.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Bytes that are encoded in a path whose slashes stay.
// The characters that end a path or begin an escape in the URI of a database.
const PATH: &AsciiSet = &CONTROLS.add(b'%').add(b'?').add(b'#');

/// Bytes that are encoded in a form. The space stays here, for it becomes a plus sign.
const FORM: &AsciiSet = &NON_ALPHANUMERIC.remove(b'*').remove(b'-').remove(b'.').remove(b'_').remove(b' ');

/// Encodes a text as one segment of a path or one value of a query.
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, COMPONENT).to_string()
}

/// Encodes an id as one segment of a path, which it can neither leave nor end. Returns `None` for what has no such encoding:
/// servers resolve segments of dots alone, encoded or not.
pub fn encode_segment(id: &str) -> Option<String> {
    let is_dots = id.bytes().all(|byte| byte == b'.');
    (!is_dots).then(|| encode(id))
}

/// Encodes a path, which may hold any bytes. Its slashes stay.
pub fn encode_path(path: &[u8]) -> String {
    percent_encode(path, PATH).to_string()
}

/// Appends a name or value as `application/x-www-form-urlencoded`. It allocates nothing but what `out` grows by, so that a
/// caller with a secret knows where copies are.
pub fn encode_form(text: &str, out: &mut String) {
    for piece in utf8_percent_encode(text, FORM) {
        for (number, plain) in piece.split(' ').enumerate() {
            if number > 0 {
                out.push('+');
            }
            out.push_str(plain);
        }
    }
}

/// Encodes pairs as a query or a form.
pub fn encode_pairs(pairs: &[(&str, &str)]) -> String {
    let mut out = String::new();
    encode_pairs_into(pairs, &mut out);
    out
}

/// Appends pairs as a query or a form. It allocates nothing but what `out` grows by.
pub fn encode_pairs_into(pairs: &[(&str, &str)], out: &mut String) {
    for (name, value) in pairs {
        if !out.is_empty() {
            out.push('&');
        }
        encode_form(name, out);
        out.push('=');
        encode_form(value, out);
    }
}

/// Decodes `%20` and the like. Returns `None` if a percent sign is not followed by two digits.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut rest = text.as_bytes();
    // `percent_decode_str` keeps an invalid sequence as it is, so it is checked before.
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        if !rest.get(at + 1..at + 3)?.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        rest = &rest[at + 3..];
    }
    Some(percent_decode_str(text).collect())
}

/// Decodes `%20` and the like. Keeps a percent sign that is not followed by two digits, and replaces invalid UTF-8.
pub fn decode_lossy(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn component_keeps_only_unreserved_characters() {
        assert_eq!(encode("a/b c.d-e_f~g?\u{e9}%"), "a%2Fb%20c.d-e_f~g%3F%C3%A9%25");
        assert_eq!(encode_path(b"/a b/50%?\xff#"), "/a b/50%25%3F%FF%23");
        assert_eq!(encode_segment("../x").as_deref(), Some("..%2Fx"));
        for dots in ["", ".", ".."] {
            assert_eq!(encode_segment(dots), None);
        }
    }

    #[test]
    fn form_encodes_spaces_as_plus_signs() {
        let mut out = String::new();
        encode_form(" a  b&c=caf\u{e9}+~%*", &mut out);
        assert_eq!(out, "+a++b%26c%3Dcaf%C3%A9%2B%7E%25*");
    }

    #[test]
    fn decoding_is_strict_or_lossy() {
        assert_eq!(decode("a%20b%C3%a9").unwrap(), "a b\u{e9}".as_bytes());
        for wrong in ["%", "%2", "a%g0", "%2%20", "%+1"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
        assert_eq!(decode_lossy("%41%zz%ff"), "A%zz\u{fffd}");
    }
}
