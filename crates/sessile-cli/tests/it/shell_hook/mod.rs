//! The shell hook: shells that follow the selections of their terminal and directory.

mod direnv;
mod follow;
mod install;
mod nested;
mod protected;
mod rails;
mod recipes;
mod selection;
mod terminals;

use std::path::PathBuf;

use testkit::{Home, Tty};

use crate::home;

const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// The user's own target, and the ones of the contexts.
const TARGETS: [&str; 4] = ["own", "staging", "production", "dev"];

/// A home with the state of tools for each target, the user's own selected, and a context for each other.
fn home_with_tools() -> Home {
    let home = home();
    let entry = |text: &str| TARGETS.iter().map(|name| text.replace("NAME", name)).collect::<String>();
    home.write(
        ".kube/config",
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: own\nclusters:\n{}users:\n{}contexts:\n{}",
            entry("- name: NAME\n  cluster: {server: https://NAME.example}\n"),
            entry("- name: NAME\n  user: {token: t-NAME}\n"),
            entry("- name: NAME\n  context: {cluster: NAME, user: NAME}\n"),
        ),
    );
    home.write(".aws/config", entry("[profile NAME]\nregion = eu-west-1\noutput = json\n"));
    home.write(
        ".aws/credentials",
        entry("[NAME]\naws_access_key_id = AKIANAME\naws_secret_access_key = s-NAME\n"),
    );
    home.write(".gitconfig", "[user]\nname = own\nemail = own@example.org\n");
    home.write(
        ".config/gh/hosts.yml",
        format!(
            "github.com:\n    users:\n{}    user: own\n    oauth_token: t-own\n",
            entry("        NAME:\n            oauth_token: t-NAME\n")
        ),
    );
    for name in &TARGETS[1..] {
        home.write(format!(".config/sessile/contexts/{name}.toml"), context(name, ""));
    }
    home
}

/// The targets of all tools in a context, as [`HookedTty::targets`] has them.
fn all(name: &str) -> String {
    [name; 5].join(",")
}

/// The user's own targets, where no profile of aws is selected.
const OWN: &str = "own,,own,own,own";

/// No target of any tool; the author of commits stays.
#[track_caller]
fn assert_none(targets: &str, told: &str) {
    assert!(targets.starts_with(",,,,"), "{told}: {targets}");
}

fn context(name: &str, guard: &str) -> String {
    format!(
        "{guard}\n[tools.kubectl]\ncontext = \"{name}\"\n[tools.aws]\nprofile = \"{name}\"\n\
         [tools.gh]\nuser = \"{name}\"\n[tools.git]\nname = \"{name}\"\nemail = \"{name}@example.org\"\n"
    )
}

/// A shell that has loaded the hook, on a terminal.
struct HookedTty {
    tty: Tty,
    program: &'static str,
    look: PathBuf,
}

impl HookedTty {
    fn start(home: &Home, program: &'static str) -> Self {
        load_hooks(home, "");
        Self::open(home, program)
    }

    /// A shell with the start-up files that the home has.
    fn open(home: &Home, program: &'static str) -> Self {
        // A script, so that every shell runs the same commands. aws shows the last four letters of a key. What gh wants to ask its host meets a closed port.
        home.write(
            "look",
            "kubectl=$(kubectl config current-context 2>/dev/null)\n\
             aws=$(aws configure list 2>/dev/null | grep -oE '\\*(Aown|ging|tion|Adev)' | head -1)\n\
             case $aws in *own) aws=own;; *ging) aws=staging;; *tion) aws=production;; *dev) aws=dev;; esac\n\
             gh=$(HTTPS_PROXY=http://127.0.0.1:9 gh auth status --active 2>&1 | sed -n 's/.* account \\([a-z]*\\).*/\\1/p' | head -1)\n\
             git=$(git config user.email)\n\
             author=$(git var GIT_AUTHOR_IDENT 2>/dev/null | grep -o '[a-z]*@')\n\
             printf '[[%s,%s,%s,%s,%s]]\\n' \"$kubectl\" \"$aws\" \"$gh\" \"${git%%@*}\" \"${author%%@*}\"\n",
        );
        let mut tty = shell_call(home, program, &[]).tty();
        tty.expect("$ ");
        HookedTty { tty, program, look: home.path("look") }
    }

    /// Runs a line; returns what it printed.
    #[track_caller]
    fn run(&mut self, line: &str) -> String {
        // What is typed is not what is waited for.
        self.tty.type_line(&format!("{line}; printf '%s%s\\n' '[[do' 'ne]]'"));
        self.tty.expect("[[done]]")
    }

    /// The mark in the next prompt: what stands before the user's own.
    #[track_caller]
    fn mark(&mut self) -> String {
        self.tty.type_line("printf '%s%s\\n' '[[be' 'gin]]'");
        self.tty.expect("[[begin]]\r\n");
        let printed = plain(&self.tty.expect("$ "));
        // fish draws a line end of its own before the prompt.
        printed.find('(').map_or_else(String::new, |at| printed[at..].to_owned())
    }

    /// The targets that kubectl, aws, gh and git have.
    #[track_caller]
    fn targets(&mut self) -> String {
        let printed = self.run(&format!("sh {}", self.look.display()));
        let start = printed.rfind("[[").unwrap_or_else(|| panic!("{printed}"));
        printed[start + 2..].split("]]").next().unwrap().replace('\r', "").replace('\n', "/")
    }

    /// What `kubectl` uses.
    #[track_caller]
    fn kubectl(&mut self) -> String {
        let printed = self.run("printf '[[%s]]\\n' \"$(kubectl config current-context 2>/dev/null)\"");
        let start = printed.rfind("[[").unwrap_or_else(|| panic!("{printed}"));
        printed[start + 2..].split("]]").next().unwrap().to_owned()
    }

    fn exit(mut self) {
        self.tty.type_line("exit");
        self.tty.finish();
    }
}

/// Text without the sequences that a shell draws its prompt with.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match (c, rest.peek()) {
            ('\u{1b}', Some('[')) => {
                rest.next();
                while rest.next().is_some_and(|c| !c.is_ascii_alphabetic()) {}
            }
            ('\u{1b}', Some(']')) => while rest.next().is_some_and(|c| c != '\u{7}') {},
            ('\u{1b}', _) => drop(rest.next()),
            (c, _) if c.is_control() => {}
            (c, _) => plain.push(c),
        }
    }
    plain.trim().to_owned()
}

/// Start-up files that load the hook after these lines.
fn load_hooks(home: &Home, lines: &str) {
    home.write(".bashrc", format!("{lines}PS1='$ '\neval \"$(sessile hook bash)\"\n"));
    home.write(
        ".zshrc",
        format!("{lines}PROMPT='$ '\nunsetopt zle prompt_cr prompt_sp\neval \"$(sessile hook zsh)\"\n"),
    );
    home.write(
        ".config/fish/config.fish",
        format!(
            "{lines}set -g fish_greeting\nfunction fish_prompt\n  printf '$ '\nend\nsessile hook fish | source\n"
        ),
    );
}

fn shell_call(home: &Home, program: &str, more: &[&str]) -> testkit::Call {
    let args = match program {
        "bash" => &["--noediting", "-i"][..],
        "zsh" => &["-i", "+Z"],
        _ => &["-i"],
    };
    let mut path = std::ffi::OsString::from(home.program().parent().unwrap());
    path.push(":");
    path.push(testkit::tool_path());
    home.tool(program, args)
        .args(more)
        .env("PATH", path)
        .env("TERM", "xterm")
        .env("SHELL", testkit::require_tool(program))
}
