//! Several messages in one line, as the revision 2025-03-26 of the protocol has them: their answers go into one line too.

use rmcp::model::RequestId;
use serde_json::Value;

/// The batches whose answers are not all there yet.
#[derive(Debug, Default)]
pub(super) struct Batches(Vec<Batch>);

#[derive(Debug, Default)]
struct Batch {
    missing: Vec<RequestId>,
    answers: Vec<Value>,
}

impl Batches {
    /// Remembers a batch with these requests, and with what could already be answered; its answer if that is all.
    pub(super) fn open(&mut self, missing: Vec<RequestId>, answers: Vec<Value>) -> Option<Value> {
        if !missing.is_empty() {
            self.0.push(Batch { missing, answers });
            return None;
        }
        (!answers.is_empty()).then_some(Value::Array(answers))
    }

    /// Takes the response of a request. Returns what to write: the response itself, if it belongs to no batch; all
    /// responses of its batch, if it was the last; else nothing yet.
    pub(super) fn answer(&mut self, id: &RequestId, answer: Value) -> Option<Value> {
        match self.0.iter().position(|batch| batch.missing.contains(id)) {
            Some(at) => {
                self.0[at].answers.push(answer);
                self.settle(at, id)
            }
            None => Some(answer),
        }
    }

    /// Waits no longer for a request that was called off.
    pub(super) fn forget(&mut self, id: &RequestId) -> Option<Value> {
        let at = self.0.iter().position(|batch| batch.missing.contains(id))?;
        self.settle(at, id)
    }

    fn settle(&mut self, at: usize, id: &RequestId) -> Option<Value> {
        let batch = &mut self.0[at];
        batch.missing.retain(|missing| missing != id);
        if !batch.missing.is_empty() {
            return None;
        }
        let batch = self.0.swap_remove(at);
        // JSON-RPC has no answer to a batch of notifications only.
        (!batch.answers.is_empty()).then_some(Value::Array(batch.answers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_answers_of_a_batch_are_one_line() {
        let mut batches = Batches::default();
        let id = |number| RequestId::Number(number);
        assert_eq!(batches.open(vec![id(1), id(2)], vec![json!("wrong")]), None);
        assert_eq!(batches.answer(&id(3), json!(3)), Some(json!(3)));
        assert_eq!(batches.answer(&id(2), json!(2)), None);
        assert_eq!(batches.answer(&id(1), json!(1)), Some(json!(["wrong", 2, 1])));
        assert_eq!(batches.answer(&id(1), json!(1)), Some(json!(1)), "the batch has ended");
    }

    #[test]
    fn cancelled_call_is_not_awaited() {
        let mut batches = Batches::default();
        let id = |number| RequestId::Number(number);
        batches.open(vec![id(1), id(2)], Vec::new());
        assert_eq!(batches.answer(&id(1), json!(1)), None);
        assert_eq!(batches.forget(&id(2)), Some(json!([1])));
        assert_eq!(batches.open(Vec::new(), Vec::new()), None, "only notifications");
    }
}
