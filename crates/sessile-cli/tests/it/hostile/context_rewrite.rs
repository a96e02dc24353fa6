//! A guarded context file that is emptied, rewritten or replaced keeps protecting its targets.

use std::io::Write;
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::home;
use crate::isolation::protected::{approve, clusters};

const FILE: &str = ".config/sessile/contexts/prod.toml";
const BOUND: &str = "guard = \"approval\"\n[tools.kubectl]\ncontext = \"production\"\n";

/// Time that a file may be empty or away while an editor replaces it; a little less than Sessile waits.
const SETTLING: Duration = Duration::from_millis(95);
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
fn file_that_lost_its_guard_by_accident_stops_every_run() {
    let home = home();
    home.write(".kube/config", clusters(&["staging", "production"]));
    let bound = ["--bind", "kubectl.context=production"];
    home.call(&["context", "create", "prod", "--guard", "approval"]).args(&bound).ok();
    home.call(&["context", "create", "plain", "--description", "x"]).ok();
    let tools = "[tools.kubectl]\ncontext = \"production\"\n";
    let texts = [
        "gua".to_owned(),
        "description = \"the live clus".to_owned(),
        "# x\n".to_owned(),
        "x y\n".to_owned(),
        format!("gaurd = \"approval\"\n\n{tools}"),
        format!("Guard = \"approval\"\n\n{tools}"),
        format!("guar$ = \"approval\"\n\n{tools}"),
        format!("guard = \"none\"\ngaurd = \"approval\"\n\n{tools}"),
        format!("unknown = 1\n\n{tools}"),
    ];
    let stops = |what: &str| {
        for flags in [&[][..], &["--context", "plain"]] {
            let done = home.call(&["run", "-ojson"]).args(flags).args(READ).run().exit(125);
            let told = done.told();
            assert!(told.contains("prod.toml") && !told.contains("t-production"), "{what}: {told}");
            assert!(told.contains("guard"), "{what}: {told}");
        }
    };
    for text in &texts {
        home.write(FILE, text);
        stops(text);
    }
    let path = home.path(FILE);
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/nonexistent/prod.toml", &path).unwrap();
    stops("a dangling link");
    std::fs::remove_file(&path).unwrap();
    // What a person writes or deletes counts.
    home.call(&["run", "--", "true"]).ok();
    for text in ["guard = \"none\"\n", "description = \"free\"\n", "guard = \"none\"\nunknown = 1\n"] {
        home.write(FILE, text);
        home.call(&["run", "--", "true"]).ok();
    }
}

#[test]
fn broken_file_of_a_context_without_a_guard_stops_nothing() {
    let home = home();
    home.call(&["context", "create", "prod", "--description", "x"]).ok();
    for text in ["description = \"cut", "# x\n", "dscription = \"x\"\n"] {
        home.write(FILE, text);
        home.call(&["run", "--", "true"]).ok();
    }
}

#[test]
fn misspelt_guard_that_no_command_recorded_stops_every_run() {
    let home = home();
    home.write(".kube/config", clusters(&["staging", "production"]));
    home.call(&["context", "create", "plain", "--description", "x"]).ok();
    for key in ["gaurd", "Guard", "gard", "guards"] {
        home.write(FILE, format!("{key} = \"approval\"\n[tools.kubectl]\ncontext = \"production\"\n"));
        for flags in [&[][..], &["--context", "plain"], &["--context", "prod"]] {
            let done = home.call(&["run", "-ojson"]).args(flags).args(READ).run().exit(125);
            let (error, told) = (done.json_error(), done.told());
            assert_eq!(error["code"], "FILE_VALUE", "{key}: {told}");
            assert_eq!(error["hint"], "did you mean \"guard\"?", "{key}: {told}");
            assert!(!told.contains("t-production"), "{key}: {told}");
        }
        for args in [&["context", "show", "prod"][..], &["status", "--context", "prod"]] {
            let done = home.call(args).run();
            assert!(done.told().contains(&format!("unknown key \"{key}\"")), "{}", done.told());
        }
        // No command can remove the intended guard of the file.
        let call = || home.call(&["context", "delete", "prod", "--yes"]);
        assert_ne!(call().run().status(), Some(0), "{key}");
        assert!(home.path(FILE).exists());
    }
    home.write(FILE, BOUND);
    home.call(&["run", "--", "true"]).ok();
}

#[test]
fn misspelt_key_stops_the_use_of_its_context_only() {
    let home = home();
    for (text, near) in [
        ("dscription = \"x\"\n", "description"),
        ("[tool.kubectl]\ncontext = \"x\"\n", "tools"),
        ("[setting]\noutput = \"json\"\n", "settings"),
    ] {
        home.write(FILE, text);
        home.call(&["run", "--", "true"]).ok();
        let done = home.call(&["run", "--context", "prod", "-ojson", "--", "true"]).run().exit(125);
        assert_eq!(done.json_error()["hint"], format!("did you mean \"{near}\"?"), "{}", done.told());
    }
    // Any other key may be of another version.
    home.write(FILE, "owner = \"me\"\n");
    for args in [
        &["run", "--context", "prod", "--", "true"][..],
        &["status", "--context", "prod"],
        &["context", "show", "prod"],
    ] {
        let done = home.call(args).ok();
        assert!(done.stderr().contains("unknown key \"owner\""), "{}", done.told());
    }
}

