//! Replies: stored, shown, and saved.

use std::path::Path;

use serde_json::Value;
use sessile::conversation::TaskState;
use sessile::text::{shell_quoted, shown, shown_lines};
use sessile_wire::a2a::{AgentEvent, ArtifactUpdate};

use crate::agent_session::{ConversationLog, save};
use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::view::{ArtifactView, ReplyView};

/// Collects the events of a reply: texts, artifacts and the state of the task.
pub(crate) struct ReplyCollector<'a> {
    cx: &'a Cx,
    agent: &'a str,
    dir: Option<&'a Path>,
    texts: Vec<String>,
    /// Whether the last output left its line open.
    pub(crate) is_line_open: bool,
    /// Artifacts, with their chunks joined.
    artifacts: Vec<ArtifactUpdate>,
    last: Option<Value>,
    state: Option<TaskState>,
}

impl<'a> ReplyCollector<'a> {
    pub(crate) fn new(cx: &'a Cx, agent: &'a str, dir: Option<&'a Path>) -> Self {
        ReplyCollector {
            cx,
            agent,
            dir,
            texts: Vec::new(),
            is_line_open: false,
            artifacts: Vec::new(),
            last: None,
            state: None,
        }
    }

    /// Takes in what the agent said, which is remembered already; the text in it.
    pub(crate) fn take(&mut self, event: &AgentEvent) -> String {
        self.state = event.state().or(self.state);
        let artifacts: Vec<ArtifactUpdate> = match event {
            AgentEvent::Task(task) => task.artifacts(),
            AgentEvent::Artifact(artifact) => vec![artifact.clone()],
            _ => Vec::new(),
        };
        for artifact in artifacts {
            let known = self.artifacts.iter_mut().find(|known| known.artifact_id == artifact.artifact_id);
            match known {
                Some(known) if artifact.is_append => known.append(&artifact),
                // A task repeats its artifacts whole, so chunks that came before are replaced.
                Some(known) => *known = artifact,
                None => self.artifacts.push(artifact),
            }
        }
        // What the user said, an agent may repeat.
        if matches!(event, AgentEvent::Message(message) if message.is_user) {
            return String::new();
        }
        let text = event.text();
        let is_piece = matches!(event, AgentEvent::Artifact(artifact) if artifact.is_append);
        match self.texts.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if is_piece => last.push_str(&text),
            _ => self.texts.push(text.clone()),
        }
        self.last = Some(event.raw().clone());
        text
    }

    /// Last known state of the task.
    pub(crate) fn state(&self) -> Option<TaskState> {
        self.state
    }

    /// The end of it: the reply, and the command that goes on.
    pub(crate) fn finish(self, memory: &ConversationLog<'_>, with_text: bool) -> Outcome {
        let ReplyCollector { cx, agent, dir, texts, is_line_open, artifacts, last, state } = self;
        if is_line_open {
            cx.out.end_line();
        }
        let mut saved = Vec::new();
        if let Some(dir) = dir.map(|dir| cx.state.absolute(dir)) {
            for artifact in &artifacts {
                saved.extend(save(&dir, artifact)?.iter().map(|path| path.to_string_lossy().into_owned()));
            }
        }
        let reply = ReplyView {
            state,
            context_id: memory.context_id.clone(),
            task_id: memory.task_id.clone(),
            conversation: memory.conversation().map(|one| one.id.clone()),
            artifacts: artifacts.iter().map(ArtifactView::from).collect(),
            saved,
            ..ReplyView::new(agent, texts.join("\n"), last)
        };
        cx.changed_at(&cx.place(memory.session()), &reply, || {
            let ReplyView { artifacts, saved, .. } = &reply;
            let mut text = String::new();
            if with_text {
                for said in &texts {
                    text.push_str(&shown_lines(said));
                    text.push('\n');
                }
            }
            if texts.is_empty() && saved.is_empty() && !artifacts.is_empty() {
                let count = artifacts.len();
                text.push_str(&format!(
                    "({count} artifact(s) without a text: --save-artifacts DIR saves them)\n"
                ));
            }
            for path in saved {
                text.push_str(&format!("saved {}\n", shown(path)));
            }
            text
        })?;
        if let Some(state) = state.filter(|state| *state != TaskState::Completed) {
            let task = memory.task_id.as_deref().map_or_else(String::new, |task| format!(" {}", shown(task)));
            cx.out.note(&format!("task{task} is {state}"));
        }
        // Only a person can use the advice.
        if cx.out.is_text() && cx.state.world().streams().stdout {
            cx.out.note(&format!("go on: {}", continuing(cx, agent, memory)));
        }
        match state {
            Some(TaskState::Failed | TaskState::Rejected) => Err(Failure::Told(sessile::exit::FAILED)),
            _ => Ok(()),
        }
    }
}

/// The command that goes on with the conversation, where this one was called.
fn continuing(cx: &Cx, agent: &str, memory: &ConversationLog<'_>) -> String {
    let named = cx.state.agent(agent).ok().and_then(|agent| agent.name);
    let mut command = format!("sessile message send {}", shell_quoted(named.as_deref().unwrap_or(agent)));
    match (memory.session(), &cx.state.args().session) {
        (Some(session), Some(_)) => {
            command.push_str(&format!(" --session {}", shell_quoted(session.label())));
        }
        (Some(_), None) => {}
        (None, _) => {
            for (flag, id) in [("--context-id", &memory.context_id), ("--task-id", &memory.task_id)] {
                if let Some(id) = id {
                    command.push_str(&format!(" {flag} {}", shell_quoted(id)));
                }
            }
        }
    }
    command + " \"...\""
}
