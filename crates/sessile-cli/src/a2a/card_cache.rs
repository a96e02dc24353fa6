//! Cards that were fetched before, by their ETag (RFC 9110, 8.8.3).

/// Card with the tag under which its server knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CachedCard {
    /// Header `ETag`.
    pub(crate) etag: String,
    /// Body of the response.
    pub(crate) body: String,
}

/// Cache of cards. A card that was fetched with a credential is never stored.
pub(crate) trait CardCache {
    /// Card that was fetched from this URL.
    fn load(&self, url: &str) -> Option<CachedCard>;

    /// Stores the card of this URL. A failure only costs the next call a transfer.
    fn store(&self, url: &str, card: &CachedCard);
}
