//! Asking the person behind the client: a guard is not opened by the model.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest,
    InputRequests, InputRequiredResult, InputResponses, ProtocolVersion, ServerRequest,
};
use rmcp::service::RequestContext;
use serde_json::json;
use sessile::context::approval;
use sessile::names::ContextName;
use sessile::text::{quoted, shortened, shown};

use super::state_access::{StateLocation, with_state};

/// Timeout of a person's answer.
const PATIENCE: Duration = Duration::from_secs(600);

/// The times that can be chosen.
const TIMES: [&str; 3] = ["10m", "30m", "2h"];

/// Question to a person.
pub(super) struct Question<'a> {
    pub(super) context: &'a str,
    /// Command that would use the context.
    pub(super) purpose: &'a str,
    /// Client that asks.
    pub(super) client: &'a str,
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
    question: &Question<'_>,
    context: &RequestContext<RoleServer>,
    answers: Option<&InputResponses>,
    place: &StateLocation,
) -> ApprovalOutcome {
    let can_ask = context.client_capabilities().and_then(|can| can.elicitation).is_some_and(|elicitation| {
        // A client that does not say which kind has forms: they came first.
        elicitation.form.is_some() || elicitation.url.is_none()
    });
    if !can_ask {
        return ApprovalOutcome::Shut(None);
    }
    let name = question.context.to_owned();
    let grantable = with_state(place.clone(), move |state| {
        let context = approval::check_grantable(state, &name.parse()?)?;
        // An answer holds for one question: a later approval, also one that was revoked since, makes it stale.
        let newest = approval::all(state)?.into_iter().find(|approval| approval.context == name);
        Ok((context.digest(), newest.map_or(0, |approval| approval.id)))
    });
    let (digest, newest) = match grantable.await {
        Ok(found) => found,
        Err(error) => return ApprovalOutcome::Shut(Some(error)),
    };
    let is_inline =
        context.protocol_version().is_some_and(|version| version >= ProtocolVersion::NO_INITIALIZE);
    let answer = if is_inline {
        let key = question.key(&digest, newest);
        let answer = answers.and_then(|answers| answers.get(&key));
        let Some(answer) = answer else { return question.to_be_asked(key) };
        serde_json::from_value(answer.clone()).ok()
    } else {
        question.put(context).await
    };
    let chosen = answer.filter(|answer| answer.action == ElicitationAction::Accept);
    let chosen = chosen.and_then(|answer| answer.content?["open_for"].as_str().map(str::to_owned));
    // The client may send anything; only what was offered counts.
    let Some(time) = chosen.filter(|time| TIMES.contains(&time.as_str())) else {
        return ApprovalOutcome::Shut(Some("the person who was asked did not open it".to_owned()));
    };
    let (name, client) = (question.context.to_owned(), question.client.to_owned());
    let granted = with_state(place.clone(), move |state| {
        let name: ContextName = name.parse()?;
        let time = sessile::duration::parse(&time).unwrap_or_default();
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

impl Question<'_> {
    /// Key of the answer: context name, digest of the context, and id of its newest approval when the person was asked.
    fn key(&self, digest: &str, newest: i64) -> String {
        format!("open {} {digest} {newest}", self.context)
    }

    fn request(&self) -> Option<ElicitRequest> {
        let message = format!(
            "{} wants to use the context {}, which is shut: {}. Open it?",
            shown(shortened(self.client, 60)),
            quoted(self.context),
            shown(shortened(self.purpose, 300))
        );
        let schema = json!({
            "type": "object",
            "properties": {
                "open_for": { "type": "string", "title": "Open it for", "enum": TIMES },
            },
            "required": ["open_for"],
        });
        let requested_schema = serde_json::from_value(schema).ok()?;
        let params = ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema };
        Some(ElicitRequest::new(params))
    }

    /// From the revision 2026-07-28 on the question is the result, and the answer comes with the next call.
    fn to_be_asked(&self, key: String) -> ApprovalOutcome {
        let Some(request) = self.request() else { return ApprovalOutcome::Shut(None) };
        let requests = InputRequests::from([(key, InputRequest::Elicitation(request))]);
        ApprovalOutcome::Ask(Box::new(InputRequiredResult::from_input_requests(requests)))
    }

    /// Before, the server asks while the call waits.
    async fn put(&self, context: &RequestContext<RoleServer>) -> Option<ElicitResult> {
        let asked = context.peer.send_request(ServerRequest::ElicitRequest(self.request()?));
        let answer = tokio::select! {
            answer = asked => answer.ok()?,
            () = tokio::time::sleep(PATIENCE) => return None,
        };
        match answer {
            ClientResult::ElicitResult(result) => Some(result),
            _ => None,
        }
    }
}
