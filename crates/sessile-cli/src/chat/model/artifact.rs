//! Artifacts of a conversation, as they are listed and saved.

use sessile_wire::a2a::Part;

use super::entry::ChatEntry;

/// Artifact of a reply, or a file in a message of the agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChatArtifact {
    /// File name from the agent: any text, also a path.
    pub(crate) name: String,
    /// Id, if the agent gave it one.
    pub(crate) id: Option<String>,
    /// Content.
    pub(crate) parts: Vec<Part>,
}

impl ChatArtifact {
    /// Artifacts of an entry.
    pub(super) fn of(entry: &ChatEntry) -> Vec<ChatArtifact> {
        let reply = &entry.reply;
        let mut all: Vec<ChatArtifact> = reply
            .artifacts()
            .iter()
            .map(|artifact| {
                let name = artifact.name.as_deref().or(artifact.artifact_id.as_deref());
                ChatArtifact {
                    name: name.unwrap_or("artifact").to_owned(),
                    id: artifact.artifact_id.clone(),
                    parts: artifact.parts(),
                }
            })
            .collect();
        let parts = reply.message().into_iter().flat_map(|message| message.parts());
        all.extend(parts.filter(|part| !part.is_text()).map(|part| {
            let name = match &part {
                Part::File { name, .. } | Part::Link { name, .. } => name.as_deref(),
                Part::TextFile { name, .. } => Some(name.as_str()),
                _ => None,
            };
            ChatArtifact { name: name.unwrap_or("message").to_owned(), id: None, parts: vec![part] }
        }));
        all
    }

    /// URL, if the artifact is one link.
    pub(crate) fn link(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Link { url, .. }] => Some(url),
            _ => None,
        }
    }

    /// Kind and size for a list.
    pub(crate) fn facts(&self) -> String {
        let fact = |part: &Part| match part {
            Part::Text(text) => format!("text, {} bytes", text.len()),
            Part::TextFile { text, mime, .. } => {
                format!("{}, {} bytes", mime.as_deref().unwrap_or("text"), text.len())
            }
            Part::File { bytes, mime, .. } => {
                format!("{}, {} bytes", mime.as_deref().unwrap_or("file"), bytes.len())
            }
            Part::Link { url, .. } => format!("link {url}"),
            Part::Data(_) => "data".to_owned(),
            Part::Typed { mime, .. } => mime.clone(),
            Part::Other(_) => "unknown kind".to_owned(),
        };
        match self.parts.as_slice() {
            [] => "empty".to_owned(),
            [part] => fact(part),
            [first, rest @ ..] => format!("{} and {} more parts", fact(first), rest.len()),
        }
    }
}
