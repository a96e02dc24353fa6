//! Files with sections in brackets, of which whole sections are kept or dropped and nothing else is touched.

use crate::tool::tree::{Scalar, Tree};

/// A section: its lines as they are, and what its keys say.
pub(in crate::tool) struct Section<'t> {
    /// What stands in the brackets; none for what precedes the first section.
    pub(super) title: Option<&'t str>,
    lines: Vec<&'t str>,
}

/// The sections of a text, in order. Every line that looks like a title is one.
pub(super) fn sections(text: &str) -> Vec<Section<'_>> {
    split(text, false)
}

/// The sections of a text as its readers see them. For some, a line that is indented deeper than the option before it
/// continues that option, also if it looks like a title.
pub(super) fn readings(text: &str) -> Vec<Vec<Section<'_>>> {
    let (plain, continued) = (split(text, false), split(text, true));
    if plain.len() == continued.len() { vec![plain] } else { vec![plain, continued] }
}

/// A text with the sections that stay in every reading of it.
pub(super) fn retained(text: &str, stays: impl Fn(&Section<'_>) -> bool) -> String {
    let mut is_removed = vec![false; lines(text).count()];
    let mut is_title = is_removed.clone();
    for reading in readings(text) {
        let mut at = 0;
        for section in reading {
            let end = at + section.lines.len();
            let goes = !stays(&section);
            is_removed[at..end].iter_mut().for_each(|removed| *removed |= goes);
            if section.title.is_some() {
                is_title[at] = true;
            }
            at = end;
        }
    }
    let mut new = String::new();
    for (at, line) in lines(text).enumerate().filter(|(at, _)| !is_removed[*at]) {
        // Behind another option than before, an indented title would continue that one.
        let is_moved = is_title[at] && at.checked_sub(1).is_some_and(|before| is_removed[before]);
        new.push_str(if is_moved { line.trim_start_matches([' ', '\t']) } else { line });
    }
    new
}

/// The lines of a text. Some readers end a line at a carriage return alone.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(['\n', '\r'])
}

fn split(text: &str, continues: bool) -> Vec<Section<'_>> {
    let mut all = vec![Section { title: None, lines: Vec::new() }];
    // Indentation of the option that a line can continue.
    let mut option: Option<usize> = None;
    for line in lines(text) {
        // Some editors begin a file with a byte order mark.
        let text = line.trim_start_matches('\u{feff}');
        let indent = text.len() - text.trim_start().len();
        let is_empty = text.trim().is_empty() || text.trim().starts_with(['#', ';']);
        let is_continued = continues && option.is_some_and(|option| indent > option);
        let title = text
            .trim()
            .strip_prefix('[')
            .filter(|_| !is_continued)
            .and_then(|rest| rest.split_once(']'))
            .map(|(title, _)| title.trim());
        if title.is_some() {
            all.push(Section { title, lines: Vec::new() });
            option = None;
        } else if !is_empty && !is_continued {
            option = Some(indent);
        }
        if let Some(last) = all.last_mut() {
            last.lines.push(line);
        }
    }
    all
}

impl Section<'_> {
    /// Text.
    #[cfg(any(test, fuzzing))]
    pub(super) fn text(&self) -> String {
        self.lines.concat()
    }

    /// Keys in small letters, and values without quotes: readers of such files differ in what counts. A key in an indented
    /// group counts like any other.
    pub(super) fn fields(&self) -> Tree {
        let pairs = self.lines.iter().filter_map(|line| assignment(line));
        let field = |(key, value): (&str, &str)| {
            (Scalar::quoted(key.to_ascii_lowercase()), Tree::Scalar(Scalar::quoted(unquoted(value))))
        };
        Tree::Map(pairs.map(field).collect())
    }

    /// Names of its keys.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| Some(assignment(line)?.0))
    }
}

/// Key and value of a line.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let (key, value) = line.split_once(['=', ':']).filter(|_| !line.starts_with(['#', ';', '[']))?;
    Some((key.trim(), value.trim()))
}

/// The sections of a text by their titles, for reading.
pub(in crate::tool) fn tree(text: &str) -> Tree {
    let titled = sections(text).into_iter().filter_map(|section| {
        let fields = section.fields();
        Some((Scalar::quoted(section.title?), fields))
    });
    Tree::Map(titled.collect())
}

