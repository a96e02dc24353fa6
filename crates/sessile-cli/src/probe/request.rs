//! Request templates for services with their own protocol, from flags or a file.

use std::path::PathBuf;

use sessile::error::{FileError, UsageError};
use sessile::{Error, State};
use toml_edit::{DocumentMut, Item};

use super::http::{HistoryTemplate, HttpService};
use super::template::{RequestLine, Template};
use super::transport::ProbeTransport;

/// The flags.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct RequestArgs {
    /// http: the request of a turn, as in 'POST /chat'; {user}, {session}, {message} and {turn} are filled in
    #[arg(long, value_name = "METHOD /PATH")]
    request: Option<String>,

    /// http: its body, with the same placeholders
    #[arg(long, value_name = "BODY")]
    body: Option<String>,

    /// http: JSON pointer of the reply, e.g. /choices/0/text; default: the whole body
    #[arg(long, value_name = "POINTER")]
    reply: Option<String>,

    /// http: request that reads a user's history, e.g. 'GET /sessions/{session}/messages'
    #[arg(long, value_name = "METHOD /PATH", hide_short_help = true)]
    history: Option<String>,

    /// http: JSON pointer of the list of messages in the history
    #[arg(long, value_name = "POINTER", hide_short_help = true)]
    history_items: Option<String>,

    /// http: JSON pointer of the text in a message
    #[arg(long, value_name = "POINTER", hide_short_help = true)]
    history_text: Option<String>,

    /// http: TOML file with the http flags as keys, and `headers`; flags override the file
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    template: Option<PathBuf>,
}

/// The same, with what the file says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    said: RequestArgs,
    pub(crate) headers: Vec<String>,
}

impl RequestArgs {
    /// First of these flags in the call.
    pub(crate) fn first_passed(&self) -> Option<&'static str> {
        let said = [
            ("--request", self.request.is_some()),
            ("--body", self.body.is_some()),
            ("--reply", self.reply.is_some()),
            ("--history", self.history.is_some()),
            ("--history-items", self.history_items.is_some()),
            ("--history-text", self.history_text.is_some()),
            ("--template", self.template.is_some()),
        ];
        said.into_iter().find(|(_, is_said)| *is_said).map(|(flag, _)| flag)
    }

    /// Loads the file, if given.
    pub(crate) fn load(&self, state: &State) -> Result<Requests, Error> {
        let mut all = Requests { said: self.clone(), headers: Vec::new() };
        let Some(file) = &self.template else { return Ok(all) };
        let path = state.absolute(file);
        let text = sessile::files::read(&path)?.ok_or_else(|| FileError::NotFound(path.clone()))?;
        let wrong = |why: String| {
            Error::Usage(UsageError::Arguments(format!("{}: {why}", sessile::text::shown(path.display()))))
        };
        let document: DocumentMut =
            text.parse().map_err(|error: toml_edit::TomlError| wrong(error.message().to_owned()))?;
        for (key, item) in document.iter() {
            let place = match key {
                "request" => &mut all.said.request,
                "body" => &mut all.said.body,
                "reply" => &mut all.said.reply,
                "history" => &mut all.said.history,
                "history-items" => &mut all.said.history_items,
                "history-text" => &mut all.said.history_text,
                "headers" => {
                    let texts = texts(item);
                    all.headers =
                        texts.ok_or_else(|| wrong("headers must be a list of \"NAME: VALUE\"".to_owned()))?;
                    continue;
                }
                _ => return Err(wrong(format!("unknown key {}", sessile::text::quoted(key)))),
            };
            let value = item.as_str().ok_or_else(|| wrong(format!("{key} must be a string")))?;
            place.get_or_insert_with(|| value.to_owned());
        }
        Ok(all)
    }
}

fn texts(item: &Item) -> Option<Vec<String>> {
    item.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
}

impl Requests {
    /// Service with these requests.
    pub(crate) fn service(&self, wire: ProbeTransport) -> Result<HttpService, Error> {
        let said = &self.said;
        let Some(request) = &said.request else {
            return Err(UsageError::Arguments(
                "the request is missing; pass --request 'POST /chat' or --template FILE".to_owned(),
            )
            .into());
        };
        let request = line("--request", request)?;
        let body = said.body.as_deref().map(Template::parse).transpose();
        let body =
            body.map_err(|wrong| UsageError::Arguments(format!("--body: unknown placeholder {wrong}")))?;
        let in_body = |is: &dyn Fn(&Template) -> bool| body.as_ref().is_some_and(is);
        if !(request.path.has("message") || in_body(&|body| body.has("message"))) {
            return Err(UsageError::Arguments("--request or --body must contain {message}".to_owned()).into());
        }
        // All requests would be one user's, and every code word its own.
        if !(request.path.names_user() || in_body(&Template::names_user) || wire.headers.names_user()) {
            let why =
                "users cannot be distinguished: put {user} or {session} into --request, --body or a --header";
            return Err(UsageError::Arguments(why.to_owned()).into());
        }
        let reply = pointer("--reply", said.reply.as_ref())?;
        let (items, text) = (
            pointer("--history-items", said.history_items.as_ref())?,
            pointer("--history-text", said.history_text.as_ref())?,
        );
        let history = match &said.history {
            Some(history) => Some(HistoryTemplate { request: line("--history", history)?, items, text }),
            None if items.is_some() || text.is_some() => {
                return Err(
                    UsageError::Arguments("--history is required to read the history".to_owned()).into()
                );
            }
            None => None,
        };
        Ok(HttpService { wire, request, body, reply, history })
    }
}

fn line(flag: &str, text: &str) -> Result<RequestLine, Error> {
    RequestLine::parse(text).map_err(|why| {
        Error::Usage(UsageError::InvalidValue {
            place: flag.to_owned(),
            value: text.to_owned(),
            expected: why,
        })
    })
}

/// A JSON pointer, which begins with a slash or is empty.
fn pointer(flag: &str, text: Option<&String>) -> Result<Option<String>, Error> {
    match text {
        Some(text) if !text.is_empty() && !text.starts_with('/') => Err(UsageError::InvalidValue {
            place: flag.to_owned(),
            value: text.clone(),
            expected: "a JSON pointer such as /choices/0/text".into(),
        }
        .into()),
        text => Ok(text.cloned()),
    }
}
