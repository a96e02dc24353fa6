//! `sessile auth login`, `refresh` and `check`, against a real authorization server.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::Value;
use testkit::{Home, OidcOptions, OidcServer};

use crate::{home, home_with};

/// A login that waits for a person, and the code that it shows.
fn waiting(
    home: &Home,
    server: &OidcServer,
    more: &[&str],
) -> (Child, BufReader<std::process::ChildStderr>, String) {
    let words =
        ["auth", "login", "corp", "--issuer", server.issuer(), "--client-id", OidcServer::PUBLIC_CLIENT];
    let scopes =
        ["--scope", "openid", "--scope", "offline_access", "--scope", "api:read", "--scope", "api:write"];
    let mut command = home.call(&words).args(&scopes).args(&["--wait", "2m", "-ojson"]).args(more).command();
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    let shown: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
    let code = shown["login"]["user_code"].as_str().unwrap_or_else(|| panic!("{line}")).to_owned();
    (child, lines, code)
}

/// A home that has logged in as ann.
fn logged_in(server: &OidcServer) -> Home {
    let home = home_with(&["staging", "prod"]);
    let (child, _lines, code) = waiting(&home, server, &[]);
    server.approve(&code, "ann");
    assert!(child.wait_with_output().unwrap().status.success());
    home
}

fn token_of(home: &Home, name: &str) -> String {
    home.call(&["context", "edit", "staging", "--env-credential", &format!("TOKEN={name}")]).ok();
    let run = ["run", "--context", "staging", "--", "printenv", "TOKEN"];
    home.call(&run).ok().stdout().trim().to_owned()
}

#[test]
fn a_person_confirms_a_code_and_the_token_works() {
    let server = OidcServer::start();
    let home = logged_in(&server);
    let one = home.call(&["auth", "show", "corp", "-ojson"]).ok().json();
    assert_eq!((one["kind"].as_str(), one["has_refresh_token"].as_bool()), (Some("oauth2"), Some(true)));
    assert_eq!(one["account"], "ann");
    assert_eq!(server.whoami(&token_of(&home, "corp")).as_deref(), Some("ann"));
    let status = home.call(&["status", "--credential", "corp", "-ojson"]).ok().json();
    assert_eq!((status["logged_in"].as_bool(), status["user"].as_str()), (Some(true), Some("ann")));
    assert!(status["token_expires"].is_string(), "{status}");
}

/// Tokens without an id token name no account; the introspection at the login does.
#[test]
fn introspection_names_the_account_once() {
    let server = OidcServer::start();
    let home = home();
    let login = |more: &[&str]| {
        let words = ["auth", "login", "corp", "--issuer", server.issuer(), "--client-id", "terminal"];
        let mut command =
            home.call(&words).args(&["--scope", "api:read", "--wait", "2m", "-ojson"]).args(more).command();
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let shown: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        server.approve(shown["login"]["user_code"].as_str().unwrap(), "ann");
        assert!(child.wait_with_output().unwrap().status.success());
    };
    let user = || {
        let status = home.call(&["status", "--credential", "corp", "-ojson"]).ok().json();
        assert_eq!(status["logged_in"], true, "{status}");
        status["user"].clone()
    };
    login(&[]);
    assert_eq!(user(), Value::Null);
    login(&["--introspect"]);
    assert_eq!(user(), "ann");
    drop(server);
    assert_eq!(user(), "ann", "status sends no request");
}

#[test]
fn a_person_can_say_no_and_nothing_is_kept() {
    let server = OidcServer::start();
    let home = home();
    let (child, mut lines, code) = waiting(&home, &server, &[]);
    server.deny(&code);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(8));
    let mut rest = String::new();
    lines.read_line(&mut rest).unwrap();
    assert!(rest.contains("LOGIN_REFUSED"), "{rest}");
    assert_eq!(home.call(&["auth", "list", "-ojson"]).ok().json(), serde_json::json!([]));
}

#[test]
fn login_without_a_terminal_requires_wait() {
    let server = OidcServer::start();
    let words = ["auth", "login", "corp", "--issuer", server.issuer(), "--client-id", "terminal", "-ojson"];
    assert_eq!(home().call(&words).run().exit(2).code(), "TERMINAL_REQUIRED");
    let short = home().call(&words).args(&["--wait", "1s"]).run().exit(10);
    assert!(short.stderr().contains("TIMED_OUT"), "{}", short.told());
}

