//! Names of types: nouns, and each public one occurs once in the workspace.

use std::collections::BTreeMap;
use std::path::Path;

use crate::repository::{files, read};

/// Convention for the arguments and the subcommands of a command: each command file has its own.
const PER_COMMAND: [&str; 2] = ["Args", "Command"];

/// Name of a public type that a line declares.
fn declared(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest =
        rest.strip_prefix('(').map_or(Some(rest), |rest| rest.split_once(')').map(|(_, rest)| rest))?;
    let rest = rest.strip_prefix(' ')?;
    let name =
        ["struct ", "enum ", "trait ", "type ", "union "].iter().find_map(|word| rest.strip_prefix(word))?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    // A macro names its types by a variable.
    Some(&name[..end]).filter(|name| !name.is_empty())
}

/// Nouns that end like a participle or an adverb.
const NOUNS: &[&str] = &[
    "Binding",
    "Encoding",
    "Feed",
    "Finding",
    "Keyring",
    "Listing",
    "Reading",
    "Reply",
    "Seed",
    "Setting",
    "Warning",
    "Withholding",
];

/// Words that are not the name of a thing: irregular participles, adverbs and other small words.
const NOT_NOUNS: &[&str] = &[
    "Again", "Always", "Did", "Done", "Found", "Given", "Gone", "Heard", "Held", "Kept", "Known", "Next",
    "Of", "Once", "Only", "Others", "Over", "Said", "Seen", "Sought", "Told", "Twice", "Way", "What", "Who",
    "Whole", "Written", "Wrong",
];

/// Name of a type, public or not, that a line declares.
fn declared_type(line: &str) -> Option<&str> {
    let line = line.trim_start();
    declared(line).or_else(|| {
        let name = ["struct ", "enum ", "trait ", "type "].iter().find_map(|word| line.strip_prefix(word))?;
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
        Some(&name[..end]).filter(|name| name.starts_with(char::is_uppercase))
    })
}

/// Whether a name is a participle or an adverb alone, such as `Asked`.
fn is_not_a_noun(name: &str) -> bool {
    let is_one_word = name.chars().filter(|c| c.is_uppercase()).count() == 1;
    let is_participle = ["ed", "ing", "ly"].iter().any(|ending| name.ends_with(ending));
    is_one_word && (NOT_NOUNS.contains(&name) || is_participle && !NOUNS.contains(&name))
}

fn is_command_file(path: &Path) -> bool {
    path.starts_with("crates/sessile-cli/src/commands") || path.ends_with("sessile-cli/src/cli.rs")
}

#[test]
fn public_type_name_occurs_once_in_the_workspace() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files(".rs") {
        if !path.starts_with("crates") || !path.components().any(|part| part.as_os_str() == "src") {
            continue;
        }
        for (number, line) in read(&path).lines().enumerate() {
            let name = declared(line).filter(|name| !(PER_COMMAND.contains(name) && is_command_file(&path)));
            if let Some(name) = name {
                places.entry(name.to_owned()).or_default().push(format!("{}:{}", path.display(), number + 1));
            }
        }
    }
    places.retain(|_, places| places.len() > 1);
    assert!(places.is_empty(), "rename all but one: {places:#?}");
}

#[test]
fn type_names_are_nouns() {
    let mut found = Vec::new();
    for path in files(".rs").into_iter().filter(|path| path.starts_with("crates")) {
        for (number, line) in read(&path).lines().enumerate() {
            if let Some(name) = declared_type(line).filter(|name| is_not_a_noun(name)) {
                found.push(format!("{}:{}: {name}", path.display(), number + 1));
            }
        }
    }
    assert!(found.is_empty(), "give these types the name of a thing:\n{}", found.join("\n"));
}

#[test]
fn participles_are_recognized() {
    for name in ["Asked", "Kept", "Waiting", "Only"] {
        assert!(is_not_a_noun(name), "{name}");
    }
    for name in ["Binding", "AlreadyCharged", "Session", "Seed"] {
        assert!(!is_not_a_noun(name), "{name}");
    }
    assert_eq!(declared_type("    struct Asked {"), Some("Asked"));
    assert_eq!(declared_type("    type_of(x)"), None);
}

#[test]
fn declarations_are_recognized() {
    for (line, name) in [
        ("pub struct Session {", Some("Session")),
        ("    pub(crate) enum Life<'a> {", Some("Life")),
        ("pub(in crate::store) type Rows = Vec<Row>;", Some("Rows")),
        ("struct Private;", None),
        ("pub struct $name;", None),
        ("pub fn session() {}", None),
        ("/// pub struct InADocument", None),
    ] {
        assert_eq!(declared(line), name, "{line}");
    }
}
