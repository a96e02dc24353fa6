//! `sessile import`: contexts for the targets that the user's tools already have.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use inquire::list_option::ListOption;
use inquire::{InquireError, MultiSelect};
use serde::Serialize;
use serde_json::json;
use sessile::confirm::{Consent, can_ask, consent};
use sessile::context::{Context, Guard, transfer};
use sessile::error::{ContextError, UsageError};
use sessile::files::LockedDir;
use sessile::import::{
    self, FoundAgent, FoundConversation, FoundCredential, FoundTarget, ImportResult, ImportedContext,
    ProposedContext, ProposedVariable, Scan,
};
use sessile::text::{quoted, shell_quoted, shown};
use sessile::{Error, Report, State};

use crate::cli::Cx;
use crate::commands::input;
use crate::counted::counted;
use crate::error::{CommandError, Failure, Outcome};
use crate::help::examples;
use crate::output::Table;
use crate::terminal_prompt;
use crate::vault_unlock::with_unlocked_vault;

/// Most targets that an error names.
const MOST_OWNERS: usize = 4;

/// Name of a plan without a file.
const PLAN: &str = "plan.toml";

/// Create contexts from the targets that your tools already have
///
/// Reads the kube contexts, cloud profiles, accounts, identities and hosts of your tools, and groups them into contexts
/// by name: prod, prd and live become production. On a terminal you choose from a list; in a script pass --yes.
/// Contexts for production get the guard `approval`. Names of A2A agents and conversations with them are imported too.
/// Secrets in clear text can be copied to the vault: choose them from a second list, or pass --credentials. Your tools'
/// files are never changed, and a second import proposes only new targets.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = examples!(
        "sessile import                      choose from a list"
        "sessile import --dry-run            show what would be created"
        "sessile import --only staging --yes"
        "sessile import --yes --credentials"
        "sessile import --plan plan.toml     write a plan to edit, for import apply"
    )
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    /// Create only these contexts, by their names or by the names of their targets
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,

    /// Also copy the secrets that tools keep in clear text to the vault
    #[arg(long, conflicts_with_all = ["plan", "dry_run"])]
    credentials: bool,

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
    /// Existing contexts keep their guard and bindings, and get new bindings of other tools.
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

/// A failure for want of a context, with the command that creates it or the context that has its target.
pub(crate) fn with_hint(state: &State, failure: Failure) -> Failure {
    let Some(Error::Context(error @ ContextError::NotFound { name, .. })) = failure.library_error() else {
        return failure;
    };
    // The scan runs only after a failure, because it reads the files of every tool.
    let Some(offer) = offered(state, name) else { return failure };
    let fix_command = offer.command.or_else(|| Report::of(error, state.app()).fix_command);
    let report = Report { hint: Some(offer.hint), fix_command, ..Report::of(error, state.app()) };
    let reported = Failure::Remote(Box::new(report));
    // Keeps the exit status that `run` gives to failures of its own.
    if matches!(failure, Failure::Own(_)) { reported.into_own() } else { reported }
}

/// Hint about the targets that a missing context may mean.
struct Offer {
    hint: String,
    command: Option<String>,
}

/// The context to create or to use for a name: the proposed context of that name, or that of a target of that name.
fn offered(state: &State, name: &str) -> Option<Offer> {
    let scan = import::scan(state).ok()?;
    let existing = existing(state).ok()?;
    let proposed = import::new_contexts(&existing, import::propose_all(&scan));
    if let Some(context) = of_name(&proposed, name).next() {
        let command = format!("{} import --only {}", state.app().name(), shell_quoted(&context.name));
        let hint = format!("{}; create context {}: {command}", owners(context), quoted(&context.name));
        return Some(Offer { hint, command: Some(command) });
    }
    let target = scan.targets.iter().find(|target| target.name == name)?;
    let context = import::contexts_of(&existing, target).into_iter().next()?;
    let bound = shown(format!("{}.{}={}", target.tool, target.key, target.name));
    let hint =
        format!("context {} binds {bound}: pass --context {}", quoted(&context), shell_quoted(&context));
    Some(Offer { hint, command: None })
}

