//! Preparation of a command: its room, its isolation and its variables.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use zeroize::Zeroizing;

use crate::context::{Context, is_variable_name};
use crate::error::{Error, GuardError, Result, UsageError};
use crate::hook::EnteredBy;
use crate::run::environment::is_own_variable;
use crate::run::session::leave_request;
use crate::run::shell::{SHELL_FILE_VARIABLES, shell_files};
use crate::run::{
    Environment, IsolatedCommand, IsolationArgs, RunRequest, RunSession, VariableChange, VariableRequest,
};
use crate::secrets::is_secret;
use crate::session::Session;
use crate::session::room::{Presence, RunningProcess};
use crate::settings::{Layer, Value};
use crate::state::State;
use crate::tool::{IsolationScope, Level, Plan, prepare_for};
use crate::vault::TokenRefresher;

/// Variable in which shells count how many of them are above.
const SHELL_LEVEL: &str = "SHLVL";

/// Replacement for a secret as an argument, which every user of the machine can see.
const SECRET_ARGUMENT: &str = "pass a credential of the vault: --env-credential VARIABLE=NAME; or export the variable before \
                               the call: commands inherit it";

/// Variables by which clients of agents that keep no state continue a conversation.
const CONVERSATION_VARIABLES: [&str; 3] = ["A2ACLI_AGENT_URL", "A2ACLI_CONTEXT_ID", "A2ACLI_TASK_ID"];

/// Command whose room is entered and prepared. While this value lives, no process removes the room.
pub struct PreparedRun<'a> {
    run: &'a RunSession<'a>,
    pub(super) presence: Presence,
    /// State of the tools in the room.
    pub plan: Plan,
    /// Variables that differ from the caller's, without secrets.
    pub environment: Environment,
}

