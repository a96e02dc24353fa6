use std::path::PathBuf;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Value, json};
use sessile_wire::a2a::{AgentEvent, Dialect, Part};

use super::app::ChatApp;
use super::draw::draw;
use crate::agent_session::{Continuation, ConversationSelector};
use crate::chat::engine::{ChatChoice, ChatFailure, ChatJob, ConversationScope, JobEvent};
use crate::chat::line_mode::ChatStart;
use crate::chat::model::{ChatConversation, ConversationIds};
use crate::chat::started_jobs::StartedJobs;
use crate::tui::theme::Theme;

/// A chat on a screen of 80 by 24 cells.
struct TestChat {
    app: ChatApp,
    started: StartedJobs,
}

impl TestChat {
    /// Chat with an agent, whose conversation is loaded.
    fn new() -> Self {
        let mut chat = TestChat::unloaded();
        chat.last(JobEvent::Loaded(Box::default()));
        chat.last(JobEvent::Ended(None));
        chat
    }

    fn unloaded() -> Self {
        let started = StartedJobs::default();
        let theme = Theme::new(false, true);
        let mut app = ChatApp::new(Box::new(started.clone()), theme, PathBuf::new());
        app.start(Some(ChatStart {
            agent: "research".to_owned(),
            selector: ConversationSelector::default(),
            task: None,
            reach: crate::agent_session::AgentArgs::default(),
            save_dir: PathBuf::new(),
        }));
        TestChat { app, started }
    }

    fn press(&mut self, code: KeyCode) {
        self.app.key(KeyEvent::new(code, KeyModifiers::NONE));
    }

    fn control(&mut self, c: char) {
        self.app.key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL));
    }

    fn type_line(&mut self, text: &str) {
        self.app.paste(text);
        self.press(KeyCode::Enter);
    }

    fn job(&self) -> ChatJob {
        self.started.last().job
    }

    /// An event of the last job.
    fn last(&mut self, kind: JobEvent) {
        self.app.event(self.started.event(kind));
    }

    fn said(&mut self, raw: Value) {
        self.last(JobEvent::Agent(Box::new(AgentEvent::read(raw, Dialect::V1).unwrap())));
    }

    fn rows(&mut self) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw(&mut self.app, frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let row = |y: u16| {
            let cells = (0..80).map(|x| buffer[(x, y)].symbol().to_owned());
            cells.collect::<String>().trim_end().to_owned()
        };
        (0..24).map(row).collect()
    }

    fn drawn(&mut self) -> String {
        self.rows().join("\n")
    }
}

fn status(state: &str, text: Option<&str>) -> Value {
    let mut status = json!({ "state": format!("TASK_STATE_{state}") });
    if let Some(text) = text {
        status["message"] = json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": text}]});
    }
    json!({"statusUpdate": {"taskId": "task-1", "contextId": "context-1", "status": status}})
}

fn message(text: &str) -> Value {
    json!({"message": {"messageId": "m", "contextId": "context-1", "role": "ROLE_AGENT", "parts": [{"text": text}]}})
}

#[test]
fn message_is_sent_and_its_reply_drawn_with_markdown() {
    let mut chat = TestChat::new();
    chat.type_line("hello");
    let ChatJob::Send { agent, parts, .. } = chat.job() else { panic!("{:?}", chat.job()) };
    assert_eq!((agent.as_str(), parts), ("research", vec![Part::Text("hello".into())]));
    assert!(chat.drawn().contains("waiting for the agent"));
    chat.said(message("# Title\n- **one**\n```\nlet x = 1;\n```\nsee [docs](https://a.example)"));
    chat.last(JobEvent::Ended(None));
    let rows = chat.rows();
    let expected =
        ["you", "hello", "", "research", "Title", "- one", "  let x = 1;", "see docs <https://a.example>"];
    assert_eq!(rows[1..9], expected, "{rows:#?}");
    assert!(rows[21].starts_with("── ready"), "{rows:#?}");
}

#[test]
fn question_is_answered_in_the_same_conversation() {
    let mut chat = TestChat::new();
    chat.type_line("ask");
    let ids = ConversationIds { conversation: Some("019a".into()), ..ConversationIds::default() };
    chat.last(JobEvent::Ids(ids));
    chat.said(status("INPUT_REQUIRED", Some("what is your name?")));
    chat.last(JobEvent::Ended(None));
    let drawn = chat.drawn();
    assert!(drawn.contains("answer>") && drawn.contains("what is your name?"), "{drawn}");
    assert!(drawn.contains("1? research") && drawn.contains("the agent requires input"), "{drawn}");
    chat.type_line("Ann");
    let ChatJob::Send { selector, .. } = chat.job() else { panic!("{:?}", chat.job()) };
    assert!(matches!(selector.continued, Some(Continuation::Id(id)) if id == "019a"));
}

