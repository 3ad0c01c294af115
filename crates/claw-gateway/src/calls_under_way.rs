//! The calls that this process runs now, so that a request that is sent again is told so.
//!
//! The ledger has the intent of such a call and no outcome yet, as of a call whose program died: it cannot tell them apart.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use clawsmith::{CallId, Executor, Offer, Reply, Request, TenantId};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

type Calls = HashSet<(TenantId, CallId)>;

/// The calls that run. Each process knows its own.
#[derive(Default)]
pub(crate) struct CallsUnderWay {
    calls: Arc<Mutex<Calls>>,
    tasks: TaskTracker,
}

/// A call that counts as running until this is dropped.
pub(crate) struct CallUnderWay {
    calls: Arc<Mutex<Calls>>,
    call: (TenantId, CallId),
}

impl CallsUnderWay {
    /// Adds a call; `None` if it runs already.
    pub(crate) fn begin(&self, tenant: &TenantId, call: CallId) -> Option<CallUnderWay> {
        let call = (tenant.clone(), call);
        let is_new = lock(&self.calls).insert(call.clone());
        is_new.then(|| CallUnderWay { calls: Arc::clone(&self.calls), call })
    }

    /// Runs a call in the task of its request. If the returned future is dropped, because the client is gone, the call is
    /// cancelled, ends in a task of its own, and counts as running until its outcome is recorded: a request that is sent again
    /// meanwhile is not told that the outcome is unknown. `None` if the call panicked.
    pub(crate) fn run(
        &self,
        executor: Executor,
        offer: Offer,
        mut request: Request,
        under_way: Option<CallUnderWay>,
    ) -> impl Future<Output = Option<Reply>> + Send + use<> {
        let cancel = CancellationToken::new();
        request.cancel = cancel.clone();
        let running = self.tasks.track_future(async move {
            let reply = executor.execute(&offer, request).await;
            drop(under_way);
            reply
        });
        let running = AssertUnwindSafe(running).catch_unwind().map(Result::ok).boxed();
        RunningCall { running: Some(running), cancel, runtime: Handle::current() }
    }

    /// Waits until no call runs any more, those included whose clients are gone.
    pub(crate) async fn ended(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// A call that runs to its end, also if nobody waits for it any more.
struct RunningCall {
    running: Option<BoxFuture<'static, Option<Reply>>>,
    cancel: CancellationToken,
    runtime: Handle,
}

impl Future for RunningCall {
    type Output = Option<Reply>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Reply>> {
        let Some(running) = self.running.as_mut() else { return Poll::Ready(None) };
        let polled = running.poll_unpin(context);
        if polled.is_ready() {
            self.running = None;
        }
        polled
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            self.cancel.cancel();
            self.runtime.spawn(running);
        }
    }
}

impl Drop for CallUnderWay {
    fn drop(&mut self) {
        lock(&self.calls).remove(&self.call);
    }
}

fn lock(calls: &Mutex<Calls>) -> MutexGuard<'_, Calls> {
    calls.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_runs_once_at_a_time_and_each_tenant_has_its_own() {
        let (calls, call) = (CallsUnderWay::default(), CallId::new());
        let (main, other) = (TenantId::main(), TenantId::new("other").unwrap());
        let running = calls.begin(&main, call).unwrap();
        assert!(calls.begin(&main, call).is_none());
        assert!(calls.begin(&other, call).is_some());
        assert!(calls.begin(&main, CallId::new()).is_some());
        drop(running);
        assert!(calls.begin(&main, call).is_some());
        assert!(lock(&calls.calls).is_empty(), "nothing is kept of calls that have ended");
    }
}
