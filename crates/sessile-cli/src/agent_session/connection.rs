//! Agent of a call, and the options of its requests.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sessile::agents::Agent as Named;
use sessile::args::parse_duration;
use sessile::error::{FileError, UsageError};
use sessile::site::Site;
use sessile::vault::Secret;
use sessile::{Error, State};
use sessile_wire::a2a::{AgentCard, ProtocolBinding, ProtocolVersion};
use sessile_wire::address::HttpOrigin;
use zeroize::Zeroizing;

use super::agent_error;
use super::card_cache::CardFiles;
use super::credentials::{AgentCredentials, CallCredential};
use super::wire_log::{WireLog, WireSink};
use crate::a2a::{
    A2aError, AgentClient, CardCache, ClientOptions, CredentialProvider, ReplyLimits, SentSecrets,
};
use crate::cli::Cx;
use crate::commands::message::DeliveryLimits;
use crate::error::{AgentError, Failure};
use crate::http::{HttpAddress, HttpClient, TrustRoots};

/// Flags of the requests to an agent.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct AgentArgs {
    /// The agent: its name, URL, host, or a file with its card
    #[arg(short = 'a', long, visible_aliases = ["agent", "agent-card"], value_name = "AGENT")]
    pub(crate) url: Option<String>,

    /// Send this header with every request; @FILE as the value reads a file
    #[arg(short = 'H', long, visible_alias = "svc-param", value_name = "NAME: VALUE")]
    header: Vec<String>,

    /// Declare support for this extension
    #[arg(short = 'e', long, value_name = "URI", hide_short_help = true)]
    extension: Vec<String>,

    /// Limit the time of the whole call
    #[arg(long, value_name = "DURATION", value_parser = parse_limit)]
    timeout: Option<Duration>,

    /// Limit the time to connect; 10s by default
    #[arg(long, value_name = "DURATION", value_parser = parse_limit, hide_short_help = true)]
    connect_timeout: Option<Duration>,

    /// Limit the silence before and within a reply; 10m by default
    #[arg(long, value_name = "DURATION", value_parser = parse_limit, hide_short_help = true)]
    read_timeout: Option<Duration>,

    /// Fail when a stream is silent for this long; default: follow the task
    #[arg(long, value_name = "DURATION", value_parser = parse_limit, hide_short_help = true)]
    stream_read_timeout: Option<Duration>,

    /// Limit the time to send a request
    #[arg(long, value_name = "DURATION", value_parser = parse_limit, hide_short_help = true)]
    write_timeout: Option<Duration>,

    /// Send the bearer token in this variable
    #[arg(short = 'b', long, value_name = "VARIABLE", conflicts_with = "api_key_env")]
    bearer_env: Option<String>,

    /// Send the API key in this variable, as the agent's card requires
    #[arg(short = 'k', long, value_name = "VARIABLE", hide_short_help = true)]
    api_key_env: Option<String>,

    /// Look variables up in this file first, such as .env
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    env_file: Option<PathBuf>,

    /// Prefer this binding: JSONRPC or HTTP+JSON; repeat for an order
    #[arg(long, value_name = "BINDING", value_parser = parse_binding, hide_short_help = true)]
    transport: Vec<String>,

    /// Require this version of the protocol: 1.0 or 0.3
    #[arg(long, value_name = "VERSION", value_parser = parse_version, hide_short_help = true)]
    a2a_version: Option<String>,

    /// Do not verify certificates; only for agents on this machine
    #[arg(long, hide_short_help = true)]
    insecure: bool,

    /// Log requests and replies on standard error, without credentials
    #[arg(long, hide_short_help = true)]
    debug: bool,
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
        cx: &'a Cx,
        named: &'a Named,
    ) -> Result<AgentConnection<'a>, Failure> {
        let out = cx.out.clone();
        let sink: Option<WireSink> =
            if self.debug { Some(Box::new(move |line| out.wire_line(&line))) } else { None };
        self.logged_connection(cx, named, sink)
    }

    /// The same with a log of requests and replies.
    pub(crate) fn logged_connection<'a>(
        &self,
        cx: &'a Cx,
        named: &'a Named,
        wire_log: Option<WireSink>,
    ) -> Result<AgentConnection<'a>, Failure> {
        let state = &cx.state;
        // The guard of a context covers what it binds to agents.
        state.usable_context()?;
        let mut limits = ReplyLimits::default();
        limits.head = self.read_timeout.unwrap_or(limits.head);
        // A reply that is not asked for as a stream may come as one.
        limits.idle = self.stream_read_timeout.or(self.read_timeout).unwrap_or(limits.idle);
        limits.write = self.write_timeout;
        if let Some(time) = self.timeout {
            limits.head = limits.head.min(time);
            limits.total = time;
            limits.stream = Some(time);
        }
        let (mut headers, secrets) = (Vec::new(), Arc::new(SentSecrets::default()));
        for text in named.headers.iter().chain(&self.header) {
            let (name, value) = header(state, text)?;
            let is_file = text.split_once(':').is_some_and(|(_, value)| value.trim_start().starts_with('@'));
            // Other values are plain, such as the name of a team, and would be redacted in ordinary text.
            if is_file || sessile::secrets::looks_secret(&name) {
                secrets.add_header(&name, value.expose());
            }
            headers.push((name, value));
        }
        let call = self.call_credential(cx)?;
        if !Site::of_url(&named.url)?.is_private() {
            refuse_secrets_in_the_clear(named, &headers, call.is_some())?;
        }
        Ok(AgentConnection {
            named,
            http: self.http_client(
                cx,
                named,
                wire_log.map(|sink| WireLog::new(sink, Arc::clone(&secrets))),
            )?,
            credentials: AgentCredentials::new(state, named).with_call_credential(call),
            options: ClientOptions {
                extensions: self.extension.clone(),
                headers,
                limits,
                allow_http: named.allow_http,
                bindings: self.transport.iter().filter_map(|word| ProtocolBinding::named(word)).collect(),
                version: self.a2a_version.as_deref().and_then(ProtocolVersion::named),
                secrets,
            },
        })
    }

    fn http_client(&self, cx: &Cx, named: &Named, wire_log: Option<WireLog>) -> Result<HttpClient, Failure> {
        let mut http = HttpClient::new(TrustRoots::System);
        if let Some(connect) = self.connect_timeout {
            http = http.with_connect_timeout(connect);
        }
        if let Some(log) = wire_log {
            http = http.with_observer(Arc::new(log));
        }
        if self.insecure {
            let is_here = HttpOrigin::of_url(&named.url).is_ok_and(|origin| origin.is_loopback());
            if !is_here {
                let what = "--insecure is only for agents on this machine; trust the certificate instead: SSL_CERT_FILE=ca.pem";
                return Err(UsageError::Arguments(what.into()).into());
            }
            cx.out.note("warning: the agent's certificate is not verified (--insecure)");
            http = http.without_verification();
        }
        if let Some(files) = &named.client_cert {
            http = with_client_cert(http, &named.url, &files.cert, &files.key)?;
        }
        Ok(http)
    }

    /// Credential in a variable, for this call.
    fn call_credential(&self, cx: &Cx) -> Result<Option<CallCredential>, Error> {
        let (variable, is_key) = match (&self.bearer_env, &self.api_key_env) {
            (Some(variable), _) => (variable, false),
            (None, Some(variable)) => (variable, true),
            (None, None) => return Ok(None),
        };
        let flag = if is_key { "--api-key-env" } else { "--bearer-env" };
        let in_file =
            self.env_file.as_deref().map(|file| variable_in_file(cx, file, variable)).transpose()?;
        let value = in_file.flatten().or_else(|| {
            cx.state.world().variable(variable).and_then(|value| value.to_str()).map(Secret::new)
        });
        // Its name is not repeated: it may be the secret itself, given by mistake.
        let value = value.ok_or_else(|| {
            UsageError::Arguments(format!(
                "{flag}: the variable is not set; pass the name of a variable that is set"
            ))
        })?;
        Ok(Some(CallCredential { variable: variable.clone(), secret: value, is_key }))
    }

    /// Whether the call has flags that only agents support.
    pub(crate) fn is_for_agents(&self) -> bool {
        !self.header.is_empty()
            || !self.extension.is_empty()
            || !self.transport.is_empty()
            || self.bearer_env.is_some()
            || self.api_key_env.is_some()
            || self.a2a_version.is_some()
            || self.insecure
            || self.debug
    }

    /// Timeout of the whole call.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Limits of a delivery.
    pub(crate) fn delivery_limits(&self) -> DeliveryLimits {
        let given = [self.timeout, self.read_timeout, self.stream_read_timeout];
        let resumes_silence = given.iter().flatten().all(|limit| *limit == NO_LIMIT);
        let timeout = self.timeout.filter(|limit| *limit != NO_LIMIT);
        DeliveryLimits { timeout, resumes_silence, ..DeliveryLimits::default() }
    }

    /// URIs of the extensions.
    pub(crate) fn extensions(&self) -> &[String] {
        &self.extension
    }
}

