//! Preparing a room: once for each tool, at the first command that needs it.
//!
//! The fast path reads the plan and nothing else. It applies if the plan has every requested tool, the context's
//! bindings are the same, and the files that the bindings depend on have the same inode, size and change time. No
//! profile is parsed and no copy is opened. The slow path, under the room's lock, copies the missing tools, grows the
//! directories of links, saves the plan, binds the context and saves the plan again. If binding fails, the prepared
//! tools stay prepared.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::context::{Bindings, Context, Guard};
use crate::error::{Error, FileError, Result, SessionError, ToolError, UsageError};
use crate::files::LockedDir;
use crate::session::Session;
use crate::settings::Value;
use crate::state::State;
use crate::text::quoted;
use crate::tool::bind::{AppliedBinding, Binder, Stamp, is_strict};
use crate::tool::catalog::Source;
use crate::tool::drift::{drift_of, moved_targets};
use crate::tool::inputs::{PreparationInputs, backdate_all, is_unguarded};
use crate::tool::paths::{SessionPaths, require_own_room};
use crate::tool::plan::{Copies, Plan, PreparedTool};
use crate::tool::plant::places;
use crate::tool::planted_paths::PlantedPaths;
use crate::tool::profile::{Profile, TargetReach};
use crate::tool::protection::{GuardedTarget, resolve};
use crate::tool::scope::{IsolationScope, Level};
use crate::tool::seed::{self, SeedCopy};
use crate::tool::target::STRICT;
use crate::tool::withheld::{Withheld, Withholding};
use crate::tool::workdir_state;

/// Prepares the requested tools in a session's room, unless they are prepared, and applies the context's bindings.
pub fn prepare(
    state: &State,
    session: &Session,
    wanted: &IsolationScope,
    context: Option<&Context>,
) -> Result<Plan> {
    prepare_for(state, session, wanted, context, false)
}

/// The same for the first command of a session, whose room may have been prepared for an earlier session.
pub(crate) fn prepare_for(
    state: &State,
    session: &Session,
    wanted: &IsolationScope,
    context: Option<&Context>,
    is_taken: bool,
) -> Result<Plan> {
    let bindings = context.map(|context| context.tools.as_slice()).unwrap_or_default();
    let room = session.room().dir();
    // Before the plan is read: it decides which files are copied and which variables are set.
    require_own_room(room, state.world().uid())?;
    require_text(room)?;
    let plan = Plan::load(room)?;
    let is_done = |plan: &Plan| {
        let named = wanted.only.iter().chain(&wanted.also).chain(bindings.iter().map(|(tool, _)| tool));
        (plan.complete || !wanted.only.is_empty())
            && (wanted.level == Level::Env || plan.home.is_some())
            && named.into_iter().all(|name| plan.tool(name).is_some())
            && plan.withheld.as_ref().is_some_and(Withheld::holds)
            && bindings.iter().all(|(tool, said)| {
                plan.bound.iter().any(|bound| {
                    // A call that wants more targets in the copies does not speak for the next one.
                    // A setting that cannot be read restricts: the strict side is the safe one.
                    let is_restricted = || bound.restricted || !restricts(state, tool, said).unwrap_or(true);
                    bound.tool == *tool && bound.holds(said) && is_restricted()
                })
            })
    };
    let plant_work = |plan: Plan, below: bool| -> Result<Plan> {
        workdir_state::plant(state, &plan, wanted, room, below)?;
        Ok(plan)
    };
    if is_done(&plan) {
        // On the fast path too: the working directory may be another one than last time.
        return plant_work(plan, is_taken);
    }
    let dir = LockedDir::lock(&state.locker()?, room, 0o700)?;
    // Read again under the lock: another command may have prepared the room during the wait.
    let plan = Plan::load(room)?;
    if is_done(&plan) {
        // Planting works in the working directory, so it need not keep other commands of the room waiting.
        drop(dir);
        return plant_work(plan, false);
    }
    // A killed attempt may have left copies, although no plan names them.
    let planted = PlantedPaths::of(plan.tools.is_empty() && session.room().is_unused());
    let preparation = Preparation { state, session, places: places(state, session), dir: &dir, planted };
    preparation.places.home.as_deref().map_or(Ok(()), require_text)?;
    let plan = preparation.prepare(plan, wanted, context)?;
    drop(dir);
    plant_work(plan, true)
}

