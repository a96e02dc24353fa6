//! `sessile auth`: putting credentials in, looking at them without seeing them, giving them to commands.

use std::os::unix::fs::PermissionsExt;

use testkit::{Call, CallResult, Home};

use crate::{home, home_with};

const TOKEN: &str = "hunter2-hunter2";

fn set(home: &Home, args: &[&str]) -> Call {
    home.call(&["auth", "set"]).args(args).stdin(TOKEN)
}

/// A home with a credential `bot`, and a context `staging` that gives it to commands as BOT_TOKEN.
fn with_bot(more: &[&str]) -> Home {
    let home = home_with(&["staging"]);
    set(&home, &["bot", "--secret-stdin"]).args(more).ok();
    home.call(&["context", "edit", "staging", "--env-credential", "BOT_TOKEN=bot"]).ok();
    home
}

fn printed(home: &Home) -> Call {
    home.call(&["run", "--context", "staging", "--", "printenv", "BOT_TOKEN"])
}

fn show(home: &Home, name: &str) -> serde_json::Value {
    home.call(&["auth", "show", name, "-ojson"]).ok().json()
}

#[test]
fn a_secret_is_taken_from_everywhere_but_the_arguments() {
    let home = home_with(&["staging"]);
    home.write("token", format!("{TOKEN}\n"));
    let ways: &[(&str, &[&str])] = &[
        ("a", &["--secret-stdin"]),
        ("b", &["--bearer-token-stdin"]),
        ("c", &["--bearer-token", "-"]),
        ("d", &["--bearer", "@token"]),
        ("e", &["--secret-file", "token"]),
        ("f", &["--secret-env", "GIVEN"]),
        ("g", &["--secret-fd", "0"]),
        ("h", &["--api-key", "@token", "--api-key-header", "X-Key"]),
        ("i", &["--basic", "me", "--secret-file", "token"]),
        ("j", &["--from-env", "GIVEN"]),
        ("k", &["--command", "cat token"]),
        ("l", &["--command", "sh -c 'echo \"{\\\"token\\\":\\\"$(cat token)\\\"}\"'", "--cache", "1h"]),
    ];
    for (name, flags) in ways {
        set(&home, &[name]).args(flags).env("GIVEN", TOKEN).ok();
        home.call(&["context", "edit", "staging", "--env-credential", &format!("BOT_TOKEN={name}")]).ok();
        let done = printed(&home).env("GIVEN", TOKEN).ok();
        assert_eq!(done.stdout(), format!("{TOKEN}\n"), "{flags:?}");
    }
    assert_eq!(home.call(&["auth", "list", "-ojson"]).ok().json().as_array().unwrap().len(), ways.len());
}

#[test]
fn typed_secret_is_not_echoed() {
    let home = home_with(&["staging"]);
    let mut tty = home.tty(&["auth", "set", "bot"]);
    tty.expect("Secret for bot: ");
    tty.type_line(TOKEN);
    let (seen, status) = tty.finish();
    assert_eq!(status, 0, "{seen}");
    assert!(!seen.contains(TOKEN), "{seen}");
    home.call(&["context", "edit", "staging", "--env-credential", "BOT_TOKEN=bot"]).ok();
    assert_eq!(printed(&home).ok().stdout(), format!("{TOKEN}\n"));
}

#[test]
fn secret_argument_is_refused_with_a_hint() {
    let home = home();
    let ways: &[&[&str]] = &[
        &["bot", "--bearer-token", TOKEN],
        &["bot", "--bearer", TOKEN],
        &["--url", "http://localhost:8000", "--bearer-token", TOKEN],
        &["http://localhost:8000", "--bearer", TOKEN],
        &["http://localhost:8000", "--api-key", TOKEN, "--api-key-header", "X-Key"],
        &["bot", "--token", TOKEN],
        &["bot", "--password", TOKEN],
        &["bot", "--secret", TOKEN],
        &["bot", TOKEN],
    ];
    for words in ways {
        let done = set(&home, words).run().exit(2);
        assert!(!done.told().contains(TOKEN), "{}", done.told());
        assert!(done.stderr().contains("--secret-stdin"), "{}", done.told());
        assert_eq!(set(&home, words).args(&["-ojson"]).run().exit(2).code(), "SECRET_REFUSED");
    }
    let login = ["auth", "login", "x", "--token-url", "http://localhost:1/t", "--client-id", "c"];
    for flag in [["--client-secret", TOKEN], ["--refresh-token", TOKEN]] {
        let done = home.call(&login).args(&flag).args(&["-ojson"]).run().exit(2);
        assert_eq!(done.code(), "SECRET_REFUSED");
        assert!(!done.told().contains(TOKEN), "{}", done.told());
    }
    assert_eq!(home.call(&["auth", "list", "-ojson"]).ok().json(), serde_json::json!([]));
}

