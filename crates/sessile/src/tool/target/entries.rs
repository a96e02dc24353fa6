//! Reading the entries of a place, and removing some of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use toml_edit::{DocumentMut, Item};

use crate::error::{Error, FileError, Result, ToolError};
use crate::files::{LockedDir, Locker, read_up_to};
use crate::tool::seed::{LARGEST_UNDERSTOOD, remove};
use crate::tool::target::ini::{Section, name_by, names_by, readings, retained, sections, without_keys};
use crate::tool::target::{EntryContent, TargetFormat, TargetPlace, columns, keys, without_login};
use crate::tool::tree::{Notation, Scalar, Tree, TreePath};

/// Field of a line that follows its name.
const REST: &str = "rest";

/// An entry, as far as its place describes it.
#[derive(Clone)]
pub(super) struct Entry {
    /// Names; some formats have two.
    pub(super) names: Vec<String>,
    fields: Tree,
    /// Whether keys of its fields count in any case.
    ignores_case: bool,
}

impl Entry {
    fn named(name: impl Into<String>, fields: Tree) -> Self {
        Entry::of(vec![name.into()], fields)
    }

    fn of(names: Vec<String>, fields: Tree) -> Self {
        Entry { names, fields, ignores_case: false }
    }

    fn path(&self, path: &str) -> TreePath {
        TreePath::parse(path, str::to_owned).ignoring_case(self.ignores_case)
    }

    /// The text of a field; `{}` is the name that its file or directory has.
    pub(super) fn field(&mut self, path: &str) -> Option<String> {
        if path == "{}" {
            return self.names.last().cloned();
        }
        self.path(path).text(&mut self.fields).filter(|text| !text.is_empty())
    }

    /// Replaces what its place says of it.
    pub(super) fn describe(&mut self, fields: Tree) {
        self.fields = fields;
    }

    /// Whether a URL in it has a login.
    pub(super) fn has_login(&mut self, place: &TargetPlace) -> bool {
        // Entries of lines are none without one.
        let has_login = |field: &String| field == "{}" || self.field(field).is_some_and(|url| is_login(&url));
        place.logins.iter().any(has_login)
    }

    /// A part of it; `.` is all of it.
    pub(super) fn subtree(&mut self, path: &str) -> Option<Tree> {
        self.path(path).find(&mut self.fields).cloned()
    }
}

/// A place, where it is in a room.
pub(super) struct EntryFile<'p> {
    pub(super) place: &'p TargetPlace,
    pub(super) path: PathBuf,
    pub(super) fill: &'p dyn Fn(&str) -> String,
}

