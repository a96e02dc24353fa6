//! `auth login --server`: getting a token, and who has none.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use serde_json::Value;

use super::{Machine, Service, Store, ann};
use crate::home;

#[test]
fn token_from_stdin_is_stored_for_its_server_only() {
    let home = home();
    let store = Store::file(&home);
    let token = store.user("ann");
    let (service, other) = (Service::start(&store), Service::start(&store));
    let machine = Machine::new(&service, &token);
    let kept = machine.json_here(&["auth", "list"]);
    assert_eq!(kept[0]["account"], "ann", "{kept}");
    assert_eq!(kept[0]["agents"], serde_json::json!([machine.url]), "{kept}");
    machine.call(&["session", "list"]).ok();
    let elsewhere = format!("http://{}", other.address);
    let done =
        machine.home.call(&["session", "list", "--server", &elsewhere, "--output", "json"]).run().exit(8);
    let error = done.json_error();
    assert_eq!(error["code"], "CREDENTIAL_REJECTED", "{error}");
    assert_eq!(error["fix_command"], format!("sessile auth login --server {elsewhere}"), "{error}");
    // Neither a file nor what is told holds it.
    let secret = token.strip_prefix("sst_").unwrap();
    for (path, content) in machine.home.tree() {
        assert!(!content.windows(secret.len()).any(|part| part == secret.as_bytes()), "{}", path.display());
    }
    let told = machine.call(&["session", "list", "--verbose"]).ok().told();
    assert!(!told.contains(secret), "{told}");
}

#[test]
fn rejected_token_is_not_stored() {
    let home = home();
    let store = Store::file(&home);
    let service = Service::start(&store);
    let url = format!("http://{}", service.address);
    let machine = crate::home();
    let login = ["auth", "login", "--server", &url, "--token-stdin", "--output", "json"];
    let done = machine.call(&login).stdin("sst_wrong").run().exit(8);
    assert_eq!(done.code(), "CREDENTIAL_REJECTED");
    assert!(!done.told().contains("sst_wrong"), "{}", done.told());
    assert_eq!(machine.call(&["auth", "list", "--output", "json"]).ok().json(), serde_json::json!([]));
    // One that is given for the call alone wins, and is wrong in the same way.
    let file = machine.write_private("token", "sst_wrong");
    let done = machine
        .call(&["session", "list", "--server", &url, "--output", "json"])
        .env("SESSILE_TOKEN_FILE", file)
        .run()
        .exit(8);
    assert_eq!(done.code(), "CREDENTIAL_REJECTED");
}

#[test]
fn revoked_token_is_reported_with_a_login_hint() {
    let home = home();
    let store = Store::file(&home);
    let token = store.user("ann");
    let service = Service::start(&store);
    let machine = Machine::new(&service, &token);
    store.call(&["user", "disable", "ann"]).ok();
    let done = machine.call(&["lock", "list", "--output", "json"]).run().exit(8);
    let error = done.json_error();
    assert_eq!(error["code"], "CREDENTIAL_REJECTED", "{error}");
    assert!(error["hint"].as_str().unwrap().contains("auth login --server"), "{error}");
}

#[test]
fn unreachable_server_is_reported() {
    let home = home();
    let store = Store::file(&home);
    let token = store.user("ann");
    let mut service = Service::start(&store);
    let machine = Machine::new(&service, &token);
    service.kill();
    for words in
        [&["session", "list"][..], &["lock", "list"], &["session", "state", "get", "k", "--session", "s"]]
    {
        let done = machine.call(words).args(&["--output", "json"]).run().exit(12);
        assert_eq!(done.code(), "UNREACHABLE", "{words:?}");
    }
    let done = machine.call(&["lock", "run", "l", "--", "true"]).args(&[]).run().exit(125);
    assert!(done.stderr().contains("cannot reach"), "{}", done.told());
}

#[test]
fn insecure_server_address_is_refused() {
    let home = home();
    for url in ["http://sessile.example", "ftp://127.0.0.1", "sessile.example"] {
        home.call(&["session", "list", "--server", url]).run().exit(2);
        home.call(&["auth", "login", "--server", url, "--token-stdin"]).stdin("sst_x").run().exit(2);
    }
    // Nor can it be set, so that the mistake is known where it is made.
    for url in ["nonsense", "http://sessile.example", "ftp://127.0.0.1", "https://ann:pw1@sessile.example"] {
        let done = home.call(&["config", "set", "server", url, "--global", "--output", "json"]).run().exit(2);
        assert_eq!(done.code(), "INVALID_VALUE", "{url}");
        assert!(!done.told().contains("pw1"), "{}", done.told());
        let done =
            home.call(&["session", "list", "--output", "json"]).env("SESSILE_SERVER", url).run().exit(2);
        assert_eq!(done.code(), "INVALID_VALUE", "{url}");
        assert!(!done.told().contains("pw1"), "{}", done.told());
        let file = home.write("bad.toml", format!("server = \"{url}\"\n")).display().to_string();
        let done = home.call(&["session", "list", "--config", &file, "--output", "json"]).run().exit(1);
        assert_eq!(done.code(), "FILE_VALUE", "{url}");
        assert!(!done.told().contains("pw1"), "{}", done.told());
    }
    for url in
        ["", "https://sessile.example/x", "http://127.0.0.1:8737", "http://[::1]:9", "http://localhost:9"]
    {
        home.call(&["config", "set", "server", url, "--global"]).ok();
    }
    home.call(&["config", "unset", "server", "--global"]).ok();
    // Where nobody sits at a terminal, the wait must be said.
    let done =
        home.call(&["auth", "login", "--server", "http://127.0.0.1:9", "--output", "json"]).run().exit(2);
    assert_eq!(done.code(), "TERMINAL_REQUIRED");
}

