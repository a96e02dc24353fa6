//! Secrets stay in the vault: not in exports, settings, core dumps or the environment of unrelated commands.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use testkit::Home;

use super::{clean, refused};
use crate::{eventually, home, home_with};

const SECRET: &str = "hunter2-hunter2";
const URL: &str = "https://bob:hunter2-hunter2@git.example/repo";

/// The error says what to do instead and does not repeat the secret.
#[track_caller]
fn is_refused(home: &Home, args: &[&str]) {
    let error = refused(home, args, "SECRET_REFUSED");
    let told = error.to_string();
    assert!(!told.contains(SECRET), "{told}");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("credential")), "{told}");
}

#[test]
fn context_variable_that_holds_a_secret_is_refused() {
    let home = home_with(&["a"]);
    let (token, url) = (format!("GH_TOKEN={SECRET}"), format!("REMOTE={URL}"));
    for pair in [&token, &url] {
        is_refused(&home, &["context", "create", "b", "--env", pair]);
        is_refused(&home, &["context", "edit", "a", "--env", pair]);
        is_refused(&home, &["context", "edit", "a", "--setting", &format!("env.{pair}")]);
    }
    is_refused(&home, &["context", "edit", "a", "--tool", &format!("npm.auth-token={SECRET}")]);
    is_refused(&home, &["context", "edit", "a", "--tool", &format!("npm.registry={URL}")]);
    is_refused(&home, &["context", "edit", "a", "--description", &format!("see {URL}")]);
    let header = format!("agents.bot.headers=Authorization: Bearer {SECRET}");
    is_refused(&home, &["context", "create", "b", "--setting", &header]);
    is_refused(&home, &["context", "edit", "a", "--setting", &header]);
    home.write("in.toml", format!("[contexts.c]\n[contexts.d.env]\nGH_TOKEN = \"{SECRET}\"\n"));
    is_refused(&home, &["context", "import", "in.toml"]);
}

#[test]
fn handwritten_secret_of_a_context_is_private_in_the_room() {
    use std::os::unix::fs::PermissionsExt;
    let home = home();
    home.write(".config/sessile/contexts/a.toml", format!("[env]\nGH_TOKEN = \"{SECRET}\"\n"));
    home.call(&["run", "--session", "s1", "--context", "a", "--", "true"]).ok();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    let plans: Vec<_> = home.tree().into_iter().filter(|(path, _)| path.ends_with("plan.json")).collect();
    assert_eq!(plans.len(), 1, "{plans:?}");
    for (path, _) in plans {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        assert_eq!(mode(path.parent().unwrap()), 0o700, "{}", path.display());
    }
}

#[test]
fn setting_that_holds_a_secret_is_refused() {
    let home = home();
    for (key, value) in [("env.GH_TOKEN", SECRET), ("env.DB_PASSWORD", "1234"), ("env.REMOTE", URL)] {
        for scope in ["--global", "--dir"] {
            is_refused(&home, &["config", "set", key, value, scope]);
        }
        is_refused(&home, &["status", "--set", &format!("{key}={value}")]);
    }
    is_refused(&home, &["config", "set", "env.SECRET_KEY_BASE", SECRET, "--global"]);
    home.call(&["session", "start", "--name", "s"]).ok();
    is_refused(&home, &["config", "set", "env.GH_TOKEN", SECRET, "--session", "s"]);
    is_refused(&home, &["config", "set", "env.REMOTE", URL, "--session", "s"]);
    let exported = home.call(&["session", "export", "s"]).ok().stdout();
    let mut exported: serde_json::Value = serde_json::from_str(&exported).unwrap();
    exported["settings"] = serde_json::json!({ "env.REMOTE": URL });
    home.write("in.json", exported.to_string());
    is_refused(&home, &["session", "import", "in.json", "--name", "t"]);
}

#[test]
fn variable_that_only_sounds_like_a_secret_is_accepted() {
    let home = home_with(&["a"]);
    for pair in [
        "TOKENIZERS_PARALLELISM=false",
        "MAX_TOKENS=4096",
        "TOKEN_LIMIT=8000",
        "GOOGLE_APPLICATION_CREDENTIALS=/etc/key.json",
        "CI_TOKEN_FILE=/run/token",
        "GH_TOKEN=",
        "REMOTE=https://bob@git.example/repo",
        "SSH_AUTH_SOCK=/run/agent",
    ] {
        let (name, value) = pair.split_once('=').unwrap();
        home.call(&["context", "edit", "a", "--env", pair]).ok();
        home.call(&["config", "set", &format!("env.{name}"), value, "--global"]).ok();
        home.call(&["config", "unset", &format!("env.{name}"), "--global"]).ok();
        let done = home.call(&["run", "--env", pair, "--", "printenv", name]).ok();
        assert_eq!(done.stdout(), format!("{value}\n"));
    }
}

