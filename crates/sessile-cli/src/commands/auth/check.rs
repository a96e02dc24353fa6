//! `sessile auth check`.

use serde_json::{Value, json};
use sessile::Error;
use sessile::error::{CredentialConsumer, UsageError};
use sessile::site::Site;
use sessile::text::shown;
use sessile::vault::LoadedCredential;

use super::{end_of, one_named};
use crate::cli::Cx;
use crate::error::{Failure, Outcome, RequestError};
use crate::help::examples;
use crate::renewer::Renewer;
use crate::vault_unlock::with_unlocked_vault;

/// Check that credentials can be used, or that a server accepts one
///
/// Expired credentials are renewed first. With --url the command sends one request with the credential, to an allowed
/// site, and reports whether the server accepts it. Without a name it checks the selected credential, or with --url the
/// credential of the agent at that URL.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile auth check gh-bot"
    "sessile auth check --url https://agent.example/health"
    "sessile auth check --credential gh-bot --output json"
))]
pub struct Args {
    /// Names of the credentials
    #[arg(value_name = "CREDENTIAL")]
    names: Vec<String>,

    /// Send the credential to this URL and report whether it is accepted
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let renewer = Renewer::new();
    // A single one fails with its own error and status.
    if args.names.len() > 1 {
        return check_all(args, cx, &renewer);
    }
    let checked = check(args, cx, &renewer, args.names.first())?;
    let json = json!({ "valid": true, "credentials": [checked.json()] });
    cx.out.result(&json, || checked.line(cx))
}

/// Checks several credentials, reports each, and fails at the end if one failed.
fn check_all(args: &Args, cx: &Cx, renewer: &Renewer) -> Outcome {
    let mut exit = None;
    let (mut results, mut lines) = (Vec::new(), String::new());
    for name in &args.names {
        match check(args, cx, renewer, Some(name)) {
            Ok(checked) => {
                results.push(checked.json());
                lines.push_str(&checked.line(cx));
            }
            Err(failure) => {
                // The first failure decides the status, as it would if it were the only one.
                exit.get_or_insert(failure.exit());
                let report = failure.report(cx.state.app());
                let message = report.as_ref().map(|report| report.message.clone()).unwrap_or_default();
                let code = report.map(|report| report.code.as_str());
                lines.push_str(&format!("{}: {}\n", shown(name), shown(&message)));
                results.push(json!({ "name": name, "valid": false, "code": code, "message": message }));
            }
        }
    }
    cx.out.result(&json!({ "valid": exit.is_none(), "credentials": results }), || lines)?;
    exit.map_or(Ok(()), |exit| Err(Failure::Told(exit)))
}

/// Usable credential with the status of a server's response.
struct CredentialCheckResult {
    usable: LoadedCredential,
    status: Option<u16>,
}

fn check(
    args: &Args,
    cx: &Cx,
    renewer: &Renewer,
    name: Option<&String>,
) -> Result<CredentialCheckResult, Failure> {
    let usable = with_unlocked_vault(cx, &cx.state, || args.load_credential(cx, renewer, name))?;
    if args.is_of_context(cx, name)? {
        // The program or the server may have answered slowly.
        cx.state.contexts().recheck(true)?;
    }
    let status = args.url.as_ref().map(|url| send(&usable, url, renewer)).transpose()?;
    Ok(CredentialCheckResult { usable, status })
}

impl CredentialCheckResult {
    fn json(&self) -> Value {
        let CredentialCheckResult { usable, status } = self;
        json!({
            "name": if usable.for_this_call { Value::Null } else { json!(usable.about.name) },
            "valid": true,
            "account": usable.about.account,
            "expires_at": usable.about.expires_at,
            "status": status,
        })
    }

    fn line(&self, cx: &Cx) -> String {
        let about = &self.usable.about;
        let end = match end_of(&cx.state, about).as_str() {
            "-" => String::new(),
            end => format!(", expires {end}"),
        };
        let name = if self.usable.for_this_call { "the token for this call" } else { about.name.as_str() };
        let answered =
            self.status.map_or_else(String::new, |status| format!(", not rejected (status {status})"));
        format!("{name} is valid{answered}{end}\n")
    }
}

impl Args {
    /// Whether the context provides the credential.
    fn is_of_context(&self, cx: &Cx, name: Option<&String>) -> Result<bool, Error> {
        Ok(name.is_none() && cx.state.selected_credential()?.is_none())
    }

    fn load_credential(
        &self,
        cx: &Cx,
        renewer: &Renewer,
        name: Option<&String>,
    ) -> Result<LoadedCredential, Error> {
        let state = &cx.state;
        if let Some(text) = name {
            let vault = state.vault()?;
            return vault.load_credential(
                &one_named(state, &vault, text)?,
                CredentialConsumer::Command,
                renewer,
            );
        }
        if let Some(selected) = state.selected_credential()? {
            return selected.load_credential(state, renewer);
        }
        let vault = state.vault()?;
        state.usable_context()?;
        let bound = match &self.url {
            Some(url) => vault.for_agent(url, state.context()?)?,
            None => None,
        };
        match bound {
            Some((name, origin)) => vault.load_credential(&name, origin, renewer),
            None => Err(UsageError::Arguments(
                "choose a credential: NAME, --credential NAME, or --url URL of an agent that has one".into(),
            )
            .into()),
        }
    }
}

/// Sends a credential to an allowed URL and returns the status of the response.
fn send(usable: &LoadedCredential, url: &str, renewer: &Renewer) -> Result<u16, Failure> {
    let (header, value) = usable.header_for(url)?;
    let site = Site::of_url(url)?.to_string();
    let status = renewer.status_of(url, &header, &value)?;
    match status {
        // A redirect is most often to where one would log in, and is never followed.
        300..=399 | 401 | 403 => {
            let name = usable.about.name.to_string();
            let kind = usable.about.kind.as_str();
            let is_for_this_call = usable.for_this_call;
            Err(RequestError::CredentialRejected { name, site, status, kind, is_for_this_call }.into())
        }
        429 => Err(RequestError::RateLimited { what: site, wait: None }.into()),
        500.. => Err(RequestError::unreachable(site, format!("status {status}")).into()),
        _ => Ok(status),
    }
}
