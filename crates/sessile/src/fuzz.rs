//! Fuzz targets: each takes bytes as a file or a peer would give them, and panics if a promise is broken.
//!
//! Compiled for tests, where a deterministic campaign runs them, and under libFuzzer (`--cfg fuzzing`, `scripts/fuzz`).

#![expect(clippy::expect_used, clippy::panic, reason = "a fuzz target fails by panicking")]

use std::path::Path;
use std::sync::OnceLock;

use crate::context::transfer;
use crate::error::{Error, Result};
use crate::import::fuzz_entries;
use crate::settings::{Data, Document, Node, SettingKey, Value, edit};
use crate::site::Site;
use crate::store::fuzz_lines;
use crate::tool::gitconfig;
use crate::tool::tree::{Notation, Scalar, Tree, TreePath};
use crate::tool::{Copies, ImportPlace, Plan, Profile, TargetFormat, built_in_imports, check_edits};
use crate::vault::sealed::SealedFile;
use crate::vault_key::VaultKey;
use crate::{App, duration, session, text};

/// An error must render, in text and as JSON, without anything that acts on a terminal.
fn check_error(error: &Error) {
    let app = App::new("sessile");
    let report = error.report(&app);
    let shown = report.to_string();
    let is_safe = |c: char| c == '\n' || c == '\t' || !c.is_control();
    assert!(shown.chars().all(is_safe), "unsafe text: {shown:?}");
    assert!(report.message.len() < 64 * 1024, "a message of {} bytes", report.message.len());
}

/// Value of a result; the error is checked for leaks and panics.
fn checked<T>(result: Result<T>) -> Option<T> {
    result.inspect_err(check_error).ok()
}

