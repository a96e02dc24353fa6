//! A `sessile serve` of its own, in a throwaway home.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use testkit::Home;

/// A running service; it ends with the value.
pub(crate) struct ProbedService {
    child: Child,
    pub(crate) url: String,
    /// A file with a token of each user.
    pub(crate) tokens: String,
}

impl ProbedService {
    /// One with so many users.
    pub(crate) fn start(home: &Home, users: u32, flags: &[&str]) -> Self {
        ProbedService::trusting(home, users, flags, None)
    }

    /// One that trusts other authorities than the system does.
    pub(crate) fn trusting(home: &Home, users: u32, flags: &[&str], authority: Option<&Path>) -> Self {
        let store = home.path("service.db");
        let store = store.to_str().unwrap();
        let mut tokens = String::new();
        for user in 1..=users {
            let name = format!("u{user}");
            home.call(&["user", "add", &name, "--store", store]).ok();
            let made = home.call(&["user", "token", "create", &name, "--store", store, "-ojson"]).ok().json();
            tokens.push_str(made["token"].as_str().unwrap_or_else(|| panic!("{made}")));
            tokens.push('\n');
        }
        let file = home.write("tokens", tokens);
        let mut child = Command::new(home.program())
            .args(["serve", "--listen", "127.0.0.1:0", "--store", store, "--log", "off"])
            .args(flags)
            .env_clear()
            .env("HOME", home.dir())
            .envs(authority.map(|authority| ("SSL_CERT_FILE", authority)))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.strip_prefix("serving on ").and_then(|rest| rest.split_whitespace().next());
        let url = url.unwrap_or_else(|| panic!("{line}")).to_owned();
        ProbedService { child, url, tokens: path(&file) }
    }
}

fn path(file: &Path) -> String {
    file.to_str().unwrap().to_owned()
}

impl Drop for ProbedService {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
