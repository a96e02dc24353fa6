//! Contexts, sessions and conversations as resources, and the prompt to work in a context.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Home, Inspector, McpClient, PythonMcpClient, Revision};

use super::{INLINE, USUAL, agent, result, serve};
use crate::{home_with, start};

fn read(client: &mut McpClient, uri: &str) -> Value {
    let read = client.request("resources/read", json!({ "uri": uri }));
    let content = &read["contents"][0];
    assert_eq!((&content["uri"], &content["mimeType"]), (&json!(uri), &json!("application/json")));
    serde_json::from_str(content["text"].as_str().unwrap()).unwrap()
}

/// Addresses of all resources, page by page, and the number of pages.
fn addresses(client: &mut McpClient) -> (Vec<String>, usize) {
    let (mut uris, mut params, mut pages) = (Vec::new(), json!({}), 0);
    loop {
        let page = client.request("resources/list", params);
        let found = page["resources"].as_array().unwrap();
        uris.extend(found.iter().map(|one| one["uri"].as_str().unwrap().to_owned()));
        pages += 1;
        match page.get("nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => return (uris, pages),
        }
    }
}

/// Notifications of changed resources so far.
fn updates(client: &McpClient) -> Vec<String> {
    let told =
        client.notifications().iter().filter(|told| told["method"] == "notifications/resources/updated");
    told.map(|told| told["params"]["uri"].as_str().unwrap().to_owned()).collect()
}

fn session_uri(home: &Home, name: &str) -> String {
    format!("sessile://session/{}", start(home, &["--name", name, "--context", "staging"]))
}

#[test]
fn contexts_sessions_and_conversations_are_resources() {
    let (home, agent) = (home_with(&["staging", "prod"]), agent());
    let session = session_uri(&home, "web");
    home.call(&["message", "send", agent.url(), "echo hello", "--session", "web"]).ok();
    let mut client = serve(&home, &["--read-only"]);
    let (uris, pages) = addresses(&mut client);
    assert_eq!(pages, 1);
    assert_eq!(
        uris[..3],
        ["sessile://context/prod".to_owned(), "sessile://context/staging".to_owned(), session.clone()]
    );
    assert!(uris.len() == 4 && uris[3].starts_with("sessile://conversation/"), "{uris:?}");
    assert_eq!(read(&mut client, "sessile://context/staging")["name"], "staging");
    assert_eq!(read(&mut client, &session)["name"], "web");
    assert!(read(&mut client, &uris[3])["messages"].to_string().contains("hello"));
    let templates = client.request("resources/templates/list", json!({}));
    let templates: Vec<&Value> =
        templates["resourceTemplates"].as_array().unwrap().iter().map(|one| &one["uriTemplate"]).collect();
    assert_eq!(
        templates,
        ["sessile://context/{name}", "sessile://session/{id}", "sessile://conversation/{id}"]
    );
    for wrong in [
        "sessile://context/none",
        "sessile://session/00000000-0000-7000-8000-000000000000",
        "sessile://lock/x",
        "file:///etc/passwd",
        "sessile://context/../../x",
        "sessile://context/--help",
        "",
    ] {
        let error = client.try_request("resources/read", json!({ "uri": wrong })).unwrap_err();
        assert_eq!(error["code"], -32002, "{wrong}: {error}");
    }
    let error = client.try_request("resources/list", json!({ "cursor": "nonsense" })).unwrap_err();
    assert_eq!(error["code"], -32602, "{error}");
}

#[test]
fn many_resources_have_pages() {
    let home = home_with(&[]);
    for n in 0..130 {
        home.write(format!(".config/sessile/contexts/c{n:03}.toml"), "");
    }
    for n in 0..5 {
        start(&home, &["--name", &format!("s{n}")]);
    }
    let mut client = serve(&home, &[]);
    let (uris, pages) = addresses(&mut client);
    assert_eq!((uris.len(), pages), (135, 2));
    let mut once = uris.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), 135);
}

#[test]
fn change_of_a_followed_resource_is_notified() {
    let home = home_with(&["staging"]);
    let session = session_uri(&home, "web");
    let other = session_uri(&home, "other");
    let mut client = serve(&home, &[]);
    for uri in [session.as_str(), "sessile://context/staging"] {
        assert_eq!(client.request("resources/subscribe", json!({ "uri": uri })), json!({}));
    }
    // A resource without a subscription gets no notification, and reading changes nothing.
    home.call(&["session", "rename", "other", "another"]).ok();
    result(&mut client, "show_session", json!({ "session": "web" }));
    client.silent_for(Duration::from_millis(700));
    home.call(&["session", "state", "set", "k", "1", "--session", "web"]).ok();
    crate::eventually("the session's notification", || {
        client.request("ping", json!({}));
        updates(&client) == [session.clone()]
    });
    home.write(".config/sessile/contexts/staging.toml", "description = \"other\"\n");
    crate::eventually("the context's notification", || {
        client.request("ping", json!({}));
        updates(&client).contains(&"sessile://context/staging".to_owned())
    });
    client.request("resources/unsubscribe", json!({ "uri": session }));
    let before = updates(&client).len();
    home.call(&["session", "state", "set", "k", "2", "--session", "web"]).ok();
    client.silent_for(Duration::from_millis(700));
    assert_eq!(updates(&client).len(), before);
    assert!(client.try_request("resources/subscribe", json!({ "uri": "sessile://lock/x" })).is_err());
    drop(other);
}

