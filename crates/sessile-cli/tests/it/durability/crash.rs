//! A process killed at any instant leaves every file old or new, no lock, and nothing that stays for ever.
//!
//! `SESSILE_TEST_KILLS` says how many processes each test kills.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use testkit::{Call, Home};

use crate::home;

const TEMPORARY: &str = ".sessile-tmp";
const CONFIG: &str = ".config/sessile/config.toml";

pub(crate) fn kills() -> usize {
    let said = std::env::var("SESSILE_TEST_KILLS");
    said.map_or(100, |count| count.parse().expect("SESSILE_TEST_KILLS is a number"))
}

/// A generator with a fixed seed (xorshift), so that a failure comes back.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit.max(1)
    }
}

/// Kills calls at instants spread over the whole time that one takes.
pub(crate) struct Killer {
    random: Random,
    longest: Duration,
    /// How many calls were over before they could be killed, and so were acknowledged.
    survived: usize,
}

impl Killer {
    /// Learns from calls that are let through how long one takes on this machine.
    pub(crate) fn new(seed: u64, calls: impl IntoIterator<Item = Call>) -> Self {
        let mut longest = Duration::ZERO;
        for call in calls {
            let begun = Instant::now();
            call.ok();
            longest = longest.max(begun.elapsed());
        }
        Killer { random: Random(seed), longest, survived: 0 }
    }

    /// Returns whether the call was acknowledged: it ended by itself, successfully.
    pub(crate) fn kill(&mut self, call: Call) -> bool {
        let mut child: Child =
            call.command().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let longest = u64::try_from(self.longest.as_micros()).unwrap();
        std::thread::sleep(Duration::from_micros(self.random.below(longest)));
        child.kill().unwrap();
        let done = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert!(
            done.status.success() || done.status.code().is_none(),
            "the program failed before the kill: {stderr}"
        );
        let is_over = done.status.success();
        self.survived += usize::from(is_over);
        // What was learnt on a busy machine would miss every call on an idle one, and the other way round.
        self.longest = if is_over { self.longest * 7 / 8 } else { self.longest * 17 / 16 };
        is_over
    }

    /// A run in which none or all were killed before the end would say nothing.
    pub(crate) fn assert_it_was_a_fight(&self, kills: usize) {
        assert!(self.survived < kills, "no call was killed");
    }
}

pub(crate) fn assert_not_locked(dir: &Path) {
    if let Ok(dir) = File::open(dir) {
        dir.try_lock().expect("the lock died with its holder");
    }
}

fn assert_no_temporary_file(home: &Home) {
    for (path, _) in home.tree() {
        assert!(!path.ends_with(TEMPORARY), "{} was left", path.display());
    }
}

/// The text of every file people edit can be parsed.
fn assert_nothing_is_torn(home: &Home) {
    for (path, bytes) in home.tree() {
        if path.extension().is_some_and(|ending| ending == "toml") {
            let text = String::from_utf8(bytes).unwrap();
            text.parse::<toml_edit::DocumentMut>().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        }
    }
}

#[test]
fn a_killed_config_set_leaves_the_old_file_or_the_new_one() {
    let home = home();
    // Large enough that writing it takes more than one system call's time.
    let comments = "# a comment that must stay as it is\n".repeat(6_000);
    home.write(CONFIG, format!("{comments}[env]\n"));
    let set = |number: usize| {
        home.call(&["config", "set", &format!("env.K{number}"), &format!("value {number}"), "--global"])
    };
    let kills = kills();
    let mut killer = Killer::new(0x5e55_11e01, (0..5).map(|number| set(kills + number)));
    let mut acknowledged: Vec<usize> = (kills..kills + 5).collect();
    for number in 0..kills {
        let before = home.read(CONFIG);
        let done = killer.kill(set(number));
        let after = home.read(CONFIG);
        assert!(after.starts_with(&comments));
        let new = format!("{before}K{number} = \"value {number}\"\n");
        assert!(after == new || (after == before && !done), "neither old nor new, after kill {number}");
        if after == new {
            acknowledged.push(number);
        }
        assert_not_locked(&home.path(".config/sessile"));
        if number % 10 == 9 {
            let args = ["config", "set", &format!("env.N{number}"), "next", "--global", "--lock-timeout=0"];
            home.call(&args).ok();
            assert_no_temporary_file(&home);
        }
    }
    let shown = home.call(&["config", "show", "--output", "json"]).ok().json();
    let keys: std::collections::BTreeSet<&str> =
        shown.as_array().unwrap().iter().filter_map(|item| item["key"].as_str()).collect();
    for number in acknowledged {
        assert!(keys.contains(format!("env.K{number}").as_str()), "K{number} was lost");
    }
    home.call(&["doctor"]).ok();
    killer.assert_it_was_a_fight(kills);
}