#[test]
fn no_prompt_without_a_terminal() {
    let done = home().call(&["auth", "set", "bot", "-ojson"]).run().exit(2);
    assert_eq!(done.code(), "TERMINAL_REQUIRED");
    assert!(done.json_error()["hint"].as_str().unwrap().contains("--secret-stdin"));
}

#[test]
fn an_agent_gets_the_credential_that_is_bound_to_its_url() {
    let home = home();
    let url = "http://localhost:8000";
    set(&home, &["--url", url, "--bearer-token-stdin"]).ok();
    set(&home, &["https://agent.example/one/", "--api-key", "-", "--api-key-header", "X-Key"]).ok();
    let one = show(&home, "http://LOCALHOST:8000/");
    assert_eq!((one["name"].as_str(), one["kind"].as_str()), (Some("localhost-8000"), Some("bearer")));
    assert_eq!((&one["agents"][0], &one["sites"][0]), (&url.into(), &url.into()));
    let two = show(&home, "https://agent.example/one");
    assert_eq!((two["kind"].as_str(), two["header"].as_str()), (Some("api-key"), Some("X-Key")));
    // Again: the same one.
    set(&home, &["--url", url, "--bearer-token-stdin"]).ok();
    assert_eq!(home.call(&["auth", "list", "-ojson"]).ok().json().as_array().unwrap().len(), 2);
    home.call(&["auth", "clear", "--url", url, "--yes"]).ok();
    assert_eq!(home.call(&["auth", "show", url, "-ojson"]).run().exit(8).code(), "CREDENTIAL_NOT_FOUND");
}

#[test]
fn secret_is_masked_in_every_output() {
    let home = with_bot(&["--account", "ci", "--site", "https://api.example"]);
    let calls: &[&[&str]] = &[
        &["auth", "show", "bot"],
        &["auth", "list"],
        &["auth", "status", "--context", "staging"],
        &["run", "--dry-run", "--context", "staging", "--", "true"],
        &["context", "show", "staging"],
        &["status", "--credential", "bot"],
        &["history"],
        &["config", "show", "--effective", "--credential", "bot"],
    ];
    for words in calls {
        for format in ["text", "json"] {
            let done = home.call(words).env("SESSILE_OUTPUT", format).env("SESSILE_VERBOSE", "true").ok();
            assert!(!done.told().contains(TOKEN), "{}", done.told());
        }
    }
    let shown = home.call(&["auth", "show", "bot"]).ok().stdout();
    assert!(shown.contains("secret    ********"), "{shown}");
    let dry = home.call(&["run", "--dry-run", "-v", "--context", "staging", "--", "true"]).ok().stdout();
    assert!(dry.contains("BOT_TOKEN") && dry.contains("credential bot"), "{dry}");
}

#[test]
fn a_command_gets_it_when_it_runs_and_the_room_never_does() {
    let home = with_bot(&[]);
    let in_session = ["run", "--session", "work", "--context", "staging", "--"];
    let got = home.call(&in_session).args(&["bash", "-lc", "echo $BOT_TOKEN"]).ok();
    assert_eq!(got.stdout(), format!("{TOKEN}\n"));
    for (path, content) in home.tree() {
        let holds = content.windows(TOKEN.len()).any(|window| window == TOKEN.as_bytes());
        assert!(!holds, "{}", path.display());
    }
    let env = home.call(&["env", "--session", "work"]).ok();
    assert!(
        !env.told().contains(TOKEN) && env.stderr().contains("not printed: BOT_TOKEN (credential "),
        "{}",
        env.told()
    );
    // What is said for this very call is stronger than the context.
    let own = ["run", "--session", "work", "--env", "BOT_TOKEN=no", "--", "printenv", "BOT_TOKEN"];
    assert_eq!(home.call(&own).ok().stdout(), "no\n");
}

