//! Base64, for text.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base64 of this text.
pub(super) fn to_base64(text: &str) -> String {
    let mut coded = String::new();
    for bytes in text.as_bytes().chunks(3) {
        let byte = |at: usize| bytes.get(at).copied().map_or(0, usize::from);
        let held = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let letter = char::from(ALPHABET[held >> (18 - 6 * place) & 63]);
            coded.push(if place > bytes.len() { '=' } else { letter });
        }
    }
    coded
}

/// The text that this stands for.
pub(super) fn from_base64(text: &str) -> Option<String> {
    let (mut bytes, mut held, mut bits) = (Vec::new(), 0u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let value = ALPHABET.iter().position(|known| *known == byte)?;
        held = (held << 6) | u32::try_from(value).ok()?;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from((held >> bits) & 0xff).ok()?);
        }
    }
    String::from_utf8(bytes).ok()
}
