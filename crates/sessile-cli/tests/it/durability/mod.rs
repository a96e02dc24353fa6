//! What must survive crashes, parallel processes and mistakes.

mod answers;
mod backup;
pub(crate) mod crash;
mod crash_sessions;
mod doctor;
mod history;
mod locks;
mod parallel;
mod shared_locks;
mod undo;
