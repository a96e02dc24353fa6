//! Planting a tool in a room: copies of its state, its variables and its sockets.

use std::path::{Path, PathBuf};

use crate::context::Bindings;
use crate::error::{Error, FileError, Result, SessionError, ToolError};
use crate::runtime::{RuntimeProblem, require_private, require_private_place};
use crate::session::Session;
use crate::session::sockets::sockets_name;
use crate::state::State;
use crate::tool::binding::binding_values;
use crate::tool::oversize::entries_to_link;
use crate::tool::paths::{Originals, SessionPaths};
use crate::tool::plan::{HomeOnlyState, OversizedState, PreparedTool, WorkSeed};
use crate::tool::prepare::Preparation;
use crate::tool::profile::{Profile, Seed};
use crate::tool::seed::{self, SeedCopy, make_dir};

/// The longest path of a directory in which sockets find room; the system bounds theirs at 107 bytes.
const LONGEST_FOR_SOCKETS: usize = 80;

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
        // In a shared directory another user could have made the name first.
        let is_safe = require_private_place(&dir.join("sockets"), world.uid()).is_ok();
        is_safe && dir.as_os_str().len() < LONGEST_FOR_SOCKETS / 2
    });
    said.unwrap_or(Path::new("/tmp"))
}

/// Reason why a tool's state cannot be copied: a login whose tokens rotate.
pub(crate) fn reason_to_share(profile: &Profile, places: &SessionPaths) -> Result<Option<String>> {
    let Some(when) = &profile.shared_when else { return Ok(None) };
    let Some(file) = places.fill(&when.file).map(PathBuf::from) else { return Ok(None) };
    let text = crate::files::read_up_to(&file, seed::LARGEST_UNDERSTOOD)?.unwrap_or_default();
    Ok(text.contains(&when.holds).then(|| {
        format!("the login in {} rotates; a copy would be logged out", crate::text::shown(file.display()))
    }))
}

