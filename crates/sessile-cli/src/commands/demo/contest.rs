//! Contest: agents switch, read back and write in parallel; then errors are counted.

use std::path::Path;
use std::sync::{PoisonError, RwLock};

use sessile::tool::Race;

use crate::temporary_home::TemporaryHome;

/// Score of a contest.
#[derive(Clone, Debug, Default)]
pub(super) struct Score {
    /// Reads after an own switch.
    pub(super) reads: usize,
    /// Reads that found another agent's value.
    pub(super) mixed_up: usize,
    /// Writes, each to a key of one agent only.
    pub(super) writes: usize,
    /// Acknowledged writes whose value is missing.
    pub(super) lost: usize,
    /// Commands that failed.
    pub(super) refused: usize,
}

impl Score {
    /// Number of failed commands.
    pub(super) fn wrong(&self) -> usize {
        self.mixed_up + self.lost + self.refused
    }

    pub(super) fn is_bad(&self) -> bool {
        self.wrong() > 0
    }
}

/// Race of a tool, and the program that runs every command of an agent.
pub(super) struct Contest {
    race: Race,
    runner: Vec<String>,
}

impl Contest {
    /// Contest without isolation.
    pub(super) fn bare(race: Race) -> Self {
        Contest { race, runner: Vec::new() }
    }

    /// The tool in a session of each agent's own.
    pub(super) fn cured(race: Race, program: &Path) -> Self {
        let words = ["run", "--session", "agent{agent}", "--"].map(str::to_owned);
        let runner = std::iter::once(program.to_string_lossy().into_owned()).chain(words).collect();
        Contest { race, runner }
    }

    /// Runs it; the error says why it could not be.
    pub(super) fn run(&self, place: &TemporaryHome, agents: u16) -> Result<Score, String> {
        for agent in 0..agents {
            for command in &self.race.seed {
                let words = filled(command, agent, 0);
                place.run(&words).ok_or_else(|| format!("`{}` failed", words.join(" ")))?;
            }
        }
        // They begin together, when the gate opens; it stays shut for good if one of them cannot be started.
        let gate = RwLock::new(false);
        let parts: std::io::Result<Vec<(Score, Vec<String>)>> = std::thread::scope(|scope| {
            let mut is_open = gate.write().unwrap_or_else(PoisonError::into_inner);
            let start = |agent| {
                let gate = &gate;
                // Not `spawn`, which panics where the system refuses a thread.
                std::thread::Builder::new().spawn_scoped(scope, move || {
                    // A barrier would wait forever for an agent that could not be started.
                    let is_open = *gate.read().unwrap_or_else(PoisonError::into_inner);
                    is_open.then(|| self.agent(place, agent))
                })
            };
            let agents = (0..agents).map(start).collect::<std::io::Result<Vec<_>>>()?;
            *is_open = true;
            drop(is_open);
            Ok(agents.into_iter().filter_map(|agent| agent.join().ok().flatten()).collect())
        });
        let parts = parts.map_err(|error| format!("cannot start a thread for each agent: {error}"))?;
        let mut score = Score::default();
        for (agent, (part, acknowledged)) in (0..agents).zip(parts) {
            score.reads += part.reads;
            score.mixed_up += part.mixed_up;
            score.writes += part.writes;
            score.refused += part.refused;
            let read_all = self.race.read_all.as_ref();
            let found = read_all.and_then(|command| place.run(&self.command(command, agent, 0)));
            let found = found.unwrap_or_default();
            let is_there = |key: &str| found.lines().any(|line| has_word(line, key));
            score.lost += acknowledged.iter().filter(|key| !is_there(key)).count();
        }
        Ok(score)
    }

    /// One agent's work; returns its part of the score and the keys whose writing was acknowledged.
    fn agent(&self, place: &TemporaryHome, agent: u16) -> (Score, Vec<String>) {
        let mut score = Score::default();
        let mut acknowledged = Vec::new();
        for round in 0..self.race.rounds {
            score.reads += 1;
            let switched = place.run(&self.command(&self.race.switch, agent, round));
            let seen = place.run(&self.command(&self.race.probe, agent, round));
            match (switched, seen) {
                (Some(_), Some(seen)) => {
                    let wrong = seen.trim() != fill(&self.race.expect, agent, round);
                    score.mixed_up += usize::from(wrong);
                }
                _ => score.refused += 1,
            }
            if let Some(write) = &self.race.write {
                score.writes += 1;
                match place.run(&self.command(write, agent, round)) {
                    Some(_) => acknowledged.push(fill(&self.race.written, agent, round)),
                    None => score.refused += 1,
                }
            }
        }
        (score, acknowledged)
    }

    /// A command of an agent's.
    fn command(&self, words: &[String], agent: u16, round: usize) -> Vec<String> {
        self.runner.iter().chain(words).map(|word| fill(word, agent, round)).collect()
    }
}

/// Whether a line contains a key as a whole word.
fn has_word(line: &str, key: &str) -> bool {
    // `key1` must not be found in `key10`.
    line.match_indices(key)
        .any(|(at, _)| !line[at + key.len()..].starts_with(|c: char| c.is_ascii_alphanumeric()))
}

fn filled(words: &[String], agent: u16, round: usize) -> Vec<String> {
    words.iter().map(|word| fill(word, agent, round)).collect()
}

fn fill(text: &str, agent: u16, round: usize) -> String {
    text.replace("{agent}", &agent.to_string()).replace("{round}", &round.to_string())
}
