//! `sessile session start`: it never touches another session, and a script's start changes nothing but its own.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use crate::{eventually, home, home_with, live, shown, start};

#[test]
fn a_hundred_processes_start_a_hundred_sessions_and_stop_none() {
    let home = home_with(&["staging"]);
    let earlier = start(&home, &["--name", "earlier"]);
    let children: Vec<_> = (0..100)
        .map(|number| {
            let name = format!("s{number}");
            home.call(&["session", "start", "--quiet", "--context", "staging", "--name", &name])
                .env("SESSILE_LOCK_TIMEOUT", "2m")
                .command()
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut ids = BTreeSet::from([earlier]);
    for child in children {
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        ids.insert(String::from_utf8(done.stdout).unwrap().trim().to_owned());
    }
    assert_eq!(ids.len(), 101);
    let listed = home.call(&["session", "list", "--state=all", "--limit=500", "-ojson"]).ok().json();
    let listed = listed.as_array().unwrap();
    assert!(listed.iter().all(|one| one["state"] == "live"));
    let rooms: BTreeSet<&str> = listed.iter().map(|one| one["room"].as_str().unwrap()).collect();
    assert_eq!((listed.len(), rooms.len()), (101, 101));
    assert!(rooms.iter().all(|room| std::path::Path::new(room).is_dir()));
    assert_eq!(live(&home), ids.into_iter().collect::<Vec<_>>());
}

#[test]
fn the_script_that_starts_three_leaves_three() {
    let home = home();
    let script = "start() { \"$0\" session start --quiet; }\nstart & start & start &\nwait";
    let output = Command::new("/bin/bash")
        .args(["-c", script])
        .arg(home.program())
        .env_clear()
        .env("HOME", home.dir())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let mut printed: Vec<String> =
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    printed.sort();
    assert_eq!(printed.len(), 3);
    assert_eq!(live(&home), printed);
}

#[test]
fn only_the_id_is_printed_with_quiet() {
    let done = home().call(&["session", "start", "--quiet"]).ok();
    assert_eq!(done.stderr(), "");
    assert_eq!(done.stdout().trim().len(), 36);
    assert_eq!(done.stdout().lines().count(), 1);
}

#[test]
fn name_of_an_ended_session_can_be_reused() {
    let home = home();
    let first = start(&home, &["--name", "deploy"]);
    let taken = home.call(&["session", "start", "--name", "deploy", "-ojson"]).run().exit(6);
    assert_eq!(taken.code(), "SESSION_EXISTS");
    assert_eq!(live(&home), std::slice::from_ref(&first));
    assert_eq!(std::fs::read_dir(home.path(".local/state/sessile/rooms")).unwrap().count(), 1);
    home.call(&["session", "stop", "deploy"]).ok();
    let second = start(&home, &["--name", "deploy"]);
    assert_eq!(shown(&home, "deploy")["id"], second.as_str(), "the name refers to the live session");
    assert_eq!(shown(&home, &first)["state"], "ended");
}

#[test]
fn of_many_that_want_one_name_one_gets_it() {
    let home = home();
    let children: Vec<_> = (0..12)
        .map(|_| {
            let mut call = home.call(&["session", "start", "--name", "one"]).command();
            call.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    let codes: Vec<i32> =
        children.into_iter().map(|mut child| child.wait().unwrap().code().unwrap()).collect();
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    assert!(codes.iter().all(|code| [0, 6].contains(code)), "{codes:?}");
    assert_eq!(live(&home).len(), 1);
}

#[test]
fn a_name_cannot_look_like_an_id() {
    let home = home();
    let id = start(&home, &[]);
    home.call(&["session", "start", "--name", &id]).run().exit(2);
    home.call(&["session", "start", "--name", &id.to_uppercase()]).run().exit(2);
}

#[test]
fn the_beginning_of_an_id_is_enough_if_it_means_one() {
    let home = home();
    let (first, second) = (start(&home, &[]), start(&home, &[]));
    let differ = first.bytes().zip(second.bytes()).position(|(a, b)| a != b).unwrap();
    assert_eq!(shown(&home, &first[..=differ])["id"], first.as_str());
    assert_eq!(shown(&home, &second[..=differ])["id"], second.as_str());
    let both = home.call(&["session", "show", &first[..6], "-ojson"]).run();
    assert_eq!(both.code(), "AMBIGUOUS_SESSION");
    let stopped = home.call(&["session", "stop", &first[..6], "-ojson"]).run();
    assert_eq!(stopped.code(), "AMBIGUOUS_SESSION");
    assert_eq!(live(&home).len(), 2);
    home.call(&["session", "show", "00000000"]).run().exit(5);
    home.call(&["session", "show", "%"]).run().exit(5);
    home.call(&["session", "show", ""]).run().exit(5);
}

#[test]
fn replace_stops_that_one_and_no_other() {
    let home = home();
    let (old, other) = (start(&home, &["--name", "old"]), start(&home, &["--name", "other"]));
    let new = start(&home, &["--replace", "old", "--name", "old"]);
    assert_eq!(shown(&home, &old)["state"], "ended");
    assert_eq!(live(&home), [other, new]);
    home.call(&["session", "start", "--replace", "nobody"]).run().exit(5);
    assert_eq!(live(&home).len(), 2);
}

/// What cannot be started replaces nothing.
#[test]
fn a_start_that_fails_leaves_what_it_would_have_replaced() {
    let home = home_with(&["prod"]);
    home.write(".config/sessile/contexts/shut.toml", "guard = \"approval\"\n");
    let old = start(&home, &["--name", "old"]);
    let other = start(&home, &["--name", "other"]);
    for (flags, status) in [
        (&["--context", "nowhere"][..], 5),
        (&["--context", "shut"], 7),
        (&["--name", "other"], 6),
        (&["--name", "../x"], 2),
        (&["--idle", "0s"], 2),
        (&["--label", "nonsense"], 2),
    ] {
        home.call(&["session", "start", "--replace", "old"]).args(flags).run().exit(status);
        assert_eq!(live(&home), [old.clone(), other.clone()], "{flags:?}");
    }
}

#[test]
fn label_with_a_secret_is_refused() {
    let home = home_with(&["prod"]);
    for label in ["token=s3cr3t", "url=https://u:s3cr3t@h.example/"] {
        let done = home.call(&["session", "start", "--label", label, "-ojson"]).run().exit(2);
        assert_eq!(done.code(), "SECRET_REFUSED", "{label}");
        assert!(!done.told().contains("s3cr3t"), "{}", done.told());
    }
    assert_eq!(live(&home), [""; 0]);
    home.call(&["session", "start", "--label", "team=web"]).ok();
}

#[test]
fn on_a_terminal_it_becomes_the_terminals_session() {
    let home = home_with(&["staging", "prod"]);
    let (mut shell, mut other) = (home.shell(), home.shell());
    let (text, status) = shell.run("sessile session start --name here --context staging");
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("selected the session for this terminal"), "{text}");
    let (text, status) = shell.run("sessile session state set k 1 && sessile context current");
    assert!(status == 0 && text.contains("staging"), "{text}");
    assert!(shell.run("sessile status").0.contains("here"));
    assert_eq!(other.run("sessile session state set k 1").1, 2, "another terminal has none");
    home.call(&["session", "state", "set", "k", "1"]).run().exit(2);
    let (text, status) = shell.run("setsid -w sessile session show </dev/null 2>&1 | cat");
    assert!(text.contains("--session"), "a process without a terminal has no selection: {status} {text}");
}

#[test]
fn in_a_script_it_writes_no_pointer() {
    let home = home();
    start(&home, &["--name", "s"]);
    home.call(&["session", "show"]).run().exit(2);
    assert_eq!(home.call(&["status", "-ojson"]).ok().json()["session"], serde_json::Value::Null);
    // Nor does a script on a terminal that has closed itself off from it.
    let mut shell = home.shell();
    shell.run("setsid -w sessile session start </dev/null >/dev/null 2>&1");
    assert!(shell.run("sessile status -ojson").0.contains("\"session\": null"));
}

#[test]
fn a_start_inside_a_session_does_not_become_the_terminals() {
    let home = home();
    let outer = start(&home, &["--name", "outer"]);
    let mut shell = home.shell();
    assert_eq!(shell.run(&format!("SESSILE_SESSION={outer} sessile session start --name inner")).1, 0);
    assert!(shell.run("sessile status -ojson").0.contains("\"session\": null"));
    assert_eq!(live(&home).len(), 2);
}

/// The next command would otherwise reach what the user happens to have selected, which may be production.
#[test]
fn selected_session_that_is_over_fails_commands_until_left() {
    let home = home_with(&["staging"]);
    let mut shell = home.shell();
    shell.run("sessile session start --name brief --context staging --idle 1s");
    let id = shown(&home, "brief")["id"].as_str().unwrap().to_owned();
    eventually("the end", || shown(&home, &id)["state"] != "live");
    for _ in 0..2 {
        for (command, failure) in [
            ("run -- touch started", 125),
            ("shell", 125),
            ("lock run deploy touch started", 125),
            ("env", 4),
            ("lock acquire deploy", 4),
            ("undo", 4),
            ("message send http://127.0.0.1:9/ hello", 4),
            ("run -- touch started </dev/null", 125),
            ("run -- touch started </dev/null >out.txt 2>&1", 125),
        ] {
            let (text, status) = shell.run(&format!("sessile {command}"));
            assert_eq!(status, failure, "{command}: {text}");
            let said = text.contains("session \"brief\" of terminal") && text.contains("has expired");
            assert!(said || command.contains("out.txt"), "{command}: {text}");
        }
    }
    assert!(!home.path("started").exists());
    let (text, _) = shell.run("sessile run -- true");
    let hint = "session start --name brief --context staging; or leave this one: sessile session detach";
    assert!(text.contains(hint), "{text}");
    for _ in 0..2 {
        let (text, status) = shell.run("sessile status");
        assert_eq!(status, 0, "{text}");
        assert!(text.contains("has expired"), "a reader reports it: {text}");
        let (text, _) = shell.run("sessile prompt");
        assert_eq!(text.trim(), "brief: expired");
    }
    assert_eq!(shell.run("sessile run --context staging -- true").1, 0, "the call names its context");
    let (text, status) = shell.run("sessile session detach");
    assert!(status == 0 && text.contains("detached from \"brief\""), "{text}");
    assert_eq!(shell.run("sessile run -- true").1, 0, "the person left it");
}

#[test]
fn new_selection_replaces_a_session_that_is_over() {
    let home = home_with(&["staging"]);
    for select in ["session start --name next --context staging", "context use staging"] {
        let mut shell = home.shell();
        shell.run("sessile session start --name gone");
        home.call(&["session", "stop", "gone"]).ok();
        let (text, status) = shell.run("sessile run -- true");
        assert_eq!(status, 125, "{text}");
        assert!(text.contains("was stopped"), "{text}");
        let (text, status) = shell.run(&format!("sessile {select}"));
        assert_eq!(status, 0, "{text}");
        assert!(shell.run("sessile context current").0.contains("staging"), "{select}");
        assert_eq!(shell.run("sessile run -- true").1, 0, "{select}");
    }
}

#[test]
fn selected_session_that_was_deleted_fails_commands_too() {
    let home = home();
    let mut shell = home.shell();
    shell.run("sessile session start --name gone");
    home.call(&["session", "stop", "gone"]).ok();
    home.call(&["session", "clear"]).ok();
    let (text, status) = shell.run("sessile status");
    assert_eq!(status, 0, "{text}");
    let (text, status) = shell.run("sessile run -- true");
    assert_eq!(status, 125, "{text}");
    assert!(text.contains("was deleted"), "{text}");
    assert_eq!(shell.run("sessile session start").1, 0);
    assert_eq!(shell.run("sessile run -- true").1, 0);
}

#[test]
fn session_stopped_at_its_own_terminal_is_left() {
    let home = home();
    let mut shell = home.shell();
    shell.run("sessile session start --name web");
    assert_eq!(shell.run("sessile session stop web").1, 0);
    let (text, status) = shell.run("sessile run -- true");
    assert_eq!(status, 0, "{text}");
}

#[test]
fn the_context_is_pinned_for_the_whole_life() {
    let home = home_with(&["staging", "prod"]);
    home.write(".config/sessile/config.toml", "context = \"staging\"\n");
    let id = start(&home, &[]);
    home.write(".config/sessile/config.toml", "context = \"prod\"\n");
    let inside = |args: &[&str]| home.call(args).env("SESSILE_SESSION", &id);
    assert_eq!(inside(&["context", "current"]).ok().stdout(), "staging\n");
    let other = inside(&["status", "--context", "prod", "-ojson"]).run().exit(7);
    assert_eq!(other.code(), "CONTEXT_FIXED");
    let other = inside(&["status", "-ojson"]).env("SESSILE_CONTEXT", "prod").run().exit(7);
    assert_eq!(other.code(), "CONTEXT_FIXED");
    inside(&["status", "--context", "staging"]).ok();
    inside(&["context", "use", "prod", "--global"]).run().exit(7);
    home.call(&["status", "--session", &id, "--context", "prod"]).run().exit(7);
}

#[test]
fn no_context_is_a_choice_that_lasts() {
    let home = home_with(&["prod"]);
    let id = start(&home, &[]);
    home.write(".config/sessile/config.toml", "context = \"prod\"\n");
    let inside = |args: &[&str]| home.call(args).env("SESSILE_SESSION", &id);
    inside(&["context", "current"]).run().exit(5);
    assert_eq!(inside(&["status", "-ojson"]).ok().json()["current_context"], serde_json::Value::Null);
    assert_eq!(inside(&["status", "--context", "prod", "-ojson"]).run().exit(7).code(), "CONTEXT_FIXED");
}

#[test]
fn a_start_satisfies_the_guard_of_its_context_or_fails() {
    let home = home();
    home.write(".config/sessile/contexts/careful.toml", "guard = \"explicit\"\n");
    home.write(".config/sessile/contexts/shut.toml", "guard = \"approval\"\n");
    home.write(".config/sessile/config.toml", "context = \"careful\"\n");
    let implicit = home.call(&["session", "start", "-ojson"]).run().exit(7);
    assert_eq!(implicit.code(), "GUARD_EXPLICIT");
    let id = start(&home, &["--context", "careful"]);
    home.call(&["context", "current", "--check"]).env("SESSILE_SESSION", &id).ok();
    let refused = home.call(&["session", "start", "--context", "shut", "-ojson"]).run().exit(7);
    assert_eq!(refused.code(), "GUARD_APPROVAL");
    assert_eq!(live(&home), [id]);
}

/// The terminal's own session is pinned too; another one is started by saying so.
#[test]
fn terminal_with_a_session_can_start_one_in_another_context() {
    let home = home_with(&["staging", "prod"]);
    let mut shell = home.shell();
    shell.run("sessile session start --name a --context staging");
    let (text, status) = shell.run("sessile session start --name b --context prod");
    assert_eq!(status, 0, "{text}");
    assert!(shell.run("sessile context current").0.contains("prod"));
    assert_eq!(shown(&home, "a")["state"], "live");
}
