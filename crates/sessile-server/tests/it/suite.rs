//! What a store does, change by change.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use sessile_server::account::{AccountChange, LoginDecision, Token, TokenScope};
use sessile_server::change::{Busy, ChangeOutcome, Refusal, StoreChange};
use sessile_server::ids::{FencingToken, Position, SecretHash, SessionId, SessionRef, TokenId, UserName};
use sessile_server::json_text::JsonText;
use sessile_server::model::{AgentConversation, HistoryEntry, Resource};
use sessile_server::query::{CommittedTurn, ListPage, Query, QueryAnswer, StoredOutcome};
use sessile_server::request::{Access, AuditedRead};
use sessile_server::{login, users};

use crate::queues::lock_excludes_within_a_user_only;
use crate::stores::{CLAIM, Throwaway, User, asking, id, lock, session, starting, ticket, turn};

/// Each of these is run with every store.
macro_rules! with_every_store {
    ($($name:ident)+) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $name() {
                super::$name(&crate::stores::Throwaway::sqlite().await).await;
            })+
        }
        mod postgres {
            // What is thrown away is waited for, while connections that are being made go on: the server waits for those.
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name(&crate::stores::Throwaway::postgres().await).await;
            })+
        }
    };
}

pub(crate) use with_every_store;

with_every_store! {
    session_is_started_read_edited_and_ended
    other_user_sees_nothing
    name_belongs_to_one_live_session
    expired_session_refuses_changes
    messages_are_numbered_read_in_pages_rewound_and_forked
    value_with_outdated_revision_is_not_changed
    conversation_continues_only_without_other_messages
    context_belongs_to_one_session
    same_idempotency_key_acts_once
    every_change_is_recognized_by_its_key
    events_can_be_followed_from_any_number
    users_and_tokens_are_added_disabled_and_revoked
    history_lists_changes_newest_first
    administrative_changes_are_audited
    reads_of_several_users_are_recorded
    stored_text_is_unchanged
    newer_schema_is_refused
}

/// What must hold with one wall between users, whichever it is.
pub(crate) async fn keeps_users_apart(store: &Throwaway) {
    other_user_sees_nothing(store).await;
    lock_excludes_within_a_user_only(store).await;
    context_belongs_to_one_session(store).await;
    let (ann, bob) = (User::new(&store.db, "ann"), User::new(&store.db, "bob"));
    // Two users may have the same ids, names, keys and queues.
    let same = starting(Some("same"), 60_000);
    let hers = session(ann.keyed(Some("key"), same.clone()).await).id;
    assert_eq!(session(bob.keyed(Some("key"), same).await).id, hers);
    let set = |value: i64| StoreChange::SetEntry {
        session: hers.clone(),
        key: "k".to_owned(),
        value: Some(json!(value).into()),
        if_revision: Some(0),
    };
    for (user, text, value) in [(&ann, "hers", 1), (&bob, "his", 2)] {
        user.append(&hers, &[text, text, text]).await.unwrap();
        user.change(set(value)).await.unwrap();
        let resource = lock("same");
        assert!(ticket(user.ask_for(&resource, Busy::Reject, 60_000).await).token.is_some());
    }
    ann.change(StoreChange::Rewind { session: hers.clone(), to: 1 }).await.unwrap();
    let fork = StoreChange::Fork { session: hers.clone(), at: None, id: id(), name: None };
    let forked = session(ann.change(fork).await).id;
    assert_eq!(ann.texts(&forked).await, ["hers"]);
    ann.change(StoreChange::EndSession { session: hers.clone(), reason: String::new() }).await.unwrap();
    assert_eq!(ann.texts(&hers).await, ["hers"]);
    assert_eq!(bob.texts(&hers).await, ["his", "his", "his"]);
    bob.append(&hers, &["his is not over"]).await.unwrap();
    let all = Query::Entries { session: hers.clone(), key: None, after: None, limit: 10, bytes: i64::MAX };
    assert!(
        matches!(bob.ask(all).await, Ok(QueryAnswer::Entries(all)) if all.items.len() == 1 && all.items[0].value == json!(2))
    );
    let live = Query::Sessions { live: true, label: None, after: None, limit: 10 };
    assert!(
        matches!(bob.ask(live).await, Ok(QueryAnswer::Sessions(all)) if all.items.iter().any(|one| one.id == hers))
    );
    let Ok(QueryAnswer::Locks(locks)) = bob.ask(Query::Locks { after: None, limit: 10 }).await else {
        panic!()
    };
    assert_eq!(locks.items.len(), 2, "{locks:?}");
}

