//! Names of public types: each occurs once in the workspace.

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
