//! `sessile config edit`.

use serde_json::json;
use sessile::config::write::{check_text, file};
use sessile::history::change_text;
use sessile::text::shown;

use super::ScopeArgs;
use crate::cli::Cx;
use crate::editor::EditorFile;
use crate::error::Outcome;
use crate::help::examples;

/// Edit a settings file in your editor
///
/// The file is copied, edited, checked and then replaced as a whole. Uses VISUAL, then EDITOR, then vi.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile config edit --global" "sessile config edit --dir"))]
pub struct Args {
    #[command(flatten)]
    scope: ScopeArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let (layer, path) = file(&cx.state, args.scope.scope())?;
    let old = cx.state.read(&path)?;
    let shown_text = old.clone().unwrap_or_default();
    let suffix = if path.extension().is_some_and(|ending| ending == "json") { ".json" } else { ".toml" };
    let edited = EditorFile::open(&cx.state, &shown_text, suffix, "use `sessile config set KEY VALUE`")?;
    let changed = edited.until(&cx.state, &cx.out, |text| {
        check_text(&cx.state, layer, &path, text)?;
        if text == shown_text {
            return Ok(false);
        }
        // With the text that was shown: a change made by another process meanwhile is refused, not
        // overwritten.
        change_text(&cx.state, "config edit", &path, old.as_deref(), text)?;
        Ok(true)
    })?;
    cx.changed(json!({ "path": path.to_string_lossy(), "layer": layer, "changed": changed }), || {
        let what = if changed { "changed" } else { "unchanged" };
        format!("{what}: {}\n", shown(path.display()))
    })
}
