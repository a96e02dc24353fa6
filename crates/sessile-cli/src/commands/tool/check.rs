//! `sessile tool check`: is the profile true on this machine?

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};
use sessile::error::FileError;
use sessile::exit;
use sessile::tool::{Isolation, Profile, Race};

use super::file_snapshot::FileSnapshot;
use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::output::{Table, Tone};
use crate::temporary_home::TemporaryHome;

/// Check on this machine that tools are isolated
///
/// In a temporary home, the real tool switches its state in two sessions and reads it back in each. Then Sessile
/// compares all files in that home, the working directory and the temporary directory with their state before, and
/// reports every byte written outside of the sessions' rooms. Your own files are not touched. The exit status is 1 if
/// a tool is not isolated as its profile declares, and 4 if the tool is not installed or has no check.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile tool check" "sessile tool check kubectl" "sessile tool check git --output json"))]
pub struct Args {
    /// Names of the tools; default: all installed ones
    #[arg(value_name = "TOOL")]
    names: Vec<String>,
}

/// Result of a check.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Isolated,
    Shared,
    Leaks,
    Unproven,
    NotHere,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Verdict::Isolated => "isolated",
            Verdict::Shared => "shared, as the profile declares",
            Verdict::Leaks => "NOT ISOLATED",
            Verdict::Unproven => "not proven",
            Verdict::NotHere => "not installed",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Verdict::Isolated => Tone::Good,
            Verdict::Leaks => Tone::Bad,
            Verdict::Shared | Verdict::Unproven | Verdict::NotHere => Tone::Faint,
        }
    }
}

struct ToolCheckResult {
    tool: String,
    verdict: Verdict,
    /// Findings.
    findings: Vec<String>,
    /// Files written outside the session.
    elsewhere: Vec<StrayFile>,
}

/// A file that a tool changed outside the rooms.
#[derive(Serialize)]
struct StrayFile {
    path: String,
    what: &'static str,
    bytes: usize,
    /// Whether the profile declares it.
    declared: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let profiles: Vec<Profile> = if args.names.is_empty() {
        let all = cx.state.tools().list()?.into_iter().map(|(profile, _)| profile);
        let place = TemporaryHome::new(cx.state.world())?;
        all.filter(|profile| place.has_program(profile.program())).collect()
    } else {
        let get = |name: &String| cx.state.tools().get(name).map(|(profile, _)| profile);
        args.names.iter().map(get).collect::<Result<_, _>>()?
    };
    let program = std::env::current_exe().map_err(|source| FileError::Io {
        action: "find",
        path: PathBuf::from("/proc/self/exe"),
        source,
    })?;
    let mut all = Vec::new();
    for profile in profiles {
        cx.out.note(&format!("{} ...", profile.name));
        let _step = cx.out.slow_step(|| format!("checking {}", profile.name));
        all.push(check(&profile, cx, &program)?);
    }
    let items: Vec<Value> = all
        .iter()
        .map(|one| {
            json!({
                "tool": one.tool,
                "verdict": one.verdict.word(),
                "isolated": one.verdict == Verdict::Isolated,
                "findings": one.findings,
                "elsewhere": one.elsewhere,
            })
        })
        .collect();
    cx.out.list(&items, || text(&all, cx))?;
    let is = |verdict| all.iter().any(|one| one.verdict == verdict);
    match () {
        () if is(Verdict::Leaks) => Err(Failure::Told(exit::FAILED)),
        () if !args.names.is_empty() && (is(Verdict::NotHere) || is(Verdict::Unproven)) => {
            Err(Failure::Told(exit::PRECONDITION))
        }
        () => Ok(()),
    }
}

fn text(all: &[ToolCheckResult], cx: &Cx) -> String {
    let mut table = Table::new(&["TOOL", "VERDICT", "FOUND"]);
    for one in all {
        let mut findings = one.findings.clone();
        findings.extend(one.elsewhere.iter().map(|found| {
            let declared = if found.declared { ", as the profile declares" } else { "" };
            format!("{} {} ({} bytes{declared})", found.what, found.path, found.bytes)
        }));
        let first = findings.first().cloned().unwrap_or_default();
        table.row(&[&one.tool, one.verdict.word(), &first], Some(one.verdict.tone()));
        for finding in findings.iter().skip(1) {
            table.row(&["", "", finding], Some(one.verdict.tone()));
        }
    }
    table.render_wrapped(&cx.out)
}

