//! Our own service, probed.

use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use sessile_wire::service::{BeginTurnResponse, LeaseTicket, ProblemDetails, ProblemReason, ServiceSession};
use testkit::{AgentAuth, AgentOptions, CallResult, Home, ScriptedAgent, TlsServer};

use super::count;
use super::server::{ReceivedMessage, Server};
use super::service::ProbedService;
use crate::home;

fn probe(home: &Home, service: &ProbedService, flags: &[&str]) -> CallResult {
    let args = ["probe", &service.url, "--protocol", "sessile", "-ojson", "--tokens", &service.tokens];
    home.call(&args).args(flags).run()
}

/// A chat endpoint that says the words which `which` chooses, of those in the request.
fn endpoint(
    which: impl Fn(&ReceivedMessage, &mut Vec<String>) -> Vec<String> + Send + Sync + 'static,
) -> Server {
    Server::start(move |asked, sessions| {
        assert_eq!(asked.line, "POST /v1/chat/completions");
        let words = which(asked, sessions.lock().unwrap().entry(String::new()).or_default());
        (200, json!({ "choices": [{ "message": { "content": words.join(" ") } }] }).to_string())
    })
}

fn places(report: &Value) -> Vec<&str> {
    report["leaks"]["places"].as_array().unwrap().iter().filter_map(|place| place["where"].as_str()).collect()
}

#[test]
fn service_without_upstream_is_judged_by_its_turns() {
    let home = home();
    let service = ProbedService::start(&home, 6, &[]);
    let report = probe(&home, &service, &["--users", "6", "--turns", "5"]).exit(0).json();
    assert_eq!((&report["verdict"], &report["answered"]), (&json!("clean"), &json!(36)), "{report}");
    assert_eq!((&report["replies"]["judged"], &report["histories"]["judged"]), (&json!(true), &json!(true)));
    // Again, in sessions of their own.
    probe(&home, &service, &["--users", "2", "--turns", "2"]).exit(0);
    let few = probe(&home, &service, &["--users", "7"]).exit(2).stderr();
    assert!(few.contains("6 tokens for 7 users"), "{few}");
}

#[test]
fn service_with_honest_upstream_passes() {
    let home = home();
    let upstream = endpoint(|asked, _| asked.words());
    let url = format!("{}/v1", upstream.url());
    let key = home.write("key", "sk-1\n");
    let flags =
        ["--upstream", &url, "--upstream-model", "small", "--upstream-key-file", key.to_str().unwrap()];
    let service = ProbedService::start(&home, 5, &flags);
    let report = probe(&home, &service, &["--users", "5", "--turns", "4"]).exit(0).json();
    assert_eq!((&report["verdict"], &report["answered"]), (&json!("clean"), &json!(25)), "{report}");
    assert_eq!((&report["replies"]["judged"], &report["histories"]["judged"]), (&json!(true), &json!(true)));
    let heard = upstream.heard();
    assert_eq!(heard.len(), 25, "each turn asked once");
    let has_key = |asked: &ReceivedMessage| {
        asked.headers.iter().any(|header| header.to_lowercase() == "authorization: bearer sk-1")
    };
    assert!(heard.iter().all(has_key), "{heard:?}");
}

#[test]
fn service_with_agent_upstream_passes() {
    let home = home();
    let guarded = AgentOptions::default().guarded(AgentAuth::Bearer, "sk-1", "service");
    let agent = ScriptedAgent::start(guarded);
    let key = home.write("key", "sk-1\n");
    let flags = [
        ["--upstream", agent.url()],
        ["--upstream-protocol", "a2a"],
        ["--upstream-key-file", key.to_str().unwrap()],
    ];
    let service = ProbedService::start(&home, 5, flags.as_flattened());
    let report = probe(&home, &service, &["--users", "5", "--turns", "4"]).exit(0).json();
    assert_eq!((&report["verdict"], &report["answered"]), (&json!("clean"), &json!(25)), "{report}");
    let contexts = agent.contexts();
    assert_eq!((contexts.len(), contexts.values().sum::<u64>()), (5, 25), "a context for each session");
}

#[test]
fn upstream_that_mixes_users_is_found() {
    let home = home();
    let upstream = endpoint(|asked, all| {
        all.extend(asked.words().pop());
        all.clone()
    });
    let url = format!("{}/v1", upstream.url());
    let service = ProbedService::start(&home, 4, &["--upstream", &url, "--upstream-model", "small"]);
    let report = probe(&home, &service, &["--users", "4", "--turns", "3"]).exit(1).json();
    assert!(count(&report, "leaks") > 5, "{report}");
    assert_eq!(places(&report), ["reply", "history"], "{report}");
}

