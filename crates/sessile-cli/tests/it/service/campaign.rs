//! Many users take turns at once at two processes on one store, of which now and then one is killed: nobody sees what is
//! another's, turns are whole and in order, what was acknowledged is there, once, and what clients saw of turns, locks and
//! values could have happened one after the other.
//!
//! `SESSILE_TEST_TURNS` says how many users there are, and how many turns each takes at once: `200x100`; and
//! `SESSILE_TEST_KILL_EVERY` after how many milliseconds one of the processes is killed, or `never`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::Postgres;
use testkit::linearizability::{LeaseInterval, Observation, ObservedRevision, contradiction, overlap, tick};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::faults::{FaultRecord, Faults, Outage, make};
use super::invariants::{AcknowledgedWrites, Violation, wrong};
use super::wire::{Ask, Pair};
use super::{Service, Store};
use crate::home;

/// How many clients are connected at a time: below what a process may have open.
const CONNECTED: usize = 15_000;

/// What never ends has failed.
const PATIENCE: Duration = Duration::from_secs(900);

#[derive(Clone, Copy)]
struct Size {
    users: usize,
    turns: usize,
    /// Between the beginning of a turn and its end.
    think: Duration,
    /// How often one of the processes is killed, if that is so.
    every: Option<Duration>,
}

fn size() -> Size {
    let millis = Duration::from_millis;
    let Ok(said) = std::env::var("SESSILE_TEST_TURNS") else {
        return Size { users: 10, turns: 10, think: millis(150), every: Some(millis(700)) };
    };
    let (users, turns) = said.split_once('x').expect("SESSILE_TEST_TURNS is USERSxTURNS");
    let (users, turns) = (users.parse().unwrap(), turns.parse().unwrap());
    let every = match std::env::var("SESSILE_TEST_KILL_EVERY").as_deref() {
        Err(_) => Some(millis(3000)),
        Ok("never") => None,
        Ok(every) => Some(millis(every.parse().unwrap())),
    };
    Size { users, turns, think: millis(100), every }
}

#[test]
fn sqlite_service_survives_killed_processes_under_load() {
    let home = home();
    served(&Store::file(&home), None);
}

#[test]
fn postgres_service_survives_kills_and_restarts_under_load() {
    let (home, server) = (home(), Postgres::start());
    let database = server.database();
    served(&Store::postgres(&home, &database.url()), Some(Outage::Restart(&server)));
}

#[test]
fn postgres_service_survives_kills_and_failover_under_load() {
    let (home, server) = (home(), Postgres::start());
    let database = server.database();
    let standby = server.standby();
    let store = Store::postgres(&home, &database.url_with(&standby));
    served(&store, Some(Outage::FailOver { from: &server, to: &standby }));
}

/// Says that it is enough, also when the crowd failed: whoever makes the faults is waited for.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Somebody who uses the service.
#[derive(Clone)]
struct User {
    name: String,
    token: String,
    session: String,
    pair: Pair,
}

#[expect(clippy::print_stderr, reason = "prints measurements for the person who runs it")]
fn served(store: &Store<'_>, outage: Option<Outage<'_>>) {
    let size = size();
    let tokens: Vec<String> = (0..size.users).map(|number| store.user(&format!("user-{number}"))).collect();
    let mut services = [Service::start(store), Service::start(store)];
    let pair = Pair::new([services[0].address, services[1].address]);
    let faults = size.every.map(|every| Faults { every, at_least: 2, outage });
    let enough = AtomicBool::new(false);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let begun = Instant::now();
    let users = runtime.block_on(started(&pair, &tokens));
    let (happened, outcome) = std::thread::scope(|scope| {
        let maker = scope.spawn(|| match faults {
            Some(faults) => make(faults, store, &mut services, &pair, &enough),
            None => FaultRecord::default(),
        });
        let over = StopOnDrop(&enough);
        let outcome = runtime.block_on(async { tokio::time::timeout(PATIENCE, crowd(&users, size)).await });
        drop(over);
        (maker.join().unwrap(), outcome)
    });
    let outcome = outcome.expect("everybody is served in the end");
    let took = begun.elapsed();
    let mut found = Violation::default();
    runtime.block_on(async {
        for (user, acknowledged) in users.iter().zip(&outcome.acknowledged) {
            assert_eq!(acknowledged.len(), size.turns, "{}", user.name);
            found.add(wrong(&user.name, &messages(user).await, acknowledged));
        }
    });
    eprintln!(
        "{} users x {} turns in {took:.1?}: {found:?}; {happened:?}, sent again: {}, acquired again: {}, late and refused: {}, \
         locks had: {}, values counted to: {}",
        size.users,
        size.turns,
        pair.sent_again(),
        outcome.reacquired,
        outcome.refused,
        outcome.had,
        outcome.counted,
    );
    assert_eq!(found, Violation::default());
    if faults.is_some() {
        assert!(pair.sent_again() > 0, "faults occurred during requests");
        assert_eq!(happened.outages, usize::from(outage.is_some()));
    }
}