#[test]
fn secret_among_the_arguments_of_run_is_refused() {
    let home = home();
    for command in [&["run"][..], &["shell"]] {
        for pair in [format!("API_TOKEN={SECRET}"), format!("REMOTE={URL}")] {
            let call = home.call(command).args(&["-ojson", "--env", &pair]);
            let done = clean(if command == ["run"] { call.args(&["--", "true"]) } else { call }.run());
            assert_eq!(done.code(), "SECRET_REFUSED", "{}", done.told());
            assert!(!done.told().contains(SECRET), "{}", done.told());
            assert!(done.stderr().contains("--env-credential"), "{}", done.told());
        }
    }
    assert_eq!(crate::live(&home), Vec::<String>::new(), "no session is left");
    // What the hint says works.
    let done = home.call(&["run", "--", "printenv", "API_TOKEN"]).env("API_TOKEN", SECRET).ok();
    assert_eq!(done.stdout(), format!("{SECRET}\n"));
}

#[test]
fn variable_that_sessile_sets_is_refused_as_an_argument() {
    let home = home();
    for name in [
        "SESSILE_SESSION",
        "SESSILE_CONTEXT",
        "SESSILE_ORIGINALS",
        "SESSILE_STATE_DIR",
        "SESSILE_RUN",
        "SESSILE_LOCK_TOKEN",
    ] {
        let pair = format!("{name}=x");
        let done = clean(home.call(&["run", "-ojson", "--env", &pair, "--", "true"]).run().exit(125));
        assert_eq!(done.code(), "USAGE", "{}", done.told());
        assert!(done.stderr().contains(name), "{}", done.told());
    }
    let done = home.call(&["run", "--env", "SESSILE_OUTPUT=json", "--", "printenv", "SESSILE_OUTPUT"]);
    assert_eq!(done.ok().stdout(), "json\n", "the others are the caller's");
}

#[test]
fn context_variable_that_sessile_sets_is_reported_as_ignored() {
    let home = home();
    home.write(".config/sessile/contexts/a.toml", "[env]\nSESSILE_SESSION = \"x\"\n");
    let done = clean(home.call(&["run", "--context", "a", "--", "printenv", "SESSILE_SESSION"]).ok());
    assert_ne!(done.stdout(), "x\n");
    assert!(done.stderr().contains("SESSILE_SESSION"), "{}", done.told());
}

#[test]
fn export_leaves_out_a_url_with_a_password() {
    let home = home();
    home.write(
        ".config/sessile/contexts/a.toml",
        format!(
            "description = \"{URL}\"\n[env]\nREMOTE = \"{URL}\"\nPLAIN = \"https://bob@git.example\"\n[tools.npm]\nregistry = \"{URL}\"\n[settings.env]\nPROXY = \"{URL}\"\n"
        ),
    );
    for format in ["text", "json", "jsonl"] {
        let done = clean(home.call(&["context", "export", "--all", "--output", format]).ok());
        assert!(!done.told().contains(SECRET), "{}", done.told());
        assert!(done.stdout().contains("https://bob@git.example"), "{}", done.told());
        for key in ["env.REMOTE", "tools.npm.registry", "settings.env.PROXY", "description"] {
            assert!(done.stderr().contains(key), "{key}: {}", done.told());
        }
    }
    for args in [
        &["context", "show", "a"][..],
        &["config", "show", "--context", "a"],
        &["run", "--context", "a", "--dry-run"],
        &["status", "--context", "a"],
    ] {
        for format in ["text", "json"] {
            let done = clean(home.call(args).args(&["--output", format]).ok());
            assert!(!done.told().contains(SECRET), "{}", done.told());
        }
    }
    let done = home.call(&["doctor"]).run();
    assert!(done.stdout().contains("REMOTE in plain text"), "{}", done.told());
    assert!(!done.told().contains(SECRET), "{}", done.told());
}

#[test]
fn doctor_names_secrets_in_settings() {
    let home = home();
    home.write(".config/sessile/config.toml", format!("[env]\nGH_TOKEN = \"{SECRET}\"\nPLAIN = \"x\"\n"));
    let done = home.call(&["doctor"]).run();
    assert!(done.stdout().contains("GH_TOKEN in plain text"), "{}", done.told());
    assert!(!done.told().contains(SECRET) && !done.told().contains("PLAIN"), "{}", done.told());
}

