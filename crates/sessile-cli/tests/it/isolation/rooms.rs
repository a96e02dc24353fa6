//! A session's room: private, removed with the session, and nothing that happens in it reaches the user's own files.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use testkit::{Call, Home};

use crate::isolation::run::kubeconfig;
use crate::{eventually, home, live, lives, room, shown, start};

fn run(home: &Home, flags: &[&str], command: &[&str]) -> Call {
    home.call(&["run"]).args(flags).args(&["--"]).args(command).with_tools()
}

const S1: &[&str] = &["--session", "s1"];

/// A home in which somebody has worked.
fn furnished() -> Home {
    let home = home();
    home.write(".kube/config", kubeconfig(&["dev", "staging"]));
    home.write(".gitconfig", "[user]\n\tname = me\n");
    home.write(".docker/config.json", "{\"auths\": {}, \"currentContext\": \"default\"}\n");
    home.write(".npmrc", "registry=http://localhost/\n");
    home.write(".aws/config", "[default]\nregion = here\n");
    home.write(".config/pip/pip.conf", "[global]\ntimeout = 5\n");
    home.write(".config/other/settings", "other\n");
    home.write(".netrc", "machine a login b password c\n");
    home.write("project/file", "work\n");
    home
}

mod the_real_home {
    use super::*;

    #[test]
    fn is_byte_for_byte_what_it_was_whatever_the_tools_change() {
        let home = furnished();
        let before = home.tree_of_people();
        let script = "set -e
            kubectl config use-context staging; kubectl config set-context new
            git config --global user.name agent; git config --global alias.x status
            docker context create mine --docker host=unix:///x; docker context use mine
            mkdir -p \"$XDG_CONFIG_HOME/pip\"; echo x > \"$XDG_CONFIG_HOME/pip/pip.conf\"
            echo x > \"$NPM_CONFIG_USERCONFIG\"; echo x > \"$AWS_CONFIG_FILE\"; echo x > \"$NETRC\"";
        run(&home, S1, &["bash", "-c", script]).ok();
        run(&home, &[], &["bash", "-c", script]).ok();
        run(&home, &["--isolate", "home"], &["bash", "-c", script]).ok();
        assert_eq!(home.tree_of_people(), before);
        assert_eq!(run(&home, S1, &["git", "config", "--global", "user.name"]).ok().stdout(), "agent\n");
    }

    #[test]
    fn may_be_read_only_if_the_state_is_elsewhere() {
        let home = furnished();
        let state = tempfile::tempdir().unwrap();
        let script = "mount --bind \"$HOME\" \"$HOME\" && mount -o remount,bind,ro \"$HOME\" || exit 99
            touch \"$HOME/x\" 2>/dev/null && exit 98
            \"$0\" run --session s1 -- git config --global user.name agent &&
            \"$0\" run --session s1 -- git config --global user.name &&
            \"$0\" run --isolate home -- sh -c 'echo x > ~/.new && cat ~/.new' &&
            \"$0\" session stop s1";
        let call = home.tool("unshare", &["-rm", "sh", "-c", script]).arg(home.program());
        let done = call.env("SESSILE_STATE_DIR", state.path()).run();
        assert_eq!(done.status(), Some(0), "unshare and mount are needed: {}", done.told());
        assert_eq!(done.stdout().lines().next(), Some("agent"), "{}", done.told());
        assert!(done.stdout().lines().any(|line| line == "x"), "{}", done.told());
    }

    #[test]
    fn read_only_home_with_the_state_is_reported() {
        let home = furnished();
        let script = "mount --bind \"$HOME\" \"$HOME\" && mount -o remount,bind,ro \"$HOME\" || exit 99
            \"$0\" run -ojson -- true";
        let done = home.tool("unshare", &["-rm", "sh", "-c", script]).arg(home.program()).run().exit(125);
        let error = done.json_error();
        assert_eq!(error["code"], "IO", "{error}");
        assert!(error["message"].as_str().unwrap().contains(".local"), "{error}");
    }

