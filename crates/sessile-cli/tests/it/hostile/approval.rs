//! An approval covers one context as it was when a person approved it.

use serde_json::json;
use testkit::{Call, Home};

use crate::home;

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
            assert_eq!(all.as_array().unwrap().len(), 1, "it stays on record");
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
    fn approval_survives_what_binds_nothing() {
        let context = "guard = \"approval\"\n[env]\nA = \"1\"\nB = \"2\"\n";
        let home = approved(context);
        home.call(&["context", "edit", "prod", "--description", "the real one"]).ok();
        assert!(is_open(home.call(&[])));
        home.write(FILE, "# a comment\nguard = \"approval\"\nenv = { B = \"2\", A = \"1\" }\n");
        assert!(is_open(home.call(&[])));
    }

    #[test]
    fn approval_of_a_config_file_context_is_bound_to_its_file_and_bindings() {
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
            .args(["-r", "one.json.state", "two.json.state"])
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
