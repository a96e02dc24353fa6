//! One tool's profile.

use std::path::Path;

use crate::error::{Error, Result};
use crate::settings::{Data, Document, Node};

include!(concat!(env!("OUT_DIR"), "/built_in_profiles.rs"));

/// What is known about a tool.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// What it is, in a few words.
    pub about: String,
    /// The programs that share its state, the main one first.
    pub programs: Vec<String>,
    /// How to show that parallel processes fight over its state.
    pub race: Option<Race>,
}

/// Commands that show the race. `{agent}` and `{round}` stand for numbers.
#[derive(Clone, Debug)]
pub struct Race {
    /// What is shared, in the user's words.
    pub state: String,
    /// Rounds per agent; fewer for tools that start slowly.
    pub rounds: usize,
    /// Run once per agent before the race.
    pub seed: Vec<Vec<String>>,
    /// Selects an agent's own value.
    pub switch: Vec<String>,
    /// Prints the value that is selected.
    pub probe: Vec<String>,
    /// What an agent must read after its switch.
    pub expect: String,
    /// Writes a key that no other agent writes.
    pub write: Option<Vec<String>>,
    /// Prints everything that was written.
    pub read_all: Option<Vec<String>>,
    /// What must be found there for each write.
    pub written: String,
}

impl Profile {
    /// The profiles that are built in, in the order of their names.
    pub fn built_in() -> Result<Vec<Self>> {
        BUILT_IN.iter().map(|(path, text)| Self::parse(Path::new(path), text)).collect()
    }

    /// Reads a profile.
    pub fn parse(path: &Path, text: &str) -> Result<Self> {
        let document = Document::parse(path, text.to_owned())?;
        let reader = Reader { document: &document };
        let root = document.root();
        Ok(Profile {
            name: reader.text(root, "name")?,
            about: reader.text(root, "about")?,
            programs: reader.words(root, "programs")?,
            race: root.get("race").map(|node| reader.race(node)).transpose()?,
        })
    }
}

struct Reader<'a> {
    document: &'a Document,
}

impl Reader<'_> {
    fn wrong(&self, node: &Node, key: &str, expected: &str) -> Error {
        let found = node.get(key);
        Error::FileValue {
            place: self.document.place(found.unwrap_or(node).offset).into(),
            key: key.to_owned(),
            expected: expected.to_owned(),
            found: found.map_or_else(|| "missing".to_owned(), Node::described),
        }
    }

    fn text(&self, node: &Node, key: &str) -> Result<String> {
        let text = node.get(key).and_then(Node::as_str);
        text.map(str::to_owned).ok_or_else(|| self.wrong(node, key, "text"))
    }

    fn words(&self, node: &Node, key: &str) -> Result<Vec<String>> {
        node.get(key).and_then(words).ok_or_else(|| self.wrong(node, key, "a list of words"))
    }

    fn optional_words(&self, node: &Node, key: &str) -> Result<Option<Vec<String>>> {
        node.get(key).map(|_| self.words(node, key)).transpose()
    }

    fn race(&self, node: &Node) -> Result<Race> {
        let rounds = match node.get("rounds").map(|node| &node.data) {
            None => 10,
            Some(Data::Integer(rounds)) => usize::try_from(*rounds).unwrap_or(1),
            Some(_) => return Err(self.wrong(node, "rounds", "a whole number")),
        };
        let seed = match node.get("seed").map(|node| &node.data) {
            None => Some(Vec::new()),
            Some(Data::Array(commands)) => commands.iter().map(words).collect(),
            Some(_) => None,
        };
        Ok(Race {
            state: self.text(node, "state")?,
            rounds,
            seed: seed.ok_or_else(|| self.wrong(node, "seed", "a list of commands"))?,
            switch: self.words(node, "switch")?,
            probe: self.words(node, "probe")?,
            expect: self.text(node, "expect")?,
            write: self.optional_words(node, "write")?,
            read_all: self.optional_words(node, "read-all")?,
            written: node.get("written").map_or(Ok(String::new()), |_| self.text(node, "written"))?,
        })
    }
}

fn words(node: &Node) -> Option<Vec<String>> {
    match &node.data {
        Data::Array(nodes) => nodes.iter().map(|node| node.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_profile_is_valid_and_named_like_its_file() {
        let profiles = Profile::built_in().unwrap();
        assert!(!profiles.is_empty());
        for (profile, (path, _)) in profiles.iter().zip(BUILT_IN) {
            assert_eq!(Path::new(path).file_stem().unwrap().to_str(), Some(profile.name.as_str()));
            let race = profile.race.as_ref();
            assert!(race.is_none_or(|race| race.write.is_some() == race.read_all.is_some()), "{path}");
        }
    }
}
