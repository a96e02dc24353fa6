//! Leaks that are hard to see: rare ones, those that need load, and those that are not in plain text.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::CallResult;

use super::{CHAT, Sample, chat, count, honest};
use crate::{home, repository};

/// Probes the sample by its own protocol.
fn probe(sample: &Sample, flags: &[&str]) -> CallResult {
    let template = repository::root().join("examples/mixed-up-agent/chat.toml");
    let args =
        ["probe", &sample.url, "-ojson", "--protocol", "http", "--template", template.to_str().unwrap()];
    home().call(&args).args(flags).run()
}

#[test]
fn leak_that_needs_many_users_at_once_is_found_by_default() {
    let sample = Sample::start(&["--fixed", "--leak", "1", "--leak-users", "50", "--think", "0.2"]);
    let report = probe(&sample, &[]).exit(1).json();
    assert!(count(&report, "leaks") > 0 && count(&report, "lost") == 0, "{report}");
    let users: Vec<&Value> =
        report["rounds"].as_array().unwrap().iter().map(|round| &round["users"]).collect();
    assert_eq!(users[..4], [&json!(10), &json!(20), &json!(40), &json!(80)], "{report}");
    // Fewer users do not see it, and the report says how many there were.
    let report = probe(&sample, &["--max-users", "20", "--max-requests", "200"]).exit(0).json();
    assert_eq!((&report["verdict"], &report["concurrency"]), (&json!("clean"), &json!(20)), "{report}");
}

#[test]
fn leak_in_a_header_or_encoded_is_found_by_every_protocol() {
    for (place, encodings) in [
        ("header", json!([])),
        ("base64", json!(["base64"])),
        ("base64url", json!(["base64"])),
        ("percent", json!(["percent"])),
        ("escape", json!(["escape"])),
        ("entity", json!(["entity"])),
        ("hex", json!(["hex"])),
    ] {
        let sample = Sample::start(&["--fixed", "--leak", "0.5", "--leak-in", place]);
        for (name, done) in sample.probe(&["--users", "4", "--turns", "3"]) {
            let report = done.exit(1).json();
            let leaks = report["leaks"]["found"].as_array().unwrap();
            assert!(!leaks.is_empty(), "{place} {name}: {report}");
            for leak in leaks {
                let seen_in = if place == "header" { "header" } else { "reply" };
                assert_eq!(
                    (&leak["where"], &leak["encodings"]),
                    (&json!(seen_in), &encodings),
                    "{name}: {leak}"
                );
                assert!(
                    leak["excerpt"].as_str().unwrap().contains(leak["canary"].as_str().unwrap()),
                    "{leak}"
                );
            }
        }
    }
    let sample = Sample::start(&["--fixed", "--leak", "1", "--leak-in", "base64"]);
    let url = format!("{}/v1", sample.url);
    let args = ["probe", &url, "--protocol", "openai", "--model", "x", "--users", "4"];
    let text = home().call(&args).run().exit(1).stdout();
    assert!(text.contains(", in base64: "), "{text}");
}

#[test]
fn leak_in_1_of_100_replies_is_found_by_default() {
    for seed in ["1", "2", "3", "4", "5", "6"] {
        let sample = Sample::start(&["--fixed", "--leak", "0.01", "--seed", seed]);
        let report = probe(&sample, &[]).exit(1).json();
        assert!(count(&report, "leaks") > 0 && count(&report, "failed") == 0, "{seed}: {report}");
    }
}

#[test]
fn clean_report_states_the_detection_probability() {
    let server = honest(|_, words| (200, words));
    let report = chat(&home(), server.url(), &["--max-requests", "500", "--turns", "4"]).exit(0).json();
    let expected = 1.0 - 0.99_f64.powi(500);
    let detection = &report["detection"];
    assert_eq!((&detection["replies"], &detection["leak_rate"]), (&json!(500), &json!(0.01)), "{report}");
    assert!((detection["probability"].as_f64().unwrap() - expected).abs() < 1e-9, "{report}");
    let text = |flags: &[&str]| home().call(&["probe", server.url()]).args(CHAT).args(flags).ok().stdout();
    let few = text(&["--users", "10"]);
    let last = few.lines().last().unwrap();
    assert_eq!(last, "a leak in 1 of 100 replies would have been found with 45.2 % probability", "{few}");
    let many = text(&["--turns", "9"]);
    assert!(many.contains("with more than 99.99 % probability"), "{many}");
    assert!(many.contains("200 users with 9 turns each, 10 to 130 at once"), "{many}");
    // Nothing is stated of a service that never repeats a code word.
    let silent = honest(|_, _| (200, vec!["fine".to_owned()]));
    let report = chat(&home(), silent.url(), &["--users", "3"]).exit(0).json();
    assert_eq!(report["detection"], Value::Null, "{report}");
}

#[test]
fn max_time_ends_the_probe_with_a_verdict() {
    let server = honest(|_, words| {
        std::thread::sleep(Duration::from_millis(100));
        (200, words)
    });
    let begun = Instant::now();
    let report = chat(&home(), server.url(), &["--max-time", "1500ms"]).exit(0).json();
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert_eq!(
        (&report["verdict"], &report["stopped_by"]),
        (&json!("clean"), &json!("max_time")),
        "{report}"
    );
    assert!(report["notes"][0].as_str().unwrap().starts_with("reached --max-time at "), "{report}");
    assert_eq!((&report["interrupted"], count(&report, "failed")), (&json!(false), 0), "{report}");
}

#[test]
fn service_that_fails_under_load_is_judged_by_the_rounds_before() {
    let in_flight = Arc::new(AtomicUsize::new(0));
    let server = honest(move |_, words| {
        let now = in_flight.fetch_add(1, SeqCst) + 1;
        std::thread::sleep(Duration::from_millis(100));
        in_flight.fetch_sub(1, SeqCst);
        if now > 12 { (503, Vec::new()) } else { (200, words) }
    });
    let flags = ["--max-requests", "900", "--turns", "2"];
    let report = chat(&home(), server.url(), &flags).exit(0).json();
    assert_eq!(
        (&report["verdict"], &report["stopped_by"]),
        (&json!("clean"), &json!("failures")),
        "{report}"
    );
    let note = report["notes"][0].as_str().unwrap();
    assert!(note.starts_with("stopped at ") && note.ends_with(" requests failed"), "{report}");
    assert!(report["rounds"].as_array().unwrap().len() < 5, "{report}");
}

#[test]
fn users_in_one_round_are_repeated_until_max_requests() {
    let server = honest(|_, words| (200, words));
    let flags = ["--users", "4", "--turns", "2", "--max-requests", "36"];
    let report = chat(&home(), server.url(), &flags).exit(0).json();
    let users: Vec<&Value> =
        report["rounds"].as_array().unwrap().iter().map(|round| &round["users"]).collect();
    assert_eq!(users, [4, 4, 4], "{report}");
    assert_eq!((server.heard().len(), &report["users"]), (36, &json!(12)));
}
