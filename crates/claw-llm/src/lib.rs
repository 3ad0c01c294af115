//! Models behind one face, [`claw_core::port::Model`].
//!
//! What differs between providers ends here: who asks sees turns, pieces, an answer and the kinds of failure, and
//! nothing of a wire format. A model that plays a [`Script`] is a provider like the others.

mod script;
mod scripted;

pub use script::{NoTurn, Pace, Scene, Script, ScriptError, Step};
pub use scripted::Scripted;
