//! Store of the service, for `serve` and `user`.

use std::path::{Path, PathBuf};

use sessile::call::ConfigSource;
use sessile::error::{FileError, UsageError};
use sessile::text::shown;
use sessile::vault::Secret;
use sessile::{Code, Error, Report, State};
use sessile_server::store::backup::BackupError;
use sessile_server::store::{PostgresOptions, ServiceStore, ServiceStoreError};

use crate::cli::Cx;
use crate::error::{CommandError, Failure, RequestError, ServiceError};

/// Flags that choose the store.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct StoreArgs {
    /// Store: a file, or postgres://USER@HOST/DATABASE; default: a file in the state directory
    #[arg(long, value_name = "STORE")]
    store: Option<String>,

    /// File with the password of the PostgreSQL user
    #[arg(long, value_name = "FILE", requires = "store")]
    store_password_file: Option<PathBuf>,
}

/// Location of a store.
#[derive(Debug)]
pub(crate) enum StoreLocation {
    File(PathBuf),
    Postgres { url: String, password: Option<Secret> },
}

/// Default store of the service; none where no state is kept.
pub(crate) fn default_path(state: &State) -> Option<PathBuf> {
    let dir = state.dirs().state().ok().filter(|_| *state.source() != ConfigSource::Nothing);
    dir.map(in_state_dir)
}

fn in_state_dir(dir: &Path) -> PathBuf {
    dir.join("service").join("service.db")
}

impl StoreArgs {
    /// Store of the flags, or the default one.
    fn place(&self, cx: &Cx) -> Result<StoreLocation, Failure> {
        let Some(store) = &self.store else {
            let path = in_state_dir(cx.state.dirs().state_for_writing()?);
            sessile::files::check_trusted_database(&path)?;
            return Ok(StoreLocation::File(path));
        };
        if !store.starts_with("postgres://") && !store.starts_with("postgresql://") {
            if store.contains("://") {
                return Err(UsageError::InvalidValue {
                    place: "--store".into(),
                    // Only the scheme: an address may hold a password.
                    value: store.split("://").next().unwrap_or_default().to_owned(),
                    expected: "a file, or postgres://USER@HOST/DATABASE".into(),
                }
                .into());
            }
            let path = cx.state.absolute(Path::new(store));
            // The user's own database must not become the store of a service.
            if store.is_empty() || path.is_dir() || path == cx.state.dirs().store()? {
                return Err(UsageError::InvalidValue {
                    place: "--store".into(),
                    value: store.clone(),
                    expected: "a file that only the service uses".into(),
                }
                .into());
            }
            sessile::files::check_trusted_database(&path)?;
            return Ok(StoreLocation::File(path));
        }
        let authority = store.split_once("://").map_or("", |(_, rest)| rest);
        let authority = authority.split('/').next().unwrap_or_default();
        // From the right: a user name or password may hold an `@` that is not escaped.
        let has_password = authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'));
        // libpq accepts a password as a parameter too.
        if has_password || store.contains("password=") {
            return Err(UsageError::SecretRefused {
                place: "--store".into(),
                instead: "other programs can read arguments; pass --store-password-file FILE",
            }
            .into());
        }
        let password = self.store_password_file.as_deref().map(|file| {
            let text = read_secret(cx, file)?;
            Ok::<_, Error>(Secret::new(text.trim_end_matches(['\n', '\r'])))
        });
        Ok(StoreLocation::Postgres { url: store.clone(), password: password.transpose()? })
    }
}

impl StoreArgs {
    /// Password file.
    pub(crate) fn password_file(&self) -> Option<&Path> {
        self.store_password_file.as_deref()
    }

    /// Store of the flags, created if missing. Directories are created only for the default store, because a path may
    /// be misspelled.
    pub(crate) fn existing_or_new(&self, cx: &Cx) -> Result<StoreLocation, Failure> {
        let place = self.place(cx)?;
        if let (StoreLocation::File(path), Some(_)) = (&place, &self.store)
            && let Some(dir) = path.parent()
            && !dir.exists()
        {
            return Err(CommandError::DirectoryNotFound(dir.to_owned()).into());
        }
        Ok(place)
    }

