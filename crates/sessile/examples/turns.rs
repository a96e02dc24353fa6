//! `turns DIR`: writers of one program append to sessions of their own, and then take turns in one; how fast, and what came
//! of the turns. `benches/service` sets it beside the service and others.

#![expect(clippy::print_stdout, reason = "the library never prints; a program does")]

use std::collections::HashSet;
use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sessile::files::Locker;
use sessile::session::{NewSession, Owner, Session, Sessions};
use sessile::{Error, World};

const WRITERS: usize = 16;
const APPENDS: usize = 500;
const TURNS: usize = 15;

fn open(dir: &Path) -> Result<Sessions, Error> {
    Sessions::open(dir, "ann", World::empty(), Locker::new(Duration::from_secs(60)))
}

fn start(sessions: &mut Sessions) -> Result<Session, Error> {
    let owner = Owner { user: "ann".into(), host: "here".into(), terminal: None, process: None, agent: None };
    let hour = Duration::from_secs(3600);
    let labels = Default::default();
    sessions.start(NewSession { name: None, context: None, owner, labels, idle: hour, max: hour })
}

/// Appends to a session of its own, once all writers have one; how long each append took.
fn appends(dir: &Path, ready: &Barrier) -> Result<Vec<Duration>, Error> {
    let opened = open(dir).and_then(|mut sessions| Ok((start(&mut sessions)?, sessions)));
    ready.wait();
    let (session, mut sessions) = opened?;
    let said = json!({ "role": "user", "content": "what is the weather in the city where it always rains" });
    let mut took = Vec::new();
    for _ in 0..APPENDS {
        let since = Instant::now();
        sessions.append(&session, std::slice::from_ref(&said))?;
        took.push(since.elapsed());
    }
    Ok(took)
}

/// Takes turns in a session that all share; what was acknowledged, and how often it failed.
fn turns(dir: &Path, session: &Session, writer: usize) -> Result<(Vec<Value>, usize), Error> {
    let (mut sessions, mut acknowledged, mut errors) = (open(dir)?, Vec::new(), 0);
    for number in 0..TURNS {
        let said = [json!([writer, number, 0]), json!([writer, number, 1])];
        let mut turn = sessions.begin_turn(session)?;
        turn.read(10)?;
        std::thread::sleep(Duration::from_millis(2));
        said.iter().for_each(|part| turn.append(part));
        match turn.commit() {
            Ok(_) => acknowledged.extend(said),
            Err(_) => errors += 1,
        }
    }
    Ok((acknowledged, errors))
}

fn turn_of(said: &Value) -> (&Value, &Value) {
    (&said[0], &said[1])
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args_os().nth(1).ok_or("which directory?")?;
    let dir = Path::new(&dir);
    let mut sessions = open(dir)?;
    let shared = start(&mut sessions)?;

    let ready = Barrier::new(WRITERS + 1);
    let (took, begun): (Vec<_>, Instant) = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS).map(|_| scope.spawn(|| appends(dir, &ready))).collect();
        ready.wait();
        let begun = Instant::now();
        (writers.into_iter().filter_map(|writer| writer.join().ok()).collect(), begun)
    });
    let seconds = begun.elapsed().as_secs_f64();
    let mut took: Vec<Duration> = took.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
    took.sort();

    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let shared = &shared;
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| scope.spawn(move || turns(dir, shared, writer))).collect();
        writers.into_iter().filter_map(|writer| writer.join().ok()).collect()
    });
    let (mut acknowledged, mut errors) = (Vec::new(), 0);
    for outcome in outcomes {
        let (said, failed) = outcome?;
        acknowledged.extend(said);
        errors += failed;
    }
    let said: Vec<Value> =
        sessions.messages(&shared, usize::MAX)?.into_iter().map(|message| message.body).collect();
    let interleaved = said.chunks_exact(2).filter(|pair| turn_of(&pair[0]) != turn_of(&pair[1])).count();
    let there: HashSet<String> = said.iter().map(Value::to_string).collect();
    let lost = acknowledged.iter().filter(|one| !there.contains(&one.to_string())).count();

    let millis = |at: usize| took.get(at).map_or(0.0, |took| took.as_secs_f64() * 1000.0);
    #[expect(clippy::cast_precision_loss, reason = "the count is a few thousand")]
    let rate = took.len() as f64 / seconds;
    let (middle, late) = (millis(took.len() / 2), millis(took.len() * 99 / 100));
    println!(
        "{:<34}{rate:>12.0}{middle:>12.2}{late:>12.2}{interleaved:>12}{lost:>12}{errors:>12}",
        "sessile library, in process"
    );
    if interleaved + lost + errors > 0 {
        return Err("turns were interleaved, lost or refused".into());
    }
    Ok(())
}
