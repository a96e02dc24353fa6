//! What an agent has said of a reply so far, put together.

use std::collections::BTreeMap;

use sessile::conversation::TaskState;

use super::super::Fault;
use super::heard::{Artifact, Heard};
use crate::model::Conversation;

/// The longest id that is remembered.
const ID_BYTES: usize = 1000;

/// How many results a task may have.
const RESULTS: usize = 256;

/// What the digest of no bytes is, and by what it goes on with each: FNV-1a. It can go on where it ended, so what was told does
/// not have to be kept; who finds two texts with one digest only spoils replies of its own.
const DIGEST: (u64, u64) = (0xcbf2_9ce4_8422_2325, 0x0100_0000_01b3);

/// A reply, as far as it has come. Its text is the task's results; without any, what the agent says with the last state;
/// without that, what it said on the way.
#[derive(Debug, Default)]
pub(super) struct Said {
    before: Option<Conversation>,
    /// What of the results was in earlier replies, if it is the task of then.
    earlier: BTreeMap<String, Told>,
    context_id: Option<String>,
    task_id: Option<String>,
    state: Option<TaskState>,
    results: Vec<Result>,
    /// How many bytes they have.
    size: usize,
    /// The results' text, one after the other, while it only ever grew at its end.
    straight: Option<String>,
    /// What came with the last state, or a message.
    last: String,
    /// What came with the states before.
    notes: Vec<String>,
    /// How many bytes they have.
    noted: usize,
    has_heard: bool,
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
    /// What of it was in an earlier reply.
    told: Told,
}

/// How a result began that was told: how many bytes, and their digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told {
    bytes: usize,
    digest: u64,
}

impl Told {
    const NOTHING: Told = Told { bytes: 0, digest: DIGEST.0 };

    /// With more of it.
    fn and(self, more: &str) -> Self {
        let next = |digest: u64, byte: u8| (digest ^ u64::from(byte)).wrapping_mul(DIGEST.1);
        Told { bytes: self.bytes + more.len(), digest: more.bytes().fold(self.digest, next) }
    }

    /// What of a whole text is new, if it begins with what was told.
    fn rest(self, text: &str) -> Option<&str> {
        let (told, rest) = text.split_at_checked(self.bytes)?;
        (Told::NOTHING.and(told) == self).then_some(rest)
    }

    /// As it is kept of a result: the digest goes with the id.
    fn kept(self, id: &str) -> (String, usize) {
        (format!("{:016x} {id}", self.digest), self.bytes)
    }

    /// The id and what was told of it, as they were kept.
    fn of((key, bytes): (&String, &usize)) -> Option<(String, Self)> {
        let (digest, id) = key.split_once(' ')?;
        let digest = u64::from_str_radix(digest, 16).ok()?;
        Some((id.to_owned(), Told { bytes: *bytes, digest }))
    }
}

impl Said {
    pub(super) fn new(before: Option<&Conversation>) -> Self {
        let earlier = before.map(|before| before.told.iter().filter_map(Told::of).collect());
        Said {
            before: before.cloned(),
            earlier: earlier.unwrap_or_default(),
            straight: Some(String::new()),
            ..Said::default()
        }
    }

