//! Console blocks: a test types every command of a page into one shell and compares the output. With `UPDATE_REFERENCE`
//! set it writes the output into the page instead.

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

/// Page whose console blocks run.
#[derive(Default)]
pub(super) struct ConsolePage {
    pub(super) path: &'static str,
    /// Port of a server in the page. The test uses a free one instead.
    pub(super) port: Option<&'static str>,
    /// Commands that the page assumes: each runs before the command that begins with the text.
    pub(super) setup: &'static [(&'static str, &'static str)],
    /// Words of the page's commands, and what the test types instead.
    pub(super) typed: Vec<(&'static str, String)>,
    /// Whether the output is random: only the form of its lines is compared.
    pub(super) is_random: bool,
}

/// Length of the id, time or code that the text begins with, and its replacement.
fn variable_part(text: &str) -> Option<(usize, &'static str)> {
    // Letters of a pattern: hexadecimal digit, decimal digit, capital letter; any other mark stands for itself.
    const FORMS: &[(&str, &str)] = &[
        ("hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh", "ID"),
        ("task-hhhhhhhhhhhhhhhh", "ID"),
        ("context-hhhhhhhhhhhhhhhh", "ID"),
        ("dddd-dd-ddTdd:dd:ddZ", "TIME"),
        ("CCCC-CCCC", "CODE"),
    ];
    let fits = |form: &str| {
        let mut chars = text.chars();
        let is_match = form.chars().all(|mark| {
            chars.next().is_some_and(|c| match mark {
                'h' => c.is_ascii_hexdigit(),
                'd' => c.is_ascii_digit(),
                'C' => c.is_ascii_uppercase(),
                _ => c == mark,
            })
        });
        is_match && chars.next().is_none_or(|c| !c.is_alphanumeric())
    };
    FORMS.iter().find(|(form, _)| fits(form)).map(|(form, name)| (form.len(), *name))
}

/// Text with its ids, times and codes replaced.
fn without_variable_parts(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let is_start = !kept.ends_with(char::is_alphanumeric);
        let (length, part) = match variable_part(rest).filter(|_| is_start) {
            Some((length, name)) => (length, name),
            None => (c.len_utf8(), &rest[..c.len_utf8()]),
        };
        kept.push_str(part);
        rest = &rest[length..];
    }
    kept
}

/// Output without ids, times, durations and the width of columns, which differ from run to run.
fn normalized(text: &str) -> String {
    let mut kept: Vec<String> = Vec::new();
    for line in without_variable_parts(text).lines() {
        let mut words: Vec<String> = Vec::new();
        for word in line.split_whitespace() {
            let is_number = |text: &String| text.parse::<u32>().is_ok();
            let is_span = ["ms", "s"].contains(&word) && words.last().is_some_and(is_number);
            if is_span {
                words.pop();
            }
            words.push(match () {
                () if is_span => "SPAN".to_owned(),
                () if words.last().is_some_and(|last| last == "pid") => "PID".to_owned(),
                // A rule below the head of a table.
                () if word.chars().all(|c| c == '-') => "-".to_owned(),
                () => without_json_times(word),
            });
        }
        kept.push(words.join(" "));
    }
    kept.join("\n").trim_end().to_owned()
}

/// Word of a JSON document without its times.
fn without_json_times(word: &str) -> String {
    let mut parts = word.split("_ms\":");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str("_ms\":");
        kept.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    kept
}

/// Lines without numbers and quoted words; each form of a line occurs once.
fn form(text: &str) -> String {
    let mut kept: Vec<String> = Vec::new();
    for line in text.lines() {
        let unquoted: Vec<&str> = line.split('"').step_by(2).collect();
        let words = unquoted.join("Q").split_whitespace().map(form_of_word).collect::<Vec<_>>().join(" ");
        if kept.last() != Some(&words) {
            kept.push(words);
        }
    }
    kept.join("\n").trim_end().to_owned()
}

/// A number, or a dot for none in a table, becomes `N`.
fn form_of_word(word: &str) -> String {
    let digits = word.replace(|c: char| c.is_ascii_digit(), "");
    if digits.is_empty() || digits == "." { "N".to_owned() } else { digits }
}

