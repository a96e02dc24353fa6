//! Patterns of hard English, found in tokens of prose.

use std::sync::LazyLock;

/// Word, placeholder, mark or break of a text, with the line that it is on.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) word: String,
    pub(super) line: usize,
}

/// Sentence that matches a pattern.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) line: usize,
    pub(super) pattern: &'static str,
    pub(super) excerpt: String,
}

/// Patterns, one word per position. `a|b` is a choice, `!a|b` any other word, `_` any word, `_*` up to six of them, `^` the start of a sentence or clause,
/// `^^` the start of a text.
const PATTERNS: &[&str] = &[
    // A clause as the subject.
    "^ what|who|whoever|whatever|whose _",
    "^ that a|an|the|it|one _* is|are|was|goes|says",
    "and|but|so|because|if|that|than what|who|whoever|whatever _* is|are|was|were|has|have|can|cannot|may|must|gets|goes|needs|says|does",
    // A pronoun without its noun.
    "^^ it|its|they|their|them|he|she|his|her|those|these",
    "^^ this|that is|are|was|has|needs|can|cannot|may|must|goes|says|takes|asks|does",
    // "is no X" and "there is".
    "is|are|was|were|be|am no !longer|more|later|other|better|problem",
    "there is|are|was|were|be",
    "is|are|was|were there",
    // Passive of say, tell, hear, show, give, ask, mean, and "had".
    "is|are|was|were|be|been|being|gets said|told|heard|shown|given|asked|meant|had|spoken",
    "is|are|was|were|be|been|being not|never|only|also|then|now|always|already|still|once said|told|heard|shown|given|asked|meant|had",
    "as|than|what|whatever|that|which|one|those|values|value|names|name said|told|asked|meant",
    // "is to" for "must" or "will".
    "it|that|what|which|this|they is|are|was|were to",
    "is|are|was|were to be",
    // Words that a reader has to decode.
    "anew",
    "nobody",
    "its|their|whose time is|was|were|has|ends|ended|runs|ran",
    "time is|was up|over",
    "mend|mends|mended",
    "shut out",
    "take|takes|took|taken|taking back",
    "see|sees|seen to",
    "^ say|tell|name where|which|what|so|that|it|who",
    "any more",
    "no more _",
    "in force",
    "goes without",
    "stands|stand|stood in|there|here|beside|for",
    "lets|let in",
    "has|have|had enough",
    "held against",
    "by hand|itself|themselves alone",
    "for nothing",
    "not for ever",
    "for ever",
    "of no use",
    "so long as",
    "bring|brings|brought out",
    "hand|hands|handed back",
    "which is whose",
    "is|are|was|were gone",
    "nothing gets|goes|stands|comes|opens",
    "is|are|was|were one's",
    "one's",
    "whoever|whomever",
    "thereof|therein|thereby|hitherto|hence|lest|thus",
    "but for",
    "none is|are|was|were|has|have",
    "like|as any|every other",
    "needs|need you",
    "nothing needs|matches",
    "terminal's now",
];

/// The patterns, split once.
static ATOMS: LazyLock<Vec<Vec<&str>>> =
    LazyLock::new(|| PATTERNS.iter().map(|pattern| pattern.split(' ').collect()).collect());

/// Longest sentence, in words.
pub(super) const MESSAGE_WORDS: usize = 30;
pub(super) const DOC_WORDS: usize = 35;

/// Mark between sentences.
const STOP: &str = ".";
/// Mark between clauses.
const PAUSE: &str = ";";

/// Kind of text, which decides what a line break means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// Every line is a text of its own.
    Lines,
    /// Markdown: paragraphs, lists, tables, and code that is skipped.
    Markdown,
}

