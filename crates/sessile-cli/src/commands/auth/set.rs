//! `sessile auth set`.

use std::time::Duration;

use serde::Serialize;
use sessile::args::parse_duration;
use sessile::context::is_variable_name;
use sessile::error::{CredentialError, SessionError, UsageError};
use sessile::names::CredentialName;
use sessile::site::{Site, agent_url};
use sessile::vault::{
    Credential, CredentialKind, CredentialMetadata, Grant, OAuth2, Secret, VaultStatus, jwt_expiry,
};
use sessile::{Error, State};

use super::CredentialView;
use super::command_words::words;
use super::metadata_args::{MetadataArgs, require_private};
use super::secret_source::{SecretSource, is_service_token, refused, typed_token};
use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::vault_unlock::with_unlocked_vault;

/// Create or change a credential
///
/// The default kind is a bearer token. Sessile prompts for the secret; without a terminal pass --secret-stdin,
/// --secret-file, --secret-env or --secret-fd. A URL instead of a name binds the credential to the agent at that URL.
/// Fields you do not pass keep their value. A JSON Web Token contains its own expiry.
///
/// Sessile sends a credential only to its allowed sites. A command that gets it in a variable can send it anywhere.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile auth set gh-bot --account ci-bot"
    "sessile auth set gh-bot --secret-stdin < token"
    "sessile auth set --url https://agent.example --secret-stdin < token"
    "sessile auth set search --api-key @key --site https://search.example"
    "sessile auth set registry --basic deploy --secret-file password"
    "sessile auth set cloud --command 'pass show cloud/token' --cache 10m"
    "sessile auth set ci --from-env CI_TOKEN"
    "sessile auth set staging-api --login corp --scope staging"
))]
pub struct Args {
    /// Name of the credential, or URL of its agent
    #[arg(value_name = "CREDENTIAL")]
    name: Option<String>,

    /// Rest of a secret that was typed as arguments
    #[arg(hide = true, value_name = "MORE")]
    more: Vec<String>,

    /// Bind the credential to the agent at this URL and allow its site
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// Bearer token (default); - reads standard input, @FILE a file
    #[arg(long, visible_alias = "bearer", alias = "token", value_name = "SOURCE", num_args = 0..=1, group = "kind")]
    bearer_token: Option<Option<String>>,

    /// API key; - reads standard input, @FILE a file
    #[arg(long, alias = "key", value_name = "SOURCE", num_args = 0..=1, group = "kind")]
    api_key: Option<Option<String>>,

    /// Header of the API key
    #[arg(long, value_name = "HEADER", hide_short_help = true)]
    api_key_header: Option<String>,

    /// Password with this user name
    #[arg(long, value_name = "USER", group = "kind")]
    basic: Option<String>,

    /// Read the secret from this command's output: text, or JSON with token and expires_at
    #[arg(long, value_name = "COMMAND", group = "kind")]
    command: Option<String>,

