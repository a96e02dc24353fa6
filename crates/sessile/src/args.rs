//! The arguments that every command of an application takes, ready to be flattened into its own.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};

/// Format of printed results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people, and for `$(...)`.
    #[default]
    Text,
    /// One JSON document.
    Json,
    /// One JSON document per line.
    Jsonl,
}

impl OutputFormat {
    /// The format with this name.
    pub fn named(word: &str) -> Option<Self> {
        match word {
            "text" => Some(OutputFormat::Text),
            "json" => Some(OutputFormat::Json),
            "jsonl" => Some(OutputFormat::Jsonl),
            _ => None,
        }
    }
}

/// Color of output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On terminals, unless a variable disables color.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// The choice with this name.
    pub fn named(word: &str) -> Option<Self> {
        match word {
            "auto" => Some(Color::Auto),
            "always" => Some(Color::Always),
            "never" => Some(Color::Never),
            _ => None,
        }
    }
}

/// The global flags. Each but `--yes` has a variable: `--lock-timeout` is `NAME_LOCK_TIMEOUT`.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Global options")]
pub struct StateArgs {
    /// Use this context
    #[arg(long, short = 'c', global = true, value_name = "NAME")]
    pub context: Option<String>,

    /// Work in this session
    #[arg(long, short = 's', global = true, value_name = "ID")]
    pub session: Option<String>,

    /// Use this credential
    #[arg(long, global = true, value_name = "NAME")]
    pub credential: Option<String>,

    /// Use this file (.toml or .json) instead of all settings, contexts and state
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "no_config")]
    pub config: Option<PathBuf>,

    /// Ignore every settings and context file
    #[arg(long, global = true)]
    pub no_config: bool,

    /// Override a setting for this call
    #[arg(long, global = true, value_name = "KEY=VALUE", action = ArgAction::Append)]
    pub set: Vec<String>,

    /// Print results as text, json or jsonl
    #[arg(long, short = 'o', global = true, value_enum, value_name = "FORMAT", hide_possible_values = true)]
    pub output: Option<OutputFormat>,

    /// Confirm without a prompt
    #[arg(long, short = 'y', global = true)]
    pub yes: bool,

    /// Never prompt, even on a terminal
    #[arg(long, global = true)]
    pub no_input: bool,

    /// Wait this long for a lock (0: do not wait)
    #[arg(long, global = true, value_name = "DURATION", value_parser = parse_duration)]
    pub lock_timeout: Option<Duration>,

    /// Print only the result
    #[arg(long, short = 'q', global = true)]
    pub quiet: bool,

    /// Print details; twice (-vv) for debugging
    #[arg(long, short = 'v', global = true, action = ArgAction::Count)]
    pub verbose: u8,

    /// Color the output: auto, always or never
    #[arg(long, global = true, value_enum, value_name = "WHEN", hide_possible_values = true)]
    pub color: Option<Color>,
}

/// A duration argument.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    crate::duration::parse(text).ok_or_else(|| format!("expected {}", crate::duration::EXPECTED))
}
