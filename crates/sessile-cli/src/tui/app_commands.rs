//! Commands of the TUI on the selected row: questions, dialogs and effects.

use sessile::context::Guard;
use sessile::text::{quoted, shell_quoted};

use super::action::{ApprovalQuestion, TuiAction, UndoQuestion};
use super::app::{Pane, TuiApp, TuiEffect, on_listing};
use super::dialog::{ConfirmEffect, DialogForm, TuiOverlay};
use super::keys::UiCommand;
use super::model::{AgentRowKind, AttentionTarget, DetailKey, HistoryRow, RowFilter};
use super::text_input::TextInput;

impl TuiApp {
    /// Runs a command of the palette: where it means nothing in this pane, it says in which one it does.
    pub(super) fn run_named(&mut self, command: UiCommand, panes: &[Pane]) -> Option<TuiEffect> {
        match panes.first() {
            Some(first) if !panes.contains(&self.pane) => {
                self.go_to(*first);
                self.note(format!(
                    "select a row in the pane {}, then run the command again",
                    first.title().to_lowercase()
                ));
                None
            }
            _ => self.run(command),
        }
    }

    /// Runs a command on the selected row.
    pub(crate) fn run(&mut self, command: UiCommand) -> Option<TuiEffect> {
        match command {
            UiCommand::Quit if self.chat.has_running_reply() => {
                self.overlays.push(TuiOverlay::Confirm {
                    question: "Quit while an agent replies?".to_owned(),
                    note: "The task continues at the agent; a chat with the agent follows it again."
                        .to_owned(),
                    effect: ConfirmEffect::Quit,
                });
            }
            UiCommand::Quit => return Some(TuiEffect::Quit),
            UiCommand::Reload => return Some(TuiEffect::Reload),
            UiCommand::Help => self.overlays.push(TuiOverlay::Help { scroll: 0 }),
            UiCommand::Palette => {
                self.overlays.push(TuiOverlay::Palette { input: TextInput::default(), selected: 0 });
            }
            UiCommand::Filter => self.is_filtering = true,
            UiCommand::NextOrder => {
                let words = on_listing!(self, listing => { listing.next_order(); listing.order_words() });
                self.note(format!("sorted by {words}"));
            }
            UiCommand::Reverse => {
                let words = on_listing!(self, listing => { listing.reverse(); listing.order_words() });
                self.note(format!("sorted by {words}"));
            }
            UiCommand::GoTo(pane) => self.go_to(pane),
            UiCommand::NextAttention => self.go_to_attention(),
            UiCommand::Open => return self.open(),
            UiCommand::ShowMessages => {
                let row = self.agents.selected()?;
                if row.kind == AgentRowKind::Conversation {
                    return self.open_detail(DetailKey::Conversation(row.key.clone()));
                }
                self.note("select a conversation; Enter opens a chat with the agent");
            }
            UiCommand::StartSession => {
                let context = match self.pane {
                    Pane::Contexts => self.contexts.selected().map(|row| row.name.clone()),
                    _ => None,
                };
                self.overlays.push(TuiOverlay::Form(DialogForm::start_session(context.as_deref())));
            }
            UiCommand::AttachSession => {
                let id = self.sessions.selected()?.id.clone();
                return self.perform(TuiAction::AttachSession { id });
            }
            UiCommand::Shell => return Some(TuiEffect::Shell(self.sessions.selected()?.id.clone())),
            UiCommand::StopSession => self.ask_stop(),
            UiCommand::Approve => {
                let row = self.contexts.selected()?;
                if row.guard != Guard::Approval {
                    let text = format!(
                        "context {} requires no approval: its guard is {}",
                        quoted(&row.name),
                        row.guard.as_str()
                    );
                    self.note(text);
                    return None;
                }
                return Some(TuiEffect::AskApproval(row.name.clone()));
            }
            UiCommand::Revoke => {
                let row = self.contexts.selected()?;
                let (name, has_approval) = (row.name.clone(), row.approval_left_ms(self.now_ms).is_some());
                if !has_approval {
                    self.note(format!("context {} has no active approval", quoted(&name)));
                    return None;
                }
                self.confirm(
                    format!("Revoke the approvals of context {}?", quoted(&name)),
                    "Every session loses the targets at once.",
                    TuiAction::Revoke { context: name },
                );
            }
            UiCommand::BreakLock => {
                let row = self.locks.selected()?;
                let (name, token, holder) = (row.name.clone(), row.token, row.holder.clone());
                self.confirm(
                    format!("Break lock {}, held by {holder}?", quoted(&name)),
                    "The holder is not stopped; the protected resource must refuse the fencing token.",
                    TuiAction::BreakLock { name, token },
                );
            }
            UiCommand::Undo => {
                let row = self.history.selected()?;
                let Some(number) = row.number else {
                    self.note("a command that ran in a session cannot be undone");
                    return None;
                };
                let mut others: Vec<i64> = self
                    .history
                    .rows()
                    .iter()
                    .filter(|row| row.is_undoable)
                    .filter_map(|row| row.number)
                    .collect();
                others.retain(|other| *other < number);
                others.sort_unstable_by(|a, b| b.cmp(a));
                return Some(TuiEffect::AskUndo { number, others });
            }
        }
        None
    }

