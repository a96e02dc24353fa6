//! Errors of settings.

use std::path::PathBuf;

use crate::app::App;
use crate::code::Code;
use crate::error::Diagnostic;
use crate::text::{quoted, shown};

/// Errors of settings.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// No setting has this key.
    #[error("setting {} not found", quoted(key))]
    Unknown {
        /// The key given.
        key: String,
        /// The known key nearest to it.
        near: Option<String>,
    },
    /// No value anywhere.
    #[error("{key} is not set{}", path.as_ref().map_or_else(String::new, |path| format!(" in {}", shown(path.display()))))]
    NotSet {
        /// The setting.
        key: String,
        /// File that was searched, if the call names one.
        path: Option<PathBuf>,
    },
}

impl Diagnostic for SettingsError {
    fn code(&self) -> Code {
        match self {
            Self::Unknown { .. } => Code::UnknownSetting,
            Self::NotSet { .. } => Code::SettingNotSet,
        }
    }

    fn hint(&self, app: &App) -> Option<String> {
        let name = app.name();
        Some(match self {
            Self::Unknown { near: Some(near), .. } => format!("did you mean {}?", quoted(near)),
            Self::Unknown { near: None, .. } => format!("list the settings: {name} config list"),
            Self::NotSet { key, path: None } => {
                format!("set it: {name} config set {key} VALUE")
            }
            Self::NotSet { key, path: Some(_) } => {
                format!("show its origin: {name} config show {key} --source")
            }
        })
    }
}
