//! One reviewed table: what each command does to state, where, and how it can fail.
//!
//! It drives `manifest` and whatever describes the commands to programs. A test holds it against the parser.

use sessile::Code;

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It changes nothing.
    Read,
    /// It changes state in a way that can be changed back.
    Write,
    /// It removes something.
    Destructive,
}

impl Effect {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Effect::Read => "read",
            Effect::Write => "write",
            Effect::Destructive => "destructive",
        }
    }
}

/// A command's entry.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The words that name it.
    pub path: &'static str,
    /// What it does.
    pub effect: Effect,
    /// Where a change goes, and what decides that.
    pub scope: Option<&'static str>,
    /// The codes it can fail with, beside [`COMMON`].
    pub codes: &'static [Code],
    /// Doing it again with the same arguments succeeds and has no further effect.
    pub idempotent: bool,
    /// It talks to other machines or services, such as agents and login servers, or runs what may.
    pub outside: bool,
}

impl Entry {
    const fn idempotent(self) -> Self {
        Entry { idempotent: true, ..self }
    }

    const fn outside(self) -> Self {
        Entry { outside: true, ..self }
    }
}

/// What any command can fail with: it parses arguments and variables, reads files and may read the store.
pub const COMMON: &[Code] = &[
    Code::Usage,
    Code::InvalidName,
    Code::InvalidValue,
    Code::UnknownSetting,
    Code::SecretRefused,
    Code::SessionNotFound,
    Code::SessionExpired,
    Code::AmbiguousSession,
    Code::ContextFixed,
    Code::FileNotFound,
    Code::FileSyntax,
    Code::FileValue,
    Code::FileTooLarge,
    Code::FileNotUtf8,
    Code::NotAFile,
    Code::ProjectFileUnsafe,
    Code::Io,
    Code::StoreCorrupt,
    Code::Store,
    Code::StoreTooNew,
];

/// What writing a file or the store can fail with.
macro_rules! writing {
    ($($code:ident),* $(,)?) => {
        &[
            Code::LockHeld, Code::DiskFull, Code::NotRecorded, Code::NetworkFileSystem, Code::NoHome,
            $(Code::$code),*
        ]
    };
}

/// What opening the vault can fail with.
macro_rules! opening {
    ($($code:ident),* $(,)?) => {
        writing![
            CredentialNotFound, CredentialUnusable, VaultDamaged, VaultTooNew, VaultWrongKey, VaultKeyMissing, VaultLocked,
            VaultHelper, KeyFileExposed, KeyFileInvalid, KeychainUnreachable, KeychainLocked, KeychainRefused, Declined,
            $($code),*
        ]
    };
}

/// What using a credential can fail with: it may have to be renewed first.
macro_rules! using {
    ($($code:ident),* $(,)?) => {
        opening![CredentialsExpired, RenewalRefused, Unreachable, FileWritable, $($code),*]
    };
}

/// What a command can fail with that may work against a session service.
macro_rules! there {
    ($($code:ident),* $(,)?) => {
        using![CredentialRejected, SiteRefused, RateLimited, TimedOut, $($code),*]
    };
}

/// What talking to an agent can fail with.
macro_rules! talking {
    ($($code:ident),* $(,)?) => {
        using![
            AgentNotFound, AgentRefused, AgentUnusable, TaskNotFound, TaskOver, CredentialRejected, SiteRefused, RateLimited,
            TimedOut, $($code),*
        ]
    };
}

/// What preparing a session's room can fail with.
macro_rules! preparing {
    ($($code:ident),* $(,)?) => {
        using![
            ContextNotFound, GuardExplicit, GuardApproval, UntrustedProject, SessionRequired, ContextUnexpected,
            ToolNotFound, ToolFile, ToolStateTooLarge, BindingInvalid, BindingNotFound, RoomUnsafe,
            $($code),*
        ]
    };
}

