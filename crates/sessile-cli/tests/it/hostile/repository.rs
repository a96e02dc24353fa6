//! A hostile repository: links out of the project, borrowed trust, state planted for tools.

use std::os::unix::fs::symlink;

use testkit::{Call, Home};

use super::{clean, refused_call};
use crate::{home, home_with};

const UNSAFE: &str = "PROJECT_FILE_UNSAFE";
const SETTINGS: &str = ".config/sessile/config.toml";

/// Commands that read a project's files.
const READERS: &[&[&str]] = &[
    &["prompt"],
    &["status"],
    &["status", "--show-state-files"],
    &["context", "current"],
    &["context", "list"],
    &["context", "show", "x"],
    &["context", "current", "--check", "--context", "x"],
    &["config", "show", "--source"],
    &["config", "get", "output"],
    &["config", "validate"],
    &["config", "path"],
    &["tool", "list"],
    &["tool", "show", "x"],
    &["doctor"],
    &["trust", "--yes"],
    &["trust", "--list"],
    &["env"],
    &["run", "--", "true"],
    &["run", "--context", "x", "--", "true"],
];

/// Makes a link in the state directory of the project `p`, with the directories above it.
fn plant(home: &Home, target: &str, at: &str) {
    let link = home.path("p/.sessile").join(at);
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    symlink(target, link).unwrap();
}

fn in_project(home: &Home, args: &[&str]) -> Call {
    home.call(args).cwd("p")
}

/// None of these texts is printed by any reader, for people or as JSON.
#[track_caller]
fn never_printed(home: &Home, secrets: &[&str]) {
    for args in READERS {
        for format in ["text", "json"] {
            let done = clean(in_project(home, args).env("SESSILE_OUTPUT", format).run());
            for secret in secrets {
                assert!(!done.told().contains(secret), "{args:?}\n{}", done.told());
            }
        }
    }
}

/// Every one of these calls is refused, and nothing is changed anywhere.
#[track_caller]
fn all_refused(home: &Home, calls: &[&[&str]]) {
    // The first change makes the store.
    home.call(&["context", "create", "first"]).run();
    for args in calls {
        refused_call(home, || in_project(home, args), UNSAFE);
    }
}

#[test]
fn linked_project_file_never_prints_a_secret_of_the_user() {
    let home = home();
    home.call(&["auth", "set", "demo", "--secret-stdin"]).stdin("hunter2hunter2").ok();
    let key = home.read(".local/state/sessile/vault/key");
    home.write(".git-credentials", "https://me:hunter2@example.com\n");
    home.write(".pgpass", "db:5432:prod:me:hunter3\n");
    let secrets = [key.trim(), "hunter2", "hunter3"];
    for at in ["config.toml", "local.toml", "contexts/x.toml", "tools/x.toml"] {
        let up = if at.contains('/') { "../../../" } else { "../../" };
        for victim in [".local/state/sessile/vault/key", ".git-credentials", ".pgpass"] {
            plant(&home, &format!("{up}{victim}"), at);
            never_printed(&home, &secrets);
            std::fs::remove_dir_all(home.path("p")).unwrap();
        }
    }
}

#[test]
fn linked_project_file_is_refused() {
    let home = home();
    home.write("victim.toml", "output = \"text\"\n");
    let absolute = home.path("victim.toml");
    for at in ["config.toml", "local.toml"] {
        for target in ["../../victim.toml", absolute.to_str().unwrap(), "../../missing.toml"] {
            plant(&home, target, at);
            for args in [&["status"][..], &["prompt"], &["context", "current"], &["config", "show"], &["env"]]
            {
                let error = refused_call(&home, || in_project(&home, args), UNSAFE);
                assert!(error["message"].as_str().unwrap().contains(at), "{error}");
                assert_eq!(error["exit_code"], 7, "{error}");
            }
            for args in [&["doctor"][..], &["config", "validate"]] {
                let done = clean(in_project(&home, args).run()).exit(1);
                assert!(
                    done.stdout().contains(at) && done.stdout().contains("symbolic link"),
                    "{}",
                    done.told()
                );
            }
            refused_call(&home, || in_project(&home, &["trust", "--yes"]), UNSAFE);
            std::fs::remove_dir_all(home.path("p")).unwrap();
        }
    }
}

