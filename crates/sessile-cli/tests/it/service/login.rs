//! `sessile user approve`: letting a machine in by a code, end to end.

use serde_json::{Value, json};
use testkit::Postgres;

use super::{Client, Service, Store};
use crate::home;

/// Asks to be let in: the code, and the body that the token is asked for with.
fn begin(nobody: &Client) -> (String, Value) {
    let begun = nobody.ok("POST", "/v1/login", &json!({ "client": "ann's [31mlaptop" }));
    (begun["user_code"].as_str().unwrap().to_owned(), json!({ "device_code": begun["device_code"] }))
}

fn is_let_in_or_refused(store: &Store<'_>) {
    store.call(&["user", "add", "ann"]).ok();
    let service = Service::start(store);
    let nobody = service.client("none");
    let ask = |poll: &Value| nobody.send("POST", "/v1/login/token", Some(poll));
    let (code, poll) = begin(&nobody);
    assert_eq!(ask(&poll).1["code"], "LOGIN_PENDING");

    // Nobody is there to be asked, so it has to be said.
    let words = ["user", "approve", &code, "--user", "ann"];
    let asked = store.call(&words).run().exit(2);
    assert!(
        asked.stderr().contains("ann's [31mlaptop") && asked.stderr().contains("127.0.0.1"),
        "{}",
        asked.told()
    );
    assert_eq!(ask(&poll).1["code"], "LOGIN_PENDING");
    let eve = store.call(&["user", "approve", &code, "--user", "eve", "--yes", "-ojson"]).run().exit(5);
    assert_eq!(eve.code(), "USER_NOT_FOUND", "{}", eve.told());
    store.call(&["user", "add", "bob"]).ok();
    store.call(&["user", "disable", "bob"]).ok();
    for words in
        [&["user", "approve", &code, "--user", "bob", "--yes"][..], &["user", "token", "create", "bob"]]
    {
        let bob = store.call(words).arg("-ojson").run().exit(7);
        assert_eq!(bob.code(), "USER_DISABLED", "{}", bob.told());
    }
    let typed = code.replace('-', "").to_lowercase();
    let words =
        ["user", "approve", &typed, "--user", "ann", "--scope", "read", "--expires", "1h", "--yes", "-ojson"];
    let approved = store.call(&words).ok().json();
    assert_eq!((&approved["user"], &approved["scopes"]), (&json!("ann"), &json!(["read"])));
    assert_eq!((&approved["client"], &approved["from"]), (&json!("ann's [31mlaptop"), &json!("127.0.0.1")));
    assert!(approved["approved"] == true && approved["expires_at"].is_string(), "{approved}");
    let (status, given) = ask(&poll);
    assert_eq!((status, &given["user"], &given["scopes"]), (200, &json!("ann"), &json!(["read"])), "{given}");
    assert!(given["expires_ms"].is_number(), "{given}");
    let ann = service.client(given["token"].as_str().unwrap());
    assert_eq!(ann.get("/v1/me")["user"], "ann");
    assert_eq!(ask(&poll).1["code"], "LOGIN_NOT_FOUND");
    let again = store.call(&["user", "approve", &code, "--user", "ann", "--yes", "-ojson"]).run().exit(5);
    assert_eq!(again.code(), "LOGIN_NOT_FOUND", "{}", again.told());

    // A user who is disabled between the approval and the collection gets no token.
    let (code, poll) = begin(&nobody);
    store.call(&["user", "approve", &code, "--user", "ann", "--yes"]).ok();
    store.call(&["user", "disable", "ann"]).ok();
    assert_eq!(ask(&poll).1["code"], "LOGIN_NOT_FOUND");

    let (code, poll) = begin(&nobody);
    let told = store.call(&["user", "approve", &code, "--deny"]).ok().stdout();
    assert!(told.contains("denied the login of"), "{told}");
    assert_eq!(ask(&poll).1["code"], "LOGIN_REFUSED");
}

#[test]
fn device_login_is_approved_or_denied_by_its_code() {
    let home = home();
    is_let_in_or_refused(&Store::file(&home));
}

#[test]
fn device_login_with_postgres_is_approved_or_denied() {
    let (server, home) = (Postgres::shared(), home());
    let database = server.database();
    is_let_in_or_refused(&Store::postgres(&home, &database.url()));
}

#[test]
fn unknown_user_code_is_not_found() {
    let home = home();
    let store = Store::file(&home);
    store.call(&["user", "add", "ann"]).ok();
    for code in ["BCDF-GHJK", "nonsense", "ABCD-EFGH"] {
        for words in [&["--user", "ann", "--yes"][..], &["--deny"]] {
            let done = store.call(&["user", "approve", code]).args(words).run().exit(5);
            assert!(done.stderr().contains("no pending login with the code"), "{}", done.told());
            assert!(done.stderr().contains("15 minutes"), "{}", done.told());
        }
    }
    let neither = store.call(&["user", "approve", "BCDF-GHJK"]).run().exit(2);
    assert!(neither.stderr().contains("--user"), "{}", neither.told());
    store.call(&["user", "approve", "BCDF-GHJK", "--deny", "--user", "ann"]).run().exit(2);
}

#[test]
fn login_without_scopes_is_refused() {
    let home = home();
    let store = Store::file(&home);
    store.call(&["user", "add", "ann"]).ok();
    let done = store.call(&["user", "token", "create", "ann", "--expires", "0s"]).run().exit(2);
    assert!(done.stderr().contains("--expires must be greater than 0"), "{}", done.told());
    assert!(store.call(&["user", "token", "list", "ann"]).ok().stdout().contains("no tokens"));
}
