//! Detection probability of a leak, by the number of searched replies.

use serde_json::{Value, json};

/// Share of replies that leak, for which the probability is stated.
const RATE: f64 = 0.01;

/// Replies that were searched for leaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Detection {
    pub(crate) replies: u32,
}

impl Detection {
    /// The probability that at least one leak shows, if each reply leaks with this probability.
    pub(crate) fn probability(self, rate: f64) -> f64 {
        1.0 - (1.0 - rate).powf(f64::from(self.replies))
    }

    /// The smallest share of leaking replies that is found with this probability.
    fn rate_found_with(self, probability: f64) -> f64 {
        1.0 - (1.0 - probability).powf(1.0 / f64::from(self.replies.max(1)))
    }

    /// For people. The percentage is rounded down.
    pub(crate) fn text(self) -> String {
        let percent = self.probability(RATE) * 100.0;
        let percent = match percent {
            99.99.. => "more than 99.99 %".to_owned(),
            99.9.. => format!("{:.2} %", (percent * 100.0).floor() / 100.0),
            _ => format!("{:.1} %", (percent * 10.0).floor() / 10.0),
        };
        format!("a leak in 1 of 100 replies would have been found with {percent} probability")
    }

    /// For programs.
    pub(crate) fn json(self) -> Value {
        json!({
            "replies": self.replies,
            "leak_rate": RATE,
            "probability": self.probability(RATE),
            "leak_rate_found_with_99_percent": self.rate_found_with(0.99),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probability_follows_from_the_number_of_replies() {
        let text = |replies| Detection { replies }.text();
        let said =
            |percent| format!("a leak in 1 of 100 replies would have been found with {percent} probability");
        assert_eq!(text(0), said("0.0 %"));
        assert_eq!(text(60), said("45.2 %"));
        assert_eq!(text(494), said("99.3 %"));
        assert_eq!(text(800), said("99.96 %"));
        assert_eq!(text(1998), said("more than 99.99 %"));
        let rate = Detection { replies: 459 }.rate_found_with(0.99);
        assert!((rate - 0.01).abs() < 1e-4, "{rate}");
    }
}
