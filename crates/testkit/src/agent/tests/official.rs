//! On the official SDK, and with its client.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{WAYS, call, converse, send, version};
use crate::OidcServer;
use crate::agent::{AgentAuth, AgentBinding, AgentOptions, Protocol, PythonAgent, ScriptedAgent, python};

#[test]
fn the_official_sdk_converses_in_both_versions() {
    let mut options = AgentOptions::of(Protocol::V1);
    options.interfaces.push((AgentBinding::JsonRpc, Protocol::V03));
    options.tenant = Some("acme".to_owned());
    options.extended_card = true;
    let agent = PythonAgent::start(Protocol::V1, &options);
    let (status, card) = call("GET", &format!("{}/.well-known/agent-card.json", agent.url()), "", "");
    assert!(status == 200 && card.contains("supportedInterfaces") && card.contains("acme"), "{card}");
    for protocol in [Protocol::V1, Protocol::V03] {
        converse(agent.url(), (AgentBinding::JsonRpc, protocol));
        converse(agent.url(), (AgentBinding::Rest, protocol));
    }
}

#[test]
fn the_older_official_sdk_converses_with_those_it_knows() {
    let secret = AgentOptions::of(Protocol::V03).guarded(AgentAuth::Bearer, "s3cret", "ada");
    let agent = PythonAgent::start(Protocol::V03, &secret);
    let (status, answer) =
        send(agent.url(), (AgentBinding::JsonRpc, Protocol::V03), false, "echo x", &json!({}));
    assert!(status == 401 && answer.contains("www-authenticate: Bearer"), "{answer}");
    let address = agent.url()["http://".len()..].to_owned();
    drop(agent);
    assert!(TcpStream::connect(address).is_err());
    let agent = PythonAgent::shared(Protocol::V03);
    converse(agent.url(), (AgentBinding::JsonRpc, Protocol::V03));
    converse(agent.url(), (AgentBinding::Rest, Protocol::V03));
}

#[test]
fn the_official_client_converses_with_our_own() {
    let mut command = std::process::Command::new(python::python("a2a-1"));
    command.args(["-B", "-c", include_str!("../client_v1.py")]);
    let agents = WAYS.map(|(binding, protocol)| {
        let mut options = AgentOptions::default().only(binding, protocol);
        options.extended_card = true;
        options.noisy_streams = protocol == Protocol::V1;
        let agent = ScriptedAgent::start(options);
        let version = if protocol == Protocol::V03 { "0.3" } else { "1.0" };
        let binding = if binding == AgentBinding::Rest { "REST" } else { "JSON-RPC" };
        command.args([agent.url(), version, binding]);
        agent
    });
    let done = command.output().expect("Python starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(agents.iter().all(|agent| agent.seen().len() > 10));
}

#[test]
fn the_official_sdk_tells_others_what_became_of_a_task() {
    let (agent, other) = (
        PythonAgent::start(Protocol::V1, &AgentOptions::default()),
        ScriptedAgent::start(AgentOptions::default()),
    );
    let config = json!({"url": format!("{}/hook", other.url()), "token": "t0ken"});
    let params = json!({
        "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "task x"}]},
        "configuration": {"taskPushNotificationConfig": config},
    });
    let url = format!("{}/rest/message:send", agent.url());
    let (_, answer) = call("POST", &url, version(Protocol::V1), &params.to_string());
    assert!(answer.contains("TASK_STATE_COMPLETED"), "{answer}");
    let begun = Instant::now();
    while !other.heard("TASK_STATE_COMPLETED") {
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", other.seen());
        std::thread::sleep(Duration::from_millis(10));
    }
    let told = other.last("/hook").expect("a notification");
    assert_eq!(told.header("X-A2A-Notification-Token"), Some("t0ken"));
}

#[test]
fn a_token_is_as_good_as_its_issuer_says() {
    let oidc = OidcServer::start();
    let token = {
        let basic = format!("{}:s3cret%3A+%2F%2B%25%26%3D", OidcServer::SECRET_CLIENT.replace(':', "%3A"));
        let headers = format!(
            "Authorization: Basic {}\r\nContent-Type: application/x-www-form-urlencoded\r\n",
            STANDARD.encode(&basic)
        );
        let body = "grant_type=client_credentials&scope=api:read";
        let (status, answer) = call("POST", &oidc.url("/token"), &headers, body);
        assert_eq!(status, 200, "{answer}");
        let (_, rest) = answer.split_once("\"access_token\":\"").expect("a token");
        rest.split('"').next().expect("a token").to_owned()
    };
    let auth = AgentAuth::OAuth2 { issuer: oidc.issuer().to_owned(), device: false };
    let options = AgentOptions { auth, ..AgentOptions::default() };
    let (ours, theirs) = (ScriptedAgent::start(options.clone()), PythonAgent::start(Protocol::V1, &options));
    let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "whoami"}]});
    let body = json!({"message": message}).to_string();
    for base in [ours.url(), theirs.url()] {
        for (token, expected) in [(token.as_str(), 200), ("made-up", 401)] {
            let headers = format!("Authorization: Bearer {token}\r\nA2A-Version: 1.0\r\n");
            let (status, answer) = call("POST", &format!("{base}/rest/message:send"), &headers, &body);
            assert_eq!(status, expected, "{answer}");
        }
        let (_, card) = call("GET", &format!("{base}/.well-known/agent-card.json"), "", "");
        assert!(card.contains("clientCredentials") && card.contains(&oidc.url("/token")), "{card}");
    }
}
