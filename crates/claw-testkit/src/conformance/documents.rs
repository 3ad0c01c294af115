//! The suite of [`Documents`]: versions only rise, outdated writers are refused, and passages are found by
//! their text and only by their owners.

mod searching;

use std::collections::HashSet;
use std::sync::Arc;

use claw_core::port::UnixMillis;
use claw_core::provenance::Provenance;
use claw_core::store::{
    Document, DocumentCard, DocumentKey, DocumentWrite, Documents, FoundPassage, Passage, PassagePlace,
    PassageQuery, Shelf, StoreError, Topic,
};
use claw_core::{AgentId, JobId, TenantId, UserId};

use crate::fixture::{NOW, tenant};

const ALL: usize = usize::MAX;

/// Runs the suite; `make` creates an empty store. Run it on a runtime with several threads.
pub async fn documents<S: Documents + 'static>(make: impl AsyncFn() -> S) {
    writes_what_the_writer_saw(make().await).await;
    removes_and_counts_on(make().await).await;
    gives_a_text_back_as_it_was_written(make().await).await;
    tells_keys_apart(make().await).await;
    lists_by_path_the_agents_first(make().await).await;
    refuses_paths_that_cannot_be(make().await).await;
    marks_what_is_to_be_indexed(make().await).await;
    indexes_what_stands_and_nothing_else(make().await).await;
    reads_the_passages_around_a_place(make().await).await;
    tells_of_changes(make().await).await;
    keeps_tenants_apart(make().await).await;
    records_the_origin_until_a_person_answers_for_the_text(make().await).await;
    one_of_many_writers_wins_each_version(make().await).await;
    searching::searching(make).await;
}

async fn writes_what_the_writer_saw(store: impl Documents) {
    let at = key("MEMORY.md");
    assert_eq!(store.document(&at).await.unwrap(), None);
    check_stale(store.put_document(&at, "x", Some(1), NOW).await, &at, None);
    check_stale(store.put_document(&at, "x", Some(0), NOW).await, &at, None);
    assert_eq!(store.put_document(&at, "one", None, NOW).await.unwrap(), 1);
    for seen in [None, Some(0), Some(2), Some(u64::MAX)] {
        check_stale(store.put_document(&at, "lost", seen, NOW).await, &at, Some(1));
    }
    let one = Document {
        key: at.clone(),
        version: 1,
        text: "one".to_owned(),
        at: NOW,
        provenance: Provenance::default(),
    };
    assert_eq!(store.document(&at).await.unwrap(), Some(one), "a refused write changes nothing");

    let later = UnixMillis(NOW.0 + 5);
    assert_eq!(store.put_document(&at, "two", Some(1), later).await.unwrap(), 2);
    check_stale(store.put_document(&at, "lost", Some(1), NOW).await, &at, Some(2));
    let two = Document {
        key: at.clone(),
        version: 2,
        text: "two".to_owned(),
        at: later,
        provenance: Provenance::default(),
    };
    assert_eq!(store.document(&at).await.unwrap(), Some(two));
    assert_eq!(store.put_document(&at, "two", Some(2), later).await.unwrap(), 3, "the same text is a change");
}

async fn removes_and_counts_on(store: impl Documents) {
    let at = key("memory/a.md");
    check_stale(store.remove_document(&at, 1, NOW).await, &at, None);
    check_stale(store.remove_document(&at, 0, NOW).await, &at, None);
    let mut last = 0;
    for round in 0..3 {
        let version = store.put_document(&at, "here", None, NOW).await.unwrap();
        assert!(version > last, "round {round}: {version} after {last}");
        for seen in [0, version + 1, u64::MAX] {
            check_stale(store.remove_document(&at, seen, NOW).await, &at, Some(version));
        }
        store.remove_document(&at, version, NOW).await.unwrap();
        assert_eq!(store.document(&at).await.unwrap(), None);
        assert_eq!(list(&store, Some("ann")).await, []);
        assert_eq!(store.unindexed(ALL).await.unwrap(), [], "what is gone is not indexed");
        for seen in [version, version + 1] {
            check_stale(store.remove_document(&at, seen, NOW).await, &at, None);
            check_stale(store.put_document(&at, "lost", Some(seen), NOW).await, &at, None);
            assert!(!store.index_document(&at, seen, vec![passage(1, "here")]).await.unwrap());
        }
        last = version;
    }
}

