//! Messages and replies.

use std::ops::ControlFlow;

use sessile_wire::a2a::{AgentEvent, OutgoingMessage, Part, ProtocolVersion, RpcErrorKind, TaskState};

use super::partners::{refusal, send, send_task, with_all};
use super::says;
use crate::a2a::StreamEnd;

#[test]
fn messages_and_tasks_are_answered() {
    with_all(
        |options| options.tenant = Some("acme".to_owned()),
        |agent| {
            let way = agent.interface.to_string();
            let is_one = agent.interface.version == ProtocolVersion::V1;
            let echoed = send(agent, &says("echo h\u{e9}llo"));
            assert!(matches!(echoed, AgentEvent::Message(_)), "{way}");
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
                ("auth", TaskState::AuthRequired, "log in at http://127.0.0.1/login"),
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
    with_all(
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
            // Testkit's own agent says it as it came, which is encoded once or twice.
            let ways = [digest, "\"AP9ib2R5\"", "\"QVA5aWIyUjU=\""];
            assert!(ways.iter().any(|way| got.contains(way)), "{}: {got}", agent.interface);
        },
    );
}

#[test]
fn a_task_that_waits_is_answered_and_one_that_has_ended_is_not() {
    with_all(
        |_| {},
        |agent| {
            let way = agent.interface.to_string();
            let asked = send_task(agent, &says("ask"));
            assert_eq!(asked.state, TaskState::InputRequired, "{way}");
            assert_eq!(asked.text(), "what is your name?", "{way}");
            let answer = |task_id: Option<String>, text: &str| OutgoingMessage {
                task_id,
                context_id: asked.context_id.clone(),
                message_id: format!("{way} {text}"),
                ..says(text)
            };
            let done = send_task(agent, &answer(Some(asked.id.clone()), "Ada"));
            assert_eq!((&done.id, done.state), (&asked.id, TaskState::Completed), "{way}");
            assert_eq!(done.artifacts()[0].text(), "hello Ada", "{way}");
            let late = agent.send(&answer(Some(asked.id.clone()), "Bob"));
            assert_eq!(refusal(agent, late), RpcErrorKind::TaskTerminal, "{way}");
            let next = send_task(agent, &answer(None, "task more"));
            assert_eq!(next.context_id, asked.context_id, "{way}");
            assert_ne!(next.id, asked.id, "{way}");
            let unknown = OutgoingMessage { task_id: Some("never".to_owned()), ..says("x") };
            assert_eq!(refusal(agent, agent.send(&unknown)), RpcErrorKind::TaskNotFound, "{way}");
        },
    );
}

#[test]
fn events_come_one_by_one() {
    with_all(
        |_| {},
        |agent| {
            let way = agent.interface.to_string();
            let (mut text, mut states, mut ids, mut ended) = (String::new(), Vec::new(), Vec::new(), None);
            let done = agent.stream(&says("stream 3"), &mut |event| {
                ids.push((event.task_id().map(str::to_owned), event.context_id().map(str::to_owned)));
                states.extend(event.state());
                if let AgentEvent::Artifact(artifact) = &event {
                    assert_eq!(artifact.is_append, !text.is_empty(), "{way}");
                    text.push_str(&artifact.text());
                    ended = Some(artifact.is_last_chunk);
                }
                ControlFlow::Continue(())
            });
            assert_eq!(done.unwrap_or_else(|error| panic!("{way}: {error:?}")), StreamEnd::Closed);
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
