//! Message and recipient: the flags that `send` and `stream` share.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};
use sessile::Error;
use sessile::agents::Agent;
use sessile::args::parse_duration;
use sessile::error::{ConversationError, UsageError};
use sessile::session::SessionId;
use sessile::vault::Secret;
use sessile_wire::a2a::{OutgoingMessage, Part, PushConfig};

use super::exchange::DeliveryLimits;
use super::parts::PartArgs;
use crate::agent_session::{
    AgentArgs, Continuation, ContinueWord, ConversationLog, ConversationSelector, check_dir, resolve_agent,
};
use crate::cli::Cx;
use crate::commands::input;
use crate::error::Failure;
use crate::remote::ServerArgs;

/// The largest text, and the largest file.
pub(crate) const LARGEST: u64 = 16 << 20;

/// Message to send, and its recipient.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ComposeArgs {
    #[command(flatten)]
    continue_word: ContinueWord,

    /// Agent (name or URL), then the text; with --url or --server only the text; - reads standard input
    #[arg(value_name = "AGENT TEXT")]
    words: Vec<String>,

    #[command(flatten)]
    pub(crate) reach: AgentArgs,

    #[command(flatten)]
    parts: PartArgs,

    /// Read text, context_id, task_id, push_url and push_token from JSON, @FILE or - (standard input)
    #[arg(long, value_name = "JSON", hide_short_help = true)]
    json: Option<String>,

    /// Send this JSON object as the request's metadata
    #[arg(long, value_name = "JSON", hide_short_help = true)]
    metadata: Option<String>,

    /// Continue the agent's conversation with this context_id
    #[arg(long, value_name = "ID")]
    context_id: Option<String>,

    /// Answer this task
    #[arg(long, value_name = "ID", conflicts_with_all = ["new", "conversation"])]
    task_id: Option<String>,

    /// Continue the conversation with this id; default: the last one with the agent in this context
    #[arg(
        short = 'C',
        long = "continue",
        value_name = "ID",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        conflicts_with_all = ["new", "context_id"]
    )]
    continued: Option<String>,

    /// Start a new conversation
    #[arg(long, conflicts_with = "context_id")]
    new: bool,

    /// Continue the conversation of this name, or start it
    #[arg(long, value_name = "NAME", conflicts_with = "context_id")]
    conversation: Option<String>,

    /// Accept this media type in the reply
    #[arg(long, value_name = "TYPE", hide_short_help = true)]
    accept: Vec<String>,

    /// Ask for at most this many earlier messages in the reply
    #[arg(long, value_name = "N", hide_short_help = true)]
    history_length: Option<u32>,

    /// Save the reply's artifacts as files in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) save_artifacts: Option<PathBuf>,

    /// Have the agent notify this URL when the task changes
    #[arg(long, value_name = "URL", hide_short_help = true)]
    push_url: Option<String>,

    /// Token that notifications carry; - reads standard input, @FILE a file
    #[arg(long, value_name = "SOURCE", requires = "push_url", hide_short_help = true)]
    push_token: Option<String>,

    /// Poll the task's state at this interval; default: 20ms to 1s
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, hide_short_help = true)]
    poll_interval: Option<Duration>,

    /// Print the agent's JSON unchanged, as the protocol has it
    #[arg(long, hide_short_help = true)]
    pub(super) raw: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,

    /// Whether a payload asks for a stream.
    #[arg(skip)]
    pub(super) streams: bool,

    /// Token of a payload for push notifications.
    #[arg(skip)]
    payload_token: Option<Secret>,
}

