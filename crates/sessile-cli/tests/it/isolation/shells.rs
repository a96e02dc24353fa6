//! `shell`, `env`, `hook` and `prompt`: a session in the shells that people and agents use.

use std::ffi::OsString;

use testkit::{Call, Home, Tty};

use crate::isolation::run::HOSTILE;
use crate::{home, home_with, live, room, start};

/// A shell in the home, in which the program is found by its name.
fn shell(home: &Home, program: &str, args: &[&str]) -> Call {
    let mut path = OsString::from(home.program().parent().unwrap());
    path.push(":/usr/local/bin:/usr/bin:/bin");
    home.tool(program, args).env("PATH", path).env("TERM", "dumb")
}

/// The line that a shell evaluates what is printed with.
fn evaluated(program: &str, call: &str) -> String {
    if program == "fish" { format!("sessile {call} | source") } else { format!("eval \"$(sessile {call})\"") }
}

const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

mod env {
    use super::*;

    #[test]
    fn hostile_values_survive_every_shell() {
        let home = home();
        let lines: String = HOSTILE
            .iter()
            .enumerate()
            .map(|(at, value)| format!("V{at} = {}\n", serde_json::json!(value)))
            .collect();
        home.write(".config/sessile/contexts/c.toml", format!("[env]\n{lines}"));
        start(&home, &["--name", "s1", "--context", "c"]);
        let names: Vec<String> = (0..HOSTILE.len()).map(|at| format!("\"$V{at}\"")).collect();
        let wanted: String = HOSTILE.iter().map(|value| format!("{value}\0")).collect();
        for program in SHELLS {
            let set = evaluated(program, &format!("env --session s1 --shell {program}"));
            // What is exported is what a command sees.
            let script = format!("{set}; printf '%s\\0' {}; env -0 | grep -zc '^V[0-9]*='", names.join(" "));
            let told = shell(&home, program, &["-c", &script]).ok().stdout();
            assert_eq!(told, format!("{wanted}{}\n", HOSTILE.len()), "{program}");
        }
        assert!(!home.path("gone").exists());
        let json = home.call(&["env", "--session", "s1", "--shell", "json"]).ok().json();
        for (at, value) in HOSTILE.iter().enumerate() {
            assert_eq!(json["set"][format!("V{at}")], *value);
        }
    }

    #[test]
    fn unset_restores_the_shells_own_values() {
        let home = home();
        start(&home, &["--name", "s1"]);
        let room = room(&home, "s1");
        for program in SHELLS {
            let set = evaluated(program, &format!("env --session s1 --shell {program}"));
            let unset = evaluated(program, &format!("env --unset --shell {program}"));
            let script =
                format!("env | sort > before; {set}; printenv KUBECONFIG; {unset}; env | sort > after");
            let call = shell(&home, program, &["-c", &script]).env("KUBECONFIG", "/mine with 'quotes'");
            let told = call.ok().stdout();
            assert_eq!(told.trim(), room.join("kube/config").to_str().unwrap(), "{program}");
            assert!(home.read("before").contains("KUBECONFIG=/mine with 'quotes'\n"));
            assert_eq!(home.read("after"), home.read("before"), "{program}");
        }
    }

    #[test]
    fn env_without_a_session_is_refused() {
        let home = home();
        let done = home.call(&["env", "-ojson"]).run().exit(2);
        assert_eq!(done.code(), "SESSION_REQUIRED");
        home.call(&["env", "--session", "nobody"]).run().exit(5);
        assert!(live(&home).is_empty());
        assert_eq!(home.call(&["env", "--unset"]).ok().stdout(), "");
    }
}

/// Agents run their commands in login shells, whose files export what they like.
mod start_up_files {
    use super::*;

    fn is_inside(home: &Home, told: &str) -> bool {
        told.trim() == room(home, "s1").join("kube/config").to_str().unwrap()
    }

