//! Settings of isolated commands.

use crate::settings::{Definition, SettingKind};

/// Settings of isolated commands.
pub const SETTINGS: &[Definition] = &[
    Definition::new("isolate", SettingKind::Choice(&["env", "home"]), "Isolation level of commands.")
        .with_default("env")
        .needing_trust(),
    Definition::new(
        "passthrough",
        SettingKind::List,
        "Variables that commands keep even if they override the context.",
    )
    .needing_trust(),
    Definition::new("tools.only", SettingKind::List, "Isolate only these tools.").needing_trust(),
    Definition::new("tools.except", SettingKind::List, "Isolate all tools but these.").needing_trust(),
    Definition::new("tools.also", SettingKind::List, "Isolate these tools too, which are shared by default.")
        .needing_trust(),
    Definition::new(
        "tools.*.strict",
        SettingKind::Bool,
        "Whether copies of a bound tool's files contain only the bound targets; default: the context's value.",
    )
    .needing_trust(),
    Definition::new("env.*", SettingKind::Text, "A variable for commands that are run.").needing_trust(),
];
