//! `sessile trust`: a project's files take effect when a person has read them, and not before.

use serde_json::json;
use testkit::{CallResult, Home};

use crate::{home, home_with};

/// A home with a project that asks for things.
fn with_project() -> Home {
    let home = home_with(&["mine"]);
    home.write(".config/sessile/config.toml", "context = \"mine\"\n");
    home.write(
        "project/.sessile/config.toml",
        "context = \"theirs\"\noutput = \"text\"\nserver = \"https://evil.example\"\n[env]\nPATH = \"/tmp\"\n",
    );
    home.write("project/.sessile/contexts/theirs.toml", "description = \"the project's\"\n");
    home
}

fn here(home: &Home, args: &[&str]) -> CallResult {
    home.call(args).cwd("project").run()
}

#[test]
fn an_untrusted_project_is_ignored_and_warned_of() {
    let home = with_project();
    insta::assert_snapshot!(here(&home, &["context", "current"]).told(), @"
    exit 0
    --- stdout
    mine
    --- stderr
    warning: project ~/project is not trusted; ignoring its value of context, server, env.PATH
    hint: review the project, then trust it: sessile trust ~/project
    ");
    let status = here(&home, &["status", "-ojson"]).json();
    assert_eq!(status["current_context"], "mine");
    assert_eq!(status["project"], json!({ "path": home.path("project"), "trusted": false }));
    let server = here(&home, &["config", "get", "server"]).exit(5);
    assert!(server.stderr().contains("server is not set"), "{}", server.told());
    let list = here(&home, &["context", "list"]).stdout();
    let theirs = list.lines().find(|line| line.contains("theirs")).unwrap();
    assert!(theirs.contains("project, not trusted"), "{list}");
}

#[test]
fn session_in_an_untrusted_project_does_not_start() {
    let home = with_project();
    home.call(&["session", "start", "--name", "s1", "--context", "mine"]).ok();
    let started = |args: &[&str]| here(&home, args);
    for args in
        [&["run", "--", "touch", "started"][..], &["run", "--session", "new", "--", "touch", "started"]]
    {
        let done = started(args).exit(125);
        assert!(done.stderr().contains("selects context \"theirs\", but is not trusted"), "{}", done.told());
        assert!(done.stderr().contains("--context NAME"), "{}", done.told());
    }
    assert!(!home.path("project/started").exists());
    assert_eq!(started(&["session", "start", "-ojson"]).exit(4).code(), "UNTRUSTED_PROJECT");
    assert_eq!(started(&["context", "current", "--check", "-ojson"]).exit(4).code(), "UNTRUSTED_PROJECT");
    // The context may keep its locks on a server: a lock on this machine would not exclude other clients.
    assert_eq!(started(&["lock", "acquire", "deploy", "-ojson"]).exit(4).code(), "UNTRUSTED_PROJECT");
    started(&["lock", "acquire", "deploy", "--context", "mine"]).exit(0);
    started(&["run", "--context", "mine", "--", "true"]).exit(0);
    started(&["run", "--session", "s1", "--", "true"]).exit(0);
    here(&home, &["trust", "--yes"]).exit(0);
    started(&["run", "--", "/bin/sh", "-c", ":"]).exit(0);
}

#[test]
fn trusting_shows_the_files_and_lets_them_count() {
    let home = with_project();
    insta::assert_snapshot!(here(&home, &["trust", "--yes"]).exit(0).told(), @r#"
    exit 0
    --- stdout
    trusted ~/project (2 files)
    --- stderr
    --- ~/project/.sessile/config.toml
    context = "theirs"
    output = "text"
    server = "https://evil.example"
    [env]
    PATH = "/tmp"
    --- ~/project/.sessile/contexts/theirs.toml
    description = "the project's"
    "#);
    let status = here(&home, &["status", "-ojson"]);
    assert_eq!(status.stderr(), "");
    assert_eq!(status.json()["current_context"], "theirs");
    assert_eq!(status.json()["project"]["trusted"], true);
    here(&home, &["context", "current", "--check", "--context", "theirs"]).exit(0);
    insta::assert_snapshot!(here(&home, &["trust", "--list"]).told(), @"
    exit 0
    --- stdout
    STATE    FILE
    trusted  ~/project/.sessile/config.toml
    trusted  ~/project/.sessile/contexts/theirs.toml
    --- stderr
    ");
}

#[test]
fn closed_input_trusts_nothing() {
    let home = with_project();
    insta::assert_snapshot!(here(&home, &["trust", "--quiet"]).told(), @"
    exit 2
    --- stdout
    --- stderr
    error: trust 2 files of ~/project: confirmation required, but the call is not interactive
    hint: pass --yes to confirm
    ");
    assert_eq!(here(&home, &["context", "current"]).stdout(), "mine\n");
}

#[test]
fn a_person_reads_and_answers() {
    let home = with_project();
    let mut tty = home.call(&["trust"]).cwd("project").tty();
    let shown = tty.expect("Trust 2 files");
    assert!(shown.contains("https://evil.example") && shown.contains("the project's"), "{shown}");
    tty.type_line("n");
    let (text, status) = tty.finish();
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("not confirmed, nothing was changed"), "{text}");
    let mut tty = home.call(&["trust"]).cwd("project").tty();
    tty.expect("[y/N]");
    tty.type_line("y");
    assert_eq!(tty.finish().1, 0);
    assert_eq!(here(&home, &["context", "current"]).stdout(), "theirs\n");
}

#[test]
fn one_changed_byte_takes_the_trust_back() {
    let home = with_project();
    here(&home, &["trust", "--yes"]).exit(0);
    let text = home.read("project/.sessile/config.toml");
    home.write("project/.sessile/config.toml", text.replace("evil", "evi1"));
    assert_eq!(here(&home, &["context", "current"]).stdout(), "mine\n");
    assert!(here(&home, &["trust", "--list"]).stdout().contains("changed"));
    home.write("project/.sessile/config.toml", text);
    assert_eq!(here(&home, &["context", "current"]).stdout(), "theirs\n", "and back again");
    home.write("project/.sessile/contexts/theirs.toml", "description = \"other\"\n");
    let done = here(&home, &["context", "current", "--check", "--context", "theirs"]).exit(4);
    assert!(done.stderr().contains("not trusted"), "{}", done.told());
}

#[test]
fn trust_is_for_a_path_and_a_copy_has_none() {
    let home = with_project();
    here(&home, &["trust", "--yes"]).exit(0);
    home.write("copy/.sessile/config.toml", home.read("project/.sessile/config.toml"));
    assert_eq!(home.call(&["context", "current"]).cwd("copy").ok().stdout(), "mine\n");
}

#[test]
fn trust_can_be_revoked() {
    let home = with_project();
    here(&home, &["trust", "--yes"]).exit(0);
    insta::assert_snapshot!(home.call(&["trust", "project", "--revoke"]).ok().told(), @"
    exit 0
    --- stdout
    revoked the trust in ~/project (2 files)
    --- stderr
    ");
    assert_eq!(here(&home, &["context", "current"]).stdout(), "mine\n");
}

#[test]
fn settings_without_need_of_trust_apply_at_once() {
    let home = home();
    home.write("project/.sessile/config.toml", "lock-timeout = \"9s\"\nexpect-context = \"dev\"\n");
    let done = here(&home, &["config", "get", "lock-timeout"]).exit(0);
    assert_eq!(done.stdout(), "9s\n");
    assert!(!done.stderr().contains("trust"), "{}", done.told());
}

#[test]
fn trust_cannot_change_inside_a_session() {
    let home = with_project();
    home.call(&["session", "start", "--name", "s1"]).ok();
    for args in [&["trust", "--yes"][..], &["trust", "--revoke"]] {
        let done = home.call(args).cwd("project").env("SESSILE_SESSION", "s1").arg("-ojson").run().exit(7);
        assert_eq!(done.code(), "IN_SESSION");
    }
    home.call(&["trust", "--list"]).env("SESSILE_SESSION", "s1").ok();
}

#[test]
fn selecting_a_context_in_a_fresh_directory_works_at_once() {
    let home = home_with(&["dev"]);
    home.write("fresh/x", "");
    insta::assert_snapshot!(home.call(&["context", "use", "dev", "--dir"]).cwd("fresh").ok().told(), @r#"
    exit 0
    --- stdout
    selected context "dev" for this directory, ~/fresh/.sessile/local.toml (was none)
    --- stderr
    "#);
    let done = home.call(&["context", "current"]).cwd("fresh").ok();
    assert_eq!((done.stdout().as_str(), done.stderr().as_str()), ("dev\n", ""));
    assert_eq!(home.read("fresh/.sessile/.gitignore"), "/local.toml\n");
}

#[test]
fn an_own_change_keeps_trust_but_gives_none() {
    let home = with_project();
    here(&home, &["config", "set", "lock-timeout", "9s", "--project"]).exit(0);
    assert_eq!(here(&home, &["context", "current"]).stdout(), "mine\n", "the rest is still unread");
    here(&home, &["trust", "--yes"]).exit(0);
    here(&home, &["config", "set", "lock-timeout", "8s", "--project"]).exit(0);
    assert_eq!(
        here(&home, &["context", "current"]).stdout(),
        "theirs\n",
        "the user's own change keeps the trust"
    );
}

#[test]
fn a_local_file_that_came_with_the_repository_is_not_trusted() {
    let home = home_with(&["mine", "prod"]);
    home.write("project/.sessile/local.toml", "context = \"prod\"\n");
    here(&home, &["context", "current"]).exit(5);
}

#[test]
fn project_context_neither_shadows_nor_weakens_the_users() {
    let home = home();
    home.write(
        ".config/sessile/contexts/prod.toml",
        "guard = \"approval\"\n[tools.kubectl]\ncontext = \"real\"\n",
    );
    home.write(
        "project/.sessile/contexts/prod.toml",
        "guard = \"none\"\n[tools.kubectl]\ncontext = \"fake\"\n",
    );
    here(&home, &["trust", "--yes"]).exit(0);
    let shown = here(&home, &["context", "show", "prod", "-ojson"]).exit(0);
    assert_eq!(shown.json()["guard"], "approval");
    assert_eq!(shown.json()["tools"]["kubectl"]["context"], "real");
    assert!(shown.stderr().contains("ignoring the project's context"), "{}", shown.told());
    here(&home, &["context", "current", "--check", "--context", "prod"]).exit(7);
}

#[test]
fn a_project_cannot_hand_out_a_guarded_context() {
    let home = home();
    home.write(".config/sessile/contexts/prod.toml", "guard = \"explicit\"\n");
    home.write("project/.sessile/config.toml", "context = \"prod\"\n");
    here(&home, &["trust", "--yes"]).exit(0);
    let done = here(&home, &["context", "current", "--check"]).exit(7);
    assert!(done.stderr().contains("must be named explicitly"), "{}", done.told());
}

#[test]
fn a_file_that_cannot_be_parsed_cannot_be_trusted() {
    let home = home();
    home.write("project/.sessile/config.toml", "context = \"dev\"\n");
    home.write("project/.sessile/contexts/dev.toml", "[env\n");
    let done = home.call(&["trust", "project", "--yes", "-ojson"]).run().exit(1);
    assert_eq!(done.code(), "FILE_SYNTAX");
    assert!(home.call(&["trust", "--list"]).ok().stdout().starts_with("no trusted files"));
}

#[test]
fn trust_outside_a_project_is_refused() {
    insta::assert_snapshot!(home().call(&["trust", "--yes"]).run().told(), @"
    exit 5
    --- stdout
    --- stderr
    error: no project found in ~ or above
    hint: create one: sessile config set KEY VALUE --dir
    ");
}
