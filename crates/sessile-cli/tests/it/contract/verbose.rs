//! Quiet by default: the place of a change is printed where a selection decides it, and with `--verbose`.

use crate::contract::output::{CALLS, furnished_for};
use crate::home;

#[test]
fn change_names_a_selected_context_once_and_nothing_else() {
    let home = home();
    let created = home.call(&["context", "create", "staging"]).ok();
    assert_eq!(created.stderr(), "", "nothing is selected");
    home.call(&["context", "use", "staging", "--global"]).ok();
    let set = |flags: &[&str]| {
        let args = [&["config", "set", "lock-timeout", "3s", "--global"], flags].concat();
        home.call(&args).ok().stderr()
    };
    assert_eq!(set(&[]), "in context staging\n");
    assert_eq!(set(&["--quiet"]), "");
    let other = home.call(&["context", "create", "other"]).ok();
    assert_eq!(other.stderr(), "", "the command does the same in every context");
    assert_eq!(set(&["--context", "staging"]), "", "the call names the context itself");
    let verbose = set(&["--verbose"]);
    assert!(verbose.contains("in context staging (user ") && verbose.contains("no session"), "{verbose}");
}

#[test]
fn verbose_run_names_context_session_and_origins() {
    let home = home();
    home.call(&["context", "create", "staging"]).ok();
    home.call(&["session", "start", "--name", "deploy", "--context", "staging"]).ok();
    let args = ["run", "-v", "--session", "deploy", "--", "sh", "-c", "echo started >&2"];
    let stderr = home.call(&args).ok().stderr();
    let lines: Vec<&str> = stderr.lines().collect();
    let named = "context staging (session deploy), session deploy (flag --session)";
    assert!(lines.contains(&named), "{stderr}");
    assert_eq!(lines.last(), Some(&"started"), "{stderr}");
    let own = home.call(&["run", "-v", "-c", "staging", "--", "true"]).ok().stderr();
    let started = own.lines().find(|line| line.starts_with("context staging (flag --context), "));
    let started = started.unwrap_or_else(|| panic!("{own}"));
    assert!(started.contains(", started session ") && started.ends_with(" for this command"), "{own}");
    assert!(!own.contains("no session"), "{own}");
    assert_eq!(home.call(&["run", "-c", "staging", "--", "true"]).ok().stderr(), "");
}

#[test]
fn verbose_current_context_shows_guard_bindings_and_settings() {
    let home = home();
    let file =
        "guard = \"explicit\"\n[settings]\nlock-timeout = \"9s\"\n[tools.kubectl]\ncontext = \"stage\"\n";
    home.write(".config/sessile/contexts/staging.toml", file);
    let current =
        |flags: &[&str]| home.call(&[&["context", "current", "--context", "staging"], flags].concat()).ok();
    assert_eq!(current(&[]).stderr(), "");
    let verbose = current(&["-v"]);
    assert_eq!(verbose.stdout(), "staging\n");
    for line in
        ["guard: explicit", "setting: lock-timeout = \"9s\"", "binding: kubectl = { context = \"stage\" }"]
    {
        assert!(verbose.stderr().lines().any(|one| one == line), "{line}:\n{}", verbose.stderr());
    }
}

/// Commands that read no state: their result is the same everywhere.
const STATELESS: &[&str] = &["help"];

#[test]
fn verbose_says_where_every_command_works() {
    for (path, words) in CALLS.iter().filter(|(path, _)| !STATELESS.contains(path)) {
        let done = furnished_for(path).call(&[&["-v"], *words].concat()).ok();
        assert!(done.stderr().contains("context "), "{path}: {}", done.told());
    }
}

#[test]
fn quiet_prints_the_result_alone() {
    for (path, words) in CALLS {
        let done = furnished_for(path).call(&[&["-q"], *words].concat()).ok();
        assert_eq!(done.stderr(), "", "{path}");
    }
}
