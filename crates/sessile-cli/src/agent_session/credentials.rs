//! Credentials of the vault for requests to an agent.

use std::cell::{OnceCell, RefCell};

use sessile::agents::Agent;
use sessile::error::CredentialError;
use sessile::settings::Layer;
use sessile::site::Site;
use sessile::vault::{CredentialKind, CredentialSource, LoadedCredential, Secret};
use sessile::{Error, State};
use sessile_wire::a2a::{AgentCard, SecuritySchemeKind};

use crate::a2a::{CredentialProvider, RequestCredential};
use crate::renewer::Renewer;

/// Credential that a variable holds, for one call.
pub(super) struct CallCredential {
    /// Name of the variable.
    pub(super) variable: String,
    pub(super) secret: Secret,
    /// Whether it is an API key, and not a bearer token.
    pub(super) is_key: bool,
}

/// Credential of one agent, looked up and renewed at the first request.
pub(crate) struct AgentCredentials<'a> {
    state: &'a State,
    agent: &'a Agent,
    renewer: Renewer,
    usable: OnceCell<Option<LoadedCredential>>,
    /// Credential in a variable, for this call.
    call: Option<CallCredential>,
    /// Location and name of an API key according to the card.
    place: RefCell<Option<(String, String)>>,
}

impl<'a> AgentCredentials<'a> {
    pub(crate) fn new(state: &'a State, agent: &'a Agent) -> Self {
        AgentCredentials {
            state,
            agent,
            renewer: Renewer::new(),
            usable: OnceCell::new(),
            call: None,
            place: RefCell::new(None),
        }
    }

    /// With a credential for this call, which takes precedence over all others.
    pub(super) fn with_call_credential(self, call: Option<CallCredential>) -> Self {
        AgentCredentials { call, ..self }
    }

    /// Credential of this call in its place, for a URL of the agent's own site.
    fn place_call_credential(
        &self,
        call: &CallCredential,
        url: &str,
    ) -> Result<Vec<RequestCredential>, Error> {
        let site = Site::of_url(url)?;
        // The user chose it for the agent that the call names, not for where its card points.
        if site != Site::of_url(&self.agent.url)? {
            return Ok(Vec::new());
        }
        let secret = call.secret.expose();
        let is_header = !secret.is_empty() && !secret.contains(|c: char| !c.is_ascii_graphic() && c != ' ');
        if !is_header {
            return Err(CredentialError::Unusable {
                name: call.variable.clone(),
                reason: "the value has characters that an HTTP header cannot hold".into(),
            }
            .into());
        }
        if !call.is_key {
            let value = Secret::new(format!("Bearer {secret}"));
            return Ok(vec![RequestCredential::Header("Authorization".to_owned(), value)]);
        }
        let place = self.place.borrow();
        let (place, name) =
            place.as_ref().map_or(("header", "X-API-Key"), |(place, name)| (place.as_str(), name.as_str()));
        let (name, secret) = (name.to_owned(), call.secret.clone());
        Ok(vec![match place {
            "query" => RequestCredential::Query(name, secret),
            "cookie" => RequestCredential::Cookie(name, secret),
            _ => RequestCredential::Header(name, secret),
        }])
    }

