//! State of tools that is too large to copy into a room.

use std::path::Path;

use testkit::Home;

use super::protected::{clusters, guarded, run};
use crate::{home, room};

/// A file of this size that takes no space.
fn sparse(home: &Home, path: &str, mebibytes: u64) {
    let file = std::fs::File::create(home.write(path, "")).unwrap();
    file.set_len(mebibytes << 20).unwrap();
}

fn is_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_symlink())
}

#[test]
fn large_cache_is_linked_and_the_rest_is_copied() {
    let home = home();
    home.write(".docker/config.json", "{\"currentContext\": \"default\"}\n");
    sparse(&home, ".docker/cache/layers", 300);
    assert_eq!(run(&home, &[], &["true"]).ok().stderr(), "");
    let done = run(&home, &["--session", "s", "-v"], &["true"]).ok();
    assert!(done.stderr().contains(".docker/cache of docker, which is too large to copy"), "{}", done.told());
    let docker = room(&home, "s").join("docker");
    assert!(is_link(&docker.join("cache")));
    assert!(!is_link(&docker.join("config.json")));
    let done = run(&home, &["--dry-run"], &["true"]).ok();
    let words: Vec<String> = done.stdout().split_whitespace().map(str::to_owned).collect();
    assert!(words.join(" ").contains("of docker, which is too large to copy"), "{}", done.told());
}

#[test]
fn unlinkable_state_is_shared_unless_the_tool_runs() {
    let home = home();
    sparse(&home, ".docker/contexts/meta/one/large", 300);
    for flags in [&[][..], &["--session", "s"]] {
        let done = run(&home, flags, &["sh", "-c", "echo ${DOCKER_CONFIG:-own}"]).ok();
        assert_eq!(done.stdout(), "own\n");
        assert!(done.stderr().contains("is too large to copy; the session shares it"), "{}", done.told());
        let flags = [flags, &["-ojson"]].concat();
        let error = run(&home, &flags, &["docker", "ps"]).run().exit(125).json_error();
        assert_eq!(error["code"], "TOOL_STATE_TOO_LARGE", "{error}");
        assert!(error["hint"].as_str().unwrap().contains("--set tools.except=docker"), "{error}");
        let flags = [&flags[..], &["--set", "tools.except=docker"]].concat();
        run(&home, &flags, &["docker", "--version"]).ok();
    }
    home.write(".config/sessile/contexts/staging.toml", "[tools.docker]\ncontext = \"default\"\n");
    let flags = ["--context", "staging", "-ojson"];
    let error = run(&home, &flags, &["true"]).run().exit(125).json_error();
    assert_eq!(error["code"], "TOOL_STATE_TOO_LARGE", "a bound tool: {error}");
}

#[test]
fn protected_target_stays_out_of_a_room_without_the_large_state() {
    let home = guarded();
    let large = format!("{}# {}\n", clusters(&["dev", "production"]), "x".repeat(65 << 20));
    home.write(".kube/config", large);
    let show = ["sh", "-c", "test -e \"$KUBECONFIG\" && cat \"$KUBECONFIG\" || echo none"];
    for flags in [&[][..], &["--isolate", "home"], &["--session", "s"]] {
        let done = run(&home, flags, &show).ok();
        assert!(!done.stdout().contains("production"), "{flags:?}");
        assert!(done.stderr().contains("the session starts without it"), "{}", done.told());
    }
    let show = ["sh", "-c", "cat \"$HOME/.kube/config\""];
    run(&home, &["--isolate", "home"], &show).run().exit(1);
}

#[test]
fn large_state_with_a_protected_target_is_withheld() {
    let home = home();
    let large = format!("{}# {}\n", clusters(&["dev", "production"]), "x".repeat(65 << 20));
    home.write(".kube/config", large);
    let show = ["sh", "-c", "echo ${KUBECONFIG:-own}"];
    assert_eq!(run(&home, &["--session", "s"], &show).ok().stdout(), "own\n");
    home.write(
        ".config/sessile/contexts/production.toml",
        "guard = \"approval\"\n[tools.kubectl]\ncontext = \"production\"\n",
    );
    let at = run(&home, &["--session", "s"], &show).ok().stdout();
    assert!(Path::new(at.trim()).starts_with(room(&home, "s")), "{at}");
}
