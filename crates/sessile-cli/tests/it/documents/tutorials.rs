//! Tutorials: a test types every command of a page into one shell and compares the output. With `UPDATE_REFERENCE` set
//! it writes the output into the page instead.

use crate::repository;

/// Command of a console block, with the printed lines.
struct Step {
    command: String,
    printed: String,
}

/// Line of a page, as far as the consoles matter.
enum Line<'a> {
    /// Text, and the fences of blocks.
    Text(&'a str),
    /// First line of a command.
    Command(&'a str),
    /// Further line of a command.
    More(&'a str),
    /// Printed line.
    Printed(&'a str),
}

fn lines(page: &str) -> Vec<Line<'_>> {
    let mut in_console = false;
    let read = |line| {
        if let Some(language) = str::strip_prefix(line, "```") {
            in_console = language == "console";
            return Line::Text(line);
        }
        match (in_console, line.strip_prefix("$ "), line.strip_prefix("> ")) {
            (true, Some(command), _) => Line::Command(command),
            (true, None, Some(more)) => Line::More(more),
            (true, None, None) if line == ">" => Line::More(""),
            (true, None, None) => Line::Printed(line),
            (false, _, _) => Line::Text(line),
        }
    };
    page.lines().map(read).collect()
}

fn steps(page: &str) -> Vec<Step> {
    let mut all: Vec<Step> = Vec::new();
    for line in lines(page) {
        match (line, all.last_mut()) {
            (Line::Command(command), _) => {
                all.push(Step { command: command.to_owned(), printed: String::new() });
            }
            (Line::More(more), Some(step)) => step.command.push_str(&format!("\n{more}")),
            (Line::Printed(printed), Some(step)) => step.printed.push_str(&format!("{printed}\n")),
            _ => {}
        }
    }
    all
}

/// The page with other printed lines.
fn with_outputs(page: &str, outputs: &[String]) -> String {
    let mut out = String::new();
    let mut outputs = outputs.iter();
    let mut pending: Option<&String> = None;
    for line in lines(page) {
        if matches!(line, Line::Command(_) | Line::Text(_))
            && let Some(printed) = pending.take()
        {
            out.push_str(printed);
        }
        match line {
            Line::Text(text) => out.push_str(&format!("{text}\n")),
            Line::Command(command) => {
                out.push_str(&format!("$ {command}\n"));
                pending = outputs.next();
            }
            Line::More(more) => out.push_str(format!("> {more}").trim_end()),
            Line::Printed(_) => {}
        }
        if matches!(line, Line::More(_)) {
            out.push('\n');
        }
    }
    out
}

/// Output without ids, times, durations and the width of columns, which differ from run to run.
fn normalized(text: &str) -> String {
    let is_hex = |text: &str| text.len() == 16 && text.chars().all(|c| c.is_ascii_hexdigit());
    // Ids of Sessile, and those of the demo agent.
    let is_id = |word: &str| {
        word.len() == 36 && word.matches('-').count() == 4
            || ["task-", "context-"].iter().any(|head| word.strip_prefix(head).is_some_and(is_hex))
    };
    let mut kept: Vec<String> = Vec::new();
    for line in text.lines() {
        let mut words: Vec<String> = Vec::new();
        for word in line.split_whitespace() {
            let is_span =
                ["ms", "s"].contains(&word) && words.last().is_some_and(|last| last.parse::<u32>().is_ok());
            if is_span {
                words.pop();
            }
            words.push(match () {
                () if is_id(word) => "ID".to_owned(),
                () if word.len() == 20 && word.starts_with("20") && word.ends_with('Z') => "TIME".to_owned(),
                () if is_span => "SPAN".to_owned(),
                // A rule below the head of a table.
                () if word.chars().all(|c| c == '-') => "-".to_owned(),
                () => without_json_times(word),
            });
        }
        kept.push(words.join(" "));
    }
    kept.join("\n").trim_end().to_owned()
}

/// Word of a JSON document without its ids and times.
fn without_json_times(word: &str) -> String {
    let mut parts = word.split("_ms\":");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str("_ms\":");
        kept.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    kept.split('"')
        .map(|piece| if piece.len() == 36 && piece.matches('-').count() == 4 { "ID" } else { piece })
        .collect::<Vec<_>>()
        .join("\"")
}

/// Types the commands into one shell without a terminal, and returns the output of each.
pub(super) fn play(home: &testkit::Home, commands: &[String]) -> Vec<String> {
    let programs = home.program().parent().unwrap().display().to_string();
    let mut script = String::new();
    for (number, command) in commands.iter().enumerate() {
        script.push_str(&format!("{{ {command}\n}} >{}/{number} 2>&1\n", home.dir().display()));
    }
    script.push_str("true\n");
    // A process session of its own has no terminal.
    let status = std::process::Command::new("setsid")
        .args(["--wait", "bash", "-c", &script])
        .env_clear()
        .env("PATH", format!("{programs}:/usr/local/bin:/usr/bin:/bin"))
        .env("HOME", home.dir())
        .env("SESSILE_SYSTEM_DIR", home.path("etc"))
        .current_dir(home.path("shop"))
        .stdin(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{script}");
    let printed = (0..commands.len()).map(|number| home.read(number.to_string()));
    // Pages leave out the line that names the context of a change.
    let shown = |text: String| {
        let kept: Vec<&str> = text.lines().filter(|line| !line.starts_with("in ")).collect();
        if kept.is_empty() { String::new() } else { kept.join("\n") + "\n" }
    };
    printed.map(shown).collect()
}

/// Fails unless every command of the page prints what the page shows. `port` is the port of a server in the page.
#[track_caller]
fn assert_page(path: &str, port: Option<&str>) {
    let home = crate::home();
    home.write("shop/README", "");
    let page = repository::read(path);
    let steps = steps(&page);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let wait = format!(
        "until (exec 3<>/dev/tcp/127.0.0.1/{free}) 2>{}/refused; do sleep 0.05; done",
        home.dir().display()
    );
    let typed = |step: &Step| {
        // Programs that are not ours may be missing.
        let command = if step.command.contains("| jq") { "true" } else { &step.command };
        let Some(port) = port else { return command.to_owned() };
        command
            .replace("sessile serve", &format!("sessile serve --listen 127.0.0.1:{free}"))
            .replace("sessile agent demo", &format!("sessile agent demo --port {free}"))
            .replace(port, &free)
            .replace("sleep 1", &wait)
    };
    let commands: Vec<String> = steps.iter().map(typed).collect();
    let world = sessile::World::from_process();
    let (user, host) = (world.user_name(), world.host_name());
    let mut outputs = Vec::new();
    let mut wrong = String::new();
    for (step, printed) in steps.iter().zip(play(&home, &commands)) {
        let printed = printed
            .replace(&*home.dir().to_string_lossy(), "/home/ann")
            .replace(&format!("{user}@{host}"), "ann@box")
            .replace(&format!("os user   {user}"), "os user   ann")
            .replace(&format!(" {user}  20"), " ann  20");
        let printed = port.map_or_else(|| printed.clone(), |port| printed.replace(&free, port));
        let is_same = step.command.contains("| jq") || normalized(&printed) == normalized(&step.printed);
        if !is_same {
            wrong.push_str(&format!("$ {}\n{printed}\n", step.command));
        }
        outputs.push(if is_same { step.printed.clone() } else { printed });
    }
    if std::env::var_os("UPDATE_REFERENCE").is_some() && !wrong.is_empty() {
        repository::assert_generated(path, &with_outputs(&page, &outputs));
        return;
    }
    assert!(wrong.is_empty(), "{path} shows other output:\n{wrong}");
    assert!(steps.len() > 10, "{path} has too few commands: {}", steps.len());
}

#[test]
fn first_session_prints_the_reference_output() {
    assert_page("docs/tutorials/first-session.md", None);
}

#[test]
fn guard_production_prints_the_reference_output() {
    testkit::require_tool("kubectl");
    assert_page("docs/tutorials/guard-production.md", None);
}

#[test]
fn a2a_prints_the_reference_output() {
    assert_page("docs/tutorials/a2a.md", Some("8738"));
}

#[test]
fn service_prints_the_reference_output() {
    testkit::require_tool("curl");
    assert_page("docs/tutorials/service.md", Some("8737"));
}

#[test]
fn add_a_tool_prints_the_reference_output() {
    assert_page("docs/tutorials/add-a-tool.md", None);
}

/// Every tutorial runs: here, or as an example of the library.
#[test]
fn every_tutorial_has_a_test() {
    let source = repository::read("crates/sessile-cli/tests/it/documents/tutorials.rs")
        + &repository::read("crates/sessile/src/lib.rs");
    let mut found = 0;
    for file in repository::files(".md") {
        if file.starts_with("docs/tutorials") && file.file_name().is_some_and(|name| name != "README.md") {
            assert!(source.contains(&*file.to_string_lossy()), "no test runs {}", file.display());
            found += 1;
        }
    }
    assert!(found >= 5, "{found} tutorials found");
}

#[test]
fn outputs_of_a_page_are_replaced() {
    let page = "text\n```console\n$ one\n> more\n>\nold\n$ two\n```\n$ no\n";
    let steps = steps(page);
    assert_eq!(
        (steps.len(), steps[0].command.as_str(), steps[0].printed.as_str()),
        (2, "one\nmore\n", "old\n")
    );
    let changed = with_outputs(page, &["new\n".to_owned(), "other\n".to_owned()]);
    assert_eq!(changed, "text\n```console\n$ one\n> more\n>\nnew\n$ two\nother\n```\n$ no\n");
}
