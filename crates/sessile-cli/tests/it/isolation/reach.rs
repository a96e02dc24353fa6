//! Which target a tool reaches: tools x ways to select x levels.
//!
//! Each tool has three targets: `dev`, which no context binds, `staging`, which an unguarded context binds, and
//! `production`, which a guarded one binds. The real tools ask servers on this machine that say which of them was asked;
//! those of [`reach_clients`](super::reach_clients) too, and [`reach_files`](super::reach_files) tries files, also of tools that no
//! registry has. In every cell the tool reaches what `status` says, or it did not start; `production` is reached in none.

use std::sync::LazyLock;

use testkit::{Call, CallResult, Home, Loopback};

use crate::home;
use crate::isolation::reach_clients;

pub(super) const NAMES: [&str; 3] = ["dev", "staging", "production"];
pub(super) const LEVELS: [&str; 2] = ["env", "home"];

/// The servers of all targets, which know their names.
struct Servers {
    kubernetes: Vec<Loopback>,
    docker: Vec<Loopback>,
    npm: Vec<Loopback>,
    sts: Loopback,
}

static SERVERS: LazyLock<Servers> = LazyLock::new(|| Servers {
    kubernetes: NAMES.iter().map(|name| Loopback::kubernetes(name)).collect(),
    docker: NAMES.iter().map(|name| Loopback::docker(name)).collect(),
    npm: NAMES.iter().map(|name| Loopback::npm(name)).collect(),
    sts: Loopback::sts(),
});

/// A real tool: how it is bound, how its own selection is made, and what tells which target it reaches.
pub(super) struct Tool {
    pub(super) name: &'static str,
    /// Its program, if it has another name.
    pub(super) program: &'static str,
    /// The binding of a target, as a table of a context.
    pub(super) binding: fn(target: &str) -> String,
    /// Writes the tool's files, with one target selected.
    pub(super) write: fn(home: &Home, selected: &str),
    /// Asks the target.
    pub(super) ask: fn() -> Vec<String>,
    /// Whether its files select a target. The registry of npm stays selected, but its token is withheld.
    pub(super) has_selection: bool,
    /// Shell commands that try to reach production from a session of another context.
    pub(super) tricks: &'static [&'static str],
    /// What a session without a context reaches: the target that the files select or, of tools that select none, all that remain.
    pub(super) own: &'static [&'static str],
    /// Exit status of an answered question.
    pub(super) status: i32,
    /// Whether its files hold one target: with another one a session of a context does not start.
    pub(super) is_single: bool,
    /// Whether it does not start below the home, where it reads the user's own files as a project's.
    pub(super) is_read_below_home: bool,
    /// Whether the level `env` has copies of its files. Without them the binding selects, but nothing is withheld.
    pub(super) is_moved_by_env: bool,
}

impl Tool {
    /// Where most tools are alike.
    pub(super) const USUAL: Tool = Tool {
        name: "",
        program: "",
        binding: |_| String::new(),
        write: |_, _| {},
        ask: Vec::new,
        has_selection: true,
        tricks: &[],
        own: &["dev"],
        status: 0,
        is_single: false,
        is_read_below_home: false,
        is_moved_by_env: true,
    };
}

pub(super) fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn sts() -> String {
    format!("http://{}", SERVERS.sts.address())
}

