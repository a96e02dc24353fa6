//! Files of the user that a preparation depends on, with stamps. A room that was prepared from the same stamps has the same copies.
//!
//! The stamps are taken before anything is read: a change meanwhile changes the stamps that are compared later. Paths that do not
//! exist are recorded too, because the preparation looked for them.
//!
//! Not for named sessions, which keep their copies whatever becomes of the originals.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::context::{Bindings, Context, Guard};
use crate::files::has_current_times;
use crate::session::spare_room::{self, MOST_STAMPS, source_line};
use crate::state::State;
use crate::tool::bind::AppliedBinding;
use crate::tool::binding::binding_values;
use crate::tool::paths::{Originals, SessionPaths};
use crate::tool::plan::Plan;
use crate::tool::profile::{Profile, Seed};
use crate::tool::seed::{DEEPEST, bound_source, is_backup, is_like};

/// A file that was changed more recently could change again within the same tick of the kernel's clock.
const RECENT_MS: i64 = 100;

/// Stamps of the files that a preparation depends on.
pub(super) struct PreparationInputs<'a> {
    state: &'a State,
    lines: Vec<String>,
    seen: BTreeSet<PathBuf>,
    devices: BTreeSet<u64>,
    /// The directories that are being walked through, the outermost first.
    inside: Vec<(u64, u64)>,
}

impl<'a> PreparationInputs<'a> {
    /// Stamps of the files that define contexts and tools. `None` if a path cannot be recorded.
    pub(super) fn of(state: &'a State, sources: impl Iterator<Item = PathBuf>) -> Option<Self> {
        let (lines, seen, devices, inside) = Default::default();
        let mut inputs = PreparationInputs { state, lines, seen, devices, inside };
        for path in sources {
            inputs.add(&path)?;
        }
        Some(inputs)
    }

    /// Adds the files that the profiles copy. `None` if a path cannot be recorded, or the files are too many.
    pub(super) fn add_profiles(
        &mut self,
        profiles: &[Profile],
        places: &SessionPaths,
        context: Option<&Context>,
    ) -> Option<()> {
        let bindings = context.map(|context| context.tools.as_slice()).unwrap_or_default();
        for profile in profiles {
            let said = bindings.iter().find(|(tool, _)| *tool == profile.name).map(|(_, said)| said);
            self.add_profile(profile, places, said)?;
        }
        // The directory of settings is listed for its links.
        places.config().map_or(Some(()), |config| self.add(config).map(drop))
    }

    /// The stamps.
    pub(super) fn into_lines(self) -> Vec<String> {
        self.lines
    }

    fn add_profile(
        &mut self,
        profile: &Profile,
        places: &SessionPaths,
        said: Option<&Bindings>,
    ) -> Option<()> {
        let asked = profile.shared_when.iter().map(|when| when.file.as_str());
        let asked = asked.chain(profile.unless_exists.as_deref());
        let appended =
            profile.seed.iter().filter_map(|seed| seed.append.as_ref()).map(|append| append.value.as_str());
        for path in asked.chain(appended).filter_map(|text| places.fill(text)) {
            self.add(Path::new(&path))?;
        }
        let originals = Originals::of(self.state.app(), self.state.world());
        let said = said.and_then(|said| binding_values(profile, said).ok()).unwrap_or_default();
        for seed in &profile.seed {
            let variable = seed.variable.as_deref();
            let own = bound_source(profile, seed, &said, places)
                .or_else(|| variable.and_then(|name| originals.get(self.state.world(), name)));
            for path in candidates(seed, places, own)? {
                self.add_source(&path, seed, places)?;
            }
        }
        Some(())
    }

    /// Adds a file or directory that is copied, with what is in it and what leads to it.
    fn add_source(&mut self, path: &Path, seed: &Seed, places: &SessionPaths) -> Option<()> {
        if let Some(config) = places.config().filter(|config| path.starts_with(config)) {
            for above in path.ancestors().skip(1).take_while(|above| *above != config) {
                self.add(above)?;
            }
        }
        self.walk(path, Path::new(""), seed)
    }

    fn walk(&mut self, path: &Path, name: &Path, seed: &Seed) -> Option<()> {
        let Some(id) = self.add(path)? else { return Some(()) };
        // A linked directory may lead round in a circle.
        if name.components().count() > DEEPEST || self.inside.contains(&id) {
            return None;
        }
        self.inside.push(id);
        for entry in std::fs::read_dir(path).ok()? {
            let entry = entry.ok()?;
            let name = name.join(entry.file_name());
            let shown = name.to_string_lossy();
            let is_left_out = |patterns: &[String]| patterns.iter().any(|pattern| is_like(pattern, &shown));
            // Links are made by name alone, and the directory's own stamp has the names.
            let is_backup = seed.skip_backups && is_backup(&entry.file_name());
            if !is_backup && !is_left_out(&seed.except) && !is_left_out(&seed.link) {
                self.walk(&entry.path(), &name, seed)?;
            }
        }
        self.inside.pop();
        Some(())
    }

    /// Adds a path. Returns the device and inode of a directory.
    fn add(&mut self, path: &Path) -> Option<Option<(u64, u64)>> {
        let found = path.metadata().ok();
        let line = source_line(path, found.as_ref())?;
        let now = self.state.world().now().as_millisecond();
        if let Some(found) = &found {
            // A copy in flight, or a clock that was set back.
            let changed = found.ctime().checked_mul(1000)?.checked_add(found.ctime_nsec() / 1_000_000)?;
            if now.checked_sub(changed)? < RECENT_MS {
                return None;
            }
            if self.devices.insert(found.dev()) && !has_current_times(path) {
                return None;
            }
        }
        if self.seen.insert(path.to_owned()) {
            self.lines.push(line);
        }
        if self.lines.len() > MOST_STAMPS {
            return None;
        }
        Some(found.filter(Metadata::is_dir).map(|found| (found.dev(), found.ino())))
    }
}

/// Every path at which a seed may find its source. `None` if that depends on the working directory.
fn candidates(seed: &Seed, places: &SessionPaths, own: Option<OsString>) -> Option<Vec<PathBuf>> {
    let paths: Vec<PathBuf> = match own {
        Some(value) if seed.merge => {
            std::env::split_paths(&value).filter(|path| !path.as_os_str().is_empty()).collect()
        }
        Some(value) => vec![PathBuf::from(value)],
        None => seed.from.iter().filter_map(|text| places.fill(text)).map(PathBuf::from).collect(),
    };
    // A device changes with every use.
    let paths: Vec<PathBuf> = paths.into_iter().filter(|path| path != Path::new("/dev/null")).collect();
    paths.iter().all(|path| path.is_absolute()).then_some(paths)
}

/// Backdates the copies in a room, so that every later change of a copy changes its modification time.
pub(super) fn backdate_all(room: &Path, plan: &mut Plan) -> Option<()> {
    for name in spare_room::entries_of(room)? {
        spare_room::backdate(&room.join(name))?;
    }
    plan.bound.iter_mut().for_each(AppliedBinding::renew_stamps);
    Some(())
}

/// Whether a room for a context may be kept for another session: nothing in it needs a person's consent.
pub(crate) fn is_unguarded(context: Option<&Context>) -> bool {
    context.is_none_or(|context| context.guard == Guard::None)
}
