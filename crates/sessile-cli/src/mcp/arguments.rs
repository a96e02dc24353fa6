//! Conversion of a tool's arguments to an invocation of the program.
//!
//! A value never becomes a flag: the value of a flag is joined to it, and every word comes after
//! `--`. Nothing is guessed: an argument that the tool does not have, or that is of another kind, is an error.

use std::path::PathBuf;
use std::time::Duration;

use rmcp::model::JsonObject;
use serde_json::Value;
use sessile::names::nearest;
use sessile::text::{plain_name, quoted, shortened};
use sessile::{Code, State, StateArgs};

use super::invocation::Invocation;
use super::tool::{Input, InputKind, InputTarget, Limit, Shape, Tool, USUAL};

/// Longest argument of a command, which is the kernel's limit.
// MAX_ARG_STRLEN of Linux: 32 pages, with the final NUL.
const LONGEST: usize = 128 * 1024 - 1;

/// Extra wait beyond the command's own timeout, in which it stops its children.
const BEYOND: Duration = Duration::from_secs(10);

/// The longest name of a client that is taken down.
const LONGEST_CLIENT: usize = 60;

/// Error in the arguments of a tool.
#[derive(Debug)]
pub(super) struct ArgumentError {
    pub(super) code: Code,
    pub(super) message: String,
}

impl From<String> for ArgumentError {
    fn from(message: String) -> Self {
        ArgumentError { code: Code::Usage, message }
    }
}

/// Flags of the server that apply to every call.
#[derive(Clone, Debug, Default)]
pub(super) struct BaseFlags {
    session: Option<String>,
    context: Option<String>,
    lock_timeout: Option<String>,
    others: Vec<String>,
    /// Whether variables say in which session the server is.
    is_inside: bool,
    /// The variable that says in which context it is.
    context_variable: Option<String>,
}

impl BaseFlags {
    /// Flags of this call. Variables are left out, because the calls inherit them.
    pub(super) fn of(state: &State) -> Self {
        let StateArgs { context, session, credential, config, no_config, set, lock_timeout, .. } =
            state.args();
        let mut others = Vec::new();
        let mut flag = |name: &str, value: Option<String>| {
            others.extend(value.map(|value| format!("--{name}={value}")));
        };
        flag("credential", credential.clone());
        // A call may run in another directory.
        flag("config", config.as_ref().map(|file| state.absolute(file).to_string_lossy().into_owned()));
        for pair in set {
            flag("set", Some(pair.clone()));
        }
        if *no_config {
            others.push("--no-config".to_owned());
        }
        let variable = state.app().variable("CONTEXT");
        BaseFlags {
            // Calls inherit the variable of the enclosing session.
            session: session.clone().filter(|session| state.enclosing_session() != Some(session.as_str())),
            context: context.clone(),
            lock_timeout: lock_timeout.map(|time| format!("{}ms", time.as_millis())),
            others,
            is_inside: state.enclosing_session().is_some(),
            context_variable: Some(variable).filter(|name| state.world().variable(name).is_some()),
        }
    }

    /// The session that a tool names, if it matters whether it is there: one that is has a context of its own, and one that
    /// is not gets the server's.
    pub(super) fn session_in_question<'a>(&self, given: &'a JsonObject) -> Option<&'a str> {
        let has_context = self.context.is_some() || self.context_variable.is_some();
        let session = given.get("session").and_then(Value::as_str)?;
        (has_context && given.get("context").is_none_or(Value::is_null)).then_some(session)
    }
}

/// Caller of a tool, with facts about the named session.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ToolCaller<'a> {
    /// Name that the client gives itself.
    pub(super) client: Option<&'a str>,
    /// Whether there is a session of the name that is given.
    pub(super) session_exists: bool,
}