#[test]
fn server_setting_has_an_origin_and_is_undone() {
    let home = home();
    let (_service, machine) = ann(&home);
    machine.home.call(&["config", "set", "server", &machine.url, "--global"]).ok();
    let shown = machine.json_here(&["config", "show", "server", "--effective", "--source"]);
    assert!(shown.to_string().contains("config.toml"), "{shown}");
    let there = machine.json_here(&["session", "start", "--name", "there"]);
    assert_eq!(there["room"], Value::Null);
    let here = machine.json_here(&["session", "start", "--name", "here", "--server", ""]);
    assert!(here["room"].is_string(), "{here}");
    // What takes away and knows only this machine asks which one is meant.
    machine.home.call(&["session", "clear", "--all", "--yes"]).run().exit(2);
    machine.home.call(&["session", "clear", "--all", "--yes", "--set", "server="]).ok();
    assert_eq!(machine.json_here(&["session", "list"])[0]["name"], "there");
    // What cannot work there has no such flag.
    machine.home.call(&["session", "gc", "--server", &machine.url]).run().exit(2);
}

#[test]
fn login_waits_for_the_administrators_decision() {
    let home = home();
    let store = Store::file(&home);
    store.call(&["user", "add", "ann"]).ok();
    let service = Service::start(&store);
    let url = format!("http://{}", service.address);
    let machine = crate::home();
    let login = || {
        let call = machine.call(&["auth", "login", "--server", &url, "--wait", "1m", "--output", "json"]);
        let mut child = call
            .command()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap();
        (child, stderr, told["login"]["user_code"].as_str().unwrap().to_owned())
    };
    let (child, mut stderr, code) = login();
    store.call(&["user", "approve", &code, "--deny"]).ok();
    let refused = child.wait_with_output().unwrap();
    let mut told = String::new();
    stderr.read_to_string(&mut told).unwrap();
    assert_eq!(refused.status.code(), Some(8), "{told}");
    assert!(told.contains("LOGIN_REFUSED"), "{told}");

    let (child, _stderr, code) = login();
    store.call(&["user", "approve", &code, "--user", "ann", "--yes"]).ok();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success());
    let kept: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&kept["account"], &kept["secret"]), (&"ann".into(), &"********".into()), "{kept}");
    machine.call(&["session", "start", "--server", &url]).ok();
}

#[test]
fn status_names_the_server_and_its_token() {
    let home = home();
    let (mut service, machine) = ann(&home);
    let status = |machine: &Machine| machine.json_here(&["status"])["server"].clone();
    assert_eq!(status(&machine), Value::Null);
    machine.home.call(&["config", "set", "server", &machine.url, "--global"]).ok();
    // Nobody is asked for that.
    service.kill();
    let server = status(&machine);
    assert_eq!(
        (&server["url"], &server["has_token"]),
        (&machine.url.as_str().into(), &true.into()),
        "{server}"
    );
    assert_eq!(server["origin"]["layer"], "user", "{server}");
    let text = machine.home.call(&["status"]).ok().stdout();
    let line = text.lines().find(|line| line.starts_with("server ")).unwrap();
    assert!(line.contains(&format!("{} (with a token)  from ", machine.url)), "{line}");
    let elsewhere =
        |words: &[&str]| machine.home.call(words).env("SESSILE_SERVER", "https://other.example").ok();
    let server = elsewhere(&["status", "--output", "json"]).json()["server"].clone();
    assert_eq!(
        (&server["has_token"], &server["origin"]["layer"]),
        (&false.into(), &"environment".into()),
        "{server}"
    );
    assert!(elsewhere(&["status"]).stdout().contains("https://other.example (no token)"));
    assert_eq!(
        machine.home.call(&["status", "--output", "json", "--set", "server="]).ok().json()["server"],
        Value::Null
    );
    // One that could not be asked is told, and the rest is still shown.
    machine.home.call(&["config", "unset", "server", "--global"]).ok();
    let file = machine.home.write("bad.toml", "server = \"nonsense\"\n").display().to_string();
    let done = machine.home.call(&["status", "--config", &file]).ok();
    assert!(done.stderr().contains("server") && done.stdout().contains("context"), "{}", done.told());
}

