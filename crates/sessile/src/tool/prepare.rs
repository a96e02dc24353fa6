//! Preparing a room: once for each tool, at the first command that needs it.
//!
//! The fast path reads the plan and nothing else. It applies if the plan has every requested tool, the context's
//! bindings are the same, and the files that the bindings depend on have the same inode, size and change time. No
//! profile is parsed and no copy is opened. The slow path, under the room's lock, copies the missing tools, grows the
//! directories of links, saves the plan, binds the context and saves the plan again. What is prepared stays prepared if
//! binding fails.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::context::{Bindings, Context, Guard};
use crate::error::{Error, FileError, Result, SessionError, ToolError, UsageError};
use crate::files::LockedDir;
use crate::runtime::{RuntimeProblem, require_private, require_private_place};
use crate::session::Session;
use crate::session::sockets::sockets_name;
use crate::settings::Value;
use crate::state::State;
use crate::text::quoted;
use crate::tool::bind::{AppliedBinding, Binder, is_strict};
use crate::tool::catalog::Source;
use crate::tool::drift::drift_of;
use crate::tool::paths::{Originals, SessionPaths, require_own_room};
use crate::tool::plan::{Copies, Plan, PreparedTool, WorkSeed};
use crate::tool::profile::{Profile, Seed};
use crate::tool::protection::{GuardedTarget, resolve};
use crate::tool::seed::{self, SeedCopy, make_dir};
use crate::tool::symlink_farm::{self, PrivatePaths};
use crate::tool::target::STRICT;
use crate::tool::withheld::{Withheld, Withholding};
use crate::tool::workdir_state;

/// Variable of the configuration directory, for tools that have no variable of their own.
const XDG_CONFIG: &str = "xdg/config";
/// The home in a room.
const HOME: &str = "home";
/// The longest path of a directory in which sockets find room; the system bounds theirs at 107 bytes.
const LONGEST_FOR_SOCKETS: usize = 80;

/// Level of isolation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Variables lead the known tools into the room.
    #[default]
    Env,
    /// The home directory is in the room as well.
    Home,
}

impl Level {
    /// A level by its name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "env" => Some(Level::Env),
            "home" => Some(Level::Home),
            _ => None,
        }
    }
}

/// Tools to isolate, and the level.
#[derive(Clone, Debug, Default)]
pub struct IsolationScope {
    /// Level; a room that has a home keeps it unless another level is requested.
    pub level: Level,
    /// Whether the level is requested for this command.
    pub is_level_requested: bool,
    /// Only these tools; all if empty.
    pub only: Vec<String>,
    /// Not these.
    pub except: Vec<String>,
    /// Additional tools, which are isolated only on request.
    pub also: Vec<String>,
}

impl IsolationScope {
    /// The same with every tool called by its own name instead of one of its programs'. A name that no tool has is an
    /// error.
    pub fn resolved(mut self, state: &State) -> Result<Self> {
        for list in [&mut self.only, &mut self.except, &mut self.also] {
            for name in list {
                *name = state.tools().get(name)?.0.name;
            }
        }
        Ok(self)
    }

    /// Level of a session; a moved home stays moved.
    pub(crate) fn level_in(&self, plan: &Plan) -> Level {
        if plan.home.is_some() && !self.is_level_requested { Level::Home } else { self.level }
    }

    /// Whether a tool is isolated. A bound tool always is.
    pub(crate) fn wants(&self, name: &str, on_request: bool, is_bound: bool) -> bool {
        let named = |list: &[String]| list.iter().any(|listed| listed == name);
        let asked = if self.only.is_empty() { !on_request || named(&self.also) } else { named(&self.only) };
        is_bound || (asked && !named(&self.except))
    }
}

/// The places of a session.
pub(crate) fn places(state: &State, session: &Session) -> SessionPaths {
    let originals = Originals::of(state.app(), state.world());
    let room = session.room().dir();
    let id = session.id.as_str();
    let short = sockets_name(id);
    let sockets = match state.runtime_dir() {
        Ok(dir) => dir.join(short),
        // The room's own path would be too long for most.
        Err(_) => temporary(state.world()).join(format!("{}-{short}", state.app().name())),
    };
    SessionPaths::of(state.world(), &originals, room, id, sockets)
}

