//! A full disk, a read-only directory, a read-only file system. Real ones, made with what util-linux has.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use testkit::{Call, Home};

use super::{clean, refused_call};
use crate::home;

/// A home of a user whom modes stop; root they do not.
pub(super) struct UnprivilegedUser {
    home: Home,
    program: tempfile::TempDir,
    uid: Option<u32>,
}

impl UnprivilegedUser {
    /// As root, this user; as anyone else, oneself.
    pub(super) fn new(uid: u32) -> Self {
        let is_root = rustix::process::geteuid().is_root();
        let bin = env!("CARGO_BIN_EXE_sessile");
        let program = tempfile::tempdir().unwrap();
        // The build directory may be closed to other users.
        std::fs::set_permissions(program.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::copy(bin, program.path().join("sessile")).unwrap();
        let home = Home::new(if is_root { "setpriv".into() } else { program.path().join("sessile") });
        let user = UnprivilegedUser { home, program, uid: is_root.then_some(uid) };
        user.own();
        user
    }

    /// Gives the user what tests have written.
    pub(super) fn own(&self) {
        if let Some(uid) = self.uid {
            let status =
                Command::new("chown").args(["-Rh", &format!("{uid}:{uid}")]).arg(self.home.dir()).status();
            assert!(status.unwrap().success());
        }
    }

    pub(super) fn modes(&self, path: impl AsRef<Path>, modes: &str) {
        let status = Command::new("chmod").args(["-R", modes]).arg(self.home.path(path)).status();
        assert!(status.unwrap().success());
    }

    pub(super) fn home(&self) -> &Home {
        &self.home
    }

    /// The same under a limit that the shell sets, as in `ulimit -u 0`.
    pub(super) fn limited(&self, limit: &str, args: &[&str]) -> Call {
        let script = format!("{limit} && exec \"$0\" \"$@\"");
        let (program, uid) = (self.program.path().join("sessile"), self.uid.unwrap_or_default());
        let ids = [format!("--reuid={uid}"), format!("--regid={uid}")];
        let user = ["setpriv", &ids[0], &ids[1], "--clear-groups"];
        let shell = ["/bin/bash", "-c", &script, program.to_str().unwrap()];
        let words = if self.uid.is_some() { [&user[..], &shell].concat() } else { shell.to_vec() };
        self.home.tool(words[0], &[&words[1..], args].concat())
    }

    pub(super) fn call(&self, args: &[&str]) -> Call {
        let Some(uid) = self.uid else { return self.home.call(args) };
        let program = self.program.path().join("sessile");
        let ids = [format!("--reuid={uid}"), format!("--regid={uid}")];
        let before = [&ids[0], &ids[1], "--clear-groups", program.to_str().unwrap()];
        self.home.call(&[&before[..], args].concat())
    }
}

#[test]
fn a_read_only_directory_is_an_error_and_reading_goes_on() {
    let user = UnprivilegedUser::new(65_534);
    user.home().write("p/.sessile/config.toml", "");
    user.own();
    user.call(&["context", "create", "a"]).ok();
    user.call(&["config", "set", "env.A", "1", "--global"]).ok();
    user.modes(".config/sessile", "a-w");
    user.modes("p", "a-w");
    for args in [
        &["config", "set", "env.A", "2", "--global"][..],
        &["config", "unset", "env.A", "--global"],
        &["context", "create", "b"],
        &["context", "rename", "a", "b"],
        &["context", "delete", "a", "--yes"],
        &["context", "edit", "a", "--env", "A=1"],
    ] {
        // The store may be made before a file is refused; it is compared by what it says.
        user.call(&["context", "current"]).run();
        let done = clean(user.call(args).arg("--output=json").run()).exit(1);
        assert_eq!(done.code(), "IO", "{}", done.told());
        let error = done.json_error();
        assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("owner and mode")), "{error}");
    }
    let said = || user.call(&["history", "--output", "json"]).ok().json();
    let before = (user.home().tree_of_people(), said());
    for args in [&["config", "set", "env.A", "2", "--dir"][..], &["context", "create", "b", "--project"]] {
        let done = clean(user.call(args).cwd("p").arg("--output=json").run()).exit(1);
        assert_eq!(done.code(), "IO", "{}", done.told());
    }
    assert_eq!((user.home().tree_of_people(), said()), before);
    let names = user.call(&["context", "list", "--output", "json"]).ok().json();
    assert_eq!(names.as_array().unwrap().len(), 1);
    assert_eq!(user.call(&["config", "get", "env.A"]).ok().stdout(), "1\n");
    user.modes(".config/sessile", "u+w");
    user.modes("p", "u+w");
}

