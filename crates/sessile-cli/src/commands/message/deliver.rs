//! Replies: collected, shown, and saved.

use std::path::Path;

use sessile::conversation::TaskState;
use sessile::text::{shell_quoted, shown, shown_lines};
use sessile_wire::a2a::{AgentEvent, AgentReply, Part};

use crate::agent_session::{ConversationLog, save_artifact, save_parts};
use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::view::{ArtifactView, EventView, ReplyView};

/// Collects the events of a reply, and shows them as they arrive if it streams.
pub(crate) struct ReplyCollector<'a> {
    cx: &'a Cx,
    agent: &'a str,
    dir: Option<&'a Path>,
    streams: bool,
    /// Whether the last output left its line open.
    is_line_open: bool,
    pub(crate) reply: AgentReply,
}

impl<'a> ReplyCollector<'a> {
    /// Collector that shows the reply at its end.
    pub(crate) fn new(cx: &'a Cx, agent: &'a str, dir: Option<&'a Path>) -> Self {
        ReplyCollector { cx, agent, dir, streams: false, is_line_open: false, reply: AgentReply::default() }
    }

    /// The same, but events are shown as they arrive.
    pub(crate) fn streaming(mut self) -> Self {
        self.streams = true;
        self
    }

    /// Takes an event, which is stored already.
    pub(crate) fn take(&mut self, event: &AgentEvent) {
        let new = self.reply.take(event);
        if !self.streams {
            // What the agent says while it works shows that it does.
            if let (AgentEvent::Status(_), [Part::Text(text)]) = (event, new.as_slice()) {
                self.cx.out.progress(&format!("waiting for {}: {}", self.agent, shown(text)));
            }
            return;
        }
        // Chunks of one text belong together.
        let is_chunk = matches!(event, AgentEvent::Artifact(artifact) if !artifact.is_last_chunk)
            && new.iter().all(Part::is_text);
        let text = summary(&new);
        if !text.is_empty() {
            if self.is_line_open && !matches!(event, AgentEvent::Artifact(_)) {
                self.cx.out.end_line();
            }
            self.is_line_open = is_chunk && !text.ends_with('\n');
        }
        self.cx.out.event(&EventView::from(event), &text, is_chunk);
    }

    /// Prints the reply and the command that continues. Fails if the reply could not be stored.
    pub(crate) fn finish(self, log: ConversationLog<'_>) -> Outcome {
        let ReplyCollector { cx, agent, dir, streams, is_line_open, reply } = self;
        if is_line_open {
            cx.out.end_line();
        }
        let mut saved = Vec::new();
        if let Some(dir) = dir.map(|dir| cx.state.absolute(dir)) {
            for artifact in reply.artifacts() {
                saved.extend(save_artifact(&dir, artifact)?);
            }
            let files = reply.message().into_iter().flat_map(|message| message.parts());
            saved.extend(save_parts(&dir, "message", files.filter(|part| !part.is_text()).collect())?);
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
        cx.changed_at(&cx.place(log.session()), &view, || {
            let mut text = String::new();
            let shown_parts = summary(&parts);
            if !streams && !shown_parts.is_empty() {
                text.push_str(&shown_lines(shown_parts.trim_end_matches('\n')));
                text.push('\n');
            }
            for path in &view.saved {
                text.push_str(&format!("saved {}\n", shown(path)));
            }
            text
        })?;
        let has_files = parts.iter().any(|part| matches!(part, Part::File { .. }));
        if has_files && dir.is_none() {
            cx.out.note("the reply has files: --save-artifacts DIR saves them");
        }
        if let Some(state) = state.filter(|state| *state != TaskState::Completed) {
            let task = log.task_id.as_deref().map_or_else(String::new, |task| format!(" {}", shown(task)));
            cx.out.note(&format!("task{task} is {state}"));
        }
        // Only a person can use the advice.
        if cx.out.is_text() && cx.state.world().streams().stdout {
            cx.out.note(&format!("continue: {}", continuing(cx, agent, &log)));
        }
        log.into_saved()?;
        match state {
            Some(TaskState::Failed | TaskState::Rejected) => Err(Failure::Told(sessile::exit::FAILED)),
            _ => Ok(()),
        }
    }
}

/// Parts for people, each on lines of its own.
fn summary(parts: &[Part]) -> String {
    let line = |part: &Part| match part {
        Part::Text(_) | Part::Data(_) => part.summary(),
        // A name with line breaks could look like a text of its own.
        _ => shown(part.summary()),
    };
    parts.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The command that continues the conversation, as this one was called.
fn continuing(cx: &Cx, agent: &str, log: &ConversationLog<'_>) -> String {
    let named = cx.state.agent(agent).ok().and_then(|agent| agent.name);
    let mut command = format!("sessile message send {}", shell_quoted(named.as_deref().unwrap_or(agent)));
    match (log.session(), &cx.state.args().session) {
        (Some(session), Some(_)) => {
            command.push_str(&format!(" --session {}", shell_quoted(session.label())));
        }
        (Some(_), None) => {}
        (None, _) => {
            for (flag, id) in [("--context-id", &log.context_id), ("--task-id", &log.task_id)] {
                if let Some(id) = id {
                    command.push_str(&format!(" {flag} {}", shell_quoted(id)));
                }
            }
        }
    }
    command + " \"...\""
}
