//! Texts of the repository by area, with the sentences that match a pattern.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::prose::{
    DOC_WORDS, Finding, Layout, MESSAGE_WORDS, findings, is_message, is_screen_text, paragraphs,
};
use super::rust_source::{SourceText, scan};
use crate::repository::{files, read};

/// Kind of text, as the table of caps names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Messages,
    Help,
    Comments,
    Docs,
    Tests,
}

impl Kind {
    pub(super) const ALL: [Self; 5] = [Self::Messages, Self::Help, Self::Comments, Self::Docs, Self::Tests];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Help => "help",
            Self::Comments => "comments",
            Self::Docs => "docs",
            Self::Tests => "tests",
        }
    }

    /// Goal: findings per thousand units.
    pub(super) fn goal_per_mille(self) -> usize {
        match self {
            Self::Messages | Self::Help => 5,
            Self::Comments | Self::Docs | Self::Tests => 10,
        }
    }
}

/// Number of units of an area (messages, help texts, lines of comments and docs, names of tests), and the findings in them.
#[derive(Default)]
pub(super) struct Area {
    pub(super) units: usize,
    /// Units with a finding.
    pub(super) hits: usize,
    /// The findings, with their places.
    pub(super) places: Vec<String>,
}

pub(super) type Areas = BTreeMap<(Kind, String), Area>;

/// Reviewed sentences, by their words: the pattern matches, and the sentence is right as it is.
const ALLOWED: &[&str] = &[
    // Headings that other pages link to.
    "its life",
    "its state",
];

fn keep(finding: &Finding) -> bool {
    !ALLOWED.iter().any(|allowed| finding.excerpt == *allowed)
}

impl Area {
    /// Counts a text that is one unit.
    pub(super) fn add_text(&mut self, place: &str, text: &str, longest: usize) {
        self.units += 1;
        let found: Vec<Finding> = paragraphs(text, 1, Layout::Lines)
            .iter()
            .flat_map(|tokens| findings(tokens, longest))
            .filter(keep)
            .collect();
        self.hits += usize::from(!found.is_empty());
        self.places.extend(found.iter().map(|one| format!("{place}: [{}] {}", one.pattern, one.excerpt)));
    }

    /// Counts the name of a test as a sentence.
    fn add_test(&mut self, place: &str, name: &str) {
        self.add_text(place, &name.replace('_', " "), MESSAGE_WORDS);
        if name.len() > TEST_CHARS {
            self.hits += 1;
            self.places.push(format!("{place}: [longer than {TEST_CHARS}] {name}"));
        }
    }

    /// Counts a text whose lines are the units.
    fn add_lines(&mut self, path: &Path, text: &SourceText) {
        let mut lines = BTreeSet::new();
        let mut hits = BTreeSet::new();
        for tokens in paragraphs(&text.text, text.line, Layout::Markdown) {
            lines.extend(tokens.iter().map(|token| token.line));
            for one in findings(&tokens, DOC_WORDS).into_iter().filter(keep) {
                hits.insert(one.line);
                self.places.push(format!(
                    "{}:{}: [{}] {}",
                    path.display(),
                    one.line,
                    one.pattern,
                    one.excerpt
                ));
            }
        }
        self.units += lines.len();
        self.hits += hits.len();
    }
}

/// Longest name of a test.
const TEST_CHARS: usize = 60;

/// Names of the tests in a source file, with their lines.
fn test_names(source: &str) -> Vec<(usize, &str)> {
    let mut names = Vec::new();
    let mut is_test = false;
    for (number, line) in source.lines().enumerate() {
        let line = line.trim_start();
        is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        let name = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
        if let Some((name, _)) = name.and_then(|name| name.split_once('(')).filter(|_| is_test) {
            names.push((number + 1, name));
            is_test = false;
        }
    }
    names
}

/// Name of the area of a test: crate and first module.
fn test_area(path: &Path) -> String {
    let parts: Vec<String> = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let module = parts.iter().skip(3).find(|part| *part != "it").map_or("lib", String::as_str);
    format!("{}/{}", parts[1], module.trim_end_matches(".rs"))
}

/// Name of the area of a source file: crate and module.
fn area_of(path: &Path) -> String {
    let parts: Vec<String> = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let module: Vec<&str> = parts.iter().skip(3).map(String::as_str).collect();
    let is_container = ["commands", "error", "http"].contains(&module[0]) && module.len() > 1;
    let depth = if is_container { 2 } else { 1 };
    format!("{}/{}", parts[1], module[..depth].join("/")).trim_end_matches(".rs").to_owned()
}

