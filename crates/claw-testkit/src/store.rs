//! A store that fails on demand.

use std::collections::HashSet;
use std::io;
use std::sync::Mutex;

use async_trait::async_trait;
use claw_core::port::UnixMillis;
use claw_core::store::{
    Answer, Approval, ApprovalState, Approvals, Blob, BlobCard, Blobs, CallStore, Changes, Entry, EntryPage,
    Ledger, NewApproval, NewBlob, Outcome, Record, StoreError, Tally, Topic,
};
use claw_core::tool::Digest;
use claw_core::{ApprovalId, CallId, SessionKey, TenantId};
use serde_json::{Map, Value};
use tokio::sync::watch;

/// The methods of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the method of its name")]
pub enum StoreMethod {
    Refuse,
    BeginCall,
    FinishCall,
    Fate,
    Recent,
    Tally,
    Request,
    Approval,
    Pending,
    Answer,
    Close,
    PutBlob,
    Blob,
    BlobCard,
}

/// Forwards everything to the store it wraps, except methods told to fail.
#[derive(Debug)]
pub struct FailingStore<S> {
    store: S,
    failing: Mutex<HashSet<StoreMethod>>,
}

impl<S> FailingStore<S> {
    /// Wraps a store; nothing fails yet.
    pub fn new(store: S) -> Self {
        Self { store, failing: Mutex::default() }
    }

    /// Makes this method fail from now on, without effect.
    pub fn fail(&self, method: StoreMethod) {
        self.failing.lock().unwrap().insert(method);
    }

    /// Makes everything work again.
    pub fn heal(&self) {
        self.failing.lock().unwrap().clear();
    }

    /// The store itself.
    pub fn inner(&self) -> &S {
        &self.store
    }

    fn pass(&self, method: StoreMethod) -> Result<&S, StoreError> {
        if self.failing.lock().unwrap().contains(&method) {
            let source = io::Error::other("told to fail");
            return Err(StoreError::Io { what: format!("{method:?}"), source });
        }
        Ok(&self.store)
    }
}

#[async_trait]
impl<S: CallStore> Ledger for FailingStore<S> {
    async fn refuse(&self, record: Record) -> Result<(), StoreError> {
        self.pass(StoreMethod::Refuse)?.refuse(record).await
    }
    async fn begin_call(&self, record: Record) -> Result<(), StoreError> {
        self.pass(StoreMethod::BeginCall)?.begin_call(record).await
    }
    async fn finish_call(&self, record: Record) -> Result<(), StoreError> {
        self.pass(StoreMethod::FinishCall)?.finish_call(record).await
    }
    async fn fate(&self, tenant: &TenantId, call: CallId) -> Result<Option<Outcome>, StoreError> {
        self.pass(StoreMethod::Fate)?.fate(tenant, call).await
    }
    async fn recent(&self, tenant: &TenantId, limit: usize) -> Result<Vec<Entry>, StoreError> {
        self.pass(StoreMethod::Recent)?.recent(tenant, limit).await
    }
    async fn entries(&self, tenant: &TenantId, page: &EntryPage) -> Result<Vec<(u64, Entry)>, StoreError> {
        self.pass(StoreMethod::Recent)?.entries(tenant, page).await
    }
    async fn tally(&self, tenant: &TenantId, session: &SessionKey) -> Result<Tally, StoreError> {
        self.pass(StoreMethod::Tally)?.tally(tenant, session).await
    }
}

#[async_trait]
impl<S: CallStore> Approvals for FailingStore<S> {
    async fn request(&self, new: NewApproval) -> Result<Approval, StoreError> {
        self.pass(StoreMethod::Request)?.request(new).await
    }
    async fn approval(&self, tenant: &TenantId, id: ApprovalId) -> Result<Option<Approval>, StoreError> {
        self.pass(StoreMethod::Approval)?.approval(tenant, id).await
    }
    async fn pending(&self, tenant: &TenantId, now: UnixMillis) -> Result<Vec<Approval>, StoreError> {
        self.pass(StoreMethod::Pending)?.pending(tenant, now).await
    }
    async fn answer(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
        answer: Answer,
    ) -> Result<Approval, StoreError> {
        self.pass(StoreMethod::Answer)?.answer(tenant, id, answer).await
    }
    async fn take_values(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
    ) -> Result<Option<Map<String, Value>>, StoreError> {
        self.pass(StoreMethod::Answer)?.take_values(tenant, id).await
    }
    async fn close(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
        state: ApprovalState,
    ) -> Result<Approval, StoreError> {
        self.pass(StoreMethod::Close)?.close(tenant, id, state).await
    }
}

#[async_trait]
impl<S: CallStore> Blobs for FailingStore<S> {
    async fn put_blob(&self, tenant: &TenantId, blob: &NewBlob, at: UnixMillis) -> Result<(), StoreError> {
        self.pass(StoreMethod::PutBlob)?.put_blob(tenant, blob, at).await
    }
    async fn blob(&self, tenant: &TenantId, digest: &Digest) -> Result<Option<Blob>, StoreError> {
        self.pass(StoreMethod::Blob)?.blob(tenant, digest).await
    }
    async fn blob_card(&self, tenant: &TenantId, digest: &Digest) -> Result<Option<BlobCard>, StoreError> {
        self.pass(StoreMethod::BlobCard)?.blob_card(tenant, digest).await
    }
}

impl<S: CallStore> Changes for FailingStore<S> {
    fn changes(&self, of: Topic) -> watch::Receiver<u64> {
        self.store.changes(of)
    }
}
