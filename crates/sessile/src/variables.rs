//! The variables that are read beside those that stand for a flag or a setting: one table, for the reference.

/// A variable that is read.
#[derive(Clone, Copy, Debug)]
pub struct DocumentedVariable {
    /// Name.
    pub name: &'static str,
    /// Description.
    pub about: &'static str,
}

const fn known(name: &'static str, about: &'static str) -> DocumentedVariable {
    DocumentedVariable { name, about }
}

/// The application's own, without its prefix: `CONFIG_DIR` is `MYTOOL_CONFIG_DIR`.
pub const OWN: &[DocumentedVariable] = &[
    known("CONFIG_DIR", "The directory of the user's settings and contexts; an absolute path."),
    known("STATE_DIR", "The directory of the store; an absolute path on a local disk."),
    known("CACHE_DIR", "The directory of what can be thrown away; an absolute path."),
    known("RUNTIME_DIR", "The directory of sockets; an absolute path."),
    known(
        "ORIGINALS",
        "Set for commands in a session: the values of variables that the session has changed, as JSON.",
    ),
    known(
        "HOOK",
        "Set by the shell hook beside SESSION: the selection that led to the session (session, terminal, directory or blocked).",
    ),
    known(
        "CREDENTIAL_*",
        "The secret of the credential whose name it ends with, in capitals: `SESSILE_CREDENTIAL_GH_BOT` stands for `gh-bot`.",
    ),
    known("LOG", "The level of the log: off, error, warn, info, debug or trace. `-v` is info, `-vv` debug."),
    known("LOG_FILE", "The file that the log is appended to, instead of standard error."),
    known("TOKEN", "The token for the session service, where no credential is stored for it."),
    known("TOKEN_FILE", "A file with a bearer token to act with; it is stored nowhere."),
    known("VAULT_PASSPHRASE_FILE", "A file (mode 0600) with the passphrase of a sealed vault."),
    known("SYSTEM_DIR", "The directory of the administrator's settings, instead of /etc/NAME."),
];

/// Variables that many programs obey.
pub const SHARED: &[DocumentedVariable] = &[
    known("HOME", "The home directory, else the one in the password database."),
    known("XDG_CONFIG_HOME", "Instead of ~/.config."),
    known("XDG_STATE_HOME", "Instead of ~/.local/state."),
    known("XDG_CACHE_HOME", "Instead of ~/.cache."),
    known("DBUS_SESSION_BUS_ADDRESS", "Where the desktop's keychain is reached."),
    known("XDG_RUNTIME_DIR", "Where the system keeps sockets; there is no substitute for it."),
    known("CI", "Set and not `false` or `0`: nobody is there to be asked, and nothing is coloured."),
    known("NO_COLOR", "Set to anything: nothing is coloured unless `--color always` is said."),
    known("TERM", "`dumb`: nothing is coloured unless `--color always` is said."),
    known("VISUAL", "The editor, before EDITOR and vi."),
    known("EDITOR", "The editor, if VISUAL is not set."),
    known("PATH", "Where programs are looked for."),
    known("XDG_DATA_HOME", "Instead of ~/.local/share, for the tools that keep state there."),
    known("SHELL", "The shell that `shell` opens."),
    known("PS1", "The prompt of a shell that is neither bash, zsh nor fish."),
    known(
        "ZDOTDIR",
        "Where zsh's start-up files are, instead of HOME. Set for commands in a session: zsh reads yours from there, and they cannot lead out of it.",
    ),
    known(
        "BASH_ENV",
        "Set for commands in a session: bash sets the session's variables again after its start-up files. Yours is read first.",
    ),
    known(
        "A2ACLI_*",
        "Set for commands in a session that has talked to an agent: A2ACLI_AGENT_URL, A2ACLI_CONTEXT_ID and A2ACLI_TASK_ID of its last conversation, for clients that remember nothing.",
    ),
    known("TMPDIR", "Where temporary files go that are not about to become a state file."),
];