impl EntryFile<'_> {
    /// The entries; none if the file does not exist.
    pub(super) fn load(&self) -> Result<Vec<Entry>> {
        let mut entries = self.read()?;
        if self.place.url {
            // Names are shown, and a login is a secret.
            for name in entries.iter_mut().flat_map(|entry| &mut entry.names) {
                *name = without_login(name);
            }
        }
        Ok(entries)
    }

    fn read(&self) -> Result<Vec<Entry>> {
        Ok(match self.place.format {
            TargetFormat::Yaml => self.of_tree(&mut self.tree(Notation::Yaml)?),
            TargetFormat::Json => self.of_tree(&mut self.tree(Notation::Json)?),
            TargetFormat::Toml => self.of_tree(&mut tree_of_toml(self.toml()?.as_item())),
            TargetFormat::Ini => {
                let text = self.text()?;
                readings(&text).iter().flatten().filter_map(|section| self.of_section(section)).collect()
            }
            TargetFormat::Lines => self.text()?.lines().filter_map(|line| self.of_line(line)).collect(),
            TargetFormat::Keys => keys::lines(&self.text()?).filter_map(|line| self.of_key(line)).collect(),
            TargetFormat::Dir => self.of_dir()?.into_iter().map(|(_, entry)| entry).collect(),
            // A line has no name: what refers to the set tells whose it is.
            TargetFormat::Columns => Vec::new(),
            TargetFormat::File if !self.path.exists() => Vec::new(),
            TargetFormat::File => vec![Entry::of(Vec::new(), Tree::Map(Vec::new()))],
            TargetFormat::Sqlite => {
                let Some((database, table, column)) = self.database()? else { return Ok(Vec::new()) };
                let names =
                    // Names of tables cannot be parameters; the profile's parser accepts letters, digits and
                    // `_` only.
                    self.query(&database, &format!("SELECT DISTINCT \"{column}\" FROM \"{table}\""))?;
                names.into_iter().map(|name| Entry::named(name, Tree::Map(Vec::new()))).collect()
            }
        })
    }

    /// Removes every entry but those that are kept.
    pub(super) fn retain(&self, is_kept: &dyn Fn(&Entry) -> bool, locker: &Locker) -> Result<()> {
        if !self.path.exists() {
            return Ok(());
        }
        match self.place.format {
            TargetFormat::Yaml => self.retain_in_tree(Notation::Yaml, is_kept, locker),
            TargetFormat::Json => self.retain_in_tree(Notation::Json, is_kept, locker),
            TargetFormat::Toml => self.retain_in_toml(is_kept, locker),
            TargetFormat::Ini => {
                let text = self.text()?;
                let stays =
                    // Sections that the patterns do not name stay: they are not targets.
                    |section: &Section<'_>| self.of_section(section).is_none_or(|entry| is_kept(&entry));
                self.write(&retained(&text, stays), locker)
            }
            TargetFormat::Lines => {
                let text = self.text()?;
                let stays = |line: &str| self.of_line(line).is_none_or(|entry| is_kept(&entry));
                let thin = |line: &str| if self.has_logins() { without_login(line) } else { String::new() };
                let lines = text.split_inclusive('\n');
                let new = lines.map(|line| if stays(line) { line.to_owned() } else { thin(line) });
                self.write(&new.collect::<String>(), locker)
            }
            TargetFormat::Keys => {
                let text = self.text()?;
                let stays = |line: &str| self.of_key(line).is_none_or(|entry| is_kept(&entry));
                let thin =
                    |line: &str| if self.has_logins() { keys::without_login(line) } else { String::new() };
                let lines = keys::lines(&text);
                let new = lines.map(|line| if stays(line) { line.to_owned() } else { thin(line) });
                self.write(&new.collect::<String>(), locker)
            }
            TargetFormat::Columns => Ok(()),
            TargetFormat::Dir => {
                for (path, entry) in self.of_dir()? {
                    if !is_kept(&entry) {
                        remove(&path)?;
                    }
                }
                Ok(())
            }
            TargetFormat::File => {
                let is_removed = self.load()?.iter().any(|entry| !is_kept(entry));
                if is_removed { remove(&self.path) } else { Ok(()) }
            }
            TargetFormat::Sqlite => self.retain_rows(is_kept),
        }
    }

    /// Removes every line of columns but those that are kept.
    pub(super) fn retain_lines(
        &self,
        mut is_kept: impl FnMut(&[Option<String>]) -> bool,
        locker: &Locker,
    ) -> Result<()> {
        let text = self.text()?;
        let stays = |line: &&str| columns::columns(line).is_none_or(|columns| is_kept(&columns));
        let new: String = text.split_inclusive('\n').filter(stays).collect();
        // A file without such a line is not rewritten: its stamp stays.
        if new == text { Ok(()) } else { self.write(&new, locker) }
    }

    /// Removes fields of the sections that stay whatever is bound, where every other section sets them itself: nothing needs
    /// them, and they may be those of another target.
    pub(super) fn trim_defaults(&self, locker: &Locker) -> Result<()> {
        let keep = &self.place.keep;
        if keep.is_empty() || !self.path.exists() {
            return Ok(());
        }
        let text = self.text()?;
        // Options are spelt with either sign.
        let spelt = |key: &str| key.replace('_', "-").to_ascii_lowercase();
        let mut set_by: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for section in sections(&text) {
            let names = self.of_section(&section).map(|entry| entry.names).unwrap_or_default();
            for name in names.into_iter().filter(|name| !keep.contains(name)) {
                set_by.entry(name).or_default().extend(section.keys().map(spelt));
            }
        }
        let is_set = |key: &str| !set_by.is_empty() && set_by.values().all(|keys| keys.contains(&spelt(key)));
        let new = without_keys(&text, |title| keep.iter().any(|kept| kept == title), is_set);
        if new == text { Ok(()) } else { self.write(&new, locker) }
    }

    fn text(&self) -> Result<String> {
        Ok(read_up_to(&self.path, LARGEST_UNDERSTOOD)?.unwrap_or_default())
    }

    fn write(&self, text: &str, locker: &Locker) -> Result<()> {
        let (parent, name) = (self.path.parent(), self.path.file_name().unwrap_or_default());
        let dir = LockedDir::lock(locker, parent.unwrap_or(Path::new("")), 0o700)?;
        // The plan is saved after this; if a crash undoes it, the stamps differ and the removal is done
        // again.
        dir.replace_for_now(Path::new(name), text, 0o600)
    }

    fn invalid(&self, line: usize, message: &impl ToString) -> Error {
        Error::Tool(ToolError::InvalidFile { path: self.path.clone(), line, message: message.to_string() })
    }

    fn tree(&self, notation: Notation) -> Result<Tree> {
        notation.parse(&self.path, &self.text()?)
    }

    /// The path of the list or map, and the fields that name an element of a list.
    fn collection(&self) -> (TreePath, Vec<&str>) {
        let template = self.place.entries.first().map_or("", String::as_str);
        let (path, keys) = match template.split_once('[') {
            Some((path, keys)) => (path, keys.trim_end_matches(']').split('|').collect()),
            None => (template, Vec::new()),
        };
        (TreePath::parse(path, self.fill).ignoring_case(self.place.ignores_case), keys)
    }

    fn of_tree(&self, tree: &mut Tree) -> Vec<Entry> {
        let (path, keys) = self.collection();
        if self.is_one_entry() {
            return vec![self.of_element(tree, &keys)];
        }
        let mut entries = Vec::new();
        if let Some(name) = &self.place.entry {
            let is_empty = |tree: &Tree| tree.is_nothing() || tree.text() == Some("");
            let found = path.find_mut(tree).into_iter().filter(|tree| !is_empty(tree));
            return found.map(|tree| Entry::named(name, tree.clone())).collect();
        }
        for place in path.find_mut(tree) {
            match place {
                Tree::List(elements) => {
                    entries.extend(elements.iter().map(|element| self.of_element(element, &keys)));
                }
                Tree::Map(members) => {
                    let members = members.iter().filter(|(_, tree)| self.is_entry(tree));
                    entries.extend(members.map(|(key, tree)| self.of_member(&key.text, tree, &keys)));
                }
                Tree::Scalar(_) => {}
            }
        }
        entries
    }

    fn retain_in_tree(
        &self,
        notation: Notation,
        is_kept: &dyn Fn(&Entry) -> bool,
        locker: &Locker,
    ) -> Result<()> {
        let mut tree = self.tree(notation)?;
        let (path, keys) = self.collection();
        if self.is_one_entry() {
            if !is_kept(&self.of_element(&tree, &keys)) {
                self.thin(&mut tree);
            }
            return self.write(&notation.write(&tree), locker);
        }
        if self.place.entry.is_some() {
            if self.of_tree(&mut tree).iter().any(|entry| !is_kept(entry)) {
                path.remove(&mut tree);
                return self.write(&notation.write(&tree), locker);
            }
            return Ok(());
        }
        for place in path.find_mut(&mut tree) {
            match place {
                Tree::List(elements) => {
                    elements.retain_mut(|tree| is_kept(&self.of_element(tree, &keys)) || self.thin(tree));
                }
                Tree::Map(members) => members.retain_mut(|(key, tree)| {
                    is_kept(&self.of_member(&key.text, tree, &keys)) || self.thin(tree)
                }),
                Tree::Scalar(_) => {}
            }
        }
        self.write(&notation.write(&tree), locker)
    }

    /// Whether the file itself is the one entry.
    fn is_one_entry(&self) -> bool {
        self.place.entries.first().is_some_and(|template| template.starts_with('['))
    }

    /// Whether a member of a map is an entry. Keys beside the tables of a TOML file are the tool's own settings.
    fn is_entry(&self, tree: &Tree) -> bool {
        let is_value = matches!(tree, Tree::Scalar(_) | Tree::List(_));
        self.place.format != TargetFormat::Toml || self.place.plain.is_some() || !is_value
    }

    /// Member of a map, named by its fields or by its key.
    fn of_member(&self, key: &str, tree: &Tree, fields: &[&str]) -> Entry {
        let entry = match (&self.place.plain, tree) {
            _ if !fields.is_empty() => self.of_element(tree, fields),
            (Some(field), Tree::Scalar(_)) => {
                Entry::named(key, Tree::Map(vec![(Scalar::quoted(field), tree.clone())]))
            }
            _ => Entry::named(key, tree.clone()),
        };
        Entry { ignores_case: self.place.ignores_case, ..entry }
    }

    /// Element of a list, or a file that is one entry: named by its fields.
    fn of_element(&self, element: &Tree, keys: &[&str]) -> Entry {
        let ignores_case = self.place.ignores_case;
        let mut fields = element.clone();
        let path = |key: &str| TreePath::parse(key, str::to_owned).ignoring_case(ignores_case);
        let names = keys.iter().filter_map(|key| path(key).text(&mut fields)).collect();
        Entry { names, fields, ignores_case }
    }

    /// Removes the fields that an entry loses. Returns whether the rest of it stays.
    fn thin(&self, entry: &mut Tree) -> bool {
        for field in &self.place.drop {
            TreePath::parse(field, str::to_owned).ignoring_case(self.place.ignores_case).remove(entry);
        }
        for field in &self.place.logins {
            let path = TreePath::parse(field, str::to_owned).ignoring_case(self.place.ignores_case);
            for place in path.find_mut(entry) {
                if let Tree::Scalar(scalar) = place {
                    scalar.text = without_login(&scalar.text);
                }
            }
        }
        !self.place.drop.is_empty() || !self.place.logins.is_empty()
    }

    /// Whether the URLs that name its entries lose their login instead of the line being removed.
    fn has_logins(&self) -> bool {
        !self.place.logins.is_empty()
    }

    fn toml(&self) -> Result<DocumentMut> {
        let text = self.text()?;
        text.parse().map_err(|error: toml_edit::TomlError| {
            let before = error.span().and_then(|span| text.get(..span.start));
            // Only the message: the full error quotes the line, which may hold a secret.
            self.invalid(before.map_or(1, |before| before.lines().count().max(1)), &error.message())
        })
    }

    fn retain_in_toml(&self, is_kept: &dyn Fn(&Entry) -> bool, locker: &Locker) -> Result<()> {
        let mut document = self.toml()?;
        let template = self.place.entries.first().map_or("", String::as_str);
        let (path, keys) =
            template.split_once('[').map_or((template, None), |(path, keys)| (path, Some(keys)));
        let path: Vec<String> =
            path.split('.').filter(|key| !key.is_empty()).map(|key| (self.fill)(key)).collect();
        let keys: Vec<&str> =
            keys.map(|keys| keys.trim_end_matches(']').split('|').collect()).unwrap_or_default();
        self.retain_in_item(document.as_item_mut(), &path, &keys, is_kept);
        self.write(&document.to_string(), locker)
    }

    fn retain_in_item(
        &self,
        item: &mut Item,
        path: &[String],
        keys: &[&str],
        is_kept: &dyn Fn(&Entry) -> bool,
    ) {
        if let Some((key, below)) = path.split_first() {
            let Some(table) = item.as_table_like_mut() else { return };
            let ignores_case = self.place.ignores_case;
            let members = table.iter_mut().filter(|(name, _)| {
                name.get() == key || ignores_case && name.get().eq_ignore_ascii_case(key)
            });
            members.for_each(|(_, item)| self.retain_in_item(item, below, keys, is_kept));
            return;
        }
        if let Some(tables) = item.as_array_of_tables_mut() {
            tables
                .retain(|table| is_kept(&self.of_element(&tree_of_toml(&Item::Table(table.clone())), keys)));
        } else if let Some(tables) = item.as_array_mut() {
            tables
                .retain(|table| is_kept(&self.of_element(&tree_of_toml(&Item::Value(table.clone())), keys)));
        } else if let Some(table) = item.as_table_like_mut() {
            let dropped: Vec<String> = table
                .iter()
                .map(|(key, item)| (key, tree_of_toml(item)))
                .filter(|(_, tree)| self.is_entry(tree))
                .filter(|(key, tree)| !is_kept(&self.of_member(key, tree, keys)))
                .map(|(key, _)| key.to_owned())
                .collect();
            for key in dropped {
                table.remove(&key);
            }
        }
    }

    fn of_section(&self, section: &Section<'_>) -> Option<Entry> {
        let title = section.title?;
        self.place.entries.iter().find_map(|pattern| match pattern.split_once('[') {
            Some((pattern, field)) => {
                name_by(pattern, title)?;
                Some(self.of_element(&section.fields(), &[field.trim_end_matches(']')]))
            }
            None => {
                let names = names_by(pattern, title);
                (!names.is_empty()).then(|| Entry::of(names, section.fields()))
            }
        })
    }

    fn of_line(&self, line: &str) -> Option<Entry> {
        let (name, rest) = self.place.entries.iter().find_map(|pattern| {
            let (before, after) = pattern.split_once("{}")?;
            let line = after_pattern(line.trim_start(), before)?;
            // Without an end in the pattern the name is the rest of the line.
            let (name, rest) = if after.is_empty() { (line.trim(), "") } else { line.split_once(after)? };
            // A comment is not an entry.
            let is_entry = !name.is_empty() && !name.starts_with(['#', ';']);
            (is_entry && (!self.has_logins() || is_login(name))).then_some((name, rest.trim()))
        })?;
        let rest = Tree::Scalar(Scalar::quoted(rest));
        Some(Entry::named(name, Tree::Map(vec![(Scalar::quoted(REST), rest)])))
    }

    fn of_key(&self, line: &str) -> Option<Entry> {
        let setting = keys::setting(line)?;
        let found = match setting.is_open {
            true => self.of_line(&setting.key),
            false => self.of_line(&format!("{}={}", setting.key, setting.value)),
        };
        if self.has_logins() && is_login(&setting.value) {
            // Whatever registry a variable means, its login is there.
            let is_unknown = without_login(&setting.value).contains("${");
            let named = || Entry::named(&setting.value, Tree::Map(Vec::new()));
            let unnamed = || Entry::of(Vec::new(), Tree::Map(Vec::new()));
            let found = found.or_else(|| setting.is_open.then(named));
            return found.map(|entry| if is_unknown { unnamed() } else { entry });
        }
        if self.has_logins() {
            return None;
        }
        let may_be = |pattern: &String| {
            pattern.split_once("{}").is_some_and(|(before, _)| keys::may_begin_with(&setting, before))
        };
        // Whatever the variable is by then: an entry without a name may be any of them.
        let unnamed = || Entry::of(Vec::new(), Tree::Map(Vec::new()));
        found.or_else(|| self.place.entries.iter().any(may_be).then(unnamed))
    }

    fn of_dir(&self) -> Result<Vec<(PathBuf, Entry)>> {
        let io = |source| Error::from(FileError::Io { action: "read", path: self.path.clone(), source });
        let names = match std::fs::read_dir(&self.path) {
            Ok(names) => names,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io(error)),
        };
        let mut entries = Vec::new();
        for found in names {
            let found = found.map_err(io)?;
            let file_name = found.file_name();
            let Some(file_name) = file_name.to_str() else { continue };
            let Some(name) = self.place.entries.iter().find_map(|pattern| name_by(pattern, file_name)) else {
                continue;
            };
            let fields = self.place.content.as_ref().map(|content| self.content(content, &found.path()));
            let mut entry = Entry::named(name, fields.transpose()?.unwrap_or(Tree::Map(Vec::new())));
            entry.ignores_case = self.place.ignores_case;
            if let Some(field) = self.place.content.as_ref().and_then(|content| content.name.as_deref())
                && let Some(inner) = entry.field(field)
            {
                // Both names count: people use the inner one, references and paths the directory's.
                entry.names = vec![inner, name.to_owned()];
            }
            entries.push((found.path(), entry));
        }
        Ok(entries)
    }

    /// What the files of an entry say. A file that cannot be understood says nothing: the entry can still be removed.
    fn content(&self, content: &EntryContent, path: &Path) -> Result<Tree> {
        let file = content.file.as_ref().map_or_else(|| path.to_owned(), |file| path.join(file));
        let text = match read_up_to(&file, LARGEST_UNDERSTOOD) {
            Ok(text) => text.unwrap_or_default(),
            Err(_) => return Ok(Tree::Map(Vec::new())),
        };
        let tree = match content.format {
            TargetFormat::Ini => {
                let tables = sections(&text)
                    .iter()
                    .filter_map(|section| Some((Scalar::quoted(section.title?), section.fields())))
                    .collect();
                Tree::Map(tables)
            }
            TargetFormat::Yaml => Notation::Yaml.parse(&file, &text).unwrap_or(Tree::Map(Vec::new())),
            _ => Notation::Json.parse(&file, &text).unwrap_or(Tree::Map(Vec::new())),
        };
        Ok(tree)
    }

    /// The database with its table and column; none if there is no such file.
    fn database(&self) -> Result<Option<(Connection, &str, &str)>> {
        if !self.path.exists() {
            return Ok(None);
        }
        let place = self.place.entries.first().and_then(|place| place.split_once('.'));
        let Some((table, column)) = place else { return Ok(None) };
        let database = Connection::open_with_flags(&self.path, OpenFlags::SQLITE_OPEN_READ_WRITE)
            .map_err(|error| self.invalid(1, &error))?;
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'table'";
        let has_table = self.query(&database, sql)?.iter().any(|name| name == table);
        Ok(has_table.then_some((database, table, column)))
    }

    fn query(&self, database: &Connection, sql: &str) -> Result<Vec<String>> {
        let run = || -> rusqlite::Result<Vec<String>> {
            let mut statement = database.prepare(sql)?;
            let rows = statement.query_map([], |row| row.get::<_, Option<String>>(0))?;
            Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().flatten().collect())
        };
        run().map_err(|error| self.invalid(1, &error))
    }

    fn retain_rows(&self, is_kept: &dyn Fn(&Entry) -> bool) -> Result<()> {
        let Some((database, table, column)) = self.database()? else { return Ok(()) };
        let names = self.query(&database, &format!("SELECT DISTINCT \"{column}\" FROM \"{table}\""))?;
        let dropped = names.into_iter().filter(|name| !is_kept(&Entry::named(name, Tree::Map(Vec::new()))));
        let run = || -> rusqlite::Result<()> {
            // Deleted rows would otherwise stay readable in free pages of the file.
            database.pragma_update(None, "secure_delete", true)?;
            for name in dropped {
                database.execute(&format!("DELETE FROM \"{table}\" WHERE \"{column}\" = ?1"), [name])?;
            }
            Ok(())
        };
        run().map_err(|error| self.invalid(1, &error))
    }
}

