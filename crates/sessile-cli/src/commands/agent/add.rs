//! `sessile agent add`.

use std::path::{Path, PathBuf};

use serde_json::json;
use sessile::agents::is_secret_header;
use sessile::call::ConfigSource;
use sessile::config::write::{WriteScope, change, require_settable, target};
use sessile::error::UsageError;
use sessile::names::CredentialName;
use sessile::settings::{Layer, SettingKey, Value};
use sessile::site::{Site, agent_url};
use sessile::text::shown;

use crate::agent_session::check_client_cert;
use crate::cli::Cx;
use crate::commands::config::ScopeArgs;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::picker;

/// Add a named agent
///
/// Sets agents.NAME.url, for the user with --global, or for everybody in a project with --project.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile agent add research https://agent.example --global"
    "sessile agent add demo http://localhost:8738 --dir --with-credential demo-bot"
    "sessile agent add cluster http://agent.svc:8000 --allow-http --global"
))]
pub struct Args {
    /// Name of the agent
    #[arg(value_name = "NAME")]
    name: String,

    /// URL of the agent
    #[arg(value_name = "URL")]
    url: String,

    /// Send this credential of the vault to the agent
    #[arg(long, value_name = "CREDENTIAL")]
    with_credential: Option<String>,

    /// Allow plain http to this agent, without a credential
    #[arg(long, conflicts_with_all = ["with_credential", "client_cert"])]
    allow_http: bool,

    /// Send this header with every request; @FILE as the value reads a file
    #[arg(short = 'H', long, value_name = "NAME: VALUE")]
    header: Vec<String>,

    /// Client certificate for mTLS, a PEM file
    #[arg(long, visible_alias = "cert", value_name = "FILE")]
    client_cert: Option<PathBuf>,

    /// Private key of the client certificate, a PEM file
    #[arg(long, visible_alias = "key", value_name = "FILE", requires = "client_cert")]
    client_key: Option<PathBuf>,

    #[command(flatten)]
    scope: ScopeArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    sessile::names::agent_name(&args.name)?;
    let url = agent_url(&args.url)?;
    if !Site::of_url(&url)?.is_private() && !args.allow_http {
        let what =
            format!("refusing plain http to {}; pass --allow-http to allow it for this agent", shown(&url));
        return Err(UsageError::Arguments(what).into());
    }
    // Parsed before the first change, so that a wrong name changes nothing.
    let credential: Option<CredentialName> = args.with_credential.as_deref().map(str::parse).transpose()?;
    if args.header.iter().any(|header| is_secret_header(header)) {
        return Err(UsageError::SecretRefused {
            place: "--header".into(),
            instead: "store it in the vault for the agent: auth set --url URL; or pass a file: 'NAME: @FILE'",
        }
        .into());
    }
    let file = |path: &Path| Value::Text(cx.state.absolute(path).to_string_lossy().into_owned());
    // A certificate and its key may be in one file.
    let key = args.client_key.as_deref().or(args.client_cert.as_deref());
    if let (Some(cert), Some(key)) = (&args.client_cert, key) {
        check_client_cert(&url, &cx.state.absolute(cert), &cx.state.absolute(key))?;
    }
    let members: [(&str, Option<Value>); 5] = [
        ("credential", credential.as_ref().map(|name| Value::Text(name.to_string()))),
        ("allow-http", args.allow_http.then_some(Value::Bool(true))),
        ("headers", (!args.header.is_empty()).then(|| Value::List(args.header.clone()))),
        ("client-cert-file", args.client_cert.as_deref().map(file)),
        ("client-key-file", key.map(file)),
    ];
    let target = target(&cx.state, scope(args, cx)?)?;
    let key = |member: &str| SettingKey::new(["agents", &args.name, member]);
    // Before the first change, as above.
    members
        .iter()
        .filter(|(_, value)| value.is_some())
        .try_for_each(|(member, _)| require_settable(&cx.state, &target, &key(member)))?;
    let mut changed = change(&cx.state, "agent add", &target, &key("url"), Some(&Value::Text(url.clone())))?;
    for (member, value) in members {
        if let Some(value) = value {
            changed.path = change(&cx.state, "agent add", &target, &key(member), Some(&value))?.path;
        }
    }
    let json = json!({
        "name": args.name,
        "url": url,
        "credential": credential,
        "allow_http": args.allow_http,
        "headers": args.header,
        "layer": target.layer(),
        "path": changed.path.to_string_lossy(),
    });
    cx.changed(json, || shown(format!("added agent {}: {url}, in {}", args.name, target.place())) + "\n")
}

/// Scope of the name: that of the flags, the session in the call, or the choice of a person. The terminal's session
/// does not count, because it would expire within hours.
fn scope(args: &Args, cx: &Cx) -> Result<Option<WriteScope>, Failure> {
    let given = args.scope.scope();
    if given.is_some() || matches!(cx.state.source(), ConfigSource::File(_) | ConfigSource::Nothing) {
        return Ok(given);
    }
    let is_named = |layer: Layer| matches!(layer, Layer::Flag | Layer::Environment);
    if cx.state.session()?.is_some_and(|current| is_named(current.origin.layer)) {
        return Ok(None);
    }
    match picker::write_scope(cx, "Scope of the name:")? {
        Some(scope) => Ok(Some(scope)),
        None => Err(UsageError::ScopeRequired {
            what: "agent add: choose a scope".into(),
            flags: "pass --global for this user, --dir for this directory, or --session NAME",
        }
        .into()),
    }
}
