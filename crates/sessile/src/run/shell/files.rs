//! Files in a session's room that keep shells in it, whatever the user's own start-up files export.
//!
//! Agents run commands by `bash -lc`. A login shell reads start-up files, and one `export` in them would lead the
//! command out of the session. bash reads the file that `BASH_ENV` names after them: in a login shell it sets the session's
//! variables again. In other shells it keeps what the caller has set, and undoes only what the user's own file for
//! `BASH_ENV` changes. zsh has no such variable: the files in `ZDOTDIR` source the user's own and then restore what was set
//! before. A login shell's start-up file that exports `BASH_ENV` itself cannot be undone; `doctor` reports it.
//!
//! The directory is named after the hash of its content, so that commands with different variables in one session do
//! not disturb each other. The files hold only variables that isolate or pin, never one that may be a secret.

use std::fs::OpenOptions;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::context::is_variable_name;
use crate::error::Result;
use crate::files::LockedDir;
use crate::run::VariableChange;
use crate::run::shell::Shell;
use crate::session::spare_room::put;
use crate::state::State;
use crate::tool::Originals;

/// Variables that lead shells to the files.
pub(in crate::run) const SHELL_FILE_VARIABLES: &[&str] = &["BASH_ENV", "ZDOTDIR"];

/// Variables for other shells that zsh's start-up files protect. `ZDOTDIR` is theirs.
const NAMES_OF_OTHER_SHELLS: &[&str] = &["BASH_ENV"];

/// File that bash reads. It is written last, and its content means that all files are complete.
const BASH_FILE: &str = "bash";

/// zsh's start-up files, in the order in which it reads them.
const ZSH_FILES: &[&str] = &[".zshenv", ".zprofile", ".zshrc", ".zlogin"];

/// Start-up files for commands with these changes, written unless they are complete; as values of
/// [`SHELL_FILE_VARIABLES`]. They are synced if the session survives a crash of the machine. `spare` is a directory with the files
/// of an earlier session, which are used again.
pub(in crate::run) fn shell_files(
    state: &State,
    room: &Path,
    changes: &[VariableChange],
    durable: bool,
    spare: Option<&Path>,
) -> Result<[PathBuf; 2]> {
    let files = Files { durable, ..Files::of(state, room, changes, None) };
    let (bash, zsh) = (files.dir.join(BASH_FILE), files.dir.join("zsh"));
    // A file that was not synced can be empty after a power cut.
    let is_complete = bash.metadata().is_ok_and(|found| found.len() > 0);
    if !is_complete && !spare.is_some_and(|spare| files.rewrite(spare)) {
        // bash's file last: its content says that all files are complete.
        files.write_zsh(state)?;
        files.write(state, BASH_FILE, &files.bash())?;
    }
    Ok([bash, zsh])
}

/// Writes a file that does not exist yet, and makes its directory. Returns `false` if that fails.
fn write_new(path: &Path, text: &str) -> bool {
    let create = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let created = create().or_else(|error| match path.parent() {
        Some(parent) if error.kind() == ErrorKind::NotFound => {
            crate::tool::make_room_dir(parent).map_or(Err(error), |()| create())
        }
        _ => Err(error),
    });
    created.and_then(|mut file| file.write_all(text.as_bytes())).is_ok()
}

/// Command of a shell that ends it, because it could not set a variable of the session.
fn refuse(name: &str) -> String {
    format!(
        "{{ echo \"error: cannot set {name} to the session's value: a start-up file makes it read-only\" >&2; exit 125; }}"
    )
}

/// The files of one set of variables.
pub(super) struct Files<'a> {
    pub(super) dir: PathBuf,
    own: [Option<String>; 2],
    changes: Vec<&'a VariableChange>,
    mark: Option<&'a str>,
    /// Whether the files are synced, because a later command relies on them without looking at their content.
    durable: bool,
}

