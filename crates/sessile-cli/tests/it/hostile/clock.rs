//! A wrong clock must not open a guard, lift a rate limit or make a revocation ineffective.

use std::time::Duration;

use sessile::context::{approval, set_pin, verify_pin};
use sessile::error::{GuardError, UsageError};
use sessile::names::ContextName;
use sessile::process::ProcessId;
use sessile::terminal::Terminal;
use sessile::{App, Error, State, StateArgs, World};
use testkit::{Home, Tty};

use crate::home;

const HALF_AN_HOUR: Duration = Duration::from_secs(1800);
const TEN_YEARS: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

fn guarded() -> Home {
    let home = home();
    home.write(".config/sessile/contexts/prod.toml", "guard = \"approval\"\n");
    home
}

fn prod() -> ContextName {
    "prod".parse().unwrap()
}

/// A person's world at a terminal of that home.
fn person(home: &Home) -> World {
    let terminal = Terminal { device: "/dev/pts/9".into(), leader: ProcessId::own().unwrap() };
    World::empty()
        .with_home(home.dir())
        .with_cwd(home.dir())
        .with_variable("SESSILE_SYSTEM_DIR", home.path("etc"))
        .with_terminal(Some(terminal))
}

/// A person's state with a wall clock that is ahead by this much.
fn ahead(home: &Home, by: Duration) -> State {
    let world = person(home);
    let now = world.now() + by;
    State::open(&App::new("sessile"), world.with_now(now), StateArgs::default()).unwrap()
}

/// The state with a clock that is right.
fn on_time(home: &Home) -> State {
    ahead(home, Duration::ZERO)
}

fn approved() -> Home {
    let home = guarded();
    approval::grant(&on_time(&home), &prod(), HALF_AN_HOUR, None).unwrap();
    check(&home, 0);
    home
}

#[track_caller]
fn check(home: &Home, status: i32) {
    home.call(&["context", "current", "--check", "--context", "prod"]).run().exit(status);
}

#[test]
fn revocation_with_clock_ahead_ends_the_approval() {
    let home = approved();
    let count = approval::revoke(&ahead(&home, TEN_YEARS), &prod()).unwrap();
    assert_eq!(count, 1);
    check(&home, 7);
    let all = home.call(&["context", "approve", "--list", "--all", "-ojson"]).ok().json();
    assert!(all[0]["revoked_at"].is_string(), "{all}");
    // A second revocation finds nothing, by either clock.
    for by in [Duration::ZERO, TEN_YEARS] {
        let again = approval::revoke(&ahead(&home, by), &prod());
        assert!(matches!(again, Err(Error::Guard(GuardError::ApprovalNotFound(_)))), "{again:?}");
    }
}

#[test]
fn deletion_with_clock_ahead_ends_the_approval_of_the_name() {
    let home = approved();
    ahead(&home, TEN_YEARS).contexts().delete(&prod()).unwrap();
    home.write(".config/sessile/contexts/prod.toml", "guard = \"approval\"\n");
    check(&home, 7);
}

#[test]
fn renaming_with_clock_ahead_ends_the_approval_of_the_name() {
    let home = approved();
    ahead(&home, TEN_YEARS).contexts().rename(&prod(), &"other".parse().unwrap()).unwrap();
    home.write(".config/sessile/contexts/prod.toml", "guard = \"approval\"\n");
    check(&home, 7);
}

#[test]
fn expired_approval_is_not_reported_as_revoked() {
    let home = guarded();
    approval::grant(&on_time(&home), &prod(), Duration::from_millis(1), None).unwrap();
    std::thread::sleep(Duration::from_millis(10));
    home.call(&["context", "approve", "prod", "--revoke"]).run().exit(5);
    let all = home.call(&["context", "approve", "--list", "--all"]).ok().stdout();
    assert!(!all.contains("revoked"), "{all}");
}

/// Tries a wrong PIN with a clock that is ahead by this much; what it is told.
fn wrong_pin(home: &Home, by: Duration) -> String {
    verify_pin(&ahead(home, by), Some("0000")).unwrap_err().to_string()
}

fn with_pin() -> Home {
    let home = guarded();
    set_pin(&on_time(&home), None, Some("4711")).unwrap();
    home
}

