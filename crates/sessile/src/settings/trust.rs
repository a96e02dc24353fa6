//! Trust in a project's files: by path and content, so that a change takes it back.

use std::path::{Path, PathBuf};

use sessile_wire::hex::hex;
use sha2::{Digest, Sha256};

use crate::app::App;
use crate::error::Result;
use crate::path_text;
use crate::settings::project::Project;
use crate::store::Store;

/// Fingerprint of a file's text.
pub fn fingerprint(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// Key of a file in the list of trusted files: its absolute path, with links resolved up to the project's directory.
/// A link in the project does not borrow the trust in its target. No two paths have the same key.
pub fn key(app: &App, path: &Path) -> String {
    // A file that does not exist yet is trusted before it is written.
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let key = match app.project_root(path).and_then(|root| Some((root, path.strip_prefix(root).ok()?))) {
        Some((root, relative)) => real(root).join(relative),
        None => real(path),
    };
    path_text::encode(&key)
}

/// Whether this content of this file has been trusted.
pub(crate) fn is_trusted(app: &App, store: Option<&Store>, path: &Path, text: &str) -> Result<bool> {
    match store {
        Some(store) => store.is_trusted(&key(app, path), &fingerprint(text)),
        None => Ok(false),
    }
}

/// The files of a project that trust is about, in order.
pub fn files(project: &Project) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> =
        [project.settings(), project.local_settings()].into_iter().filter(|path| is_there(path)).collect();
    for dir in [project.contexts(), project.tools()] {
        let mut found = project.toml_files(&dir)?;
        found.sort();
        files.extend(found);
    }
    Ok(files)
}

/// True for a dangling link too: reading it reports the problem.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