#[test]
fn a_variable_that_the_tools_would_lose_is_the_credential_s() {
    let home = home_with(&["staging"]);
    set(&home, &["gh-bot", "--secret-stdin"]).ok();
    home.call(&["context", "edit", "staging", "--env-credential", "GITHUB_TOKEN=gh-bot"]).ok();
    let run = ["run", "--context", "staging", "--", "printenv", "GITHUB_TOKEN"];
    assert_eq!(home.call(&run).env("GITHUB_TOKEN", "the caller's").ok().stdout(), format!("{TOKEN}\n"));
}

#[test]
fn an_expired_credential_stops_a_command_before_it_starts() {
    let home = with_bot(&["--expires-at", "2020-01-01T00:00:00Z"]);
    let run = ["run", "--context", "staging", "-ojson", "--", "touch", "started"];
    let done = home.call(&run).run().exit(125);
    let error = done.json_error();
    assert_eq!(
        (error["code"].as_str(), error["exit_code"].as_u64()),
        (Some("CREDENTIALS_EXPIRED"), Some(125))
    );
    assert_eq!(error["expired_at"], "2020-01-01T00:00:00Z");
    assert_eq!(error["fix_command"], "sessile auth set bot");
    assert_eq!(error["variable"], "SESSILE_CREDENTIAL_BOT");
    assert!(!home.path("started").exists());
    assert!(home.call(&["session", "list", "-ojson"]).ok().json().as_array().unwrap().is_empty());
    assert_eq!(home.call(&["auth", "check", "bot", "-ojson"]).run().exit(8).code(), "CREDENTIALS_EXPIRED");
    // What the error names really helps.
    let given = printed(&home).env("SESSILE_CREDENTIAL_BOT", "instead").ok();
    assert_eq!(given.stdout(), "instead\n");
    set(&home, &["bot", "--secret-stdin"]).ok();
    assert_eq!(printed(&home).ok().stdout(), format!("{TOKEN}\n"));
}

#[test]
fn a_web_token_tells_its_own_end() {
    let home = home();
    // {"exp":1577836800}, which is the first of January 2020.
    home.write("jwt", "e30.eyJleHAiOjE1Nzc4MzY4MDB9.x\n");
    home.call(&["auth", "set", "bot", "--secret-file", "jwt"]).ok();
    assert_eq!(show(&home, "bot")["expires_at"], "2020-01-01T00:00:00Z");
    home.call(&["auth", "check", "bot"]).run().exit(8);
}

#[test]
fn a_missing_credential_names_what_wants_it_and_the_nearest_one() {
    let home = with_bot(&[]);
    home.call(&["context", "edit", "staging", "--env-credential", "BOT_TOKEN=bto"]).ok();
    let done = printed(&home).run().exit(125);
    assert!(
        done.stderr()
            .contains("credential \"bto\" not found in the vault; context staging (env.BOT_TOKEN) needs it"),
        "{}",
        done.told()
    );
    assert!(done.stderr().contains("did you mean \"bot\"?"), "{}", done.told());
    let found = home.call(&["doctor"]).run().stdout();
    assert!(found.contains("context staging uses credential \"bto\", which does not exist"), "{found}");
}

#[test]
fn a_credential_for_one_call_wins_and_is_stored_nowhere() {
    let home = with_bot(&["--account", "kept"]);
    let who = |call: Call| -> (bool, serde_json::Value, serde_json::Value) {
        let status = call.ok().json();
        (
            status["logged_in"] == true,
            status["credential"]["name"].clone(),
            status["credential"]["origin"].clone(),
        )
    };
    home.call(&["config", "set", "credential", "bot", "--global"]).ok();
    set(&home, &["other", "--secret-stdin"]).ok();
    home.write_private("token", "from-a-file\n");
    let status = || home.call(&["status", "-ojson"]);
    assert_eq!(who(status()).1, "bot");
    assert_eq!(status().ok().json()["user"], "kept");
    assert_eq!(who(status().env("SESSILE_CREDENTIAL", "other")).1, "other");
    let by_file = who(status().env("SESSILE_CREDENTIAL", "other").env("SESSILE_TOKEN_FILE", "token"));
    assert!(by_file.0 && by_file.1.is_null(), "{by_file:?}");
    let by_flag = status().args(&["--credential", "other"]).env("SESSILE_TOKEN_FILE", "token");
    assert_eq!(who(by_flag).1, "other");
    assert!(!who(status().args(&["--credential", "none-such"])).0);
    home.write_private("call.json", "{\"context\": \"production\", \"token\": \"of-the-seed\"}\n");
    let by_config = home.call(&["status", "--config", "call.json", "-ojson"]).ok();
    assert_eq!(by_config.json()["logged_in"], true);
    assert!(!by_config.told().contains("of-the-seed"), "{}", by_config.told());
    assert!(!home.path("call.json.state").exists());
}