#[test]
fn link_to_a_link_that_leaves_the_project_is_refused() {
    let home = home();
    home.write("victim.toml", "output = \"text\"\n");
    plant(&home, "../inner.toml", "config.toml");
    symlink("../victim.toml", home.path("p/inner.toml")).unwrap();
    refused_call(&home, || in_project(&home, &["status"]), UNSAFE);
}

#[test]
fn linked_project_directory_is_refused() {
    let home = home();
    home.write("victim/config.toml", "output = \"json\"\n");
    home.write("victim/x.toml", "description = \"theirs\"\n");
    home.write("victim/contexts/x.toml", "description = \"theirs\"\n");
    for (at, calls) in [
        ("contexts", &[&["context", "list"][..], &["context", "show", "x"], &["trust", "--yes"]][..]),
        ("tools", &[&["tool", "list"], &["tool", "show", "x"], &["trust", "--yes"]]),
    ] {
        plant(&home, "../../victim", at);
        for args in calls {
            refused_call(&home, || in_project(&home, args), UNSAFE);
        }
        std::fs::remove_dir_all(home.path("p")).unwrap();
    }
    std::fs::create_dir(home.path("p")).unwrap();
    symlink("../victim", home.path("p/.sessile")).unwrap();
    for args in [&["status"][..], &["context", "list"], &["config", "show"], &["trust", "--yes"]] {
        refused_call(&home, || in_project(&home, args), UNSAFE);
    }
    for args in [&["doctor"][..], &["config", "validate"]] {
        let done = clean(in_project(&home, args).run()).exit(1);
        assert!(done.stdout().contains("symbolic link"), "{}", done.told());
    }
}

/// A link that stays inside is the repository's own business.
#[test]
fn link_within_the_project_is_followed_and_kept() {
    let home = home();
    home.write("p/deploy/contexts/dev.toml", "description = \"one\"\n");
    plant(&home, "../deploy/contexts", "contexts");
    home.write("p/deploy/sessile.toml", "lock-timeout = \"9s\"\n");
    plant(&home, "../deploy/sessile.toml", "config.toml");
    assert_eq!(in_project(&home, &["config", "get", "lock-timeout"]).ok().stdout(), "9s\n");
    in_project(&home, &["trust", "--yes"]).ok();
    in_project(&home, &["context", "edit", "dev", "--description", "two"]).ok();
    in_project(&home, &["context", "create", "test", "--project"]).ok();
    in_project(&home, &["config", "set", "lock-timeout", "8s", "--project"]).ok();
    assert_eq!(home.read("p/deploy/contexts/dev.toml"), "description = \"two\"\n");
    assert!(home.path("p/deploy/contexts/test.toml").is_file());
    assert_eq!(home.read("p/deploy/sessile.toml"), "lock-timeout = \"8s\"\n");
    assert!(
        home.path("p/.sessile/config.toml").is_symlink() && home.path("p/.sessile/contexts").is_symlink()
    );
    in_project(&home, &["context", "current", "--check", "--context", "dev"]).ok();
}

#[test]
fn trust_of_another_project_is_not_borrowed_by_a_link() {
    let home = home_with(&["mine"]);
    home.write(SETTINGS, "context = \"mine\"\n");
    home.write("infra/.sessile/config.toml", "context = \"prod\"\n");
    home.write("infra/.sessile/contexts/prod.toml", "[env]\nA = \"1\"\n");
    home.call(&["trust", "infra", "--yes"]).ok();
    plant(&home, "../../infra/.sessile/config.toml", "config.toml");
    refused_call(&home, || in_project(&home, &["context", "current"]), UNSAFE);
    std::fs::remove_dir_all(home.path("p")).unwrap();
    std::fs::create_dir(home.path("p")).unwrap();
    symlink("../infra/.sessile", home.path("p/.sessile")).unwrap();
    refused_call(&home, || in_project(&home, &["context", "current"]), UNSAFE);
    let done = in_project(&home, &["run", "--context", "prod", "--", "true"]).run().exit(125);
    assert!(done.stderr().contains("symbolic link"), "{}", done.told());
}

