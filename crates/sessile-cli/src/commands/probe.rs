//! `sessile probe`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use sessile::agents::Agent as Named;
use sessile::args::parse_duration;
use sessile::error::UsageError;
use sessile::site::Site;
use sessile::text::{quoted, shell_quoted};
use sessile::vault::Secret;
use sessile::{Error, exit};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sessile_wire::a2a::AgentCard;
use signal_hook::consts::SIGINT;

use crate::a2a::{AgentClient, ClientOptions, CredentialProvider, RequestCredential};
use crate::agent_session::{AgentCredentials, agent_error, header};
use crate::cli::Cx;
use crate::commands::service_store::{check_secret, read_secret};
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::http::HttpAddress;
use crate::probe::a2a::{A2aService, limits};
use crate::probe::openai::OpenAiService;
use crate::probe::ramp::{FEWEST, Ramp};
use crate::probe::request::RequestArgs;
use crate::probe::sessile::SessileService;
use crate::probe::template::Template;
use crate::probe::{
    Canaries, FixedCredentials, HeaderTemplates, ProbePlan, ProbeProgress, ProbeReport, ProbeSubject,
    ProbeTransport, Run, Service, capturing_client,
};
use crate::vault_unlock::with_unlocked_vault;

/// Exit status after an interrupt.
const INTERRUPTED: i32 = 130;

/// Maximum number of requests of one probe.
const MOST: u32 = 100_000;

/// Users of the first round.
const FIRST: u32 = 10;

/// Default budget. With so many replies, a leak in 1 of 100 is missed once in a hundred million probes.
const REQUESTS: u32 = 2000;
const TIME: Duration = Duration::from_mins(2);

/// Test a service for leaks between users under load
///
/// Each user sends a new code word in every turn and asks the service to repeat all of them. The probe searches every
/// reply and every readable history for code words of other users (a leak), and for own words that are lost, doubled or
/// out of order. It always searches for leaks, also in response headers and in base64, percent-encoding, escapes and
/// hex. It checks order and loss only if the service repeats the words. The exit status is 0 without findings, 1 with
/// findings, and 10 or 12 if less than half of the requests were answered.
///
/// The probe runs in rounds: 10 users at once, then 20, 40 and so on. It stops at the first finding, or at
/// --max-requests or --max-time. A report without findings states how likely this probe was to find a leak that affects
/// 1 reply in 100. With --users it runs one round with that many users.
///
/// The probe is a load test: it sends many requests at once, and each may cost money. It probes only services on this
/// machine, unless you allow another host with --allow-host.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile probe http://localhost:8738 --protocol a2a --turns 10"
    "sessile probe research --protocol a2a --max-requests 10000 --max-time 10m"
    "sessile probe http://localhost/v1 --protocol openai --model m --users 50"
    "sessile probe http://localhost --protocol http --request 'GET /?q={message}'"
    "sessile probe http://localhost --protocol http --template chat.toml -o json"
    "sessile probe http://localhost:8737 --protocol sessile --tokens tokens.txt"
    "sessile probe https://a.example --protocol a2a --rate 5 --allow-host a.example"
))]
pub struct Args {
    /// URL of the service, or name of an agent
    #[arg(value_name = "URL")]
    url: String,

    /// Protocol of the service
    #[arg(long, value_enum, value_name = "PROTOCOL")]
    protocol: Protocol,

    /// Probe with N users in one round, instead of raising their number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000))]
    users: Option<u32>,

    /// Raise the number of users up to N
    #[arg(long, value_name = "N", default_value_t = 1000, conflicts_with = "users", hide_short_help = true,
          value_parser = clap::value_parser!(u32).range(2..=1000))]
    max_users: u32,

    /// Send at most N messages, 2000 by default; with --users, repeat the round until they are used up
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST)))]
    max_requests: Option<u32>,

    /// Start no new turn after this time; default: 2m, or no limit with --users
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    max_time: Option<Duration>,

    /// Number of code words per user
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=200))]
    turns: u32,

    /// Number of concurrent requests; default: one per user
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), hide_short_help = true)]
    concurrency: Option<u32>,

    /// Maximum number of requests per second
    #[arg(long, value_name = "N", value_parser = parse_rate)]
    rate: Option<f64>,

    /// Timeout of a request
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_duration, hide_short_help = true)]
    timeout: Duration,

    /// Derive the code words from this seed, to repeat a probe; default: random
    #[arg(long, value_name = "N", hide_short_help = true)]
    seed: Option<u64>,

    /// Allow probing this remote host; must match the host in the URL
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,

    /// Header for every request; {user} and {session} are replaced, @FILE reads the value from a file
    #[arg(long, value_name = "NAME: VALUE", hide_short_help = true)]
    header: Vec<String>,

    /// Send the key in this file as a bearer token, instead of a credential
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    api_key_file: Option<PathBuf>,

    /// sessile: file with the users' tokens, one per line
    #[arg(long, value_name = "FILE", conflicts_with = "api_key_file")]
    tokens: Option<PathBuf>,

    /// sessile: keep the sessions for inspection; default: stop them
    #[arg(long, hide_short_help = true)]
    keep: bool,

    /// openai: model
    #[arg(long, value_name = "NAME", required_if_eq("protocol", "openai"))]
    model: Option<String>,

    /// openai: send only the new message to a service that stores the history
    #[arg(long, hide_short_help = true)]
    stateful: bool,

    #[command(flatten)]
    request: RequestArgs,
}