#[test]
fn followed_resources_cost_no_time_while_nothing_changes() {
    let home = home_with(&["staging"]);
    let session = session_uri(&home, "web");
    let mut client = serve(&home, &[]);
    client.request("resources/subscribe", json!({ "uri": session }));
    let ticks = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", client.pid())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_ascii_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let before = ticks();
    std::thread::sleep(Duration::from_secs(3));
    assert!(ticks() - before <= 2, "{} ticks in 3 s", ticks() - before);
}

#[test]
fn prompt_says_how_to_work_in_a_context() {
    let home = home_with(&["staging"]);
    home.write(".config/sessile/contexts/prod.toml", "guard = \"approval\"\n");
    let mut client = serve(&home, &["--allow-run"]);
    let listed = client.request("prompts/list", json!({}))["prompts"].clone();
    assert_eq!((&listed[0]["name"], listed.as_array().unwrap().len()), (&json!("work_in_context"), 1));
    let text = |client: &mut McpClient, context: &str| {
        let arguments = json!({ "name": "work_in_context", "arguments": { "context": context } });
        let got = client.request("prompts/get", arguments);
        got["messages"][0]["content"]["text"].as_str().unwrap().to_owned()
    };
    let staging = text(&mut client, "staging");
    for part in ["start_session with {\"context\":\"staging\"}", "`run`", "acquire_lock", "stop_session"] {
        assert!(staging.contains(part), "{part}: {staging}");
    }
    assert!(!staging.contains("GUARD_APPROVAL") && text(&mut client, "prod").contains("GUARD_APPROVAL"));
    assert!(!text(&mut serve(&home, &[]), "staging").contains("`run`"), "run is not offered");
    for arguments in [json!({}), json!({ "context": "none" }), json!({ "context": "--help" })] {
        let params = json!({ "name": "work_in_context", "arguments": arguments });
        assert_eq!(client.try_request("prompts/get", params).unwrap_err()["code"], -32602);
    }
    let complete = json!({
        "ref": { "type": "ref/prompt", "name": "work_in_context" },
        "argument": { "name": "context", "value": "st" },
    });
    assert_eq!(client.request("completion/complete", complete)["completion"]["values"], json!(["staging"]));
    let complete = json!({
        "ref": { "type": "ref/resource", "uri": "sessile://context/{name}" },
        "argument": { "name": "name", "value": "" },
    });
    assert_eq!(
        client.request("completion/complete", complete)["completion"]["values"],
        json!(["prod", "staging"])
    );
    // Without the tools that it names there is none.
    let mut client = serve(&home, &["--read-only"]);
    assert_eq!(client.request("prompts/list", json!({}))["prompts"], json!([]));
}

#[test]
fn official_client_reads_follows_and_gets_the_prompt() {
    for (revision, version) in [(Revision::Auto, INLINE), (Revision::Handshake(USUAL), USUAL)] {
        let home = home_with(&["staging"]);
        let session = session_uri(&home, "web");
        let report = PythonMcpClient::new(revision)
            .explore(json!({
                "prompt": "work_in_context", "arguments": { "context": "staging" }, "uri": session,
                "tool": "set_state", "tool_arguments": { "key": "k", "value": 1, "session": "web" },
            }))
            .run(&home.call(&["mcp"]), &[]);
        let explored = &report["explored"];
        assert_eq!(report["protocolVersion"], version);
        assert_eq!(explored["resources"].as_array().unwrap().len(), 2, "{explored}");
        assert_eq!(explored["contents"].as_array().unwrap().len(), 2, "{explored}");
        assert_eq!(explored["templates"].as_array().unwrap().len(), 3, "{explored}");
        assert_eq!(explored["completion"]["completion"]["values"], json!(["staging"]), "{explored}");
        assert!(explored["prompt"]["messages"][0]["content"]["text"].as_str().unwrap().contains("staging"));
        if revision == Revision::Auto {
            assert_eq!(explored["change"], json!({ "kind": "ResourceUpdated", "uri": session }));
        }
    }
}

#[test]
fn inspector_lists_resources_and_prompts() {
    let home = home_with(&["staging"]);
    for inspector in [Inspector::Legacy, Inspector::Modern] {
        let listed =
            |method: &str| inspector.run(&home.call(&["mcp"]), method, &[]).exit(0).json()["result"].clone();
        assert_eq!(listed("resources/list")["resources"][0]["uri"], "sessile://context/staging");
        assert_eq!(listed("resources/templates/list")["resourceTemplates"].as_array().unwrap().len(), 3);
        assert_eq!(listed("prompts/list")["prompts"][0]["name"], "work_in_context");
    }
}
