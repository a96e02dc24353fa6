//! Real coding agents, each driven by a scripted model on this machine: two at once in two imported contexts, with a start-up
//! file that exports a variable of a tool. Every command that they run has the target of its own context only.
//!
//! Claude Code runs always, the others with `--run-ignored`, as `scripts/test --long` does.

use std::process::{Command, Stdio};

use testkit::{Call, Home, ScriptedModel};

use crate::home;

/// Commands that the model asks for. They need a script, because some agents refuse a command with a substitution.
const COMMANDS: [&str; 6] =
    ["sh probe 1", "sh probe 2", "sh probe 3", "sh probe 4", "sh probe 5", "sh probe 6"];

/// Script of the commands, which prints the interesting part of each output between brackets. The last one asks for the author of a
/// commit: Gemini hides every global configuration of git from its commands, with Sessile or without.
const PROBE: &str = r#"case $1 in
1) told=$(kubectl config current-context) ;;
2) told="$(bash -lc 'kubectl config current-context') $(bash -c 'kubectl config current-context')" ;;
3) told=$(kubectl config use-context production 2>&1) ;;
4) told=$(kubectl config get-contexts -o name | xargs) ;;
5) told=$(kubectl --context production get pods 2>&1) ;;
6) told="$(kubectl config current-context) $(git var GIT_AUTHOR_IDENT | sed 's/.*<//; s/>.*//')" ;;
esac
echo "[$told]"
"#;

/// A coding agent: its program and the arguments that select the model.
struct CodingAgent {
    program: &'static str,
    args: &'static [&'static str],
    /// Files below the home; `ADDRESS` stands for the model's.
    files: &'static [(&'static str, &'static str)],
    variables: &'static [(&'static str, &'static str)],
    /// Whether its first start makes a database, which two first starts at once would both make.
    makes_database: bool,
}

const CLAUDE: CodingAgent = CodingAgent {
    makes_database: false,
    program: "claude",
    args: &["--dangerously-skip-permissions", "-p", "look around"],
    files: &[],
    variables: &[
        ("ANTHROPIC_BASE_URL", "http://ADDRESS"),
        ("ANTHROPIC_API_KEY", "none"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        // It refuses to skip permissions as root elsewhere.
        ("IS_SANDBOX", "1"),
    ],
};

const CODEX: CodingAgent = CodingAgent {
    makes_database: false,
    program: "codex",
    args: &[
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        "-c",
        "model_providers.local.base_url=\"http://ADDRESS/v1\"",
        "look around",
    ],
    files: &[(
        ".codex/config.toml",
        "model = \"scripted\"\nmodel_provider = \"local\"\n\
         [model_providers.local]\nname = \"local\"\nbase_url = \"\"\nwire_api = \"responses\"\n",
    )],
    variables: &[],
};

const GEMINI: CodingAgent = CodingAgent {
    makes_database: false,
    program: "gemini",
    args: &["--yolo", "-m", "gemini-2.5-flash", "-p", "look around"],
    files: &[(
        ".gemini/settings.json",
        "{\"security\": {\"auth\": {\"selectedType\": \"gemini-api-key\"}},\
         \"privacy\": {\"usageStatisticsEnabled\": false}, \"telemetry\": {\"enabled\": false}}",
    )],
    variables: &[
        ("GOOGLE_GEMINI_BASE_URL", "http://ADDRESS"),
        ("GEMINI_API_KEY", "none"),
        ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
    ],
};

const OPENCODE: CodingAgent = CodingAgent {
    makes_database: true,
    program: "opencode",
    args: &["run", "look around"],
    files: &[],
    variables: &[
        (
            "OPENCODE_CONFIG_CONTENT",
            "{\"provider\": {\"anthropic\": {\"options\": {\"baseURL\": \"http://ADDRESS/v1\", \"apiKey\": \"none\"}}},\
             \"model\": \"anthropic/claude-sonnet-4-5\", \"autoupdate\": false, \"permission\": \"allow\"}",
        ),
        ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
    ],
};

/// A home with three targets, production selected, and start-up files that export the tool's variable.
fn home_with_targets() -> Home {
    let home = home();
    let entry = |text: &str| -> String {
        ["production", "staging", "dev"].iter().map(|name| text.replace("NAME", name)).collect()
    };
    home.write(
        ".kube/config",
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: production\nclusters:\n{}users:\n{}contexts:\n{}",
            entry("- name: NAME\n  cluster: {server: https://NAME.invalid}\n"),
            entry("- name: NAME\n  user: {token: t-NAME}\n"),
            entry("- name: NAME\n  context: {cluster: NAME, user: NAME}\n"),
        ),
    );
    home.write(".gitconfig", "[user]\n\tname = own\n\temail = own@example.org\n");
    home.write(".bashrc", "export KUBECONFIG=$HOME/.kube/config\n");
    home.write(".bash_profile", ". ~/.bashrc\n");
    home.write("probe", PROBE);
    home
}

