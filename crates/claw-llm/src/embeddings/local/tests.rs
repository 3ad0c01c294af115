use std::collections::BTreeMap;

use claw_core::TenantId;
use claw_core::port::{EmbedPurpose, Embedder as _};
use serde_json::json;

use super::LocalEmbedder;

const VOCABULARY: [&str; 12] =
    ["[PAD]", "[UNK]", "the", "her", "##on", "stork", "fly", "##ing", "東", "京", ",", "cafe"];
const COLUMNS: usize = 4;

/// The number at a position of the matrix, in sixteenths, so that every number format can hold it.
fn weight(row: usize, column: usize) -> f32 {
    ((row * 7 + column * 5) % 31) as f32 / 16.0 - 1.0
}

fn write(directory: &std::path::Path, kind: &str, encode: impl Fn(f32) -> Vec<u8>) {
    let mut data = Vec::new();
    for row in 0..VOCABULARY.len() {
        for column in 0..COLUMNS {
            data.extend(encode(weight(row, column)));
        }
    }
    let header = json!({
        "__metadata__": { "format": "pt" },
        "embeddings": { "dtype": kind, "shape": [VOCABULARY.len(), COLUMNS], "data_offsets": [0, data.len()] },
        "other": { "dtype": "F32", "shape": [1], "data_offsets": [0, 4] },
    })
    .to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(data);
    std::fs::write(directory.join("model.safetensors"), file).unwrap();
    let vocabulary: BTreeMap<&str, usize> = VOCABULARY.into_iter().zip(0..).collect();
    let tokenizer = json!({
        "normalizer": { "type": "BertNormalizer", "lowercase": true, "strip_accents": null },
        "model": { "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "vocab": vocabulary },
    });
    std::fs::write(directory.join("tokenizer.json"), tokenizer.to_string()).unwrap();
}

/// Computes the same in another way: tokens by hand, numbers in 64 bits.
#[track_caller]
fn check(vector: &[f32], tokens: &[usize]) {
    let mean =
        |column| tokens.iter().map(|row| f64::from(weight(*row, column))).sum::<f64>() / tokens.len() as f64;
    let means: Vec<f64> = (0..COLUMNS).map(mean).collect();
    let length = means.iter().map(|number| number.powi(2)).sum::<f64>().sqrt();
    for (number, mean) in vector.iter().zip(&means) {
        assert!((f64::from(*number) - mean / length).abs() < 1e-6, "{vector:?} {means:?}");
    }
}

#[tokio::test]
async fn averages_the_vectors_of_tokens() {
    type Encode = fn(f32) -> Vec<u8>;
    let kinds: [(&str, Encode); 2] = [
        ("F32", |number| number.to_le_bytes().to_vec()),
        ("BF16", |number| ((number.to_bits() >> 16) as u16).to_le_bytes().to_vec()),
    ];
    for (kind, encode) in kinds {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), kind, encode);
        let model = LocalEmbedder::open(directory.path()).unwrap();
        assert!(model.model().starts_with("local:") && model.model().ends_with("/4"), "{}", model.model());
        let texts =
            ["The heron", "Flying, stork!", "zebra", "東京 Café", "", "heronx stork"].map(str::to_owned);
        let vectors = model.embed(&TenantId::main(), &texts, EmbedPurpose::Passage).await.unwrap();
        check(&vectors[0], &[2, 3, 4]);
        check(&vectors[1], &[6, 7, 10, 5]);
        assert_eq!(vectors[2], [1.0, 0.0, 0.0, 0.0], "nothing is known of it");
        check(&vectors[3], &[8, 9, 11]);
        assert_eq!(vectors[4], vectors[2]);
        check(&vectors[5], &[5]);
    }
}

#[test]
fn says_what_is_wrong_with_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let error = LocalEmbedder::open(path).unwrap_err();
    assert!(error.contains("model.safetensors` cannot be read"), "{error}");
    write(path, "F32", |number| number.to_le_bytes().to_vec());
    let good = std::fs::read(path.join("model.safetensors")).unwrap();
    for (bytes, says) in [
        (Vec::new(), "too short"),
        (vec![0xff; 64], "its header claims"),
        (good[..good.len() - 3].to_vec(), "outside of the file"),
        (good.iter().map(|byte| if *byte == b'F' { b'Q' } else { *byte }).collect(), "is not supported"),
    ] {
        std::fs::write(path.join("model.safetensors"), bytes).unwrap();
        let error = LocalEmbedder::open(path).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
    std::fs::write(path.join("model.safetensors"), good).unwrap();
    for (text, says) in [
        ("[]", "has no `model`"),
        (r#"{"model": {"type": "BPE", "vocab": {}}}"#, "`BPE` is not supported"),
        (r#"{"model": {"vocab": {"a": 99}}}"#, "a token 99, and the matrix has 12 rows"),
        (r#"{"model": {"vocab": {}}}"#, "empty"),
    ] {
        std::fs::write(path.join("tokenizer.json"), text).unwrap();
        let error = LocalEmbedder::open(path).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
}
