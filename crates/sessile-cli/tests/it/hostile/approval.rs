//! An approval covers one context as it was when a person approved it, up to the moment when something starts.

use std::process::{Child, Output, Stdio};

use serde_json::{Value, json};
use testkit::{AgentAuth, AgentOptions, Call, Home, Protocol, ScriptedAgent};

use crate::{eventually, home};

const GUARDED: &str = "guard = \"approval\"\n";
const FILE: &str = ".config/sessile/contexts/prod.toml";

/// Approves `prod` as a person does.
#[track_caller]
fn approve(call: impl Fn(&[&str]) -> Call, time: &str) {
    let mut tty = call(&["context", "approve", "prod", "--for", time]).tty();
    tty.expect("[y/N]");
    tty.type_line("y");
    let (text, status) = tty.finish();
    assert_eq!(status, 0, "{text}");
}

fn approved(context: &str) -> Home {
    let home = home();
    home.write(FILE, context);
    approve(|args| home.call(args), "30m");
    home
}

/// Whether the guard of `prod` lets a call through.
#[track_caller]
fn is_open(call: Call) -> bool {
    let done = call.args(&["context", "current", "--check", "--context", "prod"]).run();
    match done.status() {
        Some(0) => true,
        Some(7) => false,
        _ => panic!("{}", done.told()),
    }
}

#[test]
fn emptied_file_of_an_approved_context_stays_guarded() {
    let home = approved(GUARDED);
    home.call(&["context", "approve", "prod", "--revoke"]).ok();
    home.write(FILE, "");
    assert!(!is_open(home.call(&[])));
    let done = home.call(&["run", "--context", "prod", "-ojson", "--", "true"]).run().exit(125);
    assert_eq!(done.code(), "GUARD_APPROVAL", "{}", done.told());
    // Whatever a person writes there counts.
    home.write(FILE, "description = \"free\"\n");
    assert!(is_open(home.call(&[])));
}

#[test]
fn emptied_file_of_a_guarded_context_stays_guarded() {
    for (guard, named, code) in
        [("explicit", false, "GUARD_EXPLICIT"), ("approval", true, "GUARD_APPROVAL"), ("none", false, "")]
    {
        let home = home();
        home.call(&["context", "create", "prod", "--guard", guard, "--description", "x"]).ok();
        home.call(&["config", "set", "context", "prod", "--global"]).ok();
        let flags: &[&str] = if named { &["--context", "prod"] } else { &[] };
        let run = || home.call(&["run", "-ojson"]).args(flags).args(&["--", "true"]).run();
        for text in ["", "\n \n"] {
            home.write(FILE, text);
            match code {
                "" => drop(run().exit(0)),
                code => assert_eq!(run().exit(125).code(), code, "{guard}"),
            }
        }
        home.write(FILE, "description = \"free\"\n");
        run().exit(0);
    }
    // A context that was deleted is not known any more.
    let home = home();
    home.call(&["context", "create", "prod", "--guard", "explicit"]).ok();
    home.call(&["context", "delete", "prod", "--yes"]).ok();
    home.write(FILE, "");
    home.write(".config/sessile/config.toml", "context = \"prod\"\n");
    home.call(&["run", "--", "true"]).ok();
}

#[test]
fn file_that_is_rewritten_in_place_does_not_count_as_empty() {
    use std::io::Write;
    let home = home();
    let path = home.write(FILE, GUARDED);
    let mut judged = 0;
    while judged < 20 {
        let begun = std::time::Instant::now();
        let mut file = std::fs::File::create(&path).unwrap();
        let mut call = home.call(&["run", "--context", "prod", "--", "touch", "it-ran"]).command();
        let mut child =
            call.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(60));
        file.write_all(GUARDED.as_bytes()).unwrap();
        // A file that stays empty for longer counts as empty: on a busy machine this one may.
        let is_judged = begun.elapsed() < std::time::Duration::from_millis(95);
        let status = child.wait().unwrap().code();
        if is_judged {
            assert_eq!(status, Some(125));
            assert!(!home.path("it-ran").exists(), "the command ran");
            judged += 1;
        } else {
            let _ = std::fs::remove_file(home.path("it-ran"));
        }
    }
}

mod identity {
    use super::*;