/// Addresses in the environment of each call: servers that tell users apart by themselves, and production's.
fn variables() -> [(&'static str, String); 4] {
    let service = |name| format!("http://{}", reach_clients::service(name));
    let (hub, production) = (service("dev"), service("production"));
    [("STS", sts()), ("NPM", registry("production")), ("HF_ENDPOINT", hub), ("SERVICE", production)]
}

const KEYS: &str = "aws sts get-caller-identity --query Arn --output text --endpoint-url";

const TOOLS: &[Tool] = &[
    Tool {
        name: "kubectl",
        binding: |target| format!("context = \"{target}\""),
        write: |home, selected| {
            let mut text = format!("apiVersion: v1\nkind: Config\ncurrent-context: {selected}\nclusters:\n");
            for (name, server) in NAMES.iter().zip(&SERVERS.kubernetes) {
                text.push_str(&format!(
                    "- name: {name}\n  cluster: {{server: 'http://{}'}}\n",
                    server.address()
                ));
            }
            text.push_str("users:\n");
            NAMES.iter().for_each(|name| {
                text.push_str(&format!("- name: {name}\n  user: {{token: token-of-{name}}}\n"));
            });
            text.push_str("contexts:\n");
            NAMES.iter().for_each(|name| {
                text.push_str(&format!("- name: {name}\n  context: {{cluster: {name}, user: {name}}}\n"));
            });
            home.write(".kube/config", text);
        },
        ask: || words("kubectl get pods -o name"),
        tricks: &[
            "kubectl --context production get pods -o name",
            "kubectl config use-context production; kubectl get pods -o name",
            "kubectl --cluster production --user production get pods -o name",
            "kubectl config set-context x --cluster=production --user=production; kubectl --context x get pods -o name",
        ],
        ..Tool::USUAL
    },
    Tool {
        name: "docker",
        binding: |target| format!("context = \"{target}\""),
        write: |home, selected| {
            for (name, server) in NAMES.iter().zip(&SERVERS.docker) {
                let endpoint = format!("host=tcp://{}", server.address());
                home.tool("docker", &["context", "create", name, "--docker", &endpoint]).ok();
            }
            home.tool("docker", &["context", "use", selected]).ok();
        },
        ask: || words("docker info --format engine-of-{{.Name}}"),
        tricks: &[
            "docker --context production info --format engine-of-{{.Name}}",
            "docker context use production; env -u DOCKER_CONTEXT docker info --format engine-of-{{.Name}}",
            "DOCKER_CONTEXT=production docker info --format engine-of-{{.Name}}",
        ],
        ..Tool::USUAL
    },
    Tool {
        name: "aws",
        binding: |target| format!("profile = \"{target}\""),
        write: |home, selected| {
            let mut keys = String::new();
            let mut config = String::from("[default]\nregion = us-east-1\n");
            for name in NAMES {
                keys.push_str(&format!(
                    "[{name}]\naws_access_key_id = user-of-{name}\naws_secret_access_key = s\n"
                ));
                config.push_str(&format!("[profile {name}]\nregion = us-east-1\n"));
            }
            keys.push_str(&format!(
                "[default]\naws_access_key_id = user-of-{selected}\naws_secret_access_key = s\n"
            ));
            home.write(".aws/credentials", keys);
            home.write(".aws/config", config);
        },
        ask: || words(&format!("{KEYS} {}", sts())),
        tricks: &[
            "aws --profile production sts get-caller-identity --query Arn --output text --endpoint-url $STS",
            "AWS_PROFILE=production aws sts get-caller-identity --query Arn --output text --endpoint-url $STS",
            "env -u AWS_PROFILE AWS_DEFAULT_PROFILE=production aws sts get-caller-identity --query Arn --output text --endpoint-url $STS",
        ],
        ..Tool::USUAL
    },
    Tool {
        name: "gh",
        binding: |target| format!("user = \"{target}\""),
        write: |home, selected| {
            let mut text = format!(
                "github.com:\n    user: {selected}\n    oauth_token: token-of-{selected}\n    users:\n"
            );
            for name in NAMES {
                text.push_str(&format!("        {name}:\n            oauth_token: token-of-{name}\n"));
            }
            home.write(".config/gh/hosts.yml", text);
        },
        ask: || words("gh auth token"),
        tricks: &["gh auth token --user production", "gh auth switch --user production; gh auth token"],
        ..Tool::USUAL
    },
    Tool {
        name: "npm",
        binding: |target| format!("registry = \"{}\"", registry(target)),
        write: |home, selected| {
            let mut text = format!("registry={}\n", registry(selected));
            for name in NAMES {
                let address = registry(name).trim_start_matches("http:").to_owned();
                text.push_str(&format!("{address}:_authToken=token-of-{name}\n"));
            }
            home.write(".npmrc", text);
        },
        ask: || words("npm whoami"),
        tricks: &["npm whoami --registry $NPM", "npm config set registry $NPM; npm whoami --registry $NPM"],
        ..Tool::USUAL
    },
];

pub(super) fn registry(name: &str) -> String {
    let at = NAMES.iter().position(|one| *one == name).unwrap();
    format!("http://{}/", SERVERS.npm[at].address())
}

/// Which target an answer is from. A server, a key, a token and a user all end in `-of-NAME`.
pub(super) fn reached(text: &str) -> Vec<&'static str> {
    NAMES.into_iter().filter(|name| text.contains(&format!("-of-{name}"))).collect()
}

