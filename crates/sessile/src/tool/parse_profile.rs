//! Reading a profile out of its file.

use std::path::Path;

use crate::error::{Error, FileError, Result};
use crate::settings::{Data, Document, Node};
use crate::tool::profile::{
    Append, Binding, Edit, EditFormat, ExistenceCheck, FileMark, Format, ImportPlace, ImportedThing,
    Isolation, Placeholder, Profile, ProjectFile, Race, ReachVariables, Seed, SharedWhen, TargetReach,
};
use crate::tool::target::{EntryContent, STRICT, TargetFormat, TargetPlace, TargetSelection, TargetSet};

/// Description of the key that every tool with targets has.
const STRICT_ABOUT: &str = "leave no other target in the session's copies; true unless set to false";

impl Profile {
    /// Parses a profile. An unknown key is an error, because a misspelt one would isolate nothing.
    pub fn parse(path: &Path, text: &str) -> Result<Self> {
        Self::of_document(&Document::parse(path, text.to_owned())?)
    }

    /// Reads a profile out of a parsed file.
    pub(crate) fn of_document(document: &Document) -> Result<Self> {
        let reader = Reader { document };
        let root = reader.table(document.root(), "the profile")?;
        root.only(&[
            "name",
            "about",
            "group",
            "programs",
            "follows",
            "verified",
            "env-level",
            "home-level",
            "home-only",
            "on-request",
            "keeps",
            "not-isolated",
            "clears",
            "always-clears",
            "command-clears",
            "current",
            "user",
            "switches",
            "home",
            "shared-when",
            "variables",
            "unless-set",
            "unless-exists",
            "seed",
            "work",
            "project",
            "bind",
            "target",
            "import",
            "reach",
            "not-protected",
            "race",
        ])?;
        let env_level = match root.optional_text("env-level")?.as_deref() {
            None | Some("full") => Isolation::Full,
            Some("partial") => Isolation::Partial,
            Some("none") => Isolation::None,
            Some(_) => return Err(root.wrong("env-level", "full, partial or none")),
        };
        let shared_when = root.optional("shared-when")?.map(|table| {
            table.only(&["file", "holds"])?;
            Ok::<_, Error>(SharedWhen { file: table.text("file")?, holds: table.text("holds")? })
        });
        let mut bind = Vec::new();
        if let Some(bindings) = root.optional("bind")? {
            for (key, node) in bindings.node.members() {
                bind.push((key.clone(), reader.table(node, key)?.binding()?));
            }
        }
        let targets = root.targets()?;
        if !targets.is_empty() {
            bind.push((
                STRICT.to_owned(),
                Binding { about: STRICT_ABOUT.to_owned(), flag: true, ..Binding::default() },
            ));
        }
        let is_set = |name: &String| targets.iter().any(|set| set.name == *name);
        let wants_entry = |binding: &Binding| binding.exists.contains(&ExistenceCheck::Entry);
        if let Some((key, _)) = bind.iter().find(|(key, binding)| wants_entry(binding) && !is_set(key)) {
            return Err(root.wrong("bind", &format!("a target named {key}, which `entry = true` asks for")));
        }
        let seed: Vec<Seed> = root.tables("seed")?.iter().map(Table::seed).collect::<Result<_>>()?;
        let has_targets = !targets.is_empty();
        let mut profile = Profile {
            name: root.text("name")?,
            about: root.text("about")?,
            group: root.optional_text("group")?.unwrap_or_else(|| "other".to_owned()),
            programs: root.words("programs")?,
            follows: root.list("follows")?,
            verified: root.optional_text("verified")?,
            env_level,
            home_level: root.flag("home-level", true)?,
            home_only: root.optional_text("home-only")?,
            on_request: root.flag("on-request", false)?,
            keeps: root.list("keeps")?,
            not_isolated: root.list("not-isolated")?,
            not_protected: root.list("not-protected")?,
            clears: root.list("clears")?,
            always_clears: root.list("always-clears")?,
            command_clears: root.list("command-clears")?,
            current: root.optional_words("current")?,
            user: root.optional_words("user")?,
            switches: root.list("switches")?,
            home: root.list("home")?,
            shared_when: shared_when.transpose()?,
            variables: root.pairs("variables")?,
            unless_set: root.pairs("unless-set")?,
            unless_exists: root.optional_text("unless-exists")?,
            seed,
            work: root.tables("work")?.iter().map(Table::seed).collect::<Result<_>>()?,
            project: root.tables("project")?.iter().map(Table::project).collect::<Result<_>>()?,
            bind,
            targets,
            reaches: root.tables("reach")?.iter().map(Table::reach).collect::<Result<_>>()?,
            imports: root.tables("import")?.iter().map(Table::import).collect::<Result<_>>()?,
            race: root.optional("race")?.map(|table| table.race()).transpose()?,
        };
        if has_targets {
            profile.skip_backups();
        }
        Ok(profile)
    }

