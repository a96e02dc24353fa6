//! The state of the full-screen chat, and its changes by keys and events. Free of the terminal: a view draws it, and jobs run
//! elsewhere.

use std::path::PathBuf;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};
use sessile_wire::a2a::Part;

use super::filter_list::{FilterList, ListEntry, ListOutcome};
use super::overlay::{Confirmation, Overlay};
use super::tab::ChatTab;
use crate::agent_session::{Continuation, ConversationSelector};
use crate::chat::command::{self, ArtifactRange, ChatCommand, ChatInput, CopySource};
use crate::chat::engine::{ChatChoice, ChatEvent, ChatJob, ConversationScope, JobEvent, JobStarter, TabId};
use crate::chat::line_mode::ChatStart;
use crate::chat::model::ChatConversation;
use crate::commands::message::PartKind;
use crate::tui::text_input::TextInput;
use crate::tui::theme::Theme;

/// Conversations that can be open at once.
const MOST_TABS: usize = 20;

/// The full-screen chat.
pub(crate) struct ChatApp {
    engine: Box<dyn JobStarter>,
    pub(super) tabs: Vec<ChatTab>,
    pub(super) active: usize,
    pub(super) overlay: Option<Overlay>,
    pub(super) theme: Theme,
    save_dir: PathBuf,
    /// Line at the bottom, until the next key.
    pub(super) notice: Option<String>,
    /// Rows of the transcript at the last draw, for a page.
    pub(super) page: usize,
    last_tab: u64,
    /// Text for the clipboard, until the view takes it.
    clipboard: Option<String>,
    has_quit: bool,
    /// Whether Ctrl-C was the last key: a second one quits.
    is_quitting: bool,
    /// Whether the chat is a pane of another view. To quit then means to go to the other panes, and replies go on.
    is_pane: bool,
    /// Whether the active conversation is on the screen.
    is_visible: bool,
    /// Places of the tabs at the last draw, for the mouse.
    pub(super) tab_areas: Vec<Rect>,
}

impl ChatApp {
    /// Chat without a conversation, which shows the agents to choose from.
    pub(crate) fn new(engine: Box<dyn JobStarter>, theme: Theme, save_dir: PathBuf) -> Self {
        ChatApp {
            engine,
            tabs: Vec::new(),
            active: 0,
            overlay: None,
            theme,
            save_dir,
            notice: None,
            page: 10,
            last_tab: 0,
            clipboard: None,
            has_quit: false,
            is_quitting: false,
            is_pane: false,
            is_visible: true,
            tab_areas: Vec::new(),
        }
    }

    /// Chat as a pane of another view.
    pub(crate) fn pane(engine: Box<dyn JobStarter>, theme: Theme, save_dir: PathBuf) -> Self {
        ChatApp { is_pane: true, is_visible: false, ..ChatApp::new(engine, theme, save_dir) }
    }

    /// Opens the conversation that a chat starts with, or the list of agents.
    pub(crate) fn start(&mut self, start: Option<ChatStart>) {
        match start {
            Some(start) => {
                self.open_tab(start.agent, ConversationScope::default(), start.selector);
                if let Some(tab) = self.tabs.last_mut() {
                    tab.watch = start.task;
                }
            }
            None => self.choose_agent(),
        }
    }

    /// Whether the chat is over.
    pub(crate) fn has_quit(&self) -> bool {
        self.has_quit
    }

    /// Whether the person wants to leave the pane; asked once for each time.
    pub(crate) fn take_quit(&mut self) -> bool {
        std::mem::take(&mut self.has_quit)
    }

    /// Whether the chat is a pane of another view.
    pub(super) fn is_pane(&self) -> bool {
        self.is_pane
    }

    /// Shows or hides the pane. Without an open conversation it lists the agents to choose from.
    pub(crate) fn set_visible(&mut self, is_visible: bool) {
        self.is_visible = is_visible;
        match self.tab() {
            Some(tab) => tab.is_unread &= !is_visible,
            None if is_visible => self.choose_agent(),
            None => {}
        }
    }

    /// Number of open conversations.
    pub(crate) fn count(&self) -> usize {
        self.tabs.len()
    }

