//! Which agent, and how it is reached.

use std::time::Duration;

use sessile::agents::Agent as Named;
use sessile::args::parse_duration;
use sessile::error::{FileError, UsageError};
use sessile::vault::Secret;
use sessile::{Error, State};
use sessile_wire::a2a::AgentCard;

use super::credentials::Credentials;
use super::failed;
use crate::a2a::{AgentClient, Authorize, ClientOptions, ReplyLimits};
use crate::cli::Cx;
use crate::error::Failure;
use crate::http::{Http, Roots};

/// The flags that say how an agent is reached.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Reach {
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

/// An agent that a call is about, before it is asked anything.
pub(crate) struct Whom<'a> {
    pub(crate) named: &'a Named,
    http: Http,
    credentials: Credentials<'a>,
    options: ClientOptions,
}

impl Reach {
    /// How it is reached.
    pub(crate) fn whom<'a>(&self, state: &'a State, named: &'a Named) -> Result<Whom<'a>, Error> {
        if state.selected()?.is_some() {
            // What a context gives to an agent is asked for like everything else of it.
            state.contexts().require()?;
        }
        let mut limits = ReplyLimits::default();
        if let Some(time) = self.timeout {
            limits.head = time;
            limits.total = time;
            limits.stream = Some(time);
        }
        let headers = self.header.iter().map(|text| header(state, text)).collect::<Result<_, _>>()?;
        Ok(Whom {
            named,
            http: Http::new(Roots::System),
            credentials: Credentials::new(state, named),
            options: ClientOptions { extensions: self.extension.clone(), headers, limits },
        })
    }

    /// Whether it says what only an agent understands.
    pub(crate) fn is_for_agents(&self) -> bool {
        !self.header.is_empty() || !self.extension.is_empty()
    }

    /// How long the whole may take, if that was said.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// The extensions that are asked for.
    pub(crate) fn extensions(&self) -> &[String] {
        &self.extension
    }
}

/// A header as it was given; a secret one only from a file.
pub(crate) fn header(state: &State, text: &str) -> Result<(String, Secret), Error> {
    let wrong = || {
        Error::Usage(UsageError::InvalidValue {
            place: "--header".into(),
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
            let text = sessile::files::read(&path)?.ok_or(FileError::NotFound(path))?;
            Secret::new(text.trim())
        }
        None => Secret::new(value),
    };
    // Who sees the arguments sees them; what is secret is in the vault.
    if sessile::context::transfer::looks_secret(name) && !is_file {
        return Err(UsageError::SecretRefused {
            place: format!("--header {name}"),
            instead: "keep it in the vault and bind it to the agent: auth set --url URL; or give a file: 'NAME: @FILE'",
        }.into());
    }
    Ok((name.trim().to_owned(), value))
}

impl Whom<'_> {
    /// Its card.
    pub(crate) fn card(&self) -> Result<AgentCard, Failure> {
        let card = AgentClient::find_card(&self.http, &self.named.url, &self.credentials, &self.options);
        let card = card.map_err(|error| failed(&self.named.url, None, error))?;
        self.credentials.learn(&card);
        Ok(card)
    }

    /// The agent itself.
    pub(crate) fn agent(&self, cx: &Cx) -> Result<AgentClient<'_>, Failure> {
        let card = self.card()?;
        // Fetching the card may take long.
        self.credentials.recheck_guard()?;
        let auth: &dyn Authorize = &self.credentials;
        let agent = AgentClient::from_card(&self.http, &self.named.url, auth, self.options.clone(), card);
        let agent = agent.map_err(|error| failed(&self.named.url, None, error))?;
        if !agent.is_at_home() {
            let place = &agent.interface.url;
            cx.out.note(&format!(
                "its card says that it is at {place}; a credential goes there only if it may"
            ));
        }
        Ok(agent)
    }
}