async fn session_is_started_read_edited_and_ended(store: &Throwaway) {
    let user = User::new(&store.db, "ann");
    let mut change = starting(Some("work"), 60_000);
    if let StoreChange::StartSession { labels, settings, context, .. } = &mut change {
        labels.insert("team".to_owned(), "web".to_owned());
        settings.insert("model".to_owned(), json!("small"));
        *context = Some("staging".to_owned());
    }
    let started = session(user.change(change).await);
    assert_eq!((started.name.as_deref(), started.context.as_deref()), (Some("work"), Some("staging")));
    assert_eq!((started.revision, started.messages), (1, 0));
    for which in [SessionRef::Id(started.id.clone()), SessionRef::Name("work".to_owned())] {
        let found = user.ask(Query::Session { session: which }).await;
        assert_eq!(found, Ok(QueryAnswer::Session(started.clone())));
    }
    let edit = |if_revision| StoreChange::EditSession {
        session: started.id.clone(),
        if_revision,
        name: Some("other".to_owned()),
        labels: None,
        settings: [("model".to_owned(), json!(null)), ("top".to_owned(), json!(1))].into(),
    };
    assert_eq!(user.change(edit(Some(7))).await, Err(Refusal::Changed { revision: 1 }));
    let edited = session(user.change(edit(Some(1))).await);
    assert_eq!((edited.name.as_deref(), edited.revision), (Some("other"), 2));
    assert_eq!((edited.settings.get("model"), edited.settings.get("top")), (None, Some(&json!(1))));
    assert_eq!(edited.labels, started.labels);
    let end = || StoreChange::EndSession { session: started.id.clone(), reason: "done".to_owned() };
    let ended = session(user.change(end()).await);
    assert_eq!(ended.end_reason.as_deref(), Some("done"));
    assert_eq!(session(user.change(end()).await).ended_ms, ended.ended_ms, "once is enough");
    assert_eq!(user.append(&started.id, &["late"]).await, Err(Refusal::SessionOver));
    let list = |live| Query::Sessions { live, label: None, after: None, limit: 10 };
    let none = ListPage { items: Vec::new(), next: None };
    assert_eq!(user.ask(list(true)).await, Ok(QueryAnswer::Sessions(none)));
    assert!(matches!(user.ask(list(false)).await, Ok(QueryAnswer::Sessions(all)) if all.items.len() == 1));
}

async fn other_user_sees_nothing(store: &Throwaway) {
    let (ann, bob) = (User::new(&store.db, "ann"), User::new(&store.db, "bob"));
    let started = ann.start(Some("secret")).await;
    ann.append(&started.id, &["hers"]).await.unwrap();
    let id = || started.id.clone();
    let nothing = Err(Refusal::NoSession);
    assert_eq!(bob.ask(Query::Session { session: id().into() }).await, nothing);
    assert_eq!(bob.ask(Query::Session { session: SessionRef::Name("secret".to_owned()) }).await, nothing);
    assert_eq!(
        bob.ask(Query::Messages { session: id(), after: 0, limit: 9, bytes: i64::MAX }).await,
        nothing
    );
    assert_eq!(bob.ask(Query::LastMessages { session: id(), limit: 9, bytes: i64::MAX }).await, nothing);
    assert_eq!(bob.ask(Query::Events { session: id(), after: 0, limit: 9 }).await, nothing);
    let entries = Query::Entries { session: id(), key: None, after: None, limit: 9, bytes: i64::MAX };
    assert_eq!(bob.ask(entries).await, nothing);
    let nothing = Err(Refusal::NoSession);
    assert_eq!(bob.append(&started.id, &["his"]).await, nothing);
    assert_eq!(bob.ask_for(&turn(&started), Busy::Enqueue, 1000).await, nothing);
    for change in [
        StoreChange::EndSession { session: id(), reason: String::new() },
        StoreChange::Rewind { session: id(), to: 0 },
        StoreChange::Fork { session: id(), at: None, id: crate::stores::id(), name: None },
        StoreChange::SetEntry {
            session: id(),
            key: "k".to_owned(),
            value: Some(json!(1).into()),
            if_revision: None,
        },
        StoreChange::CommitTurn {
            session: id(),
            token: FencingToken::new(1),
            bodies: Vec::new(),
            conversation: None,
        },
        StoreChange::TakeConversation { session: id(), token: FencingToken::new(1) },
    ] {
        assert_eq!(bob.change(change.clone()).await, nothing, "{change:?}");
    }
    assert_eq!(ann.texts(&started.id).await, ["hers"]);
    // The same name and the same id are his own.
    bob.start(Some("secret")).await;
}

