//! Assembly of a reply from the events of an agent.

use std::collections::BTreeMap;

use sessile_wire::a2a::TaskState;

use super::super::UpstreamError;
use super::delivered_prefix::DeliveredPrefix;
use super::event::{TextArtifact, TextEvent};
use crate::model::AgentConversation;

/// Maximum bytes of an id.
const ID_BYTES: usize = 1000;

/// Maximum number of results of a task.
const RESULTS: usize = 256;

/// Reply as far as it has arrived. Its text is that of the results of the task; without results, that of the last state; without
/// either, that of the states before.
#[derive(Debug, Default)]
pub(super) struct ReplyAssembly {
    before: Option<AgentConversation>,
    /// Results that earlier replies delivered, if the task is the same.
    earlier: BTreeMap<String, DeliveredPrefix>,
    context_id: Option<String>,
    task_id: Option<String>,
    state: Option<TaskState>,
    results: Vec<ResultText>,
    /// Bytes of the results.
    size: usize,
    /// Text of the results in order, as long as it has only grown at its end.
    straight: Option<String>,
    /// Text of the last state, or of a message.
    last: String,
    /// Texts of the states before.
    notes: Vec<String>,
    /// Bytes of the notes.
    noted: usize,
    has_events: bool,
    is_message: bool,
    has_left: bool,
    in_stream: bool,
    /// Whether the only event so far may be the task as it was before the message.
    may_be_old: bool,
}

/// New part of a result.
#[derive(Debug)]
struct ResultText {
    id: String,
    text: String,
    /// Prefix that an earlier reply delivered.
    delivered: DeliveredPrefix,
}

impl ReplyAssembly {
    pub(super) fn new(before: Option<&AgentConversation>) -> Self {
        let earlier =
            before.map(|before| before.told.iter().filter_map(DeliveredPrefix::from_stored).collect());
        ReplyAssembly {
            before: before.cloned(),
            earlier: earlier.unwrap_or_default(),
            straight: Some(String::new()),
            ..ReplyAssembly::default()
        }
    }

    /// Adds an event.
    pub(super) fn add(&mut self, event: Option<TextEvent>, most: usize) -> Result<(), UpstreamError> {
        self.has_events = true;
        if std::mem::take(&mut self.may_be_old) {
            self.last.clear();
        }
        match event {
            None => {}
            Some(TextEvent::Message { context_id, text }) => {
                self.set_ids(None, context_id);
                (self.last, self.is_message) = (text, true);
            }
            Some(TextEvent::Task { id, context_id, state, text, artifacts }) => {
                self.may_be_old = self.in_stream
                    && self.state.is_none()
                    && state.waits()
                    && self.resumed_task() == Some(&id);
                self.set_ids(Some(id), context_id);
                self.set_state(state, text);
                for artifact in artifacts {
                    self.set_result(artifact)?;
                }
            }
            Some(TextEvent::Status { task_id, context_id, state, text, is_final }) => {
                self.set_ids(task_id, context_id);
                self.has_left |= is_final;
                self.set_state(state, text);
            }
            Some(TextEvent::Artifact { task_id, context_id, artifact, is_append }) => {
                self.set_ids(task_id, context_id);
                self.add_chunk(artifact, is_append)?;
            }
        }
        // Between results there may be line breaks.
        let results = self.size + self.results.len().saturating_sub(1);
        if results.max(self.last.len()).max(self.noted) > most {
            return Err(UpstreamError::Unusable("the reply is too long".to_owned()));
        }
        Ok(())
    }

    fn set_ids(&mut self, task: Option<String>, context: Option<String>) {
        self.task_id = task.or(self.task_id.take());
        self.context_id = context.or(self.context_id.take());
    }

    fn set_state(&mut self, state: TaskState, text: String) {
        self.state = Some(state);
        let before = std::mem::replace(&mut self.last, text);
        // A task that is polled twice has the same text twice.
        if !before.is_empty() && before != self.last && self.notes.last() != Some(&before) {
            self.noted += before.len();
            self.notes.push(before);
        }
    }

