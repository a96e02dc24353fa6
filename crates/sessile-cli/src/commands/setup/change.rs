//! A change of one file that belongs to the user or an agent, and how it is reverted.
//!
//! A change inserts one text at one place. The record keeps that text and nothing else of the file, which may hold secrets.
//! Reverting removes the text where it still stands as inserted. If a program has rewritten the file meanwhile, the entry is
//! removed by its keys; every other part stays as it is now.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sessile::error::{FileError, UsageError};
use sessile::files::LockedDir;
use sessile::{Error, State};
use toml_edit::DocumentMut;

use super::json_text;

/// Largest file that is edited. Agents keep more than settings in theirs.
const LIMIT: u64 = 64 * 1024 * 1024;

/// Part of a set-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(super) enum SetupPart {
    /// The entry of the MCP server in the agent's settings
    Mcp,
    /// The instructions for the agent
    Skill,
    /// The program that starts the agent in a session, and the search path that finds it
    Wrapper,
}

/// EditNotation of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EditNotation {
    Json,
    Toml,
    /// A file that is replaced as a whole.
    Whole,
    /// A line at the end.
    Line,
}

/// Change of one file, as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SetupChange {
    pub(super) part: SetupPart,
    pub(super) path: PathBuf,
    pub(super) notation: EditNotation,
    /// The text that is inserted.
    pub(super) inserted: String,
    /// Keys of the entry, from the outermost.
    pub(super) keys: Vec<String>,
    /// How many objects around the entry are added with it.
    pub(super) added_objects: usize,
    /// Whether the file is new.
    pub(super) is_new: bool,
    /// Directories that are made for it, the outermost first.
    pub(super) new_dirs: Vec<PathBuf>,
    /// Mode of a new file.
    #[serde(skip)]
    pub(super) mode: u32,
    /// Text of the file before and after.
    #[serde(skip)]
    pub(super) texts: (Option<String>, String),
}

/// Result of comparing a file with the change that is wanted.
#[derive(Debug)]
pub(super) enum PlannedChange {
    /// The file has it already.
    Present,
    /// The file has something else in its place, which is not ours to replace.
    Occupied { path: PathBuf, what: String },
    /// The change to make.
    Change(Box<SetupChange>),
}

/// Result of reverting a change.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RevertResult {
    /// The file is as it was, apart from changes by others.
    Restored,
    /// The file was made by the set-up and is removed.
    Removed,
    /// Somebody else removed it before.
    Gone,
    /// The file was changed and is left.
    Left,
}

impl SetupChange {
    fn new(part: SetupPart, path: &Path, notation: EditNotation, before: Option<String>) -> Self {
        let missing = path.ancestors().skip(1).take_while(|dir| !dir.exists()).map(Path::to_owned);
        let mut new_dirs: Vec<PathBuf> = missing.collect();
        new_dirs.reverse();
        SetupChange {
            part,
            path: path.to_owned(),
            notation,
            inserted: String::new(),
            keys: Vec::new(),
            added_objects: 0,
            is_new: before.is_none(),
            new_dirs,
            mode: 0o600,
            texts: (before, String::new()),
        }
    }

    /// An entry of the MCP server: the entry named `sessile` of a snippet.
    pub(super) fn entry(path: &Path, format: &str, snippet: &str) -> Result<PlannedChange, Error> {
        Self::entry_in(path, read(path)?, format, snippet)
    }

    /// The same for a file with this text.
    pub(super) fn entry_in(
        path: &Path,
        before: Option<String>,
        format: &str,
        snippet: &str,
    ) -> Result<PlannedChange, Error> {
        let text = before.clone().unwrap_or_default();
        match format {
            "json" => Self::json_entry(path, before, &text, snippet),
            _ => Self::toml_entry(path, before, &text, snippet),
        }
    }