/// Protocol of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Protocol {
    /// A2A, with one conversation per user
    A2a,
    /// OpenAI's chat completions, at URL/chat/completions
    Openai,
    /// Session service, with one session per user
    Sessile,
    /// Other HTTP APIs, by request templates
    Http,
}

impl Protocol {
    fn as_str(self) -> &'static str {
        match self {
            Protocol::A2a => "a2a",
            Protocol::Openai => "openai",
            Protocol::Sessile => "sessile",
            Protocol::Http => "http",
        }
    }
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let rate: Option<f64> = text.parse().ok().filter(|rate| (0.01..=100_000.0).contains(rate));
    rate.ok_or_else(|| "expected a number from 0.01 to 100000".to_owned())
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    args.check(cx)?;
    let named = cx.state.agent(&args.url)?;
    // Before anything is read or sent: a load test of another machine needs to be allowed.
    args.permit(&named.url)?;
    // What a context gives to a service is asked for like everything else of it.
    cx.state.usable_context()?;
    let tokens = args.load_tokens(cx)?;
    let rounds = args.rounds(tokens.as_ref().map(Vec::len))?;
    let service = args.service(cx, &named, tokens.unwrap_or_default())?;
    cx.state.contexts().recheck(true)?;
    let plan = ProbePlan {
        turns: args.turns,
        concurrency: args.concurrency.unwrap_or(u32::MAX),
        rate: args.rate,
        max_time: args.max_time.or(args.users.is_none().then_some(TIME)),
        canaries: Canaries::new(rounds.iter().sum(), args.turns, args.seed)?,
        rounds,
    };
    let total = plan.requests();
    let about = ProbeSubject { url: named.url.clone(), protocol: args.protocol.as_str(), seed: args.seed };

    let is_ended = Arc::new(AtomicBool::new(false));
    // Whoever insists does not even wait for the report.
    // Registered before the flag is, so that only the second signal finds the flag set.
    signal_hook::flag::register_conditional_shutdown(SIGINT, INTERRUPTED, Arc::clone(&is_ended))?;
    signal_hook::flag::register(SIGINT, Arc::clone(&is_ended))?;
    allow_connections();
    let mut run = Run::new(plan, service);
    let mut told: Option<Instant> = None;
    let finished = run.finish(&|| is_ended.load(Ordering::SeqCst), &mut |progress| {
        // Thousands of replies would spend their time on the terminal.
        if told.is_none_or(|told| told.elapsed() > Duration::from_millis(100)) {
            cx.out.progress(&bar(progress, total));
            told = Some(Instant::now());
        }
    });
    cx.out.progress_over();
    let users = run.rounds().iter().map(|round| round.users).sum();
    // Before a failure is reported: sessions at the service are ended in any case.
    let ended = run.end(args.ending(matches!(finished, Ok(true)), users));
    let is_complete = finished.map_err(|error| UsageError::Arguments(format!("cannot start {error}")))?;
    let report = ProbeReport::new(about, &run, is_complete, ended);
    if let Some(failure) = report.failure() {
        return Err(failure);
    }
    cx.changed(report.json(), || report.text(&cx.out))?;
    match report.exit() {
        exit::DONE => Ok(()),
        status => Err(Failure::Told(status)),
    }
}

/// Raises the limit of open connections: each request needs one.
fn allow_connections() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Progress bar of constant width.
fn bar(progress: ProbeProgress, total: u32) -> String {
    const WIDTH: usize = 24;
    let ProbeProgress { answered, failed, leaks } = progress;
    let (done, total) = (answered + failed, u64::from(total));
    let full = usize::try_from(done * WIDTH as u64 / total.max(1)).map_or(WIDTH, |full| full.min(WIDTH));
    let (full, rest) = ("#".repeat(full), "-".repeat(WIDTH - full));
    format!("[{full}{rest}] {done:>6} of {total} replies, {failed} failed, {leaks} leaks")
}

