//! What is in `deploy/` fits the program, and is what it says it is.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::CommandFactory;
use sessile::args::parse_duration;
use sessile_cli::cli::Cli;

use crate::{repository, yaml_scalars};

/// How long the service may take to end beyond `--grace`.
const AFTER_GRACE: Duration = Duration::from_secs(16);

const UNITS: [&str; 2] = ["sessile.service", "sessile@.service"];

#[track_caller]
fn assert_parses(place: &str, words: &[&str]) {
    if let Err(error) = Cli::command().try_get_matches_from(words) {
        panic!("{place}: {words:?}\n{error}");
    }
}

/// Fails unless whoever kills the service waits for it.
#[track_caller]
fn assert_patient(place: &str, words: &[&str], patience: Duration) {
    let grace = words
        .iter()
        .zip(words.iter().skip(1))
        .find_map(|(flag, value)| flag.strip_prefix("--grace=").or((*flag == "--grace").then_some(value)))
        .or_else(|| words.last().and_then(|word| word.strip_prefix("--grace=")));
    let grace = parse_duration(grace.unwrap()).unwrap();
    assert!(patience > grace + AFTER_GRACE, "{place}: {patience:?} for {grace:?} of grace");
}

fn value<'t>(unit: &'t str, key: &str) -> &'t str {
    unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).unwrap()
}

#[test]
fn units_start_the_installed_program() {
    for name in UNITS {
        let unit = repository::read(format!("deploy/{name}"));
        let start = value(&unit, "ExecStart").replace("%i", "8737");
        let words: Vec<&str> = start.split(' ').collect();
        assert_eq!(words[0], "/usr/local/bin/sessile");
        assert_parses(name, &words);
        let seconds = value(&unit, "TimeoutStopSec").parse().unwrap();
        assert_patient(name, &words, Duration::from_secs(seconds));
    }
}

#[test]
fn systemd_takes_the_units() {
    // Where there is no systemd they are of no use either.
    let Some(analyze) = testkit::find_tool("systemd-analyze") else { return };
    let home = crate::home();
    let program = home.program().display().to_string();
    for name in UNITS {
        let unit = repository::read(format!("deploy/{name}")).replace("/usr/local/bin/sessile", &program);
        let file = name.replace('@', "@8737");
        home.write(&file, &unit);
        let verified =
            Command::new(&analyze).args(["verify", "--man=no"]).arg(home.path(&file)).output().unwrap();
        let said = String::from_utf8_lossy(&verified.stderr).into_owned();
        let about: Vec<&str> = said.lines().filter(|line| line.contains("sessile")).collect();
        assert!(verified.status.success() && about.is_empty(), "{name}: {said}");
    }
}

#[test]
fn the_compose_file_fits_the_program_and_the_proxy() {
    let scalars = yaml_scalars(&repository::read("deploy/compose.yaml"));
    let at = scalars.iter().position(|word| word == "serve").unwrap();
    let flags = scalars[at + 1..].iter().take_while(|word| word.starts_with("--"));
    let words: Vec<&str> = ["sessile", "serve"].into_iter().chain(flags.map(String::as_str)).collect();
    assert!(words.len() > 5, "the search has gone blind: {words:?}");
    assert_parses("compose.yaml", &words);
    let after = |key: &'static str| {
        scalars
            .iter()
            .zip(&scalars[1..])
            .filter(move |(word, _)| *word == key)
            .map(|(_, value)| value.as_str())
    };
    assert_patient(
        "compose.yaml",
        &words,
        parse_duration(after("stop_grace_period").next().unwrap()).unwrap(),
    );
    // Where images come from is for whoever runs it to say.
    assert!(after("image").count() >= 3 && after("image").all(|image| !image.contains('/')));

    let proxy = repository::read("deploy/nginx.conf");
    let servers: Vec<&str> = proxy
        .lines()
        .filter_map(|line| line.trim().strip_prefix("server ")?.split(':').next())
        .filter(|name| *name != "{")
        .collect();
    assert_eq!(servers.len(), 3, "{servers:?}");
    for server in servers {
        assert!(scalars.iter().any(|word| word == server), "service {server} not found");
    }
    assert_eq!(proxy.matches('{').count(), proxy.matches('}').count());
}

