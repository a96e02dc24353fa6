//! Request bodies that no handler read. Closing the connection while the client still sends would lose the response, and a
//! client would reuse a connection that was closed silently: so the rest is drained, or the response says `close`.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

/// Bytes that are drained at most.
const MOST: usize = 8 << 20;

/// Time to drain them.
const PATIENCE: Duration = Duration::from_secs(2);

/// Unread rest of a body.
#[derive(Clone, Debug)]
pub(super) struct UnreadBody(Arc<Mutex<Body>>);

impl UnreadBody {
    /// Body to pass on, and the rest of it afterwards; `None` if the body is empty.
    pub(super) fn of(body: Body) -> (Body, Option<Self>) {
        if body.is_end_stream() {
            return (body, None);
        }
        let rest = UnreadBody(Arc::new(Mutex::new(body)));
        (Body::new(rest.clone()), Some(rest))
    }

    /// Drains the rest. Returns whether it ended within the limits.
    pub(super) async fn drain(mut self) -> bool {
        let all = async {
            let mut read = 0;
            while let Some(frame) =
                std::future::poll_fn(|context| Pin::new(&mut self).poll_frame(context)).await
            {
                let Ok(frame) = frame else { return false };
                read += frame.data_ref().map_or(0, Bytes::len);
                if read > MOST {
                    return false;
                }
            }
            true
        };
        tokio::time::timeout(PATIENCE, all).await.unwrap_or(false)
    }
}

impl HttpBody for UnreadBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A body that has ended must not be polled again.
        if body.is_end_stream() {
            return Poll::Ready(None);
        }
        Pin::new(&mut *body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).size_hint()
    }
}
