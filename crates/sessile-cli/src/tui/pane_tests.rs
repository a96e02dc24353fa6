//! Locks, history and agents with rows, hostile texts in them, and attention to questions and credentials.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::style::Color;
use serde_json::json;
use sessile::context::Guard;
use sessile_wire::a2a::{AgentEvent, Dialect};

use super::action::{TuiAction, UndoQuestion};
use super::app::{Pane, TuiApp, TuiEffect};
use super::loader::LoaderMessage;
use super::model::{
    AgentRow, AgentRowKind, AttentionTarget, Detail, DetailKey, DetailSection, HistoryRow, LockRow, Snapshot,
};
use super::tests::{
    HOUR, NOW, app_with, app_with_jobs, context, full, lines, press, session, terminal, text,
};
use crate::agent_session::Continuation;
use crate::chat::engine::{ChatJob, ConversationScope, JobEvent};
use crate::chat::started_jobs::StartedJobs;

fn lock(name: &str, token: i64) -> LockRow {
    LockRow {
        key: format!("{name} {token}"),
        name: name.to_owned(),
        mode: "exclusive",
        token,
        holder: "ann@box session web".to_owned(),
        since_ms: NOW - HOUR / 2,
        until_ms: Some(NOW + HOUR),
        waiting: 2,
    }
}

fn operation(number: i64, command: &str, subject: &str) -> HistoryRow {
    HistoryRow {
        id: number.to_string(),
        number: Some(number),
        at: sessile::clock::rfc3339(NOW - 60_000),
        at_ms: NOW - 60_000 + number,
        command: command.to_owned(),
        subject: subject.to_owned(),
        place: "/dev/pts/1".to_owned(),
        note: String::new(),
        is_undone: false,
        is_undoable: true,
    }
}

fn conversation(key: &str, task_state: &str) -> AgentRow {
    AgentRow {
        kind: AgentRowKind::Conversation,
        key: key.to_owned(),
        name: Some("plan".to_owned()),
        url: "http://127.0.0.1:8000".to_owned(),
        session: Some("01890a5d-0001".to_owned()),
        context: Some("staging".to_owned()),
        task_state: Some(task_state.to_owned()),
        items: 4,
        used_at: sessile::clock::rfc3339(NOW - 60_000),
        needs_input: task_state == "input-required",
    }
}

fn agent(name: &str) -> AgentRow {
    AgentRow {
        kind: AgentRowKind::Agent,
        key: format!("agent {name}"),
        name: Some(name.to_owned()),
        session: None,
        context: None,
        task_state: None,
        items: 0,
        used_at: String::new(),
        ..conversation("", "")
    }
}

fn app() -> TuiApp {
    let event = HistoryRow {
        note: "cannot be undone".to_owned(),
        is_undoable: false,
        ..operation(12, "session start", "web")
    };
    let undone =
        HistoryRow { is_undone: true, is_undoable: false, ..operation(11, "config set", "lock-timeout") };
    app_with(Snapshot {
        locks: vec![lock("deploy", 7), lock("migrate", 8)],
        operations: vec![event, undone, operation(9, "context create", "scratch")],
        agents: vec![conversation("019a-c1", "input-required"), agent("research")],
        ..Snapshot::default()
    })
}