/// A text in which a key of a section has a value; everything else is as it was.
pub(in crate::tool) fn with_value(text: &str, title: &str, key: &str, value: &str) -> String {
    let line = format!("{key} = {value}\n");
    let (mut new, mut is_set) = (String::new(), false);
    for section in sections(text) {
        let is_meant = section.title == Some(title);
        for old in &section.lines {
            if is_meant && assignment(old).is_some_and(|(found, _)| found.eq_ignore_ascii_case(key)) {
                // A repeated key would win over the first one.
                if !std::mem::replace(&mut is_set, true) {
                    new.push_str(&line);
                }
            } else {
                new.push_str(old);
            }
        }
        if is_meant && !is_set {
            // Before the empty lines that separate the section from the next one.
            let end = new.split_off(new.trim_end().len());
            new.push_str(&format!("\n{line}"));
            new.push_str(end.strip_prefix('\n').unwrap_or(&end));
            is_set = true;
        }
    }
    if !is_set {
        if !new.is_empty() && !new.ends_with('\n') {
            new.push('\n');
        }
        new.push_str(&format!("[{title}]\n{line}"));
    }
    new
}

/// A text without some keys of some sections; everything else is as it was.
pub(in crate::tool) fn without_keys(
    text: &str,
    is_section: impl Fn(&str) -> bool,
    is_key: impl Fn(&str) -> bool,
) -> String {
    let mut new = String::new();
    for section in sections(text) {
        let is_meant = section.title.is_some_and(&is_section);
        let stays = |line: &&&str| !(is_meant && assignment(line).is_some_and(|(key, _)| is_key(key)));
        new.extend(section.lines.iter().filter(stays).copied());
    }
    new
}

/// The name that a title has by a pattern: `profile {}` takes `x` out of `profile x`.
pub(super) fn name_by<'t>(pattern: &str, title: &'t str) -> Option<&'t str> {
    let Some((before, after)) = pattern.split_once("{}") else {
        return (pattern == title).then_some(title);
    };
    // A word before the name is parted from it by any white space.
    let rest = title.strip_prefix(before.trim_end())?;
    let is_parted = before == before.trim_end() || rest.starts_with(char::is_whitespace);
    let name = rest.strip_suffix(after).filter(|_| is_parted)?.trim();
    // Names with spaces are quoted.
    let name = unquoted(name);
    (!name.is_empty()).then_some(name)
}

/// The names that a title can have by a pattern. Readers split a title into words as a shell does, and some take any first
/// word that begins with the expected one.
pub(super) fn names_by(pattern: &str, title: &str) -> Vec<String> {
    let mut names: Vec<String> = name_by(pattern, title).map(str::to_owned).into_iter().collect();
    if let Some((before, after)) = pattern.split_once("{}") {
        let (before, after, title) = (bare(before), bare(after), bare(title));
        let rest = match before.strip_suffix(' ') {
            None => title.strip_prefix(&before),
            Some(word) => {
                title.split_once(' ').filter(|(first, _)| first.starts_with(word)).map(|(_, rest)| rest)
            }
        };
        let name = rest.and_then(|rest| rest.strip_suffix(&after)).map(str::trim);
        names.extend(name.filter(|name| !name.is_empty()).map(str::to_owned));
    }
    names.dedup();
    names
}

/// A title without quotes and escapes, with one space for every run of white space.
fn bare(title: &str) -> String {
    let plain: String = title.chars().filter(|c| !['"', '\'', '\\'].contains(c)).collect();
    let mut bare = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    if plain.ends_with(char::is_whitespace) {
        bare.push(' ');
    }
    bare
}

/// A text without the quotes around it.
fn unquoted(text: &str) -> &str {
    let inside = |quote: char| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    inside('"').or_else(|| inside('\'')).unwrap_or(text)
}

