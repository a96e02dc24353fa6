//! Tables of what other clients of agents have: a row names the command that does it here, and the test runs it against an agent
//! of the official SDK; or the row has the reason why it differs. The pages in `docs/reference/` are made from them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;
use testkit::{
    AgentAuth, AgentOptions, CallResult, Home, McpClient, Protocol, PythonAgent, ScriptedAgent, TlsServer,
};

use crate::{home, repository};

/// Row of a table: a command, what it has to do, and on the first row of a subject what the subject is.
struct Row<'a> {
    /// Columns before the command.
    about: Vec<&'a str>,
    command: &'a str,
    expectation: &'a str,
}

fn rows(text: &str, columns: usize) -> Vec<Row<'_>> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let mut cells: Vec<&str> = line.splitn(columns + 2, '\t').collect();
            cells.resize(columns + 2, "");
            Row { about: cells[..columns].to_vec(), command: cells[columns], expectation: cells[columns + 1] }
        })
        .collect()
}

/// Agents and files of the commands, and tasks that are made when a command asks for one.
struct Ground {
    home: Home,
    url: &'static str,
    fixed: BTreeMap<&'static str, String>,
    made: RefCell<BTreeMap<String, String>>,
    _agents: (PythonAgent, Vec<ScriptedAgent>, TlsServer),
}

impl Ground {
    fn new() -> Self {
        let home = home();
        let options = AgentOptions { push: true, extended_card: true, ..AgentOptions::of(Protocol::V1) };
        let agent = Box::leak(Box::new(PythonAgent::start(Protocol::V1, &options)));
        let guarded = AgentOptions::of(Protocol::V1).guarded(AgentAuth::Bearer, "s3cret", "ann");
        let guarded = PythonAgent::start(Protocol::V1, &guarded);
        let base = || AgentOptions::of(Protocol::V1);
        let scripted = [
            ("silent", AgentOptions { streaming: false, push: false, ..base() }),
            ("broken", base()),
            ("quiet", base()),
            ("tenant", AgentOptions { tenant: Some("acme".to_owned()), ..base() }),
            ("old", AgentOptions::of(Protocol::V03)),
            ("keyed", base().guarded(AgentAuth::ApiKeyHeader("X-Agent-Key".to_owned()), "s3cret", "ann")),
        ];
        let url = agent.url();
        let mut fixed = BTreeMap::from([
            ("url", url.to_owned()),
            ("host", url.trim_start_matches("http://").to_owned()),
            ("guarded", guarded.url().to_owned()),
        ]);
        let mut agents = Vec::new();
        for (name, options) in scripted {
            let agent = ScriptedAgent::start(options);
            fixed.insert(name, agent.url().to_owned());
            agents.push(agent);
        }
        let mutual = TlsServer::start_mutual_agent();
        let (cert, key) = mutual.client_certificate();
        fixed.insert("mutual", mutual.url(""));
        for (name, path) in [("cert", cert), ("key", key), ("authority", mutual.authority())] {
            fixed.insert(name, path.to_string_lossy().into_owned());
        }
        let card = home.call(&["agent", "card", url, "--raw"]).ok().stdout();
        for (name, path) in [
            ("card", home.write("card.json", card)),
            ("token", home.write_private("token", "s3cret")),
            ("env", home.write_private("agent.env", "AGENT_TOKEN=s3cret\n")),
        ] {
            fixed.insert(name, path.to_string_lossy().into_owned());
        }
        home.call(&["agent", "add", "research", url, "--global"]).ok();
        Ground { home, url, fixed, made: RefCell::default(), _agents: (guarded, agents, mutual) }
    }

    /// Id of a task of this agent, made by a message.
    fn task(&self, text: &str, flags: &[&str]) -> String {
        let sent = self.home.call(&["message", "send", self.url, text, "-ojson"]).args(flags).ok().json();
        sent["task_id"].as_str().unwrap().to_owned()
    }

