//! `sessile session stop` and `clear`: what is stopped is stopped, nothing else is, and no answer is a no.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use testkit::Home;

use crate::{eventually, home, live, lives, shown, start};

/// Runs a shell script in a session, and waits until it has said that it runs.
fn running(home: &Home, session: &str, script: &str) -> Child {
    let ready = home.path("ready");
    let child = home
        .call(&["lock", "run", "l", "--", "/bin/bash", "-c", script])
        .env("SESSILE_SESSION", session)
        .env("READY", &ready)
        .command()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the script", || ready.exists());
    child
}

#[test]
fn running_commands_are_ended() {
    let home = home();
    let id = start(&home, &["--name", "work"]);
    let mut child = running(&home, &id, "echo $$ > pid; touch $READY; sleep 1000");
    let seen = shown(&home, &id);
    assert_eq!(seen["running"][0]["program"], "bash", "{seen}");
    let room = seen["room"].as_str().unwrap().to_owned();
    let done = home.call(&["session", "stop", "work", "-ojson"]).ok().json();
    assert!(!done["ended_processes"].as_array().unwrap().is_empty(), "{done}");
    assert!(!lives(&home.read("pid")));
    assert!(!child.wait().unwrap().success());
    assert_eq!(shown(&home, &id)["state"], "ended");
    assert!(!std::path::Path::new(&room).exists());
    home.call(&["session", "stop", "work"]).ok();
}

#[test]
fn command_that_ignores_sigterm_is_killed() {
    let home = home();
    let id = start(&home, &[]);
    let script = "trap '' TERM; echo $$ > pid; touch $READY; while :; do sleep 0.1; done";
    let mut child = running(&home, &id, script);
    home.call(&["session", "stop", &id]).ok();
    assert!(!lives(&home.read("pid")));
    child.wait().unwrap();
    assert_eq!(shown(&home, &id)["state"], "ended");
}

/// It was started in the session, outlives what started it, and still is in the session.
#[test]
fn a_grandchild_that_outlives_its_parent_is_ended_too() {
    let home = home();
    let id = start(&home, &[]);
    let script = "setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo $! > pid; touch $READY";
    let mut child = running(&home, &id, script);
    assert!(child.wait().unwrap().success());
    let pid = home.read("pid");
    assert!(lives(&pid));
    home.call(&["session", "stop", &id]).ok();
    eventually("the end of the grandchild", || !lives(&pid));
    assert!(live(&home).is_empty());
}

#[test]
fn siblings_and_what_runs_in_them_go_on() {
    let home = home();
    let (id, sibling) = (start(&home, &[]), start(&home, &[]));
    let mut child = running(&home, &sibling, "echo $$ > sibling; touch $READY; sleep 1000");
    home.call(&["session", "stop", &id]).ok();
    assert!(lives(&home.read("sibling")));
    assert_eq!(live(&home), std::slice::from_ref(&sibling));
    home.call(&["session", "stop", &sibling]).ok();
    child.wait().unwrap();
}

#[test]
fn a_stop_with_neither_id_nor_session_is_refused() {
    let home = home();
    start(&home, &[]);
    let done = home.call(&["session", "stop", "-ojson"]).run().exit(2);
    assert_eq!(done.code(), "SESSION_REQUIRED");
    home.call(&["session", "stop", "nobody"]).run().exit(5);
    assert_eq!(live(&home).len(), 1);
}

#[test]
fn a_session_is_stopped_from_inside_by_its_variable() {
    let home = home();
    let (id, other) = (start(&home, &[]), start(&home, &[]));
    home.call(&["session", "stop"]).env("SESSILE_SESSION", &id).ok();
    assert_eq!(live(&home), [other]);
}

/// The one that stops is in the session itself, and so is what runs it.
#[test]
fn command_in_a_session_can_stop_it() {
    for script in ["exec \"$0\" session stop", "\"$0\" session stop; echo after > after"] {
        let home = home();
        let id = start(&home, &[]);
        home.call(&["lock", "run", "l", "--", "/bin/bash", "-c", script])
            .arg(home.program())
            .env("SESSILE_SESSION", &id)
            .run();
        eventually("the end of the session", || shown(&home, &id)["state"] == "ended");
        eventually("the end of the room", || !home.path(format!(".local/state/sessile/rooms/{id}")).exists());
    }
}

#[test]
fn being_the_terminals_session_is_not_enough_to_be_stopped() {
    let home = home();
    let mut shell = home.shell();
    shell.run("sessile session start --name here");
    let (text, status) = shell.run("sessile session stop --no-input");
    assert_eq!(status, 2, "{text}");
    // A person is shown the list, and escape stops nothing.
    shell.type_line("sessile session stop; echo status=$?");
    shell.expect("esc cancels");
    shell.type_keys("\u{1b}");
    shell.expect("status=1");
    assert_eq!(live(&home).len(), 1);
    assert_eq!(shell.run("sessile session stop here").1, 0);
    assert!(live(&home).is_empty());
}

