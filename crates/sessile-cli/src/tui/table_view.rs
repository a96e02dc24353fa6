//! A table on the screen. Only the rows that are visible are made.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::screen_text::fit;
use super::theme::{ScreenTone, Theme};

/// A column.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableColumn {
    pub(super) title: &'static str,
    /// Cells that it needs.
    pub(super) cells: u16,
    /// Share of the cells that are left.
    pub(super) share: u16,
    /// Columns with a higher number are left out first where the screen is narrow.
    pub(super) rank: u8,
}

/// A cell.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) tone: ScreenTone,
}

impl Cell {
    pub(super) fn plain(text: impl Into<String>) -> Self {
        Cell { text: text.into(), tone: ScreenTone::Plain }
    }

    pub(super) fn toned(text: impl Into<String>, tone: ScreenTone) -> Self {
        Cell { text: text.into(), tone }
    }
}

/// Width of each column; 0 for those that are left out.
fn widths(columns: &[TableColumn], width: u16) -> Vec<u16> {
    let mut ranks: Vec<u8> = columns.iter().map(|column| column.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let needed = |rank: u8| -> u16 {
        columns.iter().filter(|column| column.rank <= rank).map(|column| column.cells + 1).sum()
    };
    // The first column stays, however narrow the screen is.
    let rank = ranks.iter().rev().copied().find(|rank| needed(*rank) <= width).unwrap_or(0);
    let is_kept = |column: &TableColumn| column.rank <= rank;
    let shares: u16 = columns.iter().filter(|column| is_kept(column)).map(|column| column.share).sum();
    let left = width.saturating_sub(needed(rank));
    columns
        .iter()
        .map(|column| match is_kept(column) {
            true => column.cells + (left * column.share).checked_div(shares).unwrap_or(0),
            false => 0,
        })
        .collect()
}

/// Draws a heading and rows, each with whether it is selected.
pub(super) fn draw(
    frame: &mut Frame,
    area: Rect,
    theme: Theme,
    columns: &[TableColumn],
    rows: impl IntoIterator<Item = (Vec<Cell>, bool)>,
) {
    // One cell for the mark of the selected row.
    let widths = widths(columns, area.width.saturating_sub(1));
    let ellipsis = theme.symbol("…", "~");
    let line = |y: u16| Rect { y, height: 1, ..area };
    let cell = |text: &str, at: usize| format!("{} ", fit(text, usize::from(widths[at]), ellipsis));
    let kept = || (0..columns.len()).filter(|at| widths[*at] > 0);
    let heading: String = kept().map(|at| cell(columns[at].title, at)).collect();
    frame.render_widget(Span::styled(format!(" {heading}"), theme.style(ScreenTone::Strong)), line(area.y));
    for ((cells, is_selected), y) in rows.into_iter().zip(area.y + 1..area.bottom()) {
        let mark = if is_selected { ">" } else { " " };
        let mut spans = vec![Span::raw(mark)];
        spans.extend(kept().filter_map(|at| {
            let found = cells.get(at)?;
            Some(Span::styled(cell(&found.text, at), theme.style(found.tone)))
        }));
        let mut row = Line::from(spans);
        if is_selected {
            row = row.style(theme.style(ScreenTone::Selected));
        }
        frame.render_widget(row, line(y));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_screen_keeps_the_first_columns() {
        let column = |cells, share, rank| TableColumn { title: "T", cells, share, rank };
        let columns = [column(5, 1, 0), column(5, 0, 1), column(5, 1, 2)];
        assert_eq!(widths(&columns, 18), [5, 5, 5]);
        assert_eq!(widths(&columns, 22), [7, 5, 7]);
        assert_eq!(widths(&columns, 17), [10, 5, 0]);
        assert_eq!(widths(&columns, 3), [5, 0, 0]);
    }
}
