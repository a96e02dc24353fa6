//! Files with one setting in each line: `KEY=VALUE`, where a key may be quoted as JSON, hold escapes and variables in `${}`.
//!
//! Only what a reader takes for a key counts: the same name has many spellings.

use serde_json::Value;

/// Keys and values of a line as a reader understands them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// Key, up to its first variable.
    pub(super) key: String,
    /// Whether a variable follows, so that the rest of the key is unknown.
    pub(super) is_open: bool,
    /// Value.
    pub(super) value: String,
}

/// The lines of a text with their ends. Such a file may end its lines with a carriage return alone.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(['\n', '\r'])
}

/// The setting of a line; none in comments and empty lines.
pub(super) fn setting(line: &str) -> Option<Setting> {
    let line = trimmed(line);
    if line.is_empty() || line.starts_with(['#', ';']) {
        return None;
    }
    let (key, value) = line.split_once('=').unwrap_or((line, ""));
    let (key, value) = (plain(key), plain(value));
    Some(match key.find("${") {
        Some(at) => Setting { key: key[..at].to_owned(), is_open: true, value },
        None => Setting { key, is_open: false, value },
    })
}

/// Whether a key that goes on with a variable may begin with this text.
pub(super) fn may_begin_with(setting: &Setting, text: &str) -> bool {
    setting.is_open && (setting.key.starts_with(text) || text.starts_with(&setting.key))
}

/// A line whose value is a URL without its login.
pub(super) fn without_login(line: &str) -> String {
    let (Some(setting), Some((key, _))) = (setting(line), line.split_once('=')) else {
        return line.to_owned();
    };
    let value = super::without_login(&setting.value);
    let value =
        if value.contains([';', '#', '"', '\'', '\\']) { Value::from(value).to_string() } else { value };
    let end = &line[line.trim_end_matches(['\n', '\r']).len()..];
    format!("{key}={value}{end}")
}

/// A text without white space around it. Readers count a byte order mark as such.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}')
}

/// A key or value without its quotes, escapes and comment.
fn plain(text: &str) -> String {
    let text = trimmed(text);
    let is_within = |quote: char| text.len() > 1 && text.starts_with(quote) && text.ends_with(quote);
    if is_within('\'') || is_within('"') {
        let inner = if is_within('\'') { &text[1..text.len() - 1] } else { text };
        return serde_json::from_str::<String>(inner).unwrap_or_else(|_| inner.to_owned());
    }
    let (mut plain, mut chars) = (String::new(), text.chars());
    while let Some(c) = chars.next() {
        match c {
            ';' | '#' => break,
            '\\' => match chars.next() {
                Some(c @ ('\\' | ';' | '#')) => plain.push(c),
                Some(c) => plain.extend(['\\', c]),
                None => plain.push('\\'),
            },
            c => plain.push(c),
        }
    }
    trimmed(&plain).to_owned()
}

/// Checks that any text is read, and that every byte is in a line.
#[cfg(any(test, fuzzing))]
pub(super) fn check_keys(text: &str) {
    assert_eq!(lines(text).collect::<String>(), text);
    for found in lines(text).filter_map(setting) {
        assert!(!found.key.contains("${"), "{found:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(line: &str) -> Option<(String, bool)> {
        setting(line).map(|setting| (setting.key, setting.is_open))
    }

    #[test]
    fn key_is_read_in_every_spelling() {
        for line in [
            "//p.example/:_authToken=x",
            "  //p.example/:_authToken = x\r",
            "\u{feff}//p.example/:_authToken=x",
            "\"//p.example/:_authToken\"=x",
            "'//p.example/:_authToken'=x",
            "\"\\u002f/p.example/:_authToken\"=x",
            "'\"\\/\\/p.example/:_authToken\"'=x",
            "//p.example/:_authToken;comment=x",
        ] {
            assert_eq!(key(line), Some(("//p.example/:_authToken".to_owned(), false)), "{line:?}");
        }
        assert_eq!(key("; //p.example/:_authToken=x"), None);
        assert_eq!(key("\u{feff} # x"), None);
        assert_eq!(key("a\\;b=x"), Some(("a;b".to_owned(), false)));
        assert_eq!(
            setting("registry = \"https://p.example/\"").map(|it| it.value).as_deref(),
            Some("https://p.example/")
        );
    }

    #[test]
    fn key_with_a_variable_is_known_up_to_it() {
        assert_eq!(key("//${HOST}/:_authToken=x"), Some(("//".to_owned(), true)));
        assert_eq!(key("\"\\u0024{KEY}\"=x"), Some((String::new(), true)));
        let begins = |line: &str, text: &str| may_begin_with(&setting(line).unwrap(), text);
        assert!(begins("${KEY}=x", "//"));
        assert!(begins("/${KEY}=x", "//"));
        assert!(begins("//p.example/${KEY}=x", "//"));
        assert!(!begins("@${SCOPE}:registry=x", "//"));
        assert!(!begins("//p.example/:_authToken=${TOKEN}", "//"));
    }

    #[test]
    fn login_is_removed_from_a_value() {
        for (line, plain) in [
            ("registry=https://u:p@h.example/\n", "registry=https://h.example/\n"),
            ("'@s:registry' = \"https:\\u002f/u:p@h.example/\"\r\n", "'@s:registry' =https://h.example/\r\n"),
            ("registry=https://u:p@h.example/\\#y", "registry=\"https://h.example/#y\""),
            ("# registry=https://u:p@h.example/", "# registry=https://u:p@h.example/"),
        ] {
            assert_eq!(without_login(line), plain);
        }
    }

    #[test]
    fn carriage_return_alone_ends_a_line() {
        assert_eq!(
            lines("a=1\rb=2\r\nc=3").filter_map(key).map(|(key, _)| key).collect::<Vec<_>>(),
            ["a", "b", "c"]
        );
    }
}
