//! The spare room: the next ephemeral session takes it over only if a new preparation would give the same.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::time::Duration;

use testkit::{Call, Home};

use crate::durability::crash::Killer;
use crate::isolation::run::kubeconfig;
use crate::{home, live};

const ROOMS: &str = ".local/state/sessile/rooms";

/// Prints what a command can see of its session: id, room, copies.
const LOOK: &str =
    r#"room=${KUBECONFIG%/kube/config}; echo "$SESSILE_SESSION"; stat -c %i "$room"; cat "$KUBECONFIG""#;

fn run(home: &Home, script: &str) -> Call {
    home.call(&["run", "--", "sh", "-c", script])
}

fn spare(home: &Home) -> PathBuf {
    home.path(ROOMS).join("spare")
}

/// A home with some state, old enough that a room that was prepared from it can be kept.
fn furnished() -> Home {
    let home = home();
    home.write(".kube/config", kubeconfig(&["one", "two"]));
    home.write(".docker/config.json", "{}\n");
    home.write(".config/gh/hosts.yml", "github.com:\n    user: alice\n");
    home.write(".gitconfig", "[user]\n\tname = me\n");
    settle();
    home
}

/// Waits until changes of files are old enough.
fn settle() {
    std::thread::sleep(Duration::from_millis(150));
}

/// Leaves a spare room.
fn leave_spare(home: &Home) -> u64 {
    settle();
    run(home, "true").ok();
    spare(home).metadata().unwrap().ino()
}

/// Inode of the room in which a script runs.
fn room_of(home: &Home, flags: &[&str]) -> u64 {
    let script = ["--", "sh", "-c", "stat -c %i \"${KUBECONFIG%/kube/config}\""];
    let seen = home.call(&["run"]).args(flags).args(&script).ok().stdout();
    seen.trim().parse().unwrap()
}

#[test]
fn unchanged_room_is_taken_over_with_the_new_id() {
    let home = furnished();
    let room = leave_spare(&home);
    assert_eq!(spare(&home).metadata().unwrap().permissions().mode() & 0o777, 0o700);
    assert!(live(&home).is_empty());
    let mut ids = Vec::new();
    for _ in 0..3 {
        let script = format!(
            "{LOOK}; cd \"$room\"; grep -c \"$SESSILE_SESSION\" plan.json copies.json \"$BASH_ENV\" >&2
             env >> ../../seen; cat plan.json copies.json \"$BASH_ENV\" \"$ZDOTDIR\"/.z* >> ../../seen
             readlink sockets >> ../../seen; test -d sockets; ls -R . > /dev/null; cat xdg/config/gh/hosts.yml >&2
             \"$0\" session list -ojson >&2"
        );
        let done = home.call(&["run", "--", "sh", "-c", &script, home.program().to_str().unwrap()]).ok();
        let mut lines = done.stdout().lines().map(str::to_owned).collect::<Vec<_>>();
        let (id, inode) = (lines.remove(0), lines.remove(0));
        assert_eq!(inode, room.to_string(), "{}", done.told());
        assert!(lines.join("\n").contains("name: two"), "{}", done.told());
        assert!(done.stderr().contains("user: alice") && done.stderr().contains(&id), "{}", done.told());
        let seen = home.read(".local/state/sessile/seen");
        for old in &ids {
            let old: &String = old;
            assert!(!seen.contains(old) && !seen.contains(&old[24..]), "{old} in {seen}");
        }
        std::fs::remove_file(home.path(".local/state/sessile/seen")).unwrap();
        assert!(!ids.contains(&id));
        ids.push(id);
    }
}

