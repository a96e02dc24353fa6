//! Protected targets and approvals: withdrawal when one ends, changes that lift a protection, requests for one.

use std::time::Duration;

use testkit::{Call, Home};

use super::protected::{CONTEXTS, approve, guarded, run};
use crate::{eventually, room};

const PRODUCTION: &[&str] = &["--session", "p", "--context", "production"];

fn copy(home: &Home) -> String {
    std::fs::read_to_string(room(home, "p").join("kube/config")).unwrap()
}

mod withdrawal {
    use super::*;

    #[test]
    fn revoked_approval_withdraws_the_target_while_a_command_runs() {
        let home = guarded();
        approve(&home, "production");
        let mut child =
            run(&home, PRODUCTION, &["sh", "-c", "touch started; exec sleep 60"]).command().spawn().unwrap();
        eventually("the command starts", || home.path("started").exists());
        assert!(copy(&home).contains("t-production"));
        home.call(&["context", "approve", "production", "--revoke"]).ok();
        assert!(!copy(&home).contains("production"), "{}", copy(&home));
        assert!(child.try_wait().unwrap().is_none(), "the command runs on");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(home.read(".kube/config").contains("t-production"), "the user's own file");
        run(&home, PRODUCTION, CONTEXTS).run().exit(125);
        approve(&home, "production");
        assert_eq!(run(&home, PRODUCTION, CONTEXTS).ok().stdout(), "production\n");
    }

    #[test]
    fn revocation_withdraws_cluster_and_user_without_their_context() {
        let home = guarded();
        approve(&home, "production");
        run(&home, PRODUCTION, &["kubectl", "config", "delete-context", "production"]).ok();
        assert!(copy(&home).contains("t-production"));
        home.call(&["context", "approve", "production", "--revoke"]).ok();
        assert!(!copy(&home).contains("production"), "{}", copy(&home));
    }

    #[test]
    fn lapsed_approval_withdraws_the_target_at_the_next_cleanup() {
        let ways: [fn(&Home); 3] = [
            |home| drop(home.call(&["session", "gc"]).ok()),
            |home| drop(home.call(&["context", "create", "unrelated"]).ok()),
            |home| drop(run(home, PRODUCTION, &["true"]).run().exit(125)),
        ];
        for way in ways {
            let home = guarded();
            let (text, status) = home.shell().run("sessile context approve production --for 5s --yes");
            assert_eq!(status, 0, "{text}");
            run(&home, PRODUCTION, &["true"]).ok();
            assert!(copy(&home).contains("t-production"));
            std::thread::sleep(Duration::from_millis(5100));
            way(&home);
            assert!(!copy(&home).contains("production"), "{}", copy(&home));
        }
    }
}

mod lapse {
    use super::*;

    fn approve_for(home: &Home, time: &str) {
        let command = format!("sessile context approve production --for {time} --yes");
        let (text, status) = home.shell().run(&command);
        assert_eq!(status, 0, "{text}");
    }

    /// A command that waits until its copy has lost the target, and says what is left.
    const WAIT: &str = "grep -q t-production \"$KUBECONFIG\" || exit 3
        for i in $(seq 400); do grep -q production \"$KUBECONFIG\" || break; sleep 0.1; done
        sleep 1; ! grep -q production \"$KUBECONFIG\"";

    #[test]
    fn lapsed_approval_withdraws_the_target_while_a_command_runs() {
        let ways: [&[&str]; 4] = [
            PRODUCTION,
            &["--context", "production"],
            &["--context", "production", "--timeout", "1m"],
            &["--context", "production", "--session", "q", "--isolate", "home"],
        ];
        for flags in ways {
            let home = guarded();
            approve_for(&home, "6s");
            let done = run(&home, flags, &["sh", "-c", WAIT]).run().exit(0);
            let said = "the approval of context \"production\" ended";
            assert!(done.stderr().contains(said), "{flags:?}: {}", done.told());
            assert!(home.read(".kube/config").contains("t-production"), "the user's own file");
        }
    }

    #[test]
    fn longer_approval_keeps_the_target() {
        let home = guarded();
        approve_for(&home, "6s");
        let script = "touch started; sleep 8; grep -q t-production \"$KUBECONFIG\"";
        let mut child = run(&home, PRODUCTION, &["sh", "-c", script]).command().spawn().unwrap();
        eventually("the command starts", || home.path("started").exists());
        approve_for(&home, "16s");
        assert!(child.wait().unwrap().success());
        // The watcher waits for the second one, and a later command shares it.
        run(&home, PRODUCTION, &["sh", "-c", WAIT]).ok();
    }