#[test]
fn trust_of_a_nested_project_is_not_borrowed_by_a_link() {
    let home = home_with(&["mine"]);
    home.write(SETTINGS, "context = \"mine\"\n");
    home.write("p/infra/.sessile/config.toml", "context = \"mine\"\nserver = \"https://a.example\"\n");
    home.write("p/infra/.sessile/contexts/dev.toml", "description = \"dev\"\n");
    home.call(&["trust", "p/infra", "--yes"]).ok();
    plant(&home, "../infra/.sessile/config.toml", "config.toml");
    plant(&home, "../infra/.sessile/contexts", "contexts");
    let done = in_project(&home, &["status", "--output", "json"]).ok();
    assert_eq!(done.json()["project"]["trusted"], false, "{}", done.told());
    in_project(&home, &["config", "get", "server"]).run().exit(5);
    in_project(&home, &["context", "current", "--check", "--context", "dev"]).run().exit(4);
    let nested = || home.call(&["config", "get", "server"]).cwd("p/infra");
    assert_eq!(nested().ok().stdout(), "https://a.example\n");
    in_project(&home, &["trust", "--yes"]).ok();
    home.call(&["trust", "p/infra", "--revoke"]).ok();
    nested().run().exit(5);
    in_project(&home, &["config", "get", "server"]).ok();
}

#[test]
fn revoked_trust_covers_files_that_are_missing() {
    let home = home_with(&["mine"]);
    let file = "p/.sessile/config.toml";
    home.write(file, "server = \"https://a.example\"\n");
    home.write("p/.sessile/contexts/dev.toml", "");
    in_project(&home, &["trust", "--yes"]).ok();
    std::fs::remove_file(home.path(file)).unwrap();
    in_project(&home, &["trust", "--revoke"]).ok();
    home.write(file, "server = \"https://a.example\"\n");
    in_project(&home, &["config", "get", "server"]).run().exit(5);
}

/// The number of the last operation.
fn last_operation(home: &Home) -> String {
    crate::history(home)[0]["id"].to_string()
}

/// Asserts that no file of the project `p` is trusted and that its context `name` cannot be used.
#[track_caller]
fn assert_untrusted_context(home: &Home, name: &str) {
    let list = home.call(&["trust", "--list"]).ok().stdout();
    assert!(list.starts_with("no trusted files"), "{list}");
    let done = in_project(home, &["run", "--context", name, "--", "printenv", "EVIL"]).run().exit(125);
    assert!(done.stderr().contains("not trusted") && done.stdout().is_empty(), "{}", done.told());
}

#[test]
fn untrusted_context_that_is_moved_or_restored_stays_untrusted() {
    for session in ["", "a"] {
        let home = home();
        home.call(&["session", "start", "--name", "a"]).ok();
        home.write("p/.sessile/contexts/x.toml", "[env]\nEVIL = \"pwned\"\n");
        let call = |args: &[&str]| in_project(&home, args).env("SESSILE_SESSION", session).ok();
        call(&["context", "rename", "x", "z"]);
        assert_untrusted_context(&home, "z");
        call(&["undo", &last_operation(&home)]);
        assert_untrusted_context(&home, "x");
        call(&["undo", &last_operation(&home)]);
        assert_untrusted_context(&home, "z");
        call(&["context", "delete", "z", "--yes"]);
        call(&["undo", &last_operation(&home)]);
        assert_untrusted_context(&home, "z");
        call(&["context", "edit", "z", "--env", "B=1"]);
        assert_untrusted_context(&home, "z");
        call(&["undo", &last_operation(&home)]);
        assert_untrusted_context(&home, "z");
    }
}

#[test]
fn undone_edit_of_an_untrusted_context_stays_untrusted() {
    let home = home();
    home.write("p/.sessile/contexts/x.toml", "[env]\nEVIL = \"pwned\"\n");
    in_project(&home, &["context", "edit", "x", "--env", "EVIL=good"]).ok();
    let edit = last_operation(&home);
    in_project(&home, &["trust", "--yes"]).ok();
    in_project(&home, &["undo", &edit]).ok();
    assert!(home.read("p/.sessile/contexts/x.toml").contains("pwned"));
    in_project(&home, &["run", "--context", "x", "--", "true"]).run().exit(125);
}

