//! Agent of a call, and the options of its requests.

use std::time::Duration;

use sessile::agents::Agent as Named;
use sessile::args::parse_duration;
use sessile::error::{FileError, UsageError};
use sessile::vault::Secret;
use sessile::{Error, State};
use sessile_wire::a2a::AgentCard;

use super::agent_error;
use super::credentials::AgentCredentials;
use crate::a2a::{AgentClient, ClientOptions, CredentialProvider, ReplyLimits};
use crate::cli::Cx;
use crate::error::Failure;
use crate::http::{HttpClient, TrustRoots};

/// Flags of the requests to an agent.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct AgentArgs {
    /// The agent: its name or URL
    #[arg(long, visible_alias = "agent", value_name = "AGENT")]
    pub(crate) url: Option<String>,

    /// A header for every request to the agent; a value that begins with @ is read from that file
    #[arg(long, value_name = "NAME: VALUE")]
    header: Vec<String>,

    /// Ask for this extension
    #[arg(long, value_name = "URI")]
    extension: Vec<String>,

    /// Give up after this time
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,
}

/// Agent of a call, before the first request.
pub(crate) struct AgentConnection<'a> {
    pub(crate) named: &'a Named,
    http: HttpClient,
    credentials: AgentCredentials<'a>,
    options: ClientOptions,
}

impl AgentArgs {
    /// Connection to an agent with these flags.
    pub(crate) fn connection<'a>(
        &self,
        state: &'a State,
        named: &'a Named,
    ) -> Result<AgentConnection<'a>, Error> {
        // The guard of a context covers what it binds to agents.
        state.usable_context()?;
        let mut limits = ReplyLimits::default();
        if let Some(time) = self.timeout {
            limits.head = time;
            limits.total = time;
            limits.stream = Some(time);
        }
        let headers = self.header.iter().map(|text| header(state, text)).collect::<Result<_, _>>()?;
        Ok(AgentConnection {
            named,
            http: HttpClient::new(TrustRoots::System),
            credentials: AgentCredentials::new(state, named),
            options: ClientOptions { extensions: self.extension.clone(), headers, limits },
        })
    }

    /// Whether flags are given that only agents support.
    pub(crate) fn is_for_agents(&self) -> bool {
        !self.header.is_empty() || !self.extension.is_empty()
    }

    /// Timeout of the whole call.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// URIs of the extensions.
    pub(crate) fn extensions(&self) -> &[String] {
        &self.extension
    }
}

/// Parses a header. A secret value is accepted only from a file.
pub(crate) fn header(state: &State, text: &str) -> Result<(String, Secret), Error> {
    let wrong = || {
        Error::Usage(UsageError::InvalidValue {
            place: "--header".into(),
            // Only the name: the rest may be a secret.
            value: text.split(':').next().unwrap_or_default().to_owned(),
            expected: "NAME: VALUE".into(),
        })
    };
    let (name, value) = text.split_once(':').ok_or_else(wrong)?;
    let value = value.trim();
    let is_file = value.starts_with('@');
    let value = match value.strip_prefix('@') {
        Some(file) => {
            let path = state.absolute(std::path::Path::new(file));
            // The value may be a secret, which another user must not replace by one of theirs.
            sessile::files::check_trusted(&path)?;
            let text = sessile::files::read(&path)?.ok_or(FileError::NotFound(path))?;
            Secret::new(text.trim())
        }
        None => Secret::new(value),
    };
    // Other users can read the arguments of a process.
    if sessile::secrets::looks_secret(name) && !is_file {
        return Err(UsageError::SecretRefused {
            place: format!("--header {name}"),
            instead: "keep it in the vault and bind it to the agent: auth set --url URL; or give a file: 'NAME: @FILE'",
        }.into());
    }
    Ok((name.trim().to_owned(), value))
}

impl AgentConnection<'_> {
    /// Card of the agent.
    pub(crate) fn card(&self) -> Result<AgentCard, Failure> {
        let card = AgentClient::find_card(&self.http, &self.named.url, &self.credentials, &self.options);
        let card = card.map_err(|error| agent_error(&self.named.url, None, error))?;
        // Before any request with a credential: the card says where an API key goes.
        self.credentials.learn(&card);
        Ok(card)
    }

    /// Client of the agent.
    pub(crate) fn agent(&self, cx: &Cx) -> Result<AgentClient<'_>, Failure> {
        let card = self.card()?;
        // The approval may have ended while the card was fetched.
        self.credentials.recheck_guard()?;
        let auth: &dyn CredentialProvider = &self.credentials;
        let agent = AgentClient::from_card(&self.http, &self.named.url, auth, self.options.clone(), card);
        let agent = agent.map_err(|error| agent_error(&self.named.url, None, error))?;
        if !agent.is_at_home() {
            let place = &agent.interface.url;
            cx.out.note(&format!(
                "its card says that it is at {place}; a credential goes there only if it may"
            ));
        }
        Ok(agent)
    }
}