    fn json_entry(
        path: &Path,
        before: Option<String>,
        text: &str,
        snippet: &str,
    ) -> Result<PlannedChange, Error> {
        let wanted = json_text::parsed(snippet).and_then(|snippet| find_entry(&snippet));
        // The snippets are compiled in, and a test reads each.
        let Some((keys, value)) = wanted else { return Err(cannot_edit(path, "the snippet", "JSON")) };
        match json_text::value_at(text, &keys) {
            Some(found) if found == value => return Ok(PlannedChange::Present),
            Some(_) => return Ok(occupied(path, &keys)),
            None => {}
        }
        let is_blank = text.trim().is_empty();
        let (blank, text) = if is_blank { (text, "{}") } else { ("", text) };
        let insertion = json_text::insertion(text, &keys, &value)
            .ok_or_else(|| cannot_edit(path, "its content", "a JSON object without a conflicting entry"))?;
        let missing = (1..keys.len()).filter(|length| json_text::value_at(text, &keys[..*length]).is_none());
        let added_objects = missing.count();
        let after = insertion.applied_to(text);
        let mut change = Self::new(SetupPart::Mcp, path, EditNotation::Json, before);
        change.inserted = insertion.text;
        if is_blank {
            // The braces are ours as well.
            change.inserted = format!("{after}\n");
            change.texts.1 = format!("{blank}{}", change.inserted);
        } else {
            change.texts.1 = after;
        }
        Ok(PlannedChange::Change(Box::new(SetupChange { keys, added_objects, ..change })))
    }

    fn toml_entry(
        path: &Path,
        before: Option<String>,
        text: &str,
        snippet: &str,
    ) -> Result<PlannedChange, Error> {
        let invalid = || cannot_edit(path, "its content", "TOML without a conflicting entry");
        let wanted: DocumentMut = snippet.parse().map_err(|_| invalid())?;
        let (keys, value) = find_entry(&toml_value(&wanted)).ok_or_else(invalid)?;
        let document: DocumentMut = text.parse().map_err(|_| invalid())?;
        let found =
            keys.iter().try_fold(toml_value(&document), |mut value, key| Some(value.get_mut(key)?.take()));
        match found {
            Some(found) if found == value => return Ok(PlannedChange::Present),
            Some(_) => return Ok(occupied(path, &keys)),
            None => {}
        }
        let gap = match text {
            "" => "",
            text if text.ends_with("\n\n") => "",
            text if text.ends_with('\n') => "\n",
            _ => "\n\n",
        };
        let mut change = Self::new(SetupPart::Mcp, path, EditNotation::Toml, before);
        change.inserted = format!("{gap}{}", snippet.trim_start());
        change.texts.1 = format!("{text}{}", change.inserted);
        // An inline table, for example, takes no more entries.
        change.texts.1.parse::<DocumentMut>().map_err(|_| invalid())?;
        Ok(PlannedChange::Change(Box::new(SetupChange { keys, ..change })))
    }

    /// A file of our own.
    pub(super) fn file(
        part: SetupPart,
        path: &Path,
        text: String,
        mode: u32,
    ) -> Result<PlannedChange, Error> {
        match read(path)? {
            Some(found) if found == text => Ok(PlannedChange::Present),
            Some(_) => Ok(PlannedChange::Occupied { path: path.to_owned(), what: "the file".to_owned() }),
            None => {
                let mut change = Self::new(part, path, EditNotation::Whole, None);
                change.inserted.clone_from(&text);
                change.texts.1 = text;
                change.mode = mode;
                Ok(PlannedChange::Change(Box::new(change)))
            }
        }
    }

    /// A line at the end of a file.
    pub(super) fn line(part: SetupPart, path: &Path, line: &str) -> Result<PlannedChange, Error> {
        let before = read(path)?;
        let text = before.clone().unwrap_or_default();
        if text.lines().any(|found| found == line) {
            return Ok(PlannedChange::Present);
        }
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let mut change = Self::new(part, path, EditNotation::Line, before);
        change.inserted = format!("{gap}{line}\n");
        change.texts.1 = format!("{text}{}", change.inserted);
        change.mode = 0o644;
        Ok(PlannedChange::Change(Box::new(change)))
    }

    /// Change of an older set-up that is reverted and repeated; shown, not applied.
    pub(super) fn replacement(path: &Path) -> Self {
        SetupChange { is_new: false, ..Self::new(SetupPart::Mcp, path, EditNotation::Whole, None) }
    }

    /// Makes the change, if the file is still as it was planned for.
    pub(super) fn apply(&self, state: &State) -> Result<(), Error> {
        let (dir, name) = LockedDir::of_file(&state.locker()?, &self.path, 0o755)?;
        if dir.read_up_to(&name, LIMIT)? != self.texts.0 {
            return Err(FileError::ConcurrentChange { path: self.path.clone(), kept: None }.into());
        }
        dir.replace(&name, &self.texts.1, self.mode)
    }

