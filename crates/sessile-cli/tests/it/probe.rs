//! `sessile probe`, against services that mix up their users and services that do not.

mod fastapi;
mod leaks;
mod refusals;
pub(crate) mod server;
pub(crate) mod service;
mod sessile;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;

use serde_json::{Value, json};
use testkit::{AgentOptions, CallResult, Home, Protocol, PythonAgent, ScriptedAgent};

use crate::{home, repository};
use server::{ReceivedMessage, Server};

/// The sample server, until it is dropped.
struct Sample {
    child: Child,
    url: String,
}

impl Sample {
    fn start(flags: &[&str]) -> Self {
        let script = repository::root().join("examples/mixed-up-agent/server.py");
        let mut command = Command::new("python3");
        command.arg(script).args(["--port", "0", "--seed", "1"]).args(flags).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Sample { child, url: url.trim().to_owned() }
    }

    /// Probes it by every protocol that it speaks.
    fn probe(&self, flags: &[&str]) -> Vec<(&'static str, CallResult)> {
        let template = repository::root().join("examples/mixed-up-agent/chat.toml");
        let (openai, template) = (format!("{}/v1", self.url), template.display().to_string());
        let ways: [(&str, &str, &[&str]); 4] = [
            ("a2a", &self.url, &["--protocol", "a2a"]),
            ("openai", &openai, &["--protocol", "openai", "--model", "x"]),
            ("stateful", &openai, &["--protocol", "openai", "--model", "x", "--stateful"]),
            ("http", &self.url, &["--protocol", "http", "--template", &template]),
        ];
        let probe = |(name, url, words): (&'static str, &str, &[&str])| {
            (name, home().call(&["probe", url, "-ojson"]).args(words).args(flags).run())
        };
        ways.into_iter().map(probe).collect()
    }
}

