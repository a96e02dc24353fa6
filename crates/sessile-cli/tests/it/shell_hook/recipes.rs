//! Recipes of the guide: status line of tmux, starship.

use super::terminals::{awaited, plain_windows};
use super::*;

fn guide() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/shell.md")).unwrap()
}

/// A block of the guide that holds a text.
#[track_caller]
fn block(holding: &str) -> String {
    let guide = guide();
    let mut blocks = guide.split("```").skip(1).step_by(2);
    let found = blocks.find(|block| block.contains(holding)).unwrap_or_else(|| panic!("{holding}"));
    found.split_once('\n').unwrap().1.to_owned()
}

#[test]
fn status_line_of_tmux_shows_the_context_of_each_pane() {
    let home = home_with_tools();
    for program in SHELLS {
        load_hooks(&home, "");
        plain_windows(&home, program);
        home.write(".tmux.conf", home.read(".tmux.conf") + &block("status-right"));
        let (file, line) = match program {
            "bash" => (".bashrc", "PROMPT_COMMAND"),
            "zsh" => (".zshrc", "precmd"),
            _ => (".config/fish/config.fish", "fish_title"),
        };
        home.write(file, home.read(file) + &block(line));
        let socket = home.path(format!("{program}.sock")).display().to_string();
        let tmux = |args: &[&str]| {
            let mut path = std::ffi::OsString::from(home.program().parent().unwrap());
            path.push(":");
            path.push(testkit::tool_path());
            home.tool("tmux", &["-S", &socket])
                .args(args)
                .env("PATH", path)
                .env("TERM", "xterm")
                .env("SHELL", testkit::require_tool(program))
                .ok()
                .stdout()
        };
        tmux(&["new-session", "-d", "-s", "w"]);
        tmux(&["send-keys", "-t", "w", "sessile context use staging", "Enter"]);
        tmux(&["send-keys", "-t", "w", &format!("echo > done-{program}"), "Enter"]);
        awaited(&home, &format!("done-{program}"));
        let shown = || tmux(&["display-message", "-p", "-t", "w", "#{T:status-right}"]);
        let begun = std::time::Instant::now();
        while !shown().contains("staging") {
            assert!(begun.elapsed().as_secs() < 20, "{program}: {}", shown());
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        tmux(&["kill-server"]);
    }
}

/// starship runs the command with the shell of the recipe, on the terminal of the prompt, and shows what it prints.
#[test]
fn starship_gets_the_label_of_the_prompt() {
    let recipe = block("[custom.sessile]");
    let value = |key: &str| {
        let line = recipe.lines().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("{recipe}"));
        line.split_once(" = ").unwrap().1.to_owned()
    };
    assert_eq!((value("command"), value("shell")), ("\"sessile prompt\"".into(), "[\"sh\", \"-c\"]".into()));
    for program in SHELLS {
        let home = home_with_tools();
        let mut shell = HookedTty::start(&home, program);
        let told = shell.run("sh -c 'sessile prompt'");
        assert!(!told.contains("staging"), "{program}: {told}");
        shell.run("sessile context use staging");
        let told = plain(&shell.run("sh -c 'sessile prompt'"));
        assert!(told.contains("staging"), "{program}: {told}");
        shell.exit();
    }
}
