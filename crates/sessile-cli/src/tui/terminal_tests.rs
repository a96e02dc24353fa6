use std::process::{Command, Stdio};

use super::*;

/// Variable that makes a test the child of another one.
const CHILD: &str = "SESSILE_TEST_TERMINAL_CHILD";

#[expect(clippy::disallowed_methods, reason = "the variable marks the child process of the test")]
fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Runs a test of this file as a child on a terminal of its own. Returns what the terminal received, and its modes afterwards.
fn on_terminal(test: &str) -> (String, String) {
    let program = std::env::current_exe().unwrap();
    let line = format!(
        "stty rows 24 cols 80; {} --exact tui::terminal::tests::{test} --nocapture; stty -a",
        program.display()
    );
    let output = Command::new("script").args(["-qec", &line, "/dev/null"]).env(CHILD, "1").output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let (program, modes) = printed.rsplit_once("speed ").expect("modes of the terminal");
    (program.to_owned(), modes.to_owned())
}

#[test]
fn panic_is_reported_on_the_restored_terminal() {
    if is_child() {
        let _screen: Screen<()> = Screen::enter().unwrap();
        panic!("the reason");
    }
    let (printed, modes) = on_terminal("panic_is_reported_on_the_restored_terminal");
    let (entered, left) = (printed.find("\x1b[?1049h"), printed.find("\x1b[?1049l"));
    let reason = printed.find("the reason");
    assert!(entered < left && left < reason && entered.is_some(), "{printed:?}");
    assert!(modes.contains(" icanon") && modes.contains(" echo "), "{modes}");
}

#[test]
fn panic_of_another_thread_closes_the_screen() {
    if is_child() {
        let screen: Screen<()> = Screen::enter().unwrap();
        let _ = std::thread::spawn(|| panic!("the reason")).join();
        while !matches!(screen.next(None), Some(TerminalEvent::Closed)) {}
        return;
    }
    let (printed, modes) = on_terminal("panic_of_another_thread_closes_the_screen");
    assert!(printed.contains("1 passed"), "{printed:?}");
    assert!(modes.contains(" icanon"), "{modes}");
}

#[test]
fn wakeups_arrive_and_another_program_gets_the_terminal() {
    if is_child() {
        let mut screen: Screen<u8> = Screen::enter().unwrap();
        let waker = screen.waker();
        std::thread::spawn(move || waker.wake(7));
        while !matches!(screen.next(None), Some(TerminalEvent::Wakeup(7))) {}
        screen.draw(|frame| frame.render_widget("first-frame", frame.area())).unwrap();
        let modes = screen
            .suspend(|| Command::new("stty").arg("-a").stdin(Stdio::inherit()).output().unwrap())
            .unwrap();
        assert!(modes.status.success());
        screen.draw(|frame| frame.render_widget("second-frame", frame.area())).unwrap();
        return;
    }
    let (printed, modes) = on_terminal("wakeups_arrive_and_another_program_gets_the_terminal");
    assert!(printed.contains("first-frame") && printed.contains("second-frame"), "{printed:?}");
    assert!(printed.contains("1 passed"), "{printed:?}");
    assert_eq!(printed.matches("\x1b[?1049h").count(), 2, "{printed:?}");
    assert_eq!(printed.matches("\x1b[?1049l").count(), 2, "{printed:?}");
    assert!(modes.contains(" icanon"), "{modes}");
}
