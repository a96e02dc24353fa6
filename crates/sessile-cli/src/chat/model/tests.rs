use serde_json::{Value, json};
use sessile::conversation::ConversationItem;
use sessile_wire::a2a::{AgentEvent, Dialect, Part, TaskState};

use super::{ChatConversation, EntryAuthor, EntryBlock};

fn event(raw: Value) -> AgentEvent {
    AgentEvent::read(raw, Dialect::V1).unwrap()
}

fn status(state: &str, text: Option<&str>) -> AgentEvent {
    let mut status = json!({ "state": format!("TASK_STATE_{state}") });
    if let Some(text) = text {
        status["message"] =
            json!({"messageId": format!("m-{text}"), "role": "ROLE_AGENT", "parts": [{"text": text}]});
    }
    event(json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": status}}))
}

fn artifact(name: &str, part: &Value, append: bool) -> AgentEvent {
    event(json!({"artifactUpdate": {"taskId": "t", "contextId": "c", "append": append,
        "artifact": {"artifactId": name, "name": name, "parts": [part]}}}))
}

fn item(kind: &str, body: Value) -> ConversationItem {
    ConversationItem { number: 1, kind: kind.to_owned(), source: "agent", at: String::new(), body }
}

#[test]
fn chunks_of_an_artifact_are_one_block() {
    let mut chat = ChatConversation::default();
    chat.push_sent(&[Part::Text("go".into())]);
    for chunk in ["one\n", "two\n", "three"] {
        chat.take(&artifact("a", &json!({ "text": chunk }), chunk != "one\n"));
    }
    chat.take(&status("COMPLETED", None));
    assert_eq!(chat.entries.len(), 2);
    assert_eq!(chat.entries[1].blocks, [EntryBlock::Text("one\ntwo\nthree".into())]);
    assert_eq!(chat.task_state, Some(TaskState::Completed));
    assert_eq!(chat.artifacts().len(), 1);
    assert!(chat.running_task().is_none() && chat.question().is_none());
}

#[test]
fn question_waits_until_the_task_goes_on() {
    let mut chat = ChatConversation::default();
    chat.push_sent(&[Part::Text("ask".into())]);
    chat.take(&status("INPUT_REQUIRED", Some("what is your name?")));
    assert_eq!(chat.question().unwrap().text(), "what is your name?");
    assert_eq!(chat.waiting_task(), Some("t"));
    chat.push_sent(&[Part::Text("Ann".into())]);
    chat.take(&status("WORKING", None));
    assert!(chat.question().is_none());
    assert_eq!(chat.running_task(), Some("t"));
    chat.take(&artifact("greeting", &json!({"text": "hello Ann"}), false));
    chat.take(&status("COMPLETED", Some("hello Ann")));
    let authors: Vec<EntryAuthor> = chat.entries.iter().map(|entry| entry.author).collect();
    assert_eq!(authors, [EntryAuthor::User, EntryAuthor::Agent, EntryAuthor::User, EntryAuthor::Agent]);
    assert_eq!(chat.last_reply().unwrap().text(), "hello Ann");
}

#[test]
fn files_data_and_links_are_blocks_under_their_artifact() {
    let mut chat = ChatConversation::default();
    chat.take(&artifact("report", &json!({"raw": "eA==", "filename": "../../x"}), false));
    chat.take(&artifact("table", &json!({"data": {"rows": 2}}), false));
    chat.take(&artifact("site", &json!({"url": "https://a.example/"}), false));
    let blocks = &chat.entries[0].blocks;
    assert_eq!(blocks.len(), 6, "{blocks:?}");
    assert_eq!(blocks[0], EntryBlock::ArtifactName("report".into()));
    let all = chat.artifacts();
    assert_eq!(all.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["report", "table", "site"]);
    assert_eq!(all[2].link(), Some("https://a.example/"));
    assert_eq!(all[0].facts(), "file, 1 bytes");
}

#[test]
fn stored_items_give_the_same_conversation() {
    let mut chat = ChatConversation::default();
    let sent = json!({"messageId": "m", "parts": [{"text": "hi"}, {"file": {"name": "a.txt", "size": 3}}]});
    chat.replay(&item("sent", sent));
    chat.replay(&item(
        "message",
        json!({"kind": "message", "messageId": "r", "contextId": "c", "role": "agent",
        "parts": [{"kind": "text", "text": "hello"}]}),
    ));
    chat.replay(&item("failed", json!({"text": "no reply: timed out"})));
    chat.replay(&item("other", json!({"text": "unknown"})));
    assert_eq!(chat.entries[0].text(), "hi\n[file a.txt, 3 bytes]");
    assert_eq!(chat.entries[1].text(), "hello");
    assert!(chat.entries[2].is_failure);
    assert_eq!((chat.entries.len(), chat.ids.context_id.as_deref()), (3, Some("c")));
}

#[test]
fn another_task_begins_another_entry() {
    let mut chat = ChatConversation::default();
    chat.take(&status("COMPLETED", Some("first")));
    let raw =
        json!({"statusUpdate": {"taskId": "u", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}});
    chat.take(&event(raw));
    assert_eq!(chat.entries.len(), 2);
    assert_eq!(chat.ids.task_id.as_deref(), Some("u"));
}
