//! The client of agents: cards that cannot be used, credentials that are refused, parts, plain http, signatures.

use serde_json::{Value, json};
use testkit::{AgentAuth, AgentOptions, Protocol, ScriptedAgent};

use super::fixed::{FixedAgent, card, message, rpc, task};
use crate::home;

const SECRET: &str = "s3cret-token";

#[test]
fn plain_http_is_allowed_per_agent_and_never_with_a_credential() {
    let (home, agent) = (home(), FixedAgent::with_card(|_| ()));
    let url = agent.foreign_url();
    let refused = home.call(&["message", "send", &url, "hi"]).run().exit(7);
    assert!(refused.stderr().contains("--allow-http"), "{}", refused.told());
    home.call(&["agent", "add", "docker", &url, "--global"]).run().exit(2);
    assert!(agent.seen().is_empty(), "nothing was sent: {:?}", agent.seen());
    home.call(&["agent", "add", "docker", &url, "--allow-http", "--global"]).ok();
    assert_eq!(home.call(&["message", "send", "docker", "hi"]).ok().stdout(), "hi\n");
    assert_eq!(
        home.call(&["message", "send", &url, "hi"]).ok().stdout(),
        "hi\n",
        "the agent's URL reaches the same agent"
    );
    let shown = home.call(&["agent", "show", "docker"]).ok().stdout();
    assert!(shown.contains("plain http is allowed"), "{shown}");
    home.call(&["agent", "validate", "docker"]).ok();
    let before = agent.seen().len();
    // By a variable, by a header, by the vault.
    let by_variable =
        home.call(&["message", "send", "docker", "hi", "--bearer-env", "TOKEN"]).env("TOKEN", SECRET);
    assert!(by_variable.run().exit(2).stderr().contains("without https"));
    let file = home.write_private("token", SECRET);
    let header = format!("X-Token: @{}", file.display());
    home.call(&["message", "send", "docker", "hi", "--header", &header]).run().exit(2);
    home.call(&["auth", "set", "bot", "--secret-stdin", "--site", "https://a.example"]).stdin(SECRET).ok();
    home.call(&["message", "send", "docker", "hi", "--credential", "bot"]).run().exit(7);
    let told = format!("{:?}", agent.seen());
    assert!(!told.contains(SECRET) && agent.seen().len() == before, "{told}");
    home.call(&["agent", "add", "x", &url, "--allow-http", "--with-credential", "bot", "--global"])
        .run()
        .exit(2);
}

#[test]
fn redirect_from_plain_http_stays_at_its_origin() {
    let (home, other) = (home(), FixedAgent::with_card(|_| ()));
    let there = format!("Location: {}/x.json\r\n", other.foreign_url());
    let there: &'static str = there.leak();
    let agent = FixedAgent::start(move |_, _| (302, there, String::new()));
    home.call(&["agent", "add", "docker", &agent.foreign_url(), "--allow-http", "--global"]).ok();
    home.call(&["message", "send", "docker", "hi"]).run().exit(7);
    assert!(other.seen().is_empty());
}

#[test]
fn hint_of_a_refusal_follows_the_card() {
    let home = home();
    for (auth, hint) in [
        (AgentAuth::Bearer, "auth set --url"),
        (AgentAuth::Basic, "--basic USER"),
        (AgentAuth::ApiKeyHeader("X-Agent-Key".into()), "--api-key --api-key-header X-Agent-Key"),
        (AgentAuth::ApiKeyQuery("key".into()), "--api-key"),
    ] {
        let agent = ScriptedAgent::start(AgentOptions::of(Protocol::V1).guarded(auth.clone(), SECRET, "ann"));
        let none = home.call(&["message", "send", agent.url(), "whoami"]).run().exit(8);
        assert!(none.stderr().contains("requires a credential (status 401)"), "{auth:?} {}", none.told());
        assert!(none.stderr().contains(hint), "{auth:?} {}", none.told());
        let wrong =
            home.call(&["message", "send", agent.url(), "whoami", "--bearer-env", "T"]).env("T", "wrong");
        let wrong = wrong.run().exit(8);
        assert!(wrong.stderr().contains("rejected the credential (status 401)"), "{auth:?} {}", wrong.told());
        assert!(wrong.stderr().contains("replace the credential"), "{auth:?} {}", wrong.told());
    }
}

