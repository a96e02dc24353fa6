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

/// Serve sessions, messages, values and locks to many users
///
/// Create users and their tokens with `user`. Users cannot see each other's sessions. A session has one turn at a time,
/// and the messages of a turn are committed atomically. The service listens on loopback only, unless it has a
/// certificate or runs behind a proxy. SIGTERM lets requests finish; a second SIGTERM stops at once.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = examples!(
    "sessile serve"
    "sessile serve --store postgres://sessile@db/sessile --store-password-file pw"
    "sessile serve --listen 0.0.0.0:8737 --behind-proxy"
    "sessile serve --upstream https://a.example/v1 --upstream-key-file ai.key"
    "sessile serve --upstream https://agent.example --upstream-protocol a2a"
    "sessile serve --listen 0.0.0.0:443 --tls-cert cert.pem --tls-key key.pem"
))]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    store: StoreArgs,

    /// Address to listen on
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8737", value_parser = parse_listen)]
    listen: SocketAddr,

    /// TLS certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// TLS key, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Serve plain HTTP behind a proxy that terminates TLS
    #[arg(long, conflicts_with = "tls_cert")]
    behind_proxy: bool,

    #[command(flatten)]
    upstream: UpstreamArgs,

    /// Log format on standard error: text, json or off
    #[arg(long, value_name = "HOW", default_value = "text", value_parser = ["text", "json", "off"], hide_short_help = true)]
    log: String,

    /// Rate limit of one user, in requests per second
    #[arg(long, value_name = "N", default_value_t = 1000, hide_short_help = true)]
    rate: u32,

    /// Retention of the audit log
    #[arg(long, value_name = "DURATION", default_value = "90d", value_parser = parse_duration, hide_short_help = true)]
    keep_audit: Duration,

    /// Record reads in the audit log too, not only changes and refusals
    #[arg(long, hide_short_help = true)]
    audit_reads: bool,

    /// Delete sessions this long after their end; `forever` keeps them
    ///
    /// Default: the retention of the store. New stores keep ended sessions for 30 days, stores of older versions
    /// forever.
    #[arg(long, value_name = "DURATION", value_parser = parse_retention)]
    keep_sessions: Option<SessionRetention>,

    /// Time for requests to finish on shutdown
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration, hide_short_help = true)]
    grace: Duration,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Back up the service's store while services use it
    Backup(backup::Args),
    /// Restore a backup, and keep the replaced store beside it
    Restore(restore::Args),
}

/// Upstream that writes replies.
#[derive(Clone, Debug, clap::Args)]
struct UpstreamArgs {
    /// URL that answers messages sent with reply=true: OpenAI-compatible endpoint or A2A agent
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,

    /// Protocol of the upstream: openai or a2a
    #[arg(long, value_name = "WHICH", requires = "upstream", default_value = "openai", value_parser = ["openai", "a2a"])]
    upstream_protocol: String,

    /// Model of an OpenAI-compatible upstream
    #[arg(long, value_name = "NAME", requires = "upstream")]
    upstream_model: Option<String>,

    /// File with the API key of the upstream
    #[arg(long, value_name = "FILE", requires = "upstream")]
    upstream_key_file: Option<PathBuf>,

    /// Timeout of a reply; then the turn is abandoned
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = parse_duration, hide_short_help = true)]
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
                let why =
                    "--upstream requires --upstream-model NAME, or --upstream-protocol a2a for an A2A agent";
                return Err(UsageError::Arguments(why.into()).into());
            }
        };
        // The URL is not repeated: it may hold a password.
        upstream.map(Some).map_err(|why| Error::Usage(UsageError::Arguments(format!("--upstream: {why}"))))
    }
}

pub(crate) fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    // The one name that everybody has; which address others stand for is not for us to choose.
    let numbers = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let wrong = "expected an address and a port, such as 127.0.0.1:8737 or [::]:8737";
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
        return Err(UsageError::Arguments("--rate must be greater than 0".into()).into());
    }
    if args.keep_audit.is_zero() {
        return Err(UsageError::Arguments("--keep-audit must be greater than 0".into()).into());
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

/// Text of a retention, usually in days.
fn retention(time: Duration) -> String {
    match time.as_secs() {
        86_400 => "1 day".to_owned(),
        seconds if seconds > 0 && seconds.is_multiple_of(86_400) => format!("{} days", seconds / 86_400),
        _ => sessile::duration::short(time),
    }
}

fn refused(error: ServeError) -> Failure {
    match error {
        ServeError::Insecure(_) => UsageError::Arguments(error.to_string()).into(),
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
