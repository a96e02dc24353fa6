//! `sessile serve`: the session service.

mod backup;
mod restore;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use sessile::Error;
use sessile::args::parse_duration;
use sessile::error::{FileError, UsageError};
use sessile::vault::Secret;
use sessile_server::limits::Limits;
use sessile_server::retention::{RetentionPolicy, SessionRetention};
use sessile_server::serve::{self, Log, Options, ServeError, TlsFiles};
use sessile_server::upstream::Upstream;

use super::service_store::{StoreArgs, check_secret, failed, read_secret};
use crate::cli::Cx;
use crate::error::{CommandError, Failure, Outcome};
use crate::help::examples;

/// Serve sessions, messages, turns, values and locks to many users over HTTP
///
/// Users and their tokens are made with `user`. Another user's session does not exist; a turn of a session is one holder's at a
/// time, and what it says is there as a whole or not at all. It listens on this machine only, unless it has a certificate or
/// is told that a proxy sees to that. SIGTERM lets requests end first; a second one does not.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = examples!(
    "sessile serve"
    "sessile serve --store postgres://sessile@db/sessile --store-password-file db.password"
    "sessile serve --listen 0.0.0.0:8737 --behind-proxy"
    "sessile serve --upstream https://ai.example/v1 --upstream-model small --upstream-key-file ai.key"
    "sessile serve --upstream https://agent.example --upstream-protocol a2a"
    "sessile serve --listen 0.0.0.0:443 --tls-cert cert.pem --tls-key key.pem --log json"
))]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    store: StoreArgs,

    /// Where it listens
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8737", value_parser = parse_listen)]
    listen: SocketAddr,

    /// The certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// Its key, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Another program sees to TLS, and nobody else reaches this port
    #[arg(long, conflicts_with = "tls_cert")]
    behind_proxy: bool,

    #[command(flatten)]
    upstream: UpstreamArgs,

    /// How requests are logged on standard error: text, json or off
    #[arg(long, value_name = "HOW", default_value = "text", value_parser = ["text", "json", "off"])]
    log: String,

    /// Requests of one user per second, in the long run
    #[arg(long, value_name = "N", default_value_t = 1000)]
    rate: u32,

    /// How long the record of accesses is kept
    #[arg(long, value_name = "DURATION", default_value = "90d", value_parser = parse_duration)]
    keep_audit: Duration,

    /// Record reads in the audit log too, not only changes and refusals
    #[arg(long)]
    audit_reads: bool,

    /// Remove sessions this long after their end, or `forever` keep them
    ///
    /// Default: what the store was made with. Stores made by this version keep ended sessions for 30 days, older ones forever.
    #[arg(long, value_name = "DURATION", value_parser = parse_retention)]
    keep_sessions: Option<SessionRetention>,

    /// How long requests may take to end when it is told to
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    grace: Duration,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Back up the service's store while services use it
    Backup(backup::Args),
    /// Replace the service's store by a backup and keep the old one beside it
    Restore(restore::Args),
}

/// Upstream that writes replies.
#[derive(Clone, Debug, clap::Args)]
struct UpstreamArgs {
    /// Who replies for messages?reply=true: an OpenAI-compatible endpoint, at URL/chat/completions, or an A2A agent, with its
    /// card below URL
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,

    /// Which of the two it is: openai or a2a
    #[arg(long, value_name = "WHICH", requires = "upstream", default_value = "openai", value_parser = ["openai", "a2a"])]
    upstream_protocol: String,

    /// The model of an OpenAI-compatible endpoint
    #[arg(long, value_name = "NAME", requires = "upstream")]
    upstream_model: Option<String>,

    /// The file with the key for it
    #[arg(long, value_name = "FILE", requires = "upstream")]
    upstream_key_file: Option<PathBuf>,

    /// How long a reply may take; then the turn is abandoned
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = parse_duration)]
    upstream_timeout: Duration,
}

impl UpstreamArgs {
    fn open(&self, cx: &Cx) -> Result<Option<Upstream>, Error> {
        let Some(url) = &self.upstream else { return Ok(None) };
        let key = self
            .upstream_key_file
            .as_deref()
            .map(|file| Ok::<_, Error>(Secret::new(read_secret(cx, file)?.trim())));
        let (key, timeout) = (key.transpose()?, self.upstream_timeout);
        let upstream = match (self.upstream_protocol.as_str(), &self.upstream_model) {
            ("a2a", None) => Upstream::agent(url, key, timeout),
            ("a2a", Some(_)) => {
                return Err(
                    UsageError::Arguments("--upstream-model: an A2A agent has its own model".into()).into()
                );
            }
            (_, Some(model)) => Upstream::new(url, model, key, timeout),
            (_, None) => {
                let why = "--upstream: name the model with --upstream-model, or an A2A agent with --upstream-protocol a2a";
                return Err(UsageError::Arguments(why.into()).into());
            }
        };
        // The URL is not repeated: it may hold a password.
        upstream.map(Some).map_err(|why| Error::Usage(UsageError::Arguments(format!("--upstream: {why}"))))
    }
}

fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    // The one name that everybody has; which address others stand for is not for us to choose.
    let numbers = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let wrong = "give an address and a port, such as 127.0.0.1:8737 or [::]:8737";
    numbers.as_deref().unwrap_or(text).parse().map_err(|_| wrong.to_owned())
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    match &args.command {
        Some(Command::Backup(args)) => return backup::run(args, cx),
        Some(Command::Restore(args)) => return restore::run(args, cx),
        None => {}
    }
    let place = args.store.existing_or_new(cx)?;
    // Checked here, because the TLS library's error for a missing file does not have the program's code.
    for file in args.tls_cert.iter().chain(&args.tls_key) {
        let path = cx.state.absolute(file);
        if !path.exists() {
            return Err(FileError::NotFound(path).into());
        }
    }
    let secrets =
        [args.store.password_file(), args.tls_key.as_deref(), args.upstream.upstream_key_file.as_deref()];
    for secret in secrets.into_iter().flatten() {
        check_secret(cx, secret)?;
    }
    if args.rate == 0 {
        return Err(UsageError::Arguments("--rate 0 would let nobody in".into()).into());
    }
    if args.keep_audit.is_zero() {
        return Err(UsageError::Arguments("--keep-audit 0s would keep no record at all".into()).into());
    }
    let keep_sessions = match args.keep_sessions {
        Some(SessionRetention::For(time)) => Some(time),
        Some(SessionRetention::OfStore | SessionRetention::Forever) | None => None,
    };
    for (flag, time) in
        [("--keep-sessions", keep_sessions), ("--upstream-timeout", Some(args.upstream.upstream_timeout))]
    {
        if time.is_some_and(|time| time.is_zero()) {
            return Err(UsageError::Arguments(format!("{flag} must be greater than 0")).into());
        }
    }
    let tls = args.tls_cert.clone().zip(args.tls_key.clone()).map(|(cert, key)| TlsFiles { cert, key });
    let rate = f64::from(args.rate);
    let options = Options {
        listen: args.listen,
        tls,
        behind_proxy: args.behind_proxy,
        log: match args.log.as_str() {
            "json" => Log::Json,
            "off" => Log::Off,
            _ => Log::Text,
        },
        upstream: args.upstream.open(cx)?,
        limits: Limits { rate, burst: rate * 2.0, ..Limits::default() },
        keep: RetentionPolicy { audit: args.keep_audit, ..RetentionPolicy::default() },
        session_retention: args.keep_sessions.unwrap_or_default(),
        audit_reads: args.audit_reads,
        grace: args.grace,
    };
    // It may run for months: warnings come now and not at its end.
    cx.out.warnings(&cx.state.take_warnings());
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let out = cx.out.clone();
    let kind = place.kind();
    let served = serve::run(place.open(), options, |server| {
        let url = format!("{scheme}://{}", server.address());
        let keep = server.session_retention();
        let json =
            json!({ "url": url, "store": kind, "keep_sessions_ms": keep.map(|keep| keep.as_millis()) });
        // Whoever started it waits for this line.
        let _ = out.result(&json, || match keep {
            Some(keep) => format!("serving on {url} (ended sessions are kept for {})\n", retention(keep)),
            None => format!("serving on {url} (ended sessions are kept forever)\n"),
        });
    });
    served.map_err(refused)
}

fn parse_retention(text: &str) -> Result<SessionRetention, String> {
    match text {
        "forever" => Ok(SessionRetention::Forever),
        duration => parse_duration(duration).map(SessionRetention::For),
    }
}

/// A retention for people: as a rule it is a number of days.
fn retention(time: Duration) -> String {
    match time.as_secs() {
        86_400 => "1 day".to_owned(),
        seconds if seconds > 0 && seconds.is_multiple_of(86_400) => format!("{} days", seconds / 86_400),
        _ => sessile::duration::short(time),
    }
}

fn refused(error: ServeError) -> Failure {
    match error {
        ServeError::Insecure(_) => {
            UsageError::Arguments(format!("{error}: --tls-cert and --tls-key, or --behind-proxy")).into()
        }
        ServeError::Listen(address, source) => {
            FileError::Io { action: "listen on", path: address.to_string().into(), source }.into()
        }
        ServeError::Tls(path, detail) => UsageError::InvalidValue {
            place: path.display().to_string(),
            value: detail,
            expected: "a certificate and its key, as PEM".into(),
        }
        .into(),
        ServeError::System(source) => {
            FileError::Io { action: "start", path: "the service".into(), source }.into()
        }
        ServeError::Threads(source) => {
            CommandError::ThreadRefused { purpose: "of the service", source }.into()
        }
        ServeError::Store(error) => failed(&error),
    }
}