/// Whatever is selected always exists: a context is renamed with everything that points to it, or not at all.
#[test]
fn killed_context_change_leaves_a_valid_selection() {
    let home = home();
    home.call(&["context", "create", "n0", "--env", "A=1"]).ok();
    home.call(&["context", "use", "n0", "--global"]).ok();
    let kills = kills();
    let warm = ["w0", "w1", "w2"].map(|name| home.call(&["context", "create", name, "--env", "A=1"]));
    let rename = |from: &str, to: &str| home.call(&["context", "rename", from, to]);
    let mut killer =
        Killer::new(0x5e55_11e02, warm.into_iter().chain([rename("w0", "w9"), rename("n0", "m0")]));
    let current = || {
        let done = home.call(&["context", "current", "--output", "json"]).ok();
        done.json()["context"].as_str().unwrap().to_owned()
    };
    for number in 0..kills {
        let (extra, selected) = (format!("x{number}"), current());
        let renamed = format!("r{number}");
        match number % 3 {
            0 => {
                let done = killer.kill(home.call(&["context", "create", &extra, "--env", "A=1"]));
                let exists = home.path(format!(".config/sessile/contexts/{extra}.toml")).exists();
                assert!(exists || !done, "an acknowledged context is missing");
            }
            1 => {
                let done = killer.kill(rename(&selected, &renamed));
                let now = current();
                assert!(now == renamed || (now == selected && !done), "{now} is neither of both");
                let other = if now == renamed { &selected } else { &renamed };
                let _ = home.call(&["context", "show", other]).run().exit(5);
            }
            _ => {
                home.call(&["context", "create", &extra, "--env", "A=1"]).ok();
                let done = killer.kill(home.call(&["context", "delete", &extra, "--yes"]));
                let shown = home.call(&["context", "show", &extra]).run();
                assert_eq!(shown.status(), Some(if done { 5 } else { shown.status().unwrap() }));
                assert_eq!(current(), selected);
            }
        }
        assert_not_locked(&home.path(".config/sessile/contexts"));
        assert_not_locked(&home.path(".local/state/sessile"));
        assert_nothing_is_torn(&home);
        if number % 10 == 9 {
            home.call(&["context", "edit", &current(), "--env", &format!("B={number}")])
                .arg("--lock-timeout=0")
                .ok();
            home.call(&["config", "set", "env.B", &number.to_string(), "--global"]).ok();
            assert_no_temporary_file(&home);
            home.call(&["doctor"]).ok();
        }
    }
    killer.assert_it_was_a_fight(kills);
}

/// The directory's file, its trust and the pointer are three writes; a kill between them must not show.
#[test]
fn a_killed_switch_leaves_the_old_selection_or_the_new_one() {
    let home = home();
    for name in ["a", "b"] {
        home.call(&["context", "create", name]).ok();
    }
    std::fs::create_dir(home.path("d")).unwrap();
    let switch = |name: &str, scope: &str| home.call(&["context", "use", name, scope]).cwd("d");
    let kills = kills();
    let warm = [switch("a", "--global"), switch("a", "--dir"), switch("b", "--global"), switch("b", "--dir")];
    let mut killer = Killer::new(0x5e55_11e03, warm);
    let current = |dir: &str| {
        let done = home.call(&["context", "current"]).cwd(dir).ok();
        assert_eq!(done.stderr(), "", "the file is trusted");
        done.stdout().trim().to_owned()
    };
    for number in 0..kills {
        let (dir, scope) = if number % 4 == 0 { ("", "--global") } else { ("d", "--dir") };
        let old = current(dir);
        let new = if old == "a" { "b" } else { "a" };
        let done = killer.kill(switch(new, scope));
        let now = current(dir);
        assert!(now == new || (now == old && !done), "{now} after a switch from {old} to {new}");
        for locked in [".config/sessile", "d/.sessile", ".local/state/sessile"] {
            assert_not_locked(&home.path(locked));
        }
        if number % 10 == 9 {
            for scope in ["--global", "--dir"] {
                switch("a", scope).arg("--lock-timeout=0").ok();
                switch("b", scope).arg("--lock-timeout=0").ok();
            }
            assert_no_temporary_file(&home);
            home.call(&["doctor"]).cwd("d").ok();
        }
    }
    killer.assert_it_was_a_fight(kills);
}

/// The first writer makes the directories and the store; killed at any instant, the next one finds its way.
#[test]
fn store_creation_survives_a_killed_writer() {
    let model = home();
    let prepare = |home: &Home| drop(home.write(".config/sessile/contexts/a.toml", ""));
    prepare(&model);
    let kills = kills() / 4;
    let mut killer = Killer::new(0x5e55_11e04, [model.call(&["context", "use", "a", "--global"])]);
    for number in 0..kills {
        let home = home();
        prepare(&home);
        killer.kill(home.call(&["context", "use", "a", "--global"]));
        home.call(&["status"]).ok();
        home.call(&["doctor"]).ok();
        home.call(&["context", "use", "a", "--global", "--lock-timeout=0"]).ok();
        assert_eq!(home.call(&["context", "current"]).ok().stdout(), "a\n", "after kill {number}");
        assert_no_temporary_file(&home);
    }
    killer.assert_it_was_a_fight(kills);
}
