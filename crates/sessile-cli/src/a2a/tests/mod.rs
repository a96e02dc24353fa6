//! Against servers on this machine: the official SDK, testkit's own agent, and sockets that misbehave.

mod conversing;
mod following;
mod hostile;
mod known;
mod partners;
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