#[test]
fn logout_removes_only_the_token_of_its_server() {
    let home = home();
    let store = Store::file(&home);
    let token = store.user("ann");
    let (service, other) = (Service::start(&store), Service::start(&store));
    let machine = Machine::new(&service, &token);
    let elsewhere = format!("http://{}", other.address);
    machine.home.call(&["auth", "login", "--server", &elsewhere, "--token-stdin"]).stdin(token.as_str()).ok();
    let logout = ["auth", "logout", "--server", &machine.url];
    // Nobody there means no.
    machine.home.call(&logout).run().exit(2);
    machine.call(&["session", "list"]).ok();
    let done = machine.home.call(&logout).args(&["--yes"]).ok();
    assert!(done.stderr().contains("user token revoke"), "{}", done.told());
    let kept = machine.json_here(&["auth", "list"]);
    assert_eq!(
        (kept.as_array().unwrap().len(), &kept[0]["agents"][0]),
        (1, &elsewhere.as_str().into()),
        "{kept}"
    );
    let error = machine.call(&["session", "list", "--output", "json"]).run().exit(8).json_error();
    assert!(error["fix_command"].as_str().unwrap().contains("auth login --server"), "{error}");
    machine.home.call(&["session", "list", "--server", &elsewhere]).ok();
    // Where there is none, and what cannot be a server.
    let none = machine.home.call(&logout).args(&["--yes", "--output", "json"]).run().exit(8);
    assert_eq!(none.code(), "CREDENTIAL_NOT_FOUND");
    machine.home.call(&["auth", "logout", "--server", "http://sessile.example", "--yes"]).run().exit(2);
    machine.home.call(&["auth", "logout", "--server", &elsewhere, "--all", "--yes"]).run().exit(2);
}

#[test]
fn token_variable_replaces_a_missing_credential() {
    let home = home();
    let store = Store::file(&home);
    let (token, other) = (store.user("ann"), store.user("bob"));
    let (service, elsewhere) = (Service::start(&store), Service::start(&store));
    let url = format!("http://{}", service.address);
    let machine = crate::home();
    let call = |words: &[&str]| machine.call(words).env("SESSILE_SERVER", &url).env("SESSILE_TOKEN", &token);
    call(&["session", "start", "--name", "s"]).ok();
    assert!(call(&["session", "list"]).ok().stdout().contains('s'));
    let status = call(&["status", "--output", "json"]).ok();
    assert_eq!(status.json()["server"]["has_token"], true);
    // It is for the server, not for agents, and is told nowhere.
    let secret = token.strip_prefix("sst_").unwrap();
    for words in [&["status", "-vv"][..], &["config", "show", "--effective", "--source"], &["env", "--unset"]]
    {
        let told = call(words).run().told();
        assert!(!told.contains(secret), "{words:?}: {told}");
    }
    for (path, content) in machine.tree() {
        assert!(!content.windows(secret.len()).any(|part| part == secret.as_bytes()), "{}", path.display());
    }
    let check = ["auth", "check", "--url", &format!("http://{}/v1/me", elsewhere.address)];
    assert!(!call(&check).run().stdout().contains("200"));
    // A stored one wins.
    machine.call(&["auth", "login", "--server", &url, "--token-stdin"]).stdin(other).ok();
    assert!(!call(&["session", "list"]).ok().stdout().contains(" s "), "bob has no sessions");
}

#[test]
fn token_typed_as_a_name_is_refused_at_once() {
    let machine = home();
    let begun = std::time::Instant::now();
    for words in [
        &["auth", "login", "--server", "http://127.0.0.1:1", "sst_0123456789abcdef"][..],
        &["auth", "login", "sst_0123456789abcdef"],
        &["auth", "set", "sst_0123456789abcdef"],
    ] {
        let done = machine.call(words).args(&["--output", "json"]).run().exit(2);
        assert_eq!(done.code(), "SECRET_REFUSED", "{}", done.told());
        assert!(!done.told().contains("0123456789"), "{}", done.told());
    }
    let login = ["auth", "login", "--server", "http://127.0.0.1:1", "sst_0123456789abcdef"];
    let told = machine.call(&login).run().stderr();
    assert!(told.contains("auth login --server http://127.0.0.1:1 --token-stdin"), "{told}");
    assert!(begun.elapsed() < std::time::Duration::from_secs(20));
}

#[test]
fn run_does_not_start_a_namesake_of_a_remote_session() {
    let home = home();
    let (_service, machine) = ann(&home);
    machine.call(&["session", "start", "--name", "deploy"]).ok();
    for words in [
        &["run", "--session", "deploy", "--output", "json", "--", "true"][..],
        &["shell", "--session", "deploy", "--output", "json"],
    ] {
        let error = machine.call(words).run().exit(125).json_error();
        assert_eq!(error["code"], "SESSION_EXISTS", "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("deploy") && message.contains(&machine.url), "{error}");
        assert!(error["hint"].as_str().unwrap().contains("--set server="), "{error}");
    }
    assert!(crate::live(&machine.home).is_empty(), "nothing was started here");
    machine.call(&["run", "--session", "own", "--", "true"]).ok();
    machine.call(&["run", "--session", "own", "--", "true"]).ok();
    machine.call(&["run", "--set", "server=", "--session", "deploy", "--", "true"]).ok();
    // The one of this machine is known now.
    machine.call(&["run", "--session", "deploy", "--", "true"]).ok();
}
