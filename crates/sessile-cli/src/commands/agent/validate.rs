//! `sessile agent validate`.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;
use sessile::error::{FileError, UsageError};
use sessile::site::Site;
use sessile::text::{acts_on_terminals, quoted, shown};
use sessile_wire::a2a::AgentCard;

use super::named;
use crate::a2a::signature::{JwkSource, SignatureStatus, verify_card};
use crate::agent_session::{AgentArgs, read_card_file};
use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::http::{HttpClient, TrustRoots};
use crate::output::Tone;

/// Check an agent's card
///
/// Checks required fields, interfaces, control and invisible characters, and signatures. The keys come from --jwks, or
/// from the URL in the signature if that is https or has the agent's own origin.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile agent validate http://localhost:8738"
    "sessile agent validate --file card.json --jwks keys.json"
    "sessile agent validate --all"
))]
pub struct Args {
    /// The agent: its name or URL, or a file with its card
    #[arg(value_name = "AGENT")]
    agent: Option<String>,

    /// Check the card in this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["agent", "all"])]
    file: Option<PathBuf>,

    /// Check every agent that has a name
    #[arg(long, conflicts_with = "agent")]
    all: bool,

    /// JWK set with the keys of signatures: a file or a URL
    #[arg(long, value_name = "SOURCE")]
    jwks: Option<String>,

    #[command(flatten)]
    reach: AgentArgs,
}

/// Result of checking a card.
#[derive(Debug, Serialize)]
struct CardReport {
    source: &'static str,
    /// URL of the agent, or path of the card.
    url: String,
    valid: bool,
    problems: Vec<String>,
    warnings: Vec<String>,
    /// `verified`, `unverifiable` or `invalid` for each signature; none if the card has none.
    signatures: Vec<&'static str>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    if args.all {
        let agents = cx.state.agents()?;
        let mut reports = Vec::new();
        for agent in &agents {
            let card = args.reach.connection(cx, agent).and_then(|connection| connection.card());
            reports.push(match card {
                Ok(card) => check(cx, args, &card, &agent.url, Some(&agent.url), agent.allow_http)?,
                Err(failure) => CardReport {
                    source: "agent",
                    url: agent.url.clone(),
                    valid: false,
                    problems: vec![
                        failure.report(cx.state.app()).map_or_else(String::new, |report| report.message),
                    ],
                    warnings: Vec::new(),
                    signatures: Vec::new(),
                },
            });
        }
        cx.out.list(&reports, || match reports.as_slice() {
            [] => "no agents found; add one: sessile agent add NAME URL --global\n".to_owned(),
            reports => reports
                .iter()
                .map(|report| format!("{}\n{}", shown(&report.url), lines(cx, report)))
                .collect(),
        })?;
        let is_valid = reports.iter().all(|report| report.valid);
        return if is_valid { Ok(()) } else { Err(Failure::Told(sessile::exit::FAILED)) };
    }
    let report = match &args.file {
        Some(file) => {
            let path = cx.state.absolute(file);
            check(cx, args, &read_card_file(&path)?, &path.to_string_lossy(), None, false)?
        }
        None => {
            let agent = named(cx, args.agent.as_deref(), &args.reach)?;
            let card = args.reach.connection(cx, &agent)?.card()?;
            let site = agent.card_file.is_none().then_some(agent.url.as_str());
            check(cx, args, &card, &agent.url, site, agent.allow_http)?
        }
    };
    cx.out.result(&report, || lines(cx, &report))?;
    if report.valid { Ok(()) } else { Err(Failure::Told(sessile::exit::FAILED)) }
}

fn lines(cx: &Cx, report: &CardReport) -> String {
    let mut text = String::new();
    for problem in &report.problems {
        text.push_str(&format!("{} {}\n", cx.out.toned("wrong:", Tone::Bad), shown(problem)));
    }
    for warning in &report.warnings {
        text.push_str(&format!("{} {}\n", cx.out.toned("note:", Tone::Warning), shown(warning)));
    }
    if report.valid {
        let signed =
            if report.signatures.contains(&"verified") { ", and its signature is verified" } else { "" };
        text.push_str(&format!("the card is valid{signed}\n"));
    }
    text
}

