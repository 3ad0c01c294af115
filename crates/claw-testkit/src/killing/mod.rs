//! The kill test: programs that work on one store and are killed at any moment, and a model of the store's
//! promises.
//!
//! A [`Player`] does random [`Operation`]s. It prints each operation before it asks the store, and the
//! store's reply after; each line is one write, so the lines survive the player. A [`Round`] starts players,
//! kills them by the number of lines they wrote, and starts some again as another boot. Then the [`Model`]
//! compares all lines with the content of the store, and returns the contradictions: see `docs/store.md`. No
//! check depends on timing.
//!
//! A new aggregate needs its operations, their choice by a player, and a file in `model`. Documents are not
//! played yet.

use claw_core::store::{Approvals, Ledger, Runs};

mod model;
mod operation;
mod player;
mod random;
mod round;
mod world;

pub use model::{Model, Seen};
pub use operation::{Operation, Reply, Right, Step};
pub use player::Player;
pub use random::Random;
pub use round::{Brief, Report, Round, play_if_briefed};
pub use world::{EXPIRY, World};

/// The part of a store that is played with.
pub trait Played: Ledger + Approvals + Runs {}

impl<S: Ledger + Approvals + Runs> Played for S {}

#[cfg(test)]
mod tests;
