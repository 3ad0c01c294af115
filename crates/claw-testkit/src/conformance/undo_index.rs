//! The suite of an [`UndoIndex`]: every change is found again, every blob is given up once no change
//! references it.

use std::sync::Arc;

use claw_core::port::UnixMillis;
use claw_core::store::{FileState, NewUndo, Undo, UndoFilter, UndoIndex};
use claw_core::tool::Digest;
use claw_core::{CallId, JobId, TenantId, ToolName, UndoId, UserId};

use crate::fixture::{NOW, agent, digest, session, tenant};

/// More than any test keeps.
const ALL: u64 = u64::MAX;
const NONE: [String; 0] = [];

/// Runs the suite of an undo index; `make` creates an empty one.
pub async fn undo_index<S: UndoIndex + 'static>(make: impl AsyncFn() -> S) {
    gives_a_change_back_as_it_was_recorded(make().await).await;
    records_a_change_once(make().await).await;
    finds_by_what_the_filter_names(make().await).await;
    lists_the_newest_first(make().await).await;
    marks_a_change_undone_once(make().await).await;
    forgets_what_was_withdrawn(make().await).await;
    prunes_by_age(make().await).await;
    prunes_by_size_of_distinct_blobs(make().await).await;
    gives_up_no_blob_that_somebody_names(make().await).await;
    tells_which_blobs_nobody_names(make().await).await;
    keeps_the_changes_of_tenants_apart(make().await).await;
    lets_one_of_many_undo_a_change(make().await).await;
    gives_up_each_blob_once(make().await).await;
}

async fn gives_a_change_back_as_it_was_recorded(store: impl UndoIndex) {
    let state = |bytes, mode| Some(FileState { blob: digest("x"), bytes, mode });
    let long = format!("/srv/{}\u{0}naïve", "long/".repeat(2_000));
    for (before, after, at) in [
        (None, state(0, Some(0o644)), 0),
        (state(u64::MAX, Some(u32::MAX)), None, -1),
        (state(1, None), state(2, None), 253_402_300_799_999),
        (None, None, i64::MAX),
    ] {
        let new = NewUndo {
            before,
            after,
            command: None,
            at: UnixMillis(at),
            user: Some(UserId::new("ann").unwrap()),
            run: Some(JobId::new()),
            place: long.clone(),
            sandbox: Some("main/session/a/cli:me".to_owned()),
            shown: "a \u{0} b".to_owned(),
            ..change("a")
        };
        store.record_undo(new.clone()).await.unwrap();
        assert_eq!(find(&store, new.id).await, Some(Undo { new, undone: None }));
    }
    let filter = UndoFilter { place: Some(long), ..UndoFilter::default() };
    assert_eq!(store.undos(&TenantId::main(), &filter, 10).await.unwrap().len(), 4);
    assert_eq!(find(&store, UndoId::new()).await, None);
}

async fn records_a_change_once(store: impl UndoIndex) {
    let first = change("a");
    store.record_undo(first.clone()).await.unwrap();
    store.mark_undone(&first.tenant, first.id, NOW).await.unwrap();
    store.record_undo(NewUndo { session: session("cli:you"), ..change("b") }).await.unwrap();
    store.record_undo(NewUndo { id: first.id, ..change("c") }).await.unwrap();
    assert_eq!(find(&store, first.id).await, Some(Undo { new: first, undone: Some(NOW) }));
    assert_eq!(all(&store).await.len(), 2);
}