fn utf8(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

/// Looks at each node: positions must lie in the text.
fn visit(document: &Document, node: &Node, depth: usize) {
    assert!(depth < 1_000, "nesting is unbounded");
    let place = document.place(node.offset);
    assert!(place.line >= 1 && place.column >= 1);
    let _ = node.described();
    if let Data::Table(members) = &node.data {
        for (_, member) in members {
            visit(document, member, depth + 1);
        }
    }
}

/// A settings file in TOML: parsed, edited, parsed again.
pub fn settings_toml(bytes: &[u8]) {
    settings(Path::new("config.toml"), bytes);
}

/// A settings file in JSON, as `--config` takes it.
pub fn settings_json(bytes: &[u8]) {
    settings(Path::new("config.json"), bytes);
}

fn settings(path: &Path, bytes: &[u8]) {
    let Some(text) = utf8(bytes) else { return };
    let Some(document) = checked(Document::parse(path, text.clone())) else { return };
    visit(&document, document.root(), 0);
    let key = SettingKey::new(["env", "FUZZ"]);
    let value = Value::Text("a \"quoted\"\nvalue".to_owned());
    let Some(changed) = checked(edit::set(path, &text, &key, &value)) else { return };
    let again = Document::parse(path, changed.clone()).expect("an edited file must parse");
    let found = again.root().get("env").and_then(|env| env.get("FUZZ")).and_then(Node::as_str);
    assert_eq!(
        found,
        Some("a \"quoted\"\nvalue"),
        "the value that was set must be read back from {changed:?}"
    );
    let removed =
        edit::unset(path, &changed, &key).expect("a set value can be removed").expect("the value is set");
    let again = Document::parse(path, removed).expect("an edited file must parse");
    assert!(again.root().get("env").is_none_or(|env| env.get("FUZZ").is_none()));
}

/// A file of contexts, as `context import` takes it; every context in it is checked like one of the user's.
pub fn context_file(bytes: &[u8]) {
    let app = App::new("sessile");
    let Some(text) = utf8(bytes) else { return };
    for name in ["contexts.toml", "contexts.json"] {
        let Some(import) = checked(transfer::read(&app, Path::new(name), text.clone())) else { continue };
        let contexts = import.contexts;
        for context in &contexts {
            checked(context.content(&app));
        }
        let Some(exported) = checked(transfer::export(&app, Path::new(name), &contexts)) else { continue };
        let again = transfer::read(&app, Path::new(name), exported.text.clone());
        if !contexts.is_empty() {
            assert_eq!(
                checked(again).map(|again| again.contexts.len()),
                Some(contexts.len()),
                "{}",
                exported.text
            );
        }
    }
}

/// A tool profile.
pub fn tool_profile(bytes: &[u8]) {
    if let Some(text) = utf8(bytes) {
        checked(Profile::parse(Path::new("tool.toml"), &text));
    }
}

/// A YAML file of a tool, a kubeconfig above all.
pub fn yaml_tree(bytes: &[u8]) {
    tree(Notation::Yaml, bytes);
}

/// A JSON file of a tool.
pub fn json_tree(bytes: &[u8]) {
    tree(Notation::Json, bytes);
}

/// Round trip of a tree, also after the edits that profiles make.
fn tree(notation: Notation, bytes: &[u8]) {
    let Some(text) = utf8(bytes) else { return };
    let Some(tree) = checked(notation.parse(Path::new("a tool's file"), &text)) else { return };
    let mut edited = check_round_trip(notation, tree);
    let fill = |placeholder: &str| placeholder.replace("{context}", "staging");
    TreePath::parse("current-context", fill).set(&mut edited, &Scalar::quoted("staging"));
    TreePath::parse("contexts[name={context}].context.namespace", fill)
        .set(&mut edited, &Scalar::quoted("1e3"));
    TreePath::parse("users[]", fill).remove(&mut edited);
    check_round_trip(notation, edited);
}

/// Writes a tree and reads it again: both say the same.
fn check_round_trip(notation: Notation, mut tree: Tree) -> Tree {
    let written = notation.write(&tree);
    let again = notation.parse(Path::new("a copy"), &written);
    let again = again.unwrap_or_else(|error| panic!("{error}: {written:?}"));
    spell_out_nulls(&mut tree);
    assert!(is_same(&tree, &again), "{tree:?} was written as {written:?}, which says {again:?}");
    tree
}

/// Whether two trees are equal but for quotes that change no meaning: text stays text, and a number stays a number.
fn is_same(one: &Tree, other: &Tree) -> bool {
    let is_same_scalar = |one: &Scalar, other: &Scalar| {
        let is_word = one.text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.~".contains(c));
        one.text == other.text && if one.quoted || is_word { one.quoted == other.quoted } else { true }
    };
    match (one, other) {
        (Tree::Scalar(one), Tree::Scalar(other)) => is_same_scalar(one, other),
        (Tree::List(one), Tree::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Tree::Map(one), Tree::Map(other)) => {
            let is_same_member = |(one, other): (&(Scalar, Tree), &(Scalar, Tree))| {
                is_same_scalar(&one.0, &other.0) && is_same(&one.1, &other.1)
            };
            one.len() == other.len() && one.iter().zip(other).all(is_same_member)
        }
        _ => false,
    }
}

/// YAML reads a missing value as null, and the writer says `null`.
fn spell_out_nulls(tree: &mut Tree) {
    let spell_out = |scalar: &mut Scalar| {
        if scalar.text.is_empty() && !scalar.quoted {
            scalar.text = "null".to_owned();
        }
    };
    match tree {
        Tree::Scalar(scalar) => spell_out(scalar),
        Tree::List(items) => items.iter_mut().for_each(spell_out_nulls),
        Tree::Map(members) => {
            for (key, value) in members {
                spell_out(key);
                spell_out_nulls(value);
            }
        }
    }
}

/// A git configuration whose relative includes are made absolute.
pub fn gitconfig_file(bytes: &[u8]) {
    let Some(text) = utf8(bytes) else { return };
    let moved = gitconfig::relocated(&text, Path::new("/home/user"));
    assert_eq!(gitconfig::relocated(&moved, Path::new("/elsewhere")), moved, "includes are absolute by now");
}

/// A file of a tool with sections in brackets: profiles, services, remotes.
pub fn ini_file(bytes: &[u8]) {
    if let Some(text) = utf8(bytes) {
        check_edits(&text);
    }
}

/// A room's plan and its list of copies.
pub fn room_plan(bytes: &[u8]) {
    let _: Option<Plan> = serde_json::from_slice(bytes).ok();
    let _: Option<Copies> = serde_json::from_slice(bytes).ok();
}

/// A vault file. None opens with a key that did not seal it.
pub fn vault_file(bytes: &[u8]) {
    let Some(text) = utf8(bytes) else { return };
    let Ok(sealed) = SealedFile::of_text(&text) else { return };
    assert!(sealed.open(&VaultKey::of_bytes([9; 32])).is_err(), "opened with the wrong key: {text}");
    assert!(SealedFile::of_text(&sealed.to_text()).is_ok());
}

/// An exported session.
pub fn session_export(bytes: &[u8]) {
    if let Some(text) = utf8(bytes) {
        checked(session::transfer::read(Path::new("session.json"), &text));
    }
}

/// Short texts from command lines and files: durations, names, addresses, keys, shell words.
pub fn short_texts(bytes: &[u8]) {
    let Some(text) = utf8(bytes) else { return };
    if let Some(duration) = duration::parse(&text) {
        assert!(!duration::short(duration).is_empty());
    }
    checked(text.parse::<crate::names::ContextName>());
    checked(text.parse::<SettingKey>());
    checked(Site::of_url(&text));
    let shown = text::shown(&text);
    assert!(!shown.contains(char::is_control), "{shown:?}");
    assert!(text::shortened(&text, 20).chars().count() <= 20 + 3);
    assert!(!text::plain_name(&text, 40).contains(char::is_control));
}

/// A file that the import reads, in each place of the built-in profiles that reads text.
#[expect(clippy::disallowed_methods, reason = "simulates another program that writes the file directly")]
pub fn import_file(bytes: &[u8]) {
    static PLACES: OnceLock<Vec<ImportPlace>> = OnceLock::new();
    let is_text =
        |place: &ImportPlace| !matches!(place.place.format, TargetFormat::Sqlite | TargetFormat::Dir);
    let places = PLACES.get_or_init(|| built_in_imports().into_iter().filter(is_text).collect());
    // By file, as the import reads it. One for each process.
    let name = format!("sessile-fuzz-import-{}", std::process::id());
    let path = Path::new(if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" }).join(name);
    std::fs::write(&path, bytes).expect("the file can be written");
    for place in places {
        checked(fuzz_entries(place, &path));
    }
    let _ = std::fs::remove_file(&path);
}

/// The answers that are kept beside the store, after their first line.
pub fn kept_answers(bytes: &[u8]) {
    if let Some(text) = utf8(bytes) {
        fuzz_lines(&text);
    }
}

#[cfg(test)]
mod tests {
    testkit::fuzz_tests!(
        settings_toml,
        settings_json,
        context_file,
        tool_profile,
        yaml_tree,
        json_tree,
        gitconfig_file,
        ini_file,
        room_plan,
        vault_file,
        session_export,
        short_texts,
        import_file,
        kept_answers,
    );
}
