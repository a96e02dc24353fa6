//! State directories, stores and vaults that other users own or can write to.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use testkit::Call;

use super::super::clean;
use super::super::system::UnprivilegedUser;

const USER: u32 = 65_534;
const OTHER: u32 = 65_533;

/// Gives a path to a user and a group. Only root can; the tests fail where they are run by anyone else.
fn give(path: &Path, owner: u32, group: u32, mode: u32) {
    std::os::unix::fs::lchown(path, Some(owner), Some(group)).unwrap();
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn make_dir(path: &Path, owner: u32, group: u32, mode: u32) {
    std::fs::create_dir(path).unwrap();
    give(path, owner, group, mode);
}

/// A user with a file `shared/ci.json` in a directory where everybody may create files.
fn user_in_a_shared_directory() -> UnprivilegedUser {
    let user = UnprivilegedUser::new(USER);
    user.home().write("shared/ci.json", "{}");
    user.own();
    give(&user.home().path("shared"), 0, 0, 0o1777);
    user
}

/// Every command that uses the state fails, names the path, and writes nothing.
#[track_caller]
fn is_refused_with(user: &UnprivilegedUser, code: &str, named: &Path, prepare: impl Fn(Call) -> Call) {
    let before = user.home().tree();
    for args in [
        &["session", "start"][..],
        &["session", "list"],
        &["env", "--session", "web"],
        &["auth", "list"],
        &["auth", "set", "bot", "--secret-stdin"],
        &["lock", "list"],
        &["context", "create", "a"],
        &["trust", "--list"],
    ] {
        let done = clean(prepare(user.call(args)).arg("--output=json").stdin("hunter2").run());
        let error = done.json_error();
        assert_eq!(error["code"], code, "{args:?}: {}", done.told());
        assert!(done.stderr().contains(named.to_str().unwrap()), "{args:?}: {}", done.told());
        assert!(error["hint"].is_string(), "{args:?}: {error}");
    }
    let doctor = clean(prepare(user.call(&["doctor"])).run()).exit(1);
    assert!(doctor.stdout().contains(named.to_str().unwrap()), "{}", doctor.told());
    assert!(user.home().tree() == before, "something was written");
}

#[track_caller]
fn is_refused(user: &UnprivilegedUser, named: &Path, prepare: impl Fn(Call) -> Call) {
    is_refused_with(user, "FILE_WRITABLE", named, prepare);
}

#[test]
fn state_of_a_config_file_prepared_by_another_user_is_refused() {
    let user = user_in_a_shared_directory();
    let state = user.home().path("shared/ci.json.state");
    let in_file = |call: Call| call.args(&["--config", "shared/ci.json"]);
    make_dir(&state, OTHER, OTHER, 0o777);
    is_refused(&user, &state, in_file);
    give(&state, OTHER, OTHER, 0o755);
    is_refused(&user, &state, in_file);
    // The other user's store in it.
    let elsewhere = user.home().path("made");
    user.call(&["session", "start", "--name", "web"]).env("SESSILE_STATE_DIR", &elsewhere).ok();
    std::fs::copy(elsewhere.join("state.db"), state.join("state.db")).unwrap();
    give(&state.join("state.db"), OTHER, OTHER, 0o666);
    is_refused(&user, &state, in_file);
    give(&state, USER, USER, 0o1700);
    let done = clean(in_file(user.call(&["session", "list", "-ojson"])).run());
    assert_eq!(done.code(), "FILE_WRITABLE", "{}", done.told());
    assert!(done.stderr().contains(state.join("state.db").to_str().unwrap()), "{}", done.told());
    give(&state.join("state.db"), USER, USER, 0o1600);
    user.call(&["session", "list", "--config", "shared/ci.json"]).ok();
}

#[test]
fn state_directory_that_others_can_write_is_refused() {
    let user = UnprivilegedUser::new(USER);
    let state = user.home().path("state");
    make_dir(&state, USER, USER, 0o700);
    let in_dir = |call: Call| call.env("SESSILE_STATE_DIR", &state);
    let in_xdg = |call: Call| call.env("XDG_STATE_HOME", user.home().dir());
    for (owner, group, mode) in [
        (USER, USER, 0o777),
        (USER, USER, 0o1777),
        (USER, OTHER, 0o770),
        (OTHER, USER, 0o770),
        (OTHER, OTHER, 0o755),
        (0, 0, 0o1777),
    ] {
        give(&state, owner, group, mode);
        is_refused(&user, &state, in_dir);
    }
    make_dir(&user.home().path("sessile"), OTHER, OTHER, 0o777);
    is_refused(&user, &user.home().path("sessile"), in_xdg);
    // The group of the user alone, and readers, are no reason.
    give(&state, USER, USER, 0o775);
    in_dir(user.call(&["session", "start", "--name", "web"])).ok();
    for mode in [0o666, 0o660] {
        give(&state.join("state.db"), USER, OTHER, mode);
        let done = in_dir(user.call(&["session", "list", "-ojson"])).run();
        assert_eq!(done.code(), "FILE_WRITABLE", "{}", done.told());
    }
    give(&state.join("state.db"), USER, OTHER, 0o640);
    in_dir(user.call(&["session", "list"])).ok();
}

#[test]
fn vault_that_others_own_or_can_write_is_refused() {
    let user = UnprivilegedUser::new(USER);
    user.call(&["auth", "set", "bot", "--secret-stdin"]).stdin("hunter2").ok();
    let vault = user.home().path(".local/state/sessile/vault");
    for (owner, mode) in [(OTHER, 0o755), (USER, 0o777)] {
        give(&vault, owner, owner, mode);
        for args in [&["auth", "list"][..], &["auth", "set", "b", "--secret-stdin"]] {
            let done = clean(user.call(args).arg("-ojson").stdin("hunter3").run());
            assert_eq!(done.code(), "FILE_WRITABLE", "{}", done.told());
            assert!(done.stderr().contains(vault.to_str().unwrap()), "{}", done.told());
        }
    }
    give(&vault, USER, USER, 0o700);
    user.call(&["auth", "list"]).ok();
}

/// A call of a user whose tools find a place for their sockets.
fn call(user: &UnprivilegedUser, args: &[&str]) -> Call {
    user.call(args).env("TMPDIR", "/tmp")
}

/// A user with a session `web`, a secret and a lock that was held, in the usual state directory.
fn user_with_state() -> (UnprivilegedUser, std::path::PathBuf) {
    let user = UnprivilegedUser::new(USER);
    user.call(&["session", "start", "--name", "web"]).ok();
    user.call(&["auth", "set", "bot", "--secret-stdin"]).stdin("hunter2").ok();
    user.call(&["lock", "run", "deploy", "--", "true"]).ok();
    user.call(&["context", "create", "old"]).ok();
    let state = user.home().path(".local/state/sessile");
    (user, state)
}

#[test]
fn state_file_that_others_own_or_can_write_is_refused() {
    let (user, state) = user_with_state();
    for (name, is_dir, args) in [
        ("vault/credentials", false, &["auth", "list"][..]),
        ("vault/credentials", false, &["auth", "set", "b", "--secret-stdin"]),
        ("state.db-wal", false, &["session", "start"]),
        ("state.db-shm", false, &["session", "start"]),
        ("state.db-journal", false, &["session", "start"]),
        ("tickets", true, &["lock", "run", "deploy", "--", "true"]),
        ("rooms", true, &["session", "start"]),
        ("rooms", true, &["session", "gc"]),
        ("rooms", true, &["run", "--session", "web", "--", "true"]),
        ("intents", true, &["context", "rename", "old", "new"]),
    ] {
        let path = state.join(name);
        let exists = path.exists();
        if !exists && is_dir {
            std::fs::create_dir(&path).unwrap();
        } else if !exists {
            std::fs::write(&path, "").unwrap();
        }
        let mode = if is_dir { 0o777 } else { 0o666 };
        for (owner, group, mode) in [(OTHER, OTHER, mode), (USER, USER, mode), (USER, OTHER, mode & 0o770)] {
            give(&path, owner, group, mode);
            let done = clean(call(&user, args).env("SESSILE_OUTPUT", "json").stdin("hunter3").run());
            assert_eq!(done.code(), "FILE_WRITABLE", "{name} {args:?}: {}", done.told());
            assert!(done.stderr().contains(path.to_str().unwrap()), "{name} {args:?}: {}", done.told());
        }
        give(&path, USER, USER, if is_dir { 0o700 } else { 0o600 });
        if !exists && !is_dir {
            std::fs::remove_file(&path).unwrap();
        }
        call(&user, args).stdin("hunter3").ok();
    }
}

#[test]
fn room_of_another_user_is_refused() {
    let (user, state) = user_with_state();
    let room = std::fs::read_dir(state.join("rooms")).unwrap().next().unwrap().unwrap().path();
    let run = || call(&user, &["run", "--session", "web", "-ojson", "--", "true"]);
    run().ok();
    for (owner, mode) in [(OTHER, 0o777), (USER, 0o777)] {
        give(&room, owner, owner, mode);
        assert_eq!(clean(run().run()).code(), "ROOM_UNSAFE");
    }
    give(&room, USER, USER, 0o700);
    run().ok();
}

#[test]
fn state_directory_from_a_checkout_is_refused() {
    let user = UnprivilegedUser::new(USER);
    user.home().write("clone/ci.json", "{}");
    let state = user.home().path("clone/ci.json.state");
    user.own();
    let in_file = |call: Call| call.args(&["--config", "clone/ci.json"]);
    in_file(user.call(&["session", "start", "--name", "web"])).ok();
    for mode in [0o755, 0o750, 0o711, 0o700, 0o1755] {
        give(&state, USER, USER, mode);
        is_refused_with(&user, "PROJECT_FILE_UNSAFE", &state, in_file);
    }
    give(&state, USER, USER, 0o1700);
    in_file(user.call(&["session", "list"])).ok();
}

#[test]
fn linked_state_directory_of_a_config_file_is_refused() {
    let user = UnprivilegedUser::new(USER);
    user.home().write("clone/ci.json", "{}");
    user.home().write("app/state.db", "not ours");
    symlink("../app", user.home().path("clone/ci.json.state")).unwrap();
    user.own();
    let link = user.home().path("clone/ci.json.state");
    let in_file = |call: Call| call.args(&["--config", "clone/ci.json"]);
    is_refused_with(&user, "PROJECT_FILE_UNSAFE", &link, in_file);
    std::fs::remove_file(user.home().path("app/state.db")).unwrap();
    is_refused_with(&user, "PROJECT_FILE_UNSAFE", &link, in_file);
    // A link that the user made for the usual directory is followed.
    std::fs::create_dir_all(user.home().path(".local/state")).unwrap();
    symlink("../../app", user.home().path(".local/state/sessile")).unwrap();
    user.own();
    user.call(&["session", "start"]).ok();
}

#[test]
fn link_of_another_user_to_the_state_directory_is_refused() {
    let user = UnprivilegedUser::new(USER);
    std::fs::create_dir_all(user.home().path("own")).unwrap();
    user.own();
    give(&user.home().path("own"), USER, USER, 0o700);
    std::fs::create_dir(user.home().path("shared")).unwrap();
    give(&user.home().path("shared"), 0, 0, 0o1777);
    let link = user.home().path("shared/sessile");
    symlink("../own", &link).unwrap();
    let in_link = |call: Call| call.env("SESSILE_STATE_DIR", &link);
    std::os::unix::fs::lchown(&link, Some(OTHER), Some(OTHER)).unwrap();
    is_refused(&user, &link, in_link);
    std::os::unix::fs::lchown(&link, Some(USER), Some(USER)).unwrap();
    in_link(user.call(&["session", "start"])).ok();
}