    /// Nothing runs in the room, and a shell that evaluated the variables makes no further call.
    #[test]
    fn lapsed_approval_withdraws_the_target_from_an_idle_room() {
        let ways: [fn(&Home); 2] = [
            |home| {
                home.call(&["session", "start", "--name", "p", "--context", "production"]).ok();
                home.call(&["env", "--session", "p"]).ok();
            },
            |home| drop(run(home, PRODUCTION, &["true"]).ok()),
        ];
        for way in ways {
            let home = guarded();
            approve_for(&home, "8s");
            way(&home);
            assert!(copy(&home).contains("t-production"));
            eventually("the withdrawal", || !copy(&home).contains("production"));
            assert!(home.read(".kube/config").contains("t-production"), "the user's own file");
        }
    }

    #[test]
    fn watcher_of_an_approval_ends_with_the_session() {
        let home = guarded();
        approve(&home, "production");
        run(&home, PRODUCTION, &["true"]).ok();
        let marker = room(&home, "p").display().to_string();
        let is_watching = || {
            std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
                let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                let line = String::from_utf8_lossy(&line).into_owned();
                line.contains(&marker) && line.contains("approval")
            })
        };
        assert!(is_watching());
        home.call(&["session", "stop", "p"]).ok();
        eventually("the watcher ends", || !is_watching());
    }
}

mod lifting {
    use super::*;

    #[test]
    fn binding_a_protected_target_without_a_guard_needs_an_approval() {
        let home = guarded();
        let alias = "- name: alias\n  context: {cluster: c-production, user: u-production}\n";
        home.write(".kube/config", home.read(".kube/config") + alias);
        home.write(".config/sessile/contexts/dev.toml", "guard = \"explicit\"\n");
        let changes: [&[&str]; 6] = [
            &["context", "create", "also", "--tool", "kubectl.context=production", "-ojson"],
            &[
                "context",
                "create",
                "also",
                "--guard",
                "explicit",
                "--tool",
                "kubectl.context=production",
                "-ojson",
            ],
            &[
                "context",
                "edit",
                "dev",
                "--guard",
                "explicit",
                "--tool",
                "kubectl.context=production",
                "-ojson",
            ],
            &["context", "create", "also", "--tool", "kubectl.context=alias", "-ojson"],
            &["context", "edit", "staging", "--tool", "kubectl.context=production", "-ojson"],
            &["context", "edit", "production", "--tool", "kubectl.context=dev", "-ojson"],
        ];
        for args in changes {
            let before = home.tree_of_people();
            let error = home.call(args).run().exit(7).json_error();
            assert_eq!(error["code"], "GUARD_APPROVAL", "{args:?}: {error}");
            assert_eq!(error["context"], "production", "{error}");
            assert_eq!(home.tree_of_people(), before, "{args:?}");
        }
        let bind = ["--tool", "kubectl.context=production"];
        let as_strict = ["context", "create", "as-strict", "--guard", "approval"];
        home.call(&[&as_strict[..], &bind].concat()).ok();
        approve(&home, "production");
        approve(&home, "as-strict");
        let weaker = ["context", "create", "weaker", "--guard", "explicit"];
        home.call(&[&weaker[..], &bind].concat()).ok();
        home.call(&[&["context", "edit", "staging"][..], &bind].concat()).ok();
    }

    #[test]
    fn alias_of_a_protected_target_opens_no_session_of_a_weaker_guard() {
        let home = guarded();
        let alias = "- name: alias\n  context: {cluster: c-production, user: u-production}\n";
        home.write(".kube/config", home.read(".kube/config") + alias);
        home.write(
            ".config/sessile/contexts/dev.toml",
            "guard = \"explicit\"\n[tools.kubectl]\ncontext = \"alias\"\n",
        );
        let done = run(&home, &["--context", "dev"], CONTEXTS).run().exit(125);
        assert!(
            done.stderr().contains("\"alias\" is protected by context \"production\""),
            "{}",
            done.told()
        );
    }

    #[test]
    fn session_lifts_no_protection_whatever_the_guard() {
        let home = guarded();
        let path = ".config/sessile/contexts/production.toml";
        home.write(path, home.read(path).replace("approval", "explicit"));
        let sessile = home.program().to_str().unwrap().to_owned();
        let create =
            [&sessile, "context", "create", "also", "--tool", "kubectl.context=production", "-ojson"];
        let done = run(&home, &["--context", "staging"], &create).run().exit(7);
        assert_eq!(done.code(), "IN_SESSION", "{}", done.told());
        home.call(&create[1..]).ok();

        let home = guarded();
        let create = [&create[..], &["--guard", "explicit"]].concat();
        let done = run(&home, &["--context", "staging"], &create).run().exit(7);
        assert_eq!(done.code(), "IN_SESSION", "{}", done.told());
    }
}