    fn confirm(&mut self, question: String, note: &str, action: TuiAction) {
        self.overlays.push(TuiOverlay::Confirm {
            question,
            note: note.to_owned(),
            effect: ConfirmEffect::Change(action),
        });
    }

    fn ask_stop(&mut self) {
        let row = match self.pane {
            Pane::Service => self.service.selected(),
            _ => self.sessions.selected(),
        };
        let Some(row) = row else { return };
        let (id, context) = (row.id.clone(), row.context.clone());
        let of = context.map_or_else(String::new, |context| format!(" in context {}", quoted(context)));
        let question = format!("Stop session {}{of}?", quoted(row.label()));
        let note = match row.running.as_slice() {
            [] => "No command is running.".to_owned(),
            running => format!("Stops {}.", running.join(", ")),
        };
        let action = match self.pane {
            Pane::Service => TuiAction::StopServiceSession { id },
            _ => TuiAction::StopSession { id },
        };
        self.confirm(question, &note, action);
    }

    pub(super) fn open(&mut self) -> Option<TuiEffect> {
        let key = match self.pane {
            Pane::Sessions => DetailKey::Session(self.sessions.selected()?.id.clone()),
            Pane::Contexts => DetailKey::Context(self.contexts.selected()?.name.clone()),
            Pane::History => DetailKey::Operation(self.history.selected()?.number?),
            Pane::Agents => {
                let row = self.agents.selected()?;
                let (agent, scope, start) = (row.agent(), row.scope(), row.start());
                // First, so that a chat without a conversation does not list the agents to choose from.
                self.chat.open_tab(agent, scope, start);
                self.go_to(Pane::Chat);
                return None;
            }
            Pane::Locks | Pane::Chat | Pane::Service => return None,
        };
        self.open_detail(key)
    }

    fn open_detail(&mut self, key: DetailKey) -> Option<TuiEffect> {
        self.overlays.push(TuiOverlay::Detail { key: key.clone(), detail: None, scroll: 0 });
        Some(TuiEffect::Open(Some(key)))
    }

    fn go_to_attention(&mut self) {
        self.refresh_attention();
        let items = &self.attention.items;
        let Some(item) = items.get(self.next_attention.checked_rem(items.len()).unwrap_or(0)).cloned() else {
            self.note("nothing requires attention");
            return;
        };
        self.next_attention = self.next_attention.wrapping_add(1);
        let (pane, key, next) = match item.target {
            AttentionTarget::Context(name) => (Pane::Contexts, name, "press a to approve the context"),
            AttentionTarget::Conversation(id) => (Pane::Agents, id, "press Enter to answer"),
            AttentionTarget::Session(id) => (Pane::Sessions, id, "press Enter for details"),
            AttentionTarget::Credential(name) => {
                let name = shell_quoted(&name);
                let renew = format!("renew it: sessile auth login {name}, or sessile auth set {name}");
                return self.note(format!("{}; {renew}", item.text));
            }
        };
        self.go_to(pane);
        self.filter.take();
        self.apply_filter();
        on_listing!(self, listing => listing.select_key(&key));
        self.note(format!("{}; {next}", item.text));
    }

    /// Asks about an approval, or says why it is impossible.
    pub(crate) fn ask_approval(&mut self, question: Result<ApprovalQuestion, String>) {
        match question {
            Ok(question) => self.overlays.push(TuiOverlay::Form(DialogForm::approve(question))),
            Err(text) => self.fail(&text),
        }
    }

    /// Asks about an undo, or says why it is impossible and selects an operation that can be undone.
    pub(crate) fn ask_undo(&mut self, question: UndoQuestion) {
        let UndoQuestion { number, refusal, instead } = question;
        let words_of = |number: i64, rows: &[HistoryRow]| {
            let row = rows.iter().find(|row| row.number == Some(number));
            row.map_or_else(String::new, |row| format!(": {} {}", row.command, row.subject))
        };
        let rows = self.history.rows();
        let Some(refusal) = refusal else {
            let note = rows.iter().find(|row| row.number == Some(number)).map(|row| row.note.clone());
            let note = note.filter(|note| !note.is_empty()).map(|note| format!("Note: {note}."));
            let question = format!("Undo operation {number}{}?", words_of(number, rows));
            return self.confirm(question, &note.unwrap_or_default(), TuiAction::Undo { number });
        };
        let next = match instead {
            Some(other) => format!(
                "The last earlier change that can be undone is operation {other}{}. Its row is selected; press u to undo it.",
                words_of(other, rows)
            ),
            None => "No earlier change on the list can be undone.".to_owned(),
        };
        if let Some(other) = instead {
            // The opened operation is not the selected one any more.
            self.overlays.retain(|overlay| !matches!(overlay, TuiOverlay::Detail { .. }));
            if !self.history.select_key(&other.to_string()) {
                self.filter.take();
                self.history.set_filter(RowFilter::default());
                self.history.select_key(&other.to_string());
            }
        }
        self.overlays.push(TuiOverlay::Notice { title: "Cannot undo", text: format!("{refusal}\n\n{next}") });
    }
}
