//! Replies: collected, shown, and saved.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sessile::conversation::TaskState;
use sessile::text::{shell_quoted, shown, shown_lines};
use sessile_wire::a2a::{AgentEvent, AgentReply, ArtifactUpdate, Part};

use super::exchange::EventReceiver;
use super::open_line::OpenLine;
use crate::agent_session::{ConversationLog, save_reply};
use crate::cli::Cx;
use crate::error::{AgentError, Failure, Outcome};
use crate::output::SlowStep;
use crate::view::{ArtifactView, ChangePlace, EventView, ReplyView};

/// Collects the events of a reply, and shows them as they arrive if it streams.
pub(crate) struct ReplyCollector<'a> {
    cx: &'a Cx,
    agent: &'a str,
    dir: Option<&'a Path>,
    streams: bool,
    /// Whether the agent's JSON is printed unchanged.
    is_raw: bool,
    open_line: Option<OpenLine>,
    reply: AgentReply,
    /// Wait for the reply, if it is printed at its end.
    wait: Option<SlowStep>,
}

impl<'a> ReplyCollector<'a> {
    /// Collector that shows the reply at its end.
    pub(crate) fn new(cx: &'a Cx, agent: &'a str, dir: Option<&'a Path>) -> Self {
        let reply = AgentReply::default();
        ReplyCollector { cx, agent, dir, streams: false, is_raw: false, open_line: None, reply, wait: None }
    }

    /// With a progress line until the reply is complete.
    pub(crate) fn with_progress(mut self) -> Self {
        self.wait = Some(self.cx.out.slow_step(|| format!("waiting for {}", self.agent)));
        self
    }

    /// Ends the progress line.
    pub(crate) fn end_wait(&mut self) {
        self.wait = None;
    }

    /// Prints events as they arrive.
    pub(crate) fn streaming(mut self) -> Self {
        self.streams = true;
        self
    }

    /// The same, but the agent's JSON is printed unchanged.
    pub(crate) fn with_raw(mut self, is_raw: bool) -> Self {
        self.is_raw = is_raw;
        self
    }

    fn show(&mut self, event: &AgentEvent) {
        let new = self.reply.take(event);
        if !self.streams {
            // What the agent says while it works shows that it does.
            if let (AgentEvent::Status(_), [Part::Text(text)], Some(wait)) =
                (event, new.as_slice(), &self.wait)
            {
                wait.update(&format!("waiting for {}: {text}", self.agent));
            }
            return;
        }
        if self.is_raw {
            // A closed standard output must not end the stream: later events are still stored.
            let _ = self.cx.out.protocol_json(&wrapped(event_field(event), event.raw().clone()), true);
            return;
        }
        let text = parts_text(&new);
        let mut goes_on = false;
        if !text.is_empty() {
            let continued = self.open_line.as_ref().and_then(|line| line.continued(event, &text));
            if self.open_line.is_some() && continued.is_none() {
                self.cx.out.end_line();
            }
            // Chunks of one text belong together.
            goes_on = new.iter().all(Part::is_text)
                && match event {
                    AgentEvent::Artifact(artifact) => !artifact.is_last_chunk,
                    event => !event.is_final(),
                };
            let line = continued.or_else(|| OpenLine::begun(event, &text));
            goes_on &= line.is_some();
            self.open_line = line.filter(|_| goes_on && !text.ends_with('\n'));
        }
        self.cx.out.event(&EventView::from(event), &text, goes_on);
    }

    /// Ends a line of text that events left open, and returns the reply.
    pub(crate) fn close(self) -> AgentReply {
        if self.open_line.is_some() {
            self.cx.out.end_line();
        }
        self.reply
    }

