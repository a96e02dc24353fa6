//! `sessile setup`: makes a coding agent use Sessile, and reverts it.
//!
//! Three parts, each described by the agent's entry in `mcp/clients.toml`: the entry of the MCP server, the skill,
//! and a wrapper. The wrapper precedes the agent's program on the search path and starts it with `run`. So the
//! agent's shell commands inherit a session of their own, however the agent starts them.

mod change;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod json_text;
mod record;

use std::path::{Path, PathBuf};

use clap::builder::PossibleValue;
use serde_json::{Value, json};
use sessile::confirm::{Consent, consent};
use sessile::error::FileError;
use sessile::hook::HookLine;
use sessile::run::shell::Shell;
use sessile::text::{shell_quoted, shown};
use sessile::tool::Originals;
use sessile::{Error, State, history};

use crate::cli::Cx;
use crate::commands::mcp::client::{Client, ClientSetup, ServerCommand, own_program};
use crate::commands::skill;
use crate::error::Outcome;
use crate::help::examples;
use crate::output::Table;
use crate::temporary_home::has_program;
use crate::terminal_prompt;
use change::{EditNotation, PlannedChange, RevertResult, SetupChange, SetupPart};
use record::SetupRecord;

/// Directory of the wrappers, in the state directory.
const WRAPPERS: &str = "wrappers";

/// Set up a coding agent with the MCP server, the skill and sessions
///
/// Shows the changes and asks for confirmation; in a script pass --yes. Setup adds the MCP server to the agent's settings,
/// installs the skill, and creates a wrapper that starts the agent in a session of its own. A line in your shell's start-up
/// file puts the wrapper on the search path. --context pins the session and the server to a context. Existing entries and
/// files that differ are not changed. --undo removes exactly what setup added.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile setup                          list the agents"
    "sessile setup claude --dry-run         show the changes"
    "sessile setup claude --context staging"
    "sessile setup codex --only mcp,skill --yes"
    "sessile setup claude --undo"
))]
pub struct Args {
    /// Set up this agent; default: list the agents
    #[arg(value_name = "AGENT", value_parser = agents())]
    agent: Option<String>,

    /// Show the changes without making them
    #[arg(long, requires = "agent")]
    dry_run: bool,

    /// Remove what setup added
    #[arg(long, requires = "agent", conflicts_with_all = ["only", "allow_run", "shell"])]
    undo: bool,

    /// Make only these parts
    #[arg(long, value_name = "PART", value_enum, value_delimiter = ',', requires = "agent")]
    only: Vec<SetupPart>,

    /// Also offer the MCP tool that runs commands
    #[arg(long, requires = "agent")]
    allow_run: bool,

    /// Change the start-up file of this shell; default: $SHELL, else the login shell of the account
    #[arg(long, value_enum, requires = "agent")]
    shell: Option<Shell>,
}

