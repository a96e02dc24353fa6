//! What an agent can do that reads the descriptions and schemas of the tools, and nothing else.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use testkit::McpClient;

use super::{USUAL, content, result};
use crate::home_with;

/// Agent that calls a tool only as its schema says.
struct Reader {
    client: McpClient,
    tools: Vec<Value>,
}

impl Reader {
    fn tool(&self, name: &str) -> &Value {
        self.tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{name}"))
    }

    fn description(&self, name: &str) -> &str {
        self.tool(name)["description"].as_str().unwrap()
    }

    /// Calls a tool with arguments that its schema names, and all that it requires. The result has what its schema promises.
    fn call(&mut self, name: &str, arguments: Value) -> Value {
        let tool = self.tool(name).clone();
        let given = arguments.as_object().unwrap();
        let properties = tool["inputSchema"]["properties"].as_object().cloned().unwrap_or_default();
        assert!(given.keys().all(|key| properties.contains_key(key)), "{name} {arguments}");
        let names = |list: &Value| -> Vec<String> {
            let list = list.as_array().into_iter().flatten();
            list.map(|one| one.as_str().unwrap().to_owned()).collect()
        };
        let required = names(&tool["inputSchema"]["required"]);
        assert!(required.iter().all(|key| given.contains_key(key)), "{name} requires {required:?}");
        let made = content(&self.client.call(name, arguments));
        let promised = names(&tool["outputSchema"]["required"]);
        assert!(promised.iter().all(|key| made.get(key).is_some()), "{name} promises {promised:?}: {made}");
        made
    }
}

#[test]
fn agent_that_reads_only_the_descriptions_works_in_staging() {
    let home = home_with(&["staging"]);
    home.call(&["context", "edit", "staging", "--env", "TARGET=staging"]).ok();
    let kubectl = home.write("tools/kubectl", "#!/bin/sh\necho \"$* in $TARGET\"\n");
    std::fs::set_permissions(&kubectl, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", home.path("tools").display(), std::env::var("PATH").unwrap());
    let mut client = McpClient::start(home.call(&["mcp", "--allow-run"]).env("PATH", path));
    client.initialize(USUAL);
    let tools = client.tools();
    let mut agent = Reader { client, tools };

    // Start a session in staging.
    assert!(agent.description("list_contexts").contains("staging"));
    let contexts = agent.call("list_contexts", json!({}));
    let staging = contexts["contexts"][0]["name"].clone();
    assert_eq!(staging, "staging");
    assert!(agent.description("start_session").contains("Pass the returned `id` as `session`"));
    let session = agent.call("start_session", json!({ "context": staging }))["id"].clone();

    // Run kubectl get pods.
    assert!(agent.description("run").contains("Returns exit_code, stdout and stderr"));
    let ran = agent.call("run", json!({ "command": ["kubectl", "get", "pods"], "session": session }));
    assert_eq!((&ran["exit_code"], &ran["stdout"]), (&json!(0), &json!("get pods in staging\n")), "{ran}");

    // Hold lock deploy.
    assert!(agent.description("acquire_lock").contains("Keep the returned `token`"));
    assert!(agent.description("acquire_lock").contains("the stop of its session"));
    let lock = agent.call("acquire_lock", json!({ "name": "deploy", "session": session }));
    let renewed = agent.call("renew_lock", json!({ "name": "deploy", "token": lock["token"] }));
    assert_eq!(renewed["name"], "deploy");

    // Stop.
    assert!(agent.description("start_session").contains("end it with stop_session"));
    assert!(agent.description("stop_session").contains("releases its locks (`released_locks`)"));
    let stopped = agent.call("stop_session", json!({ "session": session }));
    assert_eq!(stopped["released_locks"], json!(["deploy"]), "{stopped}");
    assert_eq!(result(&mut agent.client, "list_locks", json!({}))["count"], 0);
    assert_eq!(result(&mut agent.client, "list_sessions", json!({}))["count"], 0);
}