#[test]
fn credential_flag_applies_to_the_command() {
    let home = with_bot(&[]);
    let inner = ["run", "--credential", "bot", "--", "printenv", "SESSILE_CREDENTIAL"];
    assert_eq!(home.call(&inner).ok().stdout(), "bot\n");
    let missing = ["run", "--credential", "none-such", "-ojson", "--", "true"];
    assert_eq!(home.call(&missing).run().exit(125).code(), "CREDENTIAL_NOT_FOUND");
}

#[test]
fn selections_are_separate_per_credential() {
    let home = home_with(&["staging", "prod"]);
    let mut shell = home.shell();
    let program = home.program().display().to_string();
    let mut say = |words: &str| shell.run(&format!("{program} {words} 2>&1")).0;
    say("context use staging");
    say("context use prod --credential bot");
    assert!(say("context current").contains("staging"));
    assert!(say("context current --credential bot").contains("prod"));
    assert!(say("context current").contains("staging"));
}

#[test]
fn credential_command_runs_each_time_unless_cached() {
    let home = home_with(&["staging"]);
    let count = home.write("count", "#!/bin/sh\necho x >> asked\nwc -l < asked\n");
    std::fs::set_permissions(&count, std::fs::Permissions::from_mode(0o755)).unwrap();
    home.call(&["context", "edit", "staging", "--env-credential", "BOT_TOKEN=bot"]).ok();
    let program = count.display().to_string();
    home.call(&["auth", "set", "bot", "--command", &program]).ok();
    assert_eq!([printed(&home).ok().stdout(), printed(&home).ok().stdout()], ["1\n", "2\n"]);
    home.call(&["auth", "set", "bot", "--command", &program, "--cache", "1h"]).ok();
    assert_eq!([printed(&home).ok().stdout(), printed(&home).ok().stdout()], ["3\n", "3\n"]);
    home.call(&["auth", "refresh", "bot"]).ok();
    assert_eq!(printed(&home).ok().stdout(), "4\n");
    home.call(&["auth", "set", "bot", "--command", "/no/such/program"]).ok();
    assert_eq!(printed(&home).args(&[]).run().exit(125).status(), Some(125));
    home.call(&["auth", "set", "bot", "--command", "false"]).ok();
    assert!(printed(&home).run().exit(125).stderr().contains("command \"false\" failed: exit status"));
}

#[test]
fn logging_out_takes_the_copies_in_rooms_too_and_says_so() {
    let home = with_bot(&[]);
    let keep = "mkdir -p $GH_CONFIG_DIR && echo \"token: $BOT_TOKEN # mine\" > $GH_CONFIG_DIR/hosts.yml && \
                echo $GH_CONFIG_DIR/hosts.yml";
    let run = ["run", "--session", "work", "--context", "staging", "--", "sh", "-c", keep];
    let copy = home.call(&run).with_tools().ok().stdout().trim().to_owned();
    assert!(home.read(&copy).contains(TOKEN));
    assert_eq!(home.call(&["auth", "logout", "bot", "-ojson"]).run().exit(2).code(), "CONFIRMATION_REQUIRED");
    let done = home.call(&["auth", "logout", "bot", "--yes", "-ojson"]).ok().json();
    assert_eq!(done["logged_out"][0], "bot");
    assert_eq!(done["copies_removed"][0].as_str(), Some(copy.as_str()));
    assert_eq!(home.read(&copy), format!("token: {} # mine\n", "*".repeat(TOKEN.len())));
    home.call(&["auth", "show", "bot"]).run().exit(8);
}

