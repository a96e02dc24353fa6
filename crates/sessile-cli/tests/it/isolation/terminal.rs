//! On a terminal and under signals, a command in `sessile run` behaves as it does without.

use std::process::Stdio;

use testkit::{Home, Tty};

use crate::{eventually, home, live, lives};

/// The two ways: the command in place of the program, and with the program as its parent.
const WAYS: [&str; 2] = ["--session s1", ""];

/// The same, and a third one with a copy of the output. What is typed in its last moment belongs to the command, so tests that
/// type ahead are in `output_log`.
const ALL_WAYS: [&str; 3] = ["--session s1", "", "--session s1 --log"];

/// A shell with job control, in which the program is found by its name.
pub(super) fn interactive(home: &Home) -> Tty {
    let dir = home.program().parent().unwrap().display();
    let call = home.tool("bash", &["--norc", "--noprofile", "--noediting", "-i"]);
    let mut shell = call
        .env("PATH", format!("{dir}:/usr/local/bin:/usr/bin:/bin"))
        .env("TERM", "dumb")
        .env("PS1", "")
        .tty();
    shell.run("stty -echo; PS1=");
    shell
}

/// An interactive shell ignores the signal that would end it otherwise.
pub(super) fn leave(mut shell: Tty) {
    shell.type_line("exit");
    shell.finish();
}

#[test]
fn closed_pipe_ends_the_command_quietly() {
    let home = home();
    let mut shell = interactive(&home);
    for way in ALL_WAYS {
        let (text, _) = shell.run(&format!("sessile run {way} -- yes | head -1; echo ${{PIPESTATUS[0]}}"));
        assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["y", "141"], "{way}: {text}");
    }
    leave(shell);
}

#[test]
fn command_inherits_the_callers_signal_masks() {
    let home = home();
    let script = "grep -E 'Sig(Ign|Blk)' /proc/self/status";
    for before in ["", "trap '' HUP; ", "trap '' INT TERM; "] {
        let bare = home.tool("bash", &["-c", &format!("{before} {script}")]).ok().stdout();
        for way in ALL_WAYS {
            let line = format!("{before} \"$0\" run {way} -- bash -c \"{script}\"");
            let told = home.tool("bash", &["-c", &line]).arg(home.program()).ok().stdout();
            assert_eq!(told, bare, "{before:?} {way}");
        }
    }
}

#[test]
fn status_is_reported_where_the_caller_ignores_sigchld() {
    let home = home();
    for way in ALL_WAYS {
        let line = format!("trap '' CHLD; \"$0\" run {way} -- sh -c 'exit 7'; echo $?");
        let told = home.tool("bash", &["-c", &line]).arg(home.program()).ok().stdout();
        assert_eq!(told, "7\n", "{way}");
    }
}

#[test]
fn timer_signals_are_passed_on() {
    let home = home();
    for signal in ["ALRM", "VTALRM", "PROF", "XCPU", "IO"] {
        let line = format!(
            "\"$0\" run -- sh -c 'trap \"exit 9\" {signal}; : > ready; while :; do sleep 0.01; done' & \
                            until [ -e ready ]; do sleep 0.01; done; rm ready; kill -{signal} $!; wait $!; echo $?"
        );
        let told = home.tool("bash", &["-c", &line]).arg(home.program()).ok().stdout();
        assert_eq!(told, "9\n", "{signal}");
    }
}

#[test]
fn under_nohup_it_outlives_its_terminal() {
    let home = home();
    for (number, way) in ALL_WAYS.into_iter().enumerate() {
        let mut shell = interactive(&home);
        let file = format!("pid{number}");
        let run =
            format!("nohup sessile run {way} -- sh -c 'echo $$ > {file}; exec sleep 1000' >/dev/null 2>&1 &");
        shell.type_line(&run);
        eventually("the command", || home.path(&file).exists() && home.read(&file).ends_with('\n'));
        shell.type_line("kill -HUP %1; exit");
        shell.finish();
        let pid = home.read(&file);
        assert!(lives(&pid), "{way}");
        kill(&pid, "KILL");
        eventually("its end", || !lives(&pid));
    }
}

#[test]
fn ctrl_c_reaches_the_command_once() {
    let home = home();
    let mut shell = interactive(&home);
    for way in ALL_WAYS {
        shell.type_line(&format!(
            "sessile run {way} -- bash -c 'trap \"echo caught; n=1\" INT; echo ready; while [ -z \"$n\" ]; \
             do sleep 0.05; done; sleep 0.3; exit 7'; echo status $?"
        ));
        shell.expect("ready");
        shell.interrupt();
        let told = shell.expect("status 7");
        assert_eq!(told.matches("caught").count(), 1, "{way}: {told}");
    }
    leave(shell);
}

