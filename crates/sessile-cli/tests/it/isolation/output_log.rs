//! `sessile run --log`: a bounded copy of the output in the session's room, and a command that notices nothing of it.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;
use testkit::{Call, Home};

use super::terminal::{interactive, kill, leave};
use crate::{eventually, home, lives};

/// Number of bytes that a copy keeps.
const KEPT: usize = 1024 * 1024;

fn logged(home: &Home, words: &[&str]) -> Call {
    home.call(&["run", "--session", "s1", "--log", "--"]).args(words)
}

fn log(home: &Home) -> String {
    home.call(&["session", "log", "s1"]).ok().stdout()
}

fn room(home: &Home) -> PathBuf {
    let shown = home.call(&["session", "show", "s1", "-ojson"]).ok().json();
    PathBuf::from(shown["room"].as_str().unwrap())
}

#[test]
fn output_is_passed_on_stream_by_stream_and_kept() {
    let home = home();
    let done =
        logged(&home, &["sh", "-c", "echo out; echo err >&2; cat; exit 3"]).stdin("typed").run().exit(3);
    assert_eq!((done.stdout().as_str(), done.stderr().as_str()), ("out\ntyped", "err\n"));
    // Two pipes have no order between them, and `session log` ends the last line.
    let kept = log(&home);
    assert!(
        (13..=14).contains(&kept.len()) && ["out\n", "err\n", "typed"].iter().all(|text| kept.contains(text)),
        "{kept}"
    );
    let shown = home.call(&["session", "show", "s1", "-ojson"]).ok().json();
    assert_eq!(shown["logs"][0]["size"], 13, "{shown}");
    assert_eq!(shown["logs"][0]["words"][0], "sh");
    assert_eq!(shown["changed"], serde_json::json!([]), "a copy of output does not count as tool state");
    assert!(home.call(&["session", "show", "s1"]).ok().stdout().contains("13 bytes"));
    for entry in std::fs::read_dir(room(&home).join("output")).unwrap().flatten() {
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{entry:?}");
    }
    let room = room(&home);
    home.call(&["session", "stop", "s1"]).ok();
    assert!(!room.exists());
    home.call(&["session", "log", "s1"]).run().exit(0);
}

#[test]
fn streams_that_are_one_keep_their_order() {
    let home = home();
    let script = "i=0; while [ $i -lt 200 ]; do echo $i; i=$((i+1)); echo $i >&2; i=$((i+1)); done";
    let line = format!("\"$0\" run --session s1 --log -- sh -c '{script}' 2>&1");
    let told = home.tool("bash", &["-c", &line]).arg(home.program()).ok().stdout();
    let expected: String = (0..200).map(|number| format!("{number}\n")).collect();
    assert_eq!(told, expected);
    assert_eq!(log(&home), expected);
}

#[test]
fn binary_output_is_kept_unchanged_and_shown_escaped() {
    let home = home();
    let script = r"i=0; while [ $i -lt 256 ]; do printf \\$(printf %03o $i); i=$((i+1)); done";
    let line = format!("\"$0\" run --session s1 --log -- sh -c '{script}' | od -An -tx1 -v | tr -d ' \\n'");
    let told = home.tool("bash", &["-c", &line]).arg(home.program()).ok().stdout();
    let expected: String = (0..256).map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(told, expected);
    let line = "\"$0\" session log s1 --raw | od -An -tx1 -v | tr -d ' \\n'";
    assert_eq!(home.tool("bash", &["-c", line]).arg(home.program()).ok().stdout(), expected);
    assert!(log(&home).contains("\\u{1}\\u{2}"));
    let json = home.call(&["session", "log", "s1", "-ojson"]).ok();
    assert!(json.stdout().bytes().all(|byte| byte == b'\n' || !byte.is_ascii_control()));
}