async fn name_belongs_to_one_live_session(store: &Throwaway) {
    let user = User::new(&store.db, "ann");
    let first = user.start(Some("work")).await;
    assert_eq!(user.change(starting(Some("work"), 1000)).await, Err(Refusal::NameTaken));
    user.change(StoreChange::EndSession { session: first.id, reason: String::new() }).await.unwrap();
    let short = session(user.change(starting(Some("work"), 1)).await);
    tokio::time::sleep(Duration::from_millis(5)).await;
    let third = user.start(Some("work")).await;
    let Ok(QueryAnswer::Session(over)) = user.ask(Query::Session { session: short.id.into() }).await else {
        panic!()
    };
    assert_eq!(over.end_reason.as_deref(), Some("expired"));
    assert!(third.ended_ms.is_none());
}

async fn expired_session_refuses_changes(store: &Throwaway) {
    let user = User::new(&store.db, "ann");
    // Long enough that a busy machine makes the first append in time.
    let short = session(user.change(starting(None, 800)).await);
    user.append(&short.id, &["in time"]).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1000)).await;
    assert_eq!(user.append(&short.id, &["late"]).await, Err(Refusal::SessionOver));
    assert_eq!(user.ask_for(&turn(&short), Busy::Enqueue, 1000).await, Err(Refusal::SessionOver));
    assert_eq!(user.texts(&short.id).await, ["in time"], "messages of an ended session are readable");
}

async fn messages_are_numbered_read_in_pages_rewound_and_forked(store: &Throwaway) {
    let user = User::new(&store.db, "ann");
    let of = user.start(None).await.id;
    assert_eq!(user.append(&of, &["a", "b"]).await, Ok(ChangeOutcome::Appended { first: 1, last: 2 }));
    assert_eq!(user.append(&of, &["c", "d", "e"]).await, Ok(ChangeOutcome::Appended { first: 3, last: 5 }));
    let stale =
        StoreChange::Append { session: of.clone(), bodies: vec![json!("x").into()], if_last: Some(2) };
    assert_eq!(user.change(stale).await, Err(Refusal::Changed { revision: 5 }));
    let page = |after, limit| Query::Messages { session: of.clone(), after, limit, bytes: i64::MAX };
    let Ok(QueryAnswer::Messages(two)) = user.ask(page(2, 2)).await else { panic!() };
    assert_eq!(two.iter().map(|one| one.body.to_value()).collect::<Vec<_>>(), ["c", "d"]);
    let Ok(QueryAnswer::Messages(last)) =
        user.ask(Query::LastMessages { session: of.clone(), limit: 2, bytes: i64::MAX }).await
    else {
        panic!()
    };
    assert_eq!(last.iter().map(|one| one.number).collect::<Vec<_>>(), [4, 5]);
    let fork =
        StoreChange::Fork { session: of.clone(), at: Some(3), id: id(), name: Some("fork".to_owned()) };
    let forked = session(user.change(fork).await);
    assert_eq!(user.texts(&forked.id).await, ["a", "b", "c"]);
    let same =
        StoreChange::Fork { session: forked.id.clone(), at: None, id: id(), name: Some("fork".to_owned()) };
    assert_eq!(user.change(same).await, Err(Refusal::NameTaken));
    let rewind = |to| StoreChange::Rewind { session: of.clone(), to };
    assert_eq!(user.change(rewind(2)).await, Ok(ChangeOutcome::Rewound { removed: 3 }));
    assert_eq!(user.change(rewind(2)).await, Ok(ChangeOutcome::Rewound { removed: 0 }));
    assert_eq!(user.change(rewind(3)).await, Err(Refusal::NoMessage { number: 3, messages: 2 }));
    let beyond = StoreChange::Fork { session: of.clone(), at: Some(99), id: id(), name: None };
    assert_eq!(user.change(beyond).await, Err(Refusal::NoMessage { number: 99, messages: 2 }));
    user.append(&of, &["again"]).await.unwrap();
    assert_eq!(user.texts(&of).await, ["a", "b", "again"]);
    assert_eq!(user.texts(&forked.id).await, ["a", "b", "c"]);
}

