//! Trust in a project's files: by path and content, so that a change takes it back.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::Result;
use crate::history::{Effect, perform, settle};
use crate::path_text;
use crate::settings::project::Project;
use crate::state::State;
use crate::store::Store;

/// What a file says, as a number.
pub fn fingerprint(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The path a file is trusted by: absolute, links followed, as text that stands for no other path.
pub fn key(path: &Path) -> String {
    path_text::encode(&path.canonicalize().unwrap_or_else(|_| path.to_owned()))
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

/// Trusts these contents of these files, and records it.
pub fn grant(state: &State, subject: &str, files: &[(PathBuf, String)]) -> Result<()> {
    settle(state)?;
    let store = state.fresh_store()?;
    let mut effects = Vec::new();
    for (path, text) in files {
        let (path, after) = (key(path), fingerprint(text));
        let before =
            store.as_ref().map(|store| store.trusted_contents(&path)).transpose()?.unwrap_or_default();
        effects.push(Effect::Trust { path, before, after: vec![after] });
    }
    if effects.is_empty() {
        return Ok(());
    }
    perform(state, "trust", subject, &effects).map(drop)
}

/// Takes the trust in files back, and records it; returns how many had it.
pub fn revoke(state: &State, subject: &str, files: &[PathBuf]) -> Result<usize> {
    settle(state)?;
    let store = state.fresh_store()?;
    let mut effects = Vec::new();
    for path in files.iter().map(|path| key(path)) {
        let before =
            store.as_ref().map(|store| store.trusted_contents(&path)).transpose()?.unwrap_or_default();
        if !before.is_empty() {
            effects.push(Effect::Trust { path, before, after: Vec::new() });
        }
    }
    if !effects.is_empty() {
        perform(state, "trust", &format!("{subject} --revoke"), &effects)?;
    }
    Ok(effects.len())
}