    /// Sets a result to its text in a snapshot of the task.
    fn set_result(&mut self, artifact: TextArtifact) -> Result<(), UpstreamError> {
        let at = self.at(&artifact.id);
        let delivered = at.map_or_else(|| self.delivered(&artifact.id), |at| self.results[at].delivered);
        // A result that no longer begins with the delivered prefix is new as a whole.
        let (text, delivered) = match delivered.rest(&artifact.text) {
            Some(rest) => (rest.to_owned(), delivered),
            None => (artifact.text, DeliveredPrefix::NOTHING),
        };
        let at = at.map_or_else(|| self.add_result(artifact.id), Ok)?;
        self.replace(at, text, delivered);
        Ok(())
    }

    /// Adds a chunk of a result.
    fn add_chunk(&mut self, artifact: TextArtifact, append: bool) -> Result<(), UpstreamError> {
        let TextArtifact { id, text } = artifact;
        match self.at(&id) {
            Some(at) if append => self.grow(at, &text),
            Some(at) => self.replace(at, text, DeliveredPrefix::NOTHING),
            None => {
                // A chunk that does not append replaces also what an earlier reply delivered.
                let delivered = if append { self.delivered(&id) } else { DeliveredPrefix::NOTHING };
                let at = self.add_result(id)?;
                self.replace(at, text, delivered);
            }
        }
        Ok(())
    }

    /// Task that waited for the message.
    fn resumed_task(&self) -> Option<&String> {
        self.before.as_ref().and_then(|before| before.task_id.as_ref())
    }

    fn delivered(&self, id: &str) -> DeliveredPrefix {
        let is_same = self.before.as_ref().is_some_and(|before| before.task_id == self.task_id);
        self.earlier.get(id).copied().filter(|_| is_same).unwrap_or(DeliveredPrefix::NOTHING)
    }

    fn at(&self, id: &str) -> Option<usize> {
        self.results.iter().position(|result| result.id == id)
    }

    /// Marks the begin of a stream. Its first event may be the task as it was before the message.
    pub(super) fn begin_stream(&mut self) {
        self.in_stream = true;
    }

    /// Marks the end of a stream: the last event counts.
    pub(super) fn end_stream(&mut self) {
        (self.in_stream, self.may_be_old) = (false, false);
    }

    /// Adds an empty result.
    fn add_result(&mut self, id: String) -> Result<usize, UpstreamError> {
        if self.results.len() == RESULTS || id.len() > ID_BYTES {
            return Err(UpstreamError::Unusable("too many results, or ids that are too long".to_owned()));
        }
        self.results.push(ResultText { id, text: String::new(), delivered: DeliveredPrefix::NOTHING });
        Ok(self.results.len() - 1)
    }

    /// Appends to a result. Other results may follow it.
    fn grow(&mut self, at: usize, more: &str) {
        if more.is_empty() {
            return;
        }
        if self.results[at + 1..].iter().any(|result| !result.text.is_empty()) {
            // Text that was passed on already would have to change in the middle.
            self.straight = None;
        }
        let begins = self.results[at].text.is_empty();
        if let Some(text) = &mut self.straight {
            join(text, more, begins);
        }
        self.results[at].text.push_str(more);
        self.size += more.len();
    }

    fn replace(&mut self, at: usize, text: String, delivered: DeliveredPrefix) {
        let result = &mut self.results[at];
        result.delivered = delivered;
        match text.strip_prefix(result.text.as_str()) {
            Some(more) => self.grow(at, more),
            None => {
                self.size = self.size - result.text.len() + text.len();
                (result.text, self.straight) = (text, None);
            }
        }
    }

    /// Text of the results in order.
    fn joined(&self) -> String {
        let mut joined = String::with_capacity(self.size + self.results.len());
        for result in self.results.iter().filter(|result| !result.text.is_empty()) {
            join(&mut joined, &result.text, true);
        }
        joined
    }

