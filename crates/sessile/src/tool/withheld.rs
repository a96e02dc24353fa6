//! Targets that are withheld from a room: the record in its plan, and the removal from its copies.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::context::Context;
use crate::error::{GuardError, Protection, Result};
use crate::files::Locker;
use crate::session::Session;
use crate::settings::trust::fingerprint;
use crate::state::State;
use crate::text::{quoted, shown};
use crate::tool::bind::{Stamp, filled};
use crate::tool::paths::{Originals, SessionPaths};
use crate::tool::plan::Plan;
use crate::tool::profile::{Profile, ProjectFile, ReachVariables, TargetReach};
use crate::tool::protection::{GuardedTarget, OriginalFiles, original_files, reached_by};
use crate::tool::seed::is_variable_like;
use crate::tool::target::{
    TargetCopies, TargetFormat, TargetPlace, ToolSelection, holds_target, identify, value_identity,
    without_login,
};
use crate::tool::variable_reach::{VariableReach, field_forms};

/// Number of the rules by which this program withholds targets.
const RULES: u32 = 7;

/// Most entries of one directory whose changes are noticed.
const MOST_ENTRIES: usize = 200;

/// Targets that are withheld from a room, and the files that this depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withheld {
    /// The tools with targets that are withheld.
    pub tools: Vec<WithheldTool>,
    /// Rules by which it was decided: another program may know more ways to reach a target.
    #[serde(default)]
    rules: u32,
    stamps: Vec<(PathBuf, Option<Stamp>)>,
}

/// The targets of one tool that are withheld from a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WithheldTool {
    /// Tool.
    pub tool: String,
    /// Targets.
    pub targets: Vec<WithheldTarget>,
    /// Programs that use the tool's targets.
    programs: Vec<String>,
    /// Variables that could override a selection.
    overrides: Vec<String>,
    /// Files of the user with a target, which the tool also reads as those of a project.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    projects: Vec<OwnProjectFile>,
}

/// File of the user with a withheld target, and the project file that it can be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct OwnProjectFile {
    project: ProjectFile,
    #[serde(with = "crate::path_text")]
    path: PathBuf,
    key: String,
    name: String,
    context: String,
}

impl OwnProjectFile {
    /// Whether the tool reads it as the file of a project in this directory.
    fn is_read_in(&self, cwd: &Path) -> bool {
        let file = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
        let own = file(&self.path);
        own.is_some() && self.project.dirs(cwd).iter().any(|dir| file(&dir.join(&self.project.file)) == own)
    }
}

/// A target that is withheld from a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WithheldTarget {
    /// Key that binds it.
    pub key: String,
    /// Name.
    pub name: String,
    /// Guarded context that binds it.
    pub context: String,
    /// Other names of it that were removed from the copies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// The tool's own selection, if it was this target and was removed; at a level that does not move its files, if it is this target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deselected: Option<String>,
    /// Variables that select a target by its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    selectors: Vec<String>,
    /// Whether a file of it is below the home, which only the level `home` moves.
    #[serde(default)]
    is_in_home: bool,
    /// Variables that reach it in any way.
    #[serde(default)]
    reach: VariableReach,
    identities: Vec<String>,
}

/// A variable that reaches a withheld target.
pub(crate) struct WithheldVariable<'a> {
    pub(crate) name: String,
    pub(crate) tool: &'a WithheldTool,
    pub(crate) target: &'a WithheldTarget,
}

/// A tool's own selection that is withheld.
#[derive(Clone, Debug)]
pub(crate) struct ProtectedSelection<'a> {
    tool: &'a WithheldTool,
    target: &'a WithheldTarget,
    name: String,
}

impl Withheld {
    /// Whether nothing that it depends on has changed.
    pub(crate) fn holds(&self) -> bool {
        self.rules == RULES && self.stamps.iter().all(|(path, stamp)| Stamp::of(path) == *stamp)
    }

    /// The targets that are withheld, with their tools.
    pub fn targets(&self) -> impl Iterator<Item = (&str, &WithheldTarget)> {
        self.tools.iter().flat_map(|tool| tool.targets.iter().map(|target| (tool.tool.as_str(), target)))
    }

