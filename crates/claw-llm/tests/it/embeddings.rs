//! Embedding models over real sockets: requests, responses, and refusals.

use std::sync::{Arc, Mutex};

use claw_core::TenantId;
use claw_core::port::{EmbedError, EmbedPurpose, Embedder as _};
use claw_llm::{EmbeddingsConfig, EmbeddingsKind, RemoteEmbedder};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::kit::Table;

/// A request: its head and its body.
type Heard = (String, Value);

/// A server that gives the listed answers in turn, and repeats the last.
struct Server {
    port: u16,
    heard: Arc<Mutex<Vec<Heard>>>,
}

impl Server {
    async fn start(answers: Vec<(u16, &'static str, String)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard: Arc<Mutex<Vec<Heard>>> = Arc::default();
        let told = Arc::clone(&heard);
        tokio::spawn(async move {
            for at in 0.. {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut bytes = Vec::new();
                let (head, body) = loop {
                    let mut some = [0; 4096];
                    let count = stream.read(&mut some).await.unwrap();
                    bytes.extend_from_slice(&some[..count]);
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    if let Some((head, body)) = text.split_once("\r\n\r\n")
                        && let Ok(body) = serde_json::from_str::<Value>(body)
                    {
                        break (head.to_lowercase(), body);
                    }
                    assert!(count > 0, "the request ended early");
                };
                told.lock().unwrap().push((head, body));
                let (status, headers, body) = answers.get(at).or(answers.last()).unwrap();
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{headers}connection: close\r\n\r\n{body}"
                );
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Self { port, heard }
    }

    fn config(&self, kind: EmbeddingsKind) -> EmbeddingsConfig {
        EmbeddingsConfig {
            kind,
            model: "m".to_owned(),
            base_url: Some(format!("http://127.0.0.1:{}/v1", self.port)),
            key_env: vec!["KEY".to_owned()],
            ..EmbeddingsConfig::default()
        }
    }

    fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }
}

fn model(config: &EmbeddingsConfig) -> RemoteEmbedder {
    RemoteEmbedder::new(config, Arc::new(Table([("KEY", "k-1234567890")].into()))).unwrap()
}

async fn embed(
    config: &EmbeddingsConfig,
    texts: &[&str],
    purpose: EmbedPurpose,
) -> Result<Vec<Vec<f32>>, EmbedError> {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    model(config).embed(&TenantId::main(), &texts, purpose).await
}

fn openai(vectors: &[&[f32]]) -> String {
    let data: Vec<Value> = vectors
        .iter()
        .zip(0..)
        .map(|(vector, index)| json!({ "index": index, "embedding": vector }))
        .collect();
    json!({ "object": "list", "data": data }).to_string()
}

#[tokio::test]
async fn speaks_openais_format_and_puts_vectors_into_order() {
    let mixed = json!({ "data": [
        { "index": 1, "embedding": [0.0, 5.0] },
        { "index": 0, "embedding": [3.0, 4.0] },
    ] });
    let server = Server::start(vec![(200, "", mixed.to_string())]).await;
    let config = EmbeddingsConfig { dimensions: Some(2), ..server.config(EmbeddingsKind::OpenAi) };
    let vectors = embed(&config, &["one", "two"], EmbedPurpose::Passage).await.unwrap();
    assert_eq!(vectors, [[0.6, 0.8], [0.0, 1.0]], "each at length 1");
    let (head, body) = &server.heard()[0];
    assert!(
        head.starts_with("post /v1/embeddings ") && head.contains("authorization: bearer k-1234567890"),
        "{head}"
    );
    assert_eq!(
        *body,
        json!({ "model": "m", "input": ["one", "two"], "encoding_format": "float", "dimensions": 2 })
    );
    assert_eq!(model(&config).model(), "openai:127.0.0.1/m/2");
}

#[tokio::test]
async fn speaks_the_formats_of_gemini_and_voyage() {
    let answer = json!({ "embeddings": [{ "values": [0.0, 2.0] }] });
    let server = Server::start(vec![(200, "", answer.to_string())]).await;
    let config = EmbeddingsConfig { dimensions: Some(2), ..server.config(EmbeddingsKind::Gemini) };
    let vectors = embed(&config, &["one"], EmbedPurpose::Question).await.unwrap();
    assert_eq!(vectors, [[0.0, 1.0]]);
    let (head, body) = &server.heard()[0];
    assert!(head.starts_with("post /v1/models/m:batchembedcontents "), "{head}");
    assert!(head.contains("x-goog-api-key: k-1234567890"), "{head}");
    assert_eq!(
        *body,
        json!({ "requests": [{
            "model": "models/m", "content": { "parts": [{ "text": "one" }] },
            "taskType": "RETRIEVAL_QUERY", "outputDimensionality": 2,
        }] })
    );
    let server = Server::start(vec![(200, "", openai(&[&[1.0]]))]).await;
    embed(&server.config(EmbeddingsKind::Voyage), &["one"], EmbedPurpose::Passage).await.unwrap();
    let (head, body) = &server.heard()[0];
    assert!(head.starts_with("post /v1/embeddings "), "{head}");
    assert_eq!(*body, json!({ "model": "m", "input": ["one"], "input_type": "document" }));
}

#[tokio::test]
async fn tries_again_where_that_may_help() {
    let busy = (429, "retry-after-ms: 1\r\n", r#"{"error": {"message": "slow down"}}"#.to_owned());
    let down = (503, "", "down".to_owned());
    let good = (200, "", openai(&[&[1.0]]));
    let server = Server::start(vec![busy.clone(), down, good]).await;
    let vectors =
        embed(&server.config(EmbeddingsKind::OpenAi), &["one"], EmbedPurpose::Passage).await.unwrap();
    assert_eq!((vectors, server.heard().len()), (vec![vec![1.0]], 3));

    let server = Server::start(vec![busy]).await;
    let error =
        embed(&server.config(EmbeddingsKind::OpenAi), &["one"], EmbedPurpose::Passage).await.unwrap_err();
    assert!(error.transient && error.message.contains("status 429: slow down"), "{error:?}");
    assert!(error.retry_after.is_some());
    assert_eq!(server.heard().len(), 4, "three times more, and then the indexer waits");
    let asked = embed(&server.config(EmbeddingsKind::OpenAi), &["one"], EmbedPurpose::Question).await;
    assert!(asked.is_err());
    assert_eq!(server.heard().len(), 5, "nobody who searches waits for that");
}

#[tokio::test]
async fn never_takes_a_part_for_the_whole() {
    for (body, dimensions, transient, says) in [
        (openai(&[&[1.0]]), None, true, "1 vectors for 2 texts"),
        (openai(&[&[1.0], &[1.0, 2.0]]), None, false, "a vector of 2 numbers where 1 are expected"),
        (openai(&[&[1.0, 2.0], &[1.0, 2.0]]), Some(3), false, "a vector of 2 numbers where 3 are expected"),
        (openai(&[&[0.0, 0.0], &[1.0, 2.0]]), None, true, "a vector of zeros"),
        (openai(&[&[], &[]]), None, false, "a vector of 0 numbers"),
        (
            r#"{"data": [{"index": 0, "embedding": [1.0]}, {"ind"#.to_owned(),
            None,
            true,
            "not JSON, or was cut off",
        ),
        (r#"{"data": [{"embedding": ["x"]}, {"embedding": [1]}]}"#.to_owned(), None, true, "not a number"),
        (
            r#"{"data": [{"index": 1, "embedding": [1]}, {"index": 1, "embedding": [1]}]}"#.to_owned(),
            None,
            true,
            "same `index`",
        ),
        (r#"{"object": "list"}"#.to_owned(), None, true, "no list `data`"),
    ] {
        let server = Server::start(vec![(200, "", body)]).await;
        let config = EmbeddingsConfig { dimensions, ..server.config(EmbeddingsKind::OpenAi) };
        let error = embed(&config, &["one", "two"], EmbedPurpose::Question).await.unwrap_err();
        assert!(error.message.contains(says), "{error:?}");
        assert_eq!(error.transient, transient, "{error:?}");
    }
    let server = Server::start(vec![(401, "", r#"{"error": {"message": "bad key"}}"#.to_owned())]).await;
    let error =
        embed(&server.config(EmbeddingsKind::OpenAi), &["one"], EmbedPurpose::Passage).await.unwrap_err();
    assert!(!error.transient && error.message.contains("check the key"), "{error:?}");
    assert_eq!(server.heard().len(), 1);
}

#[test]
fn refuses_a_configuration_that_cannot_work() {
    for (config, says) in [
        (EmbeddingsConfig::default(), "model"),
        (
            EmbeddingsConfig {
                model: "m".to_owned(),
                base_url: Some("http://api.example.com/v1".to_owned()),
                key_env: vec!["KEY".to_owned()],
                ..EmbeddingsConfig::default()
            },
            "without encryption",
        ),
        (
            EmbeddingsConfig {
                model: "m".to_owned(),
                base_url: Some("ftp://x".to_owned()),
                ..EmbeddingsConfig::default()
            },
            "neither http nor https",
        ),
    ] {
        let error = RemoteEmbedder::new(&config, Arc::new(Table([].into()))).unwrap_err();
        assert!(format!("{} {}", error.key, error.reason).contains(says), "{error:?}");
    }
}
