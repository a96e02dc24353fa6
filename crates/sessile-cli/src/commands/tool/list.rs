//! `sessile tool list`.

use serde_json::{Value, json};
use sessile::tool::Source;

use crate::cli::Cx;
use crate::commands::page::Page;
use crate::error::Outcome;
use crate::help::examples;
use crate::output::{Table, Tone};
use crate::throwaway::has_program;

/// List the tools that are known
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile tool list --installed" "sessile tool list --output json"))]
pub struct Args {
    /// Only those that are found on this machine
    #[arg(long)]
    installed: bool,

    #[command(flatten)]
    page: Page,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let path = cx.state.world().variable("PATH").unwrap_or_default().to_owned();
    let mut items = Vec::new();
    for (profile, source) in cx.state.tools().list()? {
        let installed: Vec<&String> =
            profile.programs.iter().filter(|program| has_program(&path, program)).collect();
        if args.installed && installed.is_empty() {
            continue;
        }
        items.push(json!({
            "name": profile.name,
            "about": profile.about,
            "group": profile.group,
            "programs": profile.programs,
            "installed": installed,
            "env_level": profile.env_level,
            "home_level": profile.home_level,
            "on_request": profile.on_request,
            "verified": profile.verified,
            "bind": profile.bind.iter().map(|(key, _)| key).collect::<Vec<_>>(),
            "source": source_word(&source),
        }));
    }
    let items = args.page.of(items, |item| item["name"].as_str().unwrap_or_default().to_owned());
    cx.out.list(&items, || {
        let mut table = Table::new(&["TOOL", "WHAT", "ENV LEVEL", "HOME LEVEL", "BINDS", "HERE"]);
        for item in &items {
            let text = |key: &str| item[key].as_str().unwrap_or_default().to_owned();
            let words = |key: &str| {
                let words = item[key].as_array().into_iter().flatten().filter_map(Value::as_str);
                words.collect::<Vec<_>>().join(", ")
            };
            let env = match item["on_request"].as_bool() {
                Some(true) => format!("{}, if asked", text("env_level")),
                _ => text("env_level"),
            };
            let home = if item["home_level"] == true { "yes" } else { "no" };
            let here =
                if item["installed"].as_array().is_some_and(|found| !found.is_empty()) { "yes" } else { "-" };
            let tone = (here == "-").then_some(Tone::Faint);
            table.row(
                &[text("name"), text("about"), env, home.to_owned(), words("bind"), here.to_owned()],
                tone,
            );
        }
        table.render(&cx.out)
    })
}

pub(super) fn source_word(source: &Source) -> Value {
    match source {
        Source::BuiltIn => json!("built in"),
        Source::User(path) | Source::Project(path) => json!(path.to_string_lossy()),
    }
}
