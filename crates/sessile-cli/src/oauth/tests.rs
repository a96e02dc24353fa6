//! Against a real authorization server, and against scripted answers for what a good one does not say.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;
use std::time::Duration;

use sessile::vault::Secret;
use testkit::{OidcOptions, OidcServer};

use super::{DeviceCode, OAuthClient, OAuthError, discover};
use crate::http::{HttpClient, TrustRoots};

fn http() -> HttpClient {
    HttpClient::new(TrustRoots::System)
}

fn scopes(names: &str) -> Vec<String> {
    names.split_whitespace().map(str::to_owned).collect()
}

fn robot(server: &OidcServer) -> OAuthClient {
    client(server, OidcServer::SECRET_CLIENT, Some(Secret::new(OidcServer::SECRET)))
}

fn client(server: &OidcServer, id: &str, client_secret: Option<Secret>) -> OAuthClient {
    let found = discover(&http(), server.issuer()).unwrap();
    let (token_url, device_url) = (found.token_url, found.device_url);
    OAuthClient { token_url, device_url, client_id: id.to_owned(), client_secret }
}

fn terminal(server: &OidcServer) -> OAuthClient {
    client(server, OidcServer::PUBLIC_CLIENT, None)
}

/// Logs in as this account, by a code that is approved at once.
fn log_in(server: &OidcServer, client: &OAuthClient, names: &str, account: &str) -> super::Tokens {
    let code = client.start_device(&http(), &scopes(names), None, None).unwrap();
    server.approve(&code.user_code, account);
    client.poll_device(&http(), &code, || Duration::ZERO, |_| ()).unwrap()
}

/// The code of a refusal.
fn refused(result: Result<super::Tokens, OAuthError>) -> String {
    match result {
        Err(OAuthError::Refused { error, .. }) => error,
        other => panic!("{other:?}"),
    }
}