#[test]
fn credential_in_a_variable_is_sent_where_the_card_wants_it() {
    let home = home();
    for (auth, flag) in [
        (AgentAuth::Bearer, "--bearer-env"),
        (AgentAuth::ApiKeyHeader("X-Agent-Key".into()), "--api-key-env"),
        (AgentAuth::ApiKeyQuery("key".into()), "--api-key-env"),
        (AgentAuth::ApiKeyCookie("key".into()), "--api-key-env"),
    ] {
        let agent = ScriptedAgent::start(AgentOptions::of(Protocol::V1).guarded(auth.clone(), SECRET, "ann"));
        let call = home.call(&["message", "send", agent.url(), "whoami", flag, "AGENT_SECRET", "--debug"]);
        let done = call.env("AGENT_SECRET", SECRET).ok();
        assert!(done.stdout().contains("ann"), "{auth:?} {}", done.told());
        assert!(
            done.stderr().contains("> POST ") && done.stderr().contains("< status 200"),
            "{}",
            done.told()
        );
        assert!(!done.stderr().contains(SECRET), "{auth:?} {}", done.told());
        let file = home.write_private("agent.env", format!("# mine\nexport OTHER='{SECRET}'\n"));
        let file = file.to_string_lossy().into_owned();
        let by_file =
            home.call(&["message", "send", agent.url(), "whoami", flag, "OTHER", "--env-file", &file]);
        assert!(by_file.ok().stdout().contains("ann"), "{auth:?}");
    }
    let agent = ScriptedAgent::start(AgentOptions::of(Protocol::V1));
    let unset =
        home.call(&["message", "send", agent.url(), "echo x", "--bearer-env", "NOT_SET"]).run().exit(2);
    assert!(unset.stderr().contains("a variable that is set"), "{}", unset.told());
    for flag in ["--bearer-env", "--api-key-env"] {
        for output in ["text", "json"] {
            let args = ["message", "send", agent.url(), "hi", flag, SECRET, "--output", output];
            let call = home.call(&args).run().exit(2);
            let told = call.stdout() + &call.stderr();
            assert!(!told.contains(SECRET), "a secret in the place of a name: {told}");
        }
    }
}

#[test]
fn invalid_interface_url_names_the_card() {
    let home = home();
    for bad in ["nowhere", "http://agent.example/rpc", "ftp://agent.example/rpc", "/rpc"] {
        let agent = FixedAgent::with_card(move |card| card["supportedInterfaces"][0]["url"] = bad.into());
        let told = home.call(&["message", "send", &agent.url(), "hi"]).run().exit(1).stderr();
        assert!(
            told.contains("invalid interface URL") && told.contains("card") && told.contains(bad),
            "{told}"
        );
    }
}

#[test]
fn required_extension_is_declared_or_refused() {
    let home = home();
    let agent = FixedAgent::with_card(|card| {
        card["capabilities"]["extensions"] = json!([{"uri": "urn:a"}, {"uri": "urn:b", "required": true}]);
    });
    let refused = home.call(&["message", "send", &agent.url(), "hi"]).run().exit(1);
    assert!(refused.stderr().contains("requires the extension urn:b"), "{}", refused.told());
    assert!(refused.stderr().contains("--extension urn:b"), "{}", refused.told());
    assert!(agent.calls().is_empty());
    home.call(&["message", "send", &agent.url(), "hi", "--extension", "urn:b"]).ok();
    assert!(agent.calls()[0].head.contains("a2a-extensions: urn:b"), "{:?}", agent.calls());
}

#[test]
fn unknown_state_is_an_error_and_an_unspecified_one_is_not() {
    let home = home();
    let agent = FixedAgent::start(|seen, base| match seen.head.starts_with("get") {
        true => (200, "", card(base).to_string()),
        false if seen.body.contains("SendMessage") => {
            (200, "", rpc(&json!({"task": task("TASK_STATE_PAUSED", &json!([]))})))
        }
        false => (200, "", rpc(&task("TASK_STATE_PAUSED", &json!([])))),
    });
    for args in [&["message", "send", "URL", "hi"][..], &["task", "get", "t", "--url", "URL"]] {
        let args: Vec<String> = args.iter().map(|word| word.replace("URL", &agent.url())).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let told = home.call(&args).run().exit(1).stderr();
        assert!(told.contains("unknown state: \"TASK_STATE_PAUSED\""), "{told}");
    }
    let agent = FixedAgent::start(|seen, base| match seen.head.starts_with("get") {
        true => (200, "", card(base).to_string()),
        false => (200, "", rpc(&task("TASK_STATE_UNSPECIFIED", &json!([])))),
    });
    home.call(&["task", "get", "t", "--url", &agent.url()]).ok();
    let waits =
        ["task", "get", "t", "--url", &agent.url(), "--wait", "--timeout", "3s", "--poll-interval", "700ms"];
    home.call(&waits).run().exit(10);
    // At most one a pause; on a busy machine fewer.
    let polls = agent.calls().len();
    assert!((3..9).contains(&polls), "{polls}");
}