impl ComposeArgs {
    /// The agent, and the words of the text.
    pub(crate) fn agent(&self, cx: &Cx) -> Result<(Agent, Vec<String>), Failure> {
        match (&self.reach.url, self.words.as_slice()) {
            (Some(url), words) => Ok((resolve_agent(cx, url)?, words.to_vec())),
            // Of several words the first is always the agent: a misspelt name must not send the rest to another one.
            (None, [agent, _, ..]) => Ok((resolve_agent(cx, agent)?, self.words[1..].to_vec())),
            (None, words) => {
                let is_agent = |word: &str| -> Result<bool, Error> {
                    // A text such as 12:30 could be a host.
                    Ok(word.contains("://")
                        || cx.state.agents()?.iter().any(|one| one.name.as_deref() == Some(word)))
                };
                match (words, self.implied_agent(cx)?) {
                    ([word], Some(_)) if is_agent(word)? => Ok((resolve_agent(cx, word)?, Vec::new())),
                    (words, Some(agent)) => Ok((agent, words.to_vec())),
                    // A text cannot be a name, so the agent is missing.
                    ([word], None) if !word.contains(char::is_whitespace) && word != "-" => {
                        Ok((resolve_agent(cx, word)?, Vec::new()))
                    }
                    (_, None) => {
                        let text = "no agent selected; pass its name or URL, or choose one: agent use NAME";
                        Err(UsageError::Arguments(text.into()).into())
                    }
                }
            }
        }
    }

    /// Agent of a message that names none: that of the conversation to continue, else the default agent.
    fn implied_agent(&self, cx: &Cx) -> Result<Option<Agent>, Error> {
        match self.continued.as_deref().filter(|id| !id.is_empty()) {
            None => cx.state.default_agent(),
            Some(id) => {
                let all = cx.state.conversations_to_look_at()?;
                let missing = || ConversationError::NotFound { name: id.to_owned(), near: None };
                let found = all.ok_or_else(missing)?.find(id, None)?;
                cx.state.agent(&found.agent_url).map(Some)
            }
        }
    }

    /// The text for a server, which replies itself: nothing of what only agents understand goes there.
    pub(super) fn text_for_server(&self, cx: &Cx, url: &str) -> Result<String, Failure> {
        // Of two words the first would be the agent; joined, they would be sent to who was not asked.
        let agent = match (&self.reach.url, self.words.as_slice()) {
            (Some(agent), _) | (None, [agent, _, ..]) => Some(agent.as_str()),
            _ => None,
        };
        if let Some(agent) = agent {
            let (agent, url) = (sessile::text::quoted(agent), sessile::text::shown(url));
            return Err(UsageError::Arguments(format!(
                "{url} replies itself, so pass one quoted text and no agent ({agent}); to message the agent, pass --server ''"
            ))
            .into());
        }
        let is_for_agents = (!self.parts.is_empty() && self.parts.only_text().is_none())
            || self.json.is_some()
            || self.metadata.is_some()
            || self.context_id.is_some()
            || self.task_id.is_some()
            || self.continued.is_some()
            || self.new
            || self.conversation.is_some()
            || !self.accept.is_empty()
            || self.history_length.is_some()
            || self.save_artifacts.is_some()
            || self.push_url.is_some()
            || self.reach.is_for_agents();
        if is_for_agents {
            let what = "a server supports only a text and --timeout; to message an agent, pass --server ''";
            return Err(UsageError::Arguments(what.into()).into());
        }
        let text = match self.parts.only_text() {
            Some(text) => Some(text.to_owned()),
            None => self.text(cx, &self.words)?,
        };
        Ok(text.ok_or_else(|| UsageError::Arguments("nothing to send; pass a text".into()))?)
    }

    /// Checks the arguments that require an existing session or a directory, before a session is started.
    pub(crate) fn check(&self, cx: &Cx) -> Result<(), Error> {
        let state = &cx.state;
        if let Some(dir) = &self.save_artifacts {
            check_dir(&state.absolute(dir))?;
        }
        let has_session = || -> Result<bool, Error> {
            Ok(state.session()?.is_some()
                || state.pending_session()?.is_some()
                || state.call().selectable_terminal().is_some())
        };
        match self.continued.as_deref() {
            Some("") if !has_session()? => Err(ConversationError::NoneToContinue.into()),
            _ => Ok(()),
        }
    }