    #[test]
    fn a_bash_login_shell_does_not_lead_out_of_the_session() {
        let home = home();
        for file in [".bash_profile", ".bashrc"] {
            home.write(file, "export KUBECONFIG=/out; export OTHER=kept; unset SESSILE_SESSION\n");
        }
        for flags in ["-lc", "-c"] {
            let command = ["run", "--session", "s1", "--", "bash", flags, "printenv KUBECONFIG"];
            let told = home.call(&command).ok().stdout();
            assert!(is_inside(&home, &told), "{flags}: {told}");
        }
        let command = ["run", "--session", "s1", "--", "bash", "-lc", "printenv OTHER SESSILE_SESSION"];
        let told = home.call(&command).ok().stdout();
        assert!(told.starts_with("kept\n0"), "{told}");
    }

    #[test]
    fn bash_with_a_socket_as_input_stays_in_the_session() {
        let home = home();
        home.write(".bashrc", "export KUBECONFIG=$HOME/.kube/config\n");
        // As agents start their commands. Without a shell above, bash takes that for a remote login.
        let ask = "import socket, subprocess\na, b = socket.socketpair()\n\
                   subprocess.run(['bash', '-c', 'echo $KUBECONFIG'], stdin=a)";
        for level in ["", "0"] {
            let told = home
                .call(&["run", "--session", "s1", "--", "python3", "-c", ask])
                .env("SHLVL", level)
                .with_tools()
                .ok()
                .stdout();
            assert!(is_inside(&home, &told), "{told}");
        }
        let outside = home.tool("python3", &["-c", ask]).ok().stdout();
        assert!(outside.ends_with("/.kube/config\n") && !is_inside(&home, &outside), "{outside}");
        let told = home.call(&["run", "--", "sh", "-c", "echo $SHLVL"]).env("SHLVL", "3").ok().stdout();
        assert_eq!(told, "3\n", "the caller's own count stays");
    }

    #[test]
    fn variable_name_with_shell_syntax_is_not_executed() {
        let home = home();
        home.write(
            ".config/openstack/clouds.yaml",
            "clouds:\n  a:\n    auth:\n      auth_url: https://a.example\n",
        );
        home.write(".config/sessile/contexts/c.toml", "[tools.openstack]\ncloud = \"a\"\n");
        start(&home, &["--name", "s1", "--context", "c"]);
        // Each name matches a pattern of variables that the bound tool's profile clears.
        let hostile = |call: Call| {
            let call = call.env("OS_PROJECT_;touch gone;", "1").env("OS_PROJECT_$(touch gone)", "1");
            call.env("OS_PROJECT_`touch gone`", "1").env("OS_PROJECT_\ntouch gone\n", "1")
        };
        for program in SHELLS {
            testkit::require_tool(program);
            for flags in ["-c", "-lc", "-ic"] {
                let words = ["run", "--session", "s1", "--", program, flags, "printenv KUBECONFIG"];
                let told = hostile(home.call(&words)).ok().stdout();
                assert!(is_inside(&home, &told), "{program} {flags}: {told}");
                assert!(!home.path("gone").exists(), "{program} {flags}");
            }
            let set = evaluated(program, &format!("env --session s1 --shell {program}"));
            let script = format!("{set}; printenv KUBECONFIG");
            let told = hostile(shell(&home, program, &["-c", &script])).ok().stdout();
            assert!(is_inside(&home, &told), "{program}: {told}");
            assert!(!home.path("gone").exists(), "{program}: env");
        }
    }

    #[test]
    fn start_up_file_that_a_power_cut_emptied_is_written_again() {
        let home = home();
        home.write(".bash_profile", "export KUBECONFIG=/out\n");
        let command =
            ["run", "--session", "s1", "--", "bash", "-lc", "printenv KUBECONFIG; echo $BASH_ENV >&2"];
        let done = home.call(&command).ok();
        let file = done.stderr().trim().to_owned();
        assert!(is_inside(&home, &done.stdout()), "{}", done.told());
        std::fs::write(&file, "").unwrap();
        std::fs::remove_dir_all(std::path::Path::new(&file).with_file_name("zsh")).unwrap();
        let done = home.call(&command).ok();
        assert!(is_inside(&home, &done.stdout()), "{}", done.told());
        assert!(std::path::Path::new(&file).with_file_name("zsh/.zshenv").exists());
    }

