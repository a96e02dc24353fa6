//! Protected targets: those that only guarded contexts of the user bind.
//!
//! A protected target exists only in sessions that are pinned to one of these contexts; [`prepare`](crate::tool::prepare)
//! removes it from the copies of every other session. A target is recognized by its name and by its identity, so an alias is
//! protected too. Contexts of a project count for neither side.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use crate::context::{Bindings, Context, ContextLocation, Guard};
use crate::error::Result;
use crate::settings::trust::fingerprint;
use crate::state::State;
use crate::tool::bind::filled;
use crate::tool::binding::target_names;
use crate::tool::paths::{Originals, SessionPaths};
use crate::tool::plant::reason_to_share;
use crate::tool::profile::{ExistenceCheck, Profile, Seed};
use crate::tool::seed::{bound_source, sources};
use crate::tool::target::{TargetPlace, TargetSet, WithheldEntry, identify, is_same_name, value_identity};
use crate::tool::variable_reach::field_forms;

/// A target that a guarded context of the user binds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GuardedTarget {
    /// Tool.
    pub tool: String,
    /// Key of the binding.
    pub key: String,
    /// Name of the target.
    pub name: String,
    /// Guarded contexts that bind it.
    pub contexts: Vec<String>,
    /// Unguarded contexts that bind it too: then it is shared with every session.
    pub shared_with: Vec<String>,
    /// Whether it has an entry in the user's files; a target without one cannot be withheld.
    pub has_entry: bool,
    /// Reason why the tool is shared with every session, if it is: then nothing of it can be withheld.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_login: Option<String>,
    #[serde(skip)]
    pub(crate) identities: Vec<String>,
    /// Identities of entries for exactly the same target.
    #[serde(skip)]
    exact: Vec<String>,
    /// Fields that identify it, each with fingerprints of the spellings of its values.
    #[serde(skip)]
    pub(crate) fields: Vec<(String, BTreeSet<String>)>,
    /// Whether variables with its name are kept out of other sessions, although no file has an entry for it.
    #[serde(skip)]
    pub(crate) is_by_value: bool,
    /// Values of the bindings beside it, for the placeholders of paths.
    #[serde(skip)]
    pub(crate) said: BTreeMap<String, String>,
}

impl GuardedTarget {
    /// Whether it is withheld from sessions of other contexts.
    pub fn is_protected(&self) -> bool {
        // Without an entry nothing can be removed, and calling it protected would promise too much.
        self.shared_with.is_empty() && self.has_entry && self.shared_login.is_none()
    }

    /// Whether variables that reach it are kept out of sessions of other contexts.
    pub(crate) fn is_withheld(&self) -> bool {
        self.is_protected() || (self.is_by_value && self.shared_with.is_empty())
    }

    /// Its entry in the copies; `has_field` tells values of its fields.
    pub(crate) fn as_entry<'a>(&'a self, has_field: &'a dyn Fn(&str, &str) -> bool) -> WithheldEntry<'a> {
        let (set, name, identities) = (&self.key, &self.name, &self.identities);
        WithheldEntry { set, name, identities, has_field }
    }

    /// Whether sessions of this context have it.
    pub(crate) fn is_open_in(&self, context: Option<&Context>) -> bool {
        context.is_some_and(|context| {
            // A project could otherwise open a target by naming a context of its own like a guarded one.
            context.home != ContextLocation::Project
                && self.contexts.iter().any(|name| name == context.name.as_str())
        })
    }
}

/// The targets of one context: protected, shared, or out of reach of protection.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ContextProtection {
    /// Targets that exist only in sessions of guarded contexts.
    pub protected: Vec<GuardedTarget>,
    /// Targets that a guarded and an unguarded context bind.
    pub shared: Vec<GuardedTarget>,
    /// Bindings that cannot be protected, a sentence each.
    pub not_protected: Vec<String>,
}

