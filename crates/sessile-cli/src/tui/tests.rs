//! Panes and dialogs on ratatui's test terminal.

use std::path::PathBuf;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;
use sessile::context::Guard;
use sessile::session::lifecycle::Lifecycle;

use super::action::{ApprovalQuestion, TuiAction};
use super::app::{Pane, TuiApp, TuiEffect};
use super::draw::draw;
use super::loader::LoaderMessage;
use super::model::{ContextRow, Detail, DetailKey, DetailSection, ServiceSnapshot, SessionItem, Snapshot};
use super::theme::Theme;
use crate::chat::screen::app::ChatApp;
use crate::chat::started_jobs::StartedJobs;

pub(super) const NOW: i64 = 1_795_000_000_000;
pub(super) const HOUR: i64 = 3_600_000;

pub(super) fn session(number: usize) -> SessionItem {
    SessionItem {
        id: format!("01890a5d-{number:08}"),
        name: Some(format!("web-{number}")),
        context: Some("staging".to_owned()),
        guard: Some(Guard::None),
        state: Lifecycle::Live,
        owner: "ann@box (reviewer)".to_owned(),
        running: Vec::new(),
        started_ms: NOW - HOUR,
        used_ms: NOW - HOUR / 2,
        idle_limit_ms: 2 * HOUR,
        max_ms: 8 * HOUR,
        drift: 0,
        is_current: false,
    }
}

pub(super) fn context(name: &str, guard: Guard) -> ContextRow {
    ContextRow {
        name: name.to_owned(),
        guard,
        bindings: vec![format!("kubectl.context={name}")],
        description: String::new(),
        home: "user",
        is_trusted: true,
        is_current: false,
        approved_until_ms: None,
        requests: 0,
        sessions: 0,
        error: None,
    }
}

pub(super) fn app_with(snapshot: Snapshot) -> TuiApp {
    app_with_jobs(snapshot, StartedJobs::default())
}

pub(super) fn app_with_jobs(snapshot: Snapshot, jobs: StartedJobs) -> TuiApp {
    let theme = Theme::new(true, true);
    let mut app = TuiApp::new(theme, NOW, ChatApp::pane(Box::new(jobs), theme, PathBuf::new()));
    app.receive(LoaderMessage::Snapshot(Box::new(Snapshot { taken_ms: NOW, ..snapshot })));
    app
}

pub(super) fn full() -> TuiApp {
    let running = SessionItem { running: vec!["claude[7]".into(), "kubectl[8]".into()], ..session(1) };
    let drifted = SessionItem {
        drift: 1,
        guard: Some(Guard::Approval),
        context: Some("production".into()),
        ..session(2)
    };
    let expiring = SessionItem { used_ms: NOW - 2 * HOUR + 120_000, ..session(3) };
    let approved =
        ContextRow { approved_until_ms: Some(NOW + 600_000), ..context("production", Guard::Approval) };
    app_with(Snapshot {
        sessions: vec![running, drifted, expiring],
        contexts: vec![context("staging", Guard::None), approved],
        ..Snapshot::default()
    })
}

pub(super) fn terminal(app: &mut TuiApp, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(app, frame)).unwrap();
    terminal
}

pub(super) fn lines(app: &mut TuiApp, width: u16, height: u16) -> Vec<String> {
    let terminal = terminal(app, width, height);
    let buffer = terminal.backend().buffer();
    let cells: Vec<&str> = buffer.content().iter().map(ratatui::buffer::Cell::symbol).collect();
    cells.chunks(usize::from(width)).map(|row| row.concat().trim_end().to_owned()).collect()
}

pub(super) fn text(app: &mut TuiApp) -> String {
    lines(app, 80, 24).join("\n")
}

pub(super) fn press(app: &mut TuiApp, keys: &str) -> Vec<TuiEffect> {
    let code = |c| match c {
        '\n' => KeyCode::Enter,
        '\t' => KeyCode::Tab,
        '\x1b' => KeyCode::Esc,
        c => KeyCode::Char(c),
    };
    keys.chars().filter_map(|c| app.key(KeyEvent::new(code(c), KeyModifiers::NONE))).collect()
}

#[test]
fn empty_panes_say_what_to_do() {
    let mut app = app_with(Snapshot::default());
    for (pane, words) in [
        (Pane::Sessions, "press n to start one"),
        (Pane::Contexts, "sessile context create NAME"),
        (Pane::Locks, "no locks are held"),
        (Pane::History, "no operations"),
        (Pane::Agents, "sessile agent add NAME URL"),
    ] {
        app.go_to(pane);
        let shown = text(&mut app);
        assert!(shown.contains(words) && shown.contains("nothing requires attention"), "{shown}");
    }
    assert!(!text(&mut app).contains("Service"));
}

