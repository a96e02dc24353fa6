//! Ways out of a session that are easily overlooked, each of them shut.

use testkit::{Call, Home};

use crate::isolation::run::kubeconfig;
use crate::{eventually, home, home_with};

fn run(home: &Home, flags: &[&str], command: &[&str]) -> Call {
    home.call(&["run"]).args(flags).args(&["--"]).args(command).with_tools()
}

fn sh(home: &Home, flags: &[&str], script: &str) -> Call {
    run(home, flags, &["sh", "-c", script])
}

fn link(home: &Home, to: &str, at: &str) {
    std::os::unix::fs::symlink(to, home.path(at)).unwrap();
}

/// Many keep their settings in a repository and link to them.
mod linked_dotfiles {
    use super::*;

    #[test]
    fn a_linked_directory_within_a_tools_state_is_copied_too() {
        let home = home();
        home.write("dotfiles/contexts/meta/x/meta.json", "{\"Name\":\"mine\"}");
        home.write(".docker/config.json", "{}");
        link(&home, "../dotfiles/contexts", ".docker/contexts");
        let before = home.tree_of_people();
        sh(&home, &[], "rm -r \"$DOCKER_CONFIG\"/contexts/meta && mkdir \"$DOCKER_CONFIG\"/contexts/new")
            .ok();
        assert_eq!(home.tree_of_people(), before);
    }

    #[test]
    fn a_link_that_leads_round_in_a_circle_does_no_harm() {
        let home = home();
        home.write(".docker/config.json", "{}");
        link(&home, ".", ".docker/again");
        run(&home, &[], &["true"]).ok();
    }

    #[test]
    fn linked_file_or_directory_is_copied_at_level_home() {
        let home = home();
        home.write("dotfiles/foorc", "real");
        home.write("dotfiles/d/f", "real");
        link(&home, "dotfiles/foorc", ".foorc");
        link(&home, "dotfiles/d", ".bar");
        let before = home.tree_of_people();
        sh(&home, &["--isolate", "home"], "echo mine > ~/.foorc; echo mine > ~/.bar/f").ok();
        assert_eq!(home.tree_of_people(), before);
    }
}

mod pins {
    use super::*;

    fn bound() -> Home {
        let home = home_with(&["other"]);
        home.write(".config/sessile/contexts/c.toml", "[tools.kubectl]\ncontext = \"staging\"\n");
        home.write(".kube/config", kubeconfig(&["dev", "staging", "prod"]));
        home
    }

    const S1: &[&str] = &["--session", "s1", "--context", "c"];

    #[test]
    fn are_not_written_through_a_link() {
        let home = bound();
        let before = home.tree_of_people();
        sh(&home, S1, "ln -sf ~/.kube/config \"$KUBECONFIG\"").ok();
        let seen = run(&home, S1, &["kubectl", "config", "current-context"]).ok().stdout();
        assert_eq!(seen, "staging\n");
        sh(&home, S1, "rm -r \"$(dirname \"$KUBECONFIG\")\" && ln -s ~/.kube \"$(dirname \"$KUBECONFIG\")\"")
            .ok();
        let done = run(&home, &["-ojson", "--session", "s1"], &["true"]).run().exit(125);
        assert_eq!(done.code(), "ROOM_UNSAFE");
        assert_eq!(home.tree_of_people(), before);
    }

    #[test]
    fn are_not_changed_from_inside_another_session() {
        let home = bound();
        run(&home, S1, &["true"]).ok();
        let program = home.program().display().to_string();
        for words in [
            &["context", "edit", "c", "--tool", "kubectl.context=prod"][..],
            &["context", "create", "c", "--yes", "--tool", "kubectl.context=prod"],
            &["config", "set", "context", "other", "--global"],
            &["config", "set", "tools.except", "kubectl", "--global"],
            &["config", "set", "env.KUBECONFIG", "/x", "--dir"],
        ] {
            let command: Vec<&str> = std::iter::once(program.as_str()).chain(words.iter().copied()).collect();
            run(&home, &["--session", "s2"], &command).run().exit(7);
        }
        let seen = run(&home, S1, &["kubectl", "config", "current-context"]).ok().stdout();
        assert_eq!(seen, "staging\n");
    }

