//! `sessile run` and the context: what is demanded before anything starts, what is set, and what `--dry-run` tells.

use testkit::{Call, Home};

use crate::isolation::run::kubeconfig;
use crate::{home, home_with, live, shown, start};

fn run(home: &Home, flags: &[&str], command: &[&str]) -> Call {
    home.call(&["run"]).args(flags).args(&["--"]).args(command)
}

/// A command that leaves a trace, to show that it did not run.
const TRACE: &[&str] = &["touch", "it-ran"];

fn assert_nothing_began(home: &Home) {
    assert!(!home.path("it-ran").exists(), "the command ran");
    let sessions = home.call(&["session", "list", "--state", "all", "-ojson"]).ok().json();
    assert_eq!(sessions, serde_json::json!([]), "a session was left");
    let rooms = std::fs::read_dir(home.path(".local/state/sessile/rooms"));
    assert_eq!(rooms.into_iter().flatten().count(), 0, "a room was left");
}

mod guard {
    use super::*;

    #[test]
    fn explicit_guard_refuses_an_unnamed_context() {
        let home = home();
        home.write(".config/sessile/contexts/prod.toml", "guard = \"explicit\"\n");
        home.write(".config/sessile/config.toml", "context = \"prod\"\n");
        for flags in [&["-ojson"][..], &["-ojson", "--session", "s1"], &["-ojson", "--dry-run"]] {
            let error = run(&home, flags, TRACE).run().exit(125).json_error();
            assert_eq!(error["code"], "GUARD_EXPLICIT", "{error}");
            assert!(error["hint"].as_str().unwrap().contains("--context prod"), "{error}");
        }
        assert_nothing_began(&home);
        run(&home, &["--context", "prod"], &["true"]).ok();
    }

    #[test]
    fn approval_guard_refuses_with_the_approve_command() {
        let home = home();
        home.write(".config/sessile/contexts/prod.toml", "guard = \"approval\"\n");
        for flags in [&["--session", "s1"][..], &[]] {
            let call = run(&home, flags, TRACE).env("SESSILE_CONTEXT", "prod").env("SESSILE_OUTPUT", "json");
            let error = call.run().exit(125).json_error();
            assert_eq!(error["code"], "GUARD_APPROVAL");
            assert_eq!(error["exit_code"], 125);
            assert_eq!(error["fix_command"], "sessile context approve prod --for 30m");
        }
        assert_nothing_began(&home);
        let (text, status) = home.shell().run("sessile context approve prod --for 30m --yes");
        assert_eq!(status, 0, "{text}");
        run(&home, &["--context", "prod", "--session", "s1"], TRACE).ok();
        assert!(home.path("it-ran").exists());
    }
}

mod expectation {
    use super::*;

    #[test]
    fn another_context_than_expected_fails_before_anything_starts() {
        let home = home_with(&["staging", "prod"]);
        for flags in [
            &["--expect", "staging", "--context", "prod", "-ojson"][..],
            &["--expect", "staging", "-ojson"],
            &["--expect", "staging", "-ojson", "--session", "s1"],
            &["--expect", "staging", "-ojson", "--session", "s1", "--context", "prod"],
        ] {
            let done = run(&home, flags, TRACE).run().exit(125);
            assert_eq!(done.code(), "CONTEXT_UNEXPECTED", "{flags:?}");
        }
        assert_nothing_began(&home);
        run(&home, &["--expect", "staging", "--context", "staging"], &["true"]).ok();
    }

    #[test]
    fn a_session_started_in_one_context_refuses_another() {
        let home = home_with(&["staging", "prod"]);
        run(&home, &["--session", "s1", "--context", "staging"], &["true"]).ok();
        run(&home, &["--session", "s1", "--context", "staging"], &["true"]).ok();
        let done = run(&home, &["--session", "s1", "--context", "prod", "-ojson"], TRACE).run().exit(125);
        assert_eq!(done.code(), "CONTEXT_FIXED");
        run(&home, &["--session", "none"], &["true"]).ok();
        let done = run(&home, &["--session", "none", "--context", "prod", "-ojson"], TRACE).run().exit(125);
        assert_eq!(done.code(), "CONTEXT_FIXED", "no context is a choice too");
        assert!(!home.path("it-ran").exists());
        assert_eq!(shown(&home, "s1")["context"], "staging");
    }

