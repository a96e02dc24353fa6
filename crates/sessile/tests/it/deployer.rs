//! Another command-line tool on the same library has variables, directories, settings and a status of its own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use serde_json::Value;
use testkit::{Call, Home};

/// The example program, which cargo builds beside the tests unless it is told to build only these.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples/deployer");
    let built = path.metadata().and_then(|found| found.modified()).ok();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/deployer.rs");
    let changed = source.metadata().and_then(|found| found.modified()).unwrap();
    assert!(
        built.is_some_and(|built| built >= changed),
        "the example is missing or old: cargo build -p sessile --example deployer"
    );
    path
}

fn home() -> Home {
    let home = Home::new(program());
    home.write(".config/deployer/contexts/staging.toml", "[settings]\nregion = \"us-2\"\n");
    home.write(".config/deployer/contexts/production.toml", "guard = \"explicit\"\n");
    // The state of its sibling, which it must neither read nor change.
    home.write(".config/sessile/config.toml", "context = \"sibling\"\noutput = \"json\"\n");
    home.write(".sessile/config.toml", "context = \"sibling\"\n");
    home
}

fn call(home: &Home, args: &[&str]) -> Call {
    home.call(args).env("DEPLOYER_SYSTEM_DIR", home.path("etc")).env("SESSILE_CONTEXT", "sibling")
}

#[test]
fn deployer_acts_in_its_context_and_names_it() {
    let home = home();
    assert_eq!(call(&home, &["deploy", "v1"]).run().exit(5).stdout(), "");
    let done = call(&home, &["deploy", "v1"]).env("DEPLOYER_CONTEXT", "staging").ok();
    assert_eq!(done.stdout(), "deployed v1 in context staging, region us-2\n");
    let done = call(&home, &["deploy", "v1", "--context", "staging", "--set", "region=ap-3"]).ok();
    assert_eq!(done.stdout(), "deployed v1 in context staging, region ap-3\n");
}

#[test]
fn explicit_guard_requires_the_context_name() {
    let home = home();
    let _ = call(&home, &["context", "use", "production", "--global"]).ok();
    let done = call(&home, &["deploy", "v1"]).run().exit(7);
    assert_eq!(done.stdout(), "");
    assert!(done.stderr().contains("hint: pass --context production, or set DEPLOYER_CONTEXT=production"));
    let done = call(&home, &["deploy", "v1", "--context", "production"]).ok();
    assert_eq!(done.stdout(), "deployed v1 in context production, region eu-1\n");
}

#[test]
fn deployer_uses_its_own_files_only() {
    let home = home();
    let before = siblings(&home);
    let _ = call(&home, &["context", "use", "staging", "--global"]).ok();
    home.write(".deployer/config.toml", "region = \"project\"\nendpoint = \"https://a.example\"\n");
    let done = call(&home, &["status", "--show-state-files", "--output", "json"]).ok();
    assert!(done.stderr().contains("ignoring its value of endpoint"), "{}", done.told());
    assert!(done.stderr().contains("deployer trust"), "{}", done.told());
    let status = done.json();
    assert_eq!(status["current_context"], "staging");
    assert_eq!(status["project"]["trusted"], false);
    let paths: Vec<&str> =
        status["state_files"].as_array().unwrap().iter().filter_map(|file| file["path"].as_str()).collect();
    assert!(paths.iter().all(|path| path.contains("deployer") || path.contains("/etc/")), "{paths:?}");
    assert!(paths.iter().any(|path| path.ends_with(".local/state/deployer/state.db")), "{paths:?}");
    assert_eq!(siblings(&home), before);
}

#[test]
fn a_terminal_of_its_own_is_a_scope_of_its_own() {
    let home = home();
    let done = call(&home, &["context", "use", "staging"]).run().exit(2);
    assert!(done.stderr().contains("--global"), "{}", done.told());
    let (printed, status) = home.tty(&["context", "use", "staging"]).finish();
    assert_eq!(status, 0, "{printed}");
    assert!(printed.contains("context staging selected in /dev/pts/"), "{printed}");
    let status: Value = call(&home, &["status", "--output", "json"]).ok().json();
    assert_eq!(status["current_context"], Value::Null);
}

/// Every file of the sibling's.
fn siblings(home: &Home) -> Vec<(PathBuf, Vec<u8>)> {
    home.tree().into_iter().filter(|(path, _)| path.to_string_lossy().contains("sessile")).collect()
}

#[test]
fn embedded_run_isolates_pins_and_guards() {
    let home = home();
    let kubeconfig = "apiVersion: v1\nkind: Config\ncurrent-context: one\ncontexts:\n\
                      - {name: one, context: {cluster: a, user: a}}\n- {name: two, context: {cluster: b, user: b}}\n";
    home.write(".kube/config", kubeconfig);
    home.write(".config/deployer/contexts/staging.toml", "[tools.kubectl]\ncontext = \"two\"\n");
    let script = r#"grep current-context "$KUBECONFIG"; echo changed >> "$KUBECONFIG"; echo "$DEPLOYER_SESSION" >&2; exit 3"#;
    let done = call(&home, &["exec", "--context", "staging", "--", "sh", "-c", script]).ok();
    assert_eq!(done.stdout(), "current-context: \"two\"\nexit status: 3\n");
    assert_eq!(done.stderr().trim().len(), 36, "{}", done.told());
    assert_eq!(home.read(".kube/config"), kubeconfig);
    let rooms = std::fs::read_dir(home.path(".local/state/deployer/rooms")).unwrap();
    assert_eq!(rooms.count(), 0, "the session for the command alone ends with it");

    let _ = call(&home, &["context", "use", "production", "--global"]).ok();
    let refused = call(&home, &["exec", "--", "sh", "-c", "echo started"]).run().exit(7);
    assert_eq!(refused.stdout(), "");
    let failed = call(&home, &["exec", "--context", "staging", "--", "no-such-program"]).run().exit(5);
    assert!(failed.stderr().contains("cannot run \"no-such-program\": no such file"), "{}", failed.told());
    assert!(!failed.stderr().contains("os error"), "{}", failed.told());
    // Its own variables are reserved, and those of its sibling are not.
    let reserved = |name: &str| {
        let pair = format!("{name}=no-such-credential");
        call(&home, &["exec", "--context", "staging", "--env-credential", &pair, "--", "true"]).run().status()
    };
    assert_eq!((reserved("DEPLOYER_SESSION"), reserved("SESSILE_X")), (Some(2), Some(8)));
}