    #[test]
    fn hold_in_a_zsh_whose_start_up_files_say_otherwise() {
        testkit::require_tool("zsh");
        let home = home();
        home.write(".aws/config", "[profile staging]\n[profile production]\n");
        home.write(".config/sessile/contexts/c.toml", "[tools.aws]\nprofile = \"staging\"\n");
        home.write(".zshenv", "export AWS_PROFILE=production\nexport MINE=1\n");
        home.write(".zprofile", "export KUBECONFIG=/elsewhere\n");
        for flags in ["-c", "-lc", "-ic"] {
            let told =
                run(&home, S1, &["zsh", flags, "echo $AWS_PROFILE $MINE; echo $KUBECONFIG"]).ok().stdout();
            assert!(told.starts_with("staging 1\n") && !told.contains("elsewhere"), "{flags}: {told}");
        }
        let own = sh(&home, S1, "AWS_PROFILE=other zsh -c 'echo $AWS_PROFILE'").ok().stdout();
        assert_eq!(own, "other\n", "what a script sets for another shell is its own will");
    }

    #[test]
    fn doctor_finds_start_up_files_that_override_them() {
        let home = home();
        home.write(".zshenv", "export AWS_PROFILE=production\n");
        let told = home.call(&["doctor"]).run().stdout();
        assert!(told.contains(".zshenv:1 sets AWS_PROFILE"), "{told}");
    }
}

mod what_stays {
    use super::*;

    #[test]
    fn new_files_of_a_moved_home_move_to_the_real_one() {
        let home = home();
        home.write("taken/f", "real");
        let script = "mkdir ~/repo && echo precious > ~/repo/f && rm ~/taken && mkdir ~/taken && echo mine > ~/taken/f";
        sh(&home, &["--isolate", "home"], script).ok();
        assert_eq!(home.read("repo/f"), "precious\n");
        assert_eq!(home.read("taken/f"), "real");
        let kept = std::fs::read_dir(home.dir()).unwrap().flatten().map(|entry| entry.file_name());
        assert_eq!(kept.filter(|name| name.to_string_lossy().starts_with("taken.")).count(), 1);
    }

    #[test]
    fn room_with_unmovable_files_stays() {
        let home = home();
        home.write("taken/f", "real");
        let flags = ["--isolate", "home", "--session", "s1"];
        sh(&home, &flags, "rm ~/taken && mkdir ~/taken && echo mine > ~/taken/f").ok();
        let room = crate::room(&home, "s1");
        let other = format!("taken.{}", room.file_name().unwrap().to_str().unwrap());
        home.write(format!("{other}/f"), "real too");
        let done = home.call(&["session", "stop", "s1", "-ojson"]).run();
        assert_eq!(done.code(), "FILE_EXISTS", "{}", done.told());
        assert_eq!(home.read(room.join("home/taken/f")), "mine\n");
        assert_eq!(home.read(format!("{other}/f")), "real too");
        std::fs::remove_dir_all(home.path(&other)).unwrap();
        home.call(&["session", "gc"]).ok();
        assert_eq!(home.read(format!("{other}/f")), "mine\n");
        assert!(!room.exists());
    }

    #[test]
    fn only_new_settings_of_unknown_tools_reach_the_user() {
        let home = home();
        home.write(".config/old/f", "x");
        let script = "mkdir \"$XDG_CONFIG_HOME\"/unknown && echo m > \"$XDG_CONFIG_HOME\"/unknown/f
            pip config set global.timeout 7";
        sh(&home, &[], script).ok();
        assert_eq!(home.read(".config/unknown/f"), "m\n");
        assert!(!home.path(".config/pip").exists());
    }

    #[test]
    fn new_settings_reach_a_home_without_a_settings_directory() {
        let script = "mkdir \"$XDG_CONFIG_HOME\"/unknown && echo m > \"$XDG_CONFIG_HOME\"/unknown/f";
        for level in ["env", "home"] {
            let home = home();
            assert!(!home.path(".config").exists());
            sh(&home, &["--session", "s1", "--isolate", level], script).ok();
            home.call(&["session", "stop", "s1"]).ok();
            if level == "env" {
                assert_eq!(home.read(".config/unknown/f"), "m\n");
                let mode = std::os::unix::fs::PermissionsExt::mode(
                    &home.path(".config").metadata().unwrap().permissions(),
                );
                assert_eq!(mode & 0o777, 0o700);
            }
            home.call(&["session", "gc"]).ok();
        }
    }

