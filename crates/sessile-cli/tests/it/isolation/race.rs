//! Two agents on one machine, each with its own target: neither ever reaches the other's, and the user's own files
//! stay as they are. With the real tools, against servers that say which of them was hit.

mod contest;
mod contests;

use std::fmt::Write;
use std::sync::Barrier;

use contest::AGENTS;
use testkit::Home;

use crate::home;

macro_rules! each_tool {
    ($($tool:ident)*) => {$(
        mod $tool {
            use super::contests::$tool;

            #[test]
            fn in_commands_of_their_own() {
                $tool().in_commands_of_their_own();
            }

            #[test]
            fn in_shells() {
                $tool().in_shells();
            }
        }
    )*};
}

each_tool! { kubectl docker git gh npm pip aws }

/// Where the machine has it: it is in no distribution.
mod terraform {
    use super::contests::terraform;

    #[test]
    fn in_commands_of_their_own() {
        if testkit::find_tool("terraform").is_some() {
            terraform().in_commands_of_their_own();
        }
    }

    #[test]
    fn in_shells() {
        if testkit::find_tool("terraform").is_some() {
            terraform().in_shells();
        }
    }
}

/// What the tests above would see if nothing kept the two apart.
#[test]
fn race_without_sessile_hits_the_wrong_target() {
    for contest in [contests::kubectl(), contests::git()] {
        for agent in AGENTS {
            contest.switch_bare(agent);
        }
        let [one, two] = AGENTS;
        let seen = contest.probe_bare();
        assert!(contest.is_target(two, &seen) && !contest.is_target(one, &seen), "{seen}");
    }
}

const SWITCHES: usize = 10;

/// All agents live at the same moment, and each switches to targets that others switch to as well. `commands` says how
/// to make a number the target, and how to print which one is.
fn crowd(home: &Home, agents: usize, commands: impl Fn(usize) -> (String, &'static str) + Sync) {
    let before = contest::files_of_people(home, contests::KUBECTL_CACHE);
    let ready = Barrier::new(agents);
    std::thread::scope(|scope| {
        for agent in 0..agents {
            let (ready, commands) = (&ready, &commands);
            scope.spawn(move || {
                let targets: Vec<usize> = (0..SWITCHES).map(|round| (agent + round * 7) % agents).collect();
                let mut script = String::from("set -e\n");
                for target in &targets {
                    let (switch, probe) = commands(*target);
                    writeln!(script, "{switch} >&2\n{probe}").unwrap();
                }
                ready.wait();
                let run = ["run", "--session", &format!("a{agent}"), "--", "bash", "-c", &script];
                let done = home.call(&run).with_tools().ok();
                let expected: String = targets.iter().map(|target| format!("c{target}\n")).collect();
                assert_eq!(done.stdout(), expected, "a{agent}: {}", done.stderr());
            });
        }
    });
    assert_eq!(crate::live(home).len(), agents);
    contest::assert_same(&before, &contest::files_of_people(home, contests::KUBECTL_CACHE));
}

#[test]
fn hundred_parallel_runs_see_only_their_own_context() {
    testkit::require_tool("git");
    let home = home();
    home.write(".gitconfig", "[user]\n\tname = c0\n");
    crowd(&home, 100, |target| {
        (format!("git config --global user.name c{target}"), "git config --global user.name")
    });
}

/// A start of kubectl costs twenty times one of git: `SESSILE_TEST_CROWD` says how many there are.
#[test]
fn a_crowd_of_kubectl_runs_sees_only_its_own_context() {
    testkit::require_tool("kubectl");
    let agents = std::env::var("SESSILE_TEST_CROWD").map_or(20, |text| text.parse().unwrap());
    let home = home();
    let mut text = String::from("apiVersion: v1\nkind: Config\ncurrent-context: c0\ncontexts:\n");
    for number in 0..agents {
        writeln!(text, "- name: c{number}\n  context: {{cluster: c{number}, user: c{number}}}").unwrap();
    }
    home.write(".kube/config", text);
    crowd(&home, agents, |target| {
        (format!("kubectl config use-context c{target}"), "kubectl config current-context")
    });
}
