//! Durations as people write them: `500ms`, `30m`, `2h`, `1h30m`, `7d`.

use std::time::Duration;

/// Expected form of a duration, for error messages and help.
pub const EXPECTED: &str = "a duration such as 500ms, 30s, 10m, 2h, 1h30m or 7d";

const UNITS: &[(&str, u64)] =
    &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000), ("w", 604_800_000)];

/// Parses a duration. A bare number other than 0 has no unit and is refused.
pub fn parse(text: &str) -> Option<Duration> {
    // The only number that needs no unit.
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, tail) = rest.split_at(digits);
        let letters = tail.bytes().take_while(u8::is_ascii_lowercase).count();
        let (unit, tail) = tail.split_at(letters);
        let millis = UNITS.iter().find(|(name, _)| *name == unit)?.1;
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(millis)?)?;
        rest = tail;
    }
    // Past this a point in time could no longer be computed; nobody means more than a century.
    (!text.is_empty() && total <= 100 * 366 * 86_400_000).then(|| Duration::from_millis(total))
}

/// A duration in two units at most, for people.
pub fn short(duration: Duration) -> String {
    let millis = duration.as_millis();
    if millis < 1_000 {
        return format!("{millis} ms");
    }
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 if seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 if seconds % 3_600 < 60 => format!("{} h", seconds / 3_600),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!(parse("0"), Some(Duration::ZERO));
        assert_eq!(parse("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(parse("1h30m"), Some(Duration::from_secs(5400)));
        assert_eq!(parse("7d"), Some(Duration::from_secs(7 * 86_400)));
    }

    #[test]
    fn refuses_what_has_no_meaning() {
        for text in ["", "5", "h", "-1s", "1 h", "1H", "99999999999999999999s", "200000w", "1hm", "\u{663}s"]
        {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_duration_of_at_most_a_century_or_none(text in "[0-9a-z\\-. ]{0,30}|\\PC{0,20}") {
            if let Some(duration) = parse(&text) {
                prop_assert!(duration <= Duration::from_secs(100 * 366 * 86_400));
                prop_assert!(!short(duration).is_empty());
            }
        }

        #[test]
        fn units_of_a_duration_add_up(days in 0_u64..999, minutes in 0_u64..99_999, millis in 0_u64..999) {
            let expected = Duration::from_millis(days * 86_400_000 + minutes * 60_000 + millis);
            prop_assert_eq!(parse(&format!("{days}d{minutes}m{millis}ms")), Some(expected));
        }
    }

    #[test]
    fn short_form_keeps_two_units() {
        assert_eq!(short(Duration::from_secs(90)), "1 min 30 s");
        assert_eq!(short(Duration::from_secs(7200)), "2 h");
        assert_eq!(short(Duration::from_millis(20)), "20 ms");
    }
}
