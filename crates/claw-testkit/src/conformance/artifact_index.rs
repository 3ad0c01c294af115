//! The suite of an [`ArtifactIndex`]: kept results by owner, and the order of pruning.

use claw_core::port::{Artifact, Owner, UnixMillis};
use claw_core::store::{ArtifactIndex, KeptArtifact};
use claw_core::{ArtifactId, CallId};

use crate::fixture::{NOW, owner, session, tenant};

/// More than any test keeps.
const ALL: u64 = u64::MAX;

/// Runs the suite of an index of kept results; `make` creates an empty one.
pub async fn artifact_index<S: ArtifactIndex + 'static>(make: impl AsyncFn() -> S) {
    gives_a_result_back_as_it_was_put(make().await).await;
    puts_a_result_once(make().await).await;
    lists_the_newest_first(make().await).await;
    prunes_by_age(make().await).await;
    prunes_by_size_within_each_tenant(make().await).await;
    keeps_the_results_of_others_apart(make().await).await;
}

async fn gives_a_result_back_as_it_was_put(store: impl ArtifactIndex) {
    for (bytes, lines, millis) in [(0, 0, 0), (1, 1, -1), (1 << 40, 1 << 33, 253_402_300_799_999)] {
        let mut new = kept(bytes, millis);
        new.artifact.lines = lines;
        store.put_artifact(new.clone()).await.unwrap();
        assert_eq!(store.artifact(&owner(), new.artifact.id).await.unwrap(), Some(new));
    }
    assert_eq!(store.artifact(&owner(), ArtifactId::new()).await.unwrap(), None);
}

async fn puts_a_result_once(store: impl ArtifactIndex) {
    let first = kept(10, 0);
    store.put_artifact(first.clone()).await.unwrap();
    let mut again = KeptArtifact { at: NOW, ..first.clone() };
    again.artifact.bytes = 99;
    store.put_artifact(again).await.unwrap();
    assert_eq!(store.artifacts(&owner(), 10).await.unwrap(), [first], "the first one stands");
}

async fn lists_the_newest_first(store: impl ArtifactIndex) {
    let put = [kept(1, 5), kept(2, 9), kept(3, 7), kept(4, 7)];
    for new in &put {
        store.put_artifact(new.clone()).await.unwrap();
    }
    let sizes = async |limit| {
        let found = store.artifacts(&owner(), limit).await.unwrap();
        found.iter().map(|kept| kept.artifact.bytes).collect::<Vec<_>>()
    };
    assert_eq!(sizes(10).await, [2, 4, 3, 1], "of two at one time the later id is newer");
    assert_eq!(sizes(2).await, [2, 4]);
    assert_eq!(sizes(0).await, [0; 0]);
    assert_eq!(sizes(usize::MAX).await.len(), 4);
}

async fn prunes_by_age(store: impl ArtifactIndex) {
    for (bytes, at) in [(1, 9), (2, 10), (3, 11)] {
        store.put_artifact(kept(bytes, at)).await.unwrap();
    }
    assert_eq!(prune(&store, 9, ALL).await, [0; 0], "what is as old stays");
    assert_eq!(prune(&store, 11, ALL).await, [1, 2], "the oldest first");
    assert_eq!(prune(&store, 11, ALL).await, [0; 0]);
    assert_eq!(store.artifacts(&owner(), 10).await.unwrap().len(), 1);
}

async fn prunes_by_size_within_each_tenant(store: impl ArtifactIndex) {
    let elsewhere = Owner { session: session("cli:you"), ..owner() };
    let theirs = Owner { tenant: tenant("other"), ..owner() };
    for (bytes, at, owner) in [
        (10, 1, &owner()),
        (20, 2, &elsewhere),
        (30, 3, &owner()),
        (55, 1, &theirs),
        (40, 4, &elsewhere),
        (7, 2, &theirs),
    ] {
        store.put_artifact(KeptArtifact { owner: owner.clone(), ..kept(bytes, at) }).await.unwrap();
    }
    assert_eq!(prune(&store, 0, 100).await, [0; 0]);
    assert_eq!(prune(&store, 0, 99).await, [10], "a tenant's sessions count together, other tenants do not");
    assert_eq!(prune(&store, 0, 89).await, [20]);
    assert_eq!(prune(&store, 0, 61).await, [55, 30]);
    assert_eq!(prune(&store, 0, 39).await, [40], "one that alone is too much goes too");
    assert_eq!(prune(&store, 0, 0).await, [7]);
}

async fn keeps_the_results_of_others_apart(store: impl ArtifactIndex) {
    let (ours, theirs) = (kept(1, 0), Owner { tenant: tenant("other"), ..owner() });
    let elsewhere = Owner { session: session("cli:you"), ..owner() };
    store.put_artifact(ours.clone()).await.unwrap();
    for other in [&theirs, &elsewhere] {
        assert_eq!(store.artifact(other, ours.artifact.id).await.unwrap(), None);
        assert_eq!(store.artifacts(other, 10).await.unwrap(), []);
    }
    let mut stolen = KeptArtifact { owner: theirs.clone(), ..ours.clone() };
    stolen.artifact.bytes = 99;
    store.put_artifact(stolen.clone()).await.unwrap();
    assert_eq!(store.artifact(&owner(), ours.artifact.id).await.unwrap(), Some(ours));
    assert_eq!(store.artifact(&theirs, stolen.artifact.id).await.unwrap(), Some(stolen));
}

/// Prunes, and returns the sizes of the removed results.
async fn prune(store: &impl ArtifactIndex, before: i64, bytes: u64) -> Vec<usize> {
    let pruned = store.prune_artifacts(UnixMillis(before), bytes).await.unwrap();
    pruned.iter().map(|kept| kept.artifact.bytes).collect()
}

fn kept(bytes: usize, at: i64) -> KeptArtifact {
    let artifact = Artifact { id: ArtifactId::new(), call: CallId::new(), bytes, lines: 3 };
    KeptArtifact { owner: owner(), artifact, at: UnixMillis(at) }
}