    /// Cache the command's output for this long
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, requires = "command", hide_short_help = true)]
    cache: Option<Duration>,

    /// Read the secret from this variable at every use
    #[arg(long, value_name = "VARIABLE", group = "kind")]
    from_env: Option<String>,

    /// Use another credential's login
    #[arg(long, value_name = "NAME", group = "kind")]
    login: Option<String>,

    /// Audience of the tokens
    #[arg(long, value_name = "AUDIENCE", requires = "login", hide_short_help = true)]
    audience: Option<String>,

    /// Resource of the tokens (RFC 8707)
    #[arg(long, value_name = "URL", requires = "login", hide_short_help = true)]
    resource: Option<String>,

    /// Change only the fields passed here and keep the secret
    #[arg(long, conflicts_with_all = ["kind", "secret_stdin", "secret_file", "secret_env", "secret_fd"])]
    keep_secret: bool,

    #[command(flatten)]
    about: MetadataArgs,

    #[command(flatten)]
    from: SecretSource,

    /// Secret in the wrong place
    #[arg(long, hide = true, alias = "password", num_args = 0..=1)]
    secret: Option<Option<String>>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    if !args.more.is_empty() {
        return Err(refused("auth set").into());
    }
    if args.name.as_deref().is_some_and(is_service_token) {
        return Err(typed_token(None));
    }
    // The hidden flag exists to refuse the secret without repeating it, which clap's own error would do.
    if let Some(Some(_)) = &args.secret {
        return Err(refused("--secret").into());
    }
    // Everything that can be wrong with the arguments comes before anybody types a secret.
    let agent = args.agent()?;
    let name = with_unlocked_vault(cx, &cx.state, || args.credential_name(&cx.state, agent.as_deref()))?;
    let mut about = args.about_of(cx, name.clone(), agent)?;
    let kind = args.kind(cx)?;
    if kind.is_none() && !args.keep_secret {
        let known = with_unlocked_vault(cx, &cx.state, || cx.state.vault()?.get(&name))?;
        if known.is_some_and(|known| matches!(known.about.kind, CredentialKind::OAuth2(_))) {
            return Err(is_login(&name).into());
        }
    }
    let secret = if args.keep_secret || kind.as_ref().is_some_and(|(_, has_secret)| !has_secret) {
        None
    } else {
        Some(args.read_secret(cx, &name)?)
    };
    if about.expires_at.is_none() && !args.about.never_ends() {
        about.expires_at = secret.as_ref().and_then(|secret| jwt_expiry(secret.expose()));
    }
    let mut is_new = true;
    let is_inside = cx.state.inside_session().is_some();
    let kept = with_unlocked_vault(cx, &cx.state, || {
        // Decided within the vault's lock: another process may set the same credential meanwhile.
        cx.state.vault()?.change(&name, |before| {
            is_new = before.is_none();
            if is_inside && !is_new {
                // Others may use it.
                return Err(SessionError::RefusedInside {
                    what: format!("changing credential {name}"),
                    instead: "do it outside the session, or choose another name",
                }
                .into());
            }
            let (secret, mut about) = (secret.clone(), about.clone());
            if args.keep_secret {
                let before = before.ok_or_else(|| CredentialError::NotFound {
                    name: name.to_string(),
                    wanted_by: "--keep-secret".into(),
                    near: None,
                })?;
                let is_own_login = matches!(
                    &before.about.kind,
                    CredentialKind::OAuth2(oauth) if oauth.login.is_none() && oauth.grant != Grant::ClientCredentials
                );
                if is_own_login && !about.scopes.is_empty() {
                    let reason =
                        format!("scopes of a login change with a new login: auth login {name} --scope ...");
                    return Err(CredentialError::Unusable { name: name.to_string(), reason }.into());
                }
                let mut after = before.with_about(about);
                after.about.allow_agents();
                if args.about.never_ends() {
                    after.about.expires_at = None;
                }
                return Ok(Some(after));
            }
            // Fields that are not passed keep their value, the kind too.
            let mut known = None;
            if let Some(before) = &before {
                about.take_over(&before.about);
                known = Some(before.about.kind.clone());
            }
            about.allow_agents();
            about.kind = match (kind.clone().map(|(kind, _)| kind), known) {
                (Some(kind), _) => kind,
                (None, Some(CredentialKind::OAuth2(_))) => return Err(is_login(&name)),
                (None, Some(CredentialKind::Command { .. } | CredentialKind::Env { .. }) | None) => CredentialKind::Bearer,
                (None, Some(known)) => known,
            };
            Ok(Some(Credential::new(about, secret)))
        })
    })?;
    // An agent gets one credential, so the earlier one is unbound.
    for agent in &about.agents {
        for other in cx.state.vault()?.leave_agent(agent, &name)? {
            cx.out.note(&format!("credential {other} is no longer used for the agent at {agent}"));
        }
    }
    sessile::history::record(&cx.state, "auth set", name.as_str(), "a secret is never recorded")?;
    let Some(kept) = kept else { return Ok(()) };
    if !kept.about.is_valid(cx.state.world().now()) {
        cx.out.note(&format!("credential \"{name}\" has already expired and will not be used"));
    }
    let view = CredentialSetView {
        credential: CredentialView::new(&cx.state, &kept.about),
        created: is_new,
        vault: cx.state.vault()?.status()?,
    };
    cx.changed(view, || {
        let verb = if is_new { "created" } else { "changed" };
        format!("{verb} credential {name} ({})\n", kept.about.kind.as_str())
    })
}

/// A credential that was stored.
#[derive(Debug, Serialize)]
struct CredentialSetView<'a> {
    #[serde(flatten)]
    credential: CredentialView<'a>,
    created: bool,
    vault: VaultStatus,
}

impl Args {
    /// The agent it is bound to.
    fn agent(&self) -> Result<Option<String>, Error> {
        let named = self.name.as_deref().filter(|name| name.contains("://"));
        if named.is_some() && self.url.is_some() {
            return Err(UsageError::Arguments("pass the URL once: as the name or with --url".into()).into());
        }
        let agent = self.url.as_deref().or(named).map(agent_url).transpose()?;
        agent.as_deref().map_or(Ok(()), |url| require_private(&Site::of_url(url)?))?;
        Ok(agent)
    }

    fn credential_name(&self, state: &State, agent: Option<&str>) -> Result<CredentialName, Error> {
        match (self.name.as_deref().filter(|name| !name.contains("://")), agent) {
            (Some(name), _) => name.parse(),
            (None, Some(url)) => {
                let vault = state.vault()?;
                vault.of_agent(url)?.map_or_else(|| vault.free_name(url), Ok)
            }
            (None, None) => {
                Err(UsageError::Arguments("pass NAME, or --url URL for the credential of an agent".into())
                    .into())
            }
        }
    }

    fn about_of(
        &self,
        cx: &Cx,
        name: CredentialName,
        agent: Option<String>,
    ) -> Result<CredentialMetadata, Failure> {
        let mut about = self.about.about(&cx.state, name)?;
        about.agents.extend(agent);
        Ok(about)
    }