#[test]
fn parts_of_artifacts_are_printed_in_order() {
    let home = home();
    let artifacts = json!([
        {"artifactId": "a", "name": "one", "parts": [{"text": "first"}, {"data": {"n": 1}}]},
        {"artifactId": "b", "name": "two", "parts": [
            {"raw": "AP8+", "filename": "x.bin", "mediaType": "application/x"},
            {"url": "https://files.example/y", "filename": "y.txt"}, {"hologram": 7}]},
        {"artifactId": "c", "parts": []},
    ]);
    let agent = FixedAgent::start(move |seen, base| match seen.head.starts_with("get") {
        true => (200, "", card(base).to_string()),
        false if seen.body.contains("GetTask") => (200, "", rpc(&task("TASK_STATE_COMPLETED", &artifacts))),
        false => (200, "", rpc(&json!({"task": task("TASK_STATE_COMPLETED", &artifacts)}))),
    });
    let url = agent.url();
    let lines = [
        "[artifact one]",
        "first",
        "\"n\": 1",
        "[artifact two]",
        "[file x.bin (application/x, 3 bytes)]",
        "[file y.txt: https://files.example/y]",
        "[part of an unknown kind: {\"hologram\":7}]",
        "[artifact c]",
        "[no content]",
    ];
    for args in [&["message", "send", &url, "hi"][..], &["task", "get", "t", "--url", &url]] {
        let done = home.call(args).ok();
        let mut rest = done.stdout();
        for line in lines {
            let at = rest
                .find(line)
                .unwrap_or_else(|| panic!("{line} is missing or out of order: {}", done.told()));
            rest = rest[at..].to_owned();
        }
    }
    let note = home.call(&["message", "send", &url, "hi"]).ok().stderr();
    assert!(note.contains(&format!("sessile task get t --url {url} --save-artifacts DIR")), "{note}");
    let saved =
        home.call(&["task", "get", "t", "--url", &url, "--save-artifacts", "out", "-ojson"]).ok().json();
    assert_eq!(saved["saved"].as_array().unwrap().len(), 5, "{saved}");
    home.call(&["task", "download", "t", "--url", &url, "--dir", "out2"]).ok();
    assert_eq!(std::fs::read(home.path("out2/x.bin")).unwrap(), [0, 255, 62]);
}

#[test]
fn streamed_tokens_are_one_line_and_shown_once() {
    let home = home();
    let status = |text: &str| {
        let said = json!({"messageId": text, "role": "ROLE_AGENT", "parts": [{"text": text}]});
        json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING", "message": said}}})
    };
    let whole = json!({"artifactUpdate": {"taskId": "t", "contextId": "c", "lastChunk": true,
        "artifact": {"artifactId": "a", "parts": [{"text": "The answer is 42."}]}}});
    let end = json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}});
    let tokens: Vec<Value> = ["The", " answer", " is", " 42", "."].map(status).to_vec();
    let events: Vec<Value> = tokens.into_iter().chain([status("The answer is 42."), whole, end]).collect();
    let body: String = events.iter().map(|event| format!("data: {}\n\n", rpc(event))).collect();
    let agent = FixedAgent::start(move |seen, base| match seen.head.starts_with("get") {
        true => {
            let mut card = card(base);
            card["capabilities"]["streaming"] = true.into();
            (200, "", card.to_string())
        }
        false => (200, "Content-Type: text/event-stream\r\n", body.clone()),
    });
    for word in ["stream", "send"] {
        let done = home.call(&["message", word, &agent.url(), "hi"]).ok();
        assert_eq!(done.stdout(), "The answer is 42.\n", "{word} {}", done.told());
    }
    let raw = home.call(&["message", "send", &agent.url(), "hi", "--stream", "--raw"]).ok().stdout();
    let last: Value = serde_json::from_str(raw.lines().last().unwrap()).unwrap();
    assert_eq!(
        (raw.lines().count(), &last["statusUpdate"]["status"]["state"]),
        (8, &"TASK_STATE_COMPLETED".into())
    );
}

