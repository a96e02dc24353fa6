//! `sessile hook`: what a shell's start-up file loads.

use serde_json::json;
use sessile::hook::follow;
use sessile::run::shell::Shell;

use crate::cli::Cx;
use crate::commands::prompt::PromptLabel;
use crate::error::Outcome;
use crate::help::examples;
use crate::shell_hook::{hook, step_script};

/// Print the script that keeps a shell in step with its selection
///
/// Load it at the end of your start-up file. The shell's variables are then those of a session in the selected context:
/// after `sessile context use`, `sessile session start`, `attach`, `detach` and `stop`, and in a directory that selects a
/// context. So kubectl, aws or gh typed there use it. Without a selection the shell has your own values again. The prompt
/// shows the session and the context.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "eval \"$(sessile hook bash)\"      at the end of ~/.bashrc"
    "eval \"$(sessile hook zsh)\"       at the end of ~/.zshrc"
    "sessile hook fish | source       at the end of ~/.config/fish/config.fish"
))]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,

    /// Print what is to be done before this prompt; the script calls it
    #[arg(long, hide = true, requires = "shell_pid")]
    tick: bool,

    /// Pid of the shell that calls
    #[arg(long, hide = true)]
    shell_pid: Option<i32>,

    /// Whether a subshell of that shell calls
    #[arg(long, hide = true)]
    subshell: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    if let (true, Some(pid)) = (args.tick, args.shell_pid) {
        return cx.out.print(&tick(args, pid, cx));
    }
    let script = hook(args.shell);
    cx.out.result(&json!({ "script": script }), || script.clone())
}

/// The script of the step before a prompt. Every failure is a note, because the person must be able to go on typing.
fn tick(args: &Args, pid: i32, cx: &Cx) -> String {
    // The variables of this call may name a session that is over; the step says what there is to say.
    cx.state.take_warnings();
    match follow(&cx.state, pid, args.subshell) {
        Ok(step) => {
            cx.out.warnings(&step.notes);
            let label = step.session.as_ref().and_then(|session| PromptLabel::of_session(session).text());
            let mark = label.map_or_else(String::new, |text| format!("({text}) "));
            step_script(args.shell, &step, &mark)
        }
        Err(error) => {
            cx.state.take_warnings();
            cx.out.note(&format!("this shell is not in step: {error}"));
            String::new()
        }
    }
}
