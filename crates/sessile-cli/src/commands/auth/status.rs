//! `sessile auth status`.

use serde::Serialize;
use serde_json::json;
use sessile::context::Variable;
use sessile::status::CredentialStatus;
use sessile::text::shown;
use sessile::vault::CredentialMetadata;

use super::end_of;
use crate::cli::Cx;
use crate::counted::counted;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::output::Table;
use crate::vault_unlock::with_unlocked_vault;

/// Show the active account, its source and its expiry
///
/// Also lists the credentials that the context passes to commands and agents. Nothing is renewed or sent.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile auth status" "sessile auth status --context staging --output json"))]
pub struct Args {}

pub(crate) fn run(_args: &Args, cx: &Cx) -> Outcome {
    let state = &cx.state;
    // Asks for the passphrase if that is needed.
    let all: Vec<CredentialMetadata> = with_unlocked_vault(cx, state, || {
        Ok(state.vault()?.list()?.into_iter().map(|one| one.about).collect())
    })?;
    let selected = CredentialStatus::of(state)?;
    let bound = bound(cx, &all)?;
    let user = selected.as_ref().and_then(|one| one.account.clone());
    let vault = state.vault()?.status()?;
    let json = json!({
        "logged_in": selected.as_ref().is_some_and(|one| one.valid),
        "user": user,
        "os_user": state.world().user_name(),
        "credential": selected,
        "expires_at": selected.as_ref().and_then(|one| one.expires_at.clone()),
        "bound": bound,
        "credentials": all.len(),
        "vault": vault,
    });
    cx.out.result(&json, || {
        let mut text = match &selected {
            Some(one) => {
                let name = one.name.as_deref().unwrap_or("token for this call");
                let state = match (one.valid, one.kind) {
                    (true, _) => "valid",
                    (false, None) => "missing",
                    (false, Some(_)) => "expired",
                };
                let end = one.expires_at.as_ref().map_or_else(String::new, |end| format!(", expires {end}"));
                let user = user.as_deref().unwrap_or("unknown account");
                format!("{} by {} ({state}{end})  from {}\n", shown(user), shown(name), one.origin)
            }
            None => "no credential selected\n".to_owned(),
        };
        let backend = vault.backend.map_or("none yet", sessile::vault::Backend::as_str);
        text.push_str(&format!(
            "vault: {backend}, {}  from {}\n",
            counted(all.len(), "credential"),
            vault.origin
        ));
        if !bound.is_empty() {
            let mut table = Table::new(&["USED FOR", "CREDENTIAL", "STATE", "EXPIRES"]);
            for row in &bound {
                let cells =
                    [shown(&row.to), shown(&row.credential), row.state.to_owned(), shown(&row.expires)];
                table.row(&cells, None);
            }
            text.push_str(&table.render_wrapped(&cx.out));
        }
        text
    })
}

/// Credential that the context passes to a command or an agent.
#[derive(Debug, Serialize)]
struct BindingView {
    #[serde(flatten)]
    recipient: Recipient,
    to: String,
    credential: String,
    context: String,
    state: &'static str,
    expires_at: Option<String>,
    expires: String,
}

/// Recipient of a credential.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Recipient {
    /// Variable of commands.
    Variable(String),
    /// URL of an agent.
    Agent(String),
}

impl Recipient {
    fn name(&self) -> &str {
        match self {
            Recipient::Variable(name) | Recipient::Agent(name) => name,
        }
    }
}

/// Credentials that the context binds to commands and agents.
fn bound(cx: &Cx, all: &[CredentialMetadata]) -> Result<Vec<BindingView>, Failure> {
    let Some(context) = cx.state.context()? else { return Ok(Vec::new()) };
    let now = cx.state.world().now();
    let vault = cx.state.vault()?;
    let row = |recipient: Recipient, name: &str| {
        // A variable may stand for it.
        let said = name
            .parse()
            .ok()
            .and_then(|name| vault.credential_from_variable(&name).ok().flatten())
            .map(|said| said.about);
        let about = said.as_ref().or_else(|| all.iter().find(|about| about.name.as_str() == name));
        let state = match about {
            None => "missing",
            Some(about) if about.is_valid(now) => "valid",
            Some(_) => "expired",
        };
        BindingView {
            to: recipient.name().to_owned(),
            recipient,
            credential: name.to_owned(),
            context: context.name.to_string(),
            state,
            expires_at: about.and_then(|about| about.expires_at).map(|at| at.to_string()),
            expires: about.map_or_else(|| "-".to_owned(), |about| end_of(&cx.state, about)),
        }
    };
    let variables = context.env.iter().filter_map(|(name, variable)| match variable {
        Variable::Credential { credential } => Some(row(Recipient::Variable(name.clone()), credential)),
        Variable::Plain(_) => None,
    });
    let agents =
        context.agents.iter().map(|(url, credential)| row(Recipient::Agent(url.clone()), credential));
    Ok(variables.chain(agents).collect())
}
