//! `sessile run`: which session a command runs in, what it gets to see, and what comes back from it.

use std::path::PathBuf;
use std::process::Stdio;

use testkit::{Call, CallResult, Home};

use crate::{eventually, home, home_with, live, lives, room, shown, start};

/// Every value that a shell, a table or a careless split would change.
pub(crate) const HOSTILE: &[&str] = &[
    "",
    " ",
    "two words",
    "  around  ",
    "'single' \"double\" `back`",
    "$(touch gone) ${HOME} $HOME",
    "line\nbreak\n",
    "tab\tand \\ backslash \\n",
    "\\\\ two, \\' one before a quote, and one at the end \\",
    "-leading --dashes",
    "--",
    "a=b=c",
    "*?[x]{a,b}~",
    "!history #comment;&|<>",
    "ünïcödé \u{1f980}",
    "\u{1b}[31mred",
];

fn run(home: &Home, flags: &[&str], command: &[&str]) -> Call {
    home.call(&["run"]).args(flags).args(&["--"]).args(command)
}

fn all_sessions(home: &Home) -> Vec<serde_json::Value> {
    let listed = home.call(&["session", "list", "--state", "all", "-ojson"]).ok().json();
    listed.as_array().unwrap().clone()
}

fn rooms(home: &Home) -> Vec<PathBuf> {
    let dir = std::fs::read_dir(home.path(".local/state/sessile/rooms"));
    dir.into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

/// A kubeconfig with these contexts, the first one current.
pub(crate) fn kubeconfig(contexts: &[&str]) -> String {
    let mut text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: {}\nclusters:\n\
         - name: c\n  cluster: {{server: 'https://127.0.0.1:1'}}\nusers:\n- name: u\n  user: {{token: t}}\n\
         contexts:\n",
        contexts.first().unwrap_or(&"''")
    );
    for name in contexts {
        text.push_str(&format!("- name: {name}\n  context: {{cluster: c, user: u}}\n"));
    }
    text
}

mod which_session {
    use super::*;

    #[test]
    fn second_run_joins_the_named_session() {
        let home = home();
        let first = run(&home, &["--session", "s1"], &["printenv", "SESSILE_SESSION"]).ok().stdout();
        let second = run(&home, &["--session", "s1"], &["printenv", "SESSILE_SESSION"]).ok().stdout();
        assert_eq!(first, second);
        assert_eq!(live(&home), [first.trim()]);
        assert_eq!(shown(&home, "s1")["state"], "live");
    }

    #[test]
    fn ephemeral_one_leaves_at_most_a_spare_room() {
        let home = home();
        let seen = run(&home, &[], &["sh", "-c", "ls -d \"${KUBECONFIG%/kube/config}\""]).ok().stdout();
        assert!(seen.contains("/rooms/"), "{seen}");
        run(&home, &[], &["false"]).run().exit(1);
        run(&home, &[], &["/nonexistent"]).run().exit(127);
        assert_eq!(all_sessions(&home), Vec::<serde_json::Value>::new());
        assert!(rooms(&home).iter().all(|room| room.ends_with("spare")), "{:?}", rooms(&home));
        home.call(&["session", "gc"]).ok();
        assert_eq!(rooms(&home), Vec::<PathBuf>::new());
        assert_eq!(crate::history(&home).as_array().unwrap().len(), 0);
    }

    #[test]
    fn existing_fails_without_a_session() {
        let home = home();
        let done = run(&home, &["--session", "s1", "--existing", "-ojson"], &["true"]).run().exit(125);
        assert_eq!(done.code(), "SESSION_NOT_FOUND");
        let done = run(&home, &["--existing", "-ojson"], &["true"]).run().exit(125);
        assert_eq!(done.code(), "SESSION_REQUIRED");
        assert!(all_sessions(&home).is_empty());
        start(&home, &["--name", "s1"]);
        run(&home, &["--session", "s1", "--existing"], &["true"]).ok();
    }

    #[test]
    fn new_starts_over_what_has_ended_and_refuses_what_lives() {
        let home = home();
        let id = |done: CallResult| done.stdout().trim().to_owned();
        let command = ["printenv", "SESSILE_SESSION"];
        let first = id(run(&home, &["--session", "s1", "--new"], &command).ok());
        let done = run(&home, &["--session", "s1", "--new", "-ojson"], &command).run().exit(125);
        assert_eq!(done.code(), "SESSION_EXISTS");
        home.call(&["session", "stop", "s1"]).ok();
        let second = id(run(&home, &["--session", "s1", "--new"], &command).ok());
        assert_ne!(first, second);
    }

