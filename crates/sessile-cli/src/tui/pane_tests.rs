//! Locks, history and agents with rows, hostile texts in them, and attention to questions and credentials.

use ratatui::style::Color;
use sessile::context::Guard;

use super::action::{TuiAction, UndoQuestion};
use super::app::{Pane, TuiApp, TuiEffect};
use super::loader::LoaderMessage;
use super::model::{
    AgentRow, AgentRowKind, AttentionTarget, Detail, DetailKey, DetailSection, HistoryRow, LockRow, Snapshot,
};
use super::tests::{HOUR, NOW, app_with, context, full, lines, press, session, terminal, text};

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
fn agents_have_state_and_open_in_their_session() {
    let mut app = app();
    press(&mut app, "5");
    let shown = text(&mut app);
    for words in ["conversation", "plan", "input-required", "research", "http://127.0.0.1"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let effects = press(&mut app, "\n");
    let [TuiEffect::Chat(row)] = &effects[..] else { panic!("{effects:?}") };
    let words = ["chat", "http://127.0.0.1:8000", "--continue=019a-c1", "--session=01890a5d-0001"];
    assert_eq!(row.chat_words(), words);
    let outlived = AgentRow { session: None, ..row.clone() };
    assert_eq!(outlived.chat_words()[3..], ["--context=staging"]);
    assert_eq!(AgentRow { context: None, ..outlived }.chat_words().len(), 3);
    let effects = press(&mut app, "j\n");
    let [TuiEffect::Chat(row)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(row.chat_words(), ["chat", "research"]);
}

#[test]
fn only_conversations_have_messages() {
    let mut app = app();
    let effects = press(&mut app, "5m");
    let [TuiEffect::Open(Some(key))] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(*key, DetailKey::Conversation("019a-c1".to_owned()));
    press(&mut app, "\x1bj");
    assert!(press(&mut app, "m").is_empty());
    assert!(text(&mut app).contains("choose a conversation"));
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
        ("credential \"old\" expired", &AttentionTarget::Credential)
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
