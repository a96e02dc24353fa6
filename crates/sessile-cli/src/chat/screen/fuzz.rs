//! Fuzz target: the Markdown of a reply.

use sessile::text::shown_lines;

use super::markdown::lines;
use super::wrap::wrap;

/// A reply, as the chat draws it while it arrives.
pub fn chat_markdown(bytes: &[u8]) {
    let text = shown_lines(&String::from_utf8_lossy(bytes));
    // A reply is drawn after each of its parts.
    let half = text.floor_char_boundary(text.len() / 2);
    for part in [&text[..half], &text[..]] {
        let drawn = lines(part);
        assert!(drawn.len() <= part.lines().count());
        for line in &drawn {
            for cells in [1, 7, 80] {
                for row in wrap(line, cells) {
                    let row = row.text();
                    assert!(!row.contains(char::is_control), "{row:?}");
                }
            }
        }
    }
}