async fn started(pair: &Pair, tokens: &[String]) -> Vec<User> {
    let mut users = Vec::new();
    for (number, token) in tokens.iter().enumerate() {
        let mut client = pair.client(number, token);
        let (status, session) = client.post("/v1/sessions", "start", json!({})).await;
        assert_eq!(status, 201, "{session}");
        let session = format!("/v1/sessions/{}", session["id"].as_str().unwrap());
        let path = format!("{session}/state/n");
        let set = Ask { method: "PUT", path: &path, key: None, if_match: None, body: Some(json!(0)) };
        assert_eq!(client.ask(&set).await.0, 200);
        users.push(User {
            name: format!("user-{number}"),
            token: token.clone(),
            session,
            pair: pair.clone(),
        });
    }
    users
}

/// All that a user's session says.
async fn messages(user: &User) -> Vec<Value> {
    let (mut all, mut after) = (Vec::new(), json!(0));
    while !after.is_null() {
        let path = format!("{}/messages?limit=1000&after={after}", user.session);
        let (status, page) = user.pair.client(0, &user.token).get(&path).await;
        assert_eq!(status, 200, "{page}");
        all.extend(page["messages"].as_array().unwrap().iter().cloned());
        after = page["next"].clone();
    }
    all
}

#[derive(Default)]
struct Outcome {
    /// By user.
    acknowledged: Vec<Vec<AcknowledgedWrites>>,
    reacquired: usize,
    refused: usize,
    had: usize,
    counted: i64,
}

/// What one client came to.
enum Activity {
    Turn {
        user: usize,
        acknowledged: AcknowledgedWrites,
        had: LeaseInterval,
        reacquired: usize,
        refused: usize,
    },
    Locked {
        user: usize,
        had: Vec<LeaseInterval>,
    },
    Counted {
        user: usize,
        seen: Vec<Observation>,
    },
}

async fn crowd(users: &[User], size: Size) -> Outcome {
    let room = Arc::new(Semaphore::new(CONNECTED));
    let mut clients = JoinSet::new();
    // A user's turns are asked for at once, and users beside one another.
    for number in 0..size.turns {
        for (at, user) in users.iter().enumerate() {
            let (user, room) = (user.clone(), Arc::clone(&room));
            clients.spawn(async move {
                let _room = room.acquire().await;
                turn(at, &user, number, size.think).await
            });
        }
    }
    // Few of them are enough to contend for a lock and a value.
    for (at, user) in users.iter().enumerate().take(10) {
        for number in 0..4 {
            clients.spawn(lock(at, user.clone(), number, size.turns.min(20)));
            clients.spawn(count(at, user.clone(), number, size.turns.min(20)));
        }
    }
    let mut outcome = Outcome { acknowledged: vec![Vec::new(); users.len()], ..Outcome::default() };
    let (mut turns, mut held) = (vec![Vec::new(); users.len()], vec![Vec::new(); users.len()]);
    // Everybody has set it once.
    let set = Observation { begun: tick(), ended: tick(), what: ObservedRevision::Wrote(1) };
    let mut seen_by = vec![vec![set]; users.len()];
    while let Some(did) = clients.join_next().await {
        match did.unwrap() {
            Activity::Turn { user, acknowledged, had, reacquired, refused } => {
                outcome.acknowledged[user].push(acknowledged);
                turns[user].push(had);
                outcome.reacquired += reacquired;
                outcome.refused += refused;
            }
            Activity::Locked { user, had } => held[user].extend(had),
            Activity::Counted { user, seen } => seen_by[user].extend(seen),
        }
    }
    for (at, user) in users.iter().enumerate() {
        for had in [&turns[at], &held[at]] {
            assert!(overlap(had).is_none(), "{}: {:?}", user.name, overlap(had));
        }
        outcome.had += held[at].len();
        let begun = tick();
        let (_, value) = user.pair.client(0, &user.token).get(&format!("{}/state/n", user.session)).await;
        let revision = value["revision"].as_i64().unwrap();
        seen_by[at].push(Observation { begun, ended: tick(), what: ObservedRevision::Read(revision) });
        assert_eq!(contradiction(&seen_by[at]), None, "{}", user.name);
        // It was set to nothing, and then counted up.
        assert_eq!(value["value"].as_i64(), Some(revision - 1), "{}", user.name);
        outcome.counted += revision - 1;
    }
    outcome
}

