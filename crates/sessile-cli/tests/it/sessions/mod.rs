//! Sessions: starting, ending and moving them, and which one a terminal has.

mod interactive;
mod life;
mod start;
mod state;
mod stop;
mod terminals;
mod transfer;
