//! Opening a guarded context by asking the person behind the client: a guard is not opened by the model.

use rmcp::model::InputRequiredResult;
use sessile::context::approval;
use sessile::names::ContextName;
use sessile::text::{quoted, shortened, shown};

use super::questions::{Answer, Asker, Question, can_ask};
use super::state_access::{StateLocation, with_state};

/// The times that can be chosen.
const TIMES: [&str; 3] = ["10m", "30m", "2h"];

/// Call that needs the approval of a context.
pub(super) struct GuardedCall<'a> {
    pub(super) context: &'a str,
    /// Command that would use the context.
    pub(super) purpose: &'a str,
    /// Client that asks.
    pub(super) client: &'a str,
    /// Whether the person has already allowed the command of this call.
    pub(super) is_run_allowed: bool,
}

/// Outcome of asking for an approval.
pub(super) enum ApprovalOutcome {
    /// The context is open.
    Opened,
    /// Not approved, with the reason if known.
    Shut(Option<String>),
    /// The client is to ask, and to call again with the answer.
    Ask(Box<InputRequiredResult>),
}

/// Asks a person, through the client, to approve a context.
pub(super) async fn ask(
    request: &GuardedCall<'_>,
    asker: &mut Asker<'_>,
    place: &StateLocation,
) -> ApprovalOutcome {
    if !can_ask(asker.context.client_capabilities()) {
        return ApprovalOutcome::Shut(None);
    }
    let name = request.context.to_owned();
    let grantable = with_state(place.clone(), move |state| {
        let context = approval::check_grantable(state, &name.parse()?)?;
        // A later approval, also one that was revoked since, makes an answer stale.
        let newest = approval::all(state)?.into_iter().find(|approval| approval.context == name);
        Ok((context.digest(), newest.map_or(0, |approval| approval.id)))
    });
    let (digest, newest) = match grantable.await {
        Ok(found) => found,
        Err(error) => return ApprovalOutcome::Shut(Some(error)),
    };
    let question = Question {
        key: format!("open {}", request.context),
        message: format!(
            "{} requests context {}, which requires your approval: {}. Approve it?",
            shown(shortened(request.client, 60)),
            quoted(request.context),
            shown(shortened(request.purpose, 300))
        ),
        field: "open_for",
        title: "Approve for",
        choices: &TIMES,
        condition: format!("{digest} {newest}"),
        is_run_allowed: request.is_run_allowed,
    };
    let time = match asker.ask(&question).await {
        Answer::Chosen(time) => time,
        Answer::Declined => {
            return ApprovalOutcome::Shut(Some("the person denied the approval".to_owned()));
        }
        Answer::Unable => return ApprovalOutcome::Shut(None),
        Answer::Ask(question) => return ApprovalOutcome::Ask(question),
    };
    let (name, client) = (request.context.to_owned(), request.client.to_owned());
    let granted = with_state(place.clone(), move |state| {
        let name: ContextName = name.parse()?;
        let time = sessile::duration::parse(time).unwrap_or_default();
        // The person was asked about the context as it was then.
        approval::check_unchanged(state, &name, &digest)?;
        // By the library, because the command itself would require a terminal.
        approval::grant_through(state, &name, time, &client).map(|_| ())
    });
    match granted.await {
        Ok(()) => ApprovalOutcome::Opened,
        Err(error) => ApprovalOutcome::Shut(Some(error)),
    }
}
