//! A program on a pseudo-terminal of its own, typed at and read like a person would.

use rexpect::session::PtySession;

use crate::Call;

/// Timeout of expected output.
const PATIENCE_MS: u64 = 20_000;

/// A program on a terminal.
pub struct Tty {
    session: PtySession,
}

impl Tty {
    pub(crate) fn new(call: Call) -> Self {
        let session = rexpect::session::spawn_command(call.command(), Some(PATIENCE_MS));
        Tty { session: session.expect("a terminal") }
    }

    /// Waits until this text appears; returns what stood before it.
    #[track_caller]
    pub fn expect(&mut self, text: &str) -> String {
        self.session.exp_string(text).unwrap_or_else(|error| panic!("{text:?} did not appear: {error}"))
    }

    /// Runs a line in the shell on this terminal; returns what it printed, and its exit status.
    #[track_caller]
    pub fn run(&mut self, line: &str) -> (String, i32) {
        // What is typed is not what is waited for, so an echo does no harm.
        self.type_line(&format!("{line}; printf '%s%s' '[[status ' \"$?]]\""));
        let (printed, status) = self
            .session
            .exp_regex(r"\[\[status [0-9]+\]\]")
            .unwrap_or_else(|error| panic!("{line:?} did not end: {error}"));
        let status = status.trim_matches(|c: char| !c.is_ascii_digit()).parse();
        (printed, status.expect("a number"))
    }

    /// Types a line.
    pub fn type_line(&mut self, line: &str) {
        self.session.send_line(line).expect("typing");
    }

    /// Types keys, without a line break.
    pub fn type_keys(&mut self, keys: &str) {
        self.session.send(keys).expect("typing");
        self.session.flush().expect("typing");
    }

    /// Ends the input, as Ctrl-D does.
    pub fn end_input(&mut self) {
        self.session.send_control('d').expect("typing");
    }

    /// Interrupts what runs, as Ctrl-C does.
    pub fn interrupt(&mut self) {
        self.session.send_control('c').expect("typing");
    }

    /// Stops what runs, as Ctrl-Z does.
    pub fn suspend(&mut self) {
        self.session.send_control('z').expect("typing");
    }

    /// Waits for the end; returns the rest of what was printed and the exit status, as a shell has it: 128 and the number of
    /// the signal that ended the program.
    #[track_caller]
    pub fn finish(mut self) -> (String, i32) {
        let rest = self.session.exp_eof().unwrap_or_else(|error| panic!("the program did not end: {error}"));
        let status = self.session.process().wait().expect("an exit status");
        match status {
            rexpect::process::WaitStatus::Exited(_, code) => (rest, code),
            rexpect::process::WaitStatus::Signaled(_, signal, _) => (rest, 128 + signal as i32),
            other => panic!("ended by {other:?}"),
        }
    }
}
