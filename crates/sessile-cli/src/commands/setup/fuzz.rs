//! Fuzz target: edits of an agent's settings.

#![expect(clippy::panic, reason = "a fuzz target fails by panicking")]

use std::path::Path;

use super::change::{PlannedChange, RevertResult, SetupChange};
use super::json_text;

const JSON: &str = r#"{ "mcpServers": { "sessile": { "command": "sessile", "args": ["mcp"] } } }"#;
const TOML: &str = "[mcp_servers.sessile]\ncommand = \"sessile\"\nargs = [\"mcp\"]\n";

/// The settings of an agent: the entry is added so that it reads back, and reverting restores every byte.
pub fn setup_edit(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for (format, snippet) in [("json", JSON), ("toml", TOML)] {
        let path = Path::new("/nonexistent/settings");
        let planned = SetupChange::entry_in(path, Some(text.to_owned()), format, snippet);
        let Ok(PlannedChange::Change(change)) = planned else { continue };
        let changed = &change.texts.1;
        match SetupChange::entry_in(path, Some(changed.clone()), format, snippet) {
            Ok(PlannedChange::Present) => {}
            other => panic!("{changed:?} does not have the entry: {other:?}"),
        }
        assert_eq!(change.reverted(changed), (RevertResult::Restored, Some(text.to_owned())), "{changed:?}");
        // An agent that rewrites its file keeps the values only.
        if let (Some(before), Some(after)) = (json_text::parsed(text), json_text::parsed(changed))
            && format == "json"
        {
            let (_, left) = change.reverted(&after.to_string());
            let left = left.as_deref().and_then(json_text::parsed);
            assert!(left.as_ref().is_none_or(|left| *left == before), "{left:?} instead of {before}");
        }
    }
    let keys = ["a".to_owned(), "b".to_owned()];
    let _ = json_text::without(text, &keys, 1);
    let _ = json_text::value_at(text, &keys);
}
