//! Getting ready to run something in a session: find or start it, check the guard, prepare its room, set variables.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::rc::Rc;
use std::time::Duration;

use sessile::args::parse_duration;
use sessile::context::{Context, is_variable_name};
use sessile::error::{SessionError, UsageError};
use sessile::secrets::is_secret;
use sessile::session::life::Life;
use sessile::session::room::Running;
use sessile::session::{Session, SessionName};
use sessile::settings::{Layer, Value};
use sessile::tool::{Asked, Environment, Level, Plan, Wanted, is_own_variable, prepare};
use sessile::{Error, State};

use crate::child::forbid_core_dumps;
use crate::cli::Cx;
use crate::commands::session::lifetime;
use crate::error::{CommandError, Failure, Outcome};
use crate::renewer::Renewer;
use crate::shell::{VARIABLES, assertion};
use crate::unlocked::unlocked;

/// How long a session for one command alone lives on when nothing runs in it any more.
const AFTERWARDS: Duration = Duration::from_secs(60);

/// What to do instead of passing a secret as an argument, which every user of the machine can see.
const SECRET_ARGUMENT: &str = "pass a credential of the vault: --env-credential VARIABLE=NAME; or export the variable before \
                               the call: commands inherit it";

/// What decides how a command is isolated.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Flags {
    /// How far its state is isolated: variables for the known tools, or the home directory as well; else as the
    /// setting isolate says
    #[arg(long, value_name = "LEVEL", value_parser = ["env", "home"])]
    isolate: Option<String>,

    /// Isolate only these tools, and those that the context binds
    #[arg(long, value_name = "TOOL")]
    tool: Vec<String>,

    /// Set a variable for the command
    #[arg(long = "env", value_name = "NAME=VALUE")]
    variables: Vec<String>,

    /// Set a variable for the command to the secret of a credential
    #[arg(long, value_name = "NAME=CREDENTIAL")]
    env_credential: Vec<String>,

    /// Begin with an almost empty environment: home, path, terminal and language only
    #[arg(long)]
    clear_env: bool,

    /// Keep a variable that would be taken away; `*` at the end stands for any rest
    #[arg(long, value_name = "NAME")]
    keep_env: Vec<String>,

    /// Fail unless this is the context
    #[arg(long, value_name = "CONTEXT")]
    expect: Option<String>,
}

/// What decides which session it runs in.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Which {
    /// Fail if there is no such session, instead of starting it
    #[arg(long, conflicts_with = "new")]
    existing: bool,

    /// Start the session anew if it has expired or was stopped; fail if it is live
    #[arg(long)]
    pub(crate) new: bool,

    #[command(flatten)]
    start: Start,
}

/// What a session gets that is started for the command.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Start {
    /// What the agent that works in a session that is started calls itself
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// How long a session that is started may lie idle; else as the setting session.idle says
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    idle: Option<Duration>,

    /// How long a session that is started lives at most; else as the setting session.max says
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    max: Option<Duration>,
}

/// A session that something is about to run in.
pub(crate) struct Ready<'a> {
    /// The state as it is in that session: the call's own, or one of its own if the session was started for it.
    state: Either<'a>,
    pub(crate) session: Rc<Session>,
    /// Whether the session is for this command alone.
    pub(crate) is_ephemeral: bool,
    /// Whether it was started for this command.
    is_started: bool,
}

enum Either<'a> {
    Own(Box<State>),
    Call(&'a State),
}

/// A session that is entered: nobody removes its room.
pub(crate) struct Inside {
    pub(crate) plan: Plan,
    pub(crate) environment: Environment,
}

impl Flags {
    /// Fails if another context is in use than the caller expects; before anything is started.
    pub(crate) fn check_expected(&self, state: &State) -> Outcome {
        let selected = state.selected()?;
        match &self.expect {
            Some(expected) if selected.is_none_or(|selected| selected.name.as_str() != expected) => {
                let is_pinned = selected.is_some_and(|found| found.origin.layer == Layer::Session);
                let found = selected.map(|found| format!("{:?} ({})", found.name.as_str(), found.origin));
                Err(CommandError::UnexpectedContext { expected: expected.clone(), found, is_pinned }.into())
            }
            _ => Ok(()),
        }
    }
}

impl Inside {
    /// Whether the command gets secrets, which may have to be waited for.
    pub(crate) fn has_credentials(&self, ready: &Ready<'_>) -> bool {
        !self.environment.bound.is_empty() || ready.state().args().credential.is_some()
    }

