//! One request of any kind and its answer, whose body is read as it comes.

use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ureq::BodyReader;
use ureq::http::{HeaderMap, Method, Request};

use super::client::{header, header_value};
use super::{HttpAddress, HttpClient, HttpError};

/// Timeouts of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    /// For the request itself.
    pub(crate) write: Option<Duration>,
    /// For the first line of the answer and its headers.
    pub(crate) head: Duration,
    /// For the next byte.
    pub(crate) silence: Duration,
    /// Limit of the whole exchange, if any.
    pub(crate) total: Option<Duration>,
}

/// Request.
#[derive(Debug)]
pub(crate) struct HttpRequest<'a> {
    /// The method.
    pub(crate) method: Method,
    /// Address.
    pub(crate) address: &'a HttpAddress,
    /// The headers, which may hold credentials.
    pub(crate) headers: &'a [(&'a str, &'a str)],
    /// Body, if any.
    pub(crate) body: Option<&'a [u8]>,
}

/// Observer of everything that a client receives.
pub(crate) trait ResponseObserver: Send + Sync {
    /// Request that is about to be sent. It may hold credentials.
    fn request(&self, _request: &HttpRequest<'_>) {}

    /// The status and the headers of an answer.
    fn head(&self, status: u16, headers: &HeaderMap);

    /// The next bytes of its body; none at its end.
    fn body(&self, bytes: &[u8]);
}

/// An answer whose body is still to come. Any status is an answer, also a redirect: it is never followed.
pub(crate) struct HttpResponse {
    /// The status.
    pub(crate) status: u16,
    address: HttpAddress,
    headers: HeaderMap,
    length: Option<u64>,
    body: BodyReader<'static>,
    until: Option<Instant>,
    observer: Option<Arc<dyn ResponseObserver>>,
}

impl HttpClient {
    /// Sends, and waits for the head of the answer.
    pub(crate) fn exchange(
        &self,
        sending: &HttpRequest<'_>,
        patience: Timeouts,
    ) -> Result<HttpResponse, HttpError> {
        let address = sending.address;
        // A timeout beyond the clock's range never expires.
        let until = patience.total.and_then(|total| Instant::now().checked_add(total));
        let mut request = Request::builder().method(&sending.method).uri(address.uri());
        for (name, value) in sending.headers {
            request = request.header(*name, header_value(address, value)?);
        }
        let agent = self.agent_with(address, |config| {
            config
                .timeout_global(patience.total)
                .timeout_send_request(patience.write)
                .timeout_send_body(patience.write)
                .timeout_recv_response(Some(patience.head))
                .timeout_per_read(Some(patience.silence))
        })?;
        if let Some(observer) = &self.observer {
            observer.request(sending);
        }
        let begun = Instant::now();
        let answered = match sending.body {
            Some(body) => {
                request.body(body).map_err(ureq::Error::from).and_then(|request| agent.run(request))
            }
            None => request.body(()).map_err(ureq::Error::from).and_then(|request| agent.run(request)),
        };
        let answered = answered.map_err(|error| HttpError::new(address, error))?;
        let (head, body) = answered.into_parts();
        // An address is displayed without its query. Headers and bodies may hold secrets and stay out.
        let (method, ms) = (&sending.method, begun.elapsed().as_millis());
        tracing::debug!(%method, url = %address, status = head.status.as_u16(), ms, "HTTP exchange");
        if let Some(observer) = &self.observer {
            observer.head(head.status.as_u16(), &head.headers);
        }
        Ok(HttpResponse {
            status: head.status.as_u16(),
            address: address.clone(),
            length: body.content_length(),
            headers: head.headers,
            body: body.into_reader(),
            until,
            observer: self.observer.clone(),
        })
    }
}

impl HttpResponse {
    /// Address of the responder.
    pub(crate) fn address(&self) -> &HttpAddress {
        &self.address
    }

    /// A header, by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        header(&self.headers, name)
    }

    /// Wait before a retry, from `Retry-After`.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        self.header("retry-after").and_then(|seconds| seconds.trim().parse().ok()).map(Duration::from_secs)
    }

    /// The next bytes; none at the end.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, HttpError> {
        loop {
            // What is already here costs no time on the network, so it is looked at here as well.
            if self.until.is_some_and(|until| Instant::now() >= until) {
                return Err(HttpError::TimedOut { url: self.address.to_string() });
            }
            match self.body.read(buffer) {
                // A signal, such as that of a resized terminal, interrupts the call and is not an error.
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Ok(read) => {
                    if let Some(observer) = &self.observer {
                        observer.body(&buffer[..read]);
                    }
                    return Ok(read);
                }
                Err(error) => return Err(HttpError::new(&self.address, error.into())),
            }
        }
    }

    /// Whole body, up to a limit.
    pub(crate) fn read_all(&mut self, largest: usize) -> Result<Vec<u8>, HttpError> {
        let too_large = || HttpError::TooLarge { url: self.address.to_string() };
        // Refused by its Content-Length, before a byte of it is read.
        let expected = self.length.map(usize::try_from);
        if expected.is_some_and(|length| length.is_ok_and(|length| length > largest) || length.is_err()) {
            return Err(too_large());
        }
        let (mut all, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        loop {
            let read = self.read(&mut buffer)?;
            if read == 0 {
                return Ok(all);
            }
            if all.len() + read > largest {
                return Err(HttpError::TooLarge { url: self.address.to_string() });
            }
            all.extend_from_slice(&buffer[..read]);
        }
    }
}
