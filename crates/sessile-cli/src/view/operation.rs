//! Operations of the history.

use serde::Serialize;
use sessile::clock::rfc3339;
use sessile::history::Operation;
use sessile::session::StartedCommand;
use sessile::text::{shell_quoted, shown};
use sessile_wire::service::HistoryEntry;

/// An operation of this machine or of a service.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum OperationView {
    /// Operation of this machine.
    Local(Operation),
    /// Change that a service recorded.
    Remote(ServiceOperation),
    /// Command that was started in a session.
    Command(CommandView),
}

/// A command that was started in a session, in the form of an operation. It cannot be undone.
#[derive(Debug, Serialize)]
pub(crate) struct CommandView {
    id: String,
    at: String,
    #[serde(skip)]
    at_ms: i64,
    user: String,
    session: Option<String>,
    terminal: Option<String>,
    command: &'static str,
    subject: String,
    state: &'static str,
    undoes: Option<i64>,
    undone_by: Option<i64>,
    undoable: bool,
    effects: [(); 0],
}

impl CommandView {
    /// A command of a session.
    pub(crate) fn new(started: StartedCommand, user: String, session: &str) -> Self {
        let StartedCommand { at_ms, pid, words } = started;
        CommandView {
            // The time alone does not tell commands apart that were started at once.
            id: format!("run-{at_ms}-{pid}"),
            at: rfc3339(at_ms),
            at_ms,
            user,
            session: Some(session.to_owned()),
            terminal: None,
            command: "run",
            subject: words.iter().map(|word| shell_quoted(word)).collect::<Vec<_>>().join(" "),
            state: "started",
            undoes: None,
            undone_by: None,
            undoable: false,
            effects: [],
        }
    }
}

/// A change that a service recorded, in the form of a local operation. It cannot be undone.
#[derive(Debug, Serialize)]
pub(crate) struct ServiceOperation {
    id: String,
    at: String,
    #[serde(skip)]
    at_ms: i64,
    user: String,
    session: Option<String>,
    terminal: Option<String>,
    command: String,
    subject: String,
    state: String,
    undoes: Option<i64>,
    undone_by: Option<i64>,
    undoable: bool,
    effects: [(); 0],
}

impl From<Operation> for OperationView {
    fn from(operation: Operation) -> Self {
        OperationView::Local(operation)
    }
}

/// A recorded change with the user who made it.
impl From<(HistoryEntry, String)> for OperationView {
    fn from((entry, user): (HistoryEntry, String)) -> Self {
        let command = command(&entry).to_owned();
        let HistoryEntry { id, at_ms, session, subject, outcome, .. } = entry;
        OperationView::Remote(ServiceOperation {
            id,
            at: rfc3339(at_ms),
            at_ms,
            user,
            terminal: None,
            command,
            subject: subject.or_else(|| session.clone()).unwrap_or_default(),
            session,
            state: outcome,
            undoes: None,
            undone_by: None,
            undoable: false,
            // Empty, so that programs read both kinds of operations in one way.
            effects: [],
        })
    }
}

/// Command that makes a change, as the local history names it; the service's name of the change if no command makes it.
fn command(item: &HistoryEntry) -> &str {
    let is_lock = item.session.is_none() && item.subject.is_some();
    match item.action.as_str() {
        "start_session" => "session start",
        "end_session" => "session stop",
        "set_entry" => "session state set",
        "append" | "commit_turn" => "message send",
        "ask" | "wait" if is_lock => "lock acquire",
        "renew" if is_lock => "lock renew",
        "release" if is_lock => "lock release",
        "user.add" => "user add",
        "user.disable" => "user disable",
        "user.enable" => "user disable --undo",
        "token.create" => "user token create",
        "token.revoke" => "user token revoke",
        "login.approve" => "user approve",
        other => other,
    }
}

impl OperationView {
    /// Columns of a table of operations.
    pub(crate) const COLUMNS: [&str; 6] = ["ID", "WHEN", "COMMAND", "SUBJECT", "WHERE", "NOTE"];

    /// Cells of the columns.
    pub(crate) fn cells(&self) -> [String; 6] {
        let place = |session: Option<&String>| session.map_or_else(|| "-".to_owned(), String::clone);
        match self {
            OperationView::Local(one) => [
                one.id.to_string(),
                one.at.clone(),
                one.command.clone(),
                one.subject.clone(),
                place(one.session.as_ref().or(one.terminal.as_ref())),
                note(one),
            ],
            OperationView::Remote(one) => {
                let note = if one.state == "done" { "cannot be undone" } else { &one.state };
                let (id, at) = (one.id.clone(), one.at.clone());
                let (command, subject) = (one.command.clone(), one.subject.clone());
                [id, at, command, subject, place(one.session.as_ref()), note.to_owned()]
            }
            OperationView::Command(one) => [
                "-".to_owned(),
                one.at.clone(),
                one.command.to_owned(),
                one.subject.clone(),
                place(one.session.as_ref()),
                String::new(),
            ],
        }
    }

    /// Id, by which a page is continued.
    pub(crate) fn id(&self) -> String {
        match self {
            OperationView::Local(one) => one.id.to_string(),
            OperationView::Remote(one) => one.id.clone(),
            OperationView::Command(one) => one.id.clone(),
        }
    }

    /// Time, in milliseconds since 1970.
    pub(crate) fn at_ms(&self) -> i64 {
        match self {
            OperationView::Local(one) => one.at_ms,
            OperationView::Remote(one) => one.at_ms,
            OperationView::Command(one) => one.at_ms,
        }
    }

    /// Whether the operation has effects that an undo could revert, and was not undone.
    pub(crate) fn is_undoable(&self) -> bool {
        matches!(self, OperationView::Local(Operation { undoable: true, undone_by: None, .. }))
    }

    /// Whether the operation was undone.
    pub(crate) fn is_undone(&self) -> bool {
        matches!(self, OperationView::Local(Operation { undone_by: Some(_), .. }))
    }
}

/// An operation for people, one line per field.
pub(crate) fn operation_text(operation: &Operation) -> String {
    let mut text = format!("operation {}\n", operation.id);
    let mut line = |label: &str, value: &str| text.push_str(&format!("  {label:<9} {value}\n"));
    for (label, value) in operation_fields(operation) {
        line(label, &value);
    }
    for effect in operation.stored_effects() {
        line("effect", &shown(effect));
    }
    text
}

/// Fields of an operation for people, without its effects.
pub(crate) fn operation_fields(operation: &Operation) -> Vec<(&'static str, String)> {
    let fields = [
        ("at", Some(&operation.at)),
        ("user", Some(&operation.user)),
        ("session", operation.session.as_ref()),
        ("terminal", operation.terminal.as_ref()),
        ("command", Some(&operation.command)),
        ("subject", Some(&operation.subject)),
        ("state", Some(&operation.state)),
    ];
    let shown_or_dash = |value: Option<&String>| value.map_or_else(|| "-".to_owned(), shown);
    let mut fields: Vec<_> = fields.into_iter().map(|(label, value)| (label, shown_or_dash(value))).collect();
    fields.extend(Some(note(operation)).filter(|note| !note.is_empty()).map(|note| ("note", note)));
    fields
}

fn note(operation: &Operation) -> String {
    match (operation.undone_by, operation.undoes) {
        (Some(by), _) => format!("undone by {by}"),
        (None, Some(undoes)) => format!("undoes {undoes}"),
        (None, None) if operation.state != "done" => operation.state.clone(),
        (None, None) if !operation.undoable => "cannot be undone".to_owned(),
        (None, None) => String::new(),
    }
}