fn agents() -> Vec<PossibleValue> {
    let with_setup = Client::all().iter().filter(|client| client.setup.is_some());
    with_setup.map(|client| PossibleValue::new(&client.name).help(&client.about)).collect()
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let named = Client::all().iter().find(|client| Some(&client.name) == args.agent.as_ref());
    let Some((client, setup)) = named.and_then(|client| Some((client, client.setup.as_ref()?))) else {
        return list(cx);
    };
    if !args.dry_run {
        cx.state.refuse_in_session("setting up an agent", "do it outside the session")?;
    }
    let record = SetupRecord::load(&cx.state, &client.name)?;
    if args.undo {
        return undo(args, client, record.unwrap_or_default(), cx);
    }
    let paths = SetupPaths::of(&cx.state)?;
    let wanted = SetupRequest::of(args, client, setup, &paths, cx)?;
    let plan = wanted.plan(record.as_ref())?;
    report_occupied(&plan, cx);
    let changes = changes_of(plan);
    if args.dry_run {
        return print_plan(client, &changes, cx);
    }
    if changes.is_empty() {
        let result = json!({ "agent": client.name, "changed": false, "changes": [] });
        return cx.changed(result, || format!("{} is already set up\n", client.about));
    }
    let what = format!("set up {}", client.about);
    if consent(&cx.state, what.as_str())? == Consent::Ask {
        cx.out.note(&plan_text(&changes));
        terminal_prompt::confirm(&cx.state, &what)?;
    }
    // An older set-up with other arguments is replaced: its files are first as if it had never been made.
    let (old, mut kept) = record.unwrap_or_default().split(|part| wanted.has(part));
    revert(&cx.state, &client.name, old, &mut kept)?;
    let changes = changes_of(wanted.plan(None)?);
    apply(&cx.state, &client.name, &changes, &kept)?;
    history::record(&cx.state, "setup", &client.name, "setup --undo removes it")?;
    let result = json!({ "agent": client.name, "changed": true, "changes": views(&changes) });
    cx.changed(result, || done_text(client, &changes))?;
    wanted.note_next_steps(cx);
    Ok(())
}

fn list(cx: &Cx) -> Outcome {
    let mut items = Vec::new();
    let mut table = Table::new(&["AGENT", "DESCRIPTION", "SET UP", "PROGRAM"]);
    for client in Client::all() {
        let Some(setup) = &client.setup else { continue };
        let is_set_up = SetupRecord::load(&cx.state, &client.name)?.is_some();
        let program = setup.program.clone().unwrap_or_else(|| "-".to_owned());
        let word = if is_set_up { "yes" } else { "no" };
        table.row(&[client.name.as_str(), &client.about, word, &program], None);
        items.push(json!({
            "agent": client.name, "about": client.about, "program": setup.program, "set_up": is_set_up,
        }));
    }
    cx.out.list(&items, || table.render_wrapped(&cx.out))
}

/// Where the files of the user are.
struct SetupPaths {
    home: PathBuf,
    originals: Originals,
    wrappers: PathBuf,
}

impl SetupPaths {
    fn of(state: &State) -> Result<Self, Error> {
        let originals = Originals::of(state.app(), state.world());
        // A hooked shell has variables that lead elsewhere; the user's own count.
        let own = originals.get(state.world(), "HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let home = own.or_else(|| state.world().home().map(PathBuf::from));
        let home = home.ok_or(FileError::NoHome("the settings of the agent"))?;
        Ok(SetupPaths { home, originals, wrappers: state.dirs().state()?.join(WRAPPERS) })
    }

    /// The first path whose variable is set: `{CODEX_HOME}/config.toml`, `~/.codex/config.toml`.
    fn resolve(&self, state: &State, candidates: &[String]) -> Option<PathBuf> {
        candidates.iter().find_map(|candidate| {
            if let Some(below) = candidate.strip_prefix("~/") {
                return Some(self.home.join(below));
            }
            let (variable, below) = candidate.strip_prefix('{')?.split_once("}/")?;
            let base = self.originals.get(state.world(), variable).map(PathBuf::from)?;
            base.is_absolute().then(|| base.join(below))
        })
    }
}

/// A set-up with everything that the arguments say.
struct SetupRequest<'a> {
    client: &'a Client,
    only: &'a [SetupPart],
    entry: PathBuf,
    snippet: String,
    skill: Option<PathBuf>,
    wrapper: Option<Wrapper>,
}

/// The program that starts an agent in a session.
struct Wrapper {
    path: PathBuf,
    script: String,
    /// The start-up file of the shell, and the line that puts the wrapper on the search path.
    line: Option<(PathBuf, String)>,
    is_agent_installed: bool,
}

