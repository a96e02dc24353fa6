//! Clients that follow a session and reconnect all the time, while events are appended and swept.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sessile_server::account::TokenScope;
use sessile_server::ids::SessionId;
use sessile_server::limits::Limits;
use sessile_server::retention::{self, RetentionPolicy};
use sessile_server::serve::{Log, Options, Server};
use sessile_server::users;

use crate::stores::{Throwaway, User};
use crate::suite::with_every_store;

with_every_store! {
    reconnects_beside_appends_miss_no_event
    streams_beside_a_sweep_skip_no_event
}

/// How many times the clients of a test reconnect. `SESSILE_TEST_RECONNECTS=10000` for a campaign.
fn reconnects() -> usize {
    std::env::var("SESSILE_TEST_RECONNECTS").map_or(400, |count| count.parse().unwrap())
}

/// A session behind a server, with an appender that runs until the value is dropped.
struct BusySession {
    address: SocketAddr,
    token: String,
    session: SessionId,
    over: Arc<AtomicBool>,
}

impl Drop for BusySession {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

impl BusySession {
    async fn start(store: &Throwaway) -> Self {
        users::add(&store.db, "ann").await.unwrap();
        let scopes = [TokenScope::Read, TokenScope::Write];
        let new = users::create_token(&store.db, &"ann".parse().unwrap(), &scopes, None).await.unwrap();
        let limits = Limits { rate: 1e9, burst: 1e9, ..Limits::default() };
        let listen = "127.0.0.1:0".parse().unwrap();
        let options = Options { listen, log: Log::Off, limits, ..Options::default() };
        let server = Server::bind(store.db.clone(), options, Box::new(std::io::sink())).await.unwrap();
        let address = server.address();
        tokio::spawn(server.serve(std::future::pending()));
        let user = User::new(&store.db, "ann");
        let session = user.start(None).await.id;
        let over = Arc::new(AtomicBool::new(false));
        let (appends_to, is_over) = (session.clone(), Arc::clone(&over));
        tokio::spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                user.append(&appends_to, &["x"]).await.unwrap();
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        BusySession { address, token: new.secret.expose().to_owned(), session, over }
    }

    /// Follows the session after an event until one has come and no more follow at once, or the stream ends: the client
    /// is then at the end of what happened. The status, and the numbers of the events.
    fn follow(&self, after: Option<i64>) -> (u16, Vec<i64>) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let BusySession { token, session, .. } = self;
        let after = after.map_or_else(String::new, |after| format!("last-event-id: {after}\r\n"));
        // Without it the connection stays open when the stream ends.
        let head = format!("host: x\r\nconnection: close\r\nauthorization: Bearer {token}\r\n{after}");
        let request = format!("GET /v1/sessions/{session}/events HTTP/1.1\r\n{head}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let timeouts = stream.try_clone().unwrap();
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        let status = lines.next().unwrap();
        let status = status.split(' ').nth(1).unwrap().parse().unwrap();
        if status != 200 {
            return (status, Vec::new());
        }
        let mut numbers = Vec::new();
        for number in lines.filter_map(|line| line.strip_prefix("id: ")?.parse().ok()) {
            numbers.push(number);
            timeouts.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
        }
        (status, numbers)
    }
}

/// Runs clients beside each other; what went wrong for each.
async fn with_clients(busy: BusySession, client: fn(&BusySession, usize) -> Vec<String>) -> Vec<String> {
    const CLIENTS: usize = 4;
    let busy = Arc::new(busy);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let busy = Arc::clone(&busy);
            tokio::task::spawn_blocking(move || client(&busy, reconnects() / CLIENTS))
        })
        .collect();
    let mut wrong = Vec::new();
    for client in clients {
        wrong.extend(client.await.unwrap());
    }
    wrong
}

/// Whether the numbers follow an event without a gap.
fn is_contiguous(seen: i64, numbers: &[i64]) -> bool {
    numbers.iter().copied().eq((seen + 1..).take(numbers.len()))
}

async fn reconnects_beside_appends_miss_no_event(store: &Throwaway) {
    let wrong = with_clients(BusySession::start(store).await, |busy, count| {
        let (mut seen, mut wrong) = (0, Vec::new());
        for _ in 0..count {
            let (status, numbers) = busy.follow(Some(seen));
            if status != 200 || numbers.is_empty() || !is_contiguous(seen, &numbers) {
                wrong.push(format!("{status} after {seen}: {numbers:?}"));
            }
            seen = numbers.last().copied().unwrap_or(seen);
        }
        wrong
    });
    let wrong = wrong.await;
    assert!(wrong.is_empty(), "{} of {}: {:?}", wrong.len(), reconnects(), wrong.first());
}

async fn streams_beside_a_sweep_skip_no_event(store: &Throwaway) {
    let busy = BusySession::start(store).await;
    let (db, over) = (store.db.clone(), Arc::clone(&busy.over));
    tokio::spawn(async move {
        let long = Duration::from_secs(86_400);
        let keep = RetentionPolicy {
            answered: long,
            events: Duration::ZERO,
            audit: long,
            ..RetentionPolicy::default()
        };
        while !over.load(Ordering::Relaxed) {
            let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
            retention::sweep(&db, &keep, i64::try_from(now).unwrap()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let wrong = with_clients(busy, |busy, count| {
        let (mut seen, mut wrong) = (None, Vec::new());
        for _ in 0..count / 4 {
            let (status, numbers) = busy.follow(seen);
            let before = seen.or(numbers.first().map(|first| first - 1));
            let is_right = match status {
                200 => before.is_none_or(|before| is_contiguous(before, &numbers)),
                410 => seen.is_some(),
                _ => false,
            };
            if !is_right {
                wrong.push(format!("{status} after {seen:?}: {numbers:?}"));
            }
            seen = if status == 410 { None } else { numbers.last().copied().or(seen) };
        }
        wrong
    });
    let wrong = wrong.await;
    assert!(wrong.is_empty(), "{}: {:?}", wrong.len(), wrong.first());
}