    #[test]
    fn room_that_stays_does_not_keep_others_from_being_removed() {
        let home = home();
        let rooms: Vec<_> = ["s1", "s2", "s3"]
            .map(|name| {
                sh(&home, &["--session", name, "--isolate", "home"], "mkdir ~/taken; echo mine > ~/taken/f")
                    .ok();
                crate::room(&home, name)
            })
            .into();
        // Both names are taken: neither room may be removed, and the third one has to be.
        home.write("taken/f", "real");
        for room in &rooms[..2] {
            home.write(format!("taken.{}/f", room.file_name().unwrap().to_str().unwrap()), "real too");
        }
        // The second call too: the work is still in the room.
        for name in ["s1", "s2", "s1"] {
            assert_eq!(home.call(&["session", "stop", name, "-ojson"]).run().code(), "FILE_EXISTS");
        }
        // As a killed `session stop` leaves it: ended, with a room.
        home.call(&["session", "stop", "s3"]).ok();
        std::fs::create_dir_all(&rooms[2]).unwrap();
        std::fs::set_permissions(&rooms[2], std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        std::fs::write(rooms[2].join("lock"), "").unwrap();
        let done = home.call(&["session", "gc", "-ojson"]).run();
        assert_eq!(done.code(), "FILE_EXISTS", "{}", done.told());
        assert!(rooms[0].exists() && rooms[1].exists() && !rooms[2].exists(), "{}", done.told());
    }

    #[test]
    fn no_secret_is_written_into_a_room() {
        let home = home();
        home.write(".config/sessile/contexts/c.toml", "[env]\nDB_PASSWORD = \"canary-1\"\n");
        let flags = ["--session", "s1", "--context", "c", "--env", "PLAIN=canary-3"];
        let with = |call: Call| call.env("API_TOKEN", "canary-2");
        let script = "test \"$DB_PASSWORD$API_TOKEN$PLAIN\" = canary-1canary-2canary-3";
        with(sh(&home, &flags, script)).ok();
        with(home.call(&["shell", "--shell", "/bin/bash"]).args(&flags)).run();
        let found = home.tree().into_iter().filter(|(path, text)| {
            path.starts_with(home.path(".local")) && String::from_utf8_lossy(text).contains("canary")
        });
        assert_eq!(found.map(|(path, _)| path).collect::<Vec<_>>(), Vec::<std::path::PathBuf>::new());
    }
}

mod working_directories {
    use super::*;

    /// Where the machine has it.
    #[test]
    fn session_copies_the_selected_workspace_and_leaves_none() {
        if testkit::find_tool("terraform").is_none() {
            return;
        }
        let home = home();
        home.write("p/main.tf", "resource \"terraform_data\" \"a\" {}\n");
        home.write("p/sub/main.tf", "");
        for dir in ["p", "p/sub"] {
            home.tool("terraform", &["init"]).cwd(dir).ok();
            home.tool("terraform", &["workspace", "new", "mine"]).cwd(dir).ok();
        }
        let before = home.tree_of_people();
        let show = "terraform workspace show; cd sub; terraform workspace select default >&2; terraform workspace show";
        assert_eq!(sh(&home, &["--session", "s1"], show).cwd("p").ok().stdout(), "mine\ndefault\n");
        let bare = home.tool("terraform", &["workspace", "show"]).cwd("p/sub").ok().stdout();
        assert_eq!(bare, "mine\n");
        home.call(&["session", "stop", "s1"]).ok();
        let after: Vec<_> = home.tree_of_people();
        assert_eq!(after, before);
    }
}

mod starting {
    use super::*;

    #[test]
    fn of_many_that_ask_for_a_new_session_one_gets_it() {
        let home = home();
        let flags = ["--session", "s1", "--new"];
        let calls: Vec<_> = std::thread::scope(|scope| {
            let home = &home;
            let threads: Vec<_> =
                (0..6).map(|_| scope.spawn(move || sh(home, &flags, "sleep 0.5").run().status())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(calls.iter().filter(|status| **status == Some(0)).count(), 1, "{calls:?}");
        assert_eq!(calls.iter().filter(|status| **status == Some(125)).count(), 5, "{calls:?}");
    }

    #[test]
    fn script_without_shebang_runs_with_and_without_a_parent() {
        let home = home();
        let script = home.write("plain", "echo ran $1\n");
        std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        for flags in [&[][..], &["--session", "s1"]] {
            assert_eq!(run(&home, flags, &["./plain", "it"]).ok().stdout(), "ran it\n", "{flags:?}");
        }
    }

    #[test]
    fn timeout_ends_every_started_process() {
        let home = home();
        let script = "setsid sleep 4321.5 & echo $! > pid; sleep 4321.5";
        sh(&home, &["--timeout", "300ms"], script).run().exit(124);
        let pid = home.read("pid");
        eventually("its end", || !std::path::Path::new(&format!("/proc/{}", pid.trim())).exists());
        assert_eq!(crate::live(&home), Vec::<String>::new());
    }

    #[test]
    fn invalid_name_is_reported() {
        let done = run(&home(), &["--session", "a b", "-ojson"], &["true"]).run().exit(125);
        assert_eq!(done.code(), "INVALID_NAME");
    }
}
