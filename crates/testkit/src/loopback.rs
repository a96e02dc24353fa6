//! Small servers on this machine that say by name which of them was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::json;

mod databases;
mod services;

/// Idle timeout of a connection.
const PATIENCE: Duration = Duration::from_secs(5);

/// The most that a request may carry.
const LARGEST: usize = 1 << 20;

/// A server on a port of its own, which ends when this is dropped.
pub struct Loopback {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Loopback {
    /// A Kubernetes cluster with one pod in each namespace, `pod-of-NAME`.
    pub fn kubernetes(name: &str) -> Self {
        let name = name.to_owned();
        Loopback::start(move |request| kubernetes(&name, request))
    }

    /// A Docker engine whose host is called this.
    pub fn docker(name: &str) -> Self {
        let name = name.to_owned();
        Loopback::start(move |request| docker(&name, request))
    }

    /// A package registry that knows whoever has its token as `user-of-NAME`.
    pub fn npm(name: &str) -> Self {
        let name = name.to_owned();
        Loopback::start(move |request| npm(&name, request))
    }

    /// AWS's token service: a key that ends in 1 belongs to account 111111111111, and so on.
    pub fn sts() -> Self {
        Loopback::start(sts)
    }

    /// A server with the answers of many products, each of which says who asked or which server this is (`services.rs`).
    pub fn service(name: &str) -> Self {
        let name = name.to_owned();
        Loopback::start(move |request| services::answer(&name, request))
    }

    /// A PostgreSQL server of one role, whose password is `password-of-NAME`. The answer to each query is `database-of-NAME`.
    pub fn postgresql(name: &str, address: Ipv4Addr) -> Self {
        let name = name.to_owned();
        Loopback::listen(address, move |stream| databases::postgresql(&name, stream))
    }

    /// A MySQL server that answers each query with `database-of-NAME`.
    pub fn mysql(name: &str) -> Self {
        let name = name.to_owned();
        Loopback::listen(Ipv4Addr::LOCALHOST, move |stream| databases::mysql(&name, stream))
    }

    /// Listening address, `127.0.0.1:PORT`.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn start(answer: impl Fn(&LoopbackRequest) -> LoopbackAnswer + Send + Sync + 'static) -> Self {
        Loopback::listen(Ipv4Addr::LOCALHOST, move |stream| serve(stream, &answer))
    }

    /// Serves each connection in a thread of its own.
    fn listen(
        address: Ipv4Addr,
        serve: impl Fn(&TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((address, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let acceptor = std::thread::spawn(move || {
            let serve = &serve;
            std::thread::scope(|connections| {
                for stream in listener.incoming() {
                    if seen.load(Ordering::Relaxed) {
                        break;
                    }
                    if let Ok(stream) = stream {
                        // A client that goes away in the middle is its own business.
                        connections.spawn(move || serve(&stream).ok());
                    }
                }
            });
        });
        Loopback { address, over, acceptor: Some(acceptor) }
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // The acceptor waits for a connection: this is one.
        drop(TcpStream::connect(self.address));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

/// Requested action.
pub(crate) struct LoopbackRequest {
    method: String,
    /// Without the query.
    pub(crate) path: String,
    /// Value of the header `Host`.
    host: String,
    /// Value of the header `Authorization`.
    authorization: String,
    /// Body.
    pub(crate) body: Vec<u8>,
}

/// Response.
pub(crate) struct LoopbackAnswer {
    pub(crate) status: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) body: String,
}

impl LoopbackAnswer {
    #[expect(clippy::needless_pass_by_value, reason = "callers pass a temporary value")]
    pub(crate) fn json(body: serde_json::Value) -> Self {
        LoopbackAnswer { status: "200 OK", kind: "application/json", body: body.to_string() }
    }

    pub(crate) fn not_found(body: serde_json::Value) -> Self {
        LoopbackAnswer { status: "404 Not Found", ..LoopbackAnswer::json(body) }
    }
}

/// One request and its answer; a client that wants more connects again.
fn serve(stream: &TcpStream, answer: &impl Fn(&LoopbackRequest) -> LoopbackAnswer) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let path = words.next().unwrap_or_default().split('?').next().unwrap_or_default().to_owned();
    let (mut host, mut authorization, mut length, mut is_chunked) = (String::new(), String::new(), 0, false);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim_end().is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else { continue };
        match name.to_ascii_lowercase().as_str() {
            "host" => value.trim().clone_into(&mut host),
            "authorization" => value.trim().clone_into(&mut authorization),
            "content-length" => length = value.trim().parse().unwrap_or(0),
            "transfer-encoding" => is_chunked = value.trim().eq_ignore_ascii_case("chunked"),
            _ => {}
        }
    }
    // Read to the end: closing a socket with unread data resets the connection, and the answer is lost.
    let mut body = vec![0; LARGEST.min(length)];
    reader.read_exact(&mut body)?;
    if is_chunked {
        body = chunks(&mut reader)?;
    }
    let request = LoopbackRequest { method, path, host, authorization, body };
    let LoopbackAnswer { status, kind, body } = answer(&request);
    let length = body.len();
    // Docker's client reads the version of the API from the answer to its first question, OpenStack's the token; the others do not
    // mind.
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\
         Api-Version: 1.41\r\nOstype: linux\r\nX-Subject-Token: t\r\n\r\n"
    );
    // docker pings with HEAD first.
    let body = if request.method == "HEAD" { "" } else { &body };
    let mut stream = stream;
    stream.write_all(format!("{head}{body}").as_bytes())
}

/// The body of a request in chunks (RFC 9112, 7.1).
fn chunks(reader: &mut impl BufRead) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let size = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
        // The line end after a chunk belongs to no chunk.
        let mut chunk = vec![0; LARGEST.min(size) + 2];
        reader.read_exact(&mut chunk)?;
        if size == 0 {
            return Ok(body);
        }
        body.extend_from_slice(&chunk[..size.min(LARGEST)]);
    }
}