    /// Or the next call, with what was wrong set right, would find a session that was prepared by the first.
    #[test]
    fn a_run_that_cannot_be_prepared_leaves_no_session_of_that_name() {
        let home = home();
        home.write(".config/sessile/contexts/c.toml", "[tools.kubectl]\ncontext = \"staging\"\n");
        let flags = ["--session", "s1", "--context", "c"];
        run(&home, &flags, TRACE).run().exit(125);
        assert_nothing_began(&home);
        home.write(".kube/config", kubeconfig(&["dev", "staging"]));
        let told = run(&home, &flags, &["kubectl", "config", "current-context"]).ok().stdout();
        assert_eq!(told.trim(), "staging");
    }

    #[test]
    fn existing_session_stays() {
        let home = home();
        start(&home, &["--name", "s1"]);
        run(&home, &["--session", "s1", "--env", "wrong"], TRACE).run().exit(125);
        assert_eq!(live(&home).len(), 1);
    }
}

mod variables {
    use super::*;

    #[test]
    fn flags_override_directory_settings_and_the_context() {
        let home = home();
        home.write(".config/sessile/contexts/c.toml", "[env]\nA = \"context\"\nB = \"context\"\n");
        home.write(".config/sessile/config.toml", "env.A = \"user\"\nenv.U = \"user\"\n");
        let value = |flags: &[&str], name: &str| {
            run(&home, flags, &["printenv", name]).ok().stdout().trim_end().to_owned()
        };
        assert_eq!(value(&["--context", "c"], "A"), "context");
        assert_eq!(value(&["--context", "c"], "U"), "user");
        assert_eq!(value(&[], "A"), "user");
        assert_eq!(value(&["--context", "c", "--set", "env.A=set"], "A"), "set");
        assert_eq!(value(&["--context", "c", "--env", "A=flag", "--set", "env.A=set"], "A"), "flag");
    }

    #[test]
    fn isolating_variables_cannot_be_overridden() {
        let home = home();
        home.write(".config/sessile/contexts/c.toml", "[tools.aws]\nprofile = \"default\"\n");
        for (flags, name) in [
            (&["--env", "KUBECONFIG=x"][..], "KUBECONFIG"),
            (&["--env", "AWS_PROFILE=x", "--context", "c"], "AWS_PROFILE"),
            (&["--env", "HOME=/", "--isolate", "home"], "HOME"),
            (&["--env", "npm_config_userconfig=x"], "npm_config_userconfig"),
            (&["--env", "Npm_Config_UserConfig=x", "--session", "s1"], "Npm_Config_UserConfig"),
            (&["--env", "GIT_CONFIG=x"], "GIT_CONFIG"),
            (&["--env", "TMUX=x"], "TMUX"),
        ] {
            let done = run(&home, flags, TRACE).args(&[]).run().exit(125);
            assert!(done.stderr().contains(&format!("keeps {name} where it is")), "{}", done.told());
        }
        assert!(!home.path("it-ran").exists());
        assert_eq!(run(&home, &["--env", "HOME=/x"], &["printenv", "HOME"]).ok().stdout(), "/x\n");
        // Settings of the session do not count as flags of this call.
        run(&home, &["--session", "s1"], &["true"]).ok();
        home.call(&["config", "set", "--session", "s1", "env.npm_config_userconfig", "x"]).ok();
        let done = run(&home, &["--session", "s1"], &["sh", "-c", "env"]).ok();
        assert!(!done.stdout().contains("npm_config_userconfig="), "{}", done.told());
        assert!(done.stderr().contains("npm_config_userconfig would lead npm"), "{}", done.told());
    }

    /// Variables that a binding clears would override it, so a flag for one needs `--keep-env` too.
    #[test]
    fn variable_that_overrides_a_binding_is_refused_as_a_flag() {
        let home = home();
        home.write(
            ".config/sessile/contexts/c.toml",
            "[tools.npm]\nregistry = \"https://r.example\"\n[tools.docker]\ncontext = \"default\"\n",
        );
        for name in ["DOCKER_HOST", "npm_config_registry", "Npm_Config_Registry"] {
            let pair = format!("{name}=tcp://x.example");
            let done = run(&home, &["--context", "c", "--env", &pair], TRACE).run().exit(125);
            assert!(done.stderr().contains(&format!("--env {name}: {name} overrides")), "{}", done.told());
            assert!(done.stderr().contains(&format!("--keep-env {name}")), "{}", done.told());
            let flags = ["--context", "c", "--env", &pair, "--keep-env", name];
            assert_eq!(run(&home, &flags, &["printenv", name]).ok().stdout(), "tcp://x.example\n");
            assert_eq!(run(&home, &["--env", &pair], &["printenv", name]).ok().stdout(), "tcp://x.example\n");
        }
        assert!(!home.path("it-ran").exists());
    }