#[test]
fn parts_keep_the_order_of_the_command_line() {
    let (home, agent) = (home(), FixedAgent::with_card(|_| ()));
    home.write("r.bin", b"\x00\x01");
    home.write("d.json", b"{\"k\": 1}");
    let url = agent.url();
    let args = [
        "message",
        "send",
        "--url",
        &url,
        "--data",
        "d.json",
        "--text",
        "middle",
        "--media-type",
        "text/markdown",
        "--file",
        "r.bin",
        "--media-type",
        "application/pdf",
        "--file",
        "https://files.example/a/b.png?x=1",
        "--data",
        "[1]",
        "--metadata",
        r#"{"role":"admin"}"#,
    ];
    home.call(&args).ok();
    let body: Value = serde_json::from_str(&agent.calls()[0].body).unwrap();
    let expected = json!([
        {"data": {"k": 1}},
        {"text": "middle", "mediaType": "text/markdown"},
        {"raw": "AAE=", "filename": "r.bin", "mediaType": "application/pdf"},
        {"url": "https://files.example/a/b.png?x=1", "filename": "b.png", "mediaType": "image/png"},
        {"data": [1]},
    ]);
    assert_eq!(body["params"]["message"]["parts"], expected);
    assert_eq!(body["params"]["metadata"], json!({"role": "admin"}));
    let first =
        home.call(&["message", "send", "--url", &url, "--media-type", "text/plain", "--text", "x"]).run();
    assert!(first.exit(2).stderr().contains("--media-type must follow"));
}

#[test]
fn json_payload_replaces_flags_and_refuses_secrets() {
    let (home, agent) =
        (home(), FixedAgent::with_card(|card| card["capabilities"]["pushNotifications"] = true.into()));
    let url = agent.url();
    let payload = r#"{"text": "from json", "context_id": "c9", "push_url": "https://hook.example", "push_token": "t0k"}"#;
    home.call(&["message", "send", &url, "--json", payload]).run().exit(2);
    assert!(agent.calls().is_empty());
    home.write("p.json", payload);
    home.call(&["message", "send", &url, "--json", "@p.json"]).ok();
    let body: Value = serde_json::from_str(&agent.calls()[0].body).unwrap();
    assert_eq!(body["params"]["message"]["parts"][0]["text"], "from json");
    assert_eq!(body["params"]["message"]["contextId"], "c9");
    assert_eq!(body["params"]["configuration"]["taskPushNotificationConfig"]["token"], "t0k");
    home.call(&["message", "send", &url, "hi", "--push-url", "https://h.example", "--push-token", "t0k"])
        .run()
        .exit(2);
    let push =
        home.call(&["message", "send", &url, "hi", "--push-url", "https://h.example", "--push-token", "-"]);
    let done = push.stdin("t0k2\n").args(&["--debug"]).ok();
    assert!(agent.calls()[1].body.contains("t0k2") && !done.stderr().contains("t0k2"), "{}", done.told());
}

#[test]
fn card_in_a_file_and_a_bare_host_name_the_agent() {
    let (home, agent) = (home(), FixedAgent::with_card(|_| ()));
    let file = home.write("card.json", card(&agent.url()).to_string());
    let at = format!("file://{}", file.display());
    for named in ["./card.json", "card.json", &at, agent.url().trim_start_matches("http://")] {
        let done = home.call(&["message", "send", named, "hi"]).ok();
        assert_eq!(done.stdout(), "hi\n", "{named} {}", done.told());
    }
    let validated = home.call(&["agent", "validate", "--file", "card.json", "-ojson"]).ok().json();
    assert_eq!(validated["valid"], true);
    home.call(&["agent", "validate", "--file", "missing.json"]).run().exit(5);
    home.call(&["message", "send", "agent.invalid/x", "hi"]).run().exit(12);
}

