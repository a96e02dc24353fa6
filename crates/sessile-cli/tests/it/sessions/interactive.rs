//! The interactive rule: what selects or follows a selection of a terminal, and what must not.

use testkit::{AgentOptions, Protocol, ScriptedAgent};

use crate::home_with;

/// Ways to call the program from a terminal that are not interactive.
const NOT_INTERACTIVE: [&str; 6] = [
    "sessile {} </dev/null",
    "sessile {} <&-",
    ": | sessile {}",
    "x=$(sessile {} </dev/null); (exit $?)",
    "CI=1 sessile {}",
    "sessile --no-input {}",
];

/// Ways to call the program from a terminal that may read a selection, but not change it.
const CAPTURED: [&str; 3] =
    ["x=$(sessile {})", "sessile {} >out.txt", "sessile {} | cat; (exit ${PIPESTATUS[0]})"];

#[test]
fn call_that_is_not_interactive_changes_no_selection() {
    let home = home_with(&["staging", "production"]);
    let mut shell = home.shell();
    shell.run("sessile context use staging");
    for way in NOT_INTERACTIVE.iter().chain(&CAPTURED) {
        let (text, status) = shell.run(&way.replace("{}", "context use production"));
        assert_eq!(status, 2, "{way}: {text}");
        assert!(text.contains("--context NAME"), "{way}: {text}");
        assert!(shell.run("sessile context current").0.contains("staging"), "{way}");
    }
}

#[test]
fn session_of_a_non_interactive_call_is_not_selected() {
    let home = home_with(&[]);
    let mut shell = home.shell();
    for way in NOT_INTERACTIVE.iter().chain(&CAPTURED) {
        let (text, status) = shell.run(&way.replace("{}", "session start -q"));
        assert_eq!(status, 0, "{way}: {text}");
        // Not `session show`, which offers a list on a terminal.
        let (text, _) = shell.run("sessile status -ojson");
        assert!(text.contains("\"session\": null"), "{way}: no session is selected: {text}");
    }
}

#[test]
fn command_does_not_start_while_a_selection_is_withheld() {
    let home = home_with(&["staging", "production"]);
    home.write(".config/sessile/config.toml", "context = \"production\"\n");
    let mut shell = home.shell();
    shell.run("sessile context use staging");
    for way in NOT_INTERACTIVE {
        let (text, status) = shell.run(&way.replace("{}", "run -- touch started"));
        assert_eq!(status, 125, "{way}: {text}");
        assert!(text.contains("has selected context \"staging\"") || way.starts_with("x="), "{way}: {text}");
        assert!(!home.path("started").exists(), "{way}");
        for command in ["env", "lock acquire deploy", "undo", "config set lock-timeout 9s"] {
            let (text, status) = shell.run(&way.replace("{}", command));
            assert_eq!(status, 2, "{way} {command}: {text}");
        }
        let (text, status) = shell.run(&way.replace("{}", "run --context staging -- true"));
        assert_eq!(status, 0, "{way}: {text}");
    }
    assert_eq!(shell.run("sessile run -- true").1, 0, "an interactive call uses the selection");
    assert_eq!(shell.run("sessile run -- true >out.txt").1, 0, "and so does one with captured output");
}

#[test]
fn selected_session_is_withheld_as_a_context_is() {
    let home = home_with(&["staging"]);
    let mut shell = home.shell();
    assert_eq!(shell.run("sessile session start --name web --context staging").1, 0);
    let (text, status) = shell.run("sessile run -- true </dev/null");
    assert_eq!(status, 125, "{text}");
    assert!(text.contains("has selected session \"web\""), "{text}");
    assert!(text.contains("--session web"), "{text}");
    assert_eq!(shell.run("sessile run --session web -- true </dev/null").1, 0);
    assert_eq!(shell.run("sessile run --context staging -- true </dev/null").1, 0);
    home.call(&["session", "stop", "web"]).ok();
    let (text, status) = shell.run("sessile run -- true </dev/null");
    assert_eq!(status, 125, "the end of the session selects nothing else: {text}");
    assert!(text.contains("session \"web\" of terminal"), "{text}");
    assert_eq!(shell.run("sessile session detach").1, 0);
    let (text, status) = shell.run("sessile run -- true </dev/null");
    assert_eq!(status, 0, "a session that was left is not withheld: {text}");
}

