//! Edits of TOML text: setting, removing and renaming one key. Every other byte stays, except a header that is left empty.

use std::ops::Range;
use std::path::Path;

use toml_edit::{DocumentMut, Item, Table, TableLike};

use crate::error::{Error, FileError, Result};
use crate::settings::document::is_json;
use crate::settings::{Document, SettingKey, Value};

/// The text with one key set.
pub fn set(path: &Path, text: &str, key: &SettingKey, value: &Value) -> Result<String> {
    let document = Document::parse(path, text.to_owned())?;
    let changed = if is_json(path) {
        set_json(&document, key, value)?
    } else {
        match toml_place(text, key) {
            Some(place) => {
                format!("{}{}{}", &text[..place.value.start], encoded(value), &text[place.value.end..])
            }
            None => insert_toml(&document, key, value)?,
        }
    };
    // Parsed once more: a text that does not parse must never replace one that does.
    Document::parse(path, changed).map(|document| document.text().to_owned())
}

/// The text without one key; `None` if it was not there.
pub fn unset(path: &Path, text: &str, key: &SettingKey) -> Result<Option<String>> {
    let document = Document::parse(path, text.to_owned())?;
    if key.segments().iter().try_fold(document.root(), |node, name| node.get(name)).is_none() {
        return Ok(None);
    }
    let changed = if is_json(path) { unset_json(text, key) } else { remove_toml(text, key) };
    Document::parse(path, changed).map(|document| Some(document.text().to_owned()))
}

/// The text with one member of a table under another name.
pub fn rename_table(path: &Path, text: &str, table: &str, from: &str, to: &str) -> Result<String> {
    let document = Document::parse(path, text.to_owned())?;
    let changed = if is_json(path) {
        let mut root: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        if let Some(members) = root.get_mut(table).and_then(serde_json::Value::as_object_mut)
            // `remove` would move the last member into the gap, and change the order of the file.
            && let Some(member) = members.shift_remove(from)
        {
            members.insert(to.to_owned(), member);
        }
        pretty(&root)
    } else {
        // Parsed above, so it cannot fail.
        let mut edited = document.text().parse::<DocumentMut>().unwrap_or_default();
        if let Some(members) = edited.get_mut(table).and_then(Item::as_table_like_mut)
            && let Some(member) = members.remove(from)
        {
            members.insert(to, member);
        }
        edited.to_string()
    };
    Document::parse(path, changed).map(|document| document.text().to_owned())
}

fn encoded(value: &Value) -> String {
    toml_value(value).to_string().trim().to_owned()
}

fn toml_value(value: &Value) -> toml_edit::Value {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Integer(value) => (*value).into(),
        Value::Text(text) => toml_text(text),
        Value::Secret(secret) => toml_text(secret.expose()),
        Value::List(items) => toml_edit::Value::Array(items.iter().map(String::as_str).collect()),
    }
}

/// Text as a TOML value. Control characters are escaped, because the file may be printed on a terminal.
fn toml_text(text: &str) -> toml_edit::Value {
    // A JSON string is a basic string of TOML too.
    let escaped = || crate::text::json_safe(&serde_json::Value::from(text).to_string()).parse().ok();
    crate::text::acts_on_terminals(text).then(escaped).flatten().unwrap_or_else(|| text.into())
}

/// Position of a key and its value in a TOML text.
struct TomlPlace {
    key: Range<usize>,
    value: Range<usize>,
    inline: bool,
}

fn toml_place(text: &str, key: &SettingKey) -> Option<TomlPlace> {
    let document = toml_edit::Document::parse(text).ok()?;
    let (last, above) = key.segments().split_last()?;
    let mut table: &dyn TableLike = document.as_table();
    let mut inline = false;
    for segment in above {
        let item = table.get(segment)?;
        inline |= item.is_inline_table();
        table = item.as_table_like()?;
    }
    // A table has no single place: its keys may be spread over the file.
    let item = table.get(last).filter(|item| item.is_value())?;
    Some(TomlPlace { key: table.key(last)?.span()?, value: item.span()?, inline })
}

