//! Homes and configuration directories in rooms: links to the user's own, with the session's copies among them.

use std::path::{Path, PathBuf};

use crate::error::{FileError, Result};
use crate::tool::plan::{Copies, Plan};
use crate::tool::plant::is_too_large;
use crate::tool::prepare::Preparation;
use crate::tool::profile::{Profile, ROOM_HOME, Seed};
use crate::tool::protection::GuardedTarget;
use crate::tool::seed::{self, make_dir};
use crate::tool::symlink_farm::{self, PrivatePaths};

/// Variable of the configuration directory, for tools that have no variable of their own.
const XDG_CONFIG: &str = "xdg/config";

impl Preparation<'_> {
    /// Copies of state below a directory of the user.
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

    /// Default places of tools below a directory of the user, with their copies. If a variable names another place,
    /// the default one could hold targets that are not bound.
    fn usual_places<'p>(
        &self,
        dir: &Path,
        copies: &Copies,
        profiles: impl Iterator<Item = &'p Profile>,
    ) -> Vec<(PathBuf, PathBuf)> {
        let mut places = Vec::new();
        for profile in profiles.filter(|profile| !profile.targets.is_empty()) {
            let copied = copies.get(&profile.name).map(Vec::as_slice).unwrap_or_default();
            for seed in &profile.seed {
                let to = self.places.room.join(&seed.to);
                if !copied.iter().any(|seeded| seeded.to == to) {
                    continue;
                }
                let usual = seed.from.iter().filter_map(|text| self.places.fill(text)).map(PathBuf::from);
                let below = usual.filter(|path| path.exists());
                let below = below.filter_map(|path| Some(path.strip_prefix(dir).ok()?.to_owned()));
                let below = below.filter(|relative| !relative.as_os_str().is_empty());
                places.extend(below.map(|relative| (relative, to.clone())));
            }
        }
        places
    }

    /// If a tool needs the general directory of settings moved, all others must find theirs in it.
    pub(super) fn grow_config(&self, plan: &mut Plan, copies: &Copies) -> Result<()> {
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

    /// Removes links in the room's home that lead to the user's own files of protected tools. Returns whether any
    /// existed.
    pub(super) fn unlink_defaults(&self, profiles: &[Profile], targets: &[GuardedTarget]) -> Result<bool> {
        let at = self.places.room.join(ROOM_HOME);
        let mut is_any = false;
        for (relative, _) in self.defaults(profiles, targets) {
            let mut path = at.clone();
            // Any directory on the way may be the link: the farm links whole directories where it can.
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

    /// Copies the files of a tool that only a moved home isolates: paths below the home, and where their copies are. A file that
    /// is too large has none; that of a protected tool is not linked either.
    pub(super) fn plant_home_files(
        &self,
        profile: &Profile,
        is_protected: bool,
    ) -> Result<Vec<(PathBuf, PathBuf)>> {
        let mut copies = Vec::new();
        for (name, seed) in profile.home.iter().zip(profile.home_seeds()) {
            let from = seed::sources(&seed, &self.places, None, None);
            let Some(from) = from.first() else { continue };
            if self.plant_in_home(&profile.name, &seed, from)? || is_protected {
                copies.push((PathBuf::from(name), self.places.room.join(&seed.to)));
            }
        }
        Ok(copies)
    }

    pub(super) fn grow_home(
        &self,
        all: &Copies,
        profiles: &[Profile],
        targets: &[GuardedTarget],
        restricted: &[&str],
    ) -> Result<PathBuf> {
        let usual_places = |dir: &Path| {
            let is_restricted = |profile: &&Profile| restricted.contains(&profile.name.as_str());
            self.usual_places(dir, all, profiles.iter().filter(is_restricted))
        };
        let real = self.places.home.clone().ok_or(FileError::NoHome("the session's home"))?;
        let at = self.places.room.join(ROOM_HOME);
        let mut copies = self.copies_below(&real, all);
        copies.extend(usual_places(&real));
        for profile in profiles {
            let is_protected = targets.iter().any(|target| target.tool == profile.name);
            copies.extend(self.plant_home_files(profile, is_protected)?);
        }
        for (relative, seed) in self.defaults(profiles, targets) {
            if !copies.iter().any(|(copied, _)| relative.starts_with(copied)) && !at.join(&relative).exists()
            {
                let to = format!("{ROOM_HOME}/{}", relative.display());
                self.plant_in_home("", &Seed { to, ..seed.clone() }, &real.join(&relative))?;
                copies.push((relative.clone(), at.join(&relative)));
            }
        }
        let elsewhere = || {
            let dirs = self.places.xdg().into_iter();
            dirs.filter_map(|(_, usual, dir)| Some((usual, dir.filter(|dir| **dir != real.join(usual))?)))
        };
        // Settings that the user keeps elsewhere are found at the usual place in the room.
        for (usual, dir) in elsewhere() {
            let below = self.copies_below(dir, all).into_iter().chain(usual_places(dir));
            copies.extend(below.map(|(relative, copy)| (Path::new(usual).join(relative), copy)));
        }
        let state = [".config", ".local/share", ".local/state"].map(PathBuf::from).to_vec();
        let shared = self.shared_in_home(&real, profiles)?;
        symlink_farm::build(&real, &at, &PrivatePaths { copies, shared, state, hidden_is_state: true })?;
        for (usual, dir) in elsewhere() {
            let copies = self.copies_below(dir, all).into_iter().chain(usual_places(dir)).collect();
            let private = PrivatePaths { copies, ..PrivatePaths::default() };
            symlink_farm::build(dir, &at.join(usual), &private)?;
        }
        for (_, usual, _) in self.places.xdg() {
            make_dir(&at.join(usual))?;
        }
        Ok(at)
    }

    /// Copies state into the room's home. Returns `false`, and leaves no copy, if the state is too large.
    fn plant_in_home(&self, tool: &str, seed: &Seed, from: &Path) -> Result<bool> {
        match seed::plant(tool, seed, &[from.to_owned()], (&self.places, &self.planted), false) {
            Err(error) if is_too_large(&error) => {
                self.planted.remove(&self.places.room.join(&seed.to))?;
                Ok(false)
            }
            planted => planted.map(|_| true),
        }
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
}
