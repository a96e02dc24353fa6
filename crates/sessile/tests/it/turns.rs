//! Turns and state under contention: threads and processes on one session.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and a variable selects the worker's task"
)]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use sessile::World;
use sessile::files::Locker;
use sessile::session::{EntryKind, NewSession, Owner, Session, Sessions};

/// Makes the test binary a worker: what it is to do, where, and as whom.
const WORKER: &str = "SESSILE_TEST_WORKER";

fn open(dir: &Path, user: &str) -> Sessions {
    let locker = Locker::new(Duration::from_secs(120));
    Sessions::open(dir, user, World::empty(), locker).unwrap()
}

fn start(sessions: &mut Sessions) -> Session {
    let owner =
        Owner { user: "test".into(), host: "here".into(), terminal: None, process: None, agent: None };
    let (idle, max) = (Duration::from_secs(3600), Duration::from_secs(3600));
    sessions
        .start(NewSession { name: None, context: None, owner, labels: Default::default(), idle, max })
        .unwrap()
}

/// One worker: reads 20, appends, thinks for 2 ms, appends.
fn take_turns(sessions: &mut Sessions, session: &Session, worker: usize, rounds: usize) {
    for round in 0..rounds {
        let mut turn = sessions.begin_turn(session).unwrap();
        let seen = turn.read(20).unwrap().last().map_or(0, |message| message.number);
        turn.append(&json!({ "worker": worker, "round": round, "part": 1, "seen": seen }));
        std::thread::sleep(Duration::from_millis(2));
        turn.append(&json!({ "worker": worker, "round": round, "part": 2, "seen": seen }));
        turn.commit().unwrap();
    }
}

/// Every turn is there, whole, in one piece, and each saw everything before it.
fn check(sessions: &Sessions, session: &Session, workers: usize, rounds: usize) {
    let messages = sessions.messages(session, usize::MAX).unwrap();
    assert_eq!(messages.len(), workers * rounds * 2, "lost or doubled");
    for (index, pair) in messages.chunks(2).enumerate() {
        let (first, second) = (&pair[0].body, &pair[1].body);
        assert_eq!((&first["part"], &second["part"]), (&json!(1), &json!(2)), "interleaved");
        assert_eq!((&first["worker"], &first["round"]), (&second["worker"], &second["round"]), "interleaved");
        assert_eq!(first["seen"], json!(index * 2), "a stale read");
    }
}

#[test]
fn turns_of_sixteen_threads_are_neither_lost_nor_interleaved() {
    const ROUNDS: usize = 15;
    let dir = tempfile::tempdir().unwrap();
    let mut sessions = open(dir.path(), "u");
    let session = start(&mut sessions);
    std::thread::scope(|scope| {
        for worker in 0..16 {
            let (dir, session) = (dir.path(), session.clone());
            scope.spawn(move || take_turns(&mut open(dir, "u"), &session, worker, ROUNDS));
        }
    });
    check(&sessions, &session, 16, ROUNDS);
}

#[test]
fn turns_of_eight_processes_are_neither_lost_nor_interleaved() {
    const ROUNDS: usize = 30;
    let dir = tempfile::tempdir().unwrap();
    let mut sessions = open(dir.path(), "u");
    let session = start(&mut sessions);
    run_workers(dir.path(), &session, 8, &format!("turns {ROUNDS}"));
    check(&sessions, &session, 8, ROUNDS);
}

