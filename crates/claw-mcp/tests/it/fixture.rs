//! A server of ours with the tools that the conformance suite asks for.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use claw_core::attachment::Attachment;
use claw_core::image::Image;
use claw_core::port::{InputForm, InputRequest, World};
use claw_core::store::{Answer, Approval, Approvals as _};
use claw_core::tool::{
    AnyTool, Block, Call, Caller, Effects, Facts, Group, Meta, Need, Output, Plan, Spec, ToolError,
};
use claw_core::{ApprovalId, TenantId, ToolName};
use claw_host::MemoryArtifacts;
use claw_mcp::{ClientAnswer, ClientApprovals, Clients, HttpSessions, Parts, Served, http_server};
use claw_policy::config::PolicyConfig;
use claw_policy::pipeline::Policy;
use claw_policy::rate_config::RateConfig;
use claw_registry::rate_limiter::Limiter;
use claw_registry::{Executor, Registry};
use claw_store_memory::MemoryStore;
use claw_testkit::ManualClock;
use claw_testkit::fixture::{PNG, caller};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// A server that ends with this value.
pub(crate) struct Fixture {
    pub(crate) address: SocketAddr,
    pub(crate) sessions: HttpSessions,
    ending: CancellationToken,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.ending.cancel();
    }
}

impl Fixture {
    /// Serves on a free port of loopback.
    pub(crate) async fn start() -> Self {
        let mut world = World::new(Arc::new(ManualClock::default()));
        world.artifacts = Some(Arc::new(MemoryArtifacts::default()));
        let registry = Arc::new(Registry::new(world));
        let (changes, _) = watch::channel(0);
        let change = Arc::new(Change { registry: OnceLock::new(), changes });
        for (name, does) in [
            ("test_simple_text", Does::Text),
            ("test_image_content", Does::Image),
            ("test_embedded_resource", Does::Resource),
            ("test_multiple_content_types", Does::Mixed),
            ("test_error_handling", Does::Fail),
            ("test_tool_with_progress", Does::Progress),
            ("test_audio_content", Does::Audio),
            ("test_elicitation_sep1034_defaults", Does::Ask(defaults())),
            ("test_elicitation_sep1330_enums", Does::Ask(choices())),
            ("test_trigger_tool_change", Does::Change(Arc::clone(&change))),
        ] {
            registry.register(tool(name, does, json!({}))).unwrap();
        }
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
            "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
            "additionalProperties": false,
        });
        registry.register(tool("json_schema_2020_12_tool", Does::Text, schema)).unwrap();
        let message = json!({ "type": "object", "properties": { "message": { "type": "string" } }, "required": ["message"] });
        registry.register(tool("test_elicitation", Does::Ask(user()), message)).unwrap();
        let _ = change.registry.set(Arc::clone(&registry));
        let policy = Policy::compile(&PolicyConfig::default()).unwrap();
        let store = Arc::new(MemoryStore::new());
        let rate = RateConfig { total: 60_000, ..RateConfig::default() };
        let executor = Executor::builder(registry, Arc::clone(&store) as _, policy)
            .limiter(Limiter::new(rate, 100))
            .build();
        let ending = CancellationToken::new();
        let clients = Arc::new(Anyone { executor, caller: caller(), change, store });
        let hosts = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
        let (server, sessions) = http_server(clients, hosts, ending.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = axum::Router::new().route_service("/mcp", server);
        let ended = ending.clone();
        tokio::spawn(async move {
            let _ = axum::serve(listener, router).with_graceful_shutdown(ended.cancelled_owned()).await;
        });
        Self { address, sessions, ending }
    }
}

/// The head of a sound, which no text could be.
const WAV: &[u8] = b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x44\xac\x00\x00\xff\xfe";

/// Every client is the same caller.
struct Anyone {
    executor: Executor,
    caller: Caller,
    change: Arc<Change>,
    store: Arc<MemoryStore>,
}

/// Answers approvals in the store.
struct StoredApprovals(Arc<MemoryStore>);

#[async_trait]
impl ClientApprovals for StoredApprovals {
    async fn pending(&self, id: ApprovalId) -> Result<Approval, String> {
        let found = self.0.approval(&TenantId::main(), id).await.map_err(|error| error.to_string())?;
        found.ok_or_else(|| "missing".to_owned())
    }

    async fn answer(&self, approval: &Approval, answer: ClientAnswer) -> Result<(), String> {
        let (approve, values) = match answer {
            ClientAnswer::Approve(values) => (true, Some(values)),
            ClientAnswer::Deny | ClientAnswer::Dismiss => (false, None),
        };
        let at = approval.request.asked;
        let answer = Answer { approve, by: "client".to_owned(), at, reason: None, values };
        let answered = self.0.answer(&TenantId::main(), approval.id, answer).await;
        answered.map(drop).map_err(|error| error.to_string())
    }
}