impl CodingAgent {
    /// Runs a line in a new bash that has read its start-up file, as a person types it.
    fn type_line(&self, home: &Home, line: &str, model: &ScriptedModel) -> String {
        let filled = |text: &str| text.replace("ADDRESS", &model.address().to_string());
        let words: Vec<String> = self.args.iter().map(|arg| filled(arg)).collect();
        let programs = std::env::join_paths(
            std::iter::once(home.program().parent().unwrap().to_owned())
                .chain(std::env::split_paths(&testkit::tool_path())),
        );
        let mut command = Command::new("bash");
        command.args(["-c", &format!(". ~/.bashrc; {line}"), "bash"]).args(&words);
        command
            .env_clear()
            .current_dir(home.path(""))
            .env("HOME", home.path(""))
            .env("PATH", programs.unwrap());
        command
            .env("HTTPS_PROXY", "http://127.0.0.1:9")
            .env("NO_PROXY", "127.0.0.1,localhost")
            .env("TERM", "dumb");
        command
            .env("SHELL", "/bin/bash")
            .envs(self.variables.iter().map(|(name, value)| (*name, filled(value))));
        let output = command.stdin(Stdio::null()).output().unwrap();
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    }

    /// Sets the agent up: its own list of servers has ours as connected, each start has a session of its own, and --undo
    /// restores the user's files.
    fn assert_set_up(&self, connected: &str) {
        testkit::require_tool(self.program);
        let home = crate::home_with(&["staging"]);
        home.write(".bashrc", "alias x=y\n");
        for (file, text) in self.files {
            home.write(file, text);
        }
        let own: Vec<&str> = self.files.iter().map(|(file, _)| *file).chain([".bashrc"]).collect();
        let before: Vec<String> = own.iter().map(|file| home.read(file)).collect();
        let setup = |args: &[&str]| {
            let call = home.call(&["setup", self.program, "--yes"]).args(args).with_tools();
            call.env("SHELL", "/bin/bash").ok()
        };
        setup(&["--context", "staging"]);
        // By its path: a login shell, as Codex starts it, has the search path of the system.
        let program = home.program().display();
        let look = format!("{program} status --output json");
        let model = ScriptedModel::start(&[&look]);
        let listed = self.type_line(&home, &format!("{} mcp list", self.program), &model);
        let line = listed.lines().find(|line| line.contains("sessile") && line.contains(connected));
        assert!(line.is_some(), "{}: {listed}", self.program);
        let mut sessions = Vec::new();
        for _ in 0..2 {
            let model = ScriptedModel::start(&[&look]);
            let told = self.type_line(&home, &format!("{} \"$@\"", self.program), &model);
            let outputs = model.outputs();
            let status = outputs.first().and_then(|output| {
                let document = output.get(output.find('{')?..=output.rfind('}')?)?;
                serde_json::from_str::<serde_json::Value>(document).ok()
            });
            let Some(status) = status else { panic!("{}: {outputs:?}\n{told}", self.program) };
            assert_eq!(status["current_context"], "staging", "{}: {status}", self.program);
            sessions.push(status["session"].as_str().expect("a session").to_owned());
            // Tools of the server reach the model only over a connection, which the list of some agents does not try.
            let tools = model.tools();
            assert!(tools.contains("list_contexts"), "{}: no tool of the server in {tools}", self.program);
        }
        assert_ne!(sessions[0], sessions[1], "{}: each start has its own", self.program);
        setup(&["--undo"]);
        for (file, before) in own.iter().zip(before) {
            let after = home.read(file);
            // An agent writes what it likes into its own file meanwhile.
            assert!(after == before || !after.contains("sessile"), "{}: {file}: {after}", self.program);
        }
        assert_eq!(home.read(".bashrc"), "alias x=y\n");
    }