    /// All variables of the command, those that lead shells to their files among them. Credentials come in here, when
    /// the command is about to run, and nowhere else: each is checked, and renewed first if its time is up.
    pub(crate) fn variables(
        &self,
        cx: &Cx,
        ready: &Ready<'_>,
    ) -> Result<BTreeMap<OsString, OsString>, Failure> {
        forbid_core_dumps();
        let state = ready.state();
        let mut variables = self.environment.variables(state);
        let renewer = Renewer::new();
        // One that only the settings select may be meant for other calls.
        if let Some(selected) = state.selected_credential()?.filter(|one| one.origin.layer == Layer::Flag) {
            unlocked(cx, state, || selected.usable(state, &renewer))?;
        }
        for bound in &self.environment.bound {
            let usable = unlocked(cx, state, || {
                state.vault()?.usable(&bound.credential, bound.origin.as_str(), &renewer)
            })?;
            variables.insert(OsString::from(&bound.name), OsString::from(usable.secret().expose()));
        }
        let files = assertion(ready.state(), ready.session.room().dir(), &self.environment.changes)?;
        for (name, file) in VARIABLES.iter().zip(files) {
            // What was said for this command is meant.
            if !self.environment.changes.iter().any(|change| change.name == *name) {
                variables.insert(OsString::from(name), file.into());
            }
        }
        // They belong together: those of a session around this one go, and what the caller says stays.
        let is_said = |name: &&str| variables.contains_key(OsStr::new(name));
        if state.enclosing_session().is_some() || !CONVERSATION.iter().any(is_said) {
            for name in CONVERSATION {
                variables.remove(OsStr::new(name));
            }
            for (name, value) in CONVERSATION.iter().zip(conversation(state, &ready.session)?) {
                if let Some(value) = value {
                    variables.insert(OsString::from(name), OsString::from(value));
                }
            }
        }
        cx.out.warnings(&state.take_warnings());
        Ok(variables)
    }
}

/// What a client of agents that remembers nothing is told: the conversation that was used last in the session.
const CONVERSATION: [&str; 3] = ["A2ACLI_AGENT_URL", "A2ACLI_CONTEXT_ID", "A2ACLI_TASK_ID"];

fn conversation(state: &State, session: &Session) -> Result<[Option<String>; 3], Error> {
    Ok(match state.last_conversation(session)? {
        Some(last) => {
            let task = last.open_task().map(str::to_owned);
            [Some(last.agent_url), last.context_id, task]
        }
        None => [None, None, None],
    })
}

impl Which {
    /// The session that a command runs in; one is started if there is none.
    pub(crate) fn session<'a>(&self, cx: &'a Cx, command: &str) -> Result<Ready<'a>, Failure> {
        let state = &cx.state;
        if self.new && state.args().session.is_none() {
            return Err(UsageError::Arguments("--new needs --session NAME".into()).into());
        }
        if state.session()?.is_some() {
            let session = state.require_session("running in it")?;
            if self.new {
                return Err(SessionError::Exists(session.label().to_owned()).into());
            }
            return Ok(Ready { state: Either::Call(state), session, is_ephemeral: false, is_started: false });
        }
        let name = state.pending_session()?.map(|pending| &pending.name);
        if self.existing {
            return Err(match name {
                Some(name) => Error::Session(SessionError::NotFound(name.to_string())),
                None => {
                    Error::Session(SessionError::Required("running something with --existing".to_owned()))
                }
            }
            .into());
        }
        start(cx, name, command, &self.start, self.new)
    }
}

/// Starts a session to run something in; with no name for that alone.
pub(crate) fn start(
    cx: &Cx,
    name: Option<&SessionName>,
    command: &str,
    with: &Start,
    alone: bool,
) -> Result<Ready<'static>, Failure> {
    let state = &cx.state;
    // What a command leaves running keeps its session; when that has ended too, nobody comes back to it.
    let usual = name.is_none().then_some(AFTERWARDS);
    let (idle, max) = lifetime(state, with.idle.or(usual), with.max)?;
    let mut is_started = true;
    let session = match state.start_session_to_run(command, name.cloned(), with.agent.clone(), idle, max) {
        // Another was quicker: then it is that one, unless a new one was asked for.
        Err(Error::Session(SessionError::Exists(_))) if !alone => {
            is_started = false;
            let session = state.sessions()?.get(name.map_or("", |name| name.as_str()))?;
            match session.life(state.world()) {
                Life::Live => session,
                _ => return Err(SessionError::Exists(session.label().to_owned()).into()),
            }
        }
        started => started?,
    };
    Ok(Ready {
        state: Either::Own(Box::new(cx.state.in_session(&session.id))),
        session: Rc::new(session),
        is_ephemeral: name.is_none(),
        is_started,
    })
}