/// Takes a turn, however often it has to be asked for.
async fn turn(at: usize, user: &User, number: usize, think: Duration) -> Activity {
    let mut client = user.pair.client(number, &user.token);
    let turns = format!("{}/turns", user.session);
    let (name, mut reacquired, mut refused) = (format!("turn-{number}"), 0, 0);
    // One in ten is held for too long before; what it says then is not taken.
    let mut is_late = number % 10 == 3;
    loop {
        let key = format!("{name}-{reacquired}-{refused}");
        let ttl = if is_late { 200 } else { 60_000 };
        let ask = json!({ "ttl_ms": ttl, "wait_ms": 60_000, "history": 1 });
        let (status, begun) = client.post(&turns, &key, ask).await;
        match status {
            201 => {}
            408 | 409 => {
                reacquired += 1;
                continue;
            }
            _ => panic!("{} {key}: {status} {begun}", user.name),
        }
        let from = tick();
        tokio::time::sleep(if is_late { Duration::from_millis(250) } else { think }).await;
        let token = begun["token"].as_i64().unwrap();
        let last = begun["history"].as_array().unwrap().last();
        let after = last.map_or(0, |message| message["number"].as_i64().unwrap());
        let part = |part: i64| json!({ "user": user.name, "turn": name, "part": part, "after": after });
        let commit = format!("{turns}/{token}/commit");
        let said = json!({ "messages": [part(0), part(1)] });
        let had = LeaseInterval { from, until: tick(), token };
        let (status, done) = client.post(&commit, &format!("{key}-commit"), said).await;
        match status {
            200 => {
                assert!(!is_late, "{done}");
                let number = |name: &str| done[name].as_i64().unwrap();
                let (first, last) = (number("first"), number("last"));
                let acknowledged = AcknowledgedWrites { turn: name, token, first, last };
                return Activity::Turn { user: at, acknowledged, had, reacquired, refused };
            }
            409 if is_late => (is_late, refused) = (false, refused + 1),
            409 => reacquired += 1,
            _ => panic!("{} {key}-commit: {status} {done}", user.name),
        }
    }
}

/// Takes the lock of a user and gives it back.
async fn lock(at: usize, user: User, number: usize, rounds: usize) -> Activity {
    let mut client = user.pair.client(number, &user.token);
    let (mut had, mut asked) = (Vec::new(), 0);
    while had.len() < rounds {
        let key = format!("lock-{number}-{asked}");
        asked += 1;
        let ask = json!({ "ttl_ms": 60_000, "wait_ms": 60_000 });
        let (status, taken) = client.post("/v1/locks/deploy", &key, ask).await;
        match status {
            201 => {}
            408 | 409 => continue,
            _ => panic!("{} {key}: {status} {taken}", user.name),
        }
        let (from, token) = (tick(), taken["token"].as_i64().unwrap());
        tokio::time::sleep(Duration::from_millis(5)).await;
        let until = tick();
        let (path, key) = (format!("/v1/locks/deploy?token={token}"), format!("{key}-release"));
        let release = Ask { method: "DELETE", path: &path, key: Some(&key), if_match: None, body: None };
        let (status, left) = client.ask(&release).await;
        assert_eq!(status, 204, "the lock had no other holder meanwhile: {} {key}: {left}", user.name);
        had.push(LeaseInterval { from, until, token });
    }
    Activity::Locked { user: at, had }
}

/// Counts a value up, each time only if nobody else has meanwhile.
async fn count(at: usize, user: User, number: usize, rounds: usize) -> Activity {
    let mut client = user.pair.client(number, &user.token);
    let path = format!("{}/state/n", user.session);
    let mut seen = Vec::new();
    for round in 0..rounds {
        let begun = tick();
        let (status, value) = client.get(&path).await;
        assert_eq!(status, 200, "{value}");
        let what = ObservedRevision::Read(value["revision"].as_i64().unwrap());
        seen.push(Observation { begun, ended: tick(), what });
        let revision = format!("\"{}\"", value["revision"]);
        let (key, body) = (format!("count-{number}-{round}"), json!(value["value"].as_i64().unwrap() + 1));
        let set =
            Ask { method: "PUT", path: &path, key: Some(&key), if_match: Some(&revision), body: Some(body) };
        let begun = tick();
        let (status, told) = client.ask(&set).await;
        match status {
            200 => {
                let what = ObservedRevision::Wrote(told["revision"].as_i64().unwrap());
                seen.push(Observation { begun, ended: tick(), what });
            }
            412 => {}
            _ => panic!("{} {key}: {status} {told}", user.name),
        }
    }
    Activity::Counted { user: at, seen }
}