#[test]
fn interrupt_cancels_the_task_and_escape_leaves_it() {
    let mut chat = TestChat::new();
    chat.type_line("stream");
    chat.said(status("WORKING", None));
    assert!(chat.drawn().contains("working; Ctrl-C cancels, Esc leaves"));
    chat.control('c');
    assert!(matches!(chat.job(), ChatJob::Cancel { task, .. } if task == "task-1"));
    chat.said(status("CANCELED", None));
    chat.last(JobEvent::Ended(None));
    chat.press(KeyCode::Esc);
    let drawn = chat.drawn();
    assert!(drawn.contains("research  canceled") && drawn.contains("follow it: /watch"), "{drawn}");
    chat.type_line("/watch");
    assert!(matches!(chat.job(), ChatJob::Watch { task, .. } if task == "task-1"));
    assert!(!chat.app.has_quit());
}

#[test]
fn reply_that_was_left_is_not_drawn() {
    let mut chat = TestChat::new();
    chat.type_line("stream");
    chat.press(KeyCode::Esc);
    chat.said(message("too late"));
    assert!(!chat.drawn().contains("too late"));
}

#[test]
fn second_interrupt_quits_an_idle_chat() {
    let mut chat = TestChat::new();
    chat.app.paste("draft");
    chat.control('c');
    assert!(!chat.drawn().contains("draft"));
    chat.control('c');
    assert!(chat.drawn().contains("press Ctrl-C again to quit") && !chat.app.has_quit());
    chat.press(KeyCode::Char('x'));
    chat.press(KeyCode::Backspace);
    chat.control('c');
    assert!(!chat.app.has_quit(), "another key starts over");
    chat.control('c');
    assert!(chat.app.has_quit());
}

#[test]
fn quit_with_a_running_reply_asks() {
    let mut chat = TestChat::new();
    chat.type_line("stream");
    chat.control('d');
    assert!(chat.drawn().contains("quit while replies are running?"));
    chat.press(KeyCode::Enter);
    assert!(!chat.app.has_quit(), "Enter is not a yes");
    chat.press(KeyCode::Char('y'));
    assert!(chat.app.has_quit());
}

#[test]
fn tabs_keep_their_conversations_and_drafts() {
    let mut chat = TestChat::new();
    chat.app.paste("draft of one");
    chat.control('t');
    assert!(chat.drawn().contains("1 research  2 research"), "{}", chat.drawn());
    chat.type_line("second");
    let ChatJob::Send { selector, .. } = chat.job() else { panic!("{:?}", chat.job()) };
    assert!(selector.new);
    chat.app.key(KeyEvent::new(KeyCode::Char('1'), KeyModifiers::ALT));
    chat.said(message("from the second"));
    chat.last(JobEvent::Ended(None));
    let drawn = chat.drawn();
    assert!(drawn.contains("draft of one") && !drawn.contains("from the second"), "{drawn}");
    assert!(drawn.contains("2+ research"), "{drawn}");
    chat.app.key(KeyEvent::new(KeyCode::Char('2'), KeyModifiers::ALT));
    assert!(chat.drawn().contains("from the second"));
    chat.type_line("/close");
    assert!(chat.drawn().contains("draft of one"));
}

#[test]
fn picker_filters_and_opens_a_conversation_once() {
    let mut chat = TestChat::new();
    chat.control('o');
    let choice = |agent: &str, conversation: Option<&str>| ChatChoice {
        agent: agent.into(),
        scope: ConversationScope::of_conversation(None, Some("staging")),
        conversation: conversation.map(str::to_owned),
        detail: format!("detail of {agent}"),
    };
    chat.last(JobEvent::Choices(vec![choice("research", Some("019a")), choice("deploy", Some("019b"))]));
    for c in "deploy".chars() {
        chat.press(KeyCode::Char(c));
    }
    let drawn = chat.drawn();
    assert!(drawn.contains("› deploy") && !drawn.contains("detail of research"), "{drawn}");
    chat.press(KeyCode::Enter);
    let ChatJob::Load { agent, selector } = chat.job() else { panic!("{:?}", chat.job()) };
    assert_eq!(agent, "deploy");
    assert!(matches!(selector.continued, Some(Continuation::Id(id)) if id == "019b"));
    assert_eq!(chat.started.last().scope.context.as_deref(), Some("staging"), "it continues in its context");
}

#[test]
fn agent_that_is_open_is_not_opened_again() {
    let mut chat = TestChat::new();
    let count = chat.started.count();
    chat.type_line("/agents research");
    assert_eq!(chat.started.count(), count);
    assert!(!chat.drawn().contains(" 2 research"), "{}", chat.drawn());
    chat.type_line("/agents deploy");
    assert!(chat.drawn().contains(" 2 deploy"), "{}", chat.drawn());
}