/// A home with the files of a tool, `staging` bound by an unguarded context and `production` by a guarded one.
fn home_of(tool: &Tool, selected: &str) -> Home {
    let home = home();
    (tool.write)(&home, selected);
    write_contexts(&home, tool.name, tool.binding);
    home
}

/// Writes the contexts of a tool's targets: `staging` without a guard, `production` with approval.
pub(super) fn write_contexts(home: &Home, tool: &str, binding: impl Fn(&str) -> String) {
    for (name, guard) in [("staging", ""), ("production", "guard = \"approval\"\n")] {
        let text = format!("{guard}[tools.{tool}]\n{}\n", binding(name));
        home.write(format!(".config/sessile/contexts/{name}.toml"), text);
    }
}

/// How a context is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReachRoute {
    Flag,
    Variable,
    Directory,
    Terminal,
    Session,
    None,
}

pub(super) const SELECTING: [ReachRoute; 5] = [
    ReachRoute::Flag,
    ReachRoute::Variable,
    ReachRoute::Directory,
    ReachRoute::Terminal,
    ReachRoute::Session,
];

/// A home in which `staging` is selected in one way; the terminal of that way, if it is one.
pub(super) struct SelectedTarget {
    home: Home,
    pub(super) way: ReachRoute,
    terminal: Option<std::cell::RefCell<testkit::Tty>>,
}

impl SelectedTarget {
    pub(super) fn new(home: Home, way: ReachRoute) -> Self {
        if !home.path("project").is_dir() {
            home.private_dir("project");
        }
        let mut terminal = None;
        match way {
            ReachRoute::Directory => {
                home.call(&["context", "use", "staging", "--dir"]).cwd("project").ok();
            }
            ReachRoute::Session => {
                home.call(&["session", "start", "--name", "pinned", "--context", "staging"]).ok();
            }
            ReachRoute::Terminal => {
                let mut shell = home.shell();
                shell.run(&format!("export PATH={}", testkit::tool_path().display()));
                // gh asks a terminal that is not dumb for its colours, and waits five seconds for the answer.
                shell.run("export TERM=dumb; cd project");
                for (name, value) in variables() {
                    shell.run(&format!("export {name}={value}"));
                }
                let program = home.program().display();
                let (text, status) = shell.run(&format!("{program} context use staging"));
                assert_eq!(status, 0, "{text}");
                terminal = Some(std::cell::RefCell::new(shell));
            }
            ReachRoute::Flag | ReachRoute::Variable | ReachRoute::None => {}
        }
        SelectedTarget { home, way, terminal }
    }

    pub(super) fn call(&self, args: &[&str]) -> Call {
        let flags: &[&str] = match self.way {
            ReachRoute::Flag => &["--context", "staging"],
            ReachRoute::Session => &["--session", "pinned"],
            _ => &[],
        };
        let (command, rest) = args.split_first().unwrap();
        let call = self.home.call(&[command]).args(flags).args(rest).with_tools().cwd("project");
        let call = variables().into_iter().fold(call, |call, (name, value)| call.env(name, value));
        if self.way == ReachRoute::Variable { call.env("SESSILE_CONTEXT", "staging") } else { call }
    }

    /// What a call prints, and its status.
    fn text(&self, args: &[&str]) -> (String, i32) {
        if let Some(shell) = &self.terminal {
            let args: Vec<String> = args.iter().map(|&word| word.to_owned()).collect();
            let line = format!("{} {}", self.home.program().display(), quoted(&args));
            return shell.borrow_mut().run(&line);
        }
        let done: CallResult = self.call(args).run();
        (done.told(), done.status().unwrap_or(-1))
    }

    /// The context that `status` names.
    pub(super) fn status(&self) -> Option<String> {
        let (text, _) = self.text(&["status", "-ojson"]);
        let field = text.split("\"current_context\": ").nth(1).unwrap_or_else(|| panic!("{text}"));
        let value = field.split([',', '\n']).next().unwrap_or_default();
        (value != "null").then(|| value.trim_matches('"').to_owned())
    }

    pub(super) fn run_verbosely(&self, level: &str, command: &[String]) -> (String, i32) {
        let mut args = vec!["run", "--verbose", "--isolate", level, "--"];
        args.extend(command.iter().map(String::as_str));
        self.text(&args)
    }