impl RunSession<'_> {
    /// Enters the room, prepares it for the tools and resolves the variables of a command.
    pub fn prepare(&self, request: &RunRequest<'_>) -> Result<PreparedRun<'_>> {
        self.prepare_replacing(request, SHELL_FILE_VARIABLES, None)
    }

    /// The same for a shell that runs already: the files that keep started shells in the session are not its own.
    pub fn prepare_for_running_shell(&self, request: &RunRequest<'_>) -> Result<PreparedRun<'_>> {
        self.prepare_replacing(request, &[], None)
    }

    /// The variables of a shell that the hook brings into the session, with the files that keep the shells it starts
    /// there.
    pub(crate) fn prepare_for_hook(&self, request: &RunRequest<'_>, by: EnteredBy) -> Result<Environment> {
        let prepared = self.prepare_replacing(request, SHELL_FILE_VARIABLES, by.word())?;
        let mut environment = prepared.into_environment();
        let (room, durable) = (self.session().room().dir(), !self.is_ephemeral());
        let files = shell_files(self.state(), room, &environment.changes, durable, None)?;
        for (name, file) in SHELL_FILE_VARIABLES.iter().zip(files) {
            let change = VariableChange {
                name: (*name).to_owned(),
                value: Some(file.to_string_lossy().into_owned()),
                origin: format!("session {}", self.session().label()),
                isolates: false,
            };
            environment.changes.push(change);
        }
        Ok(environment)
    }

    fn prepare_replacing(
        &self,
        request: &RunRequest<'_>,
        replaces: &[&str],
        hook: Option<&'static str>,
    ) -> Result<PreparedRun<'_>> {
        let (state, session) = (self.state(), self.session());
        // Before anything is read: from here on the room cannot be removed.
        let presence = session.room().enter(state.world(), &RunningProcess::own(request.words))?;
        let context = match self.context() {
            Err(error @ Error::Guard(GuardError::ApprovalRequired(_))) => {
                // The approval that opened the room has ended; the next writing call tries again if this fails.
                let _ = state.withdraw_targets(session);
                leave_request(state, request, Some(session), &error);
                return Err(error);
            }
            context => context?,
        };
        let scope = scope(state, request.isolation)?;
        let is_taken = self.spare.taken.borrow().is_some();
        let plan = prepare_for(state, session, &scope, context, is_taken)?;
        if let Some(withheld) = &plan.withheld {
            // After the preparation: only then is it known what the copies lack.
            let level = (plan.is_new(), plan.home.is_some());
            withheld.check_command(state, session, request.words, level)?;
        }
        scope.check_command(state, &plan, context, request.words)?;
        let mut variables = self.variable_request(request.isolation)?;
        variables.replaces = replaces.iter().map(ToString::to_string).collect();
        variables.hook = hook;
        let environment = Environment::resolve(state, session, &plan, &scope, context, &variables)?;
        Ok(PreparedRun { run: self, presence, plan, environment })
    }

    /// The context, if one is selected; fails if it must not be used.
    fn context(&self) -> Result<Option<&Context>> {
        match self.state().selected()? {
            Some(_) => self.state().contexts().require().map(Some),
            None => Ok(None),
        }
    }

    fn variable_request(&self, args: &IsolationArgs) -> Result<VariableRequest> {
        let mut request = VariableRequest { clear: args.clear_env, ..VariableRequest::default() };
        for pair in &args.variables {
            request.flags.push(self.variable_flag(pair)?);
        }
        for pair in &args.env_credential {
            let wrong = || {
                Error::Usage(UsageError::InvalidValue {
                    place: "--env-credential".into(),
                    // The name only: the rest may be a secret that was given by mistake.
                    value: pair.split('=').next().unwrap_or_default().to_owned(),
                    expected: "NAME=CREDENTIAL".into(),
                })
            };
            let (name, credential) = pair.split_once('=').ok_or_else(wrong)?;
            let is_own =
                // These decide what is loaded and where files are found, which is nothing for a secret.
                ["PATH", "HOME"].contains(&name)
                    || name.starts_with("LD_")
                    || name.starts_with(&format!("{}_", self.state().app().prefix()));
            if !is_variable_name(name) || is_own {
                return Err(wrong());
            }
            request.credentials.push((name.to_owned(), credential.parse()?));
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
                request.settings.push((name.clone(), value.to_owned(), origin.clone()));
            }
        }
        request.keep = list(self.state(), "passthrough")?;
        request.keep.extend(args.keep_env.iter().cloned());
        Ok(request)
    }

    /// Name and value of a variable that a flag sets.
    fn variable_flag(&self, pair: &str) -> Result<(String, String)> {
        let wrong = |expected: &str| {
            Error::Usage(UsageError::InvalidValue {
                place: "--env".into(),
                // The name only: the value may be a secret.
                value: pair.split('=').next().unwrap_or_default().to_owned(),
                expected: expected.into(),
            })
        };
        let (name, value) = pair.split_once('=').ok_or_else(|| wrong("NAME=VALUE"))?;
        if name.is_empty() || name.contains(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            return Err(wrong("named like a variable (letters, digits and _)"));
        }
        if is_own_variable(self.state(), name) {
            let what = format!("--env {name}: {name} is set by sessile itself; choose another name");
            return Err(UsageError::Arguments(what).into());
        }
        if is_secret(name, value) {
            let place = format!("--env {name}");
            return Err(UsageError::SecretRefused { place, instead: SECRET_ARGUMENT }.into());
        }
        Ok((name.to_owned(), value.to_owned()))
    }
}

/// Scope of the isolation, from flags and settings.
pub(super) fn scope(state: &State, args: &IsolationArgs) -> Result<IsolationScope> {
    let setting = state.settings()?.get("isolate")?;
    let level = args.isolate.as_deref().or_else(|| setting.as_ref().and_then(|found| found.value.as_str()));
    let only = if args.tool.is_empty() { list(state, "tools.only")? } else { args.tool.clone() };
    let scope = IsolationScope {
        level: level.and_then(Level::named).unwrap_or_default(),
        is_level_requested: args.isolate.is_some(),
        only,
        except: list(state, "tools.except")?,
        also: list(state, "tools.also")?,
    };
    scope.resolved(state)
}

fn list(state: &State, key: &str) -> Result<Vec<String>> {
    Ok(match state.settings()?.get(key)?.map(|found| found.value) {
        Some(Value::List(words)) => words,
        _ => Vec::new(),
    })
}

impl<'a> PreparedRun<'a> {
    /// The session of the command.
    pub fn run(&self) -> &'a RunSession<'a> {
        self.run
    }

