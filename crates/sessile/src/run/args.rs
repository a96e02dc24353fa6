//! Arguments of commands that run others, ready to be flattened into an application's own.

use std::time::Duration;

use clap::Args;

use crate::args::parse_duration;

/// Isolation and variables of a command.
#[derive(Args, Clone, Debug, Default)]
pub struct IsolationArgs {
    /// Isolation level: env (variables of known tools) or home (also the home directory); default: the setting isolate
    #[arg(long, value_name = "LEVEL", value_parser = ["env", "home"])]
    pub isolate: Option<String>,

    /// Isolate only these tools, and those that the context binds
    #[arg(long, value_name = "TOOL")]
    pub tool: Vec<String>,

    /// Set a variable in the session's environment
    #[arg(long = "env", value_name = "NAME=VALUE")]
    pub variables: Vec<String>,

    /// Set a variable in the session's environment to the secret of a credential
    #[arg(long, value_name = "NAME=CREDENTIAL")]
    pub env_credential: Vec<String>,

    /// Start with an almost empty environment: home, path, terminal and language
    #[arg(long, hide_short_help = true)]
    pub clear_env: bool,

    /// Keep a variable that would be cleared; a final * matches any suffix
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub keep_env: Vec<String>,

    /// Fail unless this is the selected context
    #[arg(long, value_name = "CONTEXT")]
    pub expect: Option<String>,
}

/// Session of a command: an existing one, or one that is started for it.
#[derive(Args, Clone, Debug, Default)]
pub struct RunSessionArgs {
    /// Fail if the session does not exist, instead of starting it
    #[arg(long, conflicts_with = "new", hide_short_help = true)]
    pub existing: bool,

    /// Start an expired or stopped session again; fail if it is live
    #[arg(long)]
    pub new: bool,

    /// End the command at the session's maximum lifetime, or only warn; default: the setting session.max-action
    #[arg(long, value_name = "ACTION", value_parser = ["end", "warn"], hide_short_help = true)]
    pub max_action: Option<String>,

    /// Properties of a session that is started.
    #[command(flatten)]
    pub start: NewSessionArgs,
}

/// Properties of a session that is started for a command.
#[derive(Args, Clone, Debug, Default)]
pub struct NewSessionArgs {
    /// Name of the agent that works in the new session
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub agent: Option<String>,

    /// End the new session after this idle time; default: the setting session.idle
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, hide_short_help = true)]
    pub idle: Option<Duration>,

    /// Maximum lifetime of the new session; default: the setting session.max
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, hide_short_help = true)]
    pub max: Option<Duration>,
}
