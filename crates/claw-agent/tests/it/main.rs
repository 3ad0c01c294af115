//! Runs, from a message in the queue to their stored results.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up fails loudly")]

mod aborting;
mod client_tools;
mod compacting;
mod counting_store;
mod ended;
mod images;
mod kill;
mod kit;
mod limits;
mod meanwhile;
mod order;
mod outrun;
mod parking;
mod provenance;
mod reads;
mod resuming;
mod talks;
mod turns;
mod workers;
