//! Times as people read them.

/// Milliseconds since 1970 of a time such as `2026-01-31T10:00:00Z`, which this program wrote. `None` for anything else.
pub(crate) fn parse_rfc3339(text: &str) -> Option<i64> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let is_valid = text.ends_with('Z') && text.get(10..11)? == "T" && (1..=12).contains(&month);
    let millis = match text.get(19..20) {
        Some(".") => {
            let digits: String =
                text.get(20..)?.chars().take_while(char::is_ascii_digit).chain("000".chars()).collect();
            digits.get(..3)?.parse::<i64>().ok()?
        }
        _ => 0,
    };
    // Days since 1970 by the civil calendar, in years that begin in March so that leap days come last.
    let shifted = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (shifted.div_euclid(400), shifted.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    is_valid.then(|| (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + millis)
}

/// A length of time in two units at most: `45s`, `12m`, `3h05m`, `2d04h`.
pub(crate) fn countdown(millis: i64) -> String {
    let seconds = millis.max(0) / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match () {
        () if seconds < 60 => format!("{seconds}s"),
        () if minutes < 60 => format!("{minutes}m"),
        () if hours < 24 => format!("{hours}h{:02}m", minutes % 60),
        () => format!("{days}d{:02}h", hours % 24),
    }
}

/// Time of day of a point in time, in UTC; with the date if it is another day than `now_ms`.
pub(crate) fn clock_time(at: &str, now_ms: i64) -> String {
    let day = |millis: i64| millis.div_euclid(86_400_000);
    match (parse_rfc3339(at), at.get(5..10), at.get(11..19)) {
        (Some(millis), _, Some(time)) if day(millis) == day(now_ms) => time.to_owned(),
        (Some(_), Some(date), Some(time)) => format!("{date} {}", &time[..5]),
        _ => at.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use sessile::clock::rfc3339;

    use super::*;

    #[test]
    fn times_that_were_written_are_read_back() {
        for millis in [0, 951_782_400_000, 1_709_208_000_000, 1_795_000_000_000, 4_102_444_799_000] {
            assert_eq!(parse_rfc3339(&rfc3339(millis)), Some(millis), "{}", rfc3339(millis));
        }
        for text in ["", "soon", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00", "日本語日本語日本語Z"]
        {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
    }

    #[test]
    fn countdown_has_two_units_at_most() {
        assert_eq!(countdown(-5), "0s");
        assert_eq!(countdown(59_999), "59s");
        assert_eq!(countdown(754_000), "12m");
        assert_eq!(countdown(11_100_000), "3h05m");
        assert_eq!(countdown(187_200_000), "2d04h");
    }
}