    /// Requested kind, and whether it has a secret.
    fn kind(&self, cx: &Cx) -> Result<Option<(CredentialKind, bool)>, Failure> {
        let said = match self {
            Args { api_key: Some(_), .. } | Args { api_key_header: Some(_), .. } if self.is_api_key()? => {
                let header = self.api_key_header.clone().unwrap_or_else(|| "X-API-Key".into());
                // The request's own are not for a key.
                const OWN: &[&str] = &[
                    "host",
                    "content-length",
                    "transfer-encoding",
                    "connection",
                    "content-type",
                    "te",
                    "upgrade",
                ];
                let is_header = !header.is_empty()
                    && !OWN.contains(&header.to_ascii_lowercase().as_str())
                    && header
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
                if !is_header {
                    return Err(UsageError::InvalidValue {
                        place: "--api-key-header".into(),
                        value: header,
                        expected: "a valid header name".into(),
                    }
                    .into());
                }
                (CredentialKind::ApiKey { header }, true)
            }
            // Such a name cannot be sent, and what follows may be the password.
            Args { basic: Some(username), .. } if username.contains(':') => {
                return Err(refused("--basic").into());
            }
            Args { basic: Some(username), .. } => {
                (CredentialKind::Basic { username: username.clone() }, true)
            }
            Args { command: Some(command), .. } => {
                let command = words(command).filter(|words| !words.is_empty()).ok_or_else(|| {
                    UsageError::InvalidValue {
                        place: "--command".into(),
                        value: command.clone(),
                        expected: "a command with its arguments; for shell syntax use sh -c '...'".into(),
                    }
                })?;
                (
                    CredentialKind::Command {
                        command,
                        cache_seconds: self
                            .cache
                            .filter(|time| !time.is_zero())
                            // Less than a second would be stored as 0.
                            .map(|time| time.as_secs().max(1)),
                    },
                    false,
                )
            }
            Args { from_env: Some(variable), .. } if !is_variable_name(variable) => {
                return Err(UsageError::InvalidValue {
                    place: "--from-env".into(),
                    // Not repeated: it may be the secret itself.
                    value: "the value (not shown)".into(),
                    expected: "a variable name".into(),
                }
                .into());
            }
            Args { from_env: Some(variable), .. } => {
                (CredentialKind::Env { variable: variable.clone() }, false)
            }
            Args { login: Some(login), .. } => (self.shared_login(cx, login)?, false),
            Args { bearer_token: Some(_), .. } => (CredentialKind::Bearer, true),
            _ => return Ok(None),
        };
        Ok(Some(said))
    }

    fn is_api_key(&self) -> Result<bool, Error> {
        if self.bearer_token.is_some()
            || self.basic.is_some()
            || self.command.is_some()
            || self.from_env.is_some()
        {
            return Err(UsageError::Arguments("--api-key-header belongs to --api-key".into()).into());
        }
        Ok(true)
    }

    fn shared_login(&self, cx: &Cx, login: &str) -> Result<CredentialKind, Failure> {
        let name: CredentialName = login.parse()?;
        if self.name.as_deref() == Some(login) {
            return Err(
                UsageError::Arguments("a credential cannot use its own login by --login".into()).into()
            );
        }
        let found = with_unlocked_vault(cx, &cx.state, || cx.state.vault()?.require(&name, "--login"))?;
        let CredentialKind::OAuth2(oauth) = found.about.kind else {
            let reason = "not a login; create one with auth login".to_owned();
            return Err(CredentialError::Unusable { name: name.to_string(), reason }.into());
        };
        // One level only, so that a renewal never follows a chain.
        if oauth.login.is_some() {
            let reason = "the credential uses another login; pass that login".to_owned();
            return Err(CredentialError::Unusable { name: name.to_string(), reason }.into());
        }
        Ok(CredentialKind::OAuth2(OAuth2 {
            login: Some(name),
            audience: self.audience.clone(),
            resource: self.resource.clone(),
            ..oauth
        }))
    }

    fn read_secret(&self, cx: &Cx, name: &CredentialName) -> Result<Secret, Failure> {
        let (flag, source, what) = match self {
            Args { api_key: Some(source), .. } => ("--api-key", source.as_deref(), "Key"),
            Args { bearer_token: Some(source), .. } => ("--bearer-token", source.as_deref(), "Token"),
            Args { basic: Some(_), .. } => ("--basic", None, "Password"),
            _ => ("--secret", None, "Secret"),
        };
        if source.is_some() && self.from.is_passed() {
            return Err(UsageError::Arguments(format!(
                "pass one source of the secret: {flag} or --secret-..."
            ))
            .into());
        }
        self.from.read(cx, flag, source, &format!("{what} for {name}: "))
    }
}

/// Whether a credential came from a login, and so is not typed.
fn is_login(name: &CredentialName) -> Error {
    let reason = format!(
        "the credential is a login; renew it with `auth login {name}`, or pass another kind to replace it"
    );
    Error::Credential(CredentialError::Unusable { name: name.to_string(), reason })
}
