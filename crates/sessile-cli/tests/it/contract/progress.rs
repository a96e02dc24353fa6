//! Progress on a terminal: a line with the elapsed time for whatever takes over a second.

use std::collections::BTreeSet;

use crate::home;

#[test]
fn wait_for_a_lock_shows_the_elapsed_time() {
    let home = home();
    home.call(&["lock", "acquire", "deploy", "--ttl", "1h"]).ok();
    let mut tty = home.call(&["lock", "acquire", "deploy", "--lock-timeout", "1h"]).tty();
    let mut times = BTreeSet::new();
    while times.len() < 2 {
        let line = tty.expect(" ... ");
        assert!(line.contains("waiting for lock \"deploy\""), "{line}");
        times.insert(tty.expect(" s").trim().to_owned());
    }
    home.call(&["lock", "release", "deploy", "--token", "1"]).ok();
    let (rest, status) = tty.finish();
    assert_eq!(status, 0, "{rest}");
    // The line is cleared before the result.
    assert!(rest.contains("\r\u{1b}[K"), "{rest:?}");
}

#[test]
fn progress_is_drawn_on_terminals_only() {
    let home = home();
    home.call(&["lock", "acquire", "deploy", "--ttl", "1h"]).ok();
    let done = home.call(&["lock", "acquire", "deploy", "--lock-timeout", "1500ms"]).run().exit(6);
    assert!(!done.stderr().contains('\r') && !done.stderr().contains(" ... "), "{}", done.told());
}