/// A form of the suite: all kinds of values, with defaults.
fn defaults() -> Value {
    json!({ "type": "object", "properties": {
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    } })
}

/// A form of the suite: all kinds of choices.
fn choices() -> Value {
    let plain = json!(["option1", "option2", "option3"]);
    let titled = |word: &str| {
        json!([
            { "const": "value1", "title": format!("First {word}") },
            { "const": "value2", "title": format!("Second {word}") },
            { "const": "value3", "title": format!("Third {word}") },
        ])
    };
    json!({ "type": "object", "properties": {
        "untitledSingle": { "type": "string", "enum": plain },
        "titledSingle": { "type": "string", "oneOf": titled("Option") },
        "legacyEnum": {
            "type": "string", "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": plain } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
    } })
}

/// A form of the suite: two texts.
fn user() -> Value {
    let field = |about: &str| json!({ "type": "string", "description": about });
    let properties = json!({ "username": field("User's response"), "email": field("User's email address") });
    json!({ "type": "object", "properties": properties, "required": ["username", "email"] })
}

#[async_trait]
impl Clients for Anyone {
    async fn served(&self, _parts: Option<&Parts>) -> Result<Served, String> {
        let approvals: Arc<dyn ClientApprovals> = Arc::new(StoredApprovals(Arc::clone(&self.store)));
        Ok(Served {
            executor: self.executor.clone(),
            caller: self.caller.clone(),
            approvals: Some(approvals),
        })
    }

    fn changes(&self) -> Vec<watch::Receiver<u64>> {
        vec![self.change.changes.subscribe()]
    }
}

/// A change of the registered tools.
struct Change {
    registry: OnceLock<Arc<Registry>>,
    changes: watch::Sender<u64>,
}

impl Change {
    fn make(&self) {
        let at = *self.changes.borrow() + 1;
        if let Some(registry) = self.registry.get() {
            let _ = registry.register(tool(&format!("test_added_{at}"), Does::Text, json!({})));
        }
        self.changes.send_replace(at);
    }
}

enum Does {
    Text,
    Image,
    Resource,
    Mixed,
    Fail,
    Progress,
    Audio,
    /// Asks the person for the values of this form.
    Ask(Value),
    Change(Arc<Change>),
}

struct FixtureTool {
    meta: Meta,
    spec: Spec,
    does: Does,
}

fn tool(name: &str, does: Does, schema: Value) -> Arc<dyn AnyTool> {
    let mut meta = Meta::of(ToolName::new(name).unwrap(), Group::Named("fixture".into()));
    meta.about = "A tool for tests.".into();
    meta.effects = Effects::NONE;
    meta.needs = vec![Need::Inputs].into();
    let spec = Spec::with_schema(&meta, schema);
    Arc::new(FixtureTool { meta, spec, does })
}

fn resource(uri: &str, mime: &str, text: &str) -> Block {
    Block::Resource { uri: uri.to_owned(), mime: Some(mime.into()), text: Some(text.to_owned()) }
}

#[async_trait]
impl AnyTool for FixtureTool {
    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn plan(&self, _facts: &Facts, _args: &Value) -> Result<Plan, ToolError> {
        Ok(Plan::of(&self.meta))
    }

    async fn run_erased(&self, call: &Call, _args: Value) -> Result<Output, ToolError> {
        Ok(match &self.does {
            Does::Text => Output::text("This is a simple text response for testing."),
            Does::Image => Output::image("image/png", PNG),
            Does::Resource => {
                let mut output = Output::default();
                output.content = vec![resource("test://embedded-resource", "text/plain", "Embedded.")];
                output
            }
            Does::Mixed => Output::text("Multiple content types test:")
                .and(Block::Image(Image::new("image/png", PNG)))
                .and(resource("test://mixed-content-resource", "application/json", r#"{"test":"data"}"#)),
            Does::Fail => {
                return Err(ToolError::failed("This tool intentionally returns an error for testing"));
            }
            Does::Progress => {
                for share in [0, 50, 100] {
                    call.progress().tell(&format!("{share}/100\n"));
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Output::text("done")
            }
            Does::Audio => {
                let mut output = Output::default();
                output.content = vec![Block::Attachment(Attachment::new("audio/wav", None, WAV))];
                output
            }
            Does::Ask(schema) => {
                let (server, message) = ("fixture".to_owned(), "Please provide your information".to_owned());
                let form = InputForm::Form { schema: schema.clone() };
                let answer = call.inputs()?.ask(InputRequest { server, message, form }).await?;
                Output::text(format!("Elicitation completed: {answer:?}"))
            }
            Does::Change(change) => {
                change.make();
                Output::text("changed")
            }
        })
    }
}