    /// Whatever a variable gets its value from, it does not lead out of the session.
    #[test]
    fn credential_for_a_variable_that_leads_out_is_refused() {
        let home = home();
        home.call(&["auth", "set", "path", "--secret-stdin"]).stdin("/elsewhere/npmrc").run();
        let flags = ["--env-credential", "npm_config_userconfig=path"];
        let done = run(&home, &flags, TRACE).run().exit(125);
        assert!(done.stderr().contains("keeps npm_config_userconfig where it is"), "{}", done.told());
        assert!(!home.path("it-ran").exists());
        let context = "[env]\nnpm_config_userconfig = { credential = \"path\" }\n";
        home.write(".config/sessile/contexts/c.toml", context);
        let done = run(&home, &["--context", "c"], &["sh", "-c", "env"]).ok();
        assert!(!done.stdout().contains("npm_config_userconfig="), "{}", done.told());
        assert!(done.stderr().contains("npm_config_userconfig would lead npm"), "{}", done.told());
    }

    #[test]
    fn exported_variables_do_not_lead_out() {
        let home = home();
        let call = run(&home, &["--session", "s1"], &["printenv", "KUBECONFIG", "DOCKER_CONFIG"]);
        let told = call.env("KUBECONFIG", "/elsewhere").env("DOCKER_CONFIG", "/elsewhere").ok().stdout();
        let room = crate::room(&home, "s1");
        assert!(told.lines().all(|line| line.starts_with(&*room.to_string_lossy())), "{told}");
    }

    #[test]
    fn cleared_environment_has_home_path_and_kept_variables() {
        let home = home();
        let told = |flags: &[&str]| {
            let call = run(&home, flags, &["env"]).env("SECRET", "1").env("KEEP_A", "2").env("LC_ALL", "C");
            call.ok().stdout()
        };
        let has = |told: &str, line: &str| told.lines().any(|found| found == line);
        let all = told(&[]);
        assert!(has(&all, "SECRET=1") && has(&all, "KEEP_A=2"), "{all}");
        let few = told(&["--clear-env"]);
        assert!(!few.contains("SECRET=") && !few.contains("KEEP_A="), "{few}");
        assert!(few.contains("PATH=") && few.contains("KUBECONFIG=") && has(&few, "LC_ALL=C"), "{few}");
        assert!(has(&few, &format!("HOME={}", home.dir().display())), "{few}");
        assert!(has(&told(&["--clear-env", "--keep-env", "KEEP_*"]), "KEEP_A=2"));
        assert!(has(&told(&["--clear-env", "--set", "passthrough=SECRET"]), "SECRET=1"));
    }

    #[test]
    fn only_the_tools_that_are_named_are_isolated() {
        let home = home();
        let told = run(&home, &["--tool", "git"], &["env"]).ok().stdout();
        assert!(told.contains("GIT_CONFIG_GLOBAL=") && !told.contains("KUBECONFIG="), "{told}");
        let told = run(&home, &["--tool", "helm"], &["env"]).ok().stdout();
        assert!(told.contains("HELM_") && !told.contains("GIT_CONFIG_GLOBAL="), "{told}");
        let told = run(&home, &["--set", "tools.except=git"], &["env"]).ok().stdout();
        assert!(!told.contains("GIT_CONFIG_GLOBAL=") && told.contains("KUBECONFIG="), "{told}");
        let told = run(&home, &["--session", "s1", "--tool", "git"], &["env"]).ok().stdout();
        assert!(!told.contains("KUBECONFIG="), "{told}");
        let told = run(&home, &["--session", "s1"], &["env"]).ok().stdout();
        assert!(told.contains("KUBECONFIG=") && told.contains("GIT_CONFIG_GLOBAL="), "{told}");
    }