    pub(super) fn run(&self, level: &str, command: &[String]) -> (String, i32) {
        let mut args = vec!["run", "--isolate", level, "--"];
        args.extend(command.iter().map(String::as_str));
        self.text(&args)
    }
}

fn try_tool(name: &str) {
    TOOLS.iter().find(|tool| tool.name == name).unwrap().check();
}

impl Tool {
    /// Tries every way to select and every level.
    pub(super) fn check(&self) {
        for way in SELECTING {
            let selects = if self.is_single { "staging" } else { "production" };
            let selected = SelectedTarget::new(home_of(self, selects), way);
            for level in LEVELS {
                let cell = format!("{} {way:?} {level}", self.name);
                assert_eq!(selected.status().as_deref(), Some("staging"), "{cell}");
                self.assert_reaches(&selected, level, &["staging"], &cell);
                self.try_tricks(&selected, level, &cell);
                self.assert_reaches(&selected, level, &["staging"], &format!("{cell} after"));
            }
            if self.is_single {
                let selected = SelectedTarget::new(home_of(self, "production"), way);
                for level in LEVELS {
                    let (text, status) = selected.run(level, &(self.ask)());
                    assert_eq!(
                        (reached(&text), status),
                        (vec![], 125),
                        "{} {way:?} {level}: {text}",
                        self.name
                    );
                }
            }
        }
        let own = SelectedTarget::new(home_of(self, "dev"), ReachRoute::None);
        for level in LEVELS {
            let cell = format!("{} {level}: the user's own", self.name);
            assert_eq!(own.status(), None, "{cell}");
            if self.is_moved(level) {
                self.assert_reaches(&own, level, self.own, &cell);
            }
            self.try_tricks(&own, level, &cell);
        }
        let own = SelectedTarget::new(home_of(self, "production"), ReachRoute::None);
        for level in LEVELS {
            self.check_protected_selection(&own, level);
        }
    }

    /// Whether a level has copies of its files.
    fn is_moved(&self, level: &str) -> bool {
        self.is_moved_by_env || level != "env"
    }

    fn assert_reaches(&self, selected: &SelectedTarget, level: &str, targets: &[&str], cell: &str) {
        let (text, status) = selected.run(level, &(self.ask)());
        assert_eq!((reached(&text), status), (targets.to_vec(), self.status), "{cell}: {text}");
    }

    fn try_tricks(&self, selected: &SelectedTarget, level: &str, cell: &str) {
        for trick in self.tricks.iter().filter(|_| self.is_moved(level)) {
            let (text, _) = selected.run(level, &["sh".to_owned(), "-c".to_owned(), (*trick).to_owned()]);
            assert!(!reached(&text).contains(&"production"), "{cell} {trick}: {text}");
        }
    }

    /// The user's own selection is a protected target, and no context is selected.
    fn check_protected_selection(&self, own: &SelectedTarget, level: &str) {
        let cell = format!("{} {level}", self.name);
        let ask = (self.ask)();
        let program = if self.program.is_empty() { self.name } else { self.program };
        for command in [&ask, &vec![program.to_owned(), "--version".to_owned()]] {
            let (text, status) = own.run(level, command);
            let is_reached = reached(&text).contains(&"production");
            assert!(!is_reached || !self.is_moved(level), "{cell}: {text}");
            let is_refused = (self.has_selection || self.is_read_below_home) && command[0] == program;
            assert_eq!(status == 125, is_refused, "{cell} {command:?}: not started: {text}");
        }
        if !self.is_moved(level) {
            return;
        }
        let (text, _) = own.run(level, &["sh".to_owned(), "-c".to_owned(), quoted(&ask)]);
        assert!(!reached(&text).contains(&"production"), "{cell}: through a shell: {text}");
    }
}

/// The words of a command as a shell reads them.
fn quoted(command: &[String]) -> String {
    let words: Vec<String> =
        command.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
    words.join(" ")
}

#[test]
fn kubectl_reaches_what_status_says() {
    try_tool("kubectl");
}

#[test]
fn docker_reaches_what_status_says() {
    try_tool("docker");
}

#[test]
fn aws_reaches_what_status_says() {
    try_tool("aws");
}

