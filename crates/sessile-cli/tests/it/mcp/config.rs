//! `sessile mcp config`: what MCP clients are told.

use serde_json::{Value, json};
use testkit::Home;

use crate::{home, home_with, repository, start, yaml_scalars};

/// A home in which the program is found by its name.
fn with_program(contexts: &[&str]) -> (Home, String) {
    let home = home_with(contexts);
    let path = format!("{}:/usr/bin:/bin", home.program().parent().unwrap().display());
    (home, path)
}

fn clients() -> Vec<String> {
    let listed = home().call(&["mcp", "config", "--output", "json"]).ok().json();
    listed.as_array().unwrap().iter().map(|one| one["client"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn standard_output_is_the_snippet_and_nothing_else() {
    let (home, path) = with_program(&[]);
    let done = home.call(&["mcp", "config", "--client", "claude"]).env("PATH", &path).ok();
    insta::assert_snapshot!(done.told(), @r#"
    exit 0
    --- stdout
    {
      "mcpServers": {
        "sessile": {
          "command": "sessile",
          "args": ["mcp"]
        }
      }
    }
    --- stderr
    put the snippet into .mcp.json; if the file exists, add the entry to it
    or: claude mcp add --scope project sessile -- sessile mcp
    "#);
    let done = home.call(&["mcp", "config", "--client", "opencode", "--read-only"]).env("PATH", &path).ok();
    insta::assert_snapshot!(done.told(), @r#"
    exit 0
    --- stdout
    {
      "$schema": "https://opencode.ai/config.json",
      "mcp": {
        "sessile": {
          "type": "local",
          "command": ["sessile", "mcp", "--read-only"],
          "enabled": true
        }
      }
    }
    --- stderr
    put the snippet into opencode.json or, for all projects, ~/.config/opencode/opencode.json; if the file exists, add the entry to it
    "#);
    let quiet =
        home.call(&["mcp", "config", "--client", "codex", "--allow-run", "--quiet"]).env("PATH", path).ok();
    insta::assert_snapshot!(quiet.told(), @r#"
    exit 0
    --- stdout
    [mcp_servers.sessile]
    command = "sessile"
    args = ["mcp", "--allow-run"]
    env_vars = [
      "SESSILE_SESSION",
      "SESSILE_CONTEXT",
      "SESSILE_CONFIG",
      "SESSILE_CONFIG_DIR",
      "SESSILE_STATE_DIR",
      "SESSILE_CACHE_DIR",
      "SESSILE_RUNTIME_DIR",
      "SESSILE_ORIGINALS",
    ]
    --- stderr
    "#);
}

#[test]
fn every_snippet_is_of_its_format_and_starts_the_same() {
    let known = clients();
    assert!(known.len() > 8, "the search has gone blind: {known:?}");
    for client in known {
        let home = home_with(&["staging"]);
        let args =
            ["--session", "web", "--context", "staging", "--allow-run", "--absolute", "--output", "json"];
        let result = home.call(&["mcp", "config", "--client", &client]).args(&args).ok().json();
        let program = home.program().canonicalize().unwrap().display().to_string();
        let words = ["mcp", "--session", "web", "--context", "staging", "--allow-run"];
        assert_eq!(result["command"], json!(program), "{client}");
        assert_eq!(result["args"], json!(words), "{client}");
        let mut line = vec![program];
        line.extend(words.map(str::to_owned));
        let found = strings(result["format"].as_str().unwrap(), result["snippet"].as_str().unwrap());
        assert!(found.windows(line.len()).any(|window| window == line), "{client}: {found:?}");
        assert!(!result["snippet"].as_str().unwrap().starts_with('\n'), "{client}");
    }
}

/// The strings in a snippet, in order.
#[track_caller]
fn strings(format: &str, snippet: &str) -> Vec<String> {
    fn of(value: &Value) -> Vec<String> {
        match value {
            Value::String(text) => vec![text.clone()],
            Value::Array(items) => items.iter().flat_map(of).collect(),
            Value::Object(members) => members.values().flat_map(of).collect(),
            _ => Vec::new(),
        }
    }
    match format {
        "json" => of(&serde_json::from_str(snippet).unwrap()),
        "toml" => {
            let document: toml_edit::DocumentMut = snippet.parse().unwrap();
            let server = &document["mcp_servers"]["sessile"];
            let args = server["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap());
            std::iter::once(server["command"].as_str().unwrap()).chain(args).map(str::to_owned).collect()
        }
        // Keys are scalars too; the one between the two is left out.
        "yaml" => yaml_scalars(snippet).into_iter().filter(|text| text != "args").collect(),
        other => panic!("{other}"),
    }
}

/// A client that hands on only what it is told to must be told of all that `run` sets.
#[test]
fn a_server_in_a_session_gets_what_tells_it_so() {
    let home = home_with(&["staging"]);
    let snippet = home.call(&["mcp", "config", "--client", "codex"]).ok().stdout();
    let variables =
        home.call(&["run", "--context", "staging", "--isolate", "home", "--", "env"]).ok().stdout();
    let own = variables.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name);
    let own: Vec<&str> =
        own.filter(|name| name.starts_with("SESSILE_") && *name != "SESSILE_SYSTEM_DIR").collect();
    assert!(own.contains(&"SESSILE_SESSION"), "{own:?}");
    for name in own {
        assert!(snippet.contains(&format!("\"{name}\"")), "{name}");
    }
}

#[test]
fn the_result_says_what_goes_where() {
    let result = home().call(&["mcp", "config", "--client", "vscode", "--output", "json"]).ok().json();
    let members: Vec<&String> = result.as_object().unwrap().keys().collect();
    assert_eq!(members, ["client", "format", "path", "snippet", "command", "args"]);
    assert_eq!(result["path"], ".vscode/mcp.json");
    let snippet: Value = serde_json::from_str(result["snippet"].as_str().unwrap()).unwrap();
    assert_eq!(
        snippet["servers"]["sessile"],
        json!({ "type": "stdio", "command": "sessile", "args": ["mcp"] })
    );
}

#[test]
fn unknown_client_lists_the_known_ones() {
    let done = home().call(&["mcp", "config", "--client", "clod", "--output", "json"]).run().exit(2);
    assert_eq!(done.code(), "USAGE");
    let message = done.json_error()["message"].to_string();
    for client in clients() {
        assert!(message.contains(&client), "{client}: {message}");
    }
}

#[test]
fn without_a_client_they_are_listed_with_their_files() {
    let text = home().call(&["mcp", "config"]).ok().stdout();
    for (client, path) in
        [("cursor", ".cursor/mcp.json"), ("windsurf", "~/.codeium/windsurf/mcp_config.json")]
    {
        let line = text.lines().find(|line| line.starts_with(client)).unwrap();
        assert!(line.contains(path), "{line}");
    }
}

/// The guide has a table of its own, with more words.
#[test]
fn every_client_and_file_is_in_the_guide() {
    let guide = repository::read("docs/guide/mcp.md");
    let listed = home().call(&["mcp", "config", "--output", "json"]).ok().json();
    for client in listed.as_array().unwrap() {
        let name = client["client"].as_str().unwrap();
        let row = guide
            .lines()
            .find(|line| line.contains(&format!("| `{name}` |")))
            .unwrap_or_else(|| panic!("{name}"));
        for path in [&client["path"], &client["user_path"]].into_iter().filter_map(Value::as_str) {
            let file = path.rsplit_once('/').map_or(path, |(_, file)| file);
            assert!(row.contains(file), "{row} says nothing of {path}");
        }
    }
}

#[test]
fn a_session_need_not_be_there_and_a_context_must() {
    let home = home_with(&["staging"]);
    let config = |args: &[&str]| {
        home.call(&["mcp", "config", "--client", "cursor", "--output", "json"]).args(args).run()
    };
    assert_eq!(config(&["--session", "later"]).exit(0).json()["args"], json!(["mcp", "--session", "later"]));
    assert_eq!(config(&["--session", "a b"]).exit(2).code(), "INVALID_NAME");
    assert_eq!(config(&["--context", "stagign"]).exit(5).code(), "CONTEXT_NOT_FOUND");
    let web = start(&home, &["--name", "web"]);
    assert_eq!(config(&["--session", "web", "--context", "staging"]).exit(7).code(), "CONTEXT_FIXED");
    home.call(&["session", "stop", &web]).ok();
    assert_eq!(config(&["--session", "web"]).exit(0).json()["args"], json!(["mcp", "--session", "web"]));
}

#[test]
fn guarded_context_can_be_named_in_the_snippet() {
    let home = home();
    home.write(".config/sessile/contexts/production.toml", "guard = 'approval'\n");
    let done = home.call(&["mcp", "config", "--client", "zed", "--context", "production"]).ok();
    assert!(done.stdout().contains("production"));
}

#[test]
fn selection_by_variable_is_not_in_the_snippet() {
    let home = home_with(&["staging"]);
    let web = start(&home, &["--name", "web"]);
    for session in [web.as_str(), "gone"] {
        let call = home.call(&["mcp", "config", "--client", "cursor", "--output", "json"]);
        let done = call.env("SESSILE_SESSION", session).env("SESSILE_CONTEXT", "").ok();
        assert_eq!(done.json()["args"], json!(["mcp"]));
    }
}

#[test]
fn config_changes_nothing_and_needs_no_settings() {
    let home = home();
    home.write(".config/sessile/config.toml", "context = \n");
    let before = home.tree();
    for client in clients() {
        home.call(&["mcp", "config", "--client", &client, "--session", "web"]).ok();
    }
    assert_eq!(home.tree(), before);
}

#[test]
fn program_missing_from_path_is_reported() {
    let call = |args: &[&str]| {
        home().call(&["mcp", "config", "--client", "zed"]).args(args).env("PATH", "/nowhere").ok()
    };
    assert!(call(&[]).stderr().contains("--absolute"));
    assert!(!call(&["--absolute"]).stderr().contains("--absolute"));
}

#[test]
fn to_run_commands_and_to_change_nothing_contradict_each_other() {
    home().call(&["mcp", "config", "--client", "zed", "--allow-run", "--read-only"]).run().exit(2);
}

#[test]
fn service_snippet_has_the_url_and_no_token() {
    let (home, _) = with_program(&[]);
    let done = home.call(&["mcp", "config", "--client", "codex", "--url", "https://sessions.example/"]).ok();
    insta::assert_snapshot!(done.told(), @r#"
    exit 0
    --- stdout
    [mcp_servers.sessile]
    url = "https://sessions.example/mcp"
    bearer_token_env_var = "SESSILE_TOKEN"
    --- stderr
    put the snippet into ~/.codex/config.toml; if the file exists, add the entry to it
    the client reads the token from SESSILE_TOKEN, or prompts for it
    "#);
    let mut able = 0;
    for client in clients() {
        let done = home
            .call(&["mcp", "config", "--client", &client, "--url", "http://127.0.0.1:8737/mcp", "-ojson"])
            .env("SESSILE_TOKEN", "sst_hunter2")
            .run();
        if done.status() == Some(2) {
            assert!(
                done.json_error()["message"].as_str().unwrap().contains("claude, codex, cursor"),
                "{client}"
            );
            continue;
        }
        let result = done.exit(0).json();
        let snippet = result["snippet"].as_str().unwrap();
        assert_eq!(result["url"], "http://127.0.0.1:8737/mcp");
        assert!(
            snippet.contains("\"http://127.0.0.1:8737/mcp\"") && snippet.contains("SESSILE_TOKEN"),
            "{snippet}"
        );
        assert!(!snippet.contains("hunter2"));
        match result["format"].as_str().unwrap() {
            "json" => drop(serde_json::from_str::<Value>(snippet).unwrap()),
            "toml" => drop(snippet.parse::<toml_edit::DocumentMut>().unwrap()),
            other => panic!("{other}"),
        }
        able += 1;
    }
    assert_eq!(able, 7);
}

#[test]
fn an_address_that_would_give_the_token_away_is_refused() {
    let home = home_with(&["staging"]);
    let config = |args: &[&str]| home.call(&["mcp", "config", "--client", "claude"]).args(args).run().exit(2);
    for url in [
        "http://sessions.example",
        "sessions.example",
        "https://ann:hunter2@sessions.example",
        "ftp://x",
        "https://x/?t=1",
    ] {
        let told = config(&["--url", url]).stderr();
        assert!(told.contains("--url") && !told.contains("hunter2"), "{told}");
    }
    let url = ["--url", "https://sessions.example"];
    for other in [&["--session", "web"][..], &["--context", "staging"], &["--read-only"], &["--absolute"]] {
        config(&[&url[..], other].concat());
    }
    home.call(&["mcp", "config", "--url", "https://sessions.example"]).run().exit(2);
}
