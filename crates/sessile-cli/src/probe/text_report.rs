//! Reports of probes, for people.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use sessile::text::quoted;

use super::judge::{Assessment, ProbeFinding};
use super::ledger::{Leak, LeakPlace};
use super::report::{ProbeReport, ProbeVerdict};
use crate::output::{Output, Table, Tone};

/// The most columns of the matrix, and the most lines of a list.
const WIDEST: usize = 16;
const LONGEST: usize = 8;

/// Text of a finding.
type FindingText = fn(&ProbeFinding) -> String;

impl ProbeReport {
    /// All that people want to know first.
    pub(crate) fn text(&self, out: &Output) -> String {
        let (ledger, judgement) = (&self.ledger, &self.judgement);
        let ms = |percent| self.latency(percent).map_or_else(|| "-".to_owned(), short);
        let fewest = self.rounds.iter().map(|round| round.concurrency).min();
        let at_once = match fewest.filter(|fewest| *fewest < self.concurrency) {
            Some(fewest) => format!("{fewest} to {}", self.concurrency),
            None => self.concurrency.to_string(),
        };
        let mut text = format!(
            "{}, {}: {} users with {} turns each, {at_once} at once\n{} replies in {}: {:.0} per second, p50 {}, p99 {}\n\n",
            sessile::text::shown(&self.about.url),
            self.about.protocol,
            self.users,
            self.turns,
            ledger.replies.len(),
            short(self.elapsed),
            self.throughput(),
            ms(50),
            ms(99),
        );
        let mut table = Table::default();
        let leaks = ledger.leak_count();
        let tone = |is_bad: bool| is_bad.then_some(Tone::Bad);
        table.row(&["leaks".to_owned(), self.leaks()], tone(leaks > 0));
        for (name, list) in
            [("order", &judgement.order), ("lost", &judgement.lost), ("doubled", &judgement.doubled)]
        {
            table.row(&[name.to_owned(), self.found(name, list)], tone(!list.is_empty()));
        }
        let failures = ledger.failures();
        let reasons: Vec<String> =
            self.reasons().iter().take(3).map(|(kind, count)| format!("{kind} ({count})")).collect();
        let failed = match failures {
            0 => "none".to_owned(),
            _ => format!("{failures} of {}: {}", ledger.replies.len() as u64 + failures, reasons.join(", ")),
        };
        table.row(&["failed".to_owned(), failed], (failures > 0).then_some(Tone::Warning));
        text.push_str(&table.render(out));
        if leaks > 0 {
            self.matrix(out, &mut text);
        }
        self.examples(&mut text);
        for note in self.notes() {
            let _ = write!(text, "\nnote: {note}\n");
        }
        text.push('\n');
        text.push_str(&self.conclusion(out));
        text
    }

    fn leaks(&self) -> String {
        let ledger = &self.ledger;
        let places: Vec<String> =
            ledger.places.iter().map(|(place, count)| format!("{count} in {}", plural(*place))).collect();
        match ledger.pairs.len() {
            0 => "none".to_owned(),
            pairs => format!(
                "{} foreign code words between {pairs} pairs of users: {}",
                ledger.leak_count(),
                places.join(", ")
            ),
        }
    }

    /// Findings of one kind, and their basis.
    fn found(&self, name: &str, list: &[ProbeFinding]) -> String {
        let (replies, histories) = (&self.judgement.replies, &self.judgement.histories);
        let read = !self.ledger.histories.is_empty();
        let not = |judged: &Assessment| judged.as_ref().err().cloned().unwrap_or_default();
        match (replies, histories) {
            (Err(_), Err(_)) if read => format!("not judged: {}; {}", not(replies), not(histories)),
            (Err(_), Err(_)) => format!("not judged: {}", not(replies)),
            _ if !list.is_empty() => {
                let users: BTreeSet<u32> = list.iter().map(|wrong| wrong.user).collect();
                let what = if name == "order" { "exchanged pairs" } else { "turns" };
                format!("{} {what} of {} users", list.len(), users.len())
            }
            (Ok(()), Err(_)) if read => format!("none in replies; histories not judged: {}", not(histories)),
            (Ok(()), Err(_)) => "none".to_owned(),
            (Err(_), Ok(())) => format!("none in histories; replies not judged: {}", not(replies)),
            (Ok(()), Ok(())) => "none, in replies and histories".to_owned(),
        }
    }

