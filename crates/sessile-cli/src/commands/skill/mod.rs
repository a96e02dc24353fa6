//! `sessile skill`: instructions for coding agents.
//!
//! The text is in the templates. Version, commands, codes and statuses are filled in from the program's own tables,
//! and a test parses every command in the text.

use serde_json::json;
use sessile::{Code, exit};

use crate::cli::Cx;
use crate::effects::{CommandEffect, TABLE};
use crate::error::Outcome;
use crate::help::examples;

/// Print instructions for coding agents
///
/// `--format skill` prints the full text, which an agent loads on demand. `--format agents-md` prints a short section
/// for AGENTS.md, between comments that a script can find and replace.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile skill > .claude/skills/sessile/SKILL.md"
    "sessile skill --format agents-md >> AGENTS.md"
))]
pub struct Args {
    /// Format: skill (SKILL.md) or agents-md (a section of AGENTS.md)
    #[arg(long, value_enum, default_value_t = Format::Skill)]
    format: Format,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    /// A SKILL.md
    Skill,
    /// A section of an AGENTS.md
    AgentsMd,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Format::Skill => "skill",
            Format::AgentsMd => "agents-md",
        }
    }

    /// Usual path of such a file.
    fn path(self) -> &'static str {
        match self {
            Format::Skill => ".claude/skills/sessile/SKILL.md",
            Format::AgentsMd => "AGENTS.md",
        }
    }

    fn template(self) -> &'static str {
        match self {
            Format::Skill => include_str!("skill.md"),
            Format::AgentsMd => include_str!("agents.md"),
        }
    }
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let content = filled(args.format.template());
    let result = json!({
        "format": args.format.name(),
        "version": VERSION,
        "path": args.format.path(),
        "content": content,
    });
    cx.out.result(&result, || content.clone())
}

/// The skill, as a file.
pub(crate) fn content() -> String {
    filled(Format::Skill.template())
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Template with `{{...}}` filled in. An unknown placeholder stays, and a test finds it.
fn filled(template: &str) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        let Some((word, behind)) = after.split_once("}}") else {
            rest = after;
            continue;
        };
        match value(word) {
            Some(value) => out.push_str(&value),
            None => out.push_str(&format!("{{{{{word}}}}}")),
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

fn value(word: &str) -> Option<String> {
    match word {
        "version" => Some(VERSION.to_owned()),
        "statuses" => {
            let rows = exit::ALL.iter().map(|(status, about)| format!("| {status} | {about} |"));
            Some(rows.collect::<Vec<_>>().join("\n"))
        }
        "retryable" => {
            let codes = Code::ALL.iter().filter(|code| code.is_retryable());
            Some(listed(codes.map(|code| code.as_str())))
        }
        "reading" => Some(commands(CommandEffect::Read)),
        "removing" => Some(commands(CommandEffect::Destructive)),
        // A code with the status that goes with it.
        _ => {
            let code = Code::ALL.iter().find(|code| code.as_str() == word)?;
            Some(format!("`{}` ({})", code.as_str(), code.exit()))
        }
    }
}

fn commands(effect: CommandEffect) -> String {
    listed(TABLE.iter().filter(|entry| entry.effect == effect).map(|entry| entry.path))
}

/// Words as code, in lines that can be read.
fn listed(words: impl Iterator<Item = &'static str>) -> String {
    const WIDTH: usize = 118;
    let mut text = String::new();
    let mut width = 0;
    for word in words {
        let item = format!("`{word}`");
        if width > 0 {
            let fits = width + item.len() + 3 <= WIDTH;
            text.push_str(if fits { ", " } else { ",\n" });
            width = if fits { width + 2 } else { 0 };
        }
        text.push_str(&item);
        width += item.len();
    }
    text
}