    /// Two trusted projects with a guarded context of the same name.
    fn projects() -> Home {
        let home = home();
        for project in ["a", "b"] {
            home.write(format!("{project}/.sessile/contexts/prod.toml"), GUARDED);
            home.call(&["trust", "--yes"]).cwd(project).ok();
        }
        home
    }

    #[test]
    fn approval_of_one_project_does_not_open_another_project() {
        let home = projects();
        approve(|args| home.call(args).cwd("a"), "30m");
        assert!(is_open(home.call(&[]).cwd("a")));
        assert!(!is_open(home.call(&[]).cwd("b")));
        let error = home.call(&["run", "--context", "prod", "-ojson", "--", "true"]).cwd("b").run().exit(125);
        assert_eq!(error.code(), "GUARD_APPROVAL");
        let status = home.call(&["status", "--context", "prod", "-ojson"]).cwd("b").ok().json();
        assert_eq!(status["guard"], json!({ "guard": "approval", "satisfied": false }));
        // Nor does it help to weaken the other one's guard.
        let edit = ["context", "edit", "prod", "--guard", "none", "-ojson"];
        assert_eq!(home.call(&edit).cwd("b").run().exit(7).code(), "GUARD_APPROVAL");
    }

    #[test]
    fn approval_of_a_project_does_not_open_the_users_own_context() {
        let home = projects();
        approve(|args| home.call(args).cwd("a"), "30m");
        home.write(FILE, GUARDED);
        assert!(!is_open(home.call(&[])));
        assert!(!is_open(home.call(&[]).cwd("a")), "the user's own wins");
    }

    #[test]
    fn approval_ends_when_a_link_takes_the_place_of_the_file() {
        let home = projects();
        approve(|args| home.call(args).cwd("a"), "30m");
        let (a, b) = ("a/.sessile/contexts/prod.toml", "b/.sessile/contexts/prod.toml");
        std::fs::remove_file(home.path(b)).unwrap();
        std::os::unix::fs::symlink(home.path(a), home.path(b)).unwrap();
        let _ = home.call(&["trust", "--yes"]).cwd("b").run();
        let done = home.call(&["context", "current", "--check", "--context", "prod"]).cwd("b").run();
        assert_ne!(done.status(), Some(0), "{}", done.told());
    }

    #[test]
    fn approval_ends_when_bindings_change() {
        for change in [
            "[tools.kubectl]\ncontext = \"other\"\n",
            "[env]\nTARGET = \"other\"\n",
            "[env]\nTARGET = { credential = \"other\" }\n",
            "[settings]\nsession.idle = \"1h\"\n",
            "[agents.\"http://localhost:9\"]\ncredential = \"other\"\n",
        ] {
            let home = approved(GUARDED);
            home.write(FILE, format!("{GUARDED}{change}"));
            assert!(!is_open(home.call(&[])), "{change}");
            assert_eq!(home.call(&["context", "approve", "--list", "-ojson"]).ok().json(), json!([]));
            let all = home.call(&["context", "approve", "--list", "--all", "-ojson"]).ok().json();
            assert_eq!(all.as_array().unwrap().len(), 1, "the approval stays on record");
            let status = home.call(&["status", "--context", "prod"]).ok().stdout();
            assert!(status.contains("approval (shut)"), "{status}");
        }
    }

    #[test]
    fn approval_ends_when_a_binding_is_edited_by_a_command() {
        let home = approved("guard = \"approval\"\n[env]\nTARGET = \"a\"\n");
        home.call(&["context", "edit", "prod", "--env", "TARGET=b"]).ok();
        assert!(!is_open(home.call(&[])));
    }

    #[test]
    fn context_that_changes_during_the_prompt_is_not_approved() {
        let home = home();
        home.write(FILE, GUARDED);
        let mut tty = home.tty(&["context", "approve", "prod", "-ojson"]);
        tty.expect("[y/N]");
        home.write(FILE, format!("{GUARDED}[env]\nTARGET = \"other\"\n"));
        tty.type_line("y");
        let (text, status) = tty.finish();
        assert_eq!(status, 6, "{text}");
        assert!(text.contains("CONCURRENT_CHANGE"), "{text}");
        assert!(!is_open(home.call(&[])));
    }