    /// Hears one thing more.
    pub(super) fn hear(&mut self, heard: Option<Heard>, most: usize) -> std::result::Result<(), Fault> {
        self.has_heard = true;
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
                    self.whole(artifact)?;
                }
            }
            Some(Heard::Status { task_id, context_id, state, text, is_final }) => {
                self.is_about(task_id, context_id);
                self.has_left |= is_final;
                self.is_at(state, text);
            }
            Some(Heard::Artifact { task_id, context_id, artifact, append }) => {
                self.is_about(task_id, context_id);
                self.piece(artifact, append)?;
            }
        }
        // Between results there may be line breaks.
        let results = self.size + self.results.len().saturating_sub(1);
        if results.max(self.last.len()).max(self.noted) > most {
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
            self.noted += before.len();
            self.notes.push(before);
        }
    }

    /// A result as the task has it by now.
    fn whole(&mut self, artifact: Artifact) -> std::result::Result<(), Fault> {
        let at = self.at(&artifact.id);
        let told = at.map_or_else(|| self.told(&artifact.id), |at| self.results[at].told);
        // One that has become another since is new as a whole.
        let (text, told) = match told.rest(&artifact.text) {
            Some(rest) => (rest.to_owned(), told),
            None => (artifact.text, Told::NOTHING),
        };
        let at = at.map_or_else(|| self.add(artifact.id), Ok)?;
        self.replace(at, text, told);
        Ok(())
    }

    /// A result, or more of one.
    fn piece(&mut self, artifact: Artifact, append: bool) -> std::result::Result<(), Fault> {
        let Artifact { id, text } = artifact;
        match self.at(&id) {
            Some(at) if append => self.grow(at, &text),
            Some(at) => self.replace(at, text, Told::NOTHING),
            None => {
                let told = if append { self.told(&id) } else { Told::NOTHING };
                let at = self.add(id)?;
                self.replace(at, text, told);
            }
        }
        Ok(())
    }

    /// The task that was waiting for what was sent.
    fn answered(&self) -> Option<&String> {
        self.before.as_ref().and_then(|before| before.task_id.as_ref())
    }

    fn told(&self, id: &str) -> Told {
        let is_same = self.before.as_ref().is_some_and(|before| before.task_id == self.task_id);
        self.earlier.get(id).copied().filter(|_| is_same).unwrap_or(Told::NOTHING)
    }

    fn at(&self, id: &str) -> Option<usize> {
        self.results.iter().position(|result| result.id == id)
    }

    /// That a stream begins. It may begin with the task as it was.
    pub(super) fn begins(&mut self) {
        self.in_stream = true;
    }

    /// That it ended: what was said last counts.
    pub(super) fn ends(&mut self) {
        (self.in_stream, self.may_be_old) = (false, false);
    }

    /// Makes place for a result.
    fn add(&mut self, id: String) -> std::result::Result<usize, Fault> {
        if self.results.len() == RESULTS || id.len() > ID_BYTES {
            return Err(Fault::Unusable("it has too many results, or ids that are too long".to_owned()));
        }
        self.results.push(Result { id, text: String::new(), told: Told::NOTHING });
        Ok(self.results.len() - 1)
    }

    /// Adds to a result. Behind it others may stand already.
    fn grow(&mut self, at: usize, more: &str) {
        if more.is_empty() {
            return;
        }
        if self.results[at + 1..].iter().any(|result| !result.text.is_empty()) {
            self.straight = None;
        }
        let begins = self.results[at].text.is_empty();
        if let Some(text) = &mut self.straight {
            join(text, more, begins);
        }
        self.results[at].text.push_str(more);
        self.size += more.len();
    }

    fn replace(&mut self, at: usize, text: String, told: Told) {
        let result = &mut self.results[at];
        result.told = told;
        match text.strip_prefix(result.text.as_str()) {
            Some(more) => self.grow(at, more),
            None => {
                self.size = self.size - result.text.len() + text.len();
                (result.text, self.straight) = (text, None);
            }
        }
    }

    /// The results' text, one after the other.
    fn joined(&self) -> String {
        let mut joined = String::with_capacity(self.size + self.results.len());
        for result in self.results.iter().filter(|result| !result.text.is_empty()) {
            join(&mut joined, &result.text, true);
        }
        joined
    }

    /// What has come of the text since it had so many bytes, if those are still as they were.
    pub(super) fn since(&self, bytes: usize) -> Option<&str> {
        self.straight.as_ref()?.get(bytes..).filter(|more| !more.is_empty())
    }

    /// Whether the agent said anything but that it will not.
    pub(super) fn has_heard(&self) -> bool {
        self.has_heard
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
        let mut text = self.joined();
        match (text.is_empty(), self.last.is_empty()) {
            (false, true) => {}
            // A question, or a closing word, beside results; many only repeat them.
            (false, false) if self.waiting().is_none() || text.contains(&self.last) => {}
            (_, false) => join(&mut text, &self.last, true),
            (true, true) => text = self.notes.join("\n"),
        }
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
        let is_same = self.before.as_ref().is_some_and(|before| before.task_id == task_id);
        let results = self.results.into_iter().map(|result| (result.id, result.told.and(&result.text)));
        let mut told: BTreeMap<String, Told> = results.filter(|_| task_id.is_some()).collect();
        if task_id.is_some() && is_same {
            for (id, earlier) in self.earlier {
                // What was not heard of again is the first to be forgotten.
                if told.len() < RESULTS {
                    told.entry(id).or_insert(earlier);
                }
            }
        }
        let told = told.into_iter().map(|(id, told)| told.kept(&id)).collect();
        let before = self.before.map(|before| before.context_id);
        let context_id = self.context_id.or(before).filter(is_usable)?;
        Some(Conversation { agent, context_id, task_id, told })
    }
}

