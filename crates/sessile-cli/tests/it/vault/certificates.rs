//! Servers whose certificate nobody vouches for, and those that speak TLS where none was expected: what is said, and that
//! what the hint says helps.

use std::process::Command;

use testkit::{CallResult, Home};

use crate::home;
use crate::probe::service::ProbedService;

/// Runs openssl in a home.
fn openssl(home: &Home, words: &str) {
    let done =
        Command::new("openssl").args(words.split_whitespace()).current_dir(home.dir()).output().unwrap();
    assert!(done.status.success(), "openssl {words}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A certificate for this machine that signs itself, and a service with it.
fn signed_by_itself(home: &Home, flags: &str) -> ProbedService {
    let names = "-subj /CN=sessile.test -addext subjectAltName=DNS:localhost,IP:127.0.0.1";
    openssl(
        home,
        &format!(
            "req -x509 -newkey rsa:2048 -nodes -days 2 {names} {flags} -keyout server.key -out server.pem"
        ),
    );
    serving(home)
}

fn serving(home: &Home) -> ProbedService {
    let (certificate, key) = (home.path("server.pem"), home.path("server.key"));
    ProbedService::start(
        home,
        0,
        &["--tls-cert", certificate.to_str().unwrap(), "--tls-key", key.to_str().unwrap()],
    )
}

fn login(home: &Home, url: &str, authority: Option<&str>) -> CallResult {
    let call = home.call(&["auth", "login", "--server", url, "--token-stdin", "-ojson", "--log-file", LOG]);
    let call = call.stdin("sst_x");
    match authority {
        Some(file) => call.env("SSL_CERT_FILE", home.path(file)).run(),
        None => call.run(),
    }
}

/// Log of the logins in a home.
const LOG: &str = "login.log";

/// Number of retries of all logins in a home.
fn retries(home: &Home) -> usize {
    std::fs::read_to_string(home.path(LOG)).unwrap().matches("retrying request").count()
}

/// The message and the hint of a server that is not reached.
fn told(done: CallResult) -> (String, String) {
    let error = done.exit(12).json_error();
    assert_eq!(error["code"], "UNREACHABLE");
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    (text("message"), text("hint"))
}

#[test]
fn an_authority_of_ones_own_is_named_by_a_variable() {
    let home = home();
    openssl(&home, "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=Nobody -keyout ca.key -out ca.pem");
    openssl(
        &home,
        "req -newkey rsa:2048 -nodes -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 \
         -keyout server.key -out server.csr",
    );
    openssl(
        &home,
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -copy_extensions copy \
         -out server.pem",
    );
    let service = serving(&home);
    let (message, hint) = told(login(&home, &service.url, None));
    assert!(message.ends_with("not signed by a trusted CA"), "{message}");
    assert!(hint.contains("SSL_CERT_FILE=ca.pem"), "{hint}");
    openssl(
        &home,
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=Other -keyout other.key -out other.pem",
    );
    let (_, hint) = told(login(&home, &service.url, Some("other.pem")));
    assert!(hint.contains("other.pem does not contain the CA of this server"), "{hint}");
    assert_eq!(retries(&home), 0, "the certificate stays the same");
    // It is reached, and does not know the token.
    assert_eq!(login(&home, &service.url, Some("ca.pem")).exit(8).code(), "CREDENTIAL_REJECTED");
}

#[test]
fn self_signed_certificate_is_reported_in_words() {
    let home = home();
    let service = signed_by_itself(&home, "");
    for authority in [None, Some("server.pem")] {
        let (message, hint) = told(login(&home, &service.url, authority));
        assert!(message.ends_with("a CA certificate, not a server certificate"), "{message}");
        assert!(hint.contains("CA:FALSE") && hint.contains("SSL_CERT_FILE"), "{hint}");
    }
    assert_eq!(retries(&home), 0);
    drop(service);
    // As the hint says.
    let service = signed_by_itself(&home, "-addext basicConstraints=critical,CA:FALSE");
    assert_eq!(login(&home, &service.url, Some("server.pem")).exit(8).code(), "CREDENTIAL_REJECTED");
}

#[test]
fn http_instead_of_https_is_reported() {
    let home = home();
    let service = signed_by_itself(&home, "");
    let (message, hint) = told(login(&home, &service.url.replace("https:", "http:"), None));
    assert!(message.contains("the response is not HTTP"), "{message}");
    assert!(hint.contains("TLS") && hint.contains("https://"), "{hint}");
    let plain = ProbedService::start(&crate::home(), 0, &[]);
    let (message, hint) = told(login(&home, &plain.url.replace("http:", "https:"), Some("server.pem")));
    assert!(message.contains("the response is not TLS"), "{message}");
    assert!(hint.contains("http://"), "{hint}");
    assert_eq!(retries(&home), 0);
}

#[test]
fn refused_connection_is_retried_and_has_a_hint() {
    let home = home();
    // Bound and closed again: nothing listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (message, hint) = told(login(&home, &format!("http://127.0.0.1:{port}"), None));
    assert!(message.contains("connection refused"), "{message}");
    assert!(hint.contains("start the server"), "{hint}");
    assert!(retries(&home) > 0);
}