#[test]
fn changed_sources_are_copied_again() {
    let home = furnished();
    let kubeconfigs = [kubeconfig(&["two", "one"]), kubeconfig(&["one", "two"])];
    let seen = |script: &str| run(&home, script).ok().stdout();
    for (number, text) in kubeconfigs.iter().enumerate() {
        let room = leave_spare(&home);
        // The same size.
        home.write(".kube/config", text);
        assert!(seen("cat $KUBECONFIG").contains(text.lines().nth(2).unwrap()), "{number}");
        settle();
        assert_ne!(room_of(&home, &[]), room);
    }
    // Another file of the same content, one that was missing, a new entry, a link to elsewhere, one that is gone.
    type Change<'a> = (&'a str, &'a dyn Fn(), &'a str, &'a str);
    let write = |path: &str, text: &str| home.write(path, text);
    let changes: [Change<'_>; 6] = [
        (
            "new file",
            &|| drop(write(".aws/config", "[profile new]\n")),
            "cat $AWS_CONFIG_FILE",
            "[profile new]",
        ),
        ("new entry", &|| drop(write(".docker/extra", "text")), "ls $DOCKER_CONFIG", "extra"),
        ("changed entry", &|| drop(write(".docker/extra", "TEXT")), "cat $DOCKER_CONFIG/extra", "TEXT"),
        (
            "link",
            &|| {
                write("elsewhere", "[user]\n\tname = me\n");
                std::fs::remove_file(home.path(".gitconfig")).unwrap();
                std::os::unix::fs::symlink(home.path("elsewhere"), home.path(".gitconfig")).unwrap();
            },
            "cat $GIT_CONFIG_GLOBAL",
            "name = me",
        ),
        (
            "target of a link",
            &|| drop(write("elsewhere", "[user]\n\tname = ME\n")),
            "cat $GIT_CONFIG_GLOBAL",
            "name = ME",
        ),
        (
            "settings of others",
            &|| drop(write(".config/other/x", "hello")),
            "cat $XDG_CONFIG_HOME/other/x",
            "hello",
        ),
    ];
    for (what, change, script, wanted) in changes {
        let room = leave_spare(&home);
        assert_eq!(room_of(&home, &[]), room, "{what}");
        change();
        let text = seen(script);
        assert!(text.contains(wanted), "{what}: {text}");
    }
    let room = leave_spare(&home);
    std::fs::remove_file(home.path(".config/gh/hosts.yml")).unwrap();
    assert_eq!(seen("ls $GH_CONFIG_DIR"), "");
    settle();
    assert_ne!(room_of(&home, &[]), room);
}

#[test]
fn room_with_a_change_is_not_kept() {
    let home = furnished();
    leave_spare(&home);
    for change in [
        "echo x >> $KUBECONFIG",
        "printf '#' | dd of=$KUBECONFIG conv=notrunc 2>/dev/null",
        "chmod 644 $KUBECONFIG",
        "cp $KUBECONFIG k; rm $KUBECONFIG; cat k > $KUBECONFIG; rm k",
        "rm $DOCKER_CONFIG/config.json",
        "touch ${KUBECONFIG%config}new",
        "mkdir ${KUBECONFIG%/kube/config}/new",
        "touch $DOCKER_CONFIG/config.json",
        "ln $KUBECONFIG hard; rm -f hard",
        "chmod 755 ${KUBECONFIG%/kube/config}",
        "chmod 755 ${KUBECONFIG%/config}",
        "sed -i s/one/eno/ ${KUBECONFIG%/kube/config}/plan.json",
        "echo export A=1 >> $BASH_ENV",
        "rm ${KUBECONFIG%/kube/config}/sockets",
        "touch ${KUBECONFIG%/kube/config}/running/new",
        "rm -r ${KUBECONFIG%/kube/config}/xdg",
    ] {
        let room = leave_spare(&home);
        run(&home, change).ok();
        // Another one is prepared; a removed inode may get its number.
        let found = spare(&home).metadata().map(|found| found.ino()).ok();
        assert_eq!(found, None, "{change}: {room}");
        let seen = run(&home, LOOK).ok().stdout();
        assert!(
            seen.contains("current-context: \"one\"") || seen.contains("current-context: one"),
            "{change}: {seen}"
        );
    }
}

#[test]
fn other_inputs_have_a_room_of_their_own() {
    let home = furnished();
    home.write("other", kubeconfig(&["other"]));
    home.write(".config/sessile/contexts/staging.toml", "[tools.kubectl]\ncontext = \"two\"\n");
    settle();
    let seen = |flags: &[&str]| {
        home.call(&["run"])
            .args(flags)
            .args(&["--", "sh", "-c", "grep current-context $KUBECONFIG"])
            .ok()
            .stdout()
    };
    for _ in 0..2 {
        assert!(seen(&[]).contains("one"));
        assert!(seen(&["--context", "staging"]).contains("two"));
        assert!(seen(&["--context", "staging"]).contains("two"));
    }
    let room = leave_spare(&home);
    let variable = home.path("other").to_str().unwrap().to_owned();
    let other = run(&home, "cat $KUBECONFIG").env("KUBECONFIG", &variable).ok().stdout();
    assert!(other.contains("other"), "{other}");
    assert_ne!(spare(&home).metadata().unwrap().ino(), room, "the last room is the spare one");
    let room = leave_spare(&home);
    for flags in [&["--isolate", "home"][..], &["--tool", "kubectl"], &["--set", "tools.except=[\"aws\"]"]] {
        assert_ne!(room_of(&home, flags), room, "{flags:?}");
        leave_spare(&home);
    }
}

