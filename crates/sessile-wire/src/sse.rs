//! Server-sent events.

/// Event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// Kind of the event; `message` if the stream names none.
    pub kind: String,
    /// Lines of data.
    pub data: String,
}

/// Error of a line or an event that exceeds the limit of its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseTooLarge;

/// Parser of a stream that arrives in pieces of any size. It buffers one line and one event, each of bounded size.
#[derive(Debug)]
pub struct SseReader {
    largest: usize,
    line: Vec<u8>,
    /// Whether the last line ended in CR: a LF that follows belongs to it.
    after_cr: bool,
    kind: String,
    data: Option<String>,
    lines: u64,
}

impl SseReader {
    /// Parser that refuses lines and events of more than this many bytes.
    pub fn new(largest: usize) -> Self {
        SseReader { largest, line: Vec::new(), after_cr: false, kind: String::new(), data: None, lines: 0 }
    }

    /// Number of complete lines so far, comments included: servers send those as heartbeats.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Parses the next piece and appends the events that it completes. Events before an error are appended too.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseTooLarge> {
        let mut rest = bytes;
        loop {
            // The LF of a CR LF may be in the next piece, so an empty rest keeps the flag.
            if self.after_cr && !rest.is_empty() {
                self.after_cr = false;
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
                return self.buffer(rest);
            };
            self.buffer(&rest[..end])?;
            self.after_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            self.end_line(events)?;
        }
    }

    fn buffer(&mut self, bytes: &[u8]) -> Result<(), SseTooLarge> {
        // Checked before it is copied: a peer that never ends a line must not fill the memory.
        if self.line.len() + bytes.len() > self.largest {
            return Err(SseTooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, events: &mut Vec<SseEvent>) -> Result<(), SseTooLarge> {
        let line = std::mem::take(&mut self.line);
        // The standard decodes with replacement characters, so an invalid byte does not end a stream.
        let mut line = String::from_utf8_lossy(&line);
        // The standard lets a stream begin with one byte order mark.
        if self.lines == 0
            && let Some(rest) = line.strip_prefix('\u{feff}')
        {
            line = rest.to_owned().into();
        }
        self.lines += 1;
        if line.is_empty() {
            self.end_event(events);
            return Ok(());
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        // One space only, as the standard says: more belong to the value.
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => self.append_data(value)?,
            "event" => value.clone_into(&mut self.kind),
            // Comments, ids, reconnection times and unknown fields.
            _ => {}
        }
        Ok(())
    }

    fn append_data(&mut self, value: &str) -> Result<(), SseTooLarge> {
        match &mut self.data {
            Some(data) if data.len() + value.len() + 1 > self.largest => return Err(SseTooLarge),
            Some(data) => {
                data.push('\n');
                data.push_str(value);
            }
            None => self.data = Some(value.to_owned()),
        }
        Ok(())
    }

    fn end_event(&mut self, events: &mut Vec<SseEvent>) {
        // Reset also without data: the standard clears both buffers at every blank line.
        let kind = std::mem::take(&mut self.kind);
        // The standard dispatches no event without data, such as one that only sets an id.
        if let Some(data) = self.data.take().filter(|data| !data.is_empty()) {
            let kind = if kind.is_empty() { "message".to_owned() } else { kind };
            events.push(SseEvent { kind, data });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<SseEvent> {
        let (mut reader, mut events) = (SseReader::new(1 << 16), Vec::new());
        for piece in pieces {
            reader.push(piece, &mut events).unwrap();
        }
        events
    }

    fn event(kind: &str, data: &str) -> SseEvent {
        SseEvent { kind: kind.to_owned(), data: data.to_owned() }
    }

    #[test]
    fn events_end_at_an_empty_line() {
        let text = "\u{feff}data: one\n\n: ping\r\n\r\nevent: error\r\ndata:two\r\ndata: \r\ndata:  three\r\n\r\n\
                    id: 7\rretry: 9\rdata\rdata:x\r\rdata: never ended\n";
        let expected = [event("message", "one"), event("error", "two\n\n three"), event("message", "\nx")];
        assert_eq!(read(&[text.as_bytes()]), expected);
    }

    #[test]
    fn kind_without_data_is_dropped() {
        assert_eq!(read(&[b"event: error\n\ndata: a\n\n"]), [event("message", "a")]);
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        assert_eq!(read(&[b"data: a\xff", b"b\n\n"]), [event("message", "a\u{fffd}b")]);
        let snowman = "data: \u{2603}\n\n".as_bytes();
        assert_eq!(read(&[&snowman[..7], &snowman[7..8], &snowman[8..]]), [event("message", "\u{2603}")]);
    }

    #[test]
    fn oversized_line_or_event_is_refused() {
        let mut reader = SseReader::new(100);
        let endless = std::iter::repeat_n(&b"xxxxxxxxxx"[..], 11);
        let done: Result<Vec<()>, _> = endless.map(|piece| reader.push(piece, &mut Vec::new())).collect();
        assert_eq!(done, Err(SseTooLarge));
        let mut reader = SseReader::new(100);
        let endless = std::iter::repeat_n(&b"data: xxxx\n"[..], 25);
        let done: Result<Vec<()>, _> = endless.map(|piece| reader.push(piece, &mut Vec::new())).collect();
        assert_eq!(done, Err(SseTooLarge));
    }

    proptest! {
        #[test]
        fn events_do_not_depend_on_pieces(
            lines in prop::collection::vec("(data|event|id|:|)(: ?|)[a-z\u{e9}\u{2603}\u{1f600}]{0,5}(\r|\n|\r\n){1,2}", 0..12),
            cuts in prop::collection::vec(0usize..200, 0..20),
        ) {
            let text = lines.concat();
            let bytes = text.as_bytes();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<_> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            let bytewise: Vec<_> = bytes.chunks(1).collect();
            let whole = read(&[bytes]);
            prop_assert_eq!(&read(&pieces), &whole);
            prop_assert_eq!(&read(&bytewise), &whole);
        }
    }
}
