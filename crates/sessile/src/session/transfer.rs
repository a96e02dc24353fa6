//! Sessions on the move: one JSON file with settings, state and messages, without what looks like a secret.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, FileError, FileLocation, Result};
use crate::history::entry_hides;
use crate::names::ContextName;
use crate::secrets::is_credential_name;
use crate::session::{EntryKind, NewSession, Owner, Session, SessionEntry, SessionName, Sessions, entries};
use crate::settings::json;
use crate::store::{ConversationFilter, ConversationRow, InitialContent, OperationRow};
use crate::world::World;

/// Format name in the file.
const FORMAT: &str = "sessile-session";
/// The newest version of the format that is known here.
const VERSION: u32 = 1;

/// A session in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionExport {
    format: String,
    version: u32,
    /// Id where it came from.
    pub id: String,
    /// Name.
    pub name: Option<String>,
    /// The context it was pinned to.
    pub context: Option<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Idle limit, in milliseconds.
    pub idle_ms: u64,
    /// Lifetime limit, in milliseconds.
    pub max_ms: u64,
    /// Settings.
    pub settings: BTreeMap<String, Value>,
    /// State values.
    pub state: BTreeMap<String, Value>,
    /// Messages, in order.
    pub messages: Vec<Value>,
    /// Conversations with agents, the last used last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversations: Vec<ExportedConversation>,
    /// The keys of what looks like a secret and so is not in it.
    #[serde(skip)]
    pub left_out: Vec<String>,
}

/// A conversation with an agent in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportedConversation {
    agent_url: String,
    name: Option<String>,
    context_id: Option<String>,
    task_id: Option<String>,
    task_state: Option<String>,
    /// Items: kind and body.
    items: Vec<(String, Value)>,
}

impl ExportedConversation {
    /// Row for the store, under a new id.
    fn row(&self, now_ms: i64) -> Result<ConversationRow> {
        // The original may still exist in this store, under its own id.
        let id = crate::session::SessionId::new(now_ms)?.to_string();
        let mut row = ConversationRow::new(id, "", &crate::site::agent_url(&self.agent_url)?, now_ms);
        if let Some(name) = &self.name {
            crate::names::check(name, "conversation")?;
        }
        row.name.clone_from(&self.name);
        row.context_id.clone_from(&self.context_id);
        row.task_id.clone_from(&self.task_id);
        row.task_state.clone_from(&self.task_state);
        Ok(row)
    }
}

impl Sessions {
    /// A session as it can be written to a file.
    pub fn export(&self, session: &Session) -> Result<SessionExport> {
        let mut left_out = Vec::new();
        let mut entries = |kind| -> Result<BTreeMap<String, Value>> {
            let all = self.entries(session, kind)?.into_iter();
            let (secret, plain): (Vec<SessionEntry>, Vec<SessionEntry>) = all.partition(|entry| match kind {
                EntryKind::Setting if is_credential_name(&entry.key) => false,
                _ => entry_hides(&entry.key, &entry.value),
            });
            left_out.extend(secret.into_iter().map(|entry| entry.key));
            Ok(plain.into_iter().map(|entry| (entry.key, entry.value)).collect())
        };
        let (settings, state) = (entries(EntryKind::Setting)?, entries(EntryKind::State)?);
        Ok(SessionExport {
            format: FORMAT.to_owned(),
            version: VERSION,
            id: session.id.to_string(),
            name: session.name.clone(),
            context: session.context.clone(),
            labels: session.labels.clone(),
            idle_ms: session.idle_ms.unsigned_abs(),
            max_ms: session.max_ms.unsigned_abs(),
            settings,
            state,
            messages: self.messages(session, usize::MAX)?.into_iter().map(|message| message.body).collect(),
            conversations: self.exported_conversations(session)?,
            left_out,
        })
    }

    fn exported_conversations(&self, session: &Session) -> Result<Vec<ExportedConversation>> {
        let filter =
            ConversationFilter { session: Some(session.id.as_str()), ..ConversationFilter::default() };
        let mut all = Vec::new();
        // Oldest first, so that an import, which inserts in order, ends with the one used last.
        for row in self.store.conversations(&self.user, filter)?.into_iter().rev() {
            let items = self.store.conversation_items(&self.user, &row.id, 1, usize::MAX)?;
            all.push(ExportedConversation {
                agent_url: row.agent,
                name: row.name,
                context_id: row.context_id,
                task_id: row.task_id,
                task_state: row.task_state,
                items: items
                    .into_iter()
                    .map(|item| (item.kind, crate::json::from_str(&item.body).unwrap_or(Value::Null)))
                    .collect(),
            });
        }
        Ok(all)
    }

    /// Starts a new session with the content of an export, under a new id.
    pub fn import(
        &mut self,
        exported: &SessionExport,
        name: Option<SessionName>,
        world: &World,
        operation: Option<OperationRow>,
    ) -> Result<Session> {
        // Names of a file are untrusted, so they are parsed before anything is created.
        let context = exported.context.as_deref().map(ContextName::of_session).transpose()?;
        let name = match (name, &exported.name) {
            (Some(name), _) => Some(name),
            (None, Some(name)) => Some(name.parse()?),
            (None, None) => None,
        };
        let mut contents = InitialContent { operation, ..InitialContent::default() };
        for (kind, values) in [(EntryKind::Setting, &exported.settings), (EntryKind::State, &exported.state)]
        {
            for (key, value) in values {
                let text = value.to_string();
                entries::check(key, Some(&text))?;
                if kind == EntryKind::Setting {
                    // State values are free-form data of programs; settings are refused as `config set`
                    // refuses them.
                    crate::secrets::refuse_secret(key, value)?;
                }
                contents.entries.push((kind.as_str(), key.clone(), text));
            }
        }
        contents.messages = exported.messages.iter().map(Value::to_string).collect();
        for conversation in &exported.conversations {
            let items =
                conversation.items.iter().map(|(kind, body)| (kind.clone(), body.to_string())).collect();
            contents.conversations.push((conversation.row(world.now().as_millisecond())?, items));
        }
        let new = NewSession {
            name,
            context,
            owner: Owner::of(world, None),
            labels: exported.labels.clone(),
            idle: Duration::from_millis(exported.idle_ms),
            max: Duration::from_millis(exported.max_ms),
        };
        self.start_with(new, &contents)
    }
}

/// Reads an exported session.
pub fn read(path: &Path, text: &str) -> Result<SessionExport> {
    // The file may be any of the user's, so no line is quoted.
    let wrong_at = |line: usize, column: usize, message: String| {
        Error::File(FileError::Syntax {
            place: Box::new(FileLocation {
                path: path.to_owned(),
                line: line.max(1),
                column: column.max(1),
                text: String::new(),
            }),
            message,
        })
    };
    let wrong = |message: String| wrong_at(1, 1, message);
    let exported: SessionExport = crate::json::from_str(text)
        // Serde's own messages quote what they found.
        .map_err(|error| wrong_at(error.line(), error.column(), json::problem(&error)))?;
    match (exported.format.as_str(), exported.version) {
        (FORMAT, 1..=VERSION) => Ok(exported),
        (FORMAT, newer) => Err(wrong(format!("version {newer} of the format is newer than {VERSION}"))),
        _ => Err(wrong("not an exported session".to_owned())),
    }
}