#[test]
fn locks_have_holder_age_lease_and_waiters() {
    let mut app = app();
    press(&mut app, "3");
    let shown = text(&mut app);
    for words in [">deploy", "migrate", "exclusive", "ann@box session", "30m", "in 1h00m", "WAITING"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    press(&mut app, "b");
    assert!(text(&mut app).contains("Break lock \"deploy\", held by ann@box session web?"));
    let effects = press(&mut app, "y");
    let [TuiEffect::Perform(TuiAction::BreakLock { name, token: 7 })] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(name, "deploy");
}

#[test]
fn history_has_command_subject_and_note() {
    let mut app = app();
    press(&mut app, "4");
    let shown = text(&mut app);
    for words in [">12", "session start", "cannot be undone", "context create", "scratch", "WHEN"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[test]
fn undo_that_is_impossible_names_and_selects_the_next_one() {
    let mut app = app();
    let effects = press(&mut app, "4u");
    let [TuiEffect::AskUndo { number: 12, others }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(others, &[9], "an undone operation is not offered");
    let refusal = Some("operation 12 cannot be undone: a session that was started can be stopped".to_owned());
    app.ask_undo(UndoQuestion { number: 12, refusal, instead: Some(9) });
    let shown = text(&mut app);
    assert!(shown.contains("operation 12 cannot be undone: a session"), "{shown}");
    assert!(shown.contains("operation 9:") && shown.contains("scratch"), "{shown}");
    assert!(press(&mut app, "y\n").is_empty(), "nothing is undone without a question");
    assert!(text(&mut app).contains(">9"));
    assert!(matches!(&press(&mut app, "u")[..], [TuiEffect::AskUndo { number: 9, .. }]));
    app.ask_undo(UndoQuestion { number: 9, refusal: None, instead: None });
    assert!(text(&mut app).contains("Undo operation 9: context create scratch?"));
    let effects = press(&mut app, "y");
    assert!(matches!(&effects[..], [TuiEffect::Perform(TuiAction::Undo { number: 9 })]), "{effects:?}");
}

#[test]
fn impossible_undo_without_another_says_so() {
    let mut app = app();
    press(&mut app, "4");
    app.ask_undo(UndoQuestion { number: 12, refusal: Some("no".to_owned()), instead: None });
    assert!(text(&mut app).contains("No earlier change on the list can be undone."));
}

#[test]
fn bottom_line_names_the_keys_that_work() {
    let mut app = full();
    let bottom = |app: &mut TuiApp| lines(app, 80, 24)[23].clone();
    let keys = "n start  a attach  e shell  s stop  Enter open  / filter  o sort  ? help  q quit";
    assert_eq!(bottom(&mut app), keys);
    assert_eq!(lines(&mut app, 78, 24)[23], &keys[..72], "a key that does not fit is left out as a whole");
    press(&mut app, "3");
    assert_eq!(bottom(&mut app), "b break  / filter  o sort  ? help  q quit  : palette");
    press(&mut app, "1s");
    assert_eq!(bottom(&mut app), "", "a dialog names its own keys");
}

#[test]
fn long_error_is_readable_and_gone_with_the_next_key() {
    let mut app = full();
    let long = format!("{}; hint: the end", "a reason of several words ".repeat(8));
    app.receive(LoaderMessage::Done(Err(long)));
    let shown = text(&mut app);
    assert!(shown.contains("error: a reason") && shown.contains("hint: the end"), "{shown}");
    press(&mut app, "j");
    assert!(!text(&mut app).contains("a reason of"));
    app.receive(LoaderMessage::Done(Err("x".repeat(1 << 20))));
    assert!(lines(&mut app, 20, 5)[0].contains('1'), "the tabs stay");
}

#[test]
fn agents_have_name_address_and_state() {
    let mut app = app();
    press(&mut app, "5");
    let shown = text(&mut app);
    for words in ["conversation", "plan", "input-required", "research", "http://127.0.0.1"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[test]
fn conversation_continues_in_its_session_or_context() {
    let row = conversation("019a-c1", "input-required");
    assert!(matches!(row.start().continued, Some(Continuation::Id(id)) if id == "019a-c1"));
    assert_eq!(conversation("", "").agent(), "http://127.0.0.1:8000");
    let scope = row_scope(Some("01890a5d-0001"), Some("staging"));
    assert_eq!((scope.session.as_deref(), scope.context), (Some("01890a5d-0001"), None));
    let scope = row_scope(None, Some("staging"));
    assert_eq!((scope.session, scope.context.as_deref()), (None, Some("staging")));
    assert_eq!(row_scope(None, None), ConversationScope::default());
    let named = agent("research");
    assert_eq!((named.agent().as_str(), named.scope()), ("research", ConversationScope::default()));
    assert!(named.start().continued.is_none());
}

fn row_scope(session: Option<&str>, context: Option<&str>) -> ConversationScope {
    let (session, context) = (session.map(str::to_owned), context.map(str::to_owned));
    AgentRow { session, context, ..conversation("019a-c1", "working") }.scope()
}

#[test]
fn chat_pane_keeps_replies_and_drafts_of_other_panes() {
    let jobs = StartedJobs::default();
    let agents = vec![conversation("019a-c1", "input-required"), agent("research")];
    let mut app = app_with_jobs(Snapshot { agents, ..Snapshot::default() }, jobs.clone());
    press(&mut app, "5\n");
    assert_eq!(app.pane, Pane::Chat);
    assert!(matches!(jobs.last().job, ChatJob::Load { .. }));
    assert_eq!(jobs.last().scope.session.as_deref(), Some("01890a5d-0001"));
    let send = |app: &mut TuiApp, kind| app.receive(LoaderMessage::Chat(Box::new(jobs.event(kind))));
    send(&mut app, JobEvent::Loaded(Box::default()));
    send(&mut app, JobEvent::Ended(None));
    press(&mut app, "q1?:hello");
    assert!(text(&mut app).contains("> q1?:hello"), "letters are text: {}", text(&mut app));
    press(&mut app, "\n");
    assert!(matches!(jobs.last().job, ChatJob::Send { .. }));
    app.paste("a draft");
    app.key(KeyEvent::new(KeyCode::BackTab, KeyModifiers::SHIFT));
    assert_eq!(app.pane, Pane::Agents);
    assert!(text(&mut app).contains(" 6 Chat 1*"), "{}", text(&mut app));
    let reply =
        json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "the reply"}]}});
    let reply = AgentEvent::read(reply, Dialect::V1).unwrap();
    send(&mut app, JobEvent::Agent(Box::new(reply)));
    assert!(press(&mut app, "q").is_empty(), "a running reply is not left without a question");
    assert!(text(&mut app).contains("Quit while an agent replies?"));
    press(&mut app, "n");
    send(&mut app, JobEvent::Ended(None));
    assert!(text(&mut app).contains(" 6 Chat 1+"), "the reply is unread");
    press(&mut app, "6");
    let shown = text(&mut app);
    assert!(shown.contains("the reply") && shown.contains("> a draft"), "{shown}");
    app.key(KeyEvent::new(KeyCode::BackTab, KeyModifiers::SHIFT));
    assert!(matches!(&press(&mut app, "q")[..], [TuiEffect::Quit]));
}

#[test]
fn chat_without_a_conversation_lists_the_agents() {
    let jobs = StartedJobs::default();
    let mut app = app_with_jobs(Snapshot::default(), jobs.clone());
    press(&mut app, "6");
    assert!(matches!(jobs.last().job, ChatJob::Choices));
    assert!(text(&mut app).contains("agents and conversations"));
    press(&mut app, "\x1b");
    assert_eq!(app.pane, Pane::Agents);
}

#[test]
fn chat_pane_has_the_mouse_and_results_of_the_tui() {
    let mut app = app();
    press(&mut app, "5\n");
    text(&mut app);
    app.receive(LoaderMessage::Done(Ok("stopped session \"web\"".to_owned())));
    assert!(lines(&mut app, 80, 24)[23].contains("stopped session"));
    let kind = MouseEventKind::Down(MouseButton::Left);
    app.mouse(MouseEvent { kind, column: 3, row: 10, modifiers: KeyModifiers::NONE });
    assert_eq!(app.pane, Pane::Chat);
    app.mouse(MouseEvent { kind, column: 3, row: 0, modifiers: KeyModifiers::NONE });
    assert_eq!(app.pane, Pane::Sessions);
}

#[test]
fn only_conversations_have_messages() {
    let mut app = app();
    let effects = press(&mut app, "5m");
    let [TuiEffect::Open(Some(key))] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(*key, DetailKey::Conversation("019a-c1".to_owned()));
    press(&mut app, "\x1bj");
    assert!(press(&mut app, "m").is_empty());
    assert!(text(&mut app).contains("select a conversation"));
}

#[test]
fn attach_makes_the_selected_session_the_terminals() {
    let mut app = full();
    let effects = press(&mut app, "ja");
    let [TuiEffect::Perform(TuiAction::AttachSession { id })] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(*id, session(2).id);
}

#[test]
fn questions_and_credentials_need_a_person() {
    let mut app = app_with(Snapshot {
        agents: vec![agent("research"), conversation("019a-c1", "input-required")],
        credentials: vec![("gh-bot".to_owned(), NOW + 300_000), ("old".to_owned(), NOW - 1)],
        ..Snapshot::default()
    });
    let shown = text(&mut app);
    assert!(shown.contains("! plan requires input (+2 more, press !)"), "{shown}");
    let items = &app.attention.items;
    assert_eq!(items[1].text, "credential \"gh-bot\" expires in 5m");
    assert_eq!(
        (items[2].text.as_str(), &items[2].target),
        ("credential \"old\" expired", &AttentionTarget::Credential("old".to_owned()))
    );
    press(&mut app, "!");
    assert_eq!((app.pane, app.agents.selected().unwrap().key.as_str()), (Pane::Agents, "019a-c1"));
    press(&mut app, "!");
    let shown = text(&mut app);
    assert!(shown.contains("\"gh-bot\" expires in 5m; renew it: sessile auth login"), "{shown}");
    assert_eq!(app.pane, Pane::Agents);
}

#[test]
fn opened_operation_has_its_difference() {
    let mut app = app();
    press(&mut app, "4j\n");
    let lines = ["...", "  guard = \"approval\"", "- a = 1", "+ a = 2\x1b[2J"].map(str::to_owned).to_vec();
    let sections = vec![DetailSection { title: "/home/ann/scratch.toml".into(), lines, is_diff: true }];
    let key = DetailKey::Operation(11);
    app.receive(LoaderMessage::Detail(Ok(Detail { key, title: "Operation 11".into(), sections })));
    let shown = text(&mut app);
    assert!(shown.contains("- a = 1") && shown.contains("+ a = 2\\u{1b}[2J"), "{shown}");
    let drawn = terminal(&mut app, 80, 24);
    let buffer = drawn.backend().buffer();
    let colors: Vec<Color> =
        buffer.content().iter().filter(|cell| cell.symbol() == "+").map(|cell| cell.fg).collect();
    assert_eq!(colors, [Color::Green]);
}

#[test]
fn hostile_texts_neither_act_nor_break_any_pane() {
    let long = "x".repeat(1 << 20);
    for hostile in
        ["\x1b[2J\u{9b}31m", "\u{202e}gnigats", "日本語日本語日本語日本語", "e\u{301}\u{301}x\n\r", &long]
    {
        let text = || hostile.to_owned();
        let broken_lock = LockRow { name: text(), holder: text(), ..lock("", 1) };
        let broken_operation =
            HistoryRow { place: text(), note: text(), at: text(), ..operation(1, hostile, hostile) };
        let broken_conversation = AgentRow {
            name: Some(text()),
            url: text(),
            context: Some(text()),
            used_at: text(),
            ..conversation("019a", hostile)
        };
        let mut broken_context = context(hostile, Guard::Approval);
        broken_context.description = text();
        broken_context.error = Some(text());
        let mut app = app_with(Snapshot {
            locks: vec![broken_lock],
            operations: vec![broken_operation],
            agents: vec![AgentRow { needs_input: true, ..broken_conversation }],
            contexts: vec![broken_context],
            credentials: vec![(text(), NOW)],
            problems: vec![text()],
            ..Snapshot::default()
        });
        for keys in ["2", "3", "3b", "\x1b4", "5", "5m"] {
            press(&mut app, keys);
            let drawn = terminal(&mut app, 80, 24);
            for cell in drawn.backend().buffer().content() {
                assert!(!sessile::text::acts_on_terminals(cell.symbol()), "{:?}", cell.symbol());
                assert!(cell.symbol().len() < 64, "{}", cell.symbol().len());
            }
        }
    }
}
