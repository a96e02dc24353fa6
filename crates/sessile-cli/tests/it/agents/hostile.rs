//! Agents that mean harm: a clear error with its own code, in time and in little memory, and nothing of theirs acts on the
//! terminal or outside the directory that was named.

mod escapes;
mod files;

use std::time::{Duration, Instant};

use testkit::{
    AgentOptions, Call, CallResult, Home, Misbehaviour, MisbehaviourPoint, Protocol, ScriptedAgent,
};

use super::{agent, last};
use crate::home;

/// Kilobytes of address space, in which all that a call needs must have its place.
const MEMORY: &str = "307200";

/// A call that has so much memory and no more.
fn in_little_memory(home: &Home, args: &[&str]) -> Call {
    let script = format!("ulimit -v {MEMORY} && exec \"$0\" \"$@\"");
    home.tool("bash", &["-c", &script]).arg(home.program()).args(args)
}

/// The call printed nothing that could act on a terminal.
#[track_caller]
fn clean(done: CallResult) -> CallResult {
    for text in [done.stdout(), done.stderr()] {
        let acts = |c: &char| c.is_control() && !"\n\t".contains(*c) || ('\u{202a}'..='\u{202e}').contains(c);
        assert_eq!(text.chars().find(acts), None, "{:?}", done.told());
    }
    done
}

/// What comes of a message to an agent that misbehaves, with text and with JSON: the same status, and this code.
#[track_caller]
fn refused(place: MisbehaviourPoint, how: &Misbehaviour, flags: &[&str], exit: i32, code: &str) {
    for word in ["send", "stream"] {
        let (home, agent) = (home(), agent());
        agent.misbehave(place, Some(how.clone()));
        let args = ["message", word, agent.url(), "echo hi", "--session", "work"];
        let begun = Instant::now();
        let text = clean(in_little_memory(&home, &args).args(flags).run().exit(exit));
        assert!(text.stderr().contains("error: "), "{place:?} {how:?}\n{}", text.told());
        let json = clean(in_little_memory(&home, &args).args(flags).arg("-ojson").run().exit(exit));
        assert_eq!(json.code(), code, "{place:?} {how:?} {word}\n{}", json.told());
        assert!(begun.elapsed() < Duration::from_secs(30), "{how:?} took {:?}", begun.elapsed());
        // It is none the worse for it.
        agent.misbehave(place, None);
        home.call(&args).ok();
    }
}

#[test]
fn gigabyte_response_uses_bounded_memory() {
    for place in [MisbehaviourPoint::Card, MisbehaviourPoint::Calls] {
        refused(place, &Misbehaviour::HugeReply(1 << 30), &[], 1, "AGENT_UNUSABLE");
    }
}

#[test]
fn invalid_response_is_reported() {
    for how in [Misbehaviour::InvalidJson, Misbehaviour::DeepJson(100_000), Misbehaviour::OtherJson] {
        for place in [MisbehaviourPoint::Card, MisbehaviourPoint::Calls] {
            refused(place, &how, &[], 1, "AGENT_UNUSABLE");
        }
    }
}

#[test]
fn embedded_documents_are_refused() {
    let how = Misbehaviour::Json(testkit::embedded_documents(16));
    for place in [MisbehaviourPoint::Card, MisbehaviourPoint::Calls] {
        refused(place, &how, &[], 1, "AGENT_UNUSABLE");
        let (home, agent) = (home(), agent());
        agent.misbehave(place, Some(how.clone()));
        let done = home.call(&["message", "send", agent.url(), "echo hi", "--session", "work"]).run().exit(1);
        assert!(done.stderr().contains("is reserved"), "{}", done.told());
    }
}

