//! `sessile import`: contexts for the targets that the user's tools already have.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use inquire::{InquireError, MultiSelect};
use serde::Serialize;
use serde_json::json;
use sessile::confirm::{Consent, consent};
use sessile::context::{Context, Guard, transfer};
use sessile::error::{ContextError, UsageError};
use sessile::files::LockedDir;
use sessile::import::{self, FoundTarget, ImportResult, ProposedContext, Scan};
use sessile::text::{quoted, shell_quoted, shown};
use sessile::{Error, Report, State};

use crate::cli::Cx;
use crate::commands::input;
use crate::error::{CommandError, Failure, Outcome};
use crate::help::examples;
use crate::output::Table;
use crate::terminal_prompt;

/// The name that a plan gets which is written to no file.
const PLAN: &str = "plan.toml";

/// Create contexts for what your tools already have
///
/// Reads the kube contexts, cloud profiles, accounts and hosts of your tools, and proposes contexts for those that
/// belong together: prod, prd and live are production. On a terminal you choose from a list; in a script pass --yes.
/// What looks like production is guarded: it needs your approval before use. Your tools' files are never changed, and
/// a second import proposes only what is new.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = examples!(
        "sessile import                      choose from a list"
        "sessile import --dry-run            show what would be created"
        "sessile import --only staging --yes"
        "sessile import --plan plan.toml     write a plan to edit, for import apply"
    )
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    /// Create only these contexts
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,

    /// Write the plan to this file, and create nothing
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    plan: Option<PathBuf>,

    /// Show the contexts, and create nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the targets of your tools
    #[command(after_help = examples!("sessile import scan" "sessile import scan --output json"))]
    Scan,
    /// Create the contexts of a plan
    ///
    /// A context that exists keeps its guard and what it binds, and gets the bindings of other tools.
    #[command(after_help = examples!("sessile import apply plan.toml"))]
    Apply {
        /// The plan, or - for standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    match &args.command {
        Some(Command::Scan) => scan(cx),
        Some(Command::Apply { file }) => {
            let (path, text) = input::read(cx, file, sessile::files::LIMIT)?;
            apply(cx, &path, text)
        }
        None => propose(args, cx),
    }
}

/// A failure for want of a context, with the command that creates it if tools have a target of that name.
pub(crate) fn with_hint(state: &State, failure: Failure) -> Failure {
    let Some(Error::Context(error @ ContextError::NotFound { name, .. })) = failure.library_error() else {
        return failure;
    };
    // The scan runs only after a failure, because it reads the files of every tool.
    let Some(tools) = importable(state, name) else { return failure };
    let command = format!("{} import --only {}", state.app().name(), shell_quoted(name));
    let has = if tools.contains(" and ") { "have" } else { "has" };
    let report = Report {
        hint: Some(format!("{tools} {has} a target of that name; create the context with {command}")),
        fix_command: Some(command),
        ..Report::of(error, state.app())
    };
    let reported = Failure::Remote(Box::new(report));
    // Keeps the exit status that `run` gives to failures of its own.
    if matches!(failure, Failure::Own(_)) { reported.into_own() } else { reported }
}

/// The tools that have a target for a context of this name: `aws`, `aws and kubectl`.
fn importable(state: &State, name: &str) -> Option<String> {
    let scan = import::scan(state).ok()?;
    let proposed = import::new_contexts(&existing(state).ok()?, import::propose(&scan.targets));
    let context = proposed.into_iter().find(|context| context.name == name)?;
    let tools: Vec<String> = context.targets.into_iter().map(|target| target.tool).collect();
    let (last, others) = tools.split_last()?;
    Some(if others.is_empty() { last.clone() } else { format!("{} and {last}", others.join(", ")) })
}

fn scan(cx: &Cx) -> Outcome {
    let scan = found(cx)?;
    let contexts = existing(&cx.state)?;
    let items: Vec<TargetView<'_>> = scan
        .targets
        .iter()
        .map(|target| TargetView { target, contexts: import::contexts_of(&contexts, target) })
        .collect();
    cx.out.list(&items, || {
        if items.is_empty() {
            return "found nothing to import: no tool here has a target\n".to_owned();
        }
        let mut table = Table::new(&["TOOL", "TARGET", "CONTEXT"]);
        for item in &items {
            let contexts = if item.contexts.is_empty() { "-".to_owned() } else { item.contexts.join(", ") };
            table.row(&[item.target.tool.clone(), shown_target(item.target), contexts], None);
        }
        table.render(&cx.out)
    })
}

/// A target, with the contexts that bind it.
#[derive(Serialize)]
struct TargetView<'a> {
    #[serde(flatten)]
    target: &'a FoundTarget,
    contexts: Vec<String>,
}

/// Scans the tools, and warns about those whose files cannot be read.
fn found(cx: &Cx) -> Result<Scan, Failure> {
    let scan = import::scan(&cx.state)?;
    for tool in &scan.unreadable {
        cx.state.warn(format!("the files of {} could not be read: {}", tool.tool, tool.problem), None);
    }
    Ok(scan)
}

/// The contexts that exist and can be read.
fn existing(state: &State) -> Result<Vec<Context>, Failure> {
    // One context that cannot be read must not stop the import of others.
    Ok(state.contexts().list()?.into_iter().filter_map(|(_, context)| context.ok()).collect())
}

/// A number of things: `1 context`, `2 contexts`.
fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