#[test]
fn removed_and_restored_untrusted_setting_stays_untrusted() {
    let between: &[Option<&[&str]>] =
        &[None, Some(&["config", "set", "lock-timeout", "9s"]), Some(&["trust", "--yes"])];
    for (file, scope) in [("config.toml", "--project"), ("local.toml", "--dir")] {
        for then in between {
            let home = home();
            home.write(format!("p/.sessile/{file}"), "color = \"never\"\n[env]\nEVIL = \"pwned\"\n");
            in_project(&home, &["config", "unset", "env.EVIL", scope]).ok();
            let unset = last_operation(&home);
            match then {
                Some(args) if args[0] == "config" => drop(in_project(&home, args).arg(scope).ok()),
                Some(args) => drop(in_project(&home, args).ok()),
                None => {}
            }
            in_project(&home, &["undo", &unset]).ok();
            assert!(home.read(format!("p/.sessile/{file}")).contains("pwned"));
            in_project(&home, &["config", "get", "env.EVIL"]).run().exit(5);
        }
    }
}

#[test]
fn selection_in_an_untrusted_local_file_does_not_trust_the_file() {
    let home = home_with(&["mine"]);
    home.write("p/.sessile/local.toml", "context = \"other\"\n[env]\nEVIL = \"pwned\"\n");
    in_project(&home, &["context", "use", "mine", "--dir"]).ok();
    in_project(&home, &["config", "get", "env.EVIL"]).run().exit(5);
    in_project(&home, &["undo", &last_operation(&home)]).ok();
    in_project(&home, &["config", "get", "env.EVIL"]).run().exit(5);
}

#[test]
fn restored_context_keeps_its_trust_until_revoked() {
    let home = home();
    home.write("p/.sessile/contexts/x.toml", "[env]\nA = \"1\"\n");
    in_project(&home, &["trust", "--yes"]).ok();
    let use_it = |name: &str| in_project(&home, &["run", "--context", name, "--", "true"]).run();
    in_project(&home, &["context", "rename", "x", "z"]).ok();
    use_it("z").exit(0);
    in_project(&home, &["undo", &last_operation(&home)]).ok();
    use_it("x").exit(0);
    in_project(&home, &["context", "delete", "x", "--yes"]).ok();
    let delete = last_operation(&home);
    in_project(&home, &["undo", &delete]).ok();
    use_it("x").exit(0);
    in_project(&home, &["context", "delete", "x", "--yes"]).ok();
    let delete = last_operation(&home);
    in_project(&home, &["trust", "--revoke"]).ok();
    in_project(&home, &["undo", &delete]).ok();
    use_it("x").exit(125);
}

#[test]
fn changes_never_leave_the_project_through_a_linked_file() {
    let home = home_with(&["dev"]);
    home.write(SETTINGS, "# mine\ncolor = \"never\"\n");
    for target in ["../../.config/sessile/config.toml", "../../.config/sessile/new.toml"] {
        plant(&home, target, "local.toml");
        all_refused(
            &home,
            &[
                &["config", "set", "color", "always", "--dir"],
                &["config", "set", "color", "always"],
                &["config", "unset", "color", "--dir"],
                &["context", "use", "dev", "--dir"],
                &["agent", "add", "a", "https://a.example", "--dir"],
            ],
        );
        std::fs::remove_dir_all(home.path("p")).unwrap();
        plant(&home, target, "config.toml");
        all_refused(
            &home,
            &[
                &["config", "set", "color", "always", "--project"],
                &["config", "unset", "color", "--project"],
                &["agent", "add", "a", "https://a.example", "--project"],
            ],
        );
        std::fs::remove_dir_all(home.path("p")).unwrap();
        plant(
            &home,
            &format!("../{}", target.replace("config.toml", "contexts/dev.toml")),
            "contexts/x.toml",
        );
        all_refused(
            &home,
            &[
                &["context", "create", "x", "--project"],
                &["context", "create", "x", "--project", "--yes"],
                &["context", "edit", "x", "--env", "A=1"],
                &["context", "rename", "x", "y"],
                &["context", "delete", "x", "--yes"],
            ],
        );
        std::fs::remove_dir_all(home.path("p")).unwrap();
    }
}

