//! `sessile auth show`.

use serde::Serialize;
use sessile::error::CredentialConsumer;
use sessile::text::shown;
use sessile::vault::CredentialKind;

use super::{CredentialView, end_of, one_named};
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::vault_unlock::with_unlocked_vault;

/// Show a credential with its secrets masked
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile auth show gh-bot" "sessile auth show https://agent.example --output json"))]
pub struct Args {
    /// Name of the credential, or URL of its agent
    #[arg(value_name = "CREDENTIAL", required_unless_present = "url")]
    name: Option<String>,

    /// Credential of the agent at this URL
    #[arg(long, value_name = "URL", conflicts_with = "name")]
    url: Option<String>,
}

/// Credential with the variable that overrides it.
#[derive(Debug, Serialize)]
struct CredentialDetailView<'a> {
    #[serde(flatten)]
    credential: CredentialView<'a>,
    variable: &'a str,
    has_refresh_token: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let text = args.url.as_deref().or(args.name.as_deref()).unwrap_or_default();
    let found = with_unlocked_vault(cx, &cx.state, || {
        let vault = cx.state.vault()?;
        vault.require(&one_named(&cx.state, &vault, text)?, CredentialConsumer::Command)
    })?;
    let about = &found.about;
    let variable = cx.state.app().credential_variable(&about.name);
    let view = CredentialDetailView {
        credential: CredentialView::new(&cx.state, about),
        variable: &variable,
        has_refresh_token: found.refresh_token().is_some(),
    };
    cx.out.result(&view, || {
        let mut lines = vec![("name", about.name.to_string()), ("kind", about.kind.as_str().to_owned())];
        match &about.kind {
            CredentialKind::ApiKey { header } => lines.push(("header", shown(header))),
            CredentialKind::Basic { username } => lines.push(("username", shown(username))),
            CredentialKind::Command { command, .. } => lines.push(("command", shown(command.join(" ")))),
            CredentialKind::Env { variable } => lines.push(("from", shown(variable))),
            CredentialKind::OAuth2(oauth) => {
                lines.push(("server", shown(&oauth.token_url)));
                lines.push(("client", shown(&oauth.client_id)));
                lines.extend(oauth.login.as_ref().map(|login| ("login", login.to_string())));
            }
            CredentialKind::Bearer => {}
        }
        lines.push(("secret", "********".to_owned()));
        lines.extend(about.account.as_ref().map(|account| ("account", shown(account))));
        if !about.scopes.is_empty() {
            lines.push(("scopes", shown(about.scopes.join(" "))));
        }
        if let Some(end) = about.expires_at {
            lines.push(("expires", format!("{end} ({})", end_of(&cx.state, about))));
        }
        let sites: Vec<String> = about.sites.iter().map(ToString::to_string).collect();
        lines.push((
            "sites",
            if sites.is_empty() {
                "none (the credential is never sent)".to_owned()
            } else {
                shown(sites.join(" "))
            },
        ));
        lines.extend(about.agents.iter().map(|agent| ("agent", shown(agent))));
        lines.push(("variable", format!("{variable} overrides the credential if set")));
        lines.into_iter().map(|(label, value)| format!("{label:<9} {value}\n")).collect()
    })
}
