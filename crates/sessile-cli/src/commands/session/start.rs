//! `sessile session start`.

use std::collections::BTreeMap;
use std::time::Duration;

use sessile::args::parse_duration;
use sessile::error::UsageError;
use sessile::session::SessionName;

use super::describe;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples_and_precedence;
use crate::remote::{Remote, ServerArgs, SessionSpec};

/// Start a session and print its id
///
/// It is pinned to the context that is selected now, or to none, for its whole life. In an interactive call it also becomes
/// this terminal's session; a script gets the id and nothing else is changed. With --quiet only the id is printed.
#[derive(Debug, clap::Args)]
#[command(after_help = examples_and_precedence!(
    "sessile session start --name deploy --context staging"
    "sessile session start --quiet"
    "sessile session start --agent reviewer --label team=web --idle 30m --max 4h"
))]
pub struct Args {
    /// A name to call it by, unique among your live sessions
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

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
        if sessile::json::is_reserved(key) {
            let (name, reason) = (key.to_owned(), "the name is reserved".into());
            return Err(UsageError::InvalidName { what: "label", name, reason }.into());
        }
        labels.insert(key.to_owned(), value.to_owned());
    }
    let (idle, max) = cx.state.session_lifetime(args.idle, args.max)?;
    if let Some(remote) = Remote::of(cx)? {
        return there(args, cx, &remote, labels, (idle, max));
    }
    let replaced = args.replace.as_deref().map(|text| cx.state.sessions()?.get(text)).transpose()?;
    if let Some(replaced) = &replaced {
        cx.state.check_start(name.as_ref(), replaced)?;
        cx.state.stop_session("session start --replace", replaced)?;
    }
    let (session, selected) = cx.state.start_session(name, args.agent.clone(), labels, idle, max)?;
    let mut json = describe(cx, &session);
    json["replaced"] = serde_json::json!(replaced.map(|replaced| replaced.id));
    json["selected_for_terminal"] = serde_json::json!(selected);
    cx.changed_in(Some(&session), json, || format!("{}\n", session.id))?;
    if selected {
        cx.out.note("it is this terminal's session now");
    }
    Ok(())
}

/// The same on a server. The context is one of this machine, and its guard is asked here.
fn there(
    args: &Args,
    cx: &Cx,
    remote: &Remote<'_>,
    labels: BTreeMap<String, String>,
    (idle, max): (Duration, Duration),
) -> Outcome {
    let selected = cx.state.selected()?;
    let context =
        selected.map(|_| cx.state.contexts().require()).transpose()?.map(|context| context.name.to_string());
    let replaced = args.replace.as_deref().map(|text| remote.meant(Some(text), "replacing")).transpose()?;
    if let Some(replaced) = &replaced {
        remote.end(replaced)?;
    }
    let session = remote.start(SessionSpec {
        name: args.name.as_deref(),
        context: context.as_deref(),
        labels,
        agent: args.agent.as_deref(),
        idle,
        max,
    })?;
    let mut json = remote.describe(&session, &remote.owner()?);
    json["replaced"] = serde_json::json!(replaced.map(|replaced| replaced.id));
    json["selected_for_terminal"] = serde_json::json!(false);
    let origin = selected.map(|selected| &selected.origin);
    let place = remote.place(&session);
    cx.changed_there(&session.id, context.as_deref(), origin, &place, json, || format!("{}\n", session.id))
}