#[test]
fn a_passphrase_opens_the_vault_for_a_while() {
    let home = with_bot(&[]);
    home.write("words", "correct horse battery\n");
    let runtime = home.private_dir("runtime");
    let with_runtime = |call: Call| call.env("XDG_RUNTIME_DIR", &runtime);
    with_runtime(home.call(&["auth", "rekey", "--to", "passphrase", "--passphrase-file", "words"])).ok();
    assert!(!home.path(".local/state/sessile/vault/key").exists(), "the old key is deleted");
    let locked = with_runtime(printed(&home)).run().exit(125);
    assert!(locked.stderr().contains("passphrase required"), "{}", locked.told());
    assert_eq!(home.call(&["auth", "list", "-ojson"]).run().exit(8).code(), "VAULT_LOCKED");
    let wrong = home.write("wrong", "something else\n");
    let unlock =
        |file: &str| with_runtime(home.call(&["auth", "unlock", "--passphrase-file", file, "-ojson"]));
    assert_eq!(unlock(wrong.to_str().unwrap()).run().exit(8).code(), "VAULT_WRONG_KEY");
    unlock("words").ok();
    assert_eq!(with_runtime(printed(&home)).ok().stdout(), format!("{TOKEN}\n"));
    let status = with_runtime(home.call(&["status", "-ojson"])).ok().json();
    assert!(status["vault"]["unlocked_seconds"].as_u64().unwrap() > 800, "{status}");
    with_runtime(home.call(&["auth", "unlock", "--end"])).ok();
    with_runtime(printed(&home)).run().exit(125);
    // A program gives a file, which must be its own alone.
    let file = |call: Call| call.env("SESSILE_VAULT_PASSPHRASE_FILE", home.path("words"));
    let exposed = file(home.call(&["auth", "list", "-ojson"])).run().exit(7);
    assert_eq!(exposed.code(), "KEY_FILE_EXPOSED");
    std::fs::set_permissions(home.path("words"), std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(file(printed(&home)).ok().stdout(), format!("{TOKEN}\n"));
    // For no time at all it is not kept.
    unlock("words").args(&["--for", "0s"]).ok();
    with_runtime(printed(&home)).run().exit(125);
    file(home.call(&["auth", "rekey", "--to", "file"])).ok();
    assert_eq!(printed(&home).ok().stdout(), format!("{TOKEN}\n"));
}

#[test]
fn a_person_types_the_passphrase_where_it_is_needed() {
    let home = with_bot(&[]);
    home.write("words", "correct horse battery\n");
    home.call(&["auth", "rekey", "--to", "passphrase", "--passphrase-file", "words"]).ok();
    let mut tty = printed(&home).tty();
    tty.expect("Passphrase of the vault: ");
    tty.type_line("correct horse battery");
    let (seen, status) = tty.finish();
    assert_eq!(status, 0, "{seen}");
    assert!(seen.contains(TOKEN) && !seen.contains("horse"), "{seen}");
    let mut tty = home.tty(&["auth", "list"]);
    tty.expect("Passphrase of the vault: ");
    tty.type_line("wrong");
    let (seen, status) = tty.finish();
    assert_eq!(status, 8, "{seen}");
}

#[test]
fn the_vault_moves_to_the_keychain_and_back() {
    let home = with_bot(&[]);
    set(&home, &["other", "--secret-stdin"]).ok();
    let keyring = testkit::Keyring::new();
    let there = |call: Call| call.env("DBUS_SESSION_BUS_ADDRESS", keyring.address());
    there(home.call(&["auth", "move", "--to", "keychain"])).ok();
    assert!(!home.path(".local/state/sessile/vault/credentials").exists());
    assert_eq!(there(printed(&home)).ok().stdout(), format!("{TOKEN}\n"));
    // It stays there: without the desktop that is an error, and not another vault.
    assert_eq!(home.call(&["auth", "list", "-ojson"]).run().exit(12).code(), "KEYCHAIN_UNREACHABLE");
    there(home.call(&["auth", "move", "--to", "file"])).ok();
    assert_eq!(printed(&home).ok().stdout(), format!("{TOKEN}\n"));
    assert_eq!(home.call(&["auth", "list", "-ojson"]).ok().json().as_array().unwrap().len(), 2);
    // The key of a sealed file can be there, too.
    there(home.call(&["auth", "rekey", "--to", "keychain"])).ok();
    assert_eq!(there(printed(&home)).ok().stdout(), format!("{TOKEN}\n"));
    assert!(printed(&home).run().exit(125).stderr().contains("cannot reach the keychain"));
    // Half a move is told, and what is logged out of does not come back by the other half.
    home.write(".local/state/sessile/vault/keychain", "");
    assert!(there(home.call(&["doctor"])).run().stdout().contains("auth move --to keychain --from file"));
    std::fs::remove_file(home.path(".local/state/sessile/vault/keychain")).unwrap();
    keyring.lock();
    assert!(there(printed(&home)).run().exit(125).stderr().contains("the keychain is locked"));
}

#[test]
fn a_key_file_behind_a_link_is_changed_where_it_is() {
    let home = with_bot(&[]);
    let key = home.read(".local/state/sessile/vault/key");
    let real = home.write("keys/real", &key);
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&real, home.path("key")).unwrap();
    let with = |call: Call| call.env("SESSILE_SET", format!("vault.key-file={}", home.path("key").display()));
    assert_eq!(with(printed(&home)).ok().stdout(), format!("{TOKEN}\n"));
    with(home.call(&["auth", "rekey", "--to", "file"])).ok();
    assert_eq!(with(printed(&home)).ok().stdout(), format!("{TOKEN}\n"));
    assert!(home.read("keys/real") != key && home.path("key").is_symlink());
    // One that depends on where one stands is none.
    let relative = home.call(&["auth", "list", "--set", "vault.key-file=keys/real", "-ojson"]).run().exit(2);
    assert_eq!(relative.code(), "INVALID_VALUE");
}