#[test]
fn pin_attempts_stay_limited_when_the_clock_is_set_ahead() {
    let home = with_pin();
    for attempt in 1..=5 {
        wrong_pin(&home, Duration::from_secs(301) * attempt);
    }
    for by in [Duration::from_secs(301) * 6, TEN_YEARS] {
        let refused = verify_pin(&ahead(&home, by), Some("4711")).unwrap_err().to_string();
        assert!(refused.contains("wrong 5 times"), "{refused}");
    }
    let refused = approval::grant(&ahead(&home, TEN_YEARS), &prod(), HALF_AN_HOUR, Some("4711"));
    assert!(matches!(refused, Err(Error::Guard(GuardError::WrongPin(_)))), "{refused:?}");
}

#[test]
fn pin_locked_with_a_clock_ahead_is_not_locked_for_longer() {
    let home = with_pin();
    for _ in 0..5 {
        wrong_pin(&home, TEN_YEARS);
    }
    let refused = wrong_pin(&home, Duration::ZERO);
    assert!(refused.ends_with("try again in 5 min") || refused.contains("try again in 4 min"), "{refused}");
}

#[test]
fn pins_typed_in_parallel_share_five_attempts() {
    const CALLS: usize = 40;
    let home = with_pin();
    let mut calls: Vec<Tty> =
        (0..CALLS).map(|_| home.tty(&["context", "approve", "prod", "--lock-timeout", "60s"])).collect();
    for call in &mut calls {
        call.expect("PIN: ");
    }
    // The last call has the right PIN and waits at its prompt until the others have failed.
    let mut held = calls.pop().unwrap();
    // Every process reads the PIN while nobody can write, so that all of them compete for the lock at once.
    let database = rusqlite::Connection::open(home.path(".local/state/sessile/state.db")).unwrap();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    for (guess, call) in calls.iter_mut().enumerate() {
        call.type_line(&format!("{guess:04}"));
    }
    std::thread::sleep(Duration::from_millis(300));
    database.execute_batch("ROLLBACK").unwrap();
    let told: Vec<String> = calls.into_iter().map(|call| call.finish().0).collect();
    let count = |text: &str| told.iter().filter(|told| told.contains(text)).count();
    assert_eq!(count("the PIN is wrong"), 5, "{told:#?}");
    assert_eq!(count("wrong 5 times; try again in"), CALLS - 6, "{told:#?}");
    held.type_line("4711");
    let (text, status) = held.finish();
    assert_eq!(status, 7, "{text}");
    assert!(text.contains("wrong 5 times; try again in"), "{text}");
    check(&home, 7);
}

#[test]
fn shifted_time_namespace_neither_approves_nor_tries_a_pin() {
    let home = with_pin();
    let shifted = || {
        let world = person(&home).with_shifted_boot_clock();
        State::open(&App::new("sessile"), world, StateArgs::default()).unwrap()
    };
    for refused in [
        verify_pin(&shifted(), Some("4711")).map(drop),
        set_pin(&shifted(), Some("4711"), None),
        approval::grant(&shifted(), &prod(), HALF_AN_HOUR, Some("4711")).map(drop),
    ] {
        let error = refused.unwrap_err();
        assert!(matches!(error, Error::Usage(UsageError::ShiftedClock { .. })), "{error}");
        assert_eq!(
            error.hint(&App::new("sessile")).unwrap(),
            "run it on a terminal outside the time namespace"
        );
    }
    let told = wrong_pin(&home, Duration::ZERO);
    assert!(told.contains("4 tries are left"), "no attempt was counted before: {told}");
    check(&home, 7);
}

/// Changes one row of the store: what it knows of the boot, or a time on that clock.
fn change_store(home: &Home, statement: &str) {
    let database = rusqlite::Connection::open(home.path(".local/state/sessile/state.db")).unwrap();
    assert_eq!(database.execute(statement, []).unwrap(), 1, "{statement}");
}

#[test]
fn approval_of_an_earlier_boot_opens_nothing() {
    let home = approved();
    change_store(&home, "UPDATE approval SET boot = 'earlier'");
    check(&home, 7);
    let listed = home.call(&["context", "approve", "--list"]).ok().stdout();
    assert_eq!(listed, "no active approvals\n");
    home.call(&["context", "approve", "prod", "--revoke"]).run().exit(5);
}

#[test]
fn approval_from_the_future_opens_nothing() {
    let home = approved();
    change_store(&home, "UPDATE approval SET expires_boot_ms = expires_boot_ms + 1000000");
    check(&home, 7);
}
