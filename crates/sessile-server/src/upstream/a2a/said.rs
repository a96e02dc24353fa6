//! What an agent has said of a reply so far, put together.

use std::collections::BTreeMap;

use sessile::conversation::TaskState;

use super::super::Fault;
use super::heard::{Artifact, Heard};
use crate::model::Conversation;

/// The longest id that is remembered.
const ID_BYTES: usize = 1000;

/// A reply, as far as it has come. Its text is the task's results; without any, what the agent says with the last state;
/// without that, what it said on the way.
#[derive(Debug, Default)]
pub(super) struct Said {
    before: Option<Conversation>,
    context_id: Option<String>,
    task_id: Option<String>,
    state: Option<TaskState>,
    results: Vec<Result>,
    /// The results' text, one after the other.
    text: String,
    /// Whether that only ever grew at its end.
    is_straight: bool,
    /// What came with the last state, or a message.
    last: String,
    /// What came with the states before.
    notes: Vec<String>,
    is_message: bool,
    has_left: bool,
    in_stream: bool,
    /// Whether all that was heard is how the task was before it got the answer.
    may_be_old: bool,
}

/// A result, as far as it is new.
#[derive(Debug)]
struct Result {
    id: String,
    text: String,
    /// How much of it was in an earlier reply.
    told: usize,
}

impl Said {
    pub(super) fn new(before: Option<&Conversation>) -> Self {
        Said { before: before.cloned(), is_straight: true, ..Said::default() }
    }

    /// Hears one thing more.
    pub(super) fn hear(&mut self, heard: Option<Heard>, most: usize) -> std::result::Result<(), Fault> {
        if std::mem::take(&mut self.may_be_old) {
            self.last.clear();
        }
        match heard {
            None => {}
            Some(Heard::Message { context_id, text }) => {
                self.is_about(None, context_id);
                (self.last, self.is_message) = (text, true);
            }
            Some(Heard::Task { id, context_id, state, text, artifacts }) => {
                self.may_be_old =
                    self.in_stream && self.state.is_none() && state.waits() && self.answered() == Some(&id);
                self.is_about(Some(id), context_id);
                self.is_at(state, text);
                for artifact in artifacts {
                    self.whole(artifact);
                }
            }
            Some(Heard::Status { task_id, context_id, state, text, is_final }) => {
                self.is_about(task_id, context_id);
                self.has_left |= is_final;
                self.is_at(state, text);
            }
            Some(Heard::Artifact { task_id, context_id, artifact, append }) => {
                self.is_about(task_id, context_id);
                self.piece(artifact, append);
            }
        }
        let notes: usize = self.notes.iter().map(String::len).sum();
        if self.text.len().max(self.last.len()).max(notes) > most {
            return Err(Fault::Unusable("the reply is too long".to_owned()));
        }
        Ok(())
    }

    fn is_about(&mut self, task: Option<String>, context: Option<String>) {
        self.task_id = task.or(self.task_id.take());
        self.context_id = context.or(self.context_id.take());
    }

    fn is_at(&mut self, state: TaskState, text: String) {
        self.state = Some(state);
        let before = std::mem::replace(&mut self.last, text);
        // Who looks at a task twice reads the same twice.
        if !before.is_empty() && before != self.last && self.notes.last() != Some(&before) {
            self.notes.push(before);
        }
    }

    /// A result as the task has it by now.
    fn whole(&mut self, artifact: Artifact) {
        let told = self.told(&artifact.id).min(artifact.text.len());
        let text = artifact.text.get(told..).unwrap_or(&artifact.text).to_owned();
        match self.results.iter().position(|result| result.id == artifact.id) {
            Some(at) if self.results[at].text == text => {}
            Some(at) => self.replace(at, text, told),
            None => self.add(artifact.id, text, told),
        }
    }

    /// A result, or more of one.
    fn piece(&mut self, artifact: Artifact, append: bool) {
        let Artifact { id, text } = artifact;
        let at = self.results.iter().position(|result| result.id == id);
        match at {
            Some(at) if append => {
                self.results[at].text.push_str(&text);
                if at + 1 == self.results.len() && !self.text.is_empty() {
                    self.text.push_str(&text);
                } else {
                    self.rebuild();
                }
            }
            Some(at) => self.replace(at, text, 0),
            None => {
                let told = if append { self.told(&id) } else { 0 };
                self.add(id, text, told);
            }
        }
    }

