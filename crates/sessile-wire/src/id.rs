//! Ids that sort by the time at which they were generated: UUIDs of version 7 (RFC 9562).

use std::time::Duration;

use crate::hex::hex;

/// UUID of this time and these random bytes. Ids of one millisecond are in random order.
pub fn uuid_v7(unix_ms: i64, random: [u8; 10]) -> String {
    let mut bytes = [0u8; 16];
    // The low 48 bits, which last beyond the year 10,000.
    bytes[..6].copy_from_slice(&unix_ms.to_be_bytes()[2..]);
    bytes[6..].copy_from_slice(&random);
    format_uuid(bytes)
}

/// UUID with a fraction of the millisecond behind its version, so that ids of one process sort in the order of their calls.
pub fn ordered_uuid_v7(since_epoch: Duration, mut random: [u8; 10]) -> String {
    // The 12 bits behind the version, as RFC 9562 (6.2, method 3) suggests.
    let fraction = since_epoch.subsec_nanos() % 1_000_000 * 4096 / 1_000_000;
    let [_, _, high, low] = fraction.to_be_bytes();
    (random[0], random[1]) = (high, low);
    uuid_v7(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX), random)
}

fn format_uuid(mut bytes: [u8; 16]) -> String {
    // Version 7.
    bytes[6] = bytes[6] & 0x0f | 0x70;
    // The variant of RFC 9562.
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = hex(&bytes);
    for dash in [8, 13, 18, 23] {
        text.insert(dash, '-');
    }
    text
}

/// Whether a text has the form of a UUID in lower case.
pub fn is_uuid(text: &str) -> bool {
    // One spelling only: ids are compared as text, and name the directories of rooms.
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_version_and_variant_and_sort_by_time() {
        let early = uuid_v7(1_700_000_000_000, [0xff; 10]);
        let late = uuid_v7(1_700_000_000_001, [0; 10]);
        assert_eq!(early, "018bcfe5-6800-7fff-bfff-ffffffffffff");
        assert!(early < late && is_uuid(&early) && is_uuid(&late));
        for wrong in ["", "018bcfe5-6800-7fff-bfff-fffffffffffF", "018bcfe56800-7fff-bfff-ffffffffffff0"] {
            assert!(!is_uuid(wrong), "{wrong}");
        }
    }

    #[test]
    fn ordered_ids_sort_within_a_millisecond() {
        let at = |nanos| ordered_uuid_v7(Duration::new(1_700_000_000, nanos), [0xff; 10]);
        assert!(at(0) < at(300) && at(300) < at(999_999) && at(999_999) < at(1_000_000));
        assert!(at(999_999).starts_with("018bcfe5-6800-7fff-bfff-"), "{}", at(999_999));
    }
}