fn kubernetes(name: &str, request: &LoopbackRequest) -> LoopbackAnswer {
    match request.path.split('/').skip(1).collect::<Vec<_>>().as_slice() {
        ["api"] => LoopbackAnswer::json(json!({"kind": "APIVersions", "versions": ["v1"]})),
        ["apis"] => LoopbackAnswer::json(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": []})),
        ["api", "v1"] => LoopbackAnswer::json(json!({
            "kind": "APIResourceList", "groupVersion": "v1", "resources": [{
                "name": "pods", "singularName": "pod", "shortNames": ["po"], "kind": "Pod",
                "namespaced": true, "verbs": ["get", "list"],
            }],
        })),
        ["api", "v1", "namespaces", namespace, "pods"] => LoopbackAnswer::json(json!({
            "kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": [{
                "metadata": {"name": format!("pod-of-{name}"), "namespace": namespace, "uid": "1"},
                "spec": {"containers": []}, "status": {"phase": "Running"},
            }],
        })),
        ["version"] => LoopbackAnswer::json(json!({"major": "1", "minor": "32", "gitVersion": "v1.32.0"})),
        _ => LoopbackAnswer::not_found(json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
        })),
    }
}

fn docker(name: &str, request: &LoopbackRequest) -> LoopbackAnswer {
    // The version of the API may stand in front, or not.
    match request.path.rsplit('/').next() {
        Some("_ping") => LoopbackAnswer { status: "200 OK", kind: "text/plain", body: "OK".to_owned() },
        Some("info") => {
            LoopbackAnswer::json(json!({"Name": name, "ID": name, "ServerVersion": "1", "Containers": 0}))
        }
        Some("version") => LoopbackAnswer::json(json!({
            "Version": "1", "ApiVersion": "1.41", "MinAPIVersion": "1.24", "Os": "linux", "Arch": "amd64",
        })),
        _ => LoopbackAnswer::not_found(json!({"message": "not found"})),
    }
}

fn npm(name: &str, request: &LoopbackRequest) -> LoopbackAnswer {
    match request.path.as_str() {
        "/-/whoami" if request.authorization == format!("Bearer token-of-{name}") => {
            LoopbackAnswer::json(json!({"username": format!("user-of-{name}")}))
        }
        // yarn 1 has no `whoami`; it sends the token for packages with a scope.
        "/@scope%2fpackage" if request.authorization == format!("Bearer token-of-{name}") => {
            LoopbackAnswer::json(json!({
                "name": "@scope/package", "dist-tags": {"latest": "1.0.0"},
                "versions": {"1.0.0": {"version": "1.0.0", "description": format!("package-of-{name}")}},
            }))
        }
        _ => LoopbackAnswer {
            status: "401 Unauthorized",
            ..LoopbackAnswer::json(json!({"error": "no token"}))
        },
    }
}

fn sts(request: &LoopbackRequest) -> LoopbackAnswer {
    let key = request.authorization.split_once("Credential=").and_then(|(_, rest)| rest.split('/').next());
    let key = key.unwrap_or("none");
    let account = key.chars().last().filter(char::is_ascii_digit).unwrap_or('0').to_string().repeat(12);
    let body = format!(
        "<GetCallerIdentityResponse xmlns='https://sts.amazonaws.com/doc/2011-06-15/'>\
         <GetCallerIdentityResult><Arn>arn:aws:iam::{account}:user/{key}</Arn><UserId>{key}</UserId>\
         <Account>{account}</Account></GetCallerIdentityResult>\
         <ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></GetCallerIdentityResponse>"
    );
    LoopbackAnswer { status: "200 OK", kind: "text/xml", body }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::Loopback;
    use crate::Home;

    #[test]
    fn kubectl_sees_whose_pod_it_is() {
        let (home, alpha) = (Home::new("none"), Loopback::kubernetes("alpha"));
        let server = format!("--server=http://{}", alpha.address());
        let done = home.tool("kubectl", &["get", "pods", "-o", "name", &server]).ok();
        assert_eq!(done.stdout(), "pod/pod-of-alpha\n");
    }

    #[test]
    fn docker_sees_whose_engine_it_is() {
        let (home, beta) = (Home::new("none"), Loopback::docker("beta"));
        let host = format!("tcp://{}", beta.address());
        let done = home.tool("docker", &["--host", &host, "info", "--format", "{{.Name}}"]).ok();
        assert_eq!(done.stdout(), "beta\n");
    }

    #[test]
    fn aws_sees_whose_account_it_is() {
        let (home, sts) = (Home::new("none"), Loopback::sts());
        let url = format!("http://{}", sts.address());
        let ask = ["sts", "get-caller-identity", "--query", "Account", "--output", "text", "--endpoint-url"];
        let done = home
            .tool("aws", &ask)
            .arg(url)
            .env("AWS_ACCESS_KEY_ID", "AKIAAAAAAAAAAAAAAAA2")
            .env("AWS_SECRET_ACCESS_KEY", "s")
            .env("AWS_DEFAULT_REGION", "us-east-1")
            .ok();
        assert_eq!(done.stdout(), "222222222222\n");
    }

    #[test]
    fn nothing_listens_after_the_end() {
        let (one, two) = (Loopback::sts(), Loopback::sts());
        assert_ne!(one.address(), two.address());
        let address = one.address();
        drop(one);
        assert!(TcpStream::connect(address).is_err());
        assert!(TcpStream::connect(two.address()).is_ok());
    }
}