    /// Text behind the first so many bytes, if those have not changed.
    pub(super) fn text_since(&self, bytes: usize) -> Option<&str> {
        self.straight.as_ref()?.get(bytes..).filter(|more| !more.is_empty())
    }

    /// Whether the agent sent any event.
    pub(super) fn has_events(&self) -> bool {
        self.has_events
    }

    /// Whether no further event is expected.
    pub(super) fn is_complete(&self) -> bool {
        let rests = |state: TaskState| state.is_terminal() || state.waits();
        self.is_message || !self.may_be_old && self.state.is_some_and(rests)
    }

    /// Whether the agent ended the stream of a task that continues.
    pub(super) fn continues_without_stream(&self) -> bool {
        self.has_left && self.task_id.is_some()
    }

    pub(super) fn task_id(&self) -> Option<&str> {
        self.task_id.as_deref()
    }

    /// State of a task that waits for the user.
    pub(super) fn waiting_state(&self) -> Option<TaskState> {
        self.state.filter(|state| !self.is_message && state.waits())
    }

    /// Text of the reply. A failed task has none.
    pub(super) fn text(&self) -> Result<String, UpstreamError> {
        let state = self.state.filter(|_| !self.is_message);
        if let Some(state @ (TaskState::Failed | TaskState::Rejected | TaskState::Canceled)) = state {
            let detail = format!("the task is {state}: {}", self.last);
            return Err(UpstreamError::Declined {
                kind: None,
                detail,
                is_transient: state == TaskState::Failed,
            });
        }
        let mut text = self.joined();
        match (text.is_empty(), self.last.is_empty()) {
            (false, true) => {}
            // A question or a closing remark beside results; many agents only repeat the results.
            (false, false) if self.waiting_state().is_none() || text.contains(&self.last) => {}
            (_, false) => join(&mut text, &self.last, true),
            (true, true) => text = self.notes.join("\n"),
        }
        if text.is_empty() && self.waiting_state().is_none() {
            return Err(UpstreamError::Unusable("no text in the reply".to_owned()));
        }
        Ok(text)
    }

    /// Conversation with the agent after this reply.
    pub(super) fn conversation(self, agent: String) -> Option<AgentConversation> {
        let is_usable = |id: &String| id.len() <= ID_BYTES && !id.contains(char::is_control);
        let waits = self.waiting_state().is_some();
        let task_id = self.task_id.filter(|_| waits).filter(is_usable);
        let is_same = self.before.as_ref().is_some_and(|before| before.task_id == task_id);
        let results =
            self.results.into_iter().map(|result| (result.id, result.delivered.extended(&result.text)));
        let mut told: BTreeMap<String, DeliveredPrefix> = results.filter(|_| task_id.is_some()).collect();
        if task_id.is_some() && is_same {
            for (id, earlier) in self.earlier {
                // Results without an event in this reply are the first to be dropped.
                if told.len() < RESULTS {
                    told.entry(id).or_insert(earlier);
                }
            }
        }
        let told = told.into_iter().map(|(id, told)| told.to_stored(&id)).collect();
        let before = self.before.map(|before| before.context_id);
        // Agents may leave the context out of events of a conversation that goes on.
        let context_id = self.context_id.or(before).filter(is_usable)?;
        Some(AgentConversation { agent, context_id, task_id, told })
    }
}

