//! Parts of a message: `--text`, `--file`, `--data` and `--media-type`, in the order of the command line.

use std::io::Read;
use std::path::Path;

use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches};
use serde_json::Value;
use sessile::Error;
use sessile::error::{FileError, UsageError};
use sessile_wire::a2a::Part;

use super::compose::LARGEST;
use crate::cli::Cx;
use crate::commands::input;
use crate::error::Failure;

/// Flags of parts with their values, in the order of the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartArgs {
    flags: Vec<PartFlag>,
}

/// Flag of a part, and the media type that follows it.
#[derive(Clone, Debug)]
struct PartFlag {
    kind: PartKind,
    value: String,
    media_type: Option<String>,
}

/// Kind of a part that the user adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartKind {
    /// Text.
    Text,
    /// File, or a link to one.
    File,
    /// JSON.
    Data,
}

const KINDS: [(PartKind, &str); 3] =
    [(PartKind::Text, "text"), (PartKind::File, "file"), (PartKind::Data, "data")];

impl clap::Args for PartArgs {
    // clap's derive drops the order between flags, which is the order of the parts.
    fn augment_args(command: Command) -> Command {
        let flag = |name: &'static str, value: &'static str, help: &'static str| {
            Arg::new(name).long(name).value_name(value).help(help).action(ArgAction::Append)
        };
        command
            .arg(flag("text", "TEXT", "Add a text part").short('t').hide_short_help(true))
            .arg(flag("file", "FILE", "Add a file: a path is sent inline, a URL as a link").short('f'))
            .arg(
                flag("data", "JSON", "Add JSON: inline, @FILE or a file's name; - reads standard input")
                    .hide_short_help(true),
            )
            .arg(
                flag("media-type", "TYPE", "Media type of the preceding part; default: guessed")
                    .hide_short_help(true),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        PartArgs::augment_args(command)
    }
}

impl FromArgMatches for PartArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |name: &str| -> Vec<(usize, String)> {
            let values = matches.get_many::<String>(name).into_iter().flatten().cloned();
            matches.indices_of(name).into_iter().flatten().zip(values).collect()
        };
        let mut all: Vec<(usize, PartFlag)> = Vec::new();
        for (kind, name) in KINDS {
            let flags = given(name).into_iter();
            all.extend(flags.map(|(at, value)| (at, PartFlag { kind, value, media_type: None })));
        }
        all.sort_by_key(|(at, _)| *at);
        for (at, media_type) in given("media-type") {
            match all.iter_mut().rev().find(|(part, _)| *part < at) {
                Some((_, part)) if part.media_type.is_none() => part.media_type = Some(media_type),
                _ => {
                    let message = "--media-type must follow --text, --file or --data\n";
                    return Err(clap::Error::raw(clap::error::ErrorKind::ArgumentConflict, message));
                }
            }
        }
        Ok(PartArgs { flags: all.into_iter().map(|(_, part)| part).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = PartArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

impl PartArgs {
    /// Whether the message has no part.
    pub(super) fn is_empty(&self) -> bool {
        self.flags.is_empty()
    }

    /// The one text, if all parts are one.
    pub(super) fn only_text(&self) -> Option<&str> {
        match self.flags.as_slice() {
            [PartFlag { kind: PartKind::Text, value, media_type: None }] => Some(value),
            _ => None,
        }
    }

    /// Parts in the order of the command line.
    pub(super) fn parts(&self, cx: &Cx) -> Result<Vec<Part>, Failure> {
        self.flags.iter().map(|flag| flag.part(cx)).collect()
    }
}

/// Part of a kind from the value of its flag.
pub(crate) fn part_of(cx: &Cx, kind: PartKind, value: &str) -> Result<Part, Failure> {
    PartFlag { kind, value: value.to_owned(), media_type: None }.part(cx)
}

impl PartFlag {
    fn part(&self, cx: &Cx) -> Result<Part, Failure> {
        let typed = |part: Part| match &self.media_type {
            Some(mime) => Part::Typed { part: Box::new(part), mime: mime.clone() },
            None => part,
        };
        Ok(match self.kind {
            PartKind::Text => typed(Part::Text(self.value.clone())),
            PartKind::Data => typed(Part::Data(read_json(cx, &self.value)?)),
            PartKind::File if is_url(&self.value) => link(&self.value, self.media_type.clone()),
            PartKind::File => match read_file(&cx.state.absolute(Path::new(&self.value)))? {
                Part::File { bytes, name, mime } => {
                    Part::File { bytes, name, mime: self.media_type.clone().or(mime) }
                }
                other => other,
            },
        })
    }
}

fn is_url(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
}

/// Link to a file, which the agent fetches. Nothing is fetched here.
fn link(url: &str, mime: Option<String>) -> Part {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let path = path.split_once("://").map_or(path, |(_, rest)| rest);
    let name = path.split_once('/').and_then(|(_, path)| path.rsplit('/').next());
    let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
    let mime = mime.or_else(|| name.as_deref().and_then(media_type).map(str::to_owned));
    Part::Link { url: url.to_owned(), name, mime }
}

/// JSON of `--data`.
fn read_json(cx: &Cx, text: &str) -> Result<Value, Failure> {
    let read = |file: &str| Ok::<_, Failure>(input::read(cx, Path::new(file), LARGEST)?.1);
    let wrong = |error: &dyn std::fmt::Display| UsageError::InvalidValue {
        place: "--data".into(),
        value: sessile::text::shortened(text, 60),
        expected: format!("JSON ({error})"),
    };
    let text_of_file = match text.strip_prefix('@') {
        Some(file) => Some(read(file)?),
        None if text == "-" => Some(read(text)?),
        None => None,
    };
    if let Some(json) = text_of_file {
        return Ok(sessile::json::from_str(&json).map_err(|error| wrong(&error))?);
    }
    match sessile::json::from_str(text) {
        Ok(json) => Ok(json),
        // JSON inline is never the name of a file that exists, as a rule.
        Err(_) if cx.state.absolute(Path::new(text)).is_file() => {
            Ok(sessile::json::from_str(&read(text)?).map_err(|error| wrong(&error))?)
        }
        Err(error) => Err(wrong(&error).into()),
    }
}

fn read_file(path: &Path) -> Result<Part, Error> {
    let failed = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::NotFound => Error::File(FileError::NotFound(path.to_owned())),
        _ => Error::File(FileError::Io { action: "read", path: path.to_owned(), source }),
    };
    let mut bytes = Vec::new();
    // Bounded while it is read, because the file may grow.
    std::fs::File::open(path).map_err(failed)?.take(LARGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LARGEST {
        return Err(
            FileError::TooLarge { path: path.to_owned(), size: bytes.len() as u64, limit: LARGEST }.into()
        );
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let mime = name.as_deref().and_then(media_type).map(str::to_owned);
    Ok(Part::File { bytes, name, mime })
}

/// The media type of the usual endings.
fn media_type(name: &str) -> Option<&'static str> {
    Some(match name.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
        "txt" | "log" => "text/plain",
        "md" => "text/markdown",
        "html" => "text/html",
        "csv" => "text/csv",
        "json" => "application/json",
        "yaml" | "yml" => "application/yaml",
        "pdf" => "application/pdf",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "svg" => "image/svg+xml",
        "wav" => "audio/wav",
        "mp3" => "audio/mpeg",
        "mp4" => "video/mp4",
        "zip" => "application/zip",
        _ => return None,
    })
}
