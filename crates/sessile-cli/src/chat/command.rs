//! Slash commands, which a person types instead of a message.

/// A slash command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChatCommand {
    /// Start a conversation with the agent.
    New,
    /// Choose an agent or a conversation, or go to this one.
    Agents(Option<String>),
    /// Save artifacts: a number, or all of them; and the directory.
    Save(ArtifactRange, Option<String>),
    /// Open an artifact with the program of the desktop.
    Open(usize),
    /// List artifacts.
    Artifacts,
    /// Add a file, or a link to one, to the next message.
    Attach(String),
    /// Add JSON to the next message.
    Data(String),
    /// Remove the attachments.
    Detach,
    /// Follow a task: this one, or the last one of the conversation.
    Watch(Option<String>),
    /// Cancel the running task.
    Cancel,
    /// Show the agent's card.
    Card,
    /// Show the wire log.
    Wire,
    /// Search the conversation.
    Search(String),
    /// Copy an id or the last reply.
    Copy(CopySource),
    /// Show the ids.
    Ids,
    /// Delete the conversation from the store.
    Forget,
    /// Close the conversation's tab.
    Close,
    /// Choose a theme.
    Theme(String),
    /// Show the help.
    Help,
    /// End the chat.
    Quit,
}

/// Artifacts that a command means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArtifactRange {
    /// All of them.
    All,
    /// The one of this number, from 1.
    One(usize),
}

/// Source of a copy to the clipboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopySource {
    /// Last reply.
    Reply,
    /// Id of the conversation.
    Conversation,
    /// Id of the conversation at the agent.
    Context,
    /// Id of the last task.
    Task,
    /// Id of an artifact by its number, or of the last one.
    Artifact(Option<usize>),
}

/// Usage and help of every command, in the order of the help.
pub(crate) const COMMANDS: &[(&str, &str)] = &[
    ("/help", "show keys and commands"),
    ("/new", "start a conversation with this agent"),
    ("/agents [AGENT]", "choose an agent or a conversation"),
    ("/attach FILE", "add a file or a URL to the next message"),
    ("/data JSON", "add JSON to the next message"),
    ("/detach", "remove the attachments"),
    ("/artifacts", "list the artifacts"),
    ("/save [N] [DIR]", "save artifacts as files"),
    ("/open N", "open an artifact with the desktop's program"),
    ("/watch [TASK]", "follow a task"),
    ("/cancel", "cancel the running task"),
    ("/search TEXT", "search the conversation"),
    ("/copy [WHAT]", "copy the reply, or the id: conversation, context, task, artifact [N]"),
    ("/ids", "show the ids"),
    ("/card", "show the agent's card"),
    ("/wire", "show the wire log"),
    ("/theme NAME", "choose the colors: dark, light or none"),
    ("/forget", "delete this conversation from the store"),
    ("/close", "close this tab"),
    ("/quit", "quit; tasks continue at the agents"),
];

/// Meaning of a typed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChatInput {
    /// Nothing.
    Empty,
    /// A message.
    Message(String),
    /// A command.
    Command(ChatCommand),
    /// A command that is not valid, with the reason.
    Invalid(String),
}

impl ChatInput {
    /// Parses what was typed. A message that begins with a slash is typed with two.
    pub(crate) fn parse(text: &str) -> Self {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return ChatInput::Empty;
        }
        match trimmed.strip_prefix('/') {
            None => ChatInput::Message(text.trim_end_matches(['\r', '\n']).to_owned()),
            Some(rest) if rest.starts_with('/') => ChatInput::Message(rest.to_owned()),
            Some(rest) => command(rest).map_or_else(ChatInput::Invalid, ChatInput::Command),
        }
    }
}