#[test]
fn transport_and_version_are_chosen_by_the_user() {
    let (home, agent) = (home(), ScriptedAgent::start(AgentOptions::of(Protocol::V1)));
    home.call(&["message", "send", agent.url(), "echo x"]).ok();
    assert!(agent.last("/rpc").is_some() && agent.last("/rest").is_none());
    let rest =
        ["message", "send", agent.url(), "echo x", "--transport", "http+json", "--transport", "jsonrpc"];
    home.call(&rest).ok();
    assert!(agent.seen().iter().any(|seen| seen.path.starts_with("/rest")), "{:?}", agent.seen());
    home.call(&["message", "send", agent.url(), "echo x", "--transport", "grpc"]).run().exit(2);
    let old = home.call(&["message", "send", agent.url(), "echo x", "--a2a-version", "0.3"]).run().exit(1);
    assert!(old.stderr().contains("none of the agent's interfaces"), "{}", old.told());
    home.call(&["message", "send", "https://agent.invalid", "hi", "--insecure"]).run().exit(2);
}

#[test]
fn signatures_of_a_card_are_checked() {
    let home = home();
    let signed: Value = serde_json::from_str(include_str!("signed_card.json")).unwrap();
    home.write("jwks.json", signed["jwks"].to_string());
    let validate = |name: &str, card: &Value| {
        home.write(name, card.to_string());
        home.call(&["agent", "validate", "--file", name, "--jwks", "jwks.json", "-ojson"]).run()
    };
    let good = validate("good.json", &signed["card"]);
    assert_eq!(good.exit(0).json()["signatures"], json!(["verified"]));
    let mut changed = signed["card"].clone();
    changed["name"] = "another".into();
    let changed = validate("changed.json", &changed).exit(1).json();
    assert_eq!((&changed["signatures"], &changed["valid"]), (&json!(["invalid"]), &json!(false)));
    let mut none = signed["card"].clone();
    // {"alg":"none"}
    none["signatures"] = json!([{"protected": "eyJhbGciOiJub25lIn0", "signature": ""}]);
    assert!(validate("none.json", &none).exit(1).stdout().contains("unsigned: alg is none"));
    let unknown = home.call(&["agent", "validate", "--file", "good.json", "-ojson"]).ok().json();
    assert_eq!(unknown["signatures"], json!(["unverifiable"]), "no keys");
    let ssrf = FixedAgent::with_card(|_| ());
    let at = ssrf.url();
    let agent = FixedAgent::with_card(move |card| {
        let protected =
            testkit_base64(&json!({"alg": "ES256", "kid": "k", "jku": format!("{at}/keys")}).to_string());
        card["signatures"] = json!([{"protected": protected, "signature": "AAAA"}]);
    });
    home.call(&["agent", "validate", &agent.url()]).ok();
    assert!(ssrf.seen().is_empty(), "a card makes this machine ask no other origin without https");
}

/// base64url without padding.
fn testkit_base64(text: &str) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let number =
            chunk.iter().fold(0u32, |sum, byte| sum << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for at in 0..=chunk.len() {
            out.push(char::from(LETTERS[(number >> (18 - 6 * at) & 63) as usize]));
        }
    }
    out
}

#[test]
fn invisible_characters_fail_validation_and_are_escaped() {
    let home = home();
    for hidden in ['\u{e0041}', '\u{2028}', '\u{ad}', '\u{3164}', '\u{1b}', '\u{202e}'] {
        let agent = FixedAgent::start(move |seen, base| match seen.head.starts_with("get") {
            true => {
                let mut card = card(base);
                card["skills"][0]["name"] = format!("s{hidden}s").into();
                (200, "", card.to_string())
            }
            false => (200, "", rpc(&json!({"message": message(&format!("a{hidden}b"))}))),
        });
        let url = agent.url();
        let told = home.call(&["agent", "validate", &url]).run().exit(1);
        assert!(
            told.stdout().contains("skills[0].name has control or invisible characters"),
            "{}",
            told.told()
        );
        for args in [
            &["message", "send", &url, "hi"][..],
            &["agent", "show", &url],
            &["agent", "card", &url],
            &["message", "send", &url, "hi", "-ojson"],
            &["message", "send", &url, "hi", "--raw"],
            &["message", "send", &url, "hi", "--debug"],
            &["agent", "card", &url, "--raw"],
        ] {
            let done = home.call(args).ok();
            assert!(
                !done.stdout().contains(hidden) && !done.stderr().contains(hidden),
                "{args:?} {hidden:?}"
            );
        }
    }
}

#[test]
fn agent_add_requires_a_scope() {
    let (home, agent) = (home(), FixedAgent::with_card(|_| ()));
    let told = home.call(&["agent", "add", "x", &agent.url()]).run().exit(2);
    assert!(told.stderr().contains("--global") && told.stderr().contains("--dir"), "{}", told.told());
    home.call(&["session", "start", "--name", "work"]).ok();
    home.call(&["agent", "add", "x", &agent.url(), "--session", "work"]).ok();
    home.call(&["message", "send", "x", "hi", "--session", "work"]).ok();
    home.call(&["message", "send", "x", "hi"]).run().exit(5);
}

