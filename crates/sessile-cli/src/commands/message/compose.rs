//! Message and recipient: the flags that `send` and `stream` share.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sessile::Error;
use sessile::agents::Agent;
use sessile::error::{ConversationError, FileError, UsageError};
use sessile::session::SessionId;
use sessile_wire::a2a::{OutgoingMessage, Part, PushConfig};

use crate::agent_session::{AgentArgs, ConversationLog, ConversationSelector};
use crate::cli::Cx;
use crate::commands::input;
use crate::error::Failure;
use crate::remote::ServerArgs;

/// The largest text, and the largest file.
const LARGEST: u64 = 16 << 20;

/// Message to send, and its recipient.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ComposeArgs {
    /// The agent (its name or URL) and the text; with --url or a server only the text. - reads the text from standard input
    #[arg(value_name = "AGENT TEXT")]
    words: Vec<String>,

    #[command(flatten)]
    pub(crate) reach: AgentArgs,

    /// Send this file along
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,

    /// Send this JSON along; @FILE reads it from a file
    #[arg(long, value_name = "JSON")]
    data: Vec<String>,

    /// Go on in the conversation of this id of the agent's
    #[arg(long, value_name = "ID")]
    context_id: Option<String>,

    /// Answer this task
    #[arg(long, value_name = "ID", conflicts_with_all = ["new", "conversation"])]
    task_id: Option<String>,

    /// Go on where the last conversation with this agent stopped; fail if there is none
    #[arg(long = "continue", conflicts_with_all = ["new", "context_id"])]
    goes_on: bool,

    /// Begin a new conversation
    #[arg(long, conflicts_with = "context_id")]
    new: bool,

    /// The conversation of this name; it is begun if there is none
    #[arg(long, value_name = "NAME", conflicts_with = "context_id")]
    conversation: Option<String>,

    /// A media type that the reply may have
    #[arg(long, value_name = "TYPE")]
    accept: Vec<String>,

    /// How many of the messages so far the reply may repeat
    #[arg(long, value_name = "N")]
    history_length: Option<u32>,

    /// Save what the agent makes as files in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) save_artifacts: Option<PathBuf>,

    /// Have the agent tell this URL when something changes
    #[arg(long, value_name = "URL")]
    push_url: Option<String>,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