    fn call(&self, home: &Home, context: &str, model: &ScriptedModel) -> Call {
        let filled = |text: &str| text.replace("ADDRESS", &model.address().to_string());
        let args: Vec<String> = self.args.iter().map(|arg| filled(arg)).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut call = home.call(&["run", "--context", context, "--", self.program]).args(&args).with_tools();
        for (name, value) in self.variables {
            call = call.env(name, filled(value));
        }
        // An agent that wants to talk to anybody else meets a closed port of this machine.
        call.env("HTTPS_PROXY", "http://127.0.0.1:9")
            .env("NO_PROXY", "127.0.0.1,localhost")
            .env("TERM", "dumb")
            .env("SHELL", "/bin/bash")
    }

    /// Runs two at once, each in its own context.
    fn assert_isolated(&self) {
        testkit::require_tool(self.program);
        let home = home_with_targets();
        for (file, text) in self.files {
            home.write(file, text);
        }
        home.call(&["import", "--yes"]).ok();
        home.call(&["context", "edit", "staging", "--bind", "git.email=staging@example.org"]).ok();
        home.call(&["context", "edit", "dev", "--bind", "git.email=dev@example.org"]).ok();
        let own = [".kube/config", ".gitconfig", ".bashrc", ".bash_profile"];
        let before = own.map(|file| home.read(file));
        if self.makes_database {
            self.assert_sees_only(&home, "dev");
        }
        std::thread::scope(|both| {
            for context in ["staging", "dev"] {
                let home = &home;
                both.spawn(move || self.assert_sees_only(home, context));
            }
        });
        assert_eq!(own.map(|file| home.read(file)), before, "{}: the user's files", self.program);
    }

    fn assert_sees_only(&self, home: &Home, context: &str) {
        let model = ScriptedModel::start(&COMMANDS);
        let done = self.call(home, context, &model).run();
        let outputs = model.outputs();
        let shown = format!("{} in {context}: {outputs:#?}\n{}", self.program, done.told());
        assert_eq!(outputs.len(), COMMANDS.len(), "{shown}");
        let between = |text: &str| -> String {
            let text = text.split_once('[').map_or("", |(_, rest)| rest);
            text.rsplit_once(']').map_or("", |(text, _)| text).to_owned()
        };
        let seen: Vec<String> = outputs.iter().map(|output| between(output)).collect();
        assert_eq!(seen[0], context, "{shown}");
        assert_eq!(seen[1], format!("{context} {context}"), "{shown}");
        assert!(seen[2].contains("no context exists"), "{shown}");
        assert_eq!(seen[3], context, "{shown}");
        assert!(seen[4].contains("does not exist") || seen[4].contains("not found"), "{shown}");
        assert_eq!(seen[5], format!("{context} {context}@example.org"), "{shown}");
    }
}

#[test]
fn claude_code_sees_only_the_target_of_its_context() {
    CLAUDE.assert_isolated();
}

#[test]
#[ignore = "needs three coding agents from npm, which scripts/test --long installs"]
fn codex_sees_only_the_target_of_its_context() {
    CODEX.assert_isolated();
}

#[test]
#[ignore = "needs three coding agents from npm, which scripts/test --long installs"]
fn gemini_sees_only_the_target_of_its_context() {
    GEMINI.assert_isolated();
}

#[test]
#[ignore = "needs three coding agents from npm, which scripts/test --long installs"]
fn opencode_sees_only_the_target_of_its_context() {
    OPENCODE.assert_isolated();
}

#[test]
fn claude_code_is_set_up() {
    CLAUDE.assert_set_up("Connected");
}

#[test]
#[ignore = "needs three coding agents from npm, which scripts/test --long installs"]
fn codex_is_set_up() {
    // Its list does not connect.
    CODEX.assert_set_up("enabled");
}

#[test]
#[ignore = "needs three coding agents from npm, which scripts/test --long installs"]
fn gemini_is_set_up() {
    GEMINI.assert_set_up("Connected");
}

#[test]
#[ignore = "needs three coding agents from npm, which scripts/test --long installs"]
fn opencode_is_set_up() {
    OPENCODE.assert_set_up("connected");
}
