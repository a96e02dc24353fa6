//! Letting a person edit a text in their own editor.

use std::io::Write;
use std::process::Command;

use sessile::error::{FileError, UsageError};
use sessile::text::shown;
use sessile::{Error, State};

use crate::error::{CommandError, Failure};
use crate::output::Output;
use crate::terminal_prompt;

/// A copy of a text that a person edits.
pub(crate) struct EditorFile {
    file: tempfile::NamedTempFile,
}

impl EditorFile {
    /// Starts the editor on a copy of `text`; `suffix` tells the editor what kind of file it is.
    pub(crate) fn open(state: &State, text: &str, suffix: &str, instead: &str) -> Result<Self, Failure> {
        let streams = state.world().streams();
        if !streams.stdin || !streams.stdout || state.args().no_input || state.world().is_ci() {
            return Err(
                UsageError::TerminalRequired { what: "editing".into(), instead: instead.to_owned() }.into()
            );
        }
        // Created with mode 0600: settings may be confidential.
        let mut file = tempfile::Builder::new()
            .prefix("sessile-edit-")
            .suffix(suffix)
            .tempfile()
            .map_err(|source| FileError::Io { action: "write", path: std::env::temp_dir(), source })?;
        file.write_all(text.as_bytes()).map_err(|source| FileError::Io {
            action: "write",
            path: file.path().to_owned(),
            source,
        })?;
        let edited = EditorFile { file };
        edited.again(state)?;
        Ok(edited)
    }

    /// Starts the editor again on the saved text.
    fn again(&self, state: &State) -> Result<(), CommandError> {
        let variable = |name| state.world().variable(name).map(|value| value.to_string_lossy().into_owned());
        let editor = variable("VISUAL").or_else(|| variable("EDITOR")).unwrap_or_else(|| "vi".to_owned());
        // EDITOR may hold arguments, such as `code --wait`. No shell is involved.
        let mut words = editor.split_whitespace();
        let failed =
            |reason: String| CommandError::EditorFailed { editor: editor.clone(), reason, kept: None };
        let program = words.next().ok_or_else(|| failed("is not set".into()))?;
        let status = Command::new(program).args(words).arg(self.file.path()).status();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(failed(format!("failed ({status})"))),
            Err(error) => Err(failed(format!("cannot be started: {error}"))),
        }
    }

    /// Saved text.
    fn text(&self) -> Result<String, Error> {
        // Editors replace files; the path counts, not the handle.
        sessile::files::read(self.file.path())?
            .ok_or_else(|| Error::File(FileError::NotFound(self.file.path().to_owned())))
    }

    /// Applies the saved text; while it is invalid, reports why and offers the editor again. Text that could
    /// not be applied is kept in a file, and the error names it.
    pub(crate) fn until<T>(
        self,
        state: &State,
        out: &Output,
        mut apply: impl FnMut(&str) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        loop {
            let error = match self.text().and_then(|text| apply(&text)) {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            // Editing again fixes only mistakes in the text.
            if error.location().is_some() {
                out.failure(state.app(), &Failure::Library(error));
                if terminal_prompt::confirm(state, "edit the file again").is_err() {
                    let editor = "your editor".to_owned();
                    let reason = "left an invalid file; nothing was changed".to_owned();
                    return Err(CommandError::EditorFailed { editor, reason, kept: self.keep() }.into());
                }
                match self.again(state) {
                    Ok(()) => continue,
                    Err(CommandError::EditorFailed { editor, reason, .. }) => {
                        return Err(CommandError::EditorFailed { editor, reason, kept: self.keep() }.into());
                    }
                    Err(other) => return Err(other.into()),
                }
            }
            return Err(match error {
                Error::File(FileError::ConcurrentChange { path, .. }) => {
                    FileError::ConcurrentChange { path, kept: self.keep() }.into()
                }
                other => {
                    let kept = self.keep().unwrap_or_default();
                    state.warn(format!("your text was saved to {}", shown(kept.display())), None);
                    other.into()
                }
            });
        }
    }

    /// Leaves the copy where it is and returns its path, so that nothing typed is lost.
    fn keep(self) -> Option<std::path::PathBuf> {
        self.file.into_temp_path().keep().ok()
    }
}