impl Ready<'_> {
    /// The state as it is in the session.
    pub(crate) fn state(&self) -> &State {
        match &self.state {
            Either::Own(state) => state,
            Either::Call(state) => state,
        }
    }

    /// Keeps the room for the command that is about to run.
    pub(crate) fn enter(&self, running: &Running) -> Result<sessile::session::room::Presence, Error> {
        self.session.room().enter(self.state().world(), running)
    }

    /// Prepares the room and resolves the variables. The caller has entered it.
    pub(crate) fn prepare(&self, flags: &Flags) -> Result<Inside, Failure> {
        self.prepare_replacing(flags, VARIABLES)
    }

    /// The same for a shell that is there already, and which bash's file does not belong to.
    pub(crate) fn prepare_for_shell(&self, flags: &Flags) -> Result<Inside, Failure> {
        self.prepare_replacing(flags, &[])
    }

    fn prepare_replacing(&self, flags: &Flags, replaces: &[&str]) -> Result<Inside, Failure> {
        let context = self.context()?;
        let wanted = self.wanted(flags)?;
        let plan = prepare(self.state(), &self.session, &wanted, context)?;
        let mut asked = self.asked(flags)?;
        asked.replaces = replaces.iter().map(ToString::to_string).collect();
        let environment = Environment::resolve(self.state(), &self.session, &plan, &wanted, context, &asked)?;
        Ok(Inside { plan, environment })
    }

    /// The context, if there is one and it may be used.
    fn context(&self) -> Result<Option<&Context>, Error> {
        match self.state().selected()? {
            Some(_) => self.state().contexts().require().map(Some),
            None => Ok(None),
        }
    }

    /// Checks the guard again, immediately before the command starts: the approval may have ended while a lock or a
    /// credential was waited for.
    pub(crate) fn recheck_guard(&self, has_waited: bool) -> Result<(), Error> {
        self.state().contexts().recheck(has_waited)
    }

    fn wanted(&self, flags: &Flags) -> Result<Wanted, Error> {
        let said = self.state().settings()?.get("isolate")?;
        let level = flags.isolate.as_deref().or_else(|| said.as_ref().and_then(|found| found.value.as_str()));
        let only = if flags.tool.is_empty() { self.list("tools.only")? } else { flags.tool.clone() };
        let wanted = Wanted {
            level: level.and_then(Level::named).unwrap_or_default(),
            is_level_said: flags.isolate.is_some(),
            only,
            except: self.list("tools.except")?,
            also: self.list("tools.also")?,
        };
        wanted.resolved(self.state())
    }

    fn asked(&self, flags: &Flags) -> Result<Asked, Error> {
        let mut asked = Asked { clear: flags.clear_env, ..Asked::default() };
        for pair in &flags.variables {
            let wrong = |expected: &str| {
                Error::Usage(UsageError::InvalidValue {
                    place: "--env".into(),
                    value: pair.split('=').next().unwrap_or_default().to_owned(),
                    expected: expected.into(),
                })
            };
            let (name, value) = pair.split_once('=').ok_or_else(|| wrong("NAME=VALUE"))?;
            if name.is_empty() || name.contains(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
                return Err(wrong("named like a variable (letters, digits and _)"));
            }
            if is_own_variable(self.state().app(), name) {
                let what = format!("--env {name}: {name} is set by sessile itself; choose another name");
                return Err(UsageError::Arguments(what).into());
            }
            if is_secret(name, value) {
                return Err(UsageError::SecretRefused {
                    place: format!("--env {name}"),
                    instead: SECRET_ARGUMENT,
                }
                .into());
            }
            asked.flags.push((name.to_owned(), value.to_owned()));
        }
        for pair in &flags.env_credential {
            let wrong = || {
                Error::Usage(UsageError::InvalidValue {
                    place: "--env-credential".into(),
                    value: pair.split('=').next().unwrap_or_default().to_owned(),
                    expected: "NAME=CREDENTIAL".into(),
                })
            };
            let (name, credential) = pair.split_once('=').ok_or_else(wrong)?;
            let is_own =
                ["PATH", "HOME"].contains(&name) || name.starts_with("LD_") || name.starts_with("SESSILE_");
            if !is_variable_name(name) || is_own {
                return Err(wrong());
            }
            asked.credentials.push((name.to_owned(), credential.parse()?));
        }
        let settings = self.state().settings()?;
        for key in settings.keys(false) {
            let [first, name] = key.segments() else { continue };
            if first != "env" {
                continue;
            }
            let found = settings.resolve(&key)?;
            if let Some((value, origin)) =
                found.as_ref().and_then(|found| Some((found.value.as_str()?, &found.origin)))
            {
                asked.settings.push((name.clone(), value.to_owned(), origin.clone()));
            }
        }
        asked.keep = self.list("passthrough")?;
        asked.keep.extend(flags.keep_env.iter().cloned());
        Ok(asked)
    }

    fn list(&self, key: &str) -> Result<Vec<String>, Error> {
        Ok(match self.state().settings()?.get(key)?.map(|found| found.value) {
            Some(Value::List(words)) => words,
            _ => Vec::new(),
        })
    }

    /// Ends a session that was for one command alone, or for one that could not even be started.
    pub(crate) fn leave(&self, cx: &Cx, outcome: &Outcome) {
        let is_in_vain = self.is_started && outcome.as_ref().is_err_and(Failure::is_before_start);
        // What the command left running keeps the room; it goes when that has ended and the next call tidies up.
        if !self.is_ephemeral && !is_in_vain {
            return;
        }
        match self.state().end_run(&self.session) {
            Ok(true) => {}
            Ok(false) => {
                cx.out.detail(&format!("session {} goes on: something still runs in it", self.session.id));
            }
            Err(error) => cx.out.note(&format!("session {} is not removed: {error}", self.session.id)),
        }
    }
}