#[test]
fn dangling_link_above_the_contexts_stops_every_run() {
    for linked in [".config", ".config/sessile", ".config/sessile/config.toml", ".config/sessile/tools"] {
        let home = home();
        home.write(".kube/config", clusters(&["staging", "production"]));
        home.write(FILE, BOUND);
        home.write(".config/sessile/config.toml", "color = \"never\"\n");
        std::fs::create_dir(home.path(".config/sessile/tools")).unwrap();
        let (link, away) = (home.path(linked), home.path("away"));
        std::fs::rename(&link, &away).unwrap();
        std::os::unix::fs::symlink(&away, &link).unwrap();
        let read = || home.call(&["run"]).args(READ).run();
        let done = read().exit(0);
        assert!(!done.stdout().contains("t-production"), "{linked}: {}", done.told());
        std::fs::rename(&away, home.path("gone")).unwrap();
        let done = read().exit(125);
        assert!(!done.stdout().contains("t-production"), "{linked}: {}", done.told());
        let error = home.call(&["run", "-ojson", "--", "true"]).run().exit(125);
        let error = error.json_error();
        assert_eq!(error["code"], "FILE_NOT_FOUND", "{linked}: {error}");
        assert!(error["message"].as_str().unwrap().contains("symbolic link"), "{linked}: {error}");
        assert!(error["hint"].as_str().unwrap().contains(link.to_str().unwrap()), "{linked}: {error}");
        std::fs::rename(home.path("gone"), &away).unwrap();
        read().exit(0);
    }
}

#[test]
fn dangling_link_is_not_replaced_by_a_context_of_the_project() {
    let home = home();
    home.write("work/.sessile/contexts/prod.toml", "description = \"the project's\"\n");
    home.call(&["trust", "--yes", "work"]).run();
    let path = home.path(FILE);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/nonexistent/prod.toml", &path).unwrap();
    let done = home.call(&["run", "--context", "prod", "-ojson", "--", "true"]).cwd("work").run().exit(125);
    assert_eq!(done.code(), "FILE_NOT_FOUND", "{}", done.told());
}

#[test]
fn dangling_link_as_contexts_directory_stops_every_run() {
    let home = home();
    home.call(&["context", "create", "prod", "--guard", "approval", "--description", "x"]).ok();
    let dir = home.path(".config/sessile/contexts");
    let away = home.path("away");
    std::fs::rename(&dir, &away).unwrap();
    std::os::unix::fs::symlink(&away, &dir).unwrap();
    home.call(&["run", "--", "true"]).ok();
    std::fs::rename(&away, home.path("gone")).unwrap();
    let done = home.call(&["run", "--", "true"]).run().exit(125);
    assert!(done.told().contains("contexts"), "{}", done.told());
}

#[test]
fn file_that_is_emptied_during_a_run_still_protects_its_targets() {
    let home = home();
    home.write(".kube/config", clusters(&["staging", "production"]));
    let path = home.write(FILE, BOUND);
    let is_done = AtomicBool::new(false);
    // A file that stays empty for longer counts as empty. That can happen on a busy machine, so reads during a slow write are ignored.
    let (writes, slow_writes) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let read = || home.call(&["run"]).args(READ).run();
    std::thread::scope(|scope| {
        // Written in place, by hand: the history knows nothing of this file.
        scope.spawn(|| {
            while !is_done.load(Ordering::SeqCst) {
                let begun = Instant::now();
                let mut file = std::fs::File::create(&path).unwrap();
                std::thread::sleep(Duration::from_millis(2));
                file.write_all(BOUND.as_bytes()).unwrap();
                slow_writes.fetch_add(usize::from(begun.elapsed() >= SETTLING), Ordering::SeqCst);
                writes.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(6));
            }
        });
        let mut found = Vec::new();
        while found.len() < 30 {
            let slow = slow_writes.load(Ordering::SeqCst);
            let text = read().stdout();
            // The write that was under way at the end has ended, too.
            let written = writes.load(Ordering::SeqCst);
            while writes.load(Ordering::SeqCst) == written {
                std::thread::yield_now();
            }
            if slow_writes.load(Ordering::SeqCst) == slow {
                found.push(text);
            }
        }
        is_done.store(true, Ordering::SeqCst);
        assert!(found.iter().all(|text| !text.contains("t-production")), "{found:?}");
    });
}

#[test]
fn file_replaced_by_a_rename_protects_its_targets() {
    let home = home();
    home.write(".kube/config", clusters(&["staging", "production"]));
    let path = home.write(FILE, BOUND);
    let aside = path.with_extension("toml~");
    let mut judged = 0;
    while judged < 5 {
        let begun = Instant::now();
        std::fs::rename(&path, &aside).unwrap();
        let mut call = home.call(&["run"]).args(READ).command();
        let child = call.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(50));
        std::fs::rename(&aside, &path).unwrap();
        // A file that is away for longer counts as deleted: on a busy machine this one may be.
        let is_judged = begun.elapsed() < SETTLING;
        let Output { stdout, stderr, .. } = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&stdout);
        if is_judged {
            assert!(!text.contains("t-production"), "{text} {}", String::from_utf8_lossy(&stderr));
            judged += 1;
        }
        std::thread::sleep(Duration::from_millis(150));
    }
}