/// The proposed contexts of a name; without one, those with a target of that name.
fn of_name<'a>(proposed: &'a [ProposedContext], name: &'a str) -> impl Iterator<Item = &'a ProposedContext> {
    let is_named = proposed.iter().any(|context| context.name == name);
    proposed.iter().filter(move |context| match is_named {
        true => context.name == name,
        false => context.targets.iter().any(|target| target.name == name),
    })
}

/// The tools of a proposed context with the names of their targets: `aws has "stg", kubectl has "staging"`.
fn owners(context: &ProposedContext) -> String {
    let mut tools: Vec<(&str, Vec<&str>)> = Vec::new();
    for target in context.targets.iter().take(MOST_OWNERS) {
        match tools.iter_mut().find(|(name, _)| *name == target.name) {
            Some((_, with_it)) if with_it.contains(&target.tool.as_str()) => {}
            Some((_, with_it)) => with_it.push(&target.tool),
            None => tools.push((&target.name, vec![&target.tool])),
        }
    }
    if tools.is_empty() {
        return "the variables of this directory belong to it".to_owned();
    }
    let has = tools.into_iter().map(|(name, with_it)| {
        let has = if with_it.len() > 1 { "have" } else { "has" };
        format!("{} {has} {}", with_it.join(" and "), quoted(name))
    });
    has.collect::<Vec<_>>().join(", ")
}

fn scan(cx: &Cx) -> Outcome {
    let scan = found(cx)?;
    let contexts = existing(&cx.state)?;
    let targets = scan
        .targets
        .iter()
        .map(|target| FoundView::Target { target, contexts: import::contexts_of(&contexts, target) });
    let agents = scan.agents.iter().map(FoundView::Agent);
    let conversations = scan.conversations.iter().map(FoundView::Conversation);
    let credentials = scan.credentials.iter().map(FoundView::Credential);
    let items: Vec<FoundView<'_>> = targets.chain(agents).chain(conversations).chain(credentials).collect();
    cx.out.list(&items, || {
        if items.is_empty() {
            return "nothing to import: no installed tool has a target\n".to_owned();
        }
        let mut table = Table::new(&["TOOL", "FOUND", "CONTEXT"]);
        for item in &items {
            table.row(&item.row(), None);
        }
        table.render_wrapped(&cx.out)
    })
}

