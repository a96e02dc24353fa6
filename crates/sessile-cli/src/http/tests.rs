//! Against servers on this machine: a real one with TLS, and sockets that misbehave.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use testkit::TlsServer;
use ureq::http::Method;

use super::{HttpAddress, HttpClient, HttpError, HttpRequest, Timeouts, TrustRoots};

fn http() -> HttpClient {
    HttpClient::new(TrustRoots::System)
}

/// Serves one connection, after its request has come, and tells the request. A form must end with `c=&`.
fn serve(answer: impl FnOnce(&mut TcpStream) + Send + 'static) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/token?secret=hunter2", listener.local_addr().unwrap());
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
        let is_whole = |request: &[u8]| {
            let end: &[u8] = if request.starts_with(b"POST") { b"c=%26" } else { b"\r\n\r\n" };
            request.ends_with(end)
        };
        while !is_whole(&request) {
            match stream.read(&mut buffer).unwrap() {
                0 => break,
                read => request.extend_from_slice(&buffer[..read]),
            }
        }
        answer(&mut stream);
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "the client connects twice");
        String::from_utf8(request).unwrap()
    });
    (url, served)
}

fn say(text: &str) -> impl FnOnce(&mut TcpStream) + Send + use<> {
    let text = text.to_owned();
    move |stream| stream.write_all(text.as_bytes()).unwrap()
}

#[test]
fn a_server_is_believed_if_a_trusted_authority_vouches_for_it() {
    let (server, other) = (TlsServer::start(), TlsServer::start());
    let trusting = HttpClient::new(TrustRoots::File(server.authority()));
    let answer = trusting.get(&server.url("/"), &[]).unwrap();
    assert_eq!((answer.status, answer.body.expose()), (200, "GET over TLS"));
    let answer = trusting.post_form(&server.url("/"), &[("a", "b")], &[]).unwrap();
    assert_eq!((answer.status, answer.body.expose()), (200, "POST over TLS"));
    // The certificate names this address too, and an IP address is compared like a name.
    let by_number = server.url("/").replace("localhost", "127.0.0.1");
    assert_eq!(trusting.get(&by_number, &[]).unwrap().status, 200);

    let refused =
        HttpClient::new(TrustRoots::File(other.authority())).get(&server.url("/"), &[]).unwrap_err();
    assert!(refused.to_string().contains("invalid peer certificate"), "{refused}");
    let refused = http().get(&server.url("/"), &[]).unwrap_err();
    assert!(matches!(refused, HttpError::Unreachable { .. }), "{refused:?}");
    let without_roots = HttpClient::new(TrustRoots::File("/nonexistent/ca.pem".into()))
        .get(&server.url("/"), &[])
        .unwrap_err();
    assert!(without_roots.to_string().contains("no CA certificates found"), "{without_roots}");
}

/// What the test below asks, which reads it from its environment.
const ASKED: &str = "SESSILE_TEST_ASKED";

#[test]
#[ignore = "run by others, in an environment of its own"]
#[expect(clippy::disallowed_methods, reason = "the test is about the process's own variables")]
fn asks_as_the_environment_says() {
    let answer = http().get(&std::env::var(ASKED).unwrap(), &[]).unwrap();
    assert_eq!(answer.status, 200);
}

/// Whether a process with these variables gets an answer from this address.
fn gets_an_answer(url: &str, variables: &[(&str, &str)]) -> bool {
    let mut child = Command::new(std::env::current_exe().unwrap());
    for name in ["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"] {
        child.env_remove(name).env_remove(name.to_ascii_lowercase());
    }
    child.args(["--ignored", "--exact", "http::tests::asks_as_the_environment_says"]);
    child.env(ASKED, url).envs(variables.iter().copied()).output().unwrap().status.success()
}

#[test]
fn the_environment_names_authorities() {
    let server = TlsServer::start();
    let authority = server.authority();
    assert!(gets_an_answer(&server.url("/"), &[("SSL_CERT_FILE", authority.to_str().unwrap())]));
    assert!(!gets_an_answer(&server.url("/"), &[]));
}

