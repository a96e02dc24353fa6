//! Whatever goes wrong with a secret, or right beside one: it is not in what is said about that.

use testkit::OidcServer;

use super::canary::{INPUT, input, script, words};
use super::secret_search::SecretPattern;
use super::{DIR, LONG_AGO, bind, printed, set};
use crate::home;

#[test]
fn token_of_one_call_is_masked() {
    let sought = SecretPattern::new();
    let home = home();
    let canary = sought.canary("token");
    let json =
        format!("{{\"token\": \"{canary}\", \"contexts\": {{\"work\": {{}}}}, \"context\": \"work\"}}");
    input(&home, "good.json", &json);
    input(&home, "good.toml", &format!("token = \"{canary}\"\n"));
    let calls: [&[&str]; 9] = [
        &["status"],
        &["auth", "status"],
        &["auth", "check"],
        &["auth", "list"],
        &["config", "show", "--source", "--effective"],
        &["config", "get", "token"],
        &["config", "validate"],
        &["doctor"],
        &["run", "--", "sh", "-c", "cat /proc/$$/cmdline"],
    ];
    for args in calls {
        for config in ["good.json", "good.toml"] {
            let config = format!("input/{config}");
            for more in [&["--verbose"][..], &["--output", "json"]] {
                sought.call(&format!("{args:?}"), home.call(&["--config", &config]).args(more).args(args));
            }
        }
    }
    sought.call("it is used", home.call(&["--config", "input/good.json", "auth", "check"])).exit(0);
    // Files in which something is wrong right beside it, and places where it does not belong.
    let wrong = [
        format!("{{\"token\": \"{canary}\""),
        format!("{{\"token\": \"{canary}\",}}"),
        format!("{{\"token\": [\"{canary}\"]}}"),
        format!("{{\"token\": {canary}}}"),
        format!("{{\"tokn\": \"{canary}\"}}"),
        format!("{{\"token\": {{\"{canary}\": 1}}}}"),
    ];
    for (number, text) in wrong.iter().enumerate() {
        input(&home, "wrong.json", text);
        let done = sought
            .call(&format!("json {number}"), home.call(&["--config", "input/wrong.json", "auth", "check"]));
        assert_ne!(done.status(), Some(0));
    }
    for (number, text) in [
        format!("token = \"{canary}"),
        format!("token = {canary}"),
        format!("token = [\"{canary}\"]"),
        format!("token \"{canary}\""),
    ]
    .iter()
    .enumerate()
    {
        input(&home, "wrong.toml", text);
        for args in [&["auth", "check"][..], &["config", "validate"], &["doctor"]] {
            sought.call(&format!("toml {number}"), home.call(&["--config", "input/wrong.toml"]).args(args));
        }
    }
    sought.assert_not_in_files(&home, &[INPUT]);
}

#[test]
fn no_failure_shows_a_secret() {
    let home = home();
    let sought = SecretPattern::new();
    let processes = sought.watch_processes();
    let server = OidcServer::start();
    let canary = |name: &str| sought.canary(name);
    let put = |name: &str, args: &[&str]| set(&home, name, &canary(name)).args(args).ok();
    put("over", &["--expires-at", LONG_AGO]);
    put("bearer", &["--site", server.issuer(), "--site", "http://127.0.0.1:1"]);
    let site = ["--site", server.issuer()];
    home.call(&["auth", "set", "key", "--api-key", "-"]).args(&site).stdin(canary("key")).ok();
    home.call(&["auth", "set", "basic", "--basic", "me", "--secret-stdin"])
        .args(&site)
        .stdin(canary("basic"))
        .ok();
    set(&home, "lines", &format!("{}\nx", canary("lines"))).args(&site).ok();
    for (name, text) in [
        ("fails", format!("echo '{0}'; echo '{0}' >&2; exit 3", canary("fails"))),
        ("nonsense", format!("echo '{{\"{}\"'", canary("nonsense"))),
        ("wrong-type", format!("echo '{{\"token\":[\"{}\"]}}'", canary("wrong-type"))),
        ("ended", format!("echo '{{\"token\":\"{}\",\"expires_at\":\"{LONG_AGO}\"}}'", canary("ended"))),
        ("not-text", format!("echo '{}'; printf '\\377'", canary("not-text"))),
    ] {
        script(&home, name, &text);
        home.call(&["auth", "set", name, "--cache", "1h", "--command", &format!("input/{name}")]).ok();
    }
    home.call(&["auth", "set", "unset", "--from-env", "NOT_SET"]).ok();
    let failing = ["over", "fails", "nonsense", "wrong-type", "ended", "not-text", "unset", "nothing"];
    for name in failing {
        bind(&home, name, &[("T", name)]);
        sought.call(name, home.call(&["--verbose", "auth", "check", name])).exit(8);
        sought.call(name, home.call(&["auth", "check", name, "--output", "json"])).exit(8);
        sought.call(name, printed(&home, name, &["T"])).exit(125);
        sought.call(name, home.call(&["--verbose", "auth", "refresh", name]));
    }
    let there = server.url("/whoami");
    let elsewhere =
        ["https://elsewhere.example/", "http://127.0.0.1:1/", "http://plain.example/", "nonsense"];
    for name in ["bearer", "key", "basic", "lines"] {
        for url in elsewhere.iter().copied().chain([there.as_str()]) {
            let done = sought.call(url, home.call(&["--verbose", "auth", "check", name, "--url", url]));
            assert_ne!(done.status(), Some(0), "{name} at {url}");
        }
    }
    let rejected = home.call(&["auth", "check", "bearer", "--url", &there, "--output", "json"]).run().exit(8);
    assert_eq!(rejected.code(), "CREDENTIAL_REJECTED");
    // A secret that is refused, and arguments that are wrong beside one.
    for (what, args, bytes) in [
        ("not text", &["--secret-stdin"][..], [canary("x").as_bytes(), &[0xff]].concat()),
        ("a zero byte", &["--secret-stdin"], [canary("x").as_bytes(), &[0]].concat()),
        ("too long", &["--secret-stdin"], canary("x").repeat(5_000).into_bytes()),
        ("too long", &["--secret-fd", "0"], canary("x").repeat(5_000).into_bytes()),
        ("a flag", &["--secret-stdin", "--nonsense"], canary("x").into_bytes()),
        ("a time", &["--secret-stdin", "--expires-at", "soon"], canary("x").into_bytes()),
        ("a site", &["--secret-stdin", "--site", "nonsense"], canary("x").into_bytes()),
        ("a login", &["--login", "none"], canary("x").into_bytes()),
    ] {
        let done = sought.call(what, home.call(&["--verbose", "auth", "set", "new"]).args(args).stdin(bytes));
        assert_ne!(done.status(), Some(0), "{what}: {}", done.told());
    }
    let path = home.path(DIR).join("credentials");
    let whole = std::fs::read(&path).unwrap();
    for at in [10, 100, whole.len() / 2, whole.len() - 10] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        for args in [&["auth", "list"][..], &["auth", "check", "bearer"], &["doctor"], &["status"]] {
            sought.call("damage", home.call(&["--verbose"]).args(args));
        }
        sought.call("damage", set(&home, "new", &canary("new")));
    }
    std::fs::write(&path, whole).unwrap();
    sought.assert_not_in_files(&home, &[INPUT]);
    assert!(processes.seen().is_empty());
}