/// Checks that any text is read, and that an edit changes one key only.
#[cfg(any(test, fuzzing))]
pub(crate) fn check_edits(text: &str) {
    let all = sections(text);
    assert_eq!(all.iter().map(Section::text).collect::<String>(), text, "every byte is in a section");
    for title in all.iter().filter_map(|section| section.title) {
        for pattern in ["profile {}", "{}", "'remote \"{}\"'", "client_{}"] {
            assert!(names_by(pattern, title).iter().all(|name| !name.is_empty()), "{title:?}");
        }
    }
    let place = || crate::tool::tree::TreePath::parse("core.remote", str::to_owned);
    for reading in readings(text) {
        assert_eq!(reading.iter().map(Section::text).collect::<String>(), text, "every byte is in a section");
    }
    assert_eq!(retained(text, |_| true), text);
    let kept = retained(text, |section| section.title != Some("core"));
    let is_core = |section: &Section<'_>| section.title == Some("core");
    assert!(!readings(&kept).iter().flatten().any(is_core), "{kept:?}");
    super::keys::check_keys(text);
    let set = with_value(text, "core", "remote", "x");
    assert_eq!(place().text(&mut tree(&set)).as_deref(), Some("x"), "{set:?}");
    let removed = without_keys(&set, |title| title == "core", |key| key.eq_ignore_ascii_case("remote"));
    assert_eq!(place().text(&mut tree(&removed)), None, "{removed:?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn section_text_is_kept_as_it_is() {
        let text = "# head\n[default]\nregion = eu\n\n[profile \"a b\"]  \ns3 =\n  max = 1\n[x]";
        let all = sections(text);
        assert_eq!(all.iter().map(Section::text).collect::<String>(), text);
        let titles: Vec<_> = all.iter().filter_map(|section| section.title).collect();
        assert_eq!(titles, ["default", "profile \"a b\"", "x"]);
    }

    #[test]
    fn title_deeper_than_an_option_is_read_in_both_ways() {
        let text = "[a]\nk = 1\n  [b]\nkey = 2\n[c]\n";
        let titles = |reading: &Vec<Section<'_>>| {
            reading.iter().filter_map(|section| section.title.map(str::to_owned)).collect::<Vec<_>>()
        };
        assert_eq!(
            readings(text).iter().map(titles).collect::<Vec<_>>(),
            [vec!["a", "b", "c"], vec!["a", "c"]]
        );
        let without = |text, name: &str| retained(text, |section| section.title != Some(name));
        assert_eq!(without(text, "a"), "[c]\n");
        assert_eq!(without(text, "b"), "[a]\nk = 1\n[c]\n");
        assert_eq!(without(text, "c"), "[a]\nk = 1\n  [b]\nkey = 2\n");
        // As deep as the option it is a title, and stays one.
        let level = "[x]\nk = 1\n[a]\n  k = 1\n  [b]\n  key = 2\n";
        assert_eq!(readings(level).len(), 1);
        assert_eq!(without(level, "a"), "[x]\nk = 1\n[b]\n  key = 2\n");
    }

    #[test]
    fn value_is_set_and_everything_else_stays() {
        let text = "# head\n[DEFAULT]\ndefault-user = a\n\n[a]\ntoken = one\n";
        let set = with_value(text, "DEFAULT", "default-user", "b");
        assert_eq!(set, text.replace("default-user = a", "default-user = b"));
        let added = with_value(text, "DEFAULT", "more", "x");
        assert_eq!(added, text.replace("default-user = a\n", "default-user = a\nmore = x\n"));
        assert_eq!(with_value("", "core", "remote", "x"), "[core]\nremote = x\n");
        assert_eq!(with_value("[a]\nk=1", "core", "remote", "x"), "[a]\nk=1\n[core]\nremote = x\n");
        assert_eq!(with_value("[core]", "core", "remote", "x"), "[core]\nremote = x\n");
        let twice = "[core]\nremote = a\nremote = b\n[core]\nremote = c\n";
        assert_eq!(with_value(twice, "core", "remote", "x"), "[core]\nremote = x\n[core]\n");
        assert_eq!(
            without_keys(text, |title| title == "DEFAULT", |key| key == "default-user"),
            text.replace("default-user = a\n", "")
        );
    }

    #[test]
    fn pattern_without_a_place_for_a_name_matches_itself() {
        assert_eq!(name_by("profile {}", "profile \"a b\""), Some("a b"));
        assert_eq!(name_by("profile {}", "profile\tx"), Some("x"));
        assert_eq!(name_by("profile {}", "profiles"), None);
        assert_eq!(name_by("profile {}", "default"), None);
        assert_eq!(name_by("default", "default"), Some("default"));
        assert_eq!(name_by("{}", "remote"), Some("remote"));
        assert_eq!(name_by("config_{}", "config_"), None);
    }

    #[test]
    fn title_is_split_as_a_shell_does() {
        for title in [
            "profile production",
            "profile 'production'",
            "profile \"production\"",
            "profile\tproduction",
            "profile prod\\uction",
            "profile \"prod\"uction",
            "profile'' production",
            "profiles production",
        ] {
            assert!(names_by("profile {}", title).contains(&"production".to_owned()), "{title}");
        }
        assert!(names_by("profile {}", "default").is_empty());
        assert!(names_by("profile {}", "sso-session production").is_empty());
        assert_eq!(names_by("'remote \"{}\"'", "\"remote 'x'\""), ["x"]);
        assert_eq!(names_by("{}", "remote"), ["remote"]);
        assert_eq!(names_by("client_{}", "client_a"), ["a"]);
        assert!(names_by("client_{}", "client").is_empty());
    }

    #[test]
    fn keys_are_read_in_every_spelling() {
        let mut tree = tree("[a]\nROLE_ARN: x:y\rHost = \"p\"\n");
        let mut field = |path: &str| crate::tool::tree::TreePath::parse(path, str::to_owned).text(&mut tree);
        assert_eq!(field("a.role_arn").as_deref(), Some("x:y"));
        assert_eq!(field("a.host").as_deref(), Some("p"));
    }
}
