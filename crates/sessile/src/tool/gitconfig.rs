//! Files of sections and keys in which `[include]` sections name other files, relative to their own directory.
//!
//! Names of sections and keys are case-insensitive, and the last value of a key counts, also among included files.

use std::path::Path;

use crate::tool::tree::{Scalar, Tree};

/// The same text for a file in another directory: relative includes made absolute.
pub(crate) fn relocated(text: &str, dir: &Path) -> String {
    let mut in_include = false;
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if let Some(section) = trimmed.strip_prefix('[') {
            // Section names are case-insensitive in git.
            let section = section.to_ascii_lowercase();
            in_include = section.starts_with("include]")
                || section.starts_with("includeif ")
                || section.starts_with("includeif\t");
        }
        match include_path(trimmed).filter(|_| in_include) {
            // Absolute, below a home, or with git's own prefix `%(prefix)/`: these mean the same from
            // anywhere.
            Some(path) if !path.is_empty() && !path.starts_with(['/', '~', '%']) => {
                let absolute = dir.join(&path).to_string_lossy().into_owned();
                // git reads a backslash and a quote within quotes as escapes.
                let escaped = absolute.replace('\\', "\\\\").replace('"', "\\\"");
                out.push_str(&format!("\tpath = \"{escaped}\"\n"));
            }
            _ => out.push_str(line),
        }
    }
    // Appended lines must not continue the user's last one.
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// A text in which a key of a section has a value and no other, in a section of its own at the end: there no include overrides
/// it.
pub(crate) fn with_value(text: &str, section: &str, key: &str, value: &str) -> String {
    let mut parts: Vec<Vec<&str>> = vec![Vec::new()];
    let (mut is_meant, mut is_continued) = (false, false);
    for line in text.split_inclusive('\n') {
        let title = title(line);
        if let Some(title) = &title {
            is_meant = *title == section.to_ascii_lowercase();
            parts.push(Vec::new());
        }
        let is_key =
            title.is_none() && assignment(line).is_some_and(|(found, _)| found.eq_ignore_ascii_case(key));
        let is_removed = is_meant && (is_key || is_continued);
        is_continued = is_removed && line.trim_end().ends_with('\\');
        if let Some(part) = parts.last_mut().filter(|_| !is_removed) {
            part.push(line);
        }
    }
    // Sections that only held the key would pile up with every change.
    let is_empty = |part: &Vec<&str>| match part.split_first() {
        Some((first, rest)) => {
            title(first).is_some_and(|title| title == section.to_ascii_lowercase())
                && rest.iter().all(|line| line.trim().is_empty())
        }
        None => true,
    };
    let mut new: String = parts.into_iter().filter(|part| !is_empty(part)).flatten().collect();
    if !new.is_empty() && !new.ends_with('\n') {
        new.push('\n');
    }
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
    new.push_str(&format!("[{section}]\n\t{key} = \"{escaped}\"\n"));
    new
}

/// The sections of a text by their titles, for reading. The last value of a key is found first.
pub(crate) fn tree(text: &str) -> Tree {
    let mut sections: Vec<(Scalar, Tree)> = Vec::new();
    for line in text.lines() {
        if let Some(title) = title(line) {
            sections.push((Scalar::quoted(title), Tree::Map(Vec::new())));
        } else if let (Some((_, Tree::Map(keys))), Some((key, value))) =
            (sections.last_mut(), assignment(line))
        {
            let value = Tree::Scalar(Scalar::quoted(unquoted(value)));
            keys.insert(0, (Scalar::quoted(key.to_ascii_lowercase()), value));
        }
    }
    sections.reverse();
    Tree::Map(sections)
}

/// Title in the brackets of a section's first line; the name of a subsection is case-sensitive.
fn title(line: &str) -> Option<String> {
    let (title, _) = line.trim().strip_prefix('[')?.rsplit_once(']')?;
    Some(match title.split_once('"') {
        Some((name, rest)) => format!("{}\"{rest}", name.to_ascii_lowercase()),
        None => title.trim().to_ascii_lowercase(),
    })
}

/// Key and value of a line.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let (key, value) = line.split_once('=').filter(|_| !line.starts_with(['#', ';']))?;
    Some((key.trim(), value.trim()))
}

/// The value of a `path` key.
fn include_path(line: &str) -> Option<String> {
    let (key, value) = line.split_once('=')?;
    key.trim().eq_ignore_ascii_case("path").then(|| unquoted(value.trim()))
}

/// A value without its quotes and the comment after it.
fn unquoted(value: &str) -> String {
    let Some(quoted) = value.strip_prefix('"') else {
        // A comment ends a value that is not quoted.
        return value.split(['#', ';']).next().unwrap_or_default().trim().to_owned();
    };
    let mut path = String::new();
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => break,
            '\\' => path.extend(characters.next()),
            other => path.push(other),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_includes_become_absolute_and_nothing_else_changes() {
        let text = "[user]\n\tpath = relative\n[include]\n\tpath = work.inc # mine\n\tpath = ~/x\n\tpath = /abs\n[includeIf \"gitdir:~/w/\"]\n  Path = \"my \\\"dir\\\"/w\"\n[alias]\n\tpath = x";
        let wanted = "[user]\n\tpath = relative\n[include]\n\tpath = \"/d/work.inc\"\n\tpath = ~/x\n\tpath = /abs\n[includeIf \"gitdir:~/w/\"]\n\tpath = \"/d/my \\\"dir\\\"/w\"\n[alias]\n\tpath = x\n";
        assert_eq!(relocated(text, Path::new("/d")), wanted);
    }
    #[test]
    fn value_at_the_end_replaces_all_others_and_is_read_back() {
        let text = "[User]\n\tname = Bob # me\n\tEmail = own@x \\\n  more\n[includeIf \"gitdir:~/Work/\"]\n\tpath = w\n[user]\n\temail = two@x\n";
        let once = with_value(text, "user", "email", "a \"b\"@x");
        let wanted = "[User]\n\tname = Bob # me\n[includeIf \"gitdir:~/Work/\"]\n\tpath = w\n[user]\n\temail = \"a \\\"b\\\"@x\"\n";
        assert_eq!(once, wanted);
        assert_eq!(with_value(&once, "user", "email", "a \"b\"@x"), wanted);
        let read = |key: &str| {
            let mut tree = tree(&once);
            crate::tool::tree::TreePath::parse(key, str::to_owned).text(&mut tree)
        };
        assert_eq!(read("user.email").as_deref(), Some("a \"b\"@x"));
        assert_eq!(read("user.name").as_deref(), Some("Bob"));
        assert_eq!(with_value("", "user", "name", "x"), "[user]\n\tname = \"x\"\n");
    }
}