    #[test]
    fn approval_survives_what_binds_nothing() {
        let context = "guard = \"approval\"\n[env]\nA = \"1\"\nB = \"2\"\n";
        let home = approved(context);
        home.call(&["context", "edit", "prod", "--description", "the real one"]).ok();
        assert!(is_open(home.call(&[])));
        home.write(FILE, "# a comment\nguard = \"approval\"\nenv = { B = \"2\", A = \"1\" }\n");
        assert!(is_open(home.call(&[])));
    }

    #[test]
    fn approval_of_a_config_file_is_bound_to_its_content() {
        let home = home();
        let file = |target: &str| {
            json!({ "contexts": {
                "prod": { "guard": "approval", "env": { "TARGET": target } },
                "other": { "env": { "TARGET": "c" } },
            } })
            .to_string()
        };
        home.write("one.json", file("a"));
        let call = |config: &'static str| home.call(&["--config", config]);
        approve(|args| call("one.json").args(args), "30m");
        assert!(is_open(call("one.json")));
        // The state moves with a copy; the approval does not.
        home.write("two.json", file("a"));
        let copied = std::process::Command::new("cp")
            .args(["-a", "one.json.state", "two.json.state"])
            .current_dir(home.dir())
            .status();
        assert!(copied.unwrap().success());
        assert!(!is_open(call("two.json")));
        home.write("one.json", file("a").replace("\"c\"", "\"d\""));
        assert!(is_open(call("one.json")), "another context of the file changed");
        home.write("one.json", file("b"));
        assert!(!is_open(call("one.json")));
    }

    #[test]
    fn listed_approval_names_the_file_of_its_context() {
        let home = projects();
        approve(|args| home.call(args).cwd("a"), "30m");
        let list = home.call(&["context", "approve", "--list", "-ojson"]).ok().json();
        let path = home.path("a/.sessile/contexts/prod.toml");
        assert_eq!(list[0]["path"].as_str(), path.to_str(), "{list}");
    }
}

mod waiting {
    use super::*;

    /// A command that waits for something before it starts another.
    struct WaitingCommand {
        home: Home,
        child: Child,
    }

    const TRACE: [&str; 3] = ["--", "touch", "it-ran"];

    fn spawn(home: Home, call: impl FnOnce(&Home) -> Call) -> WaitingCommand {
        let mut command = call(&home).command();
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        WaitingCommand { child: child.unwrap(), home }
    }

    fn revoke(home: &Home) {
        home.call(&["context", "approve", "prod", "--revoke"]).ok();
    }

    impl WaitingCommand {
        #[track_caller]
        fn ends_with(self, status: i32, code: &str) -> Home {
            let Output { status: found, stdout, stderr } = self.child.wait_with_output().unwrap();
            let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
            assert_eq!(found.code(), Some(status), "{stdout}{stderr}");
            let last: Value = serde_json::from_str(stderr.lines().last().unwrap_or("{}")).unwrap_or_default();
            assert_eq!(last["error"]["code"].as_str().unwrap_or_default(), code, "{stdout}{stderr}");
            assert!(!self.home.path("it-ran").exists(), "the command ran");
            self.home
        }
    }

    mod for_a_lock {
        use super::*;

        fn acquire(home: &Home) -> String {
            let done = home.call(&["lock", "acquire", "l", "--ttl", "10m", "--quiet"]).ok();
            done.stdout().trim().to_owned()
        }

        fn wait_for_waiter(home: &Home) {
            eventually("a waiter", || {
                let locks = home.call(&["lock", "list", "-ojson"]).ok().json();
                locks[0]["waiting"] == 1
            });
        }

        fn release(home: &Home, token: &str) {
            home.call(&["lock", "release", "l", "--token", token]).ok();
        }

        const RUN: [&str; 8] = ["run", "--context", "prod", "--lock", "l", "--lock-timeout", "60s", "-ojson"];

        #[test]
        fn revoked_approval_starts_nothing() {
            for session in [&[][..], &["--session", "s1"], &["--timeout", "1m"]] {
                let home = approved(GUARDED);
                let token = acquire(&home);
                let waiting = spawn(home, |home| home.call(&RUN).args(session).args(&TRACE));
                wait_for_waiter(&waiting.home);
                revoke(&waiting.home);
                release(&waiting.home, &token);
                let home = waiting.ends_with(125, "GUARD_APPROVAL");
                assert_eq!(home.call(&["lock", "list", "-ojson"]).ok().json(), json!([]), "the lock is free");
                assert_eq!(home.call(&["session", "list", "-ojson"]).ok().json(), json!([]));
            }
        }