#[test]
fn a_client_logs_in_as_itself_and_again_by_its_name_alone() {
    let server = OidcServer::start();
    let home = home_with(&["staging"]);
    home.write("secret", format!("{}\n", OidcServer::SECRET));
    let words =
        ["auth", "login", "robot", "--issuer", server.issuer(), "--client-id", OidcServer::SECRET_CLIENT];
    let more = ["--client-credentials", "--client-secret", "@secret", "--scope", "api:read"];
    home.call(&words).args(&more).ok();
    let first = token_of(&home, "robot");
    assert!(server.whoami(&first).is_some());
    home.call(&["auth", "login", "robot"]).ok();
    let second = token_of(&home, "robot");
    assert!(first != second && server.whoami(&second).is_some());
    home.write("secret", "wrong\n");
    let wrong = home.call(&words).args(&more).args(&["-ojson"]).run().exit(8);
    assert_eq!(wrong.code(), "LOGIN_REFUSED");
    assert_eq!(token_of(&home, "robot"), second, "a login that failed must leave what was there");
}

#[test]
fn expired_token_is_renewed_when_needed() {
    let server = OidcServer::start();
    let home = logged_in(&server);
    let first = token_of(&home, "corp");
    assert_eq!((token_of(&home, "corp"), server.counts().refresh_token), (first.clone(), 0));
    home.call(&["auth", "set", "corp", "--keep-secret", "--expires-at", "2020-01-01T00:00:00Z"]).ok();
    let second = token_of(&home, "corp");
    assert_ne!(first, second);
    assert_eq!(server.whoami(&second).as_deref(), Some("ann"));
    assert_eq!((token_of(&home, "corp"), server.counts().refresh_token), (second, 1));
    home.call(&["auth", "check", "corp"]).ok();
}

#[test]
fn a_renewal_that_fails_leaves_the_old_token() {
    let server = OidcServer::start();
    let home = logged_in(&server);
    let token = token_of(&home, "corp");
    let (issuer, renew) = (server.issuer().to_owned(), ["auth", "refresh", "corp", "-ojson"]);
    drop(server);
    let done = home.call(&renew).run().exit(12);
    assert_eq!(done.code(), "UNREACHABLE");
    assert_eq!(done.json_error()["retryable"], true);
    assert_eq!(token_of(&home, "corp"), token);
    // When its time is up too, that is the error, with the reason.
    home.call(&["auth", "set", "corp", "--keep-secret", "--expires-at", "2020-01-01T00:00:00Z"]).ok();
    let done = home.call(&["auth", "check", "corp", "-ojson"]).run().exit(8);
    let error = done.json_error();
    assert_eq!(error["code"], "CREDENTIALS_EXPIRED");
    // Nobody said no: it is worth another try.
    assert_eq!(error["fix_command"], "sessile auth refresh corp");
    assert!(error["message"].as_str().unwrap().contains("the renewal failed"), "{error}");
    assert!(!done.told().contains(&token) && error["message"].as_str().unwrap().contains(&issuer[7..]));
}

#[test]
fn one_login_serves_many_credentials_and_contexts() {
    let server = OidcServer::start();
    let home = logged_in(&server);
    home.call(&["auth", "set", "reader", "--login", "corp", "--scope", "api:read"]).ok();
    home.call(&["auth", "set", "writer", "--login", "corp", "--scope", "api:write"]).ok();
    home.call(&["context", "edit", "prod", "--env-credential", "TOKEN=writer"]).ok();
    let reader = token_of(&home, "reader");
    let writer =
        home.call(&["run", "--context", "prod", "--", "printenv", "TOKEN"]).ok().stdout().trim().to_owned();
    assert_ne!(reader, writer);
    for token in [&reader, &writer] {
        assert_eq!(server.whoami(token).as_deref(), Some("ann"));
    }
    // The refresh token has rotated twice by now, and the login goes on.
    home.call(&["auth", "refresh", "corp"]).ok();
    home.call(&["auth", "refresh", "reader"]).ok();
    assert_eq!(server.counts().refused_refresh_token, 0);
    let scopes = home.call(&["auth", "show", "reader", "-ojson"]).ok().json()["scopes"].clone();
    assert_eq!(scopes, serde_json::json!(["api:read"]));
    let chain = home.call(&["auth", "set", "third", "--login", "reader", "-ojson"]).run().exit(8);
    assert_eq!(chain.code(), "CREDENTIAL_UNUSABLE");
    let login = token_of(&home, "corp");
    assert!(server.whoami(&login).is_some());
    // Another scope needs another token.
    home.call(&["auth", "set", "reader", "--keep-secret", "--scope", "api:write"]).ok();
    assert_ne!(token_of(&home, "reader"), reader);
    // What is typed does not take the place of a login by mistake.
    let typed = home.call(&["auth", "set", "corp", "--secret-stdin", "-ojson"]).stdin("x").run().exit(8);
    assert_eq!(typed.code(), "CREDENTIAL_UNUSABLE");
    let out = home.call(&["auth", "logout", "corp", "--yes", "-ojson"]).ok().json();
    assert_eq!(out["logged_out"], serde_json::json!(["corp", "reader", "writer"]));
    assert_eq!(server.whoami(&login), None, "the server was to take the token back");
}