fn insert_toml(document: &Document, key: &SettingKey, value: &Value) -> Result<String> {
    let (path, text) = (document.path(), document.text());
    // What stands above everything else, with a blank line below it, speaks of the file and stays on top.
    let (header, text) = text.split_at(header_end(text));
    let mut edited: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| FileError::Syntax {
        place: document.place(error.span().map_or(0, |span| span.start)).into(),
        message: error.message().to_owned(),
    })?;
    let Some((last, above)) = key.segments().split_last() else { return Ok(text.to_owned()) };
    // In a file of comments alone, they stay above the first key.
    let comments =
        edited.as_table().is_empty().then(|| edited.trailing().as_str().unwrap_or_default().to_owned());
    if comments.is_some() {
        edited.set_trailing("");
    }
    let mut table: &mut dyn TableLike = edited.as_table_mut();
    for (depth, segment) in above.iter().enumerate() {
        let entry = table.entry(segment).or_insert_with(|| {
            let mut new = Table::new();
            // Only the innermost new table gets a header of its own.
            new.set_implicit(depth + 1 < above.len());
            Item::Table(new)
        });
        if let Some((_, last)) = entry.as_inline_table_mut().and_then(|inline| inline.iter_mut().last())
            && last
                .decor()
                .suffix()
                .and_then(|suffix| suffix.as_str())
                .is_some_and(|space| space.trim().is_empty())
        {
            // The space before the closing brace moves behind the new member.
            last.decor_mut().set_suffix("");
        }
        table = entry.as_table_like_mut().ok_or_else(|| {
            let node = key.segments()[..=depth].iter().try_fold(document.root(), |node, name| node.get(name));
            Error::File(FileError::Value {
                place: document.place(node.map_or(0, |node| node.offset)).into(),
                key: SettingKey::new(key.segments()[..=depth].iter().cloned()).to_string(),
                expected: "a table".into(),
                found: node.map_or_else(|| "something else".into(), |node| document.describe(node)),
            })
        })?;
    }
    table.insert(last, toml_edit::value(toml_value(value)));
    let mut changed = edited.to_string();
    if let Some(comments) = comments.filter(|comments| !comments.trim().is_empty()) {
        let end = if comments.ends_with('\n') { "" } else { "\n" };
        let apart = if changed.starts_with('[') { "\n" } else { "" };
        changed = format!("{comments}{end}{apart}{changed}");
    }
    let changed = format!("{header}{changed}");
    debug_assert!(Document::parse(path, changed.clone()).is_ok());
    Ok(changed)
}

/// End of the leading comments, up to their last blank line.
fn header_end(text: &str) -> usize {
    let mut offset = 0;
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        offset += line.len();
        match line.trim() {
            "" => end = offset,
            comment if comment.starts_with('#') => {}
            _ => break,
        }
    }
    end
}

fn remove_toml(text: &str, key: &SettingKey) -> String {
    // A key on lines of its own goes with those lines; the comments above it stay.
    // An inline table shares its line with other keys.
    if let Some(place) = toml_place(text, key).filter(|place| !place.inline) {
        let start = text[..place.key.start].rfind('\n').map_or(0, |at| at + 1);
        let end = text[place.value.end..].find('\n').map_or(text.len(), |at| place.value.end + at + 1);
        let removed = format!("{}{}", &text[..start], &text[end..]);
        return without_empty_table(removed, key);
    }
    let Ok(mut edited) = text.parse::<DocumentMut>() else { return text.to_owned() };
    if let Some((last, above)) = key.segments().split_last() {
        let mut table: Option<&mut dyn TableLike> = Some(edited.as_table_mut());
        for segment in above {
            table = table.and_then(|table| table.get_mut(segment)).and_then(Item::as_table_like_mut);
        }
        if let Some(table) = table {
            table.remove(last);
        }
    }
    edited.to_string()
}

/// Drops the header that is left with nothing under it, unless a comment stands with it.
fn without_empty_table(text: String, key: &SettingKey) -> String {
    let [table, _] = key.segments() else { return text };
    let Ok(document) = toml_edit::Document::parse(text.as_str()) else { return text };
    let Some(Item::Table(empty)) =
        document.get(table).filter(|item| item.as_table().is_some_and(Table::is_empty))
    else {
        return text;
    };
    let Some(span) = empty.span() else { return text };
    let prefix = empty.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
    let end = text[span.end..].find('\n').map_or(text.len(), |at| span.end + at + 1);
    if prefix.contains('#') || text[span.start..end].contains('#') {
        return text;
    }
    format!("{}{}", &text[..span.start], &text[end..])
}

fn set_json(document: &Document, key: &SettingKey, value: &Value) -> Result<String> {
    // `Document::parse` has checked the text.
    let mut root: serde_json::Value = serde_json::from_str(document.text()).unwrap_or_default();
    let mut at = &mut root;
    for (depth, segment) in key.segments().iter().enumerate() {
        let Some(table) = at.as_object_mut() else {
            let above = &key.segments()[..depth];
            let node = above.iter().try_fold(document.root(), |node, name| node.get(name));
            return Err(FileError::Value {
                place: document.place(node.map_or(0, |node| node.offset)).into(),
                key: SettingKey::new(above.iter().cloned()).to_string(),
                expected: "a table".into(),
                found: node.map_or_else(|| "something else".into(), |node| document.describe(node)),
            }
            .into());
        };
        at = table.entry(segment.clone()).or_insert_with(|| serde_json::json!({}));
    }
    *at = match value {
        Value::Bool(value) => (*value).into(),
        Value::Integer(value) => (*value).into(),
        Value::Text(text) => text.as_str().into(),
        Value::Secret(secret) => secret.expose().into(),
        Value::List(items) => items.clone().into(),
    };
    Ok(pretty(&root))
}

