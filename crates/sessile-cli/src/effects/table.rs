//! The rows of the table, and the error codes that they share.

use sessile::Code;
use sessile::call::SessionMode;

use super::CommandEntry;

/// Error codes of every command: arguments, variables, files and the store.
pub const COMMON: &[Code] = &[
    Code::Usage,
    Code::InvalidName,
    Code::InvalidValue,
    Code::UnknownSetting,
    Code::SecretRefused,
    Code::SelectionWithheld,
    Code::ContextNotFound,
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
    Code::FileWritable,
    Code::ProjectFileUnsafe,
    Code::Io,
    Code::StoreCorrupt,
    Code::Store,
    Code::StoreTooNew,
];

/// Error codes of writing a file or the store.
macro_rules! writing {
    ($($code:ident),* $(,)?) => {
        &[
            Code::LockHeld, Code::DiskFull, Code::NotRecorded, Code::NetworkFileSystem, Code::NoHome,
            $(Code::$code),*
        ]
    };
}

/// Error codes of opening the vault.
macro_rules! opening {
    ($($code:ident),* $(,)?) => {
        writing![
            CredentialNotFound, CredentialUnusable, VaultDamaged, VaultTooNew, VaultWrongKey, VaultKeyMissing, VaultLocked,
            VaultHelper, KeyFileExposed, KeyFileInvalid, KeychainUnreachable, KeychainLocked, KeychainRefused, Declined,
            $($code),*
        ]
    };
}

/// Error codes of using a credential, including its renewal.
macro_rules! using {
    ($($code:ident),* $(,)?) => {
        opening![CredentialsExpired, RenewalRefused, Unreachable, $($code),*]
    };
}

/// Error codes of commands that work against a session service.
macro_rules! there {
    ($($code:ident),* $(,)?) => {
        using![CredentialRejected, SiteRefused, RateLimited, TimedOut, $($code),*]
    };
}

/// Error codes of talking to an agent.
macro_rules! talking {
    ($($code:ident),* $(,)?) => {
        using![
            AgentNotFound, AgentRefused, AgentUnusable, TaskNotFound, TaskOver, CredentialRejected, SiteRefused, RateLimited,
            TimedOut, NotSaved, $($code),*
        ]
    };
}

/// Error codes of preparing a session's room.
macro_rules! preparing {
    ($($code:ident),* $(,)?) => {
        using![
            GuardExplicit, GuardApproval, UntrustedProject, SessionRequired, ContextUnexpected,
            ToolNotFound, ToolFile, ToolStateTooLarge, BindingInvalid, BindingNotIsolated, BindingNotFound, RoomUnsafe,
            ProtectedTarget,
            $($code),*
        ]
    };
}

/// Error codes of opening the service's store.
macro_rules! serving {
    ($($code:ident),* $(,)?) => {
        writing![Unreachable, CredentialRejected, $($code),*]
    };
}

const SETTINGS_FILE: &str = "the project's local.toml; with --dir, --project or --global the file they name";
const CONTEXT_FILE: &str = "the context's file";
const IMPORTED: &str = "new files among the user's contexts, and bindings in existing ones";
const TAKEN_OVER: &str = "new files among the user's contexts and bindings in existing ones, names of agents, a session with conversations, and credentials in the vault";
const VAULT: &str = "the vault";
const SERVICE: &str = "the service's store";
const LOCKS: &str = "the lock, here or on the server";
const SESSIONS: &str = "the session's name, here or on the server";