#[test]
fn pasted_line_over_the_limit_is_reported() {
    let mut chat = TestChat::new();
    chat.app.paste(&"x".repeat(1 << 20));
    assert!(!chat.drawn().contains("1 MiB"));
    chat.app.paste("y");
    assert!(chat.drawn().contains("more than 1 MiB; send it as a file: /attach FILE"), "{}", chat.drawn());
}

#[test]
fn click_on_a_tab_goes_to_it() {
    let mut chat = TestChat::new();
    chat.type_line("/agents deploy");
    chat.app.paste("draft for deploy");
    assert!(chat.drawn().contains("draft for deploy"));
    let kind = MouseEventKind::Down(MouseButton::Left);
    chat.app.mouse(MouseEvent { kind, column: 2, row: 0, modifiers: KeyModifiers::NONE });
    assert!(!chat.drawn().contains("draft for deploy"));
}

#[test]
fn pane_is_left_by_keys_while_a_reply_runs() {
    let mut chat = TestChat::new();
    chat.app = {
        let mut app = ChatApp::pane(Box::new(chat.started.clone()), Theme::new(false, true), PathBuf::new());
        app.open_tab("research".to_owned(), ConversationScope::default(), ConversationSelector::default());
        app
    };
    chat.last(JobEvent::Loaded(Box::default()));
    chat.last(JobEvent::Ended(None));
    assert!(chat.drawn().contains("Shift-Tab other panes"));
    chat.press(KeyCode::F(1));
    assert!(chat.drawn().contains("go to the other panes; replies continue"), "{}", chat.drawn());
    chat.press(KeyCode::Esc);
    assert!(!chat.app.take_quit(), "Esc closed the help");
    chat.type_line("hello");
    chat.control('d');
    assert!(chat.app.take_quit() && chat.app.has_running_reply(), "no confirmation: the reply continues");
    chat.said(message("later"));
    chat.last(JobEvent::Ended(None));
    chat.press(KeyCode::Esc);
    assert!(chat.app.take_quit());
    assert!(chat.drawn().contains("later"));
}

#[test]
fn loaded_task_that_runs_is_followed() {
    let mut chat = TestChat::unloaded();
    let mut loaded = ChatConversation::default();
    loaded.take(&AgentEvent::read(status("WORKING", None), Dialect::V1).unwrap());
    chat.last(JobEvent::Loaded(Box::new(loaded)));
    assert!(matches!(chat.job(), ChatJob::Watch { task, .. } if task == "task-1"));
}

#[test]
fn artifacts_are_listed_saved_and_opened_after_a_yes() {
    let mut chat = TestChat::new();
    chat.press(KeyCode::F(2));
    assert!(chat.drawn().contains("this conversation has no artifacts"));
    chat.type_line("files");
    chat.said(json!({"artifactUpdate": {"taskId": "task-1", "contextId": "context-1",
        "artifact": {"artifactId": "a", "name": "report", "parts": [{"raw": "eA==", "filename": "r.txt"}]}}}));
    chat.said(status("COMPLETED", None));
    chat.last(JobEvent::Ended(None));
    chat.press(KeyCode::F(2));
    assert!(chat.drawn().contains("› 1 report"), "{}", chat.drawn());
    chat.press(KeyCode::Enter);
    assert!(matches!(chat.job(), ChatJob::Save { artifacts, .. } if artifacts.len() == 1));
    chat.type_line("/open 1");
    assert!(chat.drawn().contains("open report (file, 1 bytes) from the agent? [y/N]"), "{}", chat.drawn());
    chat.press(KeyCode::Char('n'));
    assert!(matches!(chat.job(), ChatJob::Save { .. }));
    chat.type_line("/open 1");
    chat.press(KeyCode::Char('y'));
    assert!(matches!(chat.job(), ChatJob::Open { .. }));
}

#[test]
fn forget_prompts_and_the_next_message_starts_a_conversation() {
    let mut chat = TestChat::unloaded();
    let ids = ConversationIds { conversation: Some("019a".into()), ..ConversationIds::default() };
    chat.last(JobEvent::Loaded(Box::new(ChatConversation { ids, ..ChatConversation::default() })));
    chat.last(JobEvent::Ended(None));
    chat.type_line("/forget");
    assert!(chat.drawn().contains("delete this conversation"));
    chat.press(KeyCode::Char('y'));
    assert!(matches!(chat.job(), ChatJob::Forget { conversation } if conversation == "019a"));
    chat.last(JobEvent::Forgotten);
    chat.type_line("hello");
    let ChatJob::Send { selector, .. } = chat.job() else { panic!("{:?}", chat.job()) };
    assert!(selector.new && selector.continued.is_none());
}

