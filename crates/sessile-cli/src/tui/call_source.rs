//! Calls that the TUI makes in the name of commands: each has the world and flags of the TUI, and the mode of the command.

use std::sync::Arc;

use sessile::args::{Color, OutputFormat};
use sessile::call::StateCall;
use sessile::{State, StateArgs, World};

use crate::cli::Cx;
use crate::effects;
use crate::error::Failure;
use crate::output::Output;
use crate::settings::app;

/// World and flags of the TUI. Threads have a copy each.
#[derive(Clone)]
pub(crate) struct CallSource {
    world: World,
    args: StateArgs,
}

impl CallSource {
    /// Calls with the world and the flags of a call.
    pub(crate) fn new(cx: &Cx) -> Self {
        // A dialog of the TUI names the object and asks, so commands do not ask again.
        let args = StateArgs { yes: true, quiet: true, output: None, ..cx.state.args().clone() };
        CallSource { world: cx.state.world().clone(), args }
    }

    /// Calls that cannot prompt: in threads that a person does not wait for.
    pub(crate) fn without_prompts(&self) -> Self {
        CallSource { args: StateArgs { no_input: true, ..self.args.clone() }, world: self.world.clone() }
    }

    /// Calls in a context that a person has named.
    pub(crate) fn in_context(&self, context: Option<String>) -> Self {
        let context = context.or_else(|| self.args.context.clone());
        CallSource { args: StateArgs { context, ..self.args.clone() }, world: self.world.clone() }
    }

    /// Time, in milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> i64 {
        self.world.now().as_millisecond()
    }

    /// State and output of a new call of a command. The output of the command is dropped.
    pub(crate) fn call(&self, command: &str) -> Result<Cx, Failure> {
        let mut call = StateCall::new(&app(), self.world.clone(), self.args.clone())?;
        if let Some(entry) = effects::entry(command) {
            call = call.with_mode(entry.mode);
        }
        let state = State::from(call);
        let out = Output::new(&self.world, OutputFormat::Text, Color::Never, true, false);
        Ok(Cx { state, out: out.into_buffers(Some(Arc::default())) })
    }
}