#[test]
fn proxy_gets_requests_for_other_machines_only() {
    let (url, served) = serve(say("HTTP/1.1 200 x\r\nContent-Length: 0\r\n\r\n"));
    assert!(gets_an_answer(&url, &[("ALL_PROXY", "http://127.0.0.1:1")]));
    served.join().unwrap();
    let (url, served) = serve(say("HTTP/1.1 403 x\r\nContent-Length: 0\r\n\r\n"));
    let proxy = url.split("/token").next().unwrap();
    assert!(!gets_an_answer("https://id.example/token?secret=hunter2", &[("HTTPS_PROXY", proxy)]));
    let request = served.join().unwrap();
    assert!(request.starts_with("CONNECT id.example:443 HTTP/1.1\r\n"), "{request}");
    assert!(!request.contains("hunter2"), "{request}");
}

#[test]
fn a_redirect_is_an_answer_and_is_not_followed() {
    let server = TlsServer::start();
    let answer =
        HttpClient::new(TrustRoots::File(server.authority())).get(&server.url("/away"), &[]).unwrap();
    assert_eq!(answer.status, 302);
    for status in ["301 x", "302 x", "303 x", "307 x", "308 x"] {
        let head = format!("HTTP/1.1 {status}\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n");
        let (url, served) = serve(say(&head));
        let answer = http().post_form(&url, &[("c", "&")], &[("authorization", "Basic eA==")]).unwrap();
        assert!(status.starts_with(&answer.status.to_string()), "{status}");
        served.join().unwrap();
    }
}

#[test]
fn a_form_is_sent_as_a_form_and_the_answer_read() {
    let head =
        "HTTP/1.1 429 x\r\nRetry-After: 7\r\nWWW-Authenticate: Bearer x\r\nContent-Length: 2\r\n\r\nno";
    let (url, served) = serve(say(head));
    let answer =
        http().post_form(&url, &[("a b", "1"), ("c", "&")], &[("accept", "application/json")]).unwrap();
    assert_eq!((answer.status, answer.retry_after), (429, Some(Duration::from_secs(7))));
    assert_eq!(answer.body.expose(), "no");
    assert!(!format!("{answer:?}").contains("no\""), "{answer:?}");
    let request = served.join().unwrap();
    let lower = request.to_ascii_lowercase();
    assert!(request.starts_with("POST /token?secret=hunter2 HTTP/1.1\r\n"), "{request}");
    assert!(request.ends_with("\r\n\r\na+b=1&c=%26"), "{request}");
    for header in [
        format!("user-agent: sessile/{}", env!("CARGO_PKG_VERSION")),
        "content-type: application/x-www-form-urlencoded".to_owned(),
        "accept: application/json".to_owned(),
    ] {
        assert_eq!(lower.matches(&format!("\r\n{header}\r\n")).count(), 1, "{header} in {request}");
    }
}

#[test]
fn plain_http_reaches_this_machine_only() {
    // The system would connect this to the listener: it is refused before.
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    assert!(matches!(http().get(&url, &[]), Err(HttpError::NotAllowed(_))));
    assert!(matches!(http().post_form(&url, &[], &[]), Err(HttpError::NotAllowed(_))));
    // So is a header that would become two.
    let local = url.replace("0.0.0.0", "127.0.0.1");
    let told = http().get(&local, &[("authorization", "Bearer hunter2\r\nx: y")]).unwrap_err();
    assert!(matches!(told, HttpError::NotAllowed(_)) && !told.to_string().contains("hunter2"), "{told}");
    assert!(listener.accept().is_err());
}

#[test]
fn oversized_body_is_not_read() {
    let (url, served) = serve(say("HTTP/1.1 200 x\r\nContent-Length: 1048577\r\n\r\n"));
    assert!(matches!(http().get(&url, &[]), Err(HttpError::TooLarge { .. })));
    served.join().unwrap();

    let (url, served) = serve(|stream| {
        stream.write_all(b"HTTP/1.1 200 x\r\nConnection: close\r\n\r\n").unwrap();
        // Until the other side has had enough.
        while stream.write_all(&[b'x'; 65536]).is_ok() {}
    });
    let told = http().get(&url, &[]).unwrap_err();
    assert!(matches!(told, HttpError::TooLarge { .. }) && !told.to_string().contains("hunter2"), "{told}");
    served.join().unwrap();

    let largest = "x".repeat(1 << 20);
    let (url, served) = serve(say(&format!("HTTP/1.1 200 x\r\nContent-Length: 1048576\r\n\r\n{largest}")));
    assert_eq!(http().get(&url, &[]).unwrap().body.expose().len(), 1 << 20);
    served.join().unwrap();
}