impl Drop for Sample {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn count(report: &Value, what: &str) -> u64 {
    report[what]["count"].as_u64().unwrap()
}

/// How a service of ours is asked.
const CHAT: &[&str] = &[
    "--protocol",
    "http",
    "--request",
    "POST /chat",
    "--body",
    r#"{"session": "{session}", "message": "{message}"}"#,
    "--reply",
    "/reply",
];

fn chat(home: &Home, url: &str, flags: &[&str]) -> CallResult {
    home.call(&["probe", url, "-ojson"]).args(CHAT).args(flags).run()
}

#[test]
fn shared_history_is_found_by_every_protocol() {
    for (name, done) in Sample::start(&[]).probe(&["--users", "6", "--turns", "3"]) {
        let report = done.exit(1).json();
        assert_eq!(report["verdict"], "mixed_up", "{name}");
        assert!(count(&report, "leaks") > 30, "{name}: {report}");
        assert_eq!((count(&report, "failed"), &report["answered"]), (0, &json!(24)), "{name}: {report}");
        for leak in report["leaks"]["found"].as_array().unwrap() {
            assert_ne!(leak["from"], leak["to"]);
            assert!(leak["excerpt"].as_str().unwrap().contains(leak["canary"].as_str().unwrap()), "{leak}");
            assert!(["reply", "history"].contains(&leak["where"].as_str().unwrap()));
        }
        let is_read = name == "http";
        let places = report["leaks"]["places"].as_array().unwrap();
        assert_eq!(places.iter().any(|place| place["where"] == "history"), is_read, "{name}: {report}");
    }
}

#[test]
fn separate_histories_pass_by_every_protocol() {
    for (name, done) in Sample::start(&["--fixed"]).probe(&["--users", "8", "--turns", "6"]) {
        let report = done.exit(0).json();
        assert_eq!((report["verdict"].as_str(), &report["answered"]), (Some("clean"), &json!(56)), "{name}");
        assert_eq!(report["replies"], json!({"judged": true, "why_not": null, "count": 56}), "{name}");
        assert_eq!(report["histories"]["judged"], name == "http");
        let (p50, p99) = (&report["latency_ms"]["p50"], &report["latency_ms"]["p99"]);
        assert!(p50.as_f64() > Some(0.0) && p50.as_f64() <= p99.as_f64(), "{report}");
        assert!(report["throughput_per_s"].as_f64() > Some(1.0), "{report}");
    }
}

#[test]
fn lost_doubled_and_swapped_turns_are_distinguished() {
    for (flag, found) in [("--lose", "lost"), ("--double", "doubled"), ("--reorder", "order")] {
        for (name, done) in Sample::start(&["--fixed", flag, "0.2"]).probe(&["--users", "8", "--turns", "8"])
        {
            let report = done.exit(1).json();
            assert_eq!(count(&report, "leaks"), 0, "{flag} {name}");
            for kind in ["lost", "doubled", "order"] {
                assert_eq!(count(&report, kind) > 0, kind == found, "{flag} {name} {kind}: {report}");
            }
            let places = report[found]["found"].as_array().unwrap().iter().map(|wrong| &wrong["where"]);
            assert_eq!(places.into_iter().any(|place| place == "history"), name == "http", "{flag} {name}");
        }
    }
}

/// An honest service, but for what it is told to do wrong: the reply is what `wrong` makes of the right one.
fn honest(
    wrong: impl Fn(&ReceivedMessage, Vec<String>) -> (u16, Vec<String>) + Send + Sync + 'static,
) -> Server {
    Server::start(move |asked, sessions| {
        let (session, word) = (asked.session(), asked.word());
        let words = {
            let mut sessions = sessions.lock().unwrap();
            let words = sessions.entry(session).or_default();
            words.extend(word);
            words.clone()
        };
        let (status, words) = wrong(asked, words);
        (status, json!({ "reply": words.join(" ") }).to_string())
    })
}

#[test]
fn leak_between_two_users_in_1_of_100_replies_is_found() {
    use std::sync::Mutex;
    let (last, replies) = (Mutex::new(None), Mutex::new(0));
    let server = honest(move |asked, mut words| {
        // Its last question tells nothing.
        if asked.session().ends_with("-3-session") && asked.word().is_some() {
            *last.lock().unwrap() = asked.word();
        }
        if asked.session().ends_with("-5-session") {
            *replies.lock().unwrap() += 1;
            if *replies.lock().unwrap() % 100 == 0 {
                words.extend(last.lock().unwrap().clone());
            }
        }
        (200, words)
    });
    let report = chat(&home(), server.url(), &["--users", "6", "--turns", "120"]).exit(1).json();
    assert_eq!(report["leaks"]["pairs"], json!([{"from": 3, "to": 5, "count": 1}]), "{report}");
    assert_eq!((&report["leaks"]["found"][0]["turn"], report["answered"].as_u64()), (&json!(100), Some(726)));
    assert_eq!((count(&report, "lost"), count(&report, "order"), count(&report, "doubled")), (0, 0, 0));
    // With too few turns it does not show.
    let server = honest(|_, words| (200, words));
    assert_eq!(chat(&home(), server.url(), &[]).exit(0).json()["verdict"], "clean");
}

#[test]
fn error_text_of_another_user_is_a_leak() {
    use std::sync::Mutex;
    let all = Mutex::new(Vec::new());
    let server = honest(move |asked, words| {
        all.lock().unwrap().extend(asked.word());
        let is_last = asked.word().is_none();
        if is_last { (500, all.lock().unwrap().clone()) } else { (200, words) }
    });
    let report = chat(&home(), server.url(), &["--users", "3", "--turns", "4"]).exit(1).json();
    assert!(count(&report, "leaks") > 0 && count(&report, "failed") == 3, "{report}");
    assert_eq!(report["leaks"]["found"][0]["where"], "error");
    assert_eq!(report["failed"]["reasons"], json!([{"reason": "HTTP status 500", "count": 3}]));
}

#[test]
fn echoing_agent_is_judged_for_leaks_only() {
    let scripted = ScriptedAgent::start(AgentOptions::of(Protocol::V1));
    let (v1, v03) = (PythonAgent::shared(Protocol::V1), PythonAgent::shared(Protocol::V03));
    for url in [scripted.url(), v1.url(), v03.url()] {
        let home = home();
        let words = ["probe", url, "--protocol", "a2a", "--users", "4", "--turns", "3"];
        let report = home.call(&words).arg("-ojson").ok().json();
        assert_eq!(
            (report["verdict"].as_str(), report["answered"].as_u64()),
            (Some("clean"), Some(16)),
            "{report}"
        );
        assert_eq!(report["order"]["judged"], false, "{report}");
        assert_eq!(report["replies"]["why_not"], "no reply repeats an earlier code word");
        assert_eq!(report["histories"]["count"], 4, "the tasks of every user are looked at: {report}");
        let text = home.call(&words).ok().stdout();
        assert!(
            text.contains("not judged: no reply repeats") && text.contains("the rest was not judged"),
            "{text}"
        );
        // Nothing of it is remembered.
        assert_eq!(home.call(&["conversation", "list", "-ojson"]).ok().json(), json!([]));
        assert_eq!(home.call(&["session", "list", "-ojson"]).ok().json(), json!([]));
    }
}

#[test]
fn service_without_history_is_inconclusive() {
    let server = honest(|_, _| (200, vec!["fine".to_owned()]));
    let report = chat(&home(), server.url(), &[]).exit(0).json();
    assert!(report["notes"][0].as_str().unwrap().starts_with("no reply contains a code word"), "{report}");
    assert_eq!(report["lost"]["judged"], false);
}

/// The verdict of a report for people.
fn conclusion(url: &str, flags: &[&str]) -> String {
    let text = home().call(&["probe", url]).args(CHAT).args(flags).args(&["--users", "2"]).ok().stdout();
    text.lines().find(|line| line.starts_with("clean:")).unwrap().to_owned()
}

#[test]
fn report_claims_only_what_was_judged() {
    const HISTORY: &[&str] =
        &["--history", "GET /history/{session}", "--history-items", "/items", "--history-text", "/content"];
    // Stores what users say, and says back what it is told to.
    let storing = |is_told: fn(usize) -> bool, is_read: fn(&str) -> bool| {
        Server::start(move |asked, sessions| {
            let mut sessions = sessions.lock().unwrap();
            if let Some(session) = asked.line.strip_prefix("GET /history/") {
                let said = sessions.get(session).cloned().unwrap_or_default();
                let items: Vec<Value> =
                    said.iter().map(|said| json!({ "role": "user", "content": said })).collect();
                let status = if is_read(session) { 200 } else { 500 };
                return (status, json!({ "items": items }).to_string());
            }
            let body: Value = serde_json::from_str(&asked.body).unwrap();
            let said = sessions.entry(asked.session()).or_default();
            said.push(body["message"].as_str().unwrap().to_owned());
            let word = |said: &String| Some(said.split(" is ").nth(1)?.split('.').next()?.to_owned());
            let words: Vec<String> = said.iter().filter_map(word).collect();
            let reply = if is_told(said.len()) { words.join(" ") } else { "fine".to_owned() };
            (200, json!({ "reply": reply }).to_string())
        })
    };
    let always: fn(usize) -> bool = |_| true;
    let anyone: fn(&str) -> bool = |_| true;
    let clean = "clean: no user saw another's code words, and none of them is lost, doubled or exchanged in ";
    let said = |rest: &str| format!("{clean}{rest}");
    let all = storing(always, anyone);
    assert_eq!(conclusion(all.url(), HISTORY), said("replies and stored histories"));
    assert_eq!(conclusion(all.url(), &[]), said("replies"));
    let silent = storing(|_| false, anyone);
    assert_eq!(
        conclusion(silent.url(), HISTORY),
        said("stored histories; replies were not judged for order and loss")
    );
    let sometimes = storing(|turn| turn != 3, anyone);
    assert_eq!(conclusion(sometimes.url(), &[]), said("the 10 replies that were judged"));
    let half = storing(always, |session| session.ends_with("-1-session"));
    assert_eq!(conclusion(half.url(), HISTORY), said("replies and the 1 stored histories that were read"));
    let other = [&HISTORY[..4], &["--history-text", "/role"]].concat();
    assert_eq!(
        conclusion(all.url(), &other),
        said("replies; stored histories were not judged for order and loss")
    );
}

#[test]
fn seed_determines_the_code_words() {
    let heard = |flags: &[&str]| {
        let server = honest(|_, words| (200, words));
        chat(&home(), server.url(), &["--users", "2", "--turns", "2"]).exit(0);
        chat(&home(), server.url(), &[flags, &["--users", "2", "--turns", "2"]].concat()).exit(0);
        let mut heard: Vec<String> = server.heard().iter().skip(6).map(|asked| asked.body.clone()).collect();
        heard.sort();
        heard
    };
    assert_eq!(heard(&["--seed", "7"]), heard(&["--seed", "7"]));
    assert_ne!(heard(&[]), heard(&[]));
}

#[test]
fn matrix_lists_only_leaking_users() {
    // Without it one of the two could end before the other starts, and leak in one direction only.
    let both_started = Barrier::new(2);
    let server = Server::start(move |asked, sessions| {
        let (session, word) = (asked.session(), asked.word());
        // Two users share one list, and nobody else does.
        let shares = ["-2-session", "-4-session"].iter().any(|end| session.ends_with(end));
        let first = sessions.lock().unwrap().insert(format!("seen {session}"), Vec::new()).is_none();
        let list = session.replace("-2-session", "-4-session");
        sessions.lock().unwrap().entry(list.clone()).or_default().extend(word);
        if shares && first {
            both_started.wait();
        }
        (200, json!({ "reply": sessions.lock().unwrap()[&list].join(" ") }).to_string())
    });
    let done =
        home().call(&["probe", server.url()]).args(CHAT).args(&["--users", "30", "--turns", "4"]).run();
    let text = done.exit(1).stdout();
    let matrix = text.split("(columns), by number\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let rows: Vec<Vec<&str>> = matrix.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!((rows.len(), &rows[0], rows[1][0], rows[2][0]), (3, &vec!["2", "4"], "2", "4"), "{text}");
    assert_eq!((rows[1][1], rows[2][2]), (".", "."), "{text}");
}

#[test]
fn openai_service_gets_the_history_unless_it_stores_it() {
    for (flags, lengths) in [(&[][..], [1, 3, 5]), (&["--stateful"], [1, 1, 1])] {
        let server = Server::start(|asked, _| {
            let words = asked.words().join(" ");
            (200, json!({"choices": [{"message": {"role": "assistant", "content": [{"type": "text", "text": words}]}}]}).to_string())
        });
        let url = format!("{}/v1", server.url());
        let words =
            ["probe", &url, "--protocol", "openai", "--model", "tiny", "--users", "2", "--turns", "2"];
        home().call(&words).args(flags).ok();
        let asked: Vec<Value> =
            server.heard().iter().map(|asked| serde_json::from_str(&asked.body).unwrap()).collect();
        let mut users: Vec<&str> = asked.iter().map(|asked| asked["user"].as_str().unwrap()).collect();
        users.sort_unstable();
        users.dedup();
        assert_eq!(users.len(), 2);
        for user in users {
            let own = asked.iter().filter(|asked| asked["user"] == user);
            let sent: Vec<usize> = own.map(|asked| asked["messages"].as_array().unwrap().len()).collect();
            assert_eq!(sent, lengths, "{flags:?}");
        }
        assert!(asked.iter().all(|asked| asked["model"] == "tiny" && asked["stream"] == false));
        assert!(server.heard().iter().all(|asked| asked.line == "POST /v1/chat/completions"));
    }
}