#[test]
fn a_prompt_that_is_interrupted_leaves_the_terminal_as_it_was() {
    let home = home();
    let mut shell = home.shell();
    let program = home.program().display().to_string();
    shell.run("trap : INT; stty echo");
    shell.type_line(&format!("{program} auth set bot; echo ended: $?"));
    shell.expect("Secret for bot: ");
    shell.interrupt();
    shell.expect("ended: 130");
    let (_, is_off) = shell.run("stty -a | tr ' ' '\\n' | grep -qx -e -echo");
    assert_eq!(is_off, 1);
}

#[test]
fn an_untrusted_project_cannot_choose_a_credential_or_a_helper() {
    let home = with_bot(&[]);
    home.write("evil", "#!/bin/sh\ntouch called\n");
    home.write(
        "project/.sessile/config.toml",
        "credential = \"bot\"\n[vault]\nbackend = \"helper\"\nhelper = \"../evil\"\n",
    );
    let done: CallResult = home.call(&["status", "-ojson"]).cwd("project").ok();
    assert_eq!(done.json()["credential"], serde_json::Value::Null);
    assert_eq!(done.json()["vault"]["backend"], "file");
    home.call(&["auth", "list"]).cwd("project").ok();
    assert!(!home.path("called").exists());
    // Nor does its context, by the URL of an agent.
    home.write("project/.sessile/contexts/dev.toml", "[agents.'http://localhost:9']\ncredential = 'bot'\n");
    let typed =
        ["auth", "set", "--url", "http://localhost:9", "--secret-stdin", "--context", "dev", "-ojson"];
    let kept = home.call(&typed).cwd("project").stdin("mine").ok().json();
    assert_eq!(kept["name"], "localhost-9");
}

#[test]
fn fields_can_be_changed_without_the_secret() {
    let home = with_bot(&[]);
    let change = ["auth", "set", "bot", "--keep-secret", "--account", "ci", "--site", "https://a.example/x"];
    home.call(&change).ok();
    let one = show(&home, "bot");
    assert_eq!((one["account"].as_str(), one["sites"][0].as_str()), (Some("ci"), Some("https://a.example")));
    assert_eq!(printed(&home).ok().stdout(), format!("{TOKEN}\n"));
    let missing = ["auth", "set", "other", "--keep-secret", "--account", "x", "-ojson"];
    assert_eq!(home.call(&missing).run().exit(8).code(), "CREDENTIAL_NOT_FOUND");
}

#[test]
fn new_secret_keeps_the_other_fields() {
    let home = home();
    set(&home, &["registry", "--basic", "deploy", "--secret-stdin", "--site", "https://r.example"]).ok();
    set(&home, &["registry", "--secret-stdin"]).ok();
    let one = show(&home, "registry");
    assert_eq!((one["kind"].as_str(), one["username"].as_str()), (Some("basic"), Some("deploy")));
    assert_eq!(one["sites"][0], "https://r.example");
    set(&home, &["registry", "--keep-secret", "--site", "https://s.example", "--expires-in", "1h"]).ok();
    assert_eq!(show(&home, "registry")["sites"], serde_json::json!(["https://s.example"]));
    set(&home, &["registry", "--keep-secret", "--expires-at", "never"]).ok();
    assert_eq!(show(&home, "registry")["expires_at"], serde_json::Value::Null);
}