    #[test]
    fn need_not_be_there() {
        let home = home();
        let state = home.path("state");
        let command = ["sh", "-c", "git config --global user.name a && git config --global user.name"];
        for nowhere in ["/nonexistent", "/proc/1/nothing", ""] {
            let call = run(&home, &[], &command).env("HOME", nowhere).env("SESSILE_STATE_DIR", &state);
            assert_eq!(call.ok().stdout(), "a\n", "HOME={nowhere:?}");
        }
        let call = run(&home, &[], &command).no_env("HOME").env("SESSILE_STATE_DIR", &state);
        assert_eq!(call.ok().stdout(), "a\n");
        let done = run(&home, &["-ojson"], &command).env("HOME", "/dev/null").run().exit(125);
        assert_eq!(done.code(), "IO", "a home that cannot be created is reported");
        assert!(done.json_error()["message"].as_str().unwrap().contains("/dev/null/"), "{}", done.told());
    }
}

mod the_room {
    use super::*;

    #[test]
    fn is_for_its_owner_alone_down_to_every_file() {
        let home = furnished();
        std::fs::set_permissions(home.path(".kube/config"), PermissionsExt::from_mode(0o666)).unwrap();
        run(&home, S1, &["sh", "-c", "umask 000; true"]).ok();
        run(&home, &["--session", "s1", "--isolate", "home"], &["true"]).ok();
        let mut dirs = vec![room(&home, "s1")];
        let mut seen = 0;
        while let Some(dir) = dirs.pop() {
            assert_eq!(mode(&dir), 0o700, "{}", dir.display());
            for entry in std::fs::read_dir(dir).unwrap().flatten() {
                let kind = entry.file_type().unwrap();
                if kind.is_dir() {
                    dirs.push(entry.path());
                } else if kind.is_file() {
                    seen += 1;
                    assert_eq!(mode(&entry.path()) & 0o077, 0, "{}", entry.path().display());
                }
            }
        }
        assert!(seen > 10, "{seen}");
    }

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn that_became_a_link_is_not_followed() {
        for prepared in [false, true] {
            let home = home();
            start(&home, &["--name", "s1"]);
            if prepared {
                run(&home, S1, &["true"]).ok();
            }
            let (room, elsewhere) = (room(&home, "s1"), home.path("elsewhere"));
            std::fs::rename(&room, &elsewhere).unwrap();
            std::os::unix::fs::symlink(&elsewhere, &room).unwrap();
            let done = run(&home, &["--session", "s1", "-ojson"], &["touch", "it-ran"]).run().exit(125);
            assert_eq!(done.code(), "ROOM_UNSAFE");
            assert!(!home.path("it-ran").exists());
        }
    }

    #[test]
    fn in_which_others_can_write_is_refused() {
        for prepared in [false, true] {
            let home = home();
            start(&home, &["--name", "s1"]);
            if prepared {
                run(&home, S1, &["true"]).ok();
            }
            std::fs::set_permissions(room(&home, "s1"), PermissionsExt::from_mode(0o777)).unwrap();
            let error = run(&home, &["--session", "s1", "-ojson"], &["true"]).run().exit(125).json_error();
            assert_eq!(error["code"], "ROOM_UNSAFE");
            assert!(error["message"].as_str().unwrap().contains("writable by other users"), "{error}");
        }
    }

