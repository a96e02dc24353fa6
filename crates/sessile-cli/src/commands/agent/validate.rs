//! `sessile agent validate`.

use serde_json::json;
use sessile::text::shown;

use super::AgentTarget;
use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::output::Tone;

/// Check an agent's card
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile agent validate http://localhost:8000"))]
pub struct Args {
    #[command(flatten)]
    target: AgentTarget,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let (named, card) = args.target.fetch_card(cx)?;
    let mut problems = Vec::new();
    let mut warnings = Vec::new();
    for (member, is_there) in [
        ("name", !card.name.is_empty()),
        ("description", !card.description.is_empty()),
        ("version", !card.version.is_empty()),
        ("an interface", !card.interfaces.is_empty()),
    ] {
        if !is_there {
            problems.push(format!("it has no {member}"));
        }
    }
    if !card.interfaces.is_empty() && card.interfaces.iter().all(|one| one.dialect().is_none()) {
        problems.push("none of its interfaces is understood here".to_owned());
    }
    let site = sessile::site::Site::of_url(&named.url)?;
    for interface in &card.interfaces {
        match sessile::site::Site::of_url(&interface.url) {
            Err(_) => problems.push(format!("{} is no URL", interface.url)),
            // Requests to it would be refused anyway: credentials travel over https or on this machine only.
            Ok(found) if !found.is_private() => {
                problems.push(format!("{} can be read on the way", interface.url));
            }
            Ok(found) if found != site => {
                warnings
                    .push(format!("{} is elsewhere: no credential goes there unless it may", interface.url));
            }
            Ok(_) => {}
        }
    }
    if card.skills.is_empty() {
        warnings.push("it names no skill".to_owned());
    }
    let json = json!({
        "source": "agent",
        "url": named.url,
        "valid": problems.is_empty(),
        "problems": problems,
        "warnings": warnings,
    });
    cx.out.result(&json, || {
        let mut text = String::new();
        for problem in &problems {
            text.push_str(&format!("{} {}\n", cx.out.toned("wrong:", Tone::Bad), shown(problem)));
        }
        for warning in &warnings {
            text.push_str(&format!("{} {}\n", cx.out.toned("note:", Tone::Warning), shown(warning)));
        }
        if problems.is_empty() {
            text.push_str("the card is valid\n");
        }
        text
    })?;
    if problems.is_empty() { Ok(()) } else { Err(Failure::Told(sessile::exit::FAILED)) }
}
