//! The road from end to end: three kinds of tools through all eight steps, and attacks.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]

mod approvals;
mod attack;
mod budget;
mod definitions;
mod guards;
mod kit;
mod layers;
mod output;
mod overlays;
mod programs;
mod registry;
mod road;
mod settings;
