//! Agents on the official SDK for Python.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Map, Value, json};
use sessile_agent::{AgentAuth, AgentOptions, Protocol};
use tempfile::TempDir;

use crate::node::NodeServer;

/// Timeout of an agent's start; importing the SDK alone takes a second or two.
const PATIENCE: Duration = Duration::from_secs(60);

/// Placeholder of the agent's address.
// The port is known only once the agent listens; the script fills it in.
const PLACEHOLDER: &str = "http://agent.invalid";

/// An agent on a port of its own, which ends when this is dropped. It does what the text of a message says: see
/// `ScriptedAgent`.
pub struct PythonAgent {
    server: NodeServer,
    _dir: TempDir,
}

impl PythonAgent {
    /// Starts one on the SDK of this version. The one for 1.0 speaks 0.3 too, if the options have an interface of it.
    #[track_caller]
    pub fn start(sdk: Protocol, options: &AgentOptions) -> Self {
        PythonAgent::start_with(sdk, options, false)
    }

    /// Starts one on the SDK of version 1.0 that signs its push notifications by a key of `/.well-known/jwks.json`.
    #[track_caller]
    pub fn start_signing() -> Self {
        let options = AgentOptions { push: true, ..AgentOptions::of(Protocol::V1) };
        PythonAgent::start_with(Protocol::V1, &options, true)
    }

    #[track_caller]
    fn start_with(sdk: Protocol, options: &AgentOptions, signed_push: bool) -> Self {
        let (venv, script) = match sdk {
            Protocol::V1 => ("a2a-1", include_str!("agent_v1.py")),
            Protocol::V03 => ("a2a-03", include_str!("agent_v03.py")),
        };
        let python = python(venv);
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("agent_common.py"), include_str!("agent_common.py")).expect("a file");
        std::fs::write(dir.path().join("agent.py"), script).expect("a file");
        let extended = options.extended_card.then(|| options.card(sdk, PLACEHOLDER, true));
        let accounts = options.accounts.iter().map(|(secret, account)| (secret.clone(), json!(account)));
        let argument = json!({
            "card": options.card(sdk, PLACEHOLDER, false),
            "extended_card": extended,
            "auth": auth(&options.auth),
            "accounts": Map::from_iter(accounts),
            "push": options.push,
            "signed_push": signed_push,
            "older_card_path": options.older_card_path,
            "compat": options.speaks(Protocol::V03),
        });
        let mut command = Command::new(python);
        command.arg("-B").arg(dir.path().join("agent.py")).arg(argument.to_string()).current_dir(dir.path());
        for name in ["PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV"] {
            // A developer's own environment must not replace the SDK under test.
            command.env_remove(name);
        }
        PythonAgent { server: NodeServer::spawn(command, PATIENCE), _dir: dir }
    }

    /// One that all tests of a process may use, with every interface that the SDK has, and nothing asked for. It ends with
    /// the process.
    #[track_caller]
    pub fn shared(sdk: Protocol) -> &'static Self {
        static NEW: OnceLock<PythonAgent> = OnceLock::new();
        static OLD: OnceLock<PythonAgent> = OnceLock::new();
        let mut options = AgentOptions::of(sdk);
        match sdk {
            Protocol::V1 => NEW.get_or_init(|| {
                options.interfaces.extend(AgentOptions::of(Protocol::V03).interfaces);
                PythonAgent::start(sdk, &options)
            }),
            Protocol::V03 => OLD.get_or_init(|| PythonAgent::start(sdk, &options)),
        }
    }

    /// Address, `http://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        self.server.address()
    }
}

/// Framework that agents are built on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentFramework {
    /// Google's Agent Development Kit.
    Adk,
    /// Strands Agents.
    Strands,
    /// FastA2A of Pydantic.
    FastA2a,
    /// python-a2a.
    PythonA2a,
}

/// An agent on a framework, which does what the text of a message says. It ends when this is dropped.
pub struct FrameworkAgent {
    server: NodeServer,
}

impl FrameworkAgent {
    /// Starts one on the framework that `scripts/test --long` installed.
    #[track_caller]
    pub fn start(framework: AgentFramework) -> Self {
        let (venv, script) = match framework {
            AgentFramework::Adk => ("google-adk", include_str!("frameworks/adk.py")),
            AgentFramework::Strands => ("strands-agents", include_str!("frameworks/strands.py")),
            AgentFramework::FastA2a => ("fasta2a", include_str!("frameworks/fasta2a.py")),
            AgentFramework::PythonA2a => ("python-a2a", include_str!("frameworks/python_a2a.py")),
        };
        let mut command = Command::new(python(venv));
        command.arg("-B").arg("-c").arg(script);
        for name in ["PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV"] {
            command.env_remove(name);
        }
        FrameworkAgent { server: NodeServer::spawn(command, PATIENCE) }
    }

    /// Address, `http://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        self.server.address()
    }
}

fn auth(auth: &AgentAuth) -> Value {
    match auth {
        AgentAuth::None => json!({"kind": "none"}),
        AgentAuth::Bearer => json!({"kind": "bearer"}),
        AgentAuth::Basic => json!({"kind": "basic"}),
        AgentAuth::ApiKeyHeader(name) => json!({"kind": "api-key-header", "name": name}),
        AgentAuth::ApiKeyQuery(name) => json!({"kind": "api-key-query", "name": name}),
        AgentAuth::ApiKeyCookie(name) => json!({"kind": "api-key-cookie", "name": name}),
        AgentAuth::OAuth2 { issuer, .. } => json!({"kind": "oauth2", "issuer": issuer}),
    }
}

/// The interpreter that `scripts/test` gave the SDK.
#[track_caller]
pub(super) fn python(venv: &str) -> PathBuf {
    let tested = std::env::current_exe().expect("the test's own path");
    let entry = format!("test-tools/{venv}/bin/python");
    tested.ancestors().map(|dir| dir.join(&entry)).find(|path| path.is_file()).unwrap_or_else(|| {
        panic!("A2A SDK for Python not found in target/test-tools/{venv}; scripts/test installs it")
    })
}
