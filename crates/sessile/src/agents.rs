//! Agents by name: `agents.NAME.url` and `agents.NAME.credential` in the settings.

use serde::Serialize;

use crate::error::{ConversationError, Result, UsageError};
use crate::names::{check, nearest};
use crate::settings::{Definition, Origin, SettingKey, SettingKind};
use crate::site::agent_url;
use crate::state::State;

/// Settings of agents with a name.
pub const SETTINGS: &[Definition] = &[
    Definition::new("agents.*.url", SettingKind::Text, "The URL of a named agent.").needing_trust(),
    Definition::new("agents.*.credential", SettingKind::Text, "The credential that a named agent gets.")
        .needing_trust(),
];

/// An agent that a call is about.
#[derive(Clone, Debug, Serialize)]
pub struct Agent {
    /// Name, if it has one.
    pub name: Option<String>,
    /// URL, in the one form in which agents are compared.
    pub url: String,
    /// The credential that the settings give it.
    pub credential: Option<String>,
    /// Origin; `None` for a URL that was given.
    pub origin: Option<Origin>,
}

impl State {
    /// Every agent that has a name, in the order of their names.
    pub fn agents(&self) -> Result<Vec<Agent>> {
        let settings = self.settings()?;
        let mut agents = Vec::new();
        for key in settings.keys(false) {
            let [table, name, member] = key.segments() else { continue };
            if table == "agents" && member == "url" {
                agents.extend(self.named_agent(name)?);
            }
        }
        Ok(agents)
    }

    /// The agent that a text means: a URL, or a name.
    pub fn agent(&self, text: &str) -> Result<Agent> {
        // Names have no such character, so a URL is never looked up as a name.
        if text.contains("://") {
            let url = agent_url(text)?;
            // One that has a name keeps its credential.
            let named = self.agents()?.into_iter().find(|agent| agent.url == url);
            return Ok(named.unwrap_or(Agent { name: None, url, credential: None, origin: None }));
        }
        // A host without a scheme would otherwise be reported as an unknown agent.
        if text.contains([':', '/']) {
            return Err(UsageError::InvalidValue {
                place: "agent".into(),
                value: crate::text::shortened(text, 80),
                expected: "a name, or a URL such as http://localhost:8000".into(),
            }
            .into());
        }
        check(text, "agent")?;
        match self.named_agent(text)? {
            Some(agent) => Ok(agent),
            None => {
                let all = self.agents()?;
                let near = nearest(text, all.iter().filter_map(|agent| agent.name.as_deref()));
                Err(ConversationError::AgentNotFound { name: text.to_owned(), near }.into())
            }
        }
    }

    fn named_agent(&self, name: &str) -> Result<Option<Agent>> {
        let settings = self.settings()?;
        let said = |member: &str| settings.resolve(&SettingKey::new(["agents", name, member]));
        let Some(found) = said("url")? else { return Ok(None) };
        let url = agent_url(found.value.as_str().unwrap_or_default())?;
        let credential = said("credential")?.and_then(|found| found.value.as_str().map(str::to_owned));
        Ok(Some(Agent { name: Some(name.to_owned()), url, credential, origin: Some(found.origin) }))
    }
}
