//! Who holds a lock of a service: one line there, and what commands show of it here.

use serde_json::{Value, json};
use sessile::lock::LockHolder;
use sessile::process::ProcessId;
use sessile::text::shortened;

/// What a service takes.
const LONGEST: usize = 128;

/// In one line: `ann@laptop pid 17: lock run`.
pub(super) fn line(holder: &LockHolder) -> String {
    shortened(&format!("{}: {}", holder.short(), holder.purpose), LONGEST - 8)
}

/// A holder from such a line; one that calls itself otherwise is a user of that name.
pub(super) fn of_line(line: &str) -> LockHolder {
    parsed(line).unwrap_or_else(|| LockHolder {
        user: line.to_owned(),
        host: String::new(),
        process: None,
        session: None,
        purpose: String::new(),
    })
}

/// A holder as programs see it. Of its process only the number went there.
pub(super) fn shown(holder: &LockHolder) -> Value {
    let mut json = json!(holder);
    if holder.process.is_some() {
        (json["process"]["started"], json["process"]["boot"]) = (Value::Null, Value::Null);
    }
    json
}

fn parsed(line: &str) -> Option<LockHolder> {
    let (who, purpose) = line.rsplit_once(": ")?;
    let (who, session) = match who.split_once(" in session ") {
        Some((who, session)) => (who, Some(session.to_owned())),
        None => (who, None),
    };
    let (place, pid) = match who.split_once(" pid ") {
        Some((place, pid)) => (place, Some(pid.parse().ok()?)),
        None => (who, None),
    };
    let (user, host) = place.split_once('@')?;
    let process = pid.map(|pid| ProcessId { pid, started: 0, boot: String::new() });
    Some(LockHolder {
        user: user.to_owned(),
        host: host.to_owned(),
        process,
        session,
        purpose: purpose.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_goes_there_and_comes_back() {
        let holder = LockHolder {
            user: "ann".into(),
            host: "laptop".into(),
            process: Some(ProcessId { pid: 17, started: 0, boot: String::new() }),
            session: Some("0199c1d2-7a52-7f31-8a52-6f1f2a9d3b10".into()),
            purpose: "lock run".into(),
        };
        assert_eq!(of_line(&line(&holder)), holder);
        let plain = LockHolder { process: None, session: None, ..holder };
        assert_eq!(of_line(&line(&plain)), plain);
        assert_eq!(of_line("somebody").user, "somebody");
        assert_eq!(of_line("a@b pid x: y").user, "a@b pid x: y");
    }
}