/// Temporary directory, if its path is short enough for sockets.
fn temporary(world: &crate::world::World) -> &Path {
    let said = world.path_variable("TMPDIR").filter(|dir| {
        let is_safe = require_private_place(&dir.join("sockets"), world.uid()).is_ok();
        is_safe && dir.as_os_str().len() < LONGEST_FOR_SOCKETS / 2
    });
    said.unwrap_or(Path::new("/tmp"))
}

/// Prepares the requested tools in a session's room, unless they are prepared, and applies the context's bindings.
pub fn prepare(
    state: &State,
    session: &Session,
    wanted: &IsolationScope,
    context: Option<&Context>,
) -> Result<Plan> {
    let bindings = context.map(|context| context.tools.as_slice()).unwrap_or_default();
    let room = session.room().dir();
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
        return plant_work(plan, false);
    }
    let dir = LockedDir::lock(&state.locker()?, room, 0o700)?;
    let plan = Plan::load(room)?;
    if is_done(&plan) {
        drop(dir);
        return plant_work(plan, false);
    }
    let preparation = Preparation { state, session, places: places(state, session), dir: &dir };
    preparation.places.home.as_deref().map_or(Ok(()), require_text)?;
    let plan = preparation.prepare(plan, wanted, context)?;
    drop(dir);
    plant_work(plan, true)
}

/// Removes protected targets from the room of a session whose context may not be used any more. Returns whether it was bound to any.
pub(crate) fn withdraw(state: &State, session: &Session) -> Result<bool> {
    let room = session.room().dir();
    if Plan::load(room)?.bound.is_empty() {
        return Ok(false);
    }
    require_own_room(room, state.world().uid())?;
    let locker = state.locker()?;
    let dir = LockedDir::lock(&locker, room, 0o700)?;
    let mut plan = Plan::load(room)?;
    let preparation = Preparation { state, session, places: places(state, session), dir: &dir };
    let all = state.tools().list()?;
    let mut targets = preparation.protected(&all, None)?;
    targets.retain(|target| plan.tool(&target.tool).is_some());
    let profiles: Vec<Profile> = all.into_iter().map(|(profile, _)| profile).collect();
    let withholding = Withholding {
        state,
        places: &preparation.places,
        profiles: &profiles,
        context: None,
        targets: &targets,
        locker: &locker,
    };
    let before = plan.withheld.take();
    let tools = withholding.apply(&plan, before.as_ref())?;
    // The next run binds them again, if the context may be used by then.
    plan.bound.clear();
    plan.withheld = Some(withholding.record(&plan, tools)?);
    plan.save(&dir, preparation.is_durable())?;
    Ok(true)
}

/// Whether a tool's copies are to hold only what the context binds: a setting for the tool is stronger than the context.
fn restricts(state: &State, tool: &str, bindings: &Bindings) -> Result<bool> {
    let said = state.settings()?.get(&format!("tools.{tool}.{STRICT}"))?;
    Ok(match said.map(|found| found.value) {
        Some(Value::Bool(is_strict)) => is_strict,
        _ => is_strict(bindings),
    })
}

