//! `sessile demo`: what parallel processes do to shared state, without Sessile and with it.

mod contest;
mod place;

use serde_json::json;
use sessile::text::quoted;
use sessile::tool::Profile;
use sessile::{Error, exit};

use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::output::{Table, Tone};
use contest::{Contest, Score};
use place::Place;

/// Show what parallel processes do to shared state, without Sessile and with it
///
/// In a throwaway home, several agents at once select their own value in each tool found on this machine, read it
/// back, and write keys that nobody else writes. Counted are the reads that found another agent's value, and the
/// writes that were acknowledged and are gone. Your own files are not touched.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile demo" "sessile demo --agents 16 --tool git --output json"))]
pub struct Args {
    /// How many agents work at once
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(2..=64))]
    agents: u16,

    /// Only these tools
    #[arg(long, value_name = "TOOL")]
    tool: Vec<String>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let place = Place::new(cx.state.world())?;
    let profiles = Profile::built_in()?;
    let known: Vec<String> = profiles.iter().map(|profile| profile.name.clone()).collect();
    if let Some(unknown) = args.tool.iter().find(|tool| !known.contains(tool)) {
        let known = known.join(", ");
        return Err(
            Error::Usage(format!("there is no tool {} here; there are {known}", quoted(unknown))).into()
        );
    }
    let mut bare = Vec::new();
    for profile in profiles {
        let wanted = args.tool.is_empty() || args.tool.contains(&profile.name);
        let program = profile.programs.first().map(String::as_str).unwrap_or_default();
        let Some(race) = profile.race.filter(|_| wanted && place.has_program(program)) else { continue };
        cx.out.note(&format!("{}: {} agents, {} rounds each ...", profile.name, args.agents, race.rounds));
        let contest = Contest::bare(race);
        bare.push((profile.name, contest.state().to_owned(), contest.run(&place, args.agents)));
    }
    if bare.is_empty() {
        let names = if args.tool.is_empty() { "any known tool".to_owned() } else { args.tool.join(", ") };
        return Err(
            Error::Usage(format!("{names}: not found on this machine; install git, for instance")).into()
        );
    }
    cx.out.note(&format!("sessile: {} agents ...", args.agents));
    let contest = Contest::cured(&place)?;
    let cured = contest.run(&place, args.agents);

    let row = |name: &str, state: &str, score: &Result<Score, String>| match score {
        Ok(score) => json!({
            "tool": name, "state": state, "error": null,
            "reads": score.reads, "mixed_up": score.mixed_up,
            "writes": score.writes, "lost": score.lost, "refused": score.refused,
        }),
        Err(reason) => json!({ "tool": name, "state": state, "error": reason }),
    };
    let json = json!({
        "agents": args.agents,
        "without": bare.iter().map(|(name, state, score)| row(name, state, score)).collect::<Vec<_>>(),
        "with": row("sessile", contest.state(), &cured),
    });
    cx.out.result(&json, || {
        let mut table = Table::new(&["TOOL", "SHARED STATE", "MIXED UP", "LOST", "REFUSED"]);
        let mut add = |name: &str, state: &str, score: &Result<Score, String>, tone| match score {
            Ok(score) => table.row(
                &[
                    name.to_owned(),
                    state.to_owned(),
                    format!("{} of {}", score.mixed_up, score.reads),
                    of(score.lost, score.writes),
                    of(score.refused, score.reads + score.writes),
                ],
                tone,
            ),
            Err(reason) => table.row(&[name, state, &format!("not shown: {reason}")], Some(Tone::Faint)),
        };
        for (name, state, score) in &bare {
            add(name, state, score, score.as_ref().ok().filter(|score| score.is_bad()).map(|_| Tone::Bad));
        }
        add("sessile", contest.state(), &cured, Some(Tone::Good));
        format!(
            "{} agents at once, in a throwaway home\n\n{}\n\
             mixed up: an agent selected its own value and read another agent's\n\
             lost:     a write was acknowledged and is gone\n\
             refused:  a command failed because another one was at work\n",
            args.agents,
            table.render(&cx.out)
        )
    })?;
    match cured {
        Ok(score) if !score.is_bad() => Ok(()),
        _ => Err(Failure::Told(exit::FAILED)),
    }
}

fn of(count: usize, total: usize) -> String {
    if total == 0 { "-".to_owned() } else { format!("{count} of {total}") }
}
