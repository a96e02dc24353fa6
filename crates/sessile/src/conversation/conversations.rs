//! The conversations of one user.

use serde::Serialize;
use serde_json::Value;

use crate::clock::rfc3339;
use crate::conversation::TaskState;
use crate::error::{ConversationError, Error, Result};
use crate::names::nearest;
use crate::session::{Session, SessionId};
use crate::settings::{Definition, SettingKind};
use crate::site::agent_url;
use crate::state::State;
use crate::store::{
    ConversationChange, ConversationFilter, ConversationKey, ConversationRow, ItemRow, RenameOutcome, Store,
};
use crate::world::World;

/// Setting of the retention.
const RETENTION: &str = "conversation.keep";

/// Settings of conversations.
pub const SETTINGS: &[Definition] = &[Definition::new(
    RETENTION,
    SettingKind::Duration,
    "How long a conversation is kept after its last use.",
)
.with_default("90d")];

/// A conversation with an agent.
#[derive(Clone, Debug, Serialize)]
pub struct Conversation {
    /// Id.
    pub id: String,
    /// Name.
    pub name: Option<String>,
    /// The session that used it last. It may have ended.
    pub session: String,
    /// The context it was held in.
    pub context: Option<String>,
    /// The account it belongs to: the credential that its calls named.
    pub account: Option<String>,
    /// The agent.
    pub agent_url: String,
    /// The agent's id of it.
    pub context_id: Option<String>,
    /// The task that it was last about.
    pub task_id: Option<String>,
    /// State of the task.
    pub task_state: Option<TaskState>,
    /// Start.
    pub started_at: String,
    /// Last use.
    pub used_at: String,
    /// Number of items.
    pub items: i64,
    #[serde(skip)]
    row: ConversationRow,
}

/// Item of a conversation.
#[derive(Clone, Debug, Serialize)]
pub struct ConversationItem {
    /// Number, from 1.
    pub number: i64,
    /// Kind: `sent`, `message`, `status`, `artifact`, `task`, or `failed` for a request that got no reply.
    pub kind: String,
    /// Source: `user`, `agent`, or `client` for what the client noted itself.
    pub source: &'static str,
    /// Time.
    pub at: String,
    /// Body, unchanged.
    pub body: Value,
}

/// Update of a conversation.
#[derive(Clone, Debug, Default)]
pub struct ConversationUpdate {
    /// The agent's id of the conversation.
    pub context_id: Option<String>,
    /// The task it is about.
    pub task_id: Option<String>,
    /// State of the task.
    pub task_state: Option<TaskState>,
    /// Items, by kind.
    pub items: Vec<(&'static str, Value)>,
    /// Message that the items answer. It is stored already, and once more if they belong to another conversation.
    pub sent: Option<Value>,
}

impl ConversationUpdate {
    fn change(&self) -> ConversationChange {
        ConversationChange {
            context_id: self.context_id.clone(),
            task_id: self.task_id.clone(),
            task_state: self.task_state.map(|state| state.as_str().to_owned()),
            items: self.items.iter().map(|(kind, body)| (*kind, body.to_string())).collect(),
            sent: self.sent.as_ref().map(Value::to_string),
        }
    }
}

impl From<ConversationRow> for Conversation {
    fn from(row: ConversationRow) -> Self {
        Conversation {
            id: row.id.clone(),
            name: row.name.clone(),
            session: row.session.clone(),
            context: row.context.clone(),
            account: row.account.clone(),
            agent_url: row.agent.clone(),
            context_id: row.context_id.clone(),
            task_id: row.task_id.clone(),
            task_state: row.task_state.as_deref().map(TaskState::of),
            started_at: rfc3339(row.started_ms),
            used_at: rfc3339(row.used_ms),
            items: row.next_item.saturating_sub(1),
            row,
        }
    }
}

impl Conversation {
    /// The task that a new message answers: one that waits for input or a credential.
    pub fn waiting_task(&self) -> Option<&str> {
        // A message to a task that works would get the task's result as its answer.
        self.task_id.as_deref().filter(|_| self.task_state.is_some_and(TaskState::waits))
    }

    /// Label for people: name or id.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.id)
    }
}

/// The conversations of a user.
pub struct Conversations {
    store: Store,
    user: String,
    /// The credential that the call names.
    account: Option<String>,
    world: World,
}

impl State {
    /// The conversations, to go on with.
    pub fn conversations(&self) -> Result<Conversations> {
        // What an agent has said will not be said again.
        let store = self.store_for_writing_patiently()?;
        Ok(Conversations::of(self, store))
    }

