//! Requests, responses and problems of the session service's HTTP API, one file per resource.
//!
//! The service serializes the responses and deserializes the requests; its clients do the reverse. The schemas of the OpenAPI
//! document are derived from these types, so field documentation here is documentation of the API. Message bodies and state
//! values are raw JSON and pass through byte for byte.

mod events;
mod health;
mod history;
pub mod limits;
mod locks;
mod login;
mod messages;
mod page;
mod problem;
mod queue;
mod schema;
mod sessions;
mod state;
mod turns;
mod users;

pub use events::{ServerSentEvent, SessionEvent};
pub use health::HealthStatus;
pub use history::{HistoryEntry, HistoryPage};
pub use locks::{HeldLock, LockPage, RenewLockRequest, ServiceLock, TakeLockRequest};
pub use login::{BeginLoginRequest, BeginLoginResponse, CollectLoginRequest, CollectLoginResponse};
pub use messages::{
    AppendRequest, AppendResponse, ChatMessage, ForkRequest, MessagePage, NumberedMessage, ReplyDelta,
    ReplyResponse, RewindRequest, RewindResponse, ServiceMessage,
};
pub use page::CursorPage;
pub use problem::{ProblemDetails, ProblemReason};
pub use queue::{BusyPolicy, LeaseTicket};
pub use schema::AnyValue;
pub(crate) use schema::plain_enum;
pub use sessions::{CreateSessionRequest, EditSessionRequest, EndedSession, ServiceSession, SessionPage};
pub use state::{StateEntry, StatePage};
pub use turns::{BeginTurnRequest, BeginTurnResponse, CommitTurnRequest, RenewTurnRequest};
pub use users::{TOKEN_PREFIX, TokenScope, WhoAmI};
