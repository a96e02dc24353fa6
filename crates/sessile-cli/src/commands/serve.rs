//! `sessile serve`: the session service.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use sessile::args::parse_duration;
use sessile_server::limits::Limits;
use sessile_server::serve::{self, Log, Options, ServeError, Tls};

use super::service_store::{StoreArgs, failed};
use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples;

/// Serve sessions, messages, turns, values and locks to many users over HTTP
///
/// Users and their tokens are made with `user`. Another user's session does not exist; a turn of a session is one holder's at a
/// time, and what it says is there as a whole or not at all. It listens on this machine only, unless it has a certificate or
/// is told that a proxy sees to that. SIGTERM lets requests end first.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile serve"
    "sessile serve --store postgres://sessile@db/sessile --store-password-file db.password"
    "sessile serve --listen 0.0.0.0:8737 --behind-proxy"
    "sessile serve --listen 0.0.0.0:443 --tls-cert cert.pem --tls-key key.pem --log json"
))]
pub struct Args {
    #[command(flatten)]
    store: StoreArgs,

    /// Where it listens
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8737")]
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

    /// How requests are logged on standard error: text, json or off
    #[arg(long, value_name = "HOW", default_value = "text", value_parser = ["text", "json", "off"])]
    log: String,

    /// Requests of one user per second, in the long run
    #[arg(long, value_name = "N", default_value_t = 1000)]
    rate: u32,

    /// How long requests may take to end when it is told to
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    grace: Duration,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let place = args.store.place(cx)?;
    for file in args.tls_cert.iter().chain(&args.tls_key) {
        let path = cx.state.absolute(file);
        if !path.exists() {
            return Err(sessile::Error::FileNotFound(path).into());
        }
    }
    if args.rate == 0 {
        return Err(sessile::Error::Usage("--rate 0 would let nobody in".into()).into());
    }
    let tls = args.tls_cert.clone().zip(args.tls_key.clone()).map(|(cert, key)| Tls { cert, key });
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
        limits: Limits { rate, burst: rate * 2.0, ..Limits::default() },
        grace: args.grace,
    };
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let out = cx.out.clone();
    let kind = place.kind();
    let served = serve::run(place.open(), options, |address| {
        let json = json!({ "url": format!("{scheme}://{address}"), "store": kind });
        // Whoever started it waits for this line.
        let _ = out.result(&json, || format!("serving on {scheme}://{address}\n"));
    });
    served.map_err(refused)
}

fn refused(error: ServeError) -> Failure {
    match error {
        ServeError::Insecure(_) => {
            sessile::Error::Usage(format!("{error}: --tls-cert and --tls-key, or --behind-proxy")).into()
        }
        ServeError::Listen(address, source) => {
            sessile::Error::Io { action: "listen on", path: address.to_string().into(), source }.into()
        }
        ServeError::Tls(path, detail) => sessile::Error::InvalidValue {
            place: path.display().to_string(),
            value: detail,
            expected: "a certificate and its key, as PEM".into(),
        }
        .into(),
        ServeError::System(source) => {
            sessile::Error::Io { action: "start", path: "the service".into(), source }.into()
        }
        ServeError::Db(error) => failed(&error),
    }
}