async fn gives_a_text_back_as_it_was_written(store: impl Documents) {
    let long = "a line of memory, and another one\n".repeat(60_000);
    for (n, text) in
        ["", "\0", "a\0b\n\0", "naïve \u{1f980} 'q' \"q\" \\ \r\n", &long].into_iter().enumerate()
    {
        let at = key(&format!("memory/{n}.md"));
        store.put_document(&at, text, None, UnixMillis(-1)).await.unwrap();
        let found = store.document(&at).await.unwrap().unwrap();
        assert!(found.text == text && found.at == UnixMillis(-1), "text {n}");
        let cards = list(&store, None).await;
        assert_eq!(cards.last().unwrap().bytes, text.len() as u64);
        assert!(store.index_document(&at, 1, vec![passage(1, &format!("mark{n} {text}"))]).await.unwrap());
        let found = find(&store, &format!("mark{n}")).await;
        assert!(found.len() == 1 && found[0].passage.text == format!("mark{n} {text}"), "passage {n}");
    }
}

async fn tells_keys_apart(store: impl Documents) {
    let base = key("USER.md");
    let keys = [
        base.clone(),
        DocumentKey { tenant: tenant("other"), ..base.clone() },
        DocumentKey { agent: Some(agent("other")), ..base.clone() },
        DocumentKey { agent: None, ..base.clone() },
        DocumentKey { user: Some(user("ann")), ..base.clone() },
        DocumentKey { user: Some(user("ben")), ..base.clone() },
        DocumentKey { shelf: Shelf::Context, ..base.clone() },
        DocumentKey { path: "user.md".to_owned(), ..base.clone() },
        DocumentKey { path: "USER.md ".to_owned(), ..base },
    ];
    for (n, key) in keys.iter().enumerate() {
        assert_eq!(store.put_document(key, &format!("text {n}"), None, NOW).await.unwrap(), 1);
    }
    store.put_document(&keys[4], "changed", Some(1), NOW).await.unwrap();
    store.remove_document(&keys[5], 1, NOW).await.unwrap();
    for (n, key) in keys.iter().enumerate() {
        let found = store.document(key).await.unwrap().map(|document| document.text);
        let expected = match n {
            4 => Some("changed".to_owned()),
            5 => None,
            n => Some(format!("text {n}")),
        };
        assert_eq!(found, expected, "{key:?}");
    }
}

async fn lists_by_path_the_agents_first(store: impl Documents) {
    let paths = ["memory/z.md", "MEMORY.md", "memory/B.md", "memory/a.md", "memory/é.md", "memory/a/b.md"];
    for path in paths {
        for name in [None, Some("ann"), Some("ben"), Some("Zoe")] {
            let at = DocumentKey { user: name.map(user), ..key(path) };
            store.put_document(&at, path, None, NOW).await.unwrap();
        }
    }
    let context = DocumentKey { shelf: Shelf::Context, ..key("SOUL.md") };
    store.put_document(&context, "soul", None, NOW).await.unwrap();

    let mut sorted = paths;
    sorted.sort_unstable();
    let own: Vec<_> = sorted.map(|path| (path.to_owned(), None)).into();
    assert_eq!(places(&list(&store, None).await), own, "by their bytes");
    for name in ["ann", "Zoe"] {
        let both: Vec<_> = sorted
            .iter()
            .flat_map(|path| [None, Some(user(name))].map(|user| ((*path).to_owned(), user)))
            .collect();
        assert_eq!(places(&list(&store, Some(name)).await), both);
    }
    assert_eq!(places(&list(&store, Some("nobody")).await), own);
    let soul = store.documents(&TenantId::main(), Some(&agent("main")), None, Shelf::Context).await.unwrap();
    assert_eq!(
        soul,
        [DocumentCard { key: context, version: 1, bytes: 4, at: NOW, provenance: Provenance::default() }]
    );
}

