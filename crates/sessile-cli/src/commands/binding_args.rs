//! `--bind`: the same flag wherever targets of tools are named.

use sessile::Error;
use sessile::context::ContextEdit;
use sessile::context::anonymous;

/// Name of the flag.
pub(crate) const FLAG: &str = "--bind";

/// Targets of a session that is started without a context.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct BindingArgs {
    /// Bind a tool to a target without a context, e.g. kubectl.context=staging; repeatable
    #[arg(long, value_name = "TOOL.KEY=VALUE")]
    pub(crate) bind: Vec<String>,
}

/// The changes that put bindings into a context.
pub(crate) fn edits(bindings: &[String]) -> Result<Vec<ContextEdit>, Error> {
    anonymous::binding_edits(bindings, FLAG)
}
