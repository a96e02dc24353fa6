//! The `sessile` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    sessile_cli::main()
}