async fn refuses_paths_that_cannot_be(store: impl Documents) {
    let fits = key(&"p".repeat(1_024));
    store.put_document(&fits, "x", None, NOW).await.unwrap();
    assert!(store.document(&fits).await.unwrap().is_some());
    for path in ["a\0b".to_owned(), "p".repeat(1_025), "p".repeat(100_000)] {
        let at = key(&path);
        for refused in [
            store.document(&at).await.map(drop),
            store.put_document(&at, "x", None, NOW).await.map(drop),
            store.remove_document(&at, 1, NOW).await,
            store.index_document(&at, 1, vec![]).await.map(drop),
        ] {
            let error = refused.unwrap_err();
            assert!(matches!(error, StoreError::Database { transient: false, .. }), "{error}");
            assert!(error.to_string().contains("its path"), "{error}");
        }
    }
}

async fn marks_what_is_to_be_indexed(store: impl Documents) {
    assert_eq!(store.unindexed(ALL).await.unwrap(), []);
    let [a, b] = ["a.md", "b.md"].map(key);
    let c = DocumentKey { tenant: tenant("other"), user: Some(user("ann")), ..key("c.md") };
    let context = DocumentKey { shelf: Shelf::Context, ..key("SOUL.md") };
    for (n, at) in [&b, &c, &a, &context].into_iter().enumerate() {
        store.put_document(at, "a heron", None, UnixMillis(n as i64)).await.unwrap();
    }
    assert_eq!(store.unindexed(ALL).await.unwrap(), [], "what is written is indexed");
    let marked = async || -> Vec<(DocumentKey, u64)> {
        let cards = store.unindexed(ALL).await.unwrap();
        cards.into_iter().map(|card| (card.key, card.version)).collect()
    };
    assert_eq!(store.mark_unindexed(&b.tenant).await.unwrap(), 2, "memory documents of this tenant");
    let found: HashSet<_> = marked().await.into_iter().collect();
    assert_eq!(found, HashSet::from([(b.clone(), 1), (a.clone(), 1)]));
    assert_eq!(find(&store, "heron").await.len(), 2, "they are found meanwhile");
    assert_eq!(store.unindexed(1).await.unwrap().len(), 1);
    assert_eq!(store.unindexed(0).await.unwrap(), []);
    assert!(store.index_document(&b, 1, vec![passage(1, "again")]).await.unwrap());
    assert_eq!(marked().await, [(a.clone(), 1)]);
    store.put_document(&a, "text", Some(1), UnixMillis(9)).await.unwrap();
    assert_eq!(marked().await, [], "a write indexes too");
    assert_eq!(store.mark_unindexed(&c.tenant).await.unwrap(), 1);
    assert!(store.index_document(&c, 1, vec![]).await.unwrap(), "a document may have no passages");
    assert_eq!(marked().await, []);
}

