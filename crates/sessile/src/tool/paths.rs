//! The directories that profiles speak of, as the user has them: not as an outer session has moved them.
//!
//! The variable `SESSILE_ORIGINALS` carries the user's own values into a session. So a session inside a session is
//! seeded from the user's own files, and `env --unset` restores the user's own values.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::app::App;
use crate::error::{Error, FileError, Result, SessionError};
use crate::files::is_marked;
use crate::hook::HOOK;
use crate::run::VariableChange;
use crate::secrets::looks_secret;
use crate::state::State;
use crate::world::World;

/// The user's own values of variables that a session changes, also inside one.
#[derive(Clone, Debug, Default)]
pub struct Originals {
    /// Variables that an outer session replaced, with their original values.
    replaced: BTreeMap<String, Option<String>>,
}

/// The name of the variable that carries them into a session, without the application's prefix.
pub(crate) const ORIGINALS: &str = "ORIGINALS";

impl Originals {
    /// As a call finds them.
    pub fn of(app: &App, world: &World) -> Self {
        Self::of_text(world.variable(&app.variable(ORIGINALS)).and_then(OsStr::to_str))
    }

    fn of_text(carried: Option<&str>) -> Self {
        Originals { replaced: carried.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default() }
    }

    /// The user's own value of a variable.
    pub fn get(&self, world: &World, name: &str) -> Option<OsString> {
        match self.replaced.get(name) {
            Some(before) => before.as_ref().map(OsString::from),
            None => world.variable(name).map(OsStr::to_owned),
        }
    }

    /// Variables that an outer session replaced, with their original values.
    pub fn replaced(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.replaced.iter().map(|(name, before)| (name.as_str(), before.as_deref()))
    }

    /// The same with variables that are about to be set, as text that a variable can carry. Secrets are not carried.
    pub(crate) fn carried<'n>(&self, world: &World, names: impl Iterator<Item = &'n str>) -> String {
        let mut replaced = self.replaced.clone();
        for name in names {
            // The outermost value is the user's own; an enclosing session has recorded it already.
            replaced.entry(name.to_owned()).or_insert_with(|| {
                let before = world.variable(name).and_then(OsStr::to_str);
                // Every program in the session could read it there, and a session would carry it on.
                before.filter(|_| !looks_secret(name)).map(str::to_owned)
            });
        }
        serde_json::to_string(&replaced).unwrap_or_default()
    }
}

/// Changes that bring back the variables of the user outside the session of a call.
pub fn own_values(state: &State) -> Vec<VariableChange> {
    let (app, world) = (state.app(), state.world());
    let change = |name: &str, value: Option<&str>| VariableChange {
        name: name.to_owned(),
        value: value.map(str::to_owned),
        origin: String::new(),
        isolates: false,
    };
    let originals = Originals::of(app, world);
    let mut changes: Vec<VariableChange> =
        originals.replaced().map(|(name, value)| change(name, value)).collect();
    // The application's own variables last: those above are read out of them.
    for own in ["SESSION", HOOK, ORIGINALS, "CONFIG_DIR", "STATE_DIR", "CACHE_DIR", "RUNTIME_DIR"] {
        let name = app.variable(own);
        if world.variable(&name).is_some() && !changes.iter().any(|change| change.name == name) {
            changes.push(change(&name, None));
        }
    }
    changes
}

/// Home and configuration directories that a session of this user can replace: those of the variables, those outside
/// the surrounding session, and those of the account.
#[derive(Debug)]
pub(crate) struct UserPaths {
    pub(crate) homes: Vec<PathBuf>,
    pub(crate) configs: Vec<PathBuf>,
}

impl UserPaths {
    pub(crate) fn of(world: &World) -> Self {
        // Whichever application's session this is.
        let carried = world.variables().filter(|(name, _)| {
            name.to_str().and_then(|name| name.strip_suffix(ORIGINALS)).is_some_and(|app| app.ends_with('_'))
        });
        let outside: Vec<Originals> = carried.map(|(_, text)| Originals::of_text(text.to_str())).collect();
        let named = |name: &str| -> Vec<PathBuf> {
            let outside =
                outside.iter().filter_map(|originals| originals.get(world, name)).map(PathBuf::from);
            let own = world.path_variable(name).map(Path::to_owned);
            // The XDG specification says that relative paths are to be ignored.
            outside.chain(own).filter(|path| path.is_absolute()).collect()
        };
        let mut homes = named("HOME");
        homes.extend(world.home().map(Path::to_owned));
        // `HOME` may be that of a session; the password database knows the user's own.
        homes.extend(world.account_home());
        let mut configs = named("XDG_CONFIG_HOME");
        configs.extend(homes.iter().map(|home| home.join(".config")));
        UserPaths { homes, configs }
    }
}

/// Paths of the user and of the session.
#[derive(Clone, Debug)]
pub(crate) struct SessionPaths {
    /// The session's room.
    pub(crate) room: PathBuf,
    /// The user's home, if known.
    pub(crate) home: Option<PathBuf>,
    /// Directory of sockets, short because the kernel bounds their paths.
    pub(crate) sockets: PathBuf,
    config: Option<PathBuf>,
    data: Option<PathBuf>,
    state: Option<PathBuf>,
    cache: Option<PathBuf>,
    runtime: Option<PathBuf>,
    session: String,
}