impl Args {
    /// Maximum number of messages.
    fn requests(&self) -> u32 {
        let round = self.users.map(|users| users * self.per_user());
        self.max_requests.or(round).unwrap_or(REQUESTS)
    }

    /// Messages of one user: after the last turn one more asks for all code words.
    fn per_user(&self) -> u32 {
        self.turns + 1
    }

    /// Users of each round, each with their own token if the service has tokens.
    fn rounds(&self, tokens: Option<usize>) -> Result<Vec<u32>, Error> {
        let tokens = tokens.map_or(u32::MAX, |tokens| u32::try_from(tokens).unwrap_or(u32::MAX));
        let (first, most) = match self.users {
            Some(users) => (users, users),
            None => (FIRST, self.max_users.min(self.concurrency.unwrap_or(u32::MAX).max(FIRST)).min(tokens)),
        };
        if tokens < self.users.unwrap_or(FEWEST) {
            let users = self.users.unwrap_or(FEWEST);
            return Err(UsageError::Arguments(format!(
                "--tokens: the file has {tokens} tokens for {users} users"
            ))
            .into());
        }
        let ramp = Ramp { first, most, per_user: self.per_user(), requests: self.requests() };
        let rounds = ramp.rounds();
        if rounds.is_empty() {
            let needed = FEWEST * self.per_user();
            return Err(UsageError::Arguments(format!(
                "--max-requests {}: {FEWEST} users with {} turns send {needed} messages; pass at least that many",
                self.requests(),
                self.turns,
            )).into());
        }
        Ok(rounds)
    }

