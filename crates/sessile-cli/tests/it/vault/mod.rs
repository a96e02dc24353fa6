//! What must hold for the vault whatever happens: nothing leaks, nothing is lost, nothing is overwritten.

mod account;
mod auth;
mod auth_login;
mod backends;
mod canary;
mod certificates;
mod crowd;
mod damage;
mod kills;
mod refusals;
mod secret_search;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::sync::Barrier;

use testkit::{Call, CallResult, Home, OidcServer};

/// How many processes are at it at the same time.
const CROWD: usize = 50;

/// A time that is over.
const LONG_AGO: &str = "2020-01-01T00:00:00Z";

/// Where a vault's files are.
const DIR: &str = ".local/state/sessile/vault";

/// Puts a secret in.
fn set(home: &Home, name: &str, secret: &str) -> Call {
    home.call(&["auth", "set", name, "--secret-stdin"]).stdin(secret)
}

/// A context that gives credentials to commands, as the variables of these names.
fn bind(home: &Home, context: &str, variables: &[(&str, &str)]) {
    let lines =
        variables.iter().map(|(name, credential)| format!("{name} = {{ credential = \"{credential}\" }}\n"));
    let text: String = std::iter::once("[env]\n".to_owned()).chain(lines).collect();
    home.write(format!(".config/sessile/contexts/{context}.toml"), text);
}

/// A command that prints variables of a context, a line for each.
fn printed(home: &Home, context: &str, variables: &[&str]) -> Call {
    home.call(&["run", "--context", context, "--", "printenv"]).args(variables)
}

/// The secrets of these credentials, as commands get them. Whoever compares them knows what was put in.
fn secrets(home: &Home, names: &[String]) -> BTreeMap<String, String> {
    if names.is_empty() {
        return BTreeMap::new();
    }
    let variables: Vec<String> = (0..names.len()).map(|number| format!("SECRET_{number}")).collect();
    let variables: Vec<&str> = variables.iter().map(String::as_str).collect();
    let pairs: Vec<(&str, &str)> = variables.iter().copied().zip(names.iter().map(String::as_str)).collect();
    bind(home, "looking", &pairs);
    let lines = printed(home, "looking", &variables).ok().stdout();
    assert_eq!(lines.lines().count(), names.len());
    names.iter().cloned().zip(lines.lines().map(str::to_owned)).collect()
}

/// The credentials there are, as `auth list` has them, by name.
fn listed(done: &CallResult) -> BTreeMap<String, serde_json::Value> {
    let all = done.json();
    let all = all.as_array().expect("a list").iter();
    all.map(|one| (one["name"].as_str().expect("a name").to_owned(), one.clone())).collect()
}

fn list(home: &Home) -> Call {
    home.call(&["auth", "list", "--limit", "1000", "--output", "json"])
}

/// Does something in many threads that begin at the same instant; what each returns, in order.
fn together<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let begin = Barrier::new(count);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|number| {
                let (begin, work) = (&begin, &work);
                scope.spawn(move || {
                    begin.wait();
                    work(number)
                })
            })
            .collect();
        let ended: Vec<_> = threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        ended.into_iter().map(|one| one.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// The flags with which a person logs in at a server, and may be away for long.
fn by_device(server: &OidcServer) -> Vec<String> {
    let flags = ["--issuer", server.issuer(), "--client-id", OidcServer::PUBLIC_CLIENT, "--wait", "3m"];
    let scopes =
        ["openid", "offline_access", "api:read", "api:write"].iter().flat_map(|scope| ["--scope", scope]);
    flags.into_iter().chain(scopes).map(str::to_owned).collect()
}

/// The flags with which a client logs in for itself. Its secret is on standard input.
fn by_client(server: &OidcServer) -> Vec<String> {
    let flags = ["--issuer", server.issuer(), "--client-id", OidcServer::SECRET_CLIENT];
    flags.into_iter().chain(["--client-credentials", "--client-secret", "-"]).map(str::to_owned).collect()
}

/// Logs in while a person elsewhere says yes; everything that was printed.
fn log_in(call: Call, server: &OidcServer) -> String {
    let mut command = call.args(&["--output", "json"]).command();
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    let mut approved = false;
    let mut line = String::new();
    while stderr.read_line(&mut line).unwrap() > 0 {
        let told: serde_json::Value = serde_json::from_str(&line).unwrap();
        if let (false, Some(code)) = (approved, told["login"]["user_code"].as_str()) {
            server.approve(code, "somebody");
            approved = true;
        }
        said.push_str(&line);
        line.clear();
    }
    let mut stdout = String::new();
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}\n{stdout}\n{said}");
    format!("{stdout}{said}")
}

/// Logs in at a server by device code.
fn device_login(home: &Home, server: &OidcServer, name: &str) -> String {
    let flags = by_device(server);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    log_in(home.call(&["auth", "login", name]).args(&flags), server)
}

/// Makes the vault believe that a credential's time is up.
fn expire(home: &Home, name: &str) {
    home.call(&["auth", "set", name, "--keep-secret", "--expires-at", LONG_AGO]).ok();
}

/// Every file of the vault with its bytes. What those who wait for a renewal tell each other is none of it.
fn files(home: &Home) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let (dir, notes) = (home.path(DIR), home.path(DIR).join("renewing"));
    let is_kept = |path: &std::path::Path| path.starts_with(&dir) && !path.starts_with(&notes);
    home.tree().into_iter().filter(|(path, _)| is_kept(path)).collect()
}
