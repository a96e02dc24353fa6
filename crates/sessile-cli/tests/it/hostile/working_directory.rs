//! State that a repository plants for tools in its working directory: links out of it, special files, endless trees.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::{Call, CallResult, Home};

use super::clean;
use crate::home;

const SECRET: &str = "a private key that no repository gets";

/// A home with a secret in it, and a repository whose tool state is a directory with one file.
fn home_with_repository() -> Home {
    let home = home();
    home.write(".ssh/id_rsa", SECRET);
    home.write("p/.terraform/environment", "mine");
    home
}

fn run_in(home: &Home, dir: &str) -> Call {
    home.call(&["run", "--session", "s1", "--", "true"]).cwd(dir)
}

fn session_id(home: &Home) -> String {
    home.call(&["session", "show", "s1", "-ojson"]).ok().json()["id"].as_str().unwrap().to_owned()
}

/// The session's own directory among the tool state of a repository.
fn copy_in(home: &Home, dir: &str) -> PathBuf {
    home.path(dir).join(".terraform/sessile").join(session_id(home))
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Nothing in the repository holds the secret.
#[track_caller]
fn assert_no_secret_in(home: &Home, dir: &str) {
    let below = home.path(dir);
    for (path, content) in home.tree().into_iter().filter(|(path, _)| path.starts_with(&below)) {
        assert!(!String::from_utf8_lossy(&content).contains(SECRET), "{}", path.display());
    }
}

#[track_caller]
fn assert_warned(done: &CallResult, text: &str) {
    assert!(
        done.stderr().contains("warning: terraform: ") && done.stderr().contains(text),
        "{}",
        done.told()
    );
}

#[test]
fn links_in_tool_state_are_not_followed() {
    let home = home_with_repository();
    symlink(home.path(".ssh"), home.path("p/.terraform/dot")).unwrap();
    symlink("../../.ssh/id_rsa", home.path("p/.terraform/key")).unwrap();
    home.write("p/.terraform/deep/file", "deep");
    symlink(home.path(".ssh"), home.path("p/.terraform/deep/dot")).unwrap();
    symlink(home.path(".ssh"), home.path("p/.terraform/providers")).unwrap();
    let done = clean(run_in(&home, "p").ok());
    assert_no_secret_in(&home, "p");
    let copy = copy_in(&home, "p");
    assert_eq!(names(&copy), ["deep", "environment"]);
    assert_eq!(names(&copy.join("deep")), ["file"]);
    assert_eq!(home.read(copy.join("environment")), "mine");
    assert_warned(&done, "p/.terraform: 4 entries were not copied");
    // What was reported once is not repeated.
    assert_eq!(clean(run_in(&home, "p").ok()).stderr(), "");
    clean(home.call(&["session", "stop", "s1"]).ok());
    assert_eq!(home.read(".ssh/id_rsa"), SECRET);
    assert_eq!(names(&home.path("p/.terraform")), ["deep", "dot", "environment", "key", "providers"]);
}

#[test]
fn linked_tool_state_is_left_alone() {
    for target in ["../..", "../.ssh", "..", "/"] {
        let home = home();
        home.write(".ssh/id_rsa", SECRET);
        std::fs::create_dir(home.path("p")).unwrap();
        symlink(target, home.path("p/.terraform")).unwrap();
        let before = home.tree_of_people();
        let done = clean(run_in(&home, "p").ok());
        assert!(home.tree_of_people() == before, "{target}: something was written");
        assert_warned(&done, "p/.terraform is a symbolic link");
        assert_eq!(clean(run_in(&home, "p").ok()).stderr(), "", "reported once");
        clean(home.call(&["session", "stop", "s1"]).ok());
        assert!(home.tree_of_people() == before, "{target}: something was removed");
    }
}

#[test]
fn link_in_the_place_of_the_copy_is_not_written_through() {
    let home = home_with_repository();
    std::fs::create_dir(home.path("elsewhere")).unwrap();
    symlink(home.path("elsewhere"), home.path("p/.terraform/sessile")).unwrap();
    let before = home.tree_of_people();
    let done = clean(run_in(&home, "p").ok());
    assert!(home.tree_of_people() == before, "{}", done.told());
    assert_warned(&done, "p/.terraform/sessile");
}

#[test]
fn special_files_in_tool_state_are_left_out() {
    let home = home_with_repository();
    assert!(Command::new("mkfifo").arg(home.path("p/.terraform/pipe")).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(home.path("p/.terraform/socket")).unwrap();
    let done = clean(run_in(&home, "p").ok());
    assert_eq!(names(&copy_in(&home, "p")), ["environment"]);
    assert_warned(&done, "2 entries were not copied");
}

#[test]
fn oversized_tool_state_is_copied_up_to_a_bound() {
    let home = home_with_repository();
    let large = home.write("p/.terraform/large", "");
    std::fs::OpenOptions::new().write(true).open(large).unwrap().set_len(100 << 20).unwrap();
    for number in 0..3000 {
        home.write(format!("p/.terraform/many/{number}"), "x");
    }
    home.write(format!("p/.terraform/{}file", "d/".repeat(40)), "x");
    let done = clean(run_in(&home, "p").ok());
    let copy = copy_in(&home, "p");
    let copied: Vec<_> = home.tree().into_iter().filter(|(path, _)| path.starts_with(&copy)).collect();
    assert!(copied.len() < 400, "{}", copied.len());
    assert!(copied.iter().map(|(_, content)| content.len()).sum::<usize>() < 8 << 20);
    assert!(copied.iter().all(|(path, _)| path.strip_prefix(&copy).unwrap().components().count() < 10));
    assert_eq!(home.read(copy.join("environment")), "mine");
    assert_warned(&done, "were not copied");
}

#[test]
fn working_directory_without_tool_state_stays_as_it_is() {
    let home = home();
    home.write("p/main.tf", "");
    std::fs::create_dir_all(home.path("q/.terraform")).unwrap();
    home.write("r/.terraform", "a file");
    let before = home.tree_of_people();
    for dir in ["p", "q", "r"] {
        let done = clean(run_in(&home, dir).ok());
        assert_eq!(done.stderr().matches("warning").count(), 0, "{}", done.told());
        assert!(home.tree_of_people() == before, "{dir}");
    }
}

#[test]
fn ephemeral_run_leaves_tool_state_as_it_was() {
    let home = home_with_repository();
    home.write("p/.terraform/providers/x", "provider");
    symlink(home.path(".ssh"), home.path("p/.terraform/dot")).unwrap();
    let before = home.tree_of_people();
    let script = "find -L . -name id_rsa; cat \"$TF_DATA_DIR\"/environment \"$TF_DATA_DIR\"/providers/x";
    let done = clean(home.call(&["run", "--", "sh", "-c", script]).cwd("p").ok());
    assert_eq!(done.stdout(), "./.terraform/dot/id_rsa\nmineprovider");
    assert!(home.tree_of_people() == before);
}

#[test]
fn stopped_session_removes_nothing_through_a_link() {
    for replaced in ["p/.terraform/sessile", "p/.terraform"] {
        let home = home_with_repository();
        run_in(&home, "p").ok();
        let id = session_id(&home);
        // What stands in its place now is not the session's, whatever it is called.
        std::fs::rename(home.path(replaced), home.path("aside")).unwrap();
        home.write(format!("elsewhere/{id}/keep"), "keep");
        home.write(format!("elsewhere/sessile/{id}/keep"), "keep");
        symlink(home.path("elsewhere"), home.path(replaced)).unwrap();
        let before = home.tree_of_people();
        clean(home.call(&["session", "stop", "s1"]).ok());
        assert!(home.tree_of_people() == before, "{replaced}");
    }
}

#[test]
fn stopped_session_removes_nothing_through_a_parent_link() {
    for replaced in ["r/sub", "r"] {
        let home = home();
        home.write("r/sub/.terraform/environment", "mine");
        run_in(&home, "r/sub").ok();
        let id = session_id(&home);
        std::fs::rename(home.path(replaced), home.path("aside")).unwrap();
        home.write(format!("other/.terraform/sessile/{id}/precious"), "keep");
        home.write(format!("other/sub/.terraform/sessile/{id}/precious"), "keep");
        symlink(home.path("other"), home.path(replaced)).unwrap();
        let before = home.tree_of_people();
        let done = clean(home.call(&["session", "stop", "s1"]).ok());
        assert!(home.tree_of_people() == before, "{replaced}");
        assert!(done.stderr().contains("did not remove"), "{}", done.told());
    }
}

#[test]
fn stopped_session_keeps_a_replaced_directory() {
    let home = home_with_repository();
    run_in(&home, "p").ok();
    let id = session_id(&home);
    std::fs::rename(home.path("p"), home.path("aside")).unwrap();
    home.write(format!("p/.terraform/sessile/{id}/precious"), "keep");
    let before = home.tree_of_people();
    clean(home.call(&["session", "stop", "s1"]).ok());
    assert!(home.tree_of_people() == before);
}

#[test]
fn session_started_through_a_linked_directory_removes_its_copy() {
    let home = home_with_repository();
    symlink("p", home.path("link")).unwrap();
    let before = home.tree_of_people();
    run_in(&home, "link").env("PWD", home.path("link")).ok();
    assert!(copy_in(&home, "p").exists());
    clean(home.call(&["session", "stop", "s1"]).ok());
    assert!(home.tree_of_people() == before);
}

#[test]
fn stopped_session_removes_its_copy_and_no_link_target() {
    let home = home_with_repository();
    let before = home.tree_of_people();
    run_in(&home, "p").ok();
    let copy = copy_in(&home, "p");
    symlink(home.path(".ssh"), copy.join("dot")).unwrap();
    std::fs::create_dir_all(copy.join("a/b/c")).unwrap();
    clean(home.call(&["session", "stop", "s1"]).ok());
    assert!(home.tree_of_people() == before);
}

#[test]
fn link_in_the_place_of_the_copy_itself_is_not_removed_through() {
    let home = home_with_repository();
    run_in(&home, "p").ok();
    let copy = copy_in(&home, "p");
    std::fs::remove_dir_all(&copy).unwrap();
    symlink(home.path(".ssh"), &copy).unwrap();
    clean(home.call(&["session", "stop", "s1"]).ok());
    assert_eq!(home.read(".ssh/id_rsa"), SECRET);
}
