//! `sessile trust`: let a project's files take effect.

use std::path::{Path, PathBuf};

use serde_json::json;
use sessile::config::trust;
use sessile::error::{FileError, ProjectError, UsageError};
use sessile::settings::project::Project;
use sessile::settings::trust::files as project_files;
use sessile::text::shown;
use sessile::{Error, State};

use crate::cli::Cx;
use crate::counted::counted;
use crate::error::Outcome;
use crate::help::examples;
use crate::output::Table;
use crate::terminal_prompt;

/// Trust a project's settings, contexts and tools
///
/// A project's .sessile/ directory comes with its repository. Until you trust its content, Sessile ignores everything
/// in it that could run a command, set a variable, name an endpoint, select a context or choose a credential. Changed
/// content needs trust again. Refused inside a session.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile trust                  review this project's files, then trust it"
    "sessile trust ../other --yes"
    "sessile trust --list"
    "sessile trust --revoke"
))]
pub struct Args {
    /// Directory of the project; default: the project of the working directory
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,

    /// List the trusted files
    #[arg(long, conflicts_with_all = ["revoke", "dir"])]
    list: bool,

    /// Revoke the trust
    #[arg(long)]
    revoke: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    // What is being asked about is shown here; a warning about it would be one too many.
    let _ = cx.state.take_warnings();
    if args.list {
        return list(cx);
    }
    cx.state
        .refuse_in_session("trusting a project", "trust the project on a terminal outside the session")?;
    let project = project(&cx.state, args.dir.as_deref())?;
    if args.revoke { revoke(cx, &project) } else { grant(cx, &project, &project_files(&project)?) }
}

fn project(state: &State, dir: Option<&Path>) -> Result<Project, Error> {
    let start = dir.map(|dir| state.absolute(dir)).or_else(|| state.world().cwd().map(Path::to_owned));
    let start = start.ok_or_else(|| UsageError::Arguments("the working directory does not exist".into()))?;
    let start =
        // Trust belongs to the real path, so that a link cannot borrow it.
        start.canonicalize().map_err(|source| FileError::Io { action: "open", path: start, source })?;
    Project::search(state.app(), state.world(), &start).require(&start)
}

fn grant(cx: &Cx, project: &Project, files: &[PathBuf]) -> Outcome {
    let root = shown(project.root().display());
    let mut contents = Vec::new();
    for path in files {
        let text = project.read(path)?.unwrap_or_default();
        // A file that cannot be parsed cannot be understood by the person who trusts it either.
        sessile::settings::Document::parse(path, text.clone())?;
        contents.push((path.clone(), text));
    }
    if cx.out.is_text() && !cx.out.is_quiet() {
        for (path, text) in &contents {
            cx.out.note(&format!("--- {}\n{}", shown(path.display()), text.trim_end()));
        }
    }
    terminal_prompt::confirm(&cx.state, &format!("trust {} of {root}", counted(files.len(), "file")))?;
    // What was shown is what is trusted, not what the files say by now.
    trust::grant(&cx.state, &root, &contents)?;
    let trusted: Vec<_> = files.iter().map(|path| path.to_string_lossy()).collect();
    cx.changed(json!({ "project": project.root().to_string_lossy(), "trusted": trusted }), || {
        format!("trusted {root} ({})\n", counted(files.len(), "file"))
    })
}

fn revoke(cx: &Cx, project: &Project) -> Outcome {
    let count = trust::revoke(&cx.state, &project.root().to_string_lossy(), project)?;
    cx.changed(json!({ "project": project.root().to_string_lossy(), "revoked": count }), || {
        format!("revoked the trust in {} ({})\n", shown(project.root().display()), counted(count, "file"))
    })
}

fn list(cx: &Cx) -> Outcome {
    let mut table = Table::new(&["STATE", "FILE"]);
    let mut items = Vec::new();
    for path in trust::trusted_files(&cx.state)? {
        let state = match cx.state.read(&path) {
            // A file that became a link out of the project is not read, and not called missing either.
            Err(Error::Project(ProjectError::UnsafeFile(_))) => "unsafe",
            Err(_) | Ok(None) => "missing",
            Ok(Some(text)) if trust::is_content_trusted(&cx.state, &path, &text)? => "trusted",
            Ok(Some(_)) => "changed",
        };
        table.row(&[state, &path.to_string_lossy()], None);
        items.push(json!({ "path": path.to_string_lossy(), "state": state }));
    }
    cx.out.list(&items, || {
        if items.is_empty() { "no trusted files\n".to_owned() } else { table.render(&cx.out) }
    })
}