    #[test]
    fn an_expired_one_is_not_started_again_by_itself() {
        let home = home();
        start(&home, &["--name", "s1", "--idle", "1ms"]);
        std::thread::sleep(std::time::Duration::from_millis(20));
        let done = run(&home, &["--session", "s1", "-ojson"], &["true"]).run().exit(125);
        let error = done.json_error();
        assert_eq!(error["code"], "SESSION_EXPIRED");
        assert_eq!(error["exit_code"], 125);
        run(&home, &["--session", "s1", "--new"], &["true"]).ok();
    }

    #[test]
    fn inside_a_session_it_joins_that_one() {
        let home = home();
        let nested = "\"$0\" run -- printenv SESSILE_SESSION KUBECONFIG; printenv SESSILE_SESSION KUBECONFIG";
        let program = home.program().display().to_string();
        let told = run(&home, &["--session", "outer"], &["sh", "-c", nested, &program]).ok().stdout();
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines[..2], lines[2..], "{told}");
        assert_eq!(live(&home).len(), 1);
    }

    #[test]
    fn nested_session_copies_the_users_state() {
        let home = home_with(&["staging"]);
        home.write(".gitconfig", "[user]\n\tname = me\n");
        let nested = "git config --global user.name outer
            \"$0\" run --session inner -- git config --global user.name
            \"$0\" run --session inner -- printenv SESSILE_CONTEXT GIT_CONFIG_GLOBAL
            \"$0\" session show inner -ojson";
        let program = home.program().display().to_string();
        let flags = ["--session", "outer", "--context", "staging"];
        let told = run(&home, &flags, &["sh", "-c", nested, &program]).ok().stdout();
        assert_eq!(told.lines().next(), Some("me"), "{told}");
        assert!(told.contains(&room(&home, "inner").display().to_string()), "{told}");
        assert_eq!(shown(&home, "inner")["context"], "staging");
        assert_eq!(home.read(".gitconfig"), "[user]\n\tname = me\n");
    }

    /// Or its commands would write into the outer room, and lose their home when that session ends.
    #[test]
    fn nothing_of_the_outer_room_is_seen_in_another_session() {
        let home = home();
        home.write(
            ".config/sessile/contexts/a.toml",
            "[env]\nOF_A = \"1\"\n[tools.terraform]\nworkspace = \"a\"\n",
        );
        home.write(".config/sessile/contexts/b.toml", "");
        home.write("own env", "OWN=read\n");
        home.write(".claude/settings.json", "{}\n");
        let nested = "room=${KUBECONFIG%/kube/config}
            \"$0\" run --session inner --context b -- env | grep -v ^SESSILE_ORIGINALS= > seen
            \"$0\" run --session inner -- bash -c 'env | grep -v ^SESSILE_ORIGINALS=; echo own $OWN' >> seen
            eval \"$(\"$0\" env --session inner)\"; env | grep -v ^SESSILE_ORIGINALS= >> seen
            bash -c 'echo own $OWN; env | grep -v ^SESSILE_ORIGINALS=' >> seen
            grep -F \"$room\" seen";
        let program = home.program().display().to_string();
        let flags =
            ["--session", "outer", "--context", "a", "--isolate", "home", "--set", "tools.also=claude"];
        let call = run(&home, &flags, &["bash", "-c", nested, &program]);
        let told = call.env("BASH_ENV", home.path("own env")).env("TF_WORKSPACE", "mine").run().stdout();
        assert_eq!(told, "");
        let seen = home.read("seen");
        assert_eq!(seen.matches(&format!("\nHOME={}\n", home.dir().display())).count(), 4, "{seen}");
        assert_eq!(seen.matches("\nTF_WORKSPACE=mine\n").count(), 4, "{seen}");
        assert_eq!(seen.matches("own read\n").count(), 2, "{seen}");
        assert!(!seen.contains("OF_A=") && !seen.contains("CLAUDE_CONFIG_DIR="), "{seen}");
    }

    #[test]
    fn twenty_parallel_first_runs_share_one_room() {
        let home = home();
        home.write(".kube/config", kubeconfig(&["a", "b"]));
        let script = "grep -c 'name: \"\\?[ab]' \"$KUBECONFIG\"; printenv SESSILE_SESSION";
        let told: Vec<String> = std::thread::scope(|scope| {
            let calls: Vec<_> = (0..20)
                .map(|_| {
                    scope.spawn(|| run(&home, &["--session", "s1"], &["sh", "-c", script]).ok().stdout())
                })
                .collect();
            calls.into_iter().map(|call| call.join().unwrap()).collect()
        });
        assert!(told[0].starts_with("2\n"), "{}", told[0]);
        assert!(told.iter().all(|one| *one == told[0]), "{told:?}");
        assert_eq!(rooms(&home).len(), 1);
    }
}