    /// Deletes conversations that have not been used for the time of the setting. Returns the number deleted.
    pub fn expire_conversations(&self) -> Result<usize> {
        let Some(keep) = self.duration(RETENTION)? else { return Ok(0) };
        let keep_ms = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
        let before_ms = self.world().now().as_millisecond().saturating_sub(keep_ms);
        self.store_for_writing()?.expire_conversations(before_ms)
    }

    /// Last used conversation of a session. Reads only a store that is open.
    pub fn last_conversation(&self, session: &Session) -> Result<Option<Conversation>> {
        let row = self.store()?.map(|store| store.last_conversation(&self.account(), session.id.as_str()));
        Ok(row.transpose()?.flatten().map(Conversation::from))
    }

    /// The conversations, to look at; `None` if there never was one.
    pub fn conversations_to_look_at(&self) -> Result<Option<Conversations>> {
        let store = self.fresh_store()?;
        Ok(store.map(|store| Conversations::of(self, store)))
    }
}

impl Conversations {
    fn of(state: &State, store: Store) -> Self {
        let account = state.call().override_of("credential").map(ToString::to_string);
        Conversations { store, user: state.account(), account, world: state.world().clone() }
    }

    /// Current conversation of the call's account with an agent in a session, if any.
    pub fn newest(&self, session: &Session, agent: &str) -> Result<Option<Conversation>> {
        let (session, agent) = (session.id.as_str(), agent_url(agent)?);
        let row = self.store.newest_conversation(&self.user, session, &agent, self.account.as_deref())?;
        Ok(row.map(Conversation::from))
    }

    /// Conversation of a name with an agent in a session. Fails if the name belongs to another agent.
    pub fn named(&self, session: &Session, agent: &str, name: &str) -> Result<Option<Conversation>> {
        let row = self.store.conversation(&self.user, session.id.as_str(), ConversationKey::Name(name))?;
        // One look decides: another process may begin it right now.
        match row.map(Conversation::from) {
            Some(found) if found.agent_url == agent_url(agent)? => {
                self.require_account(&found).map(|()| Some(found))
            }
            Some(_) => Err(ConversationError::Exists(name.to_owned()).into()),
            None => crate::names::check(name, "conversation").map(|()| None),
        }
    }

    /// Conversation with an agent's context id, in a session.
    pub fn of_context(&self, session: &Session, agent: &str, id: &str) -> Result<Option<Conversation>> {
        let agent = agent_url(agent)?;
        let key = ConversationKey::Context(&agent, id);
        Ok(self.store.conversation(&self.user, session.id.as_str(), key)?.map(Conversation::from))
    }

    /// Conversation about an agent's task, in a session.
    pub fn of_task(&self, session: &Session, agent: &str, id: &str) -> Result<Option<Conversation>> {
        let agent = agent_url(agent)?;
        let key = ConversationKey::Task(&agent, id);
        Ok(self.store.conversation(&self.user, session.id.as_str(), key)?.map(Conversation::from))
    }

    /// Conversations, optionally of a session or an agent; the last used first.
    pub fn list(&self, session: Option<&str>, agent: Option<&str>) -> Result<Vec<Conversation>> {
        let agent = agent.map(agent_url).transpose()?;
        let filter = ConversationFilter { session, agent: agent.as_deref(), context: None };
        let rows = self.store.conversations(&self.user, filter)?;
        Ok(rows.into_iter().map(Conversation::from).collect())
    }

    /// Conversation with an agent that was used last in a context, in any session. `None` as context means without a
    /// context.
    pub fn last_of_context(&self, context: Option<&str>, agent: &str) -> Result<Option<Conversation>> {
        let agent = agent_url(agent)?;
        let filter = ConversationFilter { session: None, agent: Some(&agent), context: Some(context) };
        let mut rows = self.store.conversations(&self.user, filter)?.into_iter();
        Ok(rows.find(|row| row.account == self.account).map(Conversation::from))
    }

    /// Makes a conversation one of a later session, which continues it from then on.
    pub fn adopt(&mut self, conversation: &Conversation, session: &Session) -> Result<Conversation> {
        let row = self.store.adopt_conversation(&self.user, &conversation.row, session.id.as_str())?;
        row.map(Conversation::from).ok_or_else(|| not_found(conversation))
    }

    /// Fails unless a conversation belongs to the account of the call.
    fn require_account(&self, conversation: &Conversation) -> Result<()> {
        if conversation.account == self.account {
            return Ok(());
        }
        let (name, account) = (conversation.label().to_owned(), conversation.account.clone());
        Err(ConversationError::OtherAccount { name, account }.into())
    }

