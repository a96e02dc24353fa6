//! `sessile context delete`: it says what points to the context, and asks.

use crate::home_with;

const OLD: &str = ".config/sessile/contexts/old.toml";

#[test]
fn closed_input_deletes_nothing() {
    let home = home_with(&["old"]);
    let before = home.tree();
    insta::assert_snapshot!(home.call(&["context", "delete", "old"]).run().told(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: delete context "old": confirmation required, but the call is not interactive
    hint: pass --yes to confirm
    "#);
    let piped = home.call(&["context", "delete", "old"]).stdin("y\n").run().exit(2);
    assert!(piped.stderr().contains("--yes"), "a pipe cannot confirm: {}", piped.told());
    assert_eq!(home.tree(), before);
}

#[test]
fn yes_deletes_and_says_what_had_it_selected() {
    let home = home_with(&["old", "other"]);
    home.write(".config/sessile/config.toml", "# mine\ncontext = \"old\"\n");
    home.write("a/x", "");
    home.call(&["context", "use", "old", "--dir"]).cwd("a").ok();
    insta::assert_snapshot!(home.call(&["context", "delete", "old"]).run().told(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: delete context "old", selected by directory ~/a/.sessile/local.toml:1 and user ~/.config/sessile/config.toml:2: confirmation required, but the call is not interactive
    hint: pass --yes to confirm
    "#);
    insta::assert_snapshot!(home.call(&["context", "delete", "old", "--yes"]).ok().told(), @r#"
    exit 0
    --- stdout
    deleted context "old" (~/.config/sessile/contexts/old.toml)
    removed its selection by directory ~/a/.sessile/local.toml:1
    removed its selection by user ~/.config/sessile/config.toml:2
    --- stderr
    "#);
    assert!(!home.path(OLD).exists());
    assert_eq!(home.read(".config/sessile/config.toml"), "# mine\n");
    assert_eq!(home.read("a/.sessile/local.toml"), "");
}

#[test]
fn prompt_names_the_scopes_that_select_the_context() {
    let home = home_with(&["old"]);
    let mut shell = home.shell();
    shell.run("sessile context use old");
    let mut tty = home.tty(&["context", "delete", "old"]);
    let question = tty.expect("? [y/N]");
    assert!(question.contains("Delete context \"old\", selected by terminal /dev/"), "{question}");
    tty.type_line("y");
    let (text, status) = tty.finish();
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("removed its selection by terminal"), "{text}");
    assert_eq!(shell.run("sessile context current").1, 5, "the selection went too");
}

#[test]
fn anything_but_yes_is_no() {
    let home = home_with(&["old"]);
    for answer in ["n", "", "yeah", "Y E S"] {
        let mut tty = home.tty(&["context", "delete", "old"]);
        tty.expect("[y/N]");
        tty.type_line(answer);
        let (text, status) = tty.finish();
        assert_eq!(status, 1, "{answer:?}: {text}");
        assert!(text.contains("not confirmed, nothing was changed"), "{text}");
    }
    let mut tty = home.tty(&["context", "delete", "old"]);
    tty.expect("[y/N]");
    tty.end_input();
    assert_eq!(tty.finish().1, 1, "the end of input is a no");
    assert!(home.path(OLD).exists());
}

#[test]
fn missing_context_is_not_found() {
    home_with(&["old"]).call(&["context", "delete", "odl", "--yes"]).run().exit(5);
}
