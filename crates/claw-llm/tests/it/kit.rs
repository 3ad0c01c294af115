//! Helpers shared by the tests.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use claw_core::message::{Part, ToolResult, Turn};
use claw_core::port::{Answer, Model, ModelError, Models as _, Piece, Question};
use claw_core::store::Role;
use claw_core::tool::{Block, Spec};
use claw_core::{CallId, TenantId, ToolName};
use claw_llm::{KeyPlace, Keys, ModelsConfig, ProviderConfig, ProviderKind, Providers};
use claw_testkit::models::ModelServer;
use secrecy::SecretString;
use serde_json::json;

pub(crate) const KINDS: [ProviderKind; 3] =
    [ProviderKind::OpenAi, ProviderKind::Anthropic, ProviderKind::Gemini];

/// Keys from a table.
pub(crate) struct Table(pub(crate) BTreeMap<&'static str, &'static str>);

#[async_trait]
impl Keys for Table {
    async fn key(&self, _: &TenantId, place: &KeyPlace) -> Result<Option<SecretString>, String> {
        match place {
            KeyPlace::Env(name) => Ok(self.0.get(name.as_str()).map(|key| SecretString::from(*key))),
            KeyPlace::Secret(name) => Err(format!("the secret `{name}` is sealed with another key")),
        }
    }
}

/// A configuration with one provider, `p`, at this server, with very short waits.
pub(crate) fn config(kind: ProviderKind, server: &ModelServer) -> ModelsConfig {
    let provider = ProviderConfig {
        kind: Some(kind),
        base_url: Some(server.base_url(kind)),
        key_env: vec!["KEY".to_owned()],
        model: Some("m".to_owned()),
        models: [("m".to_owned(), priced())].into(),
        ..ProviderConfig::default()
    };
    ModelsConfig {
        provider: Some("p".to_owned()),
        providers: [("p".to_owned(), provider)].into(),
        retries: 2,
        retry_wait_ms: 1,
        longest_wait_secs: 5,
        ..ModelsConfig::default()
    }
}

fn priced() -> claw_llm::ModelConfig {
    let prices = claw_llm::PricesConfig { input: 1.0, output: 10.0, cache_read: 0.1, cache_write: 2.0 };
    claw_llm::ModelConfig { images: Some(true), prices: Some(prices), ..claw_llm::ModelConfig::default() }
}

pub(crate) async fn model_of(config: ModelsConfig, keys: &[(&'static str, &'static str)]) -> Arc<dyn Model> {
    let keys = Arc::new(Table(keys.iter().copied().collect()));
    let providers = Providers::new(config, Path::new("."), keys).unwrap();
    providers.model(&TenantId::main(), None, None).await.unwrap()
}

/// The answer, and the pieces heard.
pub(crate) async fn ask(model: &dyn Model, question: &Question) -> (Result<Answer, ModelError>, Vec<String>) {
    let heard = Mutex::new(Vec::new());
    let ear = |piece: Piece<'_>| {
        let mut heard = heard.lock().unwrap();
        heard.push(match piece {
            Piece::Text(text) => format!("text {text}"),
            Piece::Thinking(text) => format!("think {text}"),
            Piece::Call { tool } => format!("call {tool}"),
            Piece::Args(text) => format!("args {text}"),
            Piece::Again { .. } => "again".to_owned(),
        });
    };
    let answer = model.ask(question, &ear).await;
    (answer, heard.into_inner().unwrap())
}

/// Asks a model of this kind with one key.
pub(crate) async fn ask_at(
    kind: ProviderKind,
    server: &ModelServer,
    question: &Question,
) -> (Result<Answer, ModelError>, Vec<String>) {
    ask(&*model_of(config(kind, server), &[("KEY", "key-1")]).await, question).await
}

pub(crate) fn asked(words: &str) -> Question {
    Question { turns: vec![Turn::text(Role::User, words)], tools: tools(), ..Question::default() }
}

pub(crate) fn tools() -> Vec<Spec> {
    let spec = |name: &str, description: &str, field: &str| Spec {
        name: ToolName::new(name).unwrap(),
        description: description.into(),
        parameters: json!({
            "type": "object", "properties": { field: { "type": "string" } }, "required": [field],
            "additionalProperties": false,
        })
        .into(),
    };
    vec![spec("read_file", "Read a file.", "path"), spec("exec", "Run a command.", "command")]
}

/// The question after an answer whose calls had these results.
pub(crate) fn then(mut question: Question, answer: Answer, results: &[(&str, bool)]) -> Question {
    let calls: Vec<_> = answer
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Call(wanted) => Some(wanted.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(calls.len(), results.len());
    question.turns.push(Turn { role: Role::Assistant, parts: answer.parts });
    let told = calls.into_iter().zip(results).map(|(wanted, (text, failed))| {
        let content = vec![Block::Text { text: (*text).to_owned() }];
        let told = ToolResult {
            call: wanted.call,
            model_id: wanted.model_id,
            tool: wanted.tool,
            content,
            failed: *failed,
        };
        Part::Result(told)
    });
    question.turns.push(Turn { role: Role::Tool, parts: told.collect() });
    question
}

/// A fixed call id.
pub(crate) fn call(n: u8) -> CallId {
    format!("0190a0b0-0000-7000-8000-0000000000{n:02x}").parse().unwrap()
}
