//! `sessile session state`: small values with revisions.

use std::path::PathBuf;

use serde_json::Value;
use sessile::error::UsageError;
use sessile::text::shown;

use crate::backend::StateBackend;
use crate::cli::Cx;
use crate::commands::input;
use crate::commands::page::Page;
use crate::error::Outcome;
use crate::help::examples;
use crate::lazy_command::Lazy;
use crate::output::Table;
use crate::remote::ServerArgs;

/// Read and change small values of a session, with revisions
///
/// A value is JSON and has a revision that only grows. With --if-revision, a change is made only if the revision is
/// unchanged: read the value, decide, and set it with the revision you read. Revision 0 means that the key must not
/// exist.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = examples!(
    "sessile session state set cursor 42 --session deploy"
    "sessile session state set cursor 43 --if-revision 1 --session deploy"
))]
pub enum Command {
    /// Print a value of the session
    Get(Lazy<StateGetArgs>),
    /// Set a value of the session
    Set(Lazy<StateSetArgs>),
    /// List the values of the session
    #[command(visible_alias = "ls")]
    List(Lazy<StateListArgs>),
    /// Remove a value of the session
    Unset(Lazy<StateUnsetArgs>),
}

/// Print a value of the session
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile session state get cursor --session deploy"))]
pub struct StateGetArgs {
    /// Key of the value
    #[arg(value_name = "STATE-KEY")]
    key: String,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// Set a value of the session
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile session state set cursor 42 --session deploy"
    "sessile session state set plan '{\"step\":2}' --if-revision 3 --session deploy"
    "sessile session state set plan --file plan.json --session deploy"
    "sessile session state set plan --file - --session deploy < plan.json"
))]
pub struct StateSetArgs {
    /// Key of the value
    #[arg(value_name = "STATE-KEY")]
    key: String,

    /// Value: JSON, or text
    #[arg(value_name = "VALUE", allow_hyphen_values = true, required_unless_present = "file")]
    value: Option<String>,

    /// Read the value from this file unchanged; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "value")]
    file: Option<PathBuf>,

    /// Set only at this revision; 0: only if the key does not exist
    #[arg(long, value_name = "N")]
    if_revision: Option<i64>,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// List the values of the session
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile session state list --session deploy"
    "sessile session state list cursor plan --session deploy"
))]
pub struct StateListArgs {
    /// List only these keys
    #[arg(value_name = "STATE-KEY")]
    keys: Vec<String>,

    #[command(flatten)]
    page: Page,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// Remove a value of the session
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile session state unset cursor --session deploy"))]
pub struct StateUnsetArgs {
    /// Key of the value
    #[arg(value_name = "STATE-KEY")]
    key: String,

    /// Remove only at this revision
    #[arg(long, value_name = "N")]
    if_revision: Option<i64>,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

impl Command {
    /// Server of the command.
    pub(crate) fn server(&self) -> &ServerArgs {
        match self {
            Command::Get(Lazy(args)) => &args.server,
            Command::Set(Lazy(args)) => &args.server,
            Command::List(Lazy(args)) => &args.server,
            Command::Unset(Lazy(args)) => &args.server,
        }
    }

    pub(crate) fn run(&self, cx: &Cx) -> Outcome {
        match self {
            Command::Get(Lazy(args)) => get(args, cx),
            Command::Set(Lazy(args)) => set(args, cx),
            Command::List(Lazy(args)) => list(args, cx),
            Command::Unset(Lazy(args)) => unset(args, cx),
        }
    }
}

fn get(args: &StateGetArgs, cx: &Cx) -> Outcome {
    let entry = StateBackend::resolve(cx)?.value(&args.key)?;
    cx.out.result(&entry, || format!("{}\n", plain(&entry.value)))
}

fn set(args: &StateSetArgs, cx: &Cx) -> Outcome {
    let text = match (&args.value, &args.file) {
        (Some(value), _) => value.clone(),
        // JSON that is laid out for people is larger than what is kept of it; what is kept has a limit of its own.
        (None, Some(file)) => input::read(cx, file, sessile::files::LIMIT)?.1,
        (None, None) => {
            return Err(UsageError::Arguments("value required: pass VALUE or --file".into()).into());
        }
    };
    // A value that is not JSON is a text; JSON with a reserved key is neither.
    sessile::json::check(text.as_bytes()).map_err(|error| UsageError::InvalidValue {
        place: args.key.clone(),
        value: sessile::text::shortened(&text, 60),
        expected: format!("a valid value: {error}"),
    })?;
    // So that a plain word needs no quotes within the shell's quotes.
    let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    let set = StateBackend::resolve(cx)?.set_value(&args.key, value, args.if_revision)?;
    set.print(cx, |set| format!("set {} (revision {})\n", shown(&set.key), set.revision.unwrap_or_default()))
}

fn unset(args: &StateUnsetArgs, cx: &Cx) -> Outcome {
    let removed = StateBackend::resolve(cx)?.unset_value(&args.key, args.if_revision)?;
    removed.print(cx, |removed| format!("removed {}\n", shown(&removed.key)))
}

fn list(args: &StateListArgs, cx: &Cx) -> Outcome {
    let mut entries = StateBackend::resolve(cx)?.values()?;
    entries.retain(|entry| args.keys.is_empty() || args.keys.contains(&entry.key));
    let entries = args.page.of(entries, |entry| entry.key.clone());
    cx.out.list(&entries, || {
        let mut table = Table::new(&["KEY", "REVISION", "VALUE"]);
        for entry in &entries {
            table.row(&[entry.key.clone(), entry.revision.to_string(), plain(&entry.value)], None);
        }
        table.render(&cx.out)
    })
}

/// Text without quotes; anything else as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| shown(value), shown)
}
