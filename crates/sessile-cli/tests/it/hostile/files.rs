//! What stands in the place of a settings file, a context or an import.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Command;

use testkit::Home;

use super::{clean, refused, refused_call};
use crate::{home, start};

const CONFIG: &str = ".config/sessile/config.toml";

/// Every way to read or write the user's settings fails like this.
#[track_caller]
fn settings_are_refused(home: &Home, code: &str) {
    for args in [
        &["status"][..],
        &["config", "show"],
        &["config", "get", "output"],
        &["config", "set", "env.A", "1", "--global"],
        &["config", "unset", "env.A", "--global"],
        &["context", "list"],
        &["context", "current"],
    ] {
        refused(home, args, code);
    }
    // These are what one mends it with: they answer, and say what is wrong.
    for args in [&["doctor"][..], &["config", "validate"]] {
        let done = clean(home.call(args).run()).exit(1);
        assert!(done.stdout().contains("config.toml"), "{}", done.told());
    }
    for args in [&["config", "path"][..], &["config", "schema"], &["manifest"], &["--help"]] {
        clean(home.call(args).ok());
    }
}

#[test]
fn a_directory_in_the_place_of_the_settings_is_refused() {
    let home = home();
    std::fs::create_dir_all(home.path(CONFIG)).unwrap();
    settings_are_refused(&home, "NOT_A_FILE");
}

#[test]
fn a_pipe_in_the_place_of_the_settings_is_not_waited_for() {
    let home = home();
    std::fs::create_dir_all(home.path(".config/sessile")).unwrap();
    assert!(Command::new("mkfifo").arg(home.path(CONFIG)).status().unwrap().success());
    settings_are_refused(&home, "NOT_A_FILE");
}

#[test]
fn a_socket_in_the_place_of_the_settings_is_refused() {
    let home = home();
    std::fs::create_dir_all(home.path(".config/sessile")).unwrap();
    let _socket = UnixListener::bind(home.path(CONFIG)).unwrap();
    settings_are_refused(&home, "NOT_A_FILE");
}

#[test]
fn a_loop_of_links_in_the_place_of_the_settings_is_refused() {
    let home = home();
    std::fs::create_dir_all(home.path(".config/sessile")).unwrap();
    symlink("other", home.path(CONFIG)).unwrap();
    symlink("config.toml", home.path(".config/sessile/other")).unwrap();
    settings_are_refused(&home, "IO");
}

#[test]
fn a_device_in_the_place_of_the_settings_is_refused() {
    let home = home();
    std::fs::create_dir_all(home.path(".config/sessile")).unwrap();
    symlink("/dev/zero", home.path(CONFIG)).unwrap();
    settings_are_refused(&home, "NOT_A_FILE");
}

#[test]
fn a_hundred_megabytes_of_settings_are_refused() {
    let home = home();
    let path = home.write(CONFIG, "");
    std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(100 << 20).unwrap();
    settings_are_refused(&home, "FILE_TOO_LARGE");
}

#[test]
fn settings_that_are_not_utf_8_are_refused_with_the_place() {
    let home = home();
    home.write(CONFIG, b"env.A = '\xff'\n");
    settings_are_refused(&home, "FILE_NOT_UTF8");
    let error = refused(&home, &["status"], "FILE_NOT_UTF8");
    assert!(error["message"].as_str().unwrap().contains("offset 9"), "{error}");
}

#[test]
fn terminal_bytes_in_settings_are_refused_and_escaped() {
    let home = home();
    for line in
        ["env.A = 'a\0b'\n", "env.A = '\x1b[2J'\n", "\x1b]0;title\x07 = 1\n", "output = \"\\u001b[31m\"\n"]
    {
        home.write(CONFIG, line);
        let code = if line.starts_with("output") { "FILE_VALUE" } else { "FILE_SYNTAX" };
        settings_are_refused(&home, code);
    }
}

#[test]
fn a_syntax_error_names_the_line_and_shows_it() {
    let home = home();
    home.write(CONFIG, "# fine\nlock-timeout = = 1\n");
    let error = refused(&home, &["config", "set", "env.A", "1", "--global"], "FILE_SYNTAX");
    assert!(error["message"].as_str().unwrap().contains("config.toml:2:"), "{error}");
    assert!(home.call(&["status"]).run().stderr().contains("2 | lock-timeout = = 1"));
}

