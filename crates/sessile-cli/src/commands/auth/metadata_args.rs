//! Flags of a credential's metadata, for `set` and `login`.

use std::time::Duration;

use sessile::args::parse_duration;
use sessile::error::UsageError;
use sessile::names::CredentialName;
use sessile::site::Site;
use sessile::vault::{CredentialKind, CredentialMetadata};
use sessile::{Error, State};

/// Value of `--expires` for no expiry.
const NEVER: &str = "never";

/// Metadata of a credential.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct MetadataArgs {
    /// Account that the credential belongs to
    #[arg(long, value_name = "ACCOUNT")]
    account: Option<String>,

    /// Scope of the credential; repeatable
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,

    /// Allowed site (scheme, host and port of this URL); replaces the earlier ones
    #[arg(long = "site", value_name = "URL")]
    sites: Vec<String>,

    /// Time of expiry, or never
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with = "expires_in")]
    expires_at: Option<String>,

    /// Expire after this duration
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    expires_in: Option<Duration>,
}

impl MetadataArgs {
    /// Whether the flags say that it never expires.
    pub(super) fn never_ends(&self) -> bool {
        self.expires_at.as_deref() == Some(NEVER)
    }

    /// Metadata from the flags; the kind is set later.
    pub(crate) fn about(&self, state: &State, name: CredentialName) -> Result<CredentialMetadata, Error> {
        let now = state.world().now();
        let mut expires_at = self.expires_at.as_deref().and_then(sessile::vault::time_of);
        if let Some(time) = self.expires_in {
            // A time beyond the calendar's end means no expiry.
            expires_at = now.checked_add(time).ok().map(sessile::vault::whole_seconds);
        }
        let sites: Vec<Site> = self.sites.iter().map(|url| Site::of_url(url)).collect::<Result<_, _>>()?;
        sites.iter().try_for_each(require_private)?;
        Ok(CredentialMetadata {
            account: self.account.clone(),
            scopes: self.scopes.clone(),
            expires_at,
            sites,
            ..CredentialMetadata::new(name, CredentialKind::Bearer, now)
        })
    }
}

/// Fails for a site that a credential is never sent to.
pub(super) fn require_private(site: &Site) -> Result<(), Error> {
    if site.is_private() {
        return Ok(());
    }
    Err(UsageError::InvalidValue {
        place: "URL".into(),
        value: site.to_string(),
        expected: "an https URL or a loopback address, because secrets are sent there".into(),
    }
    .into())
}

/// A time as RFC 3339 writes it.
fn parse_time(text: &str) -> Result<String, String> {
    let known = text == NEVER || sessile::vault::time_of(text).is_some();
    known
        .then(|| text.to_owned())
        .ok_or_else(|| "expected a time such as 2030-01-01T00:00:00Z, or never".to_owned())
}
