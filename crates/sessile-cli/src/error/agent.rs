//! Errors of agents and their tasks.

use sessile::error::Diagnostic;
use sessile::text::{quoted, shell_quoted, shown};
use sessile::{App, Code};
use sessile_wire::a2a::{OAuthFlow, SecurityScheme, SecuritySchemeKind};

/// Errors of agents and their tasks.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Error that an agent returned.
    #[error("the agent at {} refused the request: {}", shown(agent), shown(reason))]
    Refused {
        /// URL of the agent.
        agent: String,
        /// Message of the agent.
        reason: String,
    },
    /// Agent that requires a credential or rejects the one it got.
    #[error("{}", unauthorized_text(agent, *status, challenge.as_deref(), *had_credential))]
    Unauthorized {
        /// URL of the agent.
        agent: String,
        /// HTTP status.
        status: u16,
        /// Challenge of the agent.
        challenge: Option<String>,
        /// Whether the request carried a credential.
        had_credential: bool,
        /// Authentication schemes of the agent's card.
        schemes: Vec<SecurityScheme>,
    },
    /// Agent on another machine whose URL is one of plain http.
    #[error("refusing plain http to {}: others on the network can read the messages", shown(agent))]
    PlainHttp {
        /// URL of the agent.
        agent: String,
    },
    /// Agent that requires extensions which the call does not declare.
    #[error("the agent at {} requires the extension {}", shown(agent), shown(uris.join(", ")))]
    ExtensionsRequired {
        /// URL of the agent.
        agent: String,
        /// URIs of the extensions.
        uris: Vec<String>,
    },
    /// Server that is not a valid A2A agent.
    #[error("{} cannot be used as an agent: {}", shown(agent), shown(reason))]
    Unusable {
        /// URL of the server.
        agent: String,
        /// Violation of the protocol.
        reason: String,
    },
    /// Task that the agent does not know.
    #[error("task {1} not found at the agent {0}", shown(agent), quoted(task))]
    TaskNotFound {
        /// URL of the agent.
        agent: String,
        /// Id of the task.
        task: String,
    },
    /// Reply that was printed and could not be stored.
    #[error("the message was delivered, but the conversation was not saved: {}", shown(reason))]
    NotSaved {
        /// Why it could not be stored.
        reason: String,
        /// Id of the agent for the conversation, if it gave one.
        context_id: Option<String>,
    },
    /// Reply that was printed and whose files could not be saved.
    #[error("the reply was delivered, but its files were not saved: {}", shown(reason))]
    FilesNotSaved {
        /// URL of the agent.
        agent: String,
        /// Id of the task, if the reply is one.
        task: Option<String>,
        /// Why they could not be saved.
        reason: String,
    },
    /// Operation that the agent's card does not offer.
    #[error("the agent at {} does not support {operation}, as its card says", shown(agent))]
    Unsupported {
        /// URL of the agent.
        agent: String,
        /// Name of the operation.
        operation: &'static str,
    },
    /// Task that has ended.
    #[error("task {} has ended: {}", quoted(task), shown(reason))]
    TaskOver {
        /// Id of the task.
        task: String,
        /// Message of the agent.
        reason: String,
    },
}

impl Diagnostic for AgentError {
    fn code(&self) -> Code {
        match self {
            Self::Unauthorized { .. } => Code::CredentialRejected,
            Self::PlainHttp { .. } => Code::SiteRefused,
            Self::ExtensionsRequired { .. } => Code::AgentUnusable,
            Self::Refused { .. } => Code::AgentRefused,
            Self::Unusable { .. } => Code::AgentUnusable,
            Self::Unsupported { .. } => Code::AgentRefused,
            Self::TaskNotFound { .. } => Code::TaskNotFound,
            Self::TaskOver { .. } => Code::TaskOver,
            Self::NotSaved { .. } | Self::FilesNotSaved { .. } => Code::NotSaved,
        }
    }

