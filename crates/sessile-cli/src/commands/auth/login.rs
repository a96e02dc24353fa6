//! `sessile auth login`.

use std::time::{Duration, Instant};

use serde_json::json;
use sessile::Error;
use sessile::args::parse_duration;
use sessile::error::{CredentialError, UsageError};
use sessile::names::CredentialName;
use sessile::site::Site;
use sessile::text::shown;
use sessile::vault::{Credential, CredentialKind, CredentialMetadata, Grant, OAuth2, Secret, jwt_account};

use super::login_server::{self, ServiceLogin};
use super::metadata_args::{self, MetadataArgs};
use super::secret_source::{SecretSource, is_service_token, refused, typed_token};
use super::{CredentialView, end_of};
use crate::cli::Cx;
use crate::error::{Failure, Outcome, RequestError};
use crate::help::examples;
use crate::oauth::{DeviceCode, OAuthClient, OAuthError, Tokens, discover};
use crate::renewer::{Renewer, client, renewed, unreachable};
use crate::vault_unlock::with_unlocked_vault;

/// Log in to an authorization server and store the tokens
///
/// By default you confirm a code in a browser, on any device (device flow). With --client-credentials the client logs
/// in with its own secret. With --refresh-token Sessile takes over an existing refresh token. Tokens are renewed when
/// a command needs them. Several credentials can share one login: `auth set NAME --login LOGIN`. To log in again,
/// pass only the name.
///
/// Without a terminal, pass --wait to choose how long to wait for the confirmation.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile auth login corp --issuer https://idp --client-id cli --scope openid"
    "sessile auth login corp"
    "sessile auth login ci --issuer https://idp --client-id ci --client-credentials"
    "sessile auth login corp --wait 5m"
    "sessile auth login --server https://sessile.example"
    "sessile auth login --server https://sessile.example --token-stdin < token"
))]
pub struct Args {
    /// Name of the credential
    #[arg(value_name = "CREDENTIAL", required_unless_present = "server")]
    name: Option<String>,

    /// Rest of a secret that was typed as arguments
    #[arg(hide = true, value_name = "MORE")]
    more: Vec<String>,

    /// Log in to the session service at this URL, by a code or a token
    #[arg(long, value_name = "URL", conflicts_with_all = ["issuer", "token_url", "client_id", "client_credentials", "refresh_token", "client_secret", "audience", "resource"])]
    server: Option<String>,

    /// URL of the authorization server, for discovery
    #[arg(long, value_name = "URL", conflicts_with = "token_url")]
    issuer: Option<String>,

    /// Token endpoint
    #[arg(long, value_name = "URL")]
    token_url: Option<String>,

    /// Device authorization endpoint
    #[arg(long, value_name = "URL", requires = "token_url")]
    device_url: Option<String>,

    /// Revocation endpoint
    #[arg(long, value_name = "URL", requires = "token_url", hide_short_help = true)]
    revocation_url: Option<String>,

    /// Look up the account of tokens that do not name it (RFC 7662)
    #[arg(long, hide_short_help = true)]
    introspect: bool,

    /// Introspection endpoint
    #[arg(long, value_name = "URL", requires = "token_url", hide_short_help = true)]
    introspection_url: Option<String>,

    /// Client id
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,

    /// Log in with the client's own id and secret
    #[arg(long, conflicts_with = "refresh_token")]
    client_credentials: bool,

    /// Take over a refresh token; - reads standard input, @FILE a file
    #[arg(long, value_name = "SOURCE", num_args = 0..=1)]
    refresh_token: Option<Option<String>>,

    /// Prompt for the client secret; - reads standard input, @FILE a file
    #[arg(long, value_name = "SOURCE", num_args = 0..=1)]
    client_secret: Option<Option<String>>,

    /// Audience of the tokens
    #[arg(long, value_name = "AUDIENCE", hide_short_help = true)]
    audience: Option<String>,

    /// Resource of the tokens (RFC 8707)
    #[arg(long, value_name = "URL", hide_short_help = true)]
    resource: Option<String>,

    /// Wait this long for the confirmation of the code
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    wait: Option<Duration>,