fn unset_json(text: &str, key: &SettingKey) -> String {
    let mut root: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    if let Some((last, above)) = key.segments().split_last() {
        let table = above.iter().try_fold(&mut root, |value, segment| value.get_mut(segment));
        if let Some(table) = table.and_then(serde_json::Value::as_object_mut) {
            table.shift_remove(last);
        }
    }
    pretty(&root)
}

fn pretty(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(text: &str) -> SettingKey {
        text.parse().unwrap()
    }

    fn set_toml(text: &str, name: &str, value: &str) -> String {
        set(Path::new("c.toml"), text, &key(name), &Value::Text(value.into())).unwrap()
    }

    #[test]
    fn a_changed_value_keeps_every_comment_and_the_order() {
        let text = "# mine\na = 'x' # why\n\n# two\n[session] # s\n  idle = \"2h\"   # keep\nmax = \"8h\"\n";
        let changed = set_toml(text, "session.idle", "3h");
        assert_eq!(changed, text.replace("\"2h\"", "\"3h\""));
        assert_eq!(set_toml(text, "a", "y"), text.replace("'x'", "\"y\""));
    }

    #[test]
    fn new_keys_go_where_they_belong() {
        assert_eq!(set_toml("", "a", "1"), "a = \"1\"\n");
        assert_eq!(set_toml("# only a comment\n", "a", "1"), "# only a comment\na = \"1\"\n");
        assert_eq!(set_toml("[t]\nx = 1\n", "a", "1"), "a = \"1\"\n[t]\nx = 1\n");
        assert_eq!(set_toml("", "session.idle", "1h"), "[session]\nidle = \"1h\"\n");
        assert_eq!(
            set_toml("session.max = \"8h\"\n", "session.idle", "1h"),
            "session.max = \"8h\"\nsession.idle = \"1h\"\n"
        );
        assert_eq!(set_toml("t = { a = 1 }\n", "t.b", "2"), "t = { a = 1, b = \"2\" }\n");
    }

    #[test]
    fn removing_a_key_keeps_what_stands_around_it() {
        let text = "# head\n\n# about a\na = 1\nb = [ # list\n  2,\n]\n[s]\nc = 3\n";
        let without = |name: &str| unset(Path::new("c.toml"), text, &key(name)).unwrap().unwrap();
        assert_eq!(without("a"), text.replace("a = 1\n", ""));
        assert_eq!(without("b"), text.replace("b = [ # list\n  2,\n]\n", ""));
        assert_eq!(without("s.c"), text.replace("[s]\nc = 3\n", ""));
        assert_eq!(unset(Path::new("c.toml"), text, &key("none")).unwrap(), None);
        let inline = unset(Path::new("c.toml"), "t = { a = 1, b = 2 }\n", &key("t.a")).unwrap().unwrap();
        assert!(!inline.contains('a') && inline.contains("b = 2"), "{inline}");
    }

    #[test]
    fn a_value_in_the_way_is_an_error_with_its_place() {
        for (path, text) in [("c.toml", "\nsession = 1\n"), ("c.json", "{\n\"session\": 1}")] {
            let error =
                set(Path::new(path), text, &key("session.idle"), &Value::Text("1h".into())).unwrap_err();
            assert_eq!(error.location().unwrap().line, 2, "{error}");
        }
    }

    #[test]
    fn json_keeps_its_order() {
        let changed =
            set(Path::new("c.json"), "{\"z\": 1, \"a\": {}}", &key("a.b"), &Value::Bool(true)).unwrap();
        assert_eq!(changed, "{\n  \"z\": 1,\n  \"a\": {\n    \"b\": true\n  }\n}\n");
        assert_eq!(
            unset(Path::new("c.json"), &changed, &key("a.b")).unwrap().unwrap(),
            "{\n  \"z\": 1,\n  \"a\": {}\n}\n"
        );
    }

    /// A file as people write them: every kind of table and value, comments, both kinds of line ends.
    fn toml() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            Just("# comment"),
            Just(""),
            Just("a = 1 # one"),
            Just("b = 'x'"),
            Just("c.d = true"),
            Just("c.e = [1, 2, # two\n  3]"),
            Just("t = { a = 1, b = { c = 2 } }"),
            Just("m = \"\"\"two\nlines\"\"\""),
            Just("[a]"),
            Just("[c.f]"),
            Just("  [s] # table"),
            Just("[t]"),
            Just("[[l]]"),
            Just("[c]"),
        ];
        (prop::collection::vec(line, 0..9), any::<bool>(), any::<bool>()).prop_map(|(lines, crlf, ended)| {
            let end = if crlf { "\r\n" } else { "\n" };
            lines.join("\n").replace('\n', end) + if ended { end } else { "" }
        })
    }

    /// Every value that is not a table, by its path.
    fn leaves(node: &super::super::Node, path: &str, found: &mut Vec<(String, String)>) {
        for (name, node) in node.members() {
            leaves(node, &format!("{path}/{name}"), found);
        }
        if !matches!(node.data, super::super::Data::Table(_)) {
            let text = match &node.data {
                super::super::Data::Array(nodes) => format!("{} values", nodes.len()),
                _ => format!("{:?}", node.as_str().map_or_else(|| node.described(), str::to_owned)),
            };
            found.push((path.to_owned(), text));
        }
    }

    fn leaves_of(path: &Path, text: &str) -> Vec<(String, String)> {
        let mut found = Vec::new();
        leaves(Document::parse(path, text.to_owned()).unwrap().root(), "", &mut found);
        found.sort();
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// Whatever stands in a file, a change touches the one value, keeps every comment, and can be taken back.
        #[test]
        fn a_change_touches_one_value(
            text in toml(),
            name in "a|b|c|c\\.d|c\\.z|c\\.f\\.g|t\\.a|t\\.b\\.c|t\\.z|s\\.a|s\\.x\\.y|l\\.a|m|new|new\\.x\\.y",
            json in any::<bool>(),
        ) {
            let toml = Path::new("c.toml");
            let Ok(document) = Document::parse(toml, text.clone()) else { return Ok(()) };
            let path = if json { Path::new("c.json") } else { toml };
            let text = if json {
                let Ok(parsed) = text.parse::<DocumentMut>() else { return Ok(()) };
                json_of(parsed.as_table()).to_string()
            } else {
                document.text().to_owned()
            };
            let key = key(&name);
            let own = format!("/{}", key.segments().join("/"));
            let others = |text: &str| {
                let mut found = leaves_of(path, text);
                found.retain(|(path, _)| *path != own);
                found
            };
            // A table is replaced with all that is in it; that is for whoever asks to know.
            let document = Document::parse(path, text.clone()).unwrap();
            let node = key.segments().iter().try_fold(document.root(), |node, name| node.get(name));
            prop_assume!(!node.is_some_and(|node| matches!(node.data, super::super::Data::Table(_))));
            // A value in the place of a table is an error.
            let Ok(changed) = set(path, &text, &key, &Value::Text("new".into())) else { return Ok(()) };
            prop_assert_eq!(others(&changed), others(&text), "{}", changed);
            prop_assert!(leaves_of(path, &changed).contains(&(own.clone(), "\"new\"".to_owned())), "{}", changed);
            prop_assert_eq!(changed.matches('#').count(), text.matches('#').count(), "{}", changed);

            let removed = unset(path, &changed, &key).unwrap().unwrap();
            prop_assert_eq!(others(&removed), others(&text), "{}", removed);
            prop_assert!(!leaves_of(path, &removed).iter().any(|(path, _)| *path == own), "{}", removed);
        }
    }

    fn json_of(table: &dyn TableLike) -> serde_json::Value {
        let members = table.iter().map(|(key, item)| {
            let value = match item.as_table_like() {
                Some(table) => json_of(table),
                None => item.as_str().map_or_else(|| serde_json::json!(1), Into::into),
            };
            (key.to_owned(), value)
        });
        serde_json::Value::Object(members.collect())
    }

    proptest! {
        /// set + unset leaves every other value alone, whatever the text, the key and the value.
        #[test]
        fn set_then_unset_changes_nothing_else(
            name in "[a-z]{1,8}|[a-z]{1,4}\\.[a-z]{1,4}|\"[ .a-z]{1,6}\"",
            value in any::<String>(),
            before in "(# [a-z ]{0,9}\n)?(k[0-9] = [1-9][0-9]{0,2} # c\n)?(\\[zz[0-9]\\]\nq = true\n)?",
        ) {
            let (path, name) = (Path::new("c.toml"), key(&name));
            let changed = set(path, &before, &name, &Value::Text(value.clone())).unwrap();
            let document = Document::parse(path, changed.clone()).unwrap();
            let found = name.segments().iter().try_fold(document.root(), |node, name| node.get(name));
            prop_assert_eq!(found.and_then(super::super::Node::as_str), Some(value.as_str()));
            let back = unset(path, &changed, &name).unwrap().unwrap();
            prop_assert_eq!(back.replace('\n', ""), before.replace('\n', ""));
        }
    }
}
