//! The settings that the program has beside the library's own.

use sessile::App;
use sessile::settings::{Definition, SettingKind};

/// Sessile as an application of the library.
pub fn app() -> App {
    let app = App::new("sessile").with_settings(SETTINGS);
    #[cfg(feature = "keychain")]
    let app = app.with_keychain(sessile_keychain::connect);
    app
}

const SETTINGS: &[Definition] = &[
    Definition::new("server", SettingKind::Url, "The URL of the session service to work against.")
        // A cloned repository could otherwise have messages and values sent to a service of its own.
        .needing_trust(),
    Definition::new(
        "lock-ttl",
        SettingKind::Duration,
        "How long a server's lock outlives a holder that has died; it is renewed while the command runs.",
    )
    .with_default("60s"),
];
