//! `sessile auth check`.

use serde_json::{Value, json};
use sessile::Error;
use sessile::vault::{Site, Usable};

use super::{end_of, one_named};
use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::renewer::Renewer;
use crate::unlocked::unlocked;

/// Check that credentials can be used, or that a server accepts one
///
/// One whose time is up is renewed, if it can be. With --url one request is made, to a site that the credential may be
/// sent to, and the answer decides. Without a name it is the selected credential, or with --url that of the agent there.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile auth check gh-bot"
    "sessile auth check --url https://agent.example/health"
    "sessile auth check --credential gh-bot --output json"
))]
pub struct Args {
    /// The credentials
    #[arg(value_name = "CREDENTIAL")]
    names: Vec<String>,

    /// Send it there and see whether it is accepted
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let renewer = Renewer::new();
    let usable: Vec<Usable> = unlocked(cx, &cx.state, || args.usable(cx, &renewer))?;
    let mut results: Vec<Value> = Vec::new();
    for one in &usable {
        let status = match &args.url {
            Some(url) => Some(send(one, url, &renewer)?),
            None => None,
        };
        results.push(json!({
            "name": if one.for_this_call { Value::Null } else { json!(one.about.name) },
            "valid": true,
            "account": one.about.account,
            "expires_at": one.about.expires_at,
            "status": status,
        }));
    }
    let json = json!({ "valid": true, "credentials": results });
    cx.out.result(&json, || {
        let line = |one: &Usable| {
            let end = match end_of(&cx.state, &one.about).as_str() {
                "-" => String::new(),
                end => format!(", ends {end}"),
            };
            format!("{} is valid{end}\n", one.about.name)
        };
        usable.iter().map(line).collect()
    })
}

impl Args {
    fn usable(&self, cx: &Cx, renewer: &Renewer) -> Result<Vec<Usable>, Error> {
        let state = &cx.state;
        if !self.names.is_empty() {
            let vault = state.vault()?;
            let use_one =
                |text: &String| vault.usable(&one_named(state, &vault, text)?, "this command", renewer);
            return self.names.iter().map(use_one).collect();
        }
        let selected = state.selected_credential()?;
        if let Some(selected) = &selected {
            return Ok(vec![selected.usable(state, renewer)?]);
        }
        let vault = state.vault()?;
        let bound = match &self.url {
            Some(url) => vault.for_agent(url, state.context()?)?,
            None => None,
        };
        match bound {
            Some((name, origin)) => Ok(vec![vault.usable(&name, &origin, renewer)?]),
            None => Err(Error::Usage(
                "say which: NAME, --credential NAME, or the --url of an agent that gets one".into(),
            )),
        }
    }
}

/// Sends a credential to a URL, if it may be sent there; the answer's status.
fn send(usable: &Usable, url: &str, renewer: &Renewer) -> Result<u16, Failure> {
    let (header, value) = usable.header_for(url)?;
    let site = Site::of_url(url)?.to_string();
    let status = renewer.status_of(url, &header, &value)?;
    match status {
        401 | 403 => {
            let name = usable.about.name.to_string();
            Err(Error::CredentialRejected { name, site, status }.into())
        }
        429 => Err(Error::RateLimited { what: site, wait: None }.into()),
        500.. => {
            Err(Error::Unreachable { what: site, reason: format!("it answered with status {status}") }.into())
        }
        _ => Ok(status),
    }
}
