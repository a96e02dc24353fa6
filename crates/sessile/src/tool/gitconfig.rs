//! Files of sections and keys in which `[include]` sections name other files, relative to their own directory.

use std::path::Path;

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

/// The value of a `path` key.
fn include_path(line: &str) -> Option<String> {
    let (key, value) = line.split_once('=')?;
    if !key.trim().eq_ignore_ascii_case("path") {
        return None;
    }
    let value = value.trim();
    let Some(quoted) = value.strip_prefix('"') else {
        // A comment ends a value that is not quoted.
        return Some(value.split(['#', ';']).next().unwrap_or_default().trim().to_owned());
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
    Some(path)
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
}
