//! `sessile conversation`: what sessions remember about agents.

pub mod clear;
pub mod export;
pub mod list;
pub mod rename;
pub mod show;

use sessile::conversation::{Conversation, Conversations};
use sessile::error::ConversationError;
use sessile::{Error, State};

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::lazy::Lazy;
use crate::remote::ServerArgs;

/// Look at, name and forget conversations with agents
///
/// A session remembers each conversation with an agent: the agent's ids of it, and all that was said. `message send`
/// goes on with the one that was used last.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = examples!(
    "sessile conversation list"
    "sessile conversation show research"
    "sessile conversation clear --agent https://agent.example"
))]
pub enum Command {
    /// List conversations, the last used first
    List(Lazy<list::Args>),
    /// Show a conversation and what was said in it
    Show(Lazy<show::Args>),
    /// Give a conversation a name
    Rename(Lazy<rename::Args>),
    /// Forget conversations
    Clear(Lazy<clear::Args>),
    /// Print a conversation as JSON, with all that was said
    Export(Lazy<export::Args>),
}

impl Command {
    /// Where it works, if it can work elsewhere than here.
    pub(crate) fn server(&self) -> Option<&ServerArgs> {
        match self {
            Command::Show(Lazy(args)) => Some(&args.server),
            Command::Export(Lazy(args)) => Some(&args.server),
            Command::List(_) | Command::Rename(_) | Command::Clear(_) => None,
        }
    }

    pub(crate) fn run(&self, cx: &Cx) -> Outcome {
        match self {
            Command::List(Lazy(args)) => list::run(args, cx),
            Command::Show(Lazy(args)) => show::run(args, cx),
            Command::Rename(Lazy(args)) => rename::run(args, cx),
            Command::Clear(Lazy(args)) => clear::run(args, cx),
            Command::Export(Lazy(args)) => export::run(args, cx),
        }
    }
}

/// The session whose conversations are meant: the call's own, or all.
fn session_of(state: &State, all: bool) -> Result<Option<String>, Error> {
    if all {
        return Ok(None);
    }
    Ok(state.session()?.map(|current| current.session.id.to_string()))
}

/// The conversation that a text means: a name, an id, or the URL or name of an agent, whose last one it is.
fn one(state: &State, all: &Conversations, text: Option<&str>) -> Result<Conversation, Error> {
    let session = session_of(state, false)?;
    let Some(text) = text else {
        let newest = all.list(session.as_deref(), None)?.into_iter().next();
        return newest.ok_or(Error::Conversation(ConversationError::NotFound {
            name: "the last one".into(),
            near: None,
        }));
    };
    if text.contains("://") {
        let newest = all.list(session.as_deref(), Some(text))?.into_iter().next();
        return newest.ok_or_else(|| {
            Error::Conversation(ConversationError::NotFound { name: text.to_owned(), near: None })
        });
    }
    match all.find(text, session.as_deref()) {
        Ok(found) => Ok(found),
        Err(missing) => match state.agent(text) {
            Ok(agent) => all.list(session.as_deref(), Some(&agent.url))?.into_iter().next().ok_or(missing),
            Err(_) => Err(missing),
        },
    }
}
