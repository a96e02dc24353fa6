//! Working against a session service instead of the state of this machine: `--server URL`, or the setting `server`.
//!
//! | module | |
//! |---|---|
//! | `args` | the flag, and whether a call means a server |
//! | `server` | asking it: with the token that is bound to it, again if it was away, bounded |
//! | `trouble` | what went wrong, in the words of the program |
//! | `session` | sessions there, as commands show them |
//! | `values` | the values of a session there |
//! | `lock` | locks there, and keeping one while a command runs |
//! | `holder` | who holds a lock, as one line and back |
//! | `login` | a token by a code that an administrator confirms |
//! | `status` | the server in force, as `status` tells of it |
//! | `message` | messages that the service replies to |
//! | `conversation` | what was said in a session there |
//!
//! Every change has an idempotency key, and is asked for again under the same one: made once or not at all.

mod args;
mod conversation;
mod holder;
mod lock;
mod login;
mod message;
mod server;
mod session;
mod status;
mod trouble;
mod values;

pub(crate) use args::{KEY, ServerArgs, means_server, refuse_there};
pub(crate) use lock::Kept;
pub(crate) use login::Coded;
pub(crate) use message::reply;
pub(crate) use server::{Server, checked_url};
pub(crate) use session::{New, Remote};
pub(crate) use status::ServerStatus;
