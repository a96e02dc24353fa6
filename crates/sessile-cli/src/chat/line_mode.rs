//! The chat without a capable terminal: every line is a message or a command, replies go to standard output, everything else to
//! standard error.
//!
//! A person sees failures and goes on. In a pipe the first failure ends the chat with its exit status, so that a script stops.

use std::io::{self, BufRead, Read, Write};
use std::path::PathBuf;
use std::rc::Rc;

use sessile::confirm::can_ask;
use sessile::error::UsageError;
use sessile::session::Session;
use sessile::text::{shown, shown_lines};
use sessile_wire::a2a::{AgentEvent, AgentReply, Part, TaskState};

use super::attachment;
use super::command::{ArtifactRange, COMMANDS, ChatCommand, ChatInput, CopySource};
use super::engine::ChatFailure;
use super::jobs::{self, MessageRequest};
use super::model::{ChatConversation, ConversationIds, EntryAuthor};
use crate::agent_session::{AgentArgs, ConversationSelector, resolve_agent, save_parts};
use crate::cli::Cx;
use crate::commands::message::{EventReceiver, LARGEST, ReplyCollector};
use crate::error::{Failure, Outcome};
use crate::terminal_prompt;

/// Start of a chat: agent, conversation and flags.
#[derive(Clone, Debug)]
pub(crate) struct ChatStart {
    /// Name or URL of the agent.
    pub(crate) agent: String,
    /// Conversation.
    pub(crate) selector: ConversationSelector,
    /// Task to follow first.
    pub(crate) task: Option<String>,
    /// Flags of the requests.
    pub(crate) reach: AgentArgs,
    /// Directory of saved artifacts.
    pub(crate) save_dir: PathBuf,
}

/// Chat over lines.
struct LineChat<'a> {
    cx: &'a Cx,
    start: ChatStart,
    chat: ChatConversation,
    attachments: Vec<Part>,
    session: Option<Rc<Session>>,
    is_person: bool,
}

/// Whether the chat goes on after a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineOutcome {
    Continue,
    Quit,
}

/// Reads lines until the end of standard input.
pub(crate) fn run(cx: &Cx, start: ChatStart) -> Outcome {
    if !cx.out.prints_events() {
        let text = "chat prints one event after the other; pass --output jsonl";
        return Err(UsageError::Arguments(text.into()).into());
    }
    let chat = jobs::load(cx, &start.agent, &start.selector)?;
    let is_person = can_ask(&cx.state);
    let mut lines = LineChat { cx, start, chat, attachments: Vec::new(), session: None, is_person };
    lines.greet()?;
    let first = lines.start.task.clone();
    if let Some(task) = first {
        let watched = lines.watch(&task);
        lines.settle(watched)?;
    }
    lines.read()
}

