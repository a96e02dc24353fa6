//! One thing in full: a session, a context, an operation or a conversation.

/// Key of an opened thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DetailKey {
    /// Session by id.
    Session(String),
    /// Context by name.
    Context(String),
    /// Operation by number.
    Operation(i64),
    /// Conversation by id.
    Conversation(String),
}

/// Facts under a heading. Texts are untrusted.
#[derive(Clone, Debug, Default)]
pub(crate) struct DetailSection {
    pub(crate) title: String,
    pub(crate) lines: Vec<String>,
    /// Whether the first character of a line says that the line was removed or added.
    pub(crate) is_diff: bool,
}

/// One thing in full.
#[derive(Clone, Debug)]
pub(crate) struct Detail {
    pub(crate) key: DetailKey,
    pub(crate) title: String,
    pub(crate) sections: Vec<DetailSection>,
}
