//! `sessile shell`: a shell in a session.

use std::ffi::OsString;

use crate::child::{Child, own_record};
use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples_and_precedence;
use crate::isolation::{Flags, Ready, Which};
use crate::shell::startup;

/// Open a shell in a session
///
/// With --session it attaches to a live session, or starts one of that name. The prompt shows the session and its
/// context, and the session's variables are set after your start-up files have been read. Without a session the shell
/// gets one for itself, which is gone when it ends. The exit status is the shell's own, or 125 if it could not be
/// prepared.
#[derive(Debug, clap::Args)]
#[command(after_help = examples_and_precedence!(
    "sessile shell --session deploy --context staging"
    "sessile shell --shell /usr/bin/zsh"
))]
pub struct Args {
    /// The shell; else $SHELL
    #[arg(long, value_name = "PROGRAM")]
    shell: Option<String>,

    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    flags: Flags,
}

impl Args {
    /// Whether a session that is over is to be started anew.
    pub(crate) fn starts_anew(&self) -> bool {
        self.which.new
    }
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    open(args, cx).map_err(Failure::into_own)
}

fn open(args: &Args, cx: &Cx) -> Outcome {
    args.flags.check_expected(&cx.state)?;
    let ready = args.which.session(cx, "shell")?;
    let outcome = open_in(args, cx, &ready);
    ready.leave(cx, &outcome);
    outcome
}

fn open_in(args: &Args, cx: &Cx, ready: &Ready<'_>) -> Outcome {
    let world = cx.state.world();
    let usual = world.variable("SHELL").map(|shell| shell.to_string_lossy().into_owned());
    let program = args.shell.clone().or(usual).unwrap_or_else(|| "/bin/sh".to_owned());
    let presence = ready.enter(&own_record(&[OsString::from(&program)]))?;
    let inside = ready.prepare(&args.flags)?;
    cx.out.warnings(&ready.state().take_warnings());
    let label = if ready.is_ephemeral { "sessile" } else { ready.session.label() };
    let mark = match &ready.session.context {
        Some(context) => format!("{label}:{context}"),
        None => label.to_owned(),
    };
    let room = ready.session.room().dir();
    let (words, more) = startup(ready.state(), room, &program, &mark, &inside.environment.changes)?;
    let variables = inside.variables(cx, ready)?;
    let mut child = Child::new(&words).with_variables(variables);
    for (name, value) in more {
        child = child.env(&name, value);
    }
    child = presence.descriptor().into_iter().fold(child, Child::inherit);
    ready.recheck_guard(inside.has_credentials(ready))?;
    if ready.is_ephemeral {
        let ended = child.run(None);
        drop(presence);
        return ended;
    }
    child.exec()
}
