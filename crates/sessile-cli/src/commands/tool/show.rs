//! `sessile tool show`.

use serde_json::json;
use sessile::text::shown;
use sessile::tool::Profile;

use super::list::{installed_programs, source_word};
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;

/// Show a tool's profile
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile tool show kubectl" "sessile tool show aws --output json"))]
pub struct Args {
    /// Name of the tool, or of one of its programs
    #[arg(value_name = "TOOL")]
    name: String,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let (profile, source) = cx.state.tools().get(&args.name)?;
    let path = cx.state.world().variable("PATH").unwrap_or_default().to_owned();
    let mut json = profile.to_json();
    let source = source_word(&source);
    json["source"] = json!(source);
    json["installed"] = json!(installed_programs(&profile, &path));
    cx.out.result(&json, || text(&profile, &source))
}

fn text(profile: &Profile, source: &str) -> String {
    let mut text = format!("{}: {}\n", shown(&profile.name), shown(&profile.about));
    let mut line = |label: &str, value: String| text.push_str(&format!("  {label:<12} {}\n", shown(value)));
    line("programs", profile.programs.join(", "));
    line("profile", source.to_owned());
    let level = match (profile.on_request, profile.env_level.as_str()) {
        (true, level) => format!("{level}, on request: --tool or tools.also"),
        (false, level) => level.to_owned(),
    };
    line("env level", level);
    line("home level", if profile.home_level { "isolated" } else { "not isolated" }.to_owned());
    line(
        "verified",
        profile
            .verified
            .as_ref()
            .map_or_else(|| "not verified with the real tool".to_owned(), |v| format!("with {v}")),
    );
    for place in &profile.keeps {
        line("keeps", place.clone());
    }
    for (name, value) in &profile.variables {
        line("sets", format!("{name}={value}"));
    }
    for (name, value) in &profile.unless_set {
        line("sets", format!("{name}={value} (unless already set)"));
    }
    for seed in &profile.seed {
        line("copies", format!("{} to {{room}}/{}", seed.from.join(", "), seed.to));
        if !seed.except.is_empty() {
            line("", format!("without {}", seed.except.join(", ")));
        }
        if !seed.link.is_empty() {
            line("", format!("with links to {}", seed.link.join(", ")));
        }
    }
    if let Some(when) = &profile.shared_when {
        line("shared", format!("if {} contains {:?}: the login cannot be copied", when.file, when.holds));
    }
    for (key, binding) in &profile.bind {
        line("binds", format!("{key}: {}", binding.about));
    }
    let clears: Vec<&str> =
        profile.always_clears.iter().chain(&profile.command_clears).map(String::as_str).collect();
    if !clears.is_empty() {
        line("clears", clears.join(", "));
    }
    if !profile.clears.is_empty() {
        line("clears", format!("{} (when bound)", profile.clears.join(", ")));
    }
    if let Some(current) = &profile.current {
        line("current", current.join(" "));
    }
    if let Some(user) = &profile.user {
        line("user", user.join(" "));
    }
    for command in &profile.switches {
        line("switches", command.clone());
    }
    for phrase in &profile.not_isolated {
        line("not isolated", phrase.clone());
    }
    text
}
