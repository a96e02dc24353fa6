//! The chat: on a screen of tmux as a person uses it, in lines as a script does, and killed.

mod kills;
mod lines;
mod screen;

use testkit::{AgentOptions, Home, Protocol, ScriptedAgent};

fn agent() -> ScriptedAgent {
    ScriptedAgent::start(AgentOptions::of(Protocol::V1))
}

/// The conversation that was used last in the session `work`.
fn last(home: &Home) -> serde_json::Value {
    home.call(&["conversation", "show", "--session", "work", "--last", "1000", "-ojson"]).ok().json()
}
