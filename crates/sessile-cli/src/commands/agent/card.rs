//! `sessile agent card`, `show` and `validate`: what an agent says about itself.

use serde_json::{Value, json};
use sessile::Error;
use sessile::text::shown;

use crate::a2a::Card;
use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::output::Tone;
use crate::talk::{Reach, failed};

/// Print an agent's card
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile agent card http://localhost:8000" "sessile agent card research --extended"))]
pub struct Args {
    /// The agent: its name or URL
    #[arg(value_name = "AGENT")]
    agent: Option<String>,

    /// The card that is for those whom the agent knows
    #[arg(long)]
    extended: bool,

    #[command(flatten)]
    reach: Reach,
}

/// Show an agent: what it is called here, and what it says about itself
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile agent show research" "sessile agent show http://localhost:8000 --output json"))]
pub struct ShowArgs {
    /// The agent: its name or URL
    #[arg(value_name = "AGENT")]
    agent: Option<String>,

    #[command(flatten)]
    reach: Reach,
}

/// Check an agent's card
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile agent validate http://localhost:8000"))]
pub struct ValidateArgs {
    /// The agent: its name or URL
    #[arg(value_name = "AGENT")]
    agent: Option<String>,

    #[command(flatten)]
    reach: Reach,
}

fn named(cx: &Cx, agent: Option<&str>, reach: &Reach) -> Result<sessile::agents::Agent, Error> {
    let text = agent.or(reach.url.as_deref());
    cx.state.agent(text.ok_or_else(|| Error::Usage("say which agent: its name or URL".into()))?)
}

pub(crate) fn card(args: &Args, cx: &Cx) -> Outcome {
    let named = named(cx, args.agent.as_deref(), &args.reach)?;
    let whom = args.reach.whom(&cx.state, &named)?;
    let card = if args.extended {
        let card = whom.agent(cx)?.extended_card();
        card.map_err(|error| failed(&named.url, None, error))?
    } else {
        whom.card()?
    };
    // Whatever stands in it, it is the agent's word.
    let mut json = card.raw.clone();
    json["source"] = json!("agent");
    cx.out.result(&json, || sessile::text::json_safe(&format!("{:#}", card.raw)) + "\n")
}

pub(crate) fn show(args: &ShowArgs, cx: &Cx) -> Outcome {
    let named = named(cx, args.agent.as_deref(), &args.reach)?;
    let whom = args.reach.whom(&cx.state, &named)?;
    let card = whom.card()?;
    let mut json = described(&card);
    json["url"] = json!(named.url);
    json["called"] = json!(named.name);
    json["credential"] = json!(named.credential);
    cx.out.result(&json, || {
        let mut text = String::new();
        let mut line = |label: &str, value: String| text.push_str(&format!("{label:<11} {}\n", shown(value)));
        line("name", card.name.clone());
        line("url", named.url.clone());
        if let Some(called) = &named.name {
            line("called", called.clone());
        }
        if let Some(credential) = &named.credential {
            line("credential", credential.clone());
        }
        line("version", card.version.clone());
        if !card.description.is_empty() {
            line("about", card.description.clone());
        }
        for interface in &card.interfaces {
            let known = if interface.dialect().is_some() { "" } else { " (not understood here)" };
            line("speaks", format!("{interface} at {}{known}", interface.url));
        }
        let can: Vec<&str> =
            [("streams", card.streaming), ("notifies", card.push), ("extended card", card.extended)]
                .into_iter()
                .filter_map(|(word, can)| can.then_some(word))
                .collect();
        line("can", if can.is_empty() { "-".to_owned() } else { can.join(", ") });
        for scheme in &card.schemes {
            line("wants", scheme.name.clone());
        }
        for skill in &card.skills {
            line("skill", format!("{}: {}", skill.name, skill.description));
        }
        text
    })
}

/// A card in one vocabulary.
fn described(card: &Card) -> Value {
    json!({
        "source": "agent",
        "name": card.name,
        "description": card.description,
        "version": card.version,
        "streaming": card.streaming,
        "push_notifications": card.push,
        "extended_card": card.extended,
        "interfaces": card.interfaces.iter().map(|one| json!({
            "interface": one.to_string(),
            "url": one.url,
            "tenant": one.tenant,
            "usable": one.dialect().is_some(),
        })).collect::<Vec<_>>(),
        "schemes": card.schemes.iter().map(|one| &one.name).collect::<Vec<_>>(),
        "skills": card.skills.iter().map(|one| json!({
            "id": one.id, "name": one.name, "description": one.description, "tags": one.tags,
        })).collect::<Vec<_>>(),
        "extensions": card.extensions,
    })
}

pub(crate) fn validate(args: &ValidateArgs, cx: &Cx) -> Outcome {
    let named = named(cx, args.agent.as_deref(), &args.reach)?;
    let whom = args.reach.whom(&cx.state, &named)?;
    let card = whom.card()?;
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
    let site = sessile::vault::Site::of_url(&named.url)?;
    for interface in &card.interfaces {
        match sessile::vault::Site::of_url(&interface.url) {
            Err(_) => problems.push(format!("{} is no URL", interface.url)),
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
