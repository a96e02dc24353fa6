//! Request bodies that nobody read. A connection that is closed on a client that still sends loses the answer with it, and
//! one that is closed without a word is used again in vain: so the rest is read and thrown away, or the client is told.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

/// How much is read for nothing.
const MOST: usize = 8 << 20;

/// How long that may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// A body of which the rest can be had after its reader is gone.
#[derive(Clone, Debug)]
pub(super) struct Rest(Arc<Mutex<Body>>);

impl Rest {
    /// A body to be handed on, and what is left of it afterwards; nothing if it is empty.
    pub(super) fn of(body: Body) -> (Body, Option<Self>) {
        if body.is_end_stream() {
            return (body, None);
        }
        let rest = Rest(Arc::new(Mutex::new(body)));
        (Body::new(rest.clone()), Some(rest))
    }

    /// Reads what is left; whether that was possible.
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

impl HttpBody for Rest {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
