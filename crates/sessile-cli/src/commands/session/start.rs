//! `sessile session start`.

use std::collections::BTreeMap;
use std::time::Duration;

use sessile::args::parse_duration;
use sessile::error::UsageError;
use sessile::session::SessionName;

use crate::backend::{SessionSpec, StateBackend};
use crate::cli::Cx;
use crate::commands::binding_args::BindingArgs;
use crate::commands::session::attach::report_selection;
use crate::error::Outcome;
use crate::help::examples_and_precedence;
use crate::remote::ServerArgs;

/// Start a session and print its id
///
/// It is pinned to the context that is selected now, or to none, for its whole life. In an interactive call it also becomes
/// this terminal's session; a script gets the id and nothing else is changed. With --quiet only the id is printed.
#[derive(Debug, clap::Args)]
#[command(after_help = examples_and_precedence!(
    "sessile session start --name deploy --context staging"
    "sessile session start --name probe --bind kubectl.context=staging"
    "sessile session start --quiet"
    "sessile session start --agent reviewer --label team=web --idle 30m --max 4h"
))]
pub struct Args {
    /// A name to call it by, unique among your live sessions
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    #[command(flatten)]
    pub(crate) binding: BindingArgs,

    /// How long it may lie idle before it expires; else as the setting session.idle says
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    idle: Option<Duration>,

    /// How long it lives at most; else as the setting session.max says
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    max: Option<Duration>,

    /// A label to find it by
    #[arg(long, value_name = "KEY=VALUE")]
    label: Vec<String>,

    /// What the agent that works in it calls itself
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// Stop this session first; no other is ever stopped by a start
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
