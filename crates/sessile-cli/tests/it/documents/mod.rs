//! Documents and packaging: guides that run, generated references, files of the repository.

mod deploy;
mod fuzz_targets;
pub(crate) mod guides;
mod names;
mod packages;
mod reference;
