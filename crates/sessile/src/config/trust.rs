//! Trust in the files of projects: granted and revoked, and recorded.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::history::{Effect, perform, settle};
use crate::path_text;
use crate::settings::project::Project;
use crate::settings::trust::{fingerprint, is_trusted, key};
use crate::state::State;

/// Every trusted file.
pub fn trusted_files(state: &State) -> Result<Vec<PathBuf>> {
    let trusted = state.store()?.map(|store| store.trusted()).transpose()?.unwrap_or_default();
    Ok(trusted.iter().map(|key| path_text::decode(key)).collect())
}

/// Whether this content of this file has been trusted.
pub fn is_content_trusted(state: &State, path: &Path, text: &str) -> Result<bool> {
    is_trusted(state.app(), state.store()?, path, text)
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
        // One content at a time: the earlier one loses its trust.
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
