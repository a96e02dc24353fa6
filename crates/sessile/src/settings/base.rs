//! The settings that every application gets from the library.

use crate::settings::{Definition, SettingKind};

/// Default of the setting `lock-timeout`, and of everything else that waits for a lock.
pub const DEFAULT_LOCK_TIMEOUT: &str = "5s";

/// The settings that the library itself obeys.
pub const BASE: &[Definition] = &[
    Definition::new("context", SettingKind::Context, "The context that is used when none is named.").needing_trust(),
    Definition::new(
        "expect-context",
        SettingKind::Context,
        "Warn when the context in use is another one than this; for a project that belongs to one target.",
    ),
    Definition::new("output", SettingKind::Choice(&["text", "json", "jsonl"]), "How results are printed.")
        .with_default("text"),
    Definition::new("color", SettingKind::Choice(&["auto", "always", "never"]), "When output is coloured.")
        .with_default("auto"),
    Definition::new("lock-timeout", SettingKind::Duration, "How long to wait for a lock; 0 does not wait.")
        .with_default(DEFAULT_LOCK_TIMEOUT),
    Definition::new("credential", SettingKind::Text, "The credential that calls act with.").needing_trust(),
    Definition::new(
        "vault.backend",
        SettingKind::Choice(&["auto", "keychain", "file", "helper", "env"]),
        "Where credentials are kept; auto is the desktop's keychain if there is one, else a sealed file.",
    )
    .with_default("auto")
    .needing_trust(),
    Definition::new(
        "vault.helper",
        SettingKind::Text,
        "The program that keeps credentials for the backend helper: a path, or WORD for NAME-vault-WORD in PATH.",
    )
    .needing_trust(),
    Definition::new(
        "vault.key-file",
        SettingKind::Text,
        "The file with the key of a sealed vault, instead of the one beside it.",
    )
    .needing_trust(),
    Definition::new(
        "vault.unlock",
        SettingKind::Duration,
        "How long a passphrase keeps a sealed vault open.",
    )
    .with_default("15m")
    .needing_trust(),
    Definition::new(
        "token",
        SettingKind::Secret,
        "A bearer token for this call; only in a file given with --config, never stored or shown.",
    ),
];
