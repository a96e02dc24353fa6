//! Selections on a terminal: what is replaced, and whether the shell follows.

use super::*;

#[test]
fn replaced_directory_selection_names_its_author() {
    let home = home_with_tools();
    home.call(&["context", "use", "production", "--dir"]).ok();
    let told = home.call(&["context", "use", "staging", "--dir"]).ok().stdout();
    assert!(told.contains("(was \"production\", set "), "{told}");
    assert!(told.contains(" ago by pid "), "{told}");
    let told = home.call(&["context", "use", "staging", "--dir"]).ok().stdout();
    assert!(!told.contains("by pid"), "{told}");
    home.call(&["context", "use", "--none", "--dir"]).ok();
    assert_eq!(home.call(&["context", "current"]).run().status(), Some(5));
    home.call(&["context", "use", "staging", "--none", "--dir"]).run().exit(2);
    home.call(&["context", "use", "--dir"]).run().exit(2);
}

#[test]
fn unhooked_shell_gets_a_note() {
    let home = home_with_tools();
    let mut shell = home.shell();
    for line in [
        "sessile context use staging",
        "sessile context use --none",
        "sessile session start --name s1",
        "sessile session attach s1",
    ] {
        let (told, status) = shell.run(line);
        assert_eq!(status, 0, "{told}");
        assert!(told.contains("commands typed in this shell are not affected"), "{line}: {told}");
    }
    let (told, _) = shell.run("sessile session start --name s2");
    assert!(told.contains("session \"s1\" is still running"), "{told}");
    assert_eq!(shell.run("sessile session detach").1, 0);
    assert_eq!(shell.run("sessile session detach").1, 2);
    assert_eq!(home.call(&["session", "attach", "s1"]).run().status(), Some(2), "not on a terminal");
}
