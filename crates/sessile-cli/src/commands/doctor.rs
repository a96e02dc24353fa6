//! `sessile doctor`: finds problems of the installation and their fixes.

use serde_json::json;
use sessile::doctor::{HEALTHY, Health, examine};
use sessile::exit;
use sessile::text::shown_lines;

use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::output::Tone;

/// Check the installation and its state for problems
///
/// Checks directories, permissions, file systems, settings, contexts, the store, the clock, the hook of this shell and
/// leftovers of killed processes. Prints a fix for each problem. Changes nothing without --repair. The exit status is 1 if
/// a check fails.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile doctor" "sessile doctor --output json" "sessile doctor --repair"))]
pub struct Args {
    /// Move a damaged state database aside, and save its readable rows
    #[arg(long)]
    repair: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    if args.repair {
        let locker = cx.state.locker()?;
        if !cx.state.recover_store(&locker)? {
            cx.out.note("the state database is intact; nothing to repair");
        }
        let saved = cx.state.take_warnings();
        // Printed now, because they name the files that the repair has written.
        cx.out.warnings(&saved);
    }
    let checks = examine(&cx.state);
    // What the checks say is not said twice.
    cx.state.take_warnings();
    let worst = checks.iter().map(|check| check.health).max().unwrap_or(Health::Ok);
    cx.out.result(&json!({ "healthy": worst < Health::Error, "checks": checks }), || {
        let mut text = String::new();
        for check in &checks {
            let (mark, tone) = match check.health {
                Health::Ok => ("ok     ", Tone::Good),
                Health::Warning => ("warning", Tone::Warning),
                Health::Error => ("error  ", Tone::Bad),
            };
            // The mark says enough about a check without findings.
            let message = if check.message == HEALTHY {
                String::new()
            } else {
                format!(": {}", shown_lines(&check.message))
            };
            text.push_str(&format!("{} {}{message}\n", cx.out.toned(mark, tone), check.name));
            if let Some(fix) = &check.fix {
                text.push_str(&format!("        fix: {}\n", shown_lines(fix)));
            }
        }
        text
    })?;
    if worst == Health::Error { Err(Failure::Told(exit::FAILED)) } else { Ok(()) }
}
