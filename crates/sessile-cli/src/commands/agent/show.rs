//! `sessile agent show`.

use serde_json::{Value, json};
use sessile::agents::Agent;
use sessile::text::shown;
use sessile_wire::a2a::AgentCard;

use super::AgentTarget;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;

/// Show an agent's name, settings and card
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile agent show research" "sessile agent show http://localhost:8738 --output json"))]
pub struct Args {
    #[command(flatten)]
    target: AgentTarget,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let (named, card) = args.target.fetch_card(cx)?;
    cx.out.result(&card_json(&card, &named), || {
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
        if named.allow_http {
            line("http", "plain http is allowed, without a credential".to_owned());
        }
        for header in &named.headers {
            line("header", header.clone());
        }
        if let Some(files) = &named.client_cert {
            line("mtls", files.cert.display().to_string());
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
        for uri in &card.required_extensions {
            line("requires", format!("extension {uri}"));
        }
        for skill in &card.skills {
            line("skill", format!("{}: {}", skill.name, skill.description));
        }
        text
    })
}

/// A card in one vocabulary, with the agent's name and credential here.
fn card_json(card: &AgentCard, named: &Agent) -> Value {
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
        "required_extensions": card.required_extensions,
        "allow_http": named.allow_http,
        "headers": named.headers,
        "client_cert": named.client_cert,
        "url": named.url,
        "called": named.name,
        "credential": named.credential,
    })
}