    #[command(flatten)]
    about: MetadataArgs,

    #[command(flatten)]
    from: SecretSource,
}

/// Default timeout of the confirmation at a terminal.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    // Further words are most likely a pasted secret, so they are not repeated in an error.
    if !args.more.is_empty() {
        return Err(refused("auth login").into());
    }
    // A token that was pasted as the name would be repeated in errors and lists.
    if args.name.as_deref().is_some_and(is_service_token) {
        return Err(typed_token(args.server.as_deref()));
    }
    let given = args.name.as_deref().map(str::parse::<CredentialName>).transpose()?;
    if let Some(url) = &args.server {
        return login_server::run(&ServiceLogin { url, name: given, from: &args.from, wait: args.wait }, cx);
    }
    let name = given.ok_or_else(|| UsageError::Arguments("the name of the credential is missing".into()))?;
    let before = with_unlocked_vault(cx, &cx.state, || cx.state.vault()?.get(&name))?;
    let renewer = Renewer::new();
    let oauth = args.oauth(cx, &renewer, before.as_ref())?;
    if let Some(login) = &oauth.login {
        let reason = format!("the login belongs to credential {login}; log in there: auth login {login}");
        return Err(CredentialError::Unusable { name: name.to_string(), reason }.into());
    }
    // What one server has given, or a client is known by there, is for nobody else.
    let is_same = before.as_ref().is_some_and(|before| match &before.about.kind {
        CredentialKind::OAuth2(known) => {
            known.token_url == oauth.token_url && known.client_id == oauth.client_id
        }
        _ => false,
    });
    let known = before.as_ref().filter(|_| is_same);
    let client_secret = args.client_secret(cx, known, &oauth)?;
    let mut about: CredentialMetadata = args.about.about(&cx.state, name.clone())?;
    if let Some(before) = &before {
        about.take_over(&before.about);
    }
    about.kind = CredentialKind::OAuth2(oauth.clone());
    let client = client(&oauth, client_secret.as_ref());
    // A refresh token may be good for one use: nobody else uses it now.
    let mut alone = None;
    let mut refresh = None;
    if oauth.grant == Grant::RefreshToken && args.refresh_token.is_none() && known.is_some() {
        alone = Some(cx.state.vault()?.alone(&name)?);
        refresh = cx.state.vault()?.get(&name)?.and_then(|now| now.refresh_token().cloned());
    }
    let (mut tokens, taken_over) =
        args.tokens(cx, &renewer, &client, &oauth, &about.scopes, refresh.as_ref())?;
    if let Some(url) = oauth.introspection_url.as_deref() {
        introspect(cx, &renewer, &client, url, &mut tokens);
    }
    // Not while a person confirms the code: others would wait for minutes. Only the write is exclusive.
    if alone.is_none() {
        alone = Some(cx.state.vault()?.alone(&name)?);
    }
    let mut credential = Credential::new(about, None).with_client_secret(client_secret);
    // A server that gives no new refresh token leaves the old one good.
    credential = credential.with_refresh_token(taken_over);
    renewed(tokens).into_credential(&mut credential, cx.state.world().now());
    credential.about.allow_agents();
    with_unlocked_vault(cx, &cx.state, || cx.state.vault()?.put(credential.clone()))?;
    // Only after the write: a renewal in between would store the token that was replaced.
    drop(alone);
    sessile::history::record(&cx.state, "auth login", name.as_str(), "a secret is never recorded")?;
    let about = &credential.about;
    cx.changed(CredentialView::new(&cx.state, about), || {
        let who = about.account.as_ref().map_or_else(String::new, |who| format!(" as {}", shown(who)));
        let end = match end_of(&cx.state, about).as_str() {
            "-" => String::new(),
            end => format!("; the token expires {end}"),
        };
        format!("logged in{who}: credential {name}{end}\n")
    })
}