async fn finds_by_what_the_filter_names(store: impl UndoIndex) {
    let (call, run) = (CallId::new(), JobId::new());
    let you = session("cli:you");
    let changes = [
        change("a"),
        NewUndo { call, ..change("a") },
        NewUndo { call, run: Some(run), ..change("b") },
        NewUndo { session: you.clone(), run: Some(run), ..change("b") },
        NewUndo { session: you.clone(), ..change("a") },
    ];
    for (n, new) in changes.iter().enumerate() {
        store.record_undo(NewUndo { at: UnixMillis(n as i64), ..new.clone() }).await.unwrap();
    }
    let found = async |filter: UndoFilter| {
        let found = store.undos(&TenantId::main(), &filter, 10).await.unwrap();
        found.iter().map(|undo| undo.new.at.0).collect::<Vec<_>>()
    };
    let none = UndoFilter::default;
    let place = |name: &str| Some(format!("/srv/{name}"));
    assert_eq!(found(none()).await, [4, 3, 2, 1, 0]);
    assert_eq!(found(UndoFilter { session: Some(you.clone()), ..none() }).await, [4, 3]);
    assert_eq!(found(UndoFilter { call: Some(call), ..none() }).await, [2, 1]);
    assert_eq!(found(UndoFilter { run: Some(run), ..none() }).await, [3, 2]);
    assert_eq!(found(UndoFilter { place: place("a"), ..none() }).await, [4, 1, 0]);
    assert_eq!(found(UndoFilter { place: place("a"), call: Some(call), ..none() }).await, [1]);
    assert_eq!(found(UndoFilter { run: Some(run), session: Some(you), ..none() }).await, [3]);
    assert_eq!(found(UndoFilter { place: place("%"), ..none() }).await, [0; 0]);
    assert_eq!(found(UndoFilter { call: Some(CallId::new()), ..none() }).await, [0; 0]);
}