    #[test]
    fn own_file_of_bash_is_read_and_leads_no_shell_out() {
        let home = home();
        let own = home.write("own env", "export OWN=1 KUBECONFIG=/out AWS_CONFIG_FILE=/out\n");
        let told = "echo $OWN; printenv KUBECONFIG; echo ${AWS_CONFIG_FILE%/out}";
        let script = home.write("script", told);
        let nested = format!("bash -c '{told}'");
        let commands: [&[&str]; 5] = [
            &["bash", "-lc", told],
            &["bash", "-c", told],
            &["bash", "-euc", told],
            &["bash", script.to_str().unwrap()],
            &["sh", "-c", &nested],
        ];
        for command in commands {
            for is_flag in [false, true] {
                let flag = format!("BASH_ENV={}", own.display());
                let flags: &[&str] = if is_flag { &["--env", &flag] } else { &[] };
                let call = home.call(&[&["run", "--session", "s1"], flags, &["--"], command].concat());
                let call = if is_flag { call } else { call.env("BASH_ENV", &own) };
                let told = call.ok().stdout();
                let kubeconfig = told.strip_prefix("1\n").unwrap_or_else(|| panic!("{command:?}: {told}"));
                let (kubeconfig, aws) = kubeconfig.split_once('\n').unwrap();
                assert!(is_inside(&home, kubeconfig), "{command:?}: {told}");
                assert!(aws.starts_with(room(&home, "s1").to_str().unwrap()), "{command:?}: {told}");
            }
        }
    }

    #[test]
    fn nested_shells_keep_the_start_up_files_of_the_session() {
        let home = home();
        home.write("out", "export KUBECONFIG=/out\n");
        home.write("zsh/.zshenv", "export KUBECONFIG=/out\n");
        home.write("own", "export BASH_ENV=~/out\n");
        home.write(".zshenv", "export BASH_ENV=~/out\n");
        home.write(".profile", "export ZDOTDIR=~/zsh\n");
        let commands: [&[&str]; 3] = [
            &["bash", "-c", "bash -c 'printenv KUBECONFIG'"],
            &["zsh", "-c", "bash -c 'printenv KUBECONFIG'"],
            &["bash", "-lc", "zsh -c 'printenv KUBECONFIG'"],
        ];
        for command in commands {
            let call = home.call(&[&["run", "--session", "s1", "--"], command].concat());
            let told = call.env("BASH_ENV", home.path("own")).ok().stdout();
            assert!(is_inside(&home, &told), "{command:?}: {told}");
        }
    }

    #[test]
    fn shell_with_a_read_only_session_variable_does_not_start() {
        let home = home();
        home.write(".profile", "readonly KUBECONFIG=/out; export KUBECONFIG\n");
        home.write(".zshenv", "typeset -rx KUBECONFIG=/out\n");
        home.write("own", "readonly KUBECONFIG=/out\n");
        let commands: [(&[&str], bool); 3] = [
            (&["bash", "-lc", "printenv KUBECONFIG"], false),
            (&["zsh", "-c", "printenv KUBECONFIG"], false),
            (&["bash", "-c", "printenv KUBECONFIG"], true),
        ];
        for (command, is_own) in commands {
            let call = home.call(&[&["run", "--"], command].concat());
            let call = if is_own { call.env("BASH_ENV", home.path("own")) } else { call };
            let done = call.run().exit(125);
            assert_eq!(done.stdout(), "", "{command:?}");
            assert!(done.stderr().contains("cannot set KUBECONFIG"), "{command:?}: {}", done.told());
        }
    }

    #[test]
    fn own_file_of_bash_keeps_what_a_script_sets() {
        let home = home();
        let own = home.write("own env", "export OWN=1\n");
        let inner = "bash -c 'echo $OWN $KUBECONFIG ${_sessile_name-none}'";
        let command = ["run", "--", "sh", "-c", &format!("KUBECONFIG=\"a b\" {inner}")];
        let told = home.call(&command).env("BASH_ENV", own).ok().stdout();
        assert_eq!(told, "1 a b none\n");
    }