impl Args {
    /// Endpoints and client: from flags, else as stored.
    fn oauth(&self, cx: &Cx, renewer: &Renewer, before: Option<&Credential>) -> Result<OAuth2, Failure> {
        let known = match before.map(|before| &before.about.kind) {
            Some(CredentialKind::OAuth2(oauth)) => Some(oauth),
            Some(other) if self.issuer.is_none() && self.token_url.is_none() => {
                let reason = format!("credentials of kind {} have no authorization server", other.as_str());
                return Err(CredentialError::Unusable {
                    name: self.name.clone().unwrap_or_default(),
                    reason,
                }
                .into());
            }
            _ => None,
        };
        let (token_url, device_url, revocation_url, introspection_url) = match (&self.issuer, &self.token_url)
        {
            (Some(issuer), _) => {
                // Before it is asked: what it says decides where secrets are sent.
                require_private(issuer)?;
                let found = discover(renewer.http(), issuer).map_err(|error| failed(issuer, &error))?;
                cx.out.detail(&format!("token endpoint: {}", found.token_url));
                if self.introspect && found.introspection_url.is_none() {
                    let what = format!("{} has no introspection endpoint", shown(issuer));
                    return Err(UsageError::Arguments(what).into());
                }
                let introspection_url = found.introspection_url.filter(|_| self.introspect);
                (found.token_url, found.device_url, found.revocation_url, introspection_url)
            }
            (None, Some(token_url)) => {
                let urls = (self.device_url.clone(), self.revocation_url.clone());
                (token_url.clone(), urls.0, urls.1, self.introspection_url.clone())
            }
            (None, None) => match known {
                Some(known) => {
                    let OAuth2 { token_url, device_url, revocation_url, introspection_url, .. } =
                        known.clone();
                    (token_url, device_url, revocation_url, introspection_url)
                }
                None => {
                    let what = "the authorization server is missing; pass --issuer URL, or --token-url URL with --device-url URL";
                    return Err(UsageError::Arguments(what.into()).into());
                }
            },
        };
        require_private(&token_url)?;
        // The issuer's document may name any address.
        let others = device_url.iter().chain(&revocation_url).chain(&introspection_url);
        others.into_iter().try_for_each(|url| require_private(url))?;
        let grant = match known {
            _ if self.client_credentials => Grant::ClientCredentials,
            _ if self.refresh_token.is_some() => Grant::RefreshToken,
            Some(known) => known.grant,
            None => Grant::DeviceCode,
        };
        let client_id = self.client_id.clone().or_else(|| known.map(|known| known.client_id.clone()));
        Ok(OAuth2 {
            grant,
            token_url,
            device_url,
            revocation_url,
            introspection_url,
            client_id: client_id.ok_or_else(|| UsageError::Arguments("--client-id ID is required".into()))?,
            audience: self.audience.clone().or_else(|| known.and_then(|known| known.audience.clone())),
            resource: self.resource.clone().or_else(|| known.and_then(|known| known.resource.clone())),
            login: known.and_then(|known| known.login.clone()),
        })
    }

    fn client_secret(
        &self,
        cx: &Cx,
        before: Option<&Credential>,
        oauth: &OAuth2,
    ) -> Result<Option<Secret>, Failure> {
        let source = self.client_secret.as_ref().and_then(Option::as_deref);
        let known = before.and_then(Credential::client_secret).cloned();
        let is_said = self.client_secret.is_some() || (self.from.is_passed() && self.refresh_token.is_none());
        if is_said || (oauth.grant == Grant::ClientCredentials && known.is_none()) {
            let prompt = format!("Secret of client {}: ", shown(&oauth.client_id));
            return self.from.read(cx, "--client-secret", source, &prompt).map(Some);
        }
        Ok(known)
    }

    /// Tokens from the server, with the refresh token taken over.
    fn tokens(
        &self,
        cx: &Cx,
        renewer: &Renewer,
        client: &OAuthClient,
        oauth: &OAuth2,
        scopes: &[String],
        known: Option<&Secret>,
    ) -> Result<(Tokens, Option<Secret>), Failure> {
        let (audience, resource) = (oauth.audience.as_deref(), oauth.resource.as_deref());
        let http = renewer.http();
        let wrong = |error: OAuthError| Failure::from(failed(&client.token_url, &error));
        match oauth.grant {
            Grant::ClientCredentials => {
                let tokens = client.client_credentials(http, scopes, audience, resource).map_err(wrong)?;
                Ok((tokens, None))
            }
            Grant::RefreshToken => {
                let source = self.refresh_token.as_ref().and_then(Option::as_deref);
                let token = match known {
                    Some(known) if self.refresh_token.is_none() => known.clone(),
                    _ => self.from.read(cx, "--refresh-token", source, "Refresh token: ")?,
                };
                let tokens = client.refresh(http, &token, scopes, audience, resource).map_err(wrong)?;
                Ok((tokens, Some(token)))
            }
            Grant::DeviceCode => {
                self.by_device(cx, renewer, client, oauth, scopes).map(|tokens| (tokens, None))
            }
        }
    }

