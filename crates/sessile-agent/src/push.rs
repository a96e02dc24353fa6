//! Push notifications to receivers on this machine.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

/// Timeout of each step of a delivery.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Number of notifications that may wait. More are dropped, as an agent may.
const QUEUE: usize = 1000;

/// Queue of notifications, delivered in order by one thread.
#[derive(Default)]
pub(crate) struct Outbox(Mutex<Option<SyncSender<Notification>>>);

struct Notification {
    config: Value,
    event: Value,
}

impl Outbox {
    /// Queues an event for the receiver of a configuration.
    pub(crate) fn send(&self, config: &Value, event: &Value) {
        let mut sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sender.is_none() {
            let (queue, notifications) = sync_channel(QUEUE);
            // Ends with the queue, and so with the agent.
            if std::thread::Builder::new().spawn(move || deliver_all(&notifications)).is_ok() {
                *sender = Some(queue);
            }
        }
        if let Some(queue) = sender.as_ref() {
            let _ = queue.try_send(Notification { config: config.clone(), event: event.clone() });
        }
    }
}

fn deliver_all(notifications: &Receiver<Notification>) {
    for notification in notifications {
        // Delivery is best effort, as in the official SDK.
        let _ = deliver(&notification);
    }
}

/// Posts an event. `None` if the receiver is elsewhere or does not answer.
fn deliver(Notification { config, event }: &Notification) -> Option<()> {
    let rest = config["url"].as_str()?.strip_prefix("http://")?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    // A demo must not send anything to other machines, whatever a client asks of it.
    let address = authority.to_socket_addrs().ok()?.find(|address| address.ip().is_loopback())?;
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT).ok()?;
    stream.set_read_timeout(Some(TIMEOUT)).ok()?;
    stream.set_write_timeout(Some(TIMEOUT)).ok()?;
    let mut head = format!("POST /{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n");
    let line = |name: &str, value: &str| {
        // A line end in a value would begin another header.
        let is_plain = !value.is_empty() && !value.contains(|letter: char| letter.is_control());
        if is_plain { format!("{name}: {value}\r\n") } else { String::new() }
    };
    head += &line("X-A2A-Notification-Token", config["token"].as_str().unwrap_or_default());
    let authentication = &config["authentication"];
    // Version 0.3 has a list of schemes.
    let scheme = authentication["scheme"].as_str().or_else(|| authentication["schemes"][0].as_str());
    if let (Some(scheme), Some(credentials)) = (scheme, authentication["credentials"].as_str()) {
        head += &line("Authorization", &format!("{scheme} {credentials}"));
    }
    let body = event.to_string();
    let length = body.len();
    write!(stream, "{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}").ok()?;
    let mut status = String::new();
    BufReader::new(stream).read_line(&mut status).ok().map(drop)
}
