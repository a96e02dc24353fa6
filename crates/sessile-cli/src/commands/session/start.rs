//! `sessile session start`.

use std::collections::BTreeMap;
use std::time::Duration;

use sessile::args::parse_duration;
use sessile::error::UsageError;
use sessile::secrets::is_secret;
use sessile::session::SessionName;

use crate::backend::{SessionSpec, StateBackend};
use crate::cli::Cx;
use crate::commands::binding_args::BindingArgs;
use crate::commands::session::attach::report_selection;
use crate::error::Outcome;
use crate::help::examples_and_precedence;
use crate::remote::ServerArgs;

/// Hint against a secret in a label.
const STORE_IT: &str = "store it in the vault: {name} auth set NAME; a label is listed and exported";

/// Start a session and print its id
///
/// Pins the session to the selected context, or to none, for its whole life. In an interactive call it also becomes
/// this terminal's session; a script only gets the id. With --quiet, prints only the id.
#[derive(Debug, clap::Args)]
#[command(after_help = examples_and_precedence!(
    "sessile session start --name deploy --context staging"
    "sessile session start --name probe --bind kubectl.context=staging"
    "sessile session start --quiet"
    "sessile session start --agent reviewer --label team=web --idle 30m --max 4h"
))]
pub struct Args {
    /// Name of the session, unique among your live sessions
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    #[command(flatten)]
    pub(crate) binding: BindingArgs,

    /// Idle timeout; default: the setting session.idle
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    idle: Option<Duration>,

    /// Maximum lifetime; default: the setting session.max
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    max: Option<Duration>,

    /// Label of the session; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    label: Vec<String>,

    /// Name of the agent that works in the session
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// Stop this session first, if the new one can start
    #[arg(long, value_name = "SESSION")]
    replace: Option<String>,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let name: Option<SessionName> = args.name.as_deref().map(str::parse).transpose()?;
    let mut labels = BTreeMap::new();
    for pair in &args.label {
        let (key, value) = pair.split_once('=').ok_or_else(|| UsageError::InvalidValue {
            place: "--label".into(),
            value: pair.clone(),
            expected: "KEY=VALUE".into(),
        })?;
        // Labels are stored as a JSON object, which could not be parsed with this key.
        if sessile::json::is_reserved(key) {
            let (name, reason) = (key.to_owned(), "the name is reserved".into());
            return Err(UsageError::InvalidName { what: "label", name, reason }.into());
        }
        // Labels are stored, listed and exported.
        if is_secret(key, value) {
            let place = format!("--label {key}");
            return Err(UsageError::SecretRefused { place, instead: STORE_IT }.into());
        }
        labels.insert(key.to_owned(), value.to_owned());
    }
    let (idle, max) = cx.state.session_lifetime(args.idle, args.max)?;
    let spec = SessionSpec { name: name.as_ref(), labels, agent: args.agent.as_deref(), idle, max };
    let started = StateBackend::resolve(cx)?.start_session(spec, args.replace.as_deref())?;
    started.print(cx, |started| format!("{}\n", started.session.id))?;
    if started.change.selected_for_terminal {
        report_selection(cx, started.change.left_running.as_deref(), started.change.is_hooked);
    }
    Ok(())
}