    /// Shows a code and waits until a person has confirmed it.
    fn by_device(
        &self,
        cx: &Cx,
        renewer: &Renewer,
        client: &OAuthClient,
        oauth: &OAuth2,
        scopes: &[String],
    ) -> Result<Tokens, Failure> {
        let patience = patience(cx, self.wait)?;
        let http = renewer.http();
        let url = client.device_url.as_deref().unwrap_or(&client.token_url);
        let mut code = client
            .start_device(http, scopes, oauth.audience.as_deref(), oauth.resource.as_deref())
            .map_err(|error| failed(url, &error))?;
        code.expires_in = code.expires_in.min(patience);
        tell(cx, &code);
        let begun = Instant::now();
        let tokens = client.poll_device(http, &code, || begun.elapsed(), std::thread::sleep);
        tokens.map_err(|error| failed(&client.token_url, &error).into())
    }
}

/// Asks the server for the account of tokens that do not name it. The login stands without an answer.
fn introspect(cx: &Cx, renewer: &Renewer, client: &OAuthClient, url: &str, tokens: &mut Tokens) {
    if tokens.account.is_some() || jwt_account(tokens.access.expose()).is_some() {
        return;
    }
    match client.introspect(renewer.http(), url, &tokens.access) {
        Ok(account) => tokens.account = account,
        Err(error) => cx.state.warn(format!("the account is unknown: {}", failed(url, &error)), None),
    }
}

/// Timeout of the confirmation: from the flag, else [`PATIENCE`] at a terminal.
pub(super) fn patience(cx: &Cx, wait: Option<Duration>) -> Result<Duration, Error> {
    // The code is shown on standard error, so somebody must see that.
    let somebody =
        !cx.state.args().no_input && cx.state.world().streams().stderr && !cx.state.world().is_ci();
    wait.or(somebody.then_some(PATIENCE)).ok_or_else(|| {
        Error::Usage(UsageError::TerminalRequired {
            what: "confirming a code".into(),
            instead: "choose how long to wait for a person who confirms the code elsewhere: --wait 5m".into(),
        })
    })
}

/// Prints the code and the URL.
fn tell(cx: &Cx, code: &DeviceCode) {
    let json = json!({ "login": {
        "verification_uri": code.verification_uri,
        "verification_uri_complete": code.verification_uri_complete,
        "user_code": code.user_code,
        "expires_in_seconds": code.expires_in.as_secs(),
    }});
    let direct = code.verification_uri_complete.as_ref();
    let direct = direct.map_or_else(String::new, |uri| format!("\nor open {}", shown(uri)));
    let time = sessile::duration::short(code.expires_in);
    cx.out.ask_for(&json, &format!("{code}{direct}\nwaiting up to {time} for the confirmation ..."));
}

fn require_private(url: &str) -> Result<(), Error> {
    metadata_args::require_private(&Site::of_url(url)?)
}

/// Error of a login as an error of a request.
fn failed(url: &str, error: &OAuthError) -> RequestError {
    let site = Site::of_url(url).map_or_else(|_| "the server".to_owned(), |site| site.to_string());
    match error {
        OAuthError::Http(error) => unreachable(url, error),
        OAuthError::RateLimited { retry_after } => {
            RequestError::RateLimited { what: site, wait: *retry_after }
        }
        OAuthError::Server { .. } => RequestError::unreachable(site, error.to_string()),
        OAuthError::Expired => RequestError::TimedOut { what: "the login".into() },
        other => RequestError::LoginRefused { site, reason: other.to_string() },
    }
}
