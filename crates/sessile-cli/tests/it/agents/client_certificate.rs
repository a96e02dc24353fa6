//! Client certificates (mTLS) of named agents.

use testkit::TlsServer;

use crate::home;

#[test]
fn agent_that_requires_a_client_certificate_gets_it() {
    let home = home();
    let agent = TlsServer::start_mutual_agent();
    let ((cert, key), url) = (agent.client_certificate(), agent.url(""));
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let trusting = |words: &[&str]| home.call(words).env("SSL_CERT_FILE", agent.authority());
    // Without the certificate the agent ends the connection.
    trusting(&["message", "send", &url, "hi"]).run().exit(12);
    let add = |flags: &[&str]| home.call(&["agent", "add", "mutual", &url, "--global"]).args(flags);
    add(&["--client-cert", cert, "--client-key", key]).ok();
    assert_eq!(trusting(&["message", "send", "mutual", "hi"]).ok().stdout(), "ann: hi\n");
    // Both may be in one file.
    let both = std::fs::read_to_string(cert).unwrap() + &std::fs::read_to_string(key).unwrap();
    home.write_private("both.pem", both);
    add(&["--client-cert", "both.pem"]).ok();
    assert_eq!(trusting(&["message", "send", "mutual", "hi"]).ok().stdout(), "ann: hi\n");
    assert!(trusting(&["agent", "card", "mutual"]).ok().stdout().contains("\"mutual\""));
}

#[test]
fn client_certificate_is_checked_before_an_agent_is_added() {
    let home = home();
    let agent = TlsServer::start_mutual_agent();
    let ((cert, key), text) = (agent.client_certificate(), home.write("text.pem", "no certificate\n"));
    let (cert, key, text) = (cert.to_str().unwrap(), key.to_str().unwrap(), text.to_str().unwrap());
    // A pair that TLS cannot use: version 1, and the key of another certificate.
    let (old, other) = (agent.old_client_certificate(), TlsServer::start_mutual_agent());
    let (old, other) = (old.to_str().unwrap(), other.client_certificate().1);
    let other = other.to_str().unwrap();
    let missing = home.path("missing.pem");
    let missing = missing.to_str().unwrap();
    for (cert, key, status) in [
        (missing, key, 5),
        (cert, missing, 5),
        (text, key, 2),
        (cert, text, 2),
        (key, cert, 2),
        (old, key, 2),
        (cert, other, 2),
    ] {
        let words = ["agent", "add", "mutual", "https://agent.invalid", "--global"];
        home.call(&words).args(&["--client-cert", cert, "--client-key", key]).run().exit(status);
    }
    assert_eq!(home.call(&["agent", "list", "-ojson"]).ok().stdout().trim(), "[]");
}