/// Tokens of each paragraph.
pub(super) fn paragraphs(text: &str, first_line: usize, layout: Layout) -> Vec<Vec<Token>> {
    let mut all = vec![Vec::new()];
    let mut is_code = false;
    for (number, line) in text.lines().enumerate() {
        let number = first_line + number;
        let trimmed = line.trim();
        if layout == Layout::Markdown {
            if trimmed.starts_with("```") {
                is_code = !is_code;
                all.push(Vec::new());
                continue;
            }
            if is_code || trimmed.starts_with("<!--") || trimmed.starts_with("[") && trimmed.contains("]: ") {
                continue;
            }
        }
        let item = trimmed.trim_start_matches(|c: char| c.is_ascii_digit());
        let begins = layout == Layout::Lines
            || trimmed.is_empty()
            || ["- ", "* ", "#", "|", ">"].iter().any(|mark| trimmed.starts_with(mark))
            || (item.len() < trimmed.len() && item.starts_with(". "));
        if begins {
            all.push(Vec::new());
        }
        let is_row = layout == Layout::Markdown && trimmed.starts_with('|');
        for cell in cells(trimmed, is_row) {
            if is_row {
                all.push(Vec::new());
            }
            if let Some(last) = all.last_mut() {
                tokenize(cell, number, last);
            }
        }
        if trimmed.starts_with('#') {
            all.push(Vec::new());
        }
    }
    all.retain(|tokens| tokens.iter().any(|token| is_word(&token.word)));
    all
}

fn cells(line: &str, is_row: bool) -> Vec<&str> {
    if is_row { line.split(" | ").map(|cell| cell.trim_matches(['|', ' '])).collect() } else { vec![line] }
}

fn is_word(token: &str) -> bool {
    token.starts_with(char::is_alphabetic)
}

/// Appends the tokens of one line. Code and placeholders become one token that is no word.
fn tokenize(line: &str, number: usize, out: &mut Vec<Token>) {
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let mut push = |word: &str| out.push(Token { word: word.to_owned(), line: number });
        let length = match c {
            '`' => {
                push("{}");
                rest[1..].find('`').map_or(1, |at| at + 2)
            }
            '{' => {
                push("{}");
                rest.find('}').map_or(1, |at| at + 1)
            }
            // The address of a link.
            ']' if rest.starts_with("](") => rest.find(')').map_or(1, |at| at + 1),
            '.' | '!' | '?' if rest.len() == 1 || rest[1..].starts_with([' ', ')', '"', '*']) => {
                push(if c == '?' { "?" } else { STOP });
                1
            }
            ';' | ':' if rest.len() == 1 || rest[1..].starts_with(' ') => {
                push(PAUSE);
                1
            }
            ',' => {
                push(",");
                1
            }
            c if c.is_alphabetic() => {
                let end =
                    rest.find(|c: char| !c.is_alphanumeric() && !"'’-_./".contains(c)).unwrap_or(rest.len());
                let word = rest[..end].trim_end_matches(['.', '\'', '-', '/']);
                push(&word.to_lowercase());
                word.len().max(1)
            }
            c => c.len_utf8(),
        };
        rest = &rest[length..];
    }
}

fn matches_atom(atom: &str, word: &str) -> bool {
    let is_any = is_word(word) || word == "{}";
    match atom.strip_prefix('!') {
        Some(others) => is_any && !others.split('|').any(|choice| choice == word),
        None if atom == "_" => is_any,
        None => atom.split('|').any(|choice| choice == word),
    }
}

/// Whether the atoms match the tokens from a place on.
fn matches_at(atoms: &[&str], tokens: &[Token]) -> bool {
    let Some((atom, rest)) = atoms.split_first() else { return true };
    if *atom == "_*" {
        let words =
            tokens.iter().take(6).take_while(|token| is_word(&token.word) || token.word == "{}").count();
        return (0..=words).any(|skipped| matches_at(rest, &tokens[skipped..]));
    }
    tokens.first().is_some_and(|token| matches_atom(atom, &token.word) && matches_at(rest, &tokens[1..]))
}

fn excerpt(tokens: &[Token], at: usize) -> String {
    let words: Vec<&str> =
        tokens[at.saturating_sub(3)..].iter().take(14).map(|token| token.word.as_str()).collect();
    words.join(" ")
}

