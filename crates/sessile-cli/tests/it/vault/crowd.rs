//! Fifty processes at once: none of them loses, mixes up or spends twice what another one needs.

use std::collections::BTreeSet;

use testkit::{CallResult, Home, OidcOptions, OidcServer};

use super::{
    CROWD, bind, by_client, device_login, expire, files, list, listed, printed, secrets, set, together,
};
use crate::home;

/// So many of a crowd have a login, the others a command.
const LOGINS: usize = 15;

/// Tokens that outlive the slowest crowd.
fn server(delay_millis: u64) -> OidcServer {
    OidcServer::with(&OidcOptions { access_seconds: 3600, delay_millis, ..OidcOptions::default() })
}

/// What each process has of its own: a secret, and a login or a command whose answer is kept.
fn own_life(home: &Home, server: &OidcServer, number: usize) -> [String; 2] {
    let (context, token, other) = (format!("p{number}"), format!("t{number}"), format!("o{number}"));
    bind(home, &context, &[("T", &token), ("O", &other)]);
    let read = || {
        let lines = printed(home, &context, &["T", "O"]).ok().stdout();
        let lines: Vec<String> = lines.lines().map(str::to_owned).collect();
        <[String; 2]>::try_from(lines).expect("two lines")
    };
    let asks_a_command = number >= LOGINS;
    let answer = format!("answer{number}");
    set(home, &token, &format!("first of {number}")).ok();
    if asks_a_command {
        home.write(&answer, format!("asked {number}"));
        home.call(&["auth", "set", &other, "--cache", "1h", "--command", &format!("cat {answer}")]).ok();
    } else {
        let flags = by_client(server);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        home.call(&["auth", "login", &other]).args(&flags).stdin(OidcServer::SECRET).ok();
    }
    let before = read();
    assert_eq!(before[0], format!("first of {number}"));

    set(home, &token, &format!("second of {number}")).ok();
    if asks_a_command {
        assert_eq!(before[1], format!("asked {number}"));
        home.write(&answer, format!("asked {number} again"));
    }
    assert_eq!(
        read(),
        [format!("second of {number}"), before[1].clone()],
        "a cached output is not requested again"
    );
    home.call(&["auth", "refresh", &other]).ok();
    let shown = home.call(&["auth", "show", &token, "--output", "json"]).ok();
    assert_eq!(shown.json()["name"], token.as_str());
    let after = read();
    assert_eq!(after[0], format!("second of {number}"));
    assert_ne!(after[1], before[1], "a renewed token differs");
    assert!(!asks_a_command || after[1] == format!("asked {number} again"));
    after
}

#[test]
fn fifty_processes_with_credentials_of_their_own_lose_none() {
    let home = home();
    let server = server(0);
    let had = together(CROWD, |number| own_life(&home, &server, number));

    let others: BTreeSet<&str> = had.iter().map(|[_, other]| other.as_str()).collect();
    assert_eq!(others.len(), CROWD, "none has another's");
    let names: Vec<String> = (0..CROWD).flat_map(|n| [format!("t{n}"), format!("o{n}")]).collect();
    let found: BTreeSet<String> = listed(&list(&home).ok()).into_keys().collect();
    assert_eq!(found, names.iter().cloned().collect());
    let kept = secrets(&home, &names);
    for (number, [token, other]) in had.iter().enumerate() {
        assert_eq!((&kept[&format!("t{number}")], &kept[&format!("o{number}")]), (token, other));
        if number < LOGINS {
            assert_eq!(server.whoami(other).as_deref(), Some(OidcServer::SECRET_CLIENT));
        }
    }
    let counts = server.counts();
    assert_eq!((counts.client_credentials, counts.refused_client_credentials), (2 * LOGINS as u64, 0));
}

#[test]
fn fifty_processes_that_find_one_token_expired_ask_for_one() {
    let home = home();
    let server = server(300);
    device_login(&home, &server, "corp");
    bind(&home, "work", &[("T", "corp")]);
    let old = printed(&home, "work", &["T"]).ok().stdout();
    for round in 1..=2 {
        expire(&home, "corp");
        let got: BTreeSet<String> = together(CROWD, |number| {
            // Some of them only look whether they could.
            if number % 5 == 0 {
                let checked = home.call(&["auth", "check", "corp", "--output", "json"]).ok().json();
                assert_eq!(checked["credentials"][0]["valid"], true);
            }
            printed(&home, "work", &["T"]).ok().stdout()
        })
        .into_iter()
        .collect();
        let counts = server.counts();
        assert_eq!((counts.refresh_token, counts.refused_refresh_token), (round, 0));
        assert_eq!(got.len(), 1, "all have the same one");
        let token = got.first().unwrap();
        assert_ne!(*token, old);
        assert_eq!(server.whoami(token.trim()).as_deref(), Some("somebody"));
    }
}

