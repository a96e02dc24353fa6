//! Reports of probes, for programs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use sessile::exit;

use super::detection::Detection;
use super::judge::{Assessment, Judgement, ProbeFinding, judge};
use super::ledger::Ledger;
use super::run::{Round, Run, SessionCleanup, StopReason};
use super::service::FailureKind;

/// Limit of reported pairs of users, and of findings per kind.
const MOST: usize = 1000;

/// Subject of a probe.
pub(crate) struct ProbeSubject {
    pub(crate) url: String,
    pub(crate) protocol: &'static str,
    pub(crate) seed: Option<u64>,
}

/// Report of a probe.
pub(crate) struct ProbeReport {
    pub(super) about: ProbeSubject,
    pub(super) ledger: Ledger,
    pub(super) judgement: Judgement,
    /// Whether it came to its end.
    pub(super) is_complete: bool,
    pub(super) users: u32,
    pub(super) turns: u32,
    /// Most requests in flight of any round that was mostly answered.
    pub(super) concurrency: u32,
    pub(super) rounds: Vec<Round>,
    pub(super) stop: Option<StopReason>,
    pub(super) elapsed: Duration,
    names: String,
    /// Sessions at the service that had to be ended.
    sessions: Option<SessionCleanup>,
}

/// Verdict of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeVerdict {
    /// No problem found.
    Clean,
    /// Users are mixed up.
    MixedUp,
    /// Too little was answered to say so.
    Inconclusive,
}

impl ProbeReport {
    /// Judges a run as far as it came.
    pub(crate) fn new(
        about: ProbeSubject,
        run: &Run,
        is_complete: bool,
        sessions: Option<SessionCleanup>,
    ) -> Self {
        let (plan, ledger, rounds) = (run.plan(), run.ledger(), run.rounds().to_vec());
        let conclusive = rounds.iter().filter(|round| round.is_conclusive());
        let concurrency = conclusive.map(|round| round.concurrency).max();
        let first = plan.rounds.first().map_or(plan.concurrency, |users| plan.concurrency.min(*users));
        let users = rounds.iter().map(|round| round.users).sum();
        ProbeReport {
            judgement: judge(&ledger.replies, &ledger.histories, plan.turns),
            about,
            ledger,
            is_complete,
            users,
            turns: plan.turns,
            concurrency: concurrency.unwrap_or(first),
            rounds,
            stop: run.stop().cloned(),
            elapsed: run.talked(),
            names: format!("probe-{}-N", plan.canaries.run),
            sessions,
        }
    }

    pub(super) fn verdict(&self) -> ProbeVerdict {
        match () {
            // First: one leak is proof, however little was answered.
            () if self.ledger.leak_count() > 0 || self.judgement.is_bad() => ProbeVerdict::MixedUp,
            () if self.is_too_little() => ProbeVerdict::Inconclusive,
            () => ProbeVerdict::Clean,
        }
    }

    /// Whether less than half of every round was answered, or only one user had an answer.
    fn is_too_little(&self) -> bool {
        let users: BTreeSet<u32> = self.ledger.replies.iter().map(|reply| reply.user).collect();
        // One user alone has nobody to be mixed up with.
        users.len() < 2 || !self.rounds.iter().any(Round::is_conclusive)
    }

    /// Detection probability. `None` if no reply holds a code word, because a leak would hardly show.
    pub(super) fn detection(&self) -> Option<Detection> {
        let replies = &self.ledger.replies;
        let is_repeated = replies.iter().any(|reply| !reply.own.is_empty());
        is_repeated.then(|| Detection { replies: u32::try_from(replies.len()).unwrap_or(u32::MAX) })
    }

    /// Reasons of missing replies, the most frequent first.
    pub(super) fn reasons(&self) -> Vec<(&FailureKind, u64)> {
        sorted(&self.ledger.failed)
    }

    /// The exit status.
    pub(crate) fn exit(&self) -> u8 {
        let is_late = || matches!(self.reasons().first(), Some((FailureKind::TimedOut, _)));
        match self.verdict() {
            // As of a program that the signal ended.
            _ if !self.is_complete => 130,
            ProbeVerdict::Clean => exit::DONE,
            ProbeVerdict::MixedUp => exit::FAILED,
            ProbeVerdict::Inconclusive if is_late() => exit::TIMED_OUT,
            ProbeVerdict::Inconclusive => exit::UNREACHABLE,
        }
    }

    /// The latency that so many percent of the replies did not exceed.
    pub(super) fn latency(&self, percent: usize) -> Option<Duration> {
        let mut all = self.ledger.latencies.clone();
        all.sort_unstable();
        // The nearest rank, so that it is a latency that occurred.
        let at = (all.len() * percent).div_ceil(100).checked_sub(1)?;
        all.get(at).copied()
    }

    /// Replies in a second.
    pub(super) fn throughput(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { count(self.ledger.replies.len()) / seconds } else { 0.0 }
    }

