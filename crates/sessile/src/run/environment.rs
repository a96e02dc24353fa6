//! Variables of a command in a session: set, removed, and the origin of each.
//!
//! The order is: context, settings, isolation level, tools, bindings, flags, Sessile's own. A variable that isolates or
//! pins is set by a profile or a binding, and nothing overrides it. A variable with a credential is kept apart from the
//! changes, in [`Environment::credentials`], by name only. So nothing that is printed, written to a start-up file or
//! carried as an original can hold its secret.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use serde::Serialize;

use crate::call::ConfigSource;
use crate::context::{Context, Variable};
use crate::error::{Error, Result, UsageError};
use crate::hook::HOOK;
use crate::names::CredentialName;
use crate::secrets::is_secret;
use crate::session::Session;
use crate::settings::{Layer, Origin};
use crate::state::State;
use crate::text::quoted;
use crate::tool::{
    IsolationScope, Level, ORIGINALS, Originals, Plan, PreparedTool, Withheld, WithheldVariable, is_like,
    is_variable_like, own_variables,
};

/// Variables of a minimal environment.
const MINIMUM: &[&str] = &[
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PATH",
    "TERM",
    "COLORTERM",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
];

/// The variables that the application itself sets for a command, without its prefix.
const OWN: &[&str] = &[
    "SESSION",
    "CONTEXT",
    "CREDENTIAL",
    "CONFIG",
    "CONFIG_DIR",
    "STATE_DIR",
    "CACHE_DIR",
    "RUNTIME_DIR",
    ORIGINALS,
    "RUN",
    "LOCK_TOKEN",
    HOOK,
];

/// Whether the application itself sets a variable of this name for a command.
pub(crate) fn is_own_variable(state: &State, name: &str) -> bool {
    OWN.iter().any(|own| state.app().variable(own) == name)
}

/// Variables of credentials that the context does not provide. A command of one context must not get another
/// context's secrets.
pub fn foreign_credentials<'a>(
    state: &'a State,
    context: Option<&Context>,
    bound: impl Iterator<Item = &'a str>,
) -> Vec<String> {
    let app = state.app();
    let own = |name: &str| Some(app.credential_variable(&name.parse().ok()?));
    let mut kept: Vec<String> = bound.chain(state.args().credential.as_deref()).filter_map(own).collect();
    if let Some(context) = context {
        let variables = context.env.iter().filter_map(|(_, variable)| match variable {
            Variable::Credential { credential } => Some(credential.as_str()),
            Variable::Plain(_) => None,
        });
        let agents = context.agents.iter().map(|(_, name)| name.as_str());
        kept.extend(variables.chain(agents).filter_map(own));
    }
    let prefix = app.variable("CREDENTIAL_");
    let all = state.world().variables_with_prefix(&prefix);
    all.map(|(name, _)| name).filter(|name| !kept.iter().any(|own| own == name)).map(str::to_owned).collect()
}

/// Change of one variable of the caller's environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VariableChange {
    /// Name of the variable.
    pub name: String,
    /// New value; none if the variable is removed.
    pub value: Option<String>,
    /// Origin of the change.
    pub origin: String,
    /// Whether it leads into the session or pins it: no start-up file of a shell may change it.
    #[serde(skip)]
    pub isolates: bool,
}

/// Variables requested by flags and settings, beside those of the session.
#[derive(Clone, Debug, Default)]
pub struct VariableRequest {
    /// Variables of this call alone.
    pub flags: Vec<(String, String)>,
    /// Variables of this call alone that get a credential.
    pub credentials: Vec<(String, CredentialName)>,
    /// Variables that the settings name.
    pub settings: Vec<(String, String, Origin)>,
    /// Variables that are kept although they would be taken away.
    pub keep: Vec<String>,
    /// Variables that the caller replaces.
    pub replaces: Vec<String>,
    /// Whether to begin with as good as nothing.
    pub clear: bool,
    /// Word of the selection by which the shell hook enters the session.
    pub hook: Option<&'static str>,
}

/// Variable for the secret of a credential, which is read only when the command is about to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialVariable {
    /// Name of the variable.
    pub name: String,
    /// Name of the credential.
    pub credential: CredentialName,
    /// Origin of the binding.
    pub origin: String,
}

/// Variables of a command.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Changes of the caller's variables, in the order of their names.
    pub changes: Vec<VariableChange>,
    /// Variables for secrets of credentials.
    pub credentials: Vec<CredentialVariable>,
    clear: bool,
    keep: Vec<String>,
}

