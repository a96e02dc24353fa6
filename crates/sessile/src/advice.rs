//! What to do next after an error: in words, and as a command where one is right.

use std::io;
use std::path::Path;

use crate::app::App;
use crate::code::Code;
use crate::error::Error;
use crate::text::{quoted, shell_quoted, shown};

impl Error {
    /// A command that can be pasted to mend it, where there is one that is right.
    pub fn fix_command(&self, app: &App) -> Option<String> {
        let name = app.name();
        Some(match self {
            Error::UntrustedProject { project, .. } => {
                format!("{name} trust {}", shell_quoted(&project.to_string_lossy()))
            }
            Error::GuardApproval(context) | Error::GuardWeakened(context) => {
                format!("{name} context approve {} --for 30m", shell_quoted(context))
            }
            Error::NoContext | Error::NoPreviousContext => format!("{name} context list"),
            Error::SessionUnnamed(session) => format!("{name} session stop {}", shell_quoted(session)),
            Error::SessionExpired { name: session, context, .. } => {
                let session =
                    session.as_ref().map_or_else(String::new, |session| format!(" --name {session}"));
                let context =
                    context.as_ref().map_or_else(String::new, |context| format!(" --context {context}"));
                format!("{name} session start{session}{context}")
            }
            Error::RenewalFailed { login, refused: true, .. } => {
                format!("{name} auth login {}", shell_quoted(login))
            }
            Error::CredentialsExpired(expired) => {
                let credential = shell_quoted(&expired.name);
                match (&expired.login, expired.kind) {
                    (Some(login), _) if expired.refused => {
                        format!("{name} auth login {}", shell_quoted(login))
                    }
                    (Some(_), _) => format!("{name} auth refresh {credential}"),
                    (None, "oauth2") => format!("{name} auth refresh {credential}"),
                    // Its secret is from elsewhere.
                    (None, "command" | "env") => return None,
                    // One for this call has no name.
                    (None, _) if expired.name.contains(' ') => return None,
                    (None, _) => format!("{name} auth set {credential}"),
                }
            }
            Error::VaultLocked { .. } => format!("{name} auth unlock"),
            Error::DirectoryNotFound(path) => format!("mkdir -p {}", shell_quoted(&path.to_string_lossy())),
            Error::KeyFileExposed { path, mode } if mode & 0o077 != 0 => {
                format!("chmod 600 {}", shell_quoted(&path.to_string_lossy()))
            }
            Error::WritableByOthers { path, .. } => {
                format!("chmod go-w {}", shell_quoted(&path.to_string_lossy()))
            }
            _ => return None,
        })
    }

