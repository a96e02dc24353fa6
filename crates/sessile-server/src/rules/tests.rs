//! Rules, tested without a database.

use std::collections::BTreeMap;

use serde_json::json;
use sessile_wire::lock_mode::LockMode;

use super::write::EventKind;
use super::{
    ChangeSnapshot, LoadedSession, QueuePlace, QueueSnapshot, StoredAnswer, StoredEntry, Write, decide,
};
use crate::change::{Busy, ChangeOutcome, KEPT_MS, NOWHERE, Refusal, StoreChange};
use crate::ids::{FencingToken, Position, SessionId};
use crate::json_text::JsonText;
use crate::model::{AgentConversation, Resource, SessionRecord, Ticket};
use crate::request::{Access, Request};
use crate::rules::audit::AuditEntry;

const NOW: i64 = 1_000_000;
const HERE: &str = "this-process";

fn id(number: u8) -> SessionId {
    format!("0199aaaa-0000-7000-8000-{number:012x}").parse().unwrap()
}

const fn at(position: i64) -> Position {
    Position::new(position)
}

const fn token(number: i64) -> FencingToken {
    FencingToken::new(number)
}

fn request(change: StoreChange) -> Request {
    Request { user: "ann".parse().unwrap(), change, key: None, access: Access::default() }
}

fn session(messages: i64) -> LoadedSession {
    let mut session = SessionRecord {
        id: id(1),
        name: Some("web".to_owned()),
        context: None,
        labels: BTreeMap::new(),
        settings: BTreeMap::new(),
        revision: 3,
        started_ms: NOW - 500,
        used_ms: NOW - 100,
        expires_ms: 0,
        idle_ms: 1000,
        max_ms: 10_000,
        ended_ms: None,
        end_reason: None,
        messages,
    };
    session.set_expiry();
    LoadedSession::new(session, 7)
}

fn expired() -> LoadedSession {
    let mut record = session(0);
    record.session.id = id(2);
    record.session.used_ms = NOW - 2000;
    record.session.set_expiry();
    record
}

fn place(position: i64, held: Option<i64>, expires_ms: i64) -> QueuePlace {
    let (place, token) = (at(position), held.map(token));
    let holder = format!("h{position}");
    let mode = LockMode::Exclusive;
    let ticket = Ticket { place, token, holder, mode, session: None, asked_ms: 0, expires_ms };
    QueuePlace { ticket, process: HERE.to_owned(), claim: format!("c{position}"), is_present: true }
}

fn queue(places: Vec<QueuePlace>) -> QueueSnapshot {
    QueueSnapshot { next: 50, places }
}

fn snapshot() -> ChangeSnapshot {
    ChangeSnapshot { now: NOW, session: Some(session(4)), ..ChangeSnapshot::default() }
}

fn lock() -> Resource {
    Resource::Lock { name: "deploy".to_owned() }
}

fn turn() -> Resource {
    Resource::Turn { session: id(1) }
}

fn ask(resource: Resource, busy: Busy) -> StoreChange {
    ask_in(resource, busy, LockMode::Exclusive)
}

fn ask_in(resource: Resource, busy: Busy, mode: LockMode) -> StoreChange {
    let (holder, claim) = ("me".to_owned(), "mine".to_owned());
    StoreChange::Ask {
        resource,
        holder,
        claim,
        busy,
        mode,
        ttl_ms: 60,
        wait_ms: 30,
        session: None,
        history: 2,
    }
}

fn append(if_last: Option<i64>) -> StoreChange {
    StoreChange::Append { session: id(1), bodies: vec![json!({"a": 1}).into(), json!(2).into()], if_last }
}

/// Outcome of a change, its writes as text, and the position that it lets come up.
fn decided(
    change: StoreChange,
    snapshot: ChangeSnapshot,
) -> (Result<ChangeOutcome, Refusal>, Vec<String>, Option<Position>) {
    let request = request(change);
    let decision = decide(&request, HERE, snapshot).unwrap();
    let next = decision.next_to_wake();
    let (outcome, writes) = decision.into_parts().unwrap();
    (outcome, writes.iter().map(|write| format!("{write:?}")).collect(), next)
}