    #[test]
    fn a_tool_that_the_context_binds_cannot_be_left_out() {
        let home = home();
        home.write(".kube/config", kubeconfig(&["dev"]));
        home.write(".config/sessile/contexts/c.toml", "[tools.kubectl]\ncontext = \"dev\"\n");
        let flags = ["--context", "c", "--set", "tools.except=kubectl"];
        let done = run(&home, &flags, TRACE).run().exit(125);
        assert!(done.stderr().contains("binds kubectl"), "{}", done.told());
        assert_nothing_began(&home);
        let flags = ["--context", "c", "--tool", "git"];
        let told = run(&home, &flags, &["env"]).ok().stdout();
        assert!(told.contains("GIT_CONFIG_GLOBAL=") && told.contains("KUBECONFIG="), "{told}");
    }
}

mod dry_run {
    use super::*;

    #[test]
    fn dry_run_changes_nothing_and_runs_nothing() {
        let home = home_with(&["c"]);
        home.write(".kube/config", kubeconfig(&["dev"]));
        let before = home.tree_of_people();
        run(&home, &["--dry-run"], TRACE).ok();
        run(&home, &["--dry-run", "--session", "s1", "--context", "c"], TRACE).ok();
        assert_eq!(home.tree_of_people(), before);
        assert_nothing_began(&home);
        start(&home, &["--name", "s2"]);
        let room = crate::room(&home, "s2");
        let count = || std::fs::read_dir(&room).unwrap().count();
        let before = count();
        run(&home, &["--dry-run", "--session", "s2"], TRACE).ok();
        assert_eq!(count(), before, "the session's room is as it was");
    }

    #[test]
    fn dry_run_names_the_origin_of_every_variable() {
        let home = home();
        home.write(".kube/config", kubeconfig(&["dev"]));
        home.write(
            ".config/sessile/contexts/c.toml",
            "[env]\nA = \"1\"\nA_TOKEN = \"secret-value\"\n[tools.aws]\nprofile = \"default\"\n",
        );
        home.write(".config/sessile/config.toml", "env.U = \"user\"\n");
        let flags = ["--dry-run", "--context", "c", "--env", "F=flag", "-ojson"];
        let told = run(&home, &flags, TRACE).env("AWS_ACCESS_KEY_ID", "x").ok();
        assert!(!told.stdout().contains("secret-value"), "{}", told.stdout());
        let json = told.json();
        let variable = |name: &str| {
            let all = json["variables"].as_array().unwrap();
            all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name}: {json}")).clone()
        };
        assert_eq!(variable("A")["origin"], "context c (env)");
        assert_eq!(variable("F")["origin"], "--env");
        assert!(variable("U")["origin"].as_str().unwrap().ends_with("config.toml:1"));
        assert_eq!(variable("KUBECONFIG")["value"], "ROOM/kube/config");
        assert_eq!(variable("KUBECONFIG")["origin"], "tool kubectl");
        assert_eq!(variable("AWS_PROFILE")["origin"], "context c (tools.aws)");
        assert_eq!(variable("AWS_ACCESS_KEY_ID")["value"], serde_json::Value::Null);
        assert_eq!(json["context"], "c");
        let copies = json["copies"].as_array().unwrap();
        assert!(copies.iter().any(|copy| copy["tool"] == "kubectl" && copy["to"] == "ROOM/kube/config"));
    }

    #[test]
    fn dry_run_begins_with_the_context_and_the_targets() {
        let home = home();
        home.write(".config/sessile/contexts/c.toml", "[tools.git]\nname = \"Stage\"\n");
        let text = |flags: &[&str]| run(&home, &[&["--dry-run", "-cc"], flags].concat(), TRACE).ok().stdout();
        let short = text(&[]);
        let lines: Vec<&str> = short.lines().take(3).collect();
        let expected = [
            "context   c (flag --context)",
            "session   a new one, deleted after the command",
            "targets   git name Stage",
        ];
        assert_eq!(lines, expected, "{short}");
        assert!(!short.contains("VARIABLE") && short.ends_with("; print them: --variables\n"), "{short}");
        for flags in [&["--variables"][..], &["-v"]] {
            let text = text(flags);
            assert!(text.starts_with(expected[0]) && text.contains("\nVARIABLE "), "{text}");
        }
        assert!(short.lines().chain(text(&["--variables"]).lines()).all(|line| line.chars().count() <= 80));
    }
}
