//! `sessile config show`.

use serde_json::{Value, json};
use sessile::Error;
use sessile::settings::{Candidate, IgnoreReason, Layer, SettingKey};
use sessile::text::shown;

use crate::cli::Cx;
use crate::commands::page::Page;
use crate::error::{Failure, Outcome};
use crate::help::examples_and_precedence;
use crate::output::{Table, Tone};

/// Show the set values with their origins
#[derive(Debug, clap::Args)]
#[command(after_help = examples_and_precedence!(
    "sessile config show"
    "sessile config show --effective --source"
    "sessile config show lock-timeout --source --output json"
))]
pub struct Args {
    /// Show only these settings
    #[arg(value_name = "KEY")]
    keys: Vec<String>,

    /// Also show default values
    #[arg(long)]
    effective: bool,

    /// Show the origin of each value and the values it overrides
    #[arg(long, visible_alias = "show-origin")]
    source: bool,

    #[command(flatten)]
    page: Page,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let settings = cx.state.settings()?;
    let keys = if args.keys.is_empty() {
        let mut keys = settings.keys(args.effective);
        // The terminal's selection is a value of this key, although no file has it.
        let context = SettingKey::new(["context"]);
        if cx.state.selected()?.is_some() && !keys.contains(&context) {
            keys.push(context);
            keys.sort();
        }
        keys
    } else {
        args.keys.iter().map(|key| key.parse()).collect::<Result<_, Error>>()?
    };
    let mut items = Vec::new();
    let mut table = Table::new(if args.source { &["KEY", "VALUE", "ORIGIN"] } else { &["KEY", "VALUE"] });
    for key in args.page.of(keys, ToString::to_string) {
        let candidates = candidates(cx, &key)?;
        let Some((first, rest)) = candidates.split_first() else { continue };
        row(&mut table, args.source, &key.to_string(), first, None);
        if args.source {
            for shadowed in rest {
                row(&mut table, true, "", shadowed, Some(Tone::Faint));
            }
        }
        // What is ignored is no value, not even when there is no other.
        let (ignored, mut said): (Vec<_>, Vec<_>) =
            candidates.into_iter().partition(|candidate| candidate.ignored.is_some());
        let counts = (!said.is_empty()).then(|| said.remove(0));
        items.push(json!({
            "key": key,
            "value": counts.as_ref().map(|counts| &counts.value),
            "origin": counts.as_ref().map(|counts| &counts.origin),
            "shadows": said,
            "ignored": ignored,
        }));
    }
    cx.out.list(&items, || {
        if items.is_empty() {
            return "no values set; list the defaults: sessile config list\n".to_owned();
        }
        table.render(&cx.out)
    })
}

/// Values of a key: the effective one, then shadowed ones, then ignored ones.
pub(super) fn candidates(cx: &Cx, key: &SettingKey) -> Result<Vec<Candidate>, Failure> {
    let mut candidates = cx.state.settings()?.explain(key)?;
    if is_context(key)
        && let Some(selected) =
            cx.state.selected()?.filter(|selected| selected.origin.layer == Layer::Terminal)
    {
        let value = sessile::settings::Value::Text(selected.name.to_string());
        candidates.insert(0, Candidate { value, origin: selected.origin.clone(), ignored: None });
    }
    // Stable, so the order of precedence is kept within each part.
    candidates.sort_by_key(|candidate| candidate.ignored.is_some());
    for candidate in &mut candidates {
        candidate.value = candidate.value.clone().masked_for(key);
    }
    Ok(candidates)
}

fn row(table: &mut Table, source: bool, key: &str, candidate: &Candidate, tone: Option<Tone>) {
    let mut value = shown(candidate.value.to_string());
    let note = match candidate.ignored {
        Some(IgnoreReason::Untrusted) => " (ignored: not trusted)",
        Some(IgnoreReason::NotHere) => " (ignored: not a setting for this file)",
        None if key.is_empty() => " (shadowed)",
        None => "",
    };
    let tone = tone.or(candidate.ignored.map(|_| Tone::Faint));
    if source {
        table.row(&[key.to_owned(), value, format!("{}{note}", candidate.origin)], tone);
    } else {
        value.push_str(note);
        table.row(&[key.to_owned(), value], tone);
    }
}

/// Whether a key is the one whose value also comes from the terminal.
pub(super) fn is_context(key: &SettingKey) -> bool {
    matches!(key.segments(), [only] if only == "context")
}

/// Text of a value that is not a string.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}
