//! Terminals within the terminal of a hooked shell: tmux, terminals of editors, and shells with an environment of their own.

use std::time::{Duration, Instant};

use super::*;

/// Waits for a file to have content.
#[track_caller]
pub(super) fn awaited(home: &Home, file: &str) -> String {
    let begun = Instant::now();
    loop {
        let path = home.path(file);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if text.ends_with('\n') {
            return text;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{file} was not written");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Windows without a login shell, whose system-wide start-up file would take the tools of the tests from its path.
pub(super) fn plain_windows(home: &Home, program: &str) {
    home.write(".tmux.conf", format!("set -g default-command '{program} -i'\n"));
}

#[test]
fn window_of_tmux_that_a_hooked_shell_opens_is_in_its_session() {
    for program in SHELLS {
        let home = home_with_tools();
        plain_windows(&home, program);
        let mut shell = HookedTty::start(&home, program);
        shell.run("sessile context use staging");
        shell.run("tmux new-session -d -s w");
        shell.run("tmux send-keys -t w 'sh look > inner; sessile prompt > mark' Enter");
        assert_eq!(awaited(&home, "inner"), format!("[[{}]]\n", all("staging")), "{program}");
        assert_eq!(awaited(&home, "mark"), "staging\n", "{program}");
        shell.run("tmux kill-server");
        shell.exit();
    }
}

#[test]
fn windows_of_one_tmux_have_selections_of_their_own() {
    for program in SHELLS {
        let home = home_with_tools();
        load_hooks(&home, "");
        plain_windows(&home, program);
        let socket = home.path("tmux.sock").display().to_string();
        let run = |args: &[&str]| {
            let mut path = std::ffi::OsString::from(home.program().parent().unwrap());
            path.push(":");
            path.push(testkit::tool_path());
            home.tool("tmux", &["-S", &socket])
                .args(args)
                .env("PATH", path)
                .env("TERM", "xterm")
                .env("SHELL", testkit::require_tool(program))
                .ok()
        };
        run(&["new-session", "-d", "-s", "w", "-n", "one"]);
        run(&["new-window", "-t", "w", "-n", "two"]);
        for (window, context) in [("one", "staging"), ("two", "dev")] {
            let target = format!("w:{window}");
            run(&["send-keys", "-t", &target, &format!("sessile context use {context}"), "Enter"]);
            run(&[
                "send-keys",
                "-t",
                &target,
                &format!("kubectl config current-context > {window}"),
                "Enter",
            ]);
        }
        assert_eq!(awaited(&home, "one"), "staging\n", "{program}");
        assert_eq!(awaited(&home, "two"), "dev\n", "{program}");
        // The shell still reaches the server that it runs in.
        run(&["send-keys", "-t", "w:one", "tmux display-message -p '#S' > name", "Enter"]);
        assert_eq!(awaited(&home, "name"), "w\n", "{program}");
        run(&["kill-server"]);
    }
}

#[test]
fn editor_terminal_of_a_hooked_shell_stays_in_the_session() {
    for program in SHELLS {
        let home = home_with_tools();
        home.write("inner", "sh look\nsessile prompt\nexit\n");
        let mut shell = HookedTty::start(&home, program);
        shell.run("sessile context use staging");
        // `script` gives the shell a terminal of its own, as editors do.
        let told = plain(&shell.run(&format!("script -qec '{program} -i' /dev/null < inner")));
        assert!(told.contains(&format!("[[{}]]", all("staging"))), "{program}: {told}");
        assert!(told.contains("(staging)"), "{program}: {told}");
        shell.exit();
    }
}

#[test]
fn shell_with_a_clean_environment_follows_the_terminal_again() {
    for program in SHELLS {
        let home = home_with_tools();
        let mut shell = HookedTty::start(&home, program);
        shell.run("sessile context use staging");
        // As with `sudo -s` to the same account: nothing of the session is inherited.
        let keep = ["HOME", "PATH", "TERM", "SHELL", "TMPDIR", "SESSILE_SYSTEM_DIR"];
        let keep = keep.map(|name| format!("\"{name}=${name}\"")).join(" ");
        let options = if program == "bash" { "--noediting -i" } else { "-i" };
        shell.tty.type_line(&format!("env -i {keep} {program} {options}"));
        assert_eq!(shell.targets(), all("staging"), "{program}");
        assert_eq!(shell.mark(), "(staging)", "{program}");
        shell.run("sessile context use dev");
        assert_eq!(shell.targets(), all("dev"), "{program}");
        shell.tty.type_line("exit");
        assert_eq!(shell.kubectl(), "dev", "{program}: the outer shell follows the terminal too");
        shell.exit();
    }
}

#[test]
fn shell_on_a_terminal_of_a_program_is_inside_the_session() {
    for program in SHELLS {
        let home = home_with_tools();
        home.write(".config/sessile/contexts/production.toml", context("production", "guard = \"approval\""));
        home.write("p/.sessile/config.toml", "context = \"dev\"\n");
        home.write(
            "inner",
            "sessile context approve production --for 1m --yes\nsessile trust p --yes\nsessile session detach\n\
             sessile context approve production --for 1m --yes\nsessile context use dev\nsh look\nexit\n",
        );
        let mut shell = HookedTty::start(&home, program);
        shell.run("sessile context use staging");
        let told = plain(&shell.run(&format!("script -qec '{program} -i' /dev/null < inner")));
        let refused = |what: &str| told.matches(what).count();
        assert_eq!(refused("approving a context is refused inside a session"), 2, "{program}: {told}");
        assert_eq!(refused("trusting a project is refused inside a session"), 1, "{program}: {told}");
        assert!(told.contains(&format!("[[{}]]", all("dev"))), "{program}: its own selection: {told}");
        assert_eq!(shell.targets(), all("staging"), "{program}: the outer shell is where it was");
        assert!(!shell.run("sessile context approve --list").contains("production"), "{program}");
        shell.exit();
    }
}

#[test]
fn bash_without_a_terminal_says_nothing_at_its_prompts() {
    let home = home_with_tools();
    load_hooks(&home, "");
    let mut path = std::ffi::OsString::from(home.program().parent().unwrap());
    path.push(":");
    path.push(testkit::tool_path());
    let call = home.tool("setsid", &["-w", "bash", "--noediting", "-i"]).env("PATH", path);
    let done = call.stdin("kubectl config current-context\n").run();
    assert!(done.stdout().contains("own"), "{}", done.told());
    assert!(!done.stderr().contains("/dev/tty"), "{}", done.told());
}
