//! A static model in this process: a vector for each token, read from a directory, averaged.
//!
//! The directory has `model.safetensors` with one matrix (a row for each token; `embeddings`, or the only matrix there is;
//! 32- or 16-bit numbers) and `tokenizer.json` with a WordPiece vocabulary, as model2vec writes them. Nothing is
//! downloaded, and no server is asked.

mod tokens;
mod weights;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use claw_core::TenantId;
use claw_core::port::{EmbedError, EmbedPurpose, Embedder, unit_vector};
use claw_core::tool::Digest;

use self::tokens::Tokenizer;
use self::weights::Matrix;

/// Tokens of a text that are used; more add nothing to a passage.
const MOST_TOKENS: usize = 2_048;
/// Texts processed at a time.
const BATCH: usize = 256;
/// The largest file that is read.
const LARGEST: u64 = 4 << 30;

/// A static model.
#[derive(Debug)]
pub struct LocalEmbedder {
    name: String,
    model: Arc<Model>,
}

#[derive(Debug)]
struct Model {
    tokenizer: Tokenizer,
    matrix: Matrix,
}

impl LocalEmbedder {
    /// Loads the model in a directory. The error names the invalid file.
    pub fn open(directory: &Path) -> Result<Self, String> {
        let read = |file: &str| {
            let path = directory.join(file);
            let told = |error: std::io::Error| format!("`{}` cannot be read: {error}", path.display());
            let length = std::fs::metadata(&path).map_err(told)?.len();
            if length > LARGEST {
                return Err(format!("`{}` has {length} bytes, and the maximum is {LARGEST}", path.display()));
            }
            std::fs::read(&path).map_err(told)
        };
        let (weights, tokenizer) = (read("model.safetensors")?, read("tokenizer.json")?);
        let matrix = Matrix::read(&weights).map_err(|why| format!("`model.safetensors`: {why}"))?;
        let tokenizer = Tokenizer::read(&tokenizer).map_err(|why| format!("`tokenizer.json`: {why}"))?;
        if tokenizer.most() >= matrix.rows() {
            let (most, rows) = (tokenizer.most(), matrix.rows());
            return Err(format!("the vocabulary has a token {most}, and the matrix has {rows} rows"));
        }
        let digest = Digest::of_bytes(&weights).to_string();
        let short: String = digest.trim_start_matches("sha256:").chars().take(12).collect();
        Ok(Self {
            name: format!("local:{short}/{}", matrix.columns()),
            model: Arc::new(Model { tokenizer, matrix }),
        })
    }
}

#[async_trait]
impl Embedder for LocalEmbedder {
    fn model(&self) -> &str {
        &self.name
    }

    fn batch(&self) -> usize {
        BATCH
    }

    async fn embed(
        &self,
        _: &TenantId,
        texts: &[String],
        _: EmbedPurpose,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let (model, texts) = (Arc::clone(&self.model), texts.to_vec());
        let embedded =
            tokio::task::spawn_blocking(move || texts.iter().map(|text| model.embed(text)).collect()).await;
        embedded.map_err(|error| EmbedError {
            message: format!("the local model stopped: {error}"),
            transient: true,
            retry_after: None,
        })
    }
}

impl Model {
    /// The mean of the vectors of a text's tokens, normalised. A text without a known token gets the first
    /// unit vector.
    fn embed(&self, text: &str) -> Vec<f32> {
        let mut sum = vec![0.0_f32; self.matrix.columns()];
        for token in self.tokenizer.tokens(text).into_iter().take(MOST_TOKENS) {
            for (sum, number) in sum.iter_mut().zip(self.matrix.row(token)) {
                *sum += number;
            }
        }
        unit_vector(&sum).unwrap_or_else(|| {
            let mut first = vec![0.0; sum.len()];
            if let Some(number) = first.first_mut() {
                *number = 1.0;
            }
            first
        })
    }
}

#[cfg(test)]
mod tests;
