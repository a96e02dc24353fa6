//! Times commands in turn: every round runs each of them once, so that a busy machine slows all of them alike. Prints a Markdown
//! table with the median of each and its ratio to the first.
//!
//!     rustc -O -o interleave benches/interleave.rs
//!     interleave ROUNDS COMMAND...       a command is one argument, split at blanks
//!
//! Standard input, output and error of the commands are `/dev/null`. A command that fails ends the measurement.

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Rounds that are not counted.
const WARM_UP: usize = 20;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let Some(rounds) = args.next().and_then(|rounds| rounds.parse::<usize>().ok()) else {
        eprintln!("interleave: usage: interleave ROUNDS COMMAND...");
        return ExitCode::from(2);
    };
    let commands: Vec<String> = args.collect();
    let mut times: Vec<Vec<Duration>> = vec![Vec::with_capacity(rounds); commands.len()];
    for round in 0..WARM_UP + rounds {
        for (command, times) in commands.iter().zip(&mut times) {
            let mut words = command.split_whitespace();
            let mut process = Command::new(words.next().unwrap_or_default());
            process.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let begun = Instant::now();
            let status = process.status();
            let time = begun.elapsed();
            if !status.as_ref().is_ok_and(|status| status.success()) {
                eprintln!("interleave: {command}: {status:?}");
                return ExitCode::FAILURE;
            }
            if round >= WARM_UP {
                times.push(time);
            }
        }
    }
    println!("| Command | Median [ms] | Best [ms] | Ratio |\n|:---|---:|---:|---:|");
    let mut first = None;
    for (command, mut times) in commands.into_iter().zip(times) {
        times.sort();
        let median = times[times.len() / 2].as_secs_f64();
        let first = *first.get_or_insert(median);
        println!("| `{command}` | {:.2} | {:.2} | {:.2} |", median * 1e3, times[0].as_secs_f64() * 1e3, median / first);
    }
    ExitCode::SUCCESS
}
