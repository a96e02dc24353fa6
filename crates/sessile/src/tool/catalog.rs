//! The tools that are known: built in, the user's, and a trusted project's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::call::ConfigSource;
use crate::context::{Context, toml_files};
use crate::error::{FileError, Result, ToolError, UsageError};
use crate::files::require_no_dangling_link;
use crate::names::nearest;
use crate::settings::{Disclosure, Document, StaticData};
use crate::state::State;
use crate::text::{quoted, shown};
use crate::tool::profile::Profile;

include!(concat!(env!("OUT_DIR"), "/built_in_profiles.rs"));

/// Profile that the library has, parsed when it was built.
struct BuiltIn {
    /// Path of its file in the repository.
    path: &'static str,
    name: &'static str,
    content: StaticData,
}

impl BuiltIn {
    fn profile(&self) -> Result<Profile> {
        Profile::of_document(&Document::built_in(Path::new(self.path), &self.content, &[]))
    }

    /// The profile without [`NOT_FOR_COPIES`].
    fn profile_for_copies(&self) -> Result<Profile> {
        let document = Document::built_in(Path::new(self.path), &self.content, NOT_FOR_COPIES);
        let mut profile = Profile::of_document(&document)?;
        if self.content.has(TARGET) {
            profile.skip_backups();
        }
        Ok(profile)
    }
}

/// Key of the targets in a profile.
const TARGET: &str = "target";

/// Keys of a profile that copies of its state do not depend on. They are two thirds of the built-in profiles.
const NOT_FOR_COPIES: &[&str] = &[
    TARGET,
    "bind",
    "reach",
    "group",
    "verified",
    "keeps",
    "not-isolated",
    "not-protected",
    "current",
    "user",
    "switches",
    "import",
    "race",
];

/// Source of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Built in.
    BuiltIn,
    /// The user's file; it takes the place of a built-in one of that name.
    User(#[serde(serialize_with = "crate::text::path_in_json")] PathBuf),
    /// The project's file; it never takes the place of another.
    Project(#[serde(serialize_with = "crate::text::path_in_json")] PathBuf),
}

/// The tools of a state.
pub struct Tools<'a> {
    state: &'a State,
}

impl State {
    /// The tools that are known.
    pub fn tools(&self) -> Tools<'_> {
        Tools { state: self }
    }
}

impl Tools<'_> {
    /// Every profile, in the order of their names. A user's profile that cannot be read is an error.
    pub fn list(&self) -> Result<Vec<(Profile, Source)>> {
        self.list_with(BuiltIn::profile)
    }

    /// The same, but built-in ones without bindings, targets and descriptions: a third of the work. Enough to copy state if no context
    /// binds a target and no target is protected.
    pub(crate) fn list_for_copies(&self) -> Result<Vec<(Profile, Source)>> {
        self.list_with(BuiltIn::profile_for_copies)
    }

    fn list_with(&self, built_in_profile: fn(&BuiltIn) -> Result<Profile>) -> Result<Vec<(Profile, Source)>> {
        let mut found = BTreeMap::new();
        // Built-in ones first: a profile of the user's replaces the one of its name.
        for built_in in BUILT_IN {
            found.insert(built_in.name.to_owned(), (built_in_profile(built_in)?, Source::BuiltIn));
        }
        for path in self.user_dir().map(|dir| toml_files(&dir)).transpose()?.unwrap_or_default() {
            let profile = load(&path)?;
            found.insert(profile.name.clone(), (profile, Source::User(path)));
        }
        let project = self.state.project();
        let found_there = project.map(|project| project.toml_files(&project.tools())).transpose()?;
        for path in found_there.unwrap_or_default() {
            // By the file's name, so that an ignored profile of a project is not even read.
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            if found.contains_key(stem) {
                let name = quoted(stem);
                self.state
                    .warn(format!("{}: ignored: tool {name} already exists", shown(path.display())), None);
                continue;
            }
            let text = self.state.read(&path)?.unwrap_or_default();
            // A profile decides which variables a command gets, so a stranger's counts only once trusted.
            if !crate::settings::trust::is_trusted(self.state.app(), self.state.store()?, &path, &text)? {
                let root = project.map(|project| project.root().to_owned()).unwrap_or_default();
                self.state.warn(
                    format!("{} is not trusted; the tool is not isolated", shown(path.display())),
                    Some(format!(
                        "review the profile, then trust it: {} trust {}",
                        self.state.app().name(),
                        crate::text::shell_quoted(&root.to_string_lossy())
                    )),
                );
                continue;
            }
            let profile = named_like_file(&path, Profile::parse(&path, &text)?)?;
            found.insert(profile.name.clone(), (profile, Source::Project(path)));
        }
        Ok(found.into_values().collect())
    }

    /// A tool by its name or by one of its programs.
    pub fn get(&self, name: &str) -> Result<(Profile, Source)> {
        // Most are built in: reading one file is quicker than reading all of them.
        if let Some(built_in) = BUILT_IN.iter().find(|built_in| built_in.name == name)
            && !self.is_overridden(name)?
        {
            return Ok((built_in.profile()?, Source::BuiltIn));
        }
        // Not a built-in name: it may be a program's, or a profile of the user or project.
        let mut all = self.list()?;
        let by_name = all.iter().position(|(profile, _)| profile.name == name);
        let by_program =
            || all.iter().position(|(profile, _)| profile.programs.iter().any(|program| program == name));
        match by_name.or_else(by_program) {
            Some(at) => Ok(all.swap_remove(at)),
            None => Err(ToolError::NotFound {
                name: name.to_owned(),
                near: nearest(name, all.iter().map(|(profile, _)| profile.name.as_str())),
            }
            .into()),
        }
    }

    /// Whether the user has a profile with the name of a built-in one.
    fn is_overridden(&self, name: &str) -> Result<bool> {
        let Some(path) = self.user_dir().map(|dir| dir.join(format!("{name}.toml"))) else {
            return Ok(false);
        };
        match path.exists() {
            true => Ok(true),
            false => require_no_dangling_link(&path).map(|()| false),
        }
    }

    /// The user's files of profiles and their directory, which changes with every new file.
    pub(crate) fn user_sources(&self) -> Result<Vec<PathBuf>> {
        let Some(dir) = self.user_dir() else { return Ok(Vec::new()) };
        let mut sources = toml_files(&dir)?;
        sources.push(dir);
        Ok(sources)
    }

    fn user_dir(&self) -> Option<PathBuf> {
        match self.state.source() {
            // `--config` and `--no-config` leave out whatever else the user has configured.
            ConfigSource::Usual => self.state.dirs().config().ok().map(|dir| dir.join("tools")),
            _ => None,
        }
    }
}