fn refusal(change: StoreChange, snapshot: ChangeSnapshot) -> Refusal {
    let (outcome, writes, next) = decided(change, snapshot);
    assert_eq!((writes.len(), next), (0, None), "a refused change wrote {writes:?}");
    outcome.unwrap_err()
}

fn ticket(outcome: Result<ChangeOutcome, Refusal>) -> Ticket {
    match outcome {
        Ok(ChangeOutcome::Ticket { ticket, .. }) => ticket,
        other => panic!("{other:?}"),
    }
}

fn names(writes: &[String]) -> Vec<&str> {
    writes.iter().map(|write| write.split([' ', '(']).next().unwrap()).collect()
}

#[test]
fn append_inserts_messages_after_the_last_one() {
    let (outcome, writes, _) = decided(append(Some(4)), snapshot());
    assert_eq!(outcome, Ok(ChangeOutcome::Appended { first: 5, last: 6 }));
    assert_eq!(names(&writes), ["UpdateCounters", "DeleteConversation", "InsertMessages", "InsertEvent"]);
    assert!(writes[0].contains("next_event: 8") && writes[0].contains("messages: 6"), "{writes:?}");
    assert!(writes[0].contains(&format!("used_ms: {NOW}")), "{writes:?}");
}

#[test]
fn append_with_an_outdated_last_number_is_refused() {
    assert_eq!(refusal(append(Some(3)), snapshot()), Refusal::Changed { revision: 4 });
}

#[test]
fn append_during_a_turn_is_refused_until_the_lease_expires() {
    let held =
        |expires_ms| ChangeSnapshot { queue: queue(vec![place(1, Some(2), expires_ms)]), ..snapshot() };
    let expected = Refusal::Held { holder: "h1".to_owned(), expires_ms: NOW + 1 };
    assert_eq!(refusal(append(None), held(NOW + 1)), expected);
    assert!(decided(append(None), held(NOW)).0.is_ok());
}

#[test]
fn change_of_a_missing_or_expired_session_is_refused() {
    let missing = ChangeSnapshot { session: None, ..snapshot() };
    assert_eq!(refusal(append(None), missing), Refusal::NoSession);
    let over = ChangeSnapshot { session: Some(expired()), ..snapshot() };
    assert_eq!(refusal(append(None), over), Refusal::SessionOver);
}

#[test]
fn use_of_a_session_never_moves_its_time_back() {
    let mut record = session(0);
    record.session.used_ms = NOW + 5;
    let (_, writes, _) = decided(append(None), ChangeSnapshot { session: Some(record), ..snapshot() });
    assert!(writes[0].contains(&format!("used_ms: {}", NOW + 5)), "{writes:?}");
}

#[test]
fn rewind_beyond_the_last_message_is_refused() {
    let rewind = |to| StoreChange::Rewind { session: id(1), to };
    assert_eq!(refusal(rewind(5), snapshot()), Refusal::NoMessage { number: 5, messages: 4 });
    let (outcome, writes, _) = decided(rewind(1), snapshot());
    assert_eq!(outcome, Ok(ChangeOutcome::Rewound { removed: 3 }));
    assert!(writes[2].contains("after: 1, last: 4"), "{writes:?}");
}

#[test]
fn name_of_an_expired_session_is_taken_from_it_first() {
    let start = StoreChange::StartSession {
        id: id(3),
        name: Some("web".to_owned()),
        context: None,
        labels: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
        settings: BTreeMap::from([("k".to_owned(), json!(1))]),
        idle_ms: 10,
        max_ms: 20,
    };
    let named = ChangeSnapshot { session: None, named: Some(expired()), ..snapshot() };
    let (outcome, writes, _) = decided(start.clone(), named);
    let Ok(ChangeOutcome::Session(started)) = outcome else { panic!("{outcome:?}") };
    assert_eq!((started.expires_ms, started.revision), (NOW + 10, 1));
    let expected = [
        "UpdateSession",
        "InsertSession",
        "DeleteTurnPlaces",
        "InsertEvent",
        "InsertLabels",
        "PutSetting",
        "InsertEvent",
    ];
    assert_eq!(names(&writes), expected);
    let taken = ChangeSnapshot { session: None, named: Some(session(0)), ..snapshot() };
    assert_eq!(refusal(start, taken), Refusal::NameTaken);
}