#[test]
fn on_a_terminal_it_asks_when_something_runs() {
    let home = home();
    let id = start(&home, &["--name", "busy"]);
    let mut child = running(&home, &id, "touch $READY; sleep 1000");
    for no in ["n", ""] {
        let mut tty = home.tty(&["session", "stop", "busy"]);
        tty.expect("Stop session \"busy\" and bash");
        tty.expect("[y/N]");
        tty.type_line(no);
        let (text, status) = tty.finish();
        assert_ne!(status, 0, "{text}");
        assert_eq!(live(&home).len(), 1);
    }
    let mut tty = home.tty(&["session", "stop", "busy"]);
    tty.expect("[y/N]");
    tty.end_input();
    assert_ne!(tty.finish().1, 0, "the end of the input is a no");
    assert_eq!(live(&home).len(), 1);
    let mut tty = home.tty(&["session", "stop", "busy"]);
    tty.expect("[y/N]");
    tty.type_line("y");
    assert_eq!(tty.finish().1, 0);
    assert!(live(&home).is_empty());
    child.wait().unwrap();
}

#[test]
fn clear_all_without_a_terminal_changes_nothing() {
    let home = home();
    let (named, unnamed, ended) = (start(&home, &["--name", "alpha"]), start(&home, &[]), start(&home, &[]));
    home.call(&["session", "stop", &ended]).ok();
    let done = home.call(&["session", "clear", "--all", "-ojson"]).run().exit(2);
    let error = done.json_error();
    assert_eq!(error["code"], "CONFIRMATION_REQUIRED");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("alpha") && message.contains(&unnamed), "{message}");
    assert!(error["hint"].as_str().unwrap().contains("--yes"), "{error}");
    assert_eq!(live(&home), [named, unnamed]);
    assert_eq!(shown(&home, &ended)["state"], "ended", "not forgotten either");
    home.call(&["session", "clear", "--all", "--no-input"]).run().exit(2);

    let mut tty = home.tty(&["session", "clear", "--all"]);
    tty.expect("[y/N]");
    tty.end_input();
    assert_ne!(tty.finish().1, 0);
    assert_eq!(live(&home).len(), 2);

    let done = home.call(&["session", "clear", "--all", "--yes", "-ojson"]).ok().json();
    assert_eq!(done["forgotten"].as_array().unwrap().len(), 3);
    assert_eq!(home.call(&["session", "list", "--state", "all", "-ojson"]).ok().stdout(), "[]\n");
}

#[test]
fn clear_forgets_what_has_ended_and_nothing_else() {
    let home = home();
    let (kept, ended) = (start(&home, &[]), start(&home, &["--name", "old"]));
    home.call(&["session", "clear", &kept]).run().exit(2);
    home.call(&["session", "stop", &ended]).ok();
    home.call(&["session", "clear"]).ok();
    assert_eq!(live(&home), [kept]);
    home.call(&["session", "show", &ended]).run().exit(5);
}

#[test]
fn stopping_many_at_once_stops_each_and_no_other() {
    let home = home();
    let ids: Vec<String> = (0..8).map(|_| start(&home, &[])).collect();
    let begun = Instant::now();
    let children: Vec<_> = ids[..7]
        .iter()
        .chain(&ids[..7])
        .map(|id| {
            let mut call = home.call(&["session", "stop", id]).command();
            call.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in children {
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    assert_eq!(live(&home), ids[7..]);
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[test]
fn parallel_stops_of_one_session_succeed() {
    let home = home();
    for _ in 0..5 {
        let id = home.call(&["session", "start", "--quiet"]).ok().stdout().trim().to_owned();
        let stops: Vec<_> = (0..6)
            .map(|_| {
                let mut command = home.call(&["session", "stop", &id]).command();
                command.stdin(Stdio::null()).stdout(Stdio::null());
                command.stderr(Stdio::piped()).spawn().unwrap()
            })
            .collect();
        for stop in stops {
            let done = stop.wait_with_output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        }
    }
}

#[test]
fn a_session_whose_room_was_half_removed_can_be_stopped() {
    let home = home();
    let id = start(&home, &[]);
    let room = home.path(".local/state/sessile/rooms").join(&id);
    std::fs::remove_file(room.join("lock")).unwrap();
    home.call(&["session", "stop", &id]).ok();
    assert!(!room.exists());
    assert!(live(&home).is_empty());
}

#[test]
fn a_session_that_stops_itself_lets_its_caller_go_on() {
    let home = home();
    let id = home.call(&["session", "start", "--quiet"]).ok().stdout().trim().to_owned();
    let script = format!("{} session stop && echo went on", home.program().display());
    let done = home
        .call(&["lock", "run", "inner", "--", "/bin/sh", "-c", &script])
        .env("SESSILE_SESSION", &id)
        .run()
        .exit(0);
    assert!(done.stdout().ends_with("went on\n"), "{}", done.told());
    let state = home.call(&["session", "show", &id, "-ojson"]).ok().json()["state"].clone();
    assert_eq!(state, "ended");
}

#[test]
fn variable_with_an_ended_session_allows_recovery() {
    let home = home();
    let gone = "01890a5d-ac96-774b-bcce-b302099a8057";
    for args in [&["session", "list"][..], &["session", "start"], &["context", "list"], &["lock", "list"]] {
        home.call(args).env("SESSILE_SESSION", gone).ok();
    }
    home.call(&["config", "set", "env.A", "1", "--global"]).env("SESSILE_SESSION", gone).run().exit(5);
}

#[test]
fn url_in_place_of_a_session_gets_a_hint() {
    let home = home();
    for command in ["show", "stop", "export"] {
        let error = home.call(&["session", command, "https://agent.example", "-ojson"]).run().exit(5);
        assert_eq!(error.code(), "SESSION_NOT_FOUND");
        let told = error.stderr();
        assert!(told.contains("sessile conversation show https://agent.example"), "{command}: {told}");
    }
}
