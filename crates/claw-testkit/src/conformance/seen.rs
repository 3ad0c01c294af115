//! The suite of a [`SeenIndex`]: the last versions that a session saw, for a limited number of files,
//! separate for each session.

use claw_core::port::{Owner, UnixMillis, Version};
use claw_core::store::{SEEN_FILES, SeenIndex};

use crate::fixture::{NOW, digest, owner, session, tenant};

/// Runs the suite of an index of seen files; `make` creates an empty one.
pub async fn seen_index<S: SeenIndex + 'static>(make: impl AsyncFn() -> S) {
    gives_what_was_seen_last(make().await).await;
    forgets_what_was_seen_longest_ago(make().await).await;
    keeps_what_others_saw_apart(make().await).await;
}

async fn gives_what_was_seen_last(store: impl SeenIndex) {
    assert_eq!(find(&store, &owner(), "a").await, None);
    for version in ["1-2-3", "", "with \0 and ä", "1-2-3"] {
        saw(&store, &owner(), "a", version, NOW).await;
        assert_eq!(find(&store, &owner(), "a").await.as_deref(), Some(version));
    }
    saw(&store, &owner(), "a", "of an older clock", UnixMillis(1)).await;
    assert_eq!(
        find(&store, &owner(), "a").await.as_deref(),
        Some("of an older clock"),
        "the last one stands"
    );
    assert_eq!(find(&store, &owner(), "b").await, None);
}

async fn forgets_what_was_seen_longest_ago(store: impl SeenIndex) {
    let other = Owner { session: session("cli:other"), ..owner() };
    saw(&store, &other, "0", "other", UnixMillis(0)).await;
    for nth in 0..SEEN_FILES {
        saw(&store, &owner(), &nth.to_string(), "v", UnixMillis(nth as i64)).await;
    }
    assert!(find(&store, &owner(), "0").await.is_some(), "as many as are kept are kept");
    // It is seen again, so the next one is the oldest.
    saw(&store, &owner(), "0", "v", NOW).await;
    saw(&store, &owner(), "new", "v", NOW).await;
    assert_eq!(find(&store, &owner(), "1").await, None);
    for kept in ["0", "2", "new"] {
        assert!(find(&store, &owner(), kept).await.is_some(), "{kept}");
    }
    assert!(find(&store, &other, "0").await.is_some(), "each conversation has room of its own");
}

async fn keeps_what_others_saw_apart(store: impl SeenIndex) {
    saw(&store, &owner(), "a", "mine", NOW).await;
    let foreign = Owner { tenant: tenant("other"), ..owner() };
    let elsewhere = Owner { session: session("cli:other"), ..owner() };
    for other in [&foreign, &elsewhere] {
        assert_eq!(find(&store, other, "a").await, None);
        saw(&store, other, "a", "theirs", NOW).await;
        assert_eq!(find(&store, &owner(), "a").await.as_deref(), Some("mine"));
    }
}

async fn saw(store: &impl SeenIndex, owner: &Owner, place: &str, version: &str, at: UnixMillis) {
    store.saw_file(owner, &digest(place), &Version(version.into()), at).await.unwrap();
}

async fn find(store: &impl SeenIndex, owner: &Owner, place: &str) -> Option<String> {
    store.seen_file(owner, &digest(place)).await.unwrap().map(|version| version.0.to_string())
}