impl Environment {
    /// The variables of a command in a session whose room is prepared.
    pub fn resolve(
        state: &State,
        session: &Session,
        plan: &Plan,
        scope: &IsolationScope,
        context: Option<&Context>,
        request: &VariableRequest,
    ) -> Result<Self> {
        let world = state.world();
        let mut changes = Changes::default();
        if let Some(context) = context {
            changes.add_own(context, request)?;
        }
        changes.add_settings(request, context);
        changes.remove_users_own(state);
        // Remembered before tools and bindings are added, to warn about values that they replace.
        let own = changes.all.keys().cloned().collect::<Vec<_>>();
        let originals = Originals::of(state.app(), world);
        let level = scope.level_in(plan);
        if let (Level::Home, Some(home)) = (level, &plan.home) {
            let home = home.to_string_lossy().into_owned();
            for (name, below) in [
                ("HOME", ""),
                ("XDG_CONFIG_HOME", "/.config"),
                ("XDG_DATA_HOME", "/.local/share"),
                ("XDG_STATE_HOME", "/.local/state"),
                ("XDG_CACHE_HOME", "/.cache"),
            ] {
                changes.set(name, format!("{home}{below}"), "isolation level home".to_owned());
            }
        }
        for prepared in plan.tools.iter().filter(|prepared| scope.isolates(plan, &prepared.tool)) {
            let origin = format!("tool {}", prepared.tool);
            for (name, value) in &prepared.variables {
                // At the level of the home the whole directory of settings is there already.
                let is_home = level == Level::Home && name == "XDG_CONFIG_HOME";
                if !is_home {
                    changes.set(name, value.clone(), origin.clone());
                }
            }
            for (name, value) in &prepared.unless_set {
                // The user's own value counts, not that of an enclosing session.
                if originals.get(world, name).is_none() && !changes.all.contains_key(name) {
                    changes.set(name, value.clone(), origin.clone());
                }
            }
            changes.clear(world, &originals, &prepared.clears, &request.keep, &origin);
            // Also what the context or a setting says: no spelling of such a variable may lead out of the session.
            for name in own.iter().filter(|name| is_any(&prepared.clears, name)) {
                if changes.clear_plain(name, &origin) {
                    state.warn(
                        format!("{name} would lead {} out of the session, and is ignored", prepared.tool),
                        None,
                    );
                }
            }
            if request.hook.is_none() {
                changes.clear(world, &originals, &prepared.command_clears, &request.keep, &origin);
            }
        }
        // After the tools: a binding is more specific than the profile that it belongs to.
        for bound in &plan.bound {
            let name = context.map(|context| context.name.to_string()).unwrap_or_default();
            let origin = format!("context {name} (tools.{})", bound.tool);
            for (name, value) in &bound.variables {
                changes.set(name, value.clone(), origin.clone());
            }
            let origin = format!("would override what context {name} binds for {}", bound.tool);
            changes.clear(world, &originals, &bound.clears, &request.keep, &origin);
        }
        if let Some(withheld) = plan.withheld.as_ref().filter(|withheld| !withheld.tools.is_empty()) {
            let inherited = own_variables(state, session);
            // After the bindings, which may set such a variable to an allowed target.
            changes.clear_withheld(withheld, &inherited);
            withheld.check_flags(&request.flags, &changes.plain(&inherited))?;
        }
        // The tool that a variable would lead out of the session.
        let led_out = |name: &str| {
            let mut isolated = plan.tools.iter().filter(|prepared| scope.isolates(plan, &prepared.tool));
            let is_cleared = |prepared: &&PreparedTool| {
                is_any(&prepared.clears, name)
                    || request.hook.is_none() && is_any(&prepared.command_clears, name)
            };
            isolated.find(is_cleared).map(|prepared| prepared.tool.as_str())
        };
        for (name, credential) in &request.credentials {
            if let Some(tool) = led_out(name) {
                return Err(kept_where_it_is("--env-credential", name, &format!("tool {tool}")));
            }
            // A flag replaces the context's credential for the same variable.
            changes.credentials.retain(|bound| bound.name != *name);
            changes.credentials.push(CredentialVariable {
                name: name.clone(),
                credential: credential.clone(),
                origin: "--env-credential".to_owned(),
            });
        }
        // A variable that leads into the session is the session's.
        changes.credentials.retain(|bound| {
            let led = changes.all.get(&bound.name).filter(|change| change.isolates && change.value.is_some());
            if let Some(led) = led {
                state.warn(
                    format!("{} is set by {}; its credential is ignored", bound.name, led.origin),
                    None,
                );
            }
            let out = led_out(&bound.name);
            if let Some(tool) = out {
                state.warn(
                    format!("{} would lead {tool} out of the session, and is ignored", bound.name),
                    None,
                );
            }
            led.is_none() && out.is_none()
        });
        for bound in &changes.credentials {
            // What would override the context is taken away; this is what the context itself says.
            changes.all.remove(&bound.name);
        }
        for (name, value) in &request.flags {
            // An error and not a warning: a flag is the explicit will of this call, and it cannot be
            // followed.
            let out = || led_out(name).map(|tool| format!("tool {tool}"));
            if let Some(by) = changes.led_by(name).map(str::to_owned).or_else(out) {
                return Err(kept_where_it_is("--env", name, &by));
            }
            let is_kept = request.keep.iter().any(|kept| is_like(kept, name));
            if let Some(bound) = plan.bound.iter().find(|bound| !is_kept && is_any(&bound.clears, name)) {
                let context = context.map(|context| context.name.to_string()).unwrap_or_default();
                return Err(UsageError::Arguments(format!(
                    "--env {name}: {name} overrides what context {} binds for {}; to set it anyway, also pass --keep-env {name}",
                    quoted(context),
                    bound.tool
                ))
                .into());
            }
            let change = VariableChange {
                name: name.clone(),
                value: Some(value.clone()),
                origin: "--env".to_owned(),
                isolates: false,
            };
            changes.all.insert(name.clone(), change);
        }
        // After the flags, so that an explicit value of such a variable stays.
        changes.keep_credentials_apart(state, context, request);
        changes.leave_outer(state, session, &originals, request);
        // Last: nothing may replace what leads a command to its own session.
        changes.add_state(state, session, &originals, request)?;
        let is_flag = |name: &String| request.flags.iter().any(|(flag, _)| flag == name);
        for name in own.iter().filter(|name| !is_flag(name)) {
            if let Some(by) = changes.led_by(name) {
                state.warn(format!("{name} is set by {by}; other values of {name} are ignored"), None);
            }
        }
        Ok(Environment {
            changes: changes.all.into_values().collect(),
            credentials: changes.credentials,
            clear: request.clear,
            keep: request.keep.clone(),
        })
    }