#[test]
fn changes_never_leave_the_project_through_a_linked_directory() {
    let home = home_with(&["dev"]);
    home.write("victim/local.toml", "");
    home.write("victim/config.toml", "");
    home.write("victim/x.toml", "");
    let writers: &[&[&str]] = &[
        &["config", "set", "color", "always", "--dir"],
        &["config", "set", "color", "always", "--project"],
        &["context", "use", "dev", "--dir"],
        &["context", "create", "y", "--project"],
    ];
    for target in ["../victim", "../missing"] {
        std::fs::create_dir(home.path("p")).unwrap();
        symlink(target, home.path("p/.sessile")).unwrap();
        all_refused(&home, writers);
        std::fs::remove_dir_all(home.path("p")).unwrap();
        plant(&home, &format!("../{target}"), "contexts");
        all_refused(&home, &[&["context", "create", "y", "--project"]]);
        std::fs::remove_dir_all(home.path("p")).unwrap();
    }
    plant(&home, "../../victim/ignored", ".gitignore");
    in_project(&home, &["context", "use", "dev", "--dir"]).run();
    assert!(!home.path("victim/ignored").exists());
}

#[test]
fn undo_never_leaves_the_project_through_a_link() {
    let home = home_with(&["dev"]);
    std::fs::create_dir(home.path("p")).unwrap();
    let last = |home: &Home| crate::history(home)[0]["id"].to_string();
    in_project(&home, &["config", "set", "color", "always", "--dir"]).ok();
    in_project(&home, &["context", "create", "y", "--project"]).ok();
    let (create, set) = (last(&home), crate::history(&home)[1]["id"].to_string());
    home.write("victim/local.toml", home.read("p/.sessile/local.toml"));
    home.write("victim/y.toml", home.read("p/.sessile/contexts/y.toml"));
    std::fs::remove_file(home.path("p/.sessile/local.toml")).unwrap();
    std::fs::remove_dir_all(home.path("p/.sessile/contexts")).unwrap();
    plant(&home, "../../victim/local.toml", "local.toml");
    plant(&home, "../../victim", "contexts");
    for id in [&create, &set] {
        // Outside the project its settings are not in the way.
        refused_call(&home, || home.call(&["undo", id]), UNSAFE);
    }
}

#[test]
fn linked_project_file_is_refused_before_the_editor_starts() {
    let home = home_with(&["dev"]);
    plant(&home, "../../.config/sessile/config.toml", "local.toml");
    home.write(SETTINGS, "color = \"never\"\n");
    let mut tty = in_project(&home, &["config", "edit", "--dir"]).env("EDITOR", "touch").tty();
    let text = tty.expect("symbolic link");
    assert_eq!(tty.finish().1, 7, "{text}");
    assert_eq!(home.read(SETTINGS), "color = \"never\"\n");
}

#[test]
fn syntax_error_of_an_untrusted_project_does_not_quote_the_file() {
    let home = home();
    for (at, wrong) in [
        ("config.toml", "fine = 1\nhunter2 = = 3\n"),
        ("local.toml", "fine = 1\nhunter2 = = 3\n"),
        ("contexts/x.toml", "guard = \"none\"\nhunter2 = = 3\n"),
        ("tools/x.toml", "name = \"x\"\nhunter2 = = 3\n"),
        ("config.toml", "[session]\nidle = 5 # hunter2\n"),
        ("contexts/x.toml", "description = \"x\"\nguard = 1 # hunter2\n"),
        ("config.toml", "env = 5 # hunter2\n"),
    ] {
        home.write(format!("p/.sessile/{at}"), wrong);
        // What `trust` asks about is shown in full, and only if it can be read.
        if wrong.contains("= =") {
            never_printed(&home, &["hunter2"]);
        } else {
            never_quoted(&home);
        }
        let done = in_project(&home, &["config", "set", "env.A", "1", "--project"]).run();
        assert!(!done.told().contains("hunter2"), "{}", done.told());
        std::fs::remove_dir_all(home.path("p")).unwrap();
    }
    home.write("p/.sessile/config.toml", "fine = 1\nhunter2 = = 3\n");
    let error = refused_call(&home, || in_project(&home, &["status"]), "FILE_SYNTAX");
    assert!(error["message"].as_str().unwrap().contains("config.toml:2:"), "{error}");
}

