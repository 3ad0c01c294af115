//! Resumes a run: calls without a result are made now or, if the ledger says that they have begun, reported and never
//! repeated.

use claw_core::message::Wanted;
use claw_core::store::Outcome;
use claw_registry::Offer;

use super::Run;
use super::make_calls::Waits;
use crate::{RunError, call_result};

impl Run<'_> {
    /// Resumes the calls that have no result: those that have not begun are made now; those that have begun
    /// are reported and never repeated.
    pub(super) async fn take_up(&mut self, offer: &Offer, open: Vec<Wanted>) -> Result<Waits, RunError> {
        let (open, beyond) = self.within_limit(open);
        let (_, open) = self.order.client.split(open);
        let mut to_make = Vec::new();
        for wanted in open {
            match self.fate(&wanted).await? {
                None => to_make.push(wanted),
                Some(outcome) => {
                    let waits = self.make(offer, std::mem::take(&mut to_make)).await?;
                    if !waits.is_empty() {
                        return Ok(waits);
                    }
                    self.tell(vec![call_result::after_a_crash(&wanted, outcome)]).await?;
                }
            }
        }
        let waits = self.make(offer, to_make).await?;
        if waits.is_empty() {
            self.tell_beyond(&beyond).await?;
        }
        Ok(waits)
    }

    /// Returns the ledger's outcome of a call; `None` if it has not begun.
    async fn fate(&self, wanted: &Wanted) -> Result<Option<Outcome>, RunError> {
        Ok(self.deployment.store.fate(&self.caller.tenant, wanted.call).await?)
    }
}
