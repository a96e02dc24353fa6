//! Input of a command: a file, or standard input for `-`.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use sessile::Error;
use sessile::error::{FileError, UsageError};

use crate::cli::Cx;

/// Path and text of a file argument. A terminal is never read.
pub(crate) fn read(cx: &Cx, file: &Path, limit: u64) -> Result<(PathBuf, String), Error> {
    if file != Path::new("-") {
        let path = cx.state.absolute(file);
        if limit <= sessile::files::LIMIT {
            let text = sessile::files::read(&path)?.ok_or_else(|| FileError::NotFound(path.clone()))?;
            return Ok((path, text));
        }
        // A pipe or a device would block or never end.
        let found = path.metadata().map_err(|_| FileError::NotFound(path.clone()))?;
        if !found.is_file() {
            let found = if found.is_dir() { "a directory" } else { "a special file" };
            return Err(FileError::NotAFile { path, found }.into());
        }
        let opened = File::open(&path).map_err(|source| FileError::Io {
            action: "read",
            path: path.clone(),
            source,
        })?;
        let text = read_all(opened, &path, limit)?;
        return Ok((path, text));
    }
    // A command that silently waits for typing looks like one that hangs.
    if cx.state.world().streams().stdin {
        let reason = "cannot read standard input: it is a terminal; pass a file, or redirect one: < FILE";
        return Err(UsageError::Arguments(reason.to_owned()).into());
    }
    let path = PathBuf::from("standard input");
    let text = read_all(std::io::stdin(), &path, limit)?;
    // JSON begins with a brace, which TOML never does.
    let is_json = text.trim_start().starts_with('{');
    Ok((if is_json { PathBuf::from("standard input.json") } else { path }, text))
}

fn read_all(source: impl Read, path: &Path, limit: u64) -> Result<String, Error> {
    let mut bytes = Vec::new();
    source.take(limit + 1).read_to_end(&mut bytes).map_err(|source| FileError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    if bytes.len() as u64 > limit {
        return Err(FileError::TooLarge { path: path.to_owned(), size: bytes.len() as u64, limit }.into());
    }
    String::from_utf8(bytes).map_err(|error| {
        Error::File(FileError::NotUtf8 { path: path.to_owned(), offset: error.utf8_error().valid_up_to() })
    })
}