#[test]
fn two_credentials_never_share_a_variable_nor_an_agent() {
    let home = with_bot(&[]);
    let twin = set(&home, &["BOT", "--secret-stdin", "-ojson"]).run().exit(2);
    assert_eq!(twin.code(), "INVALID_NAME");
    let url = "http://localhost:8000/a";
    set(&home, &["one", "--url", url, "--secret-stdin"]).ok();
    let told = set(&home, &["two", "--url", url, "--secret-stdin"]).ok();
    assert!(told.stderr().contains("credential one is no longer used for"), "{}", told.told());
    // Below the agent it is the agent's.
    assert_eq!(show(&home, "http://localhost:8000/a/health")["name"], "two");
    assert_eq!(home.call(&["auth", "show", "http://localhost:8000/ab"]).run().status(), Some(8));
}

#[test]
fn the_secret_of_one_agent_never_takes_the_place_of_another_s() {
    let home = home();
    set(&home, &["--url", "https://a.example", "--secret-stdin"]).ok();
    let below = set(&home, &["--url", "https://a.example/two", "--secret-stdin", "-ojson"]).ok().json();
    assert_eq!(below["created"], true);
    set(&home, &["a-b", "--secret-stdin"]).ok();
    let other = set(&home, &["--url", "https://a-b", "--secret-stdin", "-ojson"]).ok().json();
    assert_eq!((other["created"].as_bool(), other["name"].as_str()), (Some(true), Some("a-b-2")));
    // What is taken away is the very one that was named.
    let wrong =
        home.call(&["auth", "clear", "--url", "https://a.example/three", "--yes", "-ojson"]).run().exit(8);
    assert_eq!(wrong.code(), "CREDENTIAL_NOT_FOUND");
    let plain = set(&home, &["--url", "http://a.example", "--secret-stdin", "-ojson"]).run().exit(2);
    assert_eq!(plain.code(), "INVALID_VALUE");
}

#[test]
fn some_that_are_not_renewed_make_it_partly_done() {
    let home = home();
    for (name, command) in [("good", "echo answer"), ("bad", "false")] {
        home.call(&["auth", "set", name, "--command", command, "--cache", "1h"]).ok();
    }
    set(&home, &["static", "--secret-stdin"]).ok();
    let done = home.call(&["auth", "refresh", "--all", "-ojson"]).run().exit(3);
    assert_eq!(
        (done.json()["failed"].as_u64(), done.json()["renewed"][0]["name"].as_str()),
        (Some(1), Some("good"))
    );
    home.call(&["auth", "refresh", "bad"]).run().exit(8);
}

#[test]
fn the_secrets_of_other_contexts_stay_out_of_a_command() {
    let home = with_bot(&[]);
    let run = |more: &[&str]| {
        let call = home.call(&["run", "--context", "staging"]).args(more).args(&["--", "printenv"]);
        let given = call.env("SESSILE_CREDENTIAL_BOT", "own-one").env("SESSILE_CREDENTIAL_PROD", "other-one");
        given.ok().stdout()
    };
    let seen = run(&[]);
    assert!(seen.contains("BOT_TOKEN=own-one") && seen.contains("SESSILE_CREDENTIAL_BOT=own-one"), "{seen}");
    assert!(!seen.contains("other-one"), "{seen}");
    assert!(run(&["--keep-env", "SESSILE_CREDENTIAL_*"]).contains("other-one"));
    assert!(run(&["--env-credential", "X=prod"]).contains("\nX=other-one\n"));
}

#[test]
fn eval_of_env_removes_the_users_own_token() {
    let home = with_bot(&[]);
    home.call(&["session", "start", "--name", "work", "--context", "staging"]).ok();
    let script = home.call(&["env", "--session", "work"]).env("BOT_TOKEN", "my-own").ok().stdout();
    assert!(script.contains("unset BOT_TOKEN"), "{script}");
}

