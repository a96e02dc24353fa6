//! `sessile config`: settings, each with its origin.

pub mod edit;
pub mod get;
pub mod list;
pub mod path;
pub mod schema;
pub mod set;
pub mod show;
pub mod unset;
pub mod validate;

use sessile::settings::write::WriteScope;

use crate::cli::Cx;
use crate::error::Outcome;

/// The commands of the group.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Print the value of a setting
    Get(get::Args),
    /// Set a setting
    Set(set::Args),
    /// Remove a setting
    Unset(unset::Args),
    /// List the settings there are
    List(list::Args),
    /// Show the values that are set, where they come from and what they shadow
    Show(show::Args),
    /// Edit a settings file in your editor
    Edit(edit::Args),
    /// Print where the settings files are
    Path(path::Args),
    /// Check every settings and context file
    Validate(validate::Args),
    /// Print a JSON Schema of the settings file, for editors
    Schema(schema::Args),
}

impl Command {
    pub(crate) fn run(&self, cx: &Cx) -> Outcome {
        match self {
            Command::Get(args) => get::run(args, cx),
            Command::Set(args) => set::run(args, cx),
            Command::Unset(args) => unset::run(args, cx),
            Command::List(args) => list::run(args, cx),
            Command::Show(args) => show::run(args, cx),
            Command::Edit(args) => edit::run(args, cx),
            Command::Path(args) => path::run(args, cx),
            Command::Validate(args) => validate::run(args, cx),
            Command::Schema(args) => schema::run(args, cx),
        }
    }
}

/// Which file is meant. Without a flag it is the project's personal one, and nothing wider.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub struct ScopeArgs {
    /// This directory's personal file, .sessile/local.toml
    #[arg(long)]
    dir: bool,

    /// This project's file, .sessile/config.toml, to be committed
    #[arg(long)]
    project: bool,

    /// This user's file
    #[arg(long)]
    global: bool,
}

impl ScopeArgs {
    fn scope(&self) -> Option<WriteScope> {
        match (self.dir, self.project, self.global) {
            (true, ..) => Some(WriteScope::Directory),
            (_, true, _) => Some(WriteScope::Project),
            (.., true) => Some(WriteScope::Global),
            _ => None,
        }
    }
}
