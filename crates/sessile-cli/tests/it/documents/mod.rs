//! Documents and packaging: guides that run, generated references, files of the repository.

mod book;
mod console;
mod deploy;
mod fuzz_targets;
mod guide_outputs;
pub(crate) mod guides;
mod names;
mod packages;
mod picture;
mod reference;
mod release;
mod tutorials;
mod voice;
