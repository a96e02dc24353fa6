//! Who one is: the account of the selected credential, and the OS user beside it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::set;
use crate::home;

fn jwt(claims: &Value) -> String {
    format!("eyJhbGciOiJub25lIn0.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

#[test]
fn user_is_the_account_of_the_credential_and_never_the_os_user() {
    let home = home();
    let status = |flags: &[&str]| home.call(&["status", "--output", "json"]).args(flags).ok().json();
    let none = status(&[]);
    assert_eq!((&none["user"], &none["logged_in"]), (&Value::Null, &json!(false)));
    let os_user = none["os_user"].clone();
    assert!(!os_user.as_str().unwrap().is_empty());
    set(&home, "opaque", "t0psecret").ok();
    set(&home, "named", "t0psecret").args(&["--account", "ci-bot"]).ok();
    for (name, claims) in [
        ("mail", json!({ "sub": "1", "preferred_username": "ada", "email": "ada@example.test" })),
        ("login", json!({ "sub": "1", "preferred_username": "ada" })),
        ("subject", json!({ "sub": "1", "email": 7 })),
        ("nobody", json!({ "exp": 4102444800_u64 })),
    ] {
        set(&home, name, &jwt(&claims)).ok();
    }
    for (name, user) in [
        ("opaque", Value::Null),
        ("named", json!("ci-bot")),
        ("mail", json!("ada@example.test")),
        ("login", json!("ada")),
        ("subject", json!("1")),
        ("nobody", Value::Null),
    ] {
        for command in [&["status"][..], &["auth", "status"]] {
            let flags = ["--credential", name, "--output", "json"];
            let status = home.call(command).args(&flags).ok().json();
            assert_eq!((&status["user"], &status["logged_in"]), (&user, &json!(true)), "{command:?} {name}");
            assert_eq!(status["os_user"], os_user, "{command:?} {name}");
        }
        let text = home.call(&["status", "--credential", name]).ok().stdout();
        let expected = user.as_str().unwrap_or("unknown account");
        assert!(text.contains(&format!("user      {expected} (logged in)\n")), "{text}");
        assert!(text.contains(&format!("os user   {}\n", os_user.as_str().unwrap())), "{text}");
    }
}

#[test]
fn user_of_a_token_for_this_call_is_that_of_its_claims() {
    let home = home();
    home.write_private("token", jwt(&json!({ "email": "ada@example.test" })));
    let status = home.call(&["status", "--output", "json"]).env("SESSILE_TOKEN_FILE", "token").ok().json();
    assert_eq!(status["user"], "ada@example.test");
    // Text from outside reaches no terminal as it is.
    home.write_private("token", jwt(&json!({ "email": "a\u{1b}[31mb" })));
    let text = home.call(&["status"]).env("SESSILE_TOKEN_FILE", "token").ok().stdout();
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn token_in_a_file_that_others_can_read_is_refused() {
    let home = home();
    home.write("token", "t0psecret\n");
    home.write("c.json", json!({ "context": "a", "token": "t0psecret" }).to_string());
    let by_file = || home.call(&["status", "--output", "json"]).env("SESSILE_TOKEN_FILE", "token");
    let by_config = || home.call(&["status", "--output", "json", "--config", "c.json"]);
    let check = ["auth", "check", "--url", "http://127.0.0.1:1/", "--output", "json"];
    let checked = home.call(&check).env("SESSILE_TOKEN_FILE", "token").run();
    let of_config = home.call(&check).args(&["--config", "c.json"]).run();
    for status in [by_file().ok(), by_config().ok()] {
        assert_eq!(status.json()["logged_in"], false);
        assert!(status.stderr().contains("other users can read"), "{}", status.told());
    }
    for (name, call) in [("token", checked), ("c.json", of_config)] {
        let error = call.json_error();
        assert_eq!(error["code"], "KEY_FILE_EXPOSED", "{error}");
        let fix = format!("chmod 600 {}", home.path(name).display());
        assert_eq!(error["fix_command"], fix, "{error}");
    }
    home.write_private("token", "t0psecret\n");
    home.write_private("c.json", json!({ "context": "a", "token": "t0psecret" }).to_string());
    assert_eq!(by_file().ok().json()["logged_in"], true);
    assert_eq!(by_config().ok().json()["logged_in"], true);
    // Without a token the mode of the file is its owner's business.
    home.write("d.json", "{\"context\": \"a\"}");
    home.call(&["status", "--config", "d.json"]).ok();
}