fn check(profile: &Profile, cx: &Cx, program: &Path) -> Result<ToolCheckResult, Failure> {
    let place = TemporaryHome::new(cx.state.world())?;
    let mut checked = ToolCheckResult {
        tool: profile.name.clone(),
        verdict: Verdict::Isolated,
        findings: Vec::new(),
        elsewhere: Vec::new(),
    };
    if !place.has_program(profile.program()) {
        checked.verdict = Verdict::NotHere;
        checked.findings.push(format!("{} not found in PATH", profile.program()));
    } else if profile.env_level == Isolation::None {
        checked.verdict = Verdict::Shared;
        checked.findings.extend(profile.not_isolated.iter().cloned());
    } else if let Some(race) = &profile.race {
        place.take_profiles(cx.state.dirs().config().ok())?;
        prove(profile, race, &place, program, &mut checked);
    } else {
        checked.verdict = Verdict::Unproven;
        checked.findings.push(
            "the profile has no command that changes the tool's state and reads it back without the network"
                .to_owned(),
        );
    }
    Ok(checked)
}

/// Runs two agents, each in its own session.
fn prove(
    profile: &Profile,
    race: &Race,
    place: &TemporaryHome,
    program: &Path,
    checked: &mut ToolCheckResult,
) {
    let fill = |words: &[String], agent: &str| -> Vec<String> {
        words.iter().map(|word| word.replace("{agent}", agent).replace("{round}", "0")).collect()
    };
    let inside = |agent: &str, words: &[String]| -> Vec<String> {
        let mut runner = vec![program.to_string_lossy().into_owned()];
        runner.extend(["run", "--session", &format!("check-{agent}")].map(str::to_owned));
        // Such a tool stays shared unless it is asked for.
        if profile.on_request {
            runner.extend(["--tool".to_owned(), profile.name.clone()]);
        }
        runner.push("--".to_owned());
        runner.extend(fill(words, agent));
        runner
    };
    let agents = ["1", "2"];
    for agent in agents {
        for command in &race.seed {
            let words = fill(command, agent);
            if place.run(&words).is_none() {
                // No session took part yet, so nothing can have left one.
                checked.verdict = Verdict::Unproven;
                checked.findings.push(format!("`{}` failed outside any session", words.join(" ")));
                return;
            }
        }
    }
    // Tools write into the rooms.
    let own = [".local/state/sessile", ".config/sessile", ".cache/sessile"].map(|dir| place.home().join(dir));
    let probe_bare = || place.run(&fill(&race.probe, "0")).map(|text| text.trim().to_owned());
    // Before the snapshot: a tool may write a cache when it is first asked.
    let bare = probe_bare();
    let before = FileSnapshot::take(place.home(), &own);
    let mut wrong = Vec::new();
    for agent in agents {
        if place.run(&inside(agent, &race.switch)).is_none() {
            wrong.push(format!("session {agent}: `{}` failed", fill(&race.switch, agent).join(" ")));
        }
    }
    for agent in agents {
        // Only after both have switched: shared state shows when the second overwrites the first.
        let wanted = race.expect.replace("{agent}", agent);
        let seen = place.run(&inside(agent, &race.probe)).map(|text| text.trim().to_owned());
        if seen.as_deref() != Some(wanted.as_str()) {
            let seen = seen.unwrap_or_else(|| "nothing".to_owned());
            wrong.push(format!("session {agent} selected {wanted:?} but read {seen:?}"));
        }
    }
    let mut leaks = false;
    for difference in before.differences(&own).into_iter().filter(|found| !is_socket_dir(&found.path)) {
        let path = format!("~/{}", difference.path.display());
        let declared = race.declared.iter().any(|declared| {
            let declared = declared.trim_end_matches('/');
            path == declared || path.starts_with(&format!("{declared}/"))
        });
        leaks |= !declared;
        let (what, bytes) = (difference.what, difference.bytes);
        checked.elsewhere.push(StrayFile { path, what, bytes, declared });
    }
    if probe_bare() != bare {
        wrong.push("the selection outside the sessions changed".to_owned());
    }
    for agent in agents {
        let stop = ["session", "stop", &format!("check-{agent}")].map(str::to_owned);
        let words: Vec<String> =
            std::iter::once(program.to_string_lossy().into_owned()).chain(stop).collect();
        // Best effort: the home is thrown away with the sessions in it.
        let _ = place.run(&words);
    }
    if leaks || !wrong.is_empty() {
        checked.verdict = Verdict::Leaks;
    }
    checked.findings.extend(wrong);
    if checked.verdict == Verdict::Isolated {
        checked
            .findings
            .push(format!("{}: two sessions kept two values, and the home is unchanged", race.state));
    }
}

/// Whether a path is in a directory of a session's sockets, which is private although it is not in the room.
fn is_socket_dir(path: &Path) -> bool {
    let mut parts = path.iter().map(|part| part.to_string_lossy());
    parts.next().is_some_and(|first| first == "tmp")
        && parts.next().is_some_and(|name| name.starts_with("sessile-"))
}