#[test]
fn static_headers_are_sent_and_no_secret_is_kept() {
    let (home, agent) = (home(), FixedAgent::with_card(|_| ()));
    let secret = home.write_private("key", SECRET);
    let by_file = format!("X-Secret: @{}", secret.display());
    let url = agent.url();
    home.call(&["agent", "add", "x", &url, "-H", "X-Secret: plain", "--global"]).run().exit(2);
    home.call(&["config", "set", "agents.x.headers", "Authorization: Bearer x", "--global"]).run().exit(2);
    home.call(&["agent", "add", "x", &url, "-H", "X-Team: blue", "-H", &by_file, "--global"]).ok();
    home.call(&["message", "send", "x", "hi"]).ok();
    let head = &agent.calls()[0].head;
    assert!(head.contains("x-team: blue") && head.contains(&format!("x-secret: {SECRET}")), "{head}");
    assert!(!home.read(".config/sessile/config.toml").contains(SECRET));
    let all = home.call(&["agent", "validate", "--all", "-ojson"]).ok().json();
    assert_eq!((all.as_array().unwrap().len(), &all[0]["valid"]), (1, &json!(true)));
    home.call(&["agent", "add", "gone", "http://127.0.0.1:1", "--global"]).ok();
    home.call(&["agent", "validate", "--all"]).run().exit(1);
}

#[test]
fn result_that_a_stream_left_out_is_fetched() {
    let home = home();
    let agent = FixedAgent::start(|seen, base| match seen.head.starts_with("get") {
        true => {
            let mut card = card(base);
            card["capabilities"]["streaming"] = true.into();
            (200, "", card.to_string())
        }
        false if seen.body.contains("GetTask") => {
            let artifacts = json!([{"artifactId": "a", "parts": [{"text": "the result"}]}]);
            (200, "", rpc(&task("TASK_STATE_COMPLETED", &artifacts)))
        }
        false => {
            let update = |state: &str| {
                let status = json!({"taskId": "t", "contextId": "c", "status": {"state": state}});
                format!("data: {}\n\n", rpc(&json!({ "statusUpdate": status })))
            };
            let body = update("TASK_STATE_WORKING") + &update("TASK_STATE_COMPLETED");
            (200, "Content-Type: text/event-stream\r\n", body)
        }
    });
    for word in ["send", "stream"] {
        let done = home.call(&["message", word, &agent.url(), "hi"]).ok();
        assert_eq!(done.stdout(), "the result\n", "{word} {}", done.told());
    }
}

#[test]
fn card_is_cached_with_its_etag() {
    let home = home();
    let agent = FixedAgent::start(|seen, base| match seen.head.starts_with("get") {
        true if seen.head.contains("if-none-match: \"one\"") => (304, "ETag: \"one\"\r\n", String::new()),
        true => (200, "ETag: \"one\"\r\n", card(base).to_string()),
        false => (200, "", rpc(&json!({"message": message("hi")}))),
    });
    let url = agent.url();
    for _ in 0..2 {
        assert_eq!(home.call(&["message", "send", &url, "hi"]).ok().stdout(), "hi\n");
    }
    let cards: Vec<_> = agent.seen().into_iter().filter(|seen| seen.head.starts_with("get")).collect();
    assert!(!cards[0].head.contains("if-none-match") && cards[1].head.contains("if-none-match"), "{cards:?}");
    let shown = home.call(&["status", "--show-state-files"]).ok().stdout();
    assert!(shown.contains("agent-cards"), "{shown}");
    // A damaged file is fetched again.
    let dir = home.path(".cache/sessile/agent-cards");
    let file = std::fs::read_dir(&dir).unwrap().next().unwrap().unwrap().path();
    std::fs::write(&file, "{").unwrap();
    assert_eq!(home.call(&["message", "send", &url, "hi"]).ok().stdout(), "hi\n");
    std::fs::remove_file(&file).unwrap();
    home.call(&["message", "send", &url, "hi", "--bearer-env", "T"]).env("T", SECRET).ok();
    assert!(std::fs::read_dir(&dir).unwrap().next().is_none(), "a card for a credential is not cached");
}