#[test]
fn edit_replaces_labels_only_if_they_differ() {
    let edit = |labels| StoreChange::EditSession {
        session: id(1),
        if_revision: Some(3),
        name: None,
        labels: Some(labels),
        settings: BTreeMap::from([("k".to_owned(), json!(null))]),
    };
    let (outcome, writes, _) = decided(edit(BTreeMap::new()), snapshot());
    assert!(matches!(outcome, Ok(ChangeOutcome::Session(SessionRecord { revision: 4, .. }))), "{outcome:?}");
    assert_eq!(names(&writes), ["UpdateSession", "DeleteSetting", "InsertEvent"]);
    let labels = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
    let (_, writes, _) = decided(edit(labels), snapshot());
    assert_eq!(names(&writes)[1..3], ["DeleteLabels", "InsertLabels"]);
}

#[test]
fn session_that_was_ended_stays_as_it_is() {
    let mut ended = session(0);
    ended.session.ended_ms = Some(5);
    let end = StoreChange::EndSession { session: id(1), reason: "done".to_owned() };
    let (outcome, writes, _) = decided(end, ChangeSnapshot { session: Some(ended), ..snapshot() });
    assert!(
        matches!(outcome, Ok(ChangeOutcome::Session(SessionRecord { ended_ms: Some(5), .. }))),
        "{outcome:?}"
    );
    assert!(writes.is_empty(), "{writes:?}");
}

#[test]
fn fork_copies_messages_and_leaves_its_source_alone() {
    let fork = StoreChange::Fork { session: id(1), at: Some(2), id: id(4), name: None };
    let (outcome, writes, _) = decided(fork, snapshot());
    assert!(
        matches!(outcome, Ok(ChangeOutcome::Session(SessionRecord { messages: 2, idle_ms: 1000, .. }))),
        "{outcome:?}"
    );
    assert_eq!(names(&writes), ["InsertSession", "CopyMessages", "InsertEvent"]);
}

#[test]
fn fork_with_the_name_of_its_live_source_is_refused() {
    let name = Some("web".to_owned());
    let fork = StoreChange::Fork { session: id(1), at: None, id: id(4), name };
    assert_eq!(refusal(fork.clone(), snapshot()), Refusal::NameTaken);
    let (outcome, writes, _) = decided(fork, ChangeSnapshot { session: Some(expired()), ..snapshot() });
    assert!(matches!(outcome, Ok(ChangeOutcome::Session(_))), "{outcome:?}");
    assert_eq!(names(&writes)[..2], ["UpdateSession", "InsertSession"]);
}

#[test]
fn removed_value_keeps_its_revision() {
    let set = |value: Option<JsonText>, if_revision| StoreChange::SetEntry {
        session: id(1),
        key: "k".to_owned(),
        value,
        if_revision,
    };
    let stored =
        |kind, revision| ChangeSnapshot { entry: Some(StoredEntry::new(kind, revision)), ..snapshot() };
    let (_, writes, _) = decided(set(None, Some(8)), stored("state", 8));
    assert!(writes[1].contains("value: None, revision: 9"), "{writes:?}");
    let (outcome, _, _) = decided(set(Some(json!(1).into()), Some(0)), stored("state-gone", 9));
    let Ok(ChangeOutcome::Entry(Some(entry))) = outcome else { panic!("{outcome:?}") };
    assert_eq!(entry.revision, 10);
    let outdated = refusal(set(Some(json!(1).into()), Some(7)), stored("state", 8));
    assert_eq!(outdated, Refusal::Changed { revision: 8 });
    let (outcome, writes, _) = decided(set(None, None), stored("state-gone", 9));
    assert_eq!((outcome, names(&writes)), (Ok(ChangeOutcome::Entry(None)), vec!["UpdateCounters"]));
}

