//! What the command line and the variables say, before any file is read.

use std::path::PathBuf;

use crate::app::App;
use crate::args::StateArgs;
use crate::error::{Error, Result, UsageError};
use crate::settings::write::refuse_secret_value;
use crate::settings::{Layer, Origin, SettingKey, Value};
use crate::world::World;

/// The flags that the variables say, where the command line does not.
pub(crate) fn with_variables(app: &App, world: &World, mut args: StateArgs) -> Result<StateArgs> {
    let text = |name: &str| -> Result<Option<String>> {
        Ok(text_variable(world, &app.variable(name))?.map(str::to_owned))
    };
    let flag = |name: &str| -> Result<bool> {
        let Some(value) = text(name)? else { return Ok(false) };
        crate::settings::Kind::Bool.parse(&value).map(|value| value == Value::Bool(true)).ok_or_else(|| {
            Error::Usage(UsageError::InvalidValue {
                place: app.variable(name),
                value,
                expected: "true or false".into(),
            })
        })
    };
    if args.session.is_none() {
        args.session = text("SESSION")?;
    }
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
    args.verbose |= flag("VERBOSE")?;
    Ok(args)
}

/// A variable that is to hold text. What is not text is refused, not changed into something like it.
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

/// What flags and variables say, strongest first.
pub(crate) fn said(app: &App, world: &World, args: &StateArgs) -> Result<Vec<(SettingKey, Value, Origin)>> {
    let mut said = Vec::new();
    let mut flag = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            said.push((
                SettingKey::new([key]),
                Value::Text(value),
                Origin::named(Layer::Flag, format!("--{key}")),
            ));
        }
    };
    if let Some(name) = &args.context {
        name.parse::<crate::names::ContextName>()?;
    }
    if let Some(name) = &args.credential {
        name.parse::<crate::names::CredentialName>()?;
    }
    flag("context", args.context.clone());
    flag("credential", args.credential.clone());
    flag("output", args.output.map(|format| format!("{format:?}").to_lowercase()));
    flag("color", args.color.map(|color| format!("{color:?}").to_lowercase()));
    flag("lock-timeout", args.lock_timeout.map(|timeout| format!("{}ms", timeout.as_millis())));
    for pair in &args.set {
        said.push(parse_pair(app, pair, "--set", Origin::named(Layer::Flag, "--set"))?);
    }

    let prefix = format!("{}_", app.prefix());
    for setting in app.settings() {
        let Some(name) = setting.variable() else { continue };
        let variable = format!("{prefix}{name}");
        let Some(value) = text_variable(world, &variable)? else { continue };
        let value = setting.parse(value, &variable)?;
        let origin = Origin::named(Layer::Environment, variable);
        said.push((SettingKey::new(setting.key.split('.')), value, origin));
    }
    let variable = format!("{prefix}SET");
    if let Some(pairs) = text_variable(world, &variable)? {
        for pair in pairs.lines().filter(|line| !line.trim().is_empty()) {
            said.push(parse_pair(app, pair, &variable, Origin::named(Layer::Environment, &variable))?);
        }
    }
    Ok(said)
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
    if setting.kind == crate::settings::Kind::Secret {
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
