//! The library as its users meet it: from the outside, by its public interface.

mod deployer;
mod turns;
mod vault_file;
