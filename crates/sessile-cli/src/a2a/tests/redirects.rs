//! Redirects and cards that point elsewhere, and their credentials.

use std::sync::Mutex;

use sessile::vault::Secret;
use sessile_wire::a2a::AgentEvent;

use super::says;
use super::server::{ScriptedServer, card, head, say};
use crate::a2a::{
    A2aError, AgentClient, AnonymousAccess, ClientOptions, CredentialProvider, RequestCredential,
};
use crate::http::{HttpAddress, HttpClient, TrustRoots};

/// Has a credential for one origin, and remembers what it was asked for.
struct OneCredential {
    origin: String,
    credentials: Vec<RequestCredential>,
    asked: Mutex<Vec<String>>,
}

impl OneCredential {
    fn at(url: &str) -> Self {
        let secret = || Secret::new("hunter2 &");
        let credentials = vec![
            RequestCredential::Header("Authorization".to_owned(), Secret::new("Bearer hunter2")),
            RequestCredential::Query("key".to_owned(), secret()),
            RequestCredential::Cookie("a".to_owned(), Secret::new("hunter2")),
            RequestCredential::Cookie("b".to_owned(), Secret::new("hunter2")),
        ];
        OneCredential { origin: url.to_owned(), credentials, asked: Mutex::default() }
    }
}

impl CredentialProvider for OneCredential {
    fn credentials_for(&self, url: &str) -> Result<Vec<RequestCredential>, sessile::Error> {
        self.asked.lock().unwrap().push(url.to_owned());
        let (own, asked) = (HttpAddress::parse(&self.origin).unwrap(), HttpAddress::parse(url).unwrap());
        Ok(if own.is_same_origin(&asked) { self.credentials.clone() } else { Vec::new() })
    }
}

const REPLY: &str = r#"{"jsonrpc":"2.0","result":{"message":{"messageId":"m","parts":[{"text":"hi"}]}}}"#;

fn extra() -> ClientOptions {
    ClientOptions { headers: vec![("X-Team".to_owned(), Secret::new("hunter2"))], ..ClientOptions::default() }
}

#[test]
fn a_credential_stands_where_it_belongs() {
    let server = ScriptedServer::agent(|stream| say(stream, REPLY));
    let (http, auth) = (HttpClient::new(TrustRoots::System), OneCredential::at(&server.url()));
    AgentClient::open(&http, &server.url(), &auth, extra()).unwrap().send(&says("hi")).unwrap();
    for request in server.asked() {
        let lower = request.to_ascii_lowercase();
        assert!(lower.contains("\r\nauthorization: bearer hunter2\r\n"), "{request}");
        assert!(lower.contains("\r\ncookie: a=hunter2; b=hunter2\r\n"), "{request}");
        assert!(lower.contains("\r\nx-team: hunter2\r\n"), "{request}");
        assert!(lower.lines().next().unwrap().contains("?key=hunter2+%26 "), "{request}");
    }
}

#[test]
fn a_card_that_names_another_origin_gets_nothing_for_it() {
    let other = ScriptedServer::start(|_, _, stream| say(stream, REPLY));
    let there = other.url();
    let server = ScriptedServer::start(move |_, _, stream| say(stream, &card(&there).to_string()));
    let (http, auth) = (HttpClient::new(TrustRoots::System), OneCredential::at(&server.url()));
    let agent = AgentClient::open(&http, &server.url(), &auth, extra()).unwrap();
    assert!(!agent.is_at_home());
    assert!(matches!(agent.send(&says("hi")), Ok(AgentEvent::Message(_))));
    assert!(server.asked()[0].contains("hunter2"));
    assert!(!other.asked()[0].contains("hunter2"), "{:?}", other.asked());
    assert!(auth.asked.lock().unwrap().iter().any(|url| url == &format!("{}/rpc", other.url())));
}

#[test]
fn a_card_may_be_elsewhere_and_is_fetched_without_credentials() {
    let back = ScriptedServer::start(|_, url, stream| say(stream, &card(url).to_string()));
    let middle = back.url();
    let server = ScriptedServer::start(move |request, _, stream| match request.starts_with("GET /again") {
        true => say(stream, &card("http://127.0.0.1:1").to_string()),
        false => head(stream, "302 Found", &format!("Location: {middle}/card\r\n")),
    });
    let (http, auth) = (HttpClient::new(TrustRoots::System), OneCredential::at(&server.url()));
    let agent = AgentClient::open(&http, &server.url(), &auth, extra()).unwrap();
    assert_eq!(agent.interface.url, format!("{}/rpc", back.url()));
    assert!(server.asked()[0].contains("hunter2"));
    assert!(!back.asked()[0].contains("hunter2"), "{:?}", back.asked());

    // Nor if it leads back to where they were meant for.
    let home = server.url();
    let away = ScriptedServer::start(move |_, _, stream| {
        head(stream, "302 Found", &format!("Location: {home}/again\r\n"))
    });
    let auth = OneCredential::at(&server.url());
    let _ = AgentClient::open(&http, &away.url(), &auth, extra());
    let again = server.asked().into_iter().find(|request| request.starts_with("GET /again")).unwrap();
    assert!(!again.contains("hunter2"), "{again}");
}

