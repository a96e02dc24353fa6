//! A guard, once set, is weakened only by a person who may: no command, undo or link is a way around it.

use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;
use testkit::{Call, Home};

use super::refused;
use crate::{home, start};

const PROD: &str = ".config/sessile/contexts/prod.toml";
const GUARDED: &str = "guard = \"approval\"\n[env]\nX = \"1\"\n";

fn guarded() -> Home {
    let home = home();
    home.write(PROD, GUARDED);
    home
}

/// Whether a command starts in context `prod`; if not, an approval is missing.
#[track_caller]
fn runs(home: &Home, dir: &str) -> bool {
    let done = home.call(&["run", "--context", "prod", "--", "true"]).cwd(dir).run();
    let needs_approval = done.stderr().contains("context approve prod");
    match done.status() {
        Some(0) => true,
        Some(125) if needs_approval => false,
        _ => panic!("{}", done.told()),
    }
}

/// The id of the last operation.
fn last(home: &Home) -> String {
    crate::history(home)[0]["id"].to_string()
}

#[track_caller]
fn on_terminal(home: &Home, args: &[&str], status: i32) -> String {
    let (text, found) = home.tty(args).finish();
    assert_eq!(found, status, "{args:?}: {text}");
    text
}

#[track_caller]
fn approve(home: &Home, flags: &[&str]) {
    let mut tty = home.call(&["context", "approve", "prod"]).args(flags).tty();
    tty.expect("[y/N]");
    tty.type_line("y");
    let (text, status) = tty.finish();
    assert_eq!(status, 0, "{text}");
}

#[track_caller]
fn set_pin(home: &Home, flags: &[&str]) {
    let mut tty = home.call(&["context", "approve", "--set-pin"]).args(flags).tty();
    for prompt in ["New PIN: ", "Again: "] {
        tty.expect(prompt);
        tty.type_line("4711");
    }
    let (text, status) = tty.finish();
    assert_eq!(status, 0, "{text}");
}

