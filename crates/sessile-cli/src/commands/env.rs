//! `sessile env`: a session's variables, for a shell or a program.

use serde_json::json;
use sessile::error::SessionError;
use sessile::run::shell::Shell;
use sessile::run::{IsolationArgs, RunRequest, RunSession, RunSessionArgs, VariableChange};
use sessile::text::json_safe;
use sessile::tool::own_values;

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples_and_precedence;
use crate::isolation::preparation;
use crate::watcher::watch_approval;

/// Print the variables of a session, for a shell to set
///
/// The variables redirect every known tool to the session's room, as `run` does for one command. --unset prints the
/// commands that restore the shell's own values. Variables that were cleared because they override the context are not
/// stored and cannot be restored.
#[derive(Debug, clap::Args)]
#[command(after_help = examples_and_precedence!(
    "eval \"$(sessile env --session deploy)\""
    "sessile env --session deploy --shell fish | source"
    "sessile env --session deploy --output json"
    "eval \"$(sessile env --unset)\""
))]
pub struct Args {
    /// Syntax of the output; json prints one object with the variables to set and to unset
    #[arg(long, value_name = "SHELL", value_parser = ["bash", "zsh", "fish", "json"], default_value = "bash")]
    shell: String,

    /// Print the commands that restore the shell's own values
    #[arg(long)]
    unset: bool,

    #[command(flatten)]
    isolation: IsolationArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let changes = if args.unset { own_values(&cx.state) } else { session_values(args, cx)? };
    let shell = match args.shell.as_str() {
        "zsh" => Some(Shell::Zsh),
        "fish" => Some(Shell::Fish),
        "bash" => Some(Shell::Bash),
        _ => None,
    };
    let set: serde_json::Map<_, _> = changes
        .iter()
        .filter_map(|change| Some((change.name.clone(), json!(change.value.as_ref()?))))
        .collect();
    let unset: Vec<&str> =
        changes.iter().filter(|change| change.value.is_none()).map(|change| change.name.as_str()).collect();
    let json = json!({ "set": set, "unset": unset });
    cx.out.result(&json, || match shell {
        Some(shell) => shell.script(&changes),
        None => json_safe(&format!("{json:#}\n")),
    })
}

fn session_values(args: &Args, cx: &Cx) -> Result<Vec<VariableChange>, crate::error::Failure> {
    if cx.state.session()?.is_none() {
        return Err(SessionError::Required("printing its variables".to_owned()).into());
    }
    let request = RunRequest {
        operation: "env",
        words: &[],
        session: &RunSessionArgs::default(),
        isolation: &args.isolation,
    };
    let run = RunSession::open(&cx.state, &request)?;
    let step = preparation(cx, &run);
    let environment = run.prepare_for_running_shell(&request)?.into_environment();
    drop(step);
    // Preparing the room may take long, and the approval may have ended meanwhile.
    run.state().contexts().recheck(false)?;
    // Whoever evaluates the variables makes no further call.
    watch_approval(&run)?;
    let mut changes = environment.changes;
    for variable in environment.credentials {
        // What is printed ends up in files and histories.
        let (name, credential) = (&variable.name, &variable.credential);
        // Another's value would act in its place.
        let origin = variable.origin.clone();
        changes.push(VariableChange { name: name.clone(), value: None, origin, isolates: true });
        cx.out.note(&format!("not printed: {name} (credential {credential}); `run` and `shell` set it"));
    }
    cx.out.warnings(&run.state().take_warnings());
    Ok(changes)
}