    /// The next step, in words.
    pub fn hint(&self, app: &App) -> Option<String> {
        let name = app.name();
        let prefix = app.prefix();
        Some(match self {
            Error::UnknownSetting { near: Some(near), .. } => format!("did you mean {}?", quoted(near)),
            Error::UnknownSetting { near: None, .. } => format!("`{name} config list` shows every setting"),
            Error::ScopeRequired { flags, .. } => format!("add {flags}"),
            Error::ConfirmationRequired { .. } => "add --yes to go ahead".to_owned(),
            Error::TerminalRequired { instead, .. } => instead.clone(),
            Error::ShiftedClock { .. } => "run it on a terminal outside the time namespace".to_owned(),
            Error::SecretRefused { instead, .. } => instead.replace("{name}", name),
            Error::FileTooLarge { .. } => "is this the right file?".to_owned(),
            Error::EditorFailed { kept: Some(kept), .. } => {
                format!("what you typed is kept in {}", shown(kept.display()))
            }
            Error::EditorFailed { .. } => "set VISUAL or EDITOR to an editor that works".to_owned(),
            Error::StoreCorrupt { .. } => format!(
                "`{name} doctor --repair` moves it aside and saves what can be read; contexts and settings are files of \
                 their own"
            ),
            Error::NotACopy { .. } => {
                format!("give a file that `{name} backup` made; nothing was changed")
            }
            Error::StoreTooNew { .. } => {
                format!("install the newer {name}, or set {prefix}_STATE_DIR to another directory")
            }
            Error::NetworkFileSystem { .. } => {
                format!("set {prefix}_STATE_DIR to a directory on a local disk")
            }
            Error::NoRuntime(..) => format!(
                "set XDG_RUNTIME_DIR to a directory of yours with mode 0700, or {prefix}_VAULT_PASSPHRASE_FILE"
            ),
            Error::NoHome(_) => format!("set HOME, or {prefix}_CONFIG_DIR and {prefix}_STATE_DIR"),
            Error::UntrustedProject { project, .. } => {
                format!("read it, then trust it: {name} trust {}", shell_quoted(&project.to_string_lossy()))
            }
            Error::ProjectFileUnsafe(file) => file.hint(),
            Error::ContextNotFound { near: Some(near), .. } => format!("did you mean {}?", quoted(near)),
            Error::ContextNotFound { named_by: Some(origin), .. } => format!("it was named by {origin}"),
            Error::ContextNotFound { .. } => format!("`{name} context list` shows the contexts there are"),
            Error::NoContext => {
                format!("name one with --context, or select one with `{name} context use NAME`")
            }
            Error::SessionNotFound(_) => format!("`{name} session list` shows those there are"),
            Error::SessionExpired { .. } => {
                let start = self.fix_command(app).unwrap_or_default();
                format!("start a new one: {start}; `{name} run` and `{name} shell` do so with --new")
            }
            Error::SessionRequired(_) => {
                format!("name one with --session or {prefix}_SESSION; `{name} session list` shows them")
            }
            Error::SessionUnnamed(session) => {
                format!("name it: {name} session stop {}", shell_quoted(session))
            }
            Error::AmbiguousSession(_) => "give more of the id, or the name".to_owned(),
            Error::SessionExists(_) => {
                format!("choose another name, or work in it: --session, {prefix}_SESSION")
            }
            Error::ContextFixed { .. } => {
                "a session never changes its context: start another session".to_owned()
            }
            Error::StopFailed { .. } => "end it by hand, then stop the session again".to_owned(),
            Error::RevisionConflict { .. } => "read it again and decide anew".to_owned(),
            Error::EntryNotFound(_) => format!("`{name} session state list` shows what there is"),
            Error::NamedLockHeld { .. } => {
                format!("wait longer with --lock-timeout, or look: {name} lock list")
            }
            Error::LockNotFound(_) => format!("`{name} lock list` shows those that are held"),
            Error::LockLost(_) => "stop what the lock protected, then acquire it again".to_owned(),
            Error::OtherHolder { .. } => format!("it has changed hands: look again with `{name} lock list`"),
            Error::UndoRefused { id, .. } => format!("`{name} history show {id}` tells what it changed"),
            Error::OperationNotFound(_) => format!("`{name} history` shows those there are"),
            Error::NoPreviousContext => format!("select one by its name: `{name} context use NAME`"),
            Error::SettingNotSet { key, path: None } => {
                format!("set it with `{name} config set {key} VALUE`")
            }
            Error::SettingNotSet { key, path: Some(_) } => {
                format!("`{name} config show {key} --source` tells where it is set")
            }
            Error::ProjectNotFound(_) => format!("`{name} config set KEY VALUE --dir` makes one"),
            Error::ApprovalNotFound(_) => format!("`{name} context approve --list` shows those in force"),
            Error::ContextExists { replaceable: true, .. } => {
                "choose another name, or add --yes to replace it".to_owned()
            }
            Error::ContextExists { name: context, .. } => {
                format!(
                    "choose another name, or delete it first: {name} context delete {}",
                    shell_quoted(context)
                )
            }
            Error::FileNotFound(_) => "check the path".to_owned(),
            Error::DirectoryNotFound(_) => {
                format!("make it, or check the path: {}", self.fix_command(app).unwrap_or_default())
            }
            Error::ContextPinned { .. } => {
                format!("a session keeps its context: stop it first, `{name} session stop NAME`")
            }
            Error::FileExists(_) => {
                "nothing is written over it: give another path, or move it away".to_owned()
            }
            Error::LockHeld { holder: Some(holder), .. } if holder.is_stopped => {
                format!("resume the stopped process: kill -CONT {}", holder.pid)
            }
            Error::LockHeld { .. } => "try again, or wait longer with --lock-timeout".to_owned(),
            Error::ConcurrentChange { kept: Some(kept), .. } => {
                format!("your version is kept in {}", shown(kept.display()))
            }
            Error::ConcurrentChange { .. } => "try again".to_owned(),
            Error::GuardExplicit { name: context, .. } => {
                format!("say it: --context {0}, or {prefix}_CONTEXT={0}", shell_quoted(context))
            }
            Error::GuardApproval(context) => format!(
                "a person gives it on a terminal, outside any session: \
                 {name} context approve {} --for 30m",
                shell_quoted(context)
            ),
            Error::GuardWeakened(context) => format!(
                "approve the context on a terminal, outside any session: {name} context approve {} --for 30m",
                shell_quoted(context)
            ),
            Error::InSession { instead, .. } => (*instead).to_owned(),
            Error::ToolNotFound { near: Some(near), .. } => format!("did you mean {}?", quoted(near)),
            Error::ToolNotFound { .. } => format!("`{name} tool list` shows those that are known"),
            Error::ToolFile { .. } => "mend the file; nothing was started".to_owned(),
            Error::ToolStateTooLarge { tool, .. } => {
                format!("leave the tool shared: --set tools.except={tool}")
            }
            Error::BindingInvalid { context, .. } | Error::BindingNotFound { context, .. } => {
                format!("change it: {name} context edit {}", shell_quoted(context))
            }
            Error::ContextUnexpected { found: Some(found), .. } if found.contains("(session ") => {
                "a session keeps its context: work in another session".to_owned()
            }
            Error::ContextUnexpected { expected, .. } => {
                format!("name it: --context {}", shell_quoted(expected))
            }
            Error::CredentialNotFound { near: Some(near), name: credential, .. } => format!(
                "did you mean {}? else put it in: {name} auth set {}",
                quoted(near),
                shell_quoted(credential)
            ),
            Error::CredentialNotFound { wanted_by, near: None, .. } if wanted_by == "this command" => {
                format!("`{name} auth list` shows those there are")
            }
            Error::CredentialNotFound { name: credential, wanted_by, .. } if wanted_by.starts_with("the login") => {
                format!("log in: {name} auth login {}", shell_quoted(credential))
            }
            Error::CredentialNotFound { name: credential, .. } => {
                format!("put it in: {name} auth set {}; or look: {name} auth list", shell_quoted(credential))
            }
            Error::CredentialExists { .. } => "clear one of the two; nothing was moved".to_owned(),
            Error::CredentialsExpired(expired) => {
                let variable = &expired.variable;
                match self.fix_command(app) {
                    Some(renew) => format!("renew it: {renew}; or set {variable} for this call"),
                    None => format!("renew it where it is from, or set {variable} for this call"),
                }
            }
            Error::RenewalFailed { refused: true, .. } => {
                format!("log in again: {}; the old token is still there", self.fix_command(app).unwrap_or_default())
            }
            Error::RenewalFailed { .. } => "try again; the old token is still there".to_owned(),
            Error::CredentialUnusable { name: credential, .. } => {
                format!("look at it: {name} auth show {}", shell_quoted(credential))
            }
            Error::CredentialRejected { name: credential, kind: "oauth2", .. } => {
                format!("log in again: {name} auth login {}", shell_quoted(credential))
            }
            Error::CredentialRejected { kind: "command" | "env", .. } => {
                "renew it where it is from".to_owned()
            }
            Error::CredentialRejected { name: credential, .. } if credential == "this-call" => {
                "give another token for this call".to_owned()
            }
            Error::CredentialRejected { name: credential, .. } => {
                format!("put a new one in: {name} auth set {}", shell_quoted(credential))
            }
            Error::SiteRefused { name: credential, sites, site, reason } if reason.contains("may not") => {
                let flags: String = sites.iter().map(|site| format!(" --site {}", shell_quoted(site))).collect();
                let sites = if sites.is_empty() { "nowhere yet".to_owned() } else { sites.join(", ") };
                format!("it may be sent to: {sites}; allow more with `{name} auth set {credential}{flags} --site {site} --keep-secret`")
            }
            Error::ConversationNotFound { near: Some(near), .. } | Error::AgentNotFound { near: Some(near), .. } => {
                format!("did you mean {}?", quoted(near))
            }
            Error::ConversationNotFound { .. } => format!("`{name} conversation list` shows those there are"),
            Error::ConversationExists(_) => "choose another name".to_owned(),
            Error::UserExists(user) => {
                format!("give it a token: {name} user token create {}", shell_quoted(user))
            }
            Error::UserNotFound(_) => format!("`{name} user list` shows those there are"),
            Error::TokenNotFound(_) => format!("`{name} user token list USER` shows those of a user"),
            Error::StoreRefused(_) => {
                "is the role in --store right, and the password in the file of --store-password-file?".to_owned()
            }
            Error::StorePasswordRequired => {
                "put it into a file, and name that with --store-password-file".to_owned()
            }
            Error::LoginNotFound(_) => {
                "a code has eight letters, and counts for 15 minutes until it is approved or refused; the machine can ask for \
                 another".to_owned()
            }
            Error::AgentUnauthorized { agent, .. } => {
                format!("give it a credential: {name} auth set --url {}", shell_quoted(agent))
            }
            Error::AgentNotFound { .. } => {
                format!("name one with `{name} agent add NAME URL`, or give the URL itself")
            }
            Error::TaskOver { .. } | Error::TaskNotFound { .. } => {
                "nothing was sent anew; the next message begins another task, and --new another conversation".to_owned()
            }
            Error::Unreachable { reason, .. } => return unreachable(reason).map(str::to_owned),
            Error::VaultDamaged { .. } => {
                "nothing was changed; put a copy of the file from a backup in its place, or move it away and set the credentials anew".to_owned()
            }
            Error::VaultTooNew { .. } => {
                format!("install the newer {name}, or set {prefix}_STATE_DIR to another directory")
            }
            Error::VaultWrongKey { .. } => "nothing was changed; give the right one".to_owned(),
            Error::VaultKeyMissing { .. } => {
                "no key is made in its place: put the right one back, or move the vault away and set the credentials anew".to_owned()
            }
            Error::VaultLocked { .. } => format!(
                "a person opens it on a terminal: {name} auth unlock; a program gives a file: {prefix}_VAULT_PASSPHRASE_FILE"
            ),
            Error::VaultReadOnly { variable } => {
                format!("set {variable} before the call, or choose another place: --set vault.backend=file")
            }
            Error::VaultHelper { .. } => "run it by hand to see what it says; the setting is vault.helper".to_owned(),
            Error::KeyFileExposed { path, mode } if mode & 0o077 == 0 => {
                format!("it belongs to another user: chown it, or make your own: {}", shown(path.display()))
            }
            Error::KeyFileExposed { path, .. } => {
                format!("make it private: chmod 600 {}", shell_quoted(&path.to_string_lossy()))
            }
            Error::ServiceStoreTooNew { .. } => format!("upgrade {name}, or restore a backup from before the upgrade"),
            Error::WritableByOthers { path, .. } => {
                format!("take the write permission from other users: chmod go-w {}", shell_quoted(&path.to_string_lossy()))
            }
            Error::OwnedByAnother { path, uid, .. } => {
                let path = shell_quoted(&path.to_string_lossy());
                format!("run the command as user {uid}, or change the owner: sudo chown \"$(id -u)\" {path}")
            }
            Error::KeyFileInvalid { .. } => "is vault.key-file the right file?".to_owned(),
            Error::KeychainUnreachable { .. } => {
                "call it where the desktop's D-Bus session is known (DBUS_SESSION_BUS_ADDRESS); `auth move --to file` there \
                 makes a vault that needs none"
                    .to_owned()
            }
            Error::KeychainLocked => "unlock it on the desktop, then try again".to_owned(),
            Error::RoomUnsafe { .. } => "look who made it, and remove it".to_owned(),
            Error::NotRecorded { source, .. } => match source.code() {
                Code::DiskFull => {
                    "free some space (df -h, df -i); the change is in effect, do not repeat it".to_owned()
                }
                _ => "the change is in effect, do not repeat it".to_owned(),
            },
            Error::ThreadRefused { .. } => {
                "raise the limit on processes or memory: ulimit -u, ulimit -v".to_owned()
            }
            Error::Io { action, source, path } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded if *action == "sync" => {
                    "free some space; the change was made, but may be lost if the system crashes".to_owned()
                }
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "free some space (df -h, df -i); the file still has its old content".to_owned()
                }
                io::ErrorKind::ReadOnlyFilesystem => {
                    format!("the file system is read-only; set {prefix}_STATE_DIR to a directory that is not")
                }
                io::ErrorKind::PermissionDenied if *action == "make directory" => {
                    let dir = shown(parent(path).display());
                    format!(
                        "check the owner and mode of {dir}, or set {prefix}_STATE_DIR to another directory"
                    )
                }
                io::ErrorKind::PermissionDenied => {
                    format!("check the owner and mode of {}", shown(parent(path).display()))
                }
                _ => return None,
            },
            _ => return None,
        })
    }
}

/// What may help where a server is there and is not understood or not believed, by the words of the client.
fn unreachable(reason: &str) -> Option<&'static str> {
    const REMEDIES: &[(&str, &str)] = &[
        (
            "no authority that is trusted here has signed it",
            "if the authority is your own, name its certificate: SSL_CERT_FILE=ca.pem; then those in the file count and no others",
        ),
        (
            "it is one for an authority and not for a server",
            "one that signs itself must say basicConstraints CA:FALSE; name it then: SSL_CERT_FILE=cert.pem",
        ),
        ("it does not answer as HTTP does", "it may speak TLS: say https:// instead of http://"),
        (
            "it does not answer as TLS does",
            "it may speak no TLS: say http:// instead of https://, on this machine",
        ),
    ];
    REMEDIES.iter().find(|(said, _)| reason.contains(said)).map(|(_, remedy)| *remedy)
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}
