//! Addresses of resources: `sessile://KIND/NAME`.

use sessile_wire::percent;

/// Scheme of the addresses, with the slashes.
const SCHEME: &str = "sessile://";

/// Kind of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResourceKind {
    Context,
    Session,
    Conversation,
}

/// Address of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResourceUri {
    pub(super) kind: ResourceKind,
    /// Name of a context; id of a session or conversation.
    pub(super) name: String,
}

impl ResourceKind {
    /// All kinds, in the order in which resources are listed.
    pub(super) const ALL: [ResourceKind; 3] =
        [ResourceKind::Context, ResourceKind::Session, ResourceKind::Conversation];

    /// Word for it in addresses and cursors.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            ResourceKind::Context => "context",
            ResourceKind::Session => "session",
            ResourceKind::Conversation => "conversation",
        }
    }

    pub(super) fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// Member of an item in its list that goes into the address, which is also the list's cursor.
    pub(super) const fn key(self) -> &'static str {
        match self {
            ResourceKind::Context => "name",
            ResourceKind::Session | ResourceKind::Conversation => "id",
        }
    }

    /// Address template.
    pub(super) fn template(self) -> String {
        format!("{SCHEME}{}/{{{}}}", self.as_str(), self.key())
    }
}

impl ResourceUri {
    pub(super) fn new(kind: ResourceKind, name: impl Into<String>) -> Self {
        ResourceUri { kind, name: name.into() }
    }

    /// Parses an address. One that is spelled differently from [`ResourceUri::text`] is refused, so that a resource has
    /// one address only.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (kind, name) = text.strip_prefix(SCHEME)?.split_once('/')?;
        let name = String::from_utf8(percent::decode(name)?).ok()?;
        let uri = ResourceUri::new(ResourceKind::named(kind)?, name);
        (!uri.name.is_empty() && uri.text() == text).then_some(uri)
    }

    pub(super) fn text(&self) -> String {
        format!("{SCHEME}{}/{}", self.kind.as_str(), percent::encode(&self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_parsed_as_it_was_written() {
        for kind in ResourceKind::ALL {
            let uri = ResourceUri::new(kind, "a b/\u{e9}");
            assert_eq!(ResourceUri::parse(&uri.text()), Some(uri));
        }
        assert_eq!(ResourceUri::new(ResourceKind::Context, "staging").text(), "sessile://context/staging");
        assert_eq!(ResourceKind::Session.template(), "sessile://session/{id}");
    }

    #[test]
    fn other_addresses_are_refused() {
        for text in [
            "",
            "sessile://",
            "sessile://context",
            "sessile://context/",
            "sessile://lock/x",
            "sessile://context/%73taging",
            "sessile://context/a/b",
            "SESSILE://context/x",
            "file:///etc/passwd",
        ] {
            assert_eq!(ResourceUri::parse(text), None, "{text}");
        }
    }
}
