//! `--server`: the commands against a service, beside the same ones on this machine.

mod locks;
mod login;
mod messages;
mod sessions;

use serde_json::Value;
use testkit::{Call, Home};

use super::{Service, Store};
use crate::home;

/// A machine of its own: a home that is logged in at a service.
struct Machine {
    home: Home,
    url: String,
}

impl Machine {
    #[track_caller]
    fn new(service: &Service, token: &str) -> Self {
        let machine = Machine { home: home(), url: format!("http://{}", service.address) };
        machine.home.call(&["auth", "login", "--server", &machine.url, "--token-stdin"]).stdin(token).ok();
        machine
    }

    /// A call against the service.
    fn call(&self, words: &[&str]) -> Call {
        self.home.call(words).env("SESSILE_SERVER", &self.url)
    }

    /// The JSON that a call against the service prints.
    #[track_caller]
    fn json(&self, words: &[&str]) -> Value {
        self.call(words).env("SESSILE_OUTPUT", "json").ok().json()
    }

    /// The JSON that the same call prints on this machine.
    #[track_caller]
    fn json_here(&self, words: &[&str]) -> Value {
        self.home.call(words).env("SESSILE_OUTPUT", "json").ok().json()
    }
}

/// A service with one user, and a machine of hers.
#[track_caller]
fn ann(home: &Home) -> (Service, Machine) {
    let store = Store::file(home);
    let token = store.user("ann");
    let service = Service::start(&store);
    let machine = Machine::new(&service, &token);
    (service, machine)
}

/// The names of the members, in their order, and those of the objects in them.
fn shape(json: &Value) -> String {
    match json {
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("{name}{}", shape(value))).collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => items.first().map_or_else(String::new, shape),
        _ => String::new(),
    }
}