impl SessionPaths {
    /// The places of a session.
    pub(crate) fn of(
        world: &World,
        originals: &Originals,
        room: &Path,
        session: &str,
        sockets: PathBuf,
    ) -> Self {
        let absolute =
            // Relative paths are invalid by the XDG specification.
            |name: &str| originals.get(world, name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = absolute("HOME").or_else(|| world.home().map(Path::to_owned));
        let below = |variable: &str, usual: &str| {
            absolute(variable).or_else(|| home.as_ref().map(|home| home.join(usual)))
        };
        SessionPaths {
            room: room.to_owned(),
            config: below("XDG_CONFIG_HOME", ".config"),
            data: below("XDG_DATA_HOME", ".local/share"),
            state: below("XDG_STATE_HOME", ".local/state"),
            cache: below("XDG_CACHE_HOME", ".cache"),
            runtime: absolute("XDG_RUNTIME_DIR"),
            home,
            sockets,
            session: session.to_owned(),
        }
    }

    /// The user's directory of settings.
    pub(crate) fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// The user's XDG directories, by their variables.
    pub(crate) fn xdg(&self) -> [(&'static str, &'static str, Option<&Path>); 4] {
        [
            ("XDG_CONFIG_HOME", ".config", self.config.as_deref()),
            ("XDG_DATA_HOME", ".local/share", self.data.as_deref()),
            ("XDG_STATE_HOME", ".local/state", self.state.as_deref()),
            ("XDG_CACHE_HOME", ".cache", self.cache.as_deref()),
        ]
    }

    /// A text of a profile with its placeholders filled; `None` if a directory is missing that it speaks of.
    pub(crate) fn fill(&self, text: &str) -> Option<String> {
        let (mut filled, mut rest) = (String::with_capacity(text.len() + 128), text);
        while let Some((before, after)) = rest.split_once('{') {
            filled.push_str(before);
            let known = after.split_once('}').and_then(|(name, after)| Some((self.value(name)?, after)));
            match known {
                // Variables are written as text, so a path that is not UTF-8 counts as missing.
                Some((value, after)) => {
                    filled.push_str(value?.to_str()?);
                    rest = after;
                }
                // Placeholders of others, such as the value of a binding.
                None => {
                    filled.push('{');
                    rest = after;
                }
            }
        }
        filled.push_str(rest);
        Some(filled)
    }

    /// Value of a placeholder; `None` for one that is unknown here, and a value of `None` for a missing directory.
    fn value(&self, name: &str) -> Option<Option<&Path>> {
        Some(match name {
            "room" => Some(self.room.as_path()),
            "home" => self.home.as_deref(),
            "config" => self.config.as_deref(),
            "data" => self.data.as_deref(),
            "state" => self.state.as_deref(),
            "cache" => self.cache.as_deref(),
            "runtime" => self.runtime.as_deref(),
            "sockets" => Some(self.sockets.as_path()),
            "session" => Some(Path::new(&self.session)),
            _ => return None,
        })
    }
}

/// Fails unless a directory belongs to this user, is not a link, and no other user can write to it.
fn require_own_dir(dir: &Path, uid: u32) -> Result<Metadata> {
    let found = dir.symlink_metadata().map_err(|error| Error::io("read", dir, error))?;
    check_owner(dir, &found, uid)?;
    match found.mode() & 0o022 {
        0 => Ok(found),
        _ => Err(SessionError::UnsafeRoom { path: dir.to_owned(), reason: "writable by other users" }.into()),
    }
}

/// The same for a room and what it lies in, up to the state directory.
pub(crate) fn require_own_room(room: &Path, uid: u32) -> Result<()> {
    let mut is_in_marked = false;
    // `rooms/` and the state directory, which are the application's own.
    for above in room.ancestors().skip(1).take(2) {
        let found = above.symlink_metadata().map_err(|error| Error::io("read", above, error))?;
        // One's own link is one's own will.
        if !(found.is_symlink() && found.uid() == uid) {
            check_owner(above, &found, uid)?;
            is_in_marked |= is_marked(&found);
        }
    }
    let found = require_own_dir(room, uid)?;
    if is_in_marked && !is_marked(&found) {
        let mode = found.mode() & 0o7777;
        return Err(FileError::UnmarkedState { path: room.to_owned(), mode, is_dir: true }.into());
    }
    Ok(())
}

fn check_owner(dir: &Path, found: &Metadata, uid: u32) -> Result<()> {
    let reason = match () {
        () if !found.is_dir() => "not a directory",
        () if found.uid() != uid => "owned by another user",
        () => return Ok(()),
    };
    Err(SessionError::UnsafeRoom { path: dir.to_owned(), reason }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_once() {
        let (world, room) = (World::empty(), Path::new("/r/{home}"));
        let places = SessionPaths::of(&world, &Originals::default(), room, "id", PathBuf::from("/s"));
        for (text, wanted) in [
            ("{room}/a/{sockets}{session}", Some("/r/{home}/a//sid")),
            ("{value} {room} {", Some("{value} /r/{home} {")),
            ("plain", Some("plain")),
            // Without a home.
            ("{home}/x", None),
        ] {
            assert_eq!(places.fill(text).as_deref(), wanted, "{text}");
        }
    }
}