    fn hint(&self, app: &App) -> Option<String> {
        let name = app.name();
        Some(match self {
            Self::Unauthorized { agent, had_credential, schemes, .. } => {
                let commands: Vec<String> =
                    schemes.iter().filter_map(|scheme| credential_command(name, agent, scheme)).collect();
                let command = match commands.is_empty() {
                    true => format!("{name} auth set --url {}", shell_quoted(agent)),
                    false => commands.join("; or "),
                };
                match had_credential {
                    true => format!("replace the credential: {command}"),
                    false => format!("set a credential: {command}"),
                }
            }
            Self::PlainHttp { agent } => format!(
                "allow it for this agent, without a credential: {name} agent add NAME {} --allow-http --global",
                shell_quoted(agent)
            ),
            Self::ExtensionsRequired { uris, .. } => {
                let flags: Vec<String> =
                    uris.iter().map(|uri| format!("--extension {}", shell_quoted(uri))).collect();
                format!("if your messages follow the extension, declare support: {}", flags.join(" "))
            }
            Self::TaskNotFound { agent, .. } => {
                format!(
                    "list the agent's tasks: {name} task list {}; show the agent's answer: --debug",
                    shell_quoted(agent)
                )
            }
            Self::TaskOver { .. } => {
                "start another task: send the message without --task-id; start another conversation: --new; show the \
                 agent's answer: --debug"
                    .to_owned()
            }
            Self::Refused { .. } => "show the request and the agent's answer: --debug".to_owned(),
            Self::NotSaved { context_id: Some(id), .. } => {
                format!("do not send it again; continue with --context-id {}", shell_quoted(id))
            }
            Self::FilesNotSaved { agent, task: Some(task), .. } => format!(
                "do not send it again; save the files: {name} task get {} --url {} --save-artifacts DIR",
                shell_quoted(task),
                shell_quoted(agent)
            ),
            Self::NotSaved { .. } | Self::FilesNotSaved { .. } => "do not send it again".to_owned(),
            _ => return None,
        })
    }
}

fn unauthorized_text(agent: &str, status: u16, challenge: Option<&str>, had_credential: bool) -> String {
    let agent = shown(agent);
    let asked = challenge.map_or_else(String::new, |text| format!(" ({})", shown(text)));
    match (had_credential, status) {
        (true, 403) => {
            format!(
                "the agent at {agent}{asked} denied the request: the credential lacks the permission (status 403)"
            )
        }
        (true, _) => format!("the agent at {agent}{asked} rejected the credential (status {status})"),
        (false, _) => format!("the agent at {agent}{asked} requires a credential (status {status})"),
    }
}

/// Command that gives an agent what a scheme of its card asks for.
fn credential_command(name: &str, agent: &str, scheme: &SecurityScheme) -> Option<String> {
    let url = shell_quoted(agent);
    let issuer = |flow: &OAuthFlow| {
        let urls = [("--token-url", &flow.token_url), ("--device-url", &flow.device_authorization_url)];
        let given = |(flag, url): &(&str, &Option<String>)| {
            url.as_ref().map(|url| format!(" {flag} {}", shell_quoted(url)))
        };
        urls.iter().filter_map(given).collect::<String>()
    };
    Some(match &scheme.kind {
        SecuritySchemeKind::Bearer => format!("{name} auth set --url {url}"),
        SecuritySchemeKind::Basic => format!("{name} auth set --url {url} --basic USER"),
        SecuritySchemeKind::ApiKey { place, name: key } if place == "header" => {
            format!("{name} auth set --url {url} --api-key --api-key-header {}", shell_quoted(key))
        }
        SecuritySchemeKind::ApiKey { .. } => format!("{name} auth set --url {url} --api-key"),
        SecuritySchemeKind::OAuth2 { flows, .. } => {
            let flow = flows.get("deviceCode").or_else(|| flows.values().next());
            let is_client = flows.len() == 1 && flows.contains_key("clientCredentials");
            let client = if is_client { " --client-credentials --client-secret" } else { "" };
            format!(
                "{name} auth login NAME --client-id ID{client}{} --site {url}",
                flow.map(issuer).unwrap_or_default()
            )
        }
        SecuritySchemeKind::OpenIdConnect { url: issuer } => {
            let issuer = issuer.split("/.well-known/").next().unwrap_or_default();
            format!("{name} auth login NAME --issuer {} --client-id ID --site {url}", shell_quoted(issuer))
        }
        SecuritySchemeKind::MutualTls => {
            format!("{name} agent add NAME {url} --client-cert cert.pem --client-key key.pem --global")
        }
        SecuritySchemeKind::Http(_) | SecuritySchemeKind::Other => return None,
    })
}
