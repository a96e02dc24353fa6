//! `sessile auth refresh`.

use serde_json::json;
use sessile::Error;
use sessile::error::CredentialConsumer;
use sessile::vault::CredentialKind;

use super::{CredentialChoice, CredentialView, end_of};
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::renewer::Renewer;
use crate::vault_unlock::with_unlocked_vault;

/// Renew credentials now
///
/// Requests new tokens from the authorization server, and runs credential commands with a cache again. If that fails,
/// the old token is kept. Processes that need an expired token renew it themselves, one process at a time.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile auth refresh corp" "sessile auth refresh --all"))]
pub struct Args {
    #[command(flatten)]
    chosen: CredentialChoice,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let names = with_unlocked_vault(cx, &cx.state, || args.chosen.names(&cx.state, &cx.state.vault()?))?;
    let vault = cx.state.vault()?;
    let renewer = Renewer::new();
    let mut renewed = Vec::new();
    let mut failed: Option<Error> = None;
    let mut failures = 0;
    for name in &names {
        // Another process may have deleted it since the list was read.
        let result = match vault.require(name, CredentialConsumer::Command).map(|found| found.about.kind) {
            Ok(CredentialKind::Command { cache_seconds: Some(_), .. }) => vault.rerun_command(name),
            Ok(CredentialKind::OAuth2(_)) => vault.renew(name, &renewer),
            // `--all` skips credentials that cannot be renewed; a named one is an error.
            Ok(_) if args.chosen.all => continue,
            Ok(_) => vault.renew(name, &renewer),
            Err(error) => Err(error),
        };
        match result {
            Ok(credential) => {
                sessile::history::record(
                    &cx.state,
                    "auth refresh",
                    name.as_str(),
                    "a secret is never recorded",
                )?;
                renewed.push(credential.about);
            }
            // The others are tried all the same; the first that failed is told in the end.
            Err(error) => {
                if failed.is_some() || names.len() > 1 {
                    cx.out.note(&format!("{error}"));
                }
                failures += 1;
                failed.get_or_insert(error);
            }
        }
    }
    if renewed.is_empty()
        && let Some(error) = failed
    {
        return Err(error.into());
    }
    let views: Vec<CredentialView<'_>> =
        renewed.iter().map(|about| CredentialView::new(&cx.state, about)).collect();
    cx.changed(json!({ "renewed": views, "failed": failures }), || {
        let lines = renewed
            .iter()
            .map(|about| format!("renewed {}; it expires {}\n", about.name, end_of(&cx.state, about)));
        lines.collect()
    })?;
    if failed.is_some() { Err(crate::error::Failure::Told(sessile::exit::PARTIAL)) } else { Ok(()) }
}
