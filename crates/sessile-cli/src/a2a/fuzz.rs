//! Fuzz targets: an agent's card, its answers, its event stream.

use sessile::text::shown_lines;
use sessile_wire::a2a::{
    AgentCard, AgentEvent, AgentTask, ArtifactUpdate, Dialect, PushRegistration, RpcError,
};
use sessile_wire::sse::{SseEvent, SseReader};

use super::json;
use super::signature::{JwkSource, SignatureStatus, payloads, verify_card};

/// Limit of values from one response.
const VALUES: usize = 100_000;

/// An agent's card.
pub fn a2a_card(bytes: &[u8]) {
    let Ok(raw) = json::parse(bytes, VALUES) else { return };
    let Some(card) = AgentCard::read(raw.clone()) else { return };
    assert_eq!(card.raw, raw, "a card is kept as the agent sent it");
    for interface in &card.interfaces {
        let _ = interface.dialect();
    }
}

/// Keys of a signed card, whatever it names.
struct KeySet(Option<serde_json::Value>);

impl JwkSource for KeySet {
    fn keys(&self, _url: Option<&str>) -> Result<(serde_json::Value, String), String> {
        self.0.clone().map(|set| (set, "the input".to_owned())).ok_or_else(|| "no key set".to_owned())
    }
}

/// A signed card with a key set: `{"card": ..., "keys": ...}`.
pub fn card_signature(bytes: &[u8]) {
    let Ok(raw) = json::parse(bytes, VALUES) else { return };
    let Some(card) = raw.get("card") else { return };
    for payload in payloads(card) {
        let again = serde_json::from_str(&payload).map(|card| payloads(&card));
        assert!(again.is_ok_and(|again| again.contains(&payload)), "not canonical: {payload:?}");
    }
    let keys = KeySet(raw.get("keys").cloned());
    let statuses = verify_card(card, &keys);
    let mut changed = card.clone();
    if let Some(members) = changed.as_object_mut() {
        members.insert("sessile-fuzz".to_owned(), "changed".into());
    }
    for status in verify_card(&changed, &keys) {
        assert!(!matches!(status, SignatureStatus::Verified { .. }), "a changed card is verified");
    }
    for status in statuses {
        let (SignatureStatus::Invalid(text) | SignatureStatus::Unverifiable(text)) = status else { continue };
        assert!(text.len() < 1_000 && !text.contains(char::is_control), "{text:?}");
    }
}

/// An answer to a request, or the data of one event.
pub fn a2a_frame(bytes: &[u8]) {
    let raw = match json::parse(bytes, VALUES) {
        Ok(raw) => raw,
        Err(error) => {
            let text = error.to_string();
            // The error quotes the input, which comes from the agent and goes to a terminal.
            assert!(text.len() < 1_000 && !text.contains(char::is_control), "{text:?}");
            return;
        }
    };
    if let Some(error) = raw.get("error") {
        let _ = RpcError::read(error);
    }
    let result = raw.get("result").unwrap_or(&raw);
    for dialect in Dialect::ALL {
        if let Some(event) = AgentEvent::read(result.clone(), dialect) {
            assert!(!shown_lines(&event.text()).contains('\u{1b}'));
            let _ = (event.task_id(), event.context_id(), event.state(), event.is_final());
        }
        let _ = PushRegistration::read(result.clone());
        let Some(task) = AgentTask::read(result.clone(), dialect) else { continue };
        let mut joined: Option<ArtifactUpdate> = None;
        for artifact in task.artifacts() {
            let _ = artifact.parts();
            match &mut joined {
                Some(joined) => joined.append(&artifact),
                None => joined = Some(artifact),
            }
        }
        let _ = (task.message(), task.history().len());
    }
}

/// A stream of server-sent events. How it is cut into pieces makes no difference.
pub fn sse_stream(bytes: &[u8]) {
    const LARGEST: usize = 4_096;
    let read = |piece: usize| {
        let (mut reader, mut events) = (SseReader::new(LARGEST), Vec::<SseEvent>::new());
        let fits = bytes.chunks(piece).try_for_each(|bytes| reader.push(bytes, &mut events));
        (events, fits.is_ok())
    };
    let whole = read(bytes.len().max(1));
    assert!(whole.0.iter().all(|event| event.data.len() <= LARGEST), "an event is too large");
    for piece in [1, 2, 7] {
        assert!(read(piece) == whole, "pieces of {piece} bytes give other events");
    }
}