    /// Caveats of the verdict.
    pub(super) fn notes(&self) -> Vec<String> {
        let (ledger, mut notes) = (&self.ledger, Vec::new());
        if !ledger.replies.is_empty() && ledger.replies.iter().all(|reply| reply.own.is_empty()) {
            notes.push(
                "no reply contains a code word, so leaks cannot be detected; check which part of the response is read"
                    .to_owned(),
            );
        }
        notes.extend(self.stop_note());
        let judged = self.judgement.judged_replies;
        if self.judgement.replies.is_ok() && judged < ledger.replies.len() {
            let silent = ledger.replies.len() - judged;
            notes.push(format!(
                "{silent} replies without any code word of their user were not judged for order and loss"
            ));
        }
        if let Some((reason, _)) = sorted(&ledger.unread_histories).first() {
            let unread: u64 = ledger.unread_histories.values().sum();
            notes.push(format!("{unread} stored histories could not be read: {reason}"));
        }
        if let Some(SessionCleanup { started, ended, is_kept, why_not }) = &self.sessions {
            let why = || why_not.as_ref().map_or_else(|| "no time left".to_owned(), FailureKind::to_string);
            match started - ended {
                0 => {}
                kept if *is_kept => {
                    notes.push(format!("kept {kept} sessions with the label probe={}", self.names));
                }
                left => notes.push(format!("could not stop {left} of {started} sessions: {}", why())),
            }
        }
        notes
    }

    /// Reason why a planned larger round did not run.
    fn stop_note(&self) -> Option<String> {
        let Round { users, answered, failed, .. } = self.rounds.last()?;
        Some(match self.stop.as_ref()? {
            StopReason::MaxTime => {
                format!("reached --max-time at {users} concurrent users")
            }
            StopReason::Failures => {
                let all = answered + failed;
                format!("stopped at {users} concurrent users: {failed} of {all} requests failed")
            }
            StopReason::Threads(why) => format!("stopped at {users} concurrent users: cannot start {why}"),
            StopReason::MixedUp => return None,
        })
    }

    /// All of it.
    pub(crate) fn json(&self) -> Value {
        let ProbeReport { about, ledger, judgement, .. } = self;
        let verdict = match self.verdict() {
            ProbeVerdict::Clean => "clean",
            ProbeVerdict::MixedUp => "mixed_up",
            ProbeVerdict::Inconclusive => "inconclusive",
        };
        let mut pairs: Vec<_> = ledger.pairs.iter().collect();
        if pairs.len() > MOST {
            pairs.sort_by_key(|(_, count)| Reverse(**count));
            pairs.truncate(MOST);
        }
        let pair =
            |((from, to), count): (&(u32, u32), &u64)| json!({ "from": from, "to": to, "count": count });
        let pairs: Vec<Value> = pairs.into_iter().map(pair).collect();
        let reasons = |list: &BTreeMap<FailureKind, u64>| {
            let told =
                |(kind, count): (&FailureKind, u64)| json!({ "reason": kind.to_string(), "count": count });
            sorted(list).into_iter().map(told).collect::<Vec<_>>()
        };
        let wrong = |list: &[ProbeFinding]| {
            json!({
                "judged": judgement.replies.is_ok() || judgement.histories.is_ok(),
                "count": list.len(),
                "found": &list[..list.len().min(MOST)],
            })
        };
        let judged = |judged: &Assessment, count: usize| json!({ "judged": judged.is_ok(), "why_not": judged.as_ref().err(), "count": count });
        let ms = |time: Option<Duration>| time.map(|time| (time.as_secs_f64() * 1e6).round() / 1e3);
        json!({
            "url": about.url,
            "protocol": about.protocol,
            "verdict": verdict,
            "interrupted": !self.is_complete,
            "users": self.users,
            "turns": self.turns,
            "concurrency": self.concurrency,
            "rounds": self.rounds,
            "stopped_by": self.stop.as_ref().map(|stop| match stop {
                StopReason::MaxTime => "max_time",
                StopReason::Failures => "failures",
                StopReason::Threads(_) => "threads",
                StopReason::MixedUp => "mixed_up",
            }),
            "detection": self.detection().map(Detection::json),
            "seed": about.seed,
            "user_names": self.names,
            "answered": ledger.replies.len(),
            "failed": { "count": ledger.failures(), "reasons": reasons(&ledger.failed) },
            "leaks": {
                "count": ledger.leak_count(),
                "places": ledger.places.iter().map(|(place, count)| json!({ "where": place, "count": count })).collect::<Vec<_>>(),
                "pair_count": ledger.pairs.len(),
                "pairs": pairs,
                "found": ledger.leaks,
            },
            "order": wrong(&judgement.order),
            "lost": wrong(&judgement.lost),
            "doubled": wrong(&judgement.doubled),
            "replies": judged(&judgement.replies, ledger.replies.len()),
            "histories": judged(&judgement.histories, ledger.histories.len()),
            "unread_histories": reasons(&ledger.unread_histories),
            "sessions": self.sessions.as_ref().map(|sessions| json!({ "started": sessions.started, "ended": sessions.ended })),
            "latency_ms": { "p50": ms(self.latency(50)), "p99": ms(self.latency(99)), "max": ms(self.latency(100)) },
            "throughput_per_s": (self.throughput() * 10.0).round() / 10.0,
            "duration_ms": ms(Some(self.elapsed)),
            "notes": self.notes(),
        })
    }
}

pub(super) fn sorted(reasons: &BTreeMap<FailureKind, u64>) -> Vec<(&FailureKind, u64)> {
    let mut sorted: Vec<_> = reasons.iter().map(|(kind, count)| (kind, *count)).collect();
    sorted.sort_by_key(|(_, count)| Reverse(*count));
    sorted
}

fn count(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::MAX, f64::from)
}
