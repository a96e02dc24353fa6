//! Working against a session service instead of the state of this machine: `--server URL`, or the setting `server`.
//!
//! | module | |
//! |---|---|
//! | `args` | the flag, and whether a call uses a server |
//! | `client` | requests to the service: the bound token, retries, limits |
//! | `error` | failures of requests, as errors of commands |
//! | `session` | sessions there, as views |
//! | `values` | the values of a session there |
//! | `lock` | locks there, and keeping one while a command runs |
//! | `lock_holder` | holder of a lock, as one line of text and back |
//! | `login` | device login: an administrator approves a code |
//! | `status` | the selected server, for `status` |
//! | `message` | messages that the service replies to |
//! | `history` | changes that the service recorded |
//! | `conversation` | messages of a session there |
//!
//! Every change has an idempotency key and is retried under the same one, so it is made at most once.

mod args;
mod client;
mod conversation;
mod error;
mod history;
mod lock;
mod lock_holder;
mod login;
mod message;
mod session;
mod status;
mod values;

pub(crate) use args::{KEY, ServerArgs, means_server, refuse_there};
pub(crate) use client::{ServiceClient, checked_url};
pub(crate) use lock::{LockKeeper, note_wait};
pub(crate) use lock_holder::parse_holder;
pub(crate) use login::PendingLogin;
pub(crate) use message::reply;
pub(crate) use session::{Remote, refuse_namesake};
pub(crate) use status::ServerStatus;