#[test]
fn settings_nested_without_end_are_refused() {
    let home = home();
    let deep = 100_000;
    for text in [
        format!("a = {}{}\n", "[".repeat(deep), "]".repeat(deep)),
        format!("a = {}1{}\n", "{a=".repeat(deep), "}".repeat(deep)),
        format!("{}a = 1\n", "a.".repeat(deep)),
        format!("[{}a]\nb = 1\n", "a.".repeat(deep)),
    ] {
        home.write(CONFIG, text);
        settings_are_refused(&home, "FILE_SYNTAX");
    }
    let nested = [format!("{{\"a\":{}{}}}", "[".repeat(deep), "]".repeat(deep)), "{\"a\":".repeat(deep)];
    for (number, text) in nested.into_iter().enumerate() {
        home.write(CONFIG, "");
        let file = format!("{number}.json");
        home.write(&file, text);
        refused(&home, &["status", "--config", &file], "FILE_SYNTAX");
        refused(&home, &["context", "import", &file], "FILE_SYNTAX");
    }
}

/// A project's file may come from a stranger; it must not be able to stop every command in its directory.
#[test]
fn hundred_thousand_unknown_keys_are_reported_briefly() {
    let home = home();
    let lines: String = (0..75_000).map(|number| format!("k{number} = 1\n")).collect();
    home.write("p/.sessile/config.toml", &lines);
    let done = clean(home.call(&["status"]).cwd("p").ok());
    assert!(done.stderr().lines().count() < 40, "{}", done.told());
    home.write("p/.sessile/config.toml", format!("[env]\n{lines}").replace(" = 1", " = ''"));
    let done = clean(home.call(&["status"]).cwd("p").ok());
    assert!(done.stderr().len() < 2_000, "{}", done.told());
    home.write("p/.sessile/config.toml", "");
    home.write("p/.sessile/contexts/c.toml", &lines);
    clean(home.call(&["context", "list"]).cwd("p").ok());
    let members: Vec<String> = (0..75_000).map(|number| format!("\"k{number}\":1")).collect();
    home.write("many.json", format!("{{{}}}", members.join(",")));
    clean(home.call(&["status", "--config", "many.json"]).ok());
    clean(home.call(&["config", "validate", "many.json"]).ok());
}

#[test]
fn export_replaces_only_regular_files() {
    let home = home();
    home.call(&["context", "create", "a"]).ok();
    assert!(Command::new("mkfifo").arg(home.path("pipe")).status().unwrap().success());
    let _socket = UnixListener::bind(home.path("socket")).unwrap();
    symlink("pipe", home.path("link")).unwrap();
    std::fs::create_dir(home.path("dir")).unwrap();
    for place in ["pipe", "socket", "link", "dir"] {
        refused(&home, &["context", "export", "--all", "--yes", "--file", place], "NOT_A_FILE");
    }
    for place in ["pipe", "socket", "link", "dir"] {
        refused(&home, &["context", "import", place], "NOT_A_FILE");
    }
}

#[test]
fn a_file_in_the_place_of_a_directory_is_refused() {
    let home = home();
    home.write(".config/sessile", "in the way");
    refused(&home, &["config", "set", "env.A", "1", "--global"], "IO");
    refused(&home, &["context", "create", "a"], "IO");
    refused(&home, &["context", "list"], "IO");
}

#[test]
fn broken_context_is_reported_and_the_others_work() {
    let home = home();
    home.write(".config/sessile/contexts/good.toml", "");
    home.write(".config/sessile/contexts/broken.toml", "guard = \n");
    home.write(".config/sessile/contexts/wrong.toml", "guard = 'maybe'\n");
    home.write(".config/sessile/contexts/binary.toml", b"\xff\xfe");
    std::fs::create_dir(home.path(".config/sessile/contexts/dir.toml")).unwrap();
    let listed = clean(home.call(&["context", "list", "--output", "json"]).ok()).json();
    let errors: Vec<bool> = listed.as_array().unwrap().iter().map(|item| !item["error"].is_null()).collect();
    assert_eq!(errors, [true, true, true, false, true], "{listed}");
    clean(home.call(&["context", "use", "good", "--global"]).ok());
    for (name, code) in [
        ("broken", "FILE_SYNTAX"),
        ("wrong", "FILE_VALUE"),
        ("binary", "FILE_NOT_UTF8"),
        ("dir", "NOT_A_FILE"),
    ] {
        refused(&home, &["context", "show", name], code);
        refused(&home, &["context", "use", name, "--global"], code);
        refused(&home, &["context", "delete", name, "--yes"], code);
        refused(&home, &["context", "rename", name, "other"], code);
        refused(&home, &["context", "create", name], code);
    }
    let _ = clean(home.call(&["doctor"]).run()).exit(1);
}

