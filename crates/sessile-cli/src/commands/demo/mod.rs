//! `sessile demo`: races of parallel processes on shared state, without Sessile and with it.

mod contest;

use serde_json::json;
use sessile::error::{FileError, UsageError};
use sessile::exit;
use sessile::text::quoted;
use sessile::tool::{Profile, Race};

use crate::cli::Cx;
use crate::counted::counted;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::output::{Table, Tone};
use crate::temporary_home::TemporaryHome;
use contest::{Contest, Score};

/// Show how parallel agents corrupt shared state, and how sessions help
///
/// Several agents work at once in a temporary home directory. In each tool found on this machine, each agent selects
/// its own value, reads it back, and writes keys of its own: first as usual, then in a session per agent. The report counts
/// reads that found another agent's value, and acknowledged writes that were lost. Your own files are not touched.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile demo" "sessile demo --agents 16 --tool git --output json"))]
pub struct Args {
    /// Number of agents that work at once
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(2..=64))]
    agents: u16,

    /// Race only these tools
    #[arg(long, value_name = "TOOL")]
    tool: Vec<String>,
}

/// A tool's two contests.
struct ContestResult {
    tool: String,
    state: String,
    without: Result<Score, String>,
    with: Result<Score, String>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let world = cx.state.world();
    let profiles = chosen(args, cx)?;
    let program = std::env::current_exe().map_err(|source| FileError::Io {
        action: "find",
        path: std::path::PathBuf::from("/proc/self/exe"),
        source,
    })?;
    let mut all = Vec::new();
    for (profile, race) in profiles {
        cx.out.note(&format!(
            "{}: {} agents, {} each ...",
            profile.name,
            args.agents,
            counted(race.rounds, "round")
        ));
        let _step = cx.out.slow_step(|| format!("{}: racing {} agents", profile.name, args.agents));
        // Each begins in a home of its own.
        let without = Contest::bare(race.clone()).run(&TemporaryHome::new(world)?, args.agents);
        let place = TemporaryHome::new(world)?;
        // The tools of the user's own profiles are shown too; nothing else of the configuration is.
        place.take_profiles(cx.state.dirs().config().ok())?;
        let with = Contest::cured(race.clone(), &program).run(&place, args.agents);
        all.push(ContestResult { tool: profile.name, state: race.state, without, with });
    }
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
        "without": all.iter().map(|one| row(&one.tool, &one.state, &one.without)).collect::<Vec<_>>(),
        "with": all.iter().map(|one| row(&one.tool, &one.state, &one.with)).collect::<Vec<_>>(),
    });
    cx.out.result(&json, || text(args, cx, &all))?;
    match all.iter().all(|one| one.with.as_ref().is_ok_and(|score| !score.is_bad())) {
        true => Ok(()),
        false => Err(Failure::Told(exit::FAILED)),
    }
}

/// The tools that are wanted, that are here, and whose race is known.
fn chosen(args: &Args, cx: &Cx) -> Result<Vec<(Profile, Race)>, Failure> {
    let place = TemporaryHome::new(cx.state.world())?;
    let mut profiles: Vec<Profile> =
        cx.state.tools().list()?.into_iter().map(|(profile, _)| profile).collect();
    profiles.retain(|profile| profile.race.is_some());
    if let Some(unknown) =
        args.tool.iter().find(|tool| !profiles.iter().any(|profile| profile.name == **tool))
    {
        let quick = profiles.iter().filter(|profile| profile.race.as_ref().is_some_and(|race| race.demo));
        let quick: Vec<&str> = quick.map(|profile| profile.name.as_str()).collect();
        let message = format!("the demo does not support {}; try {}", quoted(unknown), quick.join(", "));
        return Err(UsageError::Arguments(message).into());
    }
    let is_wanted = |profile: &Profile, race: &Race| match args.tool.is_empty() {
        true => race.demo,
        false => args.tool.contains(&profile.name),
    };
    let found: Vec<(Profile, Race)> = profiles
        .into_iter()
        .filter_map(|profile| Some((profile.race.clone()?, profile)))
        .map(|(race, profile)| (profile, race))
        .filter(|(profile, race)| is_wanted(profile, race) && place.has_program(profile.program()))
        .collect();
    if found.is_empty() {
        let names = if args.tool.is_empty() { "any known tool".to_owned() } else { args.tool.join(", ") };
        let message = format!("{names}: not found on this machine; install git, for instance");
        return Err(UsageError::Arguments(message).into());
    }
    Ok(found)
}

fn text(args: &Args, cx: &Cx, all: &[ContestResult]) -> String {
    let mut table = Table::new(&["TOOL", "SHARED STATE", "MIXED UP", "LOST", "REFUSED", "WITH SESSILE"]);
    for one in all {
        let cured = match &one.with {
            Ok(score) => format!("{} of {}", score.wrong(), score.reads + score.writes),
            Err(reason) => format!("skipped: {reason}"),
        };
        match &one.without {
            Ok(score) => {
                let tone = match &one.with {
                    Ok(cured) if !cured.is_bad() => score.is_bad().then_some(Tone::Good),
                    _ => Some(Tone::Bad),
                };
                let cells = [
                    one.tool.clone(),
                    one.state.clone(),
                    format!("{} of {}", score.mixed_up, score.reads),
                    of(score.lost, score.writes),
                    of(score.refused, score.reads + score.writes),
                    cured,
                ];
                table.row(&cells, tone);
            }
            Err(reason) => {
                table.row(&[&one.tool, &one.state, &format!("skipped: {reason}")], Some(Tone::Faint));
            }
        }
    }
    let sum = |part: &dyn Fn(&ContestResult) -> &Result<Score, String>| -> (usize, usize) {
        let scores = all.iter().filter_map(|one| part(one).as_ref().ok());
        scores.fold((0, 0), |(wrong, all), score| (wrong + score.wrong(), all + score.reads + score.writes))
    };
    let ((bare, total), (cured, _)) = (sum(&|one| &one.without), sum(&|one| &one.with));
    format!(
        "{} agents at once, in a temporary home\n\n{}\n\
         without Sessile {bare} of {total} went wrong, with `sessile run` {cured}\n\n\
         mixed up: an agent selected its own value and read another agent's\n\
         lost:     a write was acknowledged, and its value is missing\n\
         refused:  a command failed because another one was at work\n\
         with Sessile: all of these, in a session for each agent\n",
        args.agents,
        table.render_wrapped(&cx.out)
    )
}

fn of(count: usize, total: usize) -> String {
    if total == 0 { "-".to_owned() } else { format!("{count} of {total}") }
}