    /// Leaves backups out of the copies, for a tool with targets: a backup holds the targets of its original, and nothing would remove
    /// one there.
    pub(super) fn skip_backups(&mut self) {
        self.seed.iter_mut().for_each(|seed| seed.skip_backups = true);
    }
}

struct Reader<'a> {
    document: &'a Document,
}

impl<'a> Reader<'a> {
    fn table(&self, node: &'a Node, key: &str) -> Result<Table<'a>> {
        match node.data {
            Data::Table(_) => Ok(Table { document: self.document, node }),
            _ => Err(FileError::Value {
                place: self.document.place(node.offset).into(),
                key: key.to_owned(),
                expected: "a table".to_owned(),
                found: self.document.describe(node),
            }
            .into()),
        }
    }
}

/// Table of the file, with typed access.
struct Table<'a> {
    document: &'a Document,
    node: &'a Node,
}

impl<'a> Table<'a> {
    fn wrong(&self, key: &str, expected: &str) -> Error {
        let found = self.node.get(key);
        Error::File(FileError::Value {
            place: self.document.place(found.unwrap_or(self.node).offset).into(),
            key: key.to_owned(),
            expected: expected.to_owned(),
            found: found.map_or_else(|| "missing".to_owned(), |node| self.document.describe(node)),
        })
    }

    fn only(&self, keys: &[&str]) -> Result<()> {
        match self.node.members().iter().find(|(key, _)| !keys.contains(&key.as_str())) {
            Some((key, _)) => Err(self.wrong(key, &format!("one of the keys {}", keys.join(", ")))),
            None => Ok(()),
        }
    }

    fn text(&self, key: &str) -> Result<String> {
        self.node.get(key).and_then(Node::as_str).map(str::to_owned).ok_or_else(|| self.wrong(key, "text"))
    }

    /// A path that is joined to the room's.
    fn inside(&self, key: &str) -> Result<String> {
        let path = self.text(key)?;
        self.check_inside(key, &path)?;
        Ok(path)
    }

    fn check_inside(&self, key: &str, path: &str) -> Result<()> {
        // A path that leads out of the room would write over the user's own files.
        let leads_out = path.starts_with('/') || path.split('/').any(|part| part == ".." || part == ".");
        if path.is_empty() || leads_out {
            return Err(self.wrong(key, "a path inside the room"));
        }
        Ok(())
    }

    fn optional_text(&self, key: &str) -> Result<Option<String>> {
        self.node.get(key).map(|_| self.text(key)).transpose()
    }

    fn flag(&self, key: &str, usual: bool) -> Result<bool> {
        match self.node.get(key).map(|node| &node.data) {
            None => Ok(usual),
            Some(Data::Bool(value)) => Ok(*value),
            Some(_) => Err(self.wrong(key, "true or false")),
        }
    }

    fn words(&self, key: &str) -> Result<Vec<String>> {
        self.node.get(key).and_then(words).ok_or_else(|| self.wrong(key, "a list of words"))
    }

    fn optional_words(&self, key: &str) -> Result<Option<Vec<String>>> {
        self.node.get(key).map(|_| self.words(key)).transpose()
    }

    fn list(&self, key: &str) -> Result<Vec<String>> {
        Ok(self.optional_words(key)?.unwrap_or_default())
    }

    fn text_or_list(&self, key: &str) -> Result<Vec<String>> {
        match self.node.get(key).and_then(Node::as_str) {
            Some(text) => Ok(vec![text.to_owned()]),
            None => self.list(key),
        }
    }

