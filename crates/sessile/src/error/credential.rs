//! Errors of single credentials.

use std::fmt;

use crate::app::App;
use crate::code::Code;
use crate::error::{CredentialConsumer, Diagnostic, ErrorDetails, ExpiredCredential};
use crate::text::{quoted, shell_quoted, shown};

/// Errors of single credentials.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// Credential that the vault does not have.
    #[error(
        "{}",
        if *wanted_by == CredentialConsumer::Command { format!("credential {} not found", quoted(name)) }
        else { format!("credential {} not found in the vault; {wanted_by} needs it", quoted(name)) }
    )]
    NotFound {
        /// Name of the credential.
        name: String,
        /// Part of the call that needs it.
        wanted_by: CredentialConsumer,
        /// Name of the nearest credential in the vault.
        near: Option<String>,
    },
    /// Credential that already exists.
    #[error("credential {} already exists in the {place} with other content", quoted(name))]
    Exists {
        /// Name.
        name: String,
        /// Location.
        place: &'static str,
    },
    /// Expired credential.
    #[error("{0}")]
    Expired(Box<ExpiredCredential>),
    /// Unusable credential.
    #[error("credential {} cannot be used: {}", quoted(name), shown(reason))]
    Unusable {
        /// The credential.
        name: String,
        /// Reason.
        reason: String,
    },
    /// A credential that was not renewed.
    #[error("credential {} could not be renewed: {}", quoted(name), shown(reason))]
    RenewalFailed {
        /// The credential.
        name: String,
        /// The credential whose login it uses, itself if it has its own.
        login: String,
        /// Reason.
        reason: String,
        /// Whether the server refused.
        refused: bool,
    },
    /// Credential that is not sent to a site.
    #[error("credential {} is not sent to {}: {reason}", quoted(name), shown(site))]
    SiteRefused {
        /// Name of the credential.
        name: String,
        /// Site of the request.
        site: String,
        /// Sites that may receive it.
        sites: Vec<String>,
        /// Reason of the refusal, which also chooses the hint.
        reason: SiteRefusal,
    },
}

/// Reason why a credential is not sent to a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteRefusal {
    /// Connection without encryption.
    Plaintext,
    /// Site that is not on the credential's list.
    NotAllowed,
}

impl fmt::Display for SiteRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SiteRefusal::Plaintext => "the connection is not encrypted; use https",
            SiteRefusal::NotAllowed => "the site is not allowed",
        })
    }
}

impl Diagnostic for CredentialError {
    fn code(&self) -> Code {
        match self {
            Self::NotFound { .. } => Code::CredentialNotFound,
            Self::Exists { .. } => Code::CredentialExists,
            Self::Expired(_) => Code::CredentialsExpired,
            Self::Unusable { .. } => Code::CredentialUnusable,
            Self::RenewalFailed { refused: true, .. } => Code::RenewalRefused,
            Self::RenewalFailed { .. } => Code::Unreachable,
            Self::SiteRefused { .. } => Code::SiteRefused,
        }
    }

    fn hint(&self, app: &App) -> Option<String> {
        let name = app.name();
        Some(match self {
            Self::NotFound { near: Some(near), name: credential, .. } => format!(
                "did you mean {}? otherwise create it: {name} auth set {}",
                quoted(near),
                shell_quoted(credential)
            ),
            Self::NotFound { wanted_by: CredentialConsumer::Command, .. } => {
                format!("list the credentials: {name} auth list")
            }
            Self::NotFound { name: credential, wanted_by: CredentialConsumer::Login(_), .. } => {
                format!("log in: {name} auth login {}", shell_quoted(credential))
            }
            Self::NotFound { name: credential, .. } => {
                format!("create it: {name} auth set {}", shell_quoted(credential))
            }
            Self::Exists { .. } => "nothing was moved; delete one of the two credentials".to_owned(),
            Self::Expired(expired) => {
                let variable = &expired.variable;
                match self.fix_command(app) {
                    Some(renew) => format!("renew it: {renew}; or set {variable} for this call"),
                    None => format!("renew the credential at its source, or set {variable} for this call"),
                }
            }
            Self::RenewalFailed { refused: true, .. } => {
                format!("log in again: {}; the old token was kept", self.fix_command(app).unwrap_or_default())
            }
            Self::RenewalFailed { .. } => "try again; the old token was kept".to_owned(),
            Self::Unusable { name: credential, .. } => {
                format!("inspect the credential: {name} auth show {}", shell_quoted(credential))
            }
            Self::SiteRefused { name: credential, sites, site, reason: SiteRefusal::NotAllowed } => {
                let flags: String =
                    sites.iter().map(|site| format!(" --site {}", shell_quoted(site))).collect();
                let sites = if sites.is_empty() { "none".to_owned() } else { sites.join(", ") };
                format!(
                    "allowed sites: {sites}; add one: {name} auth set {credential}{flags} --site {site} --keep-secret"
                )
            }
            _ => return None,
        })
    }

    fn fix_command(&self, app: &App) -> Option<String> {
        let name = app.name();
        Some(match self {
            Self::RenewalFailed { login, refused: true, .. } => {
                format!("{name} auth login {}", shell_quoted(login))
            }
            Self::Expired(expired) => {
                let credential = shell_quoted(&expired.name);
                match (&expired.login, expired.kind) {
                    (Some(login), _) if expired.refused => {
                        format!("{name} auth login {}", shell_quoted(login))
                    }
                    (Some(_), _) => format!("{name} auth refresh {credential}"),
                    (None, "oauth2") => format!("{name} auth refresh {credential}"),
                    // Its secret is from elsewhere.
                    (None, "command" | "env") => return None,
                    // The vault does not have a token for this call, so there is nothing to set.
                    (None, _) if expired.is_for_this_call => return None,
                    (None, _) => format!("{name} auth set {credential}"),
                }
            }
            _ => return None,
        })
    }

    fn is_retryable(&self) -> bool {
        match self {
            // The server was not reached, so the credential may still be renewed later.
            Self::Expired(expired) => expired.reason.is_some() && !expired.refused,
            other => other.code().is_retryable(),
        }
    }

    fn details(&self) -> ErrorDetails {
        let Self::Expired(expired) = self else { return ErrorDetails::default() };
        let ExpiredCredential { name, variable, expired_at, .. } = &**expired;
        ErrorDetails {
            credential: Some(name.clone()),
            variable: Some(variable.clone()),
            expired_at: expired_at.clone(),
            context: None,
        }
    }
}