    fn value(&self, name: &str) -> String {
        if let Some(found) = self.fixed.get(name).cloned().or_else(|| self.made.borrow().get(name).cloned()) {
            return found;
        }
        let (value, is_kept) = match name {
            "task" => (self.task("task done", &[]), true),
            "filed" => (self.task("file", &[]), true),
            "ctx" => {
                let sent =
                    self.home.call(&["message", "send", self.url, "task in context", "-ojson"]).ok().json();
                (sent["context_id"].as_str().unwrap().to_owned(), true)
            }
            "filedctx" => {
                let sent = self.home.call(&["message", "send", self.url, "file", "-ojson"]).ok().json();
                (sent["context_id"].as_str().unwrap().to_owned(), true)
            }
            "ask" => (self.task("ask", &[]), false),
            "slow" => (self.task("slow 60000 done", &["--no-wait"]), false),
            "slowish" => (self.task("slow 500 done", &["--no-wait"]), false),
            "canceled" => {
                let id = self.task("slow 60000 done", &["--no-wait"]);
                self.home.call(&["task", "cancel", &id, "--url", self.url]).ok();
                (id, false)
            }
            "pushed" => {
                let id = self.task("slow 60000 done", &["--no-wait"]);
                let hook = "https://hook.example/x";
                let set = ["task", "notification", "set", &id, hook, "--id", "mine", "--url", self.url];
                self.home.call(&set).ok();
                (id, false)
            }
            "conversation" => {
                let words = ["message", "send", self.url, "echo x", "--session", "work", "--new", "-ojson"];
                let sent = self.home.call(&words).ok().json();
                (sent["conversation"].as_str().unwrap().to_owned(), false)
            }
            other => panic!("{{{other}}} is not defined"),
        };
        if is_kept {
            self.made.borrow_mut().insert(name.to_owned(), value.clone());
        }
        value
    }

    /// Text with its placeholders filled in. Braces of JSON stay.
    fn filled(&self, text: &str) -> String {
        let (mut out, mut rest) = (String::new(), text);
        while let Some(at) = rest.find('{') {
            let (before, after) = rest.split_at(at);
            out.push_str(before);
            let name = after[1..].split('}').next().unwrap_or_default();
            if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase()) {
                out.push_str(&self.value(name));
                rest = &after[name.len() + 2..];
            } else {
                out.push('{');
                rest = &after[1..];
            }
        }
        out + rest
    }

    fn run(&self, command: &str) -> CallResult {
        let (command, input) = command.split_once(" <<< ").unwrap_or((command, ""));
        let words = words(&self.filled(command));
        let count = words.iter().take_while(|word| is_variable(word)).count();
        let args: Vec<&str> = words[count..].iter().map(String::as_str).collect();
        let mut call = self.home.call(&args).stdin(input);
        for variable in &words[..count] {
            let (name, value) = variable.split_once('=').unwrap();
            call = call.env(name, value);
        }
        call.run()
    }

    /// What is wrong with a run, if anything.
    fn check(&self, done: &CallResult, expectation: &str) -> Option<String> {
        let mut pieces = expectation.split("; ");
        let status: i32 = pieces.next().unwrap().trim_end_matches(';').parse().unwrap();
        if done.status() != Some(status) {
            return Some(format!("status {:?} instead of {status}", done.status()));
        }
        for piece in pieces {
            let (kind, text) = piece.split_once(':').unwrap_or((piece, ""));
            let text = self.filled(text).replace("\\x1b", "\u{1b}");
            let any = |found: &str| text.split('|').any(|text| found.contains(text));
            let is_right = match kind {
                "out" => any(&done.stdout()),
                "err" => any(&done.stderr()),
                "noout" => !done.stdout().contains(&text),
                "noerr" => !done.stderr().contains(&text),
                "lines" => done.stdout().lines().count().to_string() == text,
                "file" => self.home.path(&text).is_file(),
                "json" => serde_json::from_str::<Value>(&done.stdout()).is_ok(),
                "jsonl" => done.stdout().lines().all(|line| serde_json::from_str::<Value>(line).is_ok()),
                other => panic!("unknown expectation {other}"),
            };
            if !is_right {
                return Some(format!("{piece} does not hold"));
            }
        }
        None
    }

    /// Runs every command of a table.
    fn run_all(&self, rows: &[Row<'_>]) {
        let mut wrong = Vec::new();
        for row in rows.iter().filter(|row| !row.command.is_empty()) {
            let done = self.run(row.command);
            if let Some(reason) = self.check(&done, row.expectation) {
                wrong.push(format!("{}\n  {reason}\n{}", row.command, done.told()));
            }
        }
        assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
    }
}

/// Whether a word sets a variable for the command behind it.
fn is_variable(word: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && name.bytes().all(is_part))
}

