//! Known MCP clients and their configuration, as data: `clients.toml`.

use std::sync::LazyLock;

use serde_json::json;
use sessile::error::{FileError, UsageError};
use sessile::text::{json_safe, shell_quoted};
use sessile::{Error, State};
use toml_edit::{DocumentMut, Table};

/// An MCP client.
#[derive(Debug)]
pub(crate) struct Client {
    /// Value of `--client`.
    pub(crate) name: String,
    /// Label for people: name or id.
    pub(crate) about: String,
    /// The notation of its file: json, toml or yaml.
    pub(crate) format: String,
    /// The file that the snippet goes into.
    pub(crate) path: String,
    /// Configuration file for all projects of the user, if any.
    pub(crate) user: Option<String>,
    snippet: String,
    /// The same for a service at an address.
    service: Option<String>,
    add: Option<String>,
    /// Set-up of the client, if `setup` supports it.
    pub(crate) setup: Option<ClientSetup>,
}

/// Files and program of a client that `setup` knows.
#[derive(Debug)]
pub(crate) struct ClientSetup {
    /// File of the MCP entry; the first one whose variable is set.
    pub(crate) entry: Vec<String>,
    /// File of the skill, likewise; none if the client reads no skills.
    pub(crate) skill: Vec<String>,
    /// Program that a wrapper starts in a session; none for a program of the desktop.
    pub(crate) program: Option<String>,
}

impl ClientSetup {
    fn read(table: &Table) -> Self {
        let texts = |key: &str| {
            let items = table.get(key).and_then(|items| items.as_array()).into_iter().flatten();
            items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
        };
        // Some clients keep their file elsewhere on Linux.
        let is_elsewhere = cfg!(target_os = "linux") && table.contains_key("linux");
        ClientSetup {
            entry: texts(if is_elsewhere { "linux" } else { "entry" }),
            skill: texts("skill"),
            program: table.get("program").and_then(|program| program.as_str()).map(str::to_owned),
        }
    }
}

/// The command that a client starts.
#[derive(Debug)]
pub(crate) struct ServerCommand {
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
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
    pub(crate) fn all() -> &'static [Client] {
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
            setup: table.get("setup").and_then(|setup| setup.as_table()).map(ClientSetup::read),
        })
    }

    /// Snippet that makes the client start this server.
    pub(crate) fn snippet(&self, started: &ServerCommand) -> String {
        self.snippet
            .replace("{command}", &quoted(&started.command))
            .replace("{args}", &list(started.args.iter()))
            .replace("{line}", &list(started.line()))
    }

    /// Snippet for a service, if the client can read the token from outside its file.
    pub(crate) fn for_service(&self, url: &str) -> Option<String> {
        self.service.as_ref().map(|snippet| snippet.replace("{url}", &quoted(url)))
    }

    /// A command of the client's own that does the same.
    pub(crate) fn add(&self, started: &ServerCommand) -> Option<String> {
        let words: Vec<String> = started.line().map(|word| shell_quoted(word)).collect();
        self.add.as_ref().map(|add| add.replace("{shell}", &words.join(" ")))
    }
}

impl ServerCommand {
    fn line(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.command).chain(&self.args)
    }
}

/// Path of this program.
pub(crate) fn own_program(state: &State) -> Result<String, Error> {
    let program = std::env::current_exe().map_err(|source| FileError::Io {
        action: "find",
        path: state.app().name().into(),
        source,
    })?;
    program.into_os_string().into_string().map_err(|path| {
        Error::Usage(UsageError::InvalidValue {
            place: "path of this program".into(),
            value: path.to_string_lossy().into_owned(),
            expected: "valid UTF-8".into(),
        })
    })
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
    fn every_client_entry_parses_and_is_sorted() {
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
    fn every_setup_names_files_of_the_home() {
        for client in Client::all() {
            let Some(setup) = &client.setup else { continue };
            assert!(setup.entry.last().unwrap().starts_with("~/"), "{}", client.name);
            assert!(
                setup.skill.last().is_none_or(|path| path.ends_with("/sessile/SKILL.md")),
                "{}",
                client.name
            );
            assert!(matches!(client.format.as_str(), "json" | "toml"), "{}: cannot be edited", client.name);
        }
    }

    #[test]
    fn quoted_text_stays_whole_in_every_notation() {
        let word = "a \"b\" \\ 'c' \u{7f}\n# {command}";
        let line = format!("x = {}", list([word.to_owned()].iter()));
        let document: DocumentMut = line.parse().unwrap();
        assert_eq!(document["x"][0].as_str(), Some(word));
        assert_eq!(serde_json::from_str::<String>(&quoted(word)).unwrap(), word);
    }
}