mod status {
    use super::*;

    #[test]
    fn every_exit_status_comes_back_as_it_is() {
        let home = home();
        for status in [0, 1, 2, 3, 63, 124, 125, 126, 127, 128, 137, 200, 254, 255] {
            let command = ["sh", "-c", &format!("exit {status}")];
            run(&home, &[], &command).run().exit(status);
            run(&home, &["--session", "s1"], &command).run().exit(status);
        }
    }

    #[test]
    fn time_that_is_up_is_124() {
        let home = home();
        run(&home, &["--timeout", "100ms"], &["sleep", "1000"]).run().exit(124);
        run(&home, &["--timeout", "100ms", "--session", "s1"], &["sleep", "1000"]).run().exit(124);
        run(&home, &["--timeout", "1h"], &["sh", "-c", "exit 3"]).run().exit(3);
        assert_eq!(live(&home).len(), 1);
    }

    #[test]
    fn process_that_ignores_the_timeout_is_killed() {
        let home = home();
        let script = "trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done";
        run(&home, &["--timeout", "100ms"], &["bash", "-c", script]).run().exit(124);
        assert!(!lives(&home.read("pid")));
    }

    #[test]
    fn binding_of_a_call_without_its_target_names_the_flag() {
        let home = home();
        home.write(".kube/config", "apiVersion: v1\nkind: Config\nclusters: []\ncontexts: []\nusers: []\n");
        let done = run(&home, &["--bind", "kubectl.context=nope", "-ojson"], &["true"]).run().exit(125);
        assert_eq!(done.code(), "BINDING_NOT_FOUND");
        assert_eq!(done.json_error()["hint"], "bind another target: --bind kubectl.context=NAME");
    }

    #[test]
    fn own_failure_is_125_with_the_code_in_the_error() {
        let home = home();
        let done = run(&home, &["--context", "nope", "-ojson"], &["true"]).run().exit(125);
        assert_eq!(done.code(), "CONTEXT_NOT_FOUND");
        assert_eq!(done.json_error()["exit_code"], 125);
        let done = run(&home, &["--tool", "nope", "-ojson"], &["true"]).run().exit(125);
        assert_eq!(done.code(), "TOOL_NOT_FOUND");
        for wrong in ["NO_VALUE", "=x", "a-b=x", "a b=x"] {
            let done = run(&home, &["--env", wrong, "-ojson"], &["true"]).run().exit(125);
            assert_eq!(done.code(), "INVALID_VALUE", "{wrong}");
        }
    }

    #[test]
    fn not_executable_is_126_and_not_found_is_127() {
        let home = home();
        home.write("plain", "text");
        for flags in [&[][..], &["--session", "s1"]] {
            run(&home, flags, &["./plain"]).run().exit(126);
            run(&home, flags, &["/"]).run().exit(126);
            run(&home, flags, &["./nothing"]).run().exit(127);
            let done = run(&home, flags, &["no-such-program", "-ojson"]).run().exit(127);
            assert!(done.stderr().contains("no-such-program"), "{}", done.told());
        }
    }

