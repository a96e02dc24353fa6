//! `sessile context edit` by flags.

use crate::{home, home_with};

const FILE: &str = ".config/sessile/contexts/dev.toml";

#[test]
fn flags_change_the_file_in_place() {
    let home = home();
    home.write(FILE, "# mine\ndescription = \"old\" # why\n\n[tools.kubectl]\nnamespace = \"a\"\n# kept\ncontext = \"c\"\n\n[env]\nDEBUG = \"1\"\nA = \"1\"\n");
    home.write(".kube/config", crate::isolation::run::kubeconfig(&["c"]));
    let done = home.call(&[
        "context",
        "edit",
        "dev",
        "--description",
        "new",
        "--guard",
        "explicit",
        "--bind",
        "kubectl.namespace=web",
        "--remove",
        "env.DEBUG",
    ]);
    insta::assert_snapshot!(done.ok().told(), @r#"
    exit 0
    --- stdout
    changed context "dev" in ~/.config/sessile/contexts/dev.toml
    --- stderr
    "#);
    insta::assert_snapshot!(home.read(FILE), @r#"
    # mine
    description = "new" # why
    guard = "explicit"

    [tools.kubectl]
    namespace = "web"
    # kept
    context = "c"

    [env]
    A = "1"
    "#);
}

#[test]
fn invalid_edit_changes_nothing() {
    let home = home();
    home.write(FILE, "description = \"old\"\n");
    let before = home.tree();
    home.call(&["context", "edit", "dev", "--env", "A B=1"]).run().exit(1);
    home.call(&["context", "edit", "dev", "--guard", "x"]).run().exit(2);
    home.call(&["context", "edit", "dve", "--guard", "none"]).run().exit(5);
    assert_eq!(home.tree(), before);
}

#[test]
fn without_flags_and_without_a_terminal_it_says_what_to_do() {
    insta::assert_snapshot!(home_with(&["dev"]).call(&["context", "edit", "dev"]).run().exit(2).told(), @"
    exit 2
    --- stdout
    --- stderr
    error: editing requires an interactive terminal
    hint: pass the changes as flags; see --help
    ");
}

#[test]
fn inside_a_session_a_guard_cannot_be_taken_away() {
    let home = home();
    home.write(FILE, "guard = \"approval\"\n");
    home.write("bundle.toml", "[contexts.first]\n[contexts.dev]\nguard = \"none\"\n");
    home.call(&["session", "start", "--name", "s1"]).ok();
    let before = (home.tree_of_people(), crate::history(&home));
    for args in [
        &["context", "edit", "dev", "--guard", "none"][..],
        &["context", "create", "dev", "--yes"],
        &["context", "delete", "dev", "--yes"],
        &["context", "rename", "dev", "other"],
        &["context", "import", "bundle.toml", "--yes"],
    ] {
        let done = home.call(args).env("SESSILE_SESSION", "s1").arg("-ojson").run().exit(7);
        assert_eq!(done.code(), "IN_SESSION", "{args:?}");
    }
    assert_eq!((home.tree_of_people(), crate::history(&home)), before);
}