/// Words of a command line, with single and double quotes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match (letter, quote) {
            (letter, Some(open)) if letter == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (' ', None) => words.extend(word.take()),
            (letter, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// Command for a cell of a table, with words for what the test fills in.
fn cell(command: &str) -> String {
    let mut text = command.replace('|', "\\|");
    for (name, word) in [
        ("{url}", "http://localhost:8000"),
        ("{host}", "localhost:8000"),
        ("{card}", "card.json"),
        ("{token}", "token"),
        ("{env}", ".env"),
        ("{mutual}", "https://localhost:8443"),
        ("{cert}", "cert.pem"),
        ("{key}", "key.pem"),
        ("{authority}", "ca.pem"),
        ("{guarded}", "http://localhost:8001"),
        ("{keyed}", "http://localhost:8001"),
        ("{task}", "TASK"),
        ("{filed}", "TASK"),
        ("{ask}", "TASK"),
        ("{slow}", "TASK"),
        ("{slowish}", "TASK"),
        ("{canceled}", "TASK"),
        ("{pushed}", "TASK"),
        ("{ctx}", "CONTEXT"),
        ("{silent}", "AGENT"),
        ("{broken}", "AGENT"),
        ("{quiet}", "AGENT"),
        ("{tenant}", "AGENT"),
        ("{old}", "AGENT"),
        (" <<< ", " <<< "),
    ] {
        text = text.replace(name, word);
    }
    let words: Vec<&str> = text.split(' ').collect();
    let variables = words.iter().take_while(|word| is_variable(word)).count();
    let (before, after) = words.split_at(variables);
    let before = before.iter().map(|word| format!("{word} ")).collect::<String>();
    format!("`{before}sessile {}`", after.join(" "))
}

fn result(word: &str) -> &'static str {
    match word {
        "pass" => "yes",
        "differs" => "differs",
        "absent" => "no",
        other => panic!("unknown result {other}"),
    }
}

const MADE: &str = "<!-- Made from a table by crates/sessile-cli/tests/it/agents/tables.rs; do not edit. -->";

fn read(name: &str) -> String {
    repository::read(format!("crates/sessile-cli/tests/it/agents/{name}"))
}

