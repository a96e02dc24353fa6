//! Everything that can go wrong, as data: what, where, and the next step.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::files::{Holder, UnsafeFile};
use crate::text::{quoted, shown};
use crate::vault::Expired;

/// The library's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A place in a file that a person edits, with the line itself to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The text of the line, shortened when it is very long; nothing if it may hold a secret.
    pub text: String,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", shown(self.path.display()), self.line, self.column)
    }
}

/// An error of the library. Its text names the thing and the place; [`Error::hint`] the next step.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The arguments contradict each other.
    #[error("{0}")]
    Usage(String),
    /// A name that may not be one.
    #[error("{} is not a valid {what} name: {reason}", quoted(name))]
    InvalidName {
        /// What the name is for.
        what: &'static str,
        /// The name given.
        name: String,
        /// Why it was refused.
        reason: std::borrow::Cow<'static, str>,
    },
    /// A value that does not fit.
    #[error("{place}: {} is not {expected}", quoted(value))]
    InvalidValue {
        /// The flag, variable or setting.
        place: String,
        /// The value given.
        value: String,
        /// What would fit.
        expected: String,
    },
    /// No setting has this key.
    #[error("there is no setting {}", quoted(key))]
    UnknownSetting {
        /// The key given.
        key: String,
        /// The known key nearest to it.
        near: Option<String>,
    },
    /// It must be said where a change is to go.
    #[error("{what}: say where it is to go")]
    ScopeRequired {
        /// What was asked.
        what: String,
        /// The flags that would say it.
        flags: &'static str,
    },
    /// A yes is needed and nobody is there.
    #[error("{what}: this needs a confirmation, and nobody can be asked")]
    ConfirmationRequired {
        /// What would be done, with what it affects.
        what: String,
    },
    /// A person is needed.
    #[error("{what} needs a person at a terminal")]
    TerminalRequired {
        /// What was asked.
        what: String,
        /// What to do instead.
        instead: String,
    },
    /// A secret outside the vault.
    #[error("{place}: a secret does not belong here")]
    SecretRefused {
        /// Where it was found.
        place: String,
        /// What to do instead.
        instead: &'static str,
    },
    /// A person said no.
    #[error("{0}: not confirmed, nothing was changed")]
    Declined(String),
    /// A syntax error.
    #[error("{place}: {message}")]
    FileSyntax {
        /// Where.
        place: Box<Place>,
        /// What the parser says.
        message: String,
    },
    /// A value of the wrong type.
    #[error("{place}: {} must be {expected}, not {found}", quoted(key))]
    FileValue {
        /// Where.
        place: Box<Place>,
        /// The key.
        key: String,
        /// What would fit.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A file over the limit.
    #[error("{} is {size} bytes; the limit for such a file is {limit}", shown(path.display()))]
    FileTooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// A file that is not text.
    #[error("{} is not valid UTF-8 (first bad byte at offset {offset})", shown(path.display()))]
    FileNotUtf8 {
        /// The file.
        path: PathBuf,
        /// Where the first bad byte is.
        offset: usize,
    },
    /// Something else where a file should be.
    #[error("{} is {found}, not a file", shown(path.display()))]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What is there.
        found: &'static str,
    },
    /// A file that a person named and that is not there.
    #[error("{} does not exist", shown(.0.display()))]
    FileNotFound(PathBuf),
    /// A directory in which a person wants something made, and that is not there.
    #[error("the directory {} does not exist", shown(.0.display()))]
    DirectoryNotFound(PathBuf),
    /// A file that is there already.
    #[error("{} exists already", shown(.0.display()))]
    FileExists(PathBuf),
    /// The system refused.
    #[error("cannot {action} {}: {}", shown(path.display()), reason(source))]
    Io {
        /// What was attempted: "read", "write".
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A change that was made and could not be recorded afterwards.
    #[error("{command} {}: the change was made, but is missing from the history: {source}", quoted(subject))]
    NotRecorded {
        /// The command.
        command: String,
        /// What it changed.
        subject: String,
        /// Why it was not recorded.
        source: Box<Error>,
    },
    /// The system refused a thread.
    #[error("cannot start a thread {purpose}: {}", reason(source))]
    ThreadRefused {
        /// What the thread is for: "to wait for the command".
        purpose: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The editor failed.
    #[error("the editor {} {reason}", quoted(editor))]
    EditorFailed {
        /// The program.
        editor: String,
        /// What happened.
        reason: String,
        /// What the person had typed, if anything.
        kept: Option<PathBuf>,
    },
    /// The database is damaged.
    #[error("the state database {} is damaged: {detail}", shown(path.display()))]
    StoreCorrupt {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        detail: String,
    },
    /// A copy that cannot be restored.
    #[error("{} cannot be restored: {detail}", shown(path.display()))]
    NotACopy {
        /// The file.
        path: PathBuf,
        /// Why not.
        detail: String,
    },
    /// The database failed.
    #[error("the state database {} failed: {detail}", shown(path.display()))]
    Store {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        detail: String,
    },
    /// The database is from the future.
    #[error(
        "the state database {} has version {found}, and this program knows versions up to {known}",
        shown(path.display())
    )]
    StoreTooNew {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// State on a network file system.
    #[error("the state directory {} is on a network file system ({kind})", shown(path.display()))]
    NetworkFileSystem {
        /// The directory.
        path: PathBuf,
        /// The kind of file system.
        kind: &'static str,
    },
    /// No home.
    #[error("no home directory is known, so there is no place for {0}")]
    NoHome(&'static str),
    /// A project file that was not trusted.
    #[error("{} is not trusted", shown(path.display()))]
    UntrustedProject {
        /// The file.
        path: PathBuf,
        /// The project's directory.
        project: PathBuf,
    },
    /// A project's file behind a link that leads out of the project, or one that another user owns.
    #[error("unsafe project file {0}")]
    ProjectFileUnsafe(UnsafeFile),
    /// No such context.
    #[error("context {} not found", quoted(name))]
    ContextNotFound {
        /// The name given.
        name: String,
        /// The nearest name.
        near: Option<String>,
        /// Where the name came from, if not from the arguments.
        named_by: Option<String>,
    },
    /// None selected.
    #[error("no context is selected")]
    NoContext,
    /// None was selected before.
    #[error("no other context was selected here before")]
    NoPreviousContext,
    /// No value anywhere.
    #[error("{key} is not set{}", path.as_ref().map_or_else(String::new, |path| format!(" in {}", shown(path.display()))))]
    SettingNotSet {
        /// The setting.
        key: String,
        /// The file that does not say it, if only that one was meant.
        path: Option<PathBuf>,
    },
    /// No such session.
    #[error("session {} not found", quoted(.0))]
    SessionNotFound(String),
    /// A session that can no longer be used.
    #[error("session {} {}", quoted(session), if *ended { "was ended" } else { "has expired" })]
    SessionExpired {
        /// Its name or id.
        session: String,
        /// Whether it was ended rather than expired.
        ended: bool,
        /// Its name, for the command that starts another.
        name: Option<String>,
        /// The context it was pinned to.
        context: Option<String>,
    },
    /// No session in force.
    #[error("{0} needs a session, and none is in force here")]
    SessionRequired(String),
    /// A terminal's session is not stopped by accident.
    #[error("session {} is only selected for this terminal, and what is stopped must be named", quoted(.0))]
    SessionUnnamed(String),
    /// An id that is too short.
    #[error("more than one session has an id that begins with {}", quoted(.0))]
    AmbiguousSession(String),
    /// The name is taken.
    #[error("a live session is named {} already", quoted(.0))]
    SessionExists(String),
    /// Another context was asked for.
    #[error(
        "session {} is pinned to {}, and {} was asked for",
        quoted(session),
        pinned.as_ref().map_or_else(|| "no context".to_owned(), |name| format!("context {}", quoted(name))),
        quoted(asked)
    )]
    ContextFixed {
        /// The session.
        session: String,
        /// The context it has.
        pinned: Option<String>,
        /// The one that was asked for.
        asked: String,
    },
    /// Not stopped.
    #[error("session {} is not stopped: {} still run(s) in it", quoted(session), pids(left))]
    StopFailed {
        /// The session.
        session: String,
        /// What is left.
        left: Vec<i32>,
    },
    /// Someone else was quicker.
    #[error(
        "{}: revision {expected} was expected, and it is {}",
        quoted(key),
        found.map_or_else(|| "not there".to_owned(), |found| format!("at {found}"))
    )]
    RevisionConflict {
        /// The key.
        key: String,
        /// What was expected.
        expected: i64,
        /// What is there.
        found: Option<i64>,
    },
    /// No such value.
    #[error("the session's state has no {}", quoted(.0))]
    EntryNotFound(String),
    /// A named lock is held.
    #[error(
        "lock {} is held by {}; waited {}",
        quoted(name),
        holder.as_deref().unwrap_or("another"),
        crate::duration::short(*waited)
    )]
    NamedLockHeld {
        /// The lock.
        name: String,
        /// By whom.
        holder: Option<String>,
        /// How long this process waited.
        waited: Duration,
    },
    /// Nobody has it.
    #[error("nobody has a lock named {}", quoted(.0))]
    LockNotFound(String),
    /// No longer held.
    #[error("token {0} no longer holds: the lock expired, was given back or was broken")]
    LockLost(i64),
    /// Another has it than was said.
    #[error("lock {} is held by token {found}, not by {asked}", quoted(name))]
    OtherHolder {
        /// The lock.
        name: String,
        /// The token that was said.
        asked: i64,
        /// The token that holds it.
        found: i64,
    },
    /// No such operation.
    #[error("there is no operation {0}")]
    OperationNotFound(String),
    /// Cannot be undone.
    #[error("operation {id} cannot be undone: {reason}")]
    UndoRefused {
        /// The operation.
        id: i64,
        /// Why not.
        reason: String,
    },
    /// No project here.
    #[error("{} has no project state directory in it or above it", shown(.0.display()))]
    ProjectNotFound(PathBuf),
    /// No approval.
    #[error("no approval of context {} is in force", quoted(.0))]
    ApprovalNotFound(String),
    /// The name is taken.
    #[error("context {} exists already ({})", quoted(name), shown(path.display()))]
    ContextExists {
        /// The name.
        name: String,
        /// Where it is defined.
        path: PathBuf,
        /// Whether a yes would replace it.
        replaceable: bool,
    },
    /// Sessions have it.
    #[error("context {} is pinned by live session(s): {}", quoted(name), shown(sessions.join(", ")))]
    ContextPinned {
        /// The context.
        name: String,
        /// The sessions.
        sessions: Vec<String>,
    },
    /// The lock is held by another.
    #[error(
        "{} is being changed by {}; waited {}",
        shown(path.display()),
        holder.as_ref().map_or_else(|| "another process".to_owned(), ToString::to_string),
        crate::duration::short(*waited)
    )]
    LockHeld {
        /// What is locked.
        path: PathBuf,
        /// By whom, if known.
        holder: Option<Holder>,
        /// How long this process waited.
        waited: Duration,
    },
    /// Someone else was quicker.
    #[error("{} was changed by someone else in the meantime", shown(path.display()))]
    ConcurrentChange {
        /// The file.
        path: PathBuf,
        /// Where this side's version is kept.
        kept: Option<PathBuf>,
    },
    /// Guard `explicit`.
    #[error("context {} must be named explicitly, and it came from {origin}", quoted(name))]
    GuardExplicit {
        /// The context.
        name: String,
        /// Where its selection came from.
        origin: String,
    },
    /// Guard `approval`.
    #[error("context {} needs a person's approval", quoted(.0))]
    GuardApproval(String),
    /// Guard `approval` would be weakened.
    #[error("cannot weaken the guard of context {} without an approval", quoted(.0))]
    GuardWeakened(String),
    /// Refused in a session.
    #[error("{what} is refused inside a session")]
    InSession {
        /// What was asked.
        what: String,
        /// Why, and what to do instead.
        instead: &'static str,
    },
    /// A time namespace shifts the clock since boot.
    #[error("{what} is refused in a time namespace that shifts the clock since boot")]
    ShiftedClock {
        /// What was asked.
        what: String,
    },
    /// Wrong PIN.
    #[error("{0}")]
    WrongPin(String),
    /// No such tool.
    #[error("there is no tool {}", quoted(name))]
    ToolNotFound {
        /// The name given.
        name: String,
        /// The known name nearest to it.
        near: Option<String>,
    },
    /// A tool's own file that cannot be understood.
    #[error("{}:{line}: {message}", shown(path.display()))]
    ToolFile {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// What the parser says.
        message: String,
    },
    /// Too much to copy.
    #[error("the state of {tool} ({}) is too large to be copied into a session", shown(path.display()))]
    ToolStateTooLarge {
        /// The tool.
        tool: String,
        /// Where it is.
        path: PathBuf,
    },
    /// A binding that means nothing.
    #[error("context {}: {key}: {problem}", quoted(context))]
    BindingInvalid {
        /// The context.
        context: String,
        /// The key in it.
        key: String,
        /// What is wrong.
        problem: String,
    },
    /// A binding to something that is not there.
    #[error(
        "context {}: {key}: there is no {} in {}",
        quoted(context),
        quoted(value),
        shown(looked.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" or "))
    )]
    BindingNotFound {
        /// The context.
        context: String,
        /// The key in it.
        key: String,
        /// The value.
        value: String,
        /// The files it was looked for in.
        looked: Vec<PathBuf>,
    },
    /// Another context than the caller thought.
    #[error(
        "context {} is expected, and {}",
        quoted(expected),
        found.as_ref().map_or_else(|| "none is in use".to_owned(), |found| format!("{found} is in use"))
    )]
    ContextUnexpected {
        /// What was expected.
        expected: String,
        /// What is in use, and why.
        found: Option<String>,
    },
    /// No such credential.
    #[error(
        "{}",
        if wanted_by == "this command" { format!("there is no credential {}", quoted(name)) }
        else { format!("{wanted_by} wants credential {}, which the vault does not have", quoted(name)) }
    )]
    CredentialNotFound {
        /// The credential.
        name: String,
        /// What wants it.
        wanted_by: String,
        /// The credential there is that is nearest to it.
        near: Option<String>,
    },
    /// Nothing can be kept for the time that the user is logged in.
    #[error("cannot keep {0}: {1}")]
    NoRuntime(&'static str, String),
    /// A credential that is there already.
    #[error("the {place} has another credential {}", quoted(name))]
    CredentialExists {
        /// Its name.
        name: String,
        /// Where.
        place: &'static str,
    },
    /// A credential whose time is up.
    #[error("{0}")]
    CredentialsExpired(Box<Expired>),
    /// A credential that cannot be used as it is.
    #[error("credential {} cannot be used: {}", quoted(name), shown(reason))]
    CredentialUnusable {
        /// The credential.
        name: String,
        /// Why.
        reason: String,
    },
    /// A credential that was not renewed.
    #[error("credential {} could not be renewed: {}", quoted(name), shown(reason))]
    RenewalFailed {
        /// The credential.
        name: String,
        /// The credential whose login it uses, itself if it has its own.
        login: String,
        /// Why.
        reason: String,
        /// Whether the server was reached and said no.
        refused: bool,
    },
    /// A server that said no to a credential.
    #[error("{site} does not accept credential {} (status {status})", quoted(name))]
    CredentialRejected {
        /// The credential.
        name: String,
        /// The server.
        site: String,
        /// The HTTP status.
        status: u16,
        /// Its kind.
        kind: &'static str,
    },
    /// A credential for other sites.
    #[error("credential {} is not sent to {}: {reason}", quoted(name), shown(site))]
    SiteRefused {
        /// The credential.
        name: String,
        /// Where it was to go.
        site: String,
        /// Where it may go.
        sites: Vec<String>,
        /// Why not there.
        reason: &'static str,
    },
    /// A login that gave nothing.
    #[error("{}: {}", shown(site), shown(reason))]
    LoginRefused {
        /// The server.
        site: String,
        /// Why.
        reason: String,
    },
    /// Something that took longer than it was given.
    #[error("{what} was not finished in time")]
    TimedOut {
        /// What.
        what: String,
    },
    /// A server that cannot be reached.
    #[error("{} cannot be reached: {}", shown(what), shown(reason))]
    Unreachable {
        /// The server.
        what: String,
        /// Why.
        reason: String,
    },
    /// A server that wants to be left alone for a while.
    #[error("{} has had enough requests for now", shown(what))]
    RateLimited {
        /// The server.
        what: String,
        /// How long.
        wait: Option<Duration>,
    },
    /// A user of the service that is there already.
    #[error("user {} exists already", quoted(.0))]
    UserExists(String),
    /// No such user of the service.
    #[error("there is no user {}", quoted(.0))]
    UserNotFound(String),
    /// No such token of the service.
    #[error("there is no token {}", quoted(.0))]
    TokenNotFound(String),
    /// A database of the service that does not take the role or the password.
    #[error("the service's store lets nobody in with this role and password: {}", shown(.0))]
    StoreRefused(String),
    /// A database of the service that wants a password, and none was given.
    #[error("the service's store wants a password, and none was given")]
    StorePasswordRequired,
    /// A store of the service that a newer version has changed.
    #[error(
        "the service's store ({}) has schema version {found}; this program supports versions up to {known}",
        shown(store)
    )]
    ServiceStoreTooNew {
        /// The file, or the database.
        store: String,
        /// Its schema version.
        found: i64,
        /// The newest schema version known here.
        known: i64,
    },
    /// A file that other users can change or replace.
    #[error(
        "{} has mode {mode:04o}: other users can {}",
        shown(path.display()),
        if *is_dir { "replace the files in it" } else { "change it" }
    )]
    WritableByOthers {
        /// The file or directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
        /// Whether it is the directory that the file is in.
        is_dir: bool,
    },
    /// A file that belongs to another user, who can change or replace it.
    #[error(
        "{} belongs to user {uid}, who can {}",
        shown(path.display()),
        if *is_dir { "replace the files in it" } else { "change it" }
    )]
    OwnedByAnother {
        /// The file or directory.
        path: PathBuf,
        /// Its owner.
        uid: u32,
        /// Whether it is the directory that the file is in.
        is_dir: bool,
    },
    /// The service's store failed.
    #[error("the service's store failed: {}", shown(.0))]
    ServiceStore(String),
    /// No machine that asks to be let in to the service shows this code.
    #[error("no login waits under the code {}", quoted(.0))]
    LoginNotFound(String),
    /// No such conversation.
    #[error("there is no conversation {}", quoted(name))]
    ConversationNotFound {
        /// The name or id given.
        name: String,
        /// The name there is that is nearest to it.
        near: Option<String>,
    },
    /// A conversation of this name.
    #[error("a conversation {} exists already in this session", quoted(_0))]
    ConversationExists(String),
    /// No such agent.
    #[error("there is no agent {}", quoted(name))]
    AgentNotFound {
        /// The name given.
        name: String,
        /// The agent there is that is nearest to it.
        near: Option<String>,
    },
    /// An agent that said no.
    #[error("the agent at {} refuses: {}", shown(agent), shown(reason))]
    AgentRefused {
        /// Its URL.
        agent: String,
        /// What it said.
        reason: String,
    },
    /// An agent that wants a credential, or another one.
    #[error("the agent at {}{} does not let this call in (status {status})", shown(agent), shown(wanted))]
    AgentUnauthorized {
        /// Its URL.
        agent: String,
        /// The HTTP status.
        status: u16,
        /// What it asks for, in words.
        wanted: String,
    },
    /// Something that is no agent, or speaks as none should.
    #[error("{} cannot be used as an agent: {}", shown(agent), shown(reason))]
    AgentUnusable {
        /// Its URL.
        agent: String,
        /// Why.
        reason: String,
    },
    /// A task that the agent does not know.
    #[error("the agent at {} does not know task {}", shown(agent), quoted(task))]
    TaskNotFound {
        /// Its URL.
        agent: String,
        /// The task.
        task: String,
    },
    /// A task that has ended.
    #[error("task {} has ended: {}", quoted(task), shown(reason))]
    TaskOver {
        /// The task.
        task: String,
        /// How.
        reason: String,
    },
    /// A vault that is not as it was written.
    #[error("the vault {} is damaged: {reason}", shown(path.display()))]
    VaultDamaged {
        /// The file.
        path: PathBuf,
        /// What was noticed.
        reason: String,
    },
    /// A vault of a newer version.
    #[error("the vault {} has version {found}; this program knows {known}", shown(path.display()))]
    VaultTooNew {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// The newest that is known.
        known: u64,
    },
    /// Not the vault's key.
    #[error("{what} does not open the vault {}", shown(path.display()))]
    VaultWrongKey {
        /// The file.
        path: PathBuf,
        /// What was tried.
        what: String,
    },
    /// No key for a vault that is there.
    #[error("the vault {} is there, and its key is not ({})", shown(path.display()), shown(key.display()))]
    VaultKeyMissing {
        /// The file.
        path: PathBuf,
        /// Where the key was looked for.
        key: PathBuf,
    },
    /// A vault that needs its passphrase.
    #[error("the vault {} needs its passphrase", shown(path.display()))]
    VaultLocked {
        /// The file.
        path: PathBuf,
    },
    /// A vault that cannot be written.
    #[error("credentials are read from variables, which nobody can set for you")]
    VaultReadOnly {
        /// The variable that would hold it.
        variable: String,
    },
    /// A helper that did not help.
    #[error("the vault's helper {}: {}", shown(helper), shown(reason))]
    VaultHelper {
        /// The program.
        helper: String,
        /// What happened.
        reason: String,
    },
    /// A file with a secret that others can read.
    #[error(
        "{} {}",
        shown(path.display()),
        if mode & 0o077 == 0 { "belongs to another user, who knows the secret in it".to_owned() }
        else { format!("has mode {mode:04o}: others can read the secret in it") }
    )]
    KeyFileExposed {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A key file with something else in it.
    #[error("{} does not hold a key: 64 hexadecimal digits", shown(path.display()))]
    KeyFileInvalid {
        /// The file.
        path: PathBuf,
    },
    /// No keychain to talk to.
    #[error("the keychain cannot be reached: {}", shown(reason))]
    KeychainUnreachable {
        /// Why.
        reason: String,
    },
    /// A keychain that its user must open.
    #[error("the keychain is locked")]
    KeychainLocked,
    /// A keychain that refused.
    #[error("the keychain refused: {}", shown(reason))]
    KeychainRefused {
        /// What it said.
        reason: String,
    },
    /// A room that may be another's.
    #[error("{} cannot be used as a room: {reason}", shown(path.display()))]
    RoomUnsafe {
        /// The directory.
        path: PathBuf,
        /// Why.
        reason: &'static str,
    },
}

fn pids(pids: &[i32]) -> String {
    let words: Vec<String> = pids.iter().map(|pid| format!("pid {pid}")).collect();
    if words.is_empty() { "a process that cannot be seen".to_owned() } else { words.join(", ") }
}

fn reason(error: &io::Error) -> String {
    // The operating system's text without Rust's "(os error 13)".
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

impl Error {
    /// An io error with its path, sorted into the codes that callers can act on.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Error::Io { action, path: path.into(), source }
    }
}