fn command(text: &str) -> Result<ChatCommand, String> {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    let required = |what: &str| match rest {
        "" => Err(format!("/{word} requires {what}")),
        rest => Ok(rest.to_owned()),
    };
    let number = |text: &str| text.parse::<usize>().ok().filter(|number| *number > 0);
    Ok(match word {
        "new" => ChatCommand::New,
        "agents" | "conversations" => ChatCommand::Agents(some(rest)),
        "save" => {
            let (first, dir) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            match number(first) {
                Some(number) => ChatCommand::Save(ArtifactRange::One(number), some(dir)),
                None if first == "all" => ChatCommand::Save(ArtifactRange::All, some(dir)),
                None => ChatCommand::Save(ArtifactRange::All, some(rest)),
            }
        }
        "open" => match number(rest) {
            Some(number) => ChatCommand::Open(number),
            None => return Err("/open requires the number of an artifact".to_owned()),
        },
        "artifacts" => ChatCommand::Artifacts,
        "attach" => ChatCommand::Attach(required("a file or a URL")?),
        "data" => ChatCommand::Data(required("JSON")?),
        "detach" => ChatCommand::Detach,
        "watch" => ChatCommand::Watch(some(rest)),
        "cancel" => ChatCommand::Cancel,
        "card" => ChatCommand::Card,
        "wire" => ChatCommand::Wire,
        "search" => ChatCommand::Search(required("a text")?),
        "copy" => ChatCommand::Copy(match rest {
            "" | "reply" => CopySource::Reply,
            "conversation" | "id" => CopySource::Conversation,
            "context" => CopySource::Context,
            "task" => CopySource::Task,
            "artifact" => CopySource::Artifact(None),
            _ => match rest.strip_prefix("artifact ").and_then(|text| number(text.trim())) {
                Some(found) => CopySource::Artifact(Some(found)),
                None => {
                    return Err("/copy takes reply, conversation, context, task or artifact [N]".to_owned());
                }
            },
        }),
        "ids" => ChatCommand::Ids,
        "forget" => ChatCommand::Forget,
        "close" => ChatCommand::Close,
        "theme" => ChatCommand::Theme(required("dark, light or none")?),
        "help" | "?" => ChatCommand::Help,
        "quit" | "exit" | "q" => ChatCommand::Quit,
        _ => return Err(format!("command \"/{word}\" not found; /help lists the commands")),
    })
}

fn some(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Commands that begin with what was typed, for completion.
pub(crate) fn completions(typed: &str) -> Vec<&'static (&'static str, &'static str)> {
    let word_of = |usage: &'static str| usage.split(' ').next().unwrap_or(usage);
    COMMANDS.iter().filter(|(usage, _)| word_of(usage).starts_with(typed)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_messages_or_commands() {
        let command = ChatInput::Command;
        for (line, input) in [
            ("", ChatInput::Empty),
            ("  \n", ChatInput::Empty),
            ("hello", ChatInput::Message("hello".into())),
            ("//etc is a directory", ChatInput::Message("/etc is a directory".into())),
            ("/new", command(ChatCommand::New)),
            ("/save", command(ChatCommand::Save(ArtifactRange::All, None))),
            ("/save 2 out", command(ChatCommand::Save(ArtifactRange::One(2), Some("out".into())))),
            ("/save out dir", command(ChatCommand::Save(ArtifactRange::All, Some("out dir".into())))),
            ("/attach a b.txt", command(ChatCommand::Attach("a b.txt".into()))),
            ("/watch", command(ChatCommand::Watch(None))),
            ("/copy task", command(ChatCommand::Copy(CopySource::Task))),
            ("/copy artifact", command(ChatCommand::Copy(CopySource::Artifact(None)))),
            ("/copy artifact 2", command(ChatCommand::Copy(CopySource::Artifact(Some(2))))),
            ("/open 0", ChatInput::Invalid("/open requires the number of an artifact".into())),
            ("/attach", ChatInput::Invalid("/attach requires a file or a URL".into())),
            ("/nwe", ChatInput::Invalid("command \"/nwe\" not found; /help lists the commands".into())),
        ] {
            assert_eq!(ChatInput::parse(line), input, "{line:?}");
        }
    }

    #[test]
    fn every_command_of_the_help_is_parsed() {
        for (usage, _) in COMMANDS {
            let word = usage.split(' ').next().unwrap();
            let line = match word {
                "/open" => "/open 1".to_owned(),
                "/copy" => "/copy".to_owned(),
                _ => format!("{word} x"),
            };
            assert!(matches!(ChatInput::parse(&line), ChatInput::Command(_)), "{usage}");
        }
        assert_eq!(completions("/sa").len(), 1);
        assert_eq!(completions("/").len(), COMMANDS.len());
    }
}
