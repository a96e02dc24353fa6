//! `sessile man`: manual pages, made from the same tree as the parser.

use std::path::{Path, PathBuf};

use clap::CommandFactory;
use serde_json::json;
use sessile::files::LockedDir;
use sessile::text::shown;

use crate::cli::{Cli, Cx};
use crate::error::Outcome;
use crate::help::examples;

/// Print the manual page, or write all of them to a directory
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile man | man -l -" "sessile man --dir ~/.local/share/man/man1"))]
pub struct Args {
    /// Write a page for each command into this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let mut command = Cli::command();
    // Fills in the names and the global flags of subcommands.
    command.build();
    let Some(dir) = &args.dir else {
        let page = page(&command)?;
        return cx.out.result(&json!({ "page": page }), || page.clone());
    };
    let mut pages = Vec::new();
    collect(&command, &mut pages)?;
    let dir = LockedDir::lock(&cx.state.locker()?, &cx.state.absolute(dir), 0o755)?;
    for (name, text) in &pages {
        dir.replace_by_umask(Path::new(name), text)?;
    }
    let names: Vec<&String> = pages.iter().map(|(name, _)| name).collect();
    cx.changed(json!({ "directory": dir.path().to_string_lossy(), "pages": names }), || {
        format!("wrote {} pages to {}\n", pages.len(), shown(dir.path().display()))
    })
}

fn page(command: &clap::Command) -> std::io::Result<String> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

fn collect(command: &clap::Command, pages: &mut Vec<(String, String)>) -> std::io::Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    pages.push((format!("{name}.1"), page(command)?));
    command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .try_for_each(|command| collect(command, pages))
}
