//! A probe of a model: one small request, and its duration.

use std::time::{Duration, Instant};

use claw_core::message::Turn;
use claw_core::port::{Model, ModelError, Piece, Question};
use claw_core::store::Role;

/// Asks a model for one word; returns the time it took.
pub async fn ask(model: &dyn Model) -> Result<Duration, ModelError> {
    let question = Question {
        turns: vec![Turn::text(Role::User, "Answer with the word: ready")],
        output: Some(64),
        ..Question::default()
    };
    let (begun, silent) = (Instant::now(), |_: Piece<'_>| {});
    model.ask(&question, &silent).await?;
    Ok(begun.elapsed())
}
