//! Start of an interactive shell in a session.

use std::ffi::OsString;
use std::path::Path;

use crate::error::Result;
use crate::run::VariableChange;
use crate::run::shell::Shell;
use crate::run::shell::files::Files;
use crate::state::State;

/// Words of a command, and variables that it needs.
pub type ShellStartup = (Vec<OsString>, Vec<(String, String)>);

/// The words and variables with which an interactive shell starts in a session, with a mark in its prompt.
pub fn startup(
    state: &State,
    room: &Path,
    program: &str,
    mark: &str,
    changes: &[VariableChange],
) -> Result<ShellStartup> {
    let files = Files::of(state, room, changes, Some(mark));
    let word = OsString::from(program);
    let shown = |shell: Shell| shell.quoted(&format!("({mark}) "));
    // The mark is shown once: a prompt that the hook has changed shows it already.
    Ok(match Shell::of_program(program) {
        Some(shell @ Shell::Bash) => {
            let (script, mark) = (files.script(shell), shown(shell));
            let text = format!(
                "[ -r ~/.bashrc ] && . ~/.bashrc\n{script}\
                 case $PS1 in *_sessile_mark*) ;; *) PS1={mark}\"$PS1\" ;; esac\n"
            );
            (vec![word, "--rcfile".into(), files.write(state, "bashrc", &text)?.into()], Vec::new())
        }
        Some(Shell::Zsh) => {
            let dir = files.write_zsh(state)?.to_string_lossy().into_owned();
            (vec![word], vec![("ZDOTDIR".to_owned(), dir)])
        }
        // fish has no option for another start-up file; `--init-command` runs after the user's own.
        Some(shell @ Shell::Fish) => {
            let (script, mark) = (files.script(shell), shown(shell));
            let text = format!(
                "{script}if not functions -q __sessile_own_prompt\n    \
                 functions -c fish_prompt __sessile_prompt\n    \
                 function fish_prompt\n        printf '%s' {mark}\n        __sessile_prompt\n    end\nend\n"
            );
            let path = files.write(state, "config.fish", &text)?;
            let source = format!("source {}", shell.quoted(&path.to_string_lossy()));
            (vec![word, "--init-command".into(), source.into()], Vec::new())
        }
        None => {
            let own = state.world().variable("PS1");
            let own = own.map_or("$ ".into(), |own| own.to_string_lossy().into_owned());
            (vec![word], vec![("PS1".to_owned(), format!("({mark}) {own}"))])
        }
    })
}