    /// Most urgent mark of the tabs: a question, a running reply, something unread, or none.
    pub(crate) fn mark(&self) -> &'static str {
        let has = |mark: &str| self.tabs.iter().any(|tab| tab.mark() == mark);
        ["?", "*", "+"].into_iter().find(|mark| has(mark)).unwrap_or("")
    }

    /// Whether a reply is running.
    pub(crate) fn has_running_reply(&self) -> bool {
        self.tabs.iter().any(|tab| tab.exchange.is_some())
    }

    /// Takes the text for the clipboard.
    pub(crate) fn take_clipboard(&mut self) -> Option<String> {
        self.clipboard.take()
    }

    pub(super) fn tab(&mut self) -> Option<&mut ChatTab> {
        self.tabs.get_mut(self.active)
    }

    /// Opens a conversation in a tab of its own, or goes to the tab that has it.
    pub(crate) fn open_tab(&mut self, agent: String, scope: ConversationScope, start: ConversationSelector) {
        if let Some(at) = self.tabs.iter().position(|tab| tab.is_of(&agent, &scope, &start)) {
            return self.go_to(at);
        }
        if self.tabs.len() == MOST_TABS {
            self.notice = Some(format!("{MOST_TABS} conversations are open; close one: /close"));
            return;
        }
        self.last_tab += 1;
        let mut tab = ChatTab::new(TabId(self.last_tab), agent.clone(), scope, start.clone());
        if !start.new {
            tab.is_loading = true;
            self.engine.start(tab.id, &tab.scope, ChatJob::Load { agent, selector: start });
        }
        self.tabs.push(tab);
        self.go_to(self.tabs.len() - 1);
    }

    fn go_to(&mut self, at: usize) {
        if at < self.tabs.len() {
            self.active = at;
            self.tabs[at].is_unread = false;
        }
    }

    fn close_tab(&mut self) {
        if self.active < self.tabs.len() {
            let tab = self.tabs.remove(self.active);
            if let Some(exchange) = tab.exchange {
                exchange.leave();
            }
        }
        self.active = self.active.min(self.tabs.len().saturating_sub(1));
        if self.tabs.is_empty() {
            self.choose_agent();
        }
    }

    fn choose_agent(&mut self) {
        self.overlay =
            Some(Overlay::Agents(FilterList::empty("no agents; type the URL of one and press Enter")));
        self.engine.start(TabId(0), &ConversationScope::default(), ChatJob::Choices);
    }

    /// Takes an event of a job.
    pub(crate) fn event(&mut self, event: ChatEvent) {
        if let JobEvent::Choices(choices) = event.kind {
            return self.take_choices(choices);
        }
        let Some(at) = self.tabs.iter().position(|tab| tab.id == event.tab) else {
            if let JobEvent::Ended(Some(failure)) = event.kind {
                self.notice = Some(failure.message);
            }
            return;
        };
        let is_active = at == self.active;
        let is_unseen = !is_active || !self.is_visible;
        let tab = &mut self.tabs[at];
        let is_exchange = tab.exchange.as_ref().is_some_and(|job| job.id == event.job);
        let is_cancel = tab.cancel.as_ref().is_some_and(|job| job.id == event.job);
        match event.kind {
            // A reply that was left goes on in the store only.
            JobEvent::Agent(said) if is_exchange || is_cancel => {
                tab.chat.take(&said);
                tab.is_unread |= is_unseen;
            }
            JobEvent::Ids(ids) if is_exchange => tab.chat.take_ids(ids),
            JobEvent::Agent(_) | JobEvent::Ids(_) | JobEvent::Choices(_) => {}
            JobEvent::Wire(line) => tab.push_wire(line),
            JobEvent::Note(note) => tab.chat.push_note(note),
            JobEvent::Card(card) => {
                tab.card = Some(*card);
                if is_active && self.overlay.is_none() {
                    self.overlay = Some(Overlay::Card(0));
                }
            }
            JobEvent::Loaded(chat) => self.take_loaded(at, *chat),
            JobEvent::Forgotten => {
                tab.chat = ChatConversation::default();
                tab.transcript.clear();
                tab.start = ConversationSelector { new: true, ..ConversationSelector::default() };
                tab.chat.push_note("deleted the conversation; the next message starts a new one");
            }
            JobEvent::Attached(part) => tab.attachments.push(*part),
            JobEvent::Saved(path) => tab.chat.push_note(format!("saved {}", path.display())),
            JobEvent::Ended(failure) => {
                tab.is_loading = false;
                if is_exchange {
                    tab.exchange = None;
                }
                if is_cancel {
                    tab.cancel = None;
                }
                if let Some(failure) = failure {
                    tab.chat.push_failure(failure.to_string());
                    tab.is_unread |= is_unseen;
                }
            }
        }
    }

    fn take_loaded(&mut self, at: usize, mut chat: ChatConversation) {
        let tab = &mut self.tabs[at];
        tab.is_loading = false;
        // Notes and messages of the time before it was loaded come after it.
        chat.entries.append(&mut tab.chat.entries);
        tab.chat = chat;
        tab.transcript.clear();
        let task = tab.watch.take().or_else(|| tab.chat.running_task().map(str::to_owned));
        if let (Some(task), None) = (task, &tab.exchange) {
            self.watch(at, task);
        }
    }

    fn take_choices(&mut self, choices: Vec<ChatChoice>) {
        if let Some(Overlay::Agents(list)) = &mut self.overlay {
            let entries = choices.into_iter().map(|choice| ListEntry {
                label: choice.agent.clone(),
                detail: choice.detail.clone(),
                value: choice,
            });
            list.set_entries(entries.collect());
        }
    }

    /// Takes text that was pasted.
    pub(crate) fn paste(&mut self, text: &str) {
        match &mut self.overlay {
            Some(Overlay::Search(input, _)) => {
                input.paste(text);
            }
            Some(_) => {}
            None => {
                if self.tab().is_some_and(|tab| !tab.composer.paste(text)) {
                    let reason =
                        "the pasted text has a line of more than 1 MiB; send it as a file: /attach FILE";
                    self.notice = Some(reason.to_owned());
                }
            }
        }
    }

    /// Takes an event of the mouse.
    pub(crate) fn mouse(&mut self, event: MouseEvent) {
        match event.kind {
            MouseEventKind::ScrollUp => self.scroll(3, true),
            MouseEventKind::ScrollDown => self.scroll(3, false),
            MouseEventKind::Down(MouseButton::Left) if self.overlay.is_none() => {
                let at = Position::new(event.column, event.row);
                if let Some(tab) = self.tab_areas.iter().position(|area| area.contains(at)) {
                    self.go_to(tab);
                }
            }
            _ => {}
        }
    }

    fn scroll(&mut self, rows: usize, is_up: bool) {
        let moved = |from: usize| if is_up { from.saturating_add(rows) } else { from.saturating_sub(rows) };
        match &mut self.overlay {
            Some(Overlay::Wire(from)) => *from = moved(*from),
            Some(Overlay::Card(first) | Overlay::Help(first)) => {
                *first = if is_up { first.saturating_sub(rows) } else { first.saturating_add(rows) };
            }
            Some(_) => {}
            None => {
                if let Some(tab) = self.tab() {
                    // The view limits it to what exists.
                    tab.scroll = moved(tab.scroll);
                }
            }
        }
    }

    /// Takes a key.
    pub(crate) fn key(&mut self, key: KeyEvent) {
        self.notice = None;
        let was_quitting = std::mem::take(&mut self.is_quitting);
        if self.overlay.is_some() {
            return self.overlay_key(key);
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_alt = key.modifiers.contains(KeyModifiers::ALT);
        let is_empty = self.tab().is_none_or(|tab| tab.composer.is_empty());
        match key.code {
            KeyCode::Char('c') if is_control => self.interrupt(was_quitting),
            KeyCode::Char('d') if is_control && is_empty => self.quit(),
            KeyCode::F(1) => self.overlay = Some(Overlay::Help(0)),
            KeyCode::Char('?') if is_empty => self.overlay = Some(Overlay::Help(0)),
            KeyCode::F(2) => self.run(ChatCommand::Artifacts),
            KeyCode::F(3) => self.run(ChatCommand::Card),
            KeyCode::F(4) => self.run(ChatCommand::Wire),
            KeyCode::Char('o') if is_control => self.choose_agent(),
            KeyCode::Char('t') if is_control => self.run(ChatCommand::New),
            KeyCode::Char('p') if is_control => self.open_palette(),
            KeyCode::Char('f') if is_control => {
                self.overlay = Some(Overlay::Search(TextInput::default(), None));
            }
            KeyCode::Char(digit @ '1'..='9') if is_alt => {
                self.go_to(usize::from(digit as u8 - b'1'));
            }
            KeyCode::PageUp if is_control => self.go_to(self.active.saturating_sub(1)),
            KeyCode::PageDown if is_control => self.go_to(self.active + 1),
            KeyCode::PageUp => self.scroll(self.page.max(1), true),
            KeyCode::PageDown => self.scroll(self.page.max(1), false),
            KeyCode::Tab => self.tab_key(is_empty),
            KeyCode::Esc => self.leave(),
            KeyCode::Enter if key.modifiers.is_empty() => self.enter(),
            _ => {
                if let Some(tab) = self.tab() {
                    tab.composer.key(key);
                }
            }
        }
    }

    /// Completes a command, else goes to the next tab.
    fn tab_key(&mut self, is_empty: bool) {
        let next = (self.active + 1) % self.tabs.len().max(1);
        let Some(tab) = self.tab() else { return };
        if is_empty {
            return self.go_to(next);
        }
        let typed = tab.composer.text();
        if let [(usage, _)] = command::completions(typed.trim()).as_slice() {
            let word = usage.split(' ').next().unwrap_or(usage);
            let space = if usage.contains(' ') { " " } else { "" };
            tab.composer.set(&format!("{word}{space}"));
        }
    }

    /// Ctrl-C: cancels the task of a running reply; else clears what is written; else quits, the second time.
    fn interrupt(&mut self, was_quitting: bool) {
        let Some(tab) = self.tabs.get_mut(self.active) else { return self.quit() };
        if tab.exchange.is_some() && tab.cancel.is_none() {
            match tab.chat.running_task().map(str::to_owned) {
                Some(task) => {
                    let job = ChatJob::Cancel { agent: tab.agent.clone(), task };
                    tab.cancel = Some(self.engine.start(tab.id, &tab.scope, job));
                    self.notice = Some("canceling the task; press Esc to leave it running".to_owned());
                }
                // Before the first event the task has no id to cancel.
                None => self.leave(),
            }
        } else if !tab.composer.is_empty() {
            tab.composer.clear();
        } else if was_quitting {
            self.quit();
        } else {
            self.is_quitting = true;
            let what = if self.is_pane { "leave the chat" } else { "quit" };
            self.notice = Some(format!("press Ctrl-C again to {what}"));
        }
    }

    /// Esc: goes to the end of the conversation; else stops following the reply, and the task goes on at the agent; else leaves the
    /// pane.
    fn leave(&mut self) {
        let is_pane = self.is_pane;
        let Some(tab) = self.tab() else { return };
        let was_scrolled = std::mem::take(&mut tab.scroll) > 0;
        if let Some(exchange) = tab.exchange.take() {
            exchange.leave();
            tab.chat.push_note("stopped following the reply; the task continues; follow it: /watch");
        } else if is_pane && !was_scrolled {
            self.has_quit = true;
        }
    }

    fn quit(&mut self) {
        if self.has_running_reply() && !self.is_pane && !matches!(self.overlay, Some(Overlay::Confirm(_))) {
            self.overlay = Some(Overlay::Confirm(Confirmation::Quit));
        } else {
            self.has_quit = true;
        }
    }

    fn enter(&mut self) {
        let Some(tab) = self.tabs.get_mut(self.active) else { return self.choose_agent() };
        let input = ChatInput::parse(&tab.composer.text());
        match input {
            ChatInput::Empty if tab.attachments.is_empty() => {}
            ChatInput::Empty => self.send(None),
            ChatInput::Message(text) => self.send(Some(text)),
            ChatInput::Invalid(reason) => self.notice = Some(reason),
            ChatInput::Command(command) => {
                tab.composer.take();
                self.run(command);
            }
        }
    }

    fn send(&mut self, text: Option<String>) {
        let Some(tab) = self.tabs.get_mut(self.active) else { return };
        if tab.exchange.is_some() || tab.is_loading {
            self.notice =
                Some("a reply is running; Esc stops following it, Ctrl-C cancels the task".to_owned());
            return;
        }
        tab.composer.take();
        let mut parts: Vec<Part> = text.into_iter().map(Part::Text).collect();
        parts.append(&mut tab.attachments);
        let selector = tab.chat.selector(&tab.start);
        tab.chat.push_sent(&parts);
        tab.scroll = 0;
        let job = ChatJob::Send { agent: tab.agent.clone(), selector, parts };
        tab.exchange = Some(self.engine.start(tab.id, &tab.scope, job));
    }

    fn watch(&mut self, at: usize, task: String) {
        let Some(tab) = self.tabs.get_mut(at) else { return };
        let selector = tab.chat.watch_selector(&task);
        tab.chat.push_note(format!("following task {task}"));
        let job = ChatJob::Watch { agent: tab.agent.clone(), selector, task };
        tab.exchange = Some(self.engine.start(tab.id, &tab.scope, job));
    }

    fn open_palette(&mut self) {
        let entries = command::COMMANDS.iter().map(|(usage, help)| ListEntry {
            label: (*usage).to_owned(),
            detail: (*help).to_owned(),
            value: *usage,
        });
        self.overlay = Some(Overlay::Palette(FilterList::new(entries.collect())));
    }

    /// Runs a command.
    pub(super) fn run(&mut self, command: ChatCommand) {
        match command {
            ChatCommand::Quit => return self.quit(),
            ChatCommand::Help => return self.overlay = Some(Overlay::Help(0)),
            ChatCommand::Agents(None) => return self.choose_agent(),
            ChatCommand::Agents(Some(agent)) => {
                return self.open_tab(agent, ConversationScope::default(), ConversationSelector::default());
            }
            _ => {}
        }
        let Some(tab) = self.tabs.get_mut(self.active) else { return self.choose_agent() };
        let nothing = |what: &str| Some(format!("this conversation has no {what}"));
        match command {
            ChatCommand::New => {
                let (agent, scope) = (tab.agent.clone(), tab.scope.clone());
                let start = ConversationSelector { new: true, ..ConversationSelector::default() };
                self.open_tab(agent, scope, start);
            }
            ChatCommand::Close => self.close_tab(),
            ChatCommand::Attach(value) => {
                self.engine.start(tab.id, &tab.scope, ChatJob::Attach { kind: PartKind::File, value });
            }
            ChatCommand::Data(value) => {
                self.engine.start(tab.id, &tab.scope, ChatJob::Attach { kind: PartKind::Data, value });
            }
            ChatCommand::Detach => tab.attachments.clear(),
            ChatCommand::Artifacts => self.list_artifacts(),
            ChatCommand::Save(range, dir) => match tab.chat.artifacts_in(range) {
                Ok(artifacts) => {
                    let dir = dir.map_or_else(|| self.save_dir.clone(), PathBuf::from);
                    self.engine.start(tab.id, &tab.scope, ChatJob::Save { artifacts, dir });
                }
                Err(reason) => self.notice = Some(reason),
            },
            ChatCommand::Open(number) => match tab.chat.artifacts_in(ArtifactRange::One(number)) {
                Ok(_) => self.overlay = Some(Overlay::Confirm(Confirmation::Open(number))),
                Err(reason) => self.notice = Some(reason),
            },
            ChatCommand::Watch(task) => match task.or_else(|| tab.chat.ids.task_id.clone()) {
                Some(task) if tab.exchange.is_none() => self.watch(self.active, task),
                Some(_) => self.notice = Some("a reply is already running".to_owned()),
                None => self.notice = nothing("task"),
            },
            ChatCommand::Cancel => match tab.chat.ids.task_id.clone() {
                Some(task) => {
                    let job = ChatJob::Cancel { agent: tab.agent.clone(), task };
                    tab.cancel = Some(self.engine.start(tab.id, &tab.scope, job));
                }
                None => self.notice = nothing("task"),
            },
            ChatCommand::Card if tab.card.is_some() => self.overlay = Some(Overlay::Card(0)),
            ChatCommand::Card => {
                self.engine.start(tab.id, &tab.scope, ChatJob::Card { agent: tab.agent.clone() });
            }
            ChatCommand::Wire => self.overlay = Some(Overlay::Wire(0)),
            ChatCommand::Search(text) => {
                self.overlay = Some(Overlay::Search(TextInput::with_text(&text), None));
                self.search_next();
            }
            ChatCommand::Copy(source) => self.copy(source),
            ChatCommand::Ids => {
                let ids = &tab.chat.ids;
                let word = |id: &Option<String>| id.clone().unwrap_or_else(|| "-".to_owned());
                let text = format!(
                    "conversation {}\ncontext-id {}\ntask-id {}",
                    word(&ids.conversation),
                    word(&ids.context_id),
                    word(&ids.task_id)
                );
                tab.chat.push_note(text);
            }
            ChatCommand::Forget if tab.chat.ids.conversation.is_some() => {
                self.overlay = Some(Overlay::Confirm(Confirmation::Forget));
            }
            ChatCommand::Forget => self.notice = Some("this conversation is not stored".to_owned()),
            ChatCommand::Theme(name) => self.set_theme(&name),
            ChatCommand::Quit | ChatCommand::Help | ChatCommand::Agents(_) => {}
        }
    }

    fn set_theme(&mut self, name: &str) {
        match self.theme.named(name) {
            Some(theme) => self.theme = theme,
            None => self.notice = Some("/theme takes dark, light or none".to_owned()),
        }
    }

    fn copy(&mut self, source: CopySource) {
        let Some(tab) = self.tab() else { return };
        let (what, text) = match source {
            CopySource::Reply => ("reply", tab.chat.last_reply().map(|entry| entry.text())),
            CopySource::Conversation => ("conversation id", tab.chat.ids.conversation.clone()),
            CopySource::Context => ("context id", tab.chat.ids.context_id.clone()),
            CopySource::Task => ("task id", tab.chat.ids.task_id.clone()),
            CopySource::Artifact(number) => {
                let all = tab.chat.artifacts();
                let found = match number {
                    Some(number) => all.get(number - 1),
                    None => all.iter().rfind(|artifact| artifact.id.is_some()),
                };
                ("artifact id", found.and_then(|artifact| artifact.id.clone()))
            }
        };
        self.notice = Some(match &text {
            Some(_) => format!("copied the {what}"),
            None => format!("this conversation has no {what}"),
        });
        self.clipboard = text;
    }

    fn list_artifacts(&mut self) {
        let Some(tab) = self.tab() else { return };
        let all = tab.chat.artifacts();
        if all.is_empty() {
            self.notice = Some("this conversation has no artifacts".to_owned());
            return;
        }
        let entries = all.iter().enumerate().map(|(at, artifact)| ListEntry {
            label: format!("{} {}", at + 1, artifact.name),
            detail: artifact.facts(),
            value: at + 1,
        });
        self.overlay = Some(Overlay::Artifacts(FilterList::new(entries.collect())));
    }

    fn overlay_key(&mut self, key: KeyEvent) {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let closes = matches!(key.code, KeyCode::Esc | KeyCode::Char('q') | KeyCode::F(_))
            || (is_control && key.code == KeyCode::Char('c'));
        match self.overlay.take() {
            Some(Overlay::Help(_)) if key.code == KeyCode::Char('?') => {}
            Some(Overlay::Help(_) | Overlay::Card(_) | Overlay::Wire(_)) if closes => {}
            Some(overlay @ (Overlay::Help(_) | Overlay::Card(_) | Overlay::Wire(_))) => {
                self.overlay = Some(overlay);
                match key.code {
                    KeyCode::Up | KeyCode::Char('k') => self.scroll(1, true),
                    KeyCode::Down | KeyCode::Char('j') => self.scroll(1, false),
                    KeyCode::PageUp => self.scroll(self.page.max(1), true),
                    KeyCode::PageDown | KeyCode::Char(' ') => self.scroll(self.page.max(1), false),
                    _ => {}
                }
            }
            Some(Overlay::Agents(list)) => self.agents_key(list, key),
            Some(Overlay::Artifacts(mut list)) => match list.key(key) {
                ListOutcome::Chosen(number) => self.run(ChatCommand::Save(ArtifactRange::One(number), None)),
                ListOutcome::Left => {}
                ListOutcome::Open => self.overlay = Some(Overlay::Artifacts(list)),
            },
            Some(Overlay::Palette(mut list)) => match list.key(key) {
                ListOutcome::Chosen(usage) => self.take_palette(usage),
                ListOutcome::Left => {}
                ListOutcome::Open => self.overlay = Some(Overlay::Palette(list)),
            },
            Some(Overlay::Search(mut input, found)) => match key.code {
                KeyCode::Esc => {}
                KeyCode::Char('c') if is_control => {}
                KeyCode::Enter | KeyCode::Up => {
                    self.overlay = Some(Overlay::Search(input, found));
                    self.search_next();
                }
                _ => {
                    input.key(key);
                    self.overlay = Some(Overlay::Search(input, None));
                }
            },
            Some(Overlay::Confirm(confirmation)) => match key.code {
                KeyCode::Char('y' | 'Y') => self.confirmed(&confirmation),
                // Enter is not a yes: it may be typed ahead.
                KeyCode::Esc | KeyCode::Char(_) => {}
                _ => self.overlay = Some(Overlay::Confirm(confirmation)),
            },
            None => {}
        }
    }

    fn agents_key(&mut self, mut list: FilterList<ChatChoice>, key: KeyEvent) {
        let typed = list.filter().trim().to_owned();
        match list.key(key) {
            ListOutcome::Chosen(choice) => {
                let continued = choice.conversation.map(Continuation::Id);
                let new = continued.is_none();
                let selector = ConversationSelector { new, continued, ..ConversationSelector::default() };
                self.open_tab(choice.agent, choice.scope, selector);
            }
            // A URL need not be in the list.
            ListOutcome::Open if key.code == KeyCode::Enter && typed.contains("://") => {
                self.open_tab(typed, ConversationScope::default(), ConversationSelector::default());
            }
            ListOutcome::Left if self.tabs.is_empty() => self.has_quit = true,
            ListOutcome::Left => {}
            ListOutcome::Open => self.overlay = Some(Overlay::Agents(list)),
        }
    }

    fn take_palette(&mut self, usage: &str) {
        let word = usage.split(' ').next().unwrap_or(usage);
        // A command that requires an argument waits for it; one with an optional argument runs at once.
        let requires = usage.contains(' ') && !usage.contains('[');
        match ChatInput::parse(word) {
            ChatInput::Command(command) if !requires => self.run(command),
            _ => {
                if let Some(tab) = self.tab() {
                    tab.composer.set(&format!("{word} "));
                }
            }
        }
    }

    fn search_next(&mut self) {
        let Some(Overlay::Search(input, found)) = &self.overlay else { return };
        let (text, found) = (input.text().to_owned(), *found);
        let page = self.page;
        let Some(tab) = self.tab() else { return };
        let len = tab.transcript.len();
        let row = if text.is_empty() { None } else { tab.transcript.find_above(&text, found.unwrap_or(len)) };
        match row {
            Some(row) => {
                // The match is in the middle of the view.
                tab.scroll = len.saturating_sub(row + page / 2 + 1);
                self.overlay = Some(Overlay::Search(TextInput::with_text(&text), Some(row)));
            }
            None => {
                self.notice = Some(format!("no match above for \"{text}\""));
                self.overlay = Some(Overlay::Search(TextInput::with_text(&text), None));
            }
        }
    }

    fn confirmed(&mut self, confirmation: &Confirmation) {
        let Some(tab) = self.tabs.get(self.active) else { return };
        match confirmation {
            Confirmation::Quit => self.has_quit = true,
            Confirmation::Forget => {
                if let Some(conversation) = tab.chat.ids.conversation.clone() {
                    self.engine.start(tab.id, &tab.scope, ChatJob::Forget { conversation });
                }
            }
            Confirmation::Open(number) => {
                let found = tab.chat.artifacts_in(ArtifactRange::One(*number)).ok();
                if let Some(artifact) = found.and_then(|all| all.into_iter().next()) {
                    self.engine.start(
                        tab.id,
                        &tab.scope,
                        ChatJob::Open { artifact, dir: self.save_dir.clone() },
                    );
                }
            }
        }
    }
}
