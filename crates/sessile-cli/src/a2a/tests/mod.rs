//! Against servers on this machine: the official SDK, testkit's own agent, and sockets that misbehave.

mod credentials;
mod hostile;
mod messages;
mod partners;
mod redirects;
mod server;
mod tasks;

use sessile_wire::a2a::{OutgoingMessage, Part};

/// A message of one text.
fn says(text: &str) -> OutgoingMessage {
    OutgoingMessage {
        message_id: format!("m-{text}"),
        parts: vec![Part::Text(text.to_owned())],
        is_blocking: true,
        ..OutgoingMessage::default()
    }
}