    /// The task that was waiting for what was sent.
    fn answered(&self) -> Option<&String> {
        self.before.as_ref().and_then(|before| before.task_id.as_ref())
    }

    fn told(&self, id: &str) -> usize {
        let before = self.before.as_ref().filter(|before| before.task_id == self.task_id);
        before.and_then(|before| before.told.get(id)).copied().unwrap_or(0)
    }

    /// That a stream begins. It may begin with the task as it was.
    pub(super) fn begins(&mut self) {
        self.in_stream = true;
    }

    /// That it ended: what was said last counts.
    pub(super) fn ends(&mut self) {
        (self.in_stream, self.may_be_old) = (false, false);
    }

    fn add(&mut self, id: String, text: String, told: usize) {
        if !text.is_empty() {
            if !self.text.is_empty() && !self.text.ends_with('\n') {
                self.text.push('\n');
            }
            self.text.push_str(&text);
        }
        self.results.push(Result { id, text, told });
    }

    fn replace(&mut self, at: usize, text: String, told: usize) {
        (self.results[at].text, self.results[at].told) = (text, told);
        self.rebuild();
    }

    fn rebuild(&mut self) {
        let before = std::mem::take(&mut self.text);
        for result in std::mem::take(&mut self.results) {
            self.add(result.id, result.text, result.told);
        }
        self.is_straight &= self.text.starts_with(&before);
    }

    /// What has come of the text since it had so many bytes, if those are still as they were.
    pub(super) fn since(&self, bytes: usize) -> Option<&str> {
        let more = self.text.get(bytes..).filter(|more| !more.is_empty())?;
        self.is_straight.then_some(more)
    }

    /// Whether nothing more is to be expected.
    pub(super) fn is_over(&self) -> bool {
        let rests = |state: TaskState| state.is_terminal() || state.waits();
        self.is_message || !self.may_be_old && self.state.is_some_and(rests)
    }

    /// Whether the agent said that the stream ends, and the task does not.
    pub(super) fn goes_on(&self) -> bool {
        self.has_left && self.task_id.is_some()
    }

    pub(super) fn task_id(&self) -> Option<&str> {
        self.task_id.as_deref()
    }

    /// The state of a task that waits for the user.
    pub(super) fn waiting(&self) -> Option<TaskState> {
        self.state.filter(|state| !self.is_message && state.waits())
    }

    /// The reply's text. A task that came to nothing has none.
    pub(super) fn text(&self) -> std::result::Result<String, Fault> {
        let state = self.state.filter(|_| !self.is_message);
        if let Some(state @ (TaskState::Failed | TaskState::Rejected | TaskState::Canceled)) = state {
            let told = format!("the task is {state}: {}", self.last);
            return Err(Fault::Declined { code: None, told, is_passing: state == TaskState::Failed });
        }
        let text = match (self.text.is_empty(), self.last.is_empty()) {
            (false, true) => self.text.clone(),
            // A question, or a closing word, beside results; many only repeat them.
            (false, false) if self.waiting().is_none() || self.text.contains(&self.last) => self.text.clone(),
            (false, false) if self.text.ends_with('\n') => format!("{}{}", self.text, self.last),
            (false, false) => format!("{}\n{}", self.text, self.last),
            (true, false) => self.last.clone(),
            (true, true) => self.notes.join("\n"),
        };
        if text.is_empty() && self.waiting().is_none() {
            return Err(Fault::Unusable("there is no text in it".to_owned()));
        }
        Ok(text)
    }