#[test]
fn lock_run_passes_on_only_the_credentials_of_the_context() {
    let home = home_with(&["a"]);
    home.call(&["context", "edit", "a", "--env-credential", "T=own"]).ok();
    let seen = |flags: &[&str]| {
        let call = home.call(&["lock", "run", "l"]).args(flags).args(&["--", "env"]);
        let call = call.env("SESSILE_CREDENTIAL_OWN", "own-one").env("SESSILE_CREDENTIAL_PROD", "other-one");
        clean(call.env("PLAIN", "x").ok()).stdout()
    };
    let without = seen(&[]);
    assert!(!without.contains("SESSILE_CREDENTIAL_") && without.contains("PLAIN=x"), "{without}");
    let with = seen(&["--context", "a"]);
    assert!(with.contains("SESSILE_CREDENTIAL_OWN=own-one") && !with.contains("other-one"), "{with}");
    let selected = seen(&["--credential", "prod"]);
    assert!(selected.contains("other-one") && !selected.contains("own-one"), "{selected}");
}

/// Runs the command line with core dumps allowed, and ends the process of this name in it, or the outermost one.
/// Returns whether the outermost one dumped core.
fn dump(home: &Home, args: &[&str], inner: Option<&str>) -> bool {
    let words = "ulimit -c unlimited; exec \"$0\" \"$@\"";
    let call = home.tool("sh", &["-c", words]).arg(home.program()).args(args);
    let mut command = call.command();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    eventually("the command", || home.path("started").exists());
    let pid = match inner {
        Some(file) => home.read(file).trim().to_owned(),
        None => child.id().to_string(),
    };
    assert!(std::process::Command::new("kill").args(["-ABRT", &pid]).status().unwrap().success());
    let status = child.wait().unwrap();
    std::fs::remove_file(home.path("started")).unwrap();
    status.core_dumped()
}

#[test]
fn process_that_waits_for_a_command_dumps_no_core() {
    let home = home_with(&["staging"]);
    home.call(&["auth", "set", "bot", "--secret-stdin"]).stdin(SECRET).ok();
    home.call(&["context", "edit", "staging", "--env-credential", "BOT_TOKEN=bot"]).ok();
    let script = "ulimit -c > limit; echo $$ > pid; touch started; exec sleep 60";
    let runs: [&[&str]; 3] = [
        &["run", "--context", "staging", "--", "sh", "-c", script],
        &["run", "--context", "staging", "--session", "s", "--timeout", "50s", "--", "sh", "-c", script],
        &["lock", "run", "l", "--", "sh", "-c", script],
    ];
    for args in runs {
        assert!(!dump(&home, args, None), "{args:?}");
        assert_eq!(home.read("limit"), "unlimited\n", "the command keeps its own limit");
        let _ = std::process::Command::new("kill").arg(home.read("pid").trim()).status();
    }
    for (path, content) in home.tree() {
        assert!(!String::from_utf8_lossy(&content).contains(SECRET), "{}", path.display());
    }
    // The command itself can dump its core, so the test would have seen one.
    dump(&home, runs[0], Some("pid"));
    let cores = home.tree().into_iter().filter(|(_, content)| content.starts_with(b"\x7fELF"));
    assert!(
        cores.count() > 0,
        "the test requires core files, and this machine writes none: see core_pattern"
    );
}

#[test]
fn handwritten_secret_is_masked_by_every_command() {
    let home = home();
    home.write(
        ".config/sessile/config.toml",
        "[env]\nDB_PASSWORD = \"hunter2\"\nMYSQL_PWD = \"hunter3\"\nREMOTE = \"https://u:hunter4@h/\"\nPLAIN = \"x\"\n",
    );
    for key in ["env.DB_PASSWORD", "env.MYSQL_PWD", "env.REMOTE"] {
        for args in [
            &["config", "get", key][..],
            &["config", "get", key, "--source"],
            &["config", "show", key],
            &["config", "unset", key, "--global"],
        ] {
            for format in ["text", "json"] {
                let done = clean(home.call(args).env("SESSILE_OUTPUT", format).run());
                assert!(!done.told().contains("hunter"), "{}", done.told());
            }
        }
    }
    assert_eq!(home.call(&["config", "get", "env.PLAIN"]).ok().stdout(), "x\n");
}