#[track_caller]
fn never_quoted(home: &Home) {
    for args in READERS.iter().filter(|args| args[0] != "trust") {
        let done = clean(in_project(home, args).run());
        assert!(!done.told().contains("hunter2"), "{args:?}\n{}", done.told());
    }
}

#[test]
fn syntax_error_of_a_linked_argument_does_not_quote_the_file() {
    let home = home();
    home.write(".git-credentials", "https://me:hunter2@example.com\n");
    std::fs::create_dir(home.path("p")).unwrap();
    symlink("../.git-credentials", home.path("p/ci.toml")).unwrap();
    symlink("..", home.path("p/up")).unwrap();
    for file in ["ci.toml", "up/.git-credentials"] {
        for args in [
            &["status", "--config", file][..],
            &["context", "import", file],
            &["config", "validate", file],
            &["--config", file, "config", "set", "color", "never"],
        ] {
            let done = clean(in_project(&home, args).run());
            assert_ne!(done.status(), Some(0), "{}", done.told());
            assert!(!done.told().contains("hunter2"), "{args:?}\n{}", done.told());
        }
    }
    home.write("p/own.toml", "a = = 1\n");
    let done = in_project(&home, &["status", "--config", "own.toml"]).run();
    assert!(done.stderr().contains("own.toml:1:5: extra `=`"), "{}", done.told());
    assert!(!done.stderr().contains("1 | a = = 1"), "{}", done.told());
}

#[test]
fn project_value_errors_do_not_repeat_the_value() {
    let home = home();
    home.write("p/.env.toml", "output = \"hunter1\"\nguard = \"hunter2\"\n");
    plant(&home, "../.env.toml", "config.toml");
    never_printed(&home, &["hunter"]);
    std::fs::remove_dir_all(home.path("p/.sessile")).unwrap();
    plant(&home, "../../.env.toml", "contexts/x.toml");
    for args in [&["context", "show", "x"][..], &["config", "validate"], &["doctor"]] {
        let done = clean(in_project(&home, args).run());
        assert!(!done.told().contains("hunter"), "{}", done.told());
    }
}

/// Names that are not UTF-8 are possible in a repository.
#[test]
fn paths_that_are_not_utf8_are_printed_without_a_panic() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let home = home();
    let name = |bytes: &'static [u8]| std::path::Path::new(OsStr::from_bytes(bytes));
    let root = name(b"d\xff");
    home.write(root.join(".sessile/contexts/x.toml"), "description = \"theirs\"\n");
    home.write(root.join(".sessile/contexts").join(name(b"\xff.toml")), "a=1\n");
    home.write(root.join(".sessile/tools/x.toml"), "name = \"x\"\n");
    home.write(root.join(".sessile/tools").join(name(b"\xff.toml")), "name = \"x\"\n");
    home.write(root.join(".sessile/config.toml"), "output = \"nothing\"\nserver = \"https://a.example\"\n");
    home.write(root.join(".terraform/environment"), "default");
    for round in 0..3 {
        let calls = [&["config", "validate", "d"][..], &["config", "set", "env.A", "1", "--dir"]];
        for args in READERS.iter().copied().chain(calls) {
            for format in ["text", "json"] {
                clean(home.call(args).cwd(root).env("SESSILE_OUTPUT", format).run());
            }
        }
        for command in
            [&["config", "validate"][..], &["session", "import"], &["context", "import"], &["trust"]]
        {
            clean(home.call(command).arg(root.as_os_str()).run());
            clean(home.call(command).arg(root.join(".sessile/config.toml")).run());
        }
        let run = ["run", "--new", "--tool", "terraform", "--session", "s", "--", "true"];
        clean(home.call(&run).cwd(root).run());
        match round {
            0 => drop(home.write(root.join(".sessile/config.toml"), "output = \"json\"\nenv.B = \"1\"\n")),
            _ => drop(home.call(&["trust", "--yes"]).cwd(root).run()),
        }
    }
}