/// Client with the certificate and the key in two files, for the agent at a URL.
fn with_client_cert(http: HttpClient, url: &str, cert: &Path, key: &Path) -> Result<HttpClient, Failure> {
    let read = |path: &Path| -> Result<Vec<u8>, Error> {
        sessile::files::check_trusted(path)?;
        let text = sessile::files::read(path)?.ok_or_else(|| FileError::NotFound(path.to_owned()))?;
        Ok(text.into_bytes())
    };
    let (chain, private) = (read(cert)?, Zeroizing::new(read(key)?));
    let address = HttpAddress::parse(url).map_err(|error| UsageError::Arguments(error.to_string()))?;
    http.with_client_cert(address, &chain, &private).map_err(|reason| {
        let files = format!("{} and {}", cert.display(), key.display());
        UsageError::Arguments(format!("cannot use the client certificate in {files}: {reason}")).into()
    })
}

/// Fails if two files are not a client certificate and a private key for the agent at a URL.
pub(crate) fn check_client_cert(url: &str, cert: &Path, key: &Path) -> Result<(), Failure> {
    with_client_cert(HttpClient::new(TrustRoots::System), url, cert, key).map(drop)
}

/// Agent that a text means: a name, a URL, a host, or a file with a card.
pub(crate) fn resolve_agent(cx: &Cx, text: &str) -> Result<Named, Failure> {
    let path = match text.strip_prefix("file://") {
        Some(path) => path,
        // A name has no slash, and an agent's host does not begin with one.
        None if text.starts_with(['.', '/']) || (text.ends_with(".json") && !text.contains("://")) => text,
        None => return Ok(cx.state.agent(text)?),
    };
    let path = cx.state.absolute(Path::new(path));
    let card = read_card_file(&path)?;
    let usable = card.interfaces.iter().find(|one| one.dialect().is_some());
    let url = usable.map(|one| one.url.as_str()).ok_or_else(|| AgentError::Unusable {
        agent: path.display().to_string(),
        reason: "none of the card's interfaces is supported".to_owned(),
    })?;
    // Settings of a named agent at that URL hold for its card too.
    Ok(Named { card_file: Some(path), ..cx.state.agent(url)? })
}

