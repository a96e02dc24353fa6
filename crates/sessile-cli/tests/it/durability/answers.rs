//! The answers that are kept beside the store are those of the store, whoever is killed at whatever instant.

use crate::durability::crash::{Killer, kills};
use crate::{home, live};

const ANSWERS: &str = ".local/state/sessile/state.db-answers";

/// Output of a reading call, with the answers that are kept and without them.
fn both(home: &testkit::Home, args: &[&str]) -> [String; 2] {
    let kept = home.call(args).run().told();
    let _ = std::fs::remove_file(home.path(ANSWERS));
    [kept, home.call(args).run().told()]
}

#[test]
fn killed_writers_and_readers_leave_no_stale_answer() {
    let home = home();
    home.call(&["context", "create", "staging"]).ok();
    let begin = || home.call(&["session", "start", "--name", "s", "--context", "staging"]);
    let stop = || home.call(&["session", "stop", "s"]);
    let look = || home.call(&["prompt", "--session", "s"]);
    let set = |value: &str| home.call(&["config", "set", "env.A", value, "--session", "s"]);
    let mut killer = Killer::new(0xa45e_7e25, [begin(), look(), set("0"), look(), stop(), begin()]);
    // Each is followed by five calls that compare.
    let (kills, mut is_live) = (kills() / 4, true);
    for number in 0..kills {
        // Readers too: they are killed while they keep answers.
        let call = match number % 4 {
            0 | 2 => look(),
            1 if is_live => set(&number.to_string()),
            _ if is_live => stop(),
            _ => begin(),
        };
        killer.kill(call);
        let [kept, asked] = both(&home, &["context", "current", "--session", "s"]);
        assert_eq!(kept, asked, "after {number}");
        let [kept, asked] = both(&home, &["config", "get", "env.A", "--session", "s"]);
        assert_eq!(kept, asked, "after {number}");
        is_live = !live(&home).is_empty();
    }
    killer.assert_it_was_a_fight(kills);
    home.call(&["doctor"]).ok();
}

#[test]
fn change_is_seen_by_the_next_call() {
    let home = home();
    home.call(&["context", "create", "staging"]).ok();
    home.call(&["session", "start", "--name", "s", "--context", "staging"]).ok();
    let value = || home.call(&["config", "get", "lock-timeout", "--session", "s"]).ok().stdout();
    for timeout in ["1s", "2s", "3s"] {
        home.call(&["config", "set", "lock-timeout", timeout, "--session", "s"]).ok();
        assert_eq!([value(), value()], [format!("{timeout}\n"), format!("{timeout}\n")]);
        assert!(home.path(ANSWERS).exists(), "the second call reads the answers of the first");
    }
    home.call(&["run", "--session", "s", "--existing", "--", "true"]).ok();
    home.call(&["session", "stop", "s"]).ok();
    assert_eq!(home.call(&["run", "--session", "s", "--existing", "--", "true"]).run().status(), Some(125));
}

#[test]
fn command_in_a_session_of_its_own_keeps_the_answers_of_others() {
    let home = home();
    home.call(&["session", "start", "--name", "s"]).ok();
    home.call(&["prompt", "--session", "s"]).ok();
    let answers = || std::fs::read_to_string(home.path(ANSWERS)).unwrap();
    let about_s = || answers().lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    let before = about_s();
    assert!(!before.is_empty());
    let id = home.call(&["run", "--", "sh", "-c", "echo $SESSILE_SESSION"]).ok().stdout();
    assert_eq!(about_s(), before);
    assert!(!answers().contains(id.trim()));
    // Only the sessions that are left are known, whatever a call inside has asked.
    let inside = [
        "run",
        "--",
        "sh",
        "-c",
        "\"$0\" prompt >&2; echo $SESSILE_SESSION",
        home.program().to_str().unwrap(),
    ];
    let id = home.call(&inside).ok().stdout();
    assert!(!answers().contains(id.trim()), "{}", answers());
}

#[test]
fn state_beside_a_config_file_has_no_answers() {
    let home = home();
    home.write("own.toml", "lock-timeout = \"3s\"\n");
    let file = home.path("own.toml");
    let own = ["--config", file.to_str().unwrap()];
    let with = |args: &[&str]| home.call(&[&own, args].concat()).ok();
    with(&["session", "start", "--name", "s"]);
    with(&["prompt", "--session", "s"]);
    let left: Vec<String> = home.tree().iter().map(|(path, _)| path.display().to_string()).collect();
    assert!(!left.iter().any(|path| path.ends_with("-answers")), "{left:?}");
}