#[test]
fn room_is_kept_for_bound_targets_and_pins_them_again() {
    let home = furnished();
    home.write(".config/sessile/contexts/staging.toml", "[tools.kubectl]\ncontext = \"two\"\n");
    settle();
    let flags = ["--context", "staging"];
    let room = room_of(&home, &flags);
    assert_eq!(room_of(&home, &flags), room);
    let look = ["--", "sh", "-c", "cat $KUBECONFIG"];
    let seen = home.call(&["run"]).args(&flags).args(&look).ok().stdout();
    assert!(seen.contains("two") && !seen.contains("name: one"), "{seen}");
    home.write(".config/sessile/contexts/staging.toml", "[tools.kubectl]\ncontext = \"one\"\n");
    let seen = home.call(&["run"]).args(&flags).args(&look).ok().stdout();
    assert!(seen.contains("one") && !seen.contains("name: two"), "{seen}");
}

#[test]
fn guarded_context_leaves_no_spare_room_and_takes_none() {
    let home = furnished();
    leave_spare(&home);
    // By hand, so that no command removes the spare room.
    home.write(
        ".config/sessile/contexts/prod.toml",
        "guard = \"explicit\"\n[tools.kubectl]\ncontext = \"two\"\n",
    );
    let seen = run(&home, "cat $KUBECONFIG").ok().stdout();
    assert!(!seen.contains("two"), "{seen}");
    std::fs::remove_dir_all(spare(&home)).ok();
    settle();
    for _ in 0..2 {
        let seen =
            home.call(&["run", "--context", "prod", "--", "sh", "-c", "cat $KUBECONFIG"]).ok().stdout();
        assert!(seen.contains("two"), "{seen}");
        assert!(!spare(&home).exists());
        let seen = run(&home, "cat $KUBECONFIG").ok().stdout();
        assert!(!seen.contains("two"), "{seen}");
        assert!(!spare(&home).exists());
    }
}

#[test]
fn changes_of_contexts_and_gc_remove_the_spare_room() {
    let home = furnished();
    let commands: [&[&str]; 3] = [
        &["context", "create", "prod", "--guard", "approval"],
        &["config", "set", "lock-timeout", "5s", "--global"],
        &["session", "gc"],
    ];
    for command in commands {
        leave_spare(&home);
        home.call(&["context", "list"]).ok();
        let listed = home.call(&["status", "--show-state-files", "-ojson"]).ok().stdout();
        assert!(listed.contains("rooms/spare"), "{listed}");
        home.call(command).ok();
        assert!(!spare(&home).exists(), "{command:?}");
    }
    assert_eq!(std::fs::read_dir(home.path(ROOMS)).unwrap().count(), 0);
}

#[test]
fn spare_room_of_another_boot_or_program_is_not_used() {
    let home = furnished();
    for (from, to) in [(" spare 1 ", " spare 0 "), ("sessile 0", "sessile 9"), ("\n.\n", "\n")] {
        let room = leave_spare(&home);
        let record = spare(&home).join("record");
        let text = std::fs::read_to_string(&record).unwrap();
        std::fs::write(&record, text.replacen(from, to, 1)).unwrap();
        assert_ne!(text, std::fs::read_to_string(&record).unwrap());
        assert_ne!(room_of(&home, &[]), room, "{from:?}");
    }
}

#[test]
fn state_beside_a_config_file_keeps_no_spare_room() {
    let home = furnished();
    home.write("own.toml", "");
    home.call(&["--config", "own.toml", "run", "--", "true"]).ok();
    let spare = home.path("own.toml.state/rooms/spare");
    assert!(!spare.exists());
    // What a checkout adds there is not touched.
    home.call(&["--config", "own.toml", "session", "start"]).ok();
    std::fs::create_dir(&spare).unwrap();
    home.call(&["--config", "own.toml", "session", "gc"]).ok();
    home.call(&["--config", "own.toml", "run", "--", "true"]).ok();
    assert!(spare.exists());
}