/// nginx with the sample configuration, without TLS and with one upstream.
struct Proxy {
    process: Child,
    address: SocketAddr,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Proxy {
    fn start(home: &testkit::Home, upstream: SocketAddr) -> Self {
        let nginx = testkit::require_tool("nginx");
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let dir = home.path("proxy");
        std::fs::create_dir(&dir).unwrap();
        let mut conf = String::new();
        for line in repository::read("deploy/nginx.conf").lines() {
            match line.trim() {
                line if line.starts_with("ssl_") => {}
                line if line.starts_with("server sessile-1:") => conf += &format!("server {upstream};\n"),
                line if line.starts_with("server sessile-") => {}
                "listen 443 ssl;" => conf += &format!("listen {address};\n"),
                "http {" => {
                    conf += "http {\naccess_log off;\n";
                    for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
                        conf += &format!("{kind}_temp_path {}/{kind};\n", dir.display());
                    }
                }
                line => conf += &format!("{line}\n"),
            }
        }
        let file = home.write("proxy/nginx.conf", conf);
        // One process: nothing is left when it is killed.
        let global =
            format!("daemon off; master_process off; pid {0}/pid; error_log {0}/log;", dir.display());
        let process = Command::new(nginx)
            .arg("-p")
            .arg(&dir)
            .arg("-c")
            .arg(&file)
            .args(["-g", &global])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let began = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(began.elapsed() < Duration::from_secs(10), "nginx did not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Proxy { process, address }
    }

    /// What is answered to a request that ends the connection.
    fn answer(&self, head: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(format!("{head}\r\nconnection: close\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }
}

#[test]
fn proxy_passes_the_port_and_returns_problem_json() {
    let home = crate::home();
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = Proxy::start(&home, upstream.local_addr().unwrap());
    let service = std::thread::spawn(move || {
        let (mut stream, _) = upstream.accept().unwrap();
        let mut head = [0; 4096];
        let read = stream.read(&mut head).unwrap();
        let body = r#"{"code":"SESSION_NOT_FOUND"}"#;
        write!(stream, "HTTP/1.1 404 Not Found\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
        String::from_utf8_lossy(&head[..read]).into_owned()
    });
    let told = proxy.answer("GET /v1/sessions/x HTTP/1.1\r\nhost: service.example:8443");
    assert!(told.contains("SESSION_NOT_FOUND"), "an error of the service is passed on: {told}");
    let head = service.join().unwrap();
    assert!(head.to_ascii_lowercase().contains("\r\nhost: service.example:8443\r\n"), "{head}");

    // Nobody listens there any more.
    for (head, status, code) in [
        ("GET /v1/me HTTP/1.1\r\nhost: x", 502, "UNREACHABLE"),
        ("GET /metrics HTTP/1.1\r\nhost: x", 404, "USAGE"),
        ("POST /v1/sessions HTTP/1.1\r\nhost: x\r\ncontent-length: 9999999", 413, "INVALID_VALUE"),
        ("GET / HTTP/1.1\r\nhost: x\r\nhost: y", 400, "USAGE"),
    ] {
        let told = proxy.answer(head);
        assert!(told.starts_with(&format!("HTTP/1.1 {status} ")), "{head}: {told}");
        let (headers, body) = told.split_once("\r\n\r\n").unwrap();
        assert!(headers.to_ascii_lowercase().contains("content-type: application/problem+json"), "{headers}");
        let problem: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!((problem["status"].as_i64(), problem["code"].as_str()), (Some(status), Some(code)));
        for member in ["type", "title", "detail", "retryable", "retry_after_ms"] {
            assert!(problem.get(member).is_some(), "{problem}");
        }
    }
}

#[test]
fn names_of_the_tarball_agree_in_all_packages() {
    let version = env!("CARGO_PKG_VERSION");
    let script = repository::read("scripts/package");
    assert!(script.contains("local name=sessile-$version-$target\n"), "the tarball has another name");
    let manifest = repository::read("crates/sessile-cli/Cargo.toml");
    assert!(manifest.contains("/sessile-{ version }-{ target }.tar.gz\""), "binstall looks for another name");
    for (file, name) in [
        ("packaging/install.sh", "name=sessile-$VERSION-$target\n"),
        ("packaging/homebrew/sessile.rb", "/v@VERSION@/sessile-@VERSION@-@TARGET@.tar.gz\""),
    ] {
        assert!(repository::read(file).contains(name), "{file}: another name of the tarball");
    }
    for file in ["README.md", "docs/guide/install.md"] {
        let text = repository::read(file);
        assert!(text.contains(&format!("sessile_{version}_amd64.deb")), "{file}: another version");
    }
}
