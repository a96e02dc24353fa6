//! Sessions.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use sessile::clock::rfc3339;
use sessile::context::anonymous;
use sessile::duration::short;
use sessile::session::lifecycle::Lifecycle;
use sessile::session::{LoggedOutput, Owner, RunningProcess, Session, SessionSnapshot};
use sessile::text::{shell_quoted, shown};
use sessile::tool::{Drift, ToolState};
use sessile_wire::service::ServiceSession;

use super::ConversationSummary;

/// Label that stores the agent of a session at a service, which has no field for it.
pub(crate) const AGENT_LABEL: &str = "sessile.agent";

/// A session.
#[derive(Debug, Serialize)]
pub(crate) struct SessionView {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) state: Lifecycle,
    pub(crate) context: Option<String>,
    /// Bindings of an anonymous context.
    #[serde(skip_serializing_if = "Option::is_none")]
    context_bindings: Option<Vec<String>>,
    pub(crate) owner: Owner,
    pub(crate) labels: BTreeMap<String, String>,
    started_at: String,
    /// Start, in milliseconds since 1970.
    #[serde(skip)]
    pub(crate) started_ms: i64,
    pub(crate) idle_ms: i64,
    pub(crate) idle_limit_ms: i64,
    pub(crate) max_ms: i64,
    expires_at: Option<String>,
    ended_at: Option<String>,
    end_reason: Option<String>,
    pub(crate) running: Vec<RunningProcess>,
    pub(crate) room: Option<String>,
    /// Conversations, if they were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) conversations: Option<Vec<ConversationSummary>>,
}

/// A session with its settings, tools, conversations and number of state values.
#[derive(Debug, Serialize)]
pub(crate) struct SessionDetailView {
    #[serde(flatten)]
    pub(crate) session: SessionView,
    pub(crate) settings: BTreeMap<String, Value>,
    pub(crate) tools: Vec<ToolState>,
    /// Pinned values that a command of the session has moved.
    pub(crate) drift: Vec<Drift>,
    /// Paths of the copies that the session has changed.
    pub(crate) changed: Vec<String>,
    /// Commands whose output is kept.
    pub(crate) logs: Vec<LoggedCommand>,
    pub(crate) conversations: Vec<ConversationSummary>,
    pub(crate) state_values: usize,
}

/// Command whose output is kept in the session's room.
#[derive(Debug, Serialize)]
pub(crate) struct LoggedCommand {
    pid: u32,
    words: Vec<String>,
    started_at: String,
    /// Size of the output that is kept, in bytes.
    size: u64,
    /// Whether earlier output was dropped.
    truncated: bool,
}

/// A list of sessions.
#[derive(Debug)]
pub(crate) struct SessionListing {
    pub(crate) sessions: Vec<SessionView>,
    /// Id of the session that the call works in.
    pub(crate) current: Option<String>,
}

/// A session that was started.
#[derive(Debug, Serialize)]
pub(crate) struct SessionStartView {
    #[serde(flatten)]
    pub(crate) session: SessionView,
    /// Id of the session that was stopped for it.
    pub(crate) replaced: Option<String>,
    pub(crate) selected_for_terminal: bool,
    /// Label of the session that this terminal had, and that goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) left_running: Option<String>,
    /// Whether the shell of the terminal follows.
    #[serde(skip)]
    pub(crate) is_hooked: bool,
}

/// A session that was stopped.
#[derive(Debug, Serialize)]
pub(crate) struct SessionStopView {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    /// Pids of the processes that were ended.
    pub(crate) ended_processes: Vec<i32>,
    /// Names of the locks that the session held.
    pub(crate) released_locks: Vec<String>,
    /// Whether the session had ended before.
    pub(crate) was_over: bool,
}

/// A session that was renamed.
#[derive(Debug, Serialize)]
pub(crate) struct SessionRenameView {
    pub(crate) id: String,
    pub(crate) old: Option<String>,
    pub(crate) new: String,
}

/// A session of a service at a point in time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServiceSessionSnapshot<'a> {
    pub(crate) session: &'a ServiceSession,
    /// User of the token.
    pub(crate) owner: &'a Owner,
    /// Time on this machine, in milliseconds since 1970.
    pub(crate) now_ms: i64,
}

