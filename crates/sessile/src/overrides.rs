//! Overrides: settings from the command line and from variables, which need no file.

use std::path::PathBuf;

use crate::app::App;
use crate::args::StateArgs;
use crate::error::{Error, Result, UsageError};
use crate::settings::rules::refuse_secret_value;
use crate::settings::{Layer, Origin, SettingKey, Value};
use crate::world::World;

/// Settings that flags and variables give, strongest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overrides(Vec<(SettingKey, Value, Origin)>);

impl Overrides {
    /// The overrides of a call. Values are parsed here, so that a bad one fails before any file is read.
    pub(crate) fn parse(app: &App, world: &World, args: &StateArgs) -> Result<Self> {
        let mut overrides = Vec::new();
        push_flags(app, args, &mut overrides)?;
        push_variables(app, world, &mut overrides)?;
        Ok(Overrides(overrides))
    }

    /// The strongest value of a setting.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.explain(key).map(|(value, _)| value)
    }

    /// The strongest value of a setting, and its origin.
    pub(crate) fn explain(&self, key: &str) -> Option<(&Value, &Origin)> {
        let segments = || key.split('.');
        let found = self.0.iter().find(|(found, ..)| found.segments().iter().eq(segments()));
        found.map(|(_, value, origin)| (value, origin))
    }

    /// Adds an override that is stronger than all others.
    pub(crate) fn put_first(&mut self, key: &str, value: Value, origin: Origin) {
        self.0.insert(0, (SettingKey::new(key.split('.')), value, origin));
    }

    /// The values, strongest first.
    pub(crate) fn to_values(&self) -> Vec<(SettingKey, Value, Origin)> {
        self.0.clone()
    }
}

/// Arguments, with missing flags filled in from variables.
pub(crate) fn with_variables(app: &App, world: &World, mut args: StateArgs) -> Result<StateArgs> {
    let text = |name: &str| -> Result<Option<String>> {
        Ok(text_variable(world, &app.variable(name))?.map(str::to_owned))
    };
    let flag = |name: &str| -> Result<bool> {
        let Some(value) = text(name)? else { return Ok(false) };
        // The same words as in settings.
        crate::settings::SettingKind::Bool.parse(&value).map(|value| value == Value::Bool(true)).ok_or_else(
            || {
                Error::Usage(UsageError::InvalidValue {
                    place: app.variable(name),
                    value,
                    expected: "true or false".into(),
                })
            },
        )
    };
    if args.session.is_none() {
        args.session = text("SESSION")?;
    }
    // A flag of either kind overrides both variables: they would contradict each other.
    if args.config.is_none() && !args.no_config {
        args.config = world.variable(&app.variable("CONFIG")).map(PathBuf::from);
        args.no_config = flag("NO_CONFIG")?;
        if args.config.is_some() && args.no_config {
            let (one, two) = (app.variable("CONFIG"), app.variable("NO_CONFIG"));
            return Err(UsageError::Arguments(format!("{one} and {two} contradict each other")).into());
        }
    }
    args.no_input |= flag("NO_INPUT")?;
    args.quiet |= flag("QUIET")?;
    args.verbose = args.verbose.max(u8::from(flag("VERBOSE")?));
    Ok(args)
}

/// The text of a variable. Bytes that are not UTF-8 are refused: a lossy copy could name something else.
fn text_variable<'w>(world: &'w World, variable: &str) -> Result<Option<&'w str>> {
    let Some(value) = world.variable(variable) else { return Ok(None) };
    value.to_str().map(Some).ok_or_else(|| {
        Error::Usage(UsageError::InvalidValue {
            place: variable.to_owned(),
            value: crate::text::shortened(&value.to_string_lossy(), 80),
            expected: "valid UTF-8".into(),
        })
    })
}

fn push_flags(app: &App, args: &StateArgs, overrides: &mut Vec<(SettingKey, Value, Origin)>) -> Result<()> {
    let mut flag = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            overrides.push((
                SettingKey::new([key]),
                Value::Text(value),
                Origin::named(Layer::Flag, format!("--{key}")),
            ));
        }
    };
    if let Some(name) = &args.context {
        // Checked here, so that the error names the argument and not a file.
        name.parse::<crate::names::ContextName>()?;
    }
    if let Some(name) = &args.credential {
        name.parse::<crate::names::CredentialName>()?;
    }
    flag("context", args.context.clone());
    flag("credential", args.credential.clone());
    // The names of the variants are the words of the setting.
    flag("output", args.output.map(|format| format!("{format:?}").to_lowercase()));
    flag("color", args.color.map(|color| format!("{color:?}").to_lowercase()));
    flag("lock-timeout", args.lock_timeout.map(|timeout| format!("{}ms", timeout.as_millis())));
    for pair in &args.set {
        overrides.push(parse_pair(app, pair, "--set", Origin::named(Layer::Flag, "--set"))?);
    }
    Ok(())
}

fn push_variables(app: &App, world: &World, overrides: &mut Vec<(SettingKey, Value, Origin)>) -> Result<()> {
    let prefix = format!("{}_", app.prefix());
    for setting in app.settings() {
        let Some(name) = setting.variable() else { continue };
        let variable = format!("{prefix}{name}");
        let Some(value) = text_variable(world, &variable)? else { continue };
        let value = setting.parse(value, &variable)?;
        let origin = Origin::named(Layer::Environment, variable);
        overrides.push((SettingKey::new(setting.key.split('.')), value, origin));
    }
    let variable = format!("{prefix}SET");
    if let Some(pairs) = text_variable(world, &variable)? {
        // One pair per line, because values may contain commas and spaces.
        for pair in pairs.lines().filter(|line| !line.trim().is_empty()) {
            overrides.push(parse_pair(app, pair, &variable, Origin::named(Layer::Environment, &variable))?);
        }
    }
    Ok(())
}

fn parse_pair(app: &App, pair: &str, place: &str, origin: Origin) -> Result<(SettingKey, Value, Origin)> {
    let Some((key, value)) = pair.split_once('=') else {
        return Err(UsageError::InvalidValue {
            place: place.into(),
            value: crate::text::shortened(pair, 80),
            expected: "KEY=VALUE".into(),
        }
        .into());
    };
    let key: SettingKey = key.trim().parse()?;
    let setting = crate::settings::definition(app, &key)?;
    if setting.kind == crate::settings::SettingKind::Secret {
        return Err(UsageError::SecretRefused {
            place: format!("{place} {key}"),
            instead: "arguments and variables are seen by other programs; use a file given with --config",
        }
        .into());
    }
    let value = setting.parse(value, format!("{place} {key}"))?;
    // Other users see arguments; they do not see variables.
    if origin.layer == Layer::Flag {
        refuse_secret_value(&key, &value, &format!("{place} {key}"))?;
    }
    Ok((key, value, origin))
}