    /// Fails unless a conversation belongs to the account of the call and was held in this context.
    pub fn require_binding(&self, conversation: &Conversation, context: Option<&str>) -> Result<()> {
        self.require_account(conversation)?;
        if conversation.context.as_deref() == context {
            return Ok(());
        }
        let (held_in, current) = (conversation.context.clone(), context.map(str::to_owned));
        let name = conversation.label().to_owned();
        Err(ConversationError::OtherContext { name, held_in, current }.into())
    }

    /// Conversation by name, id, prefix of an id, or the agent's context id.
    pub fn find(&self, text: &str, session: Option<&str>) -> Result<Conversation> {
        let all = self.list(session, None)?;
        let named = |one: &&Conversation| one.name.as_deref() == Some(text) || one.id == text;
        let by_context = |one: &&Conversation| one.context_id.as_deref() == Some(text);
        if let Some(found) = all.iter().find(named).or_else(|| all.iter().find(by_context)) {
            return Ok(found.clone());
        }
        let mut begin = all.iter().filter(|one| text.len() >= 8 && one.id.starts_with(text));
        match (begin.next(), begin.next()) {
            (Some(found), None) => Ok(found.clone()),
            _ => Err(ConversationError::NotFound {
                name: text.to_owned(),
                near: nearest(text, all.iter().filter_map(|one| one.name.as_deref())),
            }
            .into()),
        }
    }

    /// Conversation by its id or the first eight or more characters of it, in whatever session.
    pub fn find_by_id(&self, text: &str) -> Result<Option<Conversation>> {
        let mut all = self.list(None, None)?.into_iter();
        let is_meant = |one: &Conversation| text.len() >= 8 && one.id.starts_with(text);
        Ok(all.find(is_meant).filter(|_| !all.any(|other| is_meant(&other))))
    }

    /// Id of a conversation that is not started yet.
    pub fn new_id(&self) -> Result<String> {
        Ok(SessionId::new(self.world.now().as_millisecond())?.to_string())
    }

    /// Starts a conversation with its first items.
    pub fn begin(
        &mut self,
        session: &Session,
        agent: &str,
        (id, name): (String, Option<&str>),
        heard: &ConversationUpdate,
    ) -> Result<Conversation> {
        let now_ms = self.world.now().as_millisecond();
        let mut row = ConversationRow::new(id.clone(), session.id.as_str(), &agent_url(agent)?, now_ms);
        row.name = name.map(str::to_owned);
        row.context.clone_from(&session.context);
        row.account.clone_from(&self.account);
        let row = self.store.begin_conversation(&self.user, &row, &heard.change())?;
        row.map(Conversation::from)
            .ok_or(Error::Conversation(ConversationError::NotFound { name: id, near: None }))
    }

    /// Stores the messages of a conversation and keeps concurrent additions. If the agent replies with another
    /// context id, the reply goes to the conversation of that id.
    pub fn remember(
        &mut self,
        conversation: &Conversation,
        heard: &ConversationUpdate,
    ) -> Result<Conversation> {
        let now_ms = self.world.now().as_millisecond();
        let other = SessionId::new(now_ms)?.to_string();
        let change = heard.change();
        let row = self.store.change_conversation(&self.user, &conversation.row, &change, &other, now_ms)?;
        row.map(Conversation::from).ok_or_else(|| not_found(conversation))
    }

    /// Gives it a name that no other of its session has.
    pub fn rename(&mut self, conversation: &Conversation, name: Option<&str>) -> Result<()> {
        if let Some(name) = name {
            crate::names::check(name, "conversation")?;
        }
        match self.store.rename_conversation(&self.user, &conversation.row, name)? {
            RenameOutcome::Renamed => Ok(()),
            RenameOutcome::NameTaken => {
                Err(ConversationError::Exists(name.unwrap_or_default().to_owned()).into())
            }
            RenameOutcome::NotFound => {
                Err(ConversationError::NotFound { name: conversation.label().to_owned(), near: None }.into())
            }
        }
    }

    /// Deletes them with their messages. Returns the number deleted.
    pub fn forget(&mut self, conversations: &[Conversation]) -> Result<usize> {
        let rows: Vec<ConversationRow> = conversations.iter().map(|one| one.row.clone()).collect();
        self.store.forget_conversations(&self.user, &rows)
    }