impl LineChat<'_> {
    /// Tells a person whom the chat is with.
    fn greet(&self) -> Outcome {
        if self.is_person {
            let named = resolve_agent(self.cx, &self.start.agent)?;
            let count = self.chat.entries.iter().filter(|entry| entry.author == EntryAuthor::User).count();
            let state = match count {
                0 => "new conversation".to_owned(),
                count => format!("continuing after {count} messages"),
            };
            self.cx.out.note(&format!("chat with {}; {state}; /help lists commands", shown(&named.url)));
        }
        if let Some(question) = self.chat.question() {
            self.cx.out.note(&format!("the agent asked: {}", shown_lines(&question.text())));
        }
        Ok(())
    }

    fn read(&mut self) -> Outcome {
        let mut input = io::stdin().lock();
        loop {
            if self.is_person {
                let mark = if self.chat.question().is_some() { "? " } else { "> " };
                let _ = io::stderr().write_all(mark.as_bytes());
            }
            let mut line = Vec::new();
            input.by_ref().take(LARGEST + 1).read_until(b'\n', &mut line).map_err(Failure::Output)?;
            if line.is_empty() {
                break;
            }
            if line.len() as u64 > LARGEST {
                return Err(UsageError::Arguments(format!("a line is longer than {LARGEST} bytes")).into());
            }
            let line = String::from_utf8(line)
                .map_err(|_| UsageError::Arguments("standard input is not valid UTF-8".into()))?;
            let taken = self.take(&line);
            if self.settle(taken)? == Some(LineOutcome::Quit) {
                return Ok(());
            }
        }
        if self.is_person {
            // Ctrl-D leaves the cursor behind the prompt.
            let _ = io::stderr().write_all(b"\n");
        }
        if let (Some(state), Some(task)) = (self.chat.task_state, &self.chat.ids.task_id)
            && !state.is_terminal()
        {
            self.cx.out.note(&format!("task {} is {state}", shown(task)));
        }
        Ok(())
    }

    /// A person sees a failure and goes on; a script stops.
    fn settle<T>(&self, result: Result<T, Failure>) -> Result<Option<T>, Failure> {
        match result {
            Ok(done) => Ok(Some(done)),
            Err(failure) if self.is_person => {
                if let Some(failure) = ChatFailure::of(&failure) {
                    self.cx.out.note(&failure.to_string());
                }
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    fn take(&mut self, line: &str) -> Result<LineOutcome, Failure> {
        match ChatInput::parse(line) {
            // A message may consist of attachments only.
            ChatInput::Empty if self.attachments.is_empty() || !self.is_person => {}
            ChatInput::Empty => self.send(Vec::new())?,
            ChatInput::Message(text) => self.send(vec![Part::Text(text)])?,
            ChatInput::Invalid(reason) => return Err(UsageError::Arguments(reason).into()),
            ChatInput::Command(command) => return self.command(command),
        }
        Ok(LineOutcome::Continue)
    }

    fn command(&mut self, command: ChatCommand) -> Result<LineOutcome, Failure> {
        let note = |text: &str| self.cx.out.note(text);
        match command {
            ChatCommand::Quit | ChatCommand::Close => return Ok(LineOutcome::Quit),
            ChatCommand::Help => {
                for (usage, help) in COMMANDS {
                    note(&format!("{usage:<42} {help}"));
                }
                note("//TEXT sends a message that begins with a slash");
            }
            ChatCommand::New => {
                self.chat = ChatConversation::default();
                self.start.selector = ConversationSelector { new: true, ..ConversationSelector::default() };
            }
            ChatCommand::Agents(None) => {
                for choice in jobs::choices(&self.cx.state)? {
                    note(&format!("{}  {}", shown(&choice.agent), shown(&choice.detail)));
                }
            }
            ChatCommand::Agents(Some(agent)) => {
                resolve_agent(self.cx, &agent)?;
                self.start.selector = ConversationSelector::default();
                self.chat = jobs::load(self.cx, &agent, &self.start.selector)?;
                self.start.agent = agent;
                self.greet()?;
            }
            ChatCommand::Artifacts => {
                for (at, artifact) in self.chat.artifacts().iter().enumerate() {
                    note(&format!("{} {} ({})", at + 1, shown(&artifact.name), shown(artifact.facts())));
                }
            }
            ChatCommand::Save(range, dir) => self.save(range, dir)?,
            ChatCommand::Attach(name) => self.attachments.push(attachment::file(self.cx, &name)?),
            ChatCommand::Data(text) => self.attachments.push(attachment::data(self.cx, &text)?),
            ChatCommand::Detach => self.attachments.clear(),
            ChatCommand::Watch(task) => {
                let task = task.or_else(|| self.chat.ids.task_id.clone());
                let task = task.ok_or_else(|| no_task("follow"))?;
                self.watch(&task)?;
            }
            ChatCommand::Cancel => {
                let task = self.chat.ids.task_id.clone().ok_or_else(|| no_task("cancel"))?;
                let canceled = jobs::cancel(self.cx, &self.start.reach, &self.start.agent, &task, None)?;
                self.chat.take(&AgentEvent::Task(canceled));
                note(&format!("canceled task {}", shown(&task)));
            }
            ChatCommand::Card => {
                let card = jobs::card(self.cx, &self.start.reach, &self.start.agent, None)?;
                note(&sessile::text::json_safe(&format!("{:#}", card.raw)));
            }
            ChatCommand::Search(text) => {
                let wanted = text.to_lowercase();
                for entry in &self.chat.entries {
                    for line in entry.text().lines().filter(|line| line.to_lowercase().contains(&wanted)) {
                        note(&format!("{}: {}", author_word(entry.author), shown(line)));
                    }
                }
            }
            ChatCommand::Ids
            | ChatCommand::Copy(CopySource::Conversation | CopySource::Context | CopySource::Task) => {
                let ConversationIds { conversation, context_id, task_id } = &self.chat.ids;
                for (label, id) in
                    [("conversation", conversation), ("context-id", context_id), ("task-id", task_id)]
                {
                    note(&format!("{label} {}", shown(id.as_deref().unwrap_or("-"))));
                }
            }
            ChatCommand::Copy(CopySource::Artifact(_)) => {
                for (number, artifact) in (1..).zip(self.chat.artifacts()) {
                    note(&format!("artifact {number} {}", shown(artifact.id.as_deref().unwrap_or("-"))));
                }
            }
            ChatCommand::Forget => self.forget()?,
            ChatCommand::Copy(CopySource::Reply)
            | ChatCommand::Open(_)
            | ChatCommand::Wire
            | ChatCommand::Theme(_) => {
                let text = "this command requires the full-screen chat; --debug prints the wire log";
                return Err(UsageError::Arguments(text.into()).into());
            }
        }
        Ok(LineOutcome::Continue)
    }

    fn send(&mut self, mut parts: Vec<Part>) -> Outcome {
        parts.extend(self.attachments.iter().cloned());
        if self.session.is_none() {
            self.session = crate::agent_session::session(self.cx, "chat")?;
        }
        let selector = self.chat.selector(&self.start.selector);
        self.chat.push_sent(&parts);
        let (cx, start) = (self.cx, &self.start);
        let url = resolve_agent(cx, &start.agent)?.url;
        let mut receiver = LineReceiver::new(cx, &url, &mut self.chat);
        let mut ids = ConversationIds::default();
        let request = MessageRequest { agent: &start.agent, selector: &selector, parts };
        let session = self.session.clone();
        let sent = jobs::send(cx, session, &start.reach, request, None, &mut receiver, &mut |now| ids = now);
        let state = receiver.close();
        self.chat.take_ids(ids);
        sent?;
        self.attachments.clear();
        self.finish(state)
    }

    fn watch(&mut self, task: &str) -> Outcome {
        let selector = self.chat.watch_selector(task);
        let (cx, start) = (self.cx, &self.start);
        let url = resolve_agent(cx, &start.agent)?.url;
        let mut receiver = LineReceiver::new(cx, &url, &mut self.chat);
        let mut ids = ConversationIds::default();
        let target = (start.agent.as_str(), task);
        let watched =
            jobs::watch(cx, &start.reach, target, &selector, None, &mut receiver, &mut |now| ids = now);
        let state = receiver.close();
        self.chat.take_ids(ids);
        watched?;
        self.finish(state)
    }

    fn finish(&self, state: Option<TaskState>) -> Outcome {
        if let Some(state) = state.filter(|state| *state != TaskState::Completed) {
            let task = self.chat.ids.task_id.as_deref().unwrap_or_default();
            self.cx.out.note(&format!("task {} is {state}", shown(task)));
        }
        match state {
            Some(TaskState::Failed | TaskState::Rejected) if !self.is_person => {
                Err(Failure::Told(sessile::exit::FAILED))
            }
            _ => Ok(()),
        }
    }

    fn save(&self, range: ArtifactRange, dir: Option<String>) -> Outcome {
        let dir = self.cx.state.absolute(dir.map(PathBuf::from).as_ref().unwrap_or(&self.start.save_dir));
        for artifact in self.chat.artifacts_in(range).map_err(UsageError::Arguments)? {
            for path in save_parts(&dir, &artifact.name, artifact.parts)? {
                self.cx.out.note(&format!("saved {}", shown(path.display())));
            }
        }
        Ok(())
    }

    fn forget(&mut self) -> Outcome {
        if let Some(id) = self.chat.ids.conversation.clone() {
            terminal_prompt::confirm(&self.cx.state, "forget this conversation and its messages")?;
            jobs::forget(&self.cx.state, &id)?;
            self.cx.out.note(&format!("forgot conversation {}", shown(&id)));
        }
        self.chat = ChatConversation::default();
        self.start.selector = ConversationSelector { new: true, ..ConversationSelector::default() };
        Ok(())
    }
}

fn no_task(verb: &str) -> Failure {
    UsageError::Arguments(format!("this conversation has no task to {verb}")).into()
}

fn author_word(author: EntryAuthor) -> &'static str {
    match author {
        EntryAuthor::User => "you",
        EntryAuthor::Agent => "agent",
        EntryAuthor::Client => "note",
    }
}

/// Prints a reply as it arrives, and adds it to the conversation.
struct LineReceiver<'a> {
    collector: ReplyCollector<'a>,
    chat: &'a mut ChatConversation,
}

impl<'a> LineReceiver<'a> {
    fn new(cx: &'a Cx, url: &'a str, chat: &'a mut ChatConversation) -> Self {
        LineReceiver { collector: ReplyCollector::new(cx, url, None).streaming(), chat }
    }

    /// Ends the printed text, and returns the state of the task.
    fn close(self) -> Option<TaskState> {
        self.collector.close().state()
    }
}

impl EventReceiver for LineReceiver<'_> {
    fn take(&mut self, event: &AgentEvent) {
        self.collector.take(event);
        self.chat.take(event);
    }

    fn reply(&self) -> &AgentReply {
        self.collector.reply()
    }
}