#[test]
fn an_import_with_one_bad_context_takes_in_none() {
    let home = home();
    home.write("in.toml", "[contexts.a]\nguard = 'none'\n[contexts.'../../x']\n");
    refused(&home, &["context", "import", "in.toml"], "INVALID_NAME");
    home.write("in.toml", "[contexts.a]\nguard = 'none'\n[contexts.b]\nguard = 7\n");
    refused(&home, &["context", "import", "in.toml"], "FILE_VALUE");
    refused_call(&home, || home.call(&["context", "import", "-"]).stdin(b"\xff".to_vec()), "FILE_NOT_UTF8");
    refused_call(
        &home,
        || home.call(&["context", "import", "-"]).stdin(vec![b'#'; 2 << 20]),
        "FILE_TOO_LARGE",
    );
}

/// Files with secrets in many formats; each secret contains `hunter` or `97164`.
const SECRET_FILES: &[(&str, &str)] = &[
    ("key", "97164d2d5b0e4d0a\n"),
    ("number", "97164\n"),
    ("vault-token", "hvs.hunter1\n"),
    ("pgpass", "db:5432:prod:me:hunter2\n"),
    ("netrc", "machine h login me password hunter3\n"),
    ("login", "{\"auths\": {\"h\": {\"auth\": \"hunter4\"}}}\n"),
    ("text", "\"hunter5\"\n"),
    ("list", "[\"hunter6\", \"x\"]\n"),
    ("contexts", "{\"contexts\": \"hunter7\"}\n"),
    ("guard", "{\"contexts\": {\"a\": {\"guard\": \"hunter8\"}}}\n"),
    ("env", "{\"contexts\": {\"a\": {\"env\": 97164}}}\n"),
    ("output", "{\"output\": \"hunter9\", \"server\": \"hunter10\"}\n"),
    ("toml-contexts", "contexts = \"hunter11\"\n"),
    ("toml-guard", "[contexts.a]\nguard = \"hunter12\"\n"),
    ("toml-output", "output = \"hunter13\"\nlock-timeout = 97164 # hunter14\n"),
    ("toml-registry", "[registry]\nx = \"hunter15\"\n"),
    ("session", "{\"format\": \"hunter16\", \"version\": 97164}\n"),
    (
        "session-id",
        "{\"format\": \"sessile-session\", \"version\": 1, \"id\": 97164, \"labels\": \"hunter17\"}\n",
    ),
    ("context-name", "{\"contexts\": {\"hunter18 key\": {}}}\n"),
    ("toml-context-name", "[contexts.\"hunter19 key\"]\n"),
    ("toml-variable-name", "[contexts.a.env]\n\"hunter20 key\" = \"x\"\n"),
];

#[track_caller]
fn secrets_are_not_printed(done: &testkit::CallResult) {
    let told = done.told();
    assert!(!told.contains("hunter") && !told.contains("97164"), "{told}");
}

#[test]
fn file_named_as_an_argument_is_never_quoted() {
    let home = home();
    for (name, text) in SECRET_FILES {
        home.write(format!("secrets/{name}"), text);
        for ending in ["json", "toml"] {
            let link = format!("{name}.{ending}");
            symlink(format!("secrets/{name}"), home.path(&link)).unwrap();
            let copy = format!("copy-{name}.{ending}");
            home.write(&copy, text);
            for file in [link.as_str(), copy.as_str()] {
                for args in [
                    &["session", "import", file][..],
                    &["context", "import", file],
                    &["status", "--config", file],
                    &["config", "show", "output", "--config", file],
                    &["context", "list", "--config", file],
                    &["context", "show", "a", "--config", file],
                    &["config", "set", "lock-timeout", "1s", "--config", file],
                    &["config", "validate", file],
                    &["backup", "restore", file, "--yes"],
                    &["probe", "http://127.0.0.1:9", "--protocol", "http", "--template", file],
                ] {
                    let formats: &[&str] = if file == link { &["text", "json"] } else { &["text"] };
                    for format in formats {
                        secrets_are_not_printed(&clean(home.call(args).env("SESSILE_OUTPUT", format).run()));
                    }
                }
            }
        }
        for command in ["session", "context"] {
            secrets_are_not_printed(&clean(home.call(&[command, "import", "-"]).stdin(*text).run()));
        }
    }
}

#[test]
fn credential_name_of_a_file_is_never_quoted() {
    let home = home();
    let agent = "https://a.example/x";
    home.write(
        "file.toml",
        format!(
            "credential = \"hunter1 key\"\n[contexts.a.env]\nX = {{ credential = \"hunter2 key\" }}\n\
             [contexts.a.agents.\"{agent}\"]\ncredential = \"hunter3 key\"\n"
        ),
    );
    for args in [
        &["auth", "status"][..],
        &["run", "--context", "a", "--", "true"],
        &["env", "--context", "a"],
        &["agent", "card", agent, "--context", "a"],
    ] {
        let done = clean(home.call(args).env("SESSILE_CONFIG", home.path("file.toml")).run());
        assert_ne!(done.status(), Some(0), "{}", done.told());
        secrets_are_not_printed(&done);
    }
    let doctor = clean(home.call(&["doctor"]).env("SESSILE_CONFIG", home.path("file.toml")).run());
    assert!(doctor.stdout().contains("not a valid credential name"), "{}", doctor.told());
    secrets_are_not_printed(&doctor);
}