/// The places that the built-in profiles name for the import.
#[cfg(any(test, fuzzing))]
pub(crate) fn built_in_imports() -> Vec<crate::tool::profile::ImportPlace> {
    let profiles = BUILT_IN.iter().filter_map(|built_in| built_in.profile().ok());
    profiles.flat_map(|profile| profile.imports).collect()
}

/// Bindings of a context to unknown tools or keys, a sentence each.
pub fn unknown_bindings(all: &[(Profile, Source)], context: &Context) -> Vec<String> {
    let mut unknown = Vec::new();
    for (tool, bindings) in &context.tools {
        let Some((profile, _)) = all.iter().find(|(profile, _)| profile.name == *tool) else {
            let near = nearest(tool, all.iter().map(|(profile, _)| profile.name.as_str()));
            let near = near.map_or_else(String::new, |near| format!("; did you mean {}?", quoted(near)));
            unknown.push(format!("unknown tool {}{near}", quoted(tool)));
            continue;
        };
        for (key, _) in bindings.iter().filter(|(key, _)| profile.binding(key).is_none()) {
            let known: Vec<&str> = profile.bind.iter().map(|(key, _)| key.as_str()).collect();
            unknown.push(match known.is_empty() {
                true => format!("tools.{tool}.{key}: this tool cannot be bound"),
                false => format!("tools.{tool}.{key}: unknown key; the keys are {}", known.join(", ")),
            });
        }
    }
    unknown
}

fn load(path: &Path) -> Result<Profile> {
    let document = Document::load_as(Disclosure::Quoted, path)?;
    let document = document.ok_or_else(|| FileError::NotFound(path.to_owned()))?;
    named_like_file(path, Profile::of_document(&document)?)
}

/// A profile is found by its file's name; another name in it would be found sometimes.
fn named_like_file(path: &Path, profile: Profile) -> Result<Profile> {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    if stem == profile.name {
        return Ok(profile);
    }
    Err(UsageError::InvalidValue {
        place: format!("{}: name", shown(path.display())),
        value: profile.name,
        expected: format!("the file's name, {}", quoted(stem)),
    }
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_profile_is_valid_and_named_like_its_file() {
        assert!(BUILT_IN.len() >= 30, "{} profiles", BUILT_IN.len());
        for built_in in BUILT_IN {
            let path = built_in.path;
            let profile = named_like_file(Path::new(path), built_in.profile().unwrap()).unwrap();
            let race = profile.race.as_ref();
            assert!(race.is_none_or(|race| race.write.is_some() == race.read_all.is_some()), "{path}");
            assert!(!profile.programs.is_empty(), "{path}");
            for (key, binding) in &profile.bind {
                for needed in &binding.needs {
                    assert!(profile.binding(needed).is_some(), "{path}: {key} needs {needed}");
                }
            }
        }
    }

    #[test]
    fn built_in_profiles_say_what_their_files_say() {
        assert_eq!(BUILT_IN.len(), TEXTS.len());
        for (built_in, text) in BUILT_IN.iter().zip(TEXTS) {
            let file = Document::parse(Path::new(built_in.path), (*text).to_owned()).unwrap();
            let own = Document::built_in(Path::new(built_in.path), &built_in.content, &[]);
            assert!(own.root().is_same_as(file.root()), "{}", built_in.path);
        }
    }

    #[test]
    fn profile_for_copies_has_every_key_of_copies() {
        for built_in in BUILT_IN {
            let whole = built_in.profile().unwrap();
            let bare = Profile {
                targets: Vec::new(),
                bind: Vec::new(),
                reaches: Vec::new(),
                group: "other".to_owned(),
                verified: None,
                keeps: Vec::new(),
                not_isolated: Vec::new(),
                not_protected: Vec::new(),
                current: None,
                user: None,
                switches: Vec::new(),
                imports: Vec::new(),
                race: None,
                ..whole
            };
            let other = built_in.profile_for_copies().unwrap();
            assert_eq!(format!("{other:?}"), format!("{bare:?}"), "{}", built_in.path);
        }
    }

    /// Two tools may lead the same variable to the same place, and to no other.
    #[test]
    fn no_two_tools_fight_over_a_variable() {
        let mut seen: BTreeMap<String, (String, String)> = BTreeMap::new();
        for built_in in BUILT_IN {
            let profile = built_in.profile().unwrap();
            for (name, value) in profile.variables {
                let (other, before) =
                    seen.entry(name.clone()).or_insert_with(|| (profile.name.clone(), value.clone()));
                assert_eq!(*before, value, "{name} of {} and {other}", profile.name);
            }
        }
    }
}
