//! `sessile config set` and `unset`: where a change goes, and that nothing else in the file changes.

use crate::{home, home_with};

const SETTINGS: &str = ".config/sessile/config.toml";

#[test]
fn a_global_write_reports_path_key_old_and_new_value() {
    let home = home();
    insta::assert_snapshot!(home.call(&["config", "set", "lock-timeout", "9s", "--global"]).ok().told(), @"
    exit 0
    --- stdout
    set lock-timeout to 9s in ~/.config/sessile/config.toml (not set before)
    --- stderr
    ");
    let json = home.call(&["config", "set", "lock-timeout", "10s", "--global", "-ojson"]).ok().json();
    assert_eq!(json["key"], "lock-timeout");
    assert_eq!(json["old"], "9s");
    assert_eq!(json["new"], "10s");
    assert_eq!(json["layer"], "user");
    assert_eq!(json["path"], home.path(SETTINGS).to_str().unwrap());
    insta::assert_snapshot!(home.call(&["config", "unset", "lock-timeout", "--global"]).ok().told(), @"
    exit 0
    --- stdout
    removed lock-timeout from ~/.config/sessile/config.toml (was 10s)
    --- stderr
    ");
}

#[test]
fn edits_keep_comments_order_and_spacing() {
    let home = home();
    home.write(
        SETTINGS,
        "# top\n\ncolor   = 'never'   # because\n\n[env]\n# about B\nB = \"2\"\nA = \"1\" # first\n\n# the end\n",
    );
    home.call(&["config", "set", "env.A", "one", "--global"]).ok();
    home.call(&["config", "set", "lock-timeout", "9s", "--global"]).ok();
    home.call(&["config", "set", "env.C", "3", "--global"]).ok();
    home.call(&["config", "unset", "env.B", "--global"]).ok();
    insta::assert_snapshot!(home.read(SETTINGS), @r#"
    # top

    color   = 'never'   # because
    lock-timeout = "9s"

    [env]
    # about B
    A = "one" # first
    C = "3"

    # the end
    "#);
}

#[test]
fn a_comment_about_the_file_stays_on_top() {
    let home = home();
    home.write(SETTINGS, "# about this file\n\n# about the table\n[env]\nA = \"1\"\n");
    home.call(&["config", "set", "color", "never", "--global"]).ok();
    assert_eq!(
        home.read(SETTINGS),
        "# about this file\n\ncolor = \"never\"\n# about the table\n[env]\nA = \"1\"\n"
    );
    home.write(SETTINGS, "# about this file");
    home.call(&["config", "set", "env.A", "1", "--global"]).ok();
    home.call(&["config", "set", "color", "never", "--global"]).ok();
    assert_eq!(home.read(SETTINGS), "# about this file\n\ncolor = \"never\"\n[env]\nA = \"1\"\n");
}

#[test]
fn the_last_variable_takes_its_table_with_it() {
    let home = home();
    home.call(&["config", "set", "env.A", "1", "--global"]).ok();
    home.call(&["config", "unset", "env.A", "--global"]).ok();
    let done = home.call(&["status"]).ok();
    assert_eq!(done.stderr(), "", "nothing is left to warn of: {:?}", home.read(SETTINGS));
}

#[test]
fn empty_table_is_valid() {
    let home = home();
    home.write(SETTINGS, "[env]\n[session]\n");
    assert_eq!(home.call(&["status"]).ok().stderr(), "");
}

#[test]
fn setting_the_same_value_again_leaves_the_file_alone() {
    let home = home();
    home.write(SETTINGS, "lock-timeout='9s'");
    home.call(&["config", "set", "lock-timeout", "9s", "--global"]).ok();
    assert_eq!(home.read(SETTINGS), "lock-timeout='9s'");
}

#[test]
fn set_outside_a_project_requires_a_scope() {
    let home = home();
    let before = home.tree();
    insta::assert_snapshot!(home.call(&["config", "set", "lock-timeout", "9s"]).run().told(), @"
    exit 2
    --- stdout
    --- stderr
    error: the working directory is not in a project: choose a scope
    hint: pass --dir for this directory, or --global for this user everywhere
    ");
    let (text, status) = home.tty(&["config", "set", "lock-timeout", "9s"]).finish();
    assert_eq!(status, 2, "a terminal makes no difference: {text}");
    assert_eq!(home.tree(), before);
}

#[test]
fn set_in_a_project_writes_the_personal_file() {
    let home = home();
    home.write("project/.sessile/config.toml", "lock-timeout = \"1s\"\n");
    home.write("project/deep/down/x", "");
    let done = home.call(&["config", "set", "lock-timeout", "9s", "-ojson"]).cwd("project/deep/down").ok();
    assert_eq!(done.json()["layer"], "directory");
    assert_eq!(home.read("project/.sessile/local.toml"), "lock-timeout = \"9s\"\n");
    assert_eq!(home.read("project/.sessile/config.toml"), "lock-timeout = \"1s\"\n");
    assert_eq!(home.read("project/.sessile/.gitignore"), "/local.toml\n");
    assert_eq!(home.call(&["config", "get", "lock-timeout"]).cwd("project").ok().stdout(), "9s\n");
    let (text, status) = home.call(&["config", "set", "color", "never"]).cwd("project").tty().finish();
    assert_eq!(status, 0, "{text}");
    assert!(home.read("project/.sessile/local.toml").contains("color"), "on a terminal too");
}

#[test]
fn existing_gitignore_is_unchanged() {
    let home = home();
    home.write("project/.sessile/.gitignore", "*\n");
    home.call(&["config", "set", "lock-timeout", "9s"]).cwd("project").ok();
    assert_eq!(home.read("project/.sessile/.gitignore"), "*\n");
}

#[test]
fn dir_and_project_create_a_project() {
    let home = home();
    home.write("a/x", "");
    home.call(&["config", "set", "lock-timeout", "9s", "--dir"]).cwd("a").ok();
    assert_eq!(home.read("a/.sessile/local.toml"), "lock-timeout = \"9s\"\n");
    home.call(&["config", "set", "expect-context", "dev", "--project"]).cwd("a").ok();
    assert_eq!(home.read("a/.sessile/config.toml"), "expect-context = \"dev\"\n");
}

#[test]
fn scopes_exclude_each_other() {
    home().call(&["config", "set", "color", "never", "--dir", "--global"]).run().exit(2);
}

#[test]
fn inside_a_session_it_is_the_sessions_unless_said_otherwise() {
    let home = home();
    home.write("project/.sessile/config.toml", "");
    home.call(&["session", "start", "--name", "s1"]).ok();
    let set = |args: &[&str]| home.call(args).cwd("project").env("SESSILE_SESSION", "s1");
    let done = set(&["config", "set", "lock-timeout", "9s"]).ok();
    assert_eq!(done.stdout(), "set lock-timeout to 9s in session s1 (not set before)\n");
    let value = set(&["config", "get", "lock-timeout", "-ojson"]).ok().json();
    assert_eq!((value["value"].as_str(), value["origin"]["layer"].as_str()), (Some("9s"), Some("session")));
    assert_eq!(
        home.call(&["config", "get", "lock-timeout"]).cwd("project").ok().stdout(),
        "5s\n",
        "outside it"
    );
    set(&["config", "unset", "lock-timeout"]).ok();
    set(&["config", "unset", "lock-timeout"]).run().exit(5);
    set(&["config", "set", "context", "dev"]).run().exit(7);
    assert!(!home.path("project/.sessile/local.toml").exists());
    set(&["config", "set", "lock-timeout", "9s", "--dir"]).ok();
    assert!(home.path("project/.sessile/local.toml").exists(), "an explicit --dir creates the file");
}

#[test]
fn invalid_value_changes_nothing() {
    let home = home();
    home.write(SETTINGS, "# mine\n");
    let before = home.tree();
    let set = |key: &str, value: &str| home.call(&["config", "set", key, value, "--global"]).run();
    insta::assert_snapshot!(set("lock-timeout", "soon").told(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: lock-timeout: "soon" is not a duration such as 500ms, 30s, 10m, 2h, 1h30m or 7d
    "#);
    insta::assert_snapshot!(set("color", "pink").told(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: color: "pink" is not one of auto, always, never
    "#);
    insta::assert_snapshot!(set("context", "../x").told(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: context: "../x" is not a context name
    "#);
    insta::assert_snapshot!(set("sesion.idle", "1h").told(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: setting "sesion.idle" not found
    hint: did you mean "session.idle"?
    "#);
    insta::assert_snapshot!(set("token", "t0psecret").told(), @"
    exit 2
    --- stdout
    --- stderr
    error: ~/.config/sessile/config.toml: secrets are not allowed here
    hint: put a token for one call into its own file and pass it with --config
    ");
    assert_eq!(home.tree(), before);
}

#[test]
fn unset_of_a_missing_key_names_other_scopes() {
    let home = home_with(&["staging"]);
    home.write(SETTINGS, "color = \"never\"\n");
    insta::assert_snapshot!(home.call(&["config", "unset", "lock-timeout", "--global"]).run().told(), @"
    exit 5
    --- stdout
    --- stderr
    error: lock-timeout is not set in ~/.config/sessile/config.toml
    hint: show its origin: sessile config show lock-timeout --source
    ");
}

#[test]
fn a_value_may_begin_with_a_dash() {
    let home = home();
    home.call(&["config", "set", "env.FLAGS", "-O2", "--global"]).ok();
    assert_eq!(home.call(&["config", "get", "env.FLAGS"]).ok().stdout(), "-O2\n");
}

#[test]
fn lists_and_quoted_keys_are_written_as_toml() {
    let home = home();
    home.call(&["config", "set", "tools.only", "git, aws", "--global"]).ok();
    home.call(&["config", "set", "agents.\"a.b\".url", "https://a.example", "--global"]).ok();
    insta::assert_snapshot!(home.read(SETTINGS), @r#"
    [tools]
    only = ["git", "aws"]

    [agents."a.b"]
    url = "https://a.example"
    "#);
    assert_eq!(home.call(&["config", "get", "agents.\"a.b\".url"]).ok().stdout(), "https://a.example\n");
}

#[test]
fn a_linked_settings_file_stays_a_link() {
    let home = home();
    home.write("dotfiles/sessile.toml", "# linked\n");
    std::fs::create_dir_all(home.path(".config/sessile")).unwrap();
    std::os::unix::fs::symlink(home.path("dotfiles/sessile.toml"), home.path(SETTINGS)).unwrap();
    home.call(&["config", "set", "color", "never", "--global"]).ok();
    assert!(home.path(SETTINGS).is_symlink());
    assert_eq!(home.read("dotfiles/sessile.toml"), "# linked\ncolor = \"never\"\n");
}

#[test]
fn secret_value_is_not_printed() {
    let home = home();
    for format in ["text", "json"] {
        home.write(SETTINGS, "env.GH_TOKEN = \"t0psecret\"\n");
        let set = home.call(&["config", "set", "env.GH_TOKEN", "t0psecret", "--global"]);
        let done = set.arg("--output").arg(format).run().exit(2);
        assert!(!done.told().contains("t0psecret"), "{}", done.told());
    }
    for args in [&["config", "show", "--source"][..], &["config", "unset", "env.GH_TOKEN", "--global"]] {
        for format in ["text", "json"] {
            home.write(SETTINGS, "env.GH_TOKEN = \"t0psecret\"\n");
            let done = home.call(args).arg("--output").arg(format).ok();
            assert!(!done.told().contains("t0psecret"), "{}", done.told());
            assert!(done.stdout().contains("********"), "{}", done.told());
        }
    }
    home.write(SETTINGS, "env.GH_TOKEN = \"t0psecret\"\n");
    assert_eq!(
        home.call(&["config", "get", "env.GH_TOKEN"]).ok().stdout(),
        "********\n",
        "masked as in config show"
    );
}

#[test]
fn session_names_its_credential_in_its_settings() {
    let home = home();
    home.call(&["auth", "set", "bot", "--secret-stdin"]).stdin("t0psecret\n").ok();
    crate::start(&home, &["--name", "s"]);
    home.call(&["config", "set", "credential", "bot", "--session", "s"]).ok();
    let get = ["config", "get", "credential", "--session", "s"];
    assert_eq!(home.call(&get).ok().stdout(), "bot\n", "a name is not masked");
    let status = home.call(&["status", "--session", "s", "--output", "json"]).ok().json();
    assert_eq!(status["credential"]["name"], "bot");
    assert_eq!(status["logged_in"], true);
    let moved = home.call(&["session", "export", "--session", "s"]).ok().stdout();
    home.call(&["session", "import", "-", "--name", "t"]).stdin(moved).ok();
    assert_eq!(home.call(&["config", "get", "credential", "--session", "t"]).ok().stdout(), "bot\n");
    let secret = ["config", "set", "env.GH_TOKEN", "t0psecret", "--session", "s", "--output", "json"];
    assert_eq!(home.call(&secret).run().code(), "SECRET_REFUSED");
}
