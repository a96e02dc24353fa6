//! Asking another program: one question on its standard input, one answer on its standard output.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

use crate::world::World;

/// Poll interval for the end of a program that has answered.
const PAUSE: Duration = Duration::from_millis(2);

/// The longest answer.
const LIMIT: u64 = 1024 * 1024;

/// Reply of a helper program.
pub(crate) struct HelperReply {
    pub(crate) succeeded: bool,
    pub(crate) status: String,
    pub(crate) output: Zeroizing<Vec<u8>>,
}

/// Runs a program in the caller's world and waits for its response. Standard error is ignored, because it may contain
/// anything.
pub(crate) fn ask(
    world: &World,
    command: &[String],
    question: Option<&str>,
    limit: Duration,
) -> Result<HelperReply, String> {
    let [program, args @ ..] = command else { return Err("no command".into()) };
    let mut child = Command::new(program);
    // The injected world, not this process's: a server or a test may have another.
    child.args(args).env_clear().envs(world.variables());
    if let Some(cwd) = world.cwd() {
        child.current_dir(cwd);
    }
    // Standard input belongs to the caller, and may be data for the command.
    child.stdin(if question.is_some() { Stdio::piped() } else { Stdio::null() });
    // A person who watches is told what it says; elsewhere it could end up in a log.
    let stderr = if world.streams().stderr { Stdio::inherit() } else { Stdio::null() };
    child.stdout(Stdio::piped()).stderr(stderr);
    let begun = Instant::now();
    let mut child = child.spawn().map_err(|error| format!("cannot start: {error}"))?;
    let question = question.map(|question| Zeroizing::new(question.to_owned()));
    let (mut stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let (sender, receiver) = mpsc::channel();
    // Writing and reading in parallel: a program that answers before it reads all would deadlock otherwise.
    let writer = std::thread::Builder::new().spawn(move || {
        if let (Some(stdin), Some(question)) = (stdin.as_mut(), question) {
            // One that does not listen may still answer.
            let _ = stdin.write_all(question.as_bytes());
        }
        drop(stdin);
    });
    let reader = std::thread::Builder::new().spawn(move || {
        let mut output = Zeroizing::new(Vec::new());
        // One byte more than allowed tells a full answer from one that is too long.
        let read = stdout.map(|stdout| stdout.take(LIMIT + 1).read_to_end(&mut output));
        sender.send(read.transpose().map(|_| output))
    });
    // Threads can be refused by a process limit, and the child must not be left behind.
    if let Err(error) = writer.and(reader) {
        let _ = child.kill();
        let _ = child.wait();
        return Err(format!("cannot start a thread: {error}"));
    }
    let Ok(output) = receiver.recv_timeout(limit) else {
        let _ = child.kill();
        let _ = child.wait();
        return Err(format!("timed out after {}", crate::duration::short(limit)));
    };
    let output = output.map_err(|error| format!("cannot read the output: {error}"))?;
    if output.len() as u64 > LIMIT {
        let _ = child.kill();
        let _ = child.wait();
        return Err(format!("the output is longer than {LIMIT} bytes"));
    }
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begun.elapsed() < limit => std::thread::sleep(PAUSE),
            // It has said what it had to say, and goes on for whatever reason.
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("still running after {}", crate::duration::short(limit)));
            }
            Err(error) => return Err(format!("cannot wait for the process: {error}")),
        }
    };
    Ok(HelperReply { succeeded: status.success(), status: status.to_string(), output })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, question: Option<&str>, limit: Duration) -> Result<HelperReply, String> {
        let world = World::empty().with_variable("PATH", "/usr/bin:/bin");
        ask(&world, &["/bin/sh".into(), "-c".into(), script.into()], question, limit)
    }

    #[test]
    fn program_gets_a_request_and_responds() {
        let minute = Duration::from_secs(60);
        let answer = run("read x; echo \"<$x>\"", Some("hello\n"), minute).unwrap();
        assert_eq!((answer.succeeded, answer.output.as_slice()), (true, b"<hello>\n".as_slice()));
        assert!(!run("exit 3", Some("not read"), minute).unwrap().succeeded);
    }

    #[test]
    fn silent_or_endless_program_is_killed() {
        assert!(run("sleep 100", None, Duration::from_millis(100)).is_err());
        assert!(run("yes", None, Duration::from_secs(60)).is_err());
        assert!(run("echo x; exec >&-; sleep 100", None, Duration::from_millis(200)).is_err());
        let world = World::empty();
        assert!(ask(&world, &["/no/such/program".into()], None, Duration::from_secs(1)).is_err());
        assert!(ask(&world, &[], None, Duration::from_secs(1)).is_err());
    }
}
