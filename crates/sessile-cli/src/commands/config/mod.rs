//! `sessile config`: settings, each with its origin.

pub mod describe;
pub mod edit;
pub mod get;
pub mod list;
pub mod path;
pub mod schema;
pub mod set;
pub mod show;
pub mod unset;
pub mod validate;

use sessile::config::write::WriteScope;

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples_and_precedence;
use crate::lazy_command::Lazy;

/// Read and change settings, each with its origin
///
/// Settings come from flags, variables and TOML files. Edits keep the comments of a file.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = examples_and_precedence!(
    "sessile config show --effective --source"
    "sessile config set lock-timeout 10s --global"
    "sessile config list"
))]
pub enum Command {
    /// Print the value of a setting
    Get(Lazy<get::Args>),
    /// Set a setting
    Set(Lazy<set::Args>),
    /// Remove a setting
    Unset(Lazy<unset::Args>),
    /// List the settings with their effective values
    #[command(visible_alias = "ls")]
    List(Lazy<list::Args>),
    /// Describe the settings: kind, default, meaning
    Describe(Lazy<describe::Args>),
    /// Show the set values with their origins
    Show(Lazy<show::Args>),
    /// Edit a settings file in your editor
    Edit(Lazy<edit::Args>),
    /// Print the paths of the settings files
    Path(Lazy<path::Args>),
    /// Check every settings and context file
    Validate(Lazy<validate::Args>),
    /// Print a JSON Schema of the settings file, for editors
    Schema(Lazy<schema::Args>),
}

impl Command {
    pub(crate) fn run(&self, cx: &Cx) -> Outcome {
        match self {
            Command::Get(Lazy(args)) => get::run(args, cx),
            Command::Set(Lazy(args)) => set::run(args, cx),
            Command::Unset(Lazy(args)) => unset::run(args, cx),
            Command::List(Lazy(args)) => list::run(args, cx),
            Command::Describe(Lazy(args)) => describe::run(args, cx),
            Command::Show(Lazy(args)) => show::run(args, cx),
            Command::Edit(Lazy(args)) => edit::run(args, cx),
            Command::Path(Lazy(args)) => path::run(args, cx),
            Command::Validate(Lazy(args)) => validate::run(args, cx),
            Command::Schema(Lazy(args)) => schema::run(args, cx),
        }
    }
}

/// Selected settings file; by default the project's personal file.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub struct ScopeArgs {
    /// Use this directory's personal file, .sessile/local.toml
    #[arg(long)]
    dir: bool,

    /// Use this project's committed file, .sessile/config.toml
    #[arg(long)]
    project: bool,

    /// Use this user's file
    #[arg(long)]
    global: bool,
}

impl ScopeArgs {
    pub(crate) fn scope(&self) -> Option<WriteScope> {
        match (self.dir, self.project, self.global) {
            (true, ..) => Some(WriteScope::Directory),
            (_, true, _) => Some(WriteScope::Project),
            (.., true) => Some(WriteScope::Global),
            _ => None,
        }
    }
}
