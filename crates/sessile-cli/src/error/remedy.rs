//! Causes and remedies of the error codes, for the manifest and the page of errors.

use sessile::Code;

/// Typical cause of an error code, and the action that resolves it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remedy {
    /// The typical cause.
    pub(crate) cause: &'static str,
    /// The action to take, with a command where one helps.
    pub(crate) fix: &'static str,
}

/// Cause and remedy of a code. The match is exhaustive, so a new code does not compile without both.
pub(crate) const fn remedy_of(code: Code) -> Remedy {
    let (cause, fix) = match code {
        Code::Usage => (
            "A flag, argument or combination of flags is invalid.",
            "Read the usage in the hint, or add `--help`.",
        ),
        Code::InvalidName => (
            "A name has other characters than letters, digits, `.`, `_`, `@` and `-`, or looks like a path or an id.",
            "Choose another name.",
        ),
        Code::InvalidValue => (
            "A setting, flag or variable has a value of the wrong type or range.",
            "Pass a value of the expected type; the message names it.",
        ),
        Code::UnknownSetting => ("The key is misspelt.", "List all keys: `sessile config list`."),
        Code::ScopeRequired => (
            "The call is outside a session and a project, so Sessile cannot choose a scope.",
            "Pass `--dir`, `--project` or `--global`.",
        ),
        Code::ConfirmationRequired => {
            ("The command prompts, but the call has no terminal.", "Check the command, then pass `--yes`.")
        }
        Code::TerminalRequired => (
            "The command needs a person at a terminal, for example to approve a context.",
            "Run the command at a terminal, outside any session.",
        ),
        Code::SelectionWithheld => (
            "Standard input is a pipe or a file, and such a call never uses the terminal's selection.",
            "Pass `--context NAME` or `--session NAME`.",
        ),
        Code::SecretRefused => (
            "An argument, a setting or a context contains a secret, which other programs can read there.",
            "Store the secret in the vault: `sessile auth set NAME`. Treat a typed secret as compromised.",
        ),
        Code::Declined => (
            "A person answered no, or the input ended at a prompt.",
            "Run the command again, and confirm it.",
        ),
        Code::FileSyntax => (
            "A settings or context file is not valid TOML or JSON.",
            "Correct the named line: `sessile config edit` or `sessile context edit NAME`.",
        ),
        Code::FileValue => (
            "A file is valid, but a key has a value of the wrong type.",
            "Correct the named line, then check it: `sessile config validate`.",
        ),
        Code::FileTooLarge => (
            "The path is probably wrong: a settings file is never this large.",
            "Check the path; split the file.",
        ),
        Code::FileNotUtf8 => ("The file has another encoding.", "Convert the file to UTF-8."),
        Code::NotAFile => {
            ("The path is a directory, a socket or a device.", "Pass the path of a regular file.")
        }
        Code::Io => (
            "The system refused an operation: permissions, a read-only file system, a broken disk.",
            "Correct the cause in the message; check the installation: `sessile doctor`.",
        ),
        Code::DiskFull => {
            ("The file system has no space left.", "Free some space, then run the command again.")
        }
        Code::NotRecorded => (
            "The change succeeded, but the state database could not be written.",
            "Do not repeat the change. Check the state: `sessile doctor`.",
        ),
        Code::EditorFailed => (
            "The program in `VISUAL` or `EDITOR` failed to start, or ended with an error.",
            "Set `EDITOR` to an installed editor.",
        ),
        Code::StoreCorrupt => (
            "A disk failure or another program damaged the database.",
            "Repair it: `sessile doctor --repair`; or restore a backup: `sessile backup restore FILE`.",
        ),
        Code::Store => (
            "The database is locked by another program, or a system call failed.",
            "Run the command again. If it still fails: `sessile doctor`.",
        ),
        Code::StoreTooNew => (
            "A newer version of Sessile migrated the database.",
            "Install the newer version, or restore a backup of the older one.",
        ),
        Code::NetworkFileSystem => (
            "The state directory is on NFS, SMB or another network file system.",
            "Set `SESSILE_STATE_DIR` to a local directory.",
        ),
        Code::NoHome => {
            ("`HOME` is not set, and the user has no entry in the password database.", "Set `HOME`.")
        }
        Code::UntrustedProject => (
            "The project's `.sessile/` selects a context, and you have not trusted its current content.",
            "Read the files, then run `sessile trust`; or pass `--context NAME`.",
        ),
        Code::ProjectFileUnsafe => (
            "A file in `.sessile/` is a link out of the project, or another user owns it.",
            "Replace the link by a file, or take ownership of a copy.",
        ),
        Code::ContextNotFound => (
            "The name is misspelt, or the context does not exist yet.",
            "List contexts: `sessile context list`. Create it: `sessile context create NAME`, or `sessile import`.",
        ),
        Code::NoContext => (
            "The command needs a context, and no flag, variable, session or scope selects one.",
            "Pass `--context NAME`, or select one: `sessile context use NAME`.",
        ),
        Code::SettingNotSet => {
            ("The setting has no value and no default.", "Set it: `sessile config set KEY VALUE --global`.")
        }
        Code::SessionNotFound => (
            "The session never existed, was cleared, or belongs to another user or service.",
            "List sessions: `sessile session list`.",
        ),
        Code::SessionExpired => (
            "The session was idle for too long, reached its maximum lifetime, or was stopped.",
            "Start it again: `sessile run --session NAME --new -- COMMAND`.",
        ),
        Code::SessionRequired => (
            "The command works in a session, and the call selects none.",
            "Pass `--session NAME`, or start one: `sessile session start`.",
        ),
        Code::AmbiguousSession => (
            "The prefix matches the ids of several sessions.",
            "Pass more characters of the id, or the name.",
        ),
        Code::SessionExists => (
            "A live session has the name.",
            "Use it: `--session NAME`; or stop it: `sessile session stop NAME`.",
        ),
        Code::ContextFixed => (
            "The session is pinned to another context for its whole life.",
            "Start another session with the context.",
        ),
        Code::StopFailed => (
            "SIGKILL did not end a process of the session, for example because it hangs in a system call.",
            "Find the process in `sessile session show NAME`, then stop the session again.",
        ),
        Code::RevisionConflict => (
            "Another process changed the value after you read it.",
            "Read the value again, then retry with the new revision.",
        ),
        Code::EntryNotFound => {
            ("The key is misspelt, or was removed.", "List the keys: `sessile session state list`.")
        }
        Code::LockNotFound => {
            ("The lock was released, or its lease expired.", "List locks: `sessile lock list`.")
        }
        Code::LockLost => (
            "The lease expired before the work ended, or another process broke the lock.",
            "Acquire the lock again, with a longer `--ttl`, and check the work so far.",
        ),
        Code::OperationNotFound => (
            "The id is wrong, or the operation belongs to another state directory.",
            "List operations: `sessile history`.",
        ),
        Code::UndoRefused => (
            "A later operation changed the same thing, the change contained a secret, or the command cannot be undone.",
            "Undo the later operation first, or make the change yourself.",
        ),
        Code::ProjectNotFound => (
            "The directory has no `.sessile/`, or the file was never trusted.",
            "List trusted files: `sessile trust --list`.",
        ),
        Code::ApprovalNotFound => (
            "The approval has already ended, or the request is unknown.",
            "List approvals and requests: `sessile context approve --list`.",
        ),
        Code::FileNotFound => ("The path is wrong, or relative to another directory.", "Check the path."),
        Code::ContextExists => (
            "A context of this name exists in the same scope.",
            "Change it: `sessile context edit NAME`; or choose another name.",
        ),
        Code::FileExists => {
            ("The command never replaces a file.", "Choose another path, or move the file away.")
        }
        Code::ContextPinned => (
            "A live session uses the context, so it cannot be renamed or deleted.",
            "Stop the session first: `sessile session list`, then `sessile session stop NAME`.",
        ),
        Code::LockHeld => (
            "Another process holds the lock, and the timeout elapsed.",
            "Wait longer with `--lock-timeout DURATION`, or list the holders: `sessile lock list`.",
        ),
        Code::ConcurrentChange => {
            ("Another process wrote the file while you edited it.", "Run the command again.")
        }
        Code::GuardExplicit => (
            "The context has the guard `explicit`, and the call does not name it: a terminal, directory or setting selects it.",
            "Pass `--context NAME`.",
        ),
        Code::GuardApproval => (
            "The context has the guard `approval`, and no approval is active.",
            "Approve it at a terminal, outside any session: `sessile context approve NAME --for 30m`.",
        ),
        Code::ProtectedTarget => (
            "Only guarded contexts bind the target, so other sessions do not contain it.",
            "Pass `--context` with a context that binds another target, or approve the guarded context.",
        ),
        Code::InSession => (
            "The command changes something outside the session that runs it.",
            "Run it at a terminal, outside the session.",
        ),
        Code::WrongPin => (
            "The PIN is wrong. Five wrong PINs lock it for five minutes.",
            "Type the PIN again, after the lockout.",
        ),
        Code::ToolNotFound => (
            "No profile has this name or program.",
            "List tools: `sessile tool list`. Write a profile for a new one.",
        ),
        Code::ToolFile => (
            "A file of the tool that the context binds is damaged or has an unknown format.",
            "Repair the tool's own file; the message names it.",
        ),
        Code::ToolStateTooLarge => (
            "The tool keeps a cache or data beside its settings.",
            "Do not isolate the tool: `--set tools.except=NAME`; or write a profile that does not copy the cache.",
        ),
        Code::BindingInvalid => (
            "The context binds an unknown key, or a value that the tool does not accept.",
            "List the keys: `sessile tool show NAME`. Correct it: `sessile context edit NAME`.",
        ),
        Code::BindingNotIsolated => (
            "The tool has no variable for this binding, so the binding needs the level `home`.",
            "Pass `--isolate home`, or set it: `sessile context edit NAME --setting isolate=home`.",
        ),
        Code::BindingNotFound => (
            "The tool's files do not contain the bound target.",
            "Create the target with the tool, or bind another one: `sessile context edit NAME`.",
        ),
        Code::ContextUnexpected => (
            "The context differs from `--expect`.",
            "Pass `--context NAME`, or correct the selection: `sessile status`.",
        ),
        Code::CredentialNotFound => (
            "The vault has no such credential, or the setting `vault.backend` selects another vault.",
            "Create it: `sessile auth set NAME`. List credentials: `sessile auth list`.",
        ),
        Code::CredentialExists => (
            "Another credential has this name, or a name that maps to the same variable.",
            "Choose another name.",
        ),
        Code::CredentialsExpired => (
            "The secret is past its expiry, and Sessile cannot renew it.",
            "Set a new secret: `sessile auth set NAME`; or log in again: `sessile auth login NAME`.",
        ),
        Code::CredentialUnusable => (
            "The credential's command failed, its variable is empty, or its kind does not fit the use.",
            "Check it: `sessile auth check NAME`.",
        ),
        Code::CredentialRejected => (
            "The server does not accept the token: revoked, expired, of another server, or without the scope.",
            "Set a new secret: `sessile auth set NAME`.",
        ),
        Code::RenewalRefused => {
            ("The refresh token is revoked or expired.", "Log in again: `sessile auth login NAME`.")
        }
        Code::LoginRefused => (
            "A person denied the login, or the authorization server refused the client.",
            "Check the arguments, then log in again: `sessile auth login NAME`.",
        ),
        Code::SiteRefused => (
            "The credential does not allow the site, or the URL is not https.",
            "Allow the site: `sessile auth set NAME --keep-secret --site URL`.",
        ),
        Code::Unreachable => (
            "The server is down, the address is wrong, or TLS failed.",
            "Check the address and the network, then retry. The message names the cause.",
        ),
        Code::RateLimited => {
            ("The server received too many requests.", "Retry after the time in the message.")
        }
        Code::VaultDamaged => (
            "The vault file was truncated or changed by another program.",
            "Restore the file from a backup. Sessile does not overwrite it.",
        ),
        Code::VaultTooNew => ("A newer version of Sessile wrote the vault.", "Install the newer version."),
        Code::VaultWrongKey => (
            "The passphrase is wrong, or the key file belongs to another vault.",
            "Type the passphrase again, or restore the key file.",
        ),
        Code::VaultKeyMissing => {
            ("The key file was deleted or moved.", "Restore the key file; without it the secrets are lost.")
        }
        Code::VaultLocked => (
            "The vault needs a passphrase, and the call has no terminal.",
            "Unlock it: `sessile auth unlock`; or set `SESSILE_VAULT_PASSPHRASE_FILE`.",
        ),
        Code::VaultReadOnly => (
            "The backend is `env`, which reads variables only.",
            "Set the variable, or choose another backend: `sessile config set vault.backend file --global`.",
        ),
        Code::VaultHelper => (
            "The helper program failed, or returned an invalid response.",
            "Run the helper by hand to see its error.",
        ),
        Code::KeyFileExposed => {
            ("The mode of a file with a secret lets other users read it.", "Restrict it: `chmod 600 FILE`.")
        }
        Code::FileWritable => (
            "The owner or the mode of a file or its directory lets other users change it.",
            "Take ownership, and remove the write permission: `chmod go-w FILE`.",
        ),
        Code::KeyFileInvalid => {
            ("The file is not a key of Sessile.", "Name the right file, or restore it from a backup.")
        }
        Code::KeychainUnreachable => (
            "No Secret Service or Keychain runs in this login, for example over ssh.",
            "Log in at the desktop. To use the credentials elsewhere, move them there first: `sessile auth move --to file`.",
        ),
        Code::KeychainLocked => {
            ("The desktop's keychain is locked.", "Unlock it at the desktop, then run the command again.")
        }
        Code::KeychainRefused => {
            ("The keychain denied access to the item.", "Allow the access when the keychain prompts.")
        }
        Code::ConversationNotFound => (
            "The name or id is wrong, or the conversation was cleared.",
            "List conversations: `sessile conversation list --all`.",
        ),
        Code::NotSaved => (
            "The agent received the message, but the state database or a file of the reply could not be written.",
            "Do not send the message again. Save the files from the task: `sessile task download TASK --url AGENT`.",
        ),
        Code::ConversationExists => {
            ("The session already has a conversation of this name.", "Choose another name.")
        }
        Code::ConversationContext => (
            "The conversation was held in another context, or with another credential.",
            "Pass the `--context` and the `--credential` of the conversation.",
        ),
        Code::AgentNotFound => (
            "No setting names the agent.",
            "Add the agent: `sessile agent add NAME URL --global`; or pass its URL.",
        ),
        Code::AgentRefused => (
            "The agent returned an error; the message contains it.",
            "Correct the request. See the exchange: add `--debug`.",
        ),
        Code::AgentUnusable => (
            "The address does not serve an A2A card, or a reply violates the protocol.",
            "Check the address and the card: `sessile agent validate URL`.",
        ),
        Code::TaskNotFound => (
            "The agent deleted the task, or the id belongs to another agent.",
            "List tasks: `sessile task list AGENT`.",
        ),
        Code::TaskOver => {
            ("The task is completed, failed, rejected or canceled.", "Send the message without `--task-id`.")
        }
        Code::UserExists => (
            "The service has a user of this name.",
            "Create a token for the user: `sessile user token create NAME`.",
        ),
        Code::UserNotFound => {
            ("The name is misspelt, or the command uses another store.", "List users: `sessile user list`.")
        }
        Code::UserDisabled => {
            ("An administrator disabled the user.", "Enable the user: `sessile user disable NAME --undo`.")
        }
        Code::TokenNotFound => (
            "The id is wrong, or the command uses another store.",
            "List tokens: `sessile user token list NAME`.",
        ),
        Code::LoginNotFound => (
            "The code is wrong, expired after 15 minutes, or its token was collected.",
            "Log in again to get a new code: `sessile auth login --server URL`.",
        ),
        Code::LoginPending => {
            ("An administrator has not approved the code yet.", "Retry after the interval in the response.")
        }
        Code::EventsGone => (
            "The service keeps events for seven days, and the requested ones are older.",
            "Read the session, then follow it without `Last-Event-ID`.",
        ),
        Code::TimedOut => {
            ("The work took longer than the timeout.", "Pass a longer `--timeout` or `--wait`, or retry.")
        }
        Code::RoomUnsafe => (
            "The directory of a room belongs to another user, or others can write to it.",
            "Remove the directory, then run the command again.",
        ),
    };
    Remedy { cause, fix }
}
