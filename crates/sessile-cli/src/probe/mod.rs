//! Leak test of a service: many concurrent users, each with secret code words.
//!
//! | module | |
//! |---|---|
//! | `canary` | code words, the messages that contain them, and the search for them |
//! | `service` | interface of a protocol, with one file for each: `a2a`, `openai`, `sessile`, `http` |
//! | `request`, `template` | for `http`: requests, from flags or a file; texts with placeholders |
//! | `ramp` | number of users of each round |
//! | `run` | users, their turns and threads |
//! | `transport`, `capture`, `encoding` | requests; all received bytes; their encodings |
//! | `ledger` | observations so far |
//! | `judge` | verdicts: order, lost and doubled turns, or not judged |
//! | `detection` | probability of finding a leak |
//! | `report`, `text_report` | the report, for programs and for people |
//! | `failure` | failure of a probe without a response |
//!
//! A probe sends requests only to this machine, or to a host that the call allows. It stores nothing, and reports
//! unknown properties as not judged.
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