    #[test]
    fn session_show_lists_copies_and_changes_of_both_sides() {
        let home = furnished();
        run(&home, S1, &["git", "config", "--global", "user.name", "agent"]).ok();
        home.write(".aws/config", "[default]\nregion = there\n");
        let shown = shown(&home, "s1");
        let copy = |tool: &str| {
            let all = shown["tools"].as_array().unwrap();
            all.iter().find(|one| one["tool"] == tool).unwrap_or_else(|| panic!("{shown}"))["copies"][0]
                .clone()
        };
        let state = |tool: &str| (copy(tool)["changed"] == true, copy(tool)["original_changed"] == true);
        assert_eq!(state("git"), (true, false), "{shown}");
        assert_eq!(state("aws"), (false, true), "{shown}");
        assert_eq!(state("kubectl"), (false, false), "{shown}");
        assert_eq!(copy("git")["original"][0], home.path(".gitconfig").to_str().unwrap());
        let text = home.call(&["session", "show", "s1"]).ok().stdout();
        assert!(text.contains(".gitconfig (changed here)"), "{text}");
        assert!(text.contains("(the original changed)"), "{text}");
    }
}

mod shared {
    use super::*;

    #[test]
    fn a_login_that_rotates_in_the_only_file_is_not_copied() {
        let home = home();
        let told = run(&home, &["--session", "before"], &["env"]).ok().stdout();
        assert!(told.contains("GLAB_CONFIG_DIR="), "{told}");
        home.write(".config/glab-cli/config.yml", "hosts:\n  gitlab.com:\n    oauth2_refresh_token: r\n");
        let told = run(&home, S1, &["env"]).ok().stdout();
        assert!(!told.contains("GLAB_CONFIG_DIR="), "{told}");
        let text = home.call(&["session", "show", "s1"]).ok().stdout();
        assert!(text.contains("glab: shared: the login in"), "{text}");
        let dry = run(&home, &["--dry-run"], &["true"]).ok().stdout();
        assert!(dry.contains("\nshared    glab: ") || dry.contains("\n          glab: "), "{dry}");
    }

    #[test]
    fn rotating_token_file_is_shared_even_if_created_later() {
        let home = home();
        home.write(".azure/azureProfile.json", "{\"subscriptions\": []}\n");
        home.write(".azure/msal_token_cache.json", "{\"old\": 1}\n");
        let script = "echo '{\"new\": 1}' > \"$AZURE_CONFIG_DIR/msal_token_cache.json\"
            echo later > \"$AZURE_CONFIG_DIR/service_principal_entries.json\"
            echo private > \"$AZURE_CONFIG_DIR/azureProfile.json\"";
        run(&home, S1, &["sh", "-c", script]).ok();
        let link = room(&home, "s1").join("azure/msal_token_cache.json");
        assert_eq!(link.read_link().unwrap(), home.path(".azure/msal_token_cache.json"));
        assert_eq!(home.read(".azure/msal_token_cache.json"), "{\"new\": 1}\n");
        assert_eq!(home.read(".azure/service_principal_entries.json"), "later\n");
        assert_eq!(home.read(".azure/azureProfile.json"), "{\"subscriptions\": []}\n");
    }

    #[test]
    fn coding_agents_share_their_state_by_default() {
        let home = home();
        home.write(".claude/settings.json", "{}\n");
        home.write(".claude/.credentials.json", "{}\n");
        let told = run(&home, S1, &["env"]).ok().stdout();
        assert!(!told.contains("CLAUDE_CONFIG_DIR="), "{told}");
        let flags = ["--session", "s1", "--set", "tools.also=claude"];
        let told = run(&home, &flags, &["printenv", "CLAUDE_CONFIG_DIR"]).ok().stdout();
        let dir = Path::new(told.trim());
        assert_eq!(dir, room(&home, "s1").join("claude"));
        assert_eq!(
            dir.join(".credentials.json").read_link().unwrap(),
            home.path(".claude/.credentials.json")
        );
        assert!(dir.join("settings.json").symlink_metadata().unwrap().is_file());
        let told = run(&home, S1, &["printenv", "CLAUDE_CONFIG_DIR"]).ok().stdout();
        assert_eq!(Path::new(told.trim()), dir, "then it is that session's, as long as it lives");
        let told = run(&home, &["--session", "s2"], &["env"]).ok().stdout();
        assert!(!told.contains("CLAUDE_CONFIG_DIR="), "{told}");
    }

