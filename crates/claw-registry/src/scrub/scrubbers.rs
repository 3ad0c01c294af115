//! The secret values of a deployment and of its tenants.
//!
//! Each tenant has its own list: changing it compiles only that list, and waits for no other tenant. A
//! tenant's scrubber is its list over the deployment's; reading it takes no lock.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use claw_core::TenantId;
use claw_core::tool::Secrets;
use claw_policy::scrub::Scrubber;

use super::values::ValueList;
use super::{CallScrubber, SecretError, call_values};

/// Shards of the map of tenants: a new tenant copies one of them.
const SHARDS: usize = 64;

type Shard = ArcSwap<HashMap<TenantId, Arc<OfTenant>>>;

/// The scrubbers of a deployment and its tenants.
pub struct Scrubbers {
    deployment: Arc<ValueList>,
    /// A tenant is never removed, even with an empty list: a holder of its list may still add to it.
    tenants: Vec<Shard>,
    output: bool,
}

/// The values of one tenant.
#[derive(Default)]
struct OfTenant {
    values: Arc<ValueList>,
    /// Both lists joined, as the tenant's scrubber was last requested.
    joined: ArcSwapOption<Joined>,
}

/// A tenant's scrubber, and the scrubbers it was made of.
struct Joined {
    deployment: Arc<Scrubber>,
    own: Arc<Scrubber>,
    whole: Scrubber,
}

impl Default for Scrubbers {
    fn default() -> Self {
        let tenants = (0..SHARDS).map(|_| Shard::default()).collect();
        Self { deployment: Arc::default(), tenants, output: true }
    }
}

impl Scrubbers {
    /// Scrubbers for a deployment that shows secrets to model and user. Logs, ledger and events stay
    /// scrubbed. This is logged, as a warning to readers of the log.
    pub fn with_open_output() -> Self {
        tracing::warn!(
            "scrubbing is off for what models and users see; logs, ledger and events stay scrubbed"
        );
        Self { output: false, ..Self::default() }
    }

    /// Makes a value secret for everybody: a server's address, a key of the deployment. After this returns,
    /// no text shows it.
    pub fn add(&self, value: &str) -> Result<(), SecretError> {
        self.deployment.add(value)
    }

    /// Makes it an ordinary value again.
    pub fn remove(&self, value: &str) -> Result<(), SecretError> {
        self.deployment.remove(value)
    }

    /// Makes a value secret for one tenant. After this returns, no text of the tenant shows it.
    pub fn add_for(&self, tenant: &TenantId, value: &str) -> Result<(), SecretError> {
        self.of(tenant).values.add(value)
    }

    /// Makes several values secret for one tenant. Leaves out those that cannot be distinguished from
    /// ordinary text, and returns their number.
    pub fn add_all_for(
        &self,
        tenant: &TenantId,
        values: impl IntoIterator<Item = String>,
    ) -> Result<usize, SecretError> {
        self.of(tenant).values.add_all(values)
    }

    /// Replaces the secret values of one tenant in one step: a value in both sets is never shown in between.
    /// Leaves out those that cannot be distinguished from ordinary text, and returns their number.
    pub fn set_for(
        &self,
        tenant: &TenantId,
        values: impl IntoIterator<Item = String>,
    ) -> Result<usize, SecretError> {
        self.of(tenant).values.set(values)
    }

    /// Makes it an ordinary value again for that tenant.
    pub fn remove_for(&self, tenant: &TenantId, value: &str) -> Result<(), SecretError> {
        match self.known(tenant) {
            Some(of_tenant) => of_tenant.values.remove(value),
            None => Ok(()),
        }
    }

    /// The tenants that have values of their own, sorted.
    pub fn tenants(&self) -> Vec<TenantId> {
        let mut tenants = Vec::new();
        for shard in &self.tenants {
            let shard = shard.load();
            let with_values = shard.iter().filter(|(_, of_tenant)| !of_tenant.values.is_empty());
            tenants.extend(with_values.map(|(tenant, _)| tenant.clone()));
        }
        tenants.sort();
        tenants
    }

    /// The scrubber of a tenant.
    pub fn for_tenant(&self, tenant: &TenantId) -> CallScrubber {
        let scrubber = match self.shard(tenant).load().get(tenant) {
            Some(of_tenant) => of_tenant.over(&self.deployment),
            None => Scrubber::clone(&self.deployment.scrubber()),
        };
        CallScrubber { scrubber: Some(scrubber), output: self.output }
    }

    /// The scrubber of what concerns no tenant in particular, such as the log: with the values of the deployment and of every
    /// tenant.
    pub fn for_all(&self) -> CallScrubber {
        let mut scrubbers = vec![Arc::clone(&self.deployment.scrubber())];
        for shard in &self.tenants {
            let of_shard = shard.load();
            scrubbers.extend(of_shard.values().map(|of_tenant| Arc::clone(&of_tenant.values.scrubber())));
        }
        CallScrubber { scrubber: Some(Scrubber::join(&scrubbers)), output: self.output }
    }

    /// The scrubber of one call, with the call's own values. A value too short to scrub cannot be told from
    /// ordinary text; then all text of the call is withheld.
    pub(crate) fn for_call(&self, tenant: &TenantId, secrets: &Secrets) -> CallScrubber {
        let base = self.for_tenant(tenant);
        if secrets.is_empty() {
            return base;
        }
        let scrubber = base.scrubber.and_then(|base| base.with_values(call_values(secrets)).ok());
        CallScrubber { scrubber, output: self.output }
    }

    fn shard(&self, tenant: &TenantId) -> &Shard {
        // FNV-1a: the shards only spread the copying of new tenants, so hostile names do no harm.
        let mix = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        let hash = tenant.as_str().bytes().fold(0x811c_9dc5, mix);
        &self.tenants[hash as usize % SHARDS]
    }

    fn known(&self, tenant: &TenantId) -> Option<Arc<OfTenant>> {
        self.shard(tenant).load().get(tenant).cloned()
    }

    /// The tenant's values, added to the map if they are missing.
    fn of(&self, tenant: &TenantId) -> Arc<OfTenant> {
        if let Some(known) = self.known(tenant) {
            return known;
        }
        let new = Arc::new(OfTenant::default());
        let before = self.shard(tenant).rcu(|shard| {
            let mut shard = HashMap::clone(shard);
            shard.entry(tenant.clone()).or_insert_with(|| Arc::clone(&new));
            shard
        });
        // Another thread may have been faster.
        before.get(tenant).cloned().unwrap_or(new)
    }
}

impl OfTenant {
    /// The tenant's scrubber over the deployment's. Made anew only if one of them has changed.
    fn over(&self, deployment: &ValueList) -> Scrubber {
        let (deployment, own) = (deployment.scrubber(), self.values.scrubber());
        let fits = |joined: &&Arc<Joined>| {
            Arc::ptr_eq(&joined.deployment, &deployment) && Arc::ptr_eq(&joined.own, &own)
        };
        if let Some(joined) = self.joined.load().as_ref().filter(fits) {
            return joined.whole.clone();
        }
        let whole = deployment.and(&own);
        let (deployment, own) = (Arc::clone(&deployment), Arc::clone(&own));
        self.joined.store(Some(Arc::new(Joined { deployment, own, whole: whole.clone() })));
        whole
    }
}

#[cfg(test)]
mod tests;