/// Response of a service that started session `0199`.
fn started_session() -> String {
    let session = ServiceSession {
        id: "0199".to_owned(),
        name: None,
        context: None,
        labels: std::collections::BTreeMap::new(),
        settings: std::collections::BTreeMap::new(),
        revision: 1,
        started_ms: 0,
        used_ms: 0,
        expires_ms: 1,
        idle_ms: 1,
        max_ms: 1,
        ended_ms: None,
        end_reason: None,
        messages: 0,
    };
    json!(session).to_string()
}

#[test]
fn service_with_shared_history_is_found_by_its_turns() {
    let service = Server::start(|asked, sessions| {
        let mut sessions = sessions.lock().unwrap();
        let history = sessions.entry(String::new()).or_default();
        let messages = || -> Vec<Value> {
            history
                .iter()
                .zip(1..)
                .map(|(body, number)| {
                    let body: Value = serde_json::from_str(body).unwrap();
                    json!({ "number": number, "token": 7, "body": body, "at_ms": 0 })
                })
                .collect()
        };
        let path = asked.line.split(' ').nth(1).unwrap();
        match path {
            "/v1/sessions" => (201, started_session()),
            "/v1/sessions/0199/messages?reply=true" => {
                let problem = ProblemDetails {
                    kind: "urn:sessile:error:USAGE".to_owned(),
                    title: "usage".to_owned(),
                    status: 400,
                    detail: "in other words".to_owned(),
                    code: "USAGE".to_owned(),
                    retryable: false,
                    retry_after_ms: None,
                    revision: None,
                    reason: Some(ProblemReason::NoUpstream),
                };
                (400, json!(problem).to_string())
            }
            "/v1/sessions/0199/turns" => {
                let ticket =
                    LeaseTicket { token: 7, place: 1, holder: "h".into(), asked_ms: 0, expires_ms: 1 };
                let (session, history) = ("0199".to_owned(), messages());
                (201, json!(BeginTurnResponse { session, ticket, history }).to_string())
            }
            "/v1/sessions/0199/turns/7/commit" => {
                let body: Value = serde_json::from_str(&asked.body).unwrap();
                history.extend(body["messages"].as_array().unwrap().iter().map(Value::to_string));
                (200, json!({ "first": 1, "last": 2 }).to_string())
            }
            _ => (200, json!({ "messages": messages(), "next": null }).to_string()),
        }
    });
    let header = "Authorization: Bearer {user}";
    let args = ["probe", service.url(), "--protocol", "sessile", "--users", "3", "--turns", "3", "-ojson"];
    let report = home().call(&args).args(&["--header", header]).run().exit(1).json();
    assert!(count(&report, "leaks") > 5 && count(&report, "failed") == 0, "{report}");
    assert_eq!(places(&report), ["reply", "history"], "{report}");
    assert!(service.heard().iter().all(|asked| {
        asked.headers.iter().any(|header| header.to_lowercase().starts_with("authorization: bearer probe-"))
    }));
}

#[test]
fn insecure_upstream_with_a_key_is_refused_at_start() {
    let home = home();
    let serve =
        |flags: &[&str]| home.call(&["serve", "--listen", "127.0.0.1:0", "--upstream"]).args(flags).run();
    let model = ["--upstream-model", "small"];
    for url in ["http://ai.example/v1", "https://ann:hunter2@ai.example", "ftp://localhost", "ai.example"] {
        let told = serve(&[&[url], &model[..]].concat()).exit(2).stderr();
        assert!(told.contains("--upstream: ") && !told.contains("hunter2"), "{told}");
    }
    serve(&["http://127.0.0.1:1"]).exit(2);
    let agent = ["--upstream-protocol", "a2a"];
    serve(&[&["http://agent.example"], &agent[..]].concat()).exit(2);
    serve(&[&["http://127.0.0.1:1"], &agent[..], &model[..]].concat()).exit(2);
    serve(&[&["http://127.0.0.1:1", "--upstream-key-file", "none"], &model[..]].concat()).exit(5);
    home.write("key", "two lines\nof it");
    let key = home.path("key");
    serve(&[&["http://127.0.0.1:1", "--upstream-key-file", key.to_str().unwrap()], &model[..]].concat())
        .exit(2);
}

