//! Runs, from a message in the queue to what is stored of them.

mod aborting;
mod compacting;
mod kill;
mod kit;
mod limits;
mod meanwhile;
mod resuming;
mod turns;
mod workers;
