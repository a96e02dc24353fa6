//! Against servers on this machine: the official SDK, and sockets that misbehave.

mod hostile;
mod interop;
mod redirects;
mod server;

use super::Outgoing;
use crate::a2a::Part;

/// A message of one text.
fn says(text: &str) -> Outgoing {
    Outgoing {
        message_id: format!("m-{text}"),
        parts: vec![Part::Text(text.to_owned())],
        blocking: true,
        ..Outgoing::default()
    }
}