#[test]
fn upstream_with_untrusted_certificate_gets_no_request() {
    let (upstream, other) = (TlsServer::start(), TlsServer::start());
    let url = upstream.url("/v1");
    let flags = ["--upstream", &url, "--upstream-model", "small"];
    // It answers with something that is no reply; who is not trusted is not even asked.
    for (authority, code) in [(upstream.authority(), "AGENT_REFUSED"), (other.authority(), "UNREACHABLE")] {
        let home = home();
        let service = ProbedService::trusting(&home, 1, &flags, Some(&authority));
        let token = home.read("tokens");
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
        let post = |path: &str, body: &str| -> Value {
            let request = agent.post(format!("{}{path}", service.url)).content_type("application/json");
            let mut answer =
                request.header("authorization", format!("Bearer {}", token.trim())).send(body).unwrap();
            serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap()
        };
        let session = post("/v1/sessions", "{}");
        let path = format!("/v1/sessions/{}/messages?reply=true", session["id"].as_str().unwrap());
        let refused = post(&path, r#"{"messages": ["hello"]}"#);
        assert_eq!((&refused["code"], &refused["status"]), (&json!(code), &json!(502)), "{refused}");
    }
}

/// The sessions of all users, live or also those that have ended.
fn sessions(home: &Home, service: &ProbedService, live: bool) -> Vec<Value> {
    let of = |token: &str| -> Vec<Value> {
        let request = ureq::get(format!("{}/v1/sessions?live={live}&limit=100", service.url));
        let mut answer = request.header("authorization", format!("Bearer {token}")).call().unwrap();
        let page: Value = serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap();
        page["sessions"].as_array().unwrap().clone()
    };
    home.read("tokens").lines().flat_map(of).collect()
}

#[test]
fn probe_sessions_are_ended_unless_kept() {
    let home = home();
    let service = ProbedService::start(&home, 3, &[]);
    let few = ["--users", "3", "--turns", "2"];
    let report = probe(&home, &service, &few).exit(0).json();
    assert_eq!(report["sessions"], json!({ "started": 3, "ended": 3 }), "{report}");
    assert_eq!((sessions(&home, &service, true), sessions(&home, &service, false).len()), (Vec::new(), 3));
    let report = probe(&home, &service, &[&few[..], &["--keep"]].concat()).exit(0).json();
    assert_eq!(report["sessions"], json!({ "started": 3, "ended": 0 }), "{report}");
    let live = sessions(&home, &service, true);
    let label = report["user_names"].as_str().unwrap().trim_end_matches('N').to_owned();
    let is_own = |session: &Value| session["labels"]["probe"].as_str().unwrap().starts_with(&label);
    assert!(live.len() == 3 && live.iter().all(is_own), "{live:?}");
    let text = home
        .call(&[
            "probe",
            &service.url,
            "--protocol",
            "sessile",
            "--users",
            "2",
            "--tokens",
            "tokens",
            "--keep",
        ])
        .ok()
        .stdout();
    assert!(text.contains("note: kept 2 sessions with the label probe=probe-"), "{text}");
    // Others leave nothing that could be ended.
    let args = ["probe", "http://127.0.0.1:1", "--protocol", "openai", "--model", "m", "--keep"];
    let told = home.call(&args).run().exit(2).stderr();
    assert!(told.contains("--keep cannot be used with --protocol openai"), "{told}");
}

#[test]
fn interrupted_probe_ends_its_sessions() {
    let home = home();
    // Without the lock on the sessions: a reply that hangs must not hold up the first reply of another user.
    let upstream = Server::start(|asked, _| {
        if asked.words().len() > 1 {
            std::thread::sleep(Duration::from_secs(600));
        }
        (200, json!({ "choices": [{ "message": { "content": asked.words().join(" ") } }] }).to_string())
    });
    let url = format!("{}/v1", upstream.url());
    let service = ProbedService::start(&home, 3, &["--upstream", &url, "--upstream-model", "small"]);
    let args = ["probe", &service.url, "--protocol", "sessile", "-ojson", "--tokens", &service.tokens];
    let mut command = home.call(&args).args(&["--users", "3"]).command();
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    crate::eventually("all hang", || upstream.heard().len() >= 6);
    assert_eq!(sessions(&home, &service, true).len(), 3);
    let begun = Instant::now();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.code() == Some(130) && begun.elapsed() < Duration::from_secs(10), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["sessions"], json!({ "started": 3, "ended": 3 }), "{report}");
    assert_eq!(sessions(&home, &service, true), Vec::<Value>::new());
}