#[test]
fn sessions_have_context_guard_gauges_drift_and_attention() {
    let shown = text(&mut full());
    for words in
        ["web-1", "production", "approval", "DRIFT", "+1 claude[7]", "█", "30m", "(+1 more, press !)"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(shown.contains("! session \"web-2\" drifted"), "{shown}");
}

#[test]
fn changed_session_reaches_attention_filter_and_order() {
    let mut app = app_with(Snapshot { sessions: (0..50).map(session).collect(), ..Snapshot::default() });
    assert!(text(&mut app).contains("nothing requires attention"));
    press(&mut app, "/sleep\n");
    assert!(text(&mut app).contains("no rows match"));
    let drifted = SessionItem { drift: 1, running: vec!["sleep[7]".into()], guard: None, ..session(3) };
    app.receive(LoaderMessage::Sessions(vec![drifted]));
    let shown = text(&mut app);
    assert!(shown.contains(">web-3 ") && shown.contains("DRIFT sleep"), "{shown}");
    assert!(shown.contains("! session \"web-3\" drifted"), "{shown}");
    assert_eq!(app.sessions.selected().unwrap().guard, Some(Guard::None), "a look knows no guard");
}

#[test]
fn attention_counts_thousands_and_names_the_first() {
    let drifted = |number| SessionItem { drift: 1, ..session(number) };
    let mut app = app_with(Snapshot { sessions: (0..3000).map(drifted).collect(), ..Snapshot::default() });
    assert!(text(&mut app).contains("(+2999 more, press !)"));
    assert!(app.attention.items.len() <= 100);
}

#[test]
fn every_pane_fits_every_size() {
    for (width, height) in [(80, 24), (40, 10), (200, 60), (12, 5), (5, 3), (1, 1)] {
        for pane in Pane::ALL {
            let mut app = full();
            app.server = Some("https://example.org".to_owned());
            app.go_to(pane);
            lines(&mut app, width, height);
            for overlay in ["?", ":", "n", "s", "\n"] {
                press(&mut app, overlay);
                lines(&mut app, width, height);
                press(&mut app, "\x1b");
            }
        }
    }
}

#[test]
fn theme_without_color_draws_none() {
    let mut app = full();
    app.theme = Theme::new(false, false);
    let terminal = terminal(&mut app, 80, 24);
    for cell in terminal.backend().buffer().content() {
        assert_eq!((cell.fg, cell.bg), (Color::Reset, Color::Reset));
        assert!(cell.symbol().is_ascii(), "{}", cell.symbol());
    }
}

#[test]
fn hostile_names_neither_act_nor_shift_the_columns() {
    let names =
        ["\x1b[2J\u{9b}31m", "\u{202e}gnigats", "日本語日本語日本語日本語", "e\u{301}\u{301}\u{301}x"];
    let long = "x".repeat(1 << 20);
    let piled = format!("a{}", "\u{301}".repeat(1 << 16));
    for name in names.iter().copied().chain([&*long, &*piled]) {
        let hostile = SessionItem {
            name: Some(name.to_owned()),
            context: Some(name.to_owned()),
            running: vec![name.to_owned()],
            drift: 1,
            ..session(1)
        };
        let mut app = app_with(Snapshot { sessions: vec![hostile, session(0)], ..Snapshot::default() });
        let terminal = terminal(&mut app, 80, 24);
        let buffer = terminal.backend().buffer();
        for cell in buffer.content() {
            assert!(!sessile::text::acts_on_terminals(cell.symbol()), "{:?}", cell.symbol());
            assert!(cell.symbol().len() < 64, "{}", cell.symbol().len());
        }
        // The column of the times is where it is for any other name.
        let column =
            |y: u16| (0..80).position(|x| buffer[(x, y)].symbol() == "█" || buffer[(x, y)].symbol() == "░");
        assert_eq!(column(3), column(4), "{}", &name.chars().take(20).collect::<String>());
        press(&mut app, "s");
        text(&mut app);
    }
}

#[test]
fn only_the_rows_on_the_page_are_made() {
    let sessions = (0..10_000).map(session).collect();
    let mut app = app_with(Snapshot { sessions, ..Snapshot::default() });
    assert_eq!(app.sessions.page(21).len(), 21);
    press(&mut app, "G");
    let shown = text(&mut app);
    assert!(shown.contains(">web-0 ") && shown.contains("web-19 ") && !shown.contains("web-20 "), "{shown}");
}

#[test]
fn filter_finds_the_session_in_production() {
    let mut app = full();
    press(&mut app, "/PROD");
    let shown = text(&mut app);
    assert!(shown.contains("web-2") && !shown.contains("web-1 "), "{shown}");
    assert!(shown.contains("/PROD"), "{shown}");
    press(&mut app, "\n");
    assert!(text(&mut app).contains("filter \"PROD\", Esc clears"));
    press(&mut app, "\x1b");
    assert!(text(&mut app).contains("web-1 "));
}

#[test]
fn stop_asks_and_names_the_session() {
    let mut app = full();
    press(&mut app, "/web-1\ns");
    let shown = text(&mut app);
    assert!(shown.contains("Stop session \"web-1\" in context \"staging\"?"), "{shown}");
    assert!(shown.contains("Stops claude[7], kubectl[8]."), "{shown}");
    assert!(press(&mut app, "xq").is_empty());
    let effects = press(&mut app, "sy");
    assert!(
        matches!(&effects[..], [TuiEffect::Perform(TuiAction::StopSession { id })] if *id == session(1).id),
        "{effects:?}"
    );
}

#[test]
fn approval_asks_for_time_and_pin() {
    let mut app = full();
    press(&mut app, "2");
    let effects = press(&mut app, "ga");
    assert!(matches!(&effects[..], [TuiEffect::AskApproval(name)] if name == "production"), "{effects:?}");
    let question = ApprovalQuestion { context: "production".into(), digest: "d".into(), requires_pin: true };
    app.ask_approval(Ok(question));
    press(&mut app, "x\n1234\n");
    assert!(text(&mut app).contains("invalid time"));
    app.key(KeyEvent::new(KeyCode::Backspace, KeyModifiers::NONE));
    assert!(text(&mut app).contains("****") && !text(&mut app).contains("1234"));
    let effects = press(&mut app, "\n\n");
    let [TuiEffect::Perform(TuiAction::Approve { context, time, pin, .. })] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!((context.as_str(), time.as_secs()), ("production", 600));
    assert_eq!(pin.as_deref().map(String::as_str), Some("1234"));
}

#[test]
fn late_question_does_not_take_keys() {
    let mut app = full();
    let question =
        || ApprovalQuestion { context: "production".into(), digest: "d".into(), requires_pin: false };
    press(&mut app, "2ga");
    assert!(text(&mut app).contains("loading ..."));
    app.receive(LoaderMessage::Approval(Ok(question())));
    assert!(text(&mut app).contains("Approve context"));
    press(&mut app, "\x1ba");
    press(&mut app, "j");
    app.receive(LoaderMessage::Approval(Ok(question())));
    assert!(!text(&mut app).contains("Approve context"), "{}", text(&mut app));
}

#[test]
fn context_without_guard_is_not_approved() {
    let mut app = full();
    assert!(press(&mut app, "2Ga").is_empty());
    assert!(text(&mut app).contains("requires no approval"));
}

#[test]
fn opened_session_has_its_commands_and_can_be_stopped() {
    let mut app = full();
    let effects = press(&mut app, "\n");
    let [TuiEffect::Open(Some(key @ DetailKey::Session(_)))] = &effects[..] else { panic!("{effects:?}") };
    assert!(text(&mut app).contains("loading ..."));
    let lines = (0..100).map(|at| format!("line {at} \x1b[31m\u{202e}")).collect();
    let sections = vec![DetailSection { title: "Commands".into(), lines, is_diff: false }];
    let detail = Detail { key: key.clone(), title: "Session \"web-3\"".into(), sections };
    app.receive(LoaderMessage::Detail(Ok(detail)));
    let shown = text(&mut app);
    assert!(shown.contains("Session \"web-3\"") && shown.contains("line 0 \\u{1b}[31m\\u{202e}"), "{shown}");
    press(&mut app, "G");
    assert!(text(&mut app).contains("line 99"));
    press(&mut app, "s");
    assert!(text(&mut app).contains("Stop session"));
}

#[test]
fn mouse_selects_opens_and_scrolls() {
    let mut app = full();
    text(&mut app);
    let click = |app: &mut TuiApp, column, row| {
        let kind = MouseEventKind::Down(MouseButton::Left);
        app.mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE })
    };
    assert!(click(&mut app, 3, 4).is_none());
    assert_eq!(app.sessions.selected().unwrap().label(), "web-2");
    assert!(matches!(click(&mut app, 3, 4), Some(TuiEffect::Open(Some(_)))));
    press(&mut app, "\x1b");
    text(&mut app);
    assert!(click(&mut app, 18, 0).is_none());
    assert_eq!(app.pane, Pane::Contexts);
}