    /// Saves the files of the reply, prints it and the command that continues. Fails if the reply or a file could not be
    /// stored.
    pub(crate) fn finish(self, log: ConversationLog<'_>) -> Outcome {
        let (cx, agent, task) = (self.cx, self.agent.to_owned(), log.task_id.clone());
        let (saved, failure) = match self.dir {
            Some(dir) => save_reply(&cx.state.absolute(dir), &self.reply),
            None => (Vec::new(), None),
        };
        // The agent sends a reply once, so it is printed before anything fails.
        let printed = self.print(log, &saved);
        let Some(error) = failure else { return printed };
        let unsaved = AgentError::FilesNotSaved { agent, task, reason: error.to_string() };
        match printed {
            Ok(()) | Err(Failure::Told(_)) => Err(unsaved.into()),
            Err(other) => {
                cx.out.note(&unsaved.to_string());
                Err(other)
            }
        }
    }

    fn print(self, log: ConversationLog<'_>, saved: &[PathBuf]) -> Outcome {
        let ReplyCollector { cx, agent, dir, streams, is_raw, open_line, reply, .. } = self;
        if open_line.is_some() {
            cx.out.end_line();
        }
        let (state, parts) = (reply.state(), reply.parts());
        let view = ReplyView {
            state,
            context_id: log.context_id.clone(),
            task_id: log.task_id.clone(),
            conversation: log.conversation().map(|one| one.id.clone()),
            artifacts: reply.artifacts().iter().map(ArtifactView::from).collect(),
            saved: saved.iter().map(|path| path.to_string_lossy().into_owned()).collect(),
            ..ReplyView::new(agent, reply.text(), reply.raw())
        };
        if is_raw {
            if let Some(raw) = reply.raw().filter(|_| !streams) {
                let field = if reply.message().is_some() { "message" } else { "task" };
                cx.out.protocol_json(&wrapped(field, raw), false)?;
            }
            log.into_saved()?;
            return match state {
                Some(TaskState::Failed | TaskState::Rejected) => Err(Failure::Told(sessile::exit::FAILED)),
                _ => Ok(()),
            };
        }
        let place = cx.place(log.session());
        cx.reply(&place, &view, || {
            let mut text = String::new();
            let shown_parts = reply_text(&reply);
            if !streams && !shown_parts.is_empty() {
                text.push_str(&shown_lines(shown_parts.trim_end_matches('\n')));
                text.push('\n');
            }
            for path in &view.saved {
                text.push_str(&format!("saved {}\n", shown(path)));
            }
            text
        })?;
        for (label, id) in [("context-id", &log.context_id), ("task-id", &log.task_id)] {
            if let Some(id) = id {
                cx.out.detail(&format!("{label}: {}", shown(id)));
            }
        }
        match log.conversation() {
            Some(one) => {
                cx.out.detail(&format!("saved in conversation {} of session {}", one.id, one.session));
            }
            None => cx.out.detail("the conversation was not saved"),
        }
        let is_file = |part: &Part| matches!(part, Part::File { .. } | Part::TextFile { .. });
        let has_files = parts.iter().any(is_file) && dir.is_none();
        cx.out.aside(&summary(cx, agent, &log, &place, state, has_files));
        log.into_saved()?;
        match state {
            Some(TaskState::Failed | TaskState::Rejected) => Err(Failure::Told(sessile::exit::FAILED)),
            _ => Ok(()),
        }
    }
}

impl EventReceiver for ReplyCollector<'_> {
    fn take(&mut self, event: &AgentEvent) {
        self.show(event);
    }

    fn reply(&self) -> &AgentReply {
        &self.reply
    }
}

/// One line below a reply: its context, its state, and the command that continues. The line is empty if the reply says it all.
fn summary(
    cx: &Cx,
    agent: &str,
    log: &ConversationLog<'_>,
    place: &ChangePlace,
    state: Option<TaskState>,
    has_unsaved_files: bool,
) -> String {
    let mut facts: Vec<String> = place.selected_words().into_iter().filter(|_| cx.out.is_text()).collect();
    if has_unsaved_files {
        let save = match &log.task_id {
            Some(task) => format!(
                "save its files: sessile task get {} --url {} --save-artifacts DIR",
                shell_quoted(task),
                shell_quoted(agent)
            ),
            None => "save its files: --save-artifacts DIR".to_owned(),
        };
        facts.push(save);
    }
    if let Some(state) = state.filter(|state| *state != TaskState::Completed) {
        let task = log.task_id.as_deref().map_or_else(String::new, |task| format!(" {}", shown(task)));
        facts.push(format!("task{task} is {state}"));
    }
    if cx.out.is_text() && !log.is_stored() {
        facts.push(format!(
            "the conversation was not stored; pass --session NAME, or continue: {}",
            continuing(cx, agent, log, state)
        ));
    } else if cx.out.is_text() && (cx.state.world().streams().stdout || log.needs_id()) {
        facts.push(format!("continue: {}", continuing(cx, agent, log, state)));
    }
    facts.join("; ")
}