    /// All variables of the command.
    pub fn variables(&self, state: &State) -> BTreeMap<OsString, OsString> {
        let is_kept = |name: &OsStr| {
            let name = name.to_string_lossy();
            let listed = |list: &str| is_like(list, &name);
            !self.clear || MINIMUM.iter().any(|one| listed(one)) || self.keep.iter().any(|one| listed(one))
        };
        let inherited = state.world().variables().filter(|(name, _)| is_kept(name));
        let mut all: BTreeMap<OsString, OsString> =
            inherited.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        for change in &self.changes {
            match &change.value {
                Some(value) => drop(all.insert(OsString::from(&change.name), OsString::from(value))),
                None => drop(all.remove(OsStr::new(&change.name))),
            }
        }
        all
    }
}

/// The error of a flag for a variable that the session sets or clears itself.
fn kept_where_it_is(flag: &str, name: &str, by: &str) -> Error {
    UsageError::Arguments(format!(
        "{flag} {name}: the session keeps {name} where it is ({by}); leave the tool out with tools.except"
    ))
    .into()
}

/// Whether a variable's name is like one of these patterns.
fn is_any(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| is_variable_like(pattern, name))
}

#[derive(Default)]
struct Changes {
    all: BTreeMap<String, VariableChange>,
    credentials: Vec<CredentialVariable>,
}

impl Changes {
    /// Tool that sets a variable for isolation or a binding.
    fn led_by(&self, name: &str) -> Option<&str> {
        let change = self.all.get(name).filter(|change| change.isolates && change.value.is_some());
        change.map(|change| change.origin.as_str())
    }

    /// Sets a variable that isolates or pins.
    fn set(&mut self, name: &str, value: String, origin: String) {
        let change = VariableChange { name: name.to_owned(), value: Some(value), origin, isolates: true };
        self.all.insert(name.to_owned(), change);
    }

