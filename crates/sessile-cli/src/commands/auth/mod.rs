//! `sessile auth`: credentials, kept in the vault.

pub mod check;
pub mod clear;
mod command_words;
pub mod list;
pub mod login;
mod login_server;
pub mod logout;
mod metadata_args;
pub mod move_to;
pub mod refresh;
pub mod rekey;
mod secret_source;
pub mod set;
pub mod show;
pub mod status;
pub mod unlock;

use serde::Serialize;
use sessile::error::{CredentialConsumer, CredentialError, SessionError, UsageError};
use sessile::names::CredentialName;
use sessile::vault::{CredentialMetadata, Vault};
use sessile::{Error, State};

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::lazy_command::Lazy;

/// Manage credentials in the vault
///
/// A credential has a name, a kind and optionally an expiry. Contexts pass it to commands and agents by name. Secrets
/// are typed at a prompt, piped, or read from a file, a variable or a descriptor. They are never arguments and never
/// printed.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = examples!(
    "sessile auth set gh-bot"
    "sessile auth set --url https://agent.example --secret-stdin"
    "sessile auth login corp --issuer https://idp --client-id cli"
    "sessile auth list"
))]
pub enum Command {
    /// Create or change a credential
    Set(Box<Lazy<set::Args>>),
    /// Log in to an authorization server and store the tokens
    Login(Box<Lazy<login::Args>>),
    /// Show the active account, its source and its expiry
    Status(Lazy<status::Args>),
    /// List the credentials
    #[command(visible_alias = "ls")]
    List(Lazy<list::Args>),
    /// Show a credential with its secrets masked
    Show(Lazy<show::Args>),
    /// Delete credentials from the vault
    #[command(visible_alias = "rm", aliases = ["remove", "delete"])]
    Clear(Lazy<clear::Args>),
    /// Delete credentials, and their copies in the sessions' rooms
    Logout(Lazy<logout::Args>),
    /// Renew credentials now
    Refresh(Lazy<refresh::Args>),
    /// Check that credentials can be used, or that a server accepts one
    Check(Lazy<check::Args>),
    /// Unlock a vault that has a passphrase
    Unlock(Lazy<unlock::Args>),
    /// Move the credentials to another backend
    Move(Lazy<move_to::Args>),
    /// Change the vault's key
    Rekey(Lazy<rekey::Args>),
}

impl Command {
    pub(crate) fn run(&self, cx: &Cx) -> Outcome {
        match self {
            Command::Set(args) => set::run(&args.0, cx),
            Command::Login(args) => login::run(&args.0, cx),
            Command::Status(Lazy(args)) => status::run(args, cx),
            Command::List(Lazy(args)) => list::run(args, cx),
            Command::Show(Lazy(args)) => show::run(args, cx),
            Command::Clear(Lazy(args)) => clear::run(args, cx),
            Command::Logout(Lazy(args)) => logout::run(args, cx),
            Command::Refresh(Lazy(args)) => refresh::run(args, cx),
            Command::Check(Lazy(args)) => check::run(args, cx),
            Command::Unlock(Lazy(args)) => unlock::run(args, cx),
            Command::Move(Lazy(args)) => move_to::run(args, cx),
            Command::Rekey(Lazy(args)) => rekey::run(args, cx),
        }
    }
}

/// Fails inside a session, which must not change other sessions' credentials.
pub(crate) fn refuse_inside(cx: &Cx, what: &str) -> Result<(), Error> {
    match cx.state.inside_session() {
        Some(_) => {
            Err(SessionError::RefusedInside { what: what.to_owned(), instead: "do it outside the session" }
                .into())
        }
        None => Ok(()),
    }
}

/// Credentials that a command applies to.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct CredentialChoice {
    /// Names of credentials, or URLs of their agents
    #[arg(value_name = "CREDENTIAL")]
    names: Vec<String>,

    /// Credential of the agent at this URL
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// All credentials
    #[arg(long, conflicts_with_all = ["names", "url"])]
    all: bool,
}

impl CredentialChoice {
    /// Names of the chosen credentials, all of which exist.
    pub(crate) fn names(&self, state: &State, vault: &Vault<'_>) -> Result<Vec<CredentialName>, Error> {
        self.named(vault, |text| one_named(state, vault, text))
    }

    /// Names for a deletion: a URL selects only the credential of that agent.
    pub(crate) fn names_exactly(&self, vault: &Vault<'_>) -> Result<Vec<CredentialName>, Error> {
        self.named(vault, |text| {
            if !text.contains("://") {
                return text.parse();
            }
            let missing = || {
                Error::Credential(CredentialError::NotFound {
                    name: sessile::site::agent_url(text).unwrap_or_default(),
                    wanted_by: CredentialConsumer::Command,
                    near: None,
                })
            };
            vault.of_agent(text)?.ok_or_else(missing)
        })
    }

    fn named(
        &self,
        vault: &Vault<'_>,
        name: impl Fn(&str) -> Result<CredentialName, Error>,
    ) -> Result<Vec<CredentialName>, Error> {
        if self.all {
            return Ok(vault.list()?.into_iter().map(|one| one.about.name).collect());
        }
        let mut names = Vec::new();
        for text in self.names.iter().chain(&self.url) {
            let name = name(text)?;
            // All are looked up before the first is changed, so that a typo changes nothing.
            vault.require(&name, CredentialConsumer::Command)?;
            names.push(name);
        }
        if names.is_empty() {
            return Err(
                UsageError::Arguments("choose the credentials: NAME, --url URL or --all".into()).into()
            );
        }
        Ok(names)
    }
}

/// Name of a credential, from its name or its agent's URL.
pub(crate) fn one_named(state: &State, vault: &Vault<'_>, text: &str) -> Result<CredentialName, Error> {
    if !text.contains("://") {
        return text.parse();
    }
    let found = vault.for_agent(text, state.context()?)?;
    found.map(|(name, _)| name).ok_or_else(|| {
        Error::Credential(CredentialError::NotFound {
            name: sessile::site::agent_url(text).unwrap_or_default(),
            wanted_by: CredentialConsumer::Command,
            near: None,
        })
    })
}

/// A credential, without its secret.
#[derive(Debug, Serialize)]
pub(crate) struct CredentialView<'a> {
    #[serde(flatten)]
    about: &'a CredentialMetadata,
    valid: bool,
    secret: &'static str,
}

impl<'a> CredentialView<'a> {
    pub(crate) fn new(state: &State, about: &'a CredentialMetadata) -> Self {
        CredentialView { about, valid: about.is_valid(state.world().now()), secret: "********" }
    }
}

/// Expiry, in a few words.
pub(crate) fn end_of(state: &State, about: &CredentialMetadata) -> String {
    let Some(end) = about.expires_at else { return "-".to_owned() };
    let now = state.world().now();
    let between = std::time::Duration::try_from(end.duration_since(now).abs()).unwrap_or_default();
    let time = sessile::duration::short(between);
    if end > now { format!("in {time}") } else { format!("{time} ago") }
}