const fn entry_of(
    path: &'static str,
    effect: Effect,
    scope: Option<&'static str>,
    codes: &'static [Code],
) -> Entry {
    Entry { path, effect, scope, codes, idempotent: matches!(effect, Effect::Read), outside: false }
}

/// What opening the service's store can fail with.
macro_rules! serving {
    ($($code:ident),* $(,)?) => {
        writing![Unreachable, CredentialRejected, FileWritable, $($code),*]
    };
}

const fn read(path: &'static str, codes: &'static [Code]) -> Entry {
    entry_of(path, Effect::Read, None, codes)
}

const fn write(path: &'static str, scope: &'static str, codes: &'static [Code]) -> Entry {
    entry_of(path, Effect::Write, Some(scope), codes)
}

const fn destructive(path: &'static str, scope: &'static str, codes: &'static [Code]) -> Entry {
    entry_of(path, Effect::Destructive, Some(scope), codes)
}

const SETTINGS_FILE: &str = "the project's local.toml; with --dir, --project or --global the file they name";
const CONTEXT_FILE: &str = "the context's file";
const VAULT: &str = "the vault";
const SERVICE: &str = "the service's store";
const LOCKS: &str = "the store, or the server's, for the time given or while the command lives";
const SESSIONS: &str = "the store, or the server's";