/// Removes protected targets from the room of a session whose context may no longer be used. Returns whether the room
/// had any.
pub(crate) fn withdraw(state: &State, session: &Session) -> Result<bool> {
    let room = session.room().dir();
    // Without bindings the room never held a protected target.
    if Plan::load(room)?.bound.is_empty() {
        return Ok(false);
    }
    require_own_room(room, state.world().uid())?;
    let locker = state.locker()?;
    let dir = LockedDir::lock(&locker, room, 0o700)?;
    let mut plan = Plan::load(room)?;
    let planted = PlantedPaths::default();
    let preparation = Preparation { state, session, places: places(state, session), dir: &dir, planted };
    let all = state.tools().list()?;
    let sources = preparation.sources()?;
    let contexts = state.contexts().user_contexts()?;
    let mut targets = preparation.protected(&contexts, &all, None)?;
    // Targets of tools that were never copied are in no file of the room.
    targets.retain(|target| plan.tool(&target.tool).is_some());
    let profiles: Vec<Profile> = all.into_iter().map(|(profile, _)| profile).collect();
    let reaches: Vec<TargetReach> = profiles.iter().flat_map(|profile| profile.reaches.clone()).collect();
    let withholding = Withholding {
        state,
        places: &preparation.places,
        profiles: &profiles,
        context: None,
        targets: &targets,
        reaches: &reaches,
        sources: &sources,
        locker: &locker,
    };
    let before = plan.withheld.take();
    let tools = withholding.apply(&plan, before.as_ref())?;
    // The next run binds them again, if the context may be used by then.
    plan.bound.clear();
    plan.withheld = Some(withholding.record(&plan, tools));
    plan.save(&dir, preparation.is_durable())?;
    Ok(true)
}

/// Whether a tool's copies are to hold only what the context binds: a setting for the tool is stronger than the context.
pub(crate) fn restricts(state: &State, tool: &str, bindings: &Bindings) -> Result<bool> {
    let said = state.settings()?.get(&format!("tools.{tool}.{STRICT}"))?;
    Ok(match said.map(|found| found.value) {
        Some(Value::Bool(is_strict)) => is_strict,
        _ => is_strict(bindings),
    })
}

fn is_any_guarded(contexts: &[Context]) -> bool {
    contexts.iter().any(|context| context.guard != Guard::None)
}

/// Variables that lead somewhere are written as text, and a path that is none would be left out in silence.
fn require_text(path: &Path) -> Result<()> {
    match path.to_str() {
        Some(_) => Ok(()),
        None => {
            Err(SessionError::UnsafeRoom { path: path.to_owned(), reason: "the path is not valid UTF-8" }
                .into())
        }
    }
}

/// The profiles that are wanted.
fn wanted_profiles(
    all: Vec<(Profile, Source)>,
    wanted: &IsolationScope,
    context: Option<&Context>,
    withheld: &[GuardedTarget],
) -> Result<Vec<Profile>> {
    let bindings = context.map(|context| context.tools.as_slice()).unwrap_or_default();
    for (tool, _) in bindings {
        if !all.iter().any(|(profile, _)| profile.name == *tool) {
            let known = all.iter().map(|(profile, _)| profile.name.as_str());
            return Err(
                ToolError::NotFound { name: tool.clone(), near: crate::names::nearest(tool, known) }.into()
            );
        }
        if wanted.except.contains(tool) {
            let name = context.map(|context| context.name.to_string()).unwrap_or_default();
            return Err(UsageError::Arguments(format!(
                "context {} binds {tool}, so tools.except must not contain it",
                quoted(name)
            ))
            .into());
        }
    }
    let is_bound = |name: &str| bindings.iter().any(|(tool, _)| tool == name);
    Ok(all
        .into_iter()
        .map(|(profile, _)| profile)
        .filter(|profile| {
            // A tool that is left shared would reach what is protected.
            let is_withheld = withheld.iter().any(|target| target.tool == profile.name);
            is_withheld || wanted.wants(&profile.name, profile.on_request, is_bound(&profile.name))
        })
        .collect())
}

/// One room's preparation.
pub(super) struct Preparation<'a> {
    pub(super) state: &'a State,
    pub(super) session: &'a Session,
    pub(super) places: SessionPaths,
    dir: &'a LockedDir,
    pub(super) planted: PlantedPaths,
}

