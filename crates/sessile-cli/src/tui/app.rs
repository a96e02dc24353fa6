//! State of the TUI: panes, selection, what is in front of them. It knows keys and rows, and neither terminal nor disk.

use super::action::TuiAction;
use super::dialog::{ConfirmEffect, FormOutcome, TuiOverlay, palette_rows};
use super::keys::{UiCommand, command_of};
use super::loader::LoaderMessage;
use super::model::{
    AgentRow, AttentionList, ContextRow, DetailKey, HistoryRow, ListRow as _, LockRow, RequestRow, RowFilter,
    RowList, SessionItem, attention,
};
use super::text_input::TextInput;
use super::theme::{ScreenTone, Theme};
use crate::chat::screen::app::ChatApp;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

/// Rows that a page key moves by.
const PAGE: isize = 10;

/// Rows that the wheel moves by.
const WHEEL: isize = 3;

/// A pane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pane {
    Sessions,
    Contexts,
    Locks,
    History,
    Agents,
    Chat,
    Service,
}

impl Pane {
    pub(crate) const ALL: [Pane; 7] =
        [Pane::Sessions, Pane::Contexts, Pane::Locks, Pane::History, Pane::Agents, Pane::Chat, Pane::Service];

    /// Title.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Pane::Sessions => "Sessions",
            Pane::Contexts => "Contexts",
            Pane::Locks => "Locks",
            Pane::History => "History",
            Pane::Agents => "Agents",
            Pane::Chat => "Chat",
            Pane::Service => "Service",
        }
    }
}

/// Request of a key to the event loop.
#[derive(Debug)]
pub(crate) enum TuiEffect {
    /// Leave the TUI.
    Quit,
    /// Stop the process until `fg`.
    Suspend,
    /// Make a change, in another thread.
    Perform(TuiAction),
    /// Check whether a context can be approved, and ask.
    AskApproval(String),
    /// Check whether an operation can be undone, and ask; else name one of the others that can, in their order.
    AskUndo { number: i64, others: Vec<i64> },
    /// Reload everything.
    Reload,
    /// Read one thing in full; none when it was closed.
    Open(Option<DetailKey>),
    /// Open a shell in a session.
    Shell(String),
}

/// Line at the bottom.
#[derive(Clone, Debug)]
pub(crate) struct StatusLine {
    pub(crate) text: String,
    pub(crate) tone: ScreenTone,
}

/// Where things were drawn, for the mouse.
#[derive(Debug, Default)]
pub(crate) struct HitAreas {
    pub(crate) tabs: Vec<(Rect, Pane)>,
    /// Rows of the pane, without its heading.
    pub(crate) rows: Rect,
}

/// State of the TUI.
pub(crate) struct TuiApp {
    pub(crate) theme: Theme,
    pub(crate) now_ms: i64,
    pub(crate) pane: Pane,
    pub(crate) sessions: RowList<SessionItem>,
    pub(crate) contexts: RowList<ContextRow>,
    pub(crate) locks: RowList<LockRow>,
    pub(crate) history: RowList<HistoryRow>,
    pub(crate) agents: RowList<AgentRow>,
    pub(crate) service: RowList<SessionItem>,
    /// Pane of the chat. Replies continue while another pane is visible.
    pub(crate) chat: ChatApp,
    pub(crate) requests: Vec<RequestRow>,
    credentials: Vec<(String, i64)>,
    /// URL of the selected session service.
    pub(crate) server: Option<String>,
    /// Why the service's sessions are not known.
    pub(crate) service_problem: Option<String>,
    /// Whether the service has answered, or failed to.
    pub(crate) has_service_answer: bool,
    pub(crate) attention: AttentionList,
    /// Whether rows have changed since the list was made.
    is_attention_stale: bool,
    /// Item that the next jump goes to.
    pub(super) next_attention: usize,
    pub(crate) overlays: Vec<TuiOverlay>,
    pub(crate) filter: TextInput,
    pub(crate) is_filtering: bool,
    pub(crate) status: Option<StatusLine>,
    pub(crate) is_loaded: bool,
    /// Whether a change is being made.
    pub(crate) is_busy: bool,
    /// Whether a question was requested, and no key pressed since.
    awaits_question: bool,
    pub(crate) areas: HitAreas,
}