/// Invocation of a tool with these arguments, or the problem.
pub(super) fn invocation(
    tool: &Tool,
    given: &JsonObject,
    base: &BaseFlags,
    caller: ToolCaller<'_>,
) -> Result<Invocation, ArgumentError> {
    if let Some(unknown) = given.keys().find(|name| tool.input.iter().all(|input| input.name != *name)) {
        let known: Vec<&str> = tool.input.iter().map(|input| input.name).collect();
        let meant = nearest(unknown, known.iter().copied())
            .map_or_else(String::new, |name| format!("; did you mean {}?", quoted(name)));
        return Err(format!(
            "{} has no argument {}{meant} It takes: {}",
            tool.name,
            quoted(shortened(unknown, 60)),
            if known.is_empty() { "nothing".to_owned() } else { known.join(", ") }
        )
        .into());
    }
    let mut parts = Parts::default();
    for input in tool.input {
        // Clients send null for an omitted argument, but null is a value of its own in a state entry.
        match given.get(input.name).filter(|value| !value.is_null() || input.kind == InputKind::Anything) {
            Some(value) => parts.take(input, value)?,
            None if input.required => {
                return Err(format!("{} needs the argument {}", tool.name, quoted(input.name)).into());
            }
            None => {}
        }
    }
    let said = |flag: &str| parts.flags.iter().any(|one| one.starts_with(flag));
    let (has_session, has_context) = (said("--session="), said("--context="));
    if tool.needs_session && !has_session && base.session.is_none() && !base.is_inside {
        let message = format!("{} is for a session: give one, or start one with start_session", tool.name);
        return Err(ArgumentError { code: Code::SessionRequired, message });
    }
    // A session that is named and there has its own context.
    let keeps_context = has_session && caller.session_exists && !has_context;
    if let Some(context) = base.context.as_ref().filter(|_| !has_context && !keeps_context) {
        parts.flags.push(format!("--context={context}"));
    }
    if let Some(session) = base.session.as_ref().filter(|_| !has_session) {
        parts.flags.push(format!("--session={session}"));
    }
    parts.flags.extend(base.others.iter().cloned());
    if tool.command == "session start" {
        let client = caller.client.map(|client| plain_name(client, LONGEST_CLIENT));
        parts.flags.extend(client.filter(|name| !name.is_empty()).map(|name| format!("--agent={name}")));
    }
    let limit = limit(tool, given, base, &mut parts.flags)?;
    let (flags, words): (Vec<&str>, Vec<&str>) = tool.always.iter().partition(|one| one.starts_with("--"));
    let mut args: Vec<String> = tool.command.split(' ').map(str::to_owned).collect();
    // The process of a call has no terminal.
    args.extend(["--output=json", "--no-input"].iter().chain(&flags).map(|one| (*one).to_owned()));
    args.extend(parts.flags);
    if !words.is_empty() || !parts.words.is_empty() {
        // Behind it nothing is a flag, whatever a client sends.
        args.push("--".to_owned());
    }
    args.extend(parts.words);
    args.extend(words.iter().map(|one| (*one).to_owned()));
    if let Some(long) = args.iter().find(|one| one.len() > LONGEST) {
        return Err(
            format!("an argument is too long: {} bytes, and {LONGEST} is the most", long.len()).into()
        );
    }
    // Starting the process would fail with an error that names the program instead.
    if let Some(directory) = parts.directory.as_ref().filter(|directory| !directory.is_dir()) {
        let message = format!("there is no directory {}", quoted(directory.to_string_lossy()));
        return Err(ArgumentError { code: Code::FileNotFound, message });
    }
    Ok(Invocation {
        args,
        without: base.context_variable.clone().filter(|_| keeps_context),
        stdin: parts.stdin,
        directory: parts.directory,
        limit,
        is_text: tool.shape == Shape::Captured,
    })
}

/// Timeout of the call.
fn limit(
    tool: &Tool,
    given: &JsonObject,
    base: &BaseFlags,
    flags: &mut Vec<String>,
) -> Result<Duration, String> {
    let said = |name: &str| given.get(name).and_then(Value::as_str);
    let parsed = |name: &str, text: &str| {
        sessile::duration::parse(text).ok_or_else(|| {
            format!(
                "{} must be {}, not {}",
                quoted(name),
                sessile::duration::EXPECTED,
                quoted(shortened(text, 60))
            )
        })
    };
    // Whoever waits for a lock on the way waits as long as the server was told to.
    let waits = |flags: &mut Vec<String>, usual: &str| {
        let time = base.lock_timeout.as_deref().unwrap_or(usual);
        flags.push(format!("--lock-timeout={time}"));
        time.to_owned()
    };
    Ok(match tool.limit {
        Limit::Longer(name, usual) => {
            let time = said(name).map_or_else(|| waits(flags, usual), str::to_owned);
            USUAL.saturating_add(parsed(name, &time)?)
        }
        Limit::Usual | Limit::Given(..) if base.lock_timeout.is_some() && tool.command != "run" => {
            let time = waits(flags, "0");
            USUAL.saturating_add(parsed("lock-timeout", &time)?)
        }
        Limit::Usual => USUAL,
        Limit::Given(name, usual) => {
            let text = said(name).unwrap_or(usual);
            if said(name).is_none() {
                flags.push(format!("--{name}={usual}"));
            }
            parsed(name, text)?.saturating_add(BEYOND)
        }
    })
}

/// Parts of an invocation under construction.
#[derive(Default)]
struct Parts {
    flags: Vec<String>,
    words: Vec<String>,
    stdin: Vec<u8>,
    directory: Option<PathBuf>,
}

impl Parts {
    fn take(&mut self, input: &Input, value: &Value) -> Result<(), String> {
        let wrong = |expected: &str| {
            Err(format!(
                "the argument {} must be {expected}, not {}",
                quoted(input.name),
                shortened(&value.to_string(), 60)
            ))
        };
        let texts: Vec<String> = match (input.kind, value) {
            (InputKind::Text, Value::String(text)) => vec![text.clone()],
            (InputKind::Text, _) => return wrong("text"),
            (InputKind::Number, Value::Number(number)) if number.is_i64() => vec![number.to_string()],
            (InputKind::Number, _) => return wrong("a whole number"),
            (InputKind::Switch, Value::Bool(is_on)) => {
                if let (true, InputTarget::Flag(flag)) = (is_on, input.to) {
                    self.flags.push(flag.to_owned());
                }
                return Ok(());
            }
            (InputKind::Switch, _) => return wrong("true or false"),
            (InputKind::Words, Value::Array(items))
                if !items.is_empty() && items.iter().all(Value::is_string) =>
            {
                items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            (InputKind::Words, _) => return wrong("a list of texts"),
            (InputKind::Anything, value) => vec![value.to_string()],
        };
        // The kernel has no such words, and would cut them short.
        if input.to != InputTarget::Stdin && texts.iter().any(|text| text.contains('\0')) {
            return wrong("text without a NUL in it");
        }
        match input.to {
            InputTarget::Word => self.words.extend(texts),
            InputTarget::Flag(flag) => self.flags.extend(texts.iter().map(|text| format!("{flag}={text}"))),
            InputTarget::Stdin => self.stdin = texts.concat().into_bytes(),
            InputTarget::Directory => self.directory = texts.first().map(PathBuf::from),
        }
        Ok(())
    }
}
