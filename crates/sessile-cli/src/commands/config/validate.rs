//! `sessile config validate`.

use std::path::PathBuf;

use serde_json::json;
use sessile::call::ConfigSource;
use sessile::config::validate;
use sessile::exit;
use sessile::settings::Layer;
use sessile::text::{shown, shown_lines};

use crate::cli::Cx;
use crate::counted::counted;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::output::Tone;

/// Check every settings and context file
///
/// Reports every problem with its file, line and column. The exit status is 1 if a file is invalid.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile config validate" "sessile config validate ./team.toml"))]
pub struct Args {
    /// Check only this file, in the format of --config
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let (files, layer) = match (&args.file, cx.state.source()) {
        (Some(file), _) => (vec![cx.state.absolute(file)], Layer::File),
        (None, ConfigSource::File(_)) => (validate::files(&cx.state)?, Layer::File),
        (None, _) => (validate::files(&cx.state)?, Layer::User),
    };
    // They concern the same files, and each is reported below with its position.
    cx.state.take_warnings();
    let problems: Vec<_> = files.iter().flat_map(|file| validate::file(&cx.state, file, layer)).collect();
    let valid = !problems.iter().any(|problem| problem.is_error);
    let paths: Vec<_> = files.iter().map(|file| file.to_string_lossy()).collect();
    cx.out.result(&json!({ "valid": valid, "files": paths, "problems": problems }), || {
        let mut text = String::new();
        for problem in &problems {
            let (label, tone) =
                if problem.is_error { ("error", Tone::Bad) } else { ("warning", Tone::Warning) };
            let place =
                problem.line.zip(problem.column).map_or_else(String::new, |(l, c)| format!(":{l}:{c}"));
            text.push_str(&format!(
                "{}{place}: {}: {}\n",
                shown(problem.path.display()),
                cx.out.toned(label, tone),
                shown_lines(&problem.message)
            ));
            if let Some(hint) = &problem.hint {
                text.push_str(&format!("  hint: {}\n", shown_lines(hint)));
            }
        }
        let verdict = if valid { "valid" } else { "not valid" };
        text + &format!(
            "{}, {}: {verdict}\n",
            counted(files.len(), "file"),
            counted(problems.len(), "problem")
        )
    })?;
    if valid { Ok(()) } else { Err(Failure::Told(exit::FAILED)) }
}
