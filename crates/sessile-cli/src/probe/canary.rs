//! Code words, the messages that tell them, and finding them again.

use std::collections::HashMap;

use sessile::{Error, random};

/// Number of letters of a code word.
const LENGTH: usize = 12;

const CONSONANTS: &[u8; 20] = b"bcdfghjklmnpqrstvwxz";
const VOWELS: &[u8; 5] = b"aeiou";

/// Request in every message, without characters that JSON or forms escape.
const REPEAT: &str = "epeat all the code words that I have told you so far, in the order in which I told them, \
                      separated by spaces, and say nothing else.";

/// Id of a code word: user and turn, both from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CodeWordId {
    pub(crate) user: u32,
    pub(crate) turn: u32,
}

/// A code word somewhere in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodeWordMatch {
    pub(crate) code: CodeWordId,
    /// Offset.
    pub(crate) at: usize,
    /// Whether the code word is part of its message's text.
    pub(crate) is_told: bool,
}

/// The code words of all users.
#[derive(Debug)]
pub(crate) struct Canaries {
    words: Vec<Vec<String>>,
    index: HashMap<[u8; LENGTH], CodeWordId>,
    /// Part of the users' names, so that a service does not take them for those of an earlier probe.
    pub(crate) run: String,
}

impl Canaries {
    /// Code words, one for each turn of each user. A seed reproduces them; without one they cannot be guessed.
    pub(crate) fn new(users: u32, turns: u32, seed: Option<u64>) -> Result<Self, Error> {
        let mut source = Source { seed, bytes: Vec::new() };
        let run = source.word()?.into_iter().take(6).map(char::from).collect();
        let mut all = Canaries { words: Vec::new(), index: HashMap::new(), run };
        for user in 1..=users {
            let mut own = Vec::new();
            for turn in 1..=turns {
                let mut word = source.word()?;
                // Two of a kind would be a leak that is none.
                while all.index.contains_key(&word) {
                    word = source.word()?;
                }
                all.index.insert(word, CodeWordId { user, turn });
                own.push(word.into_iter().map(char::from).collect());
            }
            all.words.push(own);
        }
        Ok(all)
    }

    /// A code word.
    pub(crate) fn word(&self, code: CodeWordId) -> &str {
        let at = |number: u32| usize::try_from(number).unwrap_or(usize::MAX).wrapping_sub(1);
        let own = self.words.get(at(code.user));
        own.and_then(|own| own.get(at(code.turn))).map_or("", String::as_str)
    }

    /// The message that tells a code word; beyond the last turn the one that only asks.
    pub(crate) fn message(&self, code: CodeWordId) -> String {
        match self.word(code) {
            "" => format!("R{REPEAT}"),
            word => format!("My {}{word}. R{REPEAT}", told(code.turn)),
        }
    }

    /// Every code word in a text, in order. Capitals do not matter.
    pub(crate) fn find(&self, text: &str) -> Vec<CodeWordMatch> {
        let (mut found, mut letters) = (Vec::new(), 0);
        let mut window = [0; LENGTH];
        for (at, byte) in text.bytes().enumerate() {
            if !byte.is_ascii_alphabetic() {
                letters = 0;
                continue;
            }
            letters += 1;
            // A hash look-up per letter, because there may be thousands of words and megabytes of text.
            window.rotate_left(1);
            window[LENGTH - 1] = byte.to_ascii_lowercase();
            if letters < LENGTH {
                continue;
            }
            if let Some(code) = self.index.get(&window) {
                let at = at + 1 - LENGTH;
                let is_told = text.as_bytes()[..at].ends_with(told(code.turn).as_bytes());
                found.push(CodeWordMatch { code: *code, at, is_told });
                letters = 0;
            }
        }
        found
    }
}

fn told(turn: u32) -> String {
    format!("code word number {turn} is ")
}

/// A piece of a text around a code word, not long, on one line.
pub(crate) fn excerpt(text: &str, at: usize) -> String {
    const AROUND: usize = 40;
    let mut from = at.saturating_sub(AROUND);
    while !text.is_char_boundary(from) {
        from -= 1;
    }
    let mut to = (at + LENGTH + AROUND).min(text.len());
    while !text.is_char_boundary(to) {
        to += 1;
    }
    let before = if from > 0 { "..." } else { "" };
    let after = if to < text.len() { "..." } else { "" };
    format!("{before}{}{after}", sessile::text::shown(&text[from..to]))
}

/// Source of randomness.
struct Source {
    seed: Option<u64>,
    bytes: Vec<u8>,
}

impl Source {
    /// Pronounceable letters, because language models copy those without errors.
    fn word(&mut self) -> Result<[u8; LENGTH], Error> {
        let mut word = [0; LENGTH];
        for (at, letter) in word.iter_mut().enumerate() {
            *letter = if at % 2 == 0 { self.pick(CONSONANTS)? } else { self.pick(VOWELS)? };
        }
        Ok(word)
    }

    fn pick(&mut self, letters: &[u8]) -> Result<u8, Error> {
        loop {
            let byte = usize::from(self.byte()?);
            // What is left over at the end would make some letters more likely.
            if byte < 256 / letters.len() * letters.len() {
                return Ok(letters[byte % letters.len()]);
            }
        }
    }

    fn byte(&mut self) -> Result<u8, Error> {
        if self.bytes.is_empty() {
            self.bytes = match &mut self.seed {
                // In large pieces: a system call for each letter would dominate the start.
                None => random::bytes::<4096>()?.to_vec(),
                Some(seed) => split_mix(seed).to_le_bytes().to_vec(),
            };
        }
        Ok(self.bytes.pop().unwrap_or_default())
    }
}

/// The next number of SplitMix64.
fn split_mix(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_says_which_words() {
        let words = |seed| Canaries::new(3, 4, seed).unwrap().words;
        assert_eq!(words(Some(7)), words(Some(7)));
        assert_ne!(words(Some(7)), words(Some(8)));
        assert_ne!(words(None), words(None));
        let many = Canaries::new(100, 100, Some(1)).unwrap();
        assert_eq!(many.index.len(), 10_000);
        assert!(many.words.iter().flatten().all(|word| word.len() == LENGTH));
    }

    #[test]
    fn words_are_found_wherever_they_stand() {
        let canaries = Canaries::new(2, 2, Some(1)).unwrap();
        let (one, two) = (CodeWordId { user: 1, turn: 2 }, CodeWordId { user: 2, turn: 1 });
        let text = format!("\u{e9}xx{}yy {}", canaries.word(one).to_uppercase(), canaries.message(two));
        let found = canaries.find(&text);
        assert_eq!(
            found.iter().map(|seen| (seen.code, seen.is_told)).collect::<Vec<_>>(),
            [(one, false), (two, true)]
        );
        assert!(text[found[0].at..].starts_with(&canaries.word(one).to_uppercase()));
        assert!(canaries.find(&canaries.word(one)[1..]).is_empty());
        assert!(canaries.find(&canaries.message(CodeWordId { user: 1, turn: 3 })).is_empty());
    }

    #[test]
    fn an_excerpt_is_cut_between_characters() {
        let text = format!("{}canarycanary{}", "\u{e9}".repeat(50), "\u{1f600}".repeat(50));
        let short = excerpt(&text, 100);
        assert!(short.starts_with("...") && short.ends_with("...") && short.contains("canarycanary"));
        assert!(short.chars().count() < 80, "{short}");
        assert_eq!(excerpt("a\ncanarycanary", 2), "a\\ncanarycanary");
    }
}
