//! Pages of a list.

use sessile::text::shell_quoted;

use crate::cli::Cx;

/// Cuts a list that was read with one extra item, and prints how to continue.
pub(crate) fn cut<T>(cx: &Cx, items: &mut Vec<T>, limit: usize, cursor: impl Fn(&T) -> String) {
    if items.len() <= limit {
        return;
    }
    items.truncate(limit);
    if let Some(last) = items.last() {
        let cursor = shell_quoted(&cursor(last));
        let entries = if limit == 1 { "1 entry" } else { &format!("{limit} entries") };
        cx.out.note(&format!("more than {entries}: continue with --cursor {cursor}, or raise --limit"));
    }
}

/// Width of a list.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct WideArgs {
    /// Print full ids and text, beyond 80 columns
    #[arg(long)]
    pub(crate) wide: bool,
}

/// Requested page of a list.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Page {
    /// List at most this many
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Continue after this item, the last one of the previous page
    #[arg(long, value_name = "ITEM")]
    cursor: Option<String>,
}

impl Page {
    /// Page of items in the order of their keys. A deleted item still marks its place.
    pub(crate) fn of<T>(&self, items: Vec<T>, key: impl Fn(&T) -> String) -> Vec<T> {
        let before = |item: &T| self.cursor.as_ref().is_some_and(|cursor| key(item) <= *cursor);
        items.into_iter().skip_while(before).take(self.limit.unwrap_or(usize::MAX)).collect()
    }
}