#[test]
fn eight_processes_increment_and_every_increment_counts() {
    let rounds: usize = std::env::var("SESSILE_TEST_INCREMENTS").map_or(100, |text| text.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let mut sessions = open(dir.path(), "u");
    let session = start(&mut sessions);
    run_workers(dir.path(), &session, 8, &format!("increments {rounds}"));
    let entry = sessions.entry(&session, EntryKind::State, "n").unwrap().unwrap();
    assert_eq!((entry.value, entry.revision), (json!(8 * rounds), i64::try_from(8 * rounds).unwrap()));
}

#[test]
fn another_users_session_does_not_exist() {
    let dir = tempfile::tempdir().unwrap();
    let session = start(&mut open(dir.path(), "alice"));
    let mut bob = open(dir.path(), "bob");
    assert!(bob.get(session.id.as_str()).is_err());
    assert!(bob.begin_turn(&session).is_err());
    assert!(bob.append(&session, &[json!("mine")]).is_err());
    assert!(bob.entries(&session, EntryKind::State).unwrap().is_empty());
    assert!(bob.change_entry(&session, EntryKind::State, "k", Some(&json!(1)), None).is_err());
    assert!(bob.messages(&session, 10).unwrap().is_empty());
    assert!(bob.list(None, false, 10).unwrap().is_empty());
}

#[test]
fn abandoned_turn_leaves_nothing_and_the_token_grows() {
    let dir = tempfile::tempdir().unwrap();
    let mut sessions = open(dir.path(), "u");
    let session = start(&mut sessions);
    let mut turn = sessions.begin_turn(&session).unwrap();
    let first = turn.token();
    turn.append(&json!("never"));
    drop(turn);
    let turn = sessions.begin_turn(&session).unwrap();
    assert!(turn.token() > first);
    turn.abandon().unwrap();
    assert!(sessions.messages(&session, 10).unwrap().is_empty());
}

#[test]
fn append_never_interleaves_with_a_turn() {
    let dir = tempfile::tempdir().unwrap();
    let mut sessions = open(dir.path(), "u");
    let session = start(&mut sessions);
    assert_eq!(sessions.append(&session, &[json!("a"), json!("b")]).unwrap(), 2);
    assert_eq!(sessions.append(&session, &[]).unwrap(), 2, "nothing is nothing");
    let mut turn = sessions.begin_turn(&session).unwrap();
    turn.append(&json!("c"));
    let beside = std::thread::scope(|threads| {
        let beside = threads.spawn(|| open(dir.path(), "u").append(&session, &[json!("d"), json!("e")]));
        std::thread::sleep(Duration::from_millis(200));
        assert!(!beside.is_finished(), "another thread holds the turn");
        assert_eq!(turn.read(10).unwrap().len(), 2);
        assert_eq!(turn.commit().unwrap(), 3);
        beside.join().unwrap()
    });
    assert_eq!(beside.unwrap(), 5);
    let said: Vec<_> =
        sessions.messages(&session, 10).unwrap().into_iter().map(|message| message.body).collect();
    assert_eq!(json!(said), json!(["a", "b", "c", "d", "e"]));
    sessions.stop(&session, "done").unwrap();
    assert!(sessions.append(&session, &[json!("late")]).is_err());
}

/// `SESSILE_TEST_KILLS` says how many processes are killed in the middle of their turns.
#[test]
fn killed_process_leaves_whole_acknowledged_turns() {
    let kills: usize = std::env::var("SESSILE_TEST_KILLS").map_or(100, |text| text.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let mut sessions = open(dir.path(), "u");
    let session = start(&mut sessions);
    let told = dir.path().join("told");
    let mut random: u64 = 0x5e55_11e7;
    for number in 0..kills {
        let job = format!("told {}", usize::MAX);
        let mut worker = worker_process(dir.path(), &session, number, &job);
        // Up to its first turns, and a random time from there.
        let before = lines(&told);
        while lines(&told) == before {
            assert!(worker.try_wait().unwrap().is_none(), "the worker ended before the kill");
            std::thread::sleep(Duration::from_millis(1));
        }
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_micros((random >> 33) % 12_000));
        worker.kill().unwrap();
        worker.wait().unwrap();
        // The next one is not held up by the dead one.
        let mut turn = sessions.begin_turn(&session).unwrap();
        turn.append(&json!({ "worker": "test", "round": number, "part": 1 }));
        turn.append(&json!({ "worker": "test", "round": number, "part": 2 }));
        turn.commit().unwrap();
    }
    let messages = sessions.messages(&session, usize::MAX).unwrap();
    let mut turns = std::collections::BTreeSet::new();
    for pair in messages.chunks(2) {
        assert_eq!((&pair[0].body["part"], &pair[1].body["part"]), (&json!(1), &json!(2)), "half a turn");
        assert_eq!(pair[0].body["worker"], pair[1].body["worker"], "interleaved");
        turns.insert(format!("{} {}", pair[0].body["worker"], pair[0].body["round"]));
    }
    for line in std::fs::read_to_string(&told).unwrap().lines() {
        assert!(turns.contains(line), "acknowledged turn {line} is missing");
    }
    let numbers: Vec<i64> = messages.iter().map(|message| message.number).collect();
    assert_eq!(numbers, (1..=i64::try_from(numbers.len()).unwrap()).collect::<Vec<_>>());
}

/// `SESSILE_TEST_KILLS` says how many processes are killed, five times over: each has eight threads that share transactions.
#[test]
fn killed_process_loses_no_acknowledged_append() {
    let kills: usize = std::env::var("SESSILE_TEST_KILLS").map_or(100, |text| text.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let mut sessions = open(dir.path(), "u");
    let session = start(&mut sessions);
    let acknowledged = dir.path().join("acknowledged");
    let mut random: u64 = 0x5e55_11e7;
    for number in 0..kills.div_ceil(5) {
        let mut worker = worker_process(dir.path(), &session, number, "grouped 8");
        let before = lines(&acknowledged);
        while lines(&acknowledged) == before {
            assert!(worker.try_wait().unwrap().is_none(), "the worker ended before the kill");
            std::thread::sleep(Duration::from_millis(1));
        }
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_micros((random >> 33) % 12_000));
        worker.kill().unwrap();
        worker.wait().unwrap();
        // The next writer is not held up by the dead one.
        sessions.append(&session, &[json!("test")]).unwrap();
    }
    let messages = sessions.messages(&session, usize::MAX).unwrap();
    let kept: std::collections::BTreeSet<&str> =
        messages.iter().filter_map(|message| message.body.as_str()).collect();
    for line in std::fs::read_to_string(&acknowledged).unwrap().lines() {
        assert!(kept.contains(line), "append {line} was acknowledged and is lost");
    }
    let numbers: Vec<i64> = messages.iter().map(|message| message.number).collect();
    assert_eq!(numbers, (1..=i64::try_from(numbers.len()).unwrap()).collect::<Vec<_>>());
}

/// Appends for ever from several threads, and writes down each append after it was acknowledged.
fn append_grouped(dir: &Path, id: &str, worker: &str, threads: usize) {
    use std::io::Write;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                let mut sessions = open(dir, "u");
                let session = sessions.get(id).unwrap();
                let path = dir.join("acknowledged");
                let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
                for round in 0.. {
                    let name = format!("{worker}-{thread}-{round}");
                    sessions.append(&session, &[json!(name)]).unwrap();
                    file.write_all(format!("{name}\n").as_bytes()).unwrap();
                }
            });
        }
    });
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

