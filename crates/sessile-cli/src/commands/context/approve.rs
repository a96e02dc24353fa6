//! `sessile context approve`.

use std::time::Duration;

use inquire::{InquireError, Select};
use serde::Serialize;
use serde_json::json;
use sessile::Error;
use sessile::args::parse_duration;
use sessile::context::approval::{self, Approval};
use sessile::context::request::{self, ApprovalRequest};
use sessile::context::{is_pin_set, set_pin};
use sessile::error::GuardError;
use sessile::names::ContextName;
use sessile::text::{quoted, shell_quoted, shown};

use crate::cli::Cx;
use crate::error::{CommandError, Failure, Outcome};
use crate::help::examples;
use crate::output::Table;
use crate::picker;
use crate::terminal_prompt;

/// Approve a guarded context for a while; list or revoke approvals
///
/// A refused command leaves a request with the user, the command, the session and the time. --pending lists the
/// requests of the last 24 hours; on a terminal you can choose one. --pending ID approves the context of a request.
///
/// Only a person can approve, on a terminal outside any session, for at most 24 hours. The history records approvals.
/// If a PIN is set, the command prompts for it, so that a program with a terminal cannot approve. Approvals prevent
/// accidents; they do not stop a hostile program of the same user.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile context approve production --for 30m"
    "sessile context approve --list"
    "sessile context approve --pending"
    "sessile context approve --pending 3 --for 30m"
    "sessile context approve production --revoke"
    "sessile context approve --set-pin"
))]
pub struct Args {
    /// Name of the context; prompts on a terminal by default
    #[arg(value_name = "CONTEXT")]
    name: Option<String>,

    /// Duration of the approval
    #[arg(long = "for", value_name = "DURATION", default_value = "30m", value_parser = parse_duration)]
    time: Duration,

    /// Revoke the approvals of the context
    #[arg(long, conflicts_with_all = ["list", "set_pin", "remove_pin"])]
    revoke: bool,

    /// List the active approvals
    #[arg(long, conflicts_with_all = ["set_pin", "remove_pin"])]
    list: bool,

    /// List the requests of refused commands, or approve the context of one
    #[arg(long, value_name = "ID", num_args = 0..=1, conflicts_with_all = ["name", "revoke", "list", "set_pin", "remove_pin"])]
    pending: Option<Option<u64>>,

    /// With --list: also list ended approvals
    #[arg(long, requires = "list")]
    all: bool,

    /// Set a PIN that approvals require
    #[arg(long, conflicts_with_all = ["name", "remove_pin"])]
    set_pin: bool,

    /// Remove the PIN
    #[arg(long, conflicts_with = "name")]
    remove_pin: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    if args.list {
        return list(args.all, cx);
    }
    if args.set_pin || args.remove_pin {
        return change_pin(args.set_pin, cx);
    }
    match args.pending {
        Some(None) if can_choose(args, cx) => return choose_request(args, cx),
        Some(None) => return list_requests(cx),
        Some(Some(id)) => return grant_request(args, cx, id),
        None => {}
    }
    if !args.revoke {
        // Before the list: inside a session any choice is refused.
        approval::check_place(&cx.state)?;
    }
    let question = if args.revoke { "Approvals to revoke, of context:" } else { "Context to approve:" };
    let name = picker::required_guarded_context(cx, args.name.as_deref(), question, "context approve")?;
    if args.revoke {
        let count = approval::revoke(&cx.state, &name)?;
        return cx.changed(json!({ "name": name, "revoked": count }), || {
            format!("revoked the approvals of context {}\n", quoted(name.as_str()))
        });
    }
    grant(args, cx, &name)
}

/// Approval with the name of its context: `context` is where the change was made.
#[derive(Debug, Serialize)]
struct ApprovalView<'a> {
    #[serde(flatten)]
    approval: &'a Approval,
    name: &'a ContextName,
}

fn grant(args: &Args, cx: &Cx, name: &ContextName) -> Outcome {
    let asked = approval::check_grant(&cx.state, name, args.time)?.digest();
    // The PIN is the confirmation; a question beside it would add nothing.
    let pin = ask_pin(cx, "PIN: ")?;
    if pin.is_none() {
        let time = sessile::duration::short(args.time);
        terminal_prompt::confirm(
            &cx.state,
            &format!("approve context {} for {time}", quoted(name.as_str())),
        )?;
    }
    // The context may have been edited while the person read the question.
    approval::check_unchanged(&cx.state, name, &asked)?;
    let approval = approval::grant(&cx.state, name, args.time, pin.as_deref())?;
    let view = ApprovalView { approval: &approval, name };
    cx.changed(view, || format!("approved context {} until {}\n", quoted(name.as_str()), approval.expires_at))
}