impl ContextProtection {
    /// The protection of what a context of the user binds. Contexts of a project protect nothing.
    pub fn of(state: &State, context: &Context) -> Result<Self> {
        let mut found = ContextProtection::default();
        if context.home == ContextLocation::Project {
            return Ok(found);
        }
        for target in guarded_targets(state)? {
            let name = context.name.to_string();
            let is_own = target.contexts.contains(&name) || target.shared_with.contains(&name);
            match () {
                () if !is_own => {}
                () if !target.shared_with.is_empty() => found.shared.push(target),
                () if target.shared_login.is_some() => found.not_protected.push(format!(
                    "{}: the {} {} stays in every session: {}",
                    target.tool,
                    target.key,
                    target.name,
                    target.shared_login.unwrap_or_default()
                )),
                () if target.has_entry => found.protected.push(target),
                () if target.is_by_value => found.not_protected.push(format!(
                    "{}: the {} {} has no entry in a file; only variables with it are withheld",
                    target.tool, target.key, target.name
                )),
                () => found.not_protected.push(format!(
                    "{}: the {} {} has no entry in a file",
                    target.tool, target.key, target.name
                )),
            }
        }
        if context.guard == Guard::None {
            return Ok(found);
        }
        for (tool, bindings) in &context.tools {
            let Ok((profile, _)) = state.tools().get(tool) else { continue };
            found.not_protected.extend(profile.not_protected.iter().map(|what| format!("{tool}: {what}")));
            if profile.targets.is_empty() && profile.not_protected.is_empty() {
                let keys = bindings.iter().map(|(key, _)| format!("{tool}: {key}"));
                found.not_protected.extend(keys);
            }
        }
        Ok(found)
    }
}

/// A target as one context binds it.
struct BoundTarget {
    tool: String,
    key: String,
    name: String,
    said: BTreeMap<String, String>,
    /// Whether another bound target is found in it, as an account is in its host.
    is_container: bool,
}

/// The targets that guarded contexts of the user bind, in the order of tools and names.
pub fn guarded_targets(state: &State) -> Result<Vec<GuardedTarget>> {
    targets_of(state, &state.contexts().user_contexts()?)
}

/// The targets that the guarded ones among these contexts bind.
pub(crate) fn targets_of(state: &State, contexts: &[Context]) -> Result<Vec<GuardedTarget>> {
    let guarded = contexts.iter().filter(|context| context.guard > Guard::None);
    let tools: BTreeSet<&String> = guarded.flat_map(|context| &context.tools).map(|(tool, _)| tool).collect();
    // A tool that is not known has no targets.
    let profiles: Vec<Profile> =
        tools.into_iter().filter_map(|tool| Some(state.tools().get(tool).ok()?.0)).collect();
    resolve(state, contexts, &profiles)
}

/// The same for these contexts and profiles.
pub(crate) fn resolve(
    state: &State,
    contexts: &[Context],
    profiles: &[Profile],
) -> Result<Vec<GuardedTarget>> {
    let originals = OriginalFiles::of(state);
    let mut found: BTreeMap<(String, String, String, String), GuardedTarget> = BTreeMap::new();
    for context in contexts.iter().filter(|context| context.guard > Guard::None) {
        for (target, profile) in bound_targets(context, profiles) {
            // An account is protected within its host; the host itself may hold unprotected accounts.
            if target.is_container {
                continue;
            }
            let scope = scope(profile, &target.key, &target.said);
            let id = (target.tool.clone(), target.key.clone(), target.name.clone(), scope);
            // Reading the identities opens files, so it is done once for each target.
            let guarded = found.entry(id).or_insert_with(|| originals.describe(profile, target));
            guarded.contexts.push(context.name.to_string());
        }
    }
    let mut targets: Vec<GuardedTarget> = found.into_values().collect();
    for context in contexts.iter().filter(|context| context.guard == Guard::None) {
        for (bound, profile) in bound_targets(context, profiles) {
            // The user's files are read only where a guarded context binds the same key.
            if targets.iter().any(|target| target.tool == bound.tool && target.key == bound.key) {
                let bound = originals.describe(profile, bound);
                let same = targets.iter_mut().filter(|target| is_same(profile, target, &bound));
                for target in same.filter(|target| !target.shared_with.contains(&context.name.to_string())) {
                    target.shared_with.push(context.name.to_string());
                }
            }
        }
    }
    Ok(targets)
}