async fn value_with_outdated_revision_is_not_changed(store: &Throwaway) {
    let user = User::new(&store.db, "ann");
    let of = user.start(None).await.id;
    let set = |value: Option<Value>, if_revision| StoreChange::SetEntry {
        session: of.clone(),
        key: "k".to_owned(),
        value: value.map(JsonText::from),
        if_revision,
    };
    let revision = |done: Result<ChangeOutcome, Refusal>| match done {
        Ok(ChangeOutcome::Entry(Some(entry))) => entry.revision,
        other => panic!("{other:?}"),
    };
    assert_eq!(revision(user.change(set(Some(json!(1)), Some(0))).await), 1);
    assert_eq!(user.change(set(Some(json!(9)), Some(0))).await, Err(Refusal::Changed { revision: 1 }));
    assert_eq!(revision(user.change(set(Some(json!(2)), Some(1))).await), 2);
    assert_eq!(user.change(set(None, None)).await, Ok(ChangeOutcome::Entry(None)));
    assert_eq!(revision(user.change(set(Some(json!(null)), Some(0))).await), 4, "none comes twice");
    let all = Query::Entries { session: of.clone(), key: None, after: None, limit: 10, bytes: i64::MAX };
    assert!(
        matches!(user.ask(all).await, Ok(QueryAnswer::Entries(all)) if all.items.len() == 1 && all.items[0].value == json!(null))
    );
}

fn talking(context: &str, task: Option<&str>) -> AgentConversation {
    AgentConversation {
        agent: "https://agent.example".to_owned(),
        context_id: context.to_owned(),
        task_id: task.map(str::to_owned),
        told: [("result".to_owned(), 7)].into(),
    }
}

async fn held(user: &User, session: &SessionId) -> FencingToken {
    let resource = Resource::Turn { session: session.clone() };
    ticket(user.ask_for(&resource, Busy::Reject, 60_000).await).token.unwrap()
}

/// Commits a turn after which the session stands so with its agent.
async fn talk(user: &User, session: &SessionId, conversation: &AgentConversation) {
    let token = held(user, session).await;
    let (session, bodies, conversation) =
        (session.to_owned(), vec![json!("said").into()], Some(conversation.clone()));
    user.change(StoreChange::CommitTurn { session, token, bodies, conversation }).await.unwrap();
}

/// What is known of the conversation, and no longer after this.
async fn taken(user: &User, session: &SessionId) -> Option<AgentConversation> {
    let token = held(user, session).await;
    let take = StoreChange::TakeConversation { session: session.clone(), token };
    let Ok(ChangeOutcome::Conversation(taken)) = user.change(take).await else { panic!() };
    let resource = Resource::Turn { session: session.clone() };
    user.change(StoreChange::Release { resource, token }).await.unwrap();
    taken
}

async fn conversation_continues_only_without_other_messages(store: &Throwaway) {
    let user = User::new(&store.db, "ann");
    let of = user.start(None).await.id;
    assert_eq!(taken(&user, &of).await, None);
    let first = talking("c1", Some("t1"));
    talk(&user, &of, &first).await;
    assert_eq!(taken(&user, &of).await, Some(first.clone()));
    assert_eq!(taken(&user, &of).await, None, "who took it may have said anything since");
    talk(&user, &of, &first).await;
    let second = talking("c2", None);
    talk(&user, &of, &second).await;
    let fork = StoreChange::Fork { session: of.clone(), at: None, id: id(), name: None };
    let fork = session(user.change(fork).await).id;
    assert_eq!(taken(&user, &fork).await, None);
    assert_eq!(taken(&user, &of).await, Some(second.clone()));
    talk(&user, &of, &second).await;
    user.append(&of, &["by somebody else"]).await.unwrap();
    assert_eq!(taken(&user, &of).await, None);
    talk(&user, &of, &second).await;
    user.change(StoreChange::Rewind { session: of.clone(), to: 2 }).await.unwrap();
    assert_eq!(taken(&user, &of).await, None);
    talk(&user, &of, &second).await;
    let token = held(&user, &of).await;
    user.commit(&of, token, &["by hand".to_owned()]).await.unwrap();
    assert_eq!(taken(&user, &of).await, None);
    let late = StoreChange::TakeConversation { session: of.clone(), token };
    assert_eq!(user.change(late).await, Err(Refusal::Lost { token }));
    // Neither among the values nor among the settings.
    talk(&user, &of, &second).await;
    let entries = Query::Entries { session: of.clone(), key: None, after: None, limit: 9, bytes: i64::MAX };
    assert_eq!(user.ask(entries).await, Ok(QueryAnswer::Entries(ListPage { items: Vec::new(), next: None })));
    let Ok(QueryAnswer::Session(shown)) = user.ask(Query::Session { session: of.into() }).await else {
        panic!()
    };
    assert!(shown.settings.is_empty());
}