    #[test]
    fn the_hook_sets_right_what_zsh_and_fish_export() {
        let home = home();
        home.write(".zshenv", "export KUBECONFIG=/out\neval \"$(sessile hook zsh)\"\n");
        home.write(".config/fish/config.fish", "set -gx KUBECONFIG /out\nsessile hook fish | source\n");
        home.write(".bash_profile", "export KUBECONFIG=/out\neval \"$(sessile hook bash)\"\n");
        start(&home, &["--name", "s1"]);
        for program in SHELLS {
            let line = format!("sessile run --session s1 -- {program} -lc 'printenv KUBECONFIG'");
            let told = shell(&home, "sh", &["-c", &line]).ok().stdout();
            assert!(is_inside(&home, &told), "{program}: {told}");
            let told = shell(&home, program, &["-lc", "printenv KUBECONFIG"]).ok().stdout();
            assert_eq!(told, "/out\n", "{program} outside");
        }
    }

    #[test]
    fn doctor_finds_the_lines_and_is_content_once_the_hook_follows() {
        let home = home();
        home.write(".zshrc", "# export KUBECONFIG=/x\nexport KUBECONFIG=/out\n");
        home.write(".config/fish/config.fish", "set -gx AWS_CONFIG_FILE /out\n");
        home.write(".bash_profile", "export BASH_ENV=~/env\n");
        let told = home.call(&["doctor"]).run();
        let told = told.stdout() + &told.stderr();
        assert!(told.contains(".bash_profile:1 sets BASH_ENV, which leads login shells out"), "{told}");
        home.write(".bash_profile", "");
        assert!(told.contains(".zshrc:2 sets KUBECONFIG"), "{told}");
        assert!(told.contains("config.fish:1 sets AWS_CONFIG_FILE"), "{told}");
        assert!(told.contains("eval \"$(sessile hook zsh)\""), "{told}");
        home.write(".zshrc", "export KUBECONFIG=/out\neval \"$(sessile hook zsh)\"\n");
        home.write(".config/fish/config.fish", "set -gx AWS_CONFIG_FILE /out\nsessile hook fish | source\n");
        let told = home.call(&["doctor"]).ok();
        let told = told.stdout() + &told.stderr();
        assert!(!told.contains(" sets "), "{told}");
        home.write(".zshrc", "eval \"$(sessile hook zsh)\"\nexport KUBECONFIG=/out\n");
        let told = home.call(&["doctor"]).run();
        assert!((told.stdout() + &told.stderr()).contains(".zshrc:2"), "after the hook it leads out again");
    }
}

/// On terminals, as people see it.
mod on_a_terminal {
    use super::*;

    fn marked(home: &Home, program: &str) -> Tty {
        let dir = home.program().parent().unwrap().display();
        let path = format!("{dir}:/usr/local/bin:/usr/bin:/bin");
        let program = testkit::require_tool(program).display().to_string();
        let flags = ["shell", "--session", "s1", "--context", "c", "--shell", &program];
        home.call(&flags).env("PATH", path).env("TERM", "xterm").tty()
    }

    fn assert_it_is_the_sessions(home: &Home, program: &str) {
        home.write(".bashrc", "PS1='own-prompt> '; export KUBECONFIG=/out\n");
        home.write(".zshrc", "PROMPT='own-prompt> '; export KUBECONFIG=/out\n");
        home.write(
            ".config/fish/config.fish",
            "set -gx KUBECONFIG /out\nfunction fish_prompt\n  printf 'own-prompt> '\nend\nset -g fish_greeting\n",
        );
        let mut shell = marked(home, program);
        shell.expect("(s1:c) own-prompt>");
        shell.type_line("echo at-$KUBECONFIG-end; exit 7");
        shell.expect(&format!("at-{}-end", room(home, "s1").join("kube/config").display()));
        let (rest, status) = shell.finish();
        assert_eq!(status, 7, "{rest}");
        assert_eq!(live(home).len(), 1);
    }

    #[test]
    fn bash_shows_the_session_before_the_users_own_prompt() {
        assert_it_is_the_sessions(&home_with(&["c"]), "bash");
    }

    #[test]
    fn zsh_shows_the_session_before_the_users_own_prompt() {
        assert_it_is_the_sessions(&home_with(&["c"]), "zsh");
    }