    /// Limits of the delivery.
    pub(super) fn limits(&self) -> DeliveryLimits {
        DeliveryLimits { poll_interval: self.poll_interval, ..self.reach.delivery_limits() }
    }

    /// Selected conversation.
    pub(crate) fn wanted(&self, cx: &Cx) -> ConversationSelector {
        let continued = self.continued.as_deref().map(|id| match id {
            "" => Continuation::Last,
            id => Continuation::Id(id.to_owned()),
        });
        let is_selected = continued.is_some()
            || self.conversation.is_some()
            || self.context_id.is_some()
            || self.task_id.is_some();
        // Workers of a hooked shell share the session of the person at its prompt, and must not end up in one conversation.
        let is_worker = cx.state.is_hook_worker();
        ConversationSelector {
            new: self.new || (is_worker && !is_selected),
            continued,
            name: self.conversation.clone(),
            context_id: self.context_id.clone(),
            task_id: self.task_id.clone(),
        }
    }

    /// The message, without the ids of its conversation.
    pub(crate) fn outgoing(
        &self,
        cx: &Cx,
        words: &[String],
        log: &ConversationLog<'_>,
    ) -> Result<OutgoingMessage, Failure> {
        if self.continued.is_some() && log.context_id.is_none() {
            return Err(ConversationError::NoneWithAgent.into());
        }
        let mut parts = Vec::new();
        if let Some(text) = self.text(cx, words)? {
            parts.push(Part::Text(text));
        }
        parts.extend(self.parts.parts(cx)?);
        if parts.is_empty() {
            return Err(UsageError::Arguments("nothing to send; pass a text, --file or --data".into()).into());
        }
        Ok(OutgoingMessage {
            // It only has to be unique, as the ids of sessions are.
            message_id: SessionId::new(cx.state.world().now().as_millisecond())?.to_string(),
            context_id: None,
            task_id: None,
            parts,
            accepted_output_modes: self.accept.clone(),
            history_length: self.history_length,
            is_blocking: true,
            push: self.push_config(cx)?,
            extensions: self.reach.extensions().to_vec(),
            metadata: self.metadata.as_deref().map(|text| json_object("--metadata", text)).transpose()?,
        })
    }

    fn text(&self, cx: &Cx, words: &[String]) -> Result<Option<String>, Failure> {
        match words {
            [dash] if dash == "-" => Ok(Some(input::read(cx, Path::new("-"), LARGEST)?.1)),
            // With another part nothing more is expected, and standard input may be a pipe that never ends.
            [] if self.parts.is_empty() && !cx.state.world().streams().stdin => {
                Ok(Some(input::read(cx, Path::new("-"), LARGEST)?.1).filter(|text| !text.is_empty()))
            }
            [] => Ok(None),
            words => Ok(Some(words.join(" "))),
        }
    }

    fn push_config(&self, cx: &Cx) -> Result<Option<PushConfig>, Failure> {
        let Some(url) = self.push_url.clone() else { return Ok(None) };
        let token = match &self.push_token {
            Some(source) => Some(secret_of(cx, "--push-token", source)?),
            None => self.payload_token.clone(),
        };
        Ok(Some(PushConfig { url, token, ..PushConfig::default() }))
    }