async fn context_belongs_to_one_session(store: &Throwaway) {
    let (ann, bob) = (User::new(&store.db, "ann"), User::new(&store.db, "bob"));
    let (hers, another, his) = (ann.start(None).await.id, ann.start(None).await.id, bob.start(None).await.id);
    let same = talking("default", None);
    talk(&ann, &hers, &same).await;
    for (user, session) in [(&ann, &another), (&bob, &his)] {
        talk(user, session, &same).await;
        assert_eq!(taken(user, session).await, None, "the context is another session's");
        assert_eq!(user.texts(session).await, ["said"]);
    }
    assert_eq!(taken(&ann, &hers).await, Some(same.clone()));
    // Also while hers is under way.
    talk(&bob, &his, &same).await;
    assert_eq!(taken(&bob, &his).await, None);
    let elsewhere = AgentConversation { agent: "https://other.example".to_owned(), ..same };
    talk(&bob, &his, &elsewhere).await;
    assert_eq!(taken(&bob, &his).await, Some(elsewhere));
}

async fn same_idempotency_key_acts_once(store: &Throwaway) {
    let user = User::new(&store.db, "ann");
    let of = user.start(None).await.id;
    let say = |text: &str| StoreChange::Append {
        session: of.clone(),
        bodies: vec![json!(text).into()],
        if_last: None,
    };
    let first = user.keyed(Some("k1"), say("hello")).await;
    assert_eq!(user.keyed(Some("k1"), say("hello")).await, first);
    assert_eq!(user.keyed(Some("k1"), say("other")).await, Err(Refusal::KeyReused));
    assert_eq!(user.keyed(Some("k2"), say("hello")).await, Ok(ChangeOutcome::Appended { first: 2, last: 2 }));
    let made =
        |session: &SessionId, key: &str| Query::Answered { session: session.clone(), key: key.to_owned() };
    let before = Box::new(StoredOutcome { turn: None, done: ChangeOutcome::Appended { first: 2, last: 2 } });
    assert_eq!(user.ask(made(&of, "k2")).await, Ok(QueryAnswer::Answered(Some(before))));
    assert_eq!(user.ask(made(&of, "k9")).await, Ok(QueryAnswer::Answered(None)));
    let other = User::new(&store.db, "carl");
    assert_eq!(other.ask(made(&of, "k2")).await, Err(Refusal::NoSession));
    let own = other.start(None).await.id;
    assert_eq!(other.ask(made(&own, "k2")).await, Ok(QueryAnswer::Answered(None)));
    let start = || starting(Some("named"), 60_000);
    let started = user.keyed(Some("k3"), start()).await;
    assert_eq!(user.keyed(Some("k3"), start()).await, started, "a repeated key returns the same session");
    // A refusal is none of what a key remembers.
    assert_eq!(user.keyed(Some("k4"), start()).await, Err(Refusal::NameTaken));
    let bob = User::new(&store.db, "bob");
    assert!(
        matches!(bob.keyed(Some("k3"), start()).await, Ok(ChangeOutcome::Session(_))),
        "a key is the user's"
    );
    assert_eq!(user.texts(&of).await, ["hello", "hello"]);
}