    #[test]
    fn fish_shows_the_session_before_the_users_own_prompt() {
        assert_it_is_the_sessions(&home_with(&["c"]), "fish");
    }

    /// Who has loaded the hook sees one mark, not two.
    #[test]
    fn hooked_shell_has_one_mark_in_its_prompt() {
        for program in SHELLS {
            let home = home_with(&["c"]);
            load_hooks(&home);
            let mut shell = marked(&home, program);
            let before = shell.expect("(s1:c) $ ");
            assert!(!before.contains("(s1:c)"), "{program}: {before}");
            shell.type_line("exit");
            shell.finish();
        }
    }

    #[test]
    fn any_other_shell_shows_it_too() {
        let home = home_with(&["c"]);
        let mut shell = marked(&home, "dash");
        shell.expect("(s1:c) ");
        shell.type_line("exit 4");
        assert_eq!(shell.finish().1, 4);
        let flags = ["shell", "--session", "s1", "--shell", "/nonexistent/sh"];
        home.call(&flags).run().exit(127);
    }

    #[test]
    fn a_shell_without_a_session_has_one_for_itself() {
        let home = home();
        let flags = ["shell", "--shell", "/bin/bash"];
        let mut shell = home.call(&flags).env("TERM", "dumb").tty();
        shell.expect("(sessile)");
        shell.type_line("exit 3");
        assert_eq!(shell.finish().1, 3);
        assert!(live(&home).is_empty());
    }

    fn load_hooks(home: &Home) {
        home.write(".bashrc", "export KUBECONFIG=/own\nPS1='$ '\neval \"$(sessile hook bash)\"\n");
        home.write(".zshrc", "export KUBECONFIG=/own\nPROMPT='$ '\neval \"$(sessile hook zsh)\"\n");
        home.write(
            ".config/fish/config.fish",
            "set -gx KUBECONFIG /own\nset -g fish_greeting\nfunction fish_prompt\n  printf '$ '\nend\n\
             sessile hook fish | source\n",
        );
    }

    fn hooked(home: &Home, program: &str) -> Tty {
        load_hooks(home);
        let args = match program {
            "bash" => &["--noediting", "-i"][..],
            "zsh" => &["-i", "+Z"],
            _ => &["-i"],
        };
        shell(home, program, args).env("TERM", "xterm").tty()
    }

    /// Whatever is wrong with a file, the person must be able to go on typing.
    #[test]
    fn a_broken_setting_does_not_break_the_prompt() {
        let home = home();
        let mut shell = hooked(&home, "bash");
        shell.expect("$ ");
        home.write(".config/sessile/config.toml", "this is = = not toml\n");
        shell.type_line("printf '%s-%s\\n' still here");
        shell.expect("still-here");
        shell.type_line("printf '%s-%s\\n' and again");
        shell.expect("and-again");
        shell.type_line("exit");
    }
}

mod prompt {
    use super::*;

    #[test]
    fn prompt_is_session_and_context_or_empty() {
        let home = home_with(&["staging"]);
        assert_eq!(home.call(&["prompt"]).ok().stdout(), "");
        assert_eq!(home.call(&["prompt", "--context", "staging"]).ok().stdout(), "staging\n");
        start(&home, &["--name", "s1", "--context", "staging"]);
        assert_eq!(home.call(&["prompt", "--session", "s1"]).ok().stdout(), "s1:staging\n");
        let id = start(&home, &[]);
        assert_eq!(home.call(&["prompt", "--session", &id]).ok().stdout(), format!("{}\n", &id[28..]));
        let inside = ["run", "--session", "s1", "--", "sessile", "prompt", "-ojson"];
        let path = home.program().parent().unwrap().to_owned();
        let json = home.call(&inside).env("PATH", path).ok().json();
        assert_eq!((&json["session"], &json["context"]), (&"s1".into(), &"staging".into()));
    }
}

#[test]
fn prompt_shows_a_name_as_long_as_an_id_in_full() {
    let home = home();
    let name = "deployment-of-the-web-front-end-2026";
    assert_eq!(name.len(), 36);
    start(&home, &["--name", name]);
    assert_eq!(home.call(&["prompt", "--session", name]).ok().stdout(), format!("{name}\n"));
}
