//! Views of conversations and their messages.

use serde::{Serialize, Serializer};
use serde_json::Value;
use sessile::clock::rfc3339;
use sessile::conversation::{Conversation, ConversationItem, TaskState};
use sessile::text::{shortened, shown, shown_lines};
use sessile_wire::service::ServiceSession;

/// A conversation.
#[derive(Debug, Serialize)]
pub(crate) struct ConversationView {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) session: String,
    /// Context it was held in.
    pub(crate) context: Option<String>,
    pub(crate) agent_url: String,
    context_id: Option<String>,
    task_id: Option<String>,
    task_state: Option<TaskState>,
    started_at: String,
    used_at: String,
    /// Number of messages.
    items: i64,
    /// Whether a credential for the agent exists, if that was looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) has_credentials: Option<CredentialPresence>,
    /// Messages of the conversation, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) messages: Option<Vec<ConversationItem>>,
    /// Whether it is a session of a service.
    #[serde(skip)]
    is_remote: bool,
}

/// Whether a credential exists; unknown if the vault is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CredentialPresence(pub(crate) Option<bool>);

impl Serialize for CredentialPresence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// Conversation in the view of its session.
#[derive(Debug, Serialize)]
pub(crate) struct ConversationSummary {
    id: String,
    name: Option<String>,
    agent_url: String,
    context_id: Option<String>,
    task_id: Option<String>,
    task_state: Option<TaskState>,
    has_credentials: Option<bool>,
}

/// A session of a service, whose messages are one conversation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServiceConversation<'a> {
    pub(crate) session: &'a ServiceSession,
    /// URL of the service, which has a credential: the token.
    pub(crate) url: &'a str,
}

impl From<Conversation> for ConversationView {
    fn from(one: Conversation) -> Self {
        ConversationView {
            id: one.id.clone(),
            name: one.name.clone(),
            session: one.session.clone(),
            context: one.context.clone(),
            agent_url: one.agent_url.clone(),
            context_id: one.context_id.clone(),
            task_id: one.task_id.clone(),
            task_state: one.task_state,
            started_at: one.started_at.clone(),
            used_at: one.used_at.clone(),
            items: one.items,
            has_credentials: None,
            messages: None,
            is_remote: false,
        }
    }
}

impl From<ServiceConversation<'_>> for ConversationView {
    fn from(ServiceConversation { session, url }: ServiceConversation<'_>) -> Self {
        ConversationView {
            id: session.id.clone(),
            name: session.name.clone(),
            session: session.id.clone(),
            context: session.context.clone(),
            agent_url: url.to_owned(),
            context_id: None,
            task_id: None,
            task_state: None,
            started_at: rfc3339(session.started_ms),
            used_at: rfc3339(session.used_ms),
            items: session.messages,
            has_credentials: Some(CredentialPresence(Some(true))),
            messages: None,
            is_remote: true,
        }
    }
}

impl From<ConversationView> for ConversationSummary {
    fn from(one: ConversationView) -> Self {
        ConversationSummary {
            id: one.id,
            name: one.name,
            agent_url: one.agent_url,
            context_id: one.context_id,
            task_id: one.task_id,
            task_state: one.task_state,
            has_credentials: one.has_credentials.and_then(|presence| presence.0),
        }
    }
}

impl ConversationSummary {
    /// The conversation in a few words.
    pub(crate) fn words(&self) -> String {
        let name = self.name.as_ref().map_or_else(String::new, |name| format!("{name} with "));
        let task = self.task_state.map_or_else(String::new, |state| format!(" ({state})"));
        format!("{name}{}{task}", self.agent_url)
    }
}

impl ConversationView {
    /// State of the last task.
    pub(crate) fn task_state(&self) -> Option<TaskState> {
        self.task_state
    }

    /// Number of messages and events.
    pub(crate) fn items(&self) -> i64 {
        self.items
    }

    /// Time of the last use.
    pub(crate) fn used_at(&self) -> &str {
        &self.used_at
    }

    /// Columns of a table of conversations.
    pub(crate) const COLUMNS: [&str; 8] =
        ["ID", "NAME", "AGENT", "CONTEXT", "TASK", "STATE", "MESSAGES", "LAST USED"];

    /// Cells of the columns.
    pub(crate) fn cells(&self) -> [String; 8] {
        let cell = |text: Option<&str>| shown(text.unwrap_or("-"));
        [
            shown(&self.id),
            cell(self.name.as_deref()),
            shown(&self.agent_url),
            cell(self.context_id.as_deref()),
            cell(self.task_id.as_deref()),
            cell(self.task_state.map(TaskState::as_str)),
            self.items.to_string(),
            shown(&self.used_at),
        ]
    }