#[test]
fn selection_is_withheld_where_every_stream_leads_elsewhere() {
    let home = home_with(&["staging", "production"]);
    home.write(".config/sessile/config.toml", "context = \"production\"\n");
    let mut shell = home.shell();
    shell.run("sessile context use staging");
    for way in [
        "sessile {} </dev/null >out.txt 2>&1",
        "x=$(sessile {} </dev/null 2>&1)",
        ": | sessile {} 2>&1 | cat; (exit ${PIPESTATUS[1]})",
    ] {
        let (text, status) = shell.run(&way.replace("{}", "run -- touch started"));
        assert_eq!(status, 125, "{way}: {text}");
        assert!(!home.path("started").exists(), "{way}");
    }
}

#[test]
fn selection_is_withheld_from_other_processes_of_a_terminal() {
    let home = home_with(&["staging", "production"]);
    home.write(".config/sessile/config.toml", "context = \"production\"\n");
    let mut shell = home.shell();
    shell.run("sessile context use staging");
    for way in
        ["setsid -w sessile {}", "setsid -w sessile {} </dev/null", "setsid -w sessile {} >out.txt 2>&1"]
    {
        let (text, status) = shell.run(&way.replace("{}", "run -- touch started"));
        assert_eq!(status, 125, "{way}: {text}");
        assert!(
            text.contains("has selected context \"staging\"") || way.contains("out.txt"),
            "{way}: {text}"
        );
        assert!(!home.path("started").exists(), "{way}");
        let (text, status) = shell.run(&way.replace("{}", "run --context staging -- true"));
        assert_eq!(status, 0, "{way}: {text}");
    }
    let (text, _) = shell.run("setsid -w sessile context current");
    assert!(text.contains("production") && text.contains("staging"), "a reader reports it: {text}");
    assert_eq!(shell.run("sessile session start --name web --context staging").1, 0);
    let (text, status) = shell.run("setsid -w sessile run -- true");
    assert_eq!(status, 125, "{text}");
    assert!(text.contains("has selected session \"web\""), "{text}");
    assert_eq!(shell.run("setsid -w sessile run --session web -- true").1, 0);
    let (text, status) = home.shell().run("setsid -w sessile run -- true");
    assert_eq!(status, 0, "another terminal has no selection: {text}");
}

/// The client of the server may run on the terminal; its calls name what they mean.
#[test]
fn mcp_server_starts_beside_a_selection_and_ignores_it() {
    let home = home_with(&["staging", "production"]);
    home.write(".config/sessile/config.toml", "context = \"production\"\n");
    let call = |id: u32, arguments: &str| {
        let params =
            format!("{{\"name\":\"run\",\"arguments\":{{\"command\":[\"touch\",\"{id}\"]{arguments}}}}}");
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{params}}}\n")
    };
    let hello = "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\
                 \"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}\n\
                 {\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
    home.write("input", format!("{hello}{}{}", call(1, ""), call(2, ",\"context\":\"staging\"")));
    for select in ["context use staging", "session start --name web --context staging"] {
        let mut shell = home.shell();
        shell.run(&format!("sessile {select}"));
        for way in ["<input >answers", "<input >answers 2>/dev/null", "<input 2>&1 | cat >answers"] {
            let (text, status) = shell.run(&format!("sessile mcp --allow-run {way}"));
            assert_eq!(status, 0, "{select} {way}: {text}");
            let answers = home.read("answers");
            let is_told = text.contains("has selected") || answers.contains("warning: ");
            assert_eq!(is_told, !way.contains("/dev/null"), "{select} {way}: {text} {answers}");
            assert!(answers.contains("SELECTION_WITHHELD"), "{select} {way}: {answers}");
            assert!(!home.path("1").exists(), "{select} {way}: {answers}");
            assert!(home.path("2").exists(), "{select} {way}: {answers}");
            std::fs::remove_file(home.path("2")).unwrap();
        }
    }
}

#[test]
fn terminal_is_the_same_under_the_name_of_the_controlling_one() {
    let home = home_with(&["staging", "other"]);
    let mut shell = home.shell();
    shell.run("sessile context use staging");
    assert!(shell.run("sessile context current </dev/tty").0.contains("staging"));
    assert_eq!(shell.run("sessile context use other </dev/tty").1, 0);
    assert!(shell.run("sessile context current").0.contains("other"));
}

#[test]
fn captured_undo_changes_no_selection() {
    let home = home_with(&["one", "two"]);
    let mut shell = home.shell();
    shell.run("sessile context use one");
    shell.run("sessile context use two");
    let (id, _) = shell
        .run("sessile history -q -ojson --limit 1 | tr -d '\\n' | sed 's/.*\"id\": *\\([0-9]*\\).*/\\1/'");
    for way in ["x=$(sessile undo 2>&1)", &format!("x=$(sessile undo {} 2>&1 </dev/null)", id.trim())] {
        let (text, status) = shell.run(way);
        assert_ne!(status, 0, "{way}: {text}");
        assert!(shell.run("sessile context current").0.contains("two"), "{way}");
    }
    assert_eq!(shell.run("sessile undo").1, 0, "a person undoes it");
    assert!(shell.run("sessile context current").0.contains("one"));
}