    /// Items from a number on, oldest first.
    pub fn items(
        &self,
        conversation: &Conversation,
        from: i64,
        limit: usize,
    ) -> Result<Vec<ConversationItem>> {
        let rows = self.store.conversation_items(&self.user, &conversation.id, from, limit)?;
        let damaged = |item: i64| {
            self.store.damaged(format!("item {item} of conversation {} is not JSON", conversation.id))
        };
        rows.into_iter().map(|row| ConversationItem::of_row(row, damaged)).collect()
    }
}

fn not_found(conversation: &Conversation) -> Error {
    let name = conversation.label().to_owned();
    Error::Conversation(ConversationError::NotFound { name, near: None })
}

impl ConversationItem {
    fn of_row(row: ItemRow, damaged: impl Fn(i64) -> Error) -> Result<Self> {
        let body = crate::json::from_str(&row.body).map_err(|_| damaged(row.number))?;
        Ok(ConversationItem {
            number: row.number,
            source: match row.kind.as_str() {
                "sent" => "user",
                "failed" => "client",
                _ => "agent",
            },
            kind: row.kind,
            at: rfc3339(row.at_ms),
            body,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::App;
    use crate::args::StateArgs;
    use crate::session::NewSession;
    use serde_json::json;

    const AGENT: &str = "http://localhost:8000";

    /// State with a session, in a temporary directory.
    fn state(dir: &std::path::Path) -> State {
        let world = World::empty().with_home(dir);
        State::open(&App::new("sessile"), world, StateArgs::default()).unwrap()
    }

    fn session(state: &State) -> Session {
        let hour = std::time::Duration::from_secs(3600);
        let owner = crate::session::Owner::of(state.world(), None);
        let new = NewSession {
            name: None,
            context: None,
            owner,
            labels: Default::default(),
            idle: hour,
            max: hour,
        };
        state.sessions().unwrap().start(new).unwrap()
    }

    fn heard(context: &str, task: &str, state: TaskState) -> ConversationUpdate {
        ConversationUpdate {
            context_id: Some(context.into()),
            task_id: Some(task.into()),
            task_state: Some(state),
            items: vec![("task", json!({ "id": task }))],
            sent: None,
        }
    }

    #[test]
    fn concurrently_used_name_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (state, mut all) = (state(dir.path()), state(dir.path()).conversations().unwrap());
        let session = session(&state);
        let mut begin = |name| {
            let id = all.new_id().unwrap();
            all.begin(&session, AGENT, (id, name), &ConversationUpdate::default()).unwrap()
        };
        let (one, two) = (begin(Some("one")), begin(None));
        // The name as the store sees it after a check outside the transaction.
        let outcome = all.store.rename_conversation(&all.user, &two.row, Some("one")).unwrap();
        assert_eq!(outcome, RenameOutcome::NameTaken);
        assert!(matches!(
            all.rename(&two, Some("one")),
            Err(Error::Conversation(ConversationError::Exists(name))) if name == "one"
        ));
        all.forget(std::slice::from_ref(&one)).unwrap();
        all.rename(&two, Some("one")).unwrap();
        assert_eq!(
            all.store.rename_conversation(&all.user, &one.row, None).unwrap(),
            RenameOutcome::NotFound
        );
    }

    #[test]
    fn the_one_that_was_used_last_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let (state, mut all) = (state(dir.path()), state(dir.path()).conversations().unwrap());
        let session = session(&state);
        let one = all
            .begin(&session, AGENT, (all.new_id().unwrap(), Some("one")), &ConversationUpdate::default())
            .unwrap();
        let two = all
            .begin(
                &session,
                &format!("{AGENT}/"),
                (all.new_id().unwrap(), None),
                &ConversationUpdate::default(),
            )
            .unwrap();
        assert_eq!(all.newest(&session, "HTTP://LOCALHOST:8000").unwrap().unwrap().id, two.id);
        all.remember(&one, &heard("c1", "t1", TaskState::InputRequired)).unwrap();
        let newest = all.newest(&session, AGENT).unwrap().unwrap();
        assert_eq!(
            (newest.id.as_str(), newest.waiting_task(), newest.items),
            (one.id.as_str(), Some("t1"), 1)
        );
        all.remember(&newest, &heard("c1", "t1", TaskState::Completed)).unwrap();
        let over = all.newest(&session, AGENT).unwrap().unwrap();
        assert_eq!((over.waiting_task(), over.task_id.as_deref()), (None, Some("t1")));
        assert_eq!(all.list(None, None).unwrap().len(), 2);
        assert!(all.newest(&session, "http://localhost:8001").unwrap().is_none());
    }

    #[test]
    fn message_of_another_process_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let state = state(dir.path());
        let session = session(&state);
        let mut here = state.conversations().unwrap();
        let stale = here
            .begin(&session, AGENT, (here.new_id().unwrap(), None), &ConversationUpdate::default())
            .unwrap();
        let mut there = state.conversations().unwrap();
        there.remember(&stale, &heard("c1", "t1", TaskState::Working)).unwrap();
        let more =
            ConversationUpdate { items: vec![("message", json!("later"))], ..ConversationUpdate::default() };
        let after = here.remember(&stale, &more).unwrap();
        assert_eq!((after.context_id.as_deref(), after.items), (Some("c1"), 2));
        let kinds: Vec<String> =
            here.items(&after, 1, 10).unwrap().into_iter().map(|item| item.kind).collect();
        assert_eq!(kinds, ["task", "message"]);
    }

