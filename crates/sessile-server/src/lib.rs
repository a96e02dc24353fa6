//! The session service: sessions, messages, turns, values and locks of many users, who never see each other's.
//!
//! Reading order: [`change`] and [`query`] (what can be asked of a store, as data), [`db`] (who carries it out).

pub mod account;
pub mod change;
pub mod db;
pub mod model;
pub mod query;
