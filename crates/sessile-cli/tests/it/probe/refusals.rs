//! What is not probed, what is no result, and what ends early.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{AgentOptions, Protocol, ScriptedAgent};

use super::server::Server;
use super::{CHAT, chat, honest};
use crate::home;

#[test]
fn remote_host_is_probed_only_when_allowed() {
    let home = home();
    let url = "https://agents.invalid:8443/v1";
    let probe =
        |flags: &[&str]| home.call(&["probe", url, "--protocol", "openai", "--model", "x"]).args(flags).run();
    for flags in [&[][..], &["--allow-host", "invalid"], &["--allow-host", "agents.invalid:8443"]] {
        let told = probe(flags).exit(2).stderr();
        assert!(told.contains("load test") && told.contains("--allow-host agents.invalid"), "{told}");
    }
    probe(&["--allow-host", "AGENTS.invalid", "--users", "2", "--turns", "1"]).exit(12);
    // A card may name any machine.
    let lure = AgentOptions {
        card_origin: Some("https://agents.invalid".to_owned()),
        ..AgentOptions::of(Protocol::V1)
    };
    let lure = ScriptedAgent::start(lure);
    let told = home.call(&["probe", lure.url(), "--protocol", "a2a"]).run().exit(2).stderr();
    assert!(told.contains("--allow-host agents.invalid"), "{told}");
}

#[test]
fn remote_host_error_names_all_required_flags() {
    let home = home();
    let probe = |flags: &[&str]| {
        let url = "http://agents.invalid:8080/v1";
        let words = ["probe", url, "--protocol", "openai", "--model", "x"];
        home.call(&words).args(flags).run().exit(2).stderr()
    };
    let told = probe(&[]);
    assert!(told.contains("another machine") && told.contains("over https only"), "{told}");
    assert!(
        told.contains("load test of up to 2000 requests") && told.contains("--allow-host agents.invalid"),
        "{told}"
    );
    let allowed = probe(&["--allow-host", "agents.invalid"]);
    assert!(allowed.contains("over https only") && !allowed.contains("--allow-host"), "{allowed}");
    assert!(!told.contains("credential") && !allowed.contains("credential"), "{told}{allowed}");
    // Whatever else is wrong with an address is told as ever.
    let odd =
        home.call(&["probe", "http://ann:hunter2@a.invalid", "--protocol", "a2a"]).run().exit(2).stderr();
    assert!(odd.contains("user name") && !odd.contains("hunter2"), "{odd}");
}

#[test]
fn invalid_numbers_are_refused() {
    let server = honest(|_, words| (200, words));
    for flags in [
        &["--users", "1"][..],
        &["--users", "1001"],
        &["--turns", "0"],
        &["--turns", "201"],
        &["--users", "1000", "--turns", "100"],
        &["--concurrency", "0"],
        &["--users", "4", "--max-users", "8"],
        &["--max-users", "1"],
        &["--max-requests", "11"],
        &["--max-requests", "100001"],
        &["--max-time", "soon"],
        &["--rate", "0"],
        &["--rate", "NaN"],
        &["--rate", "-1"],
        &["--timeout", "soon"],
        &["--seed", "x"],
        &["--model", "x"],
        &["--stateful"],
    ] {
        let done = chat(&home(), server.url(), flags).exit(2);
        assert_eq!(done.stdout(), "", "{flags:?}");
    }
    home().call(&["probe", server.url(), "--protocol", "openai"]).run().exit(2);
    home().call(&["probe", server.url(), "--protocol", "a2a", "--reply", "/x"]).run().exit(2);
    home().call(&["probe", server.url()]).run().exit(2);
    assert!(server.heard().is_empty());
}