    fn optional(&self, key: &str) -> Result<Option<Table<'a>>> {
        let reader = Reader { document: self.document };
        self.node.get(key).map(|node| reader.table(node, key)).transpose()
    }

    fn tables(&self, key: &str) -> Result<Vec<Table<'a>>> {
        let reader = Reader { document: self.document };
        match self.node.get(key).map(|node| &node.data) {
            None => Ok(Vec::new()),
            Some(Data::Array(nodes)) => nodes.iter().map(|node| reader.table(node, key)).collect(),
            Some(_) => Err(self.wrong(key, "a list of tables")),
        }
    }

    /// The members of a table of texts.
    fn texts(&self, key: &str) -> Result<Vec<(String, String)>> {
        let Some(table) = self.optional(key)? else { return Ok(Vec::new()) };
        let names = table.node.members().iter().map(|(name, _)| name);
        names.map(|name| Ok((name.clone(), table.text(name)?))).collect()
    }

    fn pairs(&self, key: &str) -> Result<Vec<(String, String)>> {
        let Some(table) = self.optional(key)? else { return Ok(Vec::new()) };
        let members = table.node.members().iter();
        members
            .map(|(name, _)| {
                // A profile's names end up in scripts of shells.
                if !crate::context::is_variable_name(name) {
                    return Err(table.wrong(name, "named like a variable"));
                }
                Ok((name.clone(), table.text(name)?))
            })
            .collect()
    }

    fn format(&self) -> Result<Option<Format>> {
        match self.optional_text("format")?.as_deref() {
            None => Ok(None),
            Some("yaml") => Ok(Some(Format::Yaml)),
            Some("json") => Ok(Some(Format::Json)),
            Some("gitconfig") => Ok(Some(Format::Gitconfig)),
            Some(_) => Err(self.wrong("format", "yaml, json or gitconfig")),
        }
    }

    fn seed(&self) -> Result<Seed> {
        self.only(&[
            "from",
            "to",
            "variable",
            "format",
            "merge",
            "keys",
            "absolute",
            "absolute-commands",
            "append",
            "except",
            "link",
            "make",
            "pinned-by",
        ])?;
        let make = match self.optional_text("make")?.as_deref() {
            None => None,
            Some("file") => Some(Placeholder::File),
            Some("dir") => Some(Placeholder::Dir),
            Some(_) => return Err(self.wrong("make", "file or dir")),
        };
        let append = self.optional("append")?.map(|table| {
            table.only(&["key", "value"])?;
            Ok::<_, Error>(Append { key: table.text("key")?, value: table.text("value")? })
        });
        Ok(Seed {
            from: self.text_or_list("from")?,
            to: self.inside("to")?,
            variable: self.optional_text("variable")?,
            format: self.format()?,
            merge: self.flag("merge", false)?,
            keys: self.list("keys")?,
            absolute: self.list("absolute")?,
            absolute_commands: self.list("absolute-commands")?,
            append: append.transpose()?,
            except: self.list("except")?,
            link: self.list("link")?,
            make,
            skip_backups: false,
            pinned_by: self.texts("pinned-by")?,
        })
    }

    fn project(&self) -> Result<ProjectFile> {
        self.only(&["file", "own", "roots", "ancestors", "above"])?;
        let above = self.optional("above")?.map(|table| {
            table.only(&["file", "holds"])?;
            Ok::<_, Error>(FileMark { file: table.inside("file")?, holds: table.text("holds")? })
        });
        Ok(ProjectFile {
            file: self.inside("file")?,
            own: self.text("own")?,
            roots: self.list("roots")?,
            ancestors: self.flag("ancestors", false)?,
            above: above.transpose()?,
        })
    }

    fn binding(&self) -> Result<Binding> {
        self.only(&[
            "about",
            "needs",
            "default",
            "flag",
            "protects",
            "variables",
            "source-of",
            "exists",
            "edit",
        ])?;
        Ok(Binding {
            about: self.text("about")?,
            needs: self.list("needs")?,
            default: self.optional_text("default")?,
            flag: self.flag("flag", false)?,
            protects: self.flag("protects", false)?,
            variables: self.pairs("variables")?,
            source_of: self.optional_text("source-of")?,
            exists: self.tables("exists")?.iter().map(Table::exists).collect::<Result<_>>()?,
            edit: self.tables("edit")?.iter().map(Table::edit).collect::<Result<_>>()?,
        })
    }

    /// The sets of targets. Tables of one name are the places of one set.
    fn targets(&self) -> Result<Vec<TargetSet>> {
        let mut sets: Vec<TargetSet> = Vec::new();
        for table in self.tables("target")? {
            table.only(&[
                "name",
                "file",
                "format",
                "entries",
                "content",
                "url",
                "refs",
                "keep",
                "drop",
                "entry",
                "logins",
                "plain",
                "foreign",
                "ignore-case",
                "identity",
                "shares",
                "selected",
                "reach",
            ])?;
            let (name, place) = (table.text("name")?, table.target_place()?);
            let at = sets.iter().position(|set| set.name == name).unwrap_or_else(|| {
                let (places, identity, shares) = (Vec::new(), Vec::new(), Vec::new());
                let (selected, variables) = (None, ReachVariables::default());
                sets.push(TargetSet { name, places, identity, shares, selected, variables });
                sets.len() - 1
            });
            sets[at].places.push(place);
            sets[at].identity.extend(table.identity("identity")?);
            sets[at].shares.extend(table.identity("shares")?);
            if let Some(selected) = table.optional("selected")? {
                sets[at].selected = Some(selected.target_selection()?);
            }
            if let Some(reach) = table.optional("reach")? {
                reach.only(&["selects", "fields", "completes", "named", "files"])?;
                sets[at].variables = reach.reach_variables()?;
            }
        }
        Ok(sets)
    }

    /// Variables by which this tool reaches targets of another one.
    fn reach(&self) -> Result<TargetReach> {
        self.only(&["tool", "key", "selects", "fields", "completes", "named", "files", "clears"])?;
        Ok(TargetReach {
            tool: self.text("tool")?,
            key: self.text("key")?,
            variables: self.reach_variables()?,
            clears: self.list("clears")?,
        })
    }

    fn reach_variables(&self) -> Result<ReachVariables> {
        let mut fields = Vec::new();
        if let Some(table) = self.optional("fields")? {
            for (field, _) in table.node.members() {
                fields.push((field.clone(), table.text_or_list(field)?));
            }
        }
        Ok(ReachVariables {
            selects: self.list("selects")?,
            fields,
            completes: self.list("completes")?,
            named: self.list("named")?,
            files: self.list("files")?,
        })
    }

    /// A place outside rooms that the import reads.
    fn import(&self) -> Result<ImportPlace> {
        self.only(&[
            "name",
            "what",
            "kind",
            "file",
            "copy",
            "listed",
            "format",
            "entries",
            "content",
            "url",
            "ignore-case",
            "through",
            "fields",
            "when",
            "allowed",
            "joins",
        ])?;
        let what = match self.optional_text("what")?.as_deref() {
            None => ImportedThing::Target(self.text("name")?),
            Some("recent") => ImportedThing::Recent(self.text("name")?),
            Some("agent") => ImportedThing::Agent,
            Some("conversation") => ImportedThing::Conversation,
            Some("credential") => ImportedThing::Credential(self.text("kind")?),
            Some("variable") => ImportedThing::Variable,
            Some(_) => {
                return Err(self.wrong("what", "recent, agent, conversation, credential or variable"));
            }
        };
        let listed = self.optional("listed")?.map(|table| {
            table.only(&["file", "path"])?;
            Ok::<_, Error>((table.text("file")?, table.text("path")?))
        });
        let copy = self.node.get("copy").map(|_| self.inside("copy")).transpose()?;
        Ok(ImportPlace {
            what,
            files: if copy.is_some() { Vec::new() } else { self.text_or_list("file")? },
            copy,
            listed: listed.transpose()?,
            place: self.place(String::new())?,
            through: self.optional_text("through")?,
            fields: self.texts("fields")?,
            when: self.texts("when")?,
            allowed: self.optional_text("allowed")?,
            joins: self.flag("joins", false)?,
        })
    }

    fn identity(&self, key: &str) -> Result<Vec<Vec<String>>> {
        let wrong = || self.wrong(key, "a list of lists of fields");
        match self.node.get(key).map(|node| &node.data) {
            None => Ok(Vec::new()),
            Some(Data::Array(alternatives)) => alternatives
                .iter()
                .map(|fields| words(fields).filter(|fields| !fields.is_empty()).ok_or_else(wrong))
                .collect(),
            Some(_) => Err(wrong()),
        }
    }

    fn target_selection(&self) -> Result<TargetSelection> {
        self.only(&["file", "format", "key", "default"])?;
        let mut files = self.text_or_list("file")?;
        for file in &files {
            self.check_inside("file", file)?;
        }
        let format = if files.is_empty() { TargetFormat::Lines } else { self.target_format()? };
        let more = files.split_off(files.len().min(1));
        Ok(TargetSelection {
            format,
            file: files.pop(),
            more,
            key: self.optional_text("key")?.unwrap_or_default(),
            default: self.optional_text("default")?,
        })
    }

    fn target_place(&self) -> Result<TargetPlace> {
        self.place(self.inside("file")?)
    }

    /// The format and the entries of a file.
    fn place(&self, file: String) -> Result<TargetPlace> {
        let content = self.optional("content")?.map(|table| {
            table.only(&["file", "format", "name"])?;
            let file = table.node.get("file").map(|_| table.inside("file")).transpose()?;
            let (format, name) = (table.target_format()?, table.optional_text("name")?);
            Ok::<_, Error>(EntryContent { file, format, name })
        });
        let (format, entries) = (self.target_format()?, self.text_or_list("entries")?);
        // Names of tables and columns cannot be SQL parameters, so they must need no quoting.
        let is_plain =
            |name: &str| !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
        let is_column = |entry: &String| {
            entry.split_once('.').is_some_and(|(table, column)| is_plain(table) && is_plain(column))
        };
        if format == TargetFormat::Sqlite && !entries.iter().all(is_column) {
            return Err(self.wrong("entries", "TABLE.COLUMN"));
        }
        let is_tree = matches!(format, TargetFormat::Yaml | TargetFormat::Json);
        let is_lines = matches!(format, TargetFormat::Lines | TargetFormat::Keys);
        if self.node.get("entry").is_some() && !is_tree {
            return Err(self.wrong("entry", "in a yaml or json file"));
        }
        let logins = self.list("logins")?;
        // The name of a line is all that it has.
        let is_valid = is_tree || is_lines && logins == ["{}"];
        if !logins.is_empty() && !is_valid {
            return Err(self.wrong("logins", "fields of a yaml or json file, or [\"{}\"] for lines or keys"));
        }
        Ok(TargetPlace {
            file,
            format,
            entries,
            content: content.transpose()?,
            url: self.flag("url", false)?,
            refs: self.texts("refs")?,
            keep: self.list("keep")?,
            drop: self.list("drop")?,
            entry: self.optional_text("entry")?,
            logins,
            plain: self.optional_text("plain")?,
            ignores_case: self.flag("ignore-case", false)?,
            foreign: self.flag("foreign", false)?,
        })
    }

    fn target_format(&self) -> Result<TargetFormat> {
        TargetFormat::named(&self.text("format")?).ok_or_else(|| {
            self.wrong("format", "yaml, json, ini, toml, dir, file, sqlite, lines, keys or columns")
        })
    }

    fn exists(&self) -> Result<ExistenceCheck> {
        self.only(&["file", "line", "path", "is", "entry"])?;
        if self.flag("entry", false)? {
            return Ok(ExistenceCheck::Entry);
        }
        Ok(match (self.node.get("path"), self.optional_text("is")?) {
            (Some(_), _) => ExistenceCheck::Path(self.inside("path")?),
            (None, Some(value)) => ExistenceCheck::Is(value),
            (None, None) => ExistenceCheck::Line { file: self.inside("file")?, line: self.text("line")? },
        })
    }

    fn edit(&self) -> Result<Edit> {
        self.only(&["file", "format", "require", "set", "value", "from", "source", "mark"])?;
        let format = EditFormat::named(&self.text("format")?)
            .ok_or_else(|| self.wrong("format", "yaml, json, toml, ini, gitconfig or text"))?;
        let set = self.optional_text("set")?;
        let has_sections = matches!(format, EditFormat::Ini | EditFormat::Gitconfig);
        if has_sections && !set.as_ref().is_some_and(|set| set.contains('.')) {
            return Err(self.wrong("set", "SECTION.KEY"));
        }
        if format == EditFormat::Toml && set.as_ref().is_none_or(|set| set.contains('.')) {
            return Err(self.wrong("set", "a key at the top of the file"));
        }
        Ok(Edit {
            file: self.inside("file")?,
            format,
            require: self.optional_text("require")?,
            set,
            value: self.optional_text("value")?,
            from: self.optional_text("from")?,
            source: self.node.get("source").map(|_| self.inside("source")).transpose()?,
            mark: self.optional_text("mark")?,
        })
    }

    fn race(&self) -> Result<Race> {
        self.only(&[
            "state", "rounds", "demo", "seed", "switch", "probe", "expect", "write", "read-all", "written",
            "declared",
        ])?;
        let rounds = match self.node.get("rounds").map(|node| &node.data) {
            None => 10,
            Some(Data::Integer(rounds)) => usize::try_from(*rounds).unwrap_or(1),
            Some(_) => return Err(self.wrong("rounds", "a whole number")),
        };
        let seed = match self.node.get("seed").map(|node| &node.data) {
            None => Some(Vec::new()),
            Some(Data::Array(commands)) => commands.iter().map(words).collect(),
            Some(_) => None,
        };
        Ok(Race {
            state: self.text("state")?,
            rounds,
            demo: self.flag("demo", true)?,
            seed: seed.ok_or_else(|| self.wrong("seed", "a list of commands"))?,
            switch: self.words("switch")?,
            probe: self.words("probe")?,
            expect: self.text("expect")?,
            write: self.optional_words("write")?,
            read_all: self.optional_words("read-all")?,
            written: self.optional_text("written")?.unwrap_or_default(),
            declared: self.list("declared")?,
        })
    }
}

fn words(node: &Node) -> Option<Vec<String>> {
    match &node.data {
        Data::Array(nodes) => nodes.iter().map(|node| node.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}
