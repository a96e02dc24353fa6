//! Encodings that may hide a leaked code word: base64, percent-encoding, escapes, HTML entities, hex.

use serde::Serialize;

/// Deepest nesting that is decoded: base64 in a percent-encoded cookie is two.
const DEEPEST: usize = 2;

/// Longest decoded text that is decoded again.
const LONGEST: usize = 1 << 20;

/// Fewest base64 digits of a code word, which has 12 letters.
const SHORTEST_BASE64: usize = 16;

/// Fewest hex digits of a code word.
const SHORTEST_HEX: usize = 24;

/// Most backslashes of one escape: a text of nothing else must not take quadratic time.
const MOST_SLASHES: usize = 8;

/// Encoding of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Encoding {
    /// `%62`.
    Percent,
    /// `\u0062`, `\u{62}` and `\x62`.
    Escape,
    /// `&#98;` and `&#x62;`.
    Entity,
    /// Base64 of either alphabet, with or without padding and line breaks.
    Base64,
    /// Two hex digits for each byte.
    Hex,
}

impl Encoding {
    /// The name of the encoding, for people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Encoding::Percent => "percent-encoding",
            Encoding::Escape => "escapes",
            Encoding::Entity => "HTML entities",
            Encoding::Base64 => "base64",
            Encoding::Hex => "hex",
        }
    }

    /// Every possible decoding of a text. Base64 and hex may begin at any digit.
    fn decode(self, text: &str) -> Vec<String> {
        match self {
            Encoding::Percent => replaced(text, "%", percent),
            Encoding::Escape => replaced(text, "\\", escape),
            Encoding::Entity => replaced(text, "&#", entity),
            Encoding::Base64 => digits(text, base64_digit, SHORTEST_BASE64, 6),
            Encoding::Hex => digits(text, hex_digit, SHORTEST_HEX, 4),
        }
    }
}

const ALL: [Encoding; 5] =
    [Encoding::Percent, Encoding::Escape, Encoding::Entity, Encoding::Base64, Encoding::Hex];

/// Calls `look` with the text itself, then with every decoding of it and the encodings from the outside in.
pub(crate) fn visit_decodings(text: &str, look: &mut dyn FnMut(&[Encoding], &str)) {
    visit(text, &mut Vec::new(), look);
}

fn visit(text: &str, path: &mut Vec<Encoding>, look: &mut dyn FnMut(&[Encoding], &str)) {
    look(path, text);
    // Each level multiplies the work, and an answer comes from a service that may be hostile.
    if path.len() == DEEPEST || (!path.is_empty() && text.len() > LONGEST) {
        return;
    }
    for encoding in ALL {
        for decoded in encoding.decode(text) {
            path.push(encoding);
            visit(&decoded, path, look);
            path.pop();
        }
    }
}

/// The text with every sequence replaced that begins with `mark`; nothing if no sequence was found.
fn replaced(text: &str, mark: &str, parse: fn(&str) -> Option<(char, usize)>) -> Vec<String> {
    let (mut decoded, mut rest, mut is_changed) = (String::new(), text, false);
    while let Some(at) = rest.find(mark) {
        decoded.push_str(&rest[..at]);
        let sequence = &rest[at..];
        let length = match parse(sequence) {
            Some((letter, length)) => {
                decoded.push(letter);
                is_changed = true;
                length
            }
            None => {
                decoded.push_str(mark);
                mark.len()
            }
        };
        rest = sequence.get(length..).unwrap_or_default();
    }
    decoded.push_str(rest);
    if is_changed { vec![decoded] } else { Vec::new() }
}

fn percent(sequence: &str) -> Option<(char, usize)> {
    let byte = u8::from_str_radix(plain(sequence.get(1..3)?)?, 16).ok()?;
    Some((char::from(byte), 3))
}

/// Backslashes may be escaped themselves, once for each level of quoting.
fn escape(sequence: &str) -> Option<(char, usize)> {
    let slashes = sequence.bytes().take(MOST_SLASHES).take_while(|byte| *byte == b'\\').count();
    let (rest, before) = (sequence.get(slashes..)?, slashes + 1);
    let (code, length) = match rest.as_bytes().first()? {
        b'u' if rest[1..].starts_with('{') => {
            let end = rest.get(..10).unwrap_or(rest).find('}')?;
            (&rest[2..end], end)
        }
        b'u' => (rest.get(1..5)?, 4),
        b'x' => (rest.get(1..3)?, 2),
        _ => return None,
    };
    let code = u32::from_str_radix(plain(code)?, 16).ok()?;
    Some((char::from_u32(code)?, before + length))
}

fn entity(sequence: &str) -> Option<(char, usize)> {
    let end = sequence.bytes().take(12).position(|byte| byte == b';')?;
    let code = &sequence[2..end];
    let code = match code.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(plain(hex)?, 16),
        None => plain(code)?.parse(),
    };
    Some((char::from_u32(code.ok()?)?, end + 1))
}

/// Digits alone: numbers are also parsed with a sign.
fn plain(digits: &str) -> Option<&str> {
    digits.bytes().all(|byte| byte.is_ascii_alphanumeric()).then_some(digits)
}

fn base64_digit(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    })
}