    /// Text of the conversation with its messages.
    pub(crate) fn text(&self) -> String {
        let mut text = line("id", &self.id);
        text.extend(self.name.as_deref().map(|name| line("name", name)));
        if self.is_remote {
            text.push_str(&line("server", &self.agent_url));
        } else {
            text.push_str(&line("agent", &self.agent_url));
            text.push_str(&line("session", &self.session));
            text.extend(self.context.as_ref().map(|context| line("held in", context)));
            text.push_str(&line("context", self.context_id.as_deref().unwrap_or("none yet")));
            let state = self.task_state.map_or("unknown", TaskState::as_str);
            text.extend(self.task_id.as_ref().map(|task| line("task", &format!("{task} ({state})"))));
        }
        text.push_str(&line("last used", &self.used_at));
        let said = if self.is_remote { service_words } else { agent_words };
        text.extend(self.messages.iter().flatten().map(|item| item_lines(item, &said(item))));
        text
    }
}

impl ConversationView {
    /// The conversation as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("# Conversation {}\n\n", shown(self.name.as_deref().unwrap_or(&self.id)));
        let context = self.context.as_deref().unwrap_or("-");
        for (label, value) in
            [("Agent", self.agent_url.as_str()), ("Context", context), ("Last used", &self.used_at)]
        {
            text.push_str(&format!("- {label}: {}\n", shown(value)));
        }
        let words = if self.is_remote { service_words } else { agent_words };
        for item in self.messages.iter().flatten() {
            // A heading in a message would look like a heading of the document.
            let said = shown_lines(&words(item)).replace('\n', "\n> ");
            text.push_str(&format!("\n## {} {} ({})\n\n> {said}\n", item.number, item.source, item.at));
        }
        text
    }
}

fn line(label: &str, value: &str) -> String {
    format!("{label:<9} {}\n", shown(value))
}

fn item_lines(item: &ConversationItem, body: &str) -> String {
    // Indented, so that the text of one message cannot pass for the head of another.
    let body = shown_lines(body).replace('\n', "\n    ");
    format!("\n{} {} {}\n    {body}\n", item.number, item.source, item.at)
}

/// Words of a message of a service, whose body is whatever JSON a client sent.
fn service_words(item: &ConversationItem) -> String {
    let body = &item.body;
    let said = [body, &body["content"]].into_iter().find_map(Value::as_str).map(str::to_owned);
    said.or_else(|| Some(texts(body).join("\n")).filter(|text| !text.is_empty()))
        .unwrap_or_else(|| body.to_string())
}

/// Words of something that an agent sent or received.
fn agent_words(item: &ConversationItem) -> String {
    let texts = texts(&item.body);
    if texts.is_empty() { format!("({})", item.kind) } else { texts.join("\n") }
}

/// Texts in a message, a task, a status or an artifact, at any depth.
pub(crate) fn texts(body: &Value) -> Vec<String> {
    match body {
        Value::Object(members) => match members.get("text").and_then(|text| text.as_str()) {
            Some(text) => vec![text.to_owned()],
            // What was said before is an item of its own.
            None => members
                .iter()
                .filter(|(name, _)| *name != "history")
                .flat_map(|(_, value)| texts(value))
                .collect(),
        },
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// A message that contains a text that was searched for.
#[derive(Debug, Serialize)]
pub(crate) struct FoundMessage {
    conversation: String,
    name: Option<String>,
    agent_url: String,
    context: Option<String>,
    number: i64,
    source: &'static str,
    at: String,
    text: String,
}

impl FoundMessage {
    pub(crate) const COLUMNS: [&'static str; 5] = ["CONVERSATION", "NO", "FROM", "AT", "TEXT"];

    pub(crate) fn new(conversation: &Conversation, item: ConversationItem, text: String) -> Self {
        FoundMessage {
            conversation: conversation.id.clone(),
            name: conversation.name.clone(),
            agent_url: conversation.agent_url.clone(),
            context: conversation.context.clone(),
            number: item.number,
            source: item.source,
            at: item.at,
            text,
        }
    }

    /// Cells of a row, with the line that contains the text.
    pub(crate) fn cells(&self, wanted: &str) -> [String; 5] {
        let wanted = wanted.to_lowercase();
        let line = self.text.lines().find(|line| line.to_lowercase().contains(&wanted));
        // A text of several lines is found in none of them.
        let line = line.or_else(|| self.text.lines().next()).unwrap_or_default();
        let label = self.name.clone().unwrap_or_else(|| self.conversation.clone());
        [label, self.number.to_string(), self.source.to_owned(), self.at.clone(), shortened(line, 60)]
    }
}