    /// Where the session stands with the agent after this.
    pub(super) fn conversation(self, agent: String) -> Option<Conversation> {
        let is_usable = |id: &String| id.len() <= ID_BYTES && !id.contains(char::is_control);
        let waits = self.waiting().is_some();
        let task_id = self.task_id.filter(|_| waits).filter(is_usable);
        let mut told = BTreeMap::new();
        if let (Some(_), Some(before)) = (&task_id, &self.before)
            && before.task_id == task_id
        {
            told.clone_from(&before.told);
        }
        let results = self.results.into_iter().filter(|_| task_id.is_some());
        told.extend(results.map(|result| (result.id, result.told + result.text.len())));
        let before = self.before.map(|before| before.context_id);
        let context_id = self.context_id.or(before).filter(is_usable)?;
        Some(Conversation { agent, context_id, task_id, told })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(state: TaskState, text: &str) -> Heard {
        let (task_id, context_id) = (Some("t".to_owned()), Some("c".to_owned()));
        Heard::Status { task_id, context_id, state, text: text.to_owned(), is_final: false }
    }

    fn artifact(id: &str, text: &str) -> Artifact {
        Artifact { id: id.to_owned(), text: text.to_owned() }
    }

    fn piece(id: &str, text: &str, append: bool) -> Heard {
        Heard::Artifact { task_id: None, context_id: None, artifact: artifact(id, text), append }
    }

    fn task(state: TaskState, text: &str, artifacts: &[(&str, &str)]) -> Heard {
        let artifacts = artifacts.iter().map(|(id, text)| artifact(id, text)).collect();
        Heard::Task {
            id: "t".to_owned(),
            context_id: Some("c".to_owned()),
            state,
            text: text.to_owned(),
            artifacts,
        }
    }

    fn heard(before: Option<&Conversation>, all: impl IntoIterator<Item = Heard>) -> Said {
        let mut said = Said::new(before);
        said.begins();
        for heard in all {
            said.hear(Some(heard), 1000).unwrap();
        }
        said
    }

    fn text(all: impl IntoIterator<Item = Heard>) -> String {
        heard(None, all).text().unwrap()
    }

    #[test]
    fn a_text_is_said_once_however_often_it_comes() {
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
    fn what_was_handed_on_is_not_contradicted() {
        let mut said = heard(None, [piece("a", "one", false)]);
        assert_eq!((said.since(0), said.since(3)), (Some("one"), None));
        said.hear(Some(piece("a", " two", true)), 1000).unwrap();
        assert_eq!(said.since(3), Some(" two"));
        said.hear(Some(piece("a", "three and more", false)), 1000).unwrap();
        assert_eq!(said.since(7), None, "it was replaced");
        said.hear(Some(status(TaskState::Completed, "")), 1000).unwrap();
        assert_eq!(said.text().unwrap(), "three and more");
        let long = Some(piece("a", &"x".repeat(1000), true));
        assert!(said.hear(long, 1000).is_err());
    }

    #[test]
    fn an_answered_task_does_not_repeat_itself() {
        let asked = [piece("a", "part one", false), status(TaskState::InputRequired, "go on?")];
        let before = heard(None, asked).conversation("agent".to_owned()).unwrap();
        assert_eq!((before.task_id.as_deref(), before.told["a"]), (Some("t"), 8));
        // It begins as it was, which is no answer.
        let old = || task(TaskState::InputRequired, "go on?", &[("a", "part one")]);
        let mut said = heard(Some(&before), [old()]);
        assert!(!said.is_over());
        said.hear(Some(task(TaskState::Completed, "", &[("a", "part one"), ("b", "part two")])), 1000)
            .unwrap();
        assert_eq!((said.is_over(), said.text().unwrap().as_str()), (true, "part two"));
        let mut said = heard(Some(&before), [old()]);
        said.ends();
        assert_eq!((said.is_over(), said.text().unwrap().as_str()), (true, "go on?"));
        let said = heard(Some(&before), [piece("a", " and a half", true), status(TaskState::Completed, "")]);
        assert_eq!(said.text().unwrap(), " and a half");
        let after = said.conversation("agent".to_owned()).unwrap();
        assert_eq!((after.context_id.as_str(), after.task_id, after.told.len()), ("c", None, 0));
    }

    #[test]
    fn only_ids_that_can_be_sent_are_remembered() {
        let message = |id: &str| Heard::Message { context_id: Some(id.to_owned()), text: "hi".to_owned() };
        let kept = |id: &str| heard(None, [message(id)]).conversation("agent".to_owned());
        assert!(kept("c").is_some() && kept("a\nb").is_none() && kept(&"x".repeat(1001)).is_none());
        for state in [TaskState::Failed, TaskState::Rejected, TaskState::Canceled] {
            let said = heard(None, [piece("a", "half", false), status(state, "no")]);
            assert!(matches!(said.text(), Err(Fault::Declined { code: None, .. })), "{state}");
        }
    }
}