    /// Whether a tool has targets that are withheld.
    pub(crate) fn has_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.tool == name)
    }

    /// Whether a withheld target of a tool is no longer protected and is bound.
    pub(crate) fn gives_back(&self, tool: &str, targets: &[GuardedTarget], context: &Context) -> bool {
        let is_still = |withheld: &WithheldTarget| {
            targets.iter().any(|target| {
                target.tool == tool && target.key == withheld.key && target.name == withheld.name
            })
        };
        let is_back = |target: &WithheldTarget| binds(context, tool, &target.key, &target.name);
        self.targets().any(|(name, target)| name == tool && !is_still(target) && is_back(target))
    }

    /// The variables of a call that name, give or override a withheld target.
    pub(crate) fn variables<'a>(&'a self, own: &[(String, String)]) -> Vec<WithheldVariable<'a>> {
        let mut found: Vec<WithheldVariable<'a>> = Vec::new();
        for tool in &self.tools {
            let is_override =
                |name: &str| tool.overrides.iter().any(|pattern| is_variable_like(pattern, name));
            let overrides: Vec<&(String, String)> =
                own.iter().filter(|(name, _)| is_override(name)).collect();
            for target in &tool.targets {
                let mut names: BTreeSet<&str> = BTreeSet::new();
                let mut is_login = false;
                for variable in target.reach.find(own, &target.name, &target.aliases) {
                    names.insert(variable.name);
                    is_login |= variable.is_login;
                }
                for (name, value) in overrides.iter().filter(|(_, value)| target.is_named_by(value)) {
                    names.insert(name);
                    is_login |= *value != target.name;
                }
                if is_login {
                    // Variables beside an address or a key belong to it, such as the secret of a key.
                    names.extend(overrides.iter().map(|(name, _)| name.as_str()));
                }
                let variable = |name: &str| WithheldVariable { name: name.to_owned(), tool, target };
                found.extend(names.into_iter().map(variable));
            }
        }
        found
    }

    /// Fails if a flag of a call sets a variable that reaches a withheld target.
    pub(crate) fn check_flags(&self, flags: &[(String, String)], beside: &[(String, String)]) -> Result<()> {
        let all: Vec<(String, String)> = flags.iter().chain(beside).cloned().collect();
        let is_flag = |one: &WithheldVariable<'_>| flags.iter().any(|(name, _)| *name == one.name);
        match self.variables(&all).into_iter().find(is_flag) {
            Some(WithheldVariable { name, tool, target }) => Err(GuardError::ProtectedVariable {
                variable: name,
                protection: Protection {
                    tool: tool.tool.clone(),
                    key: target.key.clone(),
                    target: target.name.clone(),
                    context: target.context.clone(),
                },
            }
            .into()),
            None => Ok(()),
        }
    }

    /// The selections of tools that are withheld: of their files, or by a variable of this call.
    fn selections<'a>(&'a self, own: &'a [(String, String)]) -> Vec<ProtectedSelection<'a>> {
        let mut found = Vec::new();
        for tool in &self.tools {
            for target in &tool.targets {
                let mut values =
                    own.iter().filter(|(name, _)| target.selectors.contains(name)).map(|(_, value)| value);
                // A variable is stronger than the files.
                let name = match values.next() {
                    Some(value) => target.is_named_by(value).then(|| without_login(value)),
                    None => target.deselected.clone(),
                };
                found.extend(name.map(|name| ProtectedSelection { tool, target, name }));
            }
        }
        found
    }

    /// Fails if the command is a tool whose own selection is withheld. Says so once if it is another program. Warns if the
    /// command is a tool whose targets this level cannot withhold.
    pub(crate) fn check_command(
        &self,
        state: &State,
        session: &Session,
        words: &[OsString],
        (is_new, has_home): (bool, bool),
    ) -> Result<()> {
        // The program's name, however it is called: by a path or through PATH.
        let program = words.first().map(Path::new).and_then(Path::file_name).and_then(OsStr::to_str);
        let is_command = |tool: &WithheldTool| {
            program.is_some_and(|program| tool.programs.iter().any(|one| one == program))
        };
        // Looking for the project's directory is for the tool's own commands, and once for the others.
        let asked = self.tools.iter().filter(|tool| is_new || is_command(tool));
        for (tool, file) in asked.flat_map(|tool| tool.projects.iter().map(move |file| (tool, file))) {
            if !state.world().cwd().is_some_and(|cwd| file.is_read_in(cwd)) {
                continue;
            }
            let OwnProjectFile { path, key, name, context, .. } = file;
            if is_command(tool) {
                let (tool, key) = (tool.tool.clone(), key.clone());
                let protection = Protection { tool, key, target: name.clone(), context: context.clone() };
                let protection = Box::new(protection);
                let is_below = file.project.ancestors;
                let roots = if is_below { Vec::new() } else { file.project.roots.clone() };
                let path = path.clone();
                return Err(GuardError::ProtectedProjectFile { protection, path, roots }.into());
            }
            // At a level that does not move the file, this holds in every directory.
            let is_moved =
                has_home || !tool.targets.iter().any(|target| target.key == *key && target.is_in_home);
            if !is_moved {
                continue;
            }
            state.warn(
                format!(
                    "{} reads {} as the project's file in this directory, so its {key} {} is not withheld, which context {} \
                     protects",
                    tool.tool,
                    shown(path.display()),
                    quoted(name),
                    quoted(context)
                ),
                Some(match (file.project.ancestors, path.parent()) {
                    (true, Some(dir)) => {
                        format!("run {} in a directory outside {}", tool.tool, shown(dir.display()))
                    }
                    _ => "start the session in a project's directory".to_owned(),
                }),
            );
        }
        let own = own_variables(state, session);
        for selection in self.selections(&own) {
            let ProtectedSelection { tool, target, name } = selection;
            if is_command(tool) {
                return Err(GuardError::ProtectedTarget(Protection {
                    tool: tool.tool.clone(),
                    key: target.key.clone(),
                    target: name,
                    context: target.context.clone(),
                })
                .into());
            }
            // Once per preparation, not at every command of the session.
            if is_new && (has_home || !target.is_in_home) {
                state.warn(
                    format!(
                        "{}'s current {} {} is protected by context {}; the session starts without it",
                        tool.tool,
                        target.key,
                        quoted(name),
                        quoted(&target.context)
                    ),
                    None,
                );
            }
        }
        for tool in self.tools.iter().filter(|tool| !has_home && is_command(tool)) {
            for target in tool.targets.iter().filter(|target| target.is_in_home) {
                let (key, name, context) = (&target.key, quoted(&target.name), quoted(&target.context));
                state.warn(
                    format!(
                        "isolation level env does not withhold {} {key} {name}, which context {context} protects",
                        tool.tool
                    ),
                    Some("withhold it: pass --isolate home".to_owned()),
                );
            }
        }
        Ok(())
    }
}