/// One finding of a scan.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum FoundView<'a> {
    /// A target, with the contexts that bind it.
    Target {
        #[serde(flatten)]
        target: &'a FoundTarget,
        contexts: Vec<String>,
    },
    Agent(&'a FoundAgent),
    Conversation(&'a FoundConversation),
    Credential(&'a FoundCredential),
}

impl FoundView<'_> {
    fn row(&self) -> [String; 3] {
        let none = || "-".to_owned();
        match self {
            FoundView::Target { target, contexts } => {
                let contexts = if contexts.is_empty() { none() } else { contexts.join(", ") };
                [target.tool.clone(), shown_target(target), contexts]
            }
            FoundView::Agent(agent) => {
                [agent.tool.clone(), shown(format!("agent {} {}", agent.name, agent.url)), none()]
            }
            FoundView::Conversation(one) => {
                [one.tool.clone(), shown(format!("conversation {} {}", one.url, one.context_id)), none()]
            }
            FoundView::Credential(one) => [one.tool.clone(), shown_credential(one), none()],
        }
    }
}

/// A credential without its secret: its name, kind and file.
fn shown_credential(one: &FoundCredential) -> String {
    shown(format!("credential {} ({}) in {}", one.name, one.kind.as_str(), one.file.display()))
}

/// Scans the tools, and warns about those whose files cannot be read.
fn found(cx: &Cx) -> Result<Scan, Failure> {
    let step = cx.out.slow_step(|| "scanning the files of tools");
    let scan = import::scan(&cx.state)?;
    drop(step);
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

/// Imported items beside contexts.
#[derive(Debug, Default)]
struct OtherImports {
    agents: Vec<FoundAgent>,
    conversations: Vec<FoundConversation>,
    credentials: Vec<FoundCredential>,
}

impl OtherImports {
    /// The new items; none if only some contexts are wanted.
    fn of(args: &Args, cx: &Cx, scan: &Scan) -> Result<Self, Failure> {
        if !args.only.is_empty() && !args.credentials {
            return Ok(OtherImports::default());
        }
        let credentials = if scan.credentials.is_empty() {
            Vec::new()
        } else {
            with_unlocked_vault(cx, &cx.state, || import::new_credentials(&cx.state, &scan.credentials))?
        };
        if !args.only.is_empty() {
            return Ok(OtherImports { credentials, ..OtherImports::default() });
        }
        Ok(OtherImports {
            agents: import::new_agents(&cx.state, &scan.agents)?,
            conversations: import::new_conversations(&cx.state, &scan.conversations)?,
            credentials,
        })
    }

    /// Actions without a further question: `add 1 agent and 2 conversations`.
    fn action(&self) -> Option<String> {
        let counts = [(self.agents.len(), "agent"), (self.conversations.len(), "conversation")];
        let things: Vec<String> = counts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, thing)| counted(count, thing))
            .collect();
        (!things.is_empty()).then(|| format!("add {}", things.join(" and ")))
    }

    /// Takes agents, conversations and the chosen credentials over. Returns a line for each.
    fn take_over(&self, cx: &Cx) -> Result<String, Failure> {
        import::add_agents(&cx.state, &self.agents)?;
        let sessions = import::add_conversations(&cx.state, &self.conversations)?;
        if !self.credentials.is_empty() {
            with_unlocked_vault(cx, &cx.state, || import::store_credentials(&cx.state, &self.credentials))?;
        }
        let agents = self
            .agents
            .iter()
            .map(|agent| format!("added agent {}: {}\n", quoted(&agent.name), shown(&agent.url)));
        let conversations = sessions.iter().map(|session| {
            let count = self.conversations.iter().filter(|one| one.tool == session.label()).count();
            format!("added {} to session {}\n", counted(count, "conversation"), quoted(session.label()))
        });
        let credentials = self.credentials.iter().map(|one| {
            format!(
                "copied credential {} from {} to the vault\n",
                quoted(one.name.as_str()),
                shown(one.file.display())
            )
        });
        Ok(agents.chain(conversations).chain(credentials).collect())
    }
}

fn propose(args: &Args, cx: &Cx) -> Outcome {
    let scan = found(cx)?;
    for target in import::unnamed(&scan.targets) {
        let binding = shell_quoted(&format!("{}.{}={}", target.tool, target.key, target.name));
        cx.state.warn(
            format!(
                "{} {}: no context name can be derived from this name",
                target.tool,
                quoted(&target.name)
            ),
            Some(format!("create one: {} context create NAME --bind {binding}", cx.state.app().name())),
        );
    }
    let existing = existing(&cx.state)?;
    let proposed = import::new_contexts(&existing, import::propose_all(&scan));
    let mut chosen = only(&args.only, proposed, &existing)?;
    if let Some(file) = &args.plan {
        chosen.iter_mut().for_each(|context| without_credentials(context, &[]));
        return write_plan(cx, file, &chosen);
    }
    let mut others = OtherImports::of(args, cx, &scan)?;
    // For people the sentence below says more than an empty table.
    if args.dry_run && (!cx.out.is_text() || !chosen.is_empty()) {
        return cx.out.list(&chosen, || table(cx, &chosen));
    }
    let nothing = || format!("nothing new to import ({} found)\n", counted(scan.targets.len(), "target"));
    if chosen.is_empty() && others.action().is_none() && others.credentials.is_empty() {
        return cx.changed(json!({ "contexts": [] }), nothing);
    }
    cx.state.refuse_in_session("importing contexts", "import them outside the session")?;
    let contexts = (!chosen.is_empty()).then(|| format!("create {}", counted(chosen.len(), "context")));
    let actions: Vec<String> = contexts.into_iter().chain(others.action()).collect();
    // Credentials alone are only offered, so a script without --yes does not fail for them.
    let mut is_asked = actions.is_empty() && can_ask(&cx.state);
    if !actions.is_empty() {
        is_asked = matches!(consent(&cx.state, actions.join(", "))?, Consent::Ask);
        if is_asked && !chosen.is_empty() {
            chosen = choose(chosen)?;
        } else if is_asked {
            terminal_prompt::confirm(&cx.state, &actions.join(", "))?;
        }
    }
    others.credentials = chosen_credentials(args, cx, others.credentials, is_asked)?;
    let stored: Vec<&str> = others.credentials.iter().map(|one| one.name.as_str()).collect();
    chosen.iter_mut().for_each(|context| without_credentials(context, &stored));
    // A context may refer to a credential, so the vault comes first.
    let told = others.take_over(cx)?;
    let done = if chosen.is_empty() {
        Vec::new()
    } else {
        let path = Path::new(PLAN);
        // Through the text of a plan, so that a direct import passes the same checks as an edited one.
        create(cx, path, import::plan_text(path, &chosen)?)?
    };
    let credentials: Vec<&FoundCredential> = others.credentials.iter().collect();
    let json = json!({
        "contexts": done, "agents": others.agents, "conversations": others.conversations,
        "credentials": credentials,
    });
    cx.changed(json, || {
        let told = shown_contexts(&done) + &told;
        if told.is_empty() { nothing() } else { told }
    })
}

