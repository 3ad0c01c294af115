//! Asks a person for approval and waits for the answer.
//!
//! The approval is a row, and waiting is watching the store. If a program dies while it waits, the row
//! remains, and the same call with the same digest finds it again. Waiting does not count as the tool's run
//! time.

use std::pin::pin;
use std::time::Duration;

use claw_core::event::What;
use claw_core::store::{Approval, ApprovalState, NewApproval, StoreError, Topic};
use claw_core::{ApprovalId, CallId};
use futures_util::FutureExt as _;
use tokio_util::sync::CancellationToken;

use crate::reply::{Refusal, Step, Waiting};
use crate::{Executor, Offer, approver};

/// Requests the approval, or finds it again, and waits until it is decided. Only an approved call is `Ok`.
pub(crate) async fn ask(
    executor: &Executor,
    offer: &Offer,
    request: NewApproval,
    cancel: &CancellationToken,
) -> Result<ApprovalId, Refusal> {
    let row = put_and_wait(executor, offer, request, cancel, &|_| {}).await;
    answer(&row.map_err(|error| unasked(&error))?, cancel)
}

/// Requests the approval, or finds it again, tells `asked` of it if it is open, and waits until it is over.
pub(crate) async fn put_and_wait(
    executor: &Executor,
    offer: &Offer,
    request: NewApproval,
    cancel: &CancellationToken,
    asked: &(dyn Fn(&Approval) + Send + Sync),
) -> Result<Approval, StoreError> {
    let store = &executor.0.store;
    let caller = offer.caller();
    let call = request.call;
    // Subscribed before the row is read, so that no answer is missed.
    let mut changes = store.changes(Topic::Approvals);
    let mut row = store.request(request).await?;
    if row.state == ApprovalState::Pending {
        let shown = Box::new(row.clone());
        executor.emit(caller, call, || What::ApprovalRequested { approval: shown });
        asked(&row);
    }
    let asked = row.clone();
    let answering = approver::answer(executor, offer, &asked).fuse();
    let mut answering = pin!(answering);
    while row.state == ApprovalState::Pending {
        let left = row.request.expires.since(offer.0.registry.world().clock.now());
        let ended = tokio::select! {
            biased;
            () = cancel.cancelled() => Some(ApprovalState::Cancelled),
            changed = changes.changed() => changed.is_err().then_some(ApprovalState::Cancelled),
            // Stored by then: the row says it.
            () = &mut answering => None,
            () = tokio::time::sleep(left) => Some(ApprovalState::Expired),
        };
        row = match ended {
            // An answer given at the same moment stands: `close` does not change a decided approval.
            Some(state) => store.close(&caller.tenant, row.id, state).await,
            None => reread(executor, offer, &row).await,
        }?;
    }
    executor.emit(caller, call, || What::ApprovalClosed { id: row.id, state: row.state });
    Ok(row)
}

/// Requests the approval, or finds it again, without waiting: a pending approval ends the call as waiting.
pub(crate) async fn find_answer(
    executor: &Executor,
    offer: &Offer,
    request: NewApproval,
    cancel: &CancellationToken,
) -> Result<ApprovalId, Refusal> {
    let (caller, call, asked) = (offer.caller(), request.call, request.asked);
    let row = executor.0.store.request(request).await.map_err(|error| unasked(&error))?;
    if row.state == ApprovalState::Pending {
        let waiting = Waiting { approval: row.id, expires: row.request.expires };
        // An approval that was requested before is not announced to a person again.
        if row.request.asked == asked {
            let shown = Box::new(row);
            executor.emit(caller, call, || What::ApprovalRequested { approval: shown });
        }
        let refusal = Refusal::at(Step::Judge, "the call waits for an approval");
        return Err(Refusal { waiting: Some(Box::new(waiting)), ..refusal });
    }
    executor.emit(caller, call, || What::ApprovalClosed { id: row.id, state: row.state });
    answer(&row, cancel)
}

async fn reread(executor: &Executor, offer: &Offer, row: &Approval) -> Result<Approval, StoreError> {
    let tenant = &offer.caller().tenant;
    let missing = || StoreError::ApprovalState { id: row.id, state: "missing" };
    executor.0.store.approval(tenant, row.id).await?.ok_or_else(missing)
}

fn answer(row: &Approval, cancel: &CancellationToken) -> Result<ApprovalId, Refusal> {
    let by = row.answered_by.as_deref().unwrap_or("someone");
    let refuse = |reason: String| Err(Refusal::at(Step::Judge, reason));
    match row.state {
        ApprovalState::Approved if cancel.is_cancelled() => refuse("the call was cancelled".to_owned()),
        ApprovalState::Approved => Ok(row.id),
        ApprovalState::Denied => {
            let because = row.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            let refusal = Refusal::at(Step::Judge, format!("{by} denied this call{because}"));
            Err(refusal.try_instead("do it another way, or ask what would be approved"))
        }
        ApprovalState::Expired if row.answered_by.is_some() => {
            refuse(format!("{by} approved this call, but the approval was not used in time"))
        }
        ApprovalState::Expired => {
            let waited = row.request.expires.since(row.request.asked);
            refuse(format!("nobody answered within {}", in_words(waited)))
        }
        ApprovalState::Used => refuse("the approval of this call was used already".to_owned()),
        ApprovalState::Cancelled | ApprovalState::Pending => {
            refuse("the call was cancelled while it waited for an answer".to_owned())
        }
    }
}

fn unasked(error: &StoreError) -> Refusal {
    tracing::error!(%error, "an approval could not be requested or read");
    Refusal::at(Step::Judge, "this call needs an approval, and approvals cannot be stored right now")
        .try_instead("try again later")
}

fn in_words(duration: Duration) -> String {
    match duration.as_secs() {
        seconds if seconds >= 7200 && seconds % 3600 == 0 => format!("{} hours", seconds / 3600),
        seconds if seconds >= 120 && seconds % 60 == 0 => format!("{} minutes", seconds / 60),
        1 => "1 second".to_owned(),
        seconds => format!("{seconds} seconds"),
    }
}

/// The refusal if nobody can be asked.
pub(crate) fn nobody_to_ask(reason: &str, call: CallId) -> Refusal {
    tracing::debug!(%call, reason, "nobody can be asked");
    Refusal::at(Step::Judge, format!("this call needs an approval ({reason}), and nobody can be asked here"))
        .try_instead("run it where someone can answer, or change the rule")
}
