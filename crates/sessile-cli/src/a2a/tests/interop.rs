//! With the official SDK: both versions of it, each version of the protocol over each binding.

use std::ops::ControlFlow;
use std::time::Duration;

use sessile::vault::Secret;
use testkit::{AgentAuth, AgentOptions, Protocol, PythonAgent};

use super::says;
use crate::a2a::{
    A2aError, Agent, Anonymous, Authorize, Credential, Ended, Event, Options, Outgoing, Part,
    ProtocolVersion, PushConfig, RefusalKind, Reply, TaskFilter, TaskState, TaskView,
};
use crate::http::{Http, Roots, basic};

/// An SDK, with all the ways to talk to it.
fn start(sdk: Protocol, change: impl FnOnce(&mut AgentOptions)) -> PythonAgent {
    let mut options = AgentOptions::of(sdk);
    if sdk == Protocol::V1 {
        options.interfaces.push((testkit::Binding::JsonRpc, Protocol::V03));
        options.interfaces.push((testkit::Binding::Rest, Protocol::V03));
    }
    options.extended_card = true;
    change(&mut options);
    PythonAgent::start(sdk, &options)
}

/// Does this in every way that an SDK can be talked to.
fn in_every_way(
    sdk: Protocol,
    change: impl FnOnce(&mut AgentOptions),
    auth: &dyn Authorize,
    talk: impl Fn(&Agent<'_>),
) {
    let (server, http) = (start(sdk, change), Http::new(Roots::System));
    let options = || Options { extensions: vec!["urn:x".to_owned()], ..Options::default() };
    let card = Agent::find_card(&http, server.url(), auth, &options()).unwrap();
    let usable: Vec<_> = card.interfaces.iter().filter(|interface| interface.dialect().is_some()).collect();
    assert_eq!(usable.len(), if sdk == Protocol::V1 { 4 } else { 2 }, "{usable:?}");
    for interface in usable {
        let mut card = card.clone();
        card.interfaces = vec![interface.clone()];
        let agent = Agent::from_card(&http, server.url(), auth, options(), card).unwrap();
        assert_eq!(agent.interface, *interface);
        assert!(agent.is_at_home());
        talk(&agent);
    }
}

fn with_both(change: impl Fn(&mut AgentOptions), talk: impl Fn(&Agent<'_>)) {
    for sdk in [Protocol::V1, Protocol::V03] {
        in_every_way(sdk, &change, &Anonymous, &talk);
    }
}

#[track_caller]
fn send(agent: &Agent<'_>, outgoing: &Outgoing) -> Event {
    agent.send(outgoing).unwrap_or_else(|error| panic!("{}: {error:?}", agent.interface)).into()
}

#[track_caller]
fn send_task(agent: &Agent<'_>, outgoing: &Outgoing) -> TaskView {
    match agent.send(outgoing).unwrap_or_else(|error| panic!("{}: {error:?}", agent.interface)) {
        Reply::Task(task) => task,
        Reply::Message(message) => panic!("{}: {}", agent.interface, message.raw),
    }
}

#[track_caller]
fn refusal<T>(agent: &Agent<'_>, done: Result<T, A2aError>) -> RefusalKind {
    match done {
        Err(A2aError::Rpc(refusal)) => refusal.kind,
        Err(error) => panic!("{}: {error:?}", agent.interface),
        Ok(_) => panic!("{}: no refusal", agent.interface),
    }
}

#[test]
fn messages_and_tasks_are_answered() {
    with_both(
        |options| options.tenant = Some("acme".to_owned()),
        |agent| {
            let way = agent.interface.to_string();
            let is_one = agent.interface.version == ProtocolVersion::V1;
            let echoed = send(agent, &says("echo h\u{e9}llo"));
            assert!(matches!(echoed, Event::Message(_)), "{way}");
            assert_eq!(echoed.text(), "h\u{e9}llo", "{way}");
            assert_eq!(send(agent, &says("version")).text(), agent.interface.version.as_str(), "{way}");
            assert_eq!(send(agent, &says("extensions")).text(), "urn:x", "{way}");
            if is_one {
                assert_eq!(send(agent, &says("tenant")).text(), "acme", "{way}");
            }
            let task = send_task(agent, &says("task done it"));
            assert_eq!((task.state, task.text().as_str()), (TaskState::Completed, "done it"), "{way}");
            assert!(task.context_id.is_some() && !task.id.is_empty(), "{way}");
            for (word, state, text) in [
                ("fail", TaskState::Failed, "it broke"),
                ("reject", TaskState::Rejected, "not that"),
                ("auth", TaskState::AuthRequired, "say who you are at http://127.0.0.1/login"),
            ] {
                let task = send_task(agent, &says(word));
                assert_eq!((task.state, task.message().unwrap().text().as_str()), (state, text), "{way}");
            }
            let data = &send_task(agent, &says("data")).artifacts()[0].parts()[0];
            let Part::Data(data) = data else { panic!("{way}: {data:?}") };
            assert_eq!(data["answer"].as_f64(), Some(42.0), "{way}");
            let file = send_task(agent, &says("file")).artifacts().remove(0);
            let Part::File { bytes, name, mime } = &file.parts()[0] else { panic!("{way}: {:?}", file.raw) };
            assert_eq!(bytes, b"evil \x00\xff bytes\n", "{way}");
            assert_eq!(name.as_deref(), Some("../../evil"), "{way}");
            assert_eq!(mime.as_deref(), Some("application/octet-stream"), "{way}");
        },
    );
}

#[test]
fn every_kind_of_part_arrives() {
    with_both(
        |_| {},
        |agent| {
            let mut outgoing = says("got");
            let (name, mime) = (Some("a.txt".to_owned()), Some("text/plain".to_owned()));
            outgoing.parts.extend([
                Part::File { bytes: b"\x00\xffbody".to_vec(), name: name.clone(), mime: mime.clone() },
                Part::Link { url: "https://a.example/x".to_owned(), name, mime },
                Part::Data(serde_json::json!({"n": 1})),
            ]);
            let got = send(agent, &outgoing).text();
            for word in ["a.txt", "text/plain", "https://a.example/x"] {
                assert!(got.contains(word), "{}: {word} in {got}", agent.interface);
            }
            // printf '\000\377body' | sha256sum
            let digest = "63189caad211837f768d34ac8b28978ade5343ecae47cc0bf96ac8daee491f51";
            assert!(got.contains(digest), "{}: {got}", agent.interface);
        },
    );
}

#[test]
fn a_task_that_waits_is_answered_and_one_that_has_ended_is_not() {
    with_both(
        |_| {},
        |agent| {
            let way = agent.interface.to_string();
            let asked = send_task(agent, &says("ask"));
            assert_eq!(asked.state, TaskState::InputRequired, "{way}");
            assert_eq!(asked.text(), "what is your name?", "{way}");
            let answer = |task_id: Option<String>, text: &str| Outgoing {
                task_id,
                context_id: asked.context_id.clone(),
                message_id: format!("{way} {text}"),
                ..says(text)
            };
            let done = send_task(agent, &answer(Some(asked.id.clone()), "Ada"));
            assert_eq!((&done.id, done.state), (&asked.id, TaskState::Completed), "{way}");
            assert_eq!(done.artifacts()[0].text(), "hello Ada", "{way}");
            let late = agent.send(&answer(Some(asked.id.clone()), "Bob"));
            assert_eq!(refusal(agent, late), RefusalKind::TaskTerminal, "{way}");
            let next = send_task(agent, &answer(None, "task more"));
            assert_eq!(next.context_id, asked.context_id, "{way}");
            assert_ne!(next.id, asked.id, "{way}");
            let unknown = Outgoing { task_id: Some("never".to_owned()), ..says("x") };
            assert_eq!(refusal(agent, agent.send(&unknown)), RefusalKind::TaskNotFound, "{way}");
        },
    );
}

#[test]
fn events_come_one_by_one() {
    with_both(
        |_| {},
        |agent| {
            let way = agent.interface.to_string();
            let (mut text, mut states, mut ids, mut ended) = (String::new(), Vec::new(), Vec::new(), None);
            let done = agent.stream(&says("stream 3"), &mut |event| {
                ids.push((event.task_id().map(str::to_owned), event.context_id().map(str::to_owned)));
                states.extend(event.state());
                if let Event::Artifact(artifact) = &event {
                    assert_eq!(artifact.append, !text.is_empty(), "{way}");
                    text.push_str(&artifact.text());
                    ended = Some(artifact.last_chunk);
                }
                ControlFlow::Continue(())
            });
            assert_eq!(done.unwrap_or_else(|error| panic!("{way}: {error:?}")), Ended::Closed);
            assert_eq!((text.as_str(), ended), ("chunk 1\nchunk 2\nchunk 3\n", Some(true)), "{way}");
            assert_eq!(states.last(), Some(&TaskState::Completed), "{way}");
            assert!(ids.iter().all(|id| id == &ids[0] && id.0.is_some() && id.1.is_some()), "{way} {ids:?}");
            let mut heard = Vec::new();
            let done = agent.stream(&says("echo hi"), &mut |event| {
                heard.push((event.text(), event.is_final()));
                ControlFlow::Continue(())
            });
            assert!(done.is_ok() && heard == [("hi".to_owned(), true)], "{way} {heard:?}");
        },
    );
}

#[test]
fn a_task_is_followed_looked_at_listed_and_called_off() {
    with_both(
        |_| {},
        |agent| {
            let way = agent.interface.to_string();
            let mut first = None;
            let stopped = agent.stream(&says("slow 3000 there"), &mut |event| {
                first = event.task_id().map(str::to_owned);
                ControlFlow::Break(())
            });
            assert_eq!(stopped.unwrap(), Ended::Stopped, "{way}");
            let id = first.unwrap();
            std::thread::sleep(Duration::from_millis(200));
            let mut last = None;
            let followed = agent.resubscribe(&id, &mut |event| {
                assert_eq!(event.task_id(), Some(id.as_str()), "{way}");
                last = event.state().or(last);
                ControlFlow::Continue(())
            });
            assert_eq!(followed.unwrap_or_else(|error| panic!("{way}: {error:?}")), Ended::Closed, "{way}");
            assert_eq!(last, Some(TaskState::Completed), "{way}");
            let task = agent.task(&id, Some(1)).unwrap();
            assert_eq!((task.state, task.text().as_str()), (TaskState::Completed, "there"), "{way}");
            assert!(task.history().len() <= 1, "{way}");
            assert_eq!(refusal(agent, agent.cancel(&id)), RefusalKind::TaskNotCancelable, "{way}");
            assert_eq!(
                refusal(agent, agent.task("no such?task#%", None)),
                RefusalKind::TaskNotFound,
                "{way}"
            );

            let slow = Outgoing { blocking: false, ..says("slow 20000 x") };
            let slow = send_task(agent, &slow);
            assert!(!slow.state.is_terminal(), "{way}");
            assert_eq!(agent.cancel(&slow.id).unwrap().state, TaskState::Canceled, "{way}");

            if agent.interface.version == ProtocolVersion::V1 {
                let filter = TaskFilter {
                    context_id: task.context_id.clone(),
                    state: Some(TaskState::Completed),
                    page_size: Some(1),
                    include_artifacts: true,
                    ..TaskFilter::default()
                };
                let page = agent.tasks(&filter).unwrap();
                assert_eq!((page.tasks.len(), page.tasks[0].text().as_str()), (1, "there"), "{way}");
                let page = agent.tasks(&TaskFilter { page_size: Some(1), ..TaskFilter::default() }).unwrap();
                let token = page.next_page_token;
                assert!(token.is_some(), "{way}");
                let next = agent.tasks(&TaskFilter { page_token: token, ..TaskFilter::default() }).unwrap();
                assert!(next.tasks.iter().all(|task| task.id != page.tasks[0].id), "{way}");
            } else {
                assert!(matches!(agent.tasks(&TaskFilter::default()), Err(A2aError::Rpc(_))), "{way}");
            }
        },
    );
}

#[test]
fn notifications_are_configured() {
    with_both(
        |_| {},
        |agent| {
            let way = agent.interface.to_string();
            let task = send_task(agent, &says("ask")).id;
            let config = PushConfig {
                id: Some("mine".to_owned()),
                url: "http://127.0.0.1:9/hook".to_owned(),
                token: Some(Secret::new("t0ken")),
                scheme: Some("Bearer".to_owned()),
                credentials: Some(Secret::new("hunter2")),
            };
            let set =
                agent.push_config_set(&task, &config).unwrap_or_else(|error| panic!("{way}: {error:?}"));
            assert_eq!((set.id.as_deref(), set.url.as_str()), (Some("mine"), config.url.as_str()), "{way}");
            let got = agent.push_config_get(&task, "mine").unwrap();
            assert_eq!(
                (got.id.as_deref(), got.task_id.as_deref()),
                (Some("mine"), Some(task.as_str())),
                "{way}"
            );
            // The older SDK has neither of these over HTTP+JSON.
            if agent.interface.to_string() == "HTTP+JSON 0.3" {
                return;
            }
            let all = agent.push_config_list(&task).unwrap();
            assert_eq!(
                all.iter().map(|one| one.url.as_str()).collect::<Vec<_>>(),
                [config.url.as_str()],
                "{way}"
            );
            agent.push_config_remove(&task, "mine").unwrap_or_else(|error| panic!("{way}: {error:?}"));
            assert!(agent.push_config_list(&task).unwrap().is_empty(), "{way}");
        },
    );
    with_both(
        |options| options.push = false,
        |agent| {
            let task = send_task(agent, &says("ask")).id;
            let config = PushConfig { url: "http://127.0.0.1:9/".to_owned(), ..PushConfig::default() };
            let kind = refusal(agent, agent.push_config_set(&task, &config));
            // The older SDK takes its own refusal for a failure.
            let way = agent.interface.to_string();
            let is_no = matches!(kind, RefusalKind::PushNotSupported | RefusalKind::UnsupportedOperation);
            assert!(is_no || (way == "JSONRPC 0.3" && kind == RefusalKind::Internal), "{way}: {kind:?}");
            assert!(!agent.card.push, "{way}");
        },
    );
}

/// The same credential for all.
struct Always(Credential);

impl Authorize for Always {
    fn credentials_for(&self, _url: &str) -> Result<Vec<Credential>, sessile::Error> {
        Ok(vec![self.0.clone()])
    }
}

#[test]
fn who_is_known_is_let_in_and_sees_more() {
    let key = || Secret::new("s3cret");
    let header = |value: &str| Credential::Header("Authorization".to_owned(), Secret::new(value));
    let ways = [
        (AgentAuth::Bearer, "s3cret", header("Bearer s3cret")),
        (AgentAuth::Basic, "ada:s3cret", header(&basic("ada", "s3cret"))),
        (
            AgentAuth::ApiKeyHeader("X-API-Key".to_owned()),
            "s3cret",
            Credential::Header("X-API-Key".to_owned(), key()),
        ),
        (AgentAuth::ApiKeyQuery("k".to_owned()), "s3cret", Credential::Query("k".to_owned(), key())),
        (AgentAuth::ApiKeyCookie("k".to_owned()), "s3cret", Credential::Cookie("k".to_owned(), key())),
    ];
    for (number, (auth, secret, credential)) in ways.into_iter().enumerate() {
        let sdk = if number % 2 == 0 { Protocol::V1 } else { Protocol::V03 };
        let guard =
            |options: &mut AgentOptions| *options = options.clone().guarded(auth.clone(), secret, "ada");
        in_every_way(sdk, guard, &Always(credential), |agent| {
            let way = agent.interface.to_string();
            assert!(send(agent, &says("whoami")).text().contains("\"account\": \"ada\""), "{way}");
            let mut count = 0;
            let heard = agent.stream(&says("stream 2"), &mut |_| {
                count += 1;
                ControlFlow::Continue(())
            });
            assert!(heard.is_ok() && count > 2, "{way}");
            let extended = agent.extended_card().unwrap_or_else(|error| panic!("{way}: {error:?}"));
            assert!(extended.skills.iter().any(|skill| skill.id == "secret"), "{way}");
            assert!(
                agent.card.extended && !agent.card.skills.iter().any(|skill| skill.id == "secret"),
                "{way}"
            );
        });
        in_every_way(sdk, guard, &Anonymous, |agent| {
            let told = agent.send(&says("whoami")).unwrap_err();
            let is_told = matches!(&told, A2aError::Unauthorized { status: 401, challenge: Some(_), .. });
            assert!(is_told, "{told:?}");
            assert_eq!(agent.card.schemes.len(), 1);
        });
    }
}