#[test]
fn key_names_of_linked_files_are_not_quoted() {
    let home = home();
    home.write(
        "secret",
        "hunter1 = 1\n[env]\nhunter2 = 1\n[contexts.a]\nhunter1 = 1\n[contexts.b.env]\nhunter2 = []\n",
    );
    std::fs::create_dir_all(home.path("clone")).unwrap();
    symlink("../secret", home.path("clone/ci.toml")).unwrap();
    std::fs::create_dir_all(home.path("real")).unwrap();
    home.write("real/ci.toml", home.read("secret"));
    symlink("real", home.path("dir")).unwrap();
    for file in ["clone/ci.toml", "dir/ci.toml"] {
        for args in [
            &["status"][..],
            &["config", "validate"],
            &["config", "show"],
            &["context", "show", "a"],
            &["context", "show", "b"],
            &["context", "list"],
            &["doctor"],
        ] {
            secrets_are_not_printed(&clean(home.call(&["--config", file]).args(args).run()));
        }
        let done = clean(home.call(&["config", "validate", file]).run());
        secrets_are_not_printed(&done);
        assert!(done.told().contains("[hidden]"), "{}", done.told());
    }
    // A file that is not behind a link is named with its keys.
    let done = clean(home.call(&["config", "validate", "real/ci.toml"]).run());
    assert!(done.told().contains("hunter1"), "{}", done.told());
}

#[test]
fn linked_settings_of_the_user_are_not_quoted() {
    let home = home();
    std::fs::create_dir_all(home.path(".config/sessile/contexts")).unwrap();
    home.write("secret", "output = \"hunter1\"\nguard = \"hunter2\"\n");
    symlink("../../../secret", home.path(".config/sessile/contexts/x.toml")).unwrap();
    secrets_are_not_printed(&clean(home.call(&["context", "show", "x"]).run().exit(1)));
    symlink("../../secret", home.path(CONFIG)).unwrap();
    for args in [&["status"][..], &["config", "validate"], &["config", "set", "output", "text", "--global"]] {
        secrets_are_not_printed(&clean(home.call(args).run().exit(1)));
    }
}

#[test]
fn error_in_an_imported_session_names_place_and_type() {
    let home = home();
    home.write("s.json", "{\n  \"format\": \"sessile-session\",\n  \"version\": \"hunter\"\n}\n");
    let error = refused(&home, &["session", "import", "s.json"], "FILE_SYNTAX");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("s.json:3:") && message.contains("expected u32"), "{error}");
}

#[test]
fn exported_file_obeys_the_umask() {
    use std::os::unix::fs::PermissionsExt;
    let home = home();
    home.call(&["context", "create", "a"]).ok();
    for (umask, mode) in [("077", 0o600), ("022", 0o644), ("002", 0o664)] {
        for args in [&["context", "export", "a", "--file"][..], &["import", "--plan"]] {
            let file = format!("{}-{umask}.toml", args[0]);
            let script = format!("umask {umask} && exec \"$0\" \"$@\"");
            let shell = ["-c", &script, home.program().to_str().unwrap()];
            home.tool("bash", &[&shell[..], args, &[&file]].concat()).ok();
            let found = home.path(&file).metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(found, mode, "{file}");
        }
    }
}

#[test]
fn directory_of_the_state_that_others_can_write_is_reported() {
    use std::os::unix::fs::PermissionsExt;
    let home = home();
    start(&home, &["--name", "web"]);
    home.call(&["lock", "run", "l", "--session", "web", "--", "true"]).ok();
    home.call(&["run", "--session", "web", "--", "true"]).ok();
    for dir in ["rooms", "tickets"] {
        let path = home.path(".local/state/sessile").join(dir);
        let mode = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        assert!(path.is_dir(), "{dir}");
        mode(0o702);
        let done = clean(home.call(&["doctor"]).run()).exit(1);
        let fix = format!("chmod go-w {}", path.display());
        assert!(done.stdout().contains(&fix), "{dir}: {}", done.told());
        mode(0o700);
    }
    let done = clean(home.call(&["doctor"]).run());
    assert!(!done.stdout().contains("has mode"), "{}", done.told());
}