/// A daemon that has closed every descriptor, the room's lock among them, still has its directory.
#[test]
#[cfg(target_os = "linux")]
fn room_in_which_a_daemon_is_left_is_not_kept() {
    let home = furnished();
    leave_spare(&home);
    let daemon = "cd ${KUBECONFIG%/config}; setsid sh -c 'for fd in 3 4 5 6 7 8 9; do eval \"exec $fd>&-\"; done; \
                  touch ~/is-up; exec sleep 1000' >/dev/null 2>&1 </dev/null & echo $!; \
                  until test -e ~/is-up; do sleep 0.01; done";
    let pid = run(&home, daemon).ok().stdout();
    assert!(!spare(&home).exists());
    let status = std::process::Command::new("kill").arg(pid.trim()).status();
    assert!(status.unwrap().success());
    leave_spare(&home);
}

#[test]
#[cfg(target_os = "linux")]
fn orphans_of_a_command_are_reaped() {
    let home = furnished();
    let script = "for n in 1 2 3; do (sleep 0.1 & ); done; sleep 0.5; ps -o stat=,ppid= --ppid $PPID";
    let children = run(&home, script).ok().stdout();
    assert!(!children.contains('Z'), "{children}");
}

#[test]
fn parallel_runs_have_rooms_of_their_own() {
    let home = furnished();
    leave_spare(&home);
    let script = "cat $KUBECONFIG; echo mine-$$ >> $KUBECONFIG; sleep 0.01; grep -c mine $KUBECONFIG; test $((n % 2)) = 0";
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let home = &home;
            scope.spawn(move || {
                for number in 0..12 {
                    // Half of them leave the room as it was.
                    let script = if (thread + number) % 2 == 0 {
                        "cat $KUBECONFIG; sleep 0.01; echo 1"
                    } else {
                        script
                    };
                    let seen = run(home, script).run().stdout();
                    assert!(seen.ends_with("1\n"), "{seen}");
                    let before = seen.matches("mine-").count();
                    assert_eq!(before, 0, "{seen}");
                }
            });
        }
    });
    home.call(&["session", "gc"]).ok();
    assert_eq!(std::fs::read_dir(home.path(ROOMS)).unwrap().count(), 0);
    home.call(&["doctor"]).ok();
}

#[test]
fn killed_runs_leave_no_torn_spare_room() {
    let home = furnished();
    settle();
    // The sweep removes the room of a killed run once its session has expired.
    let run_briefly = |script: &str| home.call(&["run", "--idle", "100ms", "--", "sh", "-c", script]);
    let change = || run_briefly("echo changed >> $KUBECONFIG");
    let look = || run_briefly("cat $KUBECONFIG > /dev/null");
    let mut killer = Killer::new(0x5e55_11e0b, [look(), look()]);
    let kills = crate::durability::crash::kills() / 2;
    for number in 0..kills {
        match number % 5 {
            0 => killer.kill(change()),
            1 => killer.kill(home.call(&["session", "gc"])),
            _ => killer.kill(look()),
        };
        let seen = run(&home, LOOK).ok().stdout();
        assert!(!seen.contains("changed") && seen.contains("name: two"), "after {number}: {seen}");
        let script = "test -d $DOCKER_CONFIG && cat $DOCKER_CONFIG/config.json $XDG_CONFIG_HOME/gh/hosts.yml && git config user.name";
        let seen = run(&home, script).ok().stdout();
        assert_eq!(seen, "{}\ngithub.com:\n    user: alice\nme\n", "after {number}");
    }
    killer.assert_it_was_a_fight(kills);
    let rooms =
        || std::fs::read_dir(home.path(ROOMS)).unwrap().map(|room| room.unwrap().path()).collect::<Vec<_>>();
    crate::eventually("the end of all rooms", || {
        // One whose removal was interrupted is removed when it is a minute old.
        for room in rooms().into_iter().filter(|room| !room.join("lock").exists()) {
            let _ = std::process::Command::new("touch").args(["-d", "2 minutes ago"]).arg(room).status();
        }
        home.call(&["session", "gc"]).ok();
        rooms().is_empty()
    });
    home.call(&["doctor"]).ok();
    assert!(live(&home).is_empty());
}