#[test]
fn a_file_that_may_not_be_read_is_an_error() {
    let user = UnprivilegedUser::new(65_534);
    user.call(&["config", "set", "env.A", "1", "--global"]).ok();
    user.modes(".config/sessile/config.toml", "a-rwx");
    for args in [&["status"][..], &["config", "set", "env.A", "2", "--global"], &["config", "get", "env.A"]] {
        refused_call(user.home(), || user.call(args), "IO");
    }
}

/// Runs a script in a mount namespace of its own, where `$D` is a small file system that only it sees.
fn on_a_small_disk(script: &str) -> String {
    on_a_disk("size=400k", script)
}

/// The same with options of tmpfs.
pub(super) fn on_a_disk(options: &str, script: &str) -> String {
    let home = home();
    std::fs::create_dir(home.path("disk")).unwrap();
    let program = home.program().to_owned();
    let around = Home::new("unshare");
    let script = format!(
        "set -u; D={0}/disk; mount -t tmpfs -o {options},mode=700 tmpfs $D || exit 99
         export HOME=$D; cd $D
         says() {{ code=$1; want=$2; shift 2
           out=$(\"$BIN\" \"$@\" --output json 2>&1 >/dev/null); got=$?
           [ $got = $want ] && case $out in *$code*) true;; *) false;; esac || {{
             echo \"WRONG exit $got instead of $want $code: $* : $out\"; }}
           case $out in *panicked*) echo \"PANIC $*\";; esac; }}
         {script}",
        home.dir().display()
    );
    let done = around.call(&["-rm", "/bin/sh", "-c", &script]).env("BIN", program).run();
    assert_eq!(done.status(), Some(0), "unshare and mount are needed: {}", done.told());
    let told = done.stdout() + &done.stderr();
    assert!(!told.contains("WRONG") && !told.contains("PANIC"), "{told}");
    told
}

const FILLED: &str = "
    \"$BIN\" context create a --env A=1 >/dev/null 2>&1
    \"$BIN\" context create b >/dev/null 2>&1
    \"$BIN\" context use a --global >/dev/null 2>&1
    mkdir -p p/.sessile; echo \"env.A = 'x'\" > p/.sessile/config.toml
    \"$BIN\" trust p --yes >/dev/null 2>&1 || echo WRONG setup
    cat /dev/zero > fill 2>/dev/null
    find .config -type f -exec sha256sum {} + | sort > /dev/shm/before.$$
    ";

#[test]
fn a_full_disk_is_an_error_that_changes_nothing() {
    on_a_small_disk(&format!(
        "{FILLED}
         long=$(head -c 20000 /dev/zero | tr '\\0' x)
         says DISK_FULL 1 config set env.A $long --global
         says DISK_FULL 1 config set env.A 1 --dir
         says DISK_FULL 1 context create c --description $long
         says DISK_FULL 1 context use b --global
         says DISK_FULL 1 context rename a z
         says DISK_FULL 1 trust p --yes
         says DISK_FULL 1 context export --all --file exported.toml
         find .config -type f -exec sha256sum {{}} + | sort | cmp - /dev/shm/before.$$ || echo WRONG changed
         rm -f /dev/shm/before.$$
         find . -name .sessile-tmp | grep . && echo WRONG temporary file
         \"$BIN\" context current | grep -qx a || echo WRONG context
         \"$BIN\" status >/dev/null || echo WRONG status
         \"$BIN\" context list >/dev/null || echo WRONG list
         (cd p && \"$BIN\" config get env.A | grep -qx x) || echo WRONG trust
         rm fill
         \"$BIN\" context use b --global >/dev/null 2>&1 || echo WRONG after
         \"$BIN\" context use - --global >/dev/null 2>&1 || echo WRONG back
         \"$BIN\" context current | grep -qx a || echo WRONG context after
         \"$BIN\" doctor || echo WRONG doctor"
    ));
}

/// The disk is filled while the agent works: its reply is printed, and the task is found again.
#[test]
fn a_disk_that_fills_during_a_delivery_loses_no_reply() {
    on_a_disk(
        "size=2m",
        "\"$BIN\" agent demo --port 0 > agent.out & agent=$!
         for i in $(seq 600); do grep -q http agent.out && break; sleep 0.05; done
         url=$(grep -o 'http://[0-9.:]*' agent.out | head -1)
         \"$BIN\" session start --name w >/dev/null 2>&1
         \"$BIN\" message send $url 'slow 3s the end' --session w > ../out 2> ../err & send=$!
         for i in $(seq 600); do
           \"$BIN\" conversation list --session w -ojson 2>/dev/null | grep -q 'task_id\": \"' && break; sleep 0.05
         done
         cat /dev/zero > fill 2>/dev/null; cat /dev/zero >> fill 2>/dev/null
         wait $send; got=$?
         [ $got = 3 ] || { rm fill; echo WRONG exit $got; cat ../err; }
         rm -f fill
         grep -qx 'the end' ../out || { echo WRONG reply; cat ../out; }
         grep -q 'delivered, but the conversation was not saved' ../err || { echo WRONG; cat ../err; }
         \"$BIN\" task watch --session w 2>&1 | grep -q 'the end' || echo WRONG watch
         kill $agent",
    );
}

/// A fresh home on a full disk: the first command makes directories, and can make nothing in them.
#[test]
fn a_full_disk_in_a_fresh_home_is_an_error_and_is_got_over() {
    on_a_small_disk(
        "cat /dev/zero > fill 2>/dev/null
         says DISK_FULL 1 context create a --env A=1
         says DISK_FULL 1 config set env.A 1 --global
         \"$BIN\" status >/dev/null || echo WRONG status
         rm fill
         \"$BIN\" context create a >/dev/null 2>&1 || echo WRONG create
         cat /dev/zero > fill 2>/dev/null
         says DISK_FULL 1 context use a --global
         \"$BIN\" status >/dev/null || echo WRONG status with half a store
         rm fill
         \"$BIN\" context use a --global >/dev/null 2>&1 || echo WRONG use
         \"$BIN\" doctor || echo WRONG doctor",
    );
}

#[test]
fn a_read_only_file_system_is_an_error_and_reading_goes_on() {
    on_a_small_disk(&format!(
        "{FILLED} rm fill
         mount -o remount,ro $D || exit 99
         says IO 1 config set env.A 1 --global
         says IO 1 config set env.A 1 --dir
         says IO 1 context create c
         says IO 1 context use b --global
         says IO 1 context rename a z
         says IO 1 context delete b --yes
         says IO 1 trust p --yes
         \"$BIN\" context current | grep -qx a || echo WRONG context
         \"$BIN\" status >/dev/null || echo WRONG status
         (cd p && \"$BIN\" config get env.A | grep -qx x) || echo WRONG trust
         \"$BIN\" doctor >/dev/null || echo WRONG doctor
         mount -o remount,rw $D
         find .config -type f -exec sha256sum {{}} + | sort | cmp - /dev/shm/before.$$ || echo WRONG changed
         rm -f /dev/shm/before.$$"
    ));
}
