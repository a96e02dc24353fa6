//! Pages of a list.

/// A page of a list that continues at a cursor.
pub trait CursorPage {
    /// Item of the list.
    type Item;

    /// Page of items, and the cursor of the page after it.
    fn new(items: Vec<Self::Item>, next: Option<String>) -> Self;

    /// Items, and the cursor of the page after them.
    fn into_parts(self) -> (Vec<Self::Item>, Option<String>);
}

/// Defines the page of a list. The item is generic so that the service can serialize items once, measure them, and put them
/// into the page as raw JSON.
macro_rules! cursor_page {
    ($(#[$about:meta])* $name:ident, $schema:literal, $items:ident: $item:ty) => {
        $(#[$about])*
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[schemars(rename = $schema)]
        pub struct $name<T = $item> {
            /// Items of the page.
            pub $items: Vec<T>,
            /// Cursor of the next page; null after the last page.
            pub next: Option<String>,
        }

        impl<T> $crate::service::CursorPage for $name<T> {
            type Item = T;

            fn new(items: Vec<T>, next: Option<String>) -> Self {
                $name { $items: items, next }
            }

            fn into_parts(self) -> (Vec<T>, Option<String>) {
                (self.$items, self.next)
            }
        }
    };
}

pub(super) use cursor_page;