    #[test]
    fn moved_config_directory_links_other_settings() {
        let home = furnished();
        let script = "cat \"$XDG_CONFIG_HOME/other/settings\"; echo new > \"$XDG_CONFIG_HOME/other/settings\"
            cat \"$XDG_CONFIG_HOME/pip/pip.conf\"; echo private > \"$XDG_CONFIG_HOME/pip/pip.conf\"";
        let told = run(&home, S1, &["sh", "-c", script]).ok().stdout();
        assert_eq!(told, "other\n[global]\ntimeout = 5\n");
        assert_eq!(home.read(".config/other/settings"), "new\n", "files without a profile are shared");
        assert_eq!(home.read(".config/pip/pip.conf"), "[global]\ntimeout = 5\n");
    }
}

mod at_the_level_of_the_home {
    use super::*;

    const HOME_LEVEL: &[&str] = &["--session", "s1", "--isolate", "home"];

    #[test]
    fn hidden_files_are_private_and_work_is_shared() {
        let home = furnished();
        home.write(".unknownrc", "mine\n");
        let script = "echo $HOME; cat ~/.netrc ~/.unknownrc; echo x > ~/.netrc; echo x > ~/.unknownrc
            echo x > ~/.brand-new; git config --global user.name agent; cat ~/project/file; echo done > ~/project/file";
        let told = run(&home, HOME_LEVEL, &["bash", "-c", script]).ok().stdout();
        let inner = room(&home, "s1").join("home");
        let wanted = format!("{}\nmachine a login b password c\nmine\nwork\n", inner.display());
        assert_eq!(told, wanted);
        assert_eq!(home.read(".netrc"), "machine a login b password c\n");
        assert_eq!(home.read(".unknownrc"), "mine\n");
        assert_eq!(home.read(".gitconfig"), "[user]\n\tname = me\n");
        assert!(!home.path(".brand-new").exists());
        assert_eq!(home.read("project/file"), "done\n", "work is real");
        assert!(inner.join("project").symlink_metadata().unwrap().is_symlink());
        let again = run(&home, HOME_LEVEL, &["sh", "-c", "cat ~/.netrc ~/.brand-new"]).ok().stdout();
        assert_eq!(again, "x\nx\n", "and stays in the session");
    }

    #[test]
    fn a_file_by_its_usual_path_is_the_same_as_by_its_variable() {
        let home = furnished();
        let script = "kubectl config use-context staging >&2
            KUBECONFIG= kubectl config current-context
            env -u KUBECONFIG kubectl config current-context
            env -u GIT_CONFIG_GLOBAL git config --global user.name agent; git config --global user.name";
        let told = run(&home, HOME_LEVEL, &["bash", "-c", script]).ok().stdout();
        assert_eq!(told, "staging\nstaging\nagent\n");
        assert_eq!(home.read(".kube/config"), kubeconfig(&["dev", "staging"]));
    }

    #[test]
    fn sessile_itself_finds_its_own_state() {
        let home = furnished();
        home.write(".config/sessile/contexts/c.toml", "");
        let script = "\"$0\" session show -ojson; \"$0\" context list >&2";
        let program = home.program().display().to_string();
        let call = run(&home, &[HOME_LEVEL, &["--context", "c"]].concat(), &["sh", "-c", script, &program]);
        let done = call.ok();
        assert_eq!(done.json()["name"], "s1");
        assert!(done.stderr().contains('c'), "{}", done.told());
    }
}

mod what_runs_on {
    use super::*;

