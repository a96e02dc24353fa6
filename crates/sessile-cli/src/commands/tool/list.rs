//! `sessile tool list`.

use std::ffi::OsStr;

use serde::Serialize;
use sessile::tool::{Isolation, Profile, Source};

use crate::cli::Cx;
use crate::commands::page::{Page, WideArgs};
use crate::error::Outcome;
use crate::help::examples;
use crate::output::{Table, Tone};
use crate::temporary_home::has_program;

/// List the known tools
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile tool list --installed" "sessile tool list --output json"))]
pub struct Args {
    /// List only installed tools
    #[arg(long)]
    installed: bool,

    #[command(flatten)]
    page: Page,

    #[command(flatten)]
    wide: WideArgs,
}

/// A tool.
#[derive(Debug, Serialize)]
struct ToolView {
    name: String,
    about: String,
    group: String,
    programs: Vec<String>,
    /// Programs that are found on this machine.
    installed: Vec<String>,
    env_level: Isolation,
    home_level: bool,
    on_request: bool,
    verified: Option<String>,
    bind: Vec<String>,
    source: String,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let path = cx.state.world().variable("PATH").unwrap_or_default().to_owned();
    let mut tools = Vec::new();
    for (profile, source) in cx.state.tools().list()? {
        let installed = installed_programs(&profile, &path);
        if args.installed && installed.is_empty() {
            continue;
        }
        tools.push(ToolView {
            name: profile.name,
            about: profile.about,
            group: profile.group,
            programs: profile.programs,
            installed,
            env_level: profile.env_level,
            home_level: profile.home_level,
            on_request: profile.on_request,
            verified: profile.verified,
            bind: profile.bind.into_iter().map(|(key, _)| key).collect(),
            source: source_word(&source),
        });
    }
    let tools = args.page.of(tools, |tool| tool.name.clone());
    cx.out.list(&tools, || {
        let mut table = Table::new(&["TOOL", "DESCRIPTION", "ENV LEVEL", "HOME LEVEL", "BINDS", "INSTALLED"]);
        for tool in &tools {
            let env = match tool.on_request {
                true => format!("{}, on request", tool.env_level.as_str()),
                false => tool.env_level.as_str().to_owned(),
            };
            let home = if tool.home_level { "yes" } else { "no" };
            let here = if tool.installed.is_empty() { "-" } else { "yes" };
            let tone = (here == "-").then_some(Tone::Faint);
            let (name, about) = (tool.name.as_str(), tool.about.as_str());
            table.row(&[name, about, &env, home, &tool.bind.join(", "), here], tone);
        }
        table.render_fitted(&cx.out, args.wide.wide)
    })
}

/// Programs of a tool that are found on a search path.
pub(super) fn installed_programs(profile: &Profile, path: &OsStr) -> Vec<String> {
    profile.programs.iter().filter(|program| has_program(path, program)).cloned().collect()
}

pub(super) fn source_word(source: &Source) -> String {
    match source {
        Source::BuiltIn => "built in".to_owned(),
        Source::User(path) | Source::Project(path) => path.to_string_lossy().into_owned(),
    }
}
