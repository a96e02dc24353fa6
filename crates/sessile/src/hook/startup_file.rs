//! Start-up files of shells: the line that loads the hook, and the lines that set variables.

use std::path::PathBuf;

use crate::error::{FileError, Result};
use crate::files::LockedDir;
use crate::run::shell::Shell;
use crate::state::State;
use crate::tool::Originals;

/// Files that shells read when they start, below the home, and the shell whose hook belongs at their end.
pub(crate) const START_UP_FILES: &[(&str, &str)] = &[
    (".profile", "bash"),
    (".bash_profile", "bash"),
    (".bash_login", "bash"),
    (".bashrc", "bash"),
    (".zshenv", "zsh"),
    (".zprofile", "zsh"),
    (".zshrc", "zsh"),
    (".zlogin", "zsh"),
    (".config/fish/config.fish", "fish"),
];

/// Line in a start-up file that loads the hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookLine {
    /// The start-up file.
    pub path: PathBuf,
    /// The line.
    pub line: String,
    /// Number of the line that loads the hook, if one exists.
    pub found_at: Option<usize>,
}

impl HookLine {
    /// The line of a shell, in the start-up file of the user.
    pub fn of(state: &State, shell: Shell) -> Result<Self> {
        let app = state.app().name();
        let (world, originals) = (state.world(), Originals::of(state.app(), state.world()));
        // A hooked shell has variables that lead elsewhere; the user's own count.
        let own =
            |name: &str| originals.get(world, name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || own("HOME").or_else(|| world.home().map(PathBuf::from));
        let home = home().ok_or(FileError::NoHome("the start-up files of the shell"))?;
        let (path, line) = match shell {
            Shell::Bash => (home.join(".bashrc"), format!("eval \"$({app} hook bash)\"")),
            Shell::Zsh => {
                let dir = own("ZDOTDIR").unwrap_or(home);
                (dir.join(".zshrc"), format!("eval \"$({app} hook zsh)\""))
            }
            Shell::Fish => {
                let dir = own("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
                (dir.join("fish/config.fish"), format!("{app} hook fish | source"))
            }
        };
        let text = crate::files::read(&path)?.unwrap_or_default();
        let loads = |found: &str| found.contains(&line) && !is_comment(found);
        let found_at = text.lines().position(loads).map(|at| at + 1);
        Ok(HookLine { path, line, found_at })
    }

    /// Appends the line to the file.
    pub fn install(&self, state: &State) -> Result<()> {
        self.rewrite(state, |text| {
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            format!("{text}{end}{}\n", self.line)
        })
    }

    /// Removes the lines that are this one and nothing else.
    pub fn remove(&self, state: &State) -> Result<()> {
        self.rewrite(state, |text| {
            text.split_inclusive('\n').filter(|found| found.trim() != self.line).collect()
        })
    }

    fn rewrite(&self, state: &State, change: impl Fn(&str) -> String) -> Result<()> {
        let (dir, name) = LockedDir::of_file(&state.locker()?, &self.path, 0o755)?;
        let text = dir.read(&name)?.unwrap_or_default();
        let changed = change(&text);
        if changed == text { Ok(()) } else { dir.replace(&name, &changed, 0o644) }
    }
}

/// Place in a start-up file of a shell that sets a variable, such as `~/.bashrc:12`: the last one that the shell reads. A file of
/// another shell counts if one of its own names it.
pub(super) fn assignment(state: &State, shell: Option<Shell>, name: &str) -> Option<String> {
    let home = state.world().home()?;
    let is_own = |owner: &str| shell.is_none_or(|shell| Shell::of_program(owner) == Some(shell));
    let text_of = |file: &str| crate::files::read(&home.join(file)).ok().flatten();
    let found = START_UP_FILES.iter().rev();
    let mut files: Vec<(&str, bool, String)> =
        found.filter_map(|&(file, owner)| Some((file, is_own(owner), text_of(file)?))).collect();
    files.sort_by_key(|&(_, is_own, _)| !is_own);
    let is_named = |name: &str| files.iter().any(|(_, is_own, text)| *is_own && text.contains(name));
    files.iter().filter(|(file, is_own, _)| *is_own || is_named(file)).find_map(|(file, _, text)| {
        let sets = |line: &str| !is_comment(line) && assigned(line) == Some(name);
        let (at, _) = text.lines().enumerate().filter(|(_, line)| sets(line)).last()?;
        Some(format!("~/{file}:{}", at + 1))
    })
}

pub(crate) fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with('#')
}

/// The variable that a line of a shell's file sets.
pub(crate) fn assigned(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let (line, is_fish) = match line.split_once(' ') {
        Some(("export" | "typeset" | "declare" | "readonly", rest)) => (rest.trim_start(), false),
        Some(("set", rest)) => (rest.trim_start(), true),
        _ => (line, false),
    };
    if is_fish {
        // Options such as `-gx` come before the name.
        return line.split_ascii_whitespace().find(|word| !word.starts_with('-'));
    }
    // Options such as `-gx` come before the name.
    let word = line.split_ascii_whitespace().find(|word| !word.starts_with('-'))?;
    word.split_once('=').map(|(name, _)| name)
}
