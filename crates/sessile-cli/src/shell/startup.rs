//! Files in a session's room that shells read when they start.

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use sessile::files::LockedDir;
use sessile::tool::{Change, Originals};
use sessile::{Error, State};

use super::Shell;

/// The variable that names the file below.
pub(crate) const ASSERTION: &str = "BASH_ENV";

/// The file that bash reads when it runs a command, after all others: what the user's own files export must not lead
/// out of the session, and agents run commands in login shells.
///
/// It is named after its content, so that commands with other variables have another one.
pub(crate) fn assertion(state: &State, room: &Path, changes: &[Change]) -> Result<PathBuf, Error> {
    let own = Originals::of(state.app(), state.world()).get(state.world(), ASSERTION);
    let own = own.as_ref().and_then(|path| path.to_str());
    // What else is set may be secret, and does not belong into a file.
    let kept = || changes.iter().filter(|change| change.isolates && change.value.is_some());
    let mut hasher = DefaultHasher::new();
    own.hash(&mut hasher);
    kept().for_each(|change| (&change.name, &change.value).hash(&mut hasher));
    let dir = room.join("shell");
    let name = format!("{:016x}.sh", hasher.finish());
    let path = dir.join(&name);
    if !path.exists() {
        let mut text =
            own.map_or_else(String::new, |own| format!("[ -r {0} ] && . {0}\n", Shell::Bash.quoted(own)));
        // Only a login shell has read files that may lead out; what a script sets for another shell is its own will.
        text.push_str("shopt -q login_shell || return 0\n");
        text.push_str(&Shell::Bash.script(&kept().cloned().collect::<Vec<_>>()));
        LockedDir::lock(&state.locker()?, &dir, 0o700)?.replace_for_now(Path::new(&name), &text, 0o600)?;
    }
    Ok(path)
}

/// The words of a command, and variables that it needs.
type Startup = (Vec<OsString>, Vec<(String, String)>);

/// The words and variables with which an interactive shell starts in a session, with a mark in its prompt.
pub(crate) fn startup(
    state: &State,
    room: &Path,
    program: &str,
    mark: &str,
    changes: &[Change],
) -> Result<Startup, Error> {
    let dir = room.join("shell");
    let write = |name: &str, text: &str| -> Result<PathBuf, Error> {
        let path = dir.join(name);
        let parent = path.parent().unwrap_or(&dir);
        let file = Path::new(path.file_name().unwrap_or_default());
        LockedDir::lock(&state.locker()?, parent, 0o700)?.replace_for_now(file, text, 0o600)?;
        Ok(path)
    };
    // The mark is shown once: a prompt that the hook has changed shows it already.
    let program_word = OsString::from(program);
    Ok(match Shell::of_program(program) {
        Some(Shell::Bash) => {
            let script = Shell::Bash.script(changes);
            let mark = Shell::Bash.quoted(&format!("({mark}) "));
            let text = format!(
                "[ -r ~/.bashrc ] && . ~/.bashrc\n{script}\
                 case $PS1 in *_sessile_mark*) ;; *) PS1={mark}\"$PS1\" ;; esac\n"
            );
            let path = write("bashrc", &text)?;
            (vec![program_word, "--rcfile".into(), path.into()], Vec::new())
        }
        Some(Shell::Zsh) => {
            let own = state.world().variable("ZDOTDIR").or(state.world().variable("HOME"));
            let own = Shell::Zsh.quoted(&own.unwrap_or_default().to_string_lossy());
            let zdotdir = dir.join("zsh");
            let here = Shell::Zsh.quoted(&zdotdir.to_string_lossy());
            // Each of zsh's files reads the user's own with the directory as the user has it.
            let read =
                |name: &str| format!("ZDOTDIR={own}\n[ -r \"$ZDOTDIR\"/{name} ] && . \"$ZDOTDIR\"/{name}\n");
            write("zsh/.zshenv", &format!("{}ZDOTDIR={here}\n", read(".zshenv")))?;
            let script = Shell::Zsh.script(changes);
            let mark = Shell::Zsh.quoted(&format!("({}) ", mark.replace('%', "%%")));
            let prompt = format!("case $PROMPT in *_sessile_mark*) ;; *) PROMPT={mark}\"$PROMPT\" ;; esac\n");
            write("zsh/.zshrc", &format!("{}{script}{prompt}", read(".zshrc")))?;
            (vec![program_word], vec![("ZDOTDIR".to_owned(), zdotdir.to_string_lossy().into_owned())])
        }
        Some(Shell::Fish) => {
            let script = Shell::Fish.script(changes);
            let mark = Shell::Fish.quoted(&format!("({mark}) "));
            let text = format!(
                "{script}if not functions -q __sessile_own_prompt\n    \
                 functions -c fish_prompt __sessile_prompt\n    \
                 function fish_prompt\n        printf '%s' {mark}\n        __sessile_prompt\n    end\nend\n"
            );
            let path = write("config.fish", &text)?;
            let source = format!("source {}", Shell::Fish.quoted(&path.to_string_lossy()));
            (vec![program_word, "--init-command".into(), source.into()], Vec::new())
        }
        None => {
            let own =
                state.world().variable("PS1").map_or("$ ".into(), |own| own.to_string_lossy().into_owned());
            (vec![program_word], vec![("PS1".to_owned(), format!("({mark}) {own}"))])
        }
    })
}
