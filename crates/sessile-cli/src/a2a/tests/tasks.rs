//! Long-running tasks and push notifications.

use std::ops::ControlFlow;
use std::time::Duration;

use sessile::vault::Secret;
use sessile_wire::a2a::{OutgoingMessage, ProtocolVersion, PushConfig, RpcErrorKind, TaskFilter, TaskState};

use super::partners::{refusal, send_task, with_all};
use super::says;
use crate::a2a::{A2aError, StreamEnd};

#[test]
fn a_task_is_followed_looked_at_listed_and_called_off() {
    with_all(
        |_| {},
        |agent| {
            let way = agent.interface.to_string();
            let mut first = None;
            let stopped = agent.stream(&says("slow 3000 there"), &mut |event| {
                first = event.task_id().map(str::to_owned);
                ControlFlow::Break(())
            });
            assert_eq!(stopped.unwrap(), StreamEnd::Stopped, "{way}");
            let id = first.unwrap();
            std::thread::sleep(Duration::from_millis(200));
            let mut last = None;
            let followed = agent.resubscribe(&id, &mut |event| {
                assert_eq!(event.task_id(), Some(id.as_str()), "{way}");
                last = event.state().or(last);
                ControlFlow::Continue(())
            });
            assert_eq!(
                followed.unwrap_or_else(|error| panic!("{way}: {error:?}")),
                StreamEnd::Closed,
                "{way}"
            );
            assert_eq!(last, Some(TaskState::Completed), "{way}");
            let task = agent.task(&id, Some(1)).unwrap();
            assert_eq!((task.state, task.text().as_str()), (TaskState::Completed, "there"), "{way}");
            assert!(task.history().len() <= 1, "{way}");
            assert_eq!(refusal(agent, agent.cancel(&id)), RpcErrorKind::TaskNotCancelable, "{way}");
            assert_eq!(
                refusal(agent, agent.task("no such?task#%", None)),
                RpcErrorKind::TaskNotFound,
                "{way}"
            );

            let slow = OutgoingMessage { is_blocking: false, ..says("slow 20000 x") };
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
    with_all(
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
    with_all(
        |options| options.push = false,
        |agent| {
            let task = send_task(agent, &says("ask")).id;
            let config = PushConfig { url: "http://127.0.0.1:9/".to_owned(), ..PushConfig::default() };
            // The card says so, and the agent is not asked.
            let refused = agent.push_config_set(&task, &config);
            assert!(matches!(refused, Err(A2aError::NotOffered { .. })), "{}: {refused:?}", agent.interface);
        },
    );
}