/// Every row that is not a plain yes has a reason.
fn require_reasons(rows: &[Row<'_>], result: usize, note: usize) {
    for row in rows.iter().filter(|row| !row.about[0].is_empty()) {
        let has_command = !row.command.is_empty();
        assert!(row.about[result] == "pass" && has_command || !row.about[note].is_empty(), "{:?}", row.about);
    }
}

#[test]
fn a2a_cli_rows_hold() {
    let text = read("a2a_cli.tsv");
    let rows = rows(&text, 5);
    let count = |tier: &str| rows.iter().filter(|row| row.about[1] == tier).count();
    assert_eq!((count("1"), count("2")), (39, 15), "every requirement of both tiers has a row");
    require_reasons(&rows, 2, 4);
    Ground::new().run_all(&rows);
}

#[test]
fn a2a_cli_reference_is_made_from_the_rows() {
    let text = read("a2a_cli.tsv");
    let rows = rows(&text, 5);
    let mut out = format!("# The A2A CLI specification\n{MADE}\n\n");
    out.push_str("How Sessile meets the requirements of the A2A CLI specification (a2aproject/a2a-cli, 0.2 of 2026-08-17), Tiers 1 and 2.\n");
    out.push_str("A test runs each command against an agent of the official Python SDK 1.3. `differs` is on purpose, for the reason given.\n");
    for tier in ["1", "2"] {
        let of_tier = |row: &&Row<'_>| row.about[1] == tier;
        let number = |word: &str| rows.iter().filter(of_tier).filter(|row| row.about[2] == word).count();
        let _ = writeln!(
            out,
            "\n## Tier {tier}\n{} yes, {} different, {} no.\n\n| requirement | subject | | command | note |\n|---|---|---|---|---|",
            number("pass"),
            number("differs"),
            number("absent"),
        );
        for row in rows.iter().filter(of_tier) {
            let command = if row.command.is_empty() { "-".to_owned() } else { cell(row.command) };
            let [id, _, word, subject, note] = row.about[..] else { panic!("{:?}", row.about) };
            let _ = writeln!(out, "| `{id}` | {subject} | {} | {command} | {note} |", result(word));
        }
    }
    repository::assert_generated("docs/reference/a2a-cli.md", &out);
}

#[test]
fn handler_rows_hold() {
    let text = read("handler.tsv");
    let rows = rows(&text, 3);
    assert!(rows.len() >= 77, "{}", rows.len());
    require_reasons(&rows, 1, 2);
    Ground::new().run_all(&rows);
}

#[test]
fn handler_reference_is_made_from_the_rows() {
    let text = read("handler.tsv");
    let mut out = format!("# Coming from Handler\n{MADE}\n\n");
    out.push_str("Every command and flag of Handler 0.4, and what does the same here. A test runs each command against an agent of the\nofficial Python SDK 1.3.\n\n");
    out.push_str("| Handler | | Sessile | note |\n|---|---|---|---|\n");
    for row in rows(&text, 3).iter().filter(|row| !row.about[0].is_empty()) {
        let command = if row.command.is_empty() { "-".to_owned() } else { cell(row.command) };
        let [handler, word, note] = row.about[..] else { panic!("{:?}", row.about) };
        let _ = writeln!(out, "| `{handler}` | {} | {command} | {note} |", result(word));
    }
    out.push_str(
        "\n## MCP tools\nA test calls each tool.\n\n| Handler | | Sessile | note |\n|---|---|---|---|\n",
    );
    for row in rows(&read("handler_mcp.tsv"), 3) {
        let [handler, word, note] = row.about[..] else { panic!("{:?}", row.about) };
        let tool = if row.command.is_empty() { "-".to_owned() } else { format!("`{}`", row.command) };
        let _ = writeln!(out, "| `{handler}` | {} | {tool} | {note} |", result(word));
    }
    out.push_str(
        "\n## Full-screen interface\nEvery action of `handler tui`. Keys and slash commands are those of [`chat`](../guide/chat.md), or of \
         [`tui`](../guide/tui.md)\nwhere the row says so. A test checks that each exists.\n\n| Handler | | Sessile | note |\n|---|---|---|---|\n",
    );
    for row in rows(&read("handler_tui.tsv"), 3) {
        let [handler, word, note] = row.about[..] else { panic!("{:?}", row.about) };
        let ours: Vec<String> = ways(&row).map(way_cell).collect();
        let ours = if ours.is_empty() { "-".to_owned() } else { ours.join(", ") };
        let _ = writeln!(out, "| {handler} | {} | {ours} | {note} |", result(word));
    }
    repository::assert_generated("docs/reference/handler.md", &out);
}

/// Keys and commands of a row of the full-screen interface.
fn ways<'a>(row: &Row<'a>) -> impl Iterator<Item = &'a str> + use<'a> {
    row.command.split("; ").filter(|way| !way.is_empty())
}

fn way_cell(way: &str) -> String {
    match way.split_once(' ') {
        Some(("chat", key)) => format!("`{key}`"),
        Some(("tui", key)) => format!("`{key}` of `tui`"),
        _ => format!("`{way}`"),
    }
}

/// The keys and slash commands are checked beside their tables, in `chat/screen/keys.rs`.
#[test]
fn handler_tui_rows_hold() {
    let text = read("handler_tui.tsv");
    let rows = rows(&text, 3);
    assert!(rows.len() >= 49, "{}", rows.len());
    require_reasons(&rows, 1, 2);
    let home = home();
    let mut wrong = Vec::new();
    for way in rows.iter().flat_map(ways).filter_map(|way| way.strip_prefix("sessile ")) {
        let (words, flags): (Vec<&str>, Vec<&str>) = way.split(' ').partition(|word| !word.starts_with("--"));
        let help = home.call(&words).args(&["--help", "--verbose"]).run();
        if help.status() != Some(0) || !flags.iter().all(|flag| help.stdout().contains(flag)) {
            wrong.push(way);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn handler_mcp_rows_hold() {
    let text = read("handler_mcp.tsv");
    let rows = rows(&text, 3);
    require_reasons(&rows, 1, 2);
    let ground = Ground::new();
    let mut client = McpClient::start(ground.home.call(&["mcp"]));
    client.initialize("2025-11-25");
    let mut wrong = Vec::new();
    for row in rows.iter().filter(|row| !row.command.is_empty()) {
        let (arguments, text) = row.expectation.split_once('\t').unwrap();
        let (arguments, text) = (ground.filled(arguments), ground.filled(text));
        let answer = client.call(row.command, serde_json::from_str(&arguments).unwrap());
        let found = answer["structuredContent"].to_string();
        if answer["isError"] == true || !found.contains(&text) {
            wrong.push(format!("{} {arguments}: {text:?} is missing from {answer}", row.command));
        }
    }
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
}