impl<'a> SetupRequest<'a> {
    fn of(
        args: &'a Args,
        client: &'a Client,
        setup: &'a ClientSetup,
        paths: &SetupPaths,
        cx: &Cx,
    ) -> Result<Self, Error> {
        let state = &cx.state;
        let search = state.world().variable("PATH").unwrap_or_default();
        let name = state.app().name();
        // A program that the desktop starts has another search path than this shell.
        let program = if setup.program.is_some() && has_program(search, name) {
            name.to_owned()
        } else {
            own_program(state)?
        };
        let mut words = vec!["mcp".to_owned()];
        let mut flags = Vec::new();
        if let Some(context) = &state.args().context {
            flags.extend(["--context".to_owned(), context.clone()]);
            words.extend(flags.clone());
        }
        if args.allow_run {
            words.push("--allow-run".to_owned());
        }
        let snippet = client.snippet(&ServerCommand { command: program.clone(), args: words });
        let entry =
            paths.resolve(state, &setup.entry).ok_or(FileError::NoHome("the settings of the agent"))?;
        let wrapper = setup.program.as_ref().map(|agent| {
            let script = wrapper_script(agent, &program, &paths.wrappers, &flags);
            let elsewhere = std::env::split_paths(search).filter(|dir| *dir != paths.wrappers);
            let elsewhere = std::env::join_paths(elsewhere).unwrap_or_default();
            Wrapper {
                path: paths.wrappers.join(agent),
                script,
                line: path_line(args.shell, state, &paths.wrappers),
                is_agent_installed: has_program(&elsewhere, agent),
            }
        });
        let skill = paths.resolve(state, &setup.skill);
        Ok(SetupRequest { client, only: &args.only, entry, snippet, skill, wrapper })
    }

    fn has(&self, part: SetupPart) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    /// The changes, against the files without the recorded set-up.
    fn plan(&self, record: Option<&SetupRecord>) -> Result<Vec<PlannedChange>, Error> {
        let mut plan = Vec::new();
        if self.has(SetupPart::Mcp) {
            plan.push(SetupChange::entry(&self.entry, &self.client.format, &self.snippet)?);
        }
        if let Some(path) = self.skill.as_ref().filter(|_| self.has(SetupPart::Skill)) {
            plan.push(SetupChange::file(SetupPart::Skill, path, skill::content(), 0o644)?);
        }
        if let Some(wrapper) = self.wrapper.as_ref().filter(|_| self.has(SetupPart::Wrapper)) {
            plan.push(SetupChange::file(SetupPart::Wrapper, &wrapper.path, wrapper.script.clone(), 0o755)?);
            if let Some((path, line)) = &wrapper.line {
                plan.push(SetupChange::line(SetupPart::Wrapper, path, line)?);
            }
        }
        let is_recorded = |path: &Path| {
            record.is_some_and(|record| record.changes.iter().any(|change| change.path == path))
        };
        for planned in &mut plan {
            // What an older set-up wrote is replaced.
            if let PlannedChange::Occupied { path, .. } = planned
                && is_recorded(path)
            {
                *planned = PlannedChange::Change(Box::new(SetupChange::replacement(path)));
            }
        }
        Ok(plan)
    }

    fn note_next_steps(&self, cx: &Cx) {
        let Some(wrapper) = self.wrapper.as_ref().filter(|_| self.has(SetupPart::Wrapper)) else {
            if self.wrapper.is_none() {
                cx.out.note("setup makes no wrapper for this program; start it with `sessile run`");
            }
            return;
        };
        let dir = wrapper.path.parent().unwrap_or(&wrapper.path);
        match &wrapper.line {
            Some(_) => cx.out.note("start a new shell to use the wrapper"),
            None => cx.out.note(&format!("put {} first on the PATH of your shell", shown(dir.display()))),
        }
        if !wrapper.is_agent_installed {
            cx.out.note(&format!(
                "{} is not on the PATH; the wrapper looks for it at every start",
                self.client.about
            ));
        }
    }
}