    /// Timeout of ending the sessions at the service, short after an interrupt.
    fn ending(&self, is_complete: bool, users: u32) -> Option<Duration> {
        let paced = self.rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(f64::from(users) / rate));
        let within = if is_complete { Duration::from_secs(30) + paced } else { Duration::from_secs(5) };
        (!self.keep).then_some(within)
    }

    /// Fails for flags that exclude each other.
    fn check(&self, cx: &Cx) -> Result<(), Error> {
        let usage = |text: String| Err(UsageError::Arguments(text).into());
        if self.requests() > MOST {
            return usage(format!(
                "{} users with {} turns send {} messages; the limit is {MOST}",
                self.users.unwrap_or(FIRST),
                self.turns,
                self.requests()
            ));
        }
        if self.api_key_file.is_some() && cx.state.args().credential.is_some() {
            return usage("pass --api-key-file or --credential, not both".to_owned());
        }
        let foreign = match self.protocol {
            Protocol::Http => None,
            _ => self.request.first_passed(),
        };
        let openai = || (self.model.as_ref().map(|_| "--model")).or(self.stateful.then_some("--stateful"));
        let foreign = foreign.or_else(|| openai().filter(|_| self.protocol != Protocol::Openai));
        let tokens =
            || self.tokens.as_ref().map(|_| "--tokens").filter(|_| self.protocol != Protocol::Sessile);
        let keep = || self.keep.then_some("--keep").filter(|_| self.protocol != Protocol::Sessile);
        match foreign.or_else(tokens).or_else(keep) {
            Some(flag) => usage(format!("{flag} cannot be used with --protocol {}", self.protocol.as_str())),
            None => Ok(()),
        }
    }

    /// Fails unless a host is this machine or an allowed host.
    fn permit(&self, url: &str) -> Result<(), Error> {
        // Another machine is not asked without https, and that is told together with what else is missing.
        let secured = url.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("http:")).map(|_| {
            let secured = HttpAddress::parse(&format!("https:{}", &url[5..]));
            secured.ok().filter(|address| !address.is_loopback())
        });
        let (address, is_plain) = match secured.flatten() {
            Some(address) => (address, true),
            None => {
                (HttpAddress::parse(url).map_err(|error| UsageError::Arguments(error.to_string()))?, false)
            }
        };
        let host = address.uri().host().unwrap_or_default();
        let is_allowed =
            address.is_loopback() || self.allow_host.iter().any(|allowed| allowed.eq_ignore_ascii_case(host));
        let plain = "remote services are probed over https only";
        let load = format!(
            "a probe is a load test of up to {} requests; if you are allowed to run it, pass --allow-host {}",
            self.requests(),
            shell_quoted(host)
        );
        let why = match (is_plain, is_allowed) {
            (false, true) => return Ok(()),
            (true, true) => format!(": {plain}"),
            (true, false) => format!(": {plain}; and {load}"),
            (false, false) => format!(", and {load}"),
        };
        Err(UsageError::Arguments(format!("{} is another machine{why}", quoted(host))).into())
    }

    fn service(&self, cx: &Cx, named: &Named, tokens: Vec<Secret>) -> Result<Box<dyn Service>, Failure> {
        let (mut headers, template) = (self.headers(cx)?, self.request.load(&cx.state)?);
        headers.tokens = tokens;
        if self.protocol == Protocol::A2a {
            return Ok(Box::new(self.agent(cx, named, headers)?));
        }
        // Users with tokens of their own need no other.
        let auth =
            if headers.tokens.is_empty() { self.auth(cx, named, None)? } else { FixedCredentials::default() };
        let wire = ProbeTransport::new(&named.url, headers, auth, self.timeout);
        Ok(match self.protocol {
            Protocol::Openai => Box::new(OpenAiService {
                wire,
                model: self.model.clone().unwrap_or_default(),
                is_stateful: self.stateful,
            }),
            Protocol::Sessile => Box::new(SessileService::new(wire)),
            _ => Box::new(template.service(wire)?),
        })
    }

    fn headers(&self, cx: &Cx) -> Result<HeaderTemplates, Error> {
        let mut headers = HeaderTemplates::default();
        for text in self.header.iter().chain(&self.request.load(&cx.state)?.headers) {
            let wrong = |wrong: String| {
                Error::Usage(UsageError::Arguments(format!("--header: unknown placeholder {wrong}")))
            };
            let value = text.split_once(':').map(|(name, value)| (name, Template::parse(value.trim())));
            match value {
                Some((name, value)) if value.as_ref().is_ok_and(Template::names_user) => {
                    headers.named.push((name.trim().to_owned(), value.map_err(wrong)?));
                }
                _ => headers.fixed.push(header(&cx.state, text)?),
            }
        }
        Ok(headers)
    }

    /// The users' tokens, one in each line of the file.
    fn load_tokens(&self, cx: &Cx) -> Result<Option<Vec<Secret>>, Error> {
        let Some(file) = &self.tokens else { return Ok(None) };
        check_secret(cx, file)?;
        // Wrapped at once, so that the whole file is wiped, and not only the tokens.
        let text = Secret::new(read_secret(cx, file)?);
        let lines = text.expose().lines().map(str::trim).filter(|line| !line.is_empty());
        Ok(Some(lines.map(Secret::new).collect()))
    }

    /// Credentials for the service, or for the address in its card.
    fn auth(
        &self,
        cx: &Cx,
        named: &Named,
        card: Option<(&AgentCard, &str)>,
    ) -> Result<FixedCredentials, Failure> {
        let place = card.map_or(named.url.as_str(), |(_, place)| place);
        let site = Some(Site::of_url(place)?);
        if let Some(file) = &self.api_key_file {
            return Ok(FixedCredentials {
                // The site that the user named, and not the one of the card: the key was given for it.
                site: Some(Site::of_url(&named.url)?),
                credentials: vec![key(cx, file)?],
            });
        }
        let credentials = with_unlocked_vault(cx, &cx.state, || {
            let credentials = AgentCredentials::new(&cx.state, named);
            if let Some((card, _)) = card {
                credentials.learn(card);
            }
            credentials.credentials_for(place)
        })?;
        Ok(FixedCredentials { site, credentials })
    }

    fn agent(&self, cx: &Cx, named: &Named, headers: HeaderTemplates) -> Result<A2aService, Failure> {
        let (http, url) = (capturing_client(), named.url.clone());
        let fixed = self.auth(cx, named, None)?;
        let options = ClientOptions {
            headers: headers.fixed.clone(),
            limits: limits(self.timeout),
            ..ClientOptions::default()
        };
        let card = AgentClient::find_card(&http, &url, &fixed, &options, None)
            .map_err(|error| agent_error(&url, None, error))?;
        let agent = AgentClient::from_card(&http, &url, &fixed, options, card.clone());
        let place = agent.map_err(|error| agent_error(&url, None, error))?.interface.url;
        // A card may name any machine.
        self.permit(&place)?;
        let auth = self.auth(cx, named, Some((&card, &place)))?;
        let now = cx.state.world().now().as_millisecond();
        Ok(A2aService { http, url, card, headers, auth, timeout: self.timeout, now })
    }
}

fn key(cx: &Cx, file: &Path) -> Result<RequestCredential, Error> {
    check_secret(cx, file)?;
    let key = Secret::new(read_secret(cx, file)?.trim());
    if key.is_empty() {
        return Err(UsageError::Arguments("--api-key-file: the file is empty".to_owned()).into());
    }
    Ok(RequestCredential::Header("authorization".to_owned(), Secret::new(format!("Bearer {}", key.expose()))))
}