/// The rest of a line after a pattern, in which a `*` stands for any text.
fn after_pattern<'l>(line: &'l str, pattern: &str) -> Option<&'l str> {
    let Some((before, after)) = pattern.split_once('*') else { return line.strip_prefix(pattern) };
    line.strip_prefix(before)?.split_once(after).map(|(_, rest)| rest)
}

/// Whether a URL has a login.
fn is_login(url: &str) -> bool {
    without_login(url) != url
}

/// A part of a TOML file as a tree, for reading.
fn tree_of_toml(item: &Item) -> Tree {
    if let Some(table) = item.as_table_like() {
        return Tree::Map(
            table.iter().map(|(key, item)| (Scalar::quoted(key), tree_of_toml(item))).collect(),
        );
    }
    if let Some(tables) = item.as_array_of_tables() {
        return Tree::List(tables.iter().map(|table| tree_of_toml(&Item::Table(table.clone()))).collect());
    }
    if let Some(values) = item.as_array() {
        return Tree::List(values.iter().map(|value| tree_of_toml(&Item::Value(value.clone()))).collect());
    }
    match item.as_str() {
        Some(text) => Tree::Scalar(Scalar::quoted(text)),
        None => Tree::Scalar(Scalar::plain(item.to_string().trim())),
    }
}
