//! A command line, taken apart without a shell.

/// A command line as words: blanks separate, quotes hold together, nothing else means anything.
pub(super) fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (None, '\\') => word.get_or_insert_default().push(letters.next()?),
            (Some('"'), '\\') => {
                let next = letters.next()?;
                let word = word.get_or_insert_default();
                // Within double quotes a backslash escapes only these (POSIX shell, 2.2.3).
                if !matches!(next, '"' | '\\' | '$' | '`') {
                    word.push('\\');
                }
                word.push(next);
            }
            (Some(_), letter) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            // No shell runs it, so what only a shell can do is not left to fail later.
            (None, '|' | '&' | ';' | '<' | '>' | '$' | '`' | '(' | ')') => return None,
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (None, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_taken_apart_as_a_shell_does() {
        let of = |line: &str| words(line);
        assert_eq!(of("pass show a/b").unwrap(), ["pass", "show", "a/b"]);
        assert_eq!(of(r#" a 'b c' "d \" e" f\ g '' "#).unwrap(), ["a", "b c", "d \" e", "f g", ""]);
        assert_eq!(
            of(r#"sh -c 'a | b' "x\ny" '$HOME' * "#).unwrap(),
            ["sh", "-c", "a | b", "x\\ny", "$HOME", "*"]
        );
        for line in ["a | b", "a && b", "a; b", "a > b", "$(a)", "`a`", "$HOME/x"] {
            assert_eq!(of(line), None, "{line}");
        }
        assert_eq!(of("'open"), None);
        assert_eq!(of("end\\"), None);
        assert!(of("  ").unwrap().is_empty());
    }
}
