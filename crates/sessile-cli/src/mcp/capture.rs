//! Bounded capture of a command's output: its beginning and its end.

use std::collections::VecDeque;

/// Buffer of output, up to a limit.
#[derive(Debug)]
pub(super) struct CaptureBuffer {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    limit: usize,
    total: u64,
}

impl CaptureBuffer {
    /// Empty buffer with a limit in bytes.
    pub(super) fn new(limit: usize) -> Self {
        CaptureBuffer { head: Vec::new(), tail: VecDeque::new(), limit, total: 0 }
    }

    /// Takes more in.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.total += u64::try_from(bytes.len()).unwrap_or(0);
        let room = (self.limit / 2).saturating_sub(self.head.len()).min(bytes.len());
        let (head, tail) = bytes.split_at(room);
        self.head.extend_from_slice(head);
        let most = self.limit - self.limit / 2;
        // Cut before it is copied, so that a large piece never exceeds the limit.
        self.tail.extend(&tail[tail.len().saturating_sub(most)..]);
        self.tail.drain(..self.tail.len().saturating_sub(most));
    }

    /// Whether something is left out.
    pub(super) fn is_cut(&self) -> bool {
        self.left_out() > 0
    }

    fn left_out(&self) -> u64 {
        let kept = u64::try_from(self.head.len() + self.tail.len()).unwrap_or(u64::MAX);
        self.total.saturating_sub(kept)
    }

    /// Text, with invalid UTF-8 replaced.
    pub(super) fn text(&self) -> String {
        let (one, two) = self.tail.as_slices();
        if self.is_cut() {
            let tail = [one, two].concat();
            let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&tail));
            return format!("{head}\n... {} bytes left out ...\n{tail}", self.left_out());
        }
        String::from_utf8_lossy(&[&self.head, one, two].concat()).into_owned()
    }

    /// The last line that has something in it.
    pub(super) fn last_line(&self) -> Option<String> {
        const LONG: usize = 1024;
        let bytes: Vec<u8> = if self.tail.is_empty() {
            self.head[self.head.len().saturating_sub(LONG)..].to_vec()
        } else {
            self.tail.iter().skip(self.tail.len().saturating_sub(LONG)).copied().collect()
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_output_is_kept_whole() {
        let mut kept = CaptureBuffer::new(10);
        for piece in ["01", "234", "56789"] {
            kept.take(piece.as_bytes());
        }
        assert_eq!((kept.text().as_str(), kept.is_cut()), ("0123456789", false));
    }

    #[test]
    fn of_what_does_not_fit_the_beginning_and_the_end_are_kept() {
        let mut kept = CaptureBuffer::new(10);
        for digit in 0..1000 {
            kept.take(format!("{}", digit % 10).as_bytes());
        }
        assert_eq!(kept.text(), "01234\n... 990 bytes left out ...\n56789");
        let mut at_once = CaptureBuffer::new(10);
        at_once.take("0123456789".repeat(100).as_bytes());
        assert_eq!(at_once.text(), kept.text());
        assert!(kept.head.len() + kept.tail.len() <= 10);
    }

    #[test]
    fn the_last_line_is_the_last_with_something_in_it() {
        let mut kept = CaptureBuffer::new(64);
        assert_eq!(kept.last_line(), None);
        kept.take(b"one\ntwo\n\n");
        assert_eq!(kept.last_line().as_deref(), Some("two"));
    }
}