/// Whether a file holds texts that people read, and no tests.
fn is_source(path: &Path) -> bool {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    parts.len() > 3
        && parts[0] == "crates"
        && parts[1] != "testkit"
        && parts[2] == "src"
        && !parts[3..].iter().any(|part| part == "tests" || part == "tests.rs" || part == "fuzz.rs")
}

/// Keys of a tool profile whose texts people read.
const PROFILE_TEXTS: [&str; 4] = ["about", "home-only", "not-isolated", "not-protected"];

/// Counts the texts of a tool profile, also those of its bindings.
fn add_profile(area: &mut Area, place: &str, table: &dyn toml_edit::TableLike) {
    for (key, item) in table.iter() {
        let place = format!("{place} {key}");
        if let Some(inner) = item.as_table_like() {
            add_profile(area, &place, inner);
        } else if PROFILE_TEXTS.contains(&key) {
            let list = item.as_array().into_iter().flatten().filter_map(toml_edit::Value::as_str);
            for text in item.as_str().into_iter().chain(list) {
                area.add_text(&place, text, MESSAGE_WORDS);
            }
        }
    }
}

/// Areas of the full-screen views.
const SCREENS: [&str; 2] = ["sessile-cli/tui", "sessile-cli/chat"];

/// Measures messages, comments and docs.
pub(super) fn measure() -> Areas {
    let mut areas = Areas::new();
    for path in files(".rs").into_iter().filter(|path| is_source(path)) {
        let texts = scan(&read(&path));
        let area = area_of(&path);
        let is_text = if SCREENS.contains(&area.as_str()) { is_screen_text } else { is_message };
        for one in texts.strings.iter().filter(|one| is_text(&one.text)) {
            let place = format!("{}:{}", path.display(), one.line);
            areas.entry((Kind::Messages, area.clone())).or_default().add_text(
                &place,
                &one.text,
                MESSAGE_WORDS,
            );
        }
        for block in &texts.docs {
            areas.entry((Kind::Comments, area.clone())).or_default().add_lines(&path, block);
        }
    }
    for path in files(".rs").into_iter().filter(|path| path.starts_with("crates")) {
        for (line, name) in test_names(&read(&path)) {
            let area = areas.entry((Kind::Tests, test_area(&path))).or_default();
            area.add_test(&format!("{}:{line}", path.display()), name);
        }
    }
    for path in files(".toml").into_iter().filter(|path| path.starts_with("tools")) {
        let profile: toml_edit::DocumentMut = read(&path).parse().unwrap();
        let area = areas.entry((Kind::Messages, "tools".to_owned())).or_default();
        add_profile(area, &path.display().to_string(), profile.as_table());
    }
    for path in files(".md") {
        let text = read(&path);
        // The sources of a generated page are measured where they are written.
        if !text.contains("do not edit. -->") {
            let area = areas.entry((Kind::Docs, path.display().to_string())).or_default();
            area.add_lines(&path, &SourceText { line: 1, text });
        }
    }
    areas
}

#[test]
fn names_of_tests_are_found() {
    let source =
        "#[test]\nfn one() {}\nfn helper() {}\n    #[tokio::test]\n    #[expect(x)]\n    async fn two() {}\n";
    assert_eq!(test_names(source), [(2, "one"), (6, "two")]);
    assert_eq!(test_area(Path::new("crates/sessile-cli/tests/it/agents/message.rs")), "sessile-cli/agents");
    assert_eq!(test_area(Path::new("crates/sessile/src/lock/queue.rs")), "sessile/lock");
}

#[test]
fn texts_of_the_screens_are_measured() {
    let areas = measure();
    for screen in SCREENS {
        let area = &areas[&(Kind::Messages, screen.to_owned())];
        assert!(area.units > 50, "{screen}: {}", area.units);
    }
    assert!(is_screen_text("Enter closes") && !is_screen_text("{:<8} {}"));
}

#[test]
fn texts_of_bindings_are_measured() {
    let mut area = Area::default();
    let profile = "about = \"tests\"\nkeeps = [\"the one that is told\"]\nnot-isolated = [\"the cache\", \"the file is told nothing\"]\n\
                   [bind.x]\nabout = \"a key that is shut out\"\n";
    let profile: toml_edit::DocumentMut = profile.parse().unwrap();
    add_profile(&mut area, "x.toml", profile.as_table());
    assert_eq!((area.units, area.hits), (4, 2), "{:?}", area.places);
}
