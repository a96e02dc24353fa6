//! Holder of a lock of a service: one line of text there, a lock holder here.

use sessile::lock::LockHolder;
use sessile::process::ProcessId;
use sessile::text::shortened;
use sessile_wire::service::limits::MAX_HOLDER;

/// Holder in one line, as a service stores it: `ann@laptop pid 17: lock run`.
pub(super) fn holder_line(holder: &LockHolder) -> String {
    shortened(&format!("{}: {}", holder.short(), holder.purpose), MAX_HOLDER - 8)
}

/// Holder in such a line. Any other text is taken for the name of a user.
pub(crate) fn parse_holder(line: &str) -> LockHolder {
    parsed(line).unwrap_or_else(|| LockHolder {
        user: line.to_owned(),
        host: String::new(),
        process: None,
        session: None,
        purpose: String::new(),
    })
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
    fn holder_line_round_trips() {
        let holder = LockHolder {
            user: "ann".into(),
            host: "laptop".into(),
            process: Some(ProcessId { pid: 17, started: 0, boot: String::new() }),
            session: Some("0199c1d2-7a52-7f31-8a52-6f1f2a9d3b10".into()),
            purpose: "lock run".into(),
        };
        assert_eq!(parse_holder(&holder_line(&holder)), holder);
        let plain = LockHolder { process: None, session: None, ..holder };
        assert_eq!(parse_holder(&holder_line(&plain)), plain);
        assert_eq!(parse_holder("somebody").user, "somebody");
        assert_eq!(parse_holder("a@b pid x: y").user, "a@b pid x: y");
    }
}