#[test]
fn empty_queue_gives_the_place_at_once() {
    let (outcome, writes, _) =
        decided(ask(lock(), Busy::Enqueue), ChangeSnapshot { now: NOW, ..ChangeSnapshot::default() });
    let ticket = ticket(outcome);
    assert_eq!((ticket.place, ticket.token, ticket.expires_ms), (at(1), Some(token(2)), NOW + 60));
    assert_eq!(names(&writes), ["SetNextNumber", "PutPlace"]);
}

#[test]
fn held_turn_comes_with_its_history() {
    let change = request(ask(turn(), Busy::Enqueue));
    let decision = decide(&change, HERE, snapshot()).unwrap();
    let history = decision.history().unwrap();
    assert_eq!((&history.session, history.last, history.limit), (&id(1), 4, 2));
    let (outcome, writes) = decision.into_parts().unwrap();
    assert!(matches!(outcome, Ok(ChangeOutcome::Ticket { history: Some(_), .. })), "{outcome:?}");
    let began = |write: &&Write<'_>| matches!(write, Write::InsertEvent { kind: EventKind::TurnBegan, .. });
    assert_eq!(writes.iter().filter(began).count(), 1);
}

#[test]
fn waiter_behind_a_holder_keeps_its_place_after_its_wait() {
    let held = ChangeSnapshot { queue: queue(vec![place(1, Some(2), NOW + 9)]), ..snapshot() };
    let (outcome, writes, _) = decided(ask(lock(), Busy::Enqueue), held);
    let ticket = ticket(outcome);
    assert_eq!((ticket.place, ticket.token, ticket.expires_ms), (at(50), None, NOW + 30 + KEPT_MS));
    assert_eq!(names(&writes), ["SetNextNumber", "Heartbeat", "PutPlace"]);
}

#[test]
fn reject_is_refused_while_another_holds_or_waits() {
    let with = |places| ChangeSnapshot { queue: queue(places), ..snapshot() };
    for places in [vec![place(1, Some(2), NOW + 9)], vec![place(1, None, NOW + 9)]] {
        assert!(matches!(refusal(ask(lock(), Busy::Reject), with(places)), Refusal::Held { .. }));
    }
    let absent = QueuePlace { is_present: false, ..place(1, None, NOW + 9) };
    assert!(ticket(decided(ask(lock(), Busy::Reject), with(vec![absent])).0).token.is_some());
}

#[test]
fn interrupt_removes_the_holder_and_goes_before_waiters() {
    let places = vec![place(1, Some(2), NOW + 9), place(3, None, NOW + 9)];
    let (outcome, writes, _) =
        decided(ask(lock(), Busy::Interrupt), ChangeSnapshot { queue: queue(places), ..snapshot() });
    assert_eq!(ticket(outcome).token, Some(token(51)));
    assert!(writes[0].contains("positions: [Position(1)]"), "{writes:?}");
}

#[test]
fn waiter_acquires_the_place_only_when_it_is_next() {
    let wait = |position: i64| StoreChange::Wait {
        resource: lock(),
        place: at(position),
        claim: format!("c{position}"),
        ttl_ms: 60,
        session: None,
        history: 0,
    };
    let with = |places| ChangeSnapshot { queue: queue(places), ..snapshot() };
    let waiting = || vec![place(3, None, NOW + 9), place(4, None, NOW + 9)];
    assert_eq!(ticket(decided(wait(3), with(waiting())).0).token, Some(token(50)));
    assert_eq!(ticket(decided(wait(4), with(waiting())).0).token, None);
    let absent = vec![QueuePlace { is_present: false, ..place(3, None, NOW + 9) }, place(4, None, NOW + 9)];
    assert_eq!(ticket(decided(wait(4), with(absent)).0).token, Some(token(50)));
    let mut held = waiting();
    held.push(place(1, Some(2), NOW + 9));
    assert_eq!(ticket(decided(wait(3), with(held)).0).token, None);
    assert_eq!(refusal(wait(9), with(waiting())), Refusal::PlaceLost { place: Some(at(9)) });
}

