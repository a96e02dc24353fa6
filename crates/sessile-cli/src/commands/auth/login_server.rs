//! `sessile auth login --server`: a token of a session service.

use std::time::{Duration, Instant};

use serde_json::json;
use sessile::error::SessionError;
use sessile::names::CredentialName;
use sessile::text::{shell_quoted, shown};
use sessile::vault::{Credential, CredentialKind, CredentialMetadata, Secret, time_of};

use super::login::patience;
use super::secret_source::SecretSource;
use super::{CredentialView, end_of};
use crate::cli::Cx;
use crate::error::{Failure, Outcome, RequestError};
use crate::remote::{PendingLogin, ServiceClient, checked_url};
use crate::vault_unlock::with_unlocked_vault;

/// Login at a service.
pub(super) struct ServiceLogin<'a> {
    pub(super) url: &'a str,
    /// The credential, if it was named.
    pub(super) name: Option<CredentialName>,
    pub(super) from: &'a SecretSource,
    pub(super) wait: Option<Duration>,
}

pub(super) fn run(at: &ServiceLogin<'_>, cx: &Cx) -> Outcome {
    let url = checked_url(at.url)?;
    let name = with_unlocked_vault(cx, &cx.state, || match &at.name {
        Some(name) => Ok(name.clone()),
        None => {
            let vault = cx.state.vault()?;
            vault.of_agent(&url)?.map_or_else(|| vault.free_name(&url), Ok)
        }
    })?;
    // Looked up before a person is asked to confirm a code that would then be refused.
    let is_known = with_unlocked_vault(cx, &cx.state, || cx.state.vault()?.get(&name))?.is_some();
    if cx.state.inside_session().is_some() && is_known {
        // Others may use it.
        let what = format!("changing credential {name}");
        return Err(SessionError::RefusedInside {
            what,
            instead: "do it outside the session, or choose another name",
        }
        .into());
    }
    let token =
        if at.from.is_passed() { at.from.read(cx, "--token", None, "")? } else { by_code(at, cx, &url)? };
    // What it is good for, the service tells; one that it does not take is not kept.
    let me = ServiceClient::with_token(&url, Some(&token))?.with_progress(&cx.out).me()?;
    let mut about = CredentialMetadata {
        account: Some(me.user),
        scopes: me.scopes.iter().map(|scope| scope.as_str().to_owned()).collect(),
        expires_at: me.expires_ms.and_then(|end| time_of(&sessile::clock::rfc3339(end))),
        agents: vec![url.clone()],
        ..CredentialMetadata::new(name.clone(), CredentialKind::Bearer, cx.state.world().now())
    };
    about.allow_agents();
    let credential = Credential::new(about.clone(), Some(token));
    with_unlocked_vault(cx, &cx.state, || cx.state.vault()?.put(credential.clone()))?;
    // After the new one is stored: a URL has one credential, and must not be without one in between.
    for other in cx.state.vault()?.leave_agent(&url, &name)? {
        cx.out.note(&format!("credential {other} is no longer used for {url}"));
    }
    sessile::history::record(&cx.state, "auth login", name.as_str(), "a secret is never recorded")?;
    cx.changed(CredentialView::new(&cx.state, &about), || {
        let who = about.account.as_ref().map_or_else(String::new, |who| format!(" as {}", shown(who)));
        let end = match end_of(&cx.state, &about).as_str() {
            "-" => String::new(),
            end => format!("; the token expires {end}"),
        };
        format!("logged in{who}: credential {name}{end}\n")
    })?;
    cx.out.note(&format!(
        "pass --server {0}, or make the service the default: sessile config set server {0} --global",
        shell_quoted(&url)
    ));
    Ok(())
}

/// Shows a code and waits until an administrator has confirmed it.
fn by_code(at: &ServiceLogin<'_>, cx: &Cx, url: &str) -> Result<Secret, Failure> {
    let patience = patience(cx, at.wait)?;
    let server = ServiceClient::with_token(url, None)?.with_progress(&cx.out);
    let code = PendingLogin::begin(&server, &cx.state)?;
    let time = patience.min(code.expires_in);
    let json = json!({ "login": { "server": url, "user_code": code.user_code, "expires_in_seconds": time.as_secs() } });
    let said = shown(&code.user_code);
    cx.out.ask_for(
        &json,
        &format!("ask an administrator of {url} to approve the code {said}:\n  sessile user approve {said} --user NAME\nwaiting up to {} for the approval ...", sessile::duration::short(time)),
    );
    let _step = cx.out.slow_step(|| "waiting for the approval");
    let begun = Instant::now();
    loop {
        if begun.elapsed() >= time {
            return Err(RequestError::TimedOut { what: "the login".into() }.into());
        }
        std::thread::sleep(code.interval.min(time.saturating_sub(begun.elapsed())));
        if let Some(token) = code.collect(&server)? {
            return Ok(token);
        }
    }
}