    /// Text of the file without this change; `None` removes the file.
    pub(super) fn reverted(&self, text: &str) -> (RevertResult, Option<String>) {
        let spliced = match text.matches(self.inserted.as_str()).count() {
            1 => Some(text.replacen(&self.inserted, "", 1)),
            _ => None,
        };
        let is_plausible = |left: &String| match self.notation {
            EditNotation::Json => left.trim().is_empty() || json_text::parsed(left).is_some(),
            EditNotation::Toml => left.parse::<DocumentMut>().is_ok(),
            EditNotation::Whole => left.is_empty(),
            EditNotation::Line => true,
        };
        let left = spliced.filter(is_plausible).or_else(|| match self.notation {
            EditNotation::Json => json_text::without(text, &self.keys, self.added_objects),
            EditNotation::Toml => without_toml(text, &self.keys),
            EditNotation::Line => {
                let line = self.inserted.trim_matches('\n');
                let has_line = text.lines().any(|found| found == line);
                has_line.then(|| {
                    text.split_inclusive('\n').filter(|found| found.trim_end_matches('\n') != line).collect()
                })
            }
            EditNotation::Whole => None,
        });
        let Some(left) = left else {
            // A file of ours that somebody edited is theirs now.
            let outcome =
                if self.notation == EditNotation::Whole { RevertResult::Left } else { RevertResult::Gone };
            return (outcome, Some(text.to_owned()));
        };
        let is_bare = left.trim().is_empty() || self.notation == EditNotation::Json && left.trim() == "{}";
        if self.is_new && is_bare {
            (RevertResult::Removed, None)
        } else {
            (RevertResult::Restored, Some(left))
        }
    }

    /// Reverts the change in the file.
    pub(super) fn revert(&self, state: &State) -> Result<RevertResult, Error> {
        if read(&self.path)?.is_none() {
            return Ok(RevertResult::Gone);
        }
        let (dir, name) = LockedDir::of_file(&state.locker()?, &self.path, 0o755)?;
        let Some(text) = dir.read_up_to(&name, LIMIT)? else { return Ok(RevertResult::Gone) };
        let (outcome, left) = self.reverted(&text);
        match left {
            Some(left) if left != text => dir.replace(&name, &left, self.mode)?,
            Some(_) => {}
            None => {
                dir.remove(&name)?;
                drop(dir);
                for dir in self.new_dirs.iter().rev() {
                    // A directory that somebody else uses by now stays.
                    let _ = std::fs::remove_dir(dir);
                }
            }
        }
        Ok(outcome)
    }

    /// The change in a few words.
    pub(super) fn summary(&self) -> String {
        match self.notation {
            EditNotation::Json | EditNotation::Toml => format!("add {}", self.keys.join(".")),
            EditNotation::Whole if self.is_new => "create".to_owned(),
            EditNotation::Whole => "replace the older set-up".to_owned(),
            EditNotation::Line => format!("add `{}`", self.inserted.trim_matches('\n')),
        }
    }
}

fn read(path: &Path) -> Result<Option<String>, Error> {
    sessile::files::read_up_to(path, LIMIT)
}

fn occupied(path: &Path, keys: &[String]) -> PlannedChange {
    PlannedChange::Occupied { path: path.to_owned(), what: keys.join(".") }
}

fn cannot_edit(path: &Path, value: &str, expected: &str) -> Error {
    let place = path.display().to_string();
    UsageError::InvalidValue { place, value: value.to_owned(), expected: expected.to_owned() }.into()
}

/// Keys and value of the entry named `sessile`.
fn find_entry(value: &Value) -> Option<(Vec<String>, Value)> {
    let members = value.as_object()?;
    if let Some(entry) = members.get(ENTRY) {
        return Some((vec![ENTRY.to_owned()], entry.clone()));
    }
    members.iter().find_map(|(key, below)| {
        let (mut keys, entry) = find_entry(below)?;
        keys.insert(0, key.clone());
        Some((keys, entry))
    })
}

/// Name of the server in the clients' files.
const ENTRY: &str = "sessile";

fn toml_value(document: &DocumentMut) -> Value {
    table_value(document.as_table())
}

fn table_value(table: &dyn toml_edit::TableLike) -> Value {
    Value::Object(table.iter().map(|(key, item)| (key.to_owned(), item_value(item))).collect())
}