/// Approves the context of a request by the rules of every approval.
fn grant_request(args: &Args, cx: &Cx, id: u64) -> Outcome {
    let request = request::get(&cx.state, id)?;
    // Before anything is shown or typed: inside a session it is refused whatever is answered.
    approval::check_place(&cx.state)?;
    cx.out.note(&format!("{} wants to run: {}", shown(&request.requested_by), command(&request)));
    grant(args, cx, &request.context.parse()?)
}

/// Whether a person can choose a request: on a terminal and outside any session.
fn can_choose(args: &Args, cx: &Cx) -> bool {
    let is_watched = cx.out.is_text() && cx.state.call().selectable_terminal().is_some();
    is_watched && args.name.is_none() && !cx.state.args().yes && approval::check_place(&cx.state).is_ok()
}

/// Prompts for the request to approve. Leaving the list approves nothing.
fn choose_request(args: &Args, cx: &Cx) -> Outcome {
    let requests = request::pending(&cx.state)?;
    if requests.is_empty() {
        return list_requests(cx);
    }
    let line = |request: &ApprovalRequest| {
        let session = request.session.as_ref().map(|name| format!(" in session {}", quoted(name)));
        let by = format!("{} at {}", request.requested_by, request.requested_at);
        let (context, session) = (quoted(&request.context), session.unwrap_or_default());
        shown(format!("{context}: {}{session}, by {by}", command(request)))
    };
    let asked = Select::new("Request to approve:", requests.iter().map(line).collect())
        .with_page_size(15)
        .with_help_message("type to filter, enter approves, esc cancels")
        .raw_prompt();
    match asked.map(|chosen| requests.get(chosen.index)) {
        Ok(Some(request)) => grant_request(args, cx, request.id),
        Ok(None) | Err(InquireError::OperationCanceled) => Ok(()),
        Err(InquireError::OperationInterrupted) => Err(Failure::Interrupted),
        // A terminal that cannot move its cursor still shows a list.
        Err(_) => list_requests(cx),
    }
}

fn command(request: &ApprovalRequest) -> String {
    shown(request.command.iter().map(|word| shell_quoted(word)).collect::<Vec<_>>().join(" "))
}

fn list_requests(cx: &Cx) -> Outcome {
    let requests = request::pending(&cx.state)?;
    cx.out.list(&requests, || {
        if requests.is_empty() {
            return "no requests\n".to_owned();
        }
        let mut table = Table::new(&["ID", "CONTEXT", "COMMAND", "SESSION", "BY", "AT"]);
        for request in &requests {
            let session = request.session.as_deref().unwrap_or("-");
            let (id, command) = (request.id.to_string(), command(request));
            let cells: [&str; 6] =
                [&id, &request.context, &command, session, &request.requested_by, &request.requested_at];
            table.row(&cells, None);
        }
        table.render_wrapped(&cx.out)
    })
}

fn ask_pin(cx: &Cx, prompt: &str) -> Result<Option<String>, Error> {
    if !is_pin_set(&cx.state)? {
        return Ok(None);
    }
    terminal_prompt::secret(prompt)
        .map(Some)
        .ok_or_else(|| Error::Guard(GuardError::WrongPin("PIN required".into())))
}

fn change_pin(set: bool, cx: &Cx) -> Outcome {
    approval::check_place(&cx.state)?;
    let old = ask_pin(cx, "Old PIN: ")?;
    let new = if set {
        let new = terminal_prompt::secret("New PIN: ")
            .ok_or_else(|| CommandError::Declined("setting a PIN".into()))?;
        // A mistyped PIN would shut every guarded context.
        if terminal_prompt::secret("Again: ").as_ref() != Some(&new) {
            return Err(GuardError::WrongPin("the PINs differ".into()).into());
        }
        Some(new)
    } else {
        None
    };
    set_pin(&cx.state, old.as_deref(), new.as_deref())?;
    cx.changed(json!({ "pin": set }), || {
        let what = if set { "set the PIN for approvals" } else { "removed the PIN for approvals" };
        format!("{what}\n")
    })
}

fn list(all: bool, cx: &Cx) -> Outcome {
    let approvals = if all { approval::all(&cx.state)? } else { approval::in_force(&cx.state)? };
    cx.out.list(&approvals, || {
        if approvals.is_empty() {
            return "no active approvals\n".to_owned();
        }
        let mut table = Table::new(&["CONTEXT", "UNTIL", "GRANTED", "BY", "TERMINAL", "PIN"]);
        for Approval {
            context, granted_at, expires_at, granted_by, terminal, with_pin, revoked_at, ..
        } in &approvals
        {
            let until = revoked_at.as_ref().map_or_else(|| expires_at.clone(), |at| format!("revoked {at}"));
            let pin = if *with_pin { "yes" } else { "no" };
            table.row(&[context, &until, granted_at, granted_by, terminal, pin], None);
        }
        table.render_wrapped(&cx.out)
    })
}
