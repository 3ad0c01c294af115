//! Images in a session: stored beside messages, sent to models, and never a reason for a run to fail.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use claw_agent::{Acceptance, RunLimits};
use claw_core::image::Image;
use claw_core::message::Part;
use claw_core::port::{Answer, Clock as _, Ear, Model, ModelCard, ModelError, Question};
use claw_core::store::{Accepted, NewBlob, NewJob, NewMessage, Role, StoreError};
use claw_core::tool::{Block, Call, Effect, Group, Meta, Output, Tool, ToolError, erase};
use claw_core::{JobId, MessageId, NodeId};
use claw_llm::{Script, Scripted};
use claw_store::SqliteStore;
use claw_testkit::ManualClock;
use claw_testkit::fixture::{self, NOW, PNG};

use crate::kit::{Args, Bench, LANE, OneModel, Watched, deployment, order, owner, parts, session, tenant};

const SCRIPT: &str = r#"
    [[turn]]
    when.result_of = "shoot"
    do = [{ say = "I have seen it." }]

    [[turn]]
    when.said = "shoot"
    do = [{ call = "shoot", args = { what = "x" } }]

    [[turn]]
    do = [{ say = "You said: {{said}}" }]
"#;

/// Returns an image whose bytes appear nowhere else by chance.
fn picture() -> Vec<u8> {
    let noise = (0..3000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13).to_le_bytes()[0]);
    PNG.iter().copied().chain(noise).collect()
}

/// Returns an image.
struct Shoot;

impl Tool for Shoot {
    type Args = Args;
    const META: Meta = Meta::new("shoot", Group::Fs).effects(&[Effect::Read]).about("Take a picture.");

    async fn run(&self, _: &Call, _: Args) -> Result<Output, ToolError> {
        Ok(Output::image("image/png", picture()))
    }
}

/// A model that plays a script, and records its questions.
struct Recording(Scripted, Arc<Mutex<Vec<Question>>>);

#[async_trait]
impl Model for Recording {
    fn card(&self) -> &ModelCard {
        self.0.card()
    }
    async fn ask(&self, question: &Question, ear: &dyn Ear) -> Result<Answer, ModelError> {
        self.1.lock().unwrap().push(question.clone());
        self.0.ask(question, ear).await
    }
}

/// Returns a bench whose agent can take pictures, and the questions to its model.
async fn bench() -> (Bench, Arc<Mutex<Vec<Question>>>) {
    let mut bench = Bench::new(SCRIPT).await;
    bench.deployment.executor.registry().register(erase(Shoot)).unwrap();
    let (script, asked) = (Script::parse("test.toml", SCRIPT).unwrap(), Arc::default());
    let model = Recording(Scripted::new("script", "test", Arc::new(script)), Arc::clone(&asked));
    bench.deployment.models = Arc::new(OneModel(Arc::new(model)));
    bench.restarted();
    (bench, asked)
}

async fn show(bench: &Bench, parts: &[Part]) -> Result<Accepted, StoreError> {
    let place = Acceptance { lane: LANE, at: bench.clock.now(), lineage: None, priority: 0, after: None };
    order().accept(&*bench.deployment.store, &owner(), parts, place).await
}

/// Returns an image without its bytes, as a stored message names it.
fn named(bytes: &[u8]) -> Part {
    let mut image = Image::new("image/png", bytes);
    image.unload();
    Part::Image(image)
}

/// Stores a message without checking the images it names.
async fn store_unchecked(bench: &Bench, parts: &[Part]) {
    let (tenant, session, at) = (tenant(), session(), bench.clock.now());
    let content = serde_json::to_value(parts).unwrap();
    let message = NewMessage {
        id: MessageId::new(),
        tenant: tenant.clone(),
        session: session.clone(),
        role: Role::User,
        content,
        at,
    };
    let payload = serde_json::to_value(order()).unwrap();
    let (lane, session) = (LANE.into(), Some(session));
    let job = NewJob {
        id: JobId::new(),
        tenant,
        lane,
        session,
        payload,
        accepted: at,
        visible: at,
        ..fixture::job()
    };
    bench.deployment.store.accept_from(&order().party(), message, job).await.unwrap();
}

/// Returns everything that a question shows: texts, and the bytes of images.
fn shown(question: &Question) -> (String, Vec<Vec<u8>>) {
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    let mut image = |image: &Image| images.push(image.data().unwrap().to_vec());
    for part in question.turns.iter().flat_map(|turn| &turn.parts) {
        match part {
            Part::Text { text } => texts.push(text.clone()),
            Part::Image(shown) => image(shown),
            Part::Result(told) => told.content.iter().for_each(|block| match block {
                Block::Text { text } => texts.push(text.clone()),
                Block::Image(shown) => image(shown),
                Block::Resource { .. } | Block::Attachment(_) => {}
            }),
            Part::Thinking { .. } | Part::Call(_) => {}
        }
    }
    (texts.join("\n"), images)
}

#[tokio::test]
async fn a_model_is_sent_the_bytes_and_messages_hold_the_name() {
    let (bench, asked) = bench().await;
    show(&bench, &[Part::Image(Image::new("image/png", PNG)), Part::text("shoot")]).await.unwrap();
    bench.worker.drain().await.unwrap();
    assert_eq!(bench.last_words().await, "I have seen it.");
    let last = asked.lock().unwrap().pop().unwrap();
    assert_eq!(shown(&last).1, [PNG.to_vec(), picture()], "as shown, and as the tool gave it");
    let stored: Vec<Part> = bench.messages().await.iter().flat_map(parts).collect();
    let [Part::Image(image), ..] = &stored[..] else { panic!("{stored:?}") };
    assert_eq!((image.mime.as_str(), image.bytes), ("image/png", PNG.len() as u64));
    let told = bench.results().await;
    assert!(matches!(&told[0].content[..], [Block::Image(image)] if image.bytes == picture().len() as u64));
    bench.check_history().await;
}

