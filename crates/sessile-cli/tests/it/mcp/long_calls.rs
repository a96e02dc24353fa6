//! What takes long: it is told how it goes, can be called off, and has its limits in time and in what it prints.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Misbehaviour, MisbehaviourPoint};

use super::{INLINE, agent, code, content, refused, result, serve, still_answers};
use crate::{eventually, home, lives, start};

fn script(text: &str) -> Value {
    json!({ "command": ["sh", "-c", text] })
}

#[test]
fn a_slow_command_tells_how_it_goes() {
    let home = home();
    let mut client = serve(&home, &["--allow-run"]);
    let quick = client.call_async("run", script("echo quick"));
    let slow = client
        .call_async("run", script("echo one; sleep 1.5; printf '\\033[31mtwo\\n' >&2; sleep 1.5; echo end"));
    client.answer(quick).unwrap();
    let answer = content(&client.answer(slow).unwrap());
    assert_eq!((&answer["exit_code"], &answer["stdout"]), (&json!(0), &json!("one\nend\n")));
    assert!(client.progress(quick).is_empty(), "what is quick tells nothing");
    let told = client.progress(slow);
    assert!((2..=4).contains(&told.len()), "{told:?}");
    assert_eq!(told[0]["message"], "one");
    let last = told.last().unwrap()["message"].as_str().unwrap();
    assert!(last.contains("two") && !last.contains('\u{1b}'), "{last:?}");
    let times: Vec<f64> = told.iter().map(|one| one["progress"].as_f64().unwrap()).collect();
    assert!(times.is_sorted_by(|one, two| one < two) && times[0] >= 1.0, "{times:?}");
}

#[test]
fn call_without_a_progress_token_gets_no_progress() {
    let home = home();
    let mut client = serve(&home, &["--allow-run"]);
    client.request("tools/call", json!({ "name": "run", "arguments": script("echo x; sleep 1.5") }));
    assert!(client.notifications().is_empty(), "{:?}", client.notifications());
}

#[test]
fn a_slow_agent_is_waited_for_and_told_of() {
    let (home, agent) = (home(), agent());
    start(&home, &["--name", "work"]);
    let mut client = serve(&home, &["--session", "work"]);
    let held = client.call_async("send_message", json!({ "agent": agent.url(), "text": "hold the end" }));
    eventually("the message", || agent.heard("hold the end"));
    // Meanwhile everything else is done.
    still_answers(&mut client);
    std::thread::sleep(Duration::from_millis(1500));
    still_answers(&mut client);
    agent.release();
    let answer = content(&client.answer(held).unwrap());
    assert_eq!((&answer["state"], &answer["text"]), (&json!("completed"), &json!("the end")), "{answer}");
    assert!(!client.progress(held).is_empty());
}

#[test]
fn calling_off_ends_the_command() {
    let home = home();
    for version in [super::USUAL, INLINE] {
        let mut client = testkit::McpClient::start(home.call(&["mcp", "--allow-run"]));
        if version == INLINE {
            client.speak(INLINE);
        } else {
            client.initialize(version);
        }
        let _ = std::fs::remove_file(home.path("pids"));
        // With a child that is not the command itself.
        let long =
            client.call_async("run", script("sleep 600 & echo $! > pid; echo $$ >> pid; mv pid pids; wait"));
        eventually("the command", || home.path("pids").exists());
        client.notify("notifications/cancelled", json!({ "requestId": long, "reason": "enough" }));
        for pid in home.read("pids").lines() {
            eventually("its end", || !lives(pid));
        }
        still_answers(&mut client);
        client.silent_for(Duration::from_millis(300));
        // What there is not, or not any more, cannot be called off.
        for id in [json!(long), json!(99), json!("x"), Value::Null] {
            client.notify("notifications/cancelled", json!({ "requestId": id }));
        }
        client.notify("notifications/cancelled", json!({}));
        still_answers(&mut client);
        assert!(client.close().success());
    }
}