#[test]
fn http_status_maps_to_error_code() {
    for place in [MisbehaviourPoint::Card, MisbehaviourPoint::Calls] {
        refused(place, &Misbehaviour::Status(500), &[], 12, "UNREACHABLE");
        refused(place, &Misbehaviour::Status(429), &[], 11, "RATE_LIMITED");
        refused(place, &Misbehaviour::HangUp, &[], 12, "UNREACHABLE");
    }
    refused(MisbehaviourPoint::Card, &Misbehaviour::Status(404), &[], 1, "AGENT_UNUSABLE");
    refused(MisbehaviourPoint::Calls, &Misbehaviour::Status(404), &[], 1, "AGENT_REFUSED");
}

#[test]
fn slow_agent_times_out() {
    let drop = Duration::from_millis(100);
    for how in [Misbehaviour::SlowHead(drop), Misbehaviour::SlowBody(drop), Misbehaviour::Silence] {
        for place in [MisbehaviourPoint::Card, MisbehaviourPoint::Calls] {
            refused(place, &how, &["--timeout", "1s"], 10, "TIMED_OUT");
        }
    }
}

#[test]
fn endless_stream_is_cut() {
    let (home, agent) = (home(), agent());
    agent.misbehave(MisbehaviourPoint::Calls, Some(Misbehaviour::Endless));
    for word in ["send", "stream"] {
        let begun = Instant::now();
        let args = ["message", word, agent.url(), "hi", "--session", "work", "--timeout", "2s", "-ojson"];
        let done = clean(in_little_memory(&home, &args).run());
        // What has no end is too large, or takes too long, whichever comes first.
        let expected = [(Some(10), "TIMED_OUT"), (Some(1), "AGENT_UNUSABLE")];
        assert!(expected.contains(&(done.status(), done.code().as_str())), "{}", done.told());
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    }
    // What was said until then is remembered.
    let found = last(&home);
    assert_eq!((found["context_id"].as_str(), found["task_id"].as_str()), (Some("endless"), Some("endless")));
}

#[test]
fn redirect_loop_is_refused() {
    for place in [MisbehaviourPoint::Card, MisbehaviourPoint::Calls] {
        refused(place, &Misbehaviour::RedirectForever, &[], 1, "AGENT_UNUSABLE");
    }
    let (home, agent) = (home(), agent());
    agent.misbehave(MisbehaviourPoint::Calls, Some(Misbehaviour::RedirectForever));
    home.call(&["message", "send", agent.url(), "hi"]).run().exit(1);
    assert!(agent.seen().len() < 30, "{}", agent.seen().len());
}

#[test]
fn redirect_or_card_sends_no_credential_to_another_origin() {
    const SECRET: &str = "s3cret-of-the-first";
    let other = agent();
    let bait = AgentOptions { card_origin: Some(other.url().to_owned()), ..AgentOptions::of(Protocol::V1) };
    let lure = ScriptedAgent::start(bait);
    let first = agent();
    for (agent, place) in
        [(&first, Some(MisbehaviourPoint::Card)), (&first, Some(MisbehaviourPoint::Calls)), (&lure, None)]
    {
        for word in ["send", "stream"] {
            let home = home();
            home.call(&["auth", "set", "--url", agent.url(), "--bearer-token-stdin"]).stdin(SECRET).ok();
            if let Some(place) = place {
                let to = match place {
                    MisbehaviourPoint::Card => format!("{}/.well-known/agent-card.json", other.url()),
                    MisbehaviourPoint::Calls => format!("{}/rpc", other.url()),
                };
                agent.misbehave(place, Some(Misbehaviour::Redirect(to)));
            }
            let said = format!("a text for {place:?} {word}");
            let done = clean(home.call(&["message", word, agent.url(), &said, "-ojson"]).run());
            assert!(agent.heard(SECRET), "the credential reaches its own agent");
            assert!(!other.heard(SECRET), "{}", done.told());
            if place == Some(MisbehaviourPoint::Calls) {
                assert_eq!((done.status(), done.code().as_str()), (Some(1), "AGENT_UNUSABLE"));
                assert!(!other.heard(&said), "the message is not forwarded");
            }
            if let Some(place) = place {
                agent.misbehave(place, None);
            }
        }
    }
}