/// Variables that lead somewhere are written as text, and a path that is none would be left out in silence.
fn require_text(path: &Path) -> Result<()> {
    match path.to_str() {
        Some(_) => Ok(()),
        None => {
            Err(SessionError::UnsafeRoom { path: path.to_owned(), reason: "its path is not valid UTF-8" }
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
                "context {} binds {tool}, so it cannot be left out by tools.except; take it out of there",
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
struct Preparation<'a> {
    state: &'a State,
    session: &'a Session,
    places: SessionPaths,
    dir: &'a LockedDir,
}

impl Preparation<'_> {
    fn prepare(&self, mut plan: Plan, wanted: &IsolationScope, context: Option<&Context>) -> Result<Plan> {
        let all = self.state.tools().list()?;
        let targets = self.protected(&all, context)?;
        let profiles = wanted_profiles(all, wanted, context, &targets)?;
        let locker = self.state.locker()?;
        let withholding = Withholding {
            state: self.state,
            places: &self.places,
            profiles: &profiles,
            context,
            targets: &targets,
            locker: &locker,
        };
        withholding.check_bindings()?;
        let durable = self.is_durable();
        let mut copies = Plan::copies(&self.places.room)?;
        let before = plan.withheld.take();
        for profile in &profiles {
            let is_new = plan.tool(&profile.name).is_none();
            // What was withheld and is bound now is not in the copies any more.
            let is_back = context
                .zip(before.as_ref())
                .is_some_and(|(context, before)| before.gives_back(&profile.name, &targets, context));
            if is_new || is_back {
                let (prepared, seeded) = self.plant(profile)?;
                plan.tools.retain(|tool| tool.tool != profile.name);
                plan.bound.retain(|bound| bound.tool != profile.name);
                plan.tools.push(prepared);
                copies.insert(profile.name.clone(), seeded);
            }
        }
        Plan::save_copies(&copies, self.dir, durable)?;
        plan.complete |= wanted.only.is_empty() && wanted.except.is_empty();
        self.grow_config(&mut plan, &copies)?;
        let is_exposed = plan.home.is_some() && self.unlink_defaults(&profiles, &targets)?;
        if wanted.level == Level::Home && plan.home.is_none() || is_exposed {
            plan.home = Some(self.grow_home(&copies, &profiles, &targets)?);
            plan.real_home.clone_from(&self.places.home);
        }
        let is_unchanged = |seeded: &SeedCopy| seed::digest(&seeded.to) == seeded.digest;
        let withheld_tools: BTreeSet<&str> = targets.iter().map(|target| target.tool.as_str()).collect();
        let unchanged: Vec<(String, usize)> = copies
            .iter()
            .filter(|(tool, _)| withheld_tools.contains(tool.as_str()))
            .flat_map(|(tool, seeds)| seeds.iter().enumerate().map(move |(at, seeded)| (tool, at, seeded)))
            .filter(|(_, _, seeded)| is_unchanged(seeded))
            .map(|(tool, at, _)| (tool.clone(), at))
            .collect();
        let mut withheld = withholding.apply(&plan, before.as_ref())?;
        // What is prepared stays prepared, also if the context turns out to be wrong.
        plan.save(self.dir, durable)?;
        let was_bound = std::mem::take(&mut plan.bound);
        if self.bind(&mut plan, &profiles, context, &copies, &was_bound)? {
            withheld = withholding.apply(&plan, before.as_ref())?;
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
        plan.withheld = Some(withholding.record(&plan, withheld)?);
        plan.is_new = true;
        Plan::save_copies(&copies, self.dir, durable)?;
        plan.save(self.dir, durable)?;
        Ok(plan)
    }

    /// The protected targets that a session of this context does not have.
    fn protected(&self, all: &[(Profile, Source)], context: Option<&Context>) -> Result<Vec<GuardedTarget>> {
        let contexts = self.state.contexts().user_contexts()?;
        if contexts.iter().all(|context| context.guard == Guard::None) {
            return Ok(Vec::new());
        }
        let profiles: Vec<Profile> = all.iter().map(|(profile, _)| profile.clone()).collect();
        let mut targets = resolve(self.state, &contexts, &profiles)?;
        targets.retain(|target| target.is_protected() && !target.is_open_in(context));
        Ok(targets)
    }

    fn plant(&self, profile: &Profile) -> Result<(PreparedTool, Vec<SeedCopy>)> {
        let fill = |pairs: &[(String, String)]| -> Vec<(String, String)> {
            pairs.iter().filter_map(|(name, text)| Some((name.clone(), self.places.fill(text)?))).collect()
        };
        let mut prepared = PreparedTool {
            tool: profile.name.clone(),
            variables: Vec::new(),
            unless_set: Vec::new(),
            clears: profile.always_clears.clone(),
            work: profile.work.iter().filter_map(|seed| self.work_seed(seed)).collect(),
            shared: self.reason_to_share(profile)?,
        };
        let mut seeded = Vec::new();
        if prepared.shared.is_some() {
            return Ok((prepared, seeded));
        }
        prepared.variables = fill(&profile.variables);
        let stands_in = profile.unless_exists.as_deref().and_then(|text| self.places.fill(text));
        if !stands_in.is_some_and(|path| Path::new(&path).exists()) {
            prepared.unless_set = fill(&profile.unless_set);
        }
        if profile.variables.iter().any(|(_, text)| text.contains("{sockets}")) {
            self.make_sockets(&mut prepared)?;
        }
        let originals = Originals::of(self.state.app(), self.state.world());
        let durable = self.is_durable();
        for seed in &profile.seed {
            let own = seed.variable.as_deref().and_then(|name| originals.get(self.state.world(), name));
            let from = seed::sources(seed, &self.places, own, self.state.world().cwd());
            let planted = seed::plant(&profile.name, seed, &from, &self.places, durable);
            seeded.push(match planted {
                Err(error) if self.is_of_the_user(&error) => {
                    self.plant_as_it_is(profile, seed, &from, &error)?
                }
                planted => planted?,
            });
        }
        // A tool may not make the directory that its variable names.
        for (_, value) in &prepared.variables {
            let path = Path::new(value);
            if let Some(parent) = path.parent().filter(|_| path.starts_with(&self.places.room)) {
                make_dir(parent)?;
            }
        }
        Ok((prepared, seeded))
    }

    fn work_seed(&self, seed: &Seed) -> Option<WorkSeed> {
        Some(WorkSeed {
            from: PathBuf::from(seed.from.first()?),
            to: PathBuf::from(self.places.fill(&seed.to)?),
            except: seed.except.clone(),
            link: seed.link.clone(),
        })
    }

    /// Whether the room survives a reboot, and so must survive a crash.
    fn is_durable(&self) -> bool {
        self.session.name.is_some()
    }

    /// Whether something is wrong with the user's own files.
    fn is_of_the_user(&self, error: &Error) -> bool {
        match error {
            Error::Tool(ToolError::InvalidFile { .. })
            | Error::File(FileError::NotUtf8 { .. })
            | Error::File(FileError::NotAFile { .. }) => true,
            Error::File(FileError::Io { path, .. }) => !path.starts_with(&self.places.room),
            _ => false,
        }
    }

    /// A file that cannot be understood is the tool's business, unless the context binds it: the tool gets it as it
    /// is and says so itself. One that cannot be read is left out.
    fn plant_as_it_is(
        &self,
        profile: &Profile,
        seed: &Seed,
        from: &[PathBuf],
        error: &Error,
    ) -> Result<SeedCopy> {
        let plain = Seed { format: None, append: None, ..seed.clone() };
        let first = &from[..from.len().min(1)];
        let planted = seed::plant(&profile.name, &plain, first, &self.places, false);
        let what =
            if planted.is_ok() { "the session has a copy as it is" } else { "the session begins without it" };
        self.state.warn(format!("{}: {error}", profile.name), Some(what.to_owned()));
        planted.or_else(|_| seed::plant(&profile.name, &plain, &[], &self.places, false))
    }

    fn reason_to_share(&self, profile: &Profile) -> Result<Option<String>> {
        let Some(when) = &profile.shared_when else { return Ok(None) };
        let Some(file) = self.places.fill(&when.file).map(PathBuf::from) else { return Ok(None) };
        let text = crate::files::read_up_to(&file, seed::LARGEST_UNDERSTOOD)?.unwrap_or_default();
        Ok(text.contains(&when.holds).then(|| {
            format!(
                "its login in {} rotates, and a copy would be logged out",
                crate::text::shown(file.display())
            )
        }))
    }

    /// Sockets need a short path; a link in the room says where it is, so that it goes with the room.
    fn make_sockets(&self, prepared: &mut PreparedTool) -> Result<()> {
        let dir = &self.places.sockets;
        if dir.as_os_str().len() > LONGEST_FOR_SOCKETS {
            prepared.variables.retain(|(_, value)| !Path::new(value).starts_with(dir));
            self.state.warn(
                format!(
                    "{}: its sockets stay shared, because {} is too long a path for them",
                    prepared.tool,
                    crate::text::shown(dir.display())
                ),
                Some("set XDG_RUNTIME_DIR, as a login usually does".to_owned()),
            );
            return Ok(());
        }
        make_dir(dir)?;
        if let Err(RuntimeProblem::Exposed { path, reason }) = require_private(dir, self.state.world().uid())
        {
            return Err(SessionError::UnsafeRoom { path, reason }.into());
        }
        self.session.room().claim_sockets(dir)
    }

    /// The copies that stand for something below a directory of the user's.
    fn copies_below(&self, dir: &Path, copies: &Copies) -> Vec<(PathBuf, PathBuf)> {
        let pairs = copies
            .values()
            .flatten()
            .flat_map(|seeded| seeded.from.iter().map(move |from| (from, &seeded.to)));
        pairs
            .filter_map(|(from, to)| Some((from.strip_prefix(dir).ok()?.to_owned(), to.clone())))
            .filter(|(relative, _)| !relative.as_os_str().is_empty())
            .collect()
    }

    /// If a tool needs the general directory of settings moved, all others must find theirs in it.
    fn grow_config(&self, plan: &mut Plan, copies: &Copies) -> Result<()> {
        let at = self.places.room.join(XDG_CONFIG);
        let is_moved =
            plan.tools.iter().flat_map(|tool| &tool.variables).any(|(_, value)| Path::new(value) == at);
        match self.places.config() {
            Some(real) if is_moved => {
                let private =
                    PrivatePaths { copies: self.copies_below(real, copies), ..PrivatePaths::default() };
                symlink_farm::build(real, &at, &private)?;
                plan.config = Some((at, real.to_owned()));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The usual places of protected tools in the user's home, with their seeds: a variable of the user's may lead the tool
    /// elsewhere.
    fn defaults<'p>(&self, profiles: &'p [Profile], targets: &[GuardedTarget]) -> Vec<(PathBuf, &'p Seed)> {
        let Some(real) = &self.places.home else { return Vec::new() };
        let is_protected = |profile: &&Profile| targets.iter().any(|target| target.tool == profile.name);
        let seeds = profiles.iter().filter(is_protected).flat_map(|profile| &profile.seed);
        seeds
            .flat_map(|seed| seed.from.iter().map(move |from| (from, seed)))
            .filter_map(|(from, seed)| Some((PathBuf::from(self.places.fill(from)?), seed)))
            .filter_map(|(from, seed)| Some((from.strip_prefix(real).ok()?.to_owned(), seed)))
            .filter(|(relative, _)| real.join(relative).exists())
            .collect()
    }

    /// Removes links in the room's home that lead to the user's own files of protected tools. Returns whether there were any.
    fn unlink_defaults(&self, profiles: &[Profile], targets: &[GuardedTarget]) -> Result<bool> {
        let at = self.places.room.join(HOME);
        let mut is_any = false;
        for (relative, _) in self.defaults(profiles, targets) {
            let mut path = at.clone();
            for part in &relative {
                path.push(part);
                let leads_out = path.is_symlink()
                    && !path.canonicalize().is_ok_and(|target| target.starts_with(&self.places.room));
                if leads_out {
                    seed::remove(&path)?;
                    is_any = true;
                    break;
                }
            }
        }
        Ok(is_any)
    }

    fn grow_home(&self, all: &Copies, profiles: &[Profile], targets: &[GuardedTarget]) -> Result<PathBuf> {
        let real = self.places.home.clone().ok_or(FileError::NoHome("the session's home"))?;
        let at = self.places.room.join(HOME);
        let mut copies = self.copies_below(&real, all);
        for profile in profiles {
            for name in profile.home.iter().filter(|name| real.join(name).exists()) {
                let seed = Seed { to: format!("{HOME}/{name}"), ..Seed::default() };
                seed::plant(&profile.name, &seed, &[real.join(name)], &self.places, false)?;
                copies.push((PathBuf::from(name), at.join(name)));
            }
        }
        for (relative, seed) in self.defaults(profiles, targets) {
            if !copies.iter().any(|(copied, _)| relative.starts_with(copied)) && !at.join(&relative).exists()
            {
                let to = format!("{HOME}/{}", relative.display());
                let from = [real.join(&relative)];
                seed::plant("", &Seed { to, ..seed.clone() }, &from, &self.places, false)?;
                copies.push((relative.clone(), at.join(&relative)));
            }
        }
        let elsewhere = || {
            let dirs = self.places.xdg().into_iter();
            dirs.filter_map(|(_, usual, dir)| Some((usual, dir.filter(|dir| **dir != real.join(usual))?)))
        };
        // Settings that the user keeps elsewhere are found at the usual place in the room.
        for (usual, dir) in elsewhere() {
            let below = self.copies_below(dir, all).into_iter();
            copies.extend(below.map(|(relative, copy)| (Path::new(usual).join(relative), copy)));
        }
        let state = [".config", ".local/share", ".local/state"].map(PathBuf::from).to_vec();
        let shared = self.shared_in_home(&real, profiles)?;
        symlink_farm::build(&real, &at, &PrivatePaths { copies, shared, state, hidden_is_state: true })?;
        for (usual, dir) in elsewhere() {
            let private = PrivatePaths { copies: self.copies_below(dir, all), ..PrivatePaths::default() };
            symlink_farm::build(dir, &at.join(usual), &private)?;
        }
        for (_, usual, _) in self.places.xdg() {
            make_dir(&at.join(usual))?;
        }
        Ok(at)
    }

    /// State that stays shared in a moved home: caches, this program's own state, and the state of tools that are
    /// not wanted, such as the agents' own.
    fn shared_in_home(&self, home: &Path, wanted: &[Profile]) -> Result<Vec<PathBuf>> {
        let dirs = self.state.dirs();
        let own = [dirs.config().ok(), dirs.state().ok(), dirs.cache()].into_iter().flatten();
        let mut shared: Vec<PathBuf> =
            own.filter_map(|dir| dir.strip_prefix(home).ok()).map(Path::to_owned).collect();
        shared.push(PathBuf::from(".cache"));
        for (profile, _) in self.state.tools().list()? {
            let is_wanted = wanted.iter().any(|wanted| wanted.name == profile.name);
            if !is_wanted || !profile.home_level {
                shared.extend(
                    profile.keeps.iter().filter_map(|path| path.strip_prefix("~/")).map(PathBuf::from),
                );
            }
        }
        Ok(shared)
    }

    /// Binds what the context says. Returns whether something was copied anew for it.
    fn bind(
        &self,
        plan: &mut Plan,
        profiles: &[Profile],
        context: Option<&Context>,
        copies: &Copies,
        was_bound: &[AppliedBinding],
    ) -> Result<bool> {
        let Some(context) = context else { return Ok(false) };
        let mut is_copied_anew = false;
        let locker = self.state.locker()?;
        let mut bound = Vec::new();
        for (tool, bindings) in &context.tools {
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
            let is_as_before = same.is_some_and(|old| old.restricted == is_restricted);
            let is_repinned = shared.is_none()
                && was_bound.iter().any(|old| old.tool == *tool && old.bindings == *bindings);
            let drift = if is_repinned { drift_of(profile, &self.places.room, bindings) } else { Vec::new() };
            let restricted = if is_as_before { Ok(()) } else { site.restrict(bindings, is_strict) };
            let mut carried_out = match restricted.and_then(|()| site.bind(bindings)) {
                // The session may have spoilt its copy; the user's own is still there to begin with again.
                Err(
                    error @ (Error::Tool(ToolError::BindingNotFound { .. })
                    | Error::Tool(ToolError::InvalidFile { .. })),
                ) if shared.is_none() && was_bound.iter().any(|old| old.tool == *tool) => {
                    let (_, seeded) = self.plant(profile)?;
                    is_copied_anew = true;
                    let site = Binder { copies: &seeded, ..site };
                    let again = site.restrict(bindings, is_strict).and_then(|()| site.bind(bindings));
                    let bound = again.map_err(|_| error)?;
                    is_restricted = is_strict;
                    self.state.warn(
                        format!(
                            "the session's copy of the state of {tool} could not be used; it was copied anew"
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