async fn every_change_is_recognized_by_its_key(store: &Throwaway) {
    let user = User::new(&store.db, "ann");
    let of = user.start(None).await;
    let (session, turn) = (|| of.id.clone(), turn(&of));
    let set = |value: Option<Value>| {
        let value = value.map(JsonText::from);
        StoreChange::SetEntry { session: session(), key: "n".to_owned(), value, if_revision: None }
    };
    let ask = || asking(&turn, CLAIM, Busy::Enqueue, 60_000);
    let twice = async |key: &str, change: StoreChange| {
        let first = user.keyed(Some(key), change.clone()).await;
        assert!(first.is_ok(), "{change:?}: {first:?}");
        assert_eq!(user.keyed(Some(key), change.clone()).await, first, "{change:?}");
        first
    };
    twice("start", starting(Some("other"), 60_000)).await.unwrap();
    let labels = Some([("a".to_owned(), "b".to_owned())].into());
    let (if_revision, settings) = (None, [("output".to_owned(), json!("json"))].into());
    twice("edit", StoreChange::EditSession { session: session(), if_revision, name: None, labels, settings })
        .await
        .unwrap();
    let bodies = || vec![json!("one").into(), json!({ "two": null }).into()];
    twice("append", StoreChange::Append { session: session(), bodies: bodies(), if_last: None })
        .await
        .unwrap();
    twice("set", set(Some(json!([1, "a"])))).await.unwrap();
    twice("remove", set(None)).await.unwrap();
    let held = ticket(twice("ask", ask()).await);
    let (resource, token, ttl_ms) = (turn.clone(), held.token.unwrap(), 90_000);
    let place = held.place;
    let claim = CLAIM.to_owned();
    let wait = StoreChange::Wait {
        resource: resource.clone(),
        place,
        claim: claim.clone(),
        ttl_ms,
        session: None,
        history: 1,
    };
    twice("wait", wait).await.unwrap();
    twice("renew", StoreChange::Renew { resource: resource.clone(), token, ttl_ms }).await.unwrap();
    let conversation = Some(talking("c", Some("t")));
    let commit = StoreChange::CommitTurn { session: session(), token, bodies: bodies(), conversation };
    twice("commit", commit).await.unwrap();
    let made = Query::Answered { session: session(), key: "commit".to_owned() };
    let Ok(QueryAnswer::Answered(Some(made))) = user.ask(made).await else { panic!() };
    assert_eq!(made.turn, Some(CommittedTurn { session: session(), bodies: bodies() }));
    let held = ticket(twice("ask again", ask()).await);
    let take = || StoreChange::TakeConversation { session: session(), token: held.token.unwrap() };
    let taken = twice("take", take()).await;
    assert_eq!(taken, Ok(ChangeOutcome::Conversation(Some(talking("c", Some("t"))))));
    assert_eq!(twice("take again", take()).await, Ok(ChangeOutcome::Conversation(None)));
    let place = held.place;
    let leave = StoreChange::Leave { resource: resource.clone(), place: Some(place), claim, key: None };
    twice("leave", leave).await.unwrap();
    let token = ticket(twice("and again", ask()).await).token.unwrap();
    twice("release", StoreChange::Release { resource, token }).await.unwrap();
    let id = id();
    twice("fork", StoreChange::Fork { session: session(), at: None, id, name: None }).await.unwrap();
    twice("rewind", StoreChange::Rewind { session: session(), to: 1 }).await.unwrap();
    twice("end", StoreChange::EndSession { session: session(), reason: "done".to_owned() }).await.unwrap();
}

async fn events_can_be_followed_from_any_number(store: &Throwaway) {
    let user = User::new(&store.db, "ann");
    let of = user.start(None).await.id;
    user.append(&of, &["a"]).await.unwrap();
    user.append(&of, &["b"]).await.unwrap();
    let events = |after| Query::Events { session: of.clone(), after, limit: 100 };
    let Ok(QueryAnswer::Events(all)) = user.ask(events(0)).await else { panic!() };
    let kinds: Vec<&str> = all.events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["session.started", "messages.appended", "messages.appended"]);
    let Ok(QueryAnswer::Events(rest)) = user.ask(events(2)).await else { panic!() };
    assert_eq!((&rest.events[..], rest.last), (&all.events[2..], 3));
}

async fn users_and_tokens_are_added_disabled_and_revoked(store: &Throwaway) {
    let db = &store.db;
    let user = |name: &str| -> UserName { name.parse().unwrap() };
    let administer = async |change| db.administer(change).await.unwrap();
    assert_eq!(administer(AccountChange::AddUser(user("bob"))).await, Ok(()));
    assert_eq!(administer(AccountChange::AddUser(user("ann"))).await, Ok(()));
    assert_eq!(
        administer(AccountChange::AddUser(user("ann"))).await,
        Err(Refusal::AccountExists),
        "the user already exists"
    );
    let names: Vec<UserName> = db.accounts().await.unwrap().into_iter().map(|account| account.user).collect();
    assert_eq!(names, [user("ann"), user("bob")]);
    let ids: [TokenId; 5] = std::array::from_fn(|_| id().as_str().parse().unwrap());
    let token = |number: usize, of: &str, expires_ms| Token {
        id: ids[number].clone(),
        user: user(of),
        scopes: vec![TokenScope::Read, TokenScope::Write],
        made_ms: 0,
        expires_ms,
        revoked_ms: None,
    };
    let hash = |number: usize| SecretHash::of(&format!("token {number}"));
    let add = |number: usize, of: &str, expires_ms| {
        AccountChange::AddToken(token(number, of, expires_ms), hash(number))
    };
    assert_eq!(administer(add(0, "ann", None)).await, Ok(()));
    assert_eq!(administer(add(1, "ann", Some(1))).await, Ok(()), "the token has already expired");
    assert_eq!(administer(add(2, "bob", Some(i64::MAX))).await, Ok(()));
    assert_eq!(administer(add(3, "nobody", None)).await, Err(Refusal::NoAccount));
    let of = async |number: usize| db.token(&hash(number)).await.unwrap().map(|token| token.user.to_string());
    assert_eq!(of(0).await.as_deref(), Some("ann"));
    assert_eq!(of(1).await, None);
    assert_eq!(of(2).await.as_deref(), Some("bob"));
    assert_eq!(of(3).await, None);
    let tokens = db.tokens(&user("ann")).await.unwrap();
    assert_eq!(tokens.iter().map(|token| token.id.clone()).collect::<Vec<_>>(), ids[..2]);
    assert!(tokens[0].made_ms > 0 && tokens[0].scopes == [TokenScope::Read, TokenScope::Write]);
    assert_eq!(administer(AccountChange::Disable(user("bob"), true)).await, Ok(()));
    assert_eq!(of(2).await, None);
    assert_eq!(administer(AccountChange::Disable(user("bob"), false)).await, Ok(()));
    assert_eq!(of(2).await.as_deref(), Some("bob"));
    assert_eq!(administer(AccountChange::Revoke(ids[0].clone())).await, Ok(()));
    assert_eq!(of(0).await, None);
    assert_eq!(administer(AccountChange::Revoke(ids[4].clone())).await, Err(Refusal::NoAccount));
    db.ready().await.unwrap();
}

