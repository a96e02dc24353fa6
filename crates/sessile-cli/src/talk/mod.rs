//! Talking to an agent as a session does: with the credential that is meant for it, and with what is remembered.
//!
//! | module | |
//! |---|---|
//! | `whom` | which agent, and how it is reached |
//! | `credentials` | what of the vault goes where |
//! | `known` | conversations as programs see them: with whether there are credentials for their agents |
//! | `memory` | the conversation that goes on |
//! | `trouble` | what went wrong, in the words of the program |
//! | `artifacts` | what an agent made, saved where it can do no harm |

mod artifacts;
mod credentials;
mod known;
mod memory;
mod trouble;
mod whom;

pub(crate) use artifacts::save;
pub(crate) use credentials::Credentials;
pub(crate) use known::{described, described_anywhere};
pub(crate) use memory::{Memory, Wanted, session};
pub(crate) use trouble::failed;
pub(crate) use whom::{Reach, header};
