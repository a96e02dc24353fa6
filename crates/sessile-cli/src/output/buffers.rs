//! Output of a call that a caller in this process reads, instead of the standard streams.

use std::sync::{Mutex, PoisonError};

/// Buffers for the two output streams of a call.
#[derive(Debug, Default)]
pub(crate) struct OutputBuffers {
    out: Mutex<String>,
    err: Mutex<String>,
}

impl OutputBuffers {
    pub(super) fn write_out(&self, text: &str) {
        append(&self.out, text);
    }

    pub(super) fn write_err(&self, text: &str) {
        append(&self.err, text);
    }

    /// Takes what was printed: standard output, then standard error.
    pub(crate) fn take(&self) -> (String, String) {
        (taken(&self.out), taken(&self.err))
    }
}

// A call that panicked has printed what it printed; the text itself is never half written.
fn append(buffer: &Mutex<String>, text: &str) {
    buffer.lock().unwrap_or_else(PoisonError::into_inner).push_str(text);
}

fn taken(buffer: &Mutex<String>) -> String {
    std::mem::take(&mut *buffer.lock().unwrap_or_else(PoisonError::into_inner))
}