/// Reply for people: its parts in order. Where it has several artifacts, each is named.
fn reply_text(reply: &AgentReply) -> String {
    match reply.artifacts() {
        artifacts @ [_, _, ..] if reply.message().is_none() => {
            let mut pieces: Vec<String> = artifacts.iter().map(artifact_text).collect();
            let in_artifacts = artifacts.iter().map(|artifact| artifact.parts().len()).sum::<usize>();
            // The message of the status comes after the artifacts.
            pieces.extend(reply.parts().iter().skip(in_artifacts).map(part_text));
            pieces.join("\n")
        }
        _ => parts_text(&reply.parts()),
    }
}

/// Artifact for people, under its name.
pub(crate) fn artifact_text(artifact: &ArtifactUpdate) -> String {
    let name = artifact.name.as_deref().or(artifact.artifact_id.as_deref()).unwrap_or("-");
    let parts = parts_text(&artifact.parts());
    let parts = if parts.is_empty() { "[no content]".to_owned() } else { parts };
    format!("[artifact {}]\n{parts}", shown(name))
}

/// Parts for people, each on lines of its own.
pub(crate) fn parts_text(parts: &[Part]) -> String {
    parts.iter().map(part_text).collect::<Vec<_>>().join("\n")
}

fn part_text(part: &Part) -> String {
    match part {
        Part::Text(_) | Part::TextFile { .. } | Part::Data(_) => part.summary(),
        // A name with line breaks could look like a text of its own.
        _ => shown(part.summary()),
    }
}

/// Name of the field that holds an event in version 1.0 of the protocol.
fn event_field(event: &AgentEvent) -> &'static str {
    match event {
        AgentEvent::Task(_) => "task",
        AgentEvent::Message(_) => "message",
        AgentEvent::Status(_) => "statusUpdate",
        AgentEvent::Artifact(_) => "artifactUpdate",
    }
}

/// Object of the protocol in the field that tells its kind. In version 0.3 the object itself does.
fn wrapped(field: &str, raw: Value) -> Value {
    if raw.get("kind").is_some() { raw } else { json!({ field: raw }) }
}

/// The command that continues the conversation, as this one was called.
fn continuing(cx: &Cx, agent: &str, log: &ConversationLog<'_>, state: Option<TaskState>) -> String {
    let named = cx.state.agent(agent).ok().and_then(|agent| agent.name);
    let mut command = format!("sessile message send {}", shell_quoted(named.as_deref().unwrap_or(agent)));
    if let Some(conversation) = log.conversation().filter(|_| log.needs_id()) {
        return format!("sessile message send --continue={} \"...\"", shell_quoted(&conversation.id));
    }
    match (log.session(), &cx.state.args().session) {
        (Some(session), Some(_)) => {
            command.push_str(&format!(" --session {}", shell_quoted(session.label())));
        }
        (Some(_), None) => {}
        (None, _) => {
            // An agent refuses a message for a task that has ended.
            let task_id = log.task_id.as_ref().filter(|_| state.is_some_and(TaskState::waits));
            for (flag, id) in [("--context-id", log.context_id.as_ref()), ("--task-id", task_id)] {
                if let Some(id) = id {
                    command.push_str(&format!(" {flag} {}", shell_quoted(id)));
                }
            }
        }
    }
    command + " \"...\""
}
