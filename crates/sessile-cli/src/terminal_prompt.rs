//! Prompts on the terminal. End of input means no; without a terminal nothing is prompted.

use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use sessile::State;
use sessile::confirm::{Consent, consent, is_yes};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;

use crate::error::{CommandError, Outcome};

/// Fails unless `what` ("delete this or that") is confirmed: by `--yes`, or by a person who says so.
pub(crate) fn confirm(state: &State, what: &str) -> Outcome {
    match consent(state, what.trim_end_matches(['?', '.', ':']))? {
        Consent::Given => Ok(()),
        Consent::Ask => {
            let answer = line(&format!("{}? [y/N] ", capitalised(&sessile::text::shown_lines(what))));
            if answer.is_some_and(|answer| is_yes(&answer)) {
                Ok(())
            } else {
                Err(CommandError::Declined(what.to_owned()).into())
            }
        }
    }
}

/// Asks for a line that must not be seen while it is typed. `None` at the end of input.
pub(crate) fn secret(prompt: &str) -> Option<String> {
    let stdin = io::stdin();
    // Not a terminal: nothing is echoed there.
    let Ok(before) = tcgetattr(&stdin) else { return line(prompt) };
    let mut hidden = before.clone();
    hidden.local_modes &= !LocalModes::ECHO;
    // The line break is shown, so that the next output begins on a new line.
    hidden.local_modes |= LocalModes::ECHONL;
    // Who ends the program here must see again what they type afterwards.
    let ends = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];
    let is_ended = Arc::new(AtomicBool::new(false));
    for signal in ends {
        let _ = signal_hook::flag::register(signal, Arc::clone(&is_ended));
    }
    let signals = Signals::new(ends.iter().chain(&[SIGTSTP, SIGCONT])).ok();
    let handle = signals.as_ref().map(Signals::handle);
    let (after, still_hidden, again) = (before.clone(), hidden.clone(), prompt.to_owned());
    let watcher = signals.map(|mut signals| {
        std::thread::Builder::new().spawn(move || {
            for signal in signals.forever() {
                // The shell may have changed the terminal's modes meanwhile.
                if signal == SIGCONT {
                    let _ = tcsetattr(io::stdin(), OptionalActions::Now, &still_hidden);
                    let _ = io::stderr().write_all(again.as_bytes());
                } else {
                    let _ = tcsetattr(io::stdin(), OptionalActions::Now, &after);
                    let _ = signal_hook::low_level::emulate_default_handler(signal);
                }
            }
        })
    });
    // Without the watcher thread Ctrl-C could not end the program here, so the question counts as unanswered.
    let watcher = watcher.transpose().ok()?;
    // Discards what was typed ahead, as getpass(3) does.
    let _ = tcsetattr(&stdin, OptionalActions::Flush, &hidden);
    let answer = line(prompt);
    let _ = tcsetattr(&stdin, OptionalActions::Flush, &before);
    if let (Some(handle), Some(watcher)) = (handle, watcher) {
        // What was typed after the end is no answer: the watcher is about to end the program.
        if !is_ended.load(Ordering::SeqCst) {
            handle.close();
        }
        let _ = watcher.join();
    }
    answer
}

fn line(prompt: &str) -> Option<String> {
    let mut err = io::stderr();
    let _ = err.write_all(prompt.as_bytes());
    let _ = err.flush();
    let mut answer = String::new();
    match io::stdin().lock().read_line(&mut answer) {
        Ok(0) | Err(_) => {
            // Ctrl-D leaves the cursor behind the prompt.
            let _ = err.write_all(b"\n");
            None
        }
        Ok(_) => Some(answer.trim_end_matches(['\r', '\n']).to_owned()),
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