fn propose(args: &Args, cx: &Cx) -> Outcome {
    let scan = found(cx)?;
    let existing = existing(&cx.state)?;
    let proposed = import::new_contexts(&existing, import::propose(&scan.targets));
    let chosen = only(&args.only, proposed, &existing)?;
    if let Some(file) = &args.plan {
        let path = cx.state.absolute(file);
        let text = import::plan_text(&path, &chosen)?;
        if path.exists() {
            terminal_prompt::confirm(&cx.state, &format!("replace {}", shown(path.display())))?;
        }
        let (dir, name) = LockedDir::of_file(&cx.state.locker()?, &path, 0o755)?;
        dir.replace_by_umask(Path::new(&name), &text)?;
        return cx.changed(json!({ "plan": path.to_string_lossy(), "contexts": names(&chosen) }), || {
            let contexts = counted(chosen.len(), "context");
            format!(
                "wrote a plan of {contexts} to {}; create them with: sessile import apply {}\n",
                shown(path.display()),
                shown(file.display())
            )
        });
    }
    // For people the sentence below says more than an empty table.
    if args.dry_run && (!cx.out.is_text() || !chosen.is_empty()) {
        return cx.out.list(&chosen, || table(cx, &chosen));
    }
    if chosen.is_empty() {
        return cx.changed(json!({ "contexts": [] }), || {
            format!("nothing new to import ({} found)\n", counted(scan.targets.len(), "target"))
        });
    }
    let what = format!("create {}", counted(chosen.len(), "context"));
    let chosen = match consent(&cx.state, &what)? {
        Consent::Given => chosen,
        Consent::Ask => choose(chosen)?,
    };
    let path = Path::new(PLAN);
    // Through the text of a plan, so that a direct import passes the same checks as an edited one.
    apply(cx, path, import::plan_text(path, &chosen)?)
}

fn only(
    only: &[String],
    proposed: Vec<ProposedContext>,
    existing: &[Context],
) -> Result<Vec<ProposedContext>, Failure> {
    if only.is_empty() {
        return Ok(proposed);
    }
    for name in only {
        let is_known = proposed.iter().any(|context| context.name == *name)
            || existing.iter().any(|context| context.name.as_str() == name);
        if !is_known {
            let names = names(&proposed).join(", ");
            let what = format!("no tool has a target for a context {}; proposed: {names}", quoted(name));
            return Err(UsageError::Arguments(what).into());
        }
    }
    Ok(proposed.into_iter().filter(|context| only.contains(&context.name)).collect())
}

fn names(contexts: &[ProposedContext]) -> Vec<String> {
    contexts.iter().map(|context| context.name.clone()).collect()
}

/// Asks which contexts to create; all are marked at first.
fn choose(proposed: Vec<ProposedContext>) -> Result<Vec<ProposedContext>, Failure> {
    let lines: Vec<String> = proposed.iter().map(shown_context).collect();
    let all: Vec<usize> = (0..lines.len()).collect();
    let asked = MultiSelect::new("Contexts to create:", lines)
        .with_default(&all)
        .with_page_size(15)
        .with_help_message("space marks, type to filter, enter creates, esc cancels")
        .raw_prompt();
    match asked {
        Ok(marked) => {
            let marked: Vec<usize> = marked.iter().map(|option| option.index).collect();
            let kept = proposed.into_iter().enumerate().filter(|(index, _)| marked.contains(index));
            Ok(kept.map(|(_, context)| context).collect())
        }
        Err(InquireError::OperationInterrupted) => Err(Failure::Interrupted),
        Err(_) => Err(CommandError::Declined("import contexts".to_owned()).into()),
    }
}

fn shown_context(context: &ProposedContext) -> String {
    let guard = if context.guard > Guard::None { " (approval)" } else { "" };
    let targets: Vec<String> =
        context.targets.iter().map(|target| format!("{} {}", target.tool, shown_target(target))).collect();
    shown(format!("{}{guard}: {}", context.name, targets.join(", ")))
}

/// The name of a target, with what belongs to it.
fn shown_target(target: &FoundTarget) -> String {
    let beside: Vec<String> = target.beside.iter().map(|(_, value)| value.clone()).collect();
    shown(beside.into_iter().chain([target.name.clone()]).collect::<Vec<_>>().join(" "))
}

fn table(cx: &Cx, contexts: &[ProposedContext]) -> String {
    let mut table = Table::new(&["CONTEXT", "GUARD", "BINDS"]);
    for context in contexts {
        for (at, target) in context.targets.iter().enumerate() {
            let (name, guard) =
                if at == 0 { (context.name.as_str(), context.guard.as_str()) } else { ("", "") };
            let binding = format!("{}.{}={}", target.tool, target.key, shown_target(target));
            table.row(&[name.to_owned(), guard.to_owned(), binding], None);
        }
    }
    table.render(&cx.out)
}

fn apply(cx: &Cx, path: &Path, text: String) -> Outcome {
    let planned = transfer::read(cx.state.app(), path, text)?;
    cx.state.refuse_in_session("importing contexts", "import them outside the session")?;
    let done = import::apply(&cx.state, &planned.contexts)?;
    cx.changed(json!({ "contexts": done }), || {
        done.iter()
            .map(|context| {
                let name = quoted(context.name.as_str());
                let bindings = context.added.join(", ");
                match context.result {
                    ImportResult::Created => format!("created context {name}: {bindings}\n"),
                    ImportResult::Extended => format!("added to context {name}: {bindings}\n"),
                    ImportResult::Unchanged => format!("context {name} already has these bindings\n"),
                }
            })
            .collect()
    })
}
