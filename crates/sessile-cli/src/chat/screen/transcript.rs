//! The entries of a conversation as rows of the screen.

use sessile::text::{shown, shown_lines};
use sessile_wire::a2a::{Part, TaskState};

use super::markdown::{self, StyledLine, TextKind};
use super::wrap::{Row, wrap};
use crate::chat::model::{ChatConversation, ChatEntry, EntryAuthor, EntryBlock};

/// Most bytes of one block on the screen. Saving an artifact saves all of it.
const MOST_BYTES: usize = 256 << 10;

/// Rows of a conversation, laid out again only where it changed.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    cells: usize,
    entries: Vec<LaidOutEntry>,
}

/// Rows of one entry.
#[derive(Debug)]
struct LaidOutEntry {
    /// Size and state that the rows depend on.
    fingerprint: (usize, usize, Option<TaskState>, bool),
    rows: Vec<Row>,
}

impl Transcript {
    /// Lays the conversation out for a width.
    pub(super) fn update(&mut self, chat: &ChatConversation, agent: &str, cells: usize) {
        if self.cells != cells || self.entries.len() > chat.entries.len() {
            self.entries.clear();
            self.cells = cells;
        }
        let last = chat.entries.len().saturating_sub(1);
        for (at, entry) in chat.entries.iter().enumerate() {
            let fingerprint = fingerprint(entry, at == last);
            match self.entries.get_mut(at) {
                Some(known) if known.fingerprint == fingerprint => {}
                Some(known) => *known = LaidOutEntry { fingerprint, rows: rows(entry, agent, cells) },
                None => self.entries.push(LaidOutEntry { fingerprint, rows: rows(entry, agent, cells) }),
            }
        }
    }

    /// Forgets the layout, before another conversation takes its place.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.entries.iter().map(|entry| entry.rows.len()).sum()
    }

    /// Rows from `first` on, `most` at most.
    pub(super) fn visible(&self, first: usize, most: usize) -> impl Iterator<Item = &Row> {
        self.entries.iter().flat_map(|entry| &entry.rows).skip(first).take(most)
    }

    /// Row of the next match of a text above `below`, in whatever case.
    pub(super) fn find_above(&self, text: &str, below: usize) -> Option<usize> {
        let wanted = text.to_lowercase();
        let rows = self.entries.iter().flat_map(|entry| &entry.rows).take(below);
        let found = rows.enumerate().filter(|(_, row)| row.text().to_lowercase().contains(&wanted));
        found.last().map(|(at, _)| at)
    }
}

fn fingerprint(entry: &ChatEntry, is_last: bool) -> (usize, usize, Option<TaskState>, bool) {
    let size = entry.blocks.iter().map(|block| match block {
        EntryBlock::Text(text) | EntryBlock::Status(text) | EntryBlock::ArtifactName(text) => text.len(),
        EntryBlock::Part(_) => 1,
    });
    (entry.blocks.len(), size.sum(), entry.state(), is_last)
}

fn rows(entry: &ChatEntry, agent: &str, cells: usize) -> Vec<Row> {
    lines(entry, agent).iter().flat_map(|line| wrap(line, cells)).collect()
}

/// Lines of an entry: its author, its blocks, and an empty one.
fn lines(entry: &ChatEntry, agent: &str) -> Vec<StyledLine> {
    let mut all = Vec::new();
    match entry.author {
        EntryAuthor::User => all.push(StyledLine::new("you", TextKind::User)),
        EntryAuthor::Agent => {
            let mut head = StyledLine::new(shown(agent), TextKind::Agent);
            if let Some(state) = entry.state() {
                head.pieces.push((format!("  {state}"), state_kind(state)));
            }
            all.push(head);
        }
        EntryAuthor::Client => {}
    }
    let has_content =
        entry.blocks.iter().any(|block| matches!(block, EntryBlock::Text(_) | EntryBlock::Part(_)));
    for block in &entry.blocks {
        all.extend(block_lines(entry, block, has_content));
    }
    all.push(StyledLine::new("", TextKind::Plain));
    all
}

fn block_lines(entry: &ChatEntry, block: &EntryBlock, has_content: bool) -> Vec<StyledLine> {
    let plain = |text: &str, kind: TextKind| -> Vec<StyledLine> {
        let (head, cut) = bounded(text);
        let lines = shown_lines(head);
        let cut = cut.into_iter().map(|cut| StyledLine::new(cut, TextKind::Warning));
        lines.lines().map(|line| StyledLine::new(line, kind)).chain(cut).collect()
    };
    match block {
        EntryBlock::Text(text) => match (entry.author, entry.is_failure) {
            (EntryAuthor::Client, true) => plain(text, TextKind::Bad),
            (EntryAuthor::Client, false) => plain(text, TextKind::Faint),
            (EntryAuthor::User, _) => plain(text, TextKind::Plain),
            (EntryAuthor::Agent, _) => {
                let (head, cut) = bounded(text);
                let mut lines = markdown::lines(&shown_lines(head));
                lines.extend(cut.map(|cut| StyledLine::new(cut, TextKind::Warning)));
                lines
            }
        },
        // What the agent says while it works counts less than its result.
        EntryBlock::Status(text) if has_content => plain(text, TextKind::Faint),
        EntryBlock::Status(text) => markdown::lines(&shown_lines(bounded(text).0)),
        EntryBlock::ArtifactName(name) => {
            vec![StyledLine::new(format!("[artifact {}]", shown(name)), TextKind::Strong)]
        }
        EntryBlock::Part(part @ (Part::Data(_) | Part::TextFile { .. } | Part::Typed { .. })) => {
            plain(&part.summary(), TextKind::Code)
        }
        // A name with line breaks could look like a text of its own.
        EntryBlock::Part(part) => vec![StyledLine::new(shown(part.summary()), TextKind::Link)],
    }
}

/// Start of a long text, and a line that says how much is left out.
fn bounded(text: &str) -> (&str, Option<String>) {
    if text.len() <= MOST_BYTES {
        return (text, None);
    }
    let end = text.floor_char_boundary(MOST_BYTES);
    (&text[..end], Some(format!("[{} bytes left out]", text.len() - end)))
}

/// Kind of a task's state.
pub(super) fn state_kind(state: TaskState) -> TextKind {
    match state {
        TaskState::Completed => TextKind::Good,
        TaskState::InputRequired | TaskState::AuthRequired => TextKind::Warning,
        TaskState::Failed | TaskState::Rejected => TextKind::Bad,
        _ => TextKind::Faint,
    }
}
