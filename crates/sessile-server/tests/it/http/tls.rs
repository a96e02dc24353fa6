//! TLS.

use std::process::Command;
use std::sync::Arc;

use sessile_server::serve::{Log, Options, ServeError, Server, TlsFiles};
use tokio_rustls::rustls::crypto::ring;

use super::{server, started};

/// A certificate for this machine.
fn certificate(dir: &std::path::Path) -> TlsFiles {
    let made = Command::new("openssl")
        .args(
            "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout key.pem -out cert.pem"
                .split(' '),
        )
        .args(["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"])
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    TlsFiles { cert: dir.join("cert.pem"), key: dir.join("key.pem") }
}

#[test]
fn service_with_a_certificate_speaks_tls() {
    let dir = tempfile::tempdir().unwrap();
    let tls = certificate(dir.path());
    let pem = std::fs::read(&tls.cert).unwrap();
    let server = started(Options { tls: Some(tls), ..Options::default() });
    assert!(!server.raw(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").starts_with("HTTP/1.1 200"));
    let config = ureq::tls::TlsConfig::builder()
        .root_certs(ureq::tls::RootCerts::from(vec![ureq::tls::Certificate::from_pem(&pem).unwrap()]))
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .build();
    let agent = ureq::Agent::config_builder().tls_config(config).build().new_agent();
    let mut reply = agent.get(format!("https://{}/healthz", server.address)).call().unwrap();
    assert_eq!(reply.body_mut().read_to_string().unwrap(), r#"{"status":"ok"}"#);
}

#[test]
fn invalid_certificate_files_are_named() {
    let server = server();
    let dir = tempfile::tempdir().unwrap();
    let good = certificate(dir.path());
    let bind = |tls: TlsFiles| {
        let options = Options {
            listen: "127.0.0.1:0".parse().unwrap(),
            tls: Some(tls),
            log: Log::Off,
            ..Options::default()
        };
        server.block_on(Server::bind(server.db.clone(), options, Box::new(std::io::sink()))).err()
    };
    for (cert, key, named) in [
        (dir.path().join("none"), good.key.clone(), dir.path().join("none")),
        (good.key.clone(), good.key.clone(), good.key.clone()),
        (good.cert.clone(), good.cert.clone(), good.cert.clone()),
    ] {
        let Some(ServeError::Tls(path, _)) = bind(TlsFiles { cert, key }) else {
            panic!("invalid TLS files were accepted")
        };
        assert_eq!(path, named);
    }
    assert!(bind(good).is_none());
}
