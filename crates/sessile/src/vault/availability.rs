//! Whether agents have a credential, told without asking anybody.

use crate::agents::Agent;
use crate::context::Context;
use crate::names::CredentialName;
use crate::settings::Layer;
use crate::site::{Site, agent_url};
use crate::state::State;
use crate::vault::agents::{bound_by_context, bound_in};
use crate::vault::{Backend, CredentialMetadata, CredentialSource, SelectedCredential};

/// Availability of agents' credentials, from one read of the vault.
pub struct CredentialAvailability<'a> {
    state: &'a State,
    agents: Vec<Agent>,
    selected: Option<SelectedCredential>,
    /// `None` if unlocking the vault requires a person.
    kept: Option<Vec<CredentialMetadata>>,
}

impl State {
    /// Availability of agents' credentials. Opens the vault once, unless that requires a person.
    pub fn credential_availability(&self) -> CredentialAvailability<'_> {
        CredentialAvailability {
            state: self,
            agents: self.agents().unwrap_or_default(),
            selected: self.selected_credential().ok().flatten(),
            kept: self.kept_credentials(),
        }
    }

    /// Credentials that end before a time and cannot be renewed, each with its end in milliseconds since 1970. Empty if
    /// unlocking the vault requires a person.
    pub fn expiring_credentials(&self, before_ms: i64) -> Vec<(CredentialName, i64)> {
        let kept = self.kept_credentials().unwrap_or_default().into_iter();
        let before = jiff::Timestamp::from_millisecond(before_ms).unwrap_or(jiff::Timestamp::MAX);
        let ending = kept.filter(|about| !about.is_valid(before));
        ending.filter_map(|about| Some((about.name.clone(), about.expires_at?.as_millisecond()))).collect()
    }

    fn kept_credentials(&self) -> Option<Vec<CredentialMetadata>> {
        let vault = self.vault().ok()?;
        // A helper may open a window, and nobody can tell before.
        if vault.backend() == Some(Backend::Helper) {
            return None;
        }
        Some(vault.list().ok()?.into_iter().map(|one| one.about).collect())
    }
}

impl CredentialAvailability<'_> {
    /// Whether a message to an agent in a context would find a credential; `None` if the vault is locked. The
    /// credential may still be rejected.
    pub fn has(&self, url: &str, context: Option<&Context>) -> Option<bool> {
        let url = agent_url(url).ok()?;
        if let Some(selected) = self.selected.as_ref().filter(|selected| is_for_call(selected)) {
            return match &selected.what {
                CredentialSource::Named(name) => self.exists(name),
                _ => Some(true),
            };
        }
        if let Some((name, _)) = bound_by_context(&url, context) {
            return self.exists(&name.parse().ok()?);
        }
        let named = self.agents.iter().find(|agent| agent.url == url);
        if let Some(name) = named.and_then(|agent| agent.credential.as_deref()) {
            return self.exists(&name.parse().ok()?);
        }
        let kept = self.kept.as_deref()?;
        if bound_in(&url, kept).is_some() {
            return Some(true);
        }
        let site = Site::of_url(&url).ok()?;
        let selected = self.selected.as_ref().and_then(|selected| match &selected.what {
            CredentialSource::Named(name) => kept.iter().find(|one| one.name == *name),
            _ => None,
        });
        Some(selected.is_some_and(|one| one.sites.contains(&site)))
    }

    fn exists(&self, name: &CredentialName) -> Option<bool> {
        let variable = self.state.app().credential_variable(name);
        if self.state.world().variable(&variable).is_some() {
            return Some(true);
        }
        self.kept.as_ref().map(|kept| kept.iter().any(|one| one.name == *name))
    }
}

/// Whether it was selected for this call, whatever the agent.
fn is_for_call(selected: &SelectedCredential) -> bool {
    matches!(selected.origin.layer, Layer::Flag | Layer::Environment)
        || !matches!(selected.what, CredentialSource::Named(_))
}