#[test]
fn only_the_end_of_a_huge_output_is_kept() {
    let home = home();
    let script = "head -c 5000000 /dev/zero | tr '\\0' a; printf the-end";
    let done = logged(&home, &["sh", "-c", script]).ok();
    assert_eq!(done.stdout().len(), 5_000_007);
    let kept = log(&home);
    assert_eq!(kept.len(), KEPT + 1);
    assert!(kept.ends_with("aaathe-end\n"));
    let entry = &home.call(&["session", "log", "s1", "--list", "-ojson"]).ok().json()[0];
    assert_eq!((&entry["size"], &entry["truncated"]), (&Value::from(KEPT), &Value::from(true)));
    let files = std::fs::read_dir(room(&home).join("output")).unwrap().flatten();
    let used: u64 = files.map(|entry| entry.metadata().unwrap().len()).sum();
    assert!(used <= 2 * KEPT as u64 + 4096, "{used}");
}

#[test]
fn each_command_has_a_copy_of_its_own() {
    let home = home();
    for word in ["first", "second"] {
        logged(&home, &["echo", word]).ok();
    }
    assert_eq!(log(&home), "second\n");
    let list = home.call(&["session", "log", "s1", "--list", "-ojson"]).ok().json();
    let pid = list[1]["pid"].to_string();
    assert_eq!(home.call(&["session", "log", "s1", "--pid", &pid]).ok().stdout(), "first\n");
    home.call(&["session", "log", "s1", "--pid", "1"]).run().exit(2);
}

#[test]
fn values_of_secret_variables_are_redacted_in_the_copy() {
    let home = home();
    let done = logged(&home, &["sh", "-c", "echo token=$API_TOKEN"]).env("API_TOKEN", "hunter2hunter2").ok();
    assert_eq!(done.stdout(), "token=hunter2hunter2\n");
    assert_eq!(log(&home), "token=**************\n");
}

#[test]
fn list_of_copies_has_no_secret_of_a_command() {
    let home = home();
    let secrets = ["ghp_A1b2C3d4E5f6G7h8I9j0", "t0p-s3cret"];
    logged(&home, &["true", secrets[0], "--token", secrets[1]]).ok();
    let list = home.call(&["session", "log", "s1", "--list"]).ok().stdout();
    let json = home.call(&["session", "log", "s1", "--list", "-ojson"]).ok().stdout();
    assert!(list.contains("[hidden]") && json.contains("[hidden]"), "{list}{json}");
    for secret in secrets {
        assert!(!list.contains(secret) && !json.contains(secret), "{secret}: {list}{json}");
    }
}

#[test]
fn without_a_session_that_stays_it_is_refused() {
    let home = home();
    let refused = home.call(&["run", "--log", "--", "echo", "x"]).run().exit(125);
    assert!(refused.stderr().contains("--log requires a session"), "{}", refused.told());
    assert_eq!(refused.stdout(), "");
    home.call(&["session", "start", "--name", "s1"]).ok();
    let empty = home.call(&["session", "log", "s1"]).ok();
    assert_eq!(empty.stdout(), "");
    assert!(empty.stderr().contains("pass --log to run"), "{}", empty.told());
}

#[test]
fn status_is_the_commands_on_pipes() {
    let home = home();
    home.write("plain", "no program");
    for (script, status) in [("exit 0", 0), ("exit 77", 77), ("kill -TERM $$", 143), ("kill -KILL $$", 137)] {
        logged(&home, &["sh", "-c", script]).run().exit(status);
    }
    logged(&home, &["no-such-program"]).run().exit(127);
    logged(&home, &["./plain"]).run().exit(126);
    let timeout = ["run", "--session", "s1", "--log", "--timeout", "200ms", "--", "sleep", "1000"];
    home.call(&timeout).run().exit(124);
}

