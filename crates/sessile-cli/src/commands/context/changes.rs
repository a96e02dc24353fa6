//! The flags that say what a context holds, for `create` and `edit`.

use sessile::Error;
use sessile::context::{ContextEdit, Guard};
use sessile::error::UsageError;
use sessile::names::CredentialName;
use sessile::settings::{SettingKey, Stack, Value};

use crate::commands::binding_args;

/// Changes to a context.
#[derive(Debug, clap::Args)]
pub(super) struct ChangeArgs {
    /// Description of the context
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,

    /// Guard: none, explicit or approval
    #[arg(long, value_name = "GUARD", value_parser = clap::builder::PossibleValuesParser::new(Guard::NAMES))]
    guard: Option<String>,

    /// Setting of the context; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    setting: Vec<String>,

    /// Value of the context, for example branch=main; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    value: Vec<String>,

    /// Environment variable for commands; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,

    /// Environment variable with a credential of the vault; repeatable
    #[arg(long, value_name = "NAME=CREDENTIAL")]
    env_credential: Vec<String>,

    /// Credential for the agent at a URL; repeatable
    #[arg(long, value_name = "URL=CREDENTIAL")]
    agent_credential: Vec<String>,

    /// Bind a tool to a target, e.g. kubectl.context=staging; repeatable
    #[arg(long, value_name = "TOOL.KEY=VALUE", alias = "tool")]
    pub(super) bind: Vec<String>,
}

impl ChangeArgs {
    /// Changes from the flags.
    pub(super) fn changes(&self) -> Result<Vec<ContextEdit>, Error> {
        let mut changes = Vec::new();
        let text = |key: &str, value: &Option<String>| {
            value.as_ref().map(|value| change(SettingKey::new([key]), Value::Text(value.clone())))
        };
        changes.extend(text("description", &self.description));
        changes.extend(text("guard", &self.guard));
        for pair in &self.setting {
            let (key, value) = split(pair, "--setting", "KEY=VALUE")?;
            let key: SettingKey = key.parse()?;
            // Without layers: only the definition is needed, and no file is read for it.
            let definition = Stack::new(&crate::settings::app(), Vec::new()).definition(&key)?;
            let value = definition.parse(value, format!("--setting {key}"))?;
            changes.push(change(below("settings", &key), value));
        }
        for pair in &self.value {
            let (key, value) = split(pair, "--value", "KEY=VALUE")?;
            changes.push(change(SettingKey::new(["values", key]), Value::Text(value.to_owned())));
        }
        for pair in &self.env {
            let (name, value) = split(pair, "--env", "NAME=VALUE")?;
            changes.push(change(SettingKey::new(["env", name]), Value::Text(value.to_owned())));
        }
        let named = |table: &str, thing: &str, name: &str| {
            let name: CredentialName = name.parse()?;
            let key = SettingKey::new([table, thing, "credential"]);
            Ok::<_, Error>(change(key, Value::Text(name.to_string())))
        };
        for pair in &self.env_credential {
            let (variable, name) = split(pair, "--env-credential", "NAME=CREDENTIAL")?;
            // Both write the same key, and the order of flags would decide.
            if self.env.iter().any(|plain| plain.split('=').next() == Some(variable)) {
                let what = format!("{variable}: pass --env or --env-credential, not both");
                return Err(UsageError::Arguments(what).into());
            }
            changes.push(named("env", variable, name)?);
        }
        for pair in &self.agent_credential {
            let (url, name) =
                // From the right: a URL may hold an equals sign, a credential's name cannot.
                pair.rsplit_once('=').ok_or_else(|| wrong("--agent-credential", pair, "URL=CREDENTIAL"))?;
            changes.push(named("agents", &sessile::site::agent_url(url)?, name)?);
        }
        changes.extend(binding_args::edits(&self.bind)?);
        Ok(changes)
    }

    /// Whether the flags contain no change.
    pub(super) fn is_empty(&self) -> bool {
        self.description.is_none()
            && self.guard.is_none()
            && self.setting.is_empty()
            && self.value.is_empty()
            && self.env.is_empty()
            && self.env_credential.is_empty()
            && self.agent_credential.is_empty()
            && self.bind.is_empty()
    }
}

fn change(key: SettingKey, value: Value) -> ContextEdit {
    ContextEdit { key, value: Some(value) }
}

fn below(table: &str, key: &SettingKey) -> SettingKey {
    SettingKey::new([table.to_owned()].into_iter().chain(key.segments().iter().cloned()))
}

fn split<'a>(pair: &'a str, flag: &str, expected: &str) -> Result<(&'a str, &'a str), Error> {
    pair.split_once('=').ok_or_else(|| wrong(flag, pair, expected))
}

fn wrong(flag: &str, value: &str, expected: &str) -> Error {
    Error::Usage(UsageError::InvalidValue {
        place: flag.to_owned(),
        value: value.to_owned(),
        expected: expected.to_owned(),
    })
}
