//! Messages that the service replies to.

use super::{Machine, Service, Store};
use crate::home;

#[test]
fn an_agent_is_not_named_together_with_a_server() {
    let home = home();
    let store = Store::file(&home);
    let token = store.user("ann");
    let service = Service::start(&store);
    let machine = Machine::new(&service, &token);
    machine.home.call(&["agent", "add", "research", "http://127.0.0.1:9", "--global"]).ok();
    for words in [
        &["message", "send", "research", "hello", "--session", "s"][..],
        &["message", "send", "http://127.0.0.1:9", "hello", "--session", "s"],
        &["message", "stream", "--url", "research", "hello", "--session", "s"],
        &["message", "send", "hello", "--new", "--session", "s"],
    ] {
        let done = machine.call(words).args(&["--output", "json"]).run().exit(2);
        assert!(done.json_error()["message"].as_str().unwrap().contains("--server ''"), "{}", done.told());
    }
    assert_eq!(machine.json(&["session", "list"]), serde_json::json!([]), "nothing was started");
    let done = machine.call(&["message", "send", "hello", "--output", "json"]).run().exit(2);
    assert_eq!(done.code(), "SESSION_REQUIRED");
}
