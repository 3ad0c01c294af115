//! Embedding requests and responses, by format.

use claw_core::port::EmbedPurpose;
use claw_net::{HeaderName, Url, header};
use serde_json::{Value, json};

use super::EmbeddingsKind;
use crate::provider_error::Trouble;

/// The format of one kind of server.
pub(super) struct Format(pub(super) EmbeddingsKind);

impl Format {
    pub(super) fn url(&self, base: &Url, model: &str) -> Url {
        let mut url = base.clone();
        let path = base.path().trim_end_matches('/');
        match self.0 {
            EmbeddingsKind::OpenAi | EmbeddingsKind::Voyage | EmbeddingsKind::Local => {
                url.set_path(&format!("{path}/embeddings"));
            }
            EmbeddingsKind::Gemini => url.set_path(&format!("{path}/models/{model}:batchEmbedContents")),
        }
        url
    }

    /// The header that carries the key.
    pub(super) fn key(&self, key: &str) -> (HeaderName, String) {
        match self.0 {
            EmbeddingsKind::OpenAi | EmbeddingsKind::Voyage | EmbeddingsKind::Local => {
                (header::AUTHORIZATION, format!("Bearer {key}"))
            }
            EmbeddingsKind::Gemini => (HeaderName::from_static("x-goog-api-key"), key.to_owned()),
        }
    }

    pub(super) fn body(
        &self,
        model: &str,
        texts: &[String],
        purpose: EmbedPurpose,
        dimensions: Option<usize>,
    ) -> Value {
        let (mut body, length) = match self.0 {
            EmbeddingsKind::OpenAi | EmbeddingsKind::Local => {
                (json!({ "model": model, "input": texts, "encoding_format": "float" }), "dimensions")
            }
            EmbeddingsKind::Voyage => {
                let kind = match purpose {
                    EmbedPurpose::Passage => "document",
                    EmbedPurpose::Question => "query",
                };
                (json!({ "model": model, "input": texts, "input_type": kind }), "output_dimension")
            }
            EmbeddingsKind::Gemini => return gemini(model, texts, purpose, dimensions),
        };
        if let Some(dimensions) = dimensions {
            body[length] = dimensions.into();
        }
        body
    }

    /// The vectors of an answer, in the order of the texts.
    pub(super) fn vectors(&self, answer: &Value) -> Result<Vec<Vec<f32>>, Trouble> {
        let (list, field) = match self.0 {
            EmbeddingsKind::OpenAi | EmbeddingsKind::Voyage | EmbeddingsKind::Local => ("data", "embedding"),
            EmbeddingsKind::Gemini => ("embeddings", "values"),
        };
        let items = answer.get(list).and_then(Value::as_array);
        let items = items.ok_or_else(|| Trouble::garbled(format!("its answer has no list `{list}`")))?;
        let mut vectors: Vec<(u64, Vec<f32>)> = Vec::with_capacity(items.len());
        for (item, place) in items.iter().zip(0_u64..) {
            let numbers = item.get(field).and_then(Value::as_array);
            let numbers =
                numbers.ok_or_else(|| Trouble::garbled(format!("an item of `{list}` has no `{field}`")))?;
            let number = |number: &Value| {
                number.as_f64().map(|number| number as f32).filter(|number| number.is_finite())
            };
            let vector: Option<Vec<f32>> = numbers.iter().map(number).collect();
            let vector =
                vector.ok_or_else(|| Trouble::garbled("a vector holds something that is not a number"))?;
            vectors.push((item.get("index").and_then(Value::as_u64).unwrap_or(place), vector));
        }
        vectors.sort_by_key(|(place, _)| *place);
        if vectors.windows(2).any(|pair| matches!(pair, [(one, _), (next, _)] if one == next)) {
            return Err(Trouble::garbled("two vectors have the same `index`"));
        }
        Ok(vectors.into_iter().map(|(_, vector)| vector).collect())
    }
}

fn gemini(model: &str, texts: &[String], purpose: EmbedPurpose, dimensions: Option<usize>) -> Value {
    let kind = match purpose {
        EmbedPurpose::Passage => "RETRIEVAL_DOCUMENT",
        EmbedPurpose::Question => "RETRIEVAL_QUERY",
    };
    let request = |text: &String| {
        let mut request = json!({
            "model": format!("models/{model}"),
            "content": { "parts": [{ "text": text }] },
            "taskType": kind,
        });
        if let Some(dimensions) = dimensions {
            request["outputDimensionality"] = dimensions.into();
        }
        request
    };
    json!({ "requests": texts.iter().map(request).collect::<Vec<Value>>() })
}