/// Does something with the listing of the current pane. The chat has none of its own; its keys never get here.
macro_rules! on_listing {
    ($app:expr, $listing:ident => $body:expr) => {
        match $app.pane {
            Pane::Sessions => {
                let $listing = &mut $app.sessions;
                $body
            }
            Pane::Contexts => {
                let $listing = &mut $app.contexts;
                $body
            }
            Pane::Locks => {
                let $listing = &mut $app.locks;
                $body
            }
            Pane::History => {
                let $listing = &mut $app.history;
                $body
            }
            Pane::Agents | Pane::Chat => {
                let $listing = &mut $app.agents;
                $body
            }
            Pane::Service => {
                let $listing = &mut $app.service;
                $body
            }
        }
    };
}

pub(super) use on_listing;

impl TuiApp {
    pub(crate) fn new(theme: Theme, now_ms: i64, chat: ChatApp) -> Self {
        TuiApp {
            theme,
            now_ms,
            pane: Pane::Sessions,
            sessions: RowList::default(),
            contexts: RowList::default(),
            locks: RowList::default(),
            history: RowList::default(),
            agents: RowList::default(),
            service: RowList::default(),
            chat,
            requests: Vec::new(),
            credentials: Vec::new(),
            server: None,
            service_problem: None,
            has_service_answer: false,
            attention: AttentionList::default(),
            is_attention_stale: false,
            next_attention: 0,
            overlays: Vec::new(),
            filter: TextInput::default(),
            is_filtering: false,
            status: None,
            is_loaded: false,
            is_busy: false,
            awaits_question: false,
            areas: HitAreas::default(),
        }
    }

    /// Visible panes: the service's only with a service.
    pub(crate) fn panes(&self) -> impl Iterator<Item = Pane> {
        let has_server = self.server.is_some();
        Pane::ALL.into_iter().filter(move |pane| *pane != Pane::Service || has_server)
    }

    /// Sets the time, which idle times and countdowns depend on.
    pub(crate) fn tick(&mut self, now_ms: i64) {
        // Countdowns have seconds, and every frame would be a pass over all sessions.
        self.is_attention_stale |= self.now_ms.div_euclid(1000) != now_ms.div_euclid(1000);
        self.now_ms = now_ms;
    }

    /// Lists what needs a person again, if anything has changed.
    pub(crate) fn refresh_attention(&mut self) {
        if std::mem::take(&mut self.is_attention_stale) {
            let (agents, sessions) = (self.agents.rows(), self.sessions.rows());
            self.attention = attention(&self.requests, agents, sessions, &self.credentials, self.now_ms);
        }
    }

    /// Takes over what a thread has read or done.
    pub(crate) fn receive(&mut self, message: LoaderMessage) -> Option<TuiEffect> {
        match message {
            LoaderMessage::Snapshot(snapshot) => {
                let now_ms = snapshot.taken_ms;
                self.sessions.set_rows(snapshot.sessions, now_ms);
                self.contexts.set_rows(snapshot.contexts, now_ms);
                self.locks.set_rows(snapshot.locks, now_ms);
                self.history.set_rows(snapshot.operations, now_ms);
                self.agents.set_rows(snapshot.agents, now_ms);
                self.requests = snapshot.requests;
                self.credentials = snapshot.credentials;
                self.server = snapshot.server;
                if self.server.is_none() && self.pane == Pane::Service {
                    self.pane = Pane::Sessions;
                }
                self.is_loaded = true;
                if let Some(problem) = snapshot.problems.into_iter().next() {
                    self.status =
                        Some(StatusLine { text: format!("error: {problem}"), tone: ScreenTone::Bad });
                }
                self.now_ms = now_ms;
                self.is_attention_stale = true;
            }
            LoaderMessage::Sessions(rows) => {
                // Contexts and the terminal's selection are read with everything only.
                self.sessions.update_rows(rows, |old, new| {
                    (new.guard, new.is_current) = (old.guard, old.is_current);
                });
                self.is_attention_stale = true;
            }
            LoaderMessage::Detail(read) => {
                for overlay in &mut self.overlays {
                    if let TuiOverlay::Detail { key, detail, .. } = overlay
                        && read.as_ref().is_ok_and(|read| read.key == *key) | read.is_err()
                    {
                        *detail = Some(read.clone());
                    }
                }
            }
            LoaderMessage::Service(service) => {
                self.has_service_answer = true;
                match service.sessions {
                    Ok(rows) => {
                        self.service.set_rows(rows, service.taken_ms);
                        self.service_problem = None;
                    }
                    Err(problem) => self.service_problem = Some(problem),
                }
            }
            LoaderMessage::Chat(event) => self.chat.event(*event),
            // The person may be typing elsewhere by now: a late dialog would take those keys.
            LoaderMessage::Approval(question) if self.take_question() => self.ask_approval(question),
            LoaderMessage::Undo(question) if self.take_question() => self.ask_undo(question),
            LoaderMessage::Approval(_) | LoaderMessage::Undo(_) => {}
            LoaderMessage::Done(result) => {
                self.is_busy = false;
                self.status = Some(match result {
                    Ok(text) => StatusLine { text, tone: ScreenTone::Good },
                    Err(text) => StatusLine { text: format!("error: {text}"), tone: ScreenTone::Bad },
                });
                return Some(TuiEffect::Reload);
            }
        }
        None
    }