/// Takes turns for ever, and writes down each after it was acknowledged.
fn take_told_turns(sessions: &mut Sessions, session: &Session, dir: &Path, worker: usize) {
    use std::io::Write;
    let mut told = std::fs::OpenOptions::new().append(true).create(true).open(dir.join("told")).unwrap();
    for round in 0.. {
        let mut turn = sessions.begin_turn(session).unwrap();
        turn.append(&json!({ "worker": worker, "round": round, "part": 1 }));
        turn.append(&json!({ "worker": worker, "round": round, "part": 2 }));
        turn.commit().unwrap();
        told.write_all(format!("{worker} {round}\n").as_bytes()).unwrap();
    }
}

fn worker_process(dir: &Path, session: &Session, worker: usize, job: &str) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "turns::worker", "--nocapture"])
        .env(WORKER, format!("{} {} {worker} {job}", dir.display(), session.id))
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

fn run_workers(dir: &Path, session: &Session, count: usize, job: &str) {
    let workers: Vec<_> = (0..count).map(|worker| worker_process(dir, session, worker, job)).collect();
    for mut worker in workers {
        assert!(worker.wait().unwrap().success());
    }
}

/// Not a test by itself: what the processes above run.
#[test]
fn worker() {
    let Ok(job) = std::env::var(WORKER) else { return };
    let words: Vec<&str> = job.split(' ').collect();
    let [dir, id, worker, what, rounds] = words[..] else { panic!("{job}") };
    let mut sessions = open(Path::new(dir), "u");
    let session = sessions.get(id).unwrap();
    let rounds = rounds.parse().unwrap();
    match what {
        "turns" => take_turns(&mut sessions, &session, worker.parse().unwrap(), rounds),
        "told" => take_told_turns(&mut sessions, &session, Path::new(dir), worker.parse().unwrap()),
        "grouped" => append_grouped(Path::new(dir), id, worker, rounds),
        "increments" => (0..rounds).for_each(|_| increment(&mut sessions, &session)),
        other => panic!("{other}"),
    }
}

fn increment(sessions: &mut Sessions, session: &Session) {
    loop {
        let old = sessions.entry(session, EntryKind::State, "n").unwrap();
        let (value, revision) = old.map_or((0, 0), |old| (old.value.as_i64().unwrap(), old.revision));
        let changed =
            sessions.change_entry(session, EntryKind::State, "n", Some(&json!(value + 1)), Some(revision));
        match changed {
            Ok(_) => return,
            Err(error) if error.code() == sessile::Code::RevisionConflict => {}
            Err(error) => panic!("{error}"),
        }
    }
}
