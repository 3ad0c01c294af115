use super::*;
use crate::conformance;

#[tokio::test(flavor = "multi_thread")]
async fn queue_conforms() {
    conformance::queue(async || MemoryWork::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn session_log_conforms() {
    conformance::session_log(async || MemoryWork::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_conform() {
    conformance::runs(async || MemoryWork::new()).await;
}