/// Gives these answers, one for each connection; an empty one is a connection that breaks.
fn script(answers: Vec<String>) -> (OAuthClient, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let served = std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
            // Every form that these tests send ends so, for want of a client secret.
            while !request.ends_with(b"client_id=me") {
                let read = stream.read(&mut buffer).unwrap();
                request.extend_from_slice(&buffer[..read]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let client = OAuthClient {
        token_url: url.clone(),
        device_url: Some(url),
        client_id: "me".to_owned(),
        client_secret: None,
    };
    (client, served)
}

fn answer(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

#[test]
fn client_credentials_get_a_token() {
    let server = OidcServer::start();
    let client = robot(&server);
    let tokens = client.client_credentials(&http(), &scopes("api:read"), None, None).unwrap();
    assert_eq!(server.whoami(tokens.access.expose()).as_deref(), Some(OidcServer::SECRET_CLIENT));
    assert_eq!((tokens.expires_in, tokens.scopes.as_deref()), (Some(60), Some(&scopes("api:read")[..])));
    assert_eq!((tokens.refresh, tokens.account), (None, None));
    let (audience, resource) = (Some("an audience"), Some("https://api.example.test/"));
    let other = client.client_credentials(&http(), &scopes("api:read"), audience, resource).unwrap();
    assert_eq!(other.access.expose().split('.').count(), 3, "a token for a resource is a JWT");
    assert_eq!(server.counts().client_credentials, 2);
}

#[test]
fn wrong_secret_or_scope_is_refused() {
    let server = OidcServer::start();
    let wrong = OAuthClient { client_secret: Some(Secret::new("hunter2")), ..robot(&server) };
    assert_eq!(refused(wrong.client_credentials(&http(), &[], None, None)), "invalid_client");
    let told = robot(&server).client_credentials(&http(), &scopes("api:admin"), None, None).unwrap_err();
    assert!(
        told.to_string().starts_with("the authorization server refused the request: invalid_scope ("),
        "{told}"
    );
    assert_eq!(refused(terminal(&server).client_credentials(&http(), &[], None, None)), "invalid_request");
    assert_eq!(server.counts().refused_client_credentials, 3);
}

#[test]
fn device_code_is_polled_until_approved() {
    let server = OidcServer::start();
    for client in [terminal(&server), robot(&server)] {
        let before = server.counts();
        let code = client.start_device(&http(), &scopes("openid email api:read"), None, None).unwrap();
        assert_eq!(code.interval, Duration::from_secs(5));
        assert_eq!(code.verification_uri, server.url("/device"));
        assert!(code.verification_uri_complete.as_deref().unwrap().contains(&code.user_code));
        assert_eq!(
            code.to_string(),
            format!("open {} and enter the code {}", server.url("/device"), code.user_code)
        );
        let slept = RefCell::new(Vec::new());
        let sleep = |time: Duration| {
            slept.borrow_mut().push(time);
            if slept.borrow().len() == 3 {
                server.approve(&code.user_code, "ada");
            }
        };
        let tokens = client.poll_device(&http(), &code, || Duration::ZERO, sleep).unwrap();
        assert_eq!(*slept.borrow(), [Duration::from_secs(5); 3]);
        assert_eq!(tokens.account.as_deref(), Some("ada@example.test"));
        assert_eq!(server.whoami(tokens.access.expose()).as_deref(), Some("ada"));
        assert_eq!(tokens.refresh, None, "offline_access was not asked for");
        let after = server.counts();
        assert_eq!(after.device_code - before.device_code, 1);
        assert_eq!(after.refused_device_code - before.refused_device_code, 2);
    }
}

#[test]
fn denied_device_code_fails() {
    let server = OidcServer::start();
    let client = terminal(&server);
    let code = client.start_device(&http(), &scopes("openid"), None, None).unwrap();
    server.deny(&code.user_code);
    let told = client.poll_device(&http(), &code, || Duration::ZERO, |_| ());
    assert_eq!(told, Err(OAuthError::Denied));
}

#[test]
fn expired_device_code_fails() {
    let server = OidcServer::with(&OidcOptions { device_seconds: 1, ..OidcOptions::default() });
    let client = terminal(&server);
    let code = client.start_device(&http(), &scopes("openid"), None, None).unwrap();
    assert_eq!(code.expires_in, Duration::from_secs(1));
    // By the clock here: the wait ends with the code, and the server is not asked.
    let (now, slept) = (RefCell::new(Duration::ZERO), RefCell::new(Vec::new()));
    let sleep = |time: Duration| {
        *now.borrow_mut() += time;
        slept.borrow_mut().push(time);
    };
    assert_eq!(client.poll_device(&http(), &code, || *now.borrow(), sleep), Err(OAuthError::Expired));
    assert_eq!((*slept.borrow()).as_slice(), [Duration::from_secs(1)]);
    assert_eq!(server.counts().refused_device_code, 0);
    // By the clock there.
    std::thread::sleep(Duration::from_millis(2100));
    let told = client.poll_device(&http(), &code, || Duration::ZERO, |_| ());
    assert_eq!(told, Err(OAuthError::Expired));
}

#[test]
fn rotated_refresh_token_is_used_once() {
    let server = OidcServer::with(&OidcOptions { access_seconds: 2, ..OidcOptions::default() });
    let client = terminal(&server);
    let first = log_in(&server, &client, "openid offline_access email api:read", "ada");
    assert_eq!(server.whoami(first.access.expose()).as_deref(), Some("ada"));
    std::thread::sleep(Duration::from_millis(3100));
    assert_eq!(server.whoami(first.access.expose()), None, "the token has expired");

    let spent = first.refresh.unwrap();
    let second = client.refresh(&http(), &spent, &[], None, None).unwrap();
    assert_eq!(server.whoami(second.access.expose()).as_deref(), Some("ada"));
    assert_eq!((second.expires_in, second.account.as_deref()), (Some(2), Some("ada@example.test")));
    let third = second.refresh.unwrap();
    assert_ne!(third, spent);
    let narrow = client.refresh(&http(), &third, &scopes("api:read"), None, None).unwrap();
    assert_eq!(narrow.scopes.unwrap(), scopes("api:read"));
    assert_eq!(
        refused(client.refresh(&http(), narrow.refresh.as_ref().unwrap(), &scopes("api:write"), None, None)),
        "invalid_scope"
    );

    assert_eq!(refused(client.refresh(&http(), &spent, &[], None, None)), "invalid_grant");
    // Its second use may be a thief's, so that the whole line is worth nothing any more.
    assert_eq!(refused(client.refresh(&http(), &narrow.refresh.unwrap(), &[], None, None)), "invalid_grant");
    let counts = server.counts();
    assert_eq!((counts.refresh_token, counts.refused_refresh_token), (2, 3));
}

#[test]
fn metadata_naming_another_issuer_is_refused() {
    let server = OidcServer::start();
    let found = discover(&http(), server.issuer()).unwrap();
    assert_eq!((found.issuer.as_str(), found.token_url), (server.issuer(), server.url("/token")));
    assert_eq!(found.device_url, Some(server.url("/device/auth")));
    // The same server under another name is another issuer.
    let told = discover(&http(), &server.issuer().replace("127.0.0.1", "localhost")).unwrap_err();
    assert_eq!(
        told,
        OAuthError::Malformed("the issuer in the metadata differs from the requested one".to_owned())
    );
    let told = discover(&http(), &server.url("/elsewhere")).unwrap_err().to_string();
    assert!(told.ends_with("/elsewhere under /.well-known/"), "{told}");
    for odd in [format!("{}?a=b", server.issuer()), "http://id.example".to_owned()] {
        assert!(matches!(discover(&http(), &odd), Err(OAuthError::Http(_))), "{odd}");
    }
}

#[test]
fn polling_survives_transient_failures() {
    let pending = r#"{"error": "authorization_pending"}"#;
    let (client, served) = script(vec![
        answer("400 x", pending),
        answer("400 x", r#"{"error": "slow_down"}"#),
        answer("503 x", "<html>"),
        String::new(),
        answer("429 x\r\nRetry-After: 11", "later"),
        answer("200 x", pending),
        answer("200 x", r#"{"access_token": "a", "token_type": "Bearer"}"#),
    ]);
    let code = DeviceCode {
        device_code: Secret::new("d"),
        user_code: "u".to_owned(),
        verification_uri: "https://id.example/".to_owned(),
        verification_uri_complete: None,
        expires_in: Duration::from_secs(600),
        interval: Duration::from_secs(5),
    };
    let slept = RefCell::new(Vec::new());
    let sleep = |time: Duration| slept.borrow_mut().push(time.as_secs());
    let tokens = client.poll_device(&http(), &code, || Duration::ZERO, sleep).unwrap();
    assert_eq!(tokens.access.expose(), "a");
    assert_eq!(*slept.borrow(), [5, 5, 10, 20, 40, 11, 10]);
    served.join().unwrap();
}

#[test]
fn server_message_is_redacted_and_sanitized() {
    let (client, served) = script(vec![
        answer("400 x", r#"{"error": "invalid_grant", "error_description": "no token hunter2"}"#),
        answer("401 x", r#"{"error": "\u001b[31mred", "error_description": "a\nb"}"#),
        answer("400 x", r#"{"error": "not hunter2"}"#),
        answer("401 x", "<html>hunter2</html>"),
        answer("200 x", "hunter2"),
        answer("302 x\r\nLocation: https://hunter2.example/", ""),
        answer("429 x\r\nRetry-After: 7", "hunter2"),
    ]);
    let told: Vec<String> = (0..7)
        .map(|_| client.refresh(&http(), &Secret::new("hunter2"), &[], None, None).unwrap_err().to_string())
        .collect();
    assert_eq!(
        told,
        [
            "the authorization server refused the request: invalid_grant",
            "the authorization server refused the request: \\u{1b}[31mred (a\\nb)",
            "the authorization server refused the request: (reason withheld)",
            "the authorization server returned status 401",
            "invalid response from the authorization server: not a JSON object",
            "the authorization server returned status 302",
            "rate limit of the authorization server exceeded; retry in 7 s",
        ]
    );
    served.join().unwrap();
}

#[test]
fn verification_uri_must_be_https() {
    let good = r#"{"device_code": "d", "user_code": "\u001b[2J", "verification_url": "https://id.example/d", "expires_in": "60", "interval": 0}"#;
    let bad = good.replace("https://id.example/d", "file:///etc/passwd");
    let complete = good.replace('}', r#", "verification_uri_complete": "javascript:alert(1)"}"#);
    let silent = good.replace("expires_in", "expires");
    let (client, served) =
        script([good, &bad, &complete, &silent].map(|body| answer("200 x", body)).to_vec());
    let start = || client.start_device(&http(), &[], None, None).map_err(|error| error.to_string());
    let code = start().unwrap();
    assert_eq!((code.expires_in.as_secs(), code.interval.as_secs()), (60, 1));
    assert_eq!(code.to_string(), "open https://id.example/d and enter the code \\u{1b}[2J");
    assert!(start().unwrap_err().ends_with(": verification_uri is not an https URL"));
    assert!(start().unwrap_err().ends_with(": verification_uri_complete is not an https URL"));
    assert!(start().unwrap_err().ends_with(": expires_in is missing"));
    served.join().unwrap();
}