        #[test]
        fn stricter_context_of_the_same_name_requires_approval() {
            let theirs = "p/.sessile/contexts/prod.toml";
            // The one that was selected stays as it is; the other one comes during the wait.
            for (selected, other) in [(FILE, theirs), (theirs, FILE)] {
                for other_text in [GUARDED, "guard = "] {
                    let home = home();
                    home.write(selected, "description = \"free\"\n");
                    std::fs::create_dir_all(home.path("p/.sessile")).unwrap();
                    home.call(&["trust", "--yes"]).cwd("p").run();
                    let token = acquire(&home);
                    let waiting = spawn(home, |home| home.call(&RUN).args(&TRACE).cwd("p"));
                    wait_for_waiter(&waiting.home);
                    waiting.home.write(other, other_text);
                    release(&waiting.home, &token);
                    waiting.ends_with(125, "GUARD_APPROVAL");
                }
            }
        }

        #[test]
        fn lapsed_approval_starts_nothing() {
            let home = home();
            home.write(FILE, GUARDED);
            let token = acquire(&home);
            approve(|args| home.call(args), "5s");
            let waiting = spawn(home, |home| home.call(&RUN).args(&TRACE));
            wait_for_waiter(&waiting.home);
            eventually("the end of the approval", || !is_open(waiting.home.call(&[])));
            release(&waiting.home, &token);
            waiting.ends_with(125, "GUARD_APPROVAL");
        }

        #[test]
        fn approval_of_earlier_bindings_starts_nothing() {
            let home = approved("guard = \"approval\"\n[env]\nTARGET = \"a\"\n");
            let token = acquire(&home);
            let waiting = spawn(home, |home| home.call(&RUN).args(&TRACE));
            wait_for_waiter(&waiting.home);
            waiting.home.write(FILE, "guard = \"approval\"\n[env]\nTARGET = \"b\"\n");
            release(&waiting.home, &token);
            waiting.ends_with(125, "GUARD_APPROVAL");
        }

        #[test]
        fn guard_added_during_the_wait_is_checked() {
            let home = home();
            home.write(FILE, "");
            let token = acquire(&home);
            let waiting = spawn(home, |home| home.call(&RUN).args(&TRACE));
            wait_for_waiter(&waiting.home);
            waiting.home.write(FILE, GUARDED);
            release(&waiting.home, &token);
            waiting.ends_with(125, "GUARD_APPROVAL");
        }

        #[test]
        fn approval_that_holds_starts_the_command() {
            let home = approved(GUARDED);
            let token = acquire(&home);
            let waiting = spawn(home, |home| home.call(&RUN).args(&TRACE));
            wait_for_waiter(&waiting.home);
            release(&waiting.home, &token);
            let output = waiting.child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert!(waiting.home.path("it-ran").exists());
        }

        #[test]
        fn lock_run_in_a_session_asks_its_context_before_and_after() {
            let home = approved(GUARDED);
            home.call(&["session", "start", "--name", "s1", "--context", "prod"]).ok();
            let lock_run = |home: &Home| {
                home.call(&["lock", "run", "l", "--session", "s1", "--lock-timeout", "60s", "-ojson"])
                    .args(&TRACE)
            };
            let token = acquire(&home);
            let waiting = spawn(home, lock_run);
            wait_for_waiter(&waiting.home);
            revoke(&waiting.home);
            release(&waiting.home, &token);
            let home = waiting.ends_with(125, "GUARD_APPROVAL");
            assert_eq!(home.call(&["lock", "list", "-ojson"]).ok().json(), json!([]), "the lock is free");
            // And without an approval it does not even begin to wait.
            acquire(&home);
            assert_eq!(lock_run(&home).run().exit(125).code(), "GUARD_APPROVAL");
        }
    }

    mod for_a_credential {
        use super::*;

        /// A home with a credential whose program has begun when `asked` exists and answers when `go` does.
        fn with_slow_credential(site: &str) -> Home {
            let home = home();
            let script = format!(
                "#!/bin/sh\ntouch {0}/asked\nwhile [ ! -e {0}/go ]; do sleep 0.02; done\necho s3cret-token\n",
                home.dir().display()
            );
            let program = home.write("slow", script);
            std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
            let command = program.to_str().unwrap();
            home.call(&["auth", "set", "bot", "--command", command, "--site", site]).ok();
            home
        }