impl From<(&Session, SessionSnapshot)> for SessionView {
    fn from((session, look): (&Session, SessionSnapshot)) -> Self {
        SessionView {
            id: session.id.to_string(),
            name: session.name.clone(),
            state: look.state,
            context: session.context.clone(),
            context_bindings: session.context.as_deref().and_then(anonymous::bindings_of),
            owner: session.owner.clone(),
            labels: session.labels.clone(),
            started_at: rfc3339(session.started.wall_ms),
            started_ms: session.started.wall_ms,
            idle_ms: look.idle_ms,
            idle_limit_ms: session.idle_ms,
            max_ms: session.max_ms,
            expires_at: look.expires_at,
            ended_at: session.ended.as_ref().map(|(at_ms, _)| rfc3339(*at_ms)),
            end_reason: session.ended.as_ref().map(|(_, reason)| reason.clone()),
            running: look.running,
            room: (look.state != Lifecycle::Ended)
                .then(|| session.room().dir().to_string_lossy().into_owned()),
            conversations: None,
        }
    }
}

impl From<&LoggedOutput> for LoggedCommand {
    fn from(log: &LoggedOutput) -> Self {
        LoggedCommand {
            pid: log.command.pid,
            words: log.command.words.clone(),
            started_at: rfc3339(log.command.at_ms),
            size: log.size,
            truncated: log.is_truncated,
        }
    }
}

impl LoggedCommand {
    /// Columns of a table of commands.
    pub(crate) const COLUMNS: [&str; 4] = ["PID", "STARTED", "BYTES", "COMMAND"];

    /// Cells of the columns.
    pub(crate) fn cells(&self) -> Vec<String> {
        let words: Vec<String> = self.words.iter().map(|word| shell_quoted(word)).collect();
        vec![self.pid.to_string(), self.started_at.clone(), self.size.to_string(), words.join(" ")]
    }
}

/// A session at a service has no processes here and no room.
impl From<ServiceSessionSnapshot<'_>> for SessionView {
    fn from(snapshot: ServiceSessionSnapshot<'_>) -> Self {
        let ServiceSessionSnapshot { session, owner, now_ms } = snapshot;
        let state = ServiceSessionSnapshot::life_at(session, now_ms);
        let mut labels = session.labels.clone();
        let owner = Owner { agent: labels.remove(AGENT_LABEL), ..owner.clone() };
        SessionView {
            id: session.id.clone(),
            name: session.name.clone(),
            state,
            context: session.context.clone(),
            context_bindings: session.context.as_deref().and_then(anonymous::bindings_of),
            owner,
            labels,
            started_at: rfc3339(session.started_ms),
            started_ms: session.started_ms,
            // The clocks of the two machines may differ.
            idle_ms: now_ms.saturating_sub(session.used_ms).max(0),
            idle_limit_ms: session.idle_ms,
            max_ms: session.max_ms,
            expires_at: (state != Lifecycle::Ended).then(|| rfc3339(session.expires_ms)),
            ended_at: session.ended_ms.map(rfc3339),
            end_reason: session.end_reason.clone(),
            running: Vec::new(),
            room: None,
            conversations: None,
        }
    }
}

impl ServiceSessionSnapshot<'_> {
    /// State of a session in its life at a time.
    pub(crate) fn life_at(session: &ServiceSession, now_ms: i64) -> Lifecycle {
        match session.ended_ms {
            Some(_) => Lifecycle::Ended,
            None if session.expires_ms <= now_ms => Lifecycle::Expired,
            None => Lifecycle::Live,
        }
    }
}

impl SessionView {
    /// Columns of a table of sessions.
    pub(crate) const COLUMNS: [&str; 8] =
        ["ID", "NAME", "STATE", "CONTEXT", "IDLE", "EXPIRES", "RUNNING", "OWNER"];

    /// Cells of the columns.
    pub(crate) fn cells(&self) -> Vec<String> {
        let running: Vec<String> =
            self.running.iter().map(|one| format!("{}[{}]", one.program, one.process.pid)).collect();
        let Owner { user, host, agent, .. } = &self.owner;
        let agent = agent.as_ref().map_or_else(String::new, |agent| format!(" ({agent})"));
        vec![
            self.id.clone(),
            or_dash(self.name.as_deref()),
            self.state.as_str().to_owned(),
            or_dash(self.context.as_deref().map(anonymous::label).as_deref()),
            if self.state == Lifecycle::Live { idle(self.idle_ms) } else { "-".to_owned() },
            or_dash(self.expires_at.as_deref()),
            if running.is_empty() { "-".to_owned() } else { running.join(" ") },
            format!("{user}@{host}{agent}"),
        ]
    }

