//! direnv, with the lines of the guide.

use super::*;

#[test]
fn direnv_loads_a_session_with_the_lines_of_the_guide() {
    let home = home_with_tools();
    let lines = "sessile session start --name web --context staging --quiet >/dev/null 2>&1\neval \"$(sessile env --session web)\"\n";
    let guide =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/shell.md")).unwrap();
    assert!(guide.contains(lines), "the guide has the lines that are tested");
    home.write("p/.envrc", lines);
    home.write("p/sub/file", "");
    let mut path = std::ffi::OsString::from(home.program().parent().unwrap());
    path.push(":");
    path.push(testkit::tool_path());
    home.tool("direnv", &["allow", "."]).cwd("p").env("PATH", &path).ok();
    let inside = ["exec", ".", "kubectl", "config", "current-context"];
    for dir in ["p", "p/sub"] {
        assert_eq!(home.tool("direnv", &inside).cwd(dir).env("PATH", &path).ok().stdout(), "staging\n");
    }
}