/// Card in a file.
pub(crate) fn read_card_file(path: &Path) -> Result<AgentCard, Failure> {
    let text =
        sessile::files::read(path)?.ok_or_else(|| Error::File(FileError::NotFound(path.to_owned())))?;
    let json = sessile::json::from_str(&text).map_err(|error| error.to_string());
    let card = json.and_then(|json| AgentCard::read(json).ok_or_else(|| "not an agent card".to_owned()));
    let agent = path.display().to_string();
    card.map_err(|reason| AgentError::Unusable { agent, reason }.into())
}

/// Limit that never ends a call.
const NO_LIMIT: Duration = Duration::from_secs(100 * 366 * 86_400);

fn parse_limit(text: &str) -> Result<Duration, String> {
    if text == "none" { Ok(NO_LIMIT) } else { parse_duration(text) }
}

fn parse_binding(word: &str) -> Result<String, String> {
    match ProtocolBinding::named(word) {
        Some(ProtocolBinding::Grpc) => Err("gRPC is not supported; use JSONRPC or HTTP+JSON".to_owned()),
        Some(_) => Ok(word.to_owned()),
        None => Err("expected JSONRPC or HTTP+JSON".to_owned()),
    }
}

fn parse_version(word: &str) -> Result<String, String> {
    ProtocolVersion::named(word).map(|_| word.to_owned()).ok_or_else(|| "expected 1.0 or 0.3".to_owned())
}

/// Fails if a secret would travel in plain text.
fn refuse_secrets_in_the_clear(
    named: &Named,
    headers: &[(String, Secret)],
    has_credential: bool,
) -> Result<(), Error> {
    let secret = headers.iter().find(|(name, _)| sessile::secrets::looks_secret(name));
    let what = match (secret, has_credential) {
        (Some((name, _)), _) => format!("header {}", sessile::text::quoted(name)),
        (None, true) => "a credential".to_owned(),
        (None, false) => return Ok(()),
    };
    let url = sessile::text::shown(&named.url);
    Err(UsageError::Arguments(format!("refusing to send {what} to {url} without https")).into())
}

/// Value of a variable in a file of `NAME=VALUE` lines.
fn variable_in_file(cx: &Cx, file: &Path, variable: &str) -> Result<Option<Secret>, Error> {
    let path = cx.state.absolute(file);
    sessile::files::check_trusted(&path)?;
    let text = Zeroizing::new(sessile::files::read(&path)?.ok_or(FileError::NotFound(path))?);
    for line in text.lines() {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) else { continue };
        if name.trim() == variable {
            let value = value.trim();
            let quoted =
                ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
            return Ok(Some(Secret::new(quoted.unwrap_or(value))));
        }
    }
    Ok(None)
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
            let path = state.absolute(Path::new(file));
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
            instead: "store it in the vault for the agent: auth set --url URL; or pass a file: 'NAME: @FILE'",
        }
        .into());
    }
    Ok((name.trim().to_owned(), value))
}

impl AgentConnection<'_> {
    fn find_card(&self) -> Result<AgentCard, A2aError> {
        let cache = CardFiles::new(self.credentials.state());
        let cache = cache.as_ref().map(|cache| cache as &dyn CardCache);
        AgentClient::find_card(&self.http, &self.named.url, &self.credentials, &self.options, cache)
    }

    /// Card of the agent.
    pub(crate) fn card(&self) -> Result<AgentCard, Failure> {
        let card = match &self.named.card_file {
            Some(path) => read_card_file(path)?,
            None => self.find_card().map_err(|error| agent_error(&self.named.url, None, error))?,
        };
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
        cx.out.detail(&format!("using {} at {}", agent.interface, agent.interface.url));
        let place = &agent.interface.url;
        if !agent.is_at_home()
            && let Some(name) = self.credentials.withheld_from(place)?
        {
            cx.out.note(&format!(
                "the agent's card points to {place}; credential {} is not allowed there and is not sent",
                sessile::text::quoted(&name)
            ));
        }
        Ok(agent)
    }
}
