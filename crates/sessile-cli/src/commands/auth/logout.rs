//! `sessile auth logout`.

use std::path::PathBuf;

use serde_json::json;
use sessile::names::CredentialName;
use sessile::session::lifecycle::Lifecycle;
use sessile::text::shown;
use sessile::vault::{Credential, uses_login};

use super::{CredentialChoice, refuse_inside};
use crate::cli::Cx;
use crate::counted::counted;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::remote::checked_url;
use crate::renewer::Renewer;
use crate::terminal_prompt;
use crate::vault_unlock::with_unlocked_vault;

/// Delete credentials, and their copies in the sessions' rooms
///
/// Credentials that share the login are deleted too. In the rooms of sessions, secrets that a tool wrote into a file
/// are replaced by asterisks. Tokens are revoked if the authorization server supports it. Running commands keep the
/// secret until they exit.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile auth logout corp"
    "sessile auth logout --server https://sessile.example"
    "sessile auth logout --all --yes"
))]
pub struct Args {
    #[command(flatten)]
    chosen: CredentialChoice,

    /// Delete the token of the session service at this URL
    #[arg(long, value_name = "URL", conflicts_with_all = ["names", "url", "all"])]
    server: Option<String>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    refuse_inside(cx, "logging out")?;
    let server = args.server.as_deref().map(checked_url).transpose()?;
    let chosen = match &server {
        Some(url) => &CredentialChoice { url: Some(url.clone()), ..CredentialChoice::default() },
        None => &args.chosen,
    };
    let names = with_unlocked_vault(cx, &cx.state, || chosen.names_exactly(&cx.state.vault()?))?;
    let vault = cx.state.vault()?;
    let gone: Vec<Credential> = vault
        .list()?
        .into_iter()
        .filter(|one| {
            // Credentials that share a login would otherwise keep its tokens.
            names.contains(&one.about.name) || names.iter().any(|name| uses_login(&one.about, name))
        })
        .collect();
    let names: Vec<&CredentialName> = gone.iter().map(|one| &one.about.name).collect();
    let words: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
    if !names.is_empty() {
        terminal_prompt::confirm(
            &cx.state,
            &format!("log out {}: {}", counted(names.len(), "credential"), words.join(", ")),
        )?;
    }
    // As they are at the moment when they go: one may have been renewed while the answer was waited for.
    let (mut removed, mut recorded) = (Vec::new(), Ok(0));
    for name in &names {
        removed.extend(vault.remove(name)?);
        // Log the other credentials out and remove the copies of the secret even if the disk is full.
        let outcome =
            sessile::history::record(&cx.state, "auth logout", name.as_str(), "a secret is never recorded");
        recorded = recorded.and(outcome);
    }
    // Needs the secrets as they were: they are searched for by value.
    let blotted = vault.redact_copies(&removed);
    // Last: here they are gone already, whatever the server says.
    let renewer = Renewer::new();
    for one in &removed {
        let login = removed.iter().find(|login| uses_login(&one.about, &login.about.name));
        if let Some(reason) = renewer.give_back(one, login) {
            let name = &one.about.name;
            cx.out.note(&format!("deleted {name} locally; the server did not revoke it: {reason}"));
        }
    }
    recorded?;
    let running = running(cx)?;
    let paths =
        |files: &[PathBuf]| files.iter().map(|path| path.to_string_lossy().into_owned()).collect::<Vec<_>>();
    let json = json!({
        "logged_out": names,
        "copies_removed": paths(&blotted.files),
        "copies_left": paths(&blotted.failed),
        "still_running": running,
    });
    cx.changed(json, || {
        let mut text = match words.len() {
            0 => "no credential to log out\n".to_owned(),
            count => format!("logged out {}: {}\n", counted(count, "credential"), words.join(", ")),
        };
        for path in &blotted.files {
            text.push_str(&format!("removed the copy in {}\n", shown(path.display())));
        }
        for path in &blotted.failed {
            text.push_str(&format!("cannot change the copy in {}\n", shown(path.display())));
        }
        if blotted.files.is_empty() && blotted.failed.is_empty() && !words.is_empty() {
            text.push_str("no session's room contains a copy\n");
        }
        for session in running.iter().filter(|_| !words.is_empty()) {
            let session = shown(session);
            text.push_str(&format!(
                "session {session} still runs and may hold the secret; stop it: sessile session stop {session}\n"
            ));
        }
        text
    })?;
    if let Some(url) = server.filter(|_| !words.is_empty()) {
        cx.out.note(&format!(
            "{url} still accepts the token until an administrator revokes it: sessile user token revoke"
        ));
    }
    if blotted.failed.is_empty() { Ok(()) } else { Err(Failure::Told(sessile::exit::PARTIAL)) }
}

/// Sessions with running commands that may hold a secret.
fn running(cx: &Cx) -> Result<Vec<String>, Failure> {
    let Some(sessions) = cx.state.sessions_to_look_at()? else { return Ok(Vec::new()) };
    let live = sessions.list(None, true, usize::MAX)?;
    let busy = live
        .iter()
        .filter(|session| session.life(cx.state.world()) == Lifecycle::Live && session.room().is_busy());
    Ok(busy.map(|session| session.label().to_owned()).collect())
}
