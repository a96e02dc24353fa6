//! Word behind a bare `--continue`.
//!
//! The flag takes an id only after `=`, because the next word is usually the text of the message. A next word that looks like
//! an id counts as the id, so that it is not sent as text to the agent of another conversation.

use clap::{ArgMatches, FromArgMatches};

/// Arguments of the commands that take words.
const WORDS: [&str; 2] = ["words", "agent"];

/// Position among the words of an id behind a bare `--continue`. It adds no argument to its command, and stands before the
/// words in the struct, because reading an argument removes it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ContinueWord(Option<usize>);

impl ContinueWord {
    /// Position of the id, if the word is one.
    pub(crate) fn position(self) -> Option<usize> {
        self.0
    }
}

impl clap::Args for ContinueWord {
    fn augment_args(command: clap::Command) -> clap::Command {
        command
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        command
    }
}

impl FromArgMatches for ContinueWord {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(ContinueWord(WORDS.into_iter().find_map(|words| id_position(matches, words))))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn id_position(matches: &ArgMatches, words: &str) -> Option<usize> {
    let is_bare = matches.try_get_one::<String>("continued").ok()??.is_empty();
    let mut given = matches.try_get_raw(words).ok()??;
    let flag = matches.index_of("continued").filter(|_| is_bare)?;
    let at = matches.indices_of(words)?.position(|index| index == flag + 1)?;
    given.nth(at)?.to_str().filter(|word| is_id(word)).map(|_| at)
}

/// Whether a word has the form of a conversation's id, or of its first eight or more characters.
pub(crate) fn is_id(word: &str) -> bool {
    let is_dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    let fits = |(at, byte): (usize, u8)| {
        if is_dash(at) { byte == b'-' } else { byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte) }
    };
    (8..=36).contains(&word.len()) && word.bytes().enumerate().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_is_a_uuid_or_the_beginning_of_one() {
        for id in ["01a1b2c3", "01a1b2c3-", "01890a5d-ac96-774b-bcce-b302099a8057"] {
            assert!(is_id(id), "{id}");
        }
        for text in
            ["", "hi", "01a1", "continue", "01a1b2c3d4", "01A1B2C3", "01890a5d-ac96-774b-bcce-b302099a80577"]
        {
            assert!(!is_id(text), "{text}");
        }
    }
}