#[test]
fn fifty_processes_use_each_refresh_token_once() {
    const SHARING: usize = 5;
    let home = home();
    let server = server(50);
    device_login(&home, &server, "corp");
    let name = |number: usize| format!("a{}", number % SHARING);
    for number in 0..SHARING {
        let scope = ["api:read", "api:write"][number % 2];
        home.call(&["auth", "set", &name(number), "--login", "corp", "--scope", scope]).ok();
        bind(&home, &name(number), &[("T", &name(number))]);
    }
    bind(&home, "corp", &[("T", "corp")]);
    expire(&home, "corp");
    let got: BTreeSet<(String, String)> = together(CROWD, |number| {
        let name = if number % 10 == 9 { "corp".to_owned() } else { name(number) };
        let token = printed(&home, &name, &["T"]).ok().stdout();
        (name, token)
    })
    .into_iter()
    .collect();
    let counts = server.counts();
    assert_eq!((counts.refresh_token, counts.refused_refresh_token), (SHARING as u64 + 1, 0));
    assert_eq!(got.len(), SHARING + 1, "one token for each credential");
    for (_, token) in &got {
        assert_eq!(server.whoami(token.trim()).as_deref(), Some("somebody"));
    }
    // The last one that came is the login's: it goes on from there.
    home.call(&["auth", "refresh", "corp", "a0"]).ok();
    assert_eq!(server.counts().refused_refresh_token, 0);
}

/// The error of a credential whose time is up and that could not be renewed.
#[track_caller]
fn assert_expired(done: &CallResult, fix: &str) {
    let error = done.json_error();
    assert_eq!(error["code"], "CREDENTIALS_EXPIRED", "{error}");
    assert!(error["expired_at"].as_str().is_some_and(|end| end.starts_with("2020-01-01")), "{error}");
    assert_eq!(error["variable"], "SESSILE_CREDENTIAL_CORP");
    assert_eq!(error["fix_command"], fix);
}

/// Everyone is told, and the vault is as it was.
fn all_are_told(home: &Home, fix: &str) {
    let before = files(home);
    together(CROWD, |number| {
        if number % 2 == 0 {
            assert_expired(&home.call(&["auth", "check", "corp", "--output", "json"]).run().exit(8), fix);
        } else {
            assert_expired(&printed(home, "work", &["T"]).env("SESSILE_OUTPUT", "json").run().exit(125), fix);
        }
    });
    assert!(files(home) == before, "the old one stays as it is");
}

#[test]
fn fifty_processes_keep_the_old_token_if_the_server_fails() {
    let home = home();
    let server = server(0);
    device_login(&home, &server, "corp");
    bind(&home, "work", &[("T", "corp")]);
    let token = printed(&home, "work", &["T"]).ok().stdout();
    // A copy of the vault as it is now comes back when its refresh token is spent: the server refuses that.
    let copies = files(&home);
    home.call(&["auth", "refresh", "corp"]).ok();
    for (path, bytes) in &copies {
        if path.is_file() {
            std::fs::write(path, bytes).unwrap();
        }
    }
    assert_eq!(printed(&home, "work", &["T"]).ok().stdout(), token);
    expire(&home, "corp");
    all_are_told(&home, "sessile auth login corp");
    let counts = server.counts();
    assert_eq!(counts.refresh_token, 1, "no token was issued");
    // Those who waited are told what the others were.
    assert!((1..50).contains(&counts.refused_refresh_token), "{}", counts.refused_refresh_token);

    drop(server);
    // Nobody said no: it is worth another try.
    all_are_told(&home, "sessile auth refresh corp");
    home.call(&["auth", "set", "corp", "--keep-secret", "--expires-at", "2099-01-01T00:00:00Z"]).ok();
    assert_eq!(printed(&home, "work", &["T"]).ok().stdout(), token, "the old one is there");
}