#[test]
fn expired_places_are_deleted_by_the_next_change() {
    let places = vec![place(1, Some(2), NOW), place(3, None, NOW - 1), place(4, None, NOW + 1)];
    let (outcome, writes, _) =
        decided(ask(lock(), Busy::Enqueue), ChangeSnapshot { queue: queue(places), ..snapshot() });
    assert_eq!(ticket(outcome).token, None);
    assert!(writes[0].contains("positions: [Position(1), Position(3)]"), "{writes:?}");
}

#[test]
fn release_wakes_the_first_waiter_whose_process_is_alive() {
    let absent = QueuePlace { is_present: false, ..place(3, None, NOW + 9) };
    let places = || vec![place(1, Some(2), NOW + 9), absent.clone(), place(4, None, NOW + 9)];
    let with = || ChangeSnapshot { queue: queue(places()), ..snapshot() };
    let (outcome, writes, next) = decided(StoreChange::Release { resource: lock(), token: token(2) }, with());
    assert_eq!((outcome, names(&writes), next), (Ok(ChangeOutcome::Left), vec!["DeletePlaces"], Some(at(4))));
    let other = StoreChange::Release { resource: lock(), token: token(1) };
    assert_eq!(refusal(other, with()), Refusal::Lost { token: token(1) });
}

#[test]
fn waiter_that_steps_aside_is_skipped_and_kept() {
    let places = vec![place(3, None, NOW + 9), place(4, None, NOW + 9)];
    let aside = StoreChange::StepAside { resource: lock(), claim: "c3".to_owned() };
    let (outcome, writes, next) = decided(aside, ChangeSnapshot { queue: queue(places), ..snapshot() });
    assert_eq!((outcome, names(&writes), next), (Ok(ChangeOutcome::Left), vec!["PutPlace"], Some(at(4))));
    assert!(writes[0].contains(&format!("process: {NOWHERE:?}")), "{writes:?}");
}

#[test]
fn place_is_left_only_with_its_claim() {
    let leave = |claim: &str| StoreChange::Leave {
        resource: lock(),
        place: Some(at(3)),
        claim: claim.to_owned(),
        key: Some("key".to_owned()),
    };
    let with = || ChangeSnapshot { queue: queue(vec![place(3, None, NOW + 9)]), ..snapshot() };
    assert_eq!(refusal(leave("other"), with()), Refusal::PlaceLost { place: Some(at(3)) });
    assert_eq!(names(&decided(leave("c3"), with()).1), ["DeleteAnswer", "DeletePlaces"]);
}

#[test]
fn commit_appends_and_releases_or_does_nothing() {
    let conversation = AgentConversation {
        agent: "https://a.example".to_owned(),
        context_id: "c".to_owned(),
        task_id: None,
        told: BTreeMap::new(),
    };
    let commit = |token| StoreChange::CommitTurn {
        session: id(1),
        token,
        bodies: vec![json!("hi").into()],
        conversation: Some(conversation.clone()),
    };
    let with = || ChangeSnapshot { queue: queue(vec![place(1, Some(2), NOW + 9)]), ..snapshot() };
    assert_eq!(refusal(commit(token(3)), with()), Refusal::Lost { token: token(3) });
    let (outcome, writes, _) = decided(commit(token(2)), with());
    assert_eq!(outcome, Ok(ChangeOutcome::Appended { first: 5, last: 5 }));
    let expected = [
        "UpdateCounters",
        "DeleteConversation",
        "InsertMessages",
        "InsertEvent",
        "InsertConversation",
        "DeletePlaces",
    ];
    assert_eq!(names(&writes), expected);
}