/// Removes the variables whose credentials are not in the vault.
fn without_credentials(context: &mut ProposedContext, stored: &[&str]) {
    context.env.retain(|(_, value)| match value {
        ProposedVariable::Plain(_) => true,
        ProposedVariable::Credential { credential } => stored.contains(&credential.as_str()),
    });
}

/// The credentials to copy: all with the flag, those that a person marks, otherwise none.
fn chosen_credentials(
    args: &Args,
    cx: &Cx,
    found: Vec<FoundCredential>,
    is_asked: bool,
) -> Result<Vec<FoundCredential>, Failure> {
    if found.is_empty() || args.credentials {
        return Ok(found);
    }
    if !is_asked {
        cx.out.note(&format!(
            "found {} in clear text; copy them to the vault with: {} import --credentials",
            counted(found.len(), "credential"),
            cx.state.app().name()
        ));
        return Ok(Vec::new());
    }
    let lines: Vec<String> = found.iter().map(shown_credential).collect();
    let names: Vec<String> = found.iter().map(|one| one.name.to_string()).collect();
    let marked = marked("Credentials to copy to the vault:", lines, &names, &[])?;
    let kept = found.into_iter().enumerate().filter(|(index, _)| marked.contains(index));
    Ok(kept.map(|(_, one)| one).collect())
}

fn write_plan(cx: &Cx, file: &Path, chosen: &[ProposedContext]) -> Outcome {
    let path = cx.state.absolute(file);
    let text = import::plan_text(&path, chosen)?;
    if path.exists() {
        terminal_prompt::confirm(&cx.state, &format!("replace {}", shown(path.display())))?;
    }
    let (dir, name) = LockedDir::of_file(&cx.state.locker()?, &path, 0o755)?;
    dir.replace_by_umask(Path::new(&name), &text)?;
    cx.changed(json!({ "plan": path.to_string_lossy(), "contexts": names(chosen) }), || {
        let contexts = counted(chosen.len(), "context");
        format!(
            "wrote a plan of {contexts} to {}; create them with: sessile import apply {}\n",
            shown(path.display()),
            shown(file.display())
        )
    })
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
        let is_known = of_name(&proposed, name).next().is_some()
            || existing.iter().any(|context| context.name.as_str() == name);
        if !is_known {
            let names = names(&proposed).join(", ");
            let proposed =
                if names.is_empty() { "nothing is new".to_owned() } else { format!("proposed: {names}") };
            let what = format!("no tool has a target for a context {}; {proposed}", quoted(name));
            return Err(UsageError::Arguments(what).into());
        }
    }
    let chosen = |context: &ProposedContext| {
        only.iter().any(|name| of_name(&proposed, name).any(|one| one.name == context.name))
    };
    Ok(proposed.iter().filter(|context| chosen(context)).cloned().collect())
}

fn names(contexts: &[ProposedContext]) -> Vec<String> {
    contexts.iter().map(|context| context.name.clone()).collect()
}

