//! Isolated commands: the session, the room and the variables of a command, up to the moment it starts.
//!
//! [`exec`] and [`status`] do everything in one call. A caller with work of its own in between uses the steps.
//! [`RunSession::open`] finds or starts the session. [`RunSession::prepare`] enters the room, copies and pins the
//! state of the tools and resolves the variables. [`PreparedRun::variables`] adds the secrets.
//! [`PreparedRun::into_command`] makes the [`IsolatedCommand`], which checks the guard last. Only these steps start
//! commands in sessions and decide what a command may reach.
//!
//! The command of a named session has no parent of Sessile's: the process becomes the command. A parent stays only for work
//! afterwards, such as ending an ephemeral session. `shell` takes the same steps with start-up files of its own, and `env` prints
//! the changes instead. `run --dry-run` prepares an ephemeral session like the real one, prints it, and removes it.
//!
//! ```
//! use std::ffi::OsString;
//!
//! use sessile::run::{IsolationArgs, RunRequest, RunSessionArgs};
//! use sessile::{App, State, StateArgs, World};
//!
//! fn main() -> sessile::Result<()> {
//!     let home = tempfile::tempdir().expect("a directory for this example");
//!     let world = World::empty().with_home(home.path()).with_variable("PATH", "/usr/bin:/bin");
//!     let state = State::open(&App::new("deployer"), world, StateArgs::default())?;
//!
//!     let words = ["sh", "-c", "test -n \"$DEPLOYER_SESSION\""].map(OsString::from);
//!     let request = RunRequest {
//!         operation: "deploy",
//!         words: &words,
//!         session: &RunSessionArgs::default(),
//!         isolation: &IsolationArgs::default(),
//!     };
//!     // `()` renews no credential. To replace this process by the command, call `exec` instead.
//!     let status = sessile::run::status(&state, &request, &())?;
//!     assert!(status.success());
//!     for warning in state.take_warnings() {
//!         eprintln!("{}", warning.message);
//!     }
//!     Ok(())
//! }
//! ```

mod args;
mod command;
mod environment;
mod prepare;
mod session;
mod settings;
pub mod shell;
mod spare;

pub use args::{IsolationArgs, NewSessionArgs, RunSessionArgs};
pub use command::{GuardCheck, IsolatedCommand, exec, status};
pub use environment::{
    CredentialVariable, Environment, VariableChange, VariableRequest, foreign_credentials,
};
pub use prepare::PreparedRun;
pub use session::{RunRequest, RunSession};
pub use settings::SETTINGS;