#[test]
fn gh_reaches_what_status_says() {
    try_tool("gh");
}

/// In the home, and below it without a project, npm reads the user's own file as that of a project.
#[test]
fn npm_in_the_home_does_not_start_with_a_protected_token() {
    let npm = TOOLS.iter().find(|tool| tool.name == "npm").unwrap();
    let ask = ["npm", "whoami", "--registry", &registry("production")];
    let run = |home: &Home, flags: &[&str], dir: &str, command: &[&str]| {
        home.call(&["run"]).args(flags).args(&["--"]).args(command).with_tools().cwd(dir).run()
    };
    let home = home_of(npm, "dev");
    for dir in ["with/package/below", "with/modules", "with/none", "work/space/one"] {
        home.write(format!("{dir}/file"), "");
    }
    home.write("with/modules/node_modules/file", "");
    home.write("with/package/package.json", "{}");
    home.write("work/space/one/package.json", "{\"name\": \"one\"}");
    for context in [&[][..], &["--context", "staging"], &["--session", "s1", "--context", "staging"]] {
        for dir in ["with/package", "with/package/below", "with/modules", "with/none"] {
            let done = run(&home, context, dir, &ask);
            assert_eq!(reached(&done.told()), Vec::<&str>::new(), "{dir} {context:?}: {}", done.told());
            assert_ne!(done.status(), Some(125), "{dir} {context:?}: {}", done.told());
        }
        for program in ["npm", "npx"] {
            let done = run(&home, context, ".", &[program, "whoami"]).exit(125);
            assert!(done.stderr().contains("as the project's file"), "{context:?}: {}", done.told());
        }
        let done = run(&home, context, ".", &["true"]).exit(0);
        assert!(context.len() > 3 || done.stderr().contains("is not withheld"), "{}", done.told());
    }
    // A project's directory is found by either, and a workspace's above its packages.
    for root in ["node_modules/file", "package.json"] {
        let home = home_of(npm, "dev");
        home.write("with/none/file", "");
        home.write(root, "{}");
        let done =
            home.call(&["run", "-ojson", "--"]).args(&ask).with_tools().cwd("with/none").run().exit(125);
        assert_eq!(done.code(), "PROTECTED_TARGET", "{root}");
    }
    home.write("package.json", "{\"workspaces\": [\"work/space/*\"]}");
    run(&home, &[], "work/space/one", &ask).exit(125);
    // What protects nothing stops nothing.
    let home = home_of(npm, "dev");
    std::fs::remove_file(home.path(".config/sessile/contexts/production.toml")).unwrap();
    assert_eq!(reached(&run(&home, &[], ".", &ask).exit(0).told()), ["production"]);
}

#[test]
fn npm_reaches_what_status_says() {
    try_tool("npm");
}

/// Variables of the caller that select a target without a context.
#[test]
fn variables_of_the_caller_reach_no_protected_target() {
    for (tool, variables) in [
        ("kubectl", &[("KUBECONFIG", "other/config")][..]),
        ("docker", &[("DOCKER_CONTEXT", "production")]),
        ("aws", &[("AWS_PROFILE", "production")]),
        ("aws", &[("AWS_DEFAULT_PROFILE", "production")]),
    ] {
        let tool = TOOLS.iter().find(|one| one.name == tool).unwrap();
        let home = home_of(tool, "dev");
        if tool.name == "kubectl" {
            let other =
                home.read(".kube/config").replace("current-context: dev", "current-context: production");
            home.write("other/config", other);
        }
        let own = SelectedTarget::new(home, ReachRoute::None);
        for level in LEVELS {
            let with = |command: &[&str]| {
                let mut call = own.call(&["run", "--isolate", level, "--"]).args(command);
                for (name, value) in variables {
                    let value = if value.contains('/') {
                        own.home.path(value).display().to_string()
                    } else {
                        (*value).to_owned()
                    };
                    call = call.env(name, value);
                }
                call.run()
            };
            let ask = (tool.ask)();
            let ask: Vec<&str> = ask.iter().map(String::as_str).collect();
            let done = with(&ask);
            assert_eq!(done.status(), Some(125), "{variables:?} {level}: {}", done.told());
            let done = with(&["sh", "-c", &ask.join(" ")]);
            assert!(!reached(&done.told()).contains(&"production"), "{variables:?} {level}: {}", done.told());
        }
    }
}