impl WithheldTarget {
    /// Whether a file of it is below the home, which only the level `home` moves.
    pub(crate) fn is_in_home(&self) -> bool {
        self.is_in_home
    }

    fn is_named_by(&self, value: &str) -> bool {
        value == self.name
            || self.aliases.iter().any(|alias| alias == value)
            || self.identities.contains(&value_identity(value))
            || self.reach.is_address(value, &self.name)
    }
}

/// The variables that a command would inherit: those of the call, or the user's own if the call is in another session.
pub(crate) fn own_variables(state: &State, session: &Session) -> Vec<(String, String)> {
    let world = state.world();
    let originals = Originals::of(state.app(), world);
    let is_inside_other = state
        .enclosing_session()
        .is_some_and(|outer| outer != session.id.as_str() && session.name.as_deref() != Some(outer));
    let is_replaced = |name: &str| originals.replaced().any(|(replaced, _)| replaced == name);
    // Names and values of targets are text.
    let inherited = world.variables().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
    let mut own: Vec<(String, String)> = inherited
        .filter(|(name, _)| !is_inside_other || !is_replaced(name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    if is_inside_other {
        let replaced = originals.replaced().filter_map(|(name, before)| Some((name, before?)));
        own.extend(replaced.map(|(name, before)| (name.to_owned(), before.to_owned())));
    }
    own
}

/// A path below a place; the place itself if the path is empty.
fn below(place: &Path, path: &Path) -> PathBuf {
    if path.as_os_str().is_empty() { place.to_owned() } else { place.join(path) }
}

/// Whether a context binds a target by its name.
fn binds(context: &Context, tool: &str, key: &str, name: &str) -> bool {
    let bindings = context.tools.iter().filter(|(bound, _)| bound == tool).flat_map(|(_, bindings)| bindings);
    bindings.filter(|(bound, _)| bound == key).any(|(_, value)| match value {
        Value::Array(names) => names.iter().any(|one| one == name),
        value => value == name,
    })
}

/// Removal of protected targets from the copies of a room.
pub(crate) struct Withholding<'a> {
    pub(crate) state: &'a State,
    pub(crate) places: &'a SessionPaths,
    pub(crate) profiles: &'a [Profile],
    pub(crate) context: Option<&'a Context>,
    pub(crate) targets: &'a [GuardedTarget],
    /// Variables by which other tools reach targets.
    pub(crate) reaches: &'a [TargetReach],
    /// Files that define the user's contexts, as they were before the contexts were read.
    pub(crate) sources: &'a [(PathBuf, Option<Stamp>)],
    pub(crate) locker: &'a Locker,
}

impl Withholding<'_> {
    /// Fails if the context binds a target that it does not open.
    pub(crate) fn check_bindings(&self) -> Result<()> {
        let Some(context) = self.context else { return Ok(()) };
        let is_named = |target: &&GuardedTarget| binds(context, &target.tool, &target.key, &target.name);
        let named = self.targets.iter().find(is_named).map(|target| (target, target.name.clone()));
        // Under another name: a list of servers with a protected one, or another login with the same key.
        let reached = || reached_by(self.state, context, self.profiles, self.targets);
        let Some((target, name)) = named.or_else(reached) else { return Ok(()) };
        Err(GuardError::ProtectedBinding {
            context: context.name.to_string(),
            key: format!("tools.{}.{}", target.tool, target.key),
            target: name,
            protected_by: target.contexts.first().cloned().unwrap_or_default(),
        }
        .into())
    }

    /// Removes the targets from the copies of every tool that has one.
    pub(crate) fn apply(&self, plan: &Plan, before: Option<&Withheld>) -> Result<Vec<WithheldTool>> {
        let mut tools: Vec<WithheldTool> = Vec::new();
        for profile in self.profiles {
            let targets: Vec<&GuardedTarget> =
                self.targets.iter().filter(|target| target.tool == profile.name).collect();
            // A shared tool has no copies to remove anything from.
            let is_shared = plan.tool(&profile.name).is_some_and(|prepared| prepared.shared.is_some());
            if targets.is_empty() || is_shared {
                continue;
            }
            let earlier =
                before.and_then(|before| before.tools.iter().find(|tool| tool.tool == profile.name));
            let defaults = self.defaults(plan, profile);
            let mut withheld = Vec::new();
            for target in targets {
                let earlier =
                    earlier.and_then(|tool| tool.targets.iter().find(|one| one.name == target.name));
                let mut target_withheld = self.withhold(profile, target, &defaults, earlier)?;
                if target_withheld.is_in_home && plan.home.is_none() {
                    target_withheld.deselected = self.own_selection(profile, target);
                }
                withheld.push(target_withheld);
            }
            let others = self.reaches.iter().filter(|reach| reach.tool == profile.name);
            let others = others.flat_map(|reach| reach.clears.iter().cloned());
            let overrides = profile.clears.iter().cloned().chain(others).collect();
            let is_user = |one: &&Profile| one.name == profile.name || one.follows.contains(&profile.name);
            let programs =
                self.profiles.iter().filter(is_user).flat_map(|one| one.programs.iter().cloned()).collect();
            let projects = self.projects(profile);
            let tool = profile.name.clone();
            tools.push(WithheldTool { tool, targets: withheld, programs, overrides, projects });
        }
        Ok(tools)
    }

    /// The user's files with a target that is withheld, if the tool also reads them as those of a project.
    fn projects(&self, profile: &Profile) -> Vec<OwnProjectFile> {
        let mut found: Vec<OwnProjectFile> = Vec::new();
        for target in self.targets.iter().filter(|target| target.tool == profile.name) {
            let fill = |text: &str| filled(text, "", &target.said);
            let files = original_files(self.state, profile, &target.said);
            let originals = OriginalFiles::of(self.state);
            for project in &profile.project {
                let own = self.places.fill(&project.own).map(PathBuf::from);
                for path in own.iter().chain(files.iter().filter(|path| path.ends_with(&project.file))) {
                    let entry = target.as_entry(&|_, _| false);
                    let is_new = !found.iter().any(|file| file.path == *path && file.project == *project);
                    // Of a tool with several formats, only the entries of this file.
                    let of_place = |place: &TargetPlace| originals.files_of(profile, &fill(&place.file));
                    let is_known = profile
                        .targets
                        .iter()
                        .flat_map(|set| &set.places)
                        .any(|place| of_place(place).contains(path));
                    let is_place = |place: &TargetPlace| !is_known || of_place(place).contains(path);
                    if is_new && holds_target(&profile.targets, &entry, &fill, (path, &is_place)) {
                        found.push(OwnProjectFile {
                            project: project.clone(),
                            path: path.clone(),
                            key: target.key.clone(),
                            name: target.name.clone(),
                            context: target.contexts.first().cloned().unwrap_or_default(),
                        });
                    }
                }
            }
        }
        found
    }

    fn withhold(
        &self,
        profile: &Profile,
        target: &GuardedTarget,
        defaults: &[(PathBuf, PathBuf)],
        earlier: Option<&WithheldTarget>,
    ) -> Result<WithheldTarget> {
        let fill = |text: &str| filled(text, "", &target.said);
        let room = &self.places.room;
        let selection = ToolSelection { profile, locate: &|file| room.join(file), fill: &fill };
        let is_bound = self.binds_key(target);
        // Read before the target is removed, because removing it may empty the selection.
        let selected = if is_bound { None } else { selection.selected(&target.key) };
        // A binding selects in the tool's own copies, and never at the usual place beside them.
        let usual = |(copy, default): &(PathBuf, PathBuf), file: &str| {
            Path::new(file).strip_prefix(copy).map_or_else(|_| PathBuf::new(), |rest| below(default, rest))
        };
        let usual_selected: Vec<Option<String>> = defaults
            .iter()
            .map(|default| {
                let locate = |file: &str| usual(default, file);
                ToolSelection { profile, locate: &locate, fill: &fill }.selected(&target.key)
            })
            .collect();
        let copies =
            TargetCopies { sets: &profile.targets, room, locker: self.locker, fill: &fill, defaults };
        let is_of_target = |field: &str, value: &str| {
            let known = target.fields.iter().filter(|(name, _)| name == field);
            let forms = field_forms(value);
            known
                .flat_map(|(_, prints)| prints)
                .any(|print| forms.iter().any(|form| fingerprint(form) == *print))
        };
        let entry = target.as_entry(&is_of_target);
        let mut aliases = copies.withhold(&entry)?;
        let is_target = |name: &str| {
            name == target.name || aliases.iter().any(|alias| alias == name) || copies.is_named(&entry, name)
        };
        for (default, selected) in defaults.iter().zip(usual_selected) {
            let locate = |file: &str| usual(default, file);
            let selection = ToolSelection { profile, locate: &locate, fill: &fill };
            if selected.is_some_and(|name| is_target(&name)) {
                selection.deselect(&target.key, self.locker)?;
            }
            selection.remove_copied(&target.key, &is_of_target, self.locker)?;
        }
        let deselected = match selected {
            Some(name) if is_target(&name) => {
                selection.deselect(&target.key, self.locker)?;
                Some(name)
            }
            // The session has selected another one since.
            Some(_) => None,
            None if is_bound => None,
            // The copy no longer shows what was removed from it by an earlier command, so the record says so.
            None => earlier.and_then(|earlier| earlier.deselected.clone()),
        };
        selection.remove_copied(&target.key, &is_of_target, self.locker)?;
        // Names that were removed earlier are not in the copies any more, and variables may still use them.
        aliases.extend(earlier.into_iter().flat_map(|earlier| earlier.aliases.iter().cloned()));
        aliases.retain(|alias| *alias != target.name);
        aliases.sort();
        aliases.dedup();
        let variables = profile.binding(&target.key).into_iter().flat_map(|binding| &binding.variables);
        let is_other = |reach: &&TargetReach| reach.tool == profile.name && reach.key == target.key;
        let others: Vec<&ReachVariables> =
            self.reaches.iter().filter(is_other).map(|reach| &reach.variables).collect();
        Ok(WithheldTarget {
            is_in_home: profile.is_in_home(&target.key),
            reach: VariableReach::of(profile, target, &others),
            key: target.key.clone(),
            name: target.name.clone(),
            context: target.contexts.first().cloned().unwrap_or_default(),
            aliases,
            deselected,
            // What the context binds is pinned whatever the caller's variables say.
            selectors: variables
                .filter(|(_, text)| text == "{value}" && !is_bound)
                .map(|(name, _)| name.clone())
                .collect(),
            identities: target.identities.clone(),
        })
    }

    /// Whether the context binds the target's key.
    fn binds_key(&self, target: &GuardedTarget) -> bool {
        self.context.is_some_and(|context| {
            let mut bindings = context.tools.iter().filter(|(tool, _)| *tool == target.tool);
            bindings.any(|(_, bindings)| bindings.iter().any(|(key, _)| *key == target.key))
        })
    }

    /// The selection in the user's own files, which the tool reads at this level, if it is the target.
    fn own_selection(&self, profile: &Profile, target: &GuardedTarget) -> Option<String> {
        if self.binds_key(target) {
            return None;
        }
        let fill = |text: &str| filled(text, "", &target.said);
        let originals = OriginalFiles::of(self.state);
        let locate = |file: &str| originals.files_of(profile, file).into_iter().next().unwrap_or_default();
        let selected = ToolSelection { profile, locate: &locate, fill: &fill }.selected(&target.key)?;
        let locate = |place: &TargetPlace| originals.files_of(profile, &fill(&place.file));
        let known = identify(&profile.targets, (&target.key, &selected), &fill, &locate).ok()?.identities;
        let is_known = |identity: &String| target.identities.contains(identity);
        let is_target =
            selected == target.name || known.iter().any(is_known) || is_known(&value_identity(&selected));
        is_target.then_some(selected)
    }

    /// Copies in the room's home of what the tool's variable leads elsewhere: a path in the room, and the copy at the usual
    /// place.
    fn defaults(&self, plan: &Plan, profile: &Profile) -> Vec<(PathBuf, PathBuf)> {
        let (Some(at), Some(real)) = (&plan.home, &self.places.home) else { return Vec::new() };
        let mut found = Vec::new();
        for seed in &profile.seed {
            for from in seed.from.iter().filter_map(|text| self.places.fill(text)) {
                let Ok(relative) = Path::new(&from).strip_prefix(real) else { continue };
                let copy = at.join(relative);
                let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_symlink());
                // Behind a link is the user's own file, which must not be changed.
                let is_own = copy.exists() && !copy.ancestors().take_while(|dir| dir != at).any(is_link);
                if is_own {
                    found.push((PathBuf::from(&seed.to), copy));
                }
            }
        }
        found
    }

    /// The record of what was withheld, with everything that it depends on.
    pub(crate) fn record(&self, plan: &Plan, tools: Vec<WithheldTool>) -> Withheld {
        let mut files = Vec::new();
        let mut copies = Vec::new();
        for target in self.targets {
            let Some(profile) = self.profiles.iter().find(|profile| profile.name == target.tool) else {
                continue;
            };
            files.extend(original_files(self.state, profile, &target.said));
            let fill = |text: &str| filled(text, "", &target.said);
            let locate = |file: &str| self.places.room.join(file);
            let selection = ToolSelection { profile, locate: &locate, fill: &fill };
            copies.extend(selection.files(&target.key));
            let defaults = self.defaults(plan, profile);
            for place in profile.targets.iter().flat_map(|set| &set.places) {
                // Writing to a database changes no target: its entries are only referred to.
                if place.format == TargetFormat::Sqlite {
                    continue;
                }
                let file = fill(&place.file);
                let path = self.places.room.join(&file);
                let also = defaults.iter().filter_map(|(copy, default)| {
                    Some(default.join(Path::new(&file).strip_prefix(copy).ok()?))
                });
                let content = place.content.as_ref().and_then(|content| content.file.as_deref());
                for path in [path].into_iter().chain(also) {
                    if place.format == TargetFormat::Dir {
                        let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
                        let inner = entries.take(MOST_ENTRIES).map(|entry| match content {
                            Some(file) => entry.path().join(file),
                            None => entry.path(),
                        });
                        copies.extend(inner);
                    }
                    copies.push(path);
                }
            }
        }
        files.extend(copies);
        files.sort();
        files.dedup();
        // A new or changed context can protect or open a target, so the context files count.
        let sources = self.sources.iter().cloned();
        let stamps = sources.chain(files.into_iter().map(|path| (path.clone(), Stamp::of(&path)))).collect();
        Withheld { tools, rules: RULES, stamps }
    }
}