impl Preparation<'_> {
    pub(super) fn plant(
        &self,
        profile: &Profile,
        bindings: Option<&Bindings>,
    ) -> Result<(PreparedTool, Vec<SeedCopy>)> {
        let fill = |pairs: &[(String, String)]| -> Vec<(String, String)> {
            pairs.iter().filter_map(|(name, text)| Some((name.clone(), self.places.fill(text)?))).collect()
        };
        // A blocked session reaches no target, and neither does a login that is shared elsewhere.
        let is_blocked = crate::hook::is_blocked(self.session);
        let mut prepared = PreparedTool {
            tool: profile.name.clone(),
            variables: Vec::new(),
            unless_set: Vec::new(),
            clears: profile.always_clears.clone(),
            command_clears: profile.command_clears.clone(),
            work: profile.work.iter().filter_map(|seed| self.work_seed(seed)).collect(),
            shared: if is_blocked { None } else { reason_to_share(profile, &self.places)? },
            home_only: profile
                .only_at_home()
                .map(|state| HomeOnlyState { state, programs: profile.programs.clone() }),
            oversized: None,
            linked: Vec::new(),
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
        // Wrong values are reported when they are bound.
        let said = bindings.and_then(|bindings| binding_values(profile, bindings).ok()).unwrap_or_default();
        for seed in &profile.seed {
            let own = seed.variable.as_deref().and_then(|name| originals.get(self.state.world(), name));
            let own = seed::bound_source(profile, seed, &said, &self.places).or(own);
            let from = seed::sources(seed, &self.places, own, self.state.world().cwd());
            if is_blocked {
                let plain = Seed { append: None, ..seed.clone() };
                let planted =
                    seed::plant(&profile.name, &plain, &[], (&self.places, &self.planted), durable)?;
                seeded.push(SeedCopy { from, ..planted });
                continue;
            }
            let planted = seed::plant(&profile.name, seed, &from, (&self.places, &self.planted), durable);
            seeded.push(match planted {
                Err(error) if is_too_large(&error) => {
                    let (planted, linked) = self.plant_with_links(profile, seed, &from, error)?;
                    prepared.linked.extend(linked);
                    planted
                }
                Err(error) if self.is_of_the_user(&error) => {
                    self.plant_as_it_is(profile, seed, &from, &error)?
                }
                planted => planted?,
            });
        }
        // A tool may not make the directory that its variable names.
        for (_, value) in &prepared.variables {
            let path = Path::new(value);
            let is_inside =
                |parent: &&Path| *parent != self.places.room && path.starts_with(&self.places.room);
            if let Some(parent) = path.parent().filter(is_inside) {
                self.planted.make_dir(parent)?;
            }
        }
        Ok((prepared, seeded))
    }

    /// Plants a directory that is too large to copy, with links instead of its largest entries.
    fn plant_with_links(
        &self,
        profile: &Profile,
        seed: &Seed,
        from: &[PathBuf],
        error: Error,
    ) -> Result<(SeedCopy, Vec<PathBuf>)> {
        let [dir] = from else { return Err(error) };
        // Read again: the profile at hand may lack what it binds.
        let used = self.state.tools().get(&profile.name)?.0.used_paths();
        let Some(linked) = entries_to_link(dir, seed, &used) else { return Err(error) };
        let durable = self.is_durable();
        let planted =
            seed::plant_linking(&profile.name, seed, from, &linked, (&self.places, &self.planted), durable)?;
        Ok((planted, linked.iter().map(|name| dir.join(name)).collect()))
    }

    /// A tool whose state is too large to copy. The session shares it, unless a target of it is protected: then the session
    /// starts without the state.
    pub(super) fn leave_out(
        &self,
        profile: &Profile,
        path: PathBuf,
        is_protected: bool,
    ) -> Result<(PreparedTool, Vec<SeedCopy>)> {
        let shown = crate::text::shown(path.display());
        let what = if is_protected { "the session starts without it" } else { "the session shares it" };
        let (name, programs) = (profile.name.clone(), profile.programs.clone());
        self.state.warn(
            format!("{name}: {shown} is too large to copy; {what}"),
            Some(format!("remove unneeded files of {name} from {shown}")),
        );
        let bare = Profile { seed: Vec::new(), ..profile.clone() };
        let (mut prepared, mut seeded) = self.plant(&bare, None)?;
        prepared.oversized = Some(OversizedState { path, programs });
        for seed in &profile.seed {
            let empty = seed::plant(&profile.name, seed, &[], (&self.places, &self.planted), false)?;
            seeded.extend(is_protected.then_some(empty));
        }
        if !is_protected {
            prepared.variables.clear();
            prepared.unless_set.clear();
            prepared.shared.get_or_insert_with(|| format!("the state in {shown} is too large to copy"));
        }
        Ok((prepared, seeded))
    }

    fn work_seed(&self, seed: &Seed) -> Option<WorkSeed> {
        Some(WorkSeed {
            from: PathBuf::from(seed.from.first()?),
            to: PathBuf::from(self.places.fill(&seed.to)?),
            except: seed.except.clone(),
            link: seed.link.clone(),
            pinned_by: seed.pinned_by.clone(),
        })
    }

    /// Whether the room survives a reboot, and so must survive a crash.
    pub(super) fn is_durable(&self) -> bool {
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
        // Files that cannot be parsed cannot be merged, so only the first is copied.
        let first = &from[..from.len().min(1)];
        let planted = seed::plant(&profile.name, &plain, first, (&self.places, &self.planted), false);
        let what = if planted.is_ok() {
            "the session has an unmodified copy"
        } else {
            "the session starts without it"
        };
        self.state.warn(format!("{}: {error}", profile.name), Some(what.to_owned()));
        planted.or_else(|_| seed::plant(&profile.name, &plain, &[], (&self.places, &self.planted), false))
    }

    /// Sockets need a short path; a link in the room says where it is, so that it goes with the room.
    fn make_sockets(&self, prepared: &mut PreparedTool) -> Result<()> {
        let dir = &self.places.sockets;
        // A tool whose socket cannot be bound fails without naming the length of the path.
        if dir.as_os_str().len() > LONGEST_FOR_SOCKETS {
            prepared.variables.retain(|(_, value)| !Path::new(value).starts_with(dir));
            self.state.warn(
                format!(
                    "{}: sockets stay shared, because the path {} is too long",
                    prepared.tool,
                    crate::text::shown(dir.display())
                ),
                Some("set XDG_RUNTIME_DIR".to_owned()),
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
}

/// Whether state is too large to be copied or parsed.
pub(super) fn is_too_large(error: &Error) -> bool {
    matches!(error, Error::Tool(ToolError::StateTooLarge { .. }) | Error::File(FileError::TooLarge { .. }))
}