#[test]
fn cancellation_ends_agent_calls_and_lock_waits() {
    let (home, agent) = (home(), agent());
    start(&home, &["--name", "work"]);
    let mut client = serve(&home, &["--session", "work"]);
    agent.misbehave(MisbehaviourPoint::Calls, Some(Misbehaviour::Silence));
    let call = client.call_async("send_message", json!({ "agent": agent.url(), "text": "echo x" }));
    eventually("the message", || agent.heard("echo x"));
    let token = result(&mut client, "acquire_lock", json!({ "name": "l" }))["token"].clone();
    let waiting = client.call_async("acquire_lock", json!({ "name": "l", "wait": "1h" }));
    std::thread::sleep(Duration::from_millis(200));
    let children = || {
        let listed = std::process::Command::new("ps")
            .args(["-o", "pid=", "--ppid", &client.pid().to_string()])
            .output();
        String::from_utf8(listed.unwrap().stdout).unwrap().lines().count()
    };
    assert_eq!(children(), 2);
    let pid = client.pid();
    for id in [call, waiting] {
        client.notify("notifications/cancelled", json!({ "requestId": id }));
    }
    eventually("their end", || {
        let listed =
            std::process::Command::new("ps").args(["-o", "pid=", "--ppid", &pid.to_string()]).output();
        listed.unwrap().stdout.is_empty()
    });
    // Who does not wait any more does not get it.
    result(&mut client, "release_lock", json!({ "name": "l", "token": token }));
    assert_eq!(result(&mut client, "list_locks", json!({}))["count"], 0);
    // The agent has the message, so the conversation has it too.
    assert_eq!(result(&mut client, "list_conversations", json!({}))["count"], 1);
}

#[test]
fn time_limits_are_kept() {
    let (home, agent) = (home(), agent());
    let mut client = serve(&home, &["--allow-run"]);
    let begun = Instant::now();
    let mut given = script("echo $$; echo said; exec sleep 600");
    given["timeout"] = json!("700ms");
    let answer = result(&mut client, "run", given);
    assert_eq!((&answer["timed_out"], &answer["exit_code"]), (&json!(true), &Value::Null), "{answer}");
    let said: Vec<&str> = answer["stdout"].as_str().unwrap().lines().collect();
    assert_eq!((said[1], lives(said[0])), ("said", false), "the output so far is kept");
    assert_eq!(answer["stderr"], "");
    let mut given = script("echo '{\"error\":{}}' >&2; printf part >&2; exec sleep 600");
    given["timeout"] = json!("300ms");
    let answer = result(&mut client, "run", given);
    assert_eq!(
        (&answer["timed_out"], &answer["stderr"]),
        (&json!(true), &json!("{\"error\":{}}\npart")),
        "{answer}"
    );
    agent.misbehave(MisbehaviourPoint::Calls, Some(Misbehaviour::Silence));
    let given = json!({ "agent": agent.url(), "text": "x", "timeout": "500ms" });
    let told = refused(&client.call("send_message", given));
    assert!(["TIMED_OUT", "UNREACHABLE"].contains(&told["code"].as_str().unwrap()), "{told}");
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
    for limit in ["soon", "-1s", "", "10", "1e9h"] {
        let mut given = script("touch ran");
        given["timeout"] = json!(limit);
        assert_eq!(client.call("run", given)["isError"], true, "{limit:?}");
    }
    for wait in ["soon", "-1s"] {
        assert_eq!(
            client.call("acquire_lock", json!({ "name": "l", "wait": wait }))["isError"],
            true,
            "{wait}"
        );
    }
    assert!(!home.path("ran").exists());
    // One that ends by itself with the status of a time that is up was not ended.
    let answer = result(&mut client, "run", script("exit 7"));
    assert_eq!((&answer["timed_out"], &answer["exit_code"]), (&json!(false), &json!(7)));
}

#[test]
fn of_much_output_the_beginning_and_the_end_are_kept() {
    let home = home();
    let mut client = serve(&home, &["--allow-run"]);
    let answer = result(&mut client, "run", script("seq 1 100000; seq 1 100000 >&2"));
    for stream in ["stdout", "stderr"] {
        let text = answer[stream].as_str().unwrap();
        assert!((32 * 1024..33 * 1024).contains(&text.len()), "{stream}: {}", text.len());
        assert!(text.starts_with("1\n2\n3\n") && text.ends_with("99999\n100000\n"), "{stream}");
        assert!(text.contains("bytes left out"), "{stream}");
    }
    assert_eq!((&answer["truncated"], &answer["exit_code"]), (&json!(true), &json!(0)));
    let fits = result(&mut client, "run", script("head -c 32768 /dev/zero | tr '\\0' x"));
    assert_eq!((fits["stdout"].as_str().unwrap().len(), &fits["truncated"]), (32768, &json!(false)));
    // As fast as it can, without an end.
    let mut given = json!({ "command": ["yes"] });
    given["timeout"] = json!("500ms");
    assert_eq!(result(&mut client, "run", given)["timed_out"], true);
    let bytes = result(&mut client, "run", script("printf 'a\\377\\0b'"));
    assert_eq!(bytes["stdout"], "a\u{fffd}\0b");
    still_answers(&mut client);
}