/// Sentences of a paragraph that match a pattern or are too long.
pub(super) fn findings(tokens: &[Token], longest: usize) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for (start, sentence) in sentences(tokens) {
        let is_question = sentence.last().is_some_and(|token| token.word == "?");
        for at in 0..sentence.len() {
            let is_clause_start = at == 0 || sentence[at - 1].word == PAUSE;
            let hit = ATOMS.iter().position(|atoms| match atoms.first() {
                Some(&"^^") => start + at == 0 && !is_question && matches_at(&atoms[1..], sentence),
                Some(&"^") => is_clause_start && !is_question && matches_at(&atoms[1..], &sentence[at..]),
                _ => matches_at(atoms, &sentence[at..]),
            });
            if let Some(pattern) = hit.map(|hit| PATTERNS[hit]) {
                found.push(Finding { line: sentence[at].line, pattern, excerpt: excerpt(sentence, at) });
            }
        }
        let words = sentence.iter().filter(|token| is_word(&token.word) || token.word == "{}").count();
        if words > longest {
            found.push(Finding {
                line: sentence[0].line,
                pattern: "sentence too long",
                excerpt: excerpt(sentence, 0),
            });
        }
    }
    found
}

/// Sentences with the place where each begins.
fn sentences(tokens: &[Token]) -> Vec<(usize, &[Token])> {
    let mut all = Vec::new();
    let mut start = 0;
    for (at, token) in tokens.iter().enumerate() {
        if token.word == STOP || token.word == "?" || at + 1 == tokens.len() {
            all.push((start, &tokens[start..=at]));
            start = at + 1;
        }
    }
    all
}

/// Whether a string literal is a message: three words or more that are not SQL.
pub(super) fn is_message(text: &str) -> bool {
    has_words(text, 3)
}

/// Whether a string literal of a full-screen view is a text: two words or more, since hints and titles are short.
pub(super) fn is_screen_text(text: &str) -> bool {
    has_words(text, 2)
}

fn has_words(text: &str, least: usize) -> bool {
    const SQL: [&str; 14] = [
        "SELECT ", "INSERT ", "UPDATE ", "DELETE ", "CREATE ", "ALTER ", "PRAGMA ", "WITH ", "DROP ",
        "BEGIN", " WHERE ", " FROM ", " AND ", "VACUUM",
    ];
    let is_sql = SQL.iter().any(|word| text.trim_start_matches('\n').contains(word));
    let words =
        text.split_whitespace().filter(|word| word.chars().all(|c| c.is_alphabetic() || ",.;:'".contains(c)));
    !is_sql && words.count() >= least
}

#[test]
fn sentences_of_the_voice_page_are_found() {
    for text in [
        "its time is up already, so nothing gets it",
        "this needs a confirmation",
        "the session has ended or expired, and who waits is passed over",
        "config set: say where it is to go",
        "no session is in force",
        "nobody has a lock named {name}",
        "this is no message of JSON-RPC 2.0",
        "there is no such user",
        "What is known of a credential and not said anew goes on",
        "the code is shown once",
        "nothing needs you",
        "attached to session {}; it is this terminal's now",
    ] {
        let tokens = paragraphs(text, 1, Layout::Lines);
        assert!(tokens.iter().any(|tokens| !findings(tokens, MESSAGE_WORDS).is_empty()), "{text}");
    }
}

#[test]
fn plain_sentences_are_not_found() {
    for text in [
        "credential \"{name}\" has expired and will not be used",
        "lock {name} is not held",
        "fencing token {token} is no longer valid: the lease expired",
        "Fields you do not pass keep their value",
        "refusing to listen on {address} without TLS; pass --tls-cert and --tls-key",
        "Where is the file?",
    ] {
        for tokens in paragraphs(text, 1, Layout::Lines) {
            let found = findings(&tokens, MESSAGE_WORDS);
            assert!(found.is_empty(), "{found:?}");
        }
    }
}
