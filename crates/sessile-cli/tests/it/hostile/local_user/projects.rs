//! Project directories and files of other users.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use testkit::Home;

use super::super::system::UnprivilegedUser;
use super::super::{clean, refused_call};
use crate::{home, home_with};

/// Another user, who has no processes and no home.
const OTHER: u32 = 65_533;

/// Gives a path, and what is in it, to another user; links themselves, not what they lead to.
#[track_caller]
fn give_to(uid: u32, path: &Path) {
    let mut chown = if rustix::process::geteuid().is_root() {
        Command::new("chown")
    } else {
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "chown"]);
        sudo
    };
    let status = chown.args(["-Rh", &format!("{uid}:{uid}")]).arg(path).status();
    assert!(status.is_ok_and(|status| status.success()), "changing owners needs root or sudo");
}

/// Gives everything back, so that the home can be removed in the end.
struct OwnerGuard<'a>(&'a Home);

impl Drop for OwnerGuard<'_> {
    fn drop(&mut self) {
        give_to(rustix::process::geteuid().as_raw(), &self.0.dir());
    }
}

fn mode(home: &Home, path: &str, mode: u32) {
    std::fs::set_permissions(home.path(path), std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A directory that everybody may write to, with a project of another user in it and work of ours below it.
fn shared(home: &Home, settings: &str) {
    home.write("shared/.sessile/config.toml", settings);
    home.write("shared/.sessile/contexts/dev.toml", "guard = = \n");
    home.write("shared/.sessile/tools/x.toml", "name = = \n");
    home.write("shared/work/file", "");
    mode(home, "shared", 0o1777);
    mode(home, "shared/.sessile", 0o700);
    give_to(OTHER, &home.path("shared/.sessile"));
}

#[test]
fn foreign_project_in_a_shared_parent_directory_does_not_count() {
    let home = home_with(&["dev"]);
    home.write(".config/sessile/config.toml", "context = \"dev\"\n");
    let _returned = OwnerGuard(&home);
    for settings in
        ["context = = \n", "context = \"evil\"\nlock-timeout = \"1ms\"\n", "expect-context = \"x\"\n"]
    {
        shared(&home, settings);
        for args in [
            &["run", "--", "true"][..],
            &["context", "current", "--check"],
            &["context", "list"],
            &["config", "show"],
            &["tool", "list"],
            &["prompt"],
        ] {
            let done = clean(home.call(args).cwd("shared/work").ok());
            assert_eq!(done.stderr(), home.call(args).ok().stderr(), "{}", done.told());
        }
        let done = home.call(&["config", "get", "lock-timeout"]).cwd("shared/work").ok();
        assert_eq!(done.stdout(), "5s\n");
        give_to(rustix::process::geteuid().as_raw(), &home.path("shared"));
        std::fs::remove_dir_all(home.path("shared")).unwrap();
    }
}

#[test]
fn foreign_project_is_reported_by_status_and_doctor() {
    let home = home();
    let _returned = OwnerGuard(&home);
    shared(&home, "context = = \n");
    let status = home.call(&["status", "--output", "json"]).cwd("shared/work").ok();
    assert!(status.json()["project"].is_null(), "{}", status.told());
    let notes = [
        home.call(&["status"]).cwd("shared/work").ok().stderr(),
        home.call(&["context", "list", "--verbose"]).cwd("shared/work").ok().stderr(),
        clean(home.call(&["doctor"]).cwd("shared/work").ok()).stdout(),
    ];
    for note in notes {
        assert!(note.contains("shared/.sessile") && note.contains(&OTHER.to_string()), "{note}");
    }
}

/// Whoever works in somebody else's project should know that it does not count.
#[test]
fn foreign_project_outside_a_shared_directory_is_warned_of() {
    let home = home_with(&["mine"]);
    let _returned = OwnerGuard(&home);
    home.write(".config/sessile/config.toml", "context = \"mine\"\n");
    home.write("p/.sessile/config.toml", "context = \"theirs\"\n");
    home.write("p/sub/file", "");
    give_to(OTHER, &home.path("p/.sessile"));
    for cwd in ["p", "p/sub"] {
        let done = clean(home.call(&["context", "current"]).cwd(cwd).ok());
        assert_eq!(done.stdout(), "mine\n");
        assert!(done.stderr().contains("p/.sessile: owned by user 65533"), "{}", done.told());
    }
    refused_call(&home, || home.call(&["trust", "p", "--yes"]), "PROJECT_FILE_UNSAFE");
    refused_call(&home, || home.call(&["trust", "--yes"]).cwd("p/sub"), "PROJECT_FILE_UNSAFE");
    home.call(&["context", "create", "other"]).ok();
    for args in [&["config", "set", "color", "never", "--dir"][..], &["context", "create", "x", "--project"]]
    {
        refused_call(&home, || home.call(args).cwd("p"), "PROJECT_FILE_UNSAFE");
    }
}

#[test]
fn project_of_ones_own_above_a_foreign_one_counts() {
    let home = home();
    let _returned = OwnerGuard(&home);
    home.write("p/.sessile/config.toml", "lock-timeout = \"9s\"\n");
    home.write("p/shared/.sessile/config.toml", "lock-timeout = \"1s\"\n");
    home.write("p/shared/work/file", "");
    mode(&home, "p/shared", 0o1777);
    give_to(OTHER, &home.path("p/shared/.sessile"));
    let done = home.call(&["config", "get", "lock-timeout"]).cwd("p/shared/work").ok();
    assert_eq!(done.stdout(), "9s\n");
}

#[test]
fn own_project_below_a_foreign_one_is_made_and_counts() {
    let home = home_with(&["dev"]);
    let _returned = OwnerGuard(&home);
    shared(&home, "context = = \n");
    home.call(&["context", "use", "dev", "--dir"]).cwd("shared/work").ok();
    assert_eq!(home.call(&["context", "current"]).cwd("shared/work").ok().stdout(), "dev\n");
    assert!(home.path("shared/work/.sessile/local.toml").is_file());
}

#[test]
fn foreign_link_in_the_place_of_a_project_does_not_count() {
    let home = home();
    let _returned = OwnerGuard(&home);
    home.write("own/config.toml", "lock-timeout = = \n");
    home.write("shared/work/file", "");
    symlink("../own", home.path("shared/.sessile")).unwrap();
    mode(&home, "shared", 0o1777);
    give_to(OTHER, &home.path("shared/.sessile"));
    let done = clean(home.call(&["run", "--", "true"]).cwd("shared/work").ok());
    assert_eq!(done.stderr(), home.call(&["run", "--", "true"]).ok().stderr());
}

#[test]
fn foreign_file_in_an_own_project_is_refused() {
    let home = home();
    let _returned = OwnerGuard(&home);
    for (at, args) in [
        ("config.toml", &["status"][..]),
        ("local.toml", &["prompt"]),
        ("contexts/x.toml", &["context", "show", "x"]),
        ("contexts", &["context", "list"]),
        ("tools/x.toml", &["tool", "list"]),
    ] {
        home.write("p/.sessile/contexts/x.toml", "description = \"theirs\"\n");
        home.write("p/.sessile/tools/x.toml", "name = \"x\"\n");
        for file in ["config.toml", "local.toml"] {
            home.write(format!("p/.sessile/{file}"), "color = \"never\"\n");
        }
        give_to(OTHER, &home.path("p/.sessile").join(at));
        let error = refused_call(&home, || home.call(args).cwd("p"), "PROJECT_FILE_UNSAFE");
        assert!(error["message"].as_str().unwrap().contains("owned by user 65533"), "{error}");
        refused_call(&home, || home.call(&["trust", "--yes"]).cwd("p"), "PROJECT_FILE_UNSAFE");
        give_to(rustix::process::geteuid().as_raw(), &home.path("p"));
        std::fs::remove_dir_all(home.path("p")).unwrap();
    }
}

/// The administrator's files are as good as one's own.
#[test]
fn project_of_root_counts_for_everyone() {
    let user = UnprivilegedUser::new(65_534);
    let home = user.home();
    home.write("p/.sessile/config.toml", "lock-timeout = \"9s\"\n");
    give_to(0, &home.path("p"));
    let done = user.call(&["config", "get", "lock-timeout"]).cwd("p").ok();
    assert_eq!(done.stdout(), "9s\n");
    give_to(rustix::process::geteuid().as_raw(), &home.path("p"));
}
