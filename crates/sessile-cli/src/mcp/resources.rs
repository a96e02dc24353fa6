//! Resources: contexts, sessions and conversations as JSON that a client can attach.

use rmcp::model::{
    ErrorData, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};
use serde_json::{Value, json};
use sessile::text::{quoted, shortened};
use sessile::{Code, ReportBody};

use super::server::ServerState;
use super::uri::{ResourceKind, ResourceUri};

/// Resources on one page.
const PAGE: usize = 100;

const JSON: &str = "application/json";

impl ResourceKind {
    /// Command that lists the resources, newest first or by name.
    fn list_command(self) -> &'static [&'static str] {
        match self {
            ResourceKind::Context => &["context", "list"],
            ResourceKind::Session => &["session", "list"],
            ResourceKind::Conversation => &["conversation", "list", "--all"],
        }
    }

    const fn about(self) -> &'static str {
        match self {
            ResourceKind::Context => "Settings, tool bindings, variables and guard of a context",
            ResourceKind::Session => "Context, life, settings, tool state and conversations of a session",
            ResourceKind::Conversation => "Messages exchanged with an A2A agent",
        }
    }

    /// Entry in the list of resources.
    fn resource(self, item: &Value) -> Option<Resource> {
        let key = item[self.key()].as_str()?;
        let text = |name: &str| item[name].as_str().map(str::to_owned);
        let (label, about) = match self {
            ResourceKind::Context => (key.to_owned(), text("description")),
            ResourceKind::Session => {
                let context =
                    text("context").map_or_else(String::new, |context| format!(", context {context}"));
                let label = text("name").unwrap_or_else(|| key.to_owned());
                (label, Some(format!("{}{context}", text("state").unwrap_or_default())))
            }
            ResourceKind::Conversation => (
                text("name").unwrap_or_else(|| key.to_owned()),
                text("agent_url").map(|url| format!("with {url}")),
            ),
        };
        let uri = ResourceUri::new(self, key).text();
        let resource = Resource::new(uri, label).with_mime_type(JSON);
        Some(match about.filter(|about| !about.is_empty()) {
            Some(about) => resource.with_description(about),
            None => resource,
        })
    }
}

/// Templates of the addresses.
pub(super) fn templates() -> ListResourceTemplatesResult {
    let template = |kind: ResourceKind| {
        ResourceTemplate::new(kind.template(), kind.as_str())
            .with_description(kind.about())
            .with_mime_type(JSON)
    };
    ListResourceTemplatesResult::with_all_items(ResourceKind::ALL.into_iter().map(template).collect())
}

impl ServerState {
    /// One page of resources: contexts, then live sessions, then conversations.
    pub(super) async fn list_resources(
        &self,
        cursor: Option<&str>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let after = cursor.map(|cursor| {
            let place =
                cursor.split_once('/').and_then(|(kind, key)| Some((ResourceKind::named(kind)?, key)));
            place.ok_or_else(|| {
                ErrorData::invalid_params(format!("invalid cursor {}", quoted(shortened(cursor, 60))), None)
            })
        });
        let after = after.transpose()?;
        let first = after.map_or(ResourceKind::ALL[0], |(kind, _)| kind);
        let mut page = Vec::new();
        for kind in ResourceKind::ALL.into_iter().skip_while(|kind| *kind != first) {
            let key = after.filter(|(of, _)| *of == kind).map(|(_, key)| key);
            let (items, has_more) = self.list(kind, key, PAGE - page.len()).await.map_err(failed)?;
            let last = items.last().and_then(|item| item[kind.key()].as_str()).map(str::to_owned);
            page.extend(items.iter().filter_map(|item| kind.resource(item)));
            // A full page goes on where it ends, also at the end of a kind.
            if let Some(last) = last.filter(|_| has_more || page.len() >= PAGE) {
                let mut result = ListResourcesResult::with_all_items(page);
                result.next_cursor = Some(format!("{}/{last}", kind.as_str()));
                return Ok(result);
            }
        }
        Ok(ListResourcesResult::with_all_items(page))
    }

    /// Items of a kind after a key, and whether more follow.
    async fn list(
        &self,
        kind: ResourceKind,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<Value>, bool), Box<ReportBody>> {
        // One more than fits shows that the list goes on.
        let mut words: Vec<String> = kind.list_command().iter().map(|word| (*word).to_owned()).collect();
        words.push(format!("--limit={}", limit + 1));
        words.extend(after.map(|key| format!("--cursor={key}")));
        let listed = self.read_command(words).await?;
        let mut items = match listed {
            Value::Array(items) => items,
            _ => Vec::new(),
        };
        let has_more = items.len() > limit;
        items.truncate(limit);
        Ok((items, has_more))
    }

    /// Names of a kind that begin so, for completion.
    pub(super) async fn names(&self, kind: ResourceKind, prefix: &str) -> Vec<String> {
        // Completion is a help for typing: what cannot be listed has none.
        let Ok((items, _)) = self.list(kind, None, 1000).await else { return Vec::new() };
        let keys = items.iter().filter_map(|item| item[kind.key()].as_str());
        keys.filter(|key| key.starts_with(prefix)).map(str::to_owned).collect()
    }

    /// Content of a resource.
    pub(super) async fn resource(&self, uri: &ResourceUri) -> Result<Value, Box<ReportBody>> {
        let words = [uri.kind.as_str(), "show", "--", &uri.name].map(str::to_owned);
        self.read_command(words.into()).await
    }

    pub(super) async fn read_resource(&self, text: &str) -> Result<ReadResourceResult, ErrorData> {
        let uri = parsed(text)?;
        let content = self.resource(&uri).await.map_err(failed)?;
        let content = ResourceContents::text(format!("{content:#}"), text).with_mime_type(JSON);
        Ok(ReadResourceResult::new(vec![content]))
    }
}

/// Parses an address.
pub(super) fn parsed(text: &str) -> Result<ResourceUri, ErrorData> {
    ResourceUri::parse(text).ok_or_else(|| {
        let message = format!("resource {} not found", quoted(shortened(text, 200)));
        ErrorData::resource_not_found(message, Some(json!({ "uri": shortened(text, 200) })))
    })
}

/// Protocol error of a failed command.
pub(super) fn failed(report: Box<ReportBody>) -> ErrorData {
    let not_found =
        [Code::ContextNotFound, Code::SessionNotFound, Code::ConversationNotFound, Code::InvalidName];
    let data = Some(json!({ "code": report.code, "hint": report.hint }));
    if not_found.iter().any(|code| code.as_str() == report.code) {
        ErrorData::resource_not_found(report.message, data)
    } else {
        ErrorData::internal_error(report.message, data)
    }
}