/// Every command.
///
/// Some commands are not idempotent, although they may seem so. `lock release` and `config unset` fail the second
/// time. `context use -` selects another context each time. `session state set` increments the revision. `auth
/// unlock`, `lock renew` and `context approve` restart a period. The exports prompt before they overwrite a file.
pub const TABLE: &[CommandEntry] = &[
    CommandEntry::write("agent add", SETTINGS_FILE, writing![ScopeRequired, InSession]).idempotent(),
    CommandEntry::read("agent card", talking![]).outside().acting_on_selection(),
    CommandEntry::read("agent demo", &[]).ignoring_selection(),
    CommandEntry::read("agent list", &[]),
    CommandEntry::read("agent listen", &[]).ignoring_selection(),
    CommandEntry::destructive("agent remove", SETTINGS_FILE, writing![ScopeRequired, AgentNotFound, InSession]),
    CommandEntry::read("agent show", talking![]).outside().acting_on_selection(),
    CommandEntry::read("agent validate", talking![]).outside().acting_on_selection(),
    CommandEntry::write("agent use", "the session; outside a session the settings file of the scope", writing![ScopeRequired, AgentNotFound, InSession]).idempotent(),
    CommandEntry::read("auth check", using![SiteRefused, CredentialRejected, RateLimited]).outside(),
    CommandEntry::destructive("auth clear", VAULT, opening![ConfirmationRequired, VaultReadOnly]).ignoring_selection(),
    CommandEntry::read("auth list", opening![]),
    CommandEntry::write(
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
    CommandEntry::destructive(
        "auth logout",
        "the vault, and copies in the rooms of sessions",
        opening![ConfirmationRequired, VaultReadOnly],
    ).ignoring_selection()
    .outside(),
    CommandEntry::write("auth move", "the old and the new backend of the vault", opening![CredentialExists]).ignoring_selection(),
    CommandEntry::write("auth refresh", VAULT, using![VaultReadOnly]).outside(),
    CommandEntry::write("auth rekey", VAULT, opening![TerminalRequired]).ignoring_selection(),
    CommandEntry::write("auth set", VAULT, opening![TerminalRequired, VaultReadOnly]).ignoring_selection().idempotent(),
    CommandEntry::read("auth show", opening![]),
    CommandEntry::read("auth status", opening![]),
    CommandEntry::write("auth unlock", "the runtime directory, until the timeout", opening![TerminalRequired]).ignoring_selection(),
    CommandEntry::read("completions", &[]).ignoring_selection()
        .tolerating_broken_settings(),
    CommandEntry::write(
        "config edit",
        SETTINGS_FILE,
        writing![ScopeRequired, TerminalRequired, EditorFailed, ConcurrentChange, InSession, GuardApproval],
    )
        .tolerating_broken_settings(),
    CommandEntry::read("config get", &[Code::SettingNotSet]),
    CommandEntry::read("config list", &[]),
    CommandEntry::read("config describe", &[]),
    CommandEntry::read("config path", &[Code::NoHome])
        .tolerating_broken_settings(),
    CommandEntry::read("config schema", &[]).ignoring_selection()
        .tolerating_broken_settings(),
    CommandEntry::write("config set", SETTINGS_FILE, writing![ScopeRequired, InSession]).idempotent(),
    CommandEntry::read("config show", &[]),
    CommandEntry::destructive("config unset", SETTINGS_FILE, writing![ScopeRequired, SettingNotSet, InSession]),
    CommandEntry::read("config validate", &[])
        .tolerating_broken_settings(),
    CommandEntry::write(
        "context approve",
        "the store, until the approval expires",
        writing![
            TerminalRequired,
            InSession,
            WrongPin,
            Declined,
            ApprovalNotFound,
            UntrustedProject
        ],
    ).ignoring_selection(),
    CommandEntry::write(
        "context create",
        "a new file among the user's contexts; with --project among the project's",
        writing![ContextExists, InSession, GuardApproval],
    ).ignoring_selection(),
    CommandEntry::read(
        "context current",
        &[
            Code::NoContext,
            Code::UntrustedProject,
            Code::GuardExplicit,
            Code::GuardApproval,
        ],
    ),
    CommandEntry::destructive(
        "context delete",
        "the context's file, and every selection of it",
        writing![ConfirmationRequired, Declined, InSession, GuardApproval],
    ).ignoring_selection(),
    CommandEntry::write(
        "context edit",
        CONTEXT_FILE,
        writing![TerminalRequired, EditorFailed, ConcurrentChange, InSession, GuardApproval],
    ).ignoring_selection(),
    CommandEntry::write(
        "context export",
        "the file of --file; nothing without it",
        writing![ConfirmationRequired, Declined],
    ).ignoring_selection(),
    CommandEntry::write(
        "context import",
        "files among the user's contexts; with --project among the project's",
        writing![ContextExists, TerminalRequired, InSession, GuardApproval],
    ).ignoring_selection(),
    CommandEntry::read("context list", &[])
        .tolerating_stale_session(),
    CommandEntry::write(
        "context rename",
        CONTEXT_FILE,
        writing![ContextPinned, ContextExists, InSession, GuardApproval],
    ).ignoring_selection(),
    CommandEntry::read("context show", &[Code::NoContext])
        .tolerating_stale_session(),
    CommandEntry::write(
        "context use",
        "this terminal; with --dir or --global the settings file they name",
        writing![NoContext, ScopeRequired, TerminalRequired, InSession, UntrustedProject],
    ).ignoring_selection()
        .tolerating_stale_session(),
    CommandEntry::destructive(
        "conversation clear",
        "the store",
        writing![ConversationNotFound, AgentNotFound, ConfirmationRequired, Declined],
    ),
    CommandEntry::destructive(
        "chat",
        "messages to the agent, the conversation and saved files; starts a session on a terminal; /forget deletes the conversation",
        talking![ConversationNotFound, ConversationExists, ConversationContext, SessionExists, SessionRequired, GuardExplicit, GuardApproval, UntrustedProject, ConfirmationRequired],
    )
    .outside()
        .with_session(SessionMode::StartMissing),
    CommandEntry::read("conversation export", there![ConversationNotFound, SessionRequired]).outside()
        .with_remote_session(),
    CommandEntry::read("conversation list", &[Code::AgentNotFound]),
    CommandEntry::write("conversation rename", "the store", writing![ConversationNotFound, ConversationExists]),
    CommandEntry::read("conversation search", &[]),
    CommandEntry::read("conversation show", there![ConversationNotFound, SessionRequired]).outside()
        .with_remote_session(),
    CommandEntry::write(
        "message send",
        "the agent and the session's conversation, or the server's session; an interactive call starts a session if necessary",
        talking![ConversationNotFound, ConversationExists, ConversationContext, SessionExists, SessionRequired, GuardExplicit, GuardApproval, UntrustedProject],
    )
    .outside()
        .with_session(SessionMode::StartMissing)
        .with_remote_session(),
    CommandEntry::write(
        "message stream",
        "the agent and the session's conversation, or the server's session; an interactive call starts a session if necessary",
        talking![ConversationNotFound, ConversationExists, ConversationContext, SessionExists, SessionRequired, GuardExplicit, GuardApproval, UntrustedProject],
    )
    .outside()
        .with_session(SessionMode::StartMissing)
        .with_remote_session(),
    CommandEntry::write("task cancel", "the agent", talking![]).outside(),
    CommandEntry::write("task download", "files in the directory of --dir", talking![]).outside().acting_on_selection(),
    CommandEntry::read("task get", talking![]).outside().acting_on_selection(),
    CommandEntry::read("task list", talking![]).outside().acting_on_selection(),
    CommandEntry::read("task notification get", talking![]).outside().acting_on_selection(),
    CommandEntry::read("task notification list", talking![]).outside().acting_on_selection(),
    CommandEntry::destructive("task notification remove", "the agent", talking![]).outside(),
    CommandEntry::write("task notification set", "the agent", talking![]).outside(),
    CommandEntry::read("task watch", talking![]).outside().acting_on_selection(),
    CommandEntry::write("backup", "the backup's file", writing![FileExists]).ignoring_selection(),
    CommandEntry::destructive(
        "backup restore",
        "the store; the replaced store is kept",
        writing![FileNotFound, FileExists, ConfirmationRequired, Declined, InSession],
    ).ignoring_selection(),
    CommandEntry::read("demo", &[Code::DiskFull]).ignoring_selection(),
    CommandEntry::read("doctor", writing![]).writing_on_request("the state database, with --repair; nothing without it")
        .reporting_missing_context()
        .tolerating_broken_settings()
        .tolerating_stale_session(),
    CommandEntry::write("env", "the session's room, which is prepared at its first use", preparing![]).idempotent(),
    CommandEntry::read("help", &[]).ignoring_selection(),
    CommandEntry::read("history", there![]).outside()
        .tolerating_stale_session()
        .with_remote_session(),
    CommandEntry::read("history show", &[Code::OperationNotFound])
        .tolerating_stale_session()
        .with_remote_session(),
    CommandEntry::read("hook", &[]).ignoring_selection()
        .tolerating_broken_settings()
        .tolerating_stale_session(),
    CommandEntry::write("hook install", "the start-up file of the shell", writing![ConfirmationRequired, Declined, InSession, ScopeRequired]).ignoring_selection()
        .idempotent(),
    CommandEntry::write("hook remove", "the start-up file of the shell", writing![ConfirmationRequired, Declined, InSession, ScopeRequired]).ignoring_selection()
        .idempotent(),
    CommandEntry::write("import", TAKEN_OVER, writing![ConfirmationRequired, Declined, InSession, GuardApproval, ContextExists])
        .ignoring_selection(),
    CommandEntry::write("import apply", IMPORTED, writing![InSession, GuardApproval, ContextExists])
        .ignoring_selection(),
    CommandEntry::read("import scan", &[]).ignoring_selection(),
    CommandEntry::write("lock acquire", LOCKS, there![UntrustedProject]).outside()
        .with_remote_session(),
    CommandEntry::destructive("lock break", LOCKS, there![LockNotFound, LockLost]).outside(),
    CommandEntry::read("lock list", there![]).outside()
        .tolerating_stale_session(),
    CommandEntry::write("lock release", LOCKS, there![LockLost]).outside(),
    CommandEntry::write("lock renew", LOCKS, there![LockLost]).outside(),
    CommandEntry::write("lock run", LOCKS, there![LockLost]).outside()
        .with_child_status(),
    CommandEntry::write("man", "the directory of --dir; nothing without it", writing![]).ignoring_selection().idempotent()
        .tolerating_broken_settings(),
    CommandEntry::read("manifest", &[]).ignoring_selection()
        .tolerating_broken_settings(),
    CommandEntry::write("mcp", "the state that clients change with its tools", &[]).outside()
        .reporting_selection()
        .with_session(SessionMode::StartEnded),
    CommandEntry::read("mcp config", &[])
        .with_session(SessionMode::StartEnded)
        .tolerating_broken_settings(),
    CommandEntry::write("probe", "the probed service", talking![]).outside(),
    CommandEntry::read("prompt", &[]),
    CommandEntry::write(
        "run",
        "the session and its room; an ephemeral session is deleted afterwards",
        preparing![
            SessionExists, LockLost, StopFailed, TimedOut, CredentialRejected, SiteRefused, RateLimited
        ],
    )
    .outside()
        .with_session(SessionMode::StartMissing)
        .with_child_status(),
    CommandEntry::write("serve", SERVICE, serving![]).ignoring_selection().outside(),
    CommandEntry::write("serve backup", "the backup's file", writing![FileNotFound, FileExists, StoreCorrupt]).ignoring_selection(),
    CommandEntry::destructive(
        "serve restore",
        "the service's store; the replaced store is kept",
        writing![FileNotFound, StoreCorrupt, ConfirmationRequired, Declined, InSession],
    ).ignoring_selection(),
    CommandEntry::write("session attach", "this terminal", writing![TerminalRequired, InSession])
        .tolerating_stale_session()
        .ignoring_selection()
        .idempotent(),
    CommandEntry::destructive(
        "session clear",
        "the store and the sessions' rooms",
        writing![ConfirmationRequired, Declined, StopFailed],
    ).ignoring_selection()
        .tolerating_stale_session(),
    CommandEntry::write("session detach", "this terminal", writing![TerminalRequired, InSession, SessionRequired])
        .tolerating_stale_session()
        .ignoring_selection(),
    CommandEntry::write(
        "session export",
        "the file of --file; nothing without it",
        writing![SessionRequired, ConfirmationRequired, Declined],
    ),
    CommandEntry::destructive("session gc", "the rooms of sessions that have expired; the systemd user units with --install-timer and --remove-timer", writing![]).ignoring_selection().idempotent()
        .tolerating_stale_session(),
    CommandEntry::write(
        "session import",
        "the store and a new room",
        writing![SessionExists, GuardApproval, TerminalRequired, UntrustedProject, InSession],
    )
        .with_session(SessionMode::New),
    CommandEntry::read("session list", there![]).outside()
        .tolerating_stale_session()
        .with_remote_session(),
    CommandEntry::read("session log", &[Code::SessionRequired])
        .tolerating_stale_session(),
    CommandEntry::write("session rename", SESSIONS, there![SessionExists]).outside()
        .with_remote_session(),
    CommandEntry::read("session show", there![SessionRequired]).outside()
        .tolerating_stale_session()
        .with_remote_session(),
    CommandEntry::write(
        "session start",
        "a new session and its room, or a session of the service; on a terminal also its selection",
        there![SessionExists, StopFailed, GuardExplicit, GuardApproval, UntrustedProject],
    )
    .outside()
        .with_session(SessionMode::New)
        .tolerating_stale_session()
        .with_remote_session(),
    CommandEntry::read("session state get", there![SessionRequired, EntryNotFound]).outside()
        .with_remote_session(),
    CommandEntry::read("session state list", there![SessionRequired]).outside()
        .with_remote_session(),
    CommandEntry::write("session state set", "the session", there![SessionRequired, RevisionConflict]).outside()
        .with_remote_session(),
    CommandEntry::destructive(
        "session state unset",
        "the session",
        there![SessionRequired, RevisionConflict, EntryNotFound],
    )
    .outside()
        .with_remote_session(),
    CommandEntry::destructive(
        "session stop",
        "the session, its room and its commands",
        there![SessionRequired, StopFailed, FileExists],
    ).ignoring_selection()
    .idempotent()
    .outside()
        .tolerating_stale_session()
        .with_remote_session(),
    CommandEntry::write("setup", "the agent's settings and skill, its wrapper, the start-up file of the shell", writing![ConfirmationRequired, Declined, InSession, ConcurrentChange])
        .ignoring_selection()
        .idempotent(),
    CommandEntry::write(
        "shell",
        "the session and its room; an ephemeral session is deleted afterwards",
        preparing![SessionExists],
    )
    .outside()
        .with_session(SessionMode::StartMissing)
        .with_child_status(),
    CommandEntry::read("skill", &[]).ignoring_selection()
        .tolerating_broken_settings()
        .tolerating_stale_session(),
    CommandEntry::read("status", &[]).reporting_missing_context(),
    CommandEntry::read("tool check", &[Code::ToolNotFound, Code::DiskFull, Code::NoHome]).ignoring_selection(),
    CommandEntry::read("tool list", &[]),
    CommandEntry::read("tool show", &[Code::ToolNotFound]),
    CommandEntry::write("trust", "the store", writing![ProjectNotFound, ConfirmationRequired, Declined, InSession]).ignoring_selection()
        .idempotent(),
    CommandEntry::destructive("tui", "the state: each key runs the command that it names", there![TerminalRequired]).outside()
        .reporting_missing_context()
        .tolerating_broken_settings()
        .tolerating_stale_session(),
    CommandEntry::write("user add", SERVICE, serving![UserExists]).ignoring_selection().outside(),
    CommandEntry::write("user approve", SERVICE, serving![UserNotFound, UserDisabled, LoginNotFound, ConfirmationRequired, Declined]).ignoring_selection()
        .outside(),
    CommandEntry::read("user audit", serving![UserNotFound]).outside(),
    CommandEntry::write("user disable", SERVICE, serving![UserNotFound]).ignoring_selection().idempotent().outside(),
    CommandEntry::read("user list", serving![]).outside(),
    CommandEntry::write("user token create", SERVICE, serving![UserNotFound, UserDisabled]).ignoring_selection().outside(),
    CommandEntry::read("user token list", serving![UserNotFound]).outside(),
    CommandEntry::destructive("user token revoke", SERVICE, serving![TokenNotFound]).ignoring_selection().idempotent().outside(),
    CommandEntry::write("undo", "the state that the operation changed", writing![OperationNotFound, UndoRefused, InSession, GuardApproval]),
];