fn hex_digit(byte: u8) -> Option<u8> {
    Some(match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        b'A'..=b'F' => byte - b'A' + 10,
        _ => return None,
    })
}

/// Decodes every long run of digits, once for each digit at which a byte may begin. Line breaks do not end a run.
fn digits(text: &str, digit: fn(u8) -> Option<u8>, shortest: usize, bits: u32) -> Vec<String> {
    let mut runs: Vec<Vec<u8>> = Vec::new();
    let mut run = Vec::new();
    // The zero is no digit, and ends the last run.
    for byte in text.bytes().chain([0]) {
        match digit(byte) {
            Some(value) => run.push(value),
            // MIME breaks base64 into lines of 76 characters.
            None if matches!(byte, b'\r' | b'\n') => {}
            None if run.len() >= shortest => runs.push(std::mem::take(&mut run)),
            None => run.clear(),
        }
    }
    if runs.is_empty() {
        return Vec::new();
    }
    // Four digits of base64 are three bytes, two of hex one.
    let starts = if bits == 6 { 4 } else { 2 };
    (0..starts).map(|start| runs.iter().map(|run| packed(&run[start..], bits)).collect()).collect()
}

/// Decodes digits of a number of bits each to bytes, and appends a line break.
fn packed(run: &[u8], bits: u32) -> String {
    let (mut bytes, mut buffer, mut filled) = (Vec::with_capacity(run.len()), 0_u32, 0);
    for value in run {
        // Only the last bits matter; without the mask they would overflow.
        buffer = ((buffer << bits) | u32::from(*value)) & 0xffff;
        filled += bits;
        if filled >= 8 {
            filled -= 8;
            bytes.extend(u8::try_from((buffer >> filled) & 0xff));
        }
    }
    bytes.push(b'\n');
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
    use proptest::prelude::*;

    use super::*;

    fn found(text: &str, word: &str) -> Option<Vec<Encoding>> {
        let mut found = None;
        visit_decodings(text, &mut |encodings, text| {
            if found.is_none() && text.contains(word) {
                found = Some(encodings.to_vec());
            }
        });
        found
    }

    const WORD: &str = "bacedifoguha";

    #[test]
    fn every_encoding_is_decoded() {
        let each =
            |form: &dyn Fn(u32) -> String| WORD.bytes().map(|byte| form(byte.into())).collect::<String>();
        for (text, encoding) in [
            (each(&|code| format!("%{code:02x}")), Encoding::Percent),
            (each(&|code| format!("%{code:02X}")), Encoding::Percent),
            (each(&|code| format!("\\u{code:04x}")), Encoding::Escape),
            (each(&|code| format!("\\\\u{code:04X}")), Encoding::Escape),
            (each(&|code| format!("\\u{{{code:x}}}")), Encoding::Escape),
            (each(&|code| format!("\\x{code:x}")), Encoding::Escape),
            (each(&|code| format!("&#{code};")), Encoding::Entity),
            (each(&|code| format!("&#x{code:x};")), Encoding::Entity),
            (each(&|code| format!("{code:x}")), Encoding::Hex),
            (each(&|code| format!("{code:X}")), Encoding::Hex),
            (BASE64_STANDARD.encode(WORD), Encoding::Base64),
        ] {
            let text = format!("50% off \\ &# &; {text}, 100%");
            assert_eq!(found(&text, WORD), Some(vec![encoding]), "{text}");
        }
        assert_eq!(found(&format!("a {WORD}"), WORD), Some(Vec::new()));
        let nested = BASE64_STANDARD.encode(format!("x=%62{}", &WORD[1..]));
        assert_eq!(found(&nested, WORD), Some(vec![Encoding::Base64, Encoding::Percent]));
    }

    #[test]
    fn base64_is_decoded_over_line_breaks() {
        let text = BASE64_STANDARD.encode(format!("{}{WORD}{}", "x".repeat(50), "y".repeat(50)));
        for (line, end) in [(76, "\r\n"), (64, "\n"), (5, "\n")] {
            let lines: Vec<&[u8]> = text.as_bytes().chunks(line).collect();
            let lines: Vec<&str> = lines.into_iter().map(|line| std::str::from_utf8(line).unwrap()).collect();
            assert_eq!(found(&lines.join(end), WORD), Some(vec![Encoding::Base64]));
        }
    }

    proptest! {
        #[test]
        fn base64_is_decoded_at_every_alignment(
            before in prop::collection::vec(any::<u8>(), 0..40), after in prop::collection::vec(any::<u8>(), 0..40),
            around in "[A-Za-z0-9]{0,5}", standard in any::<bool>(),
        ) {
            let whole = [&before[..], WORD.as_bytes(), &after].concat();
            let text = if standard { BASE64_STANDARD.encode(whole) } else { BASE64_URL_SAFE_NO_PAD.encode(whole) };
            let text = format!("{around}{text}{around}");
            prop_assert!(found(&text, WORD).is_some());
        }

        #[test]
        fn any_text_can_be_searched(text in "(%|\\\\|u|x|\\{|\\}|&#|;|[0-9a-fA-F+]|\\PC){0,60}") {
            found(&text, "\u{0}");
        }
    }
}
