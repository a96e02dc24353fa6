//! Table of the variables without a flag or a setting, for the reference.

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
    known("CACHE_DIR", "The cache directory; an absolute path."),
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
        "The secret of the credential whose name it ends with, in capitals: `SESSILE_CREDENTIAL_GH_BOT` overrides `gh-bot`.",
    ),
    known("LOG", "The level of the log: off, error, warn, info, debug or trace. `-v` is info, `-vv` debug."),
    known("LOG_FILE", "The file that the log is appended to, instead of standard error."),
    known("TOKEN", "Token for the session service, if the vault has no credential for it."),
    known("TOKEN_FILE", "File with a bearer token for this call; never stored."),
    known("VAULT_PASSPHRASE_FILE", "A file (mode 0600) with the passphrase of a sealed vault."),
    known("SYSTEM_DIR", "The directory of the administrator's settings, instead of /etc/NAME."),
];

/// Variables that many programs obey.
pub const SHARED: &[DocumentedVariable] = &[
    known("HOME", "The home directory, else the one in the password database."),
    known("XDG_CONFIG_HOME", "Instead of ~/.config."),
    known("XDG_STATE_HOME", "Instead of ~/.local/state."),
    known("XDG_CACHE_HOME", "Instead of ~/.cache."),
    known("DBUS_SESSION_BUS_ADDRESS", "Address of the D-Bus session, for the desktop's keychain."),
    known("XDG_RUNTIME_DIR", "The system's runtime directory for sockets; has no fallback."),
    known("CI", "If set and not `false` or `0`: no prompts and no color."),
    known("NO_COLOR", "If set: no color, except with `--color always`."),
    known("TERM", "`dumb`: no color, except with `--color always`."),
    known("VISUAL", "The editor, before EDITOR and vi."),
    known("EDITOR", "The editor, if VISUAL is not set."),
    known("PATH", "Search path of programs."),
    known("XDG_DATA_HOME", "Instead of ~/.local/share, for the tools that keep state there."),
    known("SHELL", "The shell that `shell` opens."),
    known("PS1", "The prompt of a shell that is neither bash, zsh nor fish."),
    known(
        "ZDOTDIR",
        "Where zsh's start-up files are, instead of HOME. Set for commands in a session: zsh reads yours from there, and they cannot lead out of it.",
    ),
    known(
        "BASH_ENV",
        "Set for commands in a session: bash sets the session's variables again after its start-up files and yours, which is read first.",
    ),
    known(
        "SHLVL",
        "Set to 1 for commands in a session if it is missing or 0: bash would read ~/.bashrc where its input is a socket.",
    ),
    known(
        "A2ACLI_*",
        "Set for commands in a session that has talked to an agent: A2ACLI_AGENT_URL, A2ACLI_CONTEXT_ID and A2ACLI_TASK_ID of its last conversation, for clients that remember nothing.",
    ),
    known("TMPDIR", "Directory of temporary files that do not become state files."),
];
