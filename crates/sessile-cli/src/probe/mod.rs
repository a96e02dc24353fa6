//! Leak test of a service: many concurrent users, each with secret code words.
//!
//! | module | |
//! |---|---|
//! | `canary` | the code words, the messages that tell them, and finding them again |
//! | `service` | what a protocol has to offer; one file for each: `a2a`, `openai`, `sessile`, `http` |
//! | `request`, `template` | for `http`: requests, from flags or a file; texts with placeholders |
//! | `ramp` | how many users each round has |
//! | `run` | the users, their turns, and the threads that take them |
//! | `transport`, `capture`, `encoding` | requests; everything that was received; the encodings that it is searched in |
//! | `ledger` | observations so far |
//! | `judge` | what that means: order, lost and doubled turns; or that it cannot be said |
//! | `detection` | how surely a leak would have been found |
//! | `report`, `text_report` | the report, for programs and for people |
//! | `failure` | the failure, where nothing was answered |
//!
//! A probe sends requests only to this machine, or to a host that the call names as one that may be probed. It stores
//! nothing, and reports what it cannot know as not judged.
//!
//! A further protocol is a file that implements [`Service`], and a word in the command's `Protocol`.

pub(crate) mod a2a;
mod canary;
mod capture;
mod detection;
mod encoding;
mod failure;
pub(crate) mod http;
mod judge;
mod ledger;
pub(crate) mod openai;
pub(crate) mod ramp;
mod report;
pub(crate) mod request;
mod run;
mod service;
pub(crate) mod sessile;
pub(crate) mod template;
mod text_report;
mod transport;

pub(crate) use canary::Canaries;
pub(crate) use capture::capturing_client;
pub(crate) use ledger::ProbeProgress;
pub(crate) use report::{ProbeReport, ProbeSubject};
pub(crate) use run::{ProbePlan, Run};
pub(crate) use service::Service;
pub(crate) use transport::{FixedCredentials, HeaderTemplates, ProbeTransport};
