//! Pages of a list.

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