/// A value to compare with: strings, arrays and tables as they are, everything else as its text.
fn item_value(item: &toml_edit::Item) -> Value {
    if let Some(text) = item.as_str() {
        return Value::from(text);
    }
    if let Some(array) = item.as_array() {
        return array.iter().map(|value| item_value(&toml_edit::Item::Value(value.clone()))).collect();
    }
    match item.as_table_like() {
        Some(table) => table_value(table),
        None => Value::from(item.to_string().trim()),
    }
}

fn without_toml(text: &str, keys: &[String]) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let (key, above) = keys.split_last()?;
    let mut table: &mut dyn toml_edit::TableLike = document.as_table_mut();
    for key in above {
        table = table.get_mut(key)?.as_table_like_mut()?;
    }
    table.remove(key)?;
    Some(document.to_string())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "simulates another program that writes the file directly")]
mod tests {
    use super::*;

    fn planned(format: &str, snippet: &str, text: Option<&str>) -> SetupChange {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("settings");
        if let Some(text) = text {
            std::fs::write(&path, text).unwrap();
        }
        match SetupChange::entry(&path, format, snippet).unwrap() {
            PlannedChange::Change(change) => *change,
            other => panic!("{other:?}"),
        }
    }

    const JSON: &str = r#"{ "mcpServers": { "sessile": { "command": "sessile", "args": ["mcp"] } } }"#;
    const TOML: &str = "[mcp_servers.sessile]\ncommand = \"sessile\"\nargs = [\"mcp\"]\n";

    #[test]
    fn reverting_restores_every_byte() {
        for text in [
            "{}",
            "{ }",
            "{\"a\":1}",
            "{\n\t\"a\": 1\n}\n",
            "{\r\n  \"mcpServers\": {}\r\n}",
            "// mine\n{\"a\": 1,}\n",
            "\n",
        ] {
            let change = planned("json", JSON, Some(text));
            assert_eq!(
                change.reverted(&change.texts.1),
                (RevertResult::Restored, Some(text.to_owned())),
                "{text:?}"
            );
        }
        for text in ["", "# mine", "a = 1\n", "a = 1\n\n", "[mcp_servers.x]\ncommand = 'x'\n"] {
            let change = planned("toml", TOML, Some(text));
            assert_eq!(
                change.reverted(&change.texts.1),
                (RevertResult::Restored, Some(text.to_owned())),
                "{text:?}"
            );
        }
        for (format, snippet) in [("json", JSON), ("toml", TOML)] {
            let change = planned(format, snippet, None);
            assert_eq!(change.reverted(&change.texts.1), (RevertResult::Removed, None));
        }
    }

    #[test]
    fn changes_of_others_survive_reverting() {
        let change = planned("json", JSON, Some("{\n  \"a\": 1\n}\n"));
        let edited = change.texts.1.replace("\"a\": 1", "\"a\": 2,\n  \"b\": 3");
        assert_eq!(change.reverted(&edited).1.unwrap(), "{\n  \"a\": 2,\n  \"b\": 3\n}\n");
        let minified = json_text::parsed(&change.texts.1).unwrap().to_string();
        assert_eq!(change.reverted(&minified).1.unwrap(), "{\"a\":1}");
        let change = planned("toml", TOML, Some("a = 1\n"));
        let edited = change.texts.1.replace("[\"mcp\"]", "[ \"mcp\" ]") + "\n[projects.x]\ntrust = true\n";
        assert_eq!(change.reverted(&edited).1.unwrap(), "a = 1\n\n[projects.x]\ntrust = true\n");
    }

    #[test]
    fn entry_of_somebody_else_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("settings.json");
        std::fs::write(&path, r#"{"mcpServers": {"sessile": {"command": "other"}}}"#).unwrap();
        let planned = SetupChange::entry(&path, "json", JSON).unwrap();
        assert!(matches!(planned, PlannedChange::Occupied { what, .. } if what == "mcpServers.sessile"));
        std::fs::write(&path, JSON).unwrap();
        assert!(matches!(SetupChange::entry(&path, "json", JSON).unwrap(), PlannedChange::Present));
        std::fs::write(&path, "[1]").unwrap();
        SetupChange::entry(&path, "json", JSON).unwrap_err();
    }
}
