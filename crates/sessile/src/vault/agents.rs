//! Credentials of agents.

use crate::context::Context;
use crate::error::{CredentialError, Error, Result};
use crate::names::CredentialName;
use crate::site::agent_url;
use crate::vault::vault::Vault;
use crate::vault::{Credential, CredentialMetadata};

/// Default name for the credential of an agent.
pub fn name_for_agent(url: &str) -> Result<CredentialName> {
    let url = agent_url(url)?;
    name_of(url.split_once("://").map_or(url.as_str(), |(_, rest)| rest))
}

/// A name for a credential out of words of any kind.
pub(crate) fn name_of(words: &str) -> Result<CredentialName> {
    let mut name = String::new();
    for letter in words.chars() {
        // Only characters that a credential's name and its variable can have.
        let is_kept = letter.is_ascii_alphanumeric() || letter == '.' || letter == '_';
        name.push(if is_kept { letter } else { '-' });
    }
    while let Some(shorter) = ["--", ".."].iter().find(|twice| name.contains(**twice)) {
        name = name.replace(shorter, &shorter[..1]);
    }
    let name: String = name.trim_matches(['-', '.', '_']).chars().take(60).collect();
    name.trim_end_matches(['-', '.', '_']).parse()
}

impl Vault<'_> {
    /// Credential of an agent, and the binding: the context's, else the agent's own.
    pub fn for_agent(
        &self,
        url: &str,
        context: Option<&Context>,
    ) -> Result<Option<(CredentialName, String)>> {
        let url = agent_url(url)?;
        if let Some((name, context)) = bound_by_context(&url, context) {
            let name = context.credential_name(name, "agents")?;
            return Ok(Some((name, format!("context {} (agents)", context.name))));
        }
        let all: Vec<CredentialMetadata> = self.list()?.into_iter().map(|one| one.about).collect();
        Ok(bound_in(&url, &all).map(|one| (one.name.clone(), "the vault".to_owned())))
    }

    /// The credential that is bound to this very agent.
    pub fn of_agent(&self, url: &str) -> Result<Option<CredentialName>> {
        let url = agent_url(url)?;
        let all = self.list()?;
        Ok(all.into_iter().find(|one| one.about.agents.contains(&url)).map(|one| one.about.name))
    }

    /// Default name for the credential of an agent that no other credential has.
    pub fn free_name(&self, url: &str) -> Result<CredentialName> {
        let (base, all) = (name_for_agent(url)?, self.list()?);
        // Two names can share one variable, as `a.b` and `a-b` do, so variables are compared.
        let variable = |name: &CredentialName| self.state.app().credential_variable(name);
        let is_free =
            |name: &CredentialName| all.iter().all(|one| variable(&one.about.name) != variable(name));
        let numbered = (2..1000).filter_map(|number| format!("{base}-{number}").parse().ok());
        let mut names = std::iter::once(base.clone()).chain(numbered);
        names
            .find(|name| is_free(name))
            .ok_or(Error::Credential(CredentialError::Exists { name: base.to_string(), place: "vault" }))
    }

    /// Unbinds other credentials from an agent, and returns their names.
    pub fn leave_agent(&self, url: &str, to: &CredentialName) -> Result<Vec<CredentialName>> {
        let had =
            |one: &Credential| one.about.name != *to && one.about.agents.iter().any(|agent| agent == url);
        let others: Vec<CredentialName> =
            self.list()?.into_iter().filter(had).map(|one| one.about.name).collect();
        for other in &others {
            self.change(other, |before| {
                Ok(before.map(|mut one| {
                    one.about.agents.retain(|agent| agent != url);
                    one
                }))
            })?;
        }
        Ok(others)
    }
}

/// The credential that a context binds to an agent, of several the one that is bound most closely.
pub(super) fn bound_by_context<'a>(
    url: &str,
    context: Option<&'a Context>,
) -> Option<(&'a str, &'a Context)> {
    // What a stranger's project says does not choose a credential.
    let context = context.filter(|context| context.trusted)?;
    let agents = context.agents.iter().filter_map(|(agent, name)| Some((agent_url(agent).ok()?, name)));
    let meant = agents.filter(|(agent, _)| is_below(url, agent)).max_by_key(|(agent, _)| agent.len());
    meant.map(|(_, name)| (name.as_str(), context))
}

/// The credential that is bound to an agent itself.
pub(super) fn bound_in<'a>(url: &str, all: &'a [CredentialMetadata]) -> Option<&'a CredentialMetadata> {
    let bound = all.iter().flat_map(|one| one.agents.iter().map(move |agent| (agent, one)));
    let found = bound.filter(|(agent, _)| is_below(url, agent)).max_by_key(|(agent, _)| agent.len());
    found.map(|(_, one)| one)
}

/// Whether a URL is an agent's own, or one below it.
fn is_below(url: &str, agent: &str) -> bool {
    // Otherwise `https://a.example/b` would also match `https://a.example/bc`.
    url.strip_prefix(agent).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_below_an_agent_belongs_to_the_agent() {
        assert!(is_below("https://a.example/x/health", "https://a.example/x"));
        assert!(is_below("https://a.example/x", "https://a.example"));
        assert!(!is_below("https://a.example/xy", "https://a.example/x"));
        assert!(!is_below("https://a.example.evil", "https://a.example"));
    }

    #[test]
    fn one_agent_has_one_url_and_a_name_that_is_one() {
        assert_eq!(agent_url("HTTP://LocalHost:8000/").unwrap(), "http://localhost:8000");
        assert_eq!(agent_url("https://a.example:443/x/?q#f").unwrap(), "https://a.example/x");
        for (url, name) in [
            ("http://localhost:8000", "localhost-8000"),
            ("https://a.example/agents/one/", "a.example-agents-one"),
            ("http://[::1]:9/", "1-9"),
        ] {
            assert_eq!(name_for_agent(url).unwrap().as_str(), name);
        }
        assert_eq!(agent_url("https://a.example?x=/foo").unwrap(), "https://a.example");
        for wrong in ["https://a.example/x/../y", "https://a.example/."] {
            assert!(agent_url(wrong).is_err(), "{wrong}");
        }
        assert!(name_for_agent(&format!("https://a.example/{}", "x".repeat(200))).is_ok());
    }
}