/// A call whose editor runs this script; `$1` is the file.
fn edited_by(home: &Home, args: &[&str], script: &str) -> Call {
    let path = home.write("editor", format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    home.call(args).env("EDITOR", path)
}

mod without_approval {
    use super::*;

    #[test]
    fn undo_of_a_guard_is_refused() {
        let home = home();
        home.write(PROD, "[env]\nX = \"1\"\n");
        home.call(&["context", "edit", "prod", "--guard", "approval"]).ok();
        let id = last(&home);
        let error = refused(&home, &["undo", &id], "GUARD_APPROVAL");
        assert_eq!(error["context"], "prod");
        assert!(!runs(&home, ""));
        approve(&home, &[]);
        home.call(&["undo", &id]).ok();
        assert!(runs(&home, ""));
    }

    #[test]
    fn undo_does_not_depend_on_the_directories_of_the_call() {
        let home = home();
        home.write(PROD, "");
        home.call(&["context", "edit", "prod", "--guard", "approval"]).ok();
        let id = last(&home);
        let done = home.call(&["undo", &id]).env("SESSILE_CONFIG_DIR", home.path("elsewhere")).run();
        assert_eq!(done.status(), Some(7), "{}", done.told());
        assert!(!runs(&home, ""));
    }

    #[test]
    fn undo_of_an_undo_is_refused() {
        let home = guarded();
        on_terminal(&home, &["context", "edit", "prod", "--guard", "none"], 0);
        home.call(&["undo", &last(&home)]).ok();
        assert!(!runs(&home, ""));
        refused(&home, &["undo", &last(&home)], "GUARD_APPROVAL");
        assert!(!runs(&home, ""));
    }

    #[test]
    fn undo_of_create_is_refused() {
        let home = home();
        home.call(&["context", "create", "prod", "--guard", "approval"]).ok();
        refused(&home, &["undo", &last(&home)], "GUARD_APPROVAL");
    }

    #[test]
    fn undo_of_rename_is_refused() {
        let home = home();
        home.write(".config/sessile/contexts/live.toml", GUARDED);
        on_terminal(&home, &["context", "rename", "live", "prod"], 0);
        refused(&home, &["undo", &last(&home)], "GUARD_APPROVAL");
    }

    #[test]
    fn delete_and_rename_are_refused() {
        let home = guarded();
        refused(&home, &["context", "delete", "prod", "--yes"], "GUARD_APPROVAL");
        refused(&home, &["context", "rename", "prod", "old"], "GUARD_APPROVAL");
        assert!(!runs(&home, ""));
    }

    #[test]
    fn lower_guards_are_refused() {
        let home = guarded();
        home.write("in.toml", "[contexts.new]\n[contexts.prod]\nguard = \"explicit\"\n");
        for args in [
            &["context", "edit", "prod", "--guard", "explicit"][..],
            &["context", "edit", "prod", "--remove", "guard"],
            &["context", "create", "prod", "--guard", "explicit", "--yes"],
            &["context", "create", "prod", "--project", "--yes"],
            &["context", "import", "in.toml", "--yes"],
        ] {
            refused(&home, args, "GUARD_APPROVAL");
        }
        home.call(&["context", "edit", "prod", "--description", "the real one"]).ok();
        home.call(&["undo", &last(&home)]).ok();
        assert!(!runs(&home, ""));
    }

    #[test]
    fn a_context_of_the_user_does_not_lower_the_guard_of_a_project() {
        let home = home();
        home.write("project/.sessile/contexts/prod.toml", GUARDED);
        home.call(&["trust", "project", "--yes"]).ok();
        assert!(!runs(&home, "project"));
        // Outside the project nothing tells that a context of this name exists.
        home.call(&["context", "create", "prod", "--env", "X=1"]).ok();
        assert!(runs(&home, ""));
        assert!(!runs(&home, "project"));
        let shown = home.call(&["context", "show", "prod", "-ojson"]).cwd("project").ok().json();
        assert_eq!(shown["guard"], "approval");
    }

    #[test]
    fn contexts_of_a_config_file_are_guarded_alike() {
        let home = home();
        home.write("team.toml", "[contexts.prod]\nguard = \"approval\"\n[contexts.dev]\n");
        let with = |args: &[&'static str]| [&["--config", "team.toml"], args].concat();
        for args in [
            &["context", "edit", "prod", "--guard", "none"][..],
            &["context", "delete", "prod", "--yes"],
            &["context", "rename", "prod", "old"],
        ] {
            refused(&home, &with(args), "GUARD_APPROVAL");
        }
        home.call(&with(&["context", "rename", "dev", "test"])).ok();
        home.call(&with(&["context", "delete", "test", "--yes"])).ok();
    }
}

mod by_a_person {
    use super::*;

    /// Each way to weaken the guard of `prod`; the first prepares it.
    const WAYS: &[(&[&str], &[&str])] = &[
        (&["context", "list"], &["context", "edit", "prod", "--guard", "none"]),
        (&["context", "list"], &["context", "delete", "prod", "--yes"]),
        (&["context", "list"], &["context", "rename", "prod", "old"]),
        (&["context", "edit", "prod", "--guard", "approval"], &["undo"]),
    ];

    /// A home in which `prod` is guarded, ready for this way to weaken it.
    fn prepared(way: usize) -> (Home, Vec<String>) {
        let (home, (first, second)) = (guarded(), WAYS[way]);
        let mut args: Vec<String> = second.iter().map(ToString::to_string).collect();
        if second == ["undo"] {
            home.write(PROD, "");
            home.call(first).ok();
            args.push(last(&home));
        }
        (home, args)
    }

    fn words(args: &[String]) -> Vec<&str> {
        args.iter().map(String::as_str).collect()
    }

    #[test]
    fn a_terminal_is_enough_until_a_pin_is_set() {
        for way in 0..WAYS.len() {
            let (home, args) = prepared(way);
            set_pin(&home, &[]);
            let text = on_terminal(&home, &words(&args), 7);
            assert!(text.contains("context approve prod"), "{text}");
            let (home, args) = prepared(way);
            on_terminal(&home, &words(&args), 0);
        }
    }

    #[test]
    fn a_terminal_without_a_person_is_not_enough() {
        for way in 0..WAYS.len() {
            let (home, args) = prepared(way);
            let command = format!("sessile {}", args.join(" "));
            let mut shell = home.shell();
            for line in [
                format!("{command} </dev/null"),
                format!("{command} </dev/null >/dev/null"),
                format!("echo y | {command} --no-input"),
                format!("{command} --no-input"),
                format!("SESSILE_NO_INPUT=1 {command}"),
                format!("CI=true {command}"),
            ] {
                let (text, status) = shell.run(&line);
                assert_eq!(status, 7, "{line}: {text}");
            }
            assert!(!runs(&home, ""), "{command}");
        }
    }

    #[test]
    fn editor_does_not_bypass_a_pin() {
        let home = home();
        home.write("team.toml", "[contexts.prod]\nguard = \"approval\"\n");
        set_pin(&home, &["--config", "team.toml"]);
        home.write(PROD, GUARDED);
        set_pin(&home, &[]);
        for args in [&["context", "edit", "prod"][..], &["--config", "team.toml", "config", "edit"]] {
            for script in ["sed -i s/approval/none/ \"$1\"", "sed -i /guard/d \"$1\""] {
                let (text, status) = edited_by(&home, args, script).tty().finish();
                assert_eq!(status, 7, "{args:?}: {text}");
            }
        }
        let script = "echo 'color = \"never\"' > \"$1\"";
        let (text, status) =
            edited_by(&home, &["--config", "team.toml", "config", "edit"], script).tty().finish();
        assert_eq!(status, 7, "{text}");
        assert!(home.read("team.toml").contains("approval") && home.read(PROD) == GUARDED);
    }

    #[test]
    fn an_approval_ends_with_its_context() {
        let delete = ["context", "delete", "prod", "--yes"];
        let rename = ["context", "rename", "prod", "old"];
        let create = ["context", "create", "prod", "--guard", "approval"];
        for way in [&delete[..], &rename, &["undo"]] {
            let home = home();
            home.call(&create).ok();
            let created = last(&home);
            approve(&home, &[]);
            let call = home.call(way);
            if way == ["undo"] {
                call.arg(&created).ok()
            } else {
                call.ok()
            };
            home.call(&create).ok();
            assert!(!runs(&home, ""), "{way:?}");
        }
    }
}

mod inside_a_session {
    use super::*;

    const SETTINGS: &str = ".config/sessile/config.toml";

    fn inside(home: &Home, args: &[&str]) -> Call {
        home.call(args).env("SESSILE_SESSION", "work")
    }

    #[track_caller]
    fn refused_inside(home: &Home, args: &[&str]) {
        super::super::refused_call(home, || inside(home, args), "IN_SESSION");
    }

    #[test]
    fn no_guard_is_weakened_even_by_who_set_it() {
        let home = home();
        start(&home, &["--name", "work"]);
        for guard in ["explicit", "approval"] {
            let name = format!("new-{guard}");
            inside(&home, &["context", "create", &name, "--guard", guard]).ok();
            refused_inside(&home, &["undo", &last(&home)]);
            refused_inside(&home, &["context", "edit", &name, "--guard", "none"]);
            refused_inside(&home, &["context", "rename", &name, "old"]);
            refused_inside(&home, &["context", "delete", &name, "--yes"]);
        }
    }

    #[test]
    fn an_editor_changes_no_guarded_context() {
        let home = home();
        home.write("team.toml", "[contexts.prod]\nguard = \"explicit\"\n[contexts.dev]\n");
        home.call(&["--config", "team.toml", "session", "start", "--name", "work"]).ok();
        let edit = |script: &str| {
            let call = edited_by(&home, &["--config", "team.toml", "config", "edit"], script);
            call.env("SESSILE_SESSION", "work").tty().finish()
        };
        for script in ["sed -i /guard/d \"$1\"", "sed -i 's/guard/description = \"x\"\\nguard/' \"$1\""] {
            let (text, status) = edit(script);
            assert_eq!(status, 7, "{text}");
            assert!(text.contains("refused inside a session"), "{text}");
        }
        let (text, status) = edit("echo 'description = \"mine\"' >> \"$1\"");
        assert_eq!(status, 0, "the other context is free: {text}");
    }

    /// A setting that leads others, before and after.
    const LEADING: &[(&str, &str)] = &[
        ("", "context = \"prod\""),
        ("context = \"dev\"", ""),
        ("", "env.LD_PRELOAD = \"/tmp/x.so\""),
        ("env.A = \"1\"", "env.A = \"2\""),
        ("env.A = \"1\"", ""),
        ("", "agents.bot.url = \"https://elsewhere.example\""),
        ("", "vault.helper = \"/tmp/x\""),
        ("", "vault.backend = \"helper\""),
        ("", "server = \"https://elsewhere.example\""),
        ("", "isolate = \"home\""),
        ("", "credential = \"other\""),
    ];

    #[test]
    fn an_editor_sets_nothing_that_leads_others() {
        for (scope, file) in
            [("--global", SETTINGS), ("--dir", ".sessile/local.toml"), ("--project", ".sessile/config.toml")]
        {
            let home = home();
            start(&home, &["--name", "work"]);
            for (before, after) in LEADING {
                home.write(file, format!("# mine\n{before}\n"));
                home.call(&["trust", "--yes"]).run();
                let script = format!("printf '%s\\n' '# mine' '{after}' > \"$1\"");
                let call = edited_by(&home, &["config", "edit", scope], &script);
                let (text, status) = call.env("SESSILE_SESSION", "work").tty().finish();
                assert_eq!(status, 7, "{scope} {before:?} {after:?}: {text}");
                assert!(text.contains("refused inside a session"), "{text}");
                assert_eq!(home.read(file), format!("# mine\n{before}\n"));
            }
            home.write(file, "env.A = \"1\"\n");
            home.call(&["trust", "--yes"]).run();
            let script = "printf '%s\\n' 'color = \"never\"' '# why' 'env.A = \"1\"' > \"$1\"";
            let call = edited_by(&home, &["config", "edit", scope], script);
            let (text, status) = call.env("SESSILE_SESSION", "work").tty().finish();
            assert_eq!(status, 0, "{text}");
        }
    }

    #[test]
    fn the_selections_of_others_stay() {
        let home = crate::home_with(&["dev", "free"]);
        home.call(&["context", "use", "dev", "--global"]).ok();
        start(&home, &["--name", "work", "--context", "free"]);
        home.call(&["context", "create", "test"]).ok();
        refused_inside(&home, &["context", "delete", "dev", "--yes"]);
        refused_inside(&home, &["context", "rename", "dev", "other"]);
        let mut shell = home.shell();
        shell.run("sessile context use test");
        refused_inside(&home, &["context", "delete", "test", "--yes"]);
        assert_eq!(shell.run("sessile context use dev").1, 0);
        inside(&home, &["context", "delete", "test", "--yes"]).ok();
    }
}

/// What anybody without a terminal may try, in the home or in the project.
const STEPS: &[(&str, &[&str])] = &[
    ("", &["context", "create", "prod", "--env", "X=1"]),
    ("", &["context", "create", "prod", "--env", "X=1", "--yes"]),
    ("", &["context", "create", "prod", "--env", "X=1", "--guard", "approval", "--yes"]),
    ("", &["context", "create", "other", "--env", "X=1"]),
    ("", &["context", "create", "other", "--guard", "approval", "--yes"]),
    ("", &["context", "edit", "prod", "--guard", "none"]),
    ("", &["context", "edit", "prod", "--guard", "explicit"]),
    ("", &["context", "edit", "prod", "--guard", "approval"]),
    ("", &["context", "edit", "prod", "--remove", "guard"]),
    ("", &["context", "edit", "other", "--guard", "none"]),
    ("", &["context", "delete", "prod", "--yes"]),
    ("", &["context", "delete", "other", "--yes"]),
    ("", &["context", "rename", "prod", "other"]),
    ("", &["context", "rename", "other", "prod"]),
    ("", &["context", "import", "in.toml", "--yes"]),
    ("project", &["context", "create", "prod", "--env", "X=1", "--yes"]),
    ("project", &["context", "create", "prod", "--env", "X=1", "--project", "--yes"]),
    ("project", &["context", "edit", "prod", "--guard", "none"]),
    ("project", &["context", "delete", "prod", "--yes"]),
    ("project", &["context", "rename", "prod", "other"]),
    ("project", &["context", "rename", "other", "prod"]),
    ("project", &["context", "import", "../in.toml", "--project", "--yes"]),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    /// From `prod` guarded by `approval`, no sequence of commands and undos without a person leads to `prod` started.
    #[test]
    fn no_sequence_of_commands_opens_a_guarded_context(
        in_project in any::<bool>(),
        steps in proptest::collection::vec(prop_oneof![
            (0..STEPS.len()).prop_map(Ok),
            (0..8usize).prop_map(Err),
        ], 1..12)
    ) {
        let home = home();
        home.write("in.toml", "[contexts.prod]\nenv.X = \"1\"\n[contexts.other]\n");
        // The guard comes by a command, so that an undo could take it away.
        let (dir, scope) = if in_project { ("project", "--project") } else { ("", "--no-input") };
        std::fs::create_dir(home.path("project")).unwrap();
        home.call(&["context", "create", "prod", "--env", "X=1", scope]).cwd(dir).ok();
        home.call(&["context", "edit", "prod", "--guard", "approval"]).cwd(dir).ok();
        prop_assert!(!runs(&home, dir));
        for step in steps {
            match step {
                Ok(step) => drop(home.call(STEPS[step].1).cwd(STEPS[step].0).run()),
                Err(back) => {
                    let id = crate::history(&home)[back]["id"].to_string();
                    home.call(&["undo", &id]).run();
                }
            }
            prop_assert!(!runs(&home, dir), "{:?}", step);
        }
    }
}
