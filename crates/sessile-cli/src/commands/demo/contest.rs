//! The contest: agents switch, read back and write, all at once; then it is counted what went wrong.

use std::sync::Barrier;

use sessile::Error;
use sessile::tool::Race;

use super::place::Place;

/// What went wrong.
#[derive(Clone, Debug, Default)]
pub(super) struct Score {
    /// Reads after an own switch.
    pub(super) reads: usize,
    /// Reads that found another agent's value.
    pub(super) mixed_up: usize,
    /// Writes of keys that nobody else writes.
    pub(super) writes: usize,
    /// Writes that were acknowledged and are gone.
    pub(super) lost: usize,
    /// Commands that failed.
    pub(super) refused: usize,
}

impl Score {
    pub(super) fn is_bad(&self) -> bool {
        self.mixed_up + self.lost + self.refused > 0
    }
}

/// A tool's race, and what is particular to each agent's environment.
pub(super) struct Contest {
    race: Race,
    /// A variable that pins each agent to its own value.
    pin: Option<(&'static str, String)>,
}

impl Contest {
    /// A tool as it is.
    pub(super) fn bare(race: Race) -> Self {
        Contest { race, pin: None }
    }

    /// Contexts and settings of Sessile: everyone switches the user's context, and each agent names its own.
    pub(super) fn cured(place: &Place) -> Result<Self, Error> {
        let program = std::env::current_exe()
            .map_err(|source| Error::Io { action: "find", path: place.home().to_owned(), source })?
            .to_string_lossy()
            .into_owned();
        let command = |line: &str| -> Vec<String> {
            std::iter::once(program.clone()).chain(line.split(' ').map(str::to_owned)).collect()
        };
        Ok(Contest {
            race: Race {
                state: "contexts and settings in ~/.config/sessile".to_owned(),
                rounds: 20,
                seed: vec![command("context create agent{agent}")],
                switch: command("context use agent{agent} --global"),
                probe: command("context current"),
                expect: "agent{agent}".to_owned(),
                write: Some(command("config set env.A{agent}R{round} 1 --global")),
                read_all: Some(command("config show")),
                written: "env.A{agent}R{round}".to_owned(),
            },
            pin: Some(("SESSILE_CONTEXT", "agent{agent}".to_owned())),
        })
    }

    /// What the agents fight over.
    pub(super) fn state(&self) -> &str {
        &self.race.state
    }

    /// Runs it; the error says why it could not be.
    pub(super) fn run(&self, place: &Place, agents: u16) -> Result<Score, String> {
        for agent in 0..agents {
            for command in &self.race.seed {
                let words = filled(command, agent, 0);
                place.run(&words, &[]).ok_or_else(|| format!("`{}` failed", words.join(" ")))?;
            }
        }
        let mut score = Score::default();
        let together = Barrier::new(usize::from(agents));
        let parts: Vec<(Score, Vec<String>)> = std::thread::scope(|scope| {
            let agents: Vec<_> = (0..agents)
                .map(|agent| {
                    let together = &together;
                    scope.spawn(move || {
                        together.wait();
                        self.agent(place, agent)
                    })
                })
                .collect();
            agents.into_iter().filter_map(|agent| agent.join().ok()).collect()
        });
        let found = self.race.read_all.as_ref().and_then(|command| place.run(&filled(command, 0, 0), &[]));
        let found = found.unwrap_or_default();
        for (part, acknowledged) in parts {
            score.reads += part.reads;
            score.mixed_up += part.mixed_up;
            score.writes += part.writes;
            score.refused += part.refused;
            let is_there = |key: &str| found.lines().any(|line| has_word(line, key));
            score.lost += acknowledged.iter().filter(|key| !is_there(key)).count();
        }
        Ok(score)
    }

    /// One agent's work; returns its part of the score and the keys whose writing was acknowledged.
    fn agent(&self, place: &Place, agent: u16) -> (Score, Vec<String>) {
        let mut score = Score::default();
        let mut acknowledged = Vec::new();
        let pin: Vec<(&str, String)> =
            self.pin.iter().map(|(name, value)| (*name, fill(value, agent, 0))).collect();
        for round in 0..self.race.rounds {
            score.reads += 1;
            let switched = place.run(&filled(&self.race.switch, agent, round), &pin);
            let seen = place.run(&filled(&self.race.probe, agent, round), &pin);
            match (switched, seen) {
                (Some(_), Some(seen)) => {
                    let wrong = seen.trim() != fill(&self.race.expect, agent, round);
                    score.mixed_up += usize::from(wrong);
                }
                _ => score.refused += 1,
            }
            if let Some(write) = &self.race.write {
                score.writes += 1;
                match place.run(&filled(write, agent, round), &pin) {
                    Some(_) => acknowledged.push(fill(&self.race.written, agent, round)),
                    None => score.refused += 1,
                }
            }
        }
        (score, acknowledged)
    }
}

/// Whether a key stands in a line as a word of its own, and not as the beginning of another.
fn has_word(line: &str, key: &str) -> bool {
    line.match_indices(key)
        .any(|(at, _)| !line[at + key.len()..].starts_with(|c: char| c.is_ascii_alphanumeric()))
}

fn filled(words: &[String], agent: u16, round: usize) -> Vec<String> {
    words.iter().map(|word| fill(word, agent, round)).collect()
}

fn fill(text: &str, agent: u16, round: usize) -> String {
    text.replace("{agent}", &agent.to_string()).replace("{round}", &round.to_string())
}