/// Arguments are for everyone to see, so that is too late. At least they are not said again, and kept nowhere.
#[test]
fn a_secret_among_the_arguments_is_refused_and_not_repeated() {
    let home = home();
    let sought = SecretPattern::new();
    let canary = sought.canary("argument");
    let joined = |flag: &str| format!("{flag}={canary}");
    let calls: Vec<Vec<String>> = [
        vec!["auth", "set", "x", &canary],
        vec!["auth", "set", "x", "--secret-stdin", &canary],
        vec!["auth", "set", "x", "--basic", &format!("me:{canary}"), "--secret-stdin"],
        vec!["auth", "set", "x", "--basic", "me", &canary],
        vec!["auth", "set", "x", "--bearer", &canary, "--nonsense"],
        vec!["auth", "set", "x", "--secret-env", &canary],
        vec!["auth", "set", &format!("https://me:{canary}@agent.example/"), "--secret-stdin"],
        vec!["auth", "set", "x", "--site", &format!("https://me:{canary}@agent.example/"), "--secret-stdin"],
        vec!["auth", "check", "--url", &format!("https://me:{canary}@agent.example/")],
        vec!["auth", "login", "x", &canary],
        vec!["auth", "unlock", &canary],
        vec!["auth", "rekey", "--to", &canary],
        vec!["auth", "rekey", "--to", "passphrase", &canary],
        vec!["config", "set", "token", &canary, "--global"],
    ]
    .into_iter()
    .map(|args| args.into_iter().map(str::to_owned).collect())
    .chain(
        ["--secret", "--bearer-token", "--bearer", "--token", "--api-key", "--key", "--password"]
            .into_iter()
            .flat_map(|flag| {
                let apart = ["auth", "set", "x", flag, &canary].map(str::to_owned).to_vec();
                [apart, vec!["auth".into(), "set".into(), "x".into(), joined(flag)]]
            }),
    )
    .chain(
        [
            "--secret-stdin",
            "--bearer-token-stdin",
            "--api-key-stdin",
            "--password-stdin",
            "--secret-fd",
            "--keep-secret",
            "--scret",
        ]
        .into_iter()
        .map(|flag| vec!["auth".into(), "set".into(), "x".into(), joined(flag)]),
    )
    .chain(["--client-secret", "--refresh-token"].into_iter().flat_map(|flag| {
        let login = ["auth", "login", "x", "--token-url", "http://127.0.0.1:1/", "--client-id", "cli"];
        let login = login.map(str::to_owned).to_vec();
        [
            [login.clone(), vec![flag.to_owned(), canary.clone()]].concat(),
            [login, vec![joined(flag)]].concat(),
        ]
    }))
    .chain(
        ["--passphrase", "--passphrase-stdin"].into_iter().map(|flag| {
            vec!["auth".into(), "rekey".into(), "--to".into(), "passphrase".into(), joined(flag)]
        }),
    )
    .collect();
    for args in &calls {
        for more in [&["--verbose"][..], &["--output", "json"]] {
            // With the canary, so that a failure shows which it was.
            let done = sought.call(
                &args.join(" ").replace(&canary, "CANARY"),
                home.call(&words(args)).args(more).stdin("x"),
            );
            assert!(matches!(done.status(), Some(2 | 7)), "{args:?}: {}", done.told());
        }
    }
    sought.assert_not_in_files(&home, &[]);
}