/// The first of these targets that a context reaches by a binding of another name, and that name.
pub(crate) fn reached_by<'t>(
    state: &State,
    context: &Context,
    profiles: &[Profile],
    targets: &'t [GuardedTarget],
) -> Option<(&'t GuardedTarget, String)> {
    let originals = OriginalFiles::of(state);
    bound_targets(context, profiles).into_iter().filter(|(bound, _)| !bound.is_container).find_map(
        |(bound, profile)| {
            let is_alike = |target: &&GuardedTarget| (&target.tool, &target.key) == (&bound.tool, &bound.key);
            let alike: Vec<&GuardedTarget> = targets.iter().filter(is_alike).collect();
            // The user's files are read only where such a target is withheld.
            if alike.is_empty() {
                return None;
            }
            let bound = originals.describe(profile, bound);
            let is_reached =
                |target: &&GuardedTarget| target.identities.iter().any(|one| bound.identities.contains(one));
            alike.into_iter().find(is_reached).map(|target| (target, bound.name.clone()))
        },
    )
}

/// The targets that a context binds, with the profiles of their tools.
fn bound_targets<'p>(context: &Context, profiles: &'p [Profile]) -> Vec<(BoundTarget, &'p Profile)> {
    let mut all = Vec::new();
    for (tool, bindings) in &context.tools {
        let Some(profile) = profiles.iter().find(|profile| profile.name == *tool) else { continue };
        let said = said(profile, bindings);
        let is_bound = |set: &TargetSet| bindings.iter().any(|(key, _)| *key == set.name);
        for set in profile.targets.iter().filter(|set| is_bound(set)) {
            let placeholder = format!("{{{}}}", set.name);
            let holds = |place: &TargetPlace| {
                place.file.contains(&placeholder)
                    || place.entries.iter().any(|entries| entries.contains(&placeholder))
            };
            let mut inner = profile.targets.iter().filter(|inner| is_bound(inner));
            let is_container = inner.any(|inner| inner.places.iter().any(holds));
            let first = said.get(&set.name).cloned();
            let names = target_names(bindings, &set.name).unwrap_or_else(|| first.into_iter().collect());
            all.extend(names.into_iter().map(|name| {
                let (tool, key, said) = (tool.clone(), set.name.clone(), said.clone());
                (BoundTarget { tool, key, name, said, is_container }, profile)
            }));
        }
        let is_set = |key: &String| profile.targets.iter().any(|set| set.name == *key);
        for (key, _) in profile.bind.iter().filter(|(key, binding)| binding.protects && !is_set(key)) {
            let is_said = bindings.iter().any(|(bound, _)| bound == key);
            if let Some(name) = said.get(key).filter(|_| is_said) {
                let (tool, key, name, said) = (tool.clone(), key.clone(), name.clone(), said.clone());
                all.push((BoundTarget { tool, key, name, said, is_container: false }, profile));
            }
        }
    }
    all
}

/// The values of a tool's bindings as text, with the defaults. Values that are not valid fail when the context is used.
fn said(profile: &Profile, bindings: &Bindings) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(names) => names.first().and_then(Value::as_str).map(str::to_owned),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let given = bindings.iter().filter_map(|(key, value)| Some((key.clone(), text(value)?)));
    let mut said: BTreeMap<String, String> = given.collect();
    for (key, binding) in &profile.bind {
        if let Some(default) = &binding.default {
            said.entry(key.clone()).or_insert_with(|| default.clone());
        }
    }
    said
}

/// Where the entries of a set are found among others of its kind: an account of one host is not one of another.
fn scope(profile: &Profile, key: &str, said: &BTreeMap<String, String>) -> String {
    let places = profile.targets.iter().filter(|set| set.name == key).flat_map(|set| &set.places);
    let paths = places.flat_map(|place| place.entries.iter().chain([&place.file]));
    // A name in an entry is written as a pair of braces without a word.
    paths.map(|path| filled(&path.replace("{}", "\u{1}"), "", said)).collect::<Vec<_>>().join("\0")
}

fn without_scheme(address: &str) -> &str {
    address.split_once("://").map_or(address, |(_, rest)| rest).trim_start_matches("//")
}

fn is_same(profile: &Profile, target: &GuardedTarget, bound: &GuardedTarget) -> bool {
    if (&target.tool, &target.key) != (&bound.tool, &bound.key) {
        return false;
    }
    // An alias of a guarded target in an unguarded context shares it, as its own name would. What only reaches it among others does
    // not: it would end the protection.
    let is_identical = target.exact.iter().any(|identity| bound.exact.contains(identity));
    let mut places = profile.targets.iter().filter(|set| set.name == target.key).flat_map(|set| &set.places);
    let is_named = places.any(|place| is_same_name(place, &bound.name, &target.name))
        || (target.is_by_value && target.name == bound.name);
    let scope_of = |one: &GuardedTarget| scope(profile, &one.key, &one.said);
    is_identical || (is_named && scope_of(target) == scope_of(bound))
}

