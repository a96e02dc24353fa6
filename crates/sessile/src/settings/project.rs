//! A project's state directory: `.NAME/` in the working directory or the nearest one above it.
//!
//! A repository brings it, so a stranger may have written it: `files::ProjectDir` alone opens its files.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::app::App;
use crate::error::{Error, ProjectError, Result, UnsafeFile, UnsafeReason};
use crate::files::{LockedDir, Locker, ProjectDir, is_own};
use crate::settings::Document;
use crate::text::shown;
use crate::world::World;

/// A project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    root: PathBuf,
    dir: PathBuf,
    uid: u32,
}

/// A state directory that does not count, because another user owns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignDir {
    /// The state directory.
    pub path: PathBuf,
    /// Owner.
    pub owner: u32,
    /// Whether everybody may write to the directory that holds it, as to the system's temporary directory.
    pub is_shared: bool,
}

impl ForeignDir {
    /// The message and hint of a warning about it.
    pub(crate) fn warning(&self) -> (String, String) {
        let path = shown(self.path.display());
        (format!("ignoring {path}: owned by user {}", self.owner), self.refusal().hint())
    }

    fn refusal(&self) -> UnsafeFile {
        UnsafeFile { path: self.path.clone(), reason: UnsafeReason::Owner(self.owner) }
    }
}

/// The result of the search for a project.
#[derive(Clone, Debug, Default)]
pub struct ProjectSearch {
    /// The nearest project that counts.
    pub project: Option<Project>,
    /// The state directories nearer than that one that do not count.
    pub foreign: Vec<ForeignDir>,
}

impl ProjectSearch {
    /// Project, or an error with the reason.
    pub fn require(self, start: &Path) -> Result<Project> {
        match (self.project, self.foreign.first()) {
            // A directory of another user right here is what the user means; a project further up is not.
            (_, Some(foreign)) if foreign.path.parent() == Some(start) => {
                Err(ProjectError::UnsafeFile(foreign.refusal()).into())
            }
            (Some(project), _) => Ok(project),
            (None, Some(foreign)) => Err(ProjectError::UnsafeFile(foreign.refusal()).into()),
            (None, None) => Err(ProjectError::NotFound(start.to_owned()).into()),
        }
    }
}

impl Project {
    /// Searches a directory and those above it. A state directory of another user does not count: in a directory that
    /// many share it would speak for all of them.
    pub fn search(app: &App, world: &World, cwd: &Path) -> ProjectSearch {
        let name = dir_name(app);
        let mut search = ProjectSearch::default();
        for root in cwd.ancestors() {
            let dir = root.join(&name);
            let Ok(found) = dir.symlink_metadata() else { continue };
            // A link to a directory counts: its files are then refused one by one, with a reason.
            let is_directory = found.is_dir() || (found.is_symlink() && dir.is_dir());
            if !is_directory {
                continue;
            }
            let uid = world.uid();
            if is_own(uid, found.uid()) {
                search.project = Some(Project { root: root.to_owned(), dir, uid });
                break;
            }
            let is_shared = root.metadata().is_ok_and(|root| root.mode() & 0o002 != 0);
            search.foreign.push(ForeignDir { path: dir, owner: found.uid(), is_shared });
        }
        search
    }

    /// The project of a directory, made or not.
    pub fn at(app: &App, world: &World, root: &Path) -> Self {
        Project { root: root.to_owned(), dir: root.join(dir_name(app)), uid: world.uid() }
    }

    /// The project whose state directory holds a path.
    pub fn containing(app: &App, world: &World, path: &Path) -> Option<Self> {
        app.project_root(path).map(|root| Self::at(app, world, root))
    }

    /// The directory that the project is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// State directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether its state directory exists and is this user's.
    pub(crate) fn is_own_dir(&self) -> bool {
        let found = self.dir.metadata();
        found.is_ok_and(|found| found.is_dir() && is_own(self.uid, found.uid()))
    }

    /// The settings that are committed with it.
    pub fn settings(&self) -> PathBuf {
        self.dir.join("config.toml")
    }

    /// The settings of one person, which win and are not committed.
    pub fn local_settings(&self) -> PathBuf {
        self.dir.join("local.toml")
    }

    /// Contexts.
    pub fn contexts(&self) -> PathBuf {
        self.dir.join("contexts")
    }

    /// Tool profiles.
    pub fn tools(&self) -> PathBuf {
        self.dir.join("tools")
    }

    /// The text of one of its files; `None` if it does not exist.
    pub fn read(&self, path: &Path) -> Result<Option<String>> {
        self.beneath().read(self.relative(path)?)
    }

    /// Reads and parses one of its files; `None` if it does not exist.
    pub fn load(&self, path: &Path) -> Result<Option<Document>> {
        self.read(path)?.map(|text| Document::parse(path, text)).transpose()
    }

    /// The `.toml` files in one of its directories; none if it does not exist.
    pub fn toml_files(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        let names = self.beneath().names(self.relative(dir)?)?;
        let is_toml = |name: &PathBuf| name.extension().is_some_and(|ending| ending == "toml");
        Ok(names.into_iter().filter(is_toml).map(|name| dir.join(name)).collect())
    }

    /// Locks the directory of one of its files, and makes it first if it does not exist; returns the file's name in it.
    pub(crate) fn lock_file(&self, locker: &Locker, path: &Path) -> Result<(LockedDir, PathBuf)> {
        self.beneath().lock_file(locker, self.relative(path)?, DIR_MODE)
    }

    /// Keeps the personal file out of the repository.
    pub fn ignore_local_settings(&self, locker: &Locker) -> Result<()> {
        let name = Path::new(".gitignore");
        // Outside the lock first: almost always the file is there.
        if !self.dir.join(name).exists() {
            let dir = self.beneath().lock(locker, self.relative(&self.dir)?, DIR_MODE)?;
            // A `.gitignore` that somebody else made meanwhile is not replaced.
            if dir.read(name)?.is_none() {
                dir.replace(name, "/local.toml\n", 0o644)?;
            }
        }
        Ok(())
    }

    fn beneath(&self) -> ProjectDir<'_> {
        ProjectDir::new(&self.root, self.uid)
    }

    fn relative<'p>(&self, path: &'p Path) -> Result<&'p Path> {
        let outside = || UnsafeFile { path: path.to_owned(), reason: UnsafeReason::Link };
        path.strip_prefix(&self.root).map_err(|_| Error::Project(ProjectError::UnsafeFile(outside())))
    }
}

/// The mode of a project's directories, when made.
const DIR_MODE: u32 = 0o755;

fn dir_name(app: &App) -> String {
    format!(".{}", app.name())
}
