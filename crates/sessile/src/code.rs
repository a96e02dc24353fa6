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

            /// Text of the code in JSON and in the documents.
            pub const fn as_str(self) -> &'static str { match self { $(Code::$name => $text),+ } }

            /// Exit status of the code.
            pub const fn exit(self) -> u8 { match self { $(Code::$name => $exit),+ } }

            /// Meaning, in one sentence.
            pub fn about(self) -> &'static str {
                match self { $(Code::$name => concat!($($doc),+).trim()),+ }
            }
        }
    };
}

codes! {
    /// Invalid arguments.
    Usage = "USAGE", exit::USAGE;
    /// Invalid name.
    InvalidName = "INVALID_NAME", exit::USAGE;
    /// Invalid value of a setting, flag or variable.
    InvalidValue = "INVALID_VALUE", exit::USAGE;
    /// Setting not found.
    UnknownSetting = "UNKNOWN_SETTING", exit::USAGE;
    /// A change requires a scope.
    ScopeRequired = "SCOPE_REQUIRED", exit::USAGE;
    /// Confirmation required, but the call is not interactive.
    ConfirmationRequired = "CONFIRMATION_REQUIRED", exit::USAGE;
    /// The command requires an interactive terminal.
    TerminalRequired = "TERMINAL_REQUIRED", exit::USAGE;
    /// A session or context is selected for this terminal, but the call is not interactive and names neither.
    SelectionWithheld = "SELECTION_WITHHELD", exit::USAGE;
    /// Secrets are not allowed outside the vault.
    SecretRefused = "SECRET_REFUSED", exit::USAGE;
    /// Not confirmed; nothing was changed.
    Declined = "DECLINED", exit::FAILED;
    /// A file is not valid TOML or JSON.
    FileSyntax = "FILE_SYNTAX", exit::FAILED;
    /// A file contains an invalid value.
    FileValue = "FILE_VALUE", exit::FAILED;
    /// A file is too large.
    FileTooLarge = "FILE_TOO_LARGE", exit::FAILED;
    /// A file is not valid UTF-8.
    FileNotUtf8 = "FILE_NOT_UTF8", exit::FAILED;
    /// A path is not a regular file.
    NotAFile = "NOT_A_FILE", exit::FAILED;
    /// Reading or writing a file failed.
    Io = "IO", exit::FAILED;
    /// The disk is full; the old file is unchanged.
    DiskFull = "DISK_FULL", exit::FAILED;
    /// The change was made, but could not be recorded in the history.
    NotRecorded = "NOT_RECORDED", exit::PARTIAL;
    /// The editor failed.
    EditorFailed = "EDITOR_FAILED", exit::FAILED;
    /// The state database is damaged.
    StoreCorrupt = "STORE_CORRUPT", exit::FAILED;
    /// The state database failed.
    Store = "STORE", exit::FAILED;
    /// The state database was written by a newer version.
    StoreTooNew = "STORE_TOO_NEW", exit::PRECONDITION;
    /// The state directory is on a network file system, which does not support reliable locks.
    NetworkFileSystem = "NETWORK_FILE_SYSTEM", exit::PRECONDITION;
    /// No home directory found.
    NoHome = "NO_HOME", exit::PRECONDITION;
    /// The project is not trusted.
    UntrustedProject = "UNTRUSTED_PROJECT", exit::PRECONDITION;
    /// A project's file is a link out of the project, or another user owns it.
    ProjectFileUnsafe = "PROJECT_FILE_UNSAFE", exit::NOT_ALLOWED;
    /// Context not found.
    ContextNotFound = "CONTEXT_NOT_FOUND", exit::NOT_FOUND;
    /// No context is selected.
    NoContext = "NO_CONTEXT", exit::NOT_FOUND;
    /// The setting is not set.
    SettingNotSet = "SETTING_NOT_SET", exit::NOT_FOUND;
    /// Session not found.
    SessionNotFound = "SESSION_NOT_FOUND", exit::NOT_FOUND;
    /// The session has expired or ended.
    SessionExpired = "SESSION_EXPIRED", exit::PRECONDITION;
    /// No session selected.
    SessionRequired = "SESSION_REQUIRED", exit::USAGE;
    /// The prefix of the session's id is ambiguous.
    AmbiguousSession = "AMBIGUOUS_SESSION", exit::USAGE;
    /// A live session with this name already exists.
    SessionExists = "SESSION_EXISTS", exit::CONFLICT;
    /// The context of a session never changes.
    ContextFixed = "CONTEXT_FIXED", exit::NOT_ALLOWED;
    /// The session was not stopped: a process is still running.
    StopFailed = "STOP_FAILED", exit::FAILED;
    /// Revision conflict: another process changed the value.
    RevisionConflict = "REVISION_CONFLICT", exit::CONFLICT;
    /// State value not found in the session.
    EntryNotFound = "ENTRY_NOT_FOUND", exit::NOT_FOUND;
    /// Lock is not held.
    LockNotFound = "LOCK_NOT_FOUND", exit::NOT_FOUND;
    /// The lock or turn was lost: its lease expired, or it was released or broken.
    LockLost = "LOCK_LOST", exit::CONFLICT;
    /// Operation not found in the history.
    OperationNotFound = "OPERATION_NOT_FOUND", exit::NOT_FOUND;
    /// The operation cannot be undone.
    UndoRefused = "UNDO_REFUSED", exit::CONFLICT;
    /// Project directory or trusted file not found.
    ProjectNotFound = "PROJECT_NOT_FOUND", exit::NOT_FOUND;
    /// No approval to revoke.
    ApprovalNotFound = "APPROVAL_NOT_FOUND", exit::NOT_FOUND;
    /// File not found.
    FileNotFound = "FILE_NOT_FOUND", exit::NOT_FOUND;
    /// The context already exists.
    ContextExists = "CONTEXT_EXISTS", exit::CONFLICT;
    /// The file already exists.
    FileExists = "FILE_EXISTS", exit::CONFLICT;
    /// Live sessions are pinned to the context.
    ContextPinned = "CONTEXT_PINNED", exit::CONFLICT;
    /// Another process holds the lock.
    LockHeld = "LOCK_HELD", exit::CONFLICT;
    /// Another process changed the file.
    ConcurrentChange = "CONCURRENT_CHANGE", exit::CONFLICT;
    /// The context is guarded and was not named explicitly.
    GuardExplicit = "GUARD_EXPLICIT", exit::NOT_ALLOWED;
    /// The context is guarded and has no active approval.
    GuardApproval = "GUARD_APPROVAL", exit::NOT_ALLOWED;
    /// The target is protected: only guarded contexts bind it.
    ProtectedTarget = "PROTECTED_TARGET", exit::NOT_ALLOWED;
    /// Not allowed inside a session.
    InSession = "IN_SESSION", exit::NOT_ALLOWED;
    /// Wrong PIN, or too many wrong attempts.
    WrongPin = "WRONG_PIN", exit::NOT_ALLOWED;
    /// Tool not found.
    ToolNotFound = "TOOL_NOT_FOUND", exit::NOT_FOUND;
    /// A tool's file cannot be parsed.
    ToolFile = "TOOL_FILE", exit::FAILED;
    /// A tool's state is too large to copy.
    ToolStateTooLarge = "TOOL_STATE_TOO_LARGE", exit::FAILED;
    /// A context's binding of a tool is invalid.
    BindingInvalid = "BINDING_INVALID", exit::FAILED;
    /// The isolation level in use cannot apply a binding of the context.
    BindingNotIsolated = "BINDING_NOT_ISOLATED", exit::PRECONDITION;
    /// The target of a binding was not found.
    BindingNotFound = "BINDING_NOT_FOUND", exit::NOT_FOUND;
    /// Unexpected context.
    ContextUnexpected = "CONTEXT_UNEXPECTED", exit::PRECONDITION;
    /// Credential not found in the vault.
    CredentialNotFound = "CREDENTIAL_NOT_FOUND", exit::CREDENTIALS;
    /// Another credential with this name already exists.
    CredentialExists = "CREDENTIAL_EXISTS", exit::CONFLICT;
    /// The credential has expired and could not be renewed.
    CredentialsExpired = "CREDENTIALS_EXPIRED", exit::CREDENTIALS;
    /// The credential exists, but cannot be used.
    CredentialUnusable = "CREDENTIAL_UNUSABLE", exit::CREDENTIALS;
    /// The server rejected the credential.
    CredentialRejected = "CREDENTIAL_REJECTED", exit::CREDENTIALS;
    /// The authorization server refused to renew the credential; log in again.
    RenewalRefused = "RENEWAL_REFUSED", exit::CREDENTIALS;
    /// The authorization server issued no token.
    LoginRefused = "LOGIN_REFUSED", exit::CREDENTIALS;
    /// The site is not allowed for the credential.
    SiteRefused = "SITE_REFUSED", exit::NOT_ALLOWED;
    /// A server cannot be reached.
    Unreachable = "UNREACHABLE", exit::UNREACHABLE;
    /// Rate limit exceeded.
    RateLimited = "RATE_LIMITED", exit::RATE_LIMITED;
    /// The vault is damaged; nothing was changed.
    VaultDamaged = "VAULT_DAMAGED", exit::FAILED;
    /// The vault was written by a newer version.
    VaultTooNew = "VAULT_TOO_NEW", exit::PRECONDITION;
    /// Wrong key or passphrase of the vault.
    VaultWrongKey = "VAULT_WRONG_KEY", exit::CREDENTIALS;
    /// The vault's key file is missing.
    VaultKeyMissing = "VAULT_KEY_MISSING", exit::CREDENTIALS;
    /// The vault is locked: passphrase required.
    VaultLocked = "VAULT_LOCKED", exit::CREDENTIALS;
    /// Credentials are read from variables and cannot be set.
    VaultReadOnly = "VAULT_READ_ONLY", exit::NOT_ALLOWED;
    /// The vault helper failed.
    VaultHelper = "VAULT_HELPER", exit::FAILED;
    /// Other users can read a file with a secret.
    KeyFileExposed = "KEY_FILE_EXPOSED", exit::NOT_ALLOWED;
    /// Other users can change or replace a file that must be trusted.
    FileWritable = "FILE_WRITABLE", exit::NOT_ALLOWED;
    /// Invalid key file.
    KeyFileInvalid = "KEY_FILE_INVALID", exit::FAILED;
    /// The desktop's keychain cannot be reached.
    KeychainUnreachable = "KEYCHAIN_UNREACHABLE", exit::UNREACHABLE;
    /// The desktop's keychain is locked.
    KeychainLocked = "KEYCHAIN_LOCKED", exit::CREDENTIALS;
    /// The desktop's keychain refused the request.
    KeychainRefused = "KEYCHAIN_REFUSED", exit::FAILED;
    /// Conversation not found.
    ConversationNotFound = "CONVERSATION_NOT_FOUND", exit::NOT_FOUND;
    /// The message was delivered, and the conversation could not be saved.
    NotSaved = "NOT_SAVED", exit::PARTIAL;
    /// The conversation already exists in the session.
    ConversationExists = "CONVERSATION_EXISTS", exit::CONFLICT;
    /// The conversation belongs to another context or account.
    ConversationContext = "CONVERSATION_CONTEXT", exit::NOT_ALLOWED;
    /// Agent not found.
    AgentNotFound = "AGENT_NOT_FOUND", exit::NOT_FOUND;
    /// The agent answered with an error.
    AgentRefused = "AGENT_REFUSED", exit::FAILED;
    /// No A2A agent answers at this URL, or the agent violates the protocol.
    AgentUnusable = "AGENT_UNUSABLE", exit::FAILED;
    /// The agent does not know the task.
    TaskNotFound = "TASK_NOT_FOUND", exit::NOT_FOUND;
    /// The task has already ended.
    TaskOver = "TASK_OVER", exit::CONFLICT;
    /// The user of the service already exists.
    UserExists = "USER_EXISTS", exit::CONFLICT;
    /// User of the service not found.
    UserNotFound = "USER_NOT_FOUND", exit::NOT_FOUND;
    /// The user of the service is disabled.
    UserDisabled = "USER_DISABLED", exit::NOT_ALLOWED;
    /// Token of the service not found.
    TokenNotFound = "TOKEN_NOT_FOUND", exit::NOT_FOUND;
    /// Device login not found: the code is wrong, expired or already used.
    LoginNotFound = "LOGIN_NOT_FOUND", exit::NOT_FOUND;
    /// The login is not approved yet.
    LoginPending = "LOGIN_PENDING", exit::CONFLICT;
    /// The requested events are past their retention.
    EventsGone = "EVENTS_GONE", exit::NOT_FOUND;
    /// A time limit was exceeded.
    TimedOut = "TIMED_OUT", exit::TIMED_OUT;
    /// The directory of a room may belong to another user.
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
