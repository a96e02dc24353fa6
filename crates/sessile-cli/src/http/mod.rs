//! HTTP requests to authorization servers and agents. Not for anything on the path of `run`.
//!
//! A credential is sent only to its own server, over `https` or on this machine, and never along a redirect. TLS is
//! set up when a request needs it.

mod address;
mod client;
mod error;
mod exchange;
mod form;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests;
mod unreachable_reason;

pub(crate) use address::HttpAddress;
pub(crate) use client::{BufferedResponse, HttpClient, TrustRoots};
pub(crate) use error::HttpError;
pub(crate) use exchange::{HttpRequest, HttpResponse, ResponseObserver, Timeouts};
pub(crate) use form::{basic, form};
pub(crate) use unreachable_reason::UnreachableReason;
