//! Blobs in memory. A tenant that has no room left loses its oldest.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use claw_core::TenantId;
use claw_core::port::UnixMillis;
use claw_core::store::{Blob, BlobLimits, NewBlob, StoreError};
use claw_core::tool::Digest;

/// The blobs of all tenants, kept separately for each.
#[derive(Debug)]
pub(crate) struct BlobTable {
    limits: BlobLimits,
    tenants: Mutex<HashMap<TenantId, Held>>,
}

/// The blobs of one tenant.
#[derive(Debug, Default)]
struct Held {
    blobs: HashMap<Digest, (Blob, UnixMillis)>,
    /// The digests in the order of insertion.
    order: VecDeque<Digest>,
    bytes: u64,
}

impl BlobTable {
    pub(crate) fn new(limits: BlobLimits) -> Self {
        Self { limits, tenants: Mutex::default() }
    }

    pub(crate) fn put(&self, tenant: &TenantId, new: &NewBlob, at: UnixMillis) -> Result<(), StoreError> {
        self.limits.check_blob(new)?;
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        let held = tenants.entry(tenant.clone()).or_default();
        if held.blobs.contains_key(&new.digest()) {
            return Ok(());
        }
        while self.limits.check_room(held.bytes, new).is_err() {
            let Some(oldest) = held.order.pop_front() else { break };
            let gone = held.blobs.remove(&oldest);
            held.bytes -= gone.map_or(0, |(blob, _)| blob.bytes.len() as u64);
        }
        self.limits.check_room(held.bytes, new)?;
        held.bytes += new.bytes().len() as u64;
        held.order.push_back(new.digest());
        let blob = Blob { mime: new.mime().into(), bytes: new.bytes().clone() };
        held.blobs.insert(new.digest(), (blob, at));
        Ok(())
    }

    pub(crate) fn get(&self, tenant: &TenantId, digest: &Digest) -> Option<(Blob, UnixMillis)> {
        let tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        tenants.get(tenant)?.blobs.get(digest).cloned()
    }
}