    /// Removes variables that match one of these patterns.
    fn clear(
        &mut self,
        world: &crate::world::World,
        originals: &Originals,
        patterns: &[String],
        keep: &[String],
        origin: &str,
    ) {
        if patterns.is_empty() {
            return;
        }
        // Patterns are ASCII; a name that is not UTF-8 belongs to no tool.
        let own = world.variables().filter_map(|(name, _)| name.to_str());
        // What another session took away would come back on the way out of it.
        let taken = originals.replaced().filter_map(|(name, before)| before.map(|_| name));
        for name in own.chain(taken) {
            let is_meant = is_any(patterns, name);
            // A pattern does not remove a variable that its own profile or context sets.
            if is_meant && !self.all.contains_key(name) && !keep.iter().any(|kept| is_like(kept, name)) {
                let change = VariableChange {
                    name: name.to_owned(),
                    value: None,
                    origin: origin.to_owned(),
                    isolates: true,
                };
                self.all.insert(name.to_owned(), change);
            }
        }
    }

    /// Clears a variable that neither isolates nor pins. Returns whether it had a value.
    fn clear_plain(&mut self, name: &str, origin: &str) -> bool {
        let plain = self.all.get_mut(name).filter(|change| !change.isolates && change.value.is_some());
        plain.is_some_and(|change| {
            *change =
                VariableChange { value: None, origin: origin.to_owned(), isolates: true, ..change.clone() };
            true
        })
    }

    /// Clears variables that name or override a protected target, even those of `--keep-env`.
    fn clear_withheld(&mut self, withheld: &Withheld, inherited: &[(String, String)]) {
        for WithheldVariable { name, target, .. } in withheld.variables(&self.plain(inherited)) {
            let origin =
                format!("reaches {} {}, which context {} protects", target.key, target.name, target.context);
            let change = VariableChange { name: name.clone(), value: None, origin, isolates: true };
            self.all.insert(name, change);
        }
    }

    /// The variables so far that neither isolate nor pin: those come from a profile or a binding, which was checked before.
    fn plain(&self, inherited: &[(String, String)]) -> Vec<(String, String)> {
        let set = self.all.values().filter(|change| !change.isolates);
        let set = set.filter_map(|change| Some((change.name.clone(), change.value.clone()?)));
        let kept = inherited.iter().filter(|(name, _)| !self.all.contains_key(name));
        set.chain(kept.cloned()).collect()
    }

    /// Clears the variables of credentials that the context does not provide.
    fn keep_credentials_apart(
        &mut self,
        state: &State,
        context: Option<&Context>,
        request: &VariableRequest,
    ) {
        let bound: Vec<String> = self.credentials.iter().map(|bound| bound.credential.to_string()).collect();
        for name in foreign_credentials(state, context, bound.iter().map(String::as_str)) {
            let is_kept =
                request.keep.iter().any(|kept| is_like(kept, &name)) || self.all.contains_key(&name);
            if !is_kept {
                let origin = "contains a credential of another context".to_owned();
                let change = VariableChange { name: name.clone(), value: None, origin, isolates: false };
                self.all.insert(name, change);
            }
        }
    }

    /// The context's own variables.
    fn add_own(&mut self, context: &Context, request: &VariableRequest) -> Result<()> {
        for (name, variable) in &context.env {
            // Something stronger may say it.
            let overruled = request
                .settings
                .iter()
                // A smaller layer is a stronger one.
                .any(|(other, _, origin)| other == name && origin.layer < Layer::Context)
                || request.flags.iter().any(|(other, _)| other == name)
                || request.credentials.iter().any(|(other, _)| other == name);
            match variable {
                _ if overruled => {}
                Variable::Plain(value) => {
                    let origin = format!("context {} (env)", context.name);
                    let change = VariableChange {
                        name: name.clone(),
                        value: Some(value.clone()),
                        origin,
                        isolates: false,
                    };
                    self.all.insert(name.clone(), change);
                }
                Variable::Credential { credential } => {
                    self.credentials.push(CredentialVariable {
                        name: name.clone(),
                        credential: context.credential_name(credential, "env")?,
                        origin: format!("context {} (env.{name})", context.name),
                    });
                }
            }
        }
        Ok(())
    }

    fn add_settings(&mut self, request: &VariableRequest, context: Option<&Context>) {
        for (name, value, origin) in &request.settings {
            let is_weaker = origin.layer > Layer::Context
                && context.is_some_and(|context| context.env.iter().any(|(other, _)| other == name));
            if !is_weaker {
                let change = VariableChange {
                    name: name.clone(),
                    value: Some(value.clone()),
                    origin: origin.to_string(),
                    isolates: false,
                };
                self.all.insert(name.clone(), change);
            }
        }
    }