/// Types the commands into one shell without a terminal, and returns the output of each.
pub(super) fn play(home: &testkit::Home, commands: &[String]) -> Vec<String> {
    let programs = home.program().parent().unwrap().display().to_string();
    // Servers that a page starts end with it.
    let mut script = "trap 'kill $(jobs -p) 2>/dev/null' EXIT\n".to_owned();
    for (number, command) in commands.iter().enumerate() {
        let output = format!("{}/{number}", home.dir().display());
        script.push_str(&format!("OUTPUT={output}; {{ {command}\n}} >$OUTPUT 2>&1\n"));
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

/// Command of the page, after the commands that the page assumes.
fn typed(page: &ConsolePage, step: &Step, port: &str) -> String {
    // Programs that are not ours may be missing.
    if step.command.contains("| jq") {
        return "true".to_owned();
    }
    let mut out = String::new();
    for (_, setup) in page.setup.iter().filter(|(before, _)| step.command.starts_with(before)) {
        out.push_str(&format!(
            "{{ {setup}\n}} >~/setup 2>&1 || {{ echo 'the set-up failed:'; cat ~/setup; }}\n"
        ));
    }
    out.push_str(&step.command);
    if let Some(shown) = page.port {
        let wait = format!("until (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>~/refused; do sleep 0.05; done");
        out = out
            .replace("sessile serve", &format!("sessile serve --listen 127.0.0.1:{port}"))
            .replace("sessile agent demo", &format!("sessile agent demo --port {port}"))
            .replace(shown, port)
            .replace("sleep 1", &wait);
    }
    page.typed.iter().fold(out, |out, (shown, typed)| out.replace(shown, typed))
}

/// Fails unless every command of the page prints what the page shows.
#[track_caller]
pub(super) fn assert_page(page: &ConsolePage) {
    let home = crate::home();
    home.write("shop/README", "");
    let text = repository::read(page.path);
    let steps = steps(&text);
    for (before, _) in page.setup {
        assert!(steps.iter().any(|step| step.command.starts_with(before)), "no command begins with {before}");
    }
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let commands: Vec<String> = steps.iter().map(|step| typed(page, step, &port)).collect();
    let world = sessile::World::from_process();
    let (user, host) = (world.user_name(), world.host_name());
    let mut outputs = Vec::new();
    let mut wrong = String::new();
    for (step, printed) in steps.iter().zip(play(&home, &commands)) {
        let mut printed = printed
            .replace(&*home.dir().to_string_lossy(), "/home/ann")
            .replace(&format!("{user}@{host}"), "ann@box")
            .replace(&format!("os user   {user}"), "os user   ann")
            .replace(&format!(" {user}  20"), " ann  20");
        if let Some(shown) = page.port {
            printed = printed.replace(&port, shown);
        }
        printed = page
            .typed
            .iter()
            .fold(printed, |out, (shown, typed)| out.replace(&typed.replace("$HOME", "/home/ann"), shown));
        let compared = |text: &str| if page.is_random { form(text) } else { normalized(text) };
        let is_same = step.command.contains("| jq") || compared(&printed) == compared(&step.printed);
        if !is_same {
            wrong.push_str(&format!("$ {}\n{printed}\n", step.command));
        }
        outputs.push(if is_same { step.printed.clone() } else { printed });
    }
    if std::env::var_os("UPDATE_REFERENCE").is_some() && !wrong.is_empty() {
        repository::assert_generated(page.path, &with_outputs(&text, &outputs));
        return;
    }
    assert!(wrong.is_empty(), "{} shows other output:\n{wrong}", page.path);
    assert!(!steps.is_empty(), "{} has no commands", page.path);
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

#[test]
fn variable_parts_of_an_output_are_ignored() {
    let one =
        "task 01a1e016-d803-7be9-8c3e-197144bc46eb of ann@box pid 4, until 2026-11-15T12:08:19Z, in 699 ms";
    let other =
        "task 02b1e016-d803-7be9-8c3e-197144bc46eb of ann@box pid 17, until 2027-01-15T12:08:19Z, in 1 s";
    assert_eq!(normalized(one), normalized(other));
    assert_ne!(normalized(one), normalized(&one.replace("ann", "bob")));
    assert_ne!(normalized("released lock 2"), normalized("released lock 3"));
    assert_eq!(form("1 . 9\n2 7 .\nsaw \"abc\""), form("1 3 9\nsaw \"xyz\""));
    assert_ne!(form("leaks 3"), form("leaks none"));
}
