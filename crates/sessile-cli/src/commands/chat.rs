//! `sessile chat`.

use std::path::PathBuf;

use sessile::Error;
use sessile::error::{ConversationError, UsageError};

use crate::agent_session::{AgentArgs, Continuation, ContinueWord, ConversationSelector, resolve_agent};
use crate::chat::line_mode::{self, ChatStart};
use crate::chat::screen;
use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples;

/// Chat with an agent
///
/// The chat continues the conversation of the session, as message send does. It stores a message before it sends it, so
/// that you can resume after a kill. Without a capable terminal, in a pipe and with --no-input, each line of standard
/// input is a message, and replies go to standard output. Type /help for the commands.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile chat http://localhost:8738"
    "sessile chat research --session work"
    "sessile chat research --new"
    "sessile chat --continue=019a"
    "sessile chat research --session work < questions.txt"
))]
pub struct Args {
    #[command(flatten)]
    continue_word: ContinueWord,

    /// Agent: name or URL; default: the default agent
    #[arg(value_name = "AGENT")]
    agent: Option<String>,

    #[command(flatten)]
    reach: AgentArgs,

    /// Begin a new conversation
    #[arg(long)]
    new: bool,

    /// Continue the conversation with this id; default: the last one with the agent in this context
    #[arg(
        short = 'C',
        long = "continue",
        value_name = "ID",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        conflicts_with_all = ["new", "conversation"]
    )]
    continued: Option<String>,

    /// Open the conversation of this name; start it if it does not exist
    #[arg(long, value_name = "NAME")]
    conversation: Option<String>,

    /// Follow this task first
    #[arg(long, value_name = "TASK", conflicts_with = "new")]
    watch: Option<String>,

    /// Save artifacts in this directory; the current one by default
    #[arg(long, value_name = "DIR")]
    save_dir: Option<PathBuf>,

    /// Read lines and print replies, also on a capable terminal
    #[arg(long)]
    plain: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    if !args.plain && has_screen(cx) {
        let start = match args.named_agent(cx)? {
            Some(agent) => Some(args.start_with(cx, agent)?),
            None => None,
        };
        return screen::run(cx, args.reach.clone(), args.save_dir(), start);
    }
    let Some(agent) = args.named_agent(cx)? else {
        let text = "no agent selected; pass its name or URL, or choose one: agent use NAME";
        return Err(UsageError::Arguments(text.into()).into());
    };
    line_mode::run(cx, args.start_with(cx, agent)?)
}

/// Whether the terminal can show the full-screen chat, and a person uses it.
fn has_screen(cx: &Cx) -> bool {
    let world = cx.state.world();
    let is_dumb = world.variable("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    cx.state.call().selectable_terminal().is_some() && !is_dumb && cx.out.is_text()
}

impl Args {
    /// Start of the chat.
    fn start_with(&self, cx: &Cx, agent: String) -> Result<ChatStart, Failure> {
        // An unknown name fails here, and not with the first message.
        resolve_agent(cx, &agent)?;
        Ok(ChatStart {
            agent,
            selector: self.selector(cx),
            task: self.watch.clone(),
            reach: self.reach.clone(),
            save_dir: self.save_dir(),
        })
    }

    /// Agent of the arguments, of the conversation to continue, or the default agent.
    fn named_agent(&self, cx: &Cx) -> Result<Option<String>, Error> {
        let agent = self.agent.as_ref().filter(|_| self.continue_word.position().is_none());
        if let Some(agent) = agent.or(self.reach.url.as_ref()) {
            return Ok(Some(agent.clone()));
        }
        match self.continued().filter(|id| !id.is_empty()) {
            Some(id) => {
                let missing = || ConversationError::NotFound { name: id.to_owned(), near: None };
                let all = cx.state.conversations_to_look_at()?.ok_or_else(missing)?;
                Ok(Some(all.find(id, None)?.agent_url))
            }
            None => Ok(cx.state.default_agent()?.map(|agent| agent.name.unwrap_or(agent.url))),
        }
    }

    /// Id of the conversation to continue; empty for the last one.
    fn continued(&self) -> Option<&str> {
        let id = self.agent.as_deref().filter(|_| self.continue_word.position().is_some());
        id.or(self.continued.as_deref())
    }

    /// Directory of saved artifacts; an empty path is the current one.
    fn save_dir(&self) -> PathBuf {
        self.save_dir.clone().unwrap_or_default()
    }

    fn selector(&self, cx: &Cx) -> ConversationSelector {
        let continued = self.continued().map(|id| match id {
            "" => Continuation::Last,
            id => Continuation::Id(id.to_owned()),
        });
        let is_selected = continued.is_some() || self.conversation.is_some() || self.watch.is_some();
        ConversationSelector {
            // Workers of a hooked shell share the session of the person at its prompt, and must not end up in one conversation.
            new: self.new || (cx.state.is_hook_worker() && !is_selected),
            continued,
            name: self.conversation.clone(),
            ..ConversationSelector::default()
        }
    }
}
