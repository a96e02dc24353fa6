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
    Definition::new("server", SettingKind::Url, "URL of the session service.")
        // A cloned repository could otherwise have messages and values sent to a service of its own.
        .needing_trust(),
    Definition::new(
        "chat.theme",
        SettingKind::Choice(&["auto", "dark", "light", "none"]),
        "Colors of the full-screen chat; auto is dark, or none without color.",
    )
    .with_default("auto"),
    Definition::new("chat.opener", SettingKind::Text, "Program that opens artifacts from the chat.")
        .with_default(if cfg!(target_os = "macos") { "open" } else { "xdg-open" })
        // A cloned repository or a session could otherwise name a program of its own.
        .set_by_user_only(),
    Definition::new(
        "lock-ttl",
        SettingKind::Duration,
        "Lease of a server's lock; renewed while the command runs.",
    )
    .with_default("60s"),
];
