//! One tool, two agents, two targets: how the agents take turns and race, and what must hold.

use std::path::PathBuf;

use testkit::{Call, Home, Loopback};

/// Where all work is done, below the home. In the home itself npm would take the user's settings for a project's.
pub(super) const WORK: &str = "work";

/// The sessions that the agents work in, and the places of their targets.
pub(super) const AGENTS: [Agent; 2] =
    [Agent { session: "one", place: 0 }, Agent { session: "two", place: 1 }];

/// One of the two.
#[derive(Clone, Copy)]
pub(super) struct Agent {
    session: &'static str,
    place: usize,
}

/// A tool in a home of its own, with two targets. Commands are words with single spaces between them.
pub(super) struct Contest {
    pub(super) home: Home,
    #[expect(dead_code, reason = "the values live as long as the contest")]
    pub(super) servers: Vec<Loopback>,
    /// How often each agent switches and looks.
    pub(super) rounds: usize,
    /// For each agent, what makes its target the current one.
    pub(super) switch: [Vec<String>; 2],
    /// What acts on the current target, and prints which it was.
    pub(super) probe: String,
    /// For each agent, what only its own target says.
    pub(super) says: [&'static str; 2],
    /// Variables of the tool that have nothing to do with targets.
    pub(super) variables: &'static [(&'static str, &'static str)],
    /// Below the home, what the tool writes that selects nothing: caches and logs.
    pub(super) declared: &'static [&'static str],
}

impl Contest {
    /// Each command is a run of its own.
    pub(super) fn in_commands_of_their_own(&self) {
        self.leaves_the_home_alone(|| {
            let [one, two] = AGENTS;
            self.switch(one);
            self.switch(two);
            self.look(one, "after the other switched");
            self.look(two, "after its own switch");
            self.both(|agent| {
                for round in 0..self.rounds {
                    self.switch(agent);
                    self.look(agent, &format!("in round {round}"));
                }
            });
        });
    }

    /// Each agent is one run of a shell that lives as long as its work.
    pub(super) fn in_shells(&self) {
        let marks = tempfile::tempdir().unwrap();
        let marks = marks.path().display();
        self.leaves_the_home_alone(|| {
            self.both(|agent| {
                let Agent { session, place } = agent;
                let (switch, probe, says) = (self.switch[place].join(" && "), &self.probe, self.says[place]);
                let (other, rounds) = (AGENTS[1 - place].session, self.rounds);
                // First the second agent switches after the first one did, and then both act.
                let wait_before = if place == 1 { format!("await {other}") } else { String::new() };
                let wait_after = if place == 0 { format!("await {other}") } else { String::new() };
                let script = format!(
                    r#"
                    await() {{
                        for i in $(seq 3000); do [ -e {marks}/$1 ] && return; sleep 0.02; done
                        echo "$1 never switched"; exit 1
                    }}
                    switch() {{ out=$({{ {switch}; }} 2>&1) || echo "$1: the switch failed: $out"; }}
                    look() {{ out=$({probe} 2>&1); case $out in *'{says}'*) ;; *) echo "$1: hit $out" ;; esac; }}
                    {wait_before}
                    switch hand-over; touch {marks}/{session}
                    {wait_after}
                    look hand-over
                    for round in $(seq {rounds}); do switch $round; look $round; done
                    echo finished
                    "#
                );
                let done = self.run(session, &["bash", "-c", &script]).ok();
                assert_eq!(done.stdout(), "finished\n", "{session}: {}", done.stderr());
            });
        });
    }

    /// Whether this is what the agent's target says.
    pub(super) fn is_target(&self, agent: Agent, seen: &str) -> bool {
        seen.contains(self.says[agent.place])
    }

    /// The agent's switch without Sessile.
    pub(super) fn switch_bare(&self, agent: Agent) {
        for line in &self.switch[agent.place] {
            self.bare(line).ok();
        }
    }

    /// What is hit without Sessile.
    pub(super) fn probe_bare(&self) -> String {
        self.bare(&self.probe).ok().stdout()
    }

    /// A command of the tool in the user's own home.
    pub(super) fn bare(&self, line: &str) -> Call {
        let words: Vec<&str> = line.split(' ').collect();
        self.in_work(self.home.tool(words[0], &words[1..]))
    }

    fn run(&self, session: &str, words: &[&str]) -> Call {
        self.in_work(self.home.call(&["run", "--session", session, "--"]).args(words).with_tools())
    }

    fn in_work(&self, call: Call) -> Call {
        self.variables.iter().fold(call.cwd(WORK), |call, (name, value)| call.env(name, value))
    }

    #[track_caller]
    fn switch(&self, agent: Agent) {
        for line in &self.switch[agent.place] {
            self.run(agent.session, &line.split(' ').collect::<Vec<_>>()).ok();
        }
    }

    #[track_caller]
    fn look(&self, agent: Agent, when: &str) {
        let done = self.run(agent.session, &self.probe.split(' ').collect::<Vec<_>>()).ok();
        let seen = done.stdout();
        assert!(self.is_target(agent, &seen), "{}, {when}: hit {seen}{}", agent.session, done.stderr());
    }

    fn both(&self, work: impl Fn(Agent) + Sync) {
        std::thread::scope(|scope| {
            for agent in AGENTS {
                let work = &work;
                scope.spawn(move || work(agent));
            }
        });
    }

    fn leaves_the_home_alone(&self, work: impl FnOnce()) {
        let before = files_of_people(&self.home, self.declared);
        work();
        assert_same(&before, &files_of_people(&self.home, self.declared));
        // What the user's own shell selects is what it was.
        let [one, two] = AGENTS;
        let seen = self.probe_bare();
        assert!(self.is_target(one, &seen) && !self.is_target(two, &seen), "the user hits {seen}");
    }
}

/// What people keep, but for what a tool is known to write.
pub(super) fn files_of_people(home: &Home, declared: &[&str]) -> Vec<(PathBuf, Vec<u8>)> {
    let declared: Vec<PathBuf> = declared.iter().map(|path| home.path(path)).collect();
    let kept = |path: &PathBuf| !declared.iter().any(|known| path.starts_with(known));
    home.tree_of_people().into_iter().filter(|(path, _)| kept(path)).collect()
}

/// Says which file differs, and not what is in all of them.
#[track_caller]
pub(super) fn assert_same(before: &[(PathBuf, Vec<u8>)], after: &[(PathBuf, Vec<u8>)]) {
    let missing = |from: &[(PathBuf, Vec<u8>)], all: &[(PathBuf, Vec<u8>)]| -> Vec<String> {
        let gone = from.iter().filter(|file| !all.contains(file));
        gone.map(|(path, text)| format!("{}: {:.200}", path.display(), String::from_utf8_lossy(text)))
            .collect()
    };
    let (was, is) = (missing(before, after), missing(after, before));
    assert!(was.is_empty() && is.is_empty(), "the home changed\nwas: {was:#?}\nis: {is:#?}");
}
