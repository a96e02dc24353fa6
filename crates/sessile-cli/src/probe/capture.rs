//! Capture of all bytes that a thread received for one request, including those that the protocol's client drops.

use std::cell::RefCell;
use std::sync::Arc;

use ureq::http::HeaderMap;

use crate::http::{HttpClient, ResponseObserver, TrustRoots};

/// Most bytes that are kept of the bodies of one turn.
const LARGEST: usize = 8 << 20;

/// Headers and bodies as they came.
#[derive(Clone, Debug, Default)]
pub(crate) struct CapturedResponse {
    /// The headers, one in each line.
    pub(crate) headers: String,
    pub(crate) body: String,
}

#[derive(Default)]
struct Buffers {
    headers: String,
    body: Vec<u8>,
}

thread_local! {
    // Per thread: each thread has one request under way, and needs no lock for it.
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

/// A client whose answers are captured for the thread that asks.
pub(crate) fn capturing_client() -> HttpClient {
    HttpClient::new(TrustRoots::System).with_observer(Arc::new(Capture))
}

/// Bytes that this thread received since the last call.
pub(crate) fn take_received() -> CapturedResponse {
    let Buffers { headers, body } = BUFFERS.take();
    CapturedResponse { headers, body: String::from_utf8_lossy(&body).into_owned() }
}

struct Capture;

impl ResponseObserver for Capture {
    fn head(&self, _status: u16, headers: &HeaderMap) {
        BUFFERS.with_borrow_mut(|buffers| {
            for (name, value) in headers {
                buffers.headers.push_str(name.as_str());
                buffers.headers.push_str(": ");
                buffers.headers.push_str(&String::from_utf8_lossy(value.as_bytes()));
                buffers.headers.push('\n');
            }
        });
    }

    fn body(&self, bytes: &[u8]) {
        BUFFERS.with_borrow_mut(|buffers| {
            if buffers.body.len() + bytes.len() <= LARGEST {
                buffers.body.extend_from_slice(bytes);
            }
        });
    }
}