    /// The same look with the name that the session has by now.
    pub(crate) fn renamed(self, session: &Session) -> Self {
        SessionView { name: session.name.clone(), ..self }
    }

    /// The programs that run in it, behind a comma.
    pub(crate) fn running_words(&self) -> String {
        self.running.iter().map(|one| format!(", runs {}", one.program)).collect()
    }

    /// Cell of the conversations.
    pub(crate) fn conversation_cell(&self) -> String {
        let words: Vec<String> =
            self.conversations.iter().flatten().map(ConversationSummary::words).collect();
        if words.is_empty() { "-".to_owned() } else { words.join(", ") }
    }
}

impl SessionDetailView {
    /// Facts about the session alone, one line each: without processes, drift, changed copies and conversations.
    pub(crate) fn facts(&self) -> Vec<String> {
        let apart = ["running", "drift", "changed", "talks", "log "];
        let text = self.text();
        let lines = text
            .lines()
            .map(str::trim_start)
            .filter(|line| !apart.iter().any(|label| line.starts_with(label)));
        lines.map(str::to_owned).collect()
    }

    /// The session for people, one line per fact.
    pub(crate) fn text(&self) -> String {
        let session = &self.session;
        let mut text = format!("{}\n", session.id);
        let mut line = |label: &str, value: &str| text.push_str(&format!("  {label:<9} {}\n", shown(value)));
        line("name", &or_dash(session.name.as_deref()));
        line("state", session.state.as_str());
        let context = session.context.as_deref().map(anonymous::label);
        line("context", context.as_deref().unwrap_or("none"));
        line("owner", &session.owner.short());
        line("started", &session.started_at);
        line("idle", &format!("{} of {}", duration(session.idle_ms), duration(session.idle_limit_ms)));
        line("expires", &or_dash(session.expires_at.as_deref()));
        for (key, value) in &session.labels {
            line("label", &format!("{key}={value}"));
        }
        for one in &session.running {
            line("running", &format!("{} (pid {})", one.program, one.process.pid));
        }
        for one in &self.conversations {
            line("talks", &one.words());
        }
        for (key, value) in &self.settings {
            line("setting", &format!("{key} = {value}"));
        }
        for tool in &self.tools {
            line("tool", &tool_words(tool));
        }
        for log in &self.logs {
            let [pid, _, size, words] = &log.cells()[..] else { continue };
            line("log", &format!("{words} (pid {pid}): {size} bytes"));
        }
        for drift in &self.drift {
            line("drift", &drift.to_string());
        }
        for path in &self.changed {
            line("changed", path);
        }
        if let Some(ended_at) = &session.ended_at {
            line("ended", &format!("{ended_at} ({})", or_dash(session.end_reason.as_deref())));
        }
        text
    }
}

fn tool_words(tool: &ToolState) -> String {
    let mut about = tool.bound.clone();
    about.extend(tool.shared.as_ref().map(|reason| format!("shared: {reason}")));
    about.extend(tool.copies.iter().map(|copy| {
        let state = match (copy.changed, copy.original_changed) {
            (false, false) => "same as the original",
            (true, false) => "changed here",
            (false, true) => "the original changed",
            (true, true) => "changed here, and the original changed",
        };
        match copy.original.first() {
            Some(original) => format!("{} ({state})", original.display()),
            None => format!("{} (made here)", copy.copy.display()),
        }
    }));
    format!("{}: {}", tool.tool, about.join("; "))
}

fn or_dash(text: Option<&str>) -> String {
    text.unwrap_or("-").to_owned()
}

/// Idle time in whole seconds; a dash for a session in use.
fn idle(millis: i64) -> String {
    if millis < 1000 { "-".to_owned() } else { duration(millis - millis % 1000) }
}

fn duration(millis: i64) -> String {
    short(Duration::from_millis(u64::try_from(millis).unwrap_or(0)))
}
