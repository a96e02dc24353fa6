//! Bindings before they are applied: their values, and whether the tools and targets that they name exist.
//!
//! A binding is checked when it is written. An unknown tool, key or type is an error. An unknown target is only a warning:
//! its entry may be added later, or be on another machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::context::{Bindings, Context};
use crate::error::{Result, ToolError};
use crate::names::nearest;
use crate::state::State;
use crate::text::{quoted, shown};
use crate::tool::bind::filled;
use crate::tool::catalog::Source;
use crate::tool::paths::{Originals, SessionPaths};
use crate::tool::profile::{ExistenceCheck, Profile, Seed};
use crate::tool::seed::{bound_source, sources};
use crate::tool::target::{BoundTargets, names_in};

/// How many targets a warning names.
const MAX_NAMED_TARGETS: usize = 8;

/// Fails if a context binds a tool or a key that does not exist, or a value of the wrong type.
pub(crate) fn check_binding(
    all: &[(Profile, Source)],
    context: &str,
    tool: &str,
    bindings: &Bindings,
) -> Result<()> {
    let Some((profile, _)) = all.iter().find(|(profile, _)| profile.name == tool) else {
        let near = nearest(tool, all.iter().map(|(profile, _)| profile.name.as_str()));
        return Err(ToolError::NotFound { name: tool.to_owned(), near }.into());
    };
    binding_values(profile, bindings).map(drop).map_err(|(key, problem)| {
        let (context, key) = (context.to_owned(), format!("tools.{tool}.{key}"));
        ToolError::InvalidBinding { context, key, problem }.into()
    })
}

/// The values of bindings as text, with the defaults of keys that are not bound. The error is a key and its problem.
pub(super) fn binding_values(
    profile: &Profile,
    bindings: &Bindings,
) -> std::result::Result<BTreeMap<String, String>, (String, String)> {
    let mut said = BTreeMap::new();
    for (key, value) in bindings {
        let invalid = |problem: String| (key.clone(), problem);
        let Some(binding) = profile.binding(key) else {
            let known: Vec<&str> = profile.bind.iter().map(|(key, _)| key.as_str()).collect();
            return Err(invalid(match nearest(key, known.iter().copied()) {
                _ if known.is_empty() => "this tool cannot be bound".to_owned(),
                Some(near) => format!("unknown key; did you mean {near:?}?"),
                None => format!("unknown key; the keys are {}", known.join(", ")),
            }));
        };
        let text = match (value, binding.flag) {
            (Value::Bool(flag), true) => flag.to_string(),
            // A variable cannot hold a NUL byte; the start of the command would fail with no hint at the
            // binding.
            (Value::String(text), false) if !text.is_empty() && !text.contains('\0') => text.clone(),
            (Value::Number(number), false) => number.to_string(),
            // The first target of a list is the selected one.
            (Value::Array(names), false) if has_targets(profile, key) => match first_target(names) {
                Some(name) => name.to_owned(),
                None => return Err(invalid("must be a list of names, none empty".to_owned())),
            },
            (Value::Array(_), false) => return Err(invalid("takes one value, not a list".to_owned())),
            (_, true) => return Err(invalid("must be true or false".to_owned())),
            (_, false) => return Err(invalid("must be a non-empty string".to_owned())),
        };
        said.insert(key.clone(), text);
    }
    // After all values: a needed key may stand later in the file.
    for (key, _) in bindings {
        let needs = profile.binding(key).map(|binding| binding.needs.as_slice()).unwrap_or_default();
        if let Some(missing) = needs.iter().find(|needed| !said.contains_key(*needed)) {
            return Err((key.clone(), format!("needs {missing} too")));
        }
    }
    // Defaults last, so that a default does not satisfy what another key needs.
    for (key, binding) in &profile.bind {
        if let Some(default) = &binding.default {
            said.entry(key.clone()).or_insert_with(|| default.clone());
        }
    }
    Ok(said)
}

fn has_targets(profile: &Profile, key: &str) -> bool {
    profile.targets.iter().any(|set| set.name == key)
}

/// The targets that bindings name, by set.
pub(super) fn bound_targets(
    profile: &Profile,
    bindings: &Bindings,
    said: &BTreeMap<String, String>,
) -> BoundTargets {
    let names =
        |key: &str, first: &str| target_names(bindings, key).unwrap_or_else(|| vec![first.to_owned()]);
    let bound = said.iter().filter(|(key, _)| has_targets(profile, key));
    bound.map(|(key, first)| (key.clone(), names(key, first))).collect()
}

