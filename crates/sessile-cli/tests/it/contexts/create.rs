//! `sessile context create`, `list`, `show` and `current`.

use serde_json::{Value, json};

use crate::isolation::run::kubeconfig;
use crate::{home, home_with};

#[test]
fn a_context_is_a_file_that_people_can_read() {
    let home = home();
    home.write(".kube/config", kubeconfig(&["stage"]));
    let done = home.call(&[
        "context",
        "create",
        "staging",
        "--description",
        "the test cluster",
        "--guard",
        "explicit",
        "--setting",
        "session.idle=1h",
        "--env",
        "AWS_REGION=eu-1",
        "--env",
        "EMPTY=",
        "--bind",
        "kubectl.context=stage",
        "--bind",
        "kubectl.namespace=web",
        "--bind",
        "kubectl.strict=true",
    ]);
    insta::assert_snapshot!(done.ok().told(), @r#"
    exit 0
    --- stdout
    created context "staging" in ~/.config/sessile/contexts/staging.toml
    --- stderr
    "#);
    insta::assert_snapshot!(home.read(".config/sessile/contexts/staging.toml"), @r#"
    description = "the test cluster"
    guard = "explicit"

    [settings.session]
    idle = "1h"

    [env]
    AWS_REGION = "eu-1"
    EMPTY = ""

    [tools.kubectl]
    context = "stage"
    namespace = "web"
    strict = true
    "#);
    insta::assert_snapshot!(home.call(&["context", "show", "staging"]).ok().told(), @r#"
    exit 0
    --- stdout
    staging
      description  the test cluster
      guard        explicit
      file         ~/.config/sessile/contexts/staging.toml
      settings     session.idle = "1h"
      env          AWS_REGION = "eu-1"
      env          EMPTY = ""
      tools        kubectl = { context = "stage", namespace = "web", strict = true }
      protected    kubectl context "stage"
    --- stderr
    "#);
    let json = home.call(&["context", "show", "staging", "-ojson"]).ok().json();
    assert_eq!(json["tools"]["kubectl"]["strict"], true);
    assert_eq!(json["home"], "user");
    assert_eq!(json["current"], false);
}

#[test]
fn an_existing_one_is_replaced_only_with_a_yes() {
    let home = home();
    home.call(&["context", "create", "dev", "--description", "first"]).ok();
    insta::assert_snapshot!(home.call(&["context", "create", "dev"]).run().told(), @r#"
    exit 6
    --- stdout
    --- stderr
    error: context "dev" already exists (~/.config/sessile/contexts/dev.toml)
    hint: choose another name, or pass --yes to replace it
    "#);
    assert!(home.read(".config/sessile/contexts/dev.toml").contains("first"));
    home.call(&["context", "create", "dev", "--yes", "--env", "A=1"]).ok();
    assert_eq!(
        home.read(".config/sessile/contexts/dev.toml"),
        "[env]\nA = \"1\"\n",
        "the old context is replaced"
    );
}

#[test]
fn invalid_context_is_refused_and_leaves_no_file() {
    let home = home();
    let create = |args: &[&str]| {
        args.iter().fold(home.call(&["context", "create"]), |call, arg| call.arg(arg)).run().exit(2)
    };
    insta::assert_snapshot!(create(&["../../x"]).told(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: "../../x" is not a valid context name: must begin with a letter or a digit
    "#);
    insta::assert_snapshot!(create(&["01890a5d-ac96-774b-bcce-b302099a8057"]).told(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: "01890a5d-ac96-774b-bcce-b302099a8057" is not a valid context name: must not look like an id
    "#);
    insta::assert_snapshot!(create(&["a", "--guard", "sometimes"]).told(), @"
    exit 2
    --- stdout
    --- stderr
    error: invalid value 'sometimes' for '--guard <GUARD>' [possible values: none, explicit, approval]
    hint: add --help for details
    ");
    insta::assert_snapshot!(create(&["a", "--bind", "kubectl"]).told(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: --bind: "kubectl" is not TOOL.KEY=VALUE
    "#);
    insta::assert_snapshot!(create(&["a", "--setting", "colour=never"]).told(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: setting "colour" not found
    hint: did you mean "color"?
    "#);
    insta::assert_snapshot!(create(&["a", "--setting", "color=pink"]).told(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: --setting color: "pink" is not one of auto, always, never
    "#);
    insta::assert_snapshot!(create(&["a", "--env", "A"]).told(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: --env: "A" is not NAME=VALUE
    "#);
    let bad_name = home.call(&["context", "create", "a", "--env", "A B=1"]).run().exit(1);
    assert!(bad_name.stderr().contains("letters, digits and _"), "{}", bad_name.told());
    assert!(!home.path(".config/sessile/contexts/a.toml").exists());
}

#[test]
fn a_project_can_have_contexts_of_its_own() {
    let home = home();
    home.write("project/x", "");
    home.call(&["context", "create", "dev", "--project"]).cwd("project").ok();
    assert!(home.path("project/.sessile/contexts/dev.toml").exists());
    let json = home.call(&["context", "show", "dev", "-ojson"]).cwd("project").ok().json();
    assert_eq!(json["home"], "project");
    assert_eq!(json["trusted"], true, "the creator's context is trusted");
    home.call(&["context", "show", "dev"]).run().exit(5);
}

#[test]
fn the_list_marks_the_current_one_and_says_why() {
    let home = home_with(&["dev", "prod"]);
    home.write(".config/sessile/contexts/dev.toml", "description = \"for play\"\n");
    home.write(".config/sessile/config.toml", "context = \"dev\"\n");
    insta::assert_snapshot!(home.call(&["context", "list", "--wide"]).ok().told(), @"
    exit 0
    --- stdout
       NAME  DESCRIPTION
    *  dev   for play (current: user ~/.config/sessile/config.toml:1)
       prod
    --- stderr
    ");
    let json = home.call(&["context", "list", "-ojson"]).ok().json();
    assert_eq!(json[0]["current"], true);
    assert_eq!(json[0]["origin"]["line"], 1);
    assert_eq!(json[1]["current"], false);
    assert_eq!(json[1]["origin"], Value::Null);
}

#[test]
fn one_broken_file_does_not_hide_the_others() {
    let home = home_with(&["dev"]);
    home.write(".config/sessile/contexts/broken.toml", "guard = [\n");
    home.write(".config/sessile/contexts/.hidden.toml", "");
    let done = home.call(&["context", "list"]).ok();
    assert!(done.stdout().contains("dev"), "{}", done.told());
    assert!(done.stdout().contains("error: ") && done.stdout().contains("broken.toml:1:"), "{}", done.told());
    assert!(done.stderr().contains(".hidden.toml is not a context"), "{}", done.told());
    let json = home.call(&["context", "list", "-ojson"]).ok().json();
    assert!(json[0]["error"].as_str().unwrap().contains("broken.toml:1:"));
}

#[test]
fn unknown_keys_in_a_context_are_warned_of() {
    let home = home();
    home.write(".config/sessile/contexts/dev.toml", "owner = \"me\"\n[settings]\ncolour = \"never\"\n");
    insta::assert_snapshot!(home.call(&["context", "show", "dev"]).ok().told(), @r#"
    exit 0
    --- stdout
    dev
      description  -
      guard        none
      file         ~/.config/sessile/contexts/dev.toml
    --- stderr
    warning: ~/.config/sessile/contexts/dev.toml:1:1: unknown key "owner"
    warning: ~/.config/sessile/contexts/dev.toml:3:1: unknown key "colour"
    hint: did you mean "color"?
    "#);
}

#[test]
fn current_prints_the_name_alone() {
    let home = home_with(&["dev"]);
    let done = home.call(&["context", "current", "--context", "dev"]).ok();
    assert_eq!((done.stdout().as_str(), done.stderr().as_str()), ("dev\n", ""));
    let json = home.call(&["context", "current", "--context", "dev", "-ojson"]).ok().json();
    assert_eq!(json, json!({ "context": "dev", "context_origin": { "layer": "flag", "name": "--context" } }));
}

#[test]
fn current_reports_a_missing_or_deleted_context() {
    let home = home_with(&["dev"]);
    insta::assert_snapshot!(home.call(&["context", "current"]).run().exit(5).told(), @"
    exit 5
    --- stdout
    --- stderr
    error: no context is selected
    hint: pass --context NAME, or select one: sessile context use NAME
    ");
    let done = home.call(&["context", "current", "--context", "dve"]).run().exit(5);
    assert_eq!(done.stdout(), "");
    assert!(done.stderr().contains("did you mean \"dev\"?"), "{}", done.told());
    home.call(&["context", "current", "--check", "--context", "dve"]).run().exit(5);
}

#[test]
fn plain_text_secrets_are_masked() {
    let home = home();
    home.write(".config/sessile/contexts/dev.toml", "[env]\nGH_TOKEN = \"t0psecret\"\nBOT_TOKEN = { credential = \"bot\" }\n[tools.npm]\nauth-token = \"t0psecret\"\n");
    for format in ["text", "json"] {
        let done = home.call(&["context", "show", "dev", "--output", format]).ok();
        assert!(!done.told().contains("t0psecret"), "{}", done.told());
        assert!(done.stdout().contains("********") && done.stdout().contains("bot"), "{}", done.told());
    }
}
