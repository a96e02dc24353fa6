//! `sessile hook`: shell integration, loaded by a shell's start-up file.

use clap::Subcommand;
use serde_json::json;
use sessile::error::UsageError;
use sessile::hook::{HookLine, follow};
use sessile::run::shell::Shell;
use sessile::text::shown;

use crate::cli::Cx;
use crate::commands::prompt::PromptLabel;
use crate::error::Outcome;
use crate::help::examples;
use crate::shell_hook::{hook, step_script};
use crate::terminal_prompt;
use crate::watcher::watch_shell_approval;

/// Print the shell hook, which applies the selected context to a shell
///
/// Load it at the end of your start-up file. The hook sets the shell's variables to those of a session in the selected
/// context, so that commands that you type, such as kubectl, aws and gh, use it. It reacts to `context use`, to
/// `session start`, `attach`, `detach` and `stop`, and to a directory that selects a context. Without a selection, it
/// restores your own values. The prompt shows the session and the context.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "eval \"$(sessile hook bash)\"      at the end of ~/.bashrc"
    "eval \"$(sessile hook zsh)\"       at the end of ~/.zshrc"
    "sessile hook fish | source       at the end of ~/.config/fish/config.fish"
    "sessile hook install             add that line for you"
))]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    /// Print the script for this shell
    #[arg(value_enum, required = true)]
    shell: Option<Shell>,

    /// Print the commands to run before this prompt; called by the script
    #[arg(long, hide = true, requires = "shell_pid")]
    tick: bool,

    /// Pid of the shell that calls
    #[arg(long, hide = true)]
    shell_pid: Option<i32>,

    /// Set if a subshell of that shell calls
    #[arg(long, hide = true)]
    subshell: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Add the line that loads the hook to the shell's start-up file
    ///
    /// Shows the line and the file, and asks for confirmation. A file that already loads the hook is not changed. Shells that start
    /// afterwards are hooked.
    #[command(after_help = examples!("sessile hook install" "sessile hook install zsh --yes"))]
    Install {
        /// Change the start-up file of this shell; default: $SHELL, else the login shell of the account
        #[arg(value_enum)]
        shell: Option<Shell>,
    },
    /// Remove the line that loads the hook from the shell's start-up file
    #[command(after_help = examples!("sessile hook remove" "sessile hook remove fish --yes"))]
    Remove {
        /// Change the start-up file of this shell; default: $SHELL, else the login shell of the account
        #[arg(value_enum)]
        shell: Option<Shell>,
    },
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    match &args.command {
        Some(Command::Install { shell }) => return install(cx, *shell, true),
        Some(Command::Remove { shell }) => return install(cx, *shell, false),
        None => {}
    }
    // The parser requires it.
    let Some(shell) = args.shell else { return Ok(()) };
    if let (true, Some(pid)) = (args.tick, args.shell_pid) {
        return cx.out.print(&tick(args, shell, pid, cx));
    }
    let script = hook(shell);
    cx.out.result(&json!({ "script": script }), || script.clone())
}

/// The script of the step before a prompt. Every failure is a note, because the person must be able to go on typing.
fn tick(args: &Args, shell: Shell, pid: i32, cx: &Cx) -> String {
    // The variables of this call may name a session that has ended; the step reports that.
    cx.state.take_warnings();
    match follow(&cx.state, shell, pid, args.subshell) {
        Ok(step) => {
            cx.out.warnings(&step.notes);
            if let Some(session) = &step.session {
                // Without the watcher the next prompt finds the end of the approval.
                let _ = watch_shell_approval(&cx.state, session);
            }
            let label = step.session.as_ref().and_then(|session| PromptLabel::of_session(session).text());
            let mark = label.map_or_else(String::new, |text| format!("({text}) "));
            step_script(shell, &step, &mark)
        }
        Err(error) => {
            cx.state.take_warnings();
            cx.out.note(&format!("this shell does not follow its selection: {error}"));
            String::new()
        }
    }
}

/// Adds the line that loads the hook, or removes it.
fn install(cx: &Cx, shell: Option<Shell>, is_added: bool) -> Outcome {
    let what = if is_added { "installing the hook" } else { "removing the hook" };
    cx.state.refuse_in_session(what, "do it outside the session")?;
    let world = cx.state.world();
    let usual = || {
        let program = world.variable("SHELL").map(|shell| shell.to_string_lossy().into_owned());
        let account = || world.account_shell().map(|shell| shell.to_string_lossy().into_owned());
        Shell::of_program(&program.or_else(account)?)
    };
    let shell = shell.or_else(usual).ok_or_else(|| UsageError::ScopeRequired {
        what: format!("{what}: the shell is not bash, zsh or fish"),
        flags: "name the shell: bash, zsh or fish",
    })?;
    let line = HookLine::of(&cx.state, shell)?;
    let path = shown(line.path.display());
    let is_changed = line.found_at.is_some() != is_added;
    if is_changed {
        let change = if is_added { "add" } else { "remove" };
        terminal_prompt::confirm(&cx.state, &format!("{change} the line `{}` in {path}", line.line))?;
        if is_added { line.install(&cx.state)? } else { line.remove(&cx.state)? }
    }
    let result = json!({ "path": line.path.to_string_lossy(), "line": line.line, "changed": is_changed });
    cx.changed(result, || match (is_added, line.found_at) {
        (true, Some(at)) => format!("{path}:{at} already loads the hook\n"),
        (true, None) => format!("added `{}` to {path}; start a new shell\n", line.line),
        (false, Some(_)) => format!("removed `{}` from {path}\n", line.line),
        (false, None) => format!("{path} does not load the hook\n"),
    })
}