/// Every command.
///
/// Not idempotent, although it may seem so: what fails the second time (`lock release`, `config unset`); `context use`,
/// for which `-` is another context each time; `session state set`, whose revision grows; `auth unlock`, `lock renew` and
/// `context approve`, whose time begins anew; the exports, which ask before they write over a file.
pub const TABLE: &[Entry] = &[
    write("agent add", SETTINGS_FILE, writing![ScopeRequired, InSession]).idempotent(),
    read("agent card", talking![]).outside(),
    read("agent list", &[]),
    destructive("agent remove", SETTINGS_FILE, writing![ScopeRequired, AgentNotFound, InSession]),
    read("agent show", talking![]).outside(),
    read("agent validate", talking![]).outside(),
    read("auth check", using![SiteRefused, CredentialRejected, RateLimited]).outside(),
    destructive("auth clear", VAULT, opening![ConfirmationRequired, VaultReadOnly]),
    read("auth list", opening![]),
    write(
        "auth login",
        VAULT,
        opening![
            TerminalRequired,
            LoginRefused,
            Unreachable,
            RateLimited,
            TimedOut,
            VaultReadOnly,
            CredentialRejected,
            InSession
        ],
    )
    .outside(),
    destructive(
        "auth logout",
        "the vault, and copies in the rooms of sessions",
        opening![ConfirmationRequired, VaultReadOnly],
    )
    .outside(),
    write("auth move", "the vault, its old place and its new one", opening![CredentialExists]),
    write("auth refresh", VAULT, using![VaultReadOnly]).outside(),
    write("auth rekey", VAULT, opening![TerminalRequired]),
    write("auth set", VAULT, opening![TerminalRequired, VaultReadOnly]).idempotent(),
    read("auth show", opening![]),
    read("auth status", opening![]),
    write("auth unlock", "the runtime directory, for the time given", opening![TerminalRequired]),
    read("completions", &[]),
    write(
        "config edit",
        SETTINGS_FILE,
        writing![ScopeRequired, TerminalRequired, EditorFailed, ConcurrentChange, InSession, GuardApproval],
    ),
    read("config get", &[Code::SettingNotSet]),
    read("config list", &[]),
    read("config path", &[Code::NoHome]),
    read("config schema", &[]),
    write("config set", SETTINGS_FILE, writing![ScopeRequired, InSession]).idempotent(),
    read("config show", &[]),
    destructive("config unset", SETTINGS_FILE, writing![ScopeRequired, SettingNotSet, InSession]),
    read("config validate", &[]),
    write(
        "context approve",
        "the store, for the time given",
        writing![
            ContextNotFound,
            TerminalRequired,
            InSession,
            WrongPin,
            Declined,
            ApprovalNotFound,
            UntrustedProject
        ],
    ),
    write(
        "context create",
        "a new file among the user's contexts; with --project among the project's",
        writing![ContextExists, InSession, GuardApproval],
    ),
    read(
        "context current",
        &[
            Code::NoContext,
            Code::ContextNotFound,
            Code::UntrustedProject,
            Code::GuardExplicit,
            Code::GuardApproval,
        ],
    ),
    destructive(
        "context delete",
        "the context's file, and every selection of it",
        writing![ContextNotFound, ConfirmationRequired, Declined, InSession, GuardApproval],
    ),
    write(
        "context edit",
        CONTEXT_FILE,
        writing![ContextNotFound, TerminalRequired, EditorFailed, ConcurrentChange, InSession, GuardApproval],
    ),
    write(
        "context export",
        "the file given with --file; nothing without it",
        writing![ContextNotFound, ConfirmationRequired, Declined],
    ),
    write(
        "context import",
        "files among the user's contexts; with --project among the project's",
        writing![ContextExists, TerminalRequired, InSession, GuardApproval],
    ),
    read("context list", &[]),
    write(
        "context rename",
        CONTEXT_FILE,
        writing![ContextPinned, ContextNotFound, ContextExists, InSession, GuardApproval],
    ),
    read("context show", &[Code::NoContext, Code::ContextNotFound]),
    write(
        "context use",
        "this terminal; with --dir or --global the settings file they name",
        writing![ContextNotFound, NoContext, ScopeRequired, TerminalRequired, InSession, UntrustedProject],
    ),
    destructive(
        "conversation clear",
        "the store",
        writing![ConversationNotFound, AgentNotFound, ConfirmationRequired, Declined],
    ),
    read("conversation export", there![ConversationNotFound, SessionRequired]).outside(),
    read("conversation list", &[Code::AgentNotFound]),
    write("conversation rename", "the store", writing![ConversationNotFound, ConversationExists]),
    read("conversation show", there![ConversationNotFound, SessionRequired]).outside(),
    write(
        "message send",
        "the agent, and what the session remembers of it, or the server's session; on a terminal without a session one is started",
        talking![ConversationNotFound, ConversationExists, SessionExists, SessionRequired, ContextNotFound, GuardExplicit, GuardApproval, UntrustedProject],
    )
    .outside(),
    write(
        "message stream",
        "the agent, and what the session remembers of it, or the server's session; on a terminal without a session one is started",
        talking![ConversationNotFound, ConversationExists, SessionExists, SessionRequired, ContextNotFound, GuardExplicit, GuardApproval, UntrustedProject],
    )
    .outside(),
    write("task cancel", "the agent", talking![]).outside(),
    read("task get", talking![]).outside(),
    read("task list", talking![]).outside(),
    read("task notification get", talking![]).outside(),
    read("task notification list", talking![]).outside(),
    destructive("task notification remove", "the agent", talking![]).outside(),
    write("task notification set", "the agent", talking![]).outside(),
    read("task watch", talking![]).outside(),
    write("backup", "the backup's file", writing![FileExists]),
    destructive(
        "backup restore",
        "the store; what it replaces is kept",
        writing![FileNotFound, FileExists, ConfirmationRequired, Declined, InSession],
    ),
    read("demo", &[Code::DiskFull]),
    read("doctor", writing![]),
    write("env", "the session's room, which is prepared at its first use", preparing![]).idempotent(),
    read("history", there![]).outside(),
    read("history show", &[Code::OperationNotFound]),
    read("hook", &[]),
    write("lock acquire", LOCKS, there![]).outside(),
    destructive("lock break", LOCKS, there![LockNotFound, LockLost]).outside(),
    read("lock list", there![]).outside(),
    write("lock release", LOCKS, there![LockLost]).outside(),
    write("lock renew", LOCKS, there![LockLost]).outside(),
    write("lock run", LOCKS, there![LockLost]).outside(),
    write("man", "the directory given with --dir; nothing without it", writing![]).idempotent(),
    read("manifest", &[]),
    write("mcp", "whatever its tools are told to change", &[]).outside(),
    read("mcp config", &[Code::ContextNotFound]),
    write("probe", "the service that is probed", talking![]).outside(),
    read("prompt", &[]),
    write(
        "run",
        "the session and its room; a session of its own is gone afterwards",
        preparing![
            SessionExists, LockLost, StopFailed, TimedOut, CredentialRejected, SiteRefused, RateLimited
        ],
    )
    .outside(),
    write("serve", SERVICE, serving![]).outside(),
    write("serve backup", "the backup's file", writing![FileWritable, FileNotFound, FileExists, StoreCorrupt]),
    destructive(
        "serve restore",
        "the service's store; the replaced store is kept",
        writing![FileWritable, FileNotFound, StoreCorrupt, ConfirmationRequired, Declined, InSession],
    ),
    destructive(
        "session clear",
        "the store and the sessions' rooms",
        writing![ConfirmationRequired, Declined, StopFailed],
    ),
    write(
        "session export",
        "the file given with --file; nothing without it",
        writing![SessionRequired, ConfirmationRequired, Declined],
    ),
    destructive("session gc", "the rooms of sessions that have expired", writing![]).idempotent(),
    write(
        "session import",
        "the store and a new room",
        writing![SessionExists, ContextNotFound, GuardApproval, TerminalRequired, UntrustedProject],
    ),
    read("session list", there![]).outside(),
    write("session rename", SESSIONS, there![SessionExists]).outside(),
    read("session show", there![SessionRequired]).outside(),
    write(
        "session start",
        "the store and a new room, or the server's store; on a terminal also that terminal's selection",
        there![SessionExists, StopFailed, ContextNotFound, GuardExplicit, GuardApproval, UntrustedProject],
    )
    .outside(),
    read("session state get", there![SessionRequired, EntryNotFound]).outside(),
    read("session state list", there![SessionRequired]).outside(),
    write("session state set", "the session", there![SessionRequired, RevisionConflict]).outside(),
    destructive(
        "session state unset",
        "the session",
        there![SessionRequired, RevisionConflict, EntryNotFound],
    )
    .outside(),
    destructive(
        "session stop",
        "the session, its room and what runs in it",
        there![SessionRequired, StopFailed, FileExists],
    )
    .idempotent()
    .outside(),
    write(
        "shell",
        "the session and its room; a session of its own is gone afterwards",
        preparing![SessionExists],
    )
    .outside(),
    read("skill", &[]),
    read("status", &[]),
    read("tool check", &[Code::ToolNotFound, Code::DiskFull, Code::NoHome]),
    read("tool list", &[]),
    read("tool show", &[Code::ToolNotFound]),
    write("trust", "the store", writing![ProjectNotFound, ConfirmationRequired, Declined, InSession])
        .idempotent(),
    write("user add", SERVICE, serving![UserExists]).outside(),
    write("user approve", SERVICE, serving![UserNotFound, LoginNotFound, ConfirmationRequired, Declined])
        .outside(),
    read("user audit", serving![UserNotFound]).outside(),
    write("user disable", SERVICE, serving![UserNotFound]).idempotent().outside(),
    read("user list", serving![]).outside(),
    write("user token create", SERVICE, serving![UserNotFound]).outside(),
    read("user token list", serving![UserNotFound]).outside(),
    destructive("user token revoke", SERVICE, serving![TokenNotFound]).idempotent().outside(),
    write("undo", "whatever the operation changed", writing![OperationNotFound, UndoRefused, InSession, GuardApproval]),
];

/// The entry of a command.
pub fn entry(path: &str) -> Option<&'static Entry> {
    TABLE.iter().find(|entry| entry.path == path)
}