/// The names that a key binds, if it binds a list.
pub(crate) fn target_names(bindings: &Bindings, key: &str) -> Option<Vec<String>> {
    match &bindings.iter().find(|(name, _)| name == key)?.1 {
        Value::Array(names) => names.iter().map(|name| name.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

/// The first name of a list in which every one can be a name.
fn first_target(names: &[Value]) -> Option<&str> {
    let is_name = |name: &Value| name.as_str().is_some_and(|name| !name.is_empty() && !name.contains('\0'));
    // All are checked although only the first is selected: the others are kept in the copies.
    names.first().filter(|_| names.iter().all(is_name)).and_then(Value::as_str)
}

/// Whether a target counts although no file has an entry for it.
pub(super) fn needs_no_entry(profile: &Profile, bindings: &Bindings, key: &str, name: &str) -> bool {
    let Some(binding) = profile.binding(key) else { return true };
    let signs = binding.exists.as_slice();
    // A binding that needs no entry may name what only the server knows.
    if signs.is_empty() && !binding.edit.iter().any(|edit| edit.require.is_some()) {
        return true;
    }
    let is_default = binding.default.as_deref() == Some(name);
    let is_sign = |sign: &ExistenceCheck| matches!(sign, ExistenceCheck::Is(known) if known == name);
    // A default that nobody named need not exist.
    (is_default && !bindings.iter().any(|(said, _)| said == key)) || signs.iter().any(is_sign)
}

/// A bound target that none of the user's files has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTarget {
    /// Context that binds it.
    pub context: String,
    /// Key of the binding, such as `tools.NAME.profile`.
    pub key: String,
    /// Name of the target.
    pub name: String,
    /// Names of the targets that exist.
    pub known: Vec<String>,
}

impl UnknownTarget {
    /// The nearest names, or some of those that exist; `None` if none do.
    pub fn hint(&self) -> Option<String> {
        if let Some(near) = nearest(&self.name, self.known.iter().map(String::as_str)) {
            return Some(format!("did you mean {}?", quoted(near)));
        }
        let more = if self.known.len() > MAX_NAMED_TARGETS { ", ..." } else { "" };
        let known: Vec<&str> = self.known.iter().take(MAX_NAMED_TARGETS).map(String::as_str).collect();
        (!known.is_empty()).then(|| format!("known: {}{more}", shown(known.join(", "))))
    }
}

impl fmt::Display for UnknownTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (context, name) = (quoted(&self.context), quoted(&self.name));
        write!(f, "context {context}: {}: {name} not found; no command will start in this context", self.key)
    }
}

/// The targets that a context binds and that the user's own files do not have. Files that cannot be read or understood
/// count as complete.
pub fn unknown_targets(state: &State, context: &Context) -> Vec<UnknownTarget> {
    if context.tools.is_empty() {
        return Vec::new();
    }
    // A warning must not fail because a profile cannot be read; preparing a room reports that.
    let all = state.tools().list().unwrap_or_default();
    let originals = Originals::of(state.app(), state.world());
    let files = OriginalFiles {
        state,
        paths: SessionPaths::of(state.world(), &originals, Path::new(""), "", PathBuf::new()),
        originals,
    };
    let bound = context.tools.iter().filter_map(|(tool, bindings)| {
        Some((all.iter().find(|(profile, _)| profile.name == *tool).map(|(profile, _)| profile)?, bindings))
    });
    let mut unknown = Vec::new();
    for (profile, bindings) in bound {
        for (key, name, known) in files.unknown(profile, bindings) {
            unknown.push(UnknownTarget {
                context: context.name.to_string(),
                key: format!("tools.{}.{key}", profile.name),
                name,
                known: known.into_iter().collect(),
            });
        }
    }
    unknown
}

/// The files of the user that rooms get copies of.
struct OriginalFiles<'a> {
    state: &'a State,
    paths: SessionPaths,
    originals: Originals,
}

impl OriginalFiles<'_> {
    fn unknown(&self, profile: &Profile, bindings: &Bindings) -> Vec<(String, String, BTreeSet<String>)> {
        // Wrong values are an error elsewhere (`check_binding`).
        let Ok(said) = binding_values(profile, bindings) else { return Vec::new() };
        let fill = |text: &str| filled(text, "", &said);
        let locate = |file: &str| self.locate(profile, Path::new(file), &said);
        let mut unknown = Vec::new();
        for (key, names) in bound_targets(profile, bindings, &said) {
            let set = profile.targets.iter().find(|set| set.name == key);
            let Some(known) = set.and_then(|set| names_in(set, &fill, &locate)) else { continue };
            for name in names.into_iter().filter(|name| !needs_no_entry(profile, bindings, &key, name)) {
                if !known.has(&name) {
                    unknown.push((key.clone(), name, known.names.clone()));
                }
            }
        }
        unknown
    }

    /// The originals of a file in the room.
    fn locate(&self, profile: &Profile, file: &Path, said: &BTreeMap<String, String>) -> Vec<PathBuf> {
        let home: Vec<Seed> = profile.home_seeds().collect();
        let mut seeds = profile.seed.iter().chain(&home);
        let found = seeds.find_map(|seed| Some((seed, file.strip_prefix(&seed.to).ok()?)));
        let Some((seed, rest)) = found else { return Vec::new() };
        let world = self.state.world();
        let own = seed.variable.as_deref().and_then(|name| self.originals.get(world, name));
        let own = bound_source(profile, seed, said, &self.paths).or(own);
        let below = |path: PathBuf| if rest.as_os_str().is_empty() { path } else { path.join(rest) };
        sources(seed, &self.paths, own, world.cwd()).into_iter().map(below).collect()
    }
}