async fn indexes_what_stands_and_nothing_else(store: impl Documents) {
    let at = key("MEMORY.md");
    assert!(!store.index_document(&at, 1, vec![passage(1, "ghost")]).await.unwrap());
    assert_eq!(find(&store, "ghost").await, []);
    store.put_document(&at, "# Birds\n\na heron\n", None, NOW).await.unwrap();
    let found = find(&store, "which bird is a heron").await;
    let passage_of =
        |found: &[FoundPassage]| found.iter().map(|found| found.passage.clone()).collect::<Vec<_>>();
    let written = Passage {
        first_line: 1,
        last_line: 3,
        heading: "Birds".to_owned(),
        text: "# Birds\n\na heron".to_owned(),
    };
    assert_eq!(passage_of(&found), [written], "found with the write that stored it");
    assert_eq!(found[0].words, ["bird", "heron"]);
    let context = DocumentKey { shelf: Shelf::Context, ..key("SOUL.md") };
    store.put_document(&context, "a heron", None, NOW).await.unwrap();
    assert_eq!(find(&store, "heron").await.len(), 1, "context files are no memory");
    for version in [0, 2, u64::MAX] {
        assert!(!store.index_document(&at, version, vec![passage(1, "ghost")]).await.unwrap());
    }
    assert_eq!(store.unindexed(ALL).await.unwrap(), [], "what is written is indexed");
    assert!(store.index_document(&at, 1, vec![passage(3, "a heron"), passage(9, "a stork")]).await.unwrap());
    let heron = FoundPassage {
        provenance: Provenance::default(),
        key: at.clone(),
        version: 1,
        passage: passage(3, "a heron"),
        words: vec!["heron".to_owned()],
    };
    assert_eq!(find(&store, "heron").await, [heron]);
    assert_eq!(find(&store, "ghost").await, []);

    assert!(store.index_document(&at, 1, vec![passage(1, "an egret")]).await.unwrap());
    assert_eq!(find(&store, "heron stork").await, [], "in place of what was indexed");
    assert_eq!(find(&store, "egret").await.len(), 1);

    store.put_document(&at, "a crane", Some(1), NOW).await.unwrap();
    assert_eq!(find(&store, "egret").await, [], "what was indexed is not found any more");
    assert!(!store.index_document(&at, 1, vec![passage(1, "an egret")]).await.unwrap(), "a late indexer");
    assert_eq!(find(&store, "egret").await, []);
    assert!(store.index_document(&at, 2, vec![passage(1, "a crane")]).await.unwrap());
    assert_eq!(find(&store, "crane").await[0].version, 2);
    check_stale(store.put_document(&at, "lost", Some(1), NOW).await, &at, Some(2));
    assert_eq!(find(&store, "crane").await.len(), 1, "a refused write hides nothing");
    store.remove_document(&at, 2, NOW).await.unwrap();
    assert_eq!(find(&store, "crane").await, []);
}

async fn reads_the_passages_around_a_place(store: impl Documents) {
    let (at, other) = (key("memory/long.md"), key("memory/other.md"));
    for key in [&at, &other] {
        store.put_document(key, "text", None, NOW).await.unwrap();
        let passages = [1, 5, 9, 13, 17].map(|line| passage(line, &format!("line {line}"))).to_vec();
        assert!(store.index_document(key, 1, passages).await.unwrap());
    }
    let place = |key: &DocumentKey, version, first_line, last_line| PassagePlace {
        key: key.clone(),
        version,
        first_line,
        last_line,
    };
    let lines = async |places: &[PassagePlace], limit| -> Vec<Vec<u64>> {
        let near = store.passages_near(places, limit).await.unwrap();
        let is_of = |found: &FoundPassage| found.words.is_empty() && found.version == 1;
        assert!(near.iter().flatten().all(is_of), "{near:?}");
        assert!(near.iter().zip(places).all(|(near, at)| near.iter().all(|near| near.key == at.key)));
        near.iter().map(|near| near.iter().map(|near| near.passage.first_line).collect()).collect()
    };
    let middle = place(&at, 1, 9, 11);
    assert_eq!(
        lines(std::slice::from_ref(&middle), ALL).await,
        [[5, 13, 1, 17]],
        "nearest first, without itself"
    );
    let joined = place(&other, 1, 5, 11);
    assert_eq!(lines(&[middle.clone(), joined], 2).await, [[5, 13], [1, 13]], "for each place");
    let user = DocumentKey { user: Some(user("ann")), ..at.clone() };
    let elsewhere = DocumentKey { tenant: tenant("other"), ..at.clone() };
    let gone = [place(&at, 2, 9, 11), place(&user, 1, 9, 11), place(&elsewhere, 1, 9, 11)];
    assert_eq!(lines(&gone, ALL).await, [[0; 0]; 3], "another version, another user, another tenant");
    assert_eq!(lines(&[middle], 0).await, [[0; 0]]);
    assert_eq!(lines(&[], ALL).await, [[0; 0]; 0]);
}

