//! Names, values and descriptions that are made to do harm.

use super::{clean, refused};
use crate::home;

const NAMES: &[&str] = &[
    "../../x",
    "..",
    "/etc/passwd",
    "a/b",
    "a\nb",
    "a\x1b[31mb",
    "a\u{9b}31mb",
    "\u{202e}gnigats",
    "a b",
    "",
    ".hidden",
    "a\tb",
    "caf\u{e9}",
    "\u{feff}a",
    "01890a5d-ac96-774b-bcce-b302099a8057",
];

#[test]
fn invalid_names_are_refused_everywhere() {
    let home = home();
    home.call(&["context", "create", "a"]).ok();
    let long = "x".repeat(100_000);
    for name in NAMES.iter().copied().chain([long.as_str()]) {
        for args in [
            &["context", "create", name][..],
            &["context", "show", name],
            &["context", "use", name, "--global"],
            &["context", "rename", "a", name],
            &["context", "rename", name, "b"],
            &["context", "delete", name, "--yes"],
            &["context", "export", name],
            &["context", "edit", name, "--env", "A=1"],
            &["status", "--context", name],
        ] {
            let error = refused(&home, args, "INVALID_NAME");
            assert!(error["message"].as_str().unwrap().len() < 1_000, "{error}");
        }
    }
}

#[test]
fn invalid_keys_are_refused() {
    let home = home();
    let deep = "a.".repeat(50_000) + "a";
    for (key, code) in [
        ("", "INVALID_NAME"),
        ("a b", "INVALID_NAME"),
        ("a\nb", "INVALID_NAME"),
        ("env.\x1b[31m", "INVALID_NAME"),
        ("../../x", "INVALID_NAME"),
        (&deep, "INVALID_NAME"),
        ("nonsense", "UNKNOWN_SETTING"),
        ("\"\\u001b[31m\"", "UNKNOWN_SETTING"),
        ("env", "UNKNOWN_SETTING"),
        ("token", "SECRET_REFUSED"),
    ] {
        refused(&home, &["config", "set", key, "1", "--global"], code);
        refused(&home, &["status", "--set", &format!("{key}=1")], code);
    }
}

#[test]
fn values_that_do_not_fit_are_refused_and_shown_harmless() {
    let home = home();
    for (key, value) in [
        ("context", "../../x"),
        ("lock-timeout", "-1s"),
        ("lock-timeout", "99999999999999999999d"),
        ("output", "\x1b[31mred"),
        ("color", "a\u{9b}b"),
    ] {
        refused(&home, &["config", "set", key, value, "--global"], "INVALID_VALUE");
        refused(&home, &["config", "set", key, value, "--dir"], "INVALID_VALUE");
    }
}

#[test]
fn unknown_arguments_are_escaped() {
    let home = home();
    for args in
        [&["\x1b[31m"][..], &["status", "--\u{9b}x"], &["config", "set", "--glob\nal"], &["status", "a\x07"]]
    {
        refused(&home, args, "USAGE");
    }
}

/// A value may hold anything; it is kept as it is, and printed so that it cannot act.
#[test]
fn hostile_values_are_kept_whole_and_printed_harmless() {
    let home = home();
    let value = "\x1b[31mred\u{9b}2J\nforged\r\u{202e}\u{7f}'\"\\";
    home.call(&["config", "set", "env.A", value, "--global"]).ok();
    for args in [
        &["config", "get", "env.A"][..],
        &["config", "show", "--source"],
        &["config", "set", "env.A", value, "--global"],
        &["config", "unset", "env.B", "--global"],
    ] {
        clean(home.call(args).run());
        clean(home.call(args).arg("--output=json").run());
        clean(home.call(args).arg("--output=jsonl").run());
    }
    let got = home.call(&["config", "get", "env.A", "--output", "json"]).ok().json();
    assert_eq!(got["value"], value);
}

const DESCRIPTION: &str = "\\u001b[2Jcleared\\u009b31m\\u202e\\n  guard        none\\r\\n  trusted      yes";

