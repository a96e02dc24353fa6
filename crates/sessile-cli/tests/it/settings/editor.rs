//! Editing in an editor: what is saved must be valid, and nothing that was typed is lost.

use std::os::unix::fs::PermissionsExt;

use testkit::{Call, Home};

use crate::{home, home_with};

const DEV: &str = ".config/sessile/contexts/dev.toml";
const SETTINGS: &str = ".config/sessile/config.toml";

/// A call with an editor that runs this script; `$1` is the file.
fn edited_by(home: &Home, args: &[&str], script: &str) -> Call {
    let path = home.write("editor", format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    // What is kept must be found in the home.
    std::fs::create_dir_all(home.path("tmp")).unwrap();
    home.call(args).env("EDITOR", path).env("TMPDIR", home.path("tmp"))
}

fn kept(home: &Home) -> Vec<String> {
    let entries = std::fs::read_dir(home.path("tmp")).unwrap();
    entries.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap()).collect()
}

#[test]
fn a_context_is_edited_as_a_whole() {
    let home = home_with(&["dev"]);
    home.write(DEV, "# mine\n");
    let (text, status) =
        edited_by(&home, &["context", "edit", "dev"], "echo 'guard = \"explicit\"' >> \"$1\"").tty().finish();
    assert_eq!(status, 0, "{text}");
    assert_eq!(home.read(DEV), "# mine\nguard = \"explicit\"\n");
    assert_eq!(kept(&home), [""; 0], "the temporary copy was removed");
}

#[test]
fn visual_goes_before_editor_and_may_have_arguments() {
    let home = home_with(&["dev"]);
    let call = edited_by(&home, &["context", "edit", "dev"], "exit 1");
    let other =
        home.write("other", "#!/bin/sh\n[ \"$1\" = --wait ] && echo 'description = \"x\"' > \"$2\"\n");
    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (text, status) = call.env("VISUAL", format!("{} --wait", other.display())).tty().finish();
    assert_eq!(status, 0, "{text}");
    assert_eq!(home.read(DEV), "description = \"x\"\n");
}

#[test]
fn invalid_edit_is_reported_and_can_be_repeated() {
    let home = home_with(&["dev"]);
    let script = "if grep -q explicit \"$1\"; then echo 'guard = \"none\"' > \"$1\"; else echo 'guard = explicit' > \"$1\"; fi";
    let mut tty = edited_by(&home, &["context", "edit", "dev"], script).tty();
    let shown = tty.expect("Edit the file again? [y/N]");
    assert!(shown.contains("dev.toml:1:") && shown.contains("guard = explicit"), "{shown}");
    tty.type_line("y");
    let (text, status) = tty.finish();
    assert_eq!(status, 0, "{text}");
    assert_eq!(home.read(DEV), "guard = \"none\"\n");
}

#[test]
fn giving_up_changes_nothing_and_keeps_what_was_typed() {
    let home = home_with(&["dev"]);
    home.write(DEV, "# mine\n");
    let mut tty = edited_by(&home, &["context", "edit", "dev"], "echo 'guard = [' > \"$1\"").tty();
    tty.expect("[y/N]");
    tty.type_line("n");
    let (text, status) = tty.finish();
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("nothing was changed") && text.contains("your text was saved to"), "{text}");
    assert_eq!(home.read(DEV), "# mine\n");
    assert_eq!(kept(&home), ["guard = [\n"]);
}

#[test]
fn concurrent_change_wins_and_the_edit_is_kept() {
    let home = home_with(&["dev"]);
    let script = format!(
        "echo 'description = \"typed\"' > \"$1\"; echo '# someone else' > '{}'",
        home.path(DEV).display()
    );
    let (text, status) = edited_by(&home, &["context", "edit", "dev"], &script).tty().finish();
    assert_eq!(status, 6, "{text}");
    assert!(
        text.contains("changed by another process") && text.contains("your version was saved to"),
        "{text}"
    );
    assert_eq!(home.read(DEV), "# someone else\n");
    assert_eq!(kept(&home), ["description = \"typed\"\n"]);
}

#[test]
fn an_editor_that_fails_changes_nothing() {
    let home = home_with(&["dev"]);
    let (text, status) =
        edited_by(&home, &["context", "edit", "dev"], "echo 'guard = \"explicit\"' > \"$1\"; exit 3")
            .tty()
            .finish();
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("failed (exit status: 3)"), "{text}");
    assert_eq!(home.read(DEV), "");
    let (text, status) =
        home.call(&["context", "edit", "dev"]).env("EDITOR", "/nonexistent/editor").tty().finish();
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("cannot be started") && text.contains("set VISUAL or EDITOR"), "{text}");
}

#[test]
fn leaving_the_text_as_it_is_writes_nothing() {
    let home = home();
    home.write(SETTINGS, "color = \"never\"\n");
    let (text, status) = edited_by(&home, &["config", "edit", "--global", "-ojson"], ":").tty().finish();
    assert_eq!(status, 0, "{text}");
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["changed"], false);
    assert_eq!(json["layer"], "user");
}

#[test]
fn settings_are_edited_where_the_scope_says() {
    let home = home();
    home.write("project/x", "");
    let call =
        edited_by(&home, &["config", "edit", "--dir"], "echo 'color = \"never\"' > \"$1\"").cwd("project");
    let (text, status) = call.tty().finish();
    assert_eq!(status, 0, "{text}");
    assert_eq!(home.read("project/.sessile/local.toml"), "color = \"never\"\n");
}

#[test]
fn broken_settings_file_can_be_edited() {
    let home = home();
    for broken in ["color = \n", "lock-timeout = 5\n"] {
        home.write(SETTINGS, broken);
        let (text, status) =
            edited_by(&home, &["config", "edit", "--global"], "echo 'color = \"never\"' > \"$1\"")
                .tty()
                .finish();
        assert_eq!(status, 0, "{text}");
        assert_eq!(home.read(SETTINGS), "color = \"never\"\n");
    }
}

#[test]
fn invalid_settings_are_reported_and_not_saved() {
    let home = home();
    home.write(SETTINGS, "color = \"never\"\n");
    let mut tty = edited_by(&home, &["config", "edit", "--global"], "echo 'lock-timeout = 5' > \"$1\"").tty();
    let shown = tty.expect("Edit the file again? [y/N]");
    assert!(shown.contains("config.toml:1:1") && shown.contains("must be a duration"), "{shown}");
    tty.end_input();
    assert_eq!(tty.finish().1, 1);
    assert_eq!(home.read(SETTINGS), "color = \"never\"\n");
    assert_eq!(kept(&home), ["lock-timeout = 5\n"]);
}

#[test]
fn without_a_terminal_it_says_what_to_do() {
    let home = home();
    insta::assert_snapshot!(home.call(&["config", "edit", "--global"]).run().exit(2).told(), @"
    exit 2
    --- stdout
    --- stderr
    error: editing requires an interactive terminal
    hint: use `sessile config set KEY VALUE`
    ");
    let (text, status) = edited_by(&home, &["config", "edit", "--global", "--no-input"], ":").tty().finish();
    assert_eq!(status, 2, "{text}");
    let (text, status) = edited_by(&home, &["config", "edit", "--global"], ":").env("CI", "1").tty().finish();
    assert_eq!(status, 2, "{text}");
}