/// The line that puts the wrappers on the search path, and the start-up file of the shell.
fn path_line(shell: Option<Shell>, state: &State, wrappers: &Path) -> Option<(PathBuf, String)> {
    let world = state.world();
    let usual = || {
        let program = world.variable("SHELL").map(|shell| shell.to_string_lossy().into_owned());
        let account = || world.account_shell().map(|shell| shell.to_string_lossy().into_owned());
        Shell::of_program(&program.or_else(account)?)
    };
    let shell = shell.or_else(usual)?;
    let path = HookLine::of(state, shell).ok()?.path;
    let dir = shell.quoted(wrappers.to_str()?);
    let line = match shell {
        Shell::Bash | Shell::Zsh => format!("export PATH={dir}:\"$PATH\""),
        Shell::Fish => format!("set -gx PATH {dir} $PATH"),
    };
    Some((path, line))
}

/// The wrapper of a program. It looks the program up at every start, because agents update themselves.
fn wrapper_script(agent: &str, program: &str, wrappers: &Path, flags: &[String]) -> String {
    let words: Vec<String> = ["run", "--agent", agent, "--max-action", "warn"]
        .iter()
        .map(|word| (*word).to_owned())
        .chain(flags.iter().cloned())
        .collect();
    let words: Vec<String> = words.iter().map(|word| shell_quoted(word)).collect();
    include_str!("wrapper.sh")
        .replace("{agent}", agent)
        .replace("{wrappers}", &Shell::Bash.quoted(&wrappers.to_string_lossy()))
        .replace("{program}", &shell_quoted(program))
        .replace("{run}", &words.join(" "))
}

fn changes_of(plan: Vec<PlannedChange>) -> Vec<SetupChange> {
    let change = |planned| match planned {
        PlannedChange::Change(change) => Some(*change),
        PlannedChange::Present | PlannedChange::Occupied { .. } => None,
    };
    plan.into_iter().filter_map(change).collect()
}

fn report_occupied(plan: &[PlannedChange], cx: &Cx) {
    for planned in plan {
        if let PlannedChange::Occupied { path, what } = planned {
            cx.out.note(&format!("{}: {what} already exists and was not changed", shown(path.display())));
        }
    }
}

fn views(changes: &[SetupChange]) -> Vec<Value> {
    let view = |change: &SetupChange| {
        json!({
            "part": change.part,
            "path": change.path.to_string_lossy(),
            "action": if change.is_new { "create" } else { "edit" },
            "text": change.inserted,
        })
    };
    changes.iter().map(view).collect()
}

fn plan_text(changes: &[SetupChange]) -> String {
    let mut text = String::new();
    for change in changes {
        let new = if change.is_new { " (new file)" } else { "" };
        text.push_str(&format!("{}{new}: {}\n", shown(change.path.display()), shown(change.summary())));
        // The skill is long, and `skill` prints it.
        if change.part != SetupPart::Skill && change.notation != EditNotation::Line {
            let lines = change.inserted.lines().filter(|line| !line.is_empty());
            lines.for_each(|line| text.push_str(&format!("    {}\n", shown(line))));
        }
    }
    text
}

fn print_plan(client: &Client, changes: &[SetupChange], cx: &Cx) -> Outcome {
    let result = json!({ "agent": client.name, "changes": views(changes) });
    cx.out.result(&result, || match changes {
        [] => format!("{} is already set up\n", client.about),
        changes => plan_text(changes),
    })
}

fn done_text(client: &Client, changes: &[SetupChange]) -> String {
    let mut text = format!("set up {}\n", client.about);
    for change in changes {
        text.push_str(&format!("  {}: {}\n", shown(change.path.display()), shown(change.summary())));
    }
    text
}

