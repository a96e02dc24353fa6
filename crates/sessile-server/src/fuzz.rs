//! Fuzz targets of the service: raw requests to a real server on this machine, over every path of the OpenAPI document.
//!
//! Compiled for tests, where a deterministic campaign runs them, and under libFuzzer (`--cfg fuzzing`, `scripts/fuzz`).

#![expect(clippy::expect_used, reason = "a fuzz target fails by panicking")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::account::TokenScope;
use crate::serve::{Log, Options, Server};
use crate::store::ServiceStore;
use crate::users;

/// A running service with one user, and a session of theirs.
struct Service {
    address: SocketAddr,
    token: String,
    session: String,
}

static PANICKED: AtomicBool = AtomicBool::new(false);

static SERVICE: LazyLock<Service> = LazyLock::new(|| {
    // A panic in a handler only drops its connection, which a raw client cannot tell from a refusal.
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICKED.store(true, Ordering::SeqCst);
        usual(panic);
    }));
    let dir = std::env::temp_dir().join(format!("sessile-fuzz-service-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory for the store");
    // The server runs on threads of its own, because a target is a plain synchronous function.
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let db = ServiceStore::sqlite(&dir.join("service.db")).await.expect("a store");
            // The store stays open; its directory need not outlive the process.
            let _ = std::fs::remove_dir_all(&dir);
            let user = users::add(&db, "fuzz").await.expect("a user");
            let scopes = [TokenScope::Read, TokenScope::Write];
            let token = users::create_token(&db, &user, &scopes, None).await.expect("a token");
            let listen = SocketAddr::from(([127, 0, 0, 1], 0));
            let options = Options { listen, log: Log::Off, ..Options::default() };
            let server = Server::bind(db, options, Box::new(std::io::sink())).await.expect("a server");
            sender.send((server.address(), token.secret.expose().to_owned())).expect("the test waits for it");
            server.serve(std::future::pending()).await;
        });
    });
    let (address, token) = receiver.recv().expect("the server starts");
    let mut service = Service { address, token, session: String::new() };
    let made = service.exchange(
        b"POST /v1/sessions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
        Duration::from_secs(10),
    );
    let made = String::from_utf8_lossy(&made).into_owned();
    let session = made.split("\"id\":\"").nth(1).and_then(|rest| rest.split('"').next());
    service.session = session.unwrap_or_else(|| unreachable!("no session was made: {made}")).to_owned();
    service
});

impl Service {
    /// Sends a request and reads the answer. If none has come after `patience` the request is incomplete, and is cut off.
    fn exchange(&self, request: &[u8], patience: Duration) -> Vec<u8> {
        let request = replace(request, b"{TOKEN}", self.token.as_bytes());
        let request = replace(&request, b"{SESSION}", self.session.as_bytes());
        let mut stream = TcpStream::connect(self.address).expect("the server listens");
        stream.set_read_timeout(Some(patience)).expect("a socket has timeouts");
        // The server may refuse and close before it has read everything.
        let _ = stream.write_all(&request);
        let mut answer = Vec::new();
        let mut piece = [0; 4_096];
        while !is_complete(&answer) {
            match stream.read(&mut piece) {
                Ok(count @ 1..) => answer.extend_from_slice(&piece[..count]),
                _ => break,
            }
        }
        answer
    }
}

/// Whether these bytes are an answer with its whole body.
fn is_complete(answer: &[u8]) -> bool {
    let answer = String::from_utf8_lossy(answer);
    let Some((head, body)) = answer.split_once("\r\n\r\n") else { return false };
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    length.is_some_and(|length: usize| body.len() >= length)
}

fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest.windows(from.len()).position(|window| window == from) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    out.extend_from_slice(rest);
    out
}

/// A raw request. `{TOKEN}` and `{SESSION}` stand for valid ones. No answer is a 5xx, and nothing panics.
pub fn http_request(bytes: &[u8]) {
    let answer = SERVICE.exchange(bytes, Duration::from_millis(50));
    assert!(!PANICKED.load(Ordering::SeqCst), "the service panicked");
    for status in answer.windows(13).filter(|window| window.starts_with(b"HTTP/1.1 5")) {
        // A request of mutated bytes may be several.
        assert_eq!(status, b"HTTP/1.1 503 ", "{}", String::from_utf8_lossy(&answer));
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test reads files directly")]
mod tests {
    use std::time::Duration;

    testkit::fuzz_tests!(http_request);

    #[test]
    fn corpus_requests_are_answered() {
        for entry in std::fs::read_dir("../../fuzz/corpus/http_request").unwrap() {
            let path = entry.unwrap().path();
            let answer = super::SERVICE.exchange(&std::fs::read(&path).unwrap(), Duration::from_secs(10));
            assert!(answer.starts_with(b"HTTP/1.1 "), "{}: {answer:?}", path.display());
            assert!(!answer.starts_with(b"HTTP/1.1 401"), "{}: the token was not accepted", path.display());
        }
    }
}
