//! The settings that the program has beside the library's own.

use sessile::App;
use sessile::settings::{Definition, Kind};

/// Sessile as an application of its own library.
pub fn app() -> App {
    let app = App::new("sessile").with_settings(SETTINGS);
    #[cfg(feature = "keychain")]
    let app = app.with_keychain(sessile_keychain::connect);
    app
}

const SETTINGS: &[Definition] = &[
    Definition::new("isolate", Kind::Choice(&["env", "home"]), "How far a command's state is isolated.")
        .with_default("env")
        .needing_trust(),
    Definition::new(
        "passthrough",
        Kind::List,
        "Variables that a command keeps although they override its context.",
    )
    .needing_trust(),
    Definition::new("session.idle", Kind::Duration, "How long a session may lie idle before it expires.")
        .with_default("2h"),
    Definition::new("session.max", Kind::Duration, "How long a session lives at most.").with_default("8h"),
    Definition::new("tools.only", Kind::List, "Isolate only these tools.").needing_trust(),
    Definition::new("tools.except", Kind::List, "Isolate all tools but these.").needing_trust(),
    Definition::new("tools.also", Kind::List, "Isolate these tools too, which are shared unless asked for.")
        .needing_trust(),
    Definition::new("env.*", Kind::Text, "A variable for commands that are run.").needing_trust(),
    Definition::new("server", Kind::Url, "The URL of the session service to work against.").needing_trust(),
    Definition::new(
        "lock-ttl",
        Kind::Duration,
        "How long a server's lock outlives a holder that has died; it is renewed while the command runs.",
    )
    .with_default("60s"),
    Definition::new("agents.*.url", Kind::Text, "The URL of a named agent.").needing_trust(),
    Definition::new("agents.*.credential", Kind::Text, "The credential that a named agent gets.")
        .needing_trust(),
];
