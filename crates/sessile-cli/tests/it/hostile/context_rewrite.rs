//! A guarded context file that is emptied, rewritten or replaced keeps protecting its targets.

use std::io::Write;
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::home;
use crate::isolation::protected::{approve, clusters};

const FILE: &str = ".config/sessile/contexts/prod.toml";
const BOUND: &str = "guard = \"approval\"\n[tools.kubectl]\ncontext = \"production\"\n";
const READ: &[&str] = &["--", "sh", "-c", "cat \"$KUBECONFIG\""];

#[test]
fn emptied_file_of_a_guarded_context_stops_every_run() {
    for (guard, is_approved) in [("approval", true), ("approval", false), ("explicit", false)] {
        let home = home();
        home.call(&["context", "create", "prod", "--guard", guard, "--description", "x"]).ok();
        home.call(&["context", "create", "plain", "--description", "x"]).ok();
        if is_approved {
            approve(&home, "prod");
        }
        let path = home.path(FILE);
        let before = std::fs::read(&path).unwrap();
        for text in ["", "\n", " \n\t\n"] {
            home.write(FILE, text);
            for flags in [&[][..], &["--context", "plain"]] {
                let done = home.call(&["run", "-ojson"]).args(flags).args(&["--", "true"]).run().exit(125);
                assert_eq!(done.code(), "FILE_VALUE", "{}", done.told());
                assert!(done.told().contains("prod.toml"), "{}", done.told());
            }
            let status = home.call(&["status"]).ok();
            assert!(status.stderr().contains("prod.toml"), "{}", status.told());
        }
        // What a person writes there counts, and so does the old text.
        for text in [&before[..], b"description = \"free\"\n"] {
            home.write(FILE, text);
            home.call(&["run", "--", "true"]).ok();
        }
    }
    // A context that never had a guard protects nothing.
    let home = home();
    home.call(&["context", "create", "prod", "--description", "x"]).ok();
    home.write(FILE, "");
    home.call(&["run", "--", "true"]).ok();
}

#[test]
fn file_that_is_emptied_during_a_run_still_protects_its_targets() {
    let home = home();
    home.write(".kube/config", clusters(&["staging", "production"]));
    let path = home.write(FILE, BOUND);
    let is_done = AtomicBool::new(false);
    let read = || home.call(&["run"]).args(READ).run();
    std::thread::scope(|scope| {
        // Written in place, by hand: the history knows nothing of this file.
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let mut file = std::fs::File::create(&path).unwrap();
                std::thread::sleep(Duration::from_millis(2));
                file.write_all(BOUND.as_bytes()).unwrap();
                std::thread::sleep(Duration::from_millis(6));
            }
        });
        let found: Vec<String> = (0..30).map(|_| read().stdout()).collect();
        is_done.store(true, Ordering::Relaxed);
        assert!(found.iter().all(|text| !text.contains("t-production")), "{found:?}");
    });
}

#[test]
fn file_that_an_editor_replaces_by_a_rename_still_protects_its_targets() {
    let home = home();
    home.write(".kube/config", clusters(&["staging", "production"]));
    let path = home.write(FILE, BOUND);
    let aside = path.with_extension("toml~");
    for _ in 0..5 {
        std::fs::rename(&path, &aside).unwrap();
        let mut call = home.call(&["run"]).args(READ).command();
        let child = call.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(50));
        std::fs::rename(&aside, &path).unwrap();
        let Output { stdout, stderr, .. } = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&stdout);
        assert!(!text.contains("t-production"), "{text} {}", String::from_utf8_lossy(&stderr));
        std::thread::sleep(Duration::from_millis(150));
    }
}