#[tokio::test]
async fn no_base64_of_an_image_is_anywhere_in_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("claw.db");
    let store = Arc::new(SqliteStore::open(&path, NodeId::local()).await.unwrap());
    let script = Arc::new(Script::parse("test.toml", SCRIPT).unwrap());
    let (clock, world) = (Arc::new(ManualClock::default()), Arc::new(Watched::default()));
    let deployment = deployment(store, clock.clone(), script, RunLimits::default(), &world);
    let mut bench = Bench::new(SCRIPT).await;
    bench.deployment = deployment;
    bench.deployment.executor.registry().register(erase(Shoot)).unwrap();
    bench.restarted();
    show(&bench, &[Part::Image(Image::new("image/png", picture())), Part::text("shoot")]).await.unwrap();
    bench.worker.drain().await.unwrap();
    assert_eq!(bench.last_words().await, "I have seen it.");
    bench.events().await;

    // The whole store, whatever its tables: the file and the log beside it.
    let mut kept = std::fs::read(&path).unwrap();
    kept.extend(std::fs::read(path.with_extension("db-wal")).unwrap());
    let finds = |what: &[u8]| kept.windows(what.len()).any(|window| window == what);
    let digest = Image::new("image/png", picture()).digest;
    assert!(finds(digest.to_string().as_bytes()), "the messages name it");
    assert!(finds(&picture()[100..200]), "its bytes are kept once, as they are");
    for offset in 0..3 {
        let base64 = base64(&picture()[600 + offset..630 + offset]);
        assert!(!finds(base64.as_bytes()), "{base64} is in the store");
    }
}

/// Encodes bytes in base64; their number is a multiple of three.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |group: &[u8]| {
        let number = group.iter().fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
        [18, 12, 6, 0].map(|shift| char::from(DIGITS[number >> shift & 63]))
    };
    bytes.chunks_exact(3).flat_map(group).collect()
}

#[tokio::test]
async fn a_missing_blob_in_the_middle_of_a_history_is_told_and_stops_nothing() {
    let (bench, asked) = bench().await;
    assert_eq!(bench.ask("hello").await, "You said: hello");
    store_unchecked(&bench, &[named(b"lost"), Part::text("look")]).await;
    bench.worker.drain().await.unwrap();
    show(&bench, &[Part::Image(Image::new("image/png", PNG)), Part::text("and here")]).await.unwrap();
    bench.worker.drain().await.unwrap();
    assert_eq!(bench.last_words().await, "You said: and here");
    let (text, images) = shown(&asked.lock().unwrap().pop().unwrap());
    assert_eq!(images, [PNG], "the others are still shown");
    let Part::Image(lost) = named(b"lost") else { panic!("an image") };
    assert!(text.contains(&lost.missing()) && text.contains(&lost.digest.to_string()), "{text}");
    bench.check_history().await;
}

#[tokio::test]
async fn the_digest_of_another_tenants_image_shows_nothing() {
    let (bench, asked) = bench().await;
    let blob = NewBlob::new("image/png", PNG).unwrap();
    bench.deployment.store.put_blob(&fixture::tenant("other"), &blob, NOW).await.unwrap();
    let error = show(&bench, &[named(PNG), Part::text("look")]).await.unwrap_err().to_string();
    assert!(error.contains("no image with this digest is stored"), "{error}");
    assert!(bench.messages().await.is_empty());
    // The same holds if a stored message names it.
    store_unchecked(&bench, &[named(PNG), Part::text("look")]).await;
    bench.worker.drain().await.unwrap();
    let (text, images) = shown(&asked.lock().unwrap().pop().unwrap());
    assert!(images.is_empty() && text.contains("is missing"), "{text}");
    // The tenant's own image can be named without sending it again.
    bench.deployment.store.put_blob(&tenant(), &blob, NOW).await.unwrap();
    show(&bench, &[named(PNG), Part::text("look")]).await.unwrap();
}

#[tokio::test]
async fn an_image_that_lies_or_is_too_large_is_not_stored() {
    let (bench, asked) = bench().await;
    let large = [PNG, &vec![0; 17 << 20]].concat();
    for (mime, bytes, expected) in [
        ("image/png", b"password: hunter2".to_vec(), "its bytes are `text/plain`"),
        ("image/gif", PNG.to_vec(), "its bytes are `image/png`"),
        ("application/json", b"{}".to_vec(), "its bytes are `text/plain`"),
        ("image/png", large, "and a blob may have 16777216"),
    ] {
        let image = Part::Image(Image::new(mime, bytes));
        let error = show(&bench, &[image, Part::text("look")]).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(bench.messages().await.is_empty());
    // Bytes stored as text are not shown as an image either.
    let text = NewBlob::new("text/plain", &b"password: hunter2"[..]).unwrap();
    bench.deployment.store.put_blob(&tenant(), &text, NOW).await.unwrap();
    store_unchecked(&bench, &[named(b"password: hunter2"), Part::text("look")]).await;
    bench.worker.drain().await.unwrap();
    let (text, images) = shown(&asked.lock().unwrap().pop().unwrap());
    assert!(images.is_empty() && !text.contains("hunter2"), "{text}");
}
