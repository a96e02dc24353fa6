//! Prompts: texts with which a person starts an agent.

use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, ErrorData, GetPromptRequestParams,
    GetPromptResult, Prompt, PromptArgument, PromptMessage, Reference, Role,
};
use serde_json::{Value, json};
use sessile::text::{quoted, shortened};

use super::resources::failed;
use super::server::{Offer, ServerState};
use super::uri::{ResourceKind, ResourceUri};

/// Name of the prompt.
const WORK: &str = "work_in_context";

/// Offered prompts. A prompt requires the tools that it names.
pub(super) fn list(offer: Offer) -> Vec<Prompt> {
    if !offer.has("start_session") {
        return Vec::new();
    }
    let context = PromptArgument::new("context")
        .with_description("Context to work in, such as staging")
        .with_required(true);
    let about = "Work safely in a context: a session of its own, a lock for shared changes, and a clean end";
    vec![Prompt::new(WORK, Some(about), Some(vec![context])).with_title("Work safely in a context")]
}

/// Messages of a prompt.
pub(super) async fn get(
    shared: &ServerState,
    offer: Offer,
    request: &GetPromptRequestParams,
) -> Result<GetPromptResult, ErrorData> {
    let wrong = |message: String| Err(ErrorData::invalid_params(message, None));
    if request.name != WORK || list(offer).is_empty() {
        return wrong(format!("prompt {} not found", quoted(shortened(&request.name, 60))));
    }
    let arguments = request.arguments.as_ref();
    let Some(context) = arguments.and_then(|given| given.get("context")).and_then(Value::as_str) else {
        return wrong(format!("{WORK} requires the argument \"context\""));
    };
    let found = shared.resource(&ResourceUri::new(ResourceKind::Context, context)).await;
    let found = found
        .map_err(|report| ErrorData { code: rmcp::model::ErrorCode::INVALID_PARAMS, ..failed(report) })?;
    let text = work_text(context, found["guard"].as_str().unwrap_or("none"), offer);
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(format!("Work safely in {}", quoted(context))))
}

fn work_text(context: &str, guard: &str, offer: Offer) -> String {
    let start = json!({ "context": context });
    let mut steps = vec![format!(
        "Call start_session with {start}. Keep the `id` of its result and pass it as `session` to every other tool."
    )];
    if guard == "approval" {
        steps.push(
            "If a tool fails with GUARD_APPROVAL, stop and tell me: only I can approve this context. Do not look for a way \
             around it."
                .to_owned(),
        );
    }
    if offer.has("run") {
        steps.push(
            "Run commands with `run` and the session. Do not switch targets with a program's own commands, flags, \
             variables or configuration files: the session has selected them already."
                .to_owned(),
        );
    }
    steps.push(
        "Before you change something that others use, call acquire_lock with a name that says what it protects. Keep the \
         `token`. If the lock is held, wait or ask me."
            .to_owned(),
    );
    steps.push(
        "When you are done, call stop_session. It ends the session's processes and releases its locks."
            .to_owned(),
    );
    let steps: Vec<String> =
        steps.iter().enumerate().map(|(at, step)| format!("{}. {step}", at + 1)).collect();
    format!(
        "Work in the context {} through Sessile, and nowhere else.\n\n{}",
        quoted(context),
        steps.join("\n")
    )
}

/// Values that an argument of a prompt or of an address can have.
pub(super) async fn complete(shared: &ServerState, request: &CompleteRequestParams) -> CompleteResult {
    let argument = &request.argument;
    let kind = match &request.r#ref {
        Reference::Prompt(prompt) if prompt.name == WORK && argument.name == "context" => {
            Some(ResourceKind::Context)
        }
        Reference::Resource(resource) => ResourceKind::ALL
            .into_iter()
            .find(|kind| kind.template() == resource.uri && kind.key() == argument.name),
        _ => None,
    };
    let mut values = match kind {
        Some(kind) => shared.names(kind, &argument.value).await,
        None => Vec::new(),
    };
    let total = u32::try_from(values.len()).ok();
    let has_more = values.len() > CompletionInfo::MAX_VALUES;
    values.truncate(CompletionInfo::MAX_VALUES);
    CompletionInfo::with_pagination(values, total, has_more).map(CompleteResult::new).unwrap_or_default()
}
