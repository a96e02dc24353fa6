//! Trust in a project's files: by path and content, so that a change takes it back.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::Result;
use crate::settings::project::Project;
use crate::store::Store;

/// What a file says, as a number.
pub fn fingerprint(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The path a file is trusted by: absolute, links followed.
pub fn key(path: &Path) -> String {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).to_string_lossy().into_owned()
}

/// Whether this content of this file has been trusted.
pub fn is_trusted(store: Option<&Store>, path: &Path, text: &str) -> Result<bool> {
    match store {
        Some(store) => store.is_trusted(&key(path), &fingerprint(text)),
        None => Ok(false),
    }
}

/// The files of a project that trust is about, in order.
pub fn files(project: &Project) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> =
        [project.settings(), project.local_settings()].into_iter().filter(|path| path.exists()).collect();
    for folder in ["contexts", "tools"] {
        let mut found = crate::context::toml_files(&project.dir().join(folder))?;
        found.sort();
        files.extend(found);
    }
    Ok(files)
}