#[test]
fn status_is_the_commands_on_a_terminal() {
    let home = home();
    home.write("plain", "no program");
    let mut shell = interactive(&home);
    for (words, status) in [
        ("sh -c 'exit 77'", 77),
        ("sh -c 'kill -TERM $$'", 143),
        ("sh -c 'kill -KILL $$'", 137),
        ("no-such-program", 127),
        ("./plain", 126),
    ] {
        let (text, found) = shell.run(&format!("sessile run --session s1 --log -- {words}"));
        assert_eq!(found, status, "{words}: {text}");
    }
    let (text, found) = shell.run("sessile run --session s1 --log --timeout 200ms -- sleep 1000");
    assert_eq!(found, 124, "{text}");
    leave(shell);
}

#[test]
fn a_terminal_has_its_size_and_modes_before_and_after() {
    let home = home();
    let mut shell = interactive(&home);
    shell.run("stty rows 33 cols 77");
    let before = shell.run("stty -a").0;
    let (text, _) =
        shell.run("sessile run --session s1 --log -- sh -c 'stty size; tput cols; test -t 2 && tty'");
    assert!(text.contains("33 77") && text.contains("/dev/"), "{text}");
    assert_eq!(shell.run("stty -a").0, before);
    assert!(log(&home).starts_with("33 77\n"), "{}", log(&home));
    // What the command does to its terminal does not reach the caller's.
    shell.run("sessile run --session s1 --log -- stty -icanon -echo");
    assert_eq!(shell.run("stty -a").0, before);
    leave(shell);
}

#[test]
fn a_new_size_of_the_terminal_reaches_the_command() {
    let home = home();
    let mut shell = interactive(&home);
    let tty = shell.run("tty").0;
    for way in ["", "< /dev/null"] {
        shell.run("stty rows 20 cols 80");
        shell.type_line(&format!(
            "sessile run --session s1 --log -- bash -c 'trap \"stty size <&1\" WINCH; echo ready; \
             until [ -e stop ]; do sleep 0.05; done' {way}; echo ended $?"
        ));
        shell.expect("ready");
        let line = format!("stty rows 44 cols 99 < {}", tty.trim());
        home.tool("bash", &["-c", &line]).ok();
        shell.expect("44 99");
        home.write("stop", "");
        shell.expect("ended 0");
        shell.run("rm stop");
    }
    leave(shell);
}

#[test]
fn typed_input_reaches_the_command_and_its_echo_the_copy() {
    let home = home();
    let mut shell = interactive(&home);
    shell.type_line("sessile run --session s1 --log -- bash --norc --noprofile -c 'read -p \"name? \" x; echo hello $x'; echo ended $?");
    shell.expect("name? ");
    shell.type_line("Ann");
    shell.expect("hello Ann");
    shell.expect("ended 0");
    assert!(log(&home).contains("name? ") && log(&home).contains("hello Ann\n"), "{}", log(&home));
    leave(shell);
}

#[test]
fn job_control_works_in_a_shell_on_the_terminal() {
    let home = home();
    let mut shell = interactive(&home);
    shell
        .type_line("sessile run --session s1 --log -- bash --norc --noprofile --noediting -i; echo ended $?");
    shell.run("PS1=");
    shell.type_line("sh -c 'echo begun; exec sleep 1000'");
    shell.expect("begun");
    shell.suspend();
    shell.expect("Stopped");
    assert!(shell.run("jobs").0.contains("sleep"));
    shell.type_line("fg");
    shell.expect("sleep");
    shell.interrupt();
    assert!(shell.run("echo status $?").0.contains("status 130"));
    shell.type_line("exit 5");
    shell.expect("ended 5");
    leave(shell);
}

/// An interactive shell whose prompt tells that it has the terminal again.
fn prompting(home: &Home) -> testkit::Tty {
    let mut shell = interactive(home);
    shell.type_line("PS1='[back]'");
    shell.expect("[back]");
    shell
}