/// Appends to a text, on a new line if a result begins.
fn join(text: &mut String, more: &str, begins: bool) {
    if begins && !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(more);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(state: TaskState, text: &str) -> TextEvent {
        let (task_id, context_id) = (Some("t".to_owned()), Some("c".to_owned()));
        TextEvent::Status { task_id, context_id, state, text: text.to_owned(), is_final: false }
    }

    fn artifact(id: &str, text: &str) -> TextArtifact {
        TextArtifact { id: id.to_owned(), text: text.to_owned() }
    }

    fn piece(id: &str, text: &str, append: bool) -> TextEvent {
        TextEvent::Artifact {
            task_id: None,
            context_id: None,
            artifact: artifact(id, text),
            is_append: append,
        }
    }

    fn task(state: TaskState, text: &str, artifacts: &[(&str, &str)]) -> TextEvent {
        let artifacts = artifacts.iter().map(|(id, text)| artifact(id, text)).collect();
        TextEvent::Task {
            id: "t".to_owned(),
            context_id: Some("c".to_owned()),
            state,
            text: text.to_owned(),
            artifacts,
        }
    }

    fn assembled(
        before: Option<&AgentConversation>,
        all: impl IntoIterator<Item = TextEvent>,
    ) -> ReplyAssembly {
        let mut reply = ReplyAssembly::new(before);
        reply.begin_stream();
        for event in all {
            reply.add(Some(event), 1000).unwrap();
        }
        reply
    }

    fn text(all: impl IntoIterator<Item = TextEvent>) -> String {
        assembled(None, all).text().unwrap()
    }

    #[test]
    fn repeated_text_is_added_once() {
        let done = || status(TaskState::Completed, "");
        let pieces = || [piece("a", "Hel", false), piece("a", "lo", true)];
        assert_eq!(text(pieces().into_iter().chain([done()])), "Hello");
        let again = task(TaskState::Completed, "Hello", &[("a", "Hello")]);
        assert_eq!(text(pieces().into_iter().chain([again])), "Hello");
        assert_eq!(text(pieces().into_iter().chain([piece("b", "!", false), done()])), "Hello\n!");
        assert_eq!(text([status(TaskState::Working, "soon"), status(TaskState::Completed, "now")]), "now");
        assert_eq!(
            text([status(TaskState::Working, "one"), status(TaskState::Working, "two"), done()]),
            "one\ntwo"
        );
        let asks = [piece("a", "a draft", false), status(TaskState::InputRequired, "is it good?")];
        assert_eq!(text(asks), "a draft\nis it good?");
    }

    #[test]
    fn text_since_is_none_after_a_replacement() {
        let mut reply = assembled(None, [piece("a", "one", false)]);
        assert_eq!((reply.text_since(0), reply.text_since(3)), (Some("one"), None));
        reply.add(Some(piece("a", " two", true)), 1000).unwrap();
        assert_eq!(reply.text_since(3), Some(" two"));
        reply.add(Some(piece("a", "three and more", false)), 1000).unwrap();
        assert_eq!(reply.text_since(7), None, "the streamed text was replaced");
        reply.add(Some(status(TaskState::Completed, "")), 1000).unwrap();
        assert_eq!(reply.text().unwrap(), "three and more");
        let long = Some(piece("a", &"x".repeat(1000), true));
        assert!(reply.add(long, 1000).is_err());
    }

    #[test]
    fn resumed_task_delivers_only_new_text() {
        let asked = [piece("a", "part one", false), status(TaskState::InputRequired, "go on?")];
        let before = assembled(None, asked).conversation("agent".to_owned()).unwrap();
        assert_eq!((before.task_id.as_deref(), before.told.len()), (Some("t"), 1));
        assert_eq!(before.told.iter().find_map(DeliveredPrefix::from_stored).unwrap().1.bytes, 8);
        // It begins as it was, which is no answer.
        let old = || task(TaskState::InputRequired, "go on?", &[("a", "part one")]);
        let mut reply = assembled(Some(&before), [old()]);
        assert!(!reply.is_complete());
        reply
            .add(Some(task(TaskState::Completed, "", &[("a", "part one"), ("b", "part two")])), 1000)
            .unwrap();
        assert_eq!((reply.is_complete(), reply.text().unwrap().as_str()), (true, "part two"));
        let mut reply = assembled(Some(&before), [old()]);
        reply.end_stream();
        assert_eq!((reply.is_complete(), reply.text().unwrap().as_str()), (true, "go on?"));
        let reply =
            assembled(Some(&before), [piece("a", " and a half", true), status(TaskState::Completed, "")]);
        assert_eq!(reply.text().unwrap(), " and a half");
        let after = reply.conversation("agent".to_owned()).unwrap();
        assert_eq!((after.context_id.as_str(), after.task_id, after.told.len()), ("c", None, 0));
    }

    #[test]
    fn only_the_delivered_prefix_is_dropped() {
        let asked = || [piece("a", "draft one", false), status(TaskState::InputRequired, "good?")];
        let before = assembled(None, asked()).conversation("agent".to_owned()).unwrap();
        let done = |text: &str| task(TaskState::Completed, "", &[("a", text)]);
        let then = |text: &str| assembled(Some(&before), [done(text)]).text().unwrap();
        assert_eq!(then("final version"), "final version");
        assert_eq!(then("draft on\u{e9}!"), "draft on\u{e9}!", "not within a character");
        assert_eq!(then("short"), "short");
        assert_eq!(then("draft one and two"), " and two");
        // Text that this reply replaces is not dropped, even if it begins with the delivered prefix.
        let anew = [piece("a", "draft one!", false), done("draft one!")];
        assert_eq!(assembled(Some(&before), anew).text().unwrap(), "draft one!");
        // Text that was appended to the delivered prefix is delivered, too.
        let asks = status(TaskState::InputRequired, "and now?");
        let works = status(TaskState::Working, "");
        let more = assembled(Some(&before), [works, piece("a", ", more", true), asks]);
        let before = more.conversation("agent".to_owned()).unwrap();
        let last = assembled(Some(&before), [done("draft one, more, done")]);
        assert_eq!(last.text().unwrap(), ", done");
    }

    #[test]
    fn results_begin_on_new_lines() {
        let done = || status(TaskState::Completed, "");
        let pieces = [piece("a", "one", false), piece("b", "", false), piece("b", "two", true)];
        let mut reply = assembled(None, pieces);
        assert_eq!(reply.text_since(0), Some("one\ntwo"));
        reply.add(Some(piece("a", "!", true)), 1000).unwrap();
        assert_eq!(reply.text_since(0), None, "the text grew in the middle");
        reply.add(Some(done()), 1000).unwrap();
        assert_eq!(reply.text().unwrap(), "one!\ntwo");
    }

    #[test]
    fn number_and_ids_of_results_are_limited() {
        let mut reply = assembled(None, []);
        for number in 0..RESULTS {
            reply.add(Some(piece(&number.to_string(), "", false)), 1000).unwrap();
        }
        reply.add(Some(piece("0", "more", true)), 1000).unwrap();
        assert!(reply.add(Some(piece("one more", "", false)), 1000).is_err());
        let mut reply = assembled(None, []);
        assert!(reply.add(Some(piece(&"x".repeat(ID_BYTES + 1), "", false)), 1000).is_err());
        // Nor are more of them remembered, however often the task asks.
        let all = |name: &str| {
            let many = (0..RESULTS).map(|number| piece(&format!("{name}{number}"), "x", false));
            many.chain([status(TaskState::InputRequired, "?")]).collect::<Vec<_>>()
        };
        let first = assembled(None, all("a")).conversation("agent".to_owned()).unwrap();
        let second = assembled(Some(&first), all("b")).conversation("agent".to_owned()).unwrap();
        assert_eq!((first.told.len(), second.told.len()), (RESULTS, RESULTS));
        assert!(second.told.keys().all(|key| key.contains(" b")));
    }

    #[test]
    fn unusable_context_id_is_not_stored() {
        let message =
            |id: &str| TextEvent::Message { context_id: Some(id.to_owned()), text: "hi".to_owned() };
        let kept = |id: &str| assembled(None, [message(id)]).conversation("agent".to_owned());
        assert!(kept("c").is_some() && kept("a\nb").is_none() && kept(&"x".repeat(1001)).is_none());
        for state in [TaskState::Failed, TaskState::Rejected, TaskState::Canceled] {
            let reply = assembled(None, [piece("a", "half", false), status(state, "no")]);
            assert!(matches!(reply.text(), Err(UpstreamError::Declined { kind: None, .. })), "{state}");
        }
    }
}