    /// Reports a failure at the bottom.
    pub(crate) fn fail(&mut self, text: &str) {
        self.status = Some(StatusLine { text: format!("error: {text}"), tone: ScreenTone::Bad });
    }

    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.status = Some(StatusLine { text: text.into(), tone: ScreenTone::Warning });
    }

    /// Handles pasted text.
    pub(crate) fn paste(&mut self, text: &str) {
        match self.overlays.last_mut() {
            Some(TuiOverlay::Form(form)) => {
                if let Some(input) = form.input() {
                    input.paste(text);
                }
            }
            Some(TuiOverlay::Palette { input, .. }) => {
                input.paste(text);
            }
            None if self.is_filtering => {
                self.filter.paste(text);
                self.apply_filter();
            }
            None if self.pane == Pane::Chat => self.chat.paste(text),
            _ => {}
        }
    }

    /// Handles a key.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Option<TuiEffect> {
        self.awaits_question = false;
        let effect = self.key_effect(key);
        if matches!(effect, Some(TuiEffect::AskApproval(_) | TuiEffect::AskUndo { .. })) {
            self.awaits_question = true;
            self.note("loading ...");
        }
        effect
    }

    fn take_question(&mut self) -> bool {
        if self.awaits_question {
            self.status = None;
        }
        std::mem::take(&mut self.awaits_question)
    }

    fn key_effect(&mut self, key: KeyEvent) -> Option<TuiEffect> {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('z') if is_control => return Some(TuiEffect::Suspend),
            _ => {}
        }
        if !self.overlays.is_empty() {
            return self.overlay_key(key);
        }
        if self.pane == Pane::Chat {
            self.chat_key(key);
            return None;
        }
        if key.code == KeyCode::Char('c') && is_control && !self.is_filtering {
            return self.run(UiCommand::Quit);
        }
        if self.is_filtering {
            return self.filter_key(key);
        }
        self.status = None;
        self.pane_key(key)
    }

    /// A key in the pane of the chat, where letters are text.
    fn chat_key(&mut self, key: KeyEvent) {
        self.status = None;
        if key.code == KeyCode::BackTab {
            return self.go_to(Pane::Agents);
        }
        self.chat.key(key);
        if self.chat.take_quit() {
            self.go_to(Pane::Agents);
        }
    }

    fn pane_key(&mut self, key: KeyEvent) -> Option<TuiEffect> {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let rows = match key.code {
            KeyCode::Char('j') | KeyCode::Down => 1,
            KeyCode::Char('k') | KeyCode::Up => -1,
            KeyCode::Char('d') if is_control => PAGE,
            KeyCode::Char('u') if is_control => -PAGE,
            KeyCode::PageDown => PAGE,
            KeyCode::PageUp => -PAGE,
            KeyCode::Char('g') | KeyCode::Home => isize::MIN,
            KeyCode::Char('G') | KeyCode::End => isize::MAX,
            KeyCode::Tab | KeyCode::Char('l') | KeyCode::Right => return self.next_pane(1),
            KeyCode::BackTab | KeyCode::Char('h') | KeyCode::Left => return self.next_pane(-1),
            KeyCode::Esc => {
                self.filter.take();
                self.apply_filter();
                return None;
            }
            KeyCode::Enter => return self.run(UiCommand::Open),
            KeyCode::Char(c) if !is_control => {
                let command = command_of(c.encode_utf8(&mut [0; 4]), self.pane)?;
                return self.run(command);
            }
            _ => return None,
        };
        on_listing!(self, listing => listing.move_by(rows));
        None
    }

    fn next_pane(&mut self, step: isize) -> Option<TuiEffect> {
        let panes: Vec<Pane> = self.panes().collect();
        let at = panes.iter().position(|pane| *pane == self.pane).unwrap_or(0);
        let next = at.checked_add_signed(step).unwrap_or(panes.len() - 1) % panes.len();
        self.go_to(panes[next]);
        None
    }

    /// Shows a pane, without the filter of the last one.
    pub(crate) fn go_to(&mut self, pane: Pane) {
        if pane == Pane::Service && self.server.is_none() {
            self.note("no session service is set; set one: sessile config set --global server URL");
            return;
        }
        if self.pane != pane {
            self.filter.take();
            self.apply_filter();
            self.pane = pane;
            self.chat.set_visible(pane == Pane::Chat);
        }
    }

    fn filter_key(&mut self, key: KeyEvent) -> Option<TuiEffect> {
        match key.code {
            KeyCode::Enter => self.is_filtering = false,
            KeyCode::Esc => {
                self.is_filtering = false;
                self.filter.take();
                self.apply_filter();
            }
            KeyCode::Up => on_listing!(self, listing => listing.move_by(-1)),
            KeyCode::Down => on_listing!(self, listing => listing.move_by(1)),
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => self.is_filtering = false,
            _ => {
                if self.filter.key(key) {
                    self.apply_filter();
                }
            }
        }
        None
    }

    pub(super) fn apply_filter(&mut self) {
        let filter = RowFilter::new(self.filter.text());
        on_listing!(self, listing => listing.set_filter(filter));
    }

    fn overlay_key(&mut self, key: KeyEvent) -> Option<TuiEffect> {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_cancel = key.code == KeyCode::Esc || (key.code == KeyCode::Char('c') && is_control);
        match self.overlays.last_mut()? {
            _ if is_cancel => return self.close_overlay(),
            TuiOverlay::Help { scroll } => match key.code {
                KeyCode::Char('q' | '?') | KeyCode::Enter => return self.close_overlay(),
                code => *scroll = scrolled(*scroll, code),
            },
            TuiOverlay::Detail { key: opened, scroll, .. } => {
                let command = match (key.code, &*opened) {
                    (KeyCode::Char('q'), _) => return self.close_overlay(),
                    (KeyCode::Char('?'), _) => Some(UiCommand::Help),
                    (KeyCode::Char('s'), DetailKey::Session(_)) => Some(UiCommand::StopSession),
                    (KeyCode::Char('a'), DetailKey::Session(_)) => Some(UiCommand::AttachSession),
                    (KeyCode::Char('e'), DetailKey::Session(_)) => Some(UiCommand::Shell),
                    (KeyCode::Char('a'), DetailKey::Context(_)) => Some(UiCommand::Approve),
                    (KeyCode::Char('v'), DetailKey::Context(_)) => Some(UiCommand::Revoke),
                    (KeyCode::Char('u'), DetailKey::Operation(_)) if !is_control => Some(UiCommand::Undo),
                    (code, _) => {
                        *scroll = scrolled(*scroll, code);
                        None
                    }
                };
                return command.and_then(|command| self.run(command));
            }
            TuiOverlay::Confirm { .. } => match key.code {
                KeyCode::Char('y' | 'Y') => {
                    let Some(TuiOverlay::Confirm { effect, .. }) = self.overlays.pop() else {
                        return None;
                    };
                    return match effect {
                        ConfirmEffect::Change(action) => self.perform(action),
                        ConfirmEffect::Quit => Some(TuiEffect::Quit),
                    };
                }
                KeyCode::Char('n' | 'N' | 'q') => return self.close_overlay(),
                _ => {}
            },
            TuiOverlay::Notice { .. } => {
                if matches!(key.code, KeyCode::Enter | KeyCode::Char('q' | ' ')) {
                    return self.close_overlay();
                }
            }
            TuiOverlay::Form(form) => match key.code {
                KeyCode::Enter => {
                    if let FormOutcome::Ready(action) = form.submit() {
                        self.overlays.pop();
                        return self.perform(action);
                    }
                }
                KeyCode::Tab | KeyCode::Down => form.current = (form.current + 1) % form.fields.len(),
                KeyCode::BackTab | KeyCode::Up => form.current = form.current.saturating_sub(1),
                _ => {
                    form.error = None;
                    form.input()?.key(key);
                }
            },
            TuiOverlay::Palette { input, selected } => match key.code {
                KeyCode::Enter => {
                    let row = palette_rows(input.text()).get(*selected).copied();
                    self.overlays.pop();
                    return row.and_then(|row| self.run_named(row.command, row.panes));
                }
                KeyCode::Down | KeyCode::Tab => *selected += 1,
                KeyCode::Up | KeyCode::BackTab => *selected = selected.saturating_sub(1),
                _ => {
                    if input.key(key) {
                        *selected = 0;
                    }
                }
            },
        }
        if let Some(TuiOverlay::Palette { input, selected }) = self.overlays.last_mut() {
            *selected = (*selected).min(palette_rows(input.text()).len().saturating_sub(1));
        }
        None
    }

    fn close_overlay(&mut self) -> Option<TuiEffect> {
        let is_detail = matches!(self.overlays.pop(), Some(TuiOverlay::Detail { .. }));
        is_detail.then_some(TuiEffect::Open(None))
    }

    pub(super) fn perform(&mut self, action: TuiAction) -> Option<TuiEffect> {
        // A stopped session has nothing to show any more.
        let is_stop = matches!(action, TuiAction::StopSession { .. });
        if is_stop {
            self.overlays
                .retain(|overlay| !matches!(overlay, TuiOverlay::Detail { key: DetailKey::Session(_), .. }));
        }
        self.is_busy = true;
        self.note("working ...");
        Some(TuiEffect::Perform(action))
    }

    /// Handles the mouse.
    pub(crate) fn mouse(&mut self, mouse: MouseEvent) -> Option<TuiEffect> {
        let rows = match mouse.kind {
            MouseEventKind::ScrollDown => WHEEL,
            MouseEventKind::ScrollUp => -WHEEL,
            MouseEventKind::Down(MouseButton::Left) => {
                let effect = self.click(Position::new(mouse.column, mouse.row));
                if self.pane == Pane::Chat && self.overlays.is_empty() {
                    self.chat.mouse(mouse);
                }
                return effect;
            }
            _ => return None,
        };
        match self.overlays.last_mut() {
            None if self.pane == Pane::Chat => self.chat.mouse(mouse),
            None => on_listing!(self, listing => listing.move_by(rows)),
            Some(TuiOverlay::Help { scroll } | TuiOverlay::Detail { scroll, .. }) => {
                *scroll = scroll.saturating_add_signed(rows);
            }
            Some(_) => {}
        }
        None
    }

    fn click(&mut self, at: Position) -> Option<TuiEffect> {
        if !self.overlays.is_empty() {
            return None;
        }
        if let Some((_, pane)) = self.areas.tabs.iter().find(|(area, _)| area.contains(at)) {
            self.go_to(*pane);
            return None;
        }
        if self.pane == Pane::Chat || !self.areas.rows.contains(at) {
            return None;
        }
        let line = usize::from(at.y - self.areas.rows.y);
        let is_again = on_listing!(self, listing => {
            let position = listing.position_on_page(line)?;
            let is_again = listing.is_selected(position);
            listing.select(position);
            is_again
        });
        if is_again { self.open() } else { None }
    }

    /// Ids of the sessions that fit on a page around the selection.
    pub(crate) fn page_of_sessions(&mut self) -> Vec<String> {
        let height = usize::from(self.areas.rows.height).max(1);
        self.sessions.page(height).into_iter().map(|(row, _)| row.key().to_owned()).collect()
    }

    /// Whether something on the screen changes with time alone.
    pub(crate) fn has_clock(&self) -> bool {
        match self.pane {
            Pane::Sessions => self.sessions.len() > 0,
            Pane::Contexts => self.contexts.rows().iter().any(|row| row.approved_until_ms.is_some()),
            Pane::Locks => self.locks.len() > 0,
            Pane::Service => self.service.len() > 0,
            Pane::History | Pane::Agents | Pane::Chat => false,
        }
    }
}

fn scrolled(scroll: usize, code: KeyCode) -> usize {
    match code {
        KeyCode::Char('j') | KeyCode::Down => scroll.saturating_add(1),
        KeyCode::Char('k') | KeyCode::Up => scroll.saturating_sub(1),
        KeyCode::Char(' ' | 'd') | KeyCode::PageDown => scroll.saturating_add_signed(PAGE),
        KeyCode::Char('b' | 'u') | KeyCode::PageUp => scroll.saturating_add_signed(-PAGE),
        KeyCode::Char('g') | KeyCode::Home => 0,
        KeyCode::Char('G') | KeyCode::End => usize::MAX / 2,
        _ => scroll,
    }
}
