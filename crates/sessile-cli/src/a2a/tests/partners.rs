//! Agents to talk to: the official SDK in both its versions and testkit's own, each in every way that it offers.

use sessile_wire::a2a::{AgentEvent, AgentTask, OutgoingMessage, RpcErrorKind};
use testkit::{AgentOptions, Protocol, PythonAgent, ScriptedAgent};

use crate::a2a::{A2aError, AgentClient, AnonymousAccess, ClientOptions, CredentialProvider};
use crate::http::{HttpClient, TrustRoots};

/// Agent under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Partner {
    Sdk(Protocol),
    Scripted,
}

pub(super) const ALL: [Partner; 3] =
    [Partner::Sdk(Protocol::V1), Partner::Sdk(Protocol::V03), Partner::Scripted];

/// An agent, which ends when this is dropped.
enum PartnerProcess {
    Sdk(PythonAgent),
    Scripted(ScriptedAgent),
}

impl PartnerProcess {
    fn url(&self) -> &str {
        match self {
            PartnerProcess::Sdk(agent) => agent.url(),
            PartnerProcess::Scripted(agent) => agent.url(),
        }
    }
}

impl Partner {
    fn start(self, change: impl FnOnce(&mut AgentOptions)) -> PartnerProcess {
        let version = if self == Partner::Sdk(Protocol::V03) { Protocol::V03 } else { Protocol::V1 };
        let mut options = AgentOptions::of(version);
        if version == Protocol::V1 {
            options.interfaces.push((testkit::AgentBinding::JsonRpc, Protocol::V03));
            options.interfaces.push((testkit::AgentBinding::Rest, Protocol::V03));
        }
        options.extended_card = true;
        change(&mut options);
        match self {
            Partner::Sdk(version) => PartnerProcess::Sdk(PythonAgent::start(version, &options)),
            Partner::Scripted => PartnerProcess::Scripted(ScriptedAgent::start(options)),
        }
    }

    /// Does this in every way that it can be talked to.
    pub(super) fn in_every_way(
        self,
        change: impl FnOnce(&mut AgentOptions),
        auth: &dyn CredentialProvider,
        talk: impl Fn(&AgentClient<'_>),
    ) {
        let (server, http) = (self.start(change), HttpClient::new(TrustRoots::System));
        let options = || ClientOptions { extensions: vec!["urn:x".to_owned()], ..ClientOptions::default() };
        let card = AgentClient::find_card(&http, server.url(), auth, &options(), None).unwrap();
        let usable: Vec<_> =
            card.interfaces.iter().filter(|interface| interface.dialect().is_some()).collect();
        assert_eq!(usable.len(), if self == Partner::Sdk(Protocol::V03) { 2 } else { 4 }, "{usable:?}");
        for interface in usable {
            let mut card = card.clone();
            // The client takes the first one that it can use.
            card.interfaces = vec![interface.clone()];
            let agent = AgentClient::from_card(&http, server.url(), auth, options(), card).unwrap();
            assert_eq!(agent.interface, *interface);
            assert!(agent.is_at_home());
            talk(&agent);
        }
    }
}

/// The same with all of them.
pub(super) fn with_all(change: impl Fn(&mut AgentOptions), talk: impl Fn(&AgentClient<'_>)) {
    for partner in ALL {
        partner.in_every_way(&change, &AnonymousAccess, &talk);
    }
}

#[track_caller]
pub(super) fn send(agent: &AgentClient<'_>, outgoing: &OutgoingMessage) -> AgentEvent {
    agent.send(outgoing).unwrap_or_else(|error| panic!("{}: {error:?}", agent.interface))
}

#[track_caller]
pub(super) fn send_task(agent: &AgentClient<'_>, outgoing: &OutgoingMessage) -> AgentTask {
    match agent.send(outgoing).unwrap_or_else(|error| panic!("{}: {error:?}", agent.interface)) {
        AgentEvent::Task(task) => task,
        other => panic!("{}: {}", agent.interface, other.raw()),
    }
}

#[track_caller]
pub(super) fn refusal<T>(agent: &AgentClient<'_>, done: Result<T, A2aError>) -> RpcErrorKind {
    match done {
        Err(A2aError::Rpc(error)) => error.kind,
        Err(error) => panic!("{}: {error:?}", agent.interface),
        Ok(_) => panic!("{}: no refusal", agent.interface),
    }
}
