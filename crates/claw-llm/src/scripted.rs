//! A model that plays a script.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::CallId;
use claw_core::message::{Args, Part, Wanted};
use claw_core::port::{Answer, Ear, Fault, Model, ModelCard, ModelError, Piece, Question};
use claw_core::store::Tokens;
use claw_core::tool::Block;
use smol_str::{SmolStr, format_smolstr};

use crate::script::{Scene, Script, Step};

#[cfg(test)]
mod tests;

/// A model that plays a script. Its card says that it is a demo.
#[derive(Debug)]
pub struct Scripted {
    card: ModelCard,
    script: Arc<Script>,
}

impl Scripted {
    /// A model under these names that plays the script.
    pub fn new(provider: impl Into<SmolStr>, model: impl Into<SmolStr>, script: Arc<Script>) -> Self {
        let about = script.about();
        let card = ModelCard {
            provider: provider.into(),
            model: model.into(),
            context: about.context,
            output: about.output,
            images: about.images,
            prices: about.prices,
            demo: true,
        };
        Self { card, script }
    }

    fn error(&self, fault: Fault, message: String) -> ModelError {
        ModelError { provider: self.card.provider.clone(), model: self.card.model.clone(), fault, message }
    }

    /// Plays a scene to the listener and returns the parts of the answer.
    async fn perform(&self, scene: &Scene, ear: &dyn Ear) -> Result<Vec<Part>, ModelError> {
        let mut parts = Vec::with_capacity(scene.steps.len());
        for step in &scene.steps {
            match step {
                Step::Say { text, pace } => {
                    for piece in pace.pieces(text) {
                        pause(pace.delay).await;
                        ear.hear(Piece::Text(piece));
                    }
                    parts.push(Part::text(text));
                }
                Step::Think { text, pace } => {
                    for piece in pace.pieces(text) {
                        pause(pace.delay).await;
                        ear.hear(Piece::Thinking(piece));
                    }
                    parts.push(Part::Thinking { text: text.clone(), seal: None });
                }
                Step::Call { tool, args, id, pace, cut } => {
                    ear.hear(Piece::Call { tool });
                    for piece in pace.pieces(args) {
                        pause(pace.delay).await;
                        ear.hear(Piece::Args(piece));
                    }
                    parts.push(Part::Call(wanted(tool, args, id.as_deref(), *cut)));
                }
                Step::Wait(time) => pause(*time).await,
                Step::Fail { fault, message } => return Err(self.error(*fault, message.clone())),
                Step::Hang => std::future::pending().await,
            }
        }
        Ok(parts)
    }
}

#[async_trait]
impl Model for Scripted {
    fn card(&self) -> &ModelCard {
        &self.card
    }

    async fn ask(&self, question: &Question, ear: &dyn Ear) -> Result<Answer, ModelError> {
        let scene =
            self.script.play(question).map_err(|none| self.error(Fault::BadRequest, none.to_string()))?;
        let parts = self.perform(&scene, ear).await?;
        let tokens = scene.tokens.unwrap_or_else(|| estimate(question, &parts));
        Ok(Answer {
            parts,
            stop: scene.stop,
            tokens,
            provider: self.card.provider.clone(),
            model: self.card.model.clone(),
            cost: self.card.prices.cost(&tokens),
        })
    }
}

/// Sleeps, but not for zero: a timer that is due at once would still wait for the next tick.
async fn pause(time: std::time::Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}

fn wanted(tool: &str, args: &str, id: Option<&str>, cut: bool) -> Wanted {
    let call = CallId::new();
    let args = match serde_json::from_str(args) {
        Ok(value) => Args::Json(value),
        Err(_) => Args::Broken { text: args.to_owned(), cut },
    };
    let model_id = id.map_or_else(|| format_smolstr!("call_{call}"), SmolStr::from);
    Wanted { call, model_id, tool: tool.to_owned(), args, seal: None }
}

/// Estimates tokens as four bytes each.
fn estimate(question: &Question, answer: &[Part]) -> Tokens {
    let tools = question.tools.iter().map(|spec| spec.name.as_str().len() + spec.description.len());
    let turns = question.turns.iter().flat_map(|turn| &turn.parts).map(length);
    let system = question.system.stable.len() + question.system.changing.len();
    let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX);
    Tokens {
        input: tokens(system + tools.sum::<usize>() + turns.sum::<usize>()),
        output: tokens(answer.iter().map(length).sum()),
        ..Tokens::default()
    }
}

fn length(part: &Part) -> usize {
    match part {
        Part::Text { text } | Part::Thinking { text, .. } => text.len(),
        // The cost of an image depends on its size in pixels; about a thousand tokens is common.
        Part::Image(_) => 4_000,
        Part::Call(wanted) => match &wanted.args {
            Args::Json(value) => wanted.tool.len() + value.to_string().len(),
            Args::Broken { text, .. } => wanted.tool.len() + text.len(),
        },
        Part::Result(told) => told.content.iter().map(block_length).sum(),
    }
}

fn block_length(block: &Block) -> usize {
    match block {
        Block::Text { text } => text.len(),
        Block::Image(_) => 4_000,
        Block::Attachment(attachment) => attachment.to_string().len(),
        Block::Resource { uri, text, .. } => uri.len() + text.as_ref().map_or(0, String::len),
    }
}