/// Asks which contexts to create; all are marked at first.
fn choose(proposed: Vec<ProposedContext>) -> Result<Vec<ProposedContext>, Failure> {
    let lines: Vec<String> = proposed.iter().map(shown_context).collect();
    let all: Vec<usize> = (0..lines.len()).collect();
    let marked = marked("Contexts to create:", lines, &names(&proposed), &all)?;
    let kept = proposed.into_iter().enumerate().filter(|(index, _)| marked.contains(index));
    Ok(kept.map(|(_, context)| context).collect())
}

/// Asks for some lines of a list, of which only the names stay on the screen. Returns their numbers.
fn marked(
    question: &str,
    lines: Vec<String>,
    names: &[String],
    marked: &[usize],
) -> Result<Vec<usize>, Failure> {
    let chosen = |options: &[ListOption<&String>]| {
        let names: Vec<&str> =
            options.iter().filter_map(|option| names.get(option.index)).map(String::as_str).collect();
        if names.is_empty() { "none".to_owned() } else { shown(names.join(", ")) }
    };
    let asked = MultiSelect::new(question, lines)
        .with_formatter(&chosen)
        .with_default(marked)
        .with_page_size(15)
        .with_help_message("space marks, type to filter, enter confirms, esc cancels")
        .raw_prompt();
    match asked {
        Ok(marked) => Ok(marked.iter().map(|option| option.index).collect()),
        Err(InquireError::OperationInterrupted) => Err(Failure::Interrupted),
        Err(_) => Err(CommandError::Declined("import contexts".to_owned()).into()),
    }
}

fn shown_context(context: &ProposedContext) -> String {
    let guard = if context.guard > Guard::None { " (approval)" } else { "" };
    let targets = context.targets.iter().map(|target| format!("{} {}", target.tool, shown_target(target)));
    let variables = context.env.iter().map(|(name, _)| name.clone());
    let binds: Vec<String> = targets.chain(variables).collect();
    shown(format!("{}{guard}: {}", context.name, binds.join(", ")))
}

/// The name of a target, with what belongs to it.
fn shown_target(target: &FoundTarget) -> String {
    let beside: Vec<String> = target.beside.iter().map(|(_, value)| value.clone()).collect();
    shown(beside.into_iter().chain([target.name.clone()]).collect::<Vec<_>>().join(" "))
}

fn table(cx: &Cx, contexts: &[ProposedContext]) -> String {
    let mut table = Table::new(&["CONTEXT", "GUARD", "BINDS"]);
    for context in contexts {
        let targets = context
            .targets
            .iter()
            .map(|target| format!("{}.{}={}", target.tool, target.key, shown_target(target)));
        let variables = context.env.iter().map(|(name, _)| shown(name));
        for (at, binds) in targets.chain(variables).enumerate() {
            let (name, guard) =
                if at == 0 { (context.name.as_str(), context.guard.as_str()) } else { ("", "") };
            table.row(&[name.to_owned(), guard.to_owned(), binds], None);
        }
    }
    table.render_wrapped(&cx.out)
}

fn apply(cx: &Cx, path: &Path, text: String) -> Outcome {
    let done = create(cx, path, text)?;
    cx.changed(json!({ "contexts": done }), || shown_contexts(&done))
}

/// Creates the contexts of a plan.
fn create(cx: &Cx, path: &Path, text: String) -> Result<Vec<ImportedContext>, Failure> {
    let planned = transfer::read(cx.state.app(), path, text)?;
    cx.state.refuse_in_session("importing contexts", "import them outside the session")?;
    let _step = cx.out.slow_step(|| "creating contexts");
    Ok(import::apply(&cx.state, &planned.contexts)?)
}

fn shown_contexts(done: &[ImportedContext]) -> String {
    let line = |context: &ImportedContext| {
        let name = quoted(context.name.as_str());
        let bindings = shown(context.added.join(", "));
        match context.result {
            ImportResult::Created => format!("created context {name}: {bindings}\n"),
            ImportResult::Extended => format!("added to context {name}: {bindings}\n"),
            ImportResult::Unchanged => format!("context {name} already has these bindings\n"),
        }
    };
    done.iter().map(line).collect()
}