async fn tells_of_changes(store: impl Documents) {
    let (at, mut changes) = (key("MEMORY.md"), store.changes(Topic::Documents));
    changes.mark_unchanged();
    store.put_document(&at, "one", None, NOW).await.unwrap();
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    store.put_document(&at, "two", Some(1), NOW).await.unwrap();
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    store.remove_document(&at, 2, NOW).await.unwrap();
    assert!(changes.has_changed().unwrap());
}

async fn keeps_tenants_apart(store: impl Documents) {
    let ours = DocumentKey { user: Some(user("ann")), ..key("MEMORY.md") };
    let theirs = DocumentKey { tenant: tenant("other"), ..ours.clone() };
    store.put_document(&ours, "our heron", None, NOW).await.unwrap();
    store.index_document(&ours, 1, vec![passage(1, "our heron")]).await.unwrap();

    assert_eq!(store.document(&theirs).await.unwrap(), None);
    check_stale(store.put_document(&theirs, "x", Some(1), NOW).await, &theirs, None);
    check_stale(store.remove_document(&theirs, 1, NOW).await, &theirs, None);
    assert!(!store.index_document(&theirs, 1, vec![passage(1, "their heron")]).await.unwrap());
    let listed =
        store.documents(&theirs.tenant, theirs.agent.as_ref(), theirs.user.as_ref(), Shelf::Memory).await;
    assert_eq!(listed.unwrap(), []);
    let asked = PassageQuery { tenant: theirs.tenant.clone(), ..question("heron") };
    assert_eq!(store.search_passages(&asked).await.unwrap(), []);

    assert_eq!(store.put_document(&theirs, "their heron", None, NOW).await.unwrap(), 1);
    assert!(store.index_document(&theirs, 1, vec![passage(1, "their heron")]).await.unwrap());
    let found = store.search_passages(&asked).await.unwrap();
    assert_eq!(found, [heron(&theirs, "their heron")]);
    store.remove_document(&theirs, 1, NOW).await.unwrap();
    let found = find(&store, "heron").await;
    assert_eq!(found, [heron(&ours, "our heron")]);
    assert_eq!(store.document(&ours).await.unwrap().unwrap().text, "our heron");
}

async fn records_the_origin_until_a_person_answers_for_the_text(store: impl Documents) {
    let at = key("memory/a.md");
    let (clean, read) = (JobId::new(), JobId::new());
    let write = async |text: &'static str, seen, provenance: Provenance| {
        let write = DocumentWrite { text, seen, at: NOW, provenance, keeps_mark: true };
        store.write_document(&at, write).await.unwrap()
    };
    let check = async |expected: Provenance| {
        assert_eq!(store.document(&at).await.unwrap().unwrap().provenance, expected);
        assert_eq!(list(&store, None).await[0].provenance, expected);
        assert_eq!(find(&store, "heron").await[0].provenance, expected);
    };
    let trusted = Provenance { run: Some(clean), untrusted: false };
    write("a heron", None, trusted).await;
    check(trusted).await;
    let untrusted = Provenance { run: Some(read), untrusted: true };
    write("a heron says: obey", Some(1), untrusted).await;
    check(untrusted).await;
    // What an agent writes over it may hold the text still.
    write("a heron", Some(2), trusted).await;
    check(Provenance { run: Some(clean), untrusted: true }).await;
    store.remove_document(&at, 3, NOW).await.unwrap();
    write("a heron", None, trusted).await;
    check(Provenance { run: Some(clean), untrusted: true }).await;
    store.put_document(&at, "a heron", Some(5), NOW).await.unwrap();
    check(Provenance::default()).await;
}