impl ComposeArgs {
    /// The agent, and the words of the text.
    pub(crate) fn agent(&self, cx: &Cx) -> Result<(Agent, Vec<String>), Error> {
        match (&self.reach.url, self.words.as_slice()) {
            (Some(url), words) => Ok((cx.state.agent(url)?, words.to_vec())),
            (None, [agent, words @ ..]) => Ok((cx.state.agent(agent)?, words.to_vec())),
            (None, []) => Err(UsageError::Arguments("say which agent: its name or URL".into()).into()),
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
                "a message to a server takes one text and no agent ({agent}), for {url} replies itself: quote the text, or talk to the agent with --server ''"
            ))
            .into());
        }
        let is_for_agents = !self.file.is_empty()
            || !self.data.is_empty()
            || self.context_id.is_some()
            || self.task_id.is_some()
            || self.goes_on
            || self.new
            || self.conversation.is_some()
            || !self.accept.is_empty()
            || self.history_length.is_some()
            || self.save_artifacts.is_some()
            || self.push_url.is_some()
            || self.reach.is_for_agents();
        if is_for_agents {
            let what = "a server takes a text and --timeout: the other flags are for agents (--server '' talks to one)";
            return Err(UsageError::Arguments(what.into()).into());
        }
        let text = self.text(cx, &self.words)?;
        Ok(text.ok_or_else(|| UsageError::Arguments("there is nothing to send: give a text".into()))?)
    }

    /// Checks arguments that require an existing session, before one is started.
    pub(crate) fn check(&self, cx: &Cx) -> Result<(), Error> {
        match (self.goes_on, cx.state.session()?) {
            (true, None) => Err(nothing_to_go_on_with()),
            _ => Ok(()),
        }
    }

    /// Selected conversation.
    pub(crate) fn wanted(&self) -> ConversationSelector {
        ConversationSelector {
            new: self.new,
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
        if self.goes_on && log.context_id.is_none() {
            return Err(nothing_to_go_on_with().into());
        }
        let mut parts = Vec::new();
        if let Some(text) = self.text(cx, words)? {
            parts.push(Part::Text(text));
        }
        for file in &self.file {
            parts.push(read_file(&cx.state.absolute(file))?);
        }
        for data in &self.data {
            parts.push(Part::Data(self.json(cx, data)?));
        }
        if parts.is_empty() {
            return Err(UsageError::Arguments(
                "there is nothing to send: give a text, --file or --data".into(),
            )
            .into());
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
            push: self.push_url.as_ref().map(|url| PushConfig { url: url.clone(), ..PushConfig::default() }),
            extensions: self.reach.extensions().to_vec(),
            metadata: None,
        })
    }

    fn text(&self, cx: &Cx, words: &[String]) -> Result<Option<String>, Failure> {
        match words {
            [dash] if dash == "-" => Ok(Some(input::read(cx, Path::new("-"), LARGEST)?.1)),
            // With a file or data nothing more is expected, and standard input may be a pipe that never ends.
            [] if self.file.is_empty() && self.data.is_empty() && !cx.state.world().streams().stdin => {
                Ok(Some(input::read(cx, Path::new("-"), LARGEST)?.1).filter(|text| !text.is_empty()))
            }
            [] => Ok(None),
            words => Ok(Some(words.join(" "))),
        }
    }

    fn json(&self, cx: &Cx, text: &str) -> Result<Value, Failure> {
        let read = match text.strip_prefix('@') {
            Some(file) => input::read(cx, Path::new(file), LARGEST)?.1,
            None => text.to_owned(),
        };
        Ok(sessile::json::from_str(&read).map_err(|error| UsageError::InvalidValue {
            place: "--data".into(),
            value: sessile::text::shortened(text, 60),
            expected: format!("JSON ({error})"),
        })?)
    }
}

fn nothing_to_go_on_with() -> Error {
    Error::Conversation(ConversationError::NotFound {
        name: "with this agent in this session".into(),
        near: None,
    })
}

/// Message in its stored form.
pub(super) fn stored_message(outgoing: &OutgoingMessage) -> Value {
    let part = |part: &Part| match part {
        Part::Text(text) => json!({ "text": text }),
        Part::File { name, mime, bytes } => {
            // Without its content: the history would hold every file that was ever sent.
            json!({ "file": { "name": name, "mime": mime, "size": bytes.len() } })
        }
        Part::Link { url, name, mime } => json!({ "file": { "url": url, "name": name, "mime": mime } }),
        Part::Data(data) | Part::Other(data) => json!({ "data": data }),
    };
    json!({ "messageId": outgoing.message_id, "parts": outgoing.parts.iter().map(part).collect::<Vec<_>>() })
}

fn read_file(path: &Path) -> Result<Part, Error> {
    let failed = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::NotFound => Error::File(FileError::NotFound(path.to_owned())),
        _ => Error::File(FileError::Io { action: "read", path: path.to_owned(), source }),
    };
    let mut bytes = Vec::new();
    // Bounded while it is read, because the file may grow.
    std::fs::File::open(path).map_err(failed)?.take(LARGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LARGEST {
        return Err(
            FileError::TooLarge { path: path.to_owned(), size: bytes.len() as u64, limit: LARGEST }.into()
        );
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let mime = name.as_deref().and_then(media_type).map(str::to_owned);
    Ok(Part::File { bytes, name, mime })
}

/// The media type of the usual endings.
fn media_type(name: &str) -> Option<&'static str> {
    Some(match name.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
        "txt" | "log" => "text/plain",
        "md" => "text/markdown",
        "html" => "text/html",
        "csv" => "text/csv",
        "json" => "application/json",
        "yaml" | "yml" => "application/yaml",
        "pdf" => "application/pdf",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "svg" => "image/svg+xml",
        "wav" => "audio/wav",
        "mp3" => "audio/mpeg",
        "mp4" => "video/mp4",
        "zip" => "application/zip",
        _ => return None,
    })
}