impl Preparation<'_> {
    fn prepare(&self, mut plan: Plan, wanted: &IsolationScope, context: Option<&Context>) -> Result<Plan> {
        let mut inputs = self.inputs(&plan, wanted, context)?;
        let warnings = self.state.warning_count();
        let sources = self.sources()?;
        let contexts = self.state.contexts().user_contexts()?;
        let tools = self.state.tools();
        // Targets matter where one is bound, or protected by any context.
        let has_targets =
            context.is_some_and(|context| !context.tools.is_empty()) || is_any_guarded(&contexts);
        let all = if has_targets { tools.list()? } else { tools.list_for_copies()? };
        let targets = self.protected(&contexts, &all, context)?;
        let reaches: Vec<TargetReach> = all.iter().flat_map(|(profile, _)| profile.reaches.clone()).collect();
        let profiles = wanted_profiles(all, wanted, context, &targets)?;
        inputs = inputs.filter(|_| targets.is_empty()).and_then(|mut inputs| {
            inputs.add_profiles(&profiles, &self.places, context)?;
            Some(inputs)
        });
        let locker = self.state.locker()?;
        let withholding = Withholding {
            state: self.state,
            places: &self.places,
            profiles: &profiles,
            context,
            targets: &targets,
            reaches: &reaches,
            sources: &sources,
            locker: &locker,
        };
        // Before anything is copied: a context that binds a protected target gets no room at all.
        withholding.check_bindings()?;
        let durable = self.is_durable();
        let mut copies = Plan::copies(&self.places.room)?;
        let before = plan.withheld.take();
        let bindings = context.map(|context| context.tools.as_slice()).unwrap_or_default();
        for profile in &profiles {
            let is_new = plan.tool(&profile.name).is_none();
            // What was withheld and is bound now is not in the copies any more.
            let is_back = context
                .zip(before.as_ref())
                .is_some_and(|(context, before)| before.gives_back(&profile.name, &targets, context));
            let is_bound = bindings.iter().any(|(tool, _)| *tool == profile.name);
            let is_protected = targets.iter().any(|target| target.tool == profile.name);
            let is_left_out = |tool: &PreparedTool| tool.oversized.is_some() && tool.shared.is_some();
            let is_exposed = is_protected && plan.tool(&profile.name).is_some_and(is_left_out);
            if is_new || is_back || is_exposed {
                let said = bindings.iter().find(|(tool, _)| *tool == profile.name).map(|(_, said)| said);
                let (prepared, seeded) = match self.plant(profile, said) {
                    Err(
                        Error::Tool(ToolError::StateTooLarge { path, .. })
                        | Error::File(FileError::TooLarge { path, .. }),
                    ) if !is_bound => self.leave_out(profile, path, is_protected)?,
                    planted => planted?,
                };
                if plan.home.is_some() {
                    self.plant_home_files(profile, is_protected)?;
                }
                plan.tools.retain(|tool| tool.tool != profile.name);
                // Its binding was in the old copy, so it has to be applied anew.
                plan.bound.retain(|bound| bound.tool != profile.name);
                plan.tools.push(prepared);
                copies.insert(profile.name.clone(), seeded);
            }
        }
        // Before the plan: a tool counts as prepared once the plan names it, and its copies must be known by
        // then. A session for one command is prepared once, and ends if that fails.
        if durable {
            Plan::save_copies(&copies, self.dir, durable)?;
        }
        // With a selection of tools some are missing, which a later command may want.
        plan.complete |= wanted.only.is_empty() && wanted.except.is_empty();
        self.grow_config(&mut plan, &copies)?;
        let is_exposed = plan.home.is_some() && self.unlink_defaults(&profiles, &targets)?;
        let is_home_new = wanted.level == Level::Home && plan.home.is_none() || is_exposed;
        if is_home_new {
            let mut restricted = Vec::new();
            for (tool, bindings) in bindings {
                if restricts(self.state, tool, bindings)? {
                    restricted.push(tool.as_str());
                }
            }
            plan.home = Some(self.grow_home(&copies, &profiles, &targets, &restricted)?);
            plan.real_home.clone_from(&self.places.home);
        }
        // Digests are taken before targets are removed, to tell that removal from changes by the session.
        let is_unchanged = |seeded: &SeedCopy| seed::digest(&seeded.to) == seeded.digest;
        let withheld_tools: BTreeSet<&str> = targets.iter().map(|target| target.tool.as_str()).collect();
        // Some tools also read the file of another one, and their targets are removed from its copy.
        let is_bound = |tool: &str| bindings.iter().any(|(bound, _)| bound == tool);
        let readers: Vec<&Profile> = profiles
            .iter()
            .filter(|profile| withheld_tools.contains(profile.name.as_str()) || is_bound(&profile.name))
            .collect();
        let is_read_by_other = |tool: &str, seeded: &SeedCopy| {
            let others = readers.iter().filter(|profile| profile.name != tool);
            let mut places = others.flat_map(|profile| &profile.targets).flat_map(|set| &set.places);
            places.any(|place| self.places.room.join(&place.file).starts_with(&seeded.to))
        };
        let unchanged: Vec<(String, usize)> = copies
            .iter()
            .flat_map(|(tool, seeds)| seeds.iter().enumerate().map(move |(at, seeded)| (tool, at, seeded)))
            .filter(|(tool, _, seeded)| {
                withheld_tools.contains(tool.as_str()) || is_read_by_other(tool, seeded)
            })
            .filter(|(_, _, seeded)| is_unchanged(seeded))
            .map(|(tool, at, _)| (tool.clone(), at))
            .collect();
        self.planted.forget();
        let mut withheld = withholding.apply(&plan, before.as_ref())?;
        // A copy without its protected targets still counts as the original in errors.
        for (tool, at) in &unchanged {
            if let Some(seeded) = copies.get_mut(tool).and_then(|seeds| seeds.get_mut(*at)) {
                seeded.digest = seed::digest(&seeded.to);
            }
        }
        // What is prepared stays prepared, also if the context turns out to be wrong.
        if durable {
            plan.save(self.dir, durable)?;
        }
        let was_bound = std::mem::take(&mut plan.bound);
        if self.bind(&mut plan, &profiles, context, &copies, (&was_bound, is_home_new))? {
            // A copy that was made anew has the protected targets again.
            withheld = withholding.apply(&plan, before.as_ref())?;
        }
        for bound in &mut plan.bound {
            // Programs of other tools would go elsewhere than the bound tool itself.
            let others = reaches.iter().filter(|reach| reach.tool == bound.tool);
            bound.clears.extend(others.flat_map(|reach| &reach.variables.files).cloned());
            let others = reaches.iter().filter(|reach| reach.tool == bound.tool);
            bound.clears.extend(others.flat_map(|reach| &reach.clears).cloned());
        }
        // What the context says or protects is no change of the session's.
        let newly_bound = |tool: &str| {
            plan.bound.iter().any(|bound| bound.tool == tool) && !was_bound.iter().any(|old| old.tool == tool)
        };
        for (tool, seeds) in &mut copies {
            for (at, seeded) in seeds.iter_mut().enumerate() {
                if newly_bound(tool) || unchanged.iter().any(|(name, one)| name == tool && *one == at) {
                    seeded.digest = seed::digest(&seeded.to);
                }
            }
        }
        plan.withheld = Some(withholding.record(&plan, withheld));
        plan.is_new = true;
        // A warning is for the session that is warned.
        let is_complete = |plan: &Plan| {
            plan.tools.iter().all(|tool| tool.oversized.is_none() && tool.linked.is_empty())
                && self.state.warning_count() == warnings
        };
        plan.inputs = inputs
            .filter(|_| is_complete(&plan))
            .and_then(|inputs| backdate_all(&self.places.room, &mut plan).map(|()| inputs.into_lines()));
        Plan::save_copies(&copies, self.dir, durable)?;
        plan.save(self.dir, durable)?;
        Ok(plan)
    }

    /// The files that define the user's contexts. Taken before they are read: a change meanwhile must be noticed by the next
    /// command.
    fn sources(&self) -> Result<Vec<(PathBuf, Option<Stamp>)>> {
        let files = self.state.contexts().user_sources()?;
        Ok(files.into_iter().map(|path| (path.clone(), Stamp::of(&path))).collect())
    }

    /// Stamps of what the preparation depends on, if the room may be used by another session afterwards.
    fn inputs(
        &self,
        plan: &Plan,
        wanted: &IsolationScope,
        context: Option<&Context>,
    ) -> Result<Option<PreparationInputs<'_>>> {
        let is_own = self.is_durable() || !plan.tools.is_empty() || !is_unguarded(context);
        if is_own || wanted.level != Level::Env || crate::hook::is_blocked(self.session) {
            return Ok(None);
        }
        let files = self.state.contexts().user_sources()?;
        let files = files.into_iter().chain(self.state.tools().user_sources()?);
        Ok(PreparationInputs::of(self.state, files))
    }

    /// The protected targets that a session of this context does not have.
    fn protected(
        &self,
        contexts: &[Context],
        all: &[(Profile, Source)],
        context: Option<&Context>,
    ) -> Result<Vec<GuardedTarget>> {
        // Without a guarded context nothing is protected, and no file has to be read.
        if !is_any_guarded(contexts) {
            return Ok(Vec::new());
        }
        let profiles: Vec<Profile> = all.iter().map(|(profile, _)| profile.clone()).collect();
        let mut targets = resolve(self.state, contexts, &profiles)?;
        targets.retain(|target| target.is_withheld() && !target.is_open_in(context));
        Ok(targets)
    }

    /// Applies the context's bindings. Returns whether state was copied again for them.
    fn bind(
        &self,
        plan: &mut Plan,
        profiles: &[Profile],
        context: Option<&Context>,
        copies: &Copies,
        (was_bound, is_home_new): (&[AppliedBinding], bool),
    ) -> Result<bool> {
        let Some(context) = context else { return Ok(false) };
        let mut is_copied_anew = false;
        let locker = self.state.locker()?;
        let mut bound = Vec::new();
        for (tool, bindings) in &context.tools {
            // `wanted_profiles` has refused unknown tools already.
            let Some(profile) = profiles.iter().find(|profile| profile.name == *tool) else { continue };
            let shared = plan.tool(tool).and_then(|prepared| prepared.shared.clone());
            let site = Binder {
                context: context.name.as_str(),
                profile,
                room: &self.places.room,
                shared: shared.as_deref(),
                copies: copies.get(tool).map(Vec::as_slice).unwrap_or_default(),
                locker: &locker,
            };
            let is_strict = restricts(self.state, tool, bindings)?;
            // What the session itself adds later stays: only what was copied is restricted.
            let same =
                was_bound.iter().find(|old| old.tool == *tool && old.has_targets_of(profile, bindings));
            let mut is_restricted = same.map_or(is_strict, |old| old.restricted || is_strict);
            let is_copied = is_home_new && profile.has_targets_in_home();
            if is_copied {
                is_restricted = is_strict;
            }
            let is_as_before = !is_copied && same.is_some_and(|old| old.restricted == is_restricted);
            let is_repinned = shared.is_none()
                && was_bound.iter().any(|old| old.tool == *tool && old.bindings == *bindings);
            let drift = if is_repinned { drift_of(profile, &self.places.room, bindings) } else { Vec::new() };
            let old = was_bound.iter().find(|old| old.tool == *tool && is_repinned);
            let moved = old.map(|old| moved_targets(profile, &self.places.room, old)).unwrap_or_default();
            if !moved.is_empty() {
                // The name is the same, but the target is another one: the user's own entry counts.
                let (_, seeded) = self.plant(profile, Some(bindings))?;
                is_copied_anew = true;
                let site = Binder { copies: &seeded, ..site };
                let mut again = site.restrict(bindings, is_strict).and_then(|()| site.bind(bindings))?;
                again.restricted = is_strict;
                moved.iter().chain(&drift).for_each(|drift| self.state.warn(drift.repinned(), None));
                bound.push(again);
                continue;
            }
            let restricted = if is_as_before { Ok(()) } else { site.restrict(bindings, is_strict) };
            let mut carried_out = match restricted.and_then(|()| site.bind(bindings)) {
                // The session may have spoilt its copy; the user's own is still there to begin with again.
                Err(
                    error @ (Error::Tool(ToolError::BindingNotFound { .. })
                    | Error::Tool(ToolError::InvalidFile { .. })),
                ) if shared.is_none() && was_bound.iter().any(|old| old.tool == *tool) => {
                    let (_, seeded) = self.plant(profile, Some(bindings))?;
                    is_copied_anew = true;
                    let site = Binder { copies: &seeded, ..site };
                    let again = site.restrict(bindings, is_strict).and_then(|()| site.bind(bindings));
                    // The first error says what is wrong; the second only that a new copy did not help.
                    let bound = again.map_err(|_| error)?;
                    is_restricted = is_strict;
                    self.state.warn(
                        format!(
                            "the session's copy of the state of {tool} was unusable; copied the state again"
                        ),
                        None,
                    );
                    bound
                }
                bound => {
                    let bound = bound?;
                    drift.iter().for_each(|drift| self.state.warn(drift.repinned(), None));
                    bound
                }
            };
            carried_out.restricted = is_restricted;
            bound.push(carried_out);
        }
        plan.bound = bound;
        Ok(is_copied_anew)
    }
}