    /// The same arguments with the id behind `--continue`, and with what `--json` has in it. Flags take precedence.
    pub(crate) fn with_payload(&self, cx: &Cx) -> Result<Self, Failure> {
        let mut args = self.clone();
        if let Some(at) = self.continue_word.position() {
            args.continued = Some(args.words.remove(at));
        }
        let Some(source) = &self.json else { return Ok(args) };
        let is_typed = !source.starts_with('@') && source != "-";
        let text = match source.strip_prefix('@') {
            Some(file) => input::read(cx, Path::new(file), LARGEST)?.1,
            None if is_typed => source.clone(),
            None => input::read(cx, Path::new("-"), LARGEST)?.1,
        };
        for (key, value) in json_object("--json", &text)? {
            let invalid = |expected: &str| UsageError::InvalidValue {
                place: format!("--json {key}"),
                value: sessile::text::shortened(&value.to_string(), 60),
                expected: expected.into(),
            };
            let text = || value.as_str().map(str::to_owned).ok_or_else(|| invalid("a text"));
            let flag = || value.as_bool().ok_or_else(|| invalid("true or false"));
            match key.as_str() {
                "text" | "message" => {
                    let has_agent = usize::from(args.reach.url.is_none());
                    if args.words.len() <= has_agent && args.parts.is_empty() {
                        args.words.push(text()?);
                    }
                }
                "context_id" => args.context_id = args.context_id.or(Some(text()?)),
                "task_id" => args.task_id = args.task_id.or(Some(text()?)),
                "stream" => args.streams |= flag()?,
                "use_session" if flag()? => args.continued = args.continued.or_else(|| Some(String::new())),
                "use_session" => {}
                "push_url" => args.push_url = args.push_url.or(Some(text()?)),
                "push_token" if is_typed => {
                    return Err(UsageError::SecretRefused {
                        place: "--json push_token".into(),
                        instead: "other users can read a command line; pass the JSON in a file: --json @FILE",
                    }
                    .into());
                }
                "push_token" => args.payload_token = Some(Secret::new(text()?)),
                _ => {
                    return Err(invalid(
                        "text, context_id, task_id, stream, use_session, push_url or push_token",
                    )
                    .into());
                }
            }
        }
        Ok(args)
    }
}

/// Object of a JSON argument.
fn json_object(place: &str, text: &str) -> Result<Map<String, Value>, Failure> {
    let wrong = |reason: String| UsageError::InvalidValue {
        place: place.into(),
        value: sessile::text::shortened(text, 60),
        expected: reason,
    };
    match sessile::json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(wrong("a JSON object".into()).into()),
        Err(error) => Err(wrong(format!("a JSON object ({error})")).into()),
    }
}

/// Secret from standard input or a file. A command line can be read by other users.
pub(crate) fn secret_of(cx: &Cx, flag: &str, source: &str) -> Result<Secret, Failure> {
    let text = match source.strip_prefix('@') {
        Some(file) => {
            let path = cx.state.absolute(Path::new(file));
            sessile::files::check_trusted(&path)?;
            input::read(cx, &path, LARGEST)?.1
        }
        None if source == "-" => input::read(cx, Path::new("-"), LARGEST)?.1,
        None => {
            return Err(UsageError::SecretRefused {
                place: flag.to_owned(),
                instead: "other users can read a command line; pass a file: @FILE, or - for standard input",
            }
            .into());
        }
    };
    Ok(Secret::new(text.trim()))
}

/// Message in its stored form.
pub(super) fn stored_message(outgoing: &OutgoingMessage) -> Value {
    json!({ "messageId": outgoing.message_id, "parts": outgoing.parts.iter().map(stored_part).collect::<Vec<_>>() })
}

fn stored_part(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({ "text": text }),
        Part::TextFile { text, name, mime } => json!({ "text": text, "name": name, "mime": mime }),
        Part::File { name, mime, bytes } => {
            // Without its content: the history would hold every file that was ever sent.
            json!({ "file": { "name": name, "mime": mime, "size": bytes.len() } })
        }
        Part::Link { url, name, mime } => json!({ "file": { "url": url, "name": name, "mime": mime } }),
        Part::Typed { part, mime } => {
            let mut stored = stored_part(part);
            stored["mime"] = mime.as_str().into();
            stored
        }
        Part::Data(data) | Part::Other(data) => json!({ "data": data }),
    }
}