async fn lists_the_newest_first(store: impl UndoIndex) {
    let mut recorded = Vec::new();
    for at in [5, 9, 7, 7] {
        let new = NewUndo { at: UnixMillis(at), ..change("a") };
        recorded.push(new.id);
        store.record_undo(new).await.unwrap();
    }
    let ids = async |limit| {
        let found = store.undos(&TenantId::main(), &UndoFilter::default(), limit).await.unwrap();
        found.iter().map(|undo| undo.new.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(10).await, [recorded[1], recorded[3], recorded[2], recorded[0]]);
    assert_eq!(ids(1).await, [recorded[1]]);
    assert_eq!(ids(0).await, []);
    assert_eq!(ids(usize::MAX).await.len(), 4);
    let mut paged = Vec::new();
    let mut filter = UndoFilter::default();
    while let Some(undo) = store.undos(&TenantId::main(), &filter, 1).await.unwrap().pop() {
        filter.before = Some((undo.new.at, undo.new.id));
        paged.push(undo.new.id);
    }
    assert_eq!(paged, ids(10).await, "page by page, each once");
}

async fn marks_a_change_undone_once(store: impl UndoIndex) {
    let (main, new) = (TenantId::main(), change("a"));
    assert!(!store.mark_undone(&main, new.id, NOW).await.unwrap(), "it is not there");
    store.record_undo(new.clone()).await.unwrap();
    assert!(store.mark_undone(&main, new.id, NOW).await.unwrap());
    assert!(!store.mark_undone(&main, new.id, UnixMillis(NOW.0 + 1)).await.unwrap());
    assert_eq!(find(&store, new.id).await.unwrap().undone, Some(NOW), "the first time stands");
    assert_eq!(all(&store).await[0].undone, Some(NOW));
}

async fn forgets_what_was_withdrawn(store: impl UndoIndex) {
    let (main, new, stays) = (TenantId::main(), writes("a", "b", NOW.0), writes("b", "c", NOW.0));
    store.record_undo(new.clone()).await.unwrap();
    store.record_undo(stays.clone()).await.unwrap();
    store.withdraw_undo(&main, new.id).await.unwrap();
    store.withdraw_undo(&main, new.id).await.unwrap();
    store.withdraw_undo(&main, UndoId::new()).await.unwrap();
    assert_eq!(find(&store, new.id).await, None);
    assert_eq!(all(&store).await, [Undo { new: stays, undone: None }]);
    assert!(!store.mark_undone(&main, new.id, NOW).await.unwrap());
    assert_eq!(prune(&store, 0, ALL).await, blobs(&["a"]), "nobody else would give up what it named alone");
    assert_eq!(prune(&store, 0, ALL).await, NONE);
}

async fn prunes_by_age(store: impl UndoIndex) {
    for (before, after, at) in [("a", "b", 9), ("b", "c", 10), ("c", "d", 11)] {
        store.record_undo(writes(before, after, at)).await.unwrap();
    }
    assert_eq!(prune(&store, 9, ALL).await, NONE, "what is as old stays");
    assert_eq!(prune(&store, 11, ALL).await, blobs(&["a", "b"]));
    assert_eq!(all(&store).await.len(), 1);
    assert_eq!(prune(&store, 12, ALL).await, blobs(&["c", "d"]));
    assert_eq!(all(&store).await, []);
}

/// Blobs are as long as their names.
async fn prunes_by_size_of_distinct_blobs(store: impl UndoIndex) {
    let created = NewUndo { before: None, ..writes("", "333", 3) };
    for new in [writes("1", "22", 1), writes("22", "333", 2), created, writes("333", "55555", 4)] {
        store.record_undo(new).await.unwrap();
    }
    assert_eq!(prune(&store, 0, 11).await, NONE, "1 + 2 + 3 + 5, each once");
    assert_eq!(prune(&store, 0, 10).await, blobs(&["1"]), "what is named by a newer change is kept");
    assert_eq!(all(&store).await.len(), 3);
    assert_eq!(prune(&store, 0, 9).await, blobs(&["22"]));
    assert_eq!(all(&store).await.len(), 2, "a change that adds nothing stays while those newer fit");
    assert_eq!(prune(&store, 0, 8).await, NONE);
    assert_eq!(prune(&store, 0, 7).await, blobs(&["333", "55555"]), "one that alone is too much goes too");
    assert_eq!(all(&store).await, []);
}

async fn gives_up_no_blob_that_somebody_names(store: impl UndoIndex) {
    let theirs = NewUndo { tenant: tenant("other"), ..writes("a", "z", 5) };
    for new in [writes("a", "b", 1), writes("b", "c", 2), theirs, writes("y", "b", 6)] {
        store.record_undo(new).await.unwrap();
    }
    assert_eq!(
        prune(&store, 3, ALL).await,
        blobs(&["c"]),
        "another tenant names `a`, and a newer change `b`"
    );
    assert_eq!(prune(&store, 6, ALL).await, blobs(&["a", "z"]), "those of all tenants are pruned");
    assert_eq!(prune(&store, 7, ALL).await, blobs(&["b", "y"]));
}

async fn tells_which_blobs_nobody_names(store: impl UndoIndex) {
    let withdrawn = writes("w", "x", 2);
    for new in [NewUndo { tenant: tenant("other"), ..writes("a", "b", 1) }, withdrawn.clone()] {
        store.record_undo(new).await.unwrap();
    }
    store.withdraw_undo(&withdrawn.tenant, withdrawn.id).await.unwrap();
    let asked: Vec<Digest> = ["a", "b", "c", "w", "d"].map(digest).into();
    let mut unnamed: Vec<String> =
        store.unnamed_undo(&asked).await.unwrap().iter().map(Digest::to_string).collect();
    unnamed.sort();
    assert_eq!(unnamed, blobs(&["c", "d"]));
    assert!(store.unnamed_undo(&[]).await.unwrap().is_empty());
    let many: Vec<Digest> = (0..5_000).map(|nth| digest(&nth.to_string())).collect();
    assert_eq!(store.unnamed_undo(&many).await.unwrap().len(), 5_000);
}

async fn keeps_the_changes_of_tenants_apart(store: impl UndoIndex) {
    let (other, ours) = (tenant("other"), change("a"));
    store.record_undo(ours.clone()).await.unwrap();
    assert_eq!(store.undo(&other, ours.id).await.unwrap(), None);
    let named = UndoFilter {
        session: Some(ours.session.clone()),
        call: Some(ours.call),
        place: Some(ours.place.clone()),
        ..UndoFilter::default()
    };
    for filter in [UndoFilter::default(), named] {
        assert_eq!(store.undos(&other, &filter, 10).await.unwrap(), []);
    }
    assert!(!store.mark_undone(&other, ours.id, NOW).await.unwrap());
    store.withdraw_undo(&other, ours.id).await.unwrap();
    store.record_undo(NewUndo { tenant: other.clone(), ..change("b") }).await.unwrap();
    store.record_undo(NewUndo { tenant: other.clone(), id: ours.id, ..change("b") }).await.unwrap();
    assert!(store.mark_undone(&other, ours.id, NOW).await.unwrap());
    store.withdraw_undo(&other, ours.id).await.unwrap();
    assert_eq!(all(&store).await, [Undo { new: ours, undone: None }]);
}

async fn lets_one_of_many_undo_a_change(store: impl UndoIndex + 'static) {
    let (store, new) = (Arc::new(store), change("a"));
    store.record_undo(new.clone()).await.unwrap();
    let mark = |_| {
        let (store, id) = (Arc::clone(&store), new.id);
        tokio::spawn(async move { store.mark_undone(&TenantId::main(), id, NOW).await.unwrap() })
    };
    let mut won = 0;
    for marked in (0..8).map(mark).collect::<Vec<_>>() {
        won += usize::from(marked.await.unwrap());
    }
    assert_eq!(won, 1);
}

/// Of concurrent prunings, one gives up each blob, and none is left over.
async fn gives_up_each_blob_once(store: impl UndoIndex + 'static) {
    let store = Arc::new(store);
    for n in 0..40 {
        store.record_undo(writes(&n.to_string(), &(n + 1).to_string(), n)).await.unwrap();
    }
    let prune = |n: i64| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.prune_undo(UnixMillis(n * 5 + 5), ALL).await.unwrap() })
    };
    let mut given = Vec::new();
    for pruned in (0..8).map(prune).collect::<Vec<_>>() {
        given.extend(pruned.await.unwrap().iter().map(Digest::to_string));
    }
    given.sort_unstable();
    let names: Vec<String> = (0..=40).map(|n| n.to_string()).collect();
    assert_eq!(given, blobs(&names));
}

