//! Error codes, shared by every surface: command line, HTTP, MCP.

use crate::exit;

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal, $exit:expr;)+) => {
        /// A stable error code. Codes are only ever added.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $($(#[doc = $doc])+ $name),+ }

        impl Code {
            /// Every code, in the order of the reference.
            pub const ALL: &[Code] = &[$(Code::$name),+];

            /// The code as it stands in JSON and in the documents.
            pub const fn as_str(self) -> &'static str { match self { $(Code::$name => $text),+ } }

            /// The exit status that goes with it.
            pub const fn exit(self) -> u8 { match self { $(Code::$name => $exit),+ } }

            /// Meaning, in one sentence.
            pub fn about(self) -> &'static str {
                match self { $(Code::$name => concat!($($doc),+).trim()),+ }
            }
        }
    };
}

codes! {
    /// The arguments do not fit the command.
    Usage = "USAGE", exit::USAGE;
    /// A name has characters or a form that names may not have.
    InvalidName = "INVALID_NAME", exit::USAGE;
    /// A value does not fit its setting, flag or variable.
    InvalidValue = "INVALID_VALUE", exit::USAGE;
    /// No setting has this key.
    UnknownSetting = "UNKNOWN_SETTING", exit::USAGE;
    /// A change requires a scope.
    ScopeRequired = "SCOPE_REQUIRED", exit::USAGE;
    /// The change needs a yes, and nobody is there to give it.
    ConfirmationRequired = "CONFIRMATION_REQUIRED", exit::USAGE;
    /// The command needs a person at a terminal.
    TerminalRequired = "TERMINAL_REQUIRED", exit::USAGE;
    /// The terminal has selected a session or context, but this call is not interactive and names neither.
    SelectionWithheld = "SELECTION_WITHHELD", exit::USAGE;
    /// A secret was about to be kept outside the vault.
    SecretRefused = "SECRET_REFUSED", exit::USAGE;
    /// The answer was no; nothing was changed.
    Declined = "DECLINED", exit::FAILED;
    /// A file is not valid TOML or JSON.
    FileSyntax = "FILE_SYNTAX", exit::FAILED;
    /// A file holds a value of the wrong type, or one that is not allowed there.
    FileValue = "FILE_VALUE", exit::FAILED;
    /// A file is larger than any file of its kind can sensibly be.
    FileTooLarge = "FILE_TOO_LARGE", exit::FAILED;
    /// A file is not valid UTF-8.
    FileNotUtf8 = "FILE_NOT_UTF8", exit::FAILED;
    /// A path is not a regular file.
    NotAFile = "NOT_A_FILE", exit::FAILED;
    /// The system refused to read or write a file.
    Io = "IO", exit::FAILED;
    /// No space left for a file; the old version is untouched.
    DiskFull = "DISK_FULL", exit::FAILED;
    /// The change was made, but could not be recorded in the history.
    NotRecorded = "NOT_RECORDED", exit::PARTIAL;
    /// The editor could not be started, or failed.
    EditorFailed = "EDITOR_FAILED", exit::FAILED;
    /// The state database is damaged.
    StoreCorrupt = "STORE_CORRUPT", exit::FAILED;
    /// The state database failed.
    Store = "STORE", exit::FAILED;
    /// The state database was written by a newer version.
    StoreTooNew = "STORE_TOO_NEW", exit::PRECONDITION;
    /// The state directory is on a network file system, where locks cannot be relied on.
    NetworkFileSystem = "NETWORK_FILE_SYSTEM", exit::PRECONDITION;
    /// No home directory is known, so the file has no place.
    NoHome = "NO_HOME", exit::PRECONDITION;
    /// The project has not been trusted, so what it asks for was not done.
    UntrustedProject = "UNTRUSTED_PROJECT", exit::PRECONDITION;
    /// A project's file is behind a link that leads out of the project, or is owned by another user.
    ProjectFileUnsafe = "PROJECT_FILE_UNSAFE", exit::NOT_ALLOWED;
    /// Context not found.
    ContextNotFound = "CONTEXT_NOT_FOUND", exit::NOT_FOUND;
    /// No context is selected.
    NoContext = "NO_CONTEXT", exit::NOT_FOUND;
    /// The setting has no value anywhere.
    SettingNotSet = "SETTING_NOT_SET", exit::NOT_FOUND;
    /// Session not found.
    SessionNotFound = "SESSION_NOT_FOUND", exit::NOT_FOUND;
    /// The session has expired or was ended.
    SessionExpired = "SESSION_EXPIRED", exit::PRECONDITION;
    /// A session must be named, and none is in force here.
    SessionRequired = "SESSION_REQUIRED", exit::USAGE;
    /// More than one session has an id that begins so.
    AmbiguousSession = "AMBIGUOUS_SESSION", exit::USAGE;
    /// A live session has this name.
    SessionExists = "SESSION_EXISTS", exit::CONFLICT;
    /// A session keeps the context it was started with.
    ContextFixed = "CONTEXT_FIXED", exit::NOT_ALLOWED;
    /// A process still runs in the session, so the session was not stopped.
    StopFailed = "STOP_FAILED", exit::FAILED;
    /// The entry was changed by someone else in the meantime.
    RevisionConflict = "REVISION_CONFLICT", exit::CONFLICT;
    /// State value not found in the session.
    EntryNotFound = "ENTRY_NOT_FOUND", exit::NOT_FOUND;
    /// Lock is not held.
    LockNotFound = "LOCK_NOT_FOUND", exit::NOT_FOUND;
    /// The lock or turn is lost: it expired, was released or was broken.
    LockLost = "LOCK_LOST", exit::CONFLICT;
    /// Operation not found in the history.
    OperationNotFound = "OPERATION_NOT_FOUND", exit::NOT_FOUND;
    /// The operation cannot be undone, or no longer.
    UndoRefused = "UNDO_REFUSED", exit::CONFLICT;
    /// Project directory or trusted file not found.
    ProjectNotFound = "PROJECT_NOT_FOUND", exit::NOT_FOUND;
    /// No approval to revoke.
    ApprovalNotFound = "APPROVAL_NOT_FOUND", exit::NOT_FOUND;
    /// File not found.
    FileNotFound = "FILE_NOT_FOUND", exit::NOT_FOUND;
    /// A context of this name exists already.
    ContextExists = "CONTEXT_EXISTS", exit::CONFLICT;
    /// A file of this name exists already.
    FileExists = "FILE_EXISTS", exit::CONFLICT;
    /// Live sessions are pinned to the context.
    ContextPinned = "CONTEXT_PINNED", exit::CONFLICT;
    /// Another process holds the lock.
    LockHeld = "LOCK_HELD", exit::CONFLICT;
    /// The file was changed by someone else in the meantime.
    ConcurrentChange = "CONCURRENT_CHANGE", exit::CONFLICT;
    /// The context is guarded and was not named explicitly.
    GuardExplicit = "GUARD_EXPLICIT", exit::NOT_ALLOWED;
    /// The context is guarded and no approval is in force.
    GuardApproval = "GUARD_APPROVAL", exit::NOT_ALLOWED;
    /// Only guarded contexts bind the target.
    ProtectedTarget = "PROTECTED_TARGET", exit::NOT_ALLOWED;
    /// This cannot be done from inside a session.
    InSession = "IN_SESSION", exit::NOT_ALLOWED;
    /// The PIN is wrong, or was wrong too often.
    WrongPin = "WRONG_PIN", exit::NOT_ALLOWED;
    /// Tool not found.
    ToolNotFound = "TOOL_NOT_FOUND", exit::NOT_FOUND;
    /// A tool's own file could not be understood.
    ToolFile = "TOOL_FILE", exit::FAILED;
    /// A tool's state is too large to be copied into a session.
    ToolStateTooLarge = "TOOL_STATE_TOO_LARGE", exit::FAILED;
    /// A context's binding of a tool is invalid.
    BindingInvalid = "BINDING_INVALID", exit::FAILED;
    /// A context's binding of a tool takes no effect at the isolation level in use.
    BindingNotIsolated = "BINDING_NOT_ISOLATED", exit::PRECONDITION;
    /// A context binds a tool to something that is not there.
    BindingNotFound = "BINDING_NOT_FOUND", exit::NOT_FOUND;
    /// Another context is in use than was expected.
    ContextUnexpected = "CONTEXT_UNEXPECTED", exit::PRECONDITION;
    /// The vault has no such credential.
    CredentialNotFound = "CREDENTIAL_NOT_FOUND", exit::CREDENTIALS;
    /// Another credential has this name.
    CredentialExists = "CREDENTIAL_EXISTS", exit::CONFLICT;
    /// The credential's time is up, and it could not be renewed.
    CredentialsExpired = "CREDENTIALS_EXPIRED", exit::CREDENTIALS;
    /// The credential exists, but cannot be used.
    CredentialUnusable = "CREDENTIAL_UNUSABLE", exit::CREDENTIALS;
    /// The server does not accept the credential.
    CredentialRejected = "CREDENTIAL_REJECTED", exit::CREDENTIALS;
    /// The authorization server did not renew the credential; a new login is needed.
    RenewalRefused = "RENEWAL_REFUSED", exit::CREDENTIALS;
    /// The authorization server gave no token.
    LoginRefused = "LOGIN_REFUSED", exit::CREDENTIALS;
    /// The credential may not be sent to this site.
    SiteRefused = "SITE_REFUSED", exit::NOT_ALLOWED;
    /// A server cannot be reached.
    Unreachable = "UNREACHABLE", exit::UNREACHABLE;
    /// A server wants fewer requests.
    RateLimited = "RATE_LIMITED", exit::RATE_LIMITED;
    /// The vault is not as it was written; nothing was changed.
    VaultDamaged = "VAULT_DAMAGED", exit::FAILED;
    /// The vault was written by a newer version.
    VaultTooNew = "VAULT_TOO_NEW", exit::PRECONDITION;
    /// This key or passphrase does not open the vault.
    VaultWrongKey = "VAULT_WRONG_KEY", exit::CREDENTIALS;
    /// The vault is there and its key is not.
    VaultKeyMissing = "VAULT_KEY_MISSING", exit::CREDENTIALS;
    /// The vault needs its passphrase, and nobody can be asked.
    VaultLocked = "VAULT_LOCKED", exit::CREDENTIALS;
    /// Credentials are read from variables and cannot be set.
    VaultReadOnly = "VAULT_READ_ONLY", exit::NOT_ALLOWED;
    /// The program that keeps credentials failed.
    VaultHelper = "VAULT_HELPER", exit::FAILED;
    /// Others can read a file with a secret.
    KeyFileExposed = "KEY_FILE_EXPOSED", exit::NOT_ALLOWED;
    /// Other users can change or replace a file that must be trusted.
    FileWritable = "FILE_WRITABLE", exit::NOT_ALLOWED;
    /// A key file holds something else.
    KeyFileInvalid = "KEY_FILE_INVALID", exit::FAILED;
    /// The desktop's keychain cannot be reached.
    KeychainUnreachable = "KEYCHAIN_UNREACHABLE", exit::UNREACHABLE;
    /// The desktop's keychain is locked.
    KeychainLocked = "KEYCHAIN_LOCKED", exit::CREDENTIALS;
    /// The desktop's keychain refused.
    KeychainRefused = "KEYCHAIN_REFUSED", exit::FAILED;
    /// Conversation not found.
    ConversationNotFound = "CONVERSATION_NOT_FOUND", exit::NOT_FOUND;
    /// The message was delivered, and the conversation could not be saved.
    NotSaved = "NOT_SAVED", exit::PARTIAL;
    /// A conversation of this name exists already in the session.
    ConversationExists = "CONVERSATION_EXISTS", exit::CONFLICT;
    /// Agent not found.
    AgentNotFound = "AGENT_NOT_FOUND", exit::NOT_FOUND;
    /// The agent answered with an error.
    AgentRefused = "AGENT_REFUSED", exit::FAILED;
    /// The address is not an agent's, or the agent violates the protocol.
    AgentUnusable = "AGENT_UNUSABLE", exit::FAILED;
    /// The agent does not know the task.
    TaskNotFound = "TASK_NOT_FOUND", exit::NOT_FOUND;
    /// The task has ended and takes nothing more.
    TaskOver = "TASK_OVER", exit::CONFLICT;
    /// A user of the service has this name already.
    UserExists = "USER_EXISTS", exit::CONFLICT;
    /// User of the service not found.
    UserNotFound = "USER_NOT_FOUND", exit::NOT_FOUND;
    /// The user of the service is disabled.
    UserDisabled = "USER_DISABLED", exit::NOT_ALLOWED;
    /// Token of the service not found.
    TokenNotFound = "TOKEN_NOT_FOUND", exit::NOT_FOUND;
    /// No login waits under this code: it is not one, its time is over, or its token was collected.
    LoginNotFound = "LOGIN_NOT_FOUND", exit::NOT_FOUND;
    /// The login is not approved yet.
    LoginPending = "LOGIN_PENDING", exit::CONFLICT;
    /// The requested events are past their retention.
    EventsGone = "EVENTS_GONE", exit::NOT_FOUND;
    /// A time limit was exceeded.
    TimedOut = "TIMED_OUT", exit::TIMED_OUT;
    /// A directory that was to be a room may be another's.
    RoomUnsafe = "ROOM_UNSAFE", exit::NOT_ALLOWED;
}

impl Code {
    /// Whether the same call may succeed later without anything being changed by its caller.
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            Code::LockHeld
                | Code::ConcurrentChange
                | Code::RevisionConflict
                | Code::Unreachable
                | Code::RateLimited
                | Code::LoginPending
        )
    }
}