    /// Store of the flags, which must exist if it is a file.
    pub(crate) fn existing(&self, cx: &Cx) -> Result<StoreLocation, Failure> {
        match self.place(cx)? {
            StoreLocation::File(path) if self.store.is_some() && !path.exists() => {
                Err(FileError::NotFound(path).into())
            }
            place => Ok(place),
        }
    }
}

impl StoreLocation {
    /// Kind of the store.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            StoreLocation::File(_) => "sqlite",
            StoreLocation::Postgres { .. } => "postgres",
        }
    }

    /// Opens the store, and creates it if missing.
    pub(crate) async fn open(self) -> Result<ServiceStore, ServiceStoreError> {
        match self {
            StoreLocation::File(path) => ServiceStore::sqlite(&path).await,
            StoreLocation::Postgres { url, password } => {
                ServiceStore::postgres(&url, PostgresOptions { password, ..PostgresOptions::default() }).await
            }
        }
    }
}

/// Content of a file with a secret. Other users must not be able to change it.
pub(crate) fn read_secret(cx: &Cx, file: &Path) -> Result<String, Error> {
    let path = cx.state.absolute(file);
    sessile::files::check_trusted(&path)?;
    sessile::files::read(&path)?.ok_or(Error::File(FileError::NotFound(path)))
}

/// Fails if other users can change a file with a secret; warns if they can read it, as with a container's secrets.
pub(crate) fn check_secret(cx: &Cx, file: &Path) -> Result<(), Error> {
    let path = cx.state.absolute(file);
    if sessile::files::check_trusted(&path)? {
        cx.state.warn(format!("secret file {} can be read by other users", shown(path.display())), None);
    }
    Ok(())
}

/// Error of the store as an error of the program.
pub(crate) fn failed(error: &ServiceStoreError) -> Failure {
    match error {
        ServiceStoreError::Unavailable(reason) => {
            RequestError::unreachable("the service's store", reason.clone()).into()
        }
        ServiceStoreError::Refused(reason) => ServiceError::StoreRefused(reason.clone()).into(),
        ServiceStoreError::Unfit(why) => UsageError::Arguments(format!("--store: {why}")).into(),
        ServiceStoreError::NoPassword => ServiceError::PasswordRequired.into(),
        ServiceStoreError::TooNew { store, found, known } => {
            ServiceError::StoreTooNew { store: store.clone(), found: *found, known: *known }.into()
        }
        ServiceStoreError::Failed(detail) => ServiceError::StoreFailed(detail.clone()).into(),
    }
}

/// Failure with its own hint.
fn with_hint(code: Code, message: String, hint: String) -> Failure {
    let report = Report { hint: Some(hint), ..Report::new(code, message) };
    Failure::Remote(Box::new(report))
}

/// Error of a command that supports only a store in a file.
pub(crate) fn not_sqlite(command: &str, hint: String) -> Failure {
    with_hint(
        Code::Usage,
        format!("{command} requires a store in a file, but --store is a PostgreSQL database"),
        hint,
    )
}

/// Error of `backup` and `backup restore` for a service's store.
pub(crate) fn is_service_store(path: &Path, hint: String) -> Failure {
    let path = shown(path.display());
    with_hint(
        Code::FileExists,
        format!("{path} is the store of a session service, not your own state database"),
        hint,
    )
}

/// Error of a backup or a restore of a store.
pub(crate) fn backup_failed(error: BackupError) -> Failure {
    match error {
        BackupError::NotAStore { .. } => {
            let hint = "nothing was changed; pass a file created by `sessile serve backup`".to_owned();
            with_hint(Code::StoreCorrupt, shown(&error), hint)
        }
        BackupError::ReadOnly(_) => {
            let hint = "copy the store and the -wal file beside it to a writable directory, then back up the copy: \
                        sessile serve backup --store COPY";
            with_hint(Code::Io, shown(&error), hint.to_owned())
        }
        BackupError::InUse(_) => {
            let hint = "stop every service that uses this store, then run the command again".to_owned();
            with_hint(Code::LockHeld, shown(&error), hint)
        }
        BackupError::File(error) => error.into(),
        BackupError::Store(error) => failed(&error),
    }
}
