//! `sessile auth clear`.

use serde_json::json;
use sessile::vault::uses_login;

use super::{CredentialChoice, refuse_inside};
use crate::cli::Cx;
use crate::counted::counted;
use crate::error::Outcome;
use crate::help::examples;
use crate::terminal_prompt;
use crate::vault_unlock::with_unlocked_vault;

/// Delete credentials from the vault
///
/// Keeps the copies in sessions' rooms; `auth logout` deletes those too.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile auth clear gh-bot" "sessile auth clear --url http://localhost:8738 --yes"))]
pub struct Args {
    #[command(flatten)]
    chosen: CredentialChoice,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    refuse_inside(cx, "deleting credentials")?;
    let names = with_unlocked_vault(cx, &cx.state, || args.chosen.names_exactly(&cx.state.vault()?))?;
    let words: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
    if !names.is_empty() {
        terminal_prompt::confirm(
            &cx.state,
            &format!("delete {}: {}", counted(names.len(), "credential"), words.join(", ")),
        )?;
    }
    let vault = cx.state.vault()?;
    // Before the removals, because it names those that depended on them.
    let left = vault.list()?;
    let mut recorded = Ok(0);
    for name in &names {
        vault.remove(name)?;
        let outcome =
            sessile::history::record(&cx.state, "auth clear", name.as_str(), "a secret is never recorded");
        // A full disk must not keep the other secrets in the vault; the failure is reported at the end.
        recorded = recorded.and(outcome);
        let users =
            left.iter().filter(|one| uses_login(&one.about, name) && !names.contains(&one.about.name));
        for user in users {
            cx.out.note(&format!(
                "credential {} used the login of a deleted credential and can no longer be renewed",
                user.about.name
            ));
        }
    }
    recorded?;
    cx.changed(json!({ "cleared": names }), || {
        format!("deleted {}: {}\n", counted(names.len(), "credential"), words.join(", "))
    })
}