/// The user's own files, outside any session.
pub(crate) struct OriginalFiles<'a> {
    state: &'a State,
    originals: Originals,
    places: SessionPaths,
}

impl<'a> OriginalFiles<'a> {
    pub(crate) fn of(state: &'a State) -> Self {
        let originals = Originals::of(state.app(), state.world());
        let places = SessionPaths::of(state.world(), &originals, Path::new(""), "", PathBuf::new());
        OriginalFiles { state, originals, places }
    }

    fn describe(&self, profile: &Profile, target: BoundTarget) -> GuardedTarget {
        let BoundTarget { tool, key, name, said, .. } = target;
        let fill = |text: &str| filled(text, "", &said);
        let locate = |place: &TargetPlace| self.bound_files_of(profile, &fill(&place.file), &said);
        // A file that cannot be understood identifies nothing; its copy is removed whole.
        let identity = identify(&profile.targets, (&key, &name), &fill, &locate).unwrap_or_default();
        let prints = |values: Vec<String>| {
            values.iter().flat_map(|value| field_forms(value)).map(|form| fingerprint(&form)).collect()
        };
        let fields = identity.fields.into_iter().map(|(field, values)| (field, prints(values))).collect();
        let is_by_value = !profile.targets.iter().any(|set| set.name == key);
        let is_fixed = |sign: &ExistenceCheck| matches!(sign, ExistenceCheck::Is(known) if *known == name);
        let is_virtual = profile.binding(&key).is_some_and(|binding| binding.exists.iter().any(is_fixed));
        let (mut identities, mut exact) = (identity.identities, identity.exact);
        let has_entry = !is_by_value && (!is_virtual || !identities.is_empty());
        let mut places = profile.targets.iter().filter(|set| set.name == key).flat_map(|set| &set.places);
        if places.any(|place| place.url) {
            // A variable may spell the address in another way, also without a scheme.
            for one in [value_identity(&name), value_identity(&format!("https://{}", without_scheme(&name)))]
            {
                identities.push(one.clone());
                exact.push(one);
            }
        }
        // A file that cannot be read is reported when the tool is prepared.
        let shared_login = reason_to_share(profile, &self.places).unwrap_or_default();
        let (contexts, shared_with) = (Vec::new(), Vec::new());
        GuardedTarget {
            tool,
            key,
            name,
            contexts,
            shared_with,
            has_entry,
            shared_login,
            identities,
            exact,
            fields,
            is_by_value,
            said,
        }
    }

    /// The user's files that a path in a room is copied from: those of the variable, and those at the usual place.
    pub(crate) fn files_of(&self, profile: &Profile, file: &str) -> Vec<PathBuf> {
        self.bound_files_of(profile, file, &BTreeMap::new())
    }

    /// The same, with the files that bound values name first.
    fn bound_files_of(&self, profile: &Profile, file: &str, said: &BTreeMap<String, String>) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let home: Vec<Seed> = profile.home_seeds().collect();
        for seed in profile.seed.iter().chain(&home) {
            let Ok(rest) = Path::new(file).strip_prefix(&seed.to) else { continue };
            let world = self.state.world();
            let own = seed.variable.as_deref().and_then(|name| self.originals.get(world, name));
            let bound = bound_source(profile, seed, said, &self.places);
            // None stands for the usual place, which is looked at in any case.
            for own in bound.map(Some).into_iter().chain([own, None]) {
                for source in sources(seed, &self.places, own, world.cwd()) {
                    let path = if rest.as_os_str().is_empty() { source } else { source.join(rest) };
                    if !files.contains(&path) && path.exists() {
                        files.push(path);
                    }
                }
            }
        }
        files
    }
}

/// The user's files that the identities of a tool's targets are read from.
pub(crate) fn original_files(
    state: &State,
    profile: &Profile,
    said: &BTreeMap<String, String>,
) -> Vec<PathBuf> {
    let originals = OriginalFiles::of(state);
    let places = profile.targets.iter().flat_map(|set| &set.places);
    let mut files: Vec<PathBuf> = places
        .flat_map(|place| originals.bound_files_of(profile, &filled(&place.file, "", said), said))
        .collect();
    files.sort();
    files.dedup();
    files
}
