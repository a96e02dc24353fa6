//! What an agent makes is saved in the directory that was named, and nowhere else.

use std::os::unix::fs::symlink;

use super::{agent, clean};
use crate::home;

#[test]
fn artifacts_stay_inside_the_directory_and_overwrite_nothing() {
    let (home, agent) = (home(), agent());
    home.write("victim", "mine");
    home.write("a/b/out/evil-2.bin", "mine too");
    symlink(home.path("victim"), home.path("a/b/out/evil.bin")).unwrap();
    symlink(home.path("not there"), home.path("a/b/out/evil-3.bin")).unwrap();
    let before = home.tree_of_people();
    for word in ["send", "stream"] {
        // `../../evil`, as its name and as its file's.
        let args = ["message", word, agent.url(), "file", "--save-artifacts", "a/b/out", "-ojson"];
        let done = clean(home.call(&args).ok()).json();
        let saved: Vec<&str> =
            done["saved"].as_array().unwrap().iter().map(|path| path.as_str().unwrap()).collect();
        let expected = if word == "send" { "a/b/out/evil-4.bin" } else { "a/b/out/evil-5.bin" };
        assert_eq!(saved, [home.path(expected).to_str().unwrap()]);
        assert_eq!(std::fs::read(home.path(expected)).unwrap(), b"evil \0\xff bytes\n");
        assert_eq!(done["source"], "agent");
    }
    let mut after = home.tree_of_people();
    after.retain(|entry| !before.contains(entry));
    let new: Vec<_> = after.into_iter().map(|(path, _)| path).collect();
    assert_eq!(new, [home.path("a/b/out/evil-4.bin"), home.path("a/b/out/evil-5.bin")]);
    assert!(!home.dir().with_file_name("evil").exists());

    let done = clean(home.call(&["message", "send", agent.url(), "escaped", "--save-artifacts", "esc"]).ok());
    assert!(done.stdout().contains("saved "), "{}", done.told());
    let names: Vec<_> =
        std::fs::read_dir(home.path("esc")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 1);
    let name = names[0].to_str().unwrap();
    assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "._- ".contains(c)), "{name:?}");
}

#[test]
fn artifact_directory_that_is_a_file_is_reported() {
    let (home, agent) = (home(), agent());
    home.write("file", "mine");
    let args = ["message", "send", agent.url(), "file", "--save-artifacts", "file", "--session", "work"];
    let done = home.call(&args).run();
    assert_ne!(done.status(), Some(0), "{}", done.told());
    assert_eq!(home.read("file"), "mine");
    assert_eq!(agent.count("SendStreamingMessage"), 0, "nothing is sent");
}
