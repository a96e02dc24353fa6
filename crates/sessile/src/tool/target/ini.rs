//! Files with sections in brackets, of which whole sections are kept or dropped and nothing else is touched.

use crate::tool::tree::{Scalar, Tree};

/// A section: its lines as they are, and what its keys say.
pub(super) struct Section<'t> {
    /// What stands in the brackets; none for what precedes the first section.
    pub(super) title: Option<&'t str>,
    lines: Vec<&'t str>,
}

/// The sections of a text, in order.
pub(super) fn sections(text: &str) -> Vec<Section<'_>> {
    let mut all = vec![Section { title: None, lines: Vec::new() }];
    for line in text.split_inclusive('\n') {
        // Some editors begin a file with a byte order mark.
        let text = line.trim_start_matches('\u{feff}');
        let title = text
            .trim()
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'))
            .map(|(title, _)| title.trim());
        if title.is_some() {
            all.push(Section { title, lines: Vec::new() });
        }
        if let Some(last) = all.last_mut() {
            last.lines.push(line);
        }
    }
    all
}

impl Section<'_> {
    /// Text.
    pub(super) fn text(&self) -> String {
        self.lines.concat()
    }

    /// Keys and values. A key in an indented group counts like any other.
    pub(super) fn fields(&self) -> Tree {
        let pairs = self.lines.iter().filter_map(|line| {
            let line = line.trim();
            let (key, value) = line.split_once('=').filter(|_| !line.starts_with(['#', ';', '[']))?;
            Some((Scalar::quoted(key.trim()), Tree::Scalar(Scalar::quoted(value.trim()))))
        });
        Tree::Map(pairs.collect())
    }
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
    let unquoted = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name);
    (!unquoted.is_empty()).then_some(unquoted)
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
    fn pattern_without_a_place_for_a_name_matches_itself() {
        assert_eq!(name_by("profile {}", "profile \"a b\""), Some("a b"));
        assert_eq!(name_by("profile {}", "profile\tx"), Some("x"));
        assert_eq!(name_by("profile {}", "profiles"), None);
        assert_eq!(name_by("profile {}", "default"), None);
        assert_eq!(name_by("default", "default"), Some("default"));
        assert_eq!(name_by("{}", "remote"), Some("remote"));
        assert_eq!(name_by("config_{}", "config_"), None);
    }
}