mod requests {
    use super::*;

    fn pending(home: &Home) -> Vec<serde_json::Value> {
        home.call(&["context", "approve", "--pending", "-ojson"]).ok().json().as_array().unwrap().clone()
    }

    fn refused(home: &Home, command: &[&str]) -> Call {
        run(home, PRODUCTION, command)
    }

    #[test]
    fn person_chooses_among_requests_on_a_terminal() {
        let home = guarded();
        let other = "guard = \"approval\"\n[tools.kubectl]\ncontext = \"dev\"\n";
        home.write(".config/sessile/contexts/other.toml", other);
        run(&home, &["--context", "other"], &["ls", "one"]).run().exit(125);
        refused(&home, &["kubectl", "get", "pods"]).run().exit(125);
        let choose = || home.call(&["context", "approve", "--pending"]).env("TERM", "xterm").tty();
        let mut terminal = choose();
        terminal.expect("esc cancels");
        terminal.interrupt();
        terminal.finish();
        assert_eq!(pending(&home).len(), 2);
        let mut terminal = choose();
        terminal.expect("esc cancels");
        terminal.type_line("kubectl");
        terminal.expect("Approve context \"production\"");
        terminal.type_line("y");
        assert_eq!(terminal.finish().1, 0);
        let left = pending(&home);
        assert_eq!(left.len(), 1, "{left:?}");
        assert_eq!(left[0]["context"], "other");
        refused(&home, CONTEXTS).ok();
        run(&home, &["--context", "other"], &["true"]).run().exit(125);
    }

    #[test]
    fn request_has_no_secret_of_its_command() {
        let home = guarded();
        let secrets = ["ghp_A1b2C3d4E5f6G7h8I9j0", "t0p-s3cret", "hunter2hunter2"];
        let command = ["deploy", secrets[0], "--token", secrets[1], &format!("--password={}", secrets[2])];
        refused(&home, &command).run().exit(125);
        let asked = serde_json::to_string(&pending(&home)).unwrap();
        assert!(asked.contains("deploy") && asked.contains("[hidden]"), "{asked}");
        let text = home.call(&["context", "approve", "--pending"]).ok().stdout();
        for secret in secrets {
            assert!(!asked.contains(secret) && !text.contains(secret), "{secret}: {asked}{text}");
        }
    }

    #[test]
    fn refused_command_leaves_a_request_that_a_person_grants() {
        let home = guarded();
        assert_eq!(home.call(&["context", "approve", "--pending"]).ok().stdout(), "no requests\n");
        for _ in 0..2 {
            refused(&home, &["kubectl", "--token", "hunter2", "apply"]).run().exit(125);
        }
        let all = pending(&home);
        assert_eq!(all.len(), 1, "the same command asks once: {all:?}");
        assert_eq!(all[0]["context"], "production");
        assert_eq!(all[0]["session"], "p");
        assert_eq!(all[0]["command"], serde_json::json!(["kubectl", "--token", "[hidden]", "apply"]));
        let id = all[0]["id"].as_u64().unwrap();
        let text = home.call(&["context", "approve", "--pending"]).ok().stdout();
        assert!(text.contains("kubectl --token") && !text.contains("hunter2"), "{text}");
        let grant = format!("{id}");
        home.call(&["context", "approve", "--pending", &grant]).run().exit(2);
        home.call(&["context", "approve", "--pending", "99"]).run().exit(5);
        let (text, status) =
            home.shell().run(&format!("sessile context approve --pending {id} --for 30m --yes"));
        assert_eq!(status, 0, "{text}");
        assert_eq!(run(&home, PRODUCTION, CONTEXTS).ok().stdout(), "production\n");
        assert!(pending(&home).is_empty(), "a granted request is settled");
    }

    #[test]
    fn requests_are_bounded() {
        let home = guarded();
        for number in 0..25 {
            refused(&home, &["true", &number.to_string()]).run().exit(125);
        }
        let all = pending(&home);
        assert_eq!(all.len(), 20);
        assert_eq!(all[0]["command"][1], "24", "the newest first");
    }

    #[test]
    fn mcp_run_leaves_one() {
        let home = guarded();
        let mut client = testkit::McpClient::start(home.call(&["mcp", "--allow-run"]).with_tools());
        client.capabilities(serde_json::json!({}));
        client.initialize("2025-11-25");
        let arguments = serde_json::json!({ "command": ["kubectl", "get", "pods"], "context": "production" });
        client.call("run", arguments);
        let all = pending(&home);
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(all[0]["command"][0], "kubectl");
    }
}