async fn find(store: &impl UndoIndex, id: UndoId) -> Option<Undo> {
    store.undo(&TenantId::main(), id).await.unwrap()
}

async fn all(store: &impl UndoIndex) -> Vec<Undo> {
    store.undos(&TenantId::main(), &UndoFilter::default(), 100).await.unwrap()
}

/// Prunes, and returns the digests given up, sorted.
async fn prune(store: &impl UndoIndex, before: i64, bytes: u64) -> Vec<String> {
    let mut given: Vec<_> =
        store.prune_undo(UnixMillis(before), bytes).await.unwrap().iter().map(Digest::to_string).collect();
    given.sort_unstable();
    given
}

/// The digests of these blobs, sorted.
fn blobs(names: &[impl AsRef<str>]) -> Vec<String> {
    let mut digests: Vec<_> = names.iter().map(|name| digest(name.as_ref()).to_string()).collect();
    digests.sort_unstable();
    digests
}

fn change(name: &str) -> NewUndo {
    NewUndo {
        id: UndoId::new(),
        tenant: TenantId::main(),
        session: session("cli:me"),
        agent: agent(),
        user: None,
        call: CallId::new(),
        run: None,
        tool: ToolName::literal("write_file"),
        workspace: "/srv".to_owned(),
        place: format!("/srv/{name}"),
        sandbox: None,
        shown: name.to_owned(),
        before: None,
        after: None,
        command: None,
        at: NOW,
    }
}

/// A change from one text to another.
fn writes(before: &str, after: &str, at: i64) -> NewUndo {
    let state =
        |text: &str| Some(FileState { blob: digest(text), bytes: text.len() as u64, mode: Some(0o644) });
    NewUndo { before: state(before), after: state(after), at: UnixMillis(at), ..change("a") }
}