async fn history(user: &User, session: Option<&str>, before: Option<&str>, limit: i64) -> Vec<HistoryEntry> {
    let (session, before) = (session.map(str::to_owned), before.map(str::to_owned));
    let query = Query::History { session, since_ms: None, reads: false, before, limit };
    match user.ask(query).await {
        Ok(QueryAnswer::History(page)) => page.items,
        other => panic!("{other:?}"),
    }
}

async fn history_lists_changes_newest_first(store: &Throwaway) {
    // It makes every kind of change.
    every_change_is_recognized_by_its_key(store).await;
    let (ann, bob) = (User::new(&store.db, "ann"), User::new(&store.db, "bob"));
    let all = history(&ann, None, None, 1000).await;
    let actions: BTreeSet<&str> = all.iter().map(|access| access.action.as_str()).collect();
    let every = "append ask commit_turn edit_session end_session fork leave release renew rewind set_entry start_session wait";
    assert_eq!(actions.into_iter().collect::<Vec<_>>().join(" "), every);
    assert!(all.windows(2).all(|pair| pair[0].id > pair[1].id && pair[0].at_ms >= pair[1].at_ms));
    let subjects: BTreeSet<_> =
        all.iter().map(|access| (access.action.as_str(), access.subject.as_deref())).collect();
    let named = subjects.into_iter().filter(|(_, subject)| subject.is_some());
    assert_eq!(named.collect::<Vec<_>>(), [("set_entry", Some("n"))], "a turn is that of its session");
    let cat = User::new(&store.db, "cat");
    let held = ticket(cat.ask_for(&lock("deploy"), Busy::Enqueue, 60_000).await);
    cat.change(StoreChange::Release { resource: lock("deploy"), token: held.token.unwrap() }).await.unwrap();
    cat.wait_for(&lock("other"), Position::new(1), 60_000).await.unwrap_err();
    let locks = history(&cat, None, None, 10).await;
    let locks: Vec<_> =
        locks.iter().map(|access| (access.action.as_str(), access.subject.as_deref())).collect();
    assert_eq!(locks, [("wait", Some("other")), ("release", Some("deploy")), ("ask", Some("deploy"))]);
    let bobs = bob.start(None).await;
    assert_eq!(
        bob.append(&"0199aaaa-0000-7000-8000-00000000dead".parse().unwrap(), &["x"]).await,
        Err(Refusal::NoSession)
    );
    let read = AuditedRead {
        user: bob.id.clone(),
        access: Access { id: id().into(), token: None },
        action: "messages".to_owned(),
        session: Some(bobs.id.to_string()),
        outcome: "done".to_owned(),
        at_ms: 1,
    };
    store.db.record(vec![read]).await.unwrap();
    let theirs = history(&bob, None, None, 10).await;
    let told: Vec<_> =
        theirs.iter().map(|access| (access.action.as_str(), access.outcome.as_str())).collect();
    assert_eq!(
        told,
        [("append", "no_session"), ("start_session", "done")],
        "reading is not in it, nor is ann"
    );
    assert_eq!(theirs[1].session.as_deref(), Some(bobs.id.as_str()));
    assert_eq!(history(&bob, Some(bobs.id.as_str()), None, 10).await, theirs[1..]);
    assert_eq!(history(&bob, None, Some(&theirs[0].id), 10).await, theirs[1..]);
    assert_eq!(history(&bob, None, None, 1).await, theirs[..1]);
    assert_eq!(history(&ann, Some(bobs.id.as_str()), None, 10).await, []);
    let since = |since_ms| Query::History { session: None, since_ms, reads: true, before: None, limit: 10 };
    let later = Some(theirs[1].at_ms);
    assert!(matches!(bob.ask(since(later)).await, Ok(QueryAnswer::History(some)) if some.items == theirs));
    assert!(matches!(bob.ask(since(None)).await, Ok(QueryAnswer::History(all)) if all.items.len() == 3));
}

