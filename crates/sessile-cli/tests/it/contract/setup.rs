//! `sessile setup`: what it adds to the files of agents, and that --undo leaves them as they were.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use testkit::{Call, Home};

use crate::{history, home_with};

fn setup(home: &Home, args: &[&str]) -> Call {
    let path = format!("{}:/usr/bin:/bin", home.program().parent().unwrap().display());
    home.call(&["setup"]).args(args).env("PATH", path).env("SHELL", "/bin/bash")
}

/// Every file and directory of the home with its content, but for Sessile's own state.
fn files(home: &Home) -> BTreeMap<String, Option<Vec<u8>>> {
    fn collect(dir: &Path, root: &Path, found: &mut BTreeMap<String, Option<Vec<u8>>>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            if name == ".local" {
                continue;
            }
            if path.is_dir() {
                found.insert(name, None);
                collect(&path, root, found);
            } else {
                found.insert(name, Some(std::fs::read(&path).unwrap()));
            }
        }
    }
    let mut found = BTreeMap::new();
    collect(&home.path(""), &home.path(""), &mut found);
    found
}

fn agents(home: &Home) -> Vec<String> {
    let listed = setup(home, &["--output", "json"]).ok().json();
    listed.as_array().unwrap().iter().map(|one| one["agent"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn dry_run_shows_the_changes_and_makes_none() {
    let home = home_with(&["staging"]);
    home.write(".claude.json", "{\n  \"numStartups\": 7\n}\n");
    home.write(".bashrc", "alias x=y\n");
    let before = files(&home);
    let told = setup(&home, &["claude", "--dry-run", "--context", "staging"]).ok().stdout();
    for part in [
        ".claude.json: add mcpServers.sessile\n",
        "\"--context\"",
        ".claude/skills/sessile/SKILL.md (new file): create\n",
        "wrappers/claude (new file): create\n",
        "exec sessile run --agent claude --max-action warn --context staging -- \"$real\" \"$@\"\n",
        ".bashrc: add `export PATH=",
    ] {
        assert!(told.contains(part), "{part} is missing: {told}");
    }
    assert_eq!(files(&home), before);
    assert!(!home.path(".local/state/sessile/setup").exists());
}

#[test]
fn change_without_a_confirmation_is_refused() {
    let home = home_with(&[]);
    let before = files(&home);
    let refused = setup(&home, &["claude", "--output", "json"]).run().exit(2);
    assert_eq!(refused.json_error()["code"], "CONFIRMATION_REQUIRED");
    assert_eq!(files(&home), before);
    setup(&home, &["claude", "--undo", "--yes"]).ok();
    home.call(&["session", "start", "--name", "s"]).ok();
    let refused =
        setup(&home, &["claude", "--yes", "--output", "json"]).env("SESSILE_SESSION", "s").run().exit(7);
    assert_eq!(refused.json_error()["code"], "IN_SESSION");
}

#[test]
fn changes_are_printed_before_the_prompt() {
    let home = home_with(&[]);
    let mut tty = setup(&home, &["claude", "--only", "mcp"]).tty();
    let shown = tty.expect("? [y/N]");
    assert!(shown.contains("add mcpServers.sessile") && shown.contains(".claude.json"), "{shown}");
    tty.type_line("n");
    assert_ne!(tty.finish().1, 0);
    assert!(!home.path(".claude.json").exists());
    let mut tty = setup(&home, &["claude", "--only", "mcp"]).tty();
    tty.expect("? [y/N]");
    tty.type_line("y");
    tty.expect("set up Claude Code");
    assert_eq!(tty.finish().1, 0);
    assert!(home.path(".claude.json").exists());
}

#[test]
fn undo_leaves_every_file_as_it_was() {
    let home = home_with(&["staging"]);
    // Tabs, comments, no line break at the end, secrets, links: other people's files are not tidy.
    home.write(".claude.json", "{\n\t\"oauthAccount\": {\"token\": \"s3cret\"},\n\t\"projects\": {}}");
    home.write("dotfiles/codex.toml", "model = \"x\" # mine\n\n[mcp_servers.other]\ncommand = \"other\"");
    std::fs::create_dir(home.path(".codex")).unwrap();
    std::os::unix::fs::symlink(home.path("dotfiles/codex.toml"), home.path(".codex/config.toml")).unwrap();
    home.write(".gemini/settings.json", "{}");
    home.write(".bashrc", "alias x=y");
    let before = files(&home);
    let agents = agents(&home);
    assert!(
        ["claude", "codex", "cursor", "gemini", "opencode"]
            .iter()
            .all(|name| agents.iter().any(|one| one == name))
    );
    for agent in &agents {
        let done = setup(&home, &[agent, "--yes", "--context", "staging", "--output", "json"]).ok().json();
        assert_eq!(done["changed"], true, "{agent}");
        let again = setup(&home, &[agent, "--yes", "--context", "staging", "--output", "json"]).ok().json();
        assert_eq!(again["changed"], false, "{agent}");
    }
    assert!(home.path(".codex/config.toml").is_symlink());
    assert!(home.read(".claude.json").contains("\"sessile\""));
    assert!(home.read(".codex/config.toml").contains("[mcp_servers.sessile]"));
    assert_eq!(home.read(".bashrc").matches("wrappers").count(), 1);
    let records = std::fs::read_dir(home.path(".local/state/sessile/setup")).unwrap();
    for record in records {
        let text = std::fs::read_to_string(record.unwrap().path()).unwrap();
        assert!(!text.contains("s3cret"), "a record holds what is not Sessile's: {text}");
    }
    for agent in &agents {
        setup(&home, &[agent, "--undo", "--yes"]).ok();
    }
    assert_eq!(files(&home), before);
    let told = setup(&home, &["claude", "--undo"]).ok().stdout();
    assert_eq!(told, "Claude Code is not set up\n");
    let commands: Vec<Value> =
        history(&home).as_array().unwrap().iter().map(|one| one["command"].clone()).collect();
    assert!(
        commands.iter().filter(|command| *command == "setup").count() >= agents.len() * 2,
        "{commands:?}"
    );
}

#[test]
fn edits_made_in_between_survive_undo() {
    let home = home_with(&[]);
    home.write(".claude.json", "{\n  \"a\": 1\n}\n");
    home.write(".codex/config.toml", "model = \"x\"\n");
    home.write(".bashrc", "alias x=y\n");
    setup(&home, &["claude", "--yes"]).ok();
    setup(&home, &["codex", "--yes"]).ok();
    // The agent rewrites its file in its own style and adds a server.
    let mut settings: Value = serde_json::from_str(&home.read(".claude.json")).unwrap();
    settings["mcpServers"]["mine"] = serde_json::json!({ "command": "mine" });
    settings["b"] = serde_json::json!([2]);
    home.write(".claude.json", serde_json::to_string_pretty(&settings).unwrap());
    let toml = home.read(".codex/config.toml") + "\n[projects.\"/x\"]\ntrust_level = \"trusted\"\n";
    home.write(".codex/config.toml", toml.replace("\"x\"\n", "\"y\"\n"));
    home.write(".bashrc", format!("{}alias a=b\n", home.read(".bashrc")));
    setup(&home, &["claude", "--undo", "--yes"]).ok();
    assert_eq!(home.read(".bashrc").matches("wrappers").count(), 1, "Codex still needs the line");
    setup(&home, &["codex", "--undo", "--yes"]).ok();
    settings["mcpServers"].as_object_mut().unwrap().shift_remove("sessile");
    assert_eq!(home.read(".claude.json"), serde_json::to_string_pretty(&settings).unwrap());
    assert_eq!(
        home.read(".codex/config.toml"),
        "model = \"y\"\n\n[projects.\"/x\"]\ntrust_level = \"trusted\"\n"
    );
    assert_eq!(home.read(".bashrc"), "alias x=y\nalias a=b\n");
    assert!(!home.path(".claude").exists() && !home.path(".local/state/sessile/wrappers").exists());
}

#[test]
fn files_of_others_are_not_replaced() {
    let home = home_with(&[]);
    home.write(".claude.json", "{\"mcpServers\": {\"sessile\": {\"command\": \"mine\"}}}");
    home.write(".claude/skills/sessile/SKILL.md", "mine\n");
    let before = files(&home);
    let done = setup(&home, &["claude", "--yes", "--only", "mcp,skill"]).ok();
    assert!(
        done.stderr().contains("mcpServers.sessile already exists and was not changed"),
        "{}",
        done.stderr()
    );
    assert_eq!(files(&home), before);
    for broken in ["[1]", "{", "{\"mcpServers\": 1}"] {
        home.write(".claude.json", broken);
        let refused = setup(&home, &["claude", "--yes", "--output", "json"]).run().exit(2);
        assert_eq!(refused.json_error()["code"], "INVALID_VALUE");
        assert_eq!(home.read(".claude.json"), broken);
    }
    // A skill that somebody edited is theirs.
    home.write(".claude.json", "{}");
    std::fs::remove_file(home.path(".claude/skills/sessile/SKILL.md")).unwrap();
    setup(&home, &["claude", "--yes"]).ok();
    home.write(".claude/skills/sessile/SKILL.md", "edited\n");
    let told = setup(&home, &["claude", "--undo", "--yes"]).ok().stdout();
    assert!(told.contains("SKILL.md: edited since; not changed"), "{told}");
    assert_eq!(home.read(".claude/skills/sessile/SKILL.md"), "edited\n");
    assert_eq!(home.read(".claude.json"), "{}");
}

#[test]
fn another_setup_replaces_the_first_and_keeps_other_parts() {
    let home = home_with(&["staging"]);
    setup(&home, &["codex", "--yes", "--only", "mcp"]).ok();
    setup(&home, &["codex", "--yes", "--only", "skill"]).ok();
    setup(&home, &["codex", "--yes", "--only", "mcp", "--context", "staging"]).ok();
    let entry = home.read(".codex/config.toml");
    assert_eq!(entry.matches("[mcp_servers.sessile]").count(), 1, "{entry}");
    assert!(entry.contains("args = [\"mcp\", \"--context\", \"staging\"]"), "{entry}");
    assert!(home.path(".codex/skills/sessile/SKILL.md").exists());
    setup(&home, &["codex", "--undo", "--yes"]).ok();
    assert!(!home.path(".codex").exists());
}

#[test]
fn paths_follow_the_variables_of_the_agents() {
    let home = home_with(&[]);
    let dir = home.path("elsewhere");
    let dir = dir.to_str().unwrap();
    for (agent, variable, file) in [
        ("claude", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/opencode.json"),
    ] {
        setup(&home, &[agent, "--yes", "--only", "mcp"]).env(variable, dir).ok();
        assert!(home.read(format!("elsewhere/{file}")).contains("sessile"), "{agent}");
    }
}

#[test]
fn wrapper_starts_the_agent_in_a_session_of_its_own() {
    let home = home_with(&["staging"]);
    let agent =
        home.write("bin/claude", "#!/bin/sh\necho \"$SESSILE_SESSION|$*\"\nsessile status --output json\n");
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).unwrap();
    setup(&home, &["claude", "--yes", "--context", "staging", "--only", "wrapper"]).ok();
    let programs = home.program().parent().unwrap().display().to_string();
    // As a new shell finds it.
    let start = |session: Option<&str>| {
        let line = ". ~/.bashrc && command -v claude && claude 'a  b' '*'";
        let mut command = Command::new("bash");
        command.args(["-c", line]).env_clear().env("HOME", home.path("")).current_dir(home.path(""));
        command.env("PATH", format!("{}:{programs}:/usr/bin:/bin", home.path("bin").display()));
        command.envs(session.map(|session| ("SESSILE_SESSION", session)));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let told = start(None);
    let (found, rest) = told.split_once('\n').unwrap();
    assert_eq!(Path::new(found), home.path(".local/state/sessile/wrappers/claude"));
    let (first, status) = rest.split_once('\n').unwrap();
    let (session, arguments) = first.split_once('|').unwrap();
    assert_eq!(arguments, "a  b *");
    let status: Value = serde_json::from_str(status).unwrap();
    assert_eq!(
        (status["session"].as_str(), status["current_context"].as_str()),
        (Some(session), Some("staging"))
    );
    assert!(!start(None).contains(session), "each start has its own");
    let id = home.call(&["session", "start", "--quiet", "--name", "outer"]).ok().stdout();
    assert!(start(Some(id.trim())).contains(&format!("{}|", id.trim())), "an outer session is kept");
}

/// A home with an agent that reports its state into its directory and stays, and a tmux whose server ends with it.
struct TmuxHome {
    home: Home,
    tmux: std::path::PathBuf,
    path: String,
}

impl Drop for TmuxHome {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

impl TmuxHome {
    fn new() -> Self {
        let home = home_with(&["staging"]);
        let agent = home.write(
            "bin/agent",
            "#!/bin/sh\nsessile status --output json > status.json.new\nmv status.json.new status.json\n\
             echo agent is $$\necho $$ > pid.new\nmv pid.new pid\nexec sleep 600\n",
        );
        std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).unwrap();
        let programs = home.program().parent().unwrap().display().to_string();
        let path = format!("{}:{programs}:/usr/bin:/bin", home.path("bin").display());
        TmuxHome { tmux: testkit::require_tool("tmux"), home, path }
    }

    /// Runs tmux as the user does, outside any session.
    fn tmux(&self, args: &[&str]) -> String {
        let mut command = Command::new(&self.tmux);
        command.args(["-f", "/dev/null"]).args(args).env_clear().env("TMUX_TMPDIR", self.home.path(""));
        command.env("HOME", self.home.path("")).env("PATH", &self.path);
        command.env("SHELL", "/bin/sh").env("TERM", "xterm");
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }

    fn sessile(&self, args: &[&str]) -> Call {
        let call = self.home.call(args).env("PATH", &self.path).env("TMUX_TMPDIR", self.home.path(""));
        call.env("SHELL", "/bin/sh").env("TERM", "xterm")
    }

    /// What the agent in this directory reported of its session.
    fn status(&self, dir: &str) -> Value {
        self.wait_until("the agent reports", || self.home.path(format!("{dir}pid")).exists());
        serde_json::from_str(&self.home.read(format!("{dir}status.json"))).unwrap()
    }

    fn wait_until(&self, what: &str, is_done: impl Fn() -> bool) {
        let began = std::time::Instant::now();
        while !is_done() {
            assert!(began.elapsed().as_secs() < 60, "waited 60 s until {what}: {}", self.tmux(&["ls"]));
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

/// The first recipe of the guide: a worktree, a tmux session and a Sessile session for each agent. Claude Squad starts its agents in
/// the same way: by a line that it hands to `tmux new-session`.
#[test]
fn agents_in_tmux_and_worktrees_have_a_session_each() {
    let at = TmuxHome::new();
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let dir = at.home.path("shop");
        let done = Command::new("git").current_dir(dir).args(identity).args(args).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    std::fs::create_dir(at.home.path("shop")).unwrap();
    git(&["init", "--quiet"]);
    git(&["commit", "--quiet", "--allow-empty", "-m", "first"]);
    for name in ["web", "api"] {
        git(&["worktree", "add", "--quiet", &format!("../shop-{name}"), "-b", name]);
        let dir = at.home.path(format!("shop-{name}")).display().to_string();
        let line = format!("sessile run --session {name} --context staging -- agent");
        at.tmux(&["new-session", "-d", "-s", name, "-c", &dir, &line]);
    }
    let mut sessions = Vec::new();
    for name in ["web", "api"] {
        let status = at.status(&format!("shop-{name}/"));
        assert_eq!(status["current_context"], "staging");
        assert_eq!(status["session_details"]["name"], name);
        sessions.push(status["session"].clone());
    }
    assert_ne!(sessions[0], sessions[1]);
}

/// The second one: a tmux server inside a session, beside the user's own.
#[test]
fn tmux_server_in_a_session_ends_with_it() {
    let at = TmuxHome::new();
    at.tmux(&["new-session", "-d", "-s", "own"]);
    at.sessile(&["run", "--session", "web", "--context", "staging", "--"])
        .args(&["tmux", "new-session", "-d", "-s", "web", "agent"])
        .ok();
    let status = at.status("");
    assert_eq!(status["current_context"], "staging");
    assert_eq!(status["session_details"]["name"], "web");
    assert_eq!(at.tmux(&["list-sessions", "-F", "#{session_name}"]), "own\n", "the user's server");
    let pid = at.home.read("pid").trim().to_owned();
    let mut attached = at.sessile(&["run", "--session", "web", "--", "tmux", "attach", "-t", "web"]).tty();
    attached.expect(&format!("agent is {pid}"));
    at.sessile(&["session", "stop", "web"]).ok();
    attached.finish();
    at.wait_until("the agent ends", || !Path::new("/proc").join(&pid).exists());
    assert_eq!(at.tmux(&["list-sessions", "-F", "#{session_name}"]), "own\n", "the user's server");
}
