//! The settings that every application gets from the library.

use crate::settings::{Definition, SettingKind};

/// Default of the setting `lock-timeout`, and of everything else that waits for a lock.
pub const DEFAULT_LOCK_TIMEOUT: &str = "5s";

/// The settings that the library itself obeys.
pub const BASE: &[Definition] = &[
    Definition::new("context", SettingKind::Context, "Default context.").needing_trust(),
    Definition::new(
        "expect-context",
        SettingKind::Context,
        "Expected context: warn if another context is used.",
    ),
    Definition::new("output", SettingKind::Choice(&["text", "json", "jsonl"]), "Output format.")
        .with_default("text"),
    Definition::new("color", SettingKind::Choice(&["auto", "always", "never"]), "When to color the output.")
        .with_default("auto"),
    Definition::new("lock-timeout", SettingKind::Duration, "Timeout for locks; 0 does not wait.")
        .with_default(DEFAULT_LOCK_TIMEOUT),
    Definition::new("credential", SettingKind::Text, "Default credential.").needing_trust(),
    Definition::new(
        "vault.backend",
        SettingKind::Choice(&["auto", "keychain", "file", "helper", "env"]),
        "Vault backend; auto uses the desktop's keychain if available, else an encrypted file.",
    )
    .with_default("auto")
    .set_by_user_only(),
    Definition::new(
        "vault.helper",
        SettingKind::Text,
        "Program of the helper backend: an absolute path, or WORD for NAME-vault-WORD in PATH.",
    )
    .set_by_user_only(),
    Definition::new(
        "vault.key-file",
        SettingKind::Text,
        "Key file of the vault, instead of the one beside it.",
    )
    .set_by_user_only(),
    Definition::new(
        "vault.unlock",
        SettingKind::Duration,
        "How long the vault stays unlocked after the passphrase.",
    )
    .with_default("15m")
    .set_by_user_only(),
    Definition::new(
        "token",
        SettingKind::Secret,
        "Bearer token for one call; allowed only in a --config file, never stored or printed.",
    ),
];
