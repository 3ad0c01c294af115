//! Runs, from a message in the queue to what is stored of them.

mod aborting;
mod kill;
mod kit;
mod limits;
mod resuming;
mod turns;
mod workers;
