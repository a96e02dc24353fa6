//! Trust in a project's files: by path and content, so that a change takes it back.

use std::path::{Path, PathBuf};

use sessile_wire::hex::hex;
use sha2::{Digest, Sha256};

use crate::app::App;
use crate::error::Result;
use crate::history::{Effect, perform, settle};
use crate::path_text;
use crate::settings::project::{self, Project};
use crate::state::State;
use crate::store::Store;

/// What a file says, as a number.
pub fn fingerprint(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// The path a file is trusted by: absolute, with links followed as far as the project's directory. A link in the project
/// does not borrow the trust in what it leads to. The text stands for no other path.
pub fn key(app: &App, path: &Path) -> String {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let key = match project::root_of(app, path).and_then(|root| Some((root, path.strip_prefix(root).ok()?))) {
        Some((root, relative)) => real(root).join(relative),
        None => real(path),
    };
    path_text::encode(&key)
}

/// Every trusted file.
pub fn trusted_files(state: &State) -> Result<Vec<PathBuf>> {
    let trusted = state.store()?.map(|store| store.trusted()).transpose()?.unwrap_or_default();
    Ok(trusted.iter().map(|key| path_text::decode(key)).collect())
}

/// Whether this content of this file has been trusted.
pub fn is_content_trusted(state: &State, path: &Path, text: &str) -> Result<bool> {
    is_trusted(state.app(), state.store()?, path, text)
}

/// The same in a store.
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

/// Also for a link that leads nowhere: reading it says what is wrong.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Trusts these contents of these files, and records it.
pub fn grant(state: &State, subject: &str, files: &[(PathBuf, String)]) -> Result<()> {
    settle(state)?;
    let store = state.fresh_store()?;
    let mut effects = Vec::new();
    for (path, text) in files {
        let (path, after) = (key(state.app(), path), fingerprint(text));
        let before =
            store.as_ref().map(|store| store.trusted_contents(&path)).transpose()?.unwrap_or_default();
        effects.push(Effect::Trust { path, before, after: vec![after] });
    }
    if effects.is_empty() {
        return Ok(());
    }
    perform(state, "trust", subject, &effects).map(drop)
}

/// Takes the trust in a project's files back, also in those that are missing now, and records it; returns how many had
/// it.
pub fn revoke(state: &State, subject: &str, project: &Project) -> Result<usize> {
    settle(state)?;
    let Some(store) = state.fresh_store()? else { return Ok(0) };
    let dir = path_text::decode(&key(state.app(), project.dir()));
    let mut effects = Vec::new();
    for path in store.trusted()?.into_iter().filter(|path| path_text::decode(path).starts_with(&dir)) {
        let before = store.trusted_contents(&path)?;
        effects.push(Effect::Trust { path, before, after: Vec::new() });
    }
    if !effects.is_empty() {
        perform(state, "trust", &format!("{subject} --revoke"), &effects)?;
    }
    Ok(effects.len())
}