/// Makes the changes. If one fails, those before it are reverted. The record keeps what it has of other parts.
fn apply(state: &State, agent: &str, changes: &[SetupChange], kept: &SetupRecord) -> Result<(), Error> {
    let record = SetupRecord { changes: kept.changes.iter().chain(changes).cloned().collect() };
    // Before the first change: after a crash --undo finds what to revert.
    record.save(state, agent)?;
    for (at, change) in changes.iter().enumerate() {
        if let Err(error) = change.apply(state) {
            for made in changes[..at].iter().rev() {
                made.revert(state)?;
            }
            kept.save(state, agent)?;
            return Err(error);
        }
    }
    Ok(())
}

/// Reverts recorded changes. Returns what became of each; the record keeps the others.
fn revert(
    state: &State,
    agent: &str,
    old: SetupRecord,
    kept: &mut SetupRecord,
) -> Result<Vec<(SetupChange, RevertResult)>, Error> {
    let mut outcomes = Vec::new();
    if old.changes.is_empty() {
        return Ok(outcomes);
    }
    for change in old.changes.into_iter().rev() {
        if change.notation == EditNotation::Line && hand_over(state, agent, &change)? {
            continue;
        }
        let outcome = change.revert(state)?;
        outcomes.push((change, outcome));
    }
    let dirs = outcomes.iter().flat_map(|(change, _)| &change.new_dirs).filter(|dir| dir.exists());
    let dirs: Vec<PathBuf> = dirs.cloned().collect();
    kept.adopt_dirs(&dirs);
    kept.save(state, agent)?;
    for client in Client::all().iter().filter(|client| client.name != agent && !dirs.is_empty()) {
        if let Some(mut other) = SetupRecord::load(state, &client.name)?
            && other.adopt_dirs(&dirs)
        {
            other.save(state, &client.name)?;
        }
    }
    Ok(outcomes)
}

/// Leaves the line of the search path to another agent that has a wrapper.
fn hand_over(state: &State, agent: &str, line: &SetupChange) -> Result<bool, Error> {
    for client in Client::all().iter().filter(|client| client.name != agent) {
        let Some(mut other) = SetupRecord::load(state, &client.name)? else { continue };
        if other.changes.iter().any(|change| change.part == SetupPart::Wrapper) {
            other.changes.push(line.clone());
            other.save(state, &client.name)?;
            return Ok(true);
        }
    }
    Ok(false)
}

fn undo(args: &Args, client: &Client, record: SetupRecord, cx: &Cx) -> Outcome {
    if record.changes.is_empty() {
        let result = json!({ "agent": client.name, "changed": false, "changes": [] });
        return cx.changed(result, || format!("{} is not set up\n", client.about));
    }
    let paths = || record.changes.iter().map(|change| shown(change.path.display())).collect::<Vec<_>>();
    if args.dry_run {
        let result = json!({ "agent": client.name, "changes": views(&record.changes) });
        return cx.out.result(&result, || {
            paths().iter().map(|path| format!("{path}: remove the added text\n")).collect()
        });
    }
    terminal_prompt::confirm(
        &cx.state,
        &format!("remove the set-up of {} from {}", client.about, paths().join(", ")),
    )?;
    let outcomes = revert(&cx.state, &client.name, record, &mut SetupRecord::default())?;
    history::record(&cx.state, "setup", &client.name, "run setup again")?;
    let views: Vec<Value> = outcomes
        .iter()
        .map(|(change, outcome)| {
            json!({ "part": change.part, "path": change.path.to_string_lossy(), "result": word(outcome) })
        })
        .collect();
    cx.changed(json!({ "agent": client.name, "changed": true, "changes": views }), || {
        let mut text = format!("removed the set-up of {}\n", client.about);
        for (change, outcome) in &outcomes {
            text.push_str(&format!("  {}: {}\n", shown(change.path.display()), word(outcome)));
        }
        text
    })
}

fn word(outcome: &RevertResult) -> &'static str {
    match outcome {
        RevertResult::Restored => "restored",
        RevertResult::Removed => "removed",
        RevertResult::Gone => "already removed",
        RevertResult::Left => "edited since; not changed",
    }
}