/// Checks a card. `site` is the URL that it was fetched from.
fn check(
    cx: &Cx,
    args: &Args,
    card: &AgentCard,
    url: &str,
    site: Option<&str>,
    allow_http: bool,
) -> Result<CardReport, Failure> {
    let (mut problems, mut warnings) = (Vec::new(), Vec::new());
    for (member, is_there) in [
        ("name", !card.name.is_empty()),
        ("description", !card.description.is_empty()),
        ("version", !card.version.is_empty()),
        ("an interface", !card.interfaces.is_empty()),
    ] {
        if !is_there {
            problems.push(format!("the card has no {member}"));
        }
    }
    if !card.interfaces.is_empty() && card.interfaces.iter().all(|one| one.dialect().is_none()) {
        problems.push("none of the card's interfaces is supported".to_owned());
    }
    let home = site.map(Site::of_url).transpose()?;
    for interface in &card.interfaces {
        match Site::of_url(&interface.url) {
            Err(_) => problems.push(format!("invalid interface URL {}", quoted(&interface.url))),
            // Requests to it would be refused: messages travel over https, on this machine, or where it is allowed.
            Ok(found) if !(found.is_private() || allow_http && Some(&found) == home.as_ref()) => {
                problems
                    .push(format!("{} is plain http, which others on the network can read", interface.url));
            }
            Ok(found) if home.as_ref().is_some_and(|home| *home != found) => {
                warnings.push(format!(
                    "{} is another origin; allow a credential for it with auth set --site",
                    interface.url
                ));
            }
            Ok(_) => {}
        }
    }
    if card.skills.is_empty() {
        warnings.push("the card has no skills".to_owned());
    }
    find_hidden_characters(&card.raw, "", &mut problems);
    let keys = JwkLocations { cx, given: args.jwks.as_deref(), agent: home };
    let mut signatures = Vec::new();
    for status in verify_card(&card.raw, &keys) {
        signatures.push(match status {
            SignatureStatus::Verified { source, .. } => {
                cx.out.detail(&format!("signature verified with the keys of {}", shown(source)));
                "verified"
            }
            SignatureStatus::Unverifiable(reason) => {
                warnings.push(format!("signature not verified: {reason}"));
                "unverifiable"
            }
            SignatureStatus::Invalid(reason) => {
                problems.push(format!("invalid signature: {reason}"));
                "invalid"
            }
        });
    }
    let (url, valid) = (url.to_owned(), problems.is_empty());
    Ok(CardReport { source: "agent", url, valid, problems, warnings, signatures })
}

/// Finds texts with characters that act on a terminal, hide or reorder text.
fn find_hidden_characters(value: &Value, path: &str, problems: &mut Vec<String>) {
    let is_hidden = |text: &str, is_one_line: bool| {
        acts_on_terminals(text) || (is_one_line && text.contains(['\n', '\t']))
    };
    match value {
        Value::String(text) if is_hidden(text, !path.ends_with("description")) => {
            problems.push(format!("{path} has control or invisible characters: {}", quoted(text)));
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                find_hidden_characters(item, &format!("{path}[{at}]"), problems);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                if is_hidden(name, true) {
                    problems.push(format!("a field has control or invisible characters: {}", quoted(name)));
                }
                let place = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                // Examples of skills are prompts, which have lines.
                if name != "examples" {
                    find_hidden_characters(value, &place, problems);
                }
            }
        }
        _ => {}
    }
}

/// JWK set of the user, else the one that a signature names.
struct JwkLocations<'a> {
    cx: &'a Cx,
    given: Option<&'a str>,
    agent: Option<Site>,
}

impl JwkSource for JwkLocations<'_> {
    fn keys(&self, url: Option<&str>) -> Result<(Value, String), String> {
        let parse = |text: &str| {
            sessile::json::from_str(text).map_err(|error| format!("the JWK set is invalid: {error}"))
        };
        if let Some(given) = self.given {
            let text = match given.contains("://") {
                true => fetch(given)?,
                false => read(&self.cx.state.absolute(Path::new(given)))?,
            };
            return Ok((parse(&text)?, given.to_owned()));
        }
        let Some(url) = url else { return Err("the signature names no keys; pass --jwks FILE".to_owned()) };
        let site = Site::of_url(url).map_err(|_| format!("invalid jku {}", quoted(url)))?;
        // A card must not make this machine ask its own services.
        if Some(&site) != self.agent.as_ref() && !url.starts_with("https://") {
            return Err(format!(
                "the keys are at {url}, which is neither https nor the agent; pass --jwks SOURCE"
            ));
        }
        Ok((parse(&fetch(url)?)?, url.to_owned()))
    }
}

fn read(path: &Path) -> Result<String, String> {
    let text = sessile::files::read(path).map_err(|error| error.to_string())?;
    text.ok_or_else(|| sessile::Error::File(FileError::NotFound(path.to_owned())).to_string())
}

fn fetch(url: &str) -> Result<String, String> {
    let found = HttpClient::new(TrustRoots::System).get(url, &[("accept", "application/json")]);
    let found = found.map_err(|error| error.to_string())?;
    match found.status {
        200..=299 => Ok(found.body.expose().to_owned()),
        status => Err(UsageError::Arguments(format!("{url} returned status {status}")).to_string()),
    }
}
