//! The data of server-sent events, from bytes in any pieces.

use super::Fault;

/// The longest line that is taken.
const LINE_BYTES: usize = 1 << 20;

/// Reads events, of which only the data counts here.
#[derive(Debug, Default)]
pub(super) struct Events {
    line: Vec<u8>,
    /// Whether the last line ended in a way that a line feed may belong to.
    returned: bool,
    data: Option<String>,
}

impl Events {
    /// Takes a piece, and hands on the data of the events that are complete by now.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, Fault> {
        let mut whole = Vec::new();
        for byte in bytes {
            let belongs = std::mem::replace(&mut self.returned, *byte == b'\r') && *byte == b'\n';
            if belongs {
                continue;
            }
            if !matches!(byte, b'\n' | b'\r') {
                self.line.push(*byte);
                continue;
            }
            let line = std::mem::take(&mut self.line);
            let line = String::from_utf8_lossy(&line).into_owned();
            if line.is_empty() {
                whole.extend(self.data.take());
            } else if let Some(data) = line.strip_prefix("data:") {
                let data = data.strip_prefix(' ').unwrap_or(data);
                match &mut self.data {
                    Some(before) => {
                        before.push('\n');
                        before.push_str(data);
                    }
                    None => self.data = Some(data.to_owned()),
                }
            }
        }
        if self.line.len() + self.data.as_ref().map_or(0, String::len) > LINE_BYTES {
            return Err(Fault::Unusable("an event of the stream is too long".to_owned()));
        }
        Ok(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_any_pieces() {
        let text = b": alive\r\n\r\ndata: one\r\n\r\nevent: x\ndata:two\ndata: more\n\ndata: never ended\n";
        for size in [1, 2, 7, text.len()] {
            let mut events = Events::default();
            let read: Vec<String> = text.chunks(size).flat_map(|piece| events.push(piece).unwrap()).collect();
            assert_eq!(read, ["one", "two\nmore"]);
        }
    }

    #[test]
    fn an_event_has_an_end() {
        let mut events = Events::default();
        assert!((0..20).map(|_| events.push(&[b'x'; 1 << 16])).any(|pushed| pushed.is_err()));
    }
}
