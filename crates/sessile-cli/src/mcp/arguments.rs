//! Conversion of a tool's arguments to an invocation of the program.
//!
//! A value never becomes a flag: the value of a flag is joined to it, and every word comes after
//! `--`. Nothing is guessed: an argument that the tool does not have, or that is of another kind, is an error.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rmcp::model::JsonObject;
use serde_json::Value;
use sessile::names::nearest;
use sessile::text::{plain_name, quoted, shortened};
use sessile::{Code, State, StateArgs};

use super::invocation::{Invocation, ResultPage};
use super::tool::{Input, InputKind, InputTarget, Limit, Shape, Tool, USUAL};
use crate::agent_session::is_id;

/// Longest argument of a command, which is the kernel's limit.
// MAX_ARG_STRLEN of Linux: 32 pages, with the final NUL.
const LONGEST: usize = 128 * 1024 - 1;

/// Extra wait beyond the command's own timeout, in which it stops its children.
const BEYOND: Duration = Duration::from_secs(10);

/// Items on a page of a list, unless the call says how many.
const PAGE: usize = 50;

/// The most items on a page.
const LARGEST_PAGE: i64 = 1000;

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
    /// Directory of the server.
    directory: Option<PathBuf>,
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
            directory: state.world().cwd().map(Path::to_owned),
        }
    }

    /// Flags of a call that reads and that names what it reads.
    pub(super) fn reading_flags(&self) -> Vec<String> {
        let output = ["--output=json", "--no-input"].into_iter().map(str::to_owned);
        output.chain(self.others.iter().cloned()).collect()
    }

    /// Session in the arguments, if the call depends on whether it exists: an existing one has a context of its own,
    /// and a new one gets the server's.
    pub(super) fn session_in_question<'a>(&self, given: &'a JsonObject) -> Option<&'a str> {
        let has_context = self.context.is_some() || self.context_variable.is_some();
        let session = given.get("session").and_then(Value::as_str)?;
        (has_context && given.get("context").is_none_or(Value::is_null)).then_some(session)
    }
}

/// Caller of a tool, with facts about the named session.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ToolCaller<'a> {
    /// Display name of the client.
    pub(super) client: Option<&'a str>,
    /// Whether the session in the arguments exists.
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
            "{} has no argument {}{meant} Arguments: {}",
            tool.name,
            quoted(shortened(unknown, 60)),
            if known.is_empty() { "nothing".to_owned() } else { known.join(", ") }
        )
        .into());
    }
    let mut parts = Parts::default();
    for input in tool.input {
        // Clients send null for an omitted argument, but null is a value of its own in a state entry.
        let takes_null = input.required && input.kind == InputKind::Anything;
        match given.get(input.name).filter(|value| !value.is_null() || takes_null) {
            Some(value) => parts.take(input, value, base)?,
            None if input.required => {
                return Err(format!("{} requires the argument {}", tool.name, quoted(input.name)).into());
            }
            None => {}
        }
    }
    let page = tool.page_key.map(|key| ResultPage { key, limit: parts.page_limit.unwrap_or(PAGE) });
    parts.flags.extend(page.map(|page| format!("--limit={}", page.limit + 1)));
    let said = |flag: &str| parts.flags.iter().any(|one| one.starts_with(flag));
    let (has_session, has_context) = (said("--session="), said("--context="));
    if tool.needs_session && !has_session && base.session.is_none() && !base.is_inside {
        let message =
            format!("{} requires a session; pass `session`, or start one with start_session", tool.name);
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
        return Err(format!("an argument is too long: {} bytes; the limit is {LONGEST}", long.len()).into());
    }
    // Starting the process would fail with an error that names the program instead.
    if let Some(directory) = parts.directory.as_ref().filter(|directory| !directory.is_dir()) {
        let message = format!("directory {} not found", quoted(directory.to_string_lossy()));
        return Err(ArgumentError { code: Code::FileNotFound, message });
    }
    Ok(Invocation {
        args,
        without: base.context_variable.clone().filter(|_| keeps_context),
        stdin: parts.stdin,
        directory: parts.directory,
        limit,
        is_text: tool.shape == Shape::Captured,
        page,
    })
}

/// A path that a client names, if it stays in the server's directory. A model that may send files to an agent could otherwise
/// send any file of the user's.
fn path_inside(directory: Option<&Path>, text: &str) -> Result<PathBuf, String> {
    let refused = || format!("path {} is not in the server's directory", quoted(shortened(text, 200)));
    let base = directory.and_then(|directory| directory.canonicalize().ok()).ok_or_else(refused)?;
    let path = base.join(text);
    // A path that does not exist yet belongs to its nearest existing directory.
    let real = path.ancestors().find_map(|path| path.canonicalize().ok()).ok_or_else(refused)?;
    let is_plain = !path.components().any(|part| part == std::path::Component::ParentDir);
    if is_plain && real.starts_with(&base) { Ok(path) } else { Err(refused()) }
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
    page_limit: Option<usize>,
}

impl Parts {
    fn take(&mut self, input: &Input, value: &Value, base: &BaseFlags) -> Result<(), String> {
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
            return wrong("text without a NUL byte");
        }
        match input.to {
            InputTarget::Word => self.words.extend(texts),
            InputTarget::Flag(flag) => self.flags.extend(texts.iter().map(|text| format!("{flag}={text}"))),
            InputTarget::Conversation => {
                let flag = |text: &String| if is_id(text) { "--continue" } else { "--conversation" };
                self.flags.extend(texts.iter().map(|text| format!("{}={text}", flag(text))));
            }
            InputTarget::PathFlag(flag) => {
                for text in &texts {
                    let path = path_inside(base.directory.as_deref(), text)?;
                    self.flags.push(format!("{flag}={}", path.display()));
                }
            }
            InputTarget::PageLimit => {
                let limit = value.as_i64().filter(|limit| (1..=LARGEST_PAGE).contains(limit));
                let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else {
                    return wrong(&format!("a number from 1 to {LARGEST_PAGE}"));
                };
                self.page_limit = Some(limit);
            }
            InputTarget::Stdin => self.stdin = texts.concat().into_bytes(),
            InputTarget::Directory => self.directory = texts.first().map(PathBuf::from),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_outside_the_directory_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("project");
        std::fs::create_dir_all(base.join("sub")).unwrap();
        std::fs::create_dir(dir.path().join("secret")).unwrap();
        std::os::unix::fs::symlink(dir.path(), base.join("out")).unwrap();
        let is_inside = |text: &str| path_inside(Some(&base), text).is_ok();
        for inside in ["file", "sub/file", "new/sub/file", "."] {
            assert!(is_inside(inside), "{inside}");
        }
        assert!(is_inside(&base.canonicalize().unwrap().join("sub").display().to_string()));
        for outside in ["../secret", "sub/../../secret", "out/secret", "out/new", "/etc/passwd", "/"] {
            assert!(!is_inside(outside), "{outside}");
        }
        assert!(path_inside(None, "file").is_err());
    }
}