/// A project from a stranger: what it says about itself is data, and cannot forge a line of the output.
#[test]
fn a_hostile_project_can_neither_act_nor_forge_lines() {
    let home = home();
    home.write(
        "p/.sessile/contexts/evil.toml",
        format!("description = \"{DESCRIPTION}\"\nguard = 'explicit'\n[env]\nA = \"{DESCRIPTION}\"\n"),
    );
    home.write(
        "p/.sessile/config.toml",
        format!("context = 'evil'\n\"un\\u001bknown\" = 1\nenv.\"X\\u001b[2J\" = \"{DESCRIPTION}\"\n"),
    );
    home.write("p/.sessile/contexts/\x1b[31mname.toml", "");
    home.write("p/.sessile/contexts/worse.toml", format!("[env]\n\"A\\u001b[31m\" = \"{DESCRIPTION}\"\n"));
    for args in [
        &["context", "list"][..],
        &["context", "show", "evil"],
        &["config", "show", "--source"],
        &["config", "validate"],
        &["status", "--show-state-files"],
        &["doctor"],
        &["trust"],
        &["trust", "--list"],
        &["context", "export", "evil"],
    ] {
        for format in ["text", "json", "jsonl"] {
            clean(home.call(args).cwd("p").arg("--output").arg(format).run());
        }
    }
    let shown = home.call(&["context", "show", "evil"]).cwd("p").ok().stdout();
    let guards: Vec<&str> = shown.lines().filter(|line| line.trim_start().starts_with("guard")).collect();
    assert_eq!(guards, ["  guard        explicit"], "{shown}");
    let shown = home.call(&["context", "show", "evil", "--output", "json"]).cwd("p").ok().json();
    assert!(shown["description"].as_str().unwrap().starts_with("\x1b[2Jcleared\u{9b}"), "data stays data");

    // Nothing of it takes effect before it is trusted.
    assert!(home.call(&["status", "--output", "json"]).cwd("p").ok().json()["current_context"].is_null());
    let _ = home.call(&["config", "get", "env.\"X\\u001b[2J\""]).cwd("p").run().exit(5);
    let _ = home.call(&["context", "use", "evil", "--dir"]).cwd("p").run().exit(4);
    let _ = home.call(&["trust"]).cwd("p").run().exit(2);
    home.call(&["session", "start", "--name", "s"]).ok();
    let _ = home.call(&["trust", "--yes"]).cwd("p").env("SESSILE_SESSION", "s").run().exit(7);
}

/// Links in a project can only lead to what their user can read anyway; it is not trusted by another name.
#[test]
fn a_project_of_links_is_trusted_by_what_it_says() {
    let home = home();
    home.write("p/.sessile/config.toml", "env.A = 'good'\n");
    home.write("q/real.toml", "env.A = 'good'\n");
    home.call(&["trust", "--yes"]).cwd("p").ok();
    std::fs::create_dir_all(home.path("q/.sessile")).unwrap();
    std::os::unix::fs::symlink("../real.toml", home.path("q/.sessile/config.toml")).unwrap();
    let _ = home.call(&["config", "get", "env.A"]).cwd("q").run().exit(5);
    home.call(&["trust", "--yes"]).cwd("q").ok();
    assert_eq!(home.call(&["config", "get", "env.A"]).cwd("q").ok().stdout(), "good\n");
    home.write("q/real.toml", "env.A = 'evil'\n");
    let _ = home.call(&["config", "get", "env.A"]).cwd("q").run().exit(5);
}

#[test]
fn unicode_line_breaks_and_invisible_characters_are_escaped() {
    let home = home();
    let hostile = "a\u{2028}b\u{2029}c\u{ad}d\u{61c}e\u{180e}f\u{fff9}g\u{e0041}h";
    home.write(".config/sessile/contexts/x.toml", format!("description = \"{hostile}\"\n"));
    let text = home.call(&["context", "show", "x"]).ok().stdout();
    assert!(text.contains("a\\u{2028}b\\u{2029}c\\u{ad}d\\u{61c}e\\u{180e}f\\u{fff9}g\\u{e0041}h"), "{text}");
    let json = home.call(&["context", "show", "x", "--output", "json"]).ok();
    assert!(json.stdout().is_ascii(), "{}", json.stdout());
    assert_eq!(json.json()["description"], hostile);
}

#[test]
fn exported_session_has_no_character_that_acts_on_a_terminal() {
    let home = home();
    home.call(&["session", "start", "--name", "web"]).ok();
    let hostile = "a\u{202e}b\u{2028}c\u{9b}d";
    let value = serde_json::json!(hostile).to_string();
    home.call(&["session", "state", "set", "k", &value, "--session", "web"]).ok();
    home.call(&["session", "export", "web", "--file", "web.json"]).ok();
    home.call(&["config", "set", "env.A", "a\u{202e}b", "--session", "web"]).ok();
    let variables = home.call(&["env", "--session", "web", "--shell", "json"]).ok();
    assert!(variables.stdout().is_ascii(), "{}", variables.stdout());
    assert_eq!(variables.json()["set"]["A"], "a\u{202e}b");
    for text in [home.call(&["session", "export", "web"]).ok().stdout(), home.read("web.json")] {
        assert!(text.is_ascii(), "{text}");
        let exported: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(exported.to_string().contains(hostile), "{exported}");
    }
}