#[test]
fn request_with_a_known_key_has_the_stored_outcome() {
    let stored = |change: &StoreChange, done: &ChangeOutcome| StoredAnswer {
        change: super::idempotency::encode(change).unwrap(),
        done: serde_json::to_string(done).unwrap(),
    };
    let keyed = |change| Request { key: Some("k".to_owned()), ..request(change) };
    let appended = ChangeOutcome::Appended { first: 1, last: 2 };

    let new = keyed(append(None));
    let (_, writes) = decide(&new, HERE, snapshot()).unwrap().into_parts().unwrap();
    assert!(matches!(writes.last(), Some(Write::InsertAnswer { key: "k", .. })), "{writes:?}");

    let known =
        ChangeSnapshot { answered: Some(stored(&append(None), &appended)), ..ChangeSnapshot::default() };
    let (outcome, writes) = decide(&new, HERE, known).unwrap().into_parts().unwrap();
    assert_eq!((outcome, writes.len()), (Ok(appended.clone()), 0));

    let other =
        ChangeSnapshot { answered: Some(stored(&append(Some(1)), &appended)), ..ChangeSnapshot::default() };
    let (outcome, writes) = decide(&new, HERE, other).unwrap().into_parts().unwrap();
    assert_eq!((outcome, writes.len()), (Err(Refusal::KeyReused), 0));
}

#[test]
fn request_for_a_place_that_is_sent_again_takes_its_place_over() {
    let asked = request(ask(lock(), Busy::Enqueue));
    let waiting = QueuePlace { is_present: false, ..place(3, None, NOW + 9) };
    let done = ChangeOutcome::Ticket { ticket: waiting.ticket.clone(), history: None };
    let answered = StoredAnswer {
        change: super::idempotency::encode(&ask(lock(), Busy::Enqueue)).unwrap(),
        done: serde_json::to_string(&done).unwrap(),
    };
    let held = place(1, Some(2), NOW + 9);
    let snapshot = ChangeSnapshot {
        answered: Some(answered),
        queue: queue(vec![held, waiting]),
        ..ChangeSnapshot::default()
    };
    let snapshot = ChangeSnapshot { now: NOW, ..snapshot };
    let asked = Request { key: Some("k".to_owned()), ..asked };
    let (outcome, writes) = decide(&asked, HERE, snapshot).unwrap().into_parts().unwrap();
    let ticket = ticket(outcome);
    assert_eq!((ticket.place, ticket.expires_ms), (at(3), NOW + 30 + KEPT_MS));
    let [Write::Heartbeat, Write::PutPlace { place, .. }] = writes.as_slice() else { panic!("{writes:?}") };
    assert_eq!((place.claim.as_str(), place.process.as_str()), ("mine", HERE));
}

#[test]
fn names_of_changes_are_their_serialized_tags() {
    let changes = [
        append(None),
        ask(turn(), Busy::Enqueue),
        StoreChange::Release { resource: lock(), token: token(1) },
        StoreChange::StepAside { resource: lock(), claim: String::new() },
        StoreChange::EndSession { session: id(1), reason: String::new() },
        StoreChange::TakeConversation { session: id(1), token: token(1) },
    ];
    for change in changes {
        assert_eq!(serde_json::to_value(&change).unwrap()["change"], change.name());
    }
}

#[test]
fn audit_entry_names_the_subject_and_skips_waiting() {
    let asked = request(ask(lock(), Busy::Enqueue));
    let waiting = place(3, None, NOW);
    let outcome = Ok(ChangeOutcome::Ticket { ticket: waiting.ticket, history: None });
    let entry = AuditEntry { action: "ask", session: None, subject: Some("deploy"), outcome: "done" };
    assert_eq!(AuditEntry::of(&asked, &outcome), Some(entry));
    let wait = StoreChange::Wait {
        resource: turn(),
        place: at(3),
        claim: String::new(),
        ttl_ms: 1,
        session: None,
        history: 0,
    };
    let wait = request(wait);
    assert_eq!(AuditEntry::of(&wait, &outcome), None);
    let session = id(1);
    let entry =
        AuditEntry { action: "wait", session: Some(session.as_str()), subject: None, outcome: "lost" };
    assert_eq!(AuditEntry::of(&wait, &Err(Refusal::PlaceLost { place: Some(at(3)) })), Some(entry));
}
