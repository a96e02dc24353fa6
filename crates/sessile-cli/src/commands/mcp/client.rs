//! The MCP clients that are known, and what each is told. They are data: `clients.toml`.

use std::sync::LazyLock;

use serde_json::json;
use sessile::text::{json_safe, shell_quoted};
use toml_edit::{DocumentMut, Table};

/// An MCP client.
#[derive(Debug)]
pub(super) struct Client {
    /// Value of `--client`.
    pub(super) name: String,
    /// Label for people: name or id.
    pub(super) about: String,
    /// The notation of its file: json, toml or yaml.
    pub(super) format: String,
    /// The file that the snippet goes into.
    pub(super) path: String,
    /// Configuration file for all projects of the user, if any.
    pub(super) user: Option<String>,
    snippet: String,
    /// The same for a service at an address.
    service: Option<String>,
    add: Option<String>,
}

/// The command that a client starts.
#[derive(Debug)]
pub(super) struct ServerCommand {
    pub(super) command: String,
    pub(super) args: Vec<String>,
}

static ALL: LazyLock<Vec<Client>> = LazyLock::new(|| {
    // Compiled in, and parsed by a test.
    let document: DocumentMut = include_str!("clients.toml").parse().unwrap_or_default();
    let snippets = document.get("snippets").and_then(|snippets| snippets.as_table());
    let clients = document.get("client").and_then(|clients| clients.as_array_of_tables());
    // A test looks that none is left out.
    clients.into_iter().flatten().filter_map(|client| Client::read(client, snippets?)).collect()
});

impl Client {
    /// Every client, by name.
    pub(super) fn all() -> &'static [Client] {
        &ALL
    }

    fn read(table: &Table, snippets: &Table) -> Option<Self> {
        let text = |table: &Table, key: &str| table.get(key)?.as_str().map(str::to_owned);
        let snippet = snippets.get(table.get("snippet")?.as_str()?)?.as_table()?;
        let service = match text(table, "service") {
            Some(service) => Some(text(snippets.get(&service)?.as_table()?, "text")?),
            None => None,
        };
        // Some clients keep their file elsewhere on Linux.
        let elsewhere = if cfg!(target_os = "linux") { text(table, "linux") } else { None };
        Some(Client {
            name: text(table, "name")?,
            about: text(table, "about")?,
            format: text(snippet, "format")?,
            path: elsewhere.or_else(|| text(table, "path"))?,
            user: text(table, "user"),
            snippet: text(snippet, "text")?,
            service,
            add: text(table, "add"),
        })
    }

    /// Snippet that makes the client start this server.
    pub(super) fn snippet(&self, started: &ServerCommand) -> String {
        self.snippet
            .replace("{command}", &quoted(&started.command))
            .replace("{args}", &list(started.args.iter()))
            .replace("{line}", &list(started.line()))
    }

    /// Snippet for a service, if the client can read the token from outside its file.
    pub(super) fn for_service(&self, url: &str) -> Option<String> {
        self.service.as_ref().map(|snippet| snippet.replace("{url}", &quoted(url)))
    }

    /// A command of the client's own that does the same.
    pub(super) fn add(&self, started: &ServerCommand) -> Option<String> {
        let words: Vec<String> = started.line().map(|word| shell_quoted(word)).collect();
        self.add.as_ref().map(|add| add.replace("{shell}", &words.join(" ")))
    }
}

impl ServerCommand {
    fn line(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.command).chain(&self.args)
    }
}

/// A string as JSON, TOML and YAML have it.
fn quoted(text: &str) -> String {
    // A JSON string is also a TOML basic string and a YAML double-quoted one.
    json_safe(&json!(text).to_string())
}

fn list<'a>(words: impl Iterator<Item = &'a String>) -> String {
    format!("[{}]", words.map(|word| quoted(word)).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_understood_and_stands_in_order() {
        let names: Vec<&str> = Client::all().iter().map(|client| client.name.as_str()).collect();
        assert_eq!(names.len(), include_str!("clients.toml").matches("\n[[client]]\n").count());
        assert!(names.is_sorted(), "{names:?}");
    }

    #[test]
    fn every_entry_says_where_and_when_its_format_was_read() {
        let document: DocumentMut = include_str!("clients.toml").parse().unwrap();
        for client in document["client"].as_array_of_tables().unwrap() {
            assert!(client["documented"].as_str().unwrap().starts_with("https://"), "{client}");
            assert!(client["checked"].as_str().unwrap().starts_with("20"), "{client}");
        }
    }

    #[test]
    fn what_is_quoted_is_whole_in_every_notation() {
        let word = "a \"b\" \\ 'c' \u{7f}\n# {command}";
        let line = format!("x = {}", list([word.to_owned()].iter()));
        let document: DocumentMut = line.parse().unwrap();
        assert_eq!(document["x"][0].as_str(), Some(word));
        assert_eq!(serde_json::from_str::<String>(&quoted(word)).unwrap(), word);
    }
}