#[test]
fn reading_command_reports_a_withheld_selection() {
    let home = home_with(&["staging"]);
    let mut shell = home.shell();
    shell.run("sessile context use staging");
    let (text, status) = shell.run("sessile status </dev/null");
    assert_eq!(status, 0, "{text}");
    assert!(!text.contains("staging  from"), "{text}");
    assert!(text.contains("has selected context \"staging\""), "{text}");
    assert!(text.contains("standard input is not a terminal"), "{text}");
    let (text, status) = shell.run("sessile context list </dev/null");
    assert_eq!(status, 0, "{text}");
    let (text, status) = shell.run("sessile context create other </dev/null");
    assert_eq!(status, 0, "{text}");
    assert!(!text.contains("has selected"), "what means nothing to a command is not reported: {text}");
}

#[test]
fn subprocesses_of_one_terminal_never_switch_each_other() {
    let home = home_with(&["staging", "production"]);
    let mut shell = home.shell();
    shell.run("sessile context use staging");
    let script = r#"
import itertools, os, random, subprocess, sys
first, last = int(sys.argv[1]), int(sys.argv[2])
random.seed(first)
INHERITED, PIPED, NULL, CLOSED = range(4)
ways = [w for w in itertools.product(range(4), range(4), range(4)) if w[:2] != (INHERITED, INHERITED)]
def call(streams, *args):
    def close():
        for fd, way in enumerate(streams):
            if way == CLOSED: os.close(fd)
    of = lambda way: {INHERITED: None, PIPED: subprocess.PIPE, NULL: subprocess.DEVNULL, CLOSED: None}[way]
    return subprocess.Popen(["sessile", *args], stdin=of(streams[0]), stdout=of(streams[1]), stderr=of(streams[2]), preexec_fn=close)
wrong = []
others = random.sample(ways, len(ways))
for round in range(first, last):
    # Every combination for each of the two, in pairs that chance makes.
    one, two = ways[round % len(ways)], others[round % len(ways)]
    if round % len(ways) == len(ways) - 1: random.shuffle(others)
    switch, start = call(one, "context", "use", "production"), call(two, "session", "start", "-q")
    sent = [call(way, "message", "send", sys.argv[3], "hello", "--context", "staging") for way in (one, two)]
    for child in (switch, start, *sent): child.communicate()
    for way, child in zip((one, two), sent):
        # A closed standard output makes the reply's display fail, after the message was sent.
        if child.returncode != 0 and way[1] != CLOSED: wrong.append((round, way, "message", child.returncode))
    if switch.returncode == 0: wrong.append((round, one, "switched"))
    if start.returncode not in (0, 2): wrong.append((round, two, "did not start"))
    now = subprocess.run(["sessile", "context", "current"], stdout=subprocess.PIPE).stdout.decode().strip()
    if now != "staging": wrong.append((round, one, two, now))
print("WRONG", wrong)
"#;
    home.write("agents.py", script);
    let rounds: usize = std::env::var("SESSILE_TEST_ROUNDS").map_or(60, |rounds| rounds.parse().unwrap());
    let agent = ScriptedAgent::start(AgentOptions::of(Protocol::V1));
    // In parts: the shell waits 20 seconds for each.
    for first in (0..rounds).step_by(20) {
        let last = rounds.min(first + 20);
        let (text, status) = shell.run(&format!("python3 agents.py {first} {last} {}", agent.url()));
        assert_eq!(status, 0, "{text}");
        let wrong = text.split("WRONG").last();
        assert_eq!(wrong.map(str::trim), Some("[]"));
    }
    // No message went on in the conversation of another.
    assert_eq!(agent.contexts().len(), 2 * rounds);
}

#[test]
fn message_of_a_piped_subprocess_begins_a_conversation() {
    let home = home_with(&[]);
    let agent = ScriptedAgent::start(AgentOptions::of(Protocol::V1));
    let mut shell = home.shell();
    for name in ["alice", "bob"] {
        let (text, status) =
            shell.run(&format!("sessile message send {} 'I am {name}' </dev/null | cat", agent.url()));
        assert_eq!(status, 0, "{text}");
    }
    let (text, _) = shell.run("sessile session list -ojson");
    assert!(text.contains("[]"), "no session was started: {text}");
    assert_eq!(agent.contexts().len(), 2, "each has a context of its own");
}
