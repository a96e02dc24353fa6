//! Sources of a secret, which is never an argument.

use std::io::Read;
use std::path::{Path, PathBuf};

use sessile::confirm::can_ask;
use sessile::error::{FileError, UsageError};
use sessile::text::shell_quoted;
use sessile::vault::Secret;
use sessile::{Error, Report};

use crate::cli::Cx;
use crate::commands::input;
use crate::error::CommandError;
use crate::{error::Failure, terminal_prompt};

/// The longest secret.
const LIMIT: u64 = 64 * 1024;

const INSTEAD: &str = "other processes and the shell's history can read arguments; leave the value out for a prompt, or pass --secret-stdin or @FILE. Treat the secret you typed as compromised";

/// Flags for the source of a secret.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Source of the secret")]
#[group(multiple = false)]
pub(crate) struct SecretSource {
    /// Read the secret from standard input
    #[arg(long, visible_aliases = ["bearer-token-stdin", "token-stdin"], alias = "api-key-stdin", alias = "password-stdin")]
    secret_stdin: bool,

    /// Read the secret from a file
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,

    /// Read the secret from an environment variable
    #[arg(long, value_name = "VARIABLE", hide_short_help = true)]
    secret_env: Option<String>,

    /// Read the secret from a file descriptor
    #[arg(long, value_name = "NUMBER", hide_short_help = true)]
    secret_fd: Option<String>,
}

impl SecretSource {
    /// Whether a flag names a source.
    pub(crate) fn is_passed(&self) -> bool {
        self.secret_stdin
            || self.secret_file.is_some()
            || self.secret_env.is_some()
            || self.secret_fd.is_some()
    }

    /// Reads the secret, or prompts for it. `source` is the value of the flag: `-`, `@FILE` or none.
    pub(crate) fn read(
        &self,
        cx: &Cx,
        flag: &str,
        source: Option<&str>,
        prompt: &str,
    ) -> Result<Secret, Failure> {
        let text = match source {
            Some("-") => input::read(cx, Path::new("-"), LIMIT)?.1,
            Some(file) if file.starts_with('@') && file.len() > 1 => {
                read_file(cx.state.absolute(Path::new(&file[1..])))?
            }
            Some(_) => return Err(refused(flag).into()),
            None => self.said(cx, prompt)?,
        };
        let secret =
            // Editors and `echo` end a file with a line break that is not part of the secret.
            Secret::new(text.strip_suffix('\n').map_or(text.as_str(), |text| text.trim_end_matches('\r')));
        // Moved into a `Secret`, which wipes its memory when it is dropped.
        drop(zeroized(text));
        if secret.is_empty() {
            return Err(UsageError::Arguments("the secret is empty".into()).into());
        }
        // No environment variable can hold it.
        if secret.expose().contains('\0') {
            return Err(UsageError::Arguments("the secret contains a NUL byte".into()).into());
        }
        Ok(secret)
    }

    fn said(&self, cx: &Cx, prompt: &str) -> Result<String, Failure> {
        if self.secret_stdin {
            return Ok(input::read(cx, Path::new("-"), LIMIT)?.1);
        }
        if let Some(file) = &self.secret_file {
            return read_file(cx.state.absolute(file));
        }
        if let Some(variable) = &self.secret_env {
            let value = cx.state.world().variable(variable).and_then(|value| value.to_str());
            // Its name is not repeated: it may be the secret itself, given by mistake.
            return value.map(str::to_owned).ok_or_else(|| {
                UsageError::Arguments("--secret-env: the variable is not set, or empty".into()).into()
            });
        }
        if let Some(number) = &self.secret_fd {
            let number: u32 = number
                .parse()
                .map_err(|_| UsageError::Arguments("--secret-fd: not a file descriptor number".into()))?;
            return read_file(PathBuf::from(format!("/dev/fd/{number}")));
        }
        if !can_ask(&cx.state) {
            return Err(UsageError::TerminalRequired {
                what: "typing a secret".into(),
                instead: "pass the secret with --secret-stdin, --secret-file, --secret-env or --secret-fd"
                    .into(),
            }
            .into());
        }
        terminal_prompt::secret(prompt)
            .ok_or_else(|| CommandError::Declined("typing the secret".into()).into())
    }
}

/// Whether a word is a token of a session service and not a name.
pub(crate) fn is_service_token(word: &str) -> bool {
    word.starts_with(sessile_wire::service::TOKEN_PREFIX)
}

/// Error for a token in the place of a name, with the command that reads the token elsewhere.
pub(crate) fn typed_token(server: Option<&str>) -> Failure {
    let url = server.map_or_else(|| "URL".to_owned(), shell_quoted);
    let error = Error::Usage(UsageError::SecretRefused { place: "the name".to_owned(), instead: INSTEAD });
    let mut report = Report::of(error.diagnostic(), &crate::settings::app());
    report.hint = Some(format!(
        "pass the token on standard input: sessile auth login --server {url} --token-stdin; treat the token you typed \
         as compromised"
    ));
    Failure::Remote(Box::new(report))
}

/// Error for a secret among the arguments.
pub(crate) fn refused(flag: &str) -> Error {
    Error::Usage(UsageError::SecretRefused { place: flag.to_owned(), instead: INSTEAD })
}

/// Reads a file that was named for this, be it a pipe.
fn read_file(path: PathBuf) -> Result<String, Failure> {
    let failed = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::NotFound => Error::File(FileError::NotFound(path.clone())),
        _ => Error::File(FileError::Io { action: "read", path: path.clone(), source }),
    };
    let mut text = String::new();
    // Not `files::read`, which accepts regular files only: a descriptor may be a pipe.
    let file = std::fs::File::open(&path).map_err(failed)?;
    // Bounded, because a pipe or a device has no size to check before.
    file.take(LIMIT + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > LIMIT {
        return Err(FileError::TooLarge { path, size: text.len() as u64, limit: LIMIT }.into());
    }
    Ok(text)
}

fn zeroized(text: String) -> Secret {
    Secret::new(text)
}
