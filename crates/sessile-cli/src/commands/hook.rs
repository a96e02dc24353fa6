//! `sessile hook`: what a shell's start-up file loads.

use serde_json::json;
use sessile::run::shell::Shell;
use sessile::session::lifecycle::Lifecycle;

use crate::cli::Cx;
use crate::commands::prompt::PromptLabel;
use crate::error::Outcome;
use crate::help::examples;
use crate::shell_hook::hook;

/// Print the script that keeps a shell in its terminal's session
///
/// Load it at the end of your start-up file. The prompt then shows the session and the context of this terminal and
/// directory; after `sessile session start` the shell's commands work in that session; and in a shell that was started
/// in a session, variables that your start-up files export are set right again.
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
    #[arg(long, hide = true)]
    tick: bool,
}

/// The session that the script has set the variables of; the script hands it over.
pub(crate) const HOOKED: &str = "SESSILE_HOOKED";

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    if args.tick {
        return cx.out.print(&tick(args.shell, cx));
    }
    let script = hook(args.shell);
    cx.out.result(&json!({ "script": script }), || script.to_owned())
}

/// Work before a prompt. Every failure is a note, because the person must be able to go on typing.
fn tick(shell: Shell, cx: &Cx) -> String {
    let hooked = cx.state.world().variable(HOOKED).map(|id| id.to_string_lossy().into_owned());
    let current = cx.state.session().ok().flatten();
    let live = current.filter(|current| current.session.life(cx.state.world()) == Lifecycle::Live);
    let assign = |name: &str, value: &str| match shell {
        Shell::Fish => format!("set -g {name} {}\n", shell.quoted(value)),
        Shell::Bash | Shell::Zsh => format!("{name}={}\n", shell.quoted(value)),
    };
    let call = |flags: &str| match shell {
        // `command` skips functions and aliases of the same name.
        Shell::Bash => format!("eval \"$(command sessile env --shell bash {flags})\"\n"),
        Shell::Zsh => format!("eval \"$(command sessile env --shell zsh {flags})\"\n"),
        Shell::Fish => format!("command sessile env --shell fish {flags} | source\n"),
    };
    let mut script = String::new();
    let inside = cx.state.enclosing_session();
    match (&hooked, live) {
        // The session that the hook brought in is over, or this terminal has another now.
        (Some(id), live) if live.is_none_or(|live| live.session.id.as_str() != id) => {
            let name = current.map_or(id.as_str(), |current| current.session.label());
            cx.out.note(&format!("session {name} is over; this shell has its own variables again"));
            // The variables of this call still name it.
            cx.state.take_warnings();
            return call("--unset") + &assign("_sessile_hooked", "") + &assign("_sessile_mark", "");
        }
        // A shell that was started in a session has the variables already.
        (None, Some(live)) if inside.is_none() => {
            let id = live.session.id.to_string();
            script.push_str(&call(&format!("--session {id}")));
            script.push_str(&assign("_sessile_hooked", &id));
        }
        _ => {}
    }
    if let Some(current) = live {
        // Someone sits here: the session is in use.
        // A failure must not disturb the prompt; the session then expires a little early.
        let _ = current.session.room().touch(cx.state.world());
    }
    let mark = PromptLabel::of(&cx.state).ok();
    let text = mark.as_ref().and_then(PromptLabel::text).map_or_else(String::new, |text| match &mark {
        // Without a session the context is what `run` would use; other commands know nothing of it.
        Some(PromptLabel { session: None, .. }) => format!("[{text}] "),
        _ => format!("({text}) "),
    });
    script.push_str(&assign("_sessile_mark", &text));
    script
}