#[test]
fn ctrl_c_ends_a_command_that_does_nothing_about_it() {
    let home = home();
    let mut shell = interactive(&home);
    for way in WAYS {
        shell.type_line(&format!("sessile run {way} -- sh -c 'echo ready; exec sleep 1000'"));
        shell.expect("ready");
        shell.interrupt();
        assert!(shell.run("echo status $?").0.contains("status 130"), "{way}");
    }
    assert_eq!(live(&home).len(), 1, "the ephemeral session was deleted");
    leave(shell);
}

#[test]
fn ctrl_z_stops_it_and_fg_goes_on() {
    let home = home();
    let mut shell = interactive(&home);
    for way in WAYS {
        shell.type_line(&format!("sessile run {way} -- bash -c 'echo ready; read x; echo got $x'"));
        shell.expect("ready");
        shell.suspend();
        shell.expect("Stopped");
        assert!(shell.run("jobs").0.contains("Stopped"), "{way}");
        shell.type_line("fg");
        shell.expect("sessile run");
        shell.type_line("hello");
        shell.expect("got hello");
        assert_eq!(shell.run("true").1, 0);
    }
    leave(shell);
}

#[test]
fn a_command_that_stops_itself_gives_the_terminal_back() {
    let home = home();
    let mut shell = interactive(&home);
    for way in WAYS {
        shell.type_line(&format!("sessile run {way} -- bash -c 'echo ready; kill -STOP $$; echo went on'"));
        shell.expect("ready");
        shell.expect("Stopped");
        shell.type_line("fg");
        shell.expect("went on");
        assert_eq!(shell.run("true").1, 0);
    }
    leave(shell);
}

#[test]
fn command_has_the_terminal() {
    let home = home();
    let mut shell = interactive(&home);
    for way in ALL_WAYS {
        let (text, status) =
            shell.run(&format!("sessile run {way} -- sh -c 'test -t 0 && test -t 1 && tty'"));
        assert_eq!(status, 0, "{text}");
        assert!(text.contains("/dev/"), "{text}");
    }
    leave(shell);
}

#[test]
fn signal_to_the_parent_reaches_the_command() {
    let home = home();
    for (signal, number) in [("TERM", 15), ("INT", 2), ("HUP", 1), ("USR1", 10), ("QUIT", 3)] {
        let script =
            format!("trap 'echo caught; exit {number}' {signal}; echo ready; while :; do sleep 0.05; done");
        let mut parent = home
            .call(&["run", "--", "bash", "-c", &script])
            .command()
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = std::io::BufReader::new(parent.stdout.take().unwrap());
        let mut line = String::new();
        std::io::BufRead::read_line(&mut out, &mut line).unwrap();
        assert_eq!(line, "ready\n");
        kill(&parent.id().to_string(), signal);
        assert_eq!(parent.wait().unwrap().code(), Some(number), "{signal}");
        std::io::BufRead::read_line(&mut out, &mut line).unwrap();
        assert_eq!(line, "ready\ncaught\n", "{signal}");
    }
    assert!(live(&home).is_empty());
}

#[test]
fn room_stays_for_a_daemon_of_the_command() {
    let home = home();
    let script = "setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo $! > pid; echo $KUBECONFIG";
    let begun = std::time::Instant::now();
    let told = home.call(&["run", "--idle", "100ms", "--", "sh", "-c", script]).ok().stdout();
    assert!(begun.elapsed() < std::time::Duration::from_secs(10));
    let room = std::path::Path::new(told.trim()).ancestors().nth(2).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    home.call(&["session", "gc"]).ok();
    assert!(room.exists());
    kill(&home.read("pid"), "KILL");
    eventually("the end of the room", || {
        home.call(&["session", "gc"]).ok();
        !room.exists()
    });
    assert!(live(&home).is_empty());
}

pub(super) fn kill(pid: &str, signal: &str) {
    let status = std::process::Command::new("kill").args([&format!("-{signal}"), pid.trim()]).status();
    assert!(status.unwrap().success());
}

#[test]
fn interrupt_ends_the_loop_around_a_command() {
    let home = home();
    for way in WAYS {
        let mut shell = interactive(&home);
        shell.type_line(&format!(
            "for i in 1 2 3; do echo round $i; sessile run {way} -- sh -c 'echo begun; exec sleep 20'; done; echo over"
        ));
        shell.expect("begun");
        shell.interrupt();
        let (text, _) = shell.run("true");
        assert!(!text.contains("round 2"), "{way}: {text}");
        leave(shell);
    }
}
