//! A project's state directory: `.NAME/` in the working directory or the nearest one above it.

use std::path::{Path, PathBuf};

use crate::app::App;
use crate::error::Result;
use crate::files::{LockedDir, Locker};

/// A project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    root: PathBuf,
    dir: PathBuf,
}

impl Project {
    /// The project that a directory belongs to, if any.
    pub fn find(app: &App, cwd: &Path) -> Option<Self> {
        cwd.ancestors().map(|root| Self::at(app, root)).find(|project| project.dir.is_dir())
    }

    /// The project of a directory, made or not.
    pub fn at(app: &App, root: &Path) -> Self {
        Project { root: root.to_owned(), dir: root.join(format!(".{}", app.name())) }
    }

    /// The directory that the project is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Its state directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The settings that are committed with it.
    pub fn settings(&self) -> PathBuf {
        self.dir.join("config.toml")
    }

    /// The settings of one person, which win and are not committed.
    pub fn local_settings(&self) -> PathBuf {
        self.dir.join("local.toml")
    }

    /// Its contexts.
    pub fn contexts(&self) -> PathBuf {
        self.dir.join("contexts")
    }

    /// Keeps the personal file out of the repository.
    pub fn ignore_local_settings(&self, locker: &Locker) -> Result<()> {
        let name = Path::new(".gitignore");
        if !self.dir.join(name).exists() {
            let dir = LockedDir::lock(locker, &self.dir, 0o755)?;
            if dir.read(name)?.is_none() {
                dir.replace(name, "/local.toml\n", 0o644)?;
            }
        }
        Ok(())
    }
}