impl<'a> Files<'a> {
    pub(super) fn of(
        state: &State,
        room: &Path,
        changes: &'a [VariableChange],
        mark: Option<&'a str>,
    ) -> Self {
        let originals = Originals::of(state.app(), state.world());
        // A value for this command takes the place of the caller's.
        let given =
            |name: &str| changes.iter().find(|change| change.name == name).map(|change| change.value.clone());
        let callers =
            |name: &str| originals.get(state.world(), name).and_then(|value| value.into_string().ok());
        let own = |name: &str| given(name).unwrap_or_else(|| callers(name));
        let own = [own("BASH_ENV"), own("ZDOTDIR")];
        // What else is set may be secret, and does not belong into a file.
        let changes: Vec<&VariableChange> = changes.iter().filter(|change| change.isolates).collect();
        let mut hasher = DefaultHasher::new();
        (&own, mark).hash(&mut hasher);
        changes.iter().for_each(|change| (&change.name, &change.value).hash(&mut hasher));
        let dir = room.join("shell").join(format!("{:016x}", hasher.finish()));
        Files { dir, own, changes, mark, durable: false }
    }

    /// Writes all files into those of another directory, which then gets the name of this one. Returns `false` if that fails.
    fn rewrite(&self, spare: &Path) -> bool {
        let put = |name: &str, text: &str| put(&spare.join(name), text).is_some();
        let (here, names) = (self.dir.join("zsh"), self.names(NAMES_OF_OTHER_SHELLS));
        let zsh = |name: &&str| put(&format!("zsh/{name}"), &self.zsh(name, &names, &here));
        ZSH_FILES.iter().all(zsh)
            && put(BASH_FILE, &self.bash())
            && rustix::fs::rename(spare, &self.dir).is_ok()
    }

    pub(super) fn write(&self, state: &State, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.dir.join(name);
        let parent = path.parent().unwrap_or(&self.dir);
        let file = Path::new(path.file_name().unwrap_or_default());
        // bash's file must be there as a whole or not at all.
        if !self.durable && name != BASH_FILE && write_new(&path, text) {
            return Ok(path);
        }
        if !self.durable {
            crate::tool::make_room_dir(parent)?;
        }
        let dir = LockedDir::lock(&state.locker()?, parent, 0o700)?;
        if self.durable {
            dir.replace(file, text, 0o600)?;
        } else {
            dir.replace_for_now(file, text, 0o600)?;
        }
        Ok(path)
    }

    /// The script that sets the variables right again.
    pub(super) fn script(&self, shell: Shell) -> String {
        let set = self.changes.iter().filter(|change| change.value.is_some());
        shell.script(&set.map(|change| (*change).clone()).collect::<Vec<_>>())
    }

    /// bash reads this one when it runs a command, after all others.
    fn bash(&self) -> String {
        // The user's own file is still read; `BASH_ENV` names only one.
        let mut text = self.own[0].as_ref().map_or_else(String::new, |own| self.bash_around(own));
        // Only a login shell has read files that may lead out; what a script sets for another shell is its own will.
        text.push_str("shopt -q login_shell || return 0\n");
        let set = |name: &str, value: &str| {
            let set = Shell::Bash.assign(name, Some(value));
            format!("{} || {}\n", set.trim_end_matches('\n'), refuse(name))
        };
        for change in self.changes.iter().filter(|change| is_variable_name(&change.name)) {
            if let Some(value) = &change.value {
                text.push_str(&set(&change.name, value));
            }
        }
        let [bash, zsh] = [self.dir.join(BASH_FILE), self.dir.join("zsh")];
        for (name, file) in SHELL_FILE_VARIABLES.iter().zip([bash, zsh]) {
            text.push_str(&set(name, &file.to_string_lossy()));
        }
        text
    }