    /// Matrix of leaks between users, if it fits; else the worst pairs.
    fn matrix(&self, out: &Output, text: &mut String) {
        let pairs = &self.ledger.pairs;
        let from: BTreeSet<u32> = pairs.keys().map(|(from, _)| *from).collect();
        let to: BTreeSet<u32> = pairs.keys().map(|(_, to)| *to).collect();
        if from.len() <= 2 * WIDEST && to.len() <= WIDEST {
            text.push_str("\nleaks from users (rows) to users (columns), by number\n");
            let headings: Vec<String> =
                [String::new()].into_iter().chain(to.iter().map(u32::to_string)).collect();
            let mut table = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>());
            for from in from {
                let cell = |to: &u32| pairs.get(&(from, *to)).map_or_else(|| ".".to_owned(), u64::to_string);
                let cells: Vec<String> = [from.to_string()].into_iter().chain(to.iter().map(cell)).collect();
                table.row(&cells, None);
            }
            text.push_str(&table.render(out));
            return;
        }
        let mut worst: Vec<_> = pairs.iter().collect();
        worst.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let _ = write!(text, "\nleaks between users, the worst of {} pairs\n", worst.len());
        let mut table = Table::new(&["FROM", "TO", "CODE WORDS"]);
        for ((from, to), count) in worst.into_iter().take(WIDEST) {
            table.row(&[from.to_string(), to.to_string(), count.to_string()], None);
        }
        text.push_str(&table.render(out));
    }

    fn examples(&self, text: &mut String) {
        let mut lines: Vec<String> = self.ledger.leaks.iter().take(LONGEST.min(3)).map(leak).collect();
        let kinds: [(&[ProbeFinding], FindingText); 3] = [
            (&self.judgement.order, |wrong| {
                format!(
                    "code word {} comes after {}",
                    wrong.told_in_turn,
                    wrong.behind_turn.unwrap_or_default()
                )
            }),
            (&self.judgement.lost, |wrong| {
                let back = if wrong.back == Some(true) { ", and returns later" } else { "" };
                format!("code word {} is missing{back}", wrong.told_in_turn)
            }),
            (&self.judgement.doubled, |wrong| format!("code word {} occurs twice", wrong.told_in_turn)),
        ];
        for (list, what) in kinds {
            for wrong in list.iter().take(LONGEST.min(2)) {
                let place = seen_in(wrong.place, wrong.turn);
                lines.push(format!("user {}: {}, {place}", wrong.user, what(wrong)));
            }
        }
        if !lines.is_empty() {
            let _ = write!(text, "\nfor example\n  {}\n", lines.join("\n  "));
        }
    }

    fn conclusion(&self, out: &Output) -> String {
        let line = match self.verdict() {
            ProbeVerdict::MixedUp => {
                let what = match self.ledger.pairs.is_empty() {
                    false => "mixed up: users see messages of other users",
                    true => "mixed up: messages are lost, doubled or out of order",
                };
                out.toned(what, Tone::Bad)
            }
            _ if !self.is_complete => out.toned("interrupted: partial results", Tone::Warning),
            ProbeVerdict::Inconclusive => out.toned("inconclusive: too few replies", Tone::Warning),
            ProbeVerdict::Clean => {
                let surely = self.detection().map(|detection| format!("\n{}", detection.text()));
                format!("{}{}", out.toned(&self.claim(), Tone::Good), surely.unwrap_or_default())
            }
        };
        let interrupted = !self.is_complete && self.verdict() == ProbeVerdict::MixedUp;
        format!("{line}{}\n", if interrupted { " (interrupted)" } else { "" })
    }
}

impl ProbeReport {
    /// Claim of a clean report, limited to the judged parts.
    fn claim(&self) -> String {
        let (ledger, judgement) = (&self.ledger, &self.judgement);
        let (replies, judged) = (ledger.replies.len(), judgement.judged_replies);
        let (histories, unread) = (ledger.histories.len(), !ledger.unread_histories.is_empty());
        let replies = judgement.replies.as_ref().ok().map(|()| match judged < replies {
            true => format!("the {judged} replies that were judged"),
            false => "replies".to_owned(),
        });
        let stored = judgement.histories.as_ref().ok().map(|()| match unread {
            true => format!("the {histories} stored histories that were read"),
            false => "stored histories".to_owned(),
        });
        let rest = match (&replies, &stored) {
            (None, None) => {
                return "no leak: no user saw another's code words; the rest was not judged".to_owned();
            }
            (None, Some(_)) => "; replies were not judged for order and loss",
            (Some(_), None) if histories > 0 => "; stored histories were not judged for order and loss",
            _ => "",
        };
        let places = replies.into_iter().chain(stored).collect::<Vec<_>>().join(" and ");
        format!(
            "clean: no user saw another's code words, and none of them is lost, doubled or exchanged in {places}{rest}"
        )
    }
}

fn leak(leak: &Leak) -> String {
    let Leak { from, to, turn, told_in_turn, place, encodings, .. } = leak;
    let encoded: String = encodings.iter().map(|encoding| format!(", in {}", encoding.name())).collect();
    format!(
        "user {to} saw code word {told_in_turn} of user {from}, {}{encoded}: {}",
        seen_in(*place, *turn),
        quoted(&leak.excerpt)
    )
}

fn seen_in(place: LeakPlace, turn: Option<u32>) -> String {
    match (place, turn) {
        (LeakPlace::Reply, Some(turn)) => format!("in the reply of turn {turn}"),
        (LeakPlace::Header, Some(turn)) => format!("in a header of turn {turn}"),
        (LeakPlace::Header, None) => "in a header when the history was read".to_owned(),
        (LeakPlace::Error, Some(turn)) => format!("in the error of turn {turn}"),
        (LeakPlace::Error, None) => "in an error when the history was read".to_owned(),
        (LeakPlace::Reply | LeakPlace::History, _) => "in the stored history".to_owned(),
    }
}

fn plural(place: LeakPlace) -> &'static str {
    match place {
        LeakPlace::Reply => "replies",
        LeakPlace::Header => "headers",
        LeakPlace::History => "stored histories",
        LeakPlace::Error => "errors",
    }
}

fn short(time: Duration) -> String {
    match time.as_millis() {
        0..10 => format!("{:.1} ms", time.as_secs_f64() * 1e3),
        10..1000 => format!("{} ms", time.as_millis()),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}