async fn administrative_changes_are_audited(store: &Throwaway) {
    let db = &store.db;
    let ann = users::add(db, "ann").await.unwrap();
    let made = users::create_token(db, &ann, &[TokenScope::Read], None).await.unwrap();
    users::revoke(db, made.token.id.as_str()).await.unwrap();
    users::disable(db, &ann, true).await.unwrap();
    users::disable(db, &ann, false).await.unwrap();
    users::add(db, "bob").await.unwrap();
    let login = login::begin(db, "laptop", None, 10).await.unwrap().unwrap();
    let decision =
        LoginDecision::Approve { user: ann.clone(), scopes: vec![TokenScope::Read], expires_ms: None };
    login::decide(db, &login.user_code, decision).await.unwrap();
    let Ok(login::LoginOutcome::Token(collected, _)) = login::collect(db, login.device_code.expose()).await
    else {
        panic!()
    };
    assert!(users::add(db, "ann").await.is_err(), "a refused user was not created");
    let all = users::audit(db, None, None, 100).await.unwrap();
    let told: Vec<_> = all
        .iter()
        .map(|(user, access)| (user.as_str(), access.action.as_str(), access.token_id.as_deref()))
        .collect();
    let (first, second) = (Some(made.token.id.as_str()), Some(collected.id.as_str()));
    let expected = [
        ("ann", "token.create", second),
        ("ann", "login.approve", None),
        ("bob", "user.add", None),
        ("ann", "user.enable", None),
        ("ann", "user.disable", None),
        ("ann", "token.revoke", first),
        ("ann", "token.create", first),
        ("ann", "user.add", None),
    ];
    assert_eq!(told, expected);
    let anns = users::audit(db, Some(&ann), Some(&all[1].1.id), 2).await.unwrap();
    assert_eq!(anns, [all[3].clone(), all[4].clone()]);
    let nobody = users::audit(db, Some(&"nobody".parse().unwrap()), None, 2).await;
    assert!(matches!(nobody, Err(users::UserError::NoUser(_))), "{nobody:?}");
    assert_eq!(history(&User::new(db, "bob"), None, None, 10).await.len(), 1);
}

async fn reads_of_several_users_are_recorded(store: &Throwaway) {
    let token: TokenId = id().as_str().parse().unwrap();
    let read = |user: &str| AuditedRead {
        user: user.parse().unwrap(),
        access: Access { id: id().into(), token: Some(token.clone()) },
        action: "messages".to_owned(),
        session: None,
        outcome: "done".to_owned(),
        at_ms: 1,
    };
    store.db.record(vec![read("ann"), read("bob"), read("ann")]).await.unwrap();
    store.db.record(Vec::new()).await.unwrap();
}

async fn stored_text_is_unchanged(store: &Throwaway) {
    let user = User::new(&store.db, "o-ann@example.org");
    let strange = r#"{"nul":"a\u0000b","big":123456789012345678901234567890,"b":1,"a":1.50,"a":1,"text":"🦪 ' \\ %s $1"}"#;
    let strange = JsonText::parse(strange).unwrap();
    let of = user.start(Some("it's; {mine} $1")).await.id;
    let append = StoreChange::Append {
        session: of.clone(),
        bodies: vec![strange.clone(), json!(null).into()],
        if_last: None,
    };
    user.change(append).await.unwrap();
    let Ok(QueryAnswer::Messages(all)) =
        user.ask(Query::LastMessages { session: of.clone(), limit: 9, bytes: i64::MAX }).await
    else {
        panic!()
    };
    assert_eq!(all[0].body, strange);
    assert_eq!(all[1].body, json!(null));
    let named = SessionRef::Name("it's; {mine} $1".to_owned());
    let Ok(QueryAnswer::Session(found)) = user.ask(Query::Session { session: named }).await else { panic!() };
    assert_eq!(found.id, of);
}

async fn newer_schema_is_refused(store: &Throwaway) {
    store.reopened().await.unwrap();
    store.set_schema_version(9999);
    let Err(error) = store.reopened().await else { panic!("a newer schema was opened") };
    assert!(error.to_string().contains("schema version 9999"), "{error}");
}