    /// Reads the user's own file, and undoes what it changes of the session's variables.
    fn bash_around(&self, own: &str) -> String {
        let (own, names) = (Shell::Bash.quoted(own), self.names(SHELL_FILE_VARIABLES));
        let refuse = refuse("$_sessile_name");
        // Without a subshell, which would cost a process, and in the words of bash 3.2, which macOS has.
        format!(
            "for _sessile_name in {names}; do\n  \
               [ -z \"${{!_sessile_name+x}}\" ] || printf -v \"_sessile_saved_$_sessile_name\" %s \"${{!_sessile_name}}\"\n\
             done\n\
             [ -r {own} ] && . {own}\n\
             for _sessile_name in {names}; do\n  \
               _sessile_saved=_sessile_saved_$_sessile_name\n  \
               if [ -z \"${{!_sessile_saved+x}}\" ]; then\n    \
                 unset \"$_sessile_name\" || {refuse}\n  \
               else\n    \
                 export \"$_sessile_name=${{!_sessile_saved}}\" || {refuse}\n    \
                 unset \"$_sessile_saved\"\n  \
               fi\n\
             done\n\
             unset _sessile_name _sessile_saved\n"
        )
    }

    /// Names of the session's variables and of some others, as words of a script.
    fn names(&self, others: &[&str]) -> String {
        // The names stand in the scripts unquoted. A variable of any other name can come from the caller's
        // environment, and no shell has it as a parameter.
        let names = self.changes.iter().map(|change| change.name.as_str());
        names
            .filter(|name| is_variable_name(name))
            .chain(others.iter().copied())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Writes start-up files that zsh reads instead of the user's own. Each of them sources the user's file, with the
    /// user's `ZDOTDIR`. The session's variables are set again afterwards.
    pub(super) fn write_zsh(&self, state: &State) -> Result<PathBuf> {
        let (here, names) = (self.dir.join("zsh"), self.names(NAMES_OF_OTHER_SHELLS));
        for name in ZSH_FILES {
            self.write(state, &format!("zsh/{name}"), &self.zsh(name, &names, &here))?;
        }
        Ok(here)
    }

    fn zsh(&self, name: &str, names: &str, here: &Path) -> String {
        let quoted = |text: &str| Shell::Zsh.quoted(text);
        let own = quoted(self.own[1].as_deref().unwrap_or_default());
        let here = quoted(&here.to_string_lossy());
        let refuse = refuse("$_sessile_name");
        let prompt = self.mark.filter(|_| name == ".zshrc").map_or_else(String::new, |mark| {
            // `%` begins an expansion in zsh's prompt.
            let mark = quoted(&format!("({}) ", mark.replace('%', "%%")));
            // The mark is shown once: a prompt that the hook has changed shows it already.
            format!("case $PROMPT in *_sessile_mark*) ;; *) PROMPT={mark}\"$PROMPT\" ;; esac\n")
        });
        format!(
            "typeset -gA _sessile_saved\n\
             _sessile_saved=()\n\
             for _sessile_name in {names}; do\n  \
               [[ -v $_sessile_name ]] && _sessile_saved[$_sessile_name]=${{(P)_sessile_name}}\n\
             done\n\
             : ${{_sessile_own={own}}}\n\
             if [[ -n $_sessile_own ]]; then ZDOTDIR=$_sessile_own; else unset ZDOTDIR; fi\n\
             [[ -r ${{ZDOTDIR:-$HOME}}/{name} ]] && source ${{ZDOTDIR:-$HOME}}/{name}\n\
             _sessile_own=${{ZDOTDIR:-}}\n\
             {{\n  \
             for _sessile_name in {names}; do\n  \
               if (( ${{+_sessile_saved[$_sessile_name]}} )); then\n    \
                 export $_sessile_name=\"${{_sessile_saved[$_sessile_name]}}\"\n  \
               else\n    \
                 unset $_sessile_name\n  \
               fi\n\
             done\n\
             }} always {{\n  \
               (( TRY_BLOCK_ERROR == 0 )) || {refuse}\n\
             }}\n\
             export ZDOTDIR={here}\n\
             {prompt}"
        )
    }
}
