//! `sessile completions`: the script that a shell loads.

use clap::ValueEnum;
use serde_json::json;

use crate::cli::Cx;
use crate::completion;
use crate::error::Outcome;
use crate::help::examples;

/// Print the script that completes commands and names in your shell
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile completions bash >> ~/.bashrc"
    "sessile completions fish > ~/.config/fish/completions/sessile.fish"
))]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let script = match args.shell {
        Shell::Bash => completion::BASH,
        Shell::Zsh => completion::ZSH,
        Shell::Fish => completion::FISH,
    };
    cx.out.result(&json!({ "script": script }), || script.to_string())
}