    #[test]
    fn program_is_found_in_the_path_of_the_command() {
        use std::os::unix::fs::PermissionsExt;
        let home = home();
        home.write("one/tool/file", "");
        home.write("two/tool", "#!/bin/sh\necho wrong\n");
        for dir in ["three", "four"] {
            let tool = home.write(format!("{dir}/tool"), format!("#!/bin/sh\necho {dir} $0\n"));
            std::fs::set_permissions(tool, PermissionsExt::from_mode(0o755)).unwrap();
        }
        let dirs = ["one", "two", "three", "four"].map(|dir| home.path(dir).to_str().unwrap().to_owned());
        let path = format!("PATH={}:/usr/bin:/bin", dirs.join(":"));
        let tool = home.path("three/tool");
        for flags in [&[][..], &["--session", "s1"]] {
            let flags = [flags, &["--env", &path]].concat();
            let seen = run(&home, &flags, &["tool"]).ok().stdout();
            assert_eq!(seen, format!("three {}\n", tool.display()), "{flags:?}");
            // Programs that are several at once look at the name by which they were called.
            let called =
                run(&home, &flags, &["bash", "-c", "tr '\\0' ' ' </proc/$$/cmdline; :"]).ok().stdout();
            assert!(called.starts_with("bash -c "), "{called}");
        }
        std::fs::set_permissions(&tool, PermissionsExt::from_mode(0o644)).unwrap();
        std::fs::remove_file(home.path("four/tool")).unwrap();
        for flags in [&[][..], &["--session", "s1"]] {
            run(&home, &[flags, &["--env", &path]].concat(), &["tool"]).run().exit(126);
        }
    }

    #[test]
    fn a_signal_is_128_and_its_number() {
        let home = home();
        for (signal, status) in [("TERM", 143), ("KILL", 137), ("SEGV", 139)] {
            run(&home, &[], &["sh", "-c", &format!("kill -{signal} $$")]).run().exit(status);
        }
        // Nothing is in between that could say so; the caller sees the signal itself.
        let done = run(&home, &["--session", "s1"], &["sh", "-c", "kill -TERM $$"]).run();
        assert_eq!(done.status(), None);
        // Otherwise a shell would go on with the loop that was interrupted.
        let done = run(&home, &[], &["sh", "-c", "kill -INT $$"]).run();
        assert_eq!(done.status(), None);
    }
}

mod between {
    use super::*;

    #[test]
    fn in_a_named_session_nothing_stays_between_caller_and_command() {
        let home = home();
        let child = run(&home, &["--session", "s1"], &["sh", "-c", "echo $$ $PPID"])
            .command()
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id();
        let told = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        assert_eq!(told.trim(), format!("{pid} {}", std::process::id()));
    }

    #[test]
    fn the_command_inherits_one_descriptor_and_no_other() {
        let home = home();
        let script = "for fd in /proc/$$/fd/*; do readlink $fd; done; true";
        for flags in [&[][..], &["--session", "s1"]] {
            let told = run(&home, flags, &["sh", "-c", script]).ok().stdout();
            let more: Vec<&str> = told.lines().filter(|line| line.contains(".local/state")).collect();
            assert!(matches!(more[..], [one] if one.ends_with("/lock")), "{told}");
        }
    }

    #[test]
    fn session_with_a_running_command_is_busy() {
        let home = home();
        let mut child = run(&home, &["--session", "s1"], &["sleep", "1000"])
            .command()
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        eventually("the command", || {
            home.call(&["session", "show", "s1", "-ojson"]).run().status() == Some(0)
                && shown(&home, "s1")["running"][0]["program"] == "sleep"
        });
        home.call(&["session", "stop", "s1"]).ok();
        assert!(!child.wait().unwrap().success());
    }

    /// The child lives on and keeps its room; what is left goes with it.
    #[test]
    fn a_killed_parent_of_an_ephemeral_run_leaves_nothing_for_long() {
        let home = home();
        let script = "echo $$ > pid; exec sleep 1000";
        let mut parent = run(&home, &["--idle", "100ms"], &["sh", "-c", script])
            .command()
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        eventually("the command", || home.path("pid").exists() && home.read("pid").ends_with('\n'));
        parent.kill().unwrap();
        parent.wait().unwrap();
        let pid = home.read("pid");
        assert!(lives(&pid));
        home.call(&["session", "gc"]).ok();
        assert_eq!(live(&home).len(), 1, "the session is in use");
        kill(&pid, "KILL");
        eventually("the end of the room", || {
            home.call(&["session", "gc"]).ok();
            rooms(&home).is_empty()
        });
        assert!(live(&home).is_empty());
    }

    #[test]
    fn stragglers_are_stopped_on_request() {
        let home = home();
        let script = "sleep 1000 >/dev/null 2>&1 & echo $! > pid";
        run(&home, &["--session", "s1", "--kill-stragglers"], &["sh", "-c", script]).ok();
        assert!(!lives(&home.read("pid")));
        assert_eq!(live(&home).len(), 1);
    }

