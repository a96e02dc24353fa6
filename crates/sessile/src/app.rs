//! Identity of an application: its name, its variables, its settings.

use std::path::Path;

use crate::names::CredentialName;
use crate::settings::{BASE, Definition};
use crate::vault::KeychainConnector;
use crate::{agents, conversation, run, session};

/// Settings of the library, each list defined where its settings are read.
const LIBRARY_SETTINGS: [&[Definition]; 5] =
    [BASE, session::SETTINGS, run::SETTINGS, agents::SETTINGS, conversation::SETTINGS];

/// An application that keeps its state with this library.
///
/// The name gives it directories (`~/.config/NAME`, `DIR/.NAME`, ...) and variables (`NAME_CONTEXT`, ...) of
/// its own.
#[derive(Clone, Debug)]
pub struct App {
    name: &'static str,
    prefix: String,
    settings: &'static [Definition],
    keychain: Option<KeychainConnector>,
}

impl App {
    /// An application. The name is a command's name: lower-case letters, digits and dashes.
    pub fn new(name: &'static str) -> Self {
        // Variables cannot have a dash in their name.
        App { name, prefix: name.to_ascii_uppercase().replace('-', "_"), settings: &[], keychain: None }
    }

    /// Same application with additional settings.
    #[must_use]
    pub fn with_settings(mut self, settings: &'static [Definition]) -> Self {
        self.settings = settings;
        self
    }

    /// The same with another prefix for its variables.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// The same with a keychain as a place for credentials, as the crate `sessile-keychain` provides it. Without one
    /// `vault.backend = "keychain"` fails.
    #[must_use]
    pub fn with_keychain(mut self, connect: KeychainConnector) -> Self {
        self.keychain = Some(connect);
        self
    }

    /// The name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The prefix of its variables, without the underscore.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// One of its variables: `variable("CONTEXT")` is `MYTOOL_CONTEXT`.
    pub fn variable(&self, name: &str) -> String {
        format!("{}_{name}", self.prefix)
    }

    /// The root of the project whose state directory holds a path.
    pub(crate) fn project_root<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        let name = format!(".{}", self.name);
        // By the path's own text: the file need not exist any more, as in an undo.
        path.ancestors().find(|dir| dir.file_name().is_some_and(|found| *found == *name))?.parent()
    }

    /// Variable that holds a credential: `SESSILE_CREDENTIAL_GH_BOT` for `gh-bot`.
    pub fn credential_variable(&self, name: &CredentialName) -> String {
        let word: String = name
            .as_str()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
            .collect();
        self.variable(&format!("CREDENTIAL_{word}"))
    }

    /// Connector of its keychain.
    pub fn keychain(&self) -> Option<KeychainConnector> {
        self.keychain
    }

    /// Every setting it has.
    pub fn settings(&self) -> impl Iterator<Item = &'static Definition> + use<> {
        LIBRARY_SETTINGS.into_iter().chain([self.settings]).flatten()
    }

    /// The setting of a key.
    pub fn setting(&self, segments: &[impl AsRef<str>]) -> Option<&'static Definition> {
        self.settings().find(|definition| definition.matches(segments))
    }
}