#[test]
fn token_of_one_server_is_never_sent_to_another() {
    let (first, second) = (OidcServer::start(), OidcServer::start());
    let home = home();
    home.write("secret", format!("{}\n", OidcServer::SECRET));
    let login = ["auth", "login", "robot", "--client-id", OidcServer::SECRET_CLIENT, "--client-credentials"];
    home.call(&login).args(&["--issuer", first.issuer(), "--client-secret", "@secret"]).ok();
    // The secret is known to the first; for the second it is asked for, and nobody is there.
    let other = home.call(&login).args(&["--issuer", second.issuer(), "-ojson"]).run().exit(2);
    assert_eq!(other.code(), "TERMINAL_REQUIRED");
    let counts = second.counts();
    assert_eq!((counts.client_credentials, counts.refused_client_credentials), (0, 0));
    home.call(&["auth", "login", "robot"]).ok();
}

#[test]
fn a_logout_while_a_token_is_renewed_stays_a_logout() {
    let server = OidcServer::with(&OidcOptions { delay_millis: 1500, ..OidcOptions::default() });
    let home = logged_in(&server);
    home.call(&["auth", "set", "corp", "--keep-secret", "--expires-at", "2020-01-01T00:00:00Z"]).ok();
    let mut check = home.call(&["auth", "check", "corp"]).command();
    let check = check.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let lock = home.path(".local/state/sessile/vault/renewing/corp");
    crate::eventually("the renewal", || lock.exists());
    home.call(&["auth", "clear", "corp", "--yes"]).ok();
    let output = check.wait_with_output().unwrap();
    assert!(!output.status.success());
    assert_eq!(home.call(&["auth", "list", "-ojson"]).ok().json(), serde_json::json!([]));
}

#[test]
fn check_sends_a_credential_to_allowed_servers_only() {
    let server = OidcServer::start();
    let home = logged_in(&server);
    let url = server.url("/whoami");
    let check = |more: &[&str]| home.call(&["auth", "check", "corp", "--url", &url, "-ojson"]).args(more);
    let refused = check(&[]).run().exit(7);
    assert_eq!(refused.code(), "SITE_REFUSED");
    home.call(&["auth", "set", "corp", "--keep-secret", "--site", server.issuer()]).ok();
    assert_eq!(check(&[]).ok().json()["credentials"][0]["status"], 200);
    home.call(&["auth", "set", "bad", "--secret-stdin", "--site", server.issuer()]).stdin("nonsense").ok();
    let bad = home.call(&["auth", "check", "bad", "--url", &url, "-ojson"]).run().exit(8);
    assert_eq!(bad.code(), "CREDENTIAL_REJECTED");
    home.write_private("token", token_of(&home, "corp"));
    let call = home.call(&["auth", "check", "--url", &url, "-ojson"]).env("SESSILE_TOKEN_FILE", "token").ok();
    assert_eq!(call.json()["credentials"][0]["status"], 200);
    let plain = home
        .call(&["auth", "check", "--url", "http://server.invalid/x", "-ojson"])
        .env("SESSILE_TOKEN_FILE", "token");
    assert_eq!(plain.run().exit(7).code(), "SITE_REFUSED");
}

#[test]
fn logout_revokes_the_access_token_after_a_failed_refresh() {
    let server = OidcServer::with(&OidcOptions { failed_revocations: 1, ..OidcOptions::default() });
    let home = logged_in(&server);
    let token = token_of(&home, "corp");
    let done = home.call(&["auth", "logout", "corp", "--yes"]).ok();
    assert!(done.stderr().contains("503"), "{}", done.told());
    assert_eq!(server.whoami(&token), None);
}
