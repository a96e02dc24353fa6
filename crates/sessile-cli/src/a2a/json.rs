//! JSON with a limit for its size in memory.

use serde_json::Value;

use super::error::A2aError;

/// Parses JSON, unless it has more values than this: `[0,0,...` takes two bytes for each, and many more in memory.
pub(super) fn parse(said: &[u8], largest: usize) -> Result<Value, A2aError> {
    // Counted before it is parsed: the limit is one of memory, which the parser would have used by then.
    if count_values(said) > largest {
        return Err(A2aError::Malformed("the agent's response has too many values".to_owned()));
    }
    sessile::json::check(said)
        .map_err(|error| A2aError::Malformed(format!("the agent's response is invalid: {error}")))?;
    serde_json::from_slice(said).map_err(|_| A2aError::malformed("the agent's response is not JSON", said))
}

/// Upper bound of the number of values, counted by their separators.
fn count_values(said: &[u8]) -> usize {
    let (mut count, mut in_text, mut escaped) = (1, false, false);
    for byte in said {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b',' | b'[' | b'{' if !in_text => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_strings() {
        assert_eq!(count_values(br#"{"a": [1, 2], "b,\"[{": "\\"}"#), 5);
        assert!(parse(b"[1,2,3]", 3).is_err());
        assert!(parse(b"[1,2,3]", 4).is_ok());
        assert!(parse(br#"",,,,[[[[""#, 2).is_ok());
    }

    #[test]
    fn excerpt_of_invalid_json_is_short_and_sanitized() {
        let said = format!("<html>\u{1b}]0;owned\u{7}\n{}", "x".repeat(1 << 20));
        let told = parse(said.as_bytes(), 10).unwrap_err().to_string();
        assert!(
            told.starts_with("the agent's response is not JSON: <html>\\u{1b}]0;owned\\u{7}\\nxxx"),
            "{told}"
        );
        assert!(told.len() < 200, "{told}");
        assert_eq!(parse(b"", 10).unwrap_err().to_string(), "the agent's response is not JSON: empty");
        let deep = "[".repeat(1 << 16);
        assert!(matches!(parse(deep.as_bytes(), usize::MAX), Err(A2aError::Malformed(_))));
        assert!(matches!(parse(b"\xff\xfe", 10), Err(A2aError::Malformed(_))));
    }
}
