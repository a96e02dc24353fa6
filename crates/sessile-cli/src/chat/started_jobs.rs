//! Jobs that a chat under test has started. None of them runs.

use std::cell::RefCell;
use std::rc::Rc;

use super::engine::{ChatEvent, ChatJob, ConversationScope, JobEvent, JobHandle, JobId, JobStarter, TabId};

/// A job that was started.
#[derive(Clone, Debug)]
pub(crate) struct StartedJob {
    pub(crate) tab: TabId,
    pub(crate) id: JobId,
    pub(crate) scope: ConversationScope,
    pub(crate) job: ChatJob,
}

/// Jobs that a chat has started.
#[derive(Clone, Default)]
pub(crate) struct StartedJobs(Rc<RefCell<Vec<StartedJob>>>);

impl StartedJobs {
    /// The last job.
    pub(crate) fn last(&self) -> StartedJob {
        self.0.borrow().last().unwrap().clone()
    }

    /// Number of jobs.
    pub(crate) fn count(&self) -> usize {
        self.0.borrow().len()
    }

    /// An event of the last job.
    pub(crate) fn event(&self, kind: JobEvent) -> ChatEvent {
        let last = self.last();
        ChatEvent { tab: last.tab, job: last.id, kind }
    }
}

impl JobStarter for StartedJobs {
    fn start(&mut self, tab: TabId, scope: &ConversationScope, job: ChatJob) -> JobHandle {
        let handle = JobHandle::idle(self.0.borrow().len() as u64 + 1);
        self.0.borrow_mut().push(StartedJob { tab, id: handle.id, scope: scope.clone(), job });
        handle
    }
}
