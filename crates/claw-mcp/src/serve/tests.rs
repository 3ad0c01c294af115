use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::AsyncWriteExt as _;
use tokio::time::{sleep, timeout};

use super::*;

/// Clients without access; it counts how often their tools are looked up.
struct Nobody {
    changes: watch::Sender<u64>,
    looked: AtomicUsize,
}

#[async_trait]
impl Clients for Nobody {
    async fn served(&self, _: Option<&Parts>) -> Result<Served, String> {
        self.looked.fetch_add(1, Ordering::SeqCst);
        Err("nobody has access".to_owned())
    }

    fn changes(&self) -> Vec<watch::Receiver<u64>> {
        vec![self.changes.subscribe()]
    }
}

/// The clients of a server, after one has begun a session and hung up.
async fn after_a_session() -> Arc<Nobody> {
    let (changes, _) = watch::channel(0);
    let clients = Arc::new(Nobody { changes, looked: AtomicUsize::new(0) });
    let (mut near, far) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(far);
    let server = ClawServer::new(Arc::clone(&clients) as Arc<dyn Clients>);
    let begin = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
        },
    });
    let begun = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let lines = format!("{begin}\n{begun}\n");
    let serving = rmcp::serve_server(server, AsyncRwTransport::new_server(read, write));
    let (service, written) = tokio::join!(serving, near.write_all(lines.as_bytes()));
    written.unwrap();
    let watched = async {
        while clients.changes.receiver_count() == 0 || clients.looked.load(Ordering::SeqCst) == 0 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(10), watched).await.unwrap();
    drop(near);
    service.unwrap().waiting().await.unwrap();
    clients
}

#[tokio::test(start_paused = true)]
async fn clients_that_hang_up_leave_no_tasks_behind() {
    let clients = after_a_session().await;
    sleep(CHECK + SETTLE).await;
    assert_eq!(clients.changes.receiver_count(), 0, "nothing changed, and the task is over");
}

#[tokio::test(start_paused = true)]
async fn no_tools_are_looked_up_for_a_client_that_hung_up() {
    let clients = after_a_session().await;
    let before = clients.looked.load(Ordering::SeqCst);
    clients.changes.send_replace(1);
    sleep(SETTLE * 2).await;
    assert_eq!(clients.looked.load(Ordering::SeqCst), before);
    assert_eq!(clients.changes.receiver_count(), 0);
}

/// A client whose tools change without a word.
struct Silent {
    executor: Executor,
    has_tools: std::sync::atomic::AtomicBool,
    changes: watch::Sender<u64>,
}

#[async_trait]
impl Clients for Silent {
    async fn served(&self, _: Option<&Parts>) -> Result<Served, String> {
        if !self.has_tools.load(Ordering::SeqCst) {
            return Err("nothing yet".to_owned());
        }
        Ok(Served {
            executor: self.executor.clone(),
            caller: claw_testkit::fixture::caller(),
            approvals: None,
        })
    }

    fn changes(&self) -> Vec<watch::Receiver<u64>> {
        vec![self.changes.subscribe()]
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_is_told_of_a_change_that_nothing_announces() {
    use claw_core::port::World;
    use claw_policy::config::PolicyConfig;
    use claw_policy::pipeline::Policy;
    use claw_registry::Registry;

    let registry = Arc::new(Registry::new(World::new(Arc::new(claw_testkit::ManualClock::default()))));
    let policy = Policy::compile(&PolicyConfig::default()).unwrap();
    let store = Arc::new(claw_store_memory::MemoryStore::new());
    let executor = Executor::builder(registry, store, policy).build();
    let (changes, _) = watch::channel(0);
    let silent = Arc::new(Silent { executor, has_tools: false.into(), changes });
    let server = ClawServer::new(Arc::clone(&silent) as Arc<dyn Clients>);
    let extensions = rmcp::model::Extensions::new();
    let mut tools = Offered::new(&server, &extensions).await;
    let begun = tokio::time::Instant::now();
    assert!(timeout(CHECK * 3, tools.changed(|| false)).await.is_err(), "nothing changed");
    silent.has_tools.store(true, Ordering::SeqCst);
    assert!(tools.changed(|| false).await);
    assert!(begun.elapsed() <= CHECK * 4);
}