#[test]
fn silent_server_times_out() {
    let silences: [&str; 2] = ["", "HTTP/1.1 200 x\r\nContent-Length: 9\r\n\r\nhalf"];
    for said in silences {
        let (url, served) = serve(move |stream| {
            stream.write_all(said.as_bytes()).unwrap();
            // Until the other side goes away.
            let _ = stream.read(&mut [0]);
        });
        let (begun, limit) = (Instant::now(), Duration::from_millis(300));
        let told = http().with_timeouts(limit, limit).get(&url, &[]).unwrap_err();
        assert!(matches!(told, HttpError::TimedOut { .. }), "{told:?}");
        assert!(!told.to_string().contains("hunter2"), "{told}");
        assert!(begun.elapsed() < Duration::from_secs(5));
        served.join().unwrap();
    }
}

#[test]
fn unreachable_server_is_reported_without_the_query() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    drop(listener);
    let told = http().get(&format!("http://{at}/token?secret=hunter2"), &[]).unwrap_err().to_string();
    assert!(told.starts_with(&format!("cannot reach http://{at}/token: ")), "{told}");
    assert!(!told.contains("hunter2"), "{told}");
}

#[test]
fn an_answer_that_is_not_text_is_read_all_the_same() {
    let (url, served) = serve(|stream| {
        stream
            .write_all(b"HTTP/1.1 500 x\r\nContent-Type: text/html\r\nContent-Length: 3\r\n\r\na\xffb")
            .unwrap();
    });
    let answer = http().get(&url, &[]).unwrap();
    assert_eq!((answer.status, answer.body.expose()), (500, "a\u{fffd}b"));
    served.join().unwrap();
}

fn exchange(
    http: &HttpClient,
    url: &str,
    method: Method,
    body: Option<&[u8]>,
) -> Result<super::HttpResponse, HttpError> {
    let (address, second) = (HttpAddress::parse(url).unwrap(), Duration::from_secs(2));
    let headers = &[("x-a", "1")];
    let patience = Timeouts { write: None, head: second, silence: second, total: Some(2 * second) };
    http.exchange(&HttpRequest { method, address: &address, headers, body }, patience)
}

#[test]
fn any_method_is_sent_and_its_answer_read_as_it_comes() {
    let server = TlsServer::start();
    let trusting = HttpClient::new(TrustRoots::File(server.authority()));
    let mut coming = exchange(&trusting, &server.url("/"), Method::POST, Some(b"{}")).unwrap();
    assert_eq!((coming.status, coming.read_all(99).unwrap()), (200, b"POST over TLS".to_vec()));
    let coming = exchange(&trusting, &server.url("/away"), Method::GET, None).unwrap();
    assert!(coming.status == 302 && coming.header("location").is_some());
    let told = exchange(&http(), &server.url("/"), Method::GET, None).err().unwrap();
    assert!(matches!(told, HttpError::Unreachable { .. }), "{told:?}");

    let (url, served) = serve(say("HTTP/1.1 200 x\r\nContent-Length: 3\r\n\r\nabc"));
    let mut coming = exchange(&http(), &url, Method::DELETE, None).unwrap();
    assert!(matches!(coming.read_all(2), Err(HttpError::TooLarge { .. })));
    let request = served.join().unwrap().to_ascii_lowercase();
    assert!(request.starts_with("delete /token?secret=hunter2 http/1.1\r\n"), "{request}");
    assert!(request.contains("\r\nx-a: 1\r\n") && !request.contains("transfer-encoding"), "{request}");

    let (read, was_read) = std::sync::mpsc::channel();
    let (url, served) = serve(move |stream| {
        stream.write_all(b"HTTP/1.1 200 x\r\n\r\none").unwrap();
        // Only after the first piece was read is the second written.
        was_read.recv().unwrap();
        stream.write_all(b"two").unwrap();
    });
    let mut buffer = [0; 64];
    let mut coming = exchange(&http(), &url, Method::GET, None).unwrap();
    assert_eq!(coming.read(&mut buffer).unwrap(), 3);
    read.send(()).unwrap();
    assert_eq!(coming.read_all(3).unwrap(), b"two");
    served.join().unwrap();
}