#[test]
fn statuses_and_signals_are_the_command_s_own() {
    let home = home();
    let mut client = serve(&home, &["--allow-run"]);
    for status in [0, 1, 2, 5, 77, 123, 124, 125, 126, 127, 128, 255] {
        let answer = result(&mut client, "run", script(&format!("exit {status}")));
        assert_eq!((&answer["exit_code"], &answer["timed_out"]), (&json!(status), &json!(false)), "{answer}");
    }
    for (name, status) in [("KILL", 137), ("TERM", 143), ("SEGV", 139)] {
        let answer = result(&mut client, "run", script(&format!("kill -{name} $$")));
        assert_eq!(answer["exit_code"], status, "{name}: {answer}");
    }
    // What looks like an error of ours is the command's own text.
    let text = "{\"error\":{\"code\":\"NOT_FOUND\",\"message\":\"m\"}}";
    for (rest, status) in [("", 1), ("; echo more >&2", 125), ("; echo more >&2", 124)] {
        let answer = client.call("run", script(&format!("echo '{text}' >&2{rest}; exit {status}")));
        assert_eq!(content(&answer)["exit_code"], status, "{answer}");
        assert!(content(&answer)["stderr"].as_str().unwrap().starts_with(text), "{answer}");
    }
    assert_eq!(code(&mut client, "run", json!({ "command": ["no-such-command"] })), "FILE_NOT_FOUND");
}

#[test]
fn standard_input_and_the_directory_are_as_given() {
    let home = home();
    home.write("sub dir/file", "");
    let mut client = serve(&home, &["--allow-run"]);
    let stdin = "two\nlines, \u{0} and ü without an end";
    let answer = result(&mut client, "run", json!({ "command": ["cat"], "stdin": stdin }));
    assert_eq!(answer["stdout"], stdin);
    for given in [json!({ "command": ["cat"] }), json!({ "command": ["cat"], "stdin": "" })] {
        assert_eq!(
            result(&mut client, "run", given)["stdout"],
            "",
            "the command does not read the client's input"
        );
    }
    let unread = json!({ "command": ["true"], "stdin": "x".repeat(1 << 20) });
    assert_eq!(result(&mut client, "run", unread)["exit_code"], 0);
    let inside = home.path("sub dir");
    for directory in [json!("sub dir"), json!(inside)] {
        let answer = result(&mut client, "run", json!({ "command": ["pwd"], "directory": directory }));
        assert_eq!(answer["stdout"].as_str().unwrap().trim_end(), inside.to_str().unwrap());
    }
    for directory in ["none", "sub dir/file", ""] {
        let told =
            refused(&client.call("run", json!({ "command": ["touch", "ran"], "directory": directory })));
        assert!(told["message"].as_str().unwrap().len() < 300, "{told}");
    }
    assert!(!home.path("ran").exists());
}

#[test]
fn cancelled_command_gets_one_sigterm() {
    let home = home();
    let mut client = serve(&home, &["--allow-run"]);
    // The second time would come while it still cleans up.
    let text =
        "trap 'echo told >> told' TERM; touch begun; until [ -s told ]; do sleep 0.05; done; sleep 0.5";
    let id = client.call_async("run", script(text));
    eventually("the command", || home.path("begun").exists());
    client.notify("notifications/cancelled", json!({ "requestId": id }));
    eventually("its being told", || home.path("told").exists());
    still_answers(&mut client);
    assert!(client.close().success());
    assert_eq!(home.read("told"), "told\n");
}

#[test]
fn data_and_files_of_a_reply_are_returned() {
    let (home, agent) = (home(), agent());
    let mut client = serve(&home, &[]);
    let mut send =
        |text: &str| result(&mut client, "send_message", json!({ "agent": agent.url(), "text": text }));
    assert!(send("data").to_string().contains("\"answer\":42"));
    assert!(send("file").to_string().contains("ZXZpbCAA"));
    let words = send("echo hello");
    assert!(words["text"].as_str().unwrap().contains("hello"), "{words}");
    assert!(words.get("reply").is_none(), "the reply occurs once: {words}");
}