    /// State of the call.
    pub(super) fn state(&self) -> &'a State {
        self.state
    }

    /// Takes the location of an API key from the card.
    pub(crate) fn learn(&self, card: &AgentCard) {
        let wanted = card.schemes.iter().find_map(|scheme| match &scheme.kind {
            SecuritySchemeKind::ApiKey { place, name } => Some((place.clone(), name.clone())),
            _ => None,
        });
        *self.place.borrow_mut() = wanted;
    }

    /// Checks the guard of the context again, after a wait and before something is sent.
    pub(super) fn recheck_guard(&self) -> Result<(), Error> {
        self.state.contexts().recheck(true)
    }

    fn load_credential(&self) -> Result<Option<&LoadedCredential>, Error> {
        if self.usable.get().is_none() {
            let found = self.find()?;
            // Fails only if it is set, which was looked at above. `OnceCell::get_or_try_init` is not stable.
            let _ = self.usable.set(found);
        }
        Ok(self.usable.get().and_then(Option::as_ref))
    }

    /// Name of the agent's credential, if it is not sent to this URL.
    pub(super) fn withheld_from(&self, url: &str) -> Result<Option<String>, Error> {
        let name = match &self.call {
            Some(call) => Some(call.variable.clone()),
            None => self.load_credential()?.map(|usable| usable.about.name.to_string()),
        };
        Ok(name.filter(|_| self.credentials_for(url).is_ok_and(|sent| sent.is_empty())))
    }

    /// Finds the credential. The one selected for this call comes first. The next is the one that the context, the agent's
    /// name or the vault binds to the agent. The last is the one that the settings select, if it is allowed for the agent's
    /// site.
    fn find(&self) -> Result<Option<LoadedCredential>, Error> {
        let (state, agent) = (self.state, self.agent);
        let selected = state.selected_credential()?;
        let is_for_call = |layer: Layer| matches!(layer, Layer::Flag | Layer::Environment);
        if let Some(selected) = &selected
            // The user chose it for this call, so it comes before what is bound to the agent.
            && (is_for_call(selected.origin.layer) || !matches!(selected.what, CredentialSource::Named(_)))
        {
            let is_of_context = selected.origin.layer == Layer::Context;
            return self.checked(is_of_context, || selected.load_credential(state, &self.renewer)).map(Some);
        }
        let vault = state.vault()?;
        let bound = match (&agent.credential, vault.for_agent(&agent.url, state.context()?)?) {
            // A binding of the context is narrower than that of an agent's name, and that one narrower than
            // the vault's.
            (_, Some((name, origin))) if origin != "the vault" => Some((name, origin, true)),
            (Some(name), _) => {
                let is_of_context =
                    agent.origin.as_ref().is_some_and(|origin| origin.layer == Layer::Context);
                let origin = format!("agent {}", agent.name.as_deref().unwrap_or(""));
                Some((name.parse()?, origin, is_of_context))
            }
            (None, found) => found.map(|(name, origin)| (name, origin, false)),
        };
        if let Some((name, origin, is_of_context)) = bound {
            return self
                .checked(is_of_context, || vault.load_credential(&name, origin.as_str(), &self.renewer))
                .map(Some);
        }
        let Some(selected) = selected else { return Ok(None) };
        let site = Site::of_url(&agent.url)?;
        match selected.about(state)? {
            Some(about) if about.sites.contains(&site) => {
                let is_of_context = selected.origin.layer == Layer::Context;
                self.checked(is_of_context, || selected.load_credential(state, &self.renewer)).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Credential, with the guard checked before and after if it comes from the context: the approval may end while a slow program
    /// or server provides the credential.
    fn checked(
        &self,
        is_of_context: bool,
        usable: impl FnOnce() -> Result<LoadedCredential, Error>,
    ) -> Result<LoadedCredential, Error> {
        if is_of_context {
            self.state.contexts().require()?;
        }
        let usable = usable()?;
        if is_of_context {
            self.recheck_guard()?;
        }
        Ok(usable)
    }
}

impl CredentialProvider for AgentCredentials<'_> {
    fn credentials_for(&self, url: &str) -> Result<Vec<RequestCredential>, Error> {
        if let Some(call) = &self.call {
            return self.place_call_credential(call, url);
        }
        let Some(usable) = self.load_credential()? else { return Ok(Vec::new()) };
        let is_agent_s = Site::of_url(url)? == Site::of_url(&self.agent.url)?;
        // A credential given for this call is for the agent that the call names.
        if usable.for_this_call && !is_agent_s {
            return Ok(Vec::new());
        }
        let (header, value) = match usable.header_for(url) {
            Ok(found) => found,
            // A card or a redirect may name any URL; a credential that is not allowed for it is not sent.
            Err(Error::Credential(CredentialError::SiteRefused { .. })) if !is_agent_s => {
                return Ok(Vec::new());
            }
            Err(other) => return Err(other),
        };
        let place = self.place.borrow();
        Ok(vec![match (&usable.about.kind, &*place) {
            (CredentialKind::ApiKey { .. }, Some((place, name))) if place == "query" => {
                RequestCredential::Query(name.clone(), usable.secret().clone())
            }
            (CredentialKind::ApiKey { .. }, Some((place, name))) if place == "cookie" => {
                RequestCredential::Cookie(name.clone(), usable.secret().clone())
            }
            // The header in the card takes precedence over that of the stored credential.
            (CredentialKind::ApiKey { .. }, Some((_, name))) => {
                RequestCredential::Header(name.clone(), value)
            }
            _ => RequestCredential::Header(header, value),
        }])
    }
}