    /// Removes variables by which settings or a context would set what only the user sets for the commands of this session:
    /// where secrets are kept, and the programs that are started.
    fn remove_users_own(&mut self, state: &State) {
        let app = state.app();
        // The hot path: no change has a name of Sessile's own, so the settings need not be listed.
        let prefix = format!("{}_", app.prefix());
        if !self.all.keys().any(|name| name.starts_with(&prefix)) {
            return;
        }
        let (vault, set) = (format!("{prefix}VAULT_"), app.variable("SET"));
        let own = app.settings().filter(|setting| setting.is_users_own);
        let own: Vec<String> =
            own.filter_map(|setting| setting.variable()).map(|name| app.variable(&name)).collect();
        self.all.retain(|name, change| {
            let is_own = name.starts_with(&vault) || *name == set || own.contains(name);
            if is_own {
                state.warn(format!("{}: ignored {name}, which only the user sets", change.origin), None);
            }
            !is_own
        });
    }

    /// Restores the user's own values of variables that an outer session has set, because they lead to its room or
    /// its context.
    fn leave_outer(
        &mut self,
        state: &State,
        session: &Session,
        originals: &Originals,
        request: &VariableRequest,
    ) {
        let Some(outer) = state.enclosing_session() else { return };
        // The same session: its variables are this command's own.
        if outer == session.id.as_str() || session.name.as_deref() == Some(outer) {
            return;
        }
        for (name, before) in originals.replaced() {
            if !self.all.contains_key(name) && !request.replaces.iter().any(|replaced| replaced == name) {
                let origin = format!("as it is outside session {outer}");
                let change = VariableChange {
                    name: name.to_owned(),
                    value: before.map(str::to_owned),
                    origin,
                    isolates: false,
                };
                self.all.insert(name.to_owned(), change);
            }
        }
    }

    /// The application's own: it must find its state wherever the home is.
    fn add_state(
        &mut self,
        state: &State,
        session: &Session,
        originals: &Originals,
        request: &VariableRequest,
    ) -> Result<()> {
        let app = state.app();
        let origin = format!("session {}", session.label());
        let mut own = vec![("SESSION", Some(session.id.to_string()))];
        match state.source() {
            ConfigSource::File(file) => own.push(("CONFIG", Some(file.to_string_lossy().into_owned()))),
            _ => {
                let path =
                    |path: Option<&std::path::Path>| path.map(|path| path.to_string_lossy().into_owned());
                own.push(("CONFIG_DIR", path(state.dirs().config().ok())));
                own.push(("STATE_DIR", path(Some(state.dirs().state()?))));
                own.push(("CACHE_DIR", path(state.dirs().cache())));
                own.push(("RUNTIME_DIR", path(state.runtime_dir().ok())));
            }
        }
        let set =
            self.all.values().filter(|change| change.value.is_some()).map(|change| change.name.as_str());
        let set = set.chain(self.credentials.iter().map(|bound| bound.name.as_str()));
        let set = set.chain(request.replaces.iter().map(String::as_str));
        // A shell that leaves the session has what was taken away again; secrets it keeps itself.
        let is_taken = |change: &&VariableChange| {
            let value = state.world().variable(&change.name).and_then(OsStr::to_str);
            let is_plain = value.is_some_and(|value| !is_secret(&change.name, value));
            request.hook.is_some() && change.value.is_none() && is_plain
        };
        let taken = self.all.values().filter(is_taken).map(|change| change.name.as_str());
        let set = set.chain(taken);
        // After everything else is set, because it records what each of these variables had before.
        own.push((ORIGINALS, Some(originals.carried(state.world(), set))));
        // What a flag says for this call holds for what the call runs.
        if let Some(name) = &state.args().credential {
            own.push(("CREDENTIAL", Some(name.clone())));
        }
        // A command in the same session is where the hook led.
        if request.hook.is_some() || state.enclosing_session() != Some(session.id.as_str()) {
            own.push((HOOK, request.hook.map(str::to_owned)));
        }
        // A session has its context; a variable that names another would only be refused. In a hooked shell it is the
        // selection that the shell follows.
        if state.entered_by().is_none() || state.enclosing_session() != Some(session.id.as_str()) {
            own.push(("CONTEXT", None));
        }
        for (name, value) in own {
            let name = app.variable(name);
            // Removing a variable that is not set would only lengthen `env` and `--dry-run`.
            if value.is_some() || state.world().variable(&name).is_some() {
                self.all.insert(
                    name.clone(),
                    VariableChange { name, value, origin: origin.clone(), isolates: true },
                );
            }
        }
        Ok(())
    }
}