#[test]
fn session_that_cannot_be_ended_is_reported() {
    let service = Server::start(|asked, _| match asked.line.split(' ').next().unwrap() {
        "DELETE" => (503, "{}".to_owned()),
        _ if asked.line.ends_with("/sessions") => (201, started_session()),
        "GET" => (200, json!({ "messages": [], "next": null }).to_string()),
        _ => (
            200,
            json!({ "first": 1, "last": 2, "reply": { "number": 2, "body": { "content": "fine" } } })
                .to_string(),
        ),
    });
    let args = ["probe", service.url(), "--protocol", "sessile", "--users", "2", "--turns", "1"];
    let text = home().call(&args).ok().stdout();
    assert!(text.contains("note: could not stop 2 of 2 sessions: HTTP status 503"), "{text}");
}

#[test]
fn address_with_version_path_is_accepted() {
    let home = home();
    let service = ProbedService::start(&home, 2, &[]);
    let url = format!("{}/v1", service.url);
    let args = ["probe", &url, "--protocol", "sessile", "--users", "2", "--tokens", &service.tokens];
    let told = home.call(&args).run().exit(1).stderr();
    assert!(told.contains("was refused with status 404"), "{told}");
    assert!(told.contains(&format!("leave /v1 out: {}\n", service.url)), "{told}");
}

#[test]
fn missing_token_is_reported_with_a_hint() {
    let home = home();
    let service = ProbedService::start(&home, 2, &[]);
    let args = ["probe", &service.url, "--protocol", "sessile", "--users", "2", "--turns", "1"];
    let login = format!("sessile auth login --server {}", service.url);
    let told = home.call(&args).run().exit(8).stderr();
    assert!(told.contains(&format!("the service at {} requires a valid token", service.url)), "{told}");
    assert!(told.contains("--tokens FILE") && told.contains(&login), "{told}");
    assert!(!told.contains("agent") && !told.contains("auth set"), "{told}");
    let told = home.call(&args).arg("-ojson").run().exit(8);
    assert_eq!(
        (told.code().as_str(), &told.json_error()["fix_command"]),
        ("CREDENTIAL_REJECTED", &json!(login))
    );
    // What the hint says helps.
    let token = home.read("tokens").lines().next().unwrap().to_owned();
    home.call(&["auth", "login", "--server", &service.url, "--token-stdin"]).stdin(token).ok();
    home.call(&args).ok();
    // A token that may not do it is another matter.
    let store = home.path("service.db");
    let make = ["user", "token", "create", "u1", "--scope", "read", "--store", store.to_str().unwrap()];
    let reader = home.call(&make).ok().stdout();
    home.write("readers", format!("{0}\n{0}\n", reader.trim()));
    let told = home.call(&args).args(&["--tokens", "readers"]).run().exit(8).stderr();
    assert!(told.contains("rejected the token (status 403)") && told.contains("scope"), "{told}");
    assert!(!told.contains(reader.trim()), "{told}");
}

#[test]
fn number_of_tokens_limits_the_users_of_a_round() {
    let home = home();
    let service = ProbedService::start(&home, 4, &[]);
    let report = probe(&home, &service, &["--turns", "2", "--max-requests", "30"]).exit(0).json();
    let users: Vec<&Value> =
        report["rounds"].as_array().unwrap().iter().map(|round| &round["users"]).collect();
    assert_eq!(
        (users, &report["verdict"]),
        (vec![&json!(4), &json!(4), &json!(2)], &json!("clean")),
        "{report}"
    );
    assert_eq!(report["sessions"], json!({ "started": 10, "ended": 10 }), "{report}");
    home.write("one", home.read("tokens").lines().next().unwrap());
    let args = ["probe", &service.url, "--protocol", "sessile", "--tokens", "one"];
    let told = home.call(&args).run().exit(2).stderr();
    assert!(told.contains("1 tokens for 2 users"), "{told}");
}

#[test]
fn tokens_are_refused_by_other_protocols() {
    let home = home();
    let args = ["probe", "http://127.0.0.1:1", "--protocol", "openai", "--model", "m", "--tokens", "x"];
    let told = home.call(&args).run().exit(2).stderr();
    assert!(told.contains("--tokens cannot be used with --protocol openai"), "{told}");
    let args = ["probe", "http://127.0.0.1:1", "--protocol", "sessile", "--tokens", "missing"];
    home.call(&args).run().exit(5);
}
