//! Pages of a list.

use sessile::text::shell_quoted;

use crate::cli::Cx;

/// Cuts a list that was read with one item more than wanted. Says how to go on if there was one.
pub(crate) fn cut<T>(cx: &Cx, items: &mut Vec<T>, limit: usize, cursor: impl Fn(&T) -> String) {
    if items.len() <= limit {
        return;
    }
    items.truncate(limit);
    if let Some(last) = items.last() {
        let cursor = shell_quoted(&cursor(last));
        cx.out
            .note(&format!("there are more than {limit}: continue with --cursor {cursor}, or raise --limit"));
    }
}

/// Which part of a list is wanted.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Page {
    /// Show at most this many
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Go on after this item, the last one of the page before
    #[arg(long, value_name = "ITEM")]
    cursor: Option<String>,
}

impl Page {
    /// The wanted part of items that are in the order of their keys. An item that is gone still marks its place.
    pub(crate) fn of<T>(&self, items: Vec<T>, key: impl Fn(&T) -> String) -> Vec<T> {
        let before = |item: &T| self.cursor.as_ref().is_some_and(|cursor| key(item) <= *cursor);
        items.into_iter().skip_while(before).take(self.limit.unwrap_or(usize::MAX)).collect()
    }
}