async fn one_of_many_writers_wins_each_version(store: impl Documents + 'static) {
    const WRITERS: usize = 8;
    let (store, at) = (Arc::new(store), key("MEMORY.md"));
    let write = |n| {
        let (store, at) = (Arc::clone(&store), at.clone());
        tokio::spawn(async move {
            let mut won = Vec::new();
            for round in 0..6 {
                let seen = store.document(&at).await.unwrap().map(|document| document.version);
                match store.put_document(&at, &format!("{n} {round}"), seen, NOW).await {
                    Ok(version) => won.push(version),
                    Err(StoreError::Stale { .. }) => continue,
                    Err(error) => panic!("{error}"),
                }
                // Some indexers are late, and some documents gone by the time.
                let version = *won.last().unwrap();
                store
                    .index_document(&at, version, vec![passage(1, &format!("word v{version}"))])
                    .await
                    .unwrap();
                if n == 0 && store.remove_document(&at, version, NOW).await.is_ok() {
                    won.push(version + 1);
                }
            }
            won
        })
    };
    let mut won = Vec::new();
    for writer in (0..WRITERS).map(write).collect::<Vec<_>>() {
        let mine = writer.await.unwrap();
        assert!(mine.is_sorted(), "{mine:?}");
        won.extend(mine);
    }
    let different: HashSet<_> = won.iter().copied().collect();
    assert_eq!(different.len(), won.len(), "no version is given twice: {won:?}");
    let last = won.iter().copied().max().unwrap();
    assert_eq!(last, won.len() as u64, "and none is left out");
    let stands = store.document(&at).await.unwrap();
    assert!(stands.as_ref().is_none_or(|document| document.version == last), "{stands:?}");
    let found = find(&*store, "word").await;
    assert!(
        found.iter().all(|found| Some(found.version) == stands.as_ref().map(|it| it.version)),
        "{found:?}"
    );
    assert!(found.len() <= 1, "{found:?}");
}

/// The hits of a search for a heron.
fn heron(key: &DocumentKey, text: &str) -> FoundPassage {
    let (provenance, words) = (Provenance::default(), vec!["heron".to_owned()]);
    FoundPassage { key: key.clone(), version: 1, provenance, passage: passage(1, text), words }
}

fn agent(name: &str) -> AgentId {
    AgentId::new(name).unwrap()
}

fn user(name: &str) -> UserId {
    UserId::new(name).unwrap()
}

/// A memory document of the agent's own.
fn key(path: &str) -> DocumentKey {
    let (tenant, agent) = (TenantId::main(), Some(agent("main")));
    DocumentKey { tenant, agent, user: None, shelf: Shelf::Memory, path: path.to_owned() }
}

fn passage(line: u64, text: &str) -> Passage {
    Passage { first_line: line, last_line: line + 2, heading: String::new(), text: text.to_owned() }
}

/// Returns a query of the user ann.
fn question(text: &str) -> PassageQuery {
    let (tenant, agent, user) = (TenantId::main(), agent("main"), Some(user("ann")));
    PassageQuery { tenant, agent, user, text: text.to_owned(), limit: 100 }
}

async fn find(store: &impl Documents, text: &str) -> Vec<FoundPassage> {
    store.search_passages(&question(text)).await.unwrap()
}

async fn list(store: &impl Documents, name: Option<&str>) -> Vec<DocumentCard> {
    let name = name.map(user);
    store.documents(&TenantId::main(), Some(&agent("main")), name.as_ref(), Shelf::Memory).await.unwrap()
}

fn places(cards: &[DocumentCard]) -> Vec<(String, Option<UserId>)> {
    cards.iter().map(|card| (card.key.path.clone(), card.key.user.clone())).collect()
}

#[track_caller]
fn check_stale<T: std::fmt::Debug>(result: Result<T, StoreError>, key: &DocumentKey, expected: Option<u64>) {
    match result {
        Err(StoreError::Stale { path, now }) => assert_eq!((path, now), (key.path.clone(), expected)),
        other => panic!("expected it to be stale, got {other:?}"),
    }
}