#[test]
fn session_cannot_delete_or_move_credentials() {
    let home = with_bot(&[]);
    let program = home.program().display().to_string();
    let calls: &[&[&str]] = &[
        &["auth", "clear", "bot", "--yes"],
        &["auth", "logout", "--all", "--yes"],
        &["auth", "rekey", "--to", "file"],
        &["auth", "move", "--to", "keychain"],
        &["auth", "set", "bot", "--secret-file", "token"],
    ];
    home.write("token", "another");
    for words in calls {
        let run = home.call(&["run", "--", &program]).args(words).args(&["-ojson"]).run().exit(7);
        assert_eq!(run.code(), "IN_SESSION");
    }
    assert_eq!(printed(&home).ok().stdout(), format!("{TOKEN}\n"));
}

#[test]
fn a_key_file_is_changed_for_a_new_one() {
    let home = with_bot(&[]);
    let file = ".local/state/sessile/vault/key";
    let before = home.read(file);
    home.call(&["auth", "rekey", "--to", "file"]).ok();
    let after = home.read(file);
    assert!(before != after && after.lines().count() == 1, "{after}");
    assert_eq!(printed(&home).ok().stdout(), format!("{TOKEN}\n"));
    // Both may be there if a change was cut short.
    home.write(file, format!("{before}{after}"));
    assert_eq!(printed(&home).ok().stdout(), format!("{TOKEN}\n"));
}

#[test]
fn check_reports_each_credential() {
    let home = with_bot(&["--expires-at", "2020-01-01T00:00:00Z"]);
    set(&home, &["good", "--secret-stdin"]).ok();
    let done = home.call(&["auth", "check", "good", "bot", "none", "-ojson"]).run().exit(8);
    let found = &done.json()["credentials"];
    assert_eq!((&found[0]["valid"], &found[1]["code"]), (&true.into(), &"CREDENTIALS_EXPIRED".into()));
    assert_eq!(found[2]["code"], "CREDENTIAL_NOT_FOUND");
}

#[test]
fn credential_binding_can_be_undone() {
    let home = with_bot(&[]);
    let last = home.call(&["history", "-ojson"]).ok().json()[0].clone();
    assert_eq!((last["command"].as_str(), last["undoable"].as_bool()), (Some("context edit"), Some(true)));
    home.call(&["undo", &last["id"].to_string()]).ok();
    assert!(!home.read(".config/sessile/contexts/staging.toml").contains("bot"));
}

#[test]
fn the_history_tells_that_it_was_set_and_nothing_more() {
    let home = with_bot(&[]);
    let history = home.call(&["history", "-ojson"]).ok();
    let set =
        history.json().as_array().unwrap().iter().find(|one| one["command"] == "auth set").cloned().unwrap();
    assert_eq!((set["subject"].as_str(), set["undoable"].as_bool()), (Some("bot"), Some(false)));
    let id = set["id"].to_string();
    assert_eq!(home.call(&["undo", &id, "-ojson"]).run().exit(6).code(), "UNDO_REFUSED");
}

#[test]
fn credential_variable_behind_invalid_utf8_is_removed() {
    use std::os::unix::ffi::OsStrExt;
    let home = with_bot(&[]);
    let name = std::ffi::OsStr::from_bytes(b"SESSILE_CREDENTIAL_A\xff");
    let words: [&[&str]; 2] = [&["run", "--context", "staging"], &["lock", "run", "l"]];
    for words in words {
        let call = home.call(words).args(&["--", "printenv", "SESSILE_CREDENTIAL_PROD"]);
        let done = call.env(name, "1").env("SESSILE_CREDENTIAL_PROD", "other-one").run().exit(1);
        assert_eq!(done.stdout(), "", "{words:?}");
    }
}

#[test]
fn refresh_continues_after_a_deleted_credential() {
    let home = home();
    let deletes = format!("#!/bin/sh\n'{}' auth clear b --yes >&2; echo answer\n", home.program().display());
    let deletes = home.write("deletes", deletes);
    std::fs::set_permissions(&deletes, PermissionsExt::from_mode(0o755)).unwrap();
    for (name, command) in [("a", deletes.to_str().unwrap()), ("b", "echo answer"), ("c", "echo answer")] {
        home.call(&["auth", "set", name, "--command", command, "--cache", "1h"]).ok();
    }
    let done = home.call(&["auth", "refresh", "--all", "-ojson"]).run().exit(3);
    let renewed = done.json()["renewed"].as_array().unwrap().clone();
    let names: Vec<&str> = renewed.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!((names, done.json()["failed"].as_u64()), (vec!["a", "c"], Some(1)));
    assert!(done.stderr().contains("b"), "{}", done.told());
}