/// Adds to a text, on a line of its own if it begins something.
fn join(text: &mut String, more: &str, begins: bool) {
    if begins && !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(more);
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
        assert_eq!((before.task_id.as_deref(), before.told.len()), (Some("t"), 1));
        assert_eq!(before.told.iter().find_map(Told::of).unwrap().1.bytes, 8);
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
    fn only_what_was_told_is_left_out() {
        let asked = || [piece("a", "draft one", false), status(TaskState::InputRequired, "good?")];
        let before = heard(None, asked()).conversation("agent".to_owned()).unwrap();
        let done = |text: &str| task(TaskState::Completed, "", &[("a", text)]);
        let then = |text: &str| heard(Some(&before), [done(text)]).text().unwrap();
        assert_eq!(then("final version"), "final version");
        assert_eq!(then("draft on\u{e9}!"), "draft on\u{e9}!", "not within a character");
        assert_eq!(then("short"), "short");
        assert_eq!(then("draft one and two"), " and two");
        // What is written anew in this reply is not what was told, even if it begins alike.
        let anew = [piece("a", "draft one!", false), done("draft one!")];
        assert_eq!(heard(Some(&before), anew).text().unwrap(), "draft one!");
        // What was added to what was told is told, too.
        let asks = status(TaskState::InputRequired, "and now?");
        let works = status(TaskState::Working, "");
        let more = heard(Some(&before), [works, piece("a", ", more", true), asks]);
        let before = more.conversation("agent".to_owned()).unwrap();
        let last = heard(Some(&before), [done("draft one, more, done")]);
        assert_eq!(last.text().unwrap(), ", done");
    }

    #[test]
    fn every_result_begins_a_line() {
        let done = || status(TaskState::Completed, "");
        let pieces = [piece("a", "one", false), piece("b", "", false), piece("b", "two", true)];
        let mut said = heard(None, pieces);
        assert_eq!(said.since(0), Some("one\ntwo"));
        said.hear(Some(piece("a", "!", true)), 1000).unwrap();
        assert_eq!(said.since(0), None, "it grew in the middle");
        said.hear(Some(done()), 1000).unwrap();
        assert_eq!(said.text().unwrap(), "one!\ntwo");
    }

    #[test]
    fn results_and_their_ids_are_only_so_many_and_so_long() {
        let mut said = heard(None, []);
        for number in 0..RESULTS {
            said.hear(Some(piece(&number.to_string(), "", false)), 1000).unwrap();
        }
        said.hear(Some(piece("0", "more", true)), 1000).unwrap();
        assert!(said.hear(Some(piece("one more", "", false)), 1000).is_err());
        let mut said = heard(None, []);
        assert!(said.hear(Some(piece(&"x".repeat(ID_BYTES + 1), "", false)), 1000).is_err());
        // Nor are more of them remembered, however often the task asks.
        let all = |name: &str| {
            let many = (0..RESULTS).map(|number| piece(&format!("{name}{number}"), "x", false));
            many.chain([status(TaskState::InputRequired, "?")]).collect::<Vec<_>>()
        };
        let first = heard(None, all("a")).conversation("agent".to_owned()).unwrap();
        let second = heard(Some(&first), all("b")).conversation("agent".to_owned()).unwrap();
        assert_eq!((first.told.len(), second.told.len()), (RESULTS, RESULTS));
        assert!(second.told.keys().all(|key| key.contains(" b")));
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