#[test]
fn attention_leads_to_its_row() {
    let mut app = full();
    press(&mut app, "2!");
    assert_eq!(app.pane, Pane::Sessions);
    assert_eq!(app.sessions.selected().unwrap().label(), "web-2");
    press(&mut app, "!");
    assert_eq!(app.sessions.selected().unwrap().label(), "web-3");
}

#[test]
fn palette_runs_a_command_by_name() {
    let mut app = full();
    press(&mut app, ":hist\n");
    assert_eq!(app.pane, Pane::History);
    press(&mut app, ":break\n");
    assert_eq!(app.pane, Pane::Locks);
    assert!(matches!(&press(&mut app, ":quit\n")[..], [TuiEffect::Quit]));
}

#[test]
fn service_pane_shows_sessions_or_the_reason() {
    let mut app = app_with(Snapshot { server: Some("https://example.org".into()), ..Snapshot::default() });
    press(&mut app, "7");
    assert!(text(&mut app).contains("loading ..."), "shown before the first answer: {}", text(&mut app));
    let answer = |sessions| LoaderMessage::Service(ServiceSnapshot { sessions, taken_ms: NOW });
    app.receive(answer(Err("https://example.org: connection refused".into())));
    assert!(text(&mut app).contains("connection refused"));
    app.receive(answer(Ok(Vec::new())));
    assert!(text(&mut app).contains("you have no live sessions in the service"));
    app.receive(answer(Ok(vec![session(4)])));
    assert!(text(&mut app).contains("web-4"));
}
