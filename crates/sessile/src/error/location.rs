//! Positions in files that people edit.

use std::fmt;
use std::path::PathBuf;

use crate::text::shown;

/// Position in a file that a person edits, with the line itself to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLocation {
    /// Path of the file.
    pub path: PathBuf,
    /// Line number, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Text of the line, shortened if it is very long; empty if it may hold a secret.
    pub text: String,
}

impl fmt::Display for FileLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", shown(self.path.display()), self.line, self.column)
    }
}