#[test]
fn ctrl_z_stops_command_and_caller_and_fg_continues_both() {
    let home = home();
    let mut shell = prompting(&home);
    shell.type_line("sessile run --session s1 --log -- bash -c 'echo ready; read x; echo got $x'");
    shell.expect("ready");
    shell.suspend();
    shell.expect("Stopped");
    shell.expect("[back]");
    assert!(shell.run("jobs; stty -a").0.contains(" icanon"), "the terminal is the shell's again");
    shell.type_line("fg");
    shell.expect("sessile run");
    shell.type_line("hello");
    shell.expect("got hello");
    shell.expect("[back]");
    leave(shell);
}

#[test]
fn command_that_stops_itself_stops_the_caller() {
    let home = home();
    let mut shell = prompting(&home);
    shell.type_line("sessile run --session s1 --log -- bash -c 'echo ready; kill -STOP $$; echo went on'");
    shell.expect("ready");
    shell.expect("Stopped");
    shell.expect("[back]");
    shell.type_line("bg");
    shell.expect("went on");
    // The shell reports the end of a job before a prompt.
    shell.run("wait");
    leave(shell);
}

#[test]
fn ctrl_c_ends_a_command_and_the_loop_around_it() {
    let home = home();
    let mut shell = prompting(&home);
    shell.type_line("for i in 1 2 3; do echo round $i; sessile run --session s1 --log -- sh -c 'echo begun; exec sleep 1000'; done");
    shell.expect("begun");
    shell.interrupt();
    let told = shell.expect("[back]");
    assert!(!told.contains("round 2"), "{told}");
    assert!(shell.run("echo status $?").0.contains("status 130"));
    leave(shell);
}

#[test]
fn output_of_a_terminal_alone_keeps_the_input() {
    let home = home();
    let mut shell = interactive(&home);
    let (text, status) =
        shell.run("echo piped | sessile run --session s1 --log -- sh -c 'cat; test -t 1 && ! test -t 0'");
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("piped"), "{text}");
    let (text, _) = shell.run(
        "sessile run --session s1 --log -- sh -c 'test -t 1 || echo no; test -t 2 && echo yes >&2' | cat",
    );
    assert!(text.contains("no") && text.contains("yes"), "{text}");
    leave(shell);
}

#[test]
fn output_up_to_the_death_of_the_parent_is_kept() {
    let home = home();
    let script = "echo before; echo $$ > pid; while echo tick; do sleep 0.05; done";
    let call = logged(&home, &["sh", "-c", script]);
    let mut parent = call.command().stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(parent.stdout.take().unwrap());
    let mut line = String::new();
    // Output is passed on before it is copied, so the last line that was read may not be in the copy.
    while !line.ends_with("tick\n") || !log(&home).starts_with("before\ntick\n") {
        out.read_line(&mut line).unwrap();
    }
    let pid = home.read("pid");
    parent.kill().unwrap();
    parent.wait().unwrap();
    // The pipe is broken, as if its reader had gone.
    eventually("the end of the command", || !lives(&pid));
    assert!(log(&home).starts_with("before\ntick\n"), "{}", log(&home));
    drop(out.read_to_string(&mut line));
    home.call(&["session", "stop", "s1"]).ok();
}

#[test]
fn command_on_a_terminal_is_hung_up_when_the_parent_is_killed() {
    let home = home();
    let mut shell = interactive(&home);
    shell.type_line(
        "sessile run --session s1 --log -- sh -c 'echo $PPID $$ > pids; echo ready; exec sleep 1000'",
    );
    shell.expect("ready");
    let pids = home.read("pids");
    let (monitor, command) = pids.trim().split_once(' ').unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{monitor}/stat")).unwrap();
    let parent = stat.rsplit(')').next().unwrap().split_whitespace().nth(1).unwrap().to_owned();
    kill(&parent, "KILL");
    eventually("the end of the command", || !lives(command) && !lives(monitor));
    assert_eq!(log(&home), "ready\n");
    leave(shell);
}
