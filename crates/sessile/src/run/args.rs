//! Arguments of commands that run others, ready to be flattened into an application's own.

use std::time::Duration;

use clap::Args;

use crate::args::parse_duration;

/// Isolation and variables of a command.
#[derive(Args, Clone, Debug, Default)]
pub struct IsolationArgs {
    /// How far its state is isolated: variables for the known tools, or the home directory as well; else as the
    /// setting isolate says
    #[arg(long, value_name = "LEVEL", value_parser = ["env", "home"])]
    pub isolate: Option<String>,

    /// Isolate only these tools, and those that the context binds
    #[arg(long, value_name = "TOOL")]
    pub tool: Vec<String>,

    /// Set a variable for the command
    #[arg(long = "env", value_name = "NAME=VALUE")]
    pub variables: Vec<String>,

    /// Set a variable for the command to the secret of a credential
    #[arg(long, value_name = "NAME=CREDENTIAL")]
    pub env_credential: Vec<String>,

    /// Begin with an almost empty environment: home, path, terminal and language only
    #[arg(long)]
    pub clear_env: bool,

    /// Keep a variable that would be taken away; `*` at the end stands for any rest
    #[arg(long, value_name = "NAME")]
    pub keep_env: Vec<String>,

    /// Fail unless this is the context
    #[arg(long, value_name = "CONTEXT")]
    pub expect: Option<String>,
}

/// Session of a command: an existing one, or one that is started for it.
#[derive(Args, Clone, Debug, Default)]
pub struct RunSessionArgs {
    /// Fail if there is no such session, instead of starting it
    #[arg(long, conflicts_with = "new")]
    pub existing: bool,

    /// Start the session anew if it has expired or was stopped; fail if it is live
    #[arg(long)]
    pub new: bool,

    /// End the command when the session reaches its maximum lifetime, or only warn; else as the setting session.max-action
    /// says
    #[arg(long, value_name = "ACTION", value_parser = ["end", "warn"])]
    pub max_action: Option<String>,

    /// Properties of a session that is started.
    #[command(flatten)]
    pub start: NewSessionArgs,
}

/// Properties of a session that is started for a command.
#[derive(Args, Clone, Debug, Default)]
pub struct NewSessionArgs {
    /// What the agent that works in a session that is started calls itself
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,

    /// How long a session that is started may lie idle; else as the setting session.idle says
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub idle: Option<Duration>,

    /// How long a session that is started lives at most; else as the setting session.max says
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub max: Option<Duration>,
}