        /// The call waits for the credential; meanwhile the approval is revoked.
        #[track_caller]
        fn revoked_meanwhile(home: Home, call: impl FnOnce(&Home) -> Call, status: i32) -> Home {
            approve(|args| home.call(args), "30m");
            let waiting = spawn(home, call);
            eventually("the question for the credential", || waiting.home.path("asked").exists());
            revoke(&waiting.home);
            waiting.home.write("go", "");
            waiting.ends_with(status, "GUARD_APPROVAL")
        }

        const BOUND: &str = "guard = \"approval\"\n[env]\nTOKEN = { credential = \"bot\" }\n";

        #[test]
        fn revoked_approval_runs_nothing() {
            for flags in [&["--session", "s1"][..], &[], &["--kill-stragglers"]] {
                let home = with_slow_credential("https://example.com");
                home.write(FILE, BOUND);
                let run = ["run", "--context", "prod", "-ojson"];
                let home = revoked_meanwhile(home, |home| home.call(&run).args(flags).args(&TRACE), 125);
                assert_eq!(home.call(&["session", "list", "-ojson"]).ok().json(), json!([]));
            }
        }

        #[test]
        fn revoked_approval_runs_nothing_with_a_credential_of_the_call() {
            for flag in [&["--env-credential", "TOKEN=bot"], &["--credential", "bot"]] {
                let home = with_slow_credential("https://example.com");
                home.write(FILE, GUARDED);
                let run = ["run", "--context", "prod", "-ojson"];
                revoked_meanwhile(home, |home| home.call(&run).args(flag).args(&TRACE), 125);
            }
        }

        #[test]
        fn revoked_approval_opens_no_shell() {
            for flags in [&["--session", "s1"][..], &[]] {
                let home = with_slow_credential("https://example.com");
                home.write(FILE, BOUND);
                let shell = home.write("fake-shell", "#!/bin/sh\ntouch it-ran\n");
                std::fs::set_permissions(&shell, std::os::unix::fs::PermissionsExt::from_mode(0o755))
                    .unwrap();
                let shell = ["shell", "--context", "prod", "-ojson", "--shell", shell.to_str().unwrap()];
                revoked_meanwhile(home, |home| home.call(&shell).args(flags), 125);
            }
        }

        fn agent() -> ScriptedAgent {
            let options = AgentOptions::of(Protocol::V1).guarded(AgentAuth::Bearer, "s3cret-token", "alice");
            ScriptedAgent::start(options)
        }

        #[test]
        fn revoked_approval_sends_nothing() {
            for command in ["send", "stream"] {
                let agent = agent();
                let home = with_slow_credential(agent.url());
                home.write(FILE, format!("{GUARDED}[agents.\"{}\"]\ncredential = \"bot\"\n", agent.url()));
                let send = ["message", command, agent.url(), "echo hi", "--context", "prod", "-ojson"];
                revoked_meanwhile(home, |home| home.call(&send), 7);
                assert!(!agent.heard("s3cret-token") && !agent.heard("echo hi"));
            }
        }

        #[test]
        fn server_gets_no_credential_of_a_context_without_its_approval() {
            let server = agent();
            let home = with_slow_credential(server.url());
            home.write("go", "");
            let bound = [
                format!("{GUARDED}[agents.\"{}\"]\ncredential = \"bot\"\n", server.url()),
                format!("{GUARDED}[settings]\ncredential = \"bot\"\n"),
            ];
            for context in bound {
                home.write(FILE, context);
                let list = ["session", "list", "--server", server.url(), "--context", "prod", "-ojson"];
                assert_eq!(home.call(&list).run().exit(7).code(), "GUARD_APPROVAL");
            }
            assert!(!server.heard("s3cret-token"));
        }

        #[test]
        fn revoked_approval_checks_nothing() {
            let agent = agent();
            let home = with_slow_credential(agent.url());
            home.write(FILE, format!("{GUARDED}[agents.\"{}\"]\ncredential = \"bot\"\n", agent.url()));
            let check = ["auth", "check", "--url", agent.url(), "--context", "prod", "-ojson"];
            revoked_meanwhile(home, |home| home.call(&check), 7);
            assert!(!agent.heard("s3cret-token"));
        }
    }
}