    #[test]
    fn a_lock_is_held_while_the_command_runs() {
        let home = home();
        let script = "\"$0\" lock list -ojson; echo token=$SESSILE_LOCK_TOKEN";
        let program = home.program().display().to_string();
        let told = run(&home, &["--lock", "deploy"], &["sh", "-c", script, &program]).ok().stdout();
        assert!(told.contains("\"deploy\""), "{told}");
        assert!(!told.contains("token=\n"), "{told}");
        assert_eq!(home.call(&["lock", "list", "-ojson"]).ok().json(), serde_json::json!([]));
    }
}

fn kill(pid: &str, signal: &str) {
    let status = std::process::Command::new("kill").args([&format!("-{signal}"), pid.trim()]).status();
    assert!(status.unwrap().success());
}

mod values {
    use super::*;

    #[test]
    fn arguments_arrive_unchanged() {
        let home = home();
        let wanted: String = HOSTILE.iter().map(|value| format!("{value}\0")).collect();
        for flags in [&[][..], &["--session", "s1"]] {
            let done = run(&home, flags, &["printf", "%s\\0"]).args(HOSTILE).ok();
            assert_eq!(done.stdout(), wanted);
        }
        assert!(!home.path("gone").exists());
    }

    #[test]
    fn variables_of_every_source_arrive_unchanged() {
        let home = home();
        let numbered = |letter: &str| -> Vec<(String, &str)> {
            HOSTILE.iter().enumerate().map(|(at, value)| (format!("{letter}{at}"), *value)).collect()
        };
        let line = |(name, value): (String, &str)| format!("{name} = {}\n", serde_json::json!(value));
        let toml: String = numbered("CONTEXT").into_iter().map(line).collect();
        home.write(".config/sessile/contexts/c.toml", format!("[env]\n{toml}"));
        let all = numbered("CONTEXT").into_iter().chain(numbered("FLAG")).chain(numbered("CALLER"));
        let names: Vec<String> = all.map(|(name, _)| format!("\"${name}\"")).collect();
        let script = format!("printf '%s\\0' {}", names.join(" "));
        let wanted: String = HOSTILE.iter().map(|value| format!("{value}\0")).collect();
        // bash reads a file of the session's before it runs the script.
        for shell in ["sh", "bash"] {
            let mut call = home.call(&["run", "--context", "c"]);
            for (name, value) in numbered("FLAG") {
                call = call.args(&["--env", &format!("{name}={value}")]);
            }
            for (name, value) in numbered("CALLER") {
                call = call.env(name, value);
            }
            assert_eq!(call.args(&["--", shell, "-c", &script]).ok().stdout(), wanted.repeat(3), "{shell}");
        }
        assert!(!home.path("gone").exists());
    }

    #[test]
    fn a_value_that_is_not_text_arrives_too() {
        use std::os::unix::ffi::OsStrExt;
        let home = home();
        let odd = std::ffi::OsStr::from_bytes(b"\xff\xfe");
        let done = run(&home, &[], &["sh", "-c", "printf %s \"$ODD$1\" | od -An -tx1", "sh"]);
        assert_eq!(done.env("ODD", odd).arg(odd).ok().stdout().trim(), "ff fe ff fe");
    }

    #[test]
    fn standard_input_and_both_outputs_are_the_commands_own() {
        let home = home();
        for flags in [&["-q"][..], &["-q", "--session", "s1"]] {
            let done = run(&home, flags, &["sh", "-c", "cat; echo err >&2"]).stdin("in\n").ok();
            assert_eq!((done.stdout().as_str(), done.stderr().as_str()), ("in\n", "err\n"));
        }
    }
}

#[test]
fn directories_that_are_too_deep_to_copy_are_linked() {
    let home = home();
    home.tool("python3", &["-c", "import os\nos.makedirs('.docker')\nos.chdir('.docker')\nfor _ in range(900):\n os.mkdir('d')\n os.chdir('d')\n"]).ok();
    let done = run(&home, &["-v"], &["sh", "-c", "test -L \"$DOCKER_CONFIG/d\""]).ok();
    assert!(done.stderr().contains(".docker/d of docker, which is too large to copy"), "{}", done.told());
}