#[test]
fn within_an_origin_a_redirect_is_followed_with_everything() {
    let server = ScriptedServer::start(|request, url, stream| match request.split(' ').nth(1).unwrap() {
        "/.well-known/agent-card.json?key=hunter2+%26" => {
            head(stream, "301 x", "Location: /cards/mine.json\r\n")
        }
        "/cards/mine.json?key=hunter2+%26" => say(stream, &card(url).to_string()),
        "/rpc?key=hunter2+%26" => head(stream, "307 x", "Location: v2/rpc\r\nContent-Length: 0\r\n"),
        "/v2/rpc?key=hunter2+%26" => say(stream, REPLY),
        _ => head(stream, "404 x", ""),
    });
    let (http, auth) = (HttpClient::new(TrustRoots::System), OneCredential::at(&server.url()));
    AgentClient::open(&http, &server.url(), &auth, extra()).unwrap().send(&says("hi")).unwrap();
    let last = server.asked().pop().unwrap();
    assert!(last.contains("Bearer hunter2") && last.contains("m-hi"), "{last}");
}

#[test]
fn a_message_is_never_sent_to_another_origin() {
    let other = ScriptedServer::start(|_, _, stream| say(stream, REPLY));
    for status in ["301 x", "302 x", "303 x", "307 x", "308 x"] {
        let there = other.url();
        let server =
            ScriptedServer::agent(move |stream| head(stream, status, &format!("Location: {there}/rpc\r\n")));
        let (http, auth) = (HttpClient::new(TrustRoots::System), OneCredential::at(&server.url()));
        let told =
            AgentClient::open(&http, &server.url(), &auth, extra()).unwrap().send(&says("hi")).unwrap_err();
        assert!(matches!(told, A2aError::Redirected { .. }), "{told:?}");
        assert!(!told.to_string().contains("hunter2"), "{told}");
    }
    assert!(other.asked().is_empty());
    // Nor again to its own, if the redirect would make another request of it.
    let server = ScriptedServer::agent(|stream| head(stream, "302 x", "Location: /elsewhere\r\n"));
    let http = HttpClient::new(TrustRoots::System);
    let told = AgentClient::open(&http, &server.url(), &AnonymousAccess, extra())
        .unwrap()
        .send(&says("hi"))
        .unwrap_err();
    assert!(told.to_string().ends_with("would drop the message"), "{told}");
    assert_eq!(server.asked().len(), 2);
    for location in ["http://a.example/", "file:///etc/passwd", "http://a@b@127.0.0.1/"] {
        let server =
            ScriptedServer::agent(move |stream| head(stream, "307 x", &format!("Location: {location}\r\n")));
        let http = HttpClient::new(TrustRoots::System);
        let told = AgentClient::open(&http, &server.url(), &AnonymousAccess, extra())
            .unwrap()
            .send(&says("hi"))
            .unwrap_err();
        assert!(matches!(told, A2aError::Http(_)), "{location}: {told:?}");
    }
}

#[test]
fn ten_thousand_redirects_are_too_many() {
    let server = ScriptedServer::start(|request, _, stream| {
        let step: u32 = request.split(' ').nth(1).and_then(|path| path[1..].parse().ok()).unwrap_or(0);
        match step {
            10_000 => say(stream, "{}"),
            step => head(stream, "302 Found", &format!("Location: /{}\r\n", step + 1)),
        }
    });
    let http = HttpClient::new(TrustRoots::System);
    let told = AgentClient::open(&http, &server.url(), &AnonymousAccess, extra()).err().unwrap();
    assert!(matches!(told, A2aError::Redirected { .. }), "{told:?}");
    assert_eq!(server.asked().len(), 6);
    let lost = ScriptedServer::start(|_, _, stream| head(stream, "302 Found", ""));
    let told = AgentClient::open(&http, &lost.url(), &AnonymousAccess, extra()).err().unwrap();
    assert!(told.to_string().contains("the Location header is missing"), "{told}");
}

#[test]
fn a_card_is_found_at_the_older_place_or_at_the_address_itself() {
    for place in ["/a/.well-known/agent.json", "/a", "/a/card.json"] {
        let server = ScriptedServer::start(move |request, url, stream| {
            match request.starts_with(&format!("GET {place} ")) {
                true => say(stream, &card(url).to_string()),
                false => head(stream, "404 x", "Content-Length: 0\r\n"),
            }
        });
        let url = format!("{}{}", server.url(), if place.contains("card") { place } else { "/a" });
        let http = HttpClient::new(TrustRoots::System);
        assert_eq!(AgentClient::open(&http, &url, &AnonymousAccess, extra()).unwrap().card.name, "scripted");
    }
    let page = ScriptedServer::start(|_, _, stream| {
        head(stream, "200 OK", "Content-Type: text/html\r\n")?;
        std::io::Write::write_all(stream, b"<html>")
    });
    let http = HttpClient::new(TrustRoots::System);
    let told = AgentClient::open(&http, &page.url(), &AnonymousAccess, extra()).err().unwrap();
    assert!(matches!(told, A2aError::NotAnAgent { .. }), "{told:?}");
    let grpc = ScriptedServer::start(|_, url, stream| {
        say(stream, &card(url).to_string().replace("JSONRPC", "GRPC"))
    });
    let told = AgentClient::open(&http, &grpc.url(), &AnonymousAccess, extra()).err().unwrap();
    assert_eq!(told.to_string(), "none of the agent's interfaces is supported: GRPC 1.0");
}
