//! Sessions: starting, ending and moving them, and which one a terminal has.

mod gc_timer;
mod interactive;
mod life;
mod limits;
mod start;
mod state;
mod stop;
mod terminals;
mod transfer;