#[test]
fn invalid_template_is_refused_before_sending() {
    let server = honest(|_, words| (200, words));
    let home = home();
    home.write("typo.toml", "request = \"POST /chat\"\nbdy = \"{message}\"\n");
    home.write("number.toml", "request = 1\n");
    home.write("broken.toml", "request = \n");
    home.write(
        "headers.toml",
        "request = \"POST /{message}\"\nheaders = [\"Authorization: Bearer s3cret\"]\n",
    );
    let full = r#"{"s": "{session}", "m": "{message}"}"#;
    for (flags, why) in [
        (&[][..], "--request 'POST /chat'"),
        (&["--request", "POST /chat", "--body", r#"{"s": "{session}", "m": "{mesage}"}"#], "{mesage}"),
        (&["--request", "POST /chat", "--body", r#"{"s": "{session}"}"#], "{message}"),
        (&["--request", "POST /chat", "--body", r#"{"m": "{message}"}"#], "users cannot be distinguished"),
        (&["--request", "/chat", "--body", full], "METHOD /PATH"),
        (&["--request", "POST /chat", "--body", full, "--reply", "reply"], "JSON pointer"),
        (&["--request", "POST /chat", "--body", full, "--history-items", "/m"], "--history"),
        (
            &["--request", "POST /chat", "--body", full, "--header", "Authorization: Bearer s3cret"],
            "--header",
        ),
        (&["--template", "typo.toml"], "bdy"),
        (&["--template", "number.toml"], "request must be a string"),
        (&["--template", "broken.toml"], "broken.toml"),
        (&["--template", "headers.toml"], "Authorization"),
    ] {
        let told =
            home.call(&["probe", server.url(), "--protocol", "http"]).args(flags).run().exit(2).stderr();
        assert!(told.contains(why) && !told.contains("s3cret"), "{flags:?}: {told}");
    }
    home.call(&["probe", server.url(), "--protocol", "http", "--template", "none.toml"]).run().exit(5);
    assert!(server.heard().is_empty());
}

#[test]
fn unreachable_service_gets_no_passing_report() {
    let home = home();
    let few = ["--users", "3", "--turns", "2"];
    for (status, exit) in [(500, 12), (404, 1), (302, 1), (401, 8), (403, 8), (429, 11)] {
        let server = honest(move |_, _| (status, Vec::new()));
        let done = chat(&home, server.url(), &few).exit(exit);
        assert_eq!(done.stdout(), "", "{status}");
    }
    chat(&home, "http://127.0.0.1:9", &few).exit(12);
    let slow = honest(|_, words| {
        std::thread::sleep(Duration::from_secs(2));
        (200, words)
    });
    assert_eq!(
        chat(&home, slow.url(), &[&few[..], &["--timeout", "100ms"]].concat()).exit(10).code(),
        "TIMED_OUT"
    );
    let odd = Server::start(|_, _| (200, "<html>".to_owned()));
    assert!(chat(&home, odd.url(), &few).status() != Some(0));
}

#[test]
fn refusal_is_reported_with_the_response() {
    let home = home();
    home.write_private("key", "s3cret-key\n");
    let few = ["--users", "3", "--turns", "2"];
    let refusing = |status: u16, body: &'static str| Server::start(move |_, _| (status, body.to_owned()));
    let error = |server: &Server, flags: &[&str]| {
        let done = chat(&home, server.url(), &[&few, flags].concat());
        let told: Value = serde_json::from_str(&done.stderr()).unwrap();
        (done.status(), told["error"].clone())
    };
    let body = refusing(400, "{\"detail\":\n  \"no field \u{1b}[31mtext\u{202e}\"}");
    let (status, told) = error(&body, &[]);
    assert_eq!(
        (status, &told["code"], &told["retryable"]),
        (Some(1), &json!("AGENT_REFUSED"), &json!(false))
    );
    let message = told["message"].as_str().unwrap();
    let said = r#"{"detail": "no field \u{1b}[31mtext\u{202e}"}"#;
    assert_eq!(message, format!("every request to {} was refused with status 400: {said}", body.url()));
    assert!(told["hint"].as_str().unwrap().contains("--body"), "{told}");
    let (_, told) = error(&refusing(404, "no such page"), &[]);
    assert!(
        told["message"].as_str().unwrap().ends_with("was refused with status 404: no such page"),
        "{told}"
    );
    assert!(told["hint"].as_str().unwrap().contains("--request"), "{told}");
    // A secret that comes back is not shown, and nothing is made of an empty answer.
    for (answer, flags) in [("you sent s3cret-key", &["--api-key-file", "key"][..]), ("", &[])] {
        let (_, told) = error(&refusing(422, answer), flags);
        assert!(told["message"].as_str().unwrap().ends_with("was refused with status 422"), "{told}");
    }
    let (status, told) = error(&refusing(503, "back soon"), &[]);
    assert_eq!((status, &told["code"], &told["retryable"]), (Some(12), &json!("UNREACHABLE"), &json!(true)));
    assert!(told["message"].as_str().unwrap().ends_with("was answered with status 503: back soon"), "{told}");
    // Who is refused for several reasons is not told that there is one.
    let mixed = honest(|asked, _| (if asked.word().is_none() { 410 } else { 404 }, Vec::new()));
    let (_, told) = error(&mixed, &[]);
    assert!(
        told["message"].as_str().unwrap().contains("succeeded: 6 of 9 were refused with status 404"),
        "{told}"
    );
}

#[test]
fn too_few_replies_are_inconclusive() {
    let fail = |rarely: bool| {
        honest(move |asked, words| {
            let turn = words.len();
            let is_answered = if rarely { turn > 3 } else { turn == 1 };
            if is_answered || asked.word().is_none() && rarely { (200, words) } else { (503, Vec::new()) }
        })
    };
    let flags = ["--users", "3", "--turns", "9"];
    let report = chat(&home(), fail(false).url(), &flags).exit(12).json();
    assert_eq!(
        (report["verdict"].as_str(), report["answered"].as_u64()),
        (Some("inconclusive"), Some(3)),
        "{report}"
    );
    // A few that fail are told, and what was not acknowledged may be there.
    let report = chat(&home(), fail(true).url(), &flags).exit(0).json();
    assert_eq!(
        (report["verdict"].as_str(), &report["failed"]["count"]),
        (Some("clean"), &json!(9)),
        "{report}"
    );
}

#[test]
fn key_is_sent_only_to_the_service() {
    let home = home();
    home.write("key", "s3cret-key\n");
    let server = honest(|_, words| (200, words));
    let done =
        chat(&home, server.url(), &["--api-key-file", "key", "--header", "X-User: {user}", "--users", "2"])
            .exit(0);
    let heard = server.heard();
    let has =
        |headers: &[String], text: &str| headers.iter().any(|header| header.to_lowercase().starts_with(text));
    assert!(heard.iter().all(|asked| has(&asked.headers, "authorization: bearer s3cret-key")));
    assert!(heard.iter().any(|asked| {
        asked.headers.iter().any(|header| header.starts_with("x-user: probe-") && header.ends_with("-2"))
    }));
    assert!(!done.told().contains("s3cret-key"));
    // A credential of the vault goes there if it may.
    let server = honest(|_, words| (200, words));
    home.call(&["auth", "set", "--url", server.url(), "--bearer-token-stdin"]).stdin("vaulted").ok();
    chat(&home, server.url(), &["--users", "2", "--turns", "1"]).exit(0);
    assert!(server.heard().iter().all(|asked| has(&asked.headers, "authorization: bearer vaulted")));
    let both = ["--api-key-file", "key", "--credential", "x"];
    chat(&home, server.url(), &both).exit(2);
}

#[test]
fn rate_limit_of_the_probe_is_kept() {
    let server = honest(|_, words| (200, words));
    let begun = Instant::now();
    chat(&home(), server.url(), &["--users", "5", "--turns", "3", "--rate", "20"]).exit(0);
    assert!(begun.elapsed() >= Duration::from_millis(950), "{:?}", begun.elapsed());
}

#[test]
fn concurrency_limit_of_the_probe_is_kept() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    for (flags, expected) in [(&["--users", "6", "--concurrency", "2"][..], 2), (&["--users", "6"], 6)] {
        let (now, most) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
        let seen = Arc::clone(&most);
        let server = honest(move |_, words| {
            seen.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
            // Held until as many are here as may be. Then the rest need not meet.
            let begun = Instant::now();
            while seen.load(SeqCst) < expected && begun.elapsed() < Duration::from_secs(30) {
                std::thread::sleep(Duration::from_millis(5));
            }
            // Long enough for one too many to arrive.
            std::thread::sleep(Duration::from_millis(20));
            now.fetch_sub(1, SeqCst);
            (200, words)
        });
        let report = chat(&home(), server.url(), flags).exit(0).json();
        assert_eq!((report["concurrency"].as_u64(), most.load(SeqCst)), (Some(expected as u64), expected));
    }
}

#[test]
fn interrupted_probe_prints_a_partial_report() {
    let home = home();
    let server = honest(|asked, words| {
        if asked.session().ends_with("-1-session") && words.len() > 1 {
            std::thread::sleep(Duration::from_secs(600));
        }
        (200, words)
    });
    let mut command =
        home.call(&["probe", server.url(), "-ojson"]).args(CHAT).args(&["--users", "3"]).command();
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    crate::eventually("the others' replies", || server.heard().len() >= 14);
    std::thread::sleep(Duration::from_millis(200));
    let begun = Instant::now();
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(killed.success() && output.status.code() == Some(130), "{output:?}");
    assert!(begun.elapsed() < Duration::from_secs(10));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["interrupted"], report["answered"].as_u64()), (&json!(true), Some(13)), "{report}");
}

#[test]
fn progress_is_printed_on_a_terminal() {
    let server = honest(|_, words| {
        // Longer than the probe takes from one line to the next.
        std::thread::sleep(Duration::from_millis(150));
        (200, words)
    });
    let home = home();
    let mut tty = home.call(&["probe", server.url()]).args(CHAT).args(&["--users", "3"]).tty();
    let seen = tty.expect("clean:");
    assert!(seen.contains("of 18 replies, 0 failed, 0 leaks"), "{seen}");
    assert_eq!(tty.finish().1, 0);
}

#[test]
fn secret_file_that_others_can_change_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let home = home();
    for (flags, mode) in [
        (&["--protocol", "sessile", "--tokens"][..], 0o606),
        (&["--protocol", "openai", "--model", "m", "--api-key-file"], 0o602),
    ] {
        let file = home.write("secret", "sst_x\n");
        std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        let done = home.call(&["probe", "http://localhost:1", "-ojson"]).args(flags).arg("secret").run();
        assert_eq!(done.code(), "FILE_WRITABLE", "{}", done.told());
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o604)).unwrap();
        let done = home.call(&["probe", "http://localhost:1"]).args(flags).arg("secret").run();
        assert!(done.stderr().contains("can be read by other users"), "{}", done.told());
    }
}
