//! Settings of isolated commands.

use crate::settings::{Definition, SettingKind};

/// Settings of isolated commands.
pub const SETTINGS: &[Definition] = &[
    Definition::new("isolate", SettingKind::Choice(&["env", "home"]), "How far a command's state is isolated.")
        .with_default("env")
        .needing_trust(),
    Definition::new(
        "passthrough",
        SettingKind::List,
        "Variables that a command keeps although they override its context.",
    )
    .needing_trust(),
    Definition::new("tools.only", SettingKind::List, "Isolate only these tools.").needing_trust(),
    Definition::new("tools.except", SettingKind::List, "Isolate all tools but these.").needing_trust(),
    Definition::new("tools.also", SettingKind::List, "Isolate these tools too, which are shared unless asked for.")
        .needing_trust(),
    Definition::new(
        "tools.*.strict",
        SettingKind::Bool,
        "Whether a session's copies of a bound tool's files hold only the bound targets; else as the context says.",
    )
    .needing_trust(),
    Definition::new("env.*", SettingKind::Text, "A variable for commands that are run.").needing_trust(),
];