    #[test]
    fn ids_of_two_conversations_are_never_mixed() {
        let dir = tempfile::tempdir().unwrap();
        let state = state(dir.path());
        let session = session(&state);
        let mut all = state.conversations().unwrap();
        let one = all
            .begin(&session, AGENT, (all.new_id().unwrap(), None), &ConversationUpdate::default())
            .unwrap();
        let one = all.remember(&one, &heard("c1", "t1", TaskState::Working)).unwrap();
        let two = all.remember(&one, &heard("c2", "t2", TaskState::Working)).unwrap();
        assert_ne!(one.id, two.id);
        let again = all.remember(&one, &heard("c2", "t3", TaskState::Working)).unwrap();
        assert_eq!(again.id, two.id);
        let first = all.find(&one.id, None).unwrap();
        assert_eq!((first.context_id.as_deref(), first.task_id.as_deref()), (Some("c1"), Some("t1")));
    }

    #[test]
    fn of_two_that_began_at_once_each_has_its_own_context() {
        let dir = tempfile::tempdir().unwrap();
        let state = state(dir.path());
        let session = session(&state);
        let mut all = state.conversations().unwrap();
        let stale = all
            .begin(&session, AGENT, (all.new_id().unwrap(), Some("one")), &ConversationUpdate::default())
            .unwrap();
        all.remember(&stale, &heard("c1", "t1", TaskState::Working)).unwrap();
        let other = all.remember(&stale, &heard("c2", "t2", TaskState::Working)).unwrap();
        assert_ne!(other.id, stale.id);
        assert_eq!(all.find(&stale.id, None).unwrap().context_id.as_deref(), Some("c1"));
        let late = all
            .begin(
                &session,
                AGENT,
                (all.new_id().unwrap(), Some("one")),
                &heard("c3", "t3", TaskState::Working),
            )
            .unwrap();
        assert_eq!((late.name, late.items), (None, 1));
    }

    #[test]
    fn where_a_task_stands_says_nothing_about_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let state = state(dir.path());
        let session = session(&state);
        let mut all = state.conversations().unwrap();
        let one = all
            .begin(&session, AGENT, (all.new_id().unwrap(), None), &heard("c1", "t1", TaskState::Completed))
            .unwrap();
        assert_eq!(one.waiting_task(), None);
        let next = ConversationUpdate { task_id: Some("t2".into()), ..ConversationUpdate::default() };
        let next = all.remember(&one, &next).unwrap();
        assert_eq!((next.waiting_task(), next.task_state), (None, None));
        let asks = ConversationUpdate {
            task_state: Some(TaskState::InputRequired),
            ..ConversationUpdate::default()
        };
        assert_eq!(all.remember(&next, &asks).unwrap().waiting_task(), Some("t2"));
    }

    #[test]
    fn names_are_per_user_and_cleared_conversations_are_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let state = state(dir.path());
        let session = session(&state);
        let mut all = state.conversations().unwrap();
        let one = all
            .begin(&session, AGENT, (all.new_id().unwrap(), Some("one")), &ConversationUpdate::default())
            .unwrap();
        let two = all
            .begin(&session, AGENT, (all.new_id().unwrap(), None), &ConversationUpdate::default())
            .unwrap();
        assert!(matches!(
            all.rename(&two, Some("one")),
            Err(Error::Conversation(ConversationError::Exists(_)))
        ));
        all.rename(&two, Some("two")).unwrap();
        assert_eq!(all.find("two", None).unwrap().id, two.id);
        assert_eq!(all.forget(&[one.clone(), two]).unwrap(), 2);
        assert!(matches!(
            all.remember(&one, &ConversationUpdate::default()),
            Err(Error::Conversation(ConversationError::NotFound { .. }))
        ));
        assert!(all.list(None, None).unwrap().is_empty());
    }
}