    /// It has let go of every descriptor and of its terminal; only its environment tells.
    #[test]
    fn a_daemon_that_closed_everything_is_ended_with_the_session() {
        let home = home();
        let script = "setsid bash -c 'for n in {0..60}; do eval \"exec $n>&-\"; done; echo $$ > pid; exec sleep 1000' &
            while ! [ -s pid ]; do sleep 0.01; done";
        run(&home, S1, &["bash", "-c", script]).ok();
        let pid = home.read("pid");
        assert!(lives(&pid));
        let room = room(&home, "s1");
        home.call(&["session", "stop", "s1"]).ok();
        assert!(!lives(&pid));
        assert!(!room.exists());
    }

    #[test]
    fn a_daemon_of_another_session_or_of_none_goes_on() {
        let home = home();
        let mut own = home.tool("sleep", &["1000"]).command().spawn().unwrap();
        let script = "setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo $! > pid";
        run(&home, &["--session", "s2"], &["bash", "-c", script]).ok();
        run(&home, S1, &["true"]).ok();
        home.call(&["session", "stop", "s1"]).ok();
        assert!(lives(&home.read("pid")) && lives(&own.id().to_string()));
        home.call(&["session", "stop", "s2"]).ok();
        assert!(!lives(&home.read("pid")) && lives(&own.id().to_string()));
        own.kill().unwrap();
        own.wait().unwrap();
    }

    #[test]
    fn tmux_server_lives_as_long_as_its_session() {
        let home = home();
        let runtime = home.private_dir("run");
        let here =
            |flags: &[&str], command: &[&str]| run(&home, flags, command).env("XDG_RUNTIME_DIR", &runtime);
        let mut terminal = home.shell();
        terminal.run(&format!("export XDG_RUNTIME_DIR={}", runtime.display()));
        let inside = "echo $SESSILE_SESSION $KUBECONFIG > seen; echo $$ > pid; exec sleep 1000";
        let (text, status) =
            terminal.run(&format!("sessile run --session s1 -- tmux new-session -d -s work '{inside}'"));
        assert_eq!(status, 0, "{text}");
        terminal.type_line("exit");
        terminal.finish();
        eventually("the window", || home.path("pid").exists() && home.read("pid").ends_with('\n'));
        let (id, room) = (shown(&home, "s1")["id"].as_str().unwrap().to_owned(), room(&home, "s1"));
        assert_eq!(home.read("seen"), format!("{id} {}/kube/config\n", room.display()));
        let list = ["tmux", "list-sessions", "-F", "#{session_name}"];
        assert_eq!(here(S1, &list).ok().stdout(), "work\n");
        here(&["--session", "s2"], &list).run().exit(1);
        let sockets = runtime.join("sessile");
        let count = || std::fs::read_dir(&sockets).map_or(0, Iterator::count);
        assert_eq!(count(), 2, "one directory for each session");
        let done = home.call(&["session", "stop", "s1"]).env("XDG_RUNTIME_DIR", &runtime);
        done.ok();
        assert!(!lives(&home.read("pid")));
        assert!(!room.exists());
        assert_eq!(count(), 1);
        assert_eq!(live(&home).len(), 1);
    }

    /// Sockets need short paths, and not every system has a place for them.
    #[test]
    fn tmux_works_without_runtime_directory_in_a_deep_home() {
        let home = home();
        let deep = home.path("a-directory-with-quite-a-long-name/and-another-one-below-it/that-is-no-better");
        std::fs::create_dir_all(&deep).unwrap();
        let here = |command: &[&str]| run(&home, S1, command).env("HOME", &deep);
        here(&["tmux", "new-session", "-d", "-s", "work", "sleep 1000"]).ok();
        assert_eq!(here(&["tmux", "list-sessions", "-F", "#{session_name}"]).ok().stdout(), "work\n");
        let sockets = here(&["printenv", "TMUX_TMPDIR"]).ok().stdout();
        let sockets = Path::new(sockets.trim());
        assert_eq!(sockets.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        home.call(&["session", "stop", "s1"]).env("HOME", &deep).ok();
        assert!(!sockets.exists(), "{}", sockets.display());
    }
}
