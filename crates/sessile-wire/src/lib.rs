//! Types that travel: between the client and the service, and between either and A2A agents.
//!
//! A leaf crate without I/O, runtime or HTTP client. Each wire format is defined here once; the sender serializes these types
//! and the receiver deserializes the same ones.

pub mod a2a;
pub mod address;
pub mod backoff;
pub mod hex;
pub mod id;
pub mod lock_mode;
pub mod percent;
pub mod secret;
#[cfg(feature = "service")]
pub mod service;
pub mod sse;