    /// All variables of the command. Credentials are added here, immediately before the command runs, and nowhere
    /// else: each is checked, and an expired one renewed first. Fails if the vault is locked; once it is unlocked, the
    /// same call succeeds.
    pub fn variables(&self, renew: &dyn TokenRefresher) -> Result<BTreeMap<OsString, OsString>> {
        let state = self.run.state();
        let mut variables = self.environment.variables(state);
        // A credential that only the settings select may be meant for other calls.
        // Loaded, but not passed on: a flag that names an unusable credential fails before the command runs.
        if let Some(selected) = state.selected_credential()?.filter(|one| one.origin.layer == Layer::Flag) {
            selected.load_credential(state, renew)?;
        }
        for variable in &self.environment.credentials {
            let usable =
                state.vault()?.load_credential(&variable.credential, variable.origin.as_str(), renew)?;
            variables.insert(OsString::from(&variable.name), OsString::from(usable.secret().expose()));
        }
        let changes = &self.environment.changes;
        // A session for one command ends with the machine.
        let (room, durable) = (self.run.session().room().dir(), !self.run.is_ephemeral());
        let spare = self.run.spare.shell_dir(room);
        let files = shell_files(state, room, changes, durable, spare.as_deref())?;
        for (name, file) in SHELL_FILE_VARIABLES.iter().zip(files) {
            // Also where this command has its own value: the session's file reads the file that the value names.
            variables.insert(OsString::from(name), file.into());
        }
        // A bash below no other shell whose input is a socket takes itself for one of a remote login, and reads ~/.bashrc in
        // spite of `-c`. Agents connect their commands by sockets.
        let level =
            variables.get(OsStr::new(SHELL_LEVEL)).and_then(|level| level.to_str()?.parse::<i64>().ok());
        if level.is_none_or(|level| level < 1) && !changes.iter().any(|change| change.name == SHELL_LEVEL) {
            variables.insert(OsString::from(SHELL_LEVEL), OsString::from("1"));
        }
        // They belong together: those of an enclosing session are replaced, and the caller's own stay.
        let is_set = |name: &&str| variables.contains_key(OsStr::new(name));
        if state.enclosing_session().is_some() || !CONVERSATION_VARIABLES.iter().any(is_set) {
            for name in CONVERSATION_VARIABLES {
                variables.remove(OsStr::new(name));
            }
            // A session that was started for this command has none, and the store need not be asked.
            let values = match self.run.is_started() {
                true => [None, None, None],
                false => conversation_values(state, self.run.session())?,
            };
            for (name, value) in CONVERSATION_VARIABLES.iter().zip(values) {
                if let Some(value) = value {
                    variables.insert(OsString::from(name), OsString::from(value));
                }
            }
        }
        Ok(variables)
    }

    /// Secrets among the variables of [`PreparedRun::variables`]: those of credentials, and those that have the name of a secret.
    pub fn secrets(&self, variables: &BTreeMap<OsString, OsString>) -> Vec<Zeroizing<Vec<u8>>> {
        let is_bound = |name: &str| self.environment.credentials.iter().any(|bound| bound.name == name);
        let secret = variables.iter().filter(|(name, value)| {
            let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
            is_bound(&name) || is_secret(&name, &value)
        });
        secret.map(|(_, value)| Zeroizing::new(value.as_encoded_bytes().to_vec())).collect()
    }

    /// Variables that differ from the caller's, for a shell that sets them itself. Leaves the room.
    pub fn into_environment(self) -> Environment {
        self.environment
    }

    /// The command with its variables and no others.
    pub fn into_command(
        mut self,
        words: &'a [OsString],
        variables: BTreeMap<OsString, OsString>,
    ) -> IsolatedCommand<'a> {
        self.run.spare.record(self.run.session().room().dir(), &mut self.plan);
        let has_credentials =
            !self.environment.credentials.is_empty() || self.run.state().args().credential.is_some();
        IsolatedCommand::new(self.run, self.presence, words, variables, has_credentials)
    }
}

/// The conversation that was used last in a session, as values of [`CONVERSATION_VARIABLES`].
fn conversation_values(state: &State, session: &Session) -> Result<[Option<String>; 3]> {
    Ok(match state.last_conversation(session)? {
        Some(last) => {
            // A task that has ended cannot be continued; the conversation can.
            let task = last.waiting_task().map(str::to_owned);
            [Some(last.agent_url), last.context_id, task]
        }
        None => [None, None, None],
    })
}
