//! Validation of settings and context files: all problems, not only the first.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde::Serialize;

use crate::app::App;
use crate::call::ConfigSource;
use crate::context::Context;
use crate::error::{Error, FileError, FileLocation, Result};
use crate::names::ContextName;
use crate::settings::{Document, Layer, SettingSource, Stack, UnknownSetting};
use crate::state::State;
use crate::text::quoted;

/// Number of unknown keys of a file that are reported one by one.
const MOST: usize = 100;

/// Problem in a file.
#[derive(Clone, Debug, Serialize)]
pub struct Problem {
    /// The file.
    #[serde(serialize_with = "crate::text::path_in_json")]
    pub path: PathBuf,
    /// The line, from 1, where it is known.
    pub line: Option<usize>,
    /// The column, from 1.
    pub column: Option<usize>,
    /// Whether the file is unusable.
    pub is_error: bool,
    /// Description of the problem.
    pub message: String,
    /// The next step.
    pub hint: Option<String>,
}

impl Problem {
    fn of_error(app: &App, path: &Path, error: &Error) -> Self {
        let place = error.location();
        let text = error.to_string();
        let message =
            // The place is a field of its own in the problem.
            place.and_then(|place| text.strip_prefix(&format!("{place}: "))).unwrap_or(&text).to_owned();
        Problem { is_error: true, hint: error.hint(app), ..Self::at(path, place, message) }
    }

    fn of_unknown(unknown: &UnknownSetting) -> Self {
        let message = format!("unknown key {}", quoted(unknown.key.to_string()));
        let hint = unknown.near.as_ref().map(|near| format!("did you mean {}?", quoted(near)));
        Problem { hint, ..Self::at(&unknown.place.path, Some(&unknown.place), message) }
    }

    fn at(path: &Path, place: Option<&FileLocation>, message: String) -> Self {
        Problem {
            path: path.to_owned(),
            line: place.map(|place| place.line),
            column: place.map(|place| place.column),
            is_error: false,
            message,
            hint: None,
        }
    }
}

/// Existing settings and context files of a state.
pub fn files(state: &State) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut unreadable = None;
    match state.source() {
        ConfigSource::Nothing => {}
        ConfigSource::File(file) => files.push(file.clone()),
        ConfigSource::Usual => {
            files.push(state.dirs().system_settings());
            files.extend(state.dirs().user_settings());
            if let Some(project) = state.project() {
                files.extend([project.settings(), project.local_settings()]);
            }
            let mut found = state.contexts().user_files()?;
            found.sort();
            files.extend(found);
            if let Some(project) = state.project() {
                match project.toml_files(&project.contexts()) {
                    Ok(mut found) => {
                        found.sort();
                        files.extend(found);
                    }
                    // Checking the directory says what is wrong with it.
                    Err(_) => unreadable = Some(project.contexts()),
                }
            }
        }
    }
    files.retain(|file| file.symlink_metadata().is_ok());
    files.extend(unreadable);
    Ok(files)
}

/// Problems of one file. A file in a directory `contexts` is a context, any other holds settings.
pub fn file(state: &State, path: &Path, layer: Layer) -> Vec<Problem> {
    let app = state.app();
    let document = match state.load(path) {
        Ok(Some(document)) => Rc::new(document),
        Ok(None) => {
            return vec![Problem::of_error(app, path, &Error::File(FileError::NotFound(path.to_owned())))];
        }
        Err(error) => return vec![Problem::of_error(app, path, &error)],
    };
    let is_context = path.parent().and_then(Path::file_name).is_some_and(|name| name == "contexts");
    if is_context {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        return context(app, path, name.parse(), &document, Vec::new());
    }
    let source = SettingSource::File {
        layer,
        name: None,
        document: Rc::clone(&document),
        within: Vec::new(),
        trusted: true,
    };
    let stack = Stack::new(app, vec![source]);
    let mut problems: Vec<Problem> = stack
        .keys(false)
        .iter()
        .filter_map(|key| stack.explain(key).err())
        .map(|error| Problem::of_error(app, path, &error))
        .collect();
    let (unknown, more) = stack.unknown(MOST);
    problems.extend(unknown.iter().map(Problem::of_unknown));
    if more > 0 {
        problems.push(Problem::at(path, None, format!("{more} more unknown keys")));
    }
    if layer == Layer::File {
        let inline = document.root().get("contexts").map(|node| node.members()).unwrap_or_default();
        for (name, node) in inline {
            let within = vec!["contexts".to_owned(), name.clone()];
            problems.extend(context(app, path, document.context_name(name, node), &document, within));
        }
    }
    // In the order of the file, not of the checks.
    problems.sort_by_key(|problem| (problem.line, problem.column));
    problems
}

fn context(
    app: &App,
    path: &Path,
    name: Result<ContextName>,
    document: &Rc<Document>,
    within: Vec<String>,
) -> Vec<Problem> {
    let read = name.and_then(|name| {
        let document = Rc::clone(document);
        Context::read(app, name, crate::context::ContextLocation::User, true, document, within)
    });
    match read {
        Ok(context) => context.unknown.iter().map(Problem::of_unknown).collect(),
        Err(error) => vec![Problem::of_error(app, path, &error)],
    }
}
