//! Fallbacks: models that replace each other, in order.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::port::{Answer, Ear, Fault, Model, ModelCard, ModelError, Question};

use crate::http_model::Listening;

/// A model and its fallbacks. Its card is the first one's; the answer names the model that gave it.
pub(crate) struct WithFallbacks {
    first: Arc<dyn Model>,
    others: Vec<Arc<dyn Model>>,
}

impl WithFallbacks {
    /// Returns the model alone if it has no fallbacks.
    pub(crate) fn of(first: Arc<dyn Model>, others: Vec<Arc<dyn Model>>) -> Arc<dyn Model> {
        if others.is_empty() { first } else { Arc::new(Self { first, others }) }
    }
}

#[async_trait]
impl Model for WithFallbacks {
    fn card(&self) -> &ModelCard {
        self.first.card()
    }

    async fn ask(&self, question: &Question, ear: &dyn Ear) -> Result<Answer, ModelError> {
        let mut failed: Option<ModelError> = None;
        for model in std::iter::once(&self.first).chain(&self.others) {
            let listening = Listening::new(ear);
            let error = match model.ask(question, &listening).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            // The caller shortens a conversation that is too long; another model would only hide the problem
            // for a while.
            let ends = error.fault == Fault::TooLong;
            failed = Some(match failed {
                Some(mut first) => {
                    first.message = format!("{}; then {error}", first.message);
                    first
                }
                None => error,
            });
            if ends {
                break;
            }
            let reason = failed.as_ref().map_or_else(String::new, ToString::to_string);
            listening.again(&reason);
        }
        let card = self.card();
        Err(failed.unwrap_or_else(|| ModelError {
            provider: card.provider.clone(),
            model: card.model.clone(),
            fault: Fault::NotSetUp,
            message: "no model was tried".to_owned(),
        }))
    }
}

#[cfg(test)]
mod tests;
