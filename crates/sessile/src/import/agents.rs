//! Import of names, conversations and credentials of A2A agents.

use crate::config::write::{WriteScope, change, target};
use crate::conversation::ConversationUpdate;
use crate::error::Result;
use crate::import::{FoundAgent, FoundConversation, FoundCredential};
use crate::names::{CredentialName, SessionName};
use crate::session::{Lifecycle, Session};
use crate::settings::{SettingKey, Value};
use crate::state::State;
use crate::vault::{Credential, CredentialMetadata, jwt_expiry};

/// The agents whose names the settings do not have.
pub fn new_agents(state: &State, found: &[FoundAgent]) -> Result<Vec<FoundAgent>> {
    let known = state.agents()?;
    let is_new = |agent: &&FoundAgent| !known.iter().any(|one| one.name.as_deref() == Some(&agent.name));
    Ok(found.iter().filter(is_new).cloned().collect())
}

/// The conversations that the store does not have.
pub fn new_conversations(state: &State, found: &[FoundConversation]) -> Result<Vec<FoundConversation>> {
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let known = match state.conversations_to_look_at()? {
        Some(conversations) => conversations.list(None, None)?,
        None => Vec::new(),
    };
    let is_new = |one: &&FoundConversation| {
        !known
            .iter()
            .any(|known| known.agent_url == one.url && known.context_id.as_ref() == Some(&one.context_id))
    };
    Ok(found.iter().filter(is_new).cloned().collect())
}

/// The credentials whose secrets the vault does not have, each with a name that is free.
pub fn new_credentials(state: &State, found: &[FoundCredential]) -> Result<Vec<FoundCredential>> {
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let known = state.vault()?.list()?;
    let mut new: Vec<FoundCredential> = Vec::new();
    for credential in found {
        if known.iter().any(|one| one.secrets().any(|secret| *secret == credential.secret)) {
            continue;
        }
        let is_taken = |name: &CredentialName| {
            known.iter().any(|one| one.about.name == *name) || new.iter().any(|one| one.name == *name)
        };
        let numbered = (2..1000).filter_map(|number| format!("{}-{number}", credential.name).parse().ok());
        let mut names = std::iter::once(credential.name.clone()).chain(numbered);
        if let Some(name) = names.find(|name| !is_taken(name)) {
            new.push(FoundCredential { name, ..credential.clone() });
        }
    }
    Ok(new)
}

/// Gives agents the names that a tool has for them, in the user's settings.
pub fn add_agents(state: &State, agents: &[FoundAgent]) -> Result<()> {
    for agent in agents {
        let key = SettingKey::new(["agents", &agent.name, "url"]);
        let target = target(state, Some(WriteScope::Global))?;
        change(state, "agent add", &target, &key, Some(&Value::Text(agent.url.clone())))?;
    }
    Ok(())
}

/// Takes conversations over into a session of the tool's name, which is started if none lives. Returns the sessions.
pub fn add_conversations(state: &State, found: &[FoundConversation]) -> Result<Vec<Session>> {
    let mut sessions: Vec<Session> = Vec::new();
    for one in found {
        let known = sessions.iter().find(|session| session.label() == one.tool).cloned();
        let session = match known {
            Some(session) => session,
            None => session_of(state, &one.tool)?,
        };
        let mut conversations = state.conversations()?;
        let id = conversations.new_id()?;
        let heard = ConversationUpdate {
            context_id: Some(one.context_id.clone()),
            task_id: one.task_id.clone(),
            ..ConversationUpdate::default()
        };
        conversations.begin(&session, &one.url, (id, None), &heard)?;
        if !sessions.iter().any(|known| known.id == session.id) {
            sessions.push(session);
        }
    }
    Ok(sessions)
}

fn session_of(state: &State, name: &str) -> Result<Session> {
    if let Ok(session) = state.sessions()?.get(name)
        && session.life(state.world()) == Lifecycle::Live
    {
        return Ok(session);
    }
    let (idle, max) = state.session_lifetime(None, None)?;
    let name: SessionName = name.parse()?;
    state.start_session_to_run("session start", Some(name), None, idle, max)
}

/// Puts credentials into the vault. The files that hold them stay as they are.
pub fn store_credentials(state: &State, found: &[FoundCredential]) -> Result<()> {
    for one in found {
        let now = state.world().now();
        let mut about = CredentialMetadata::new(one.name.clone(), one.kind.clone(), now);
        about.agents.extend(one.agent.clone());
        about.allow_agents();
        about.expires_at = jwt_expiry(one.secret.expose());
        state.vault()?.put(Credential::new(about, Some(one.secret.clone())))?;
        crate::history::record(state, "auth set", one.name.as_str(), "a secret is never recorded")?;
    }
    Ok(())
}
