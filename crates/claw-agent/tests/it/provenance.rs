//! Documents that runs write, and what those runs had read before.

use std::sync::Arc;

use claw_core::provenance::Provenance;
use claw_core::store::{DocumentKey, DocumentWrite, Shelf, Store};
use claw_core::tool::{Call, Effect, Group, Meta, Output, Tool, ToolError, erase};
use claw_core::{AgentId, JobId, SessionKey};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::kit::{Bench, LANE, order, session, tenant};

const SCRIPT: &str = r#"
    [[turn]]
    when.result_of = "note"
    do = [{ say = "Noted." }]

    [[turn]]
    when.result_of = "fetch"
    do = [{ call = "note", args = { what = "after" } }]

    [[turn]]
    when.said = "look there"
    do = [{ call = "fetch", args = { what = "obey" } }]

    [[turn]]
    do = [{ call = "note", args = { what = "plain" } }]
"#;

/// Writes a memory document as the file tools do.
struct Note(Arc<dyn Store>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Name of the document.
    what: String,
}

fn key(name: &str) -> DocumentKey {
    let (tenant, agent) = (tenant(), Some(AgentId::new("tester").unwrap()));
    DocumentKey { tenant, agent, user: None, shelf: Shelf::Memory, path: format!("memory/{name}.md") }
}

impl Tool for Note {
    type Args = Args;
    const META: Meta = Meta::new("note", Group::Fs).effects(&[Effect::Write]).about("Write a note.");

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        let key = key(&args.what);
        let seen = self.0.document(&key).await.map_err(ToolError::internal)?.map(|known| known.version);
        let (at, provenance) = (claw_core::port::UnixMillis(1), call.caller().trace.provenance());
        let write = DocumentWrite { text: "noted", seen, at, provenance, keeps_mark: false };
        self.0.write_document(&key, write).await.map_err(ToolError::internal)?;
        Ok(Output::text("noted"))
    }
}

async fn bench() -> Bench {
    let bench = Bench::new(SCRIPT).await;
    let note = Note(Arc::clone(&bench.deployment.store));
    bench.deployment.executor.registry().register(erase(note)).unwrap();
    bench
}

async fn origin(bench: &Bench, name: &str) -> Provenance {
    bench.deployment.store.document(&key(name)).await.unwrap().unwrap().provenance
}

async fn last_run(bench: &Bench) -> Option<JobId> {
    bench.messages().await.last().map(|message| message.run)
}

#[tokio::test]
async fn a_document_records_its_run_and_what_the_session_had_read() {
    let mut bench = bench().await;
    assert_eq!(bench.ask("write it down").await, "Noted.");
    assert_eq!(origin(&bench, "plain").await, Provenance { run: last_run(&bench).await, untrusted: false });

    assert_eq!(bench.ask("look there").await, "Noted.");
    assert_eq!(origin(&bench, "after").await, Provenance { run: last_run(&bench).await, untrusted: true });

    // Later runs of the session read what was fetched, also in another process.
    bench.restarted();
    assert_eq!(bench.ask("write it down").await, "Noted.");
    assert_eq!(origin(&bench, "plain").await, Provenance { run: last_run(&bench).await, untrusted: true });
}

#[tokio::test]
async fn an_order_of_an_untrusted_run_makes_its_session_untrusted() {
    let bench = bench().await;
    let sent = claw_agent::Order { untrusted: true, ..order() };
    let other = SessionKey::new("agent:tester:cli:direct:other").unwrap();
    for (order, session) in [(order(), session()), (sent, other.clone())] {
        let place = claw_agent::Acceptance {
            lane: LANE,
            at: claw_core::port::Clock::now(&*bench.clock),
            lineage: None,
            priority: 0,
            after: None,
        };
        let parts = [claw_core::message::Part::text("write it down")];
        order
            .accept(
                &*bench.deployment.store,
                &claw_core::port::Owner { tenant: tenant(), session: session.clone() },
                &parts,
                place,
            )
            .await
            .unwrap();
        bench.worker.drain().await.unwrap();
        let is_other = session == other;
        assert_eq!(origin(&bench, "plain").await.untrusted, is_other);
        assert_eq!(bench.deployment.store.is_untrusted(&tenant(), &session).await.unwrap(), is_other);
    }
}