#[test]
fn attachments_go_with_the_next_message_only() {
    let mut chat = TestChat::new();
    chat.type_line("/attach notes.txt");
    assert!(matches!(chat.job(), ChatJob::Attach { value, .. } if value == "notes.txt"));
    let file = Part::File { bytes: vec![1], name: Some("notes.txt".into()), mime: None };
    chat.last(JobEvent::Attached(Box::new(file.clone())));
    assert!(chat.drawn().contains("1 attached: [file notes.txt (1 bytes)]"), "{}", chat.drawn());
    chat.type_line("look");
    let ChatJob::Send { parts, .. } = chat.job() else { panic!("{:?}", chat.job()) };
    assert_eq!(parts, [Part::Text("look".into()), file]);
    assert!(!chat.drawn().contains("attached"));
}

#[test]
fn search_scrolls_to_matches_from_the_end() {
    let mut chat = TestChat::new();
    chat.type_line("go");
    let text: String = (1..=200).map(|line| format!("line {line}\n\n")).collect();
    chat.said(message(&text));
    chat.last(JobEvent::Ended(None));
    chat.drawn();
    chat.control('f');
    chat.app.paste("LINE 50");
    chat.press(KeyCode::Enter);
    let drawn = chat.drawn();
    assert!(drawn.contains("line 50\n") && drawn.contains("rows below"), "{drawn}");
    chat.press(KeyCode::Enter);
    assert!(chat.drawn().contains("no match above"), "{}", chat.drawn());
}

#[test]
fn card_wire_log_help_and_palette_are_drawn() {
    let mut chat = TestChat::new();
    chat.press(KeyCode::F(4));
    chat.last(JobEvent::Wire("> POST http://a.example".into()));
    assert!(chat.drawn().contains("> POST http://a.example"));
    chat.press(KeyCode::Esc);
    chat.press(KeyCode::Char('?'));
    assert!(chat.drawn().contains("Alt-Enter, Ctrl-J        new line"), "{}", chat.drawn());
    chat.press(KeyCode::PageDown);
    assert!(chat.drawn().contains("/quit"), "{}", chat.drawn());
    chat.press(KeyCode::Esc);
    chat.control('p');
    for c in "wi".chars() {
        chat.press(KeyCode::Char(c));
    }
    chat.press(KeyCode::Enter);
    assert!(chat.drawn().contains("wire log, redacted"), "{}", chat.drawn());
}

#[test]
fn hostile_text_is_written_out_in_every_place() {
    let evil = "a\u{1b}[2J\u{202e}b\u{200b}\u{9b}31m\x07";
    let mut chat = TestChat::new();
    chat.type_line("go");
    chat.said(json!({"artifactUpdate": {"taskId": evil, "contextId": evil, "artifact": {"artifactId": "a",
        "name": evil, "parts": [{"raw": "eA==", "filename": evil, "mediaType": evil}, {"text": evil}, {"data": {evil: evil}}]}}}));
    chat.said(status("FAILED", Some(evil)));
    chat.last(JobEvent::Note(evil.into()));
    chat.last(JobEvent::Ended(Some(ChatFailure { message: evil.into(), hint: Some(evil.into()) })));
    let mut drawn = vec![chat.drawn()];
    chat.press(KeyCode::F(2));
    drawn.push(chat.drawn());
    chat.press(KeyCode::Esc);
    chat.type_line("/open 1");
    drawn.push(chat.drawn());
    chat.press(KeyCode::Esc);
    chat.app.paste(evil);
    chat.type_line("");
    drawn.push(chat.drawn());
    for screen in drawn {
        assert!(!sessile::text::acts_on_terminals(&screen), "{screen:?}");
        assert!(screen.contains("\\u{1b}") || screen.contains("\\u001b"), "{screen}");
    }
}

#[test]
fn megabyte_and_wide_text_stay_within_the_screen() {
    let mut chat = TestChat::new();
    for text in ["x".repeat(1 << 20), "\u{65e5}\u{672c}e\u{301} ".repeat(1 << 17), "\u{301}".repeat(1 << 19)]
    {
        chat.type_line("go");
        chat.said(message(&text));
        chat.last(JobEvent::Ended(None));
        let rows = chat.rows();
        assert!(rows.iter().all(|row| row.len() < 4_000), "{rows:#?}");
        assert!(chat.drawn().contains("bytes left out"), "{rows:#?}");
    }
}

#[test]
fn small_screens_are_drawn_without_a_panic() {
    let mut chat = TestChat::new();
    chat.type_line("hello");
    chat.said(message("a reply of several words"));
    chat.app.paste("/");
    for (width, height) in [(1, 1), (2, 3), (10, 4), (20, 6), (300, 100)] {
        for key in [KeyCode::F(1), KeyCode::F(4), KeyCode::Null] {
            chat.press(key);
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| draw(&mut chat.app, frame)).unwrap();
            chat.press(KeyCode::Esc);
        }
    }
}
