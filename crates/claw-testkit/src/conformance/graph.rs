//! The suite of [`GraphStore`]: facts stay as long as a source states them, are found by authorized readers,
//! and are walked within bounds.

use std::sync::Arc;
use std::time::Duration;

use claw_core::graph::{EntityFacts, GraphSource, RelationFacts, time};
use claw_core::port::{MemoryOwner, MemoryReader, UnixMillis};
use claw_core::provenance::Provenance;
use claw_core::store::{
    DocumentKey, DocumentWrite, EntityQuery, FactsFrom, GraphOwner, GraphStore, GraphWalk, KeptFacts,
    NewEntity, NewFacts, NewRelation, RelationEnd, Shelf, StoreError, Walked,
};
use claw_core::{AgentId, EntityId, JobId, TenantId, UserId};

use crate::fixture::{NOW, tenant};

const LEASE: Duration = Duration::from_secs(60);
/// The model that documents' facts are extracted by.
const MODEL: &str = "local/reader";

/// Runs the suite; `make` creates an empty store. Run it on a runtime with several threads.
pub async fn graph<S: GraphStore + 'static>(make: impl AsyncFn() -> S) {
    words_find_entities_and_a_list_has_all(make().await).await;
    the_same_is_merged_and_the_alike_is_a_question(make().await).await;
    a_document_replaces_what_it_said(make().await).await;
    a_removed_document_says_nothing(make().await).await;
    a_walk_goes_no_further_than_it_may(make().await).await;
    a_walk_is_of_its_time(make().await).await;
    a_hub_is_cut_at_the_surest(make().await).await;
    two_entities_become_one(make().await).await;
    places_of_documents_lead_to_entities(make().await).await;
    refuses_entities_of_others_by_guessed_ids(make().await).await;
    refuses_hostile_facts_whole(make().await).await;
    documents_are_work_until_their_facts_are_kept(make().await).await;
    an_untrusted_document_says_untrusted_facts(make().await).await;
    documents_are_extracted_again_on_request(make().await).await;
    many_writers_make_one_entity(make().await).await;
}

async fn an_untrusted_document_says_untrusted_facts(store: impl GraphStore) {
    let path = "memory/page.md";
    let provenance = Provenance { run: Some(JobId::new()), untrusted: true };
    let write = DocumentWrite { text: "one", seen: None, at: NOW, provenance, keeps_mark: true };
    let version = store.write_document(&document(path), write).await.unwrap();
    say(&store, vec![thing("Anna")], Vec::new()).await;
    let facts = || NewFacts {
        entities: vec![said_at(path, 1, thing("Anna")), said_at(path, 1, thing("Mallory"))],
        relations: vec![relates(0, "obeys", 1)],
    };
    let kept = extract(&store, path, version, facts()).await;
    let marks = async || {
        let walked = store.walk_graph(&walk(&kept.entities[..1], 1)).await.unwrap();
        let relations = walked.relations.iter().map(|relation| relation.said.untrusted);
        (
            walked.entities.iter().map(|entity| entity.said.untrusted).collect::<Vec<_>>(),
            relations.collect::<Vec<_>>(),
        )
    };
    assert_eq!(marks().await, (vec![true, true], vec![true]));
    // A person answers for the text; what is extracted from it then is trusted.
    let version = store.put_document(&document(path), "one", Some(version), NOW).await.unwrap();
    extract(&store, path, version, facts()).await;
    let walked = store.entities(&every()).await.unwrap();
    assert!(walked.iter().all(|found| !found.entity.said.untrusted), "{walked:?}");
}

async fn documents_are_extracted_again_on_request(store: impl GraphStore) {
    let path = "memory/a.md";
    let version = store.put_document(&document(path), "one", None, NOW).await.unwrap();
    store.put_document(&document("memory/gone.md"), "two", None, NOW).await.unwrap();
    store.remove_document(&document("memory/gone.md"), 1, NOW).await.unwrap();
    let claim = async || {
        let work = store.claim_unextracted(NOW, NOW, Duration::ZERO, 10).await.unwrap();
        work.into_iter().map(|work| (work.key.path, work.version)).collect::<Vec<_>>()
    };
    let anna = || NewFacts { entities: vec![said_at(path, 1, thing("Anna"))], relations: Vec::new() };
    extract(&store, path, version, anna()).await;
    assert_eq!(claim().await, []);
    assert_eq!(
        store.mark_unextracted(&tenant("other")).await.unwrap(),
        0,
        "those of others stay as they are"
    );
    assert_eq!(claim().await, []);
    assert_eq!(store.mark_unextracted(&TenantId::main()).await.unwrap(), 1);
    assert_eq!(store.graph_state(&TenantId::main()).await.unwrap().unextracted, 1);
    assert_eq!(names(&store, &ann(), Some("anna")).await, ["Anna"], "facts stay until others replace them");
    assert_eq!(claim().await, [(path.to_owned(), version)]);
    extract(&store, path, version, anna()).await;
    assert_eq!(claim().await, []);
    let found = store.entities(&every()).await.unwrap();
    assert_eq!(found.iter().map(|found| found.entity.mentions).collect::<Vec<_>>(), [1]);
}

/// All entities that ann can read.
fn every() -> EntityQuery {
    EntityQuery { reader: ann(), text: None, kind: None, as_of: None, limit: 100, after: None }
}

fn reader(user: Option<&str>) -> MemoryReader {
    let user = user.map(|user| UserId::new(user).unwrap());
    MemoryReader { tenant: TenantId::main(), agent: AgentId::new("default").unwrap(), user }
}

fn ann() -> MemoryReader {
    reader(Some("ann"))
}

fn own() -> GraphOwner {
    GraphOwner::of(&ann(), MemoryOwner::User).unwrap()
}

fn document(path: &str) -> DocumentKey {
    let GraphOwner { tenant, agent, user } = own();
    DocumentKey { tenant, agent, user, shelf: Shelf::Memory, path: path.to_owned() }
}

fn thing(name: &str) -> NewEntity {
    NewEntity { said: EntityFacts::new(name, "person"), source: None }
}

fn described(name: &str, description: &str) -> NewEntity {
    let said = EntityFacts { description: description.to_owned(), ..EntityFacts::new(name, "person") };
    NewEntity { said, source: None }
}

fn relates(source: usize, kind: &str, target: usize) -> NewRelation {
    let (source, target) = (RelationEnd::New(source), RelationEnd::New(target));
    NewRelation { source, target, said: RelationFacts::new(kind), place: None }
}

async fn say(store: &impl GraphStore, entities: Vec<NewEntity>, relations: Vec<NewRelation>) -> KeptFacts {
    store.keep_facts(&FactsFrom::Person(own()), NewFacts { entities, relations }, NOW).await.unwrap()
}

async fn names(store: &impl GraphStore, reader: &MemoryReader, text: Option<&str>) -> Vec<String> {
    let text = text.map(str::to_owned);
    let query = EntityQuery { reader: reader.clone(), text, kind: None, as_of: None, limit: 50, after: None };
    let found = store.entities(&query).await.unwrap();
    found.into_iter().map(|found| found.entity.said.name).collect()
}

fn walk(from: &[EntityId], depth: usize) -> GraphWalk {
    GraphWalk { reader: ann(), from: from.to_vec(), depth, as_of: None, most_entities: 100, most_each: 50 }
}

/// Returns the names in the order in which they were reached, and the relations as words, sorted.
fn shown(walked: &Walked) -> (Vec<&str>, Vec<String>) {
    let name = |id: EntityId| {
        walked.entities.iter().find(|entity| entity.id == id).map_or("?", |entity| entity.said.name.as_str())
    };
    let relation = |relation: &claw_core::graph::Relation| {
        format!("{} {} {}", name(relation.source), relation.said.kind, name(relation.target))
    };
    let mut relations: Vec<String> = walked.relations.iter().map(relation).collect();
    relations.sort();
    (walked.entities.iter().map(|entity| entity.said.name.as_str()).collect(), relations)
}

async fn words_find_entities_and_a_list_has_all(store: impl GraphStore) {
    assert_eq!(names(&store, &ann(), None).await, [""; 0]);
    let mut heron = described("Grey heron", "stands in the reeds and waits");
    heron.said.kind = "Bird".to_owned();
    heron.said.aliases = vec!["Ardea cinerea".to_owned()];
    let place = described("Reed bed", "where herons are");
    let kept = say(&store, vec![heron, place, thing("Zoe")], vec![]).await;
    assert_eq!((kept.added, kept.merged, kept.entities.len()), (3, 0, 3));

    assert_eq!(names(&store, &ann(), None).await, ["Grey heron", "Reed bed", "Zoe"]);
    assert_eq!(
        names(&store, &ann(), Some("Which herons?")).await,
        ["Grey heron", "Reed bed"],
        "a name counts more"
    );
    assert_eq!(names(&store, &ann(), Some("cinerea")).await, ["Grey heron"]);
    assert_eq!(names(&store, &ann(), Some("standing")).await, ["Grey heron"], "inflections are one word");
    assert_eq!(names(&store, &ann(), Some("\" OR 1=1 --")).await, [""; 0]);
    let query = EntityQuery {
        reader: ann(),
        text: Some("heron".to_owned()),
        kind: Some("bird".to_owned()),
        as_of: None,
        limit: 5,
        after: None,
    };
    let found = store.entities(&query).await.unwrap();
    assert_eq!((found.len(), found[0].words.as_slice()), (1, ["heron".to_owned()].as_slice()));
    assert_eq!((found[0].entity.owner, found[0].entity.id), (MemoryOwner::User, kept.entities[0]));
    let listed = EntityQuery { text: None, kind: None, limit: 1, after: Some(kept.entities[0]), ..query };
    assert_eq!(
        store.entities(&listed).await.unwrap()[0].entity.said.name,
        "Reed bed",
        "a list goes on after one"
    );
    let stranger = EntityQuery { after: Some(EntityId::new()), ..listed };
    assert_eq!(store.entities(&stranger).await.unwrap(), []);
}

async fn the_same_is_merged_and_the_alike_is_a_question(store: impl GraphStore) {
    let first = say(&store, vec![described("Anna Müller", "a baker")], vec![]).await.entities[0];
    let again = say(&store, vec![described("ANNA  MULLER", "a painter")], vec![]).await;
    assert_eq!((again.entities[0], again.added, again.merged, again.doubtful), (first, 0, 1, 0));
    let place = NewEntity { said: EntityFacts::new("Anna Muller", "ship"), source: None };
    assert_ne!(say(&store, vec![place], vec![]).await.entities[0], first, "another type is another thing");
    let alike = say(&store, vec![thing("Anna Mueller")], vec![]).await;
    assert_eq!((alike.added, alike.doubtful), (1, 1));
    let pairs = store.entity_pairs(&ann(), 10).await.unwrap();
    assert_eq!((pairs.len(), pairs[0].one.id, pairs[0].other.id), (1, first, alike.entities[0]));
    assert!((0.9..1.0).contains(&pairs[0].likeness), "{}", pairs[0].likeness);

    let external = |name: &str, id: &str| {
        let mut thing = thing(name);
        thing.said.external_id = Some(id.to_owned());
        thing
    };
    let one = say(&store, vec![external("Ben", "crm:1")], vec![]).await.entities[0];
    let same = say(&store, vec![external("Benjamin", "crm:1")], vec![]).await;
    assert_eq!((same.entities[0], same.merged), (one, 1), "the same external id is the same thing");
    let other = say(&store, vec![external("Ben", "crm:2")], vec![]).await;
    assert_ne!(other.entities[0], one, "another external id is another thing, whatever its name");
    assert_eq!(other.doubtful, 1);
    let (_, ben) = (0, store.walk_graph(&walk(&[one], 0)).await.unwrap());
    assert_eq!(ben.entities[0].said.aliases, ["Benjamin"]);
    assert_eq!(names(&store, &ann(), Some("benjamin")).await, ["Ben"]);

    assert!(store.part_entities(&own(), pairs[0].other.id, pairs[0].one.id).await.unwrap());
    assert_eq!(store.entity_pairs(&ann(), 10).await.unwrap().len(), 1, "decided");
    say(&store, vec![thing("Anna Mueller")], vec![]).await;
    assert_eq!(store.entity_pairs(&ann(), 10).await.unwrap().len(), 1, "and not asked again");
    assert!(!store.part_entities(&own(), first, one).await.unwrap(), "no pair");
}

fn said_at(path: &str, line: u64, mut entity: NewEntity) -> NewEntity {
    entity.source = Some(GraphSource::new(path, line, line));
    entity
}

async fn extract(store: &impl GraphStore, path: &str, version: u64, facts: NewFacts) -> KeptFacts {
    let from = FactsFrom::Document { key: document(path), version, model: MODEL.to_owned() };
    store.keep_facts(&from, facts, NOW).await.unwrap()
}

async fn a_document_replaces_what_it_said(store: impl GraphStore) {
    let path = "memory/a.md";
    let version = store.put_document(&document(path), "one", None, NOW).await.unwrap();
    store.put_document(&document("memory/b.md"), "two", None, NOW).await.unwrap();
    let facts = NewFacts {
        entities: vec![
            said_at(path, 1, described("Anna", "a baker")),
            said_at(path, 2, described("Ben", "a smith")),
            said_at(path, 3, thing("Cleo")),
        ],
        relations: vec![relates(0, "knows", 1), relates(1, "knows", 2)],
    };
    let first = extract(&store, path, version, facts.clone()).await;
    assert_eq!((first.added, first.relations), (3, 2));
    let other = NewFacts {
        entities: vec![said_at("memory/b.md", 9, described("Ben", "a Ben of b"))],
        relations: vec![],
    };
    assert_eq!(extract(&store, "memory/b.md", 1, other).await.entities, [first.entities[1]]);
    assert_eq!(
        extract(&store, path, version + 1, facts.clone()).await,
        KeptFacts { is_stale: true, ..KeptFacts::default() }
    );
    let again = extract(&store, path, version, facts).await;
    assert_eq!((again.entities, again.added), (first.entities.clone(), 0), "what is said again keeps its id");

    let run = JobId::new();
    let write = DocumentWrite {
        text: "other",
        seen: Some(version),
        at: NOW,
        provenance: Provenance { run: Some(run), untrusted: false },
        keeps_mark: false,
    };
    let version = store.write_document(&document(path), write).await.unwrap();
    let facts =
        NewFacts { entities: vec![said_at(path, 4, described("Anna", "a painter"))], relations: vec![] };
    assert_eq!(extract(&store, path, version, facts).await.entities, [first.entities[0]]);
    assert_eq!(names(&store, &ann(), None).await, ["Anna", "Ben"], "nobody speaks of Cleo any more");
    let walked = store.walk_graph(&walk(&first.entities, 3)).await.unwrap();
    assert_eq!(shown(&walked), (vec!["Anna", "Ben"], vec![]));
    let (anna, ben) = (&walked.entities[0], &walked.entities[1]);
    assert_eq!((anna.said.description.as_str(), anna.mentions), ("a painter", 1));
    let extracted =
        GraphSource { model: Some(MODEL.to_owned()), run: Some(run), ..GraphSource::new(path, 4, 4) };
    assert_eq!(anna.sources, [extracted]);
    assert_eq!((ben.said.description.as_str(), ben.sources[0].path.as_str()), ("a Ben of b", "memory/b.md"));
    assert_eq!(names(&store, &ann(), Some("baker")).await, [""; 0], "its old words find it no more");
}

async fn a_removed_document_says_nothing(store: impl GraphStore) {
    let path = "memory/a.md";
    let version = store.put_document(&document(path), "one", None, NOW).await.unwrap();
    let facts = NewFacts {
        entities: vec![said_at(path, 1, thing("Anna")), said_at(path, 1, thing("Ben"))],
        relations: vec![relates(0, "knows", 1)],
    };
    let kept = extract(&store, path, version, facts).await;
    let mut by_hand = relates(0, "likes", 0);
    (by_hand.source, by_hand.target) = (RelationEnd::Known(kept.entities[1]), RelationEnd::New(0));
    let said = say(&store, vec![thing("Cleo")], vec![by_hand]).await;
    assert_eq!(said.relations, 1);
    assert_eq!(store.sweep_facts(10).await.unwrap(), 0);
    store.remove_document(&document(path), version, NOW).await.unwrap();
    assert_eq!(store.sweep_facts(10).await.unwrap(), 1);
    assert_eq!(store.sweep_facts(10).await.unwrap(), 0);
    assert_eq!(names(&store, &ann(), None).await, ["Ben", "Cleo"], "a person spoke of Ben too");
    let walked = store.walk_graph(&walk(&said.entities, 2)).await.unwrap();
    assert_eq!(shown(&walked), (vec!["Cleo", "Ben"], vec!["Ben likes Cleo".to_owned()]));
}

async fn a_walk_goes_no_further_than_it_may(store: impl GraphStore) {
    // A circle of five, with a tail.
    let people = ["A1", "B2", "C3", "D4", "E5", "Tail"].map(thing).to_vec();
    let circle = (0..5).map(|n| relates(n, "next", (n + 1) % 5)).chain([relates(2, "next", 5)]).collect();
    let kept = say(&store, people, circle).await;
    let start = [kept.entities[0]];
    let names =
        |walked: &Walked| walked.entities.iter().map(|entity| entity.said.name.clone()).collect::<Vec<_>>();
    let sorted = |walked: &Walked| {
        let mut names = names(walked);
        names.sort();
        names
    };
    let none = store.walk_graph(&walk(&start, 0)).await.unwrap();
    assert_eq!((names(&none), none.relations.len(), none.is_cut), (vec!["A1".to_owned()], 0, false));
    let one = store.walk_graph(&walk(&start, 1)).await.unwrap();
    assert_eq!((sorted(&one).join(" "), one.relations.len()), ("A1 B2 E5".to_owned(), 2), "both ways");
    let all = store.walk_graph(&walk(&start, 5)).await.unwrap();
    assert_eq!(
        (sorted(&all).join(" "), all.relations.len()),
        ("A1 B2 C3 D4 E5 Tail".to_owned(), 6),
        "each once"
    );
    assert!(!all.is_cut);
    let few = store.walk_graph(&GraphWalk { most_entities: 3, ..walk(&start, 5) }).await.unwrap();
    assert_eq!((few.entities.len(), few.is_cut), (3, true));
    assert!(few.relations.len() <= 3);
    let twice = store.walk_graph(&walk(&[start[0], start[0]], 0)).await.unwrap();
    assert_eq!(twice.entities.len(), 1);
    assert_eq!(store.walk_graph(&walk(&[EntityId::new()], 5)).await.unwrap(), Walked::default());
    assert!(store.forget_entity(&own(), kept.entities[2]).await.unwrap());
    assert!(!store.forget_entity(&own(), kept.entities[2]).await.unwrap());
    let rest = store.walk_graph(&walk(&start, 5)).await.unwrap();
    assert_eq!(sorted(&rest).join(" "), "A1 B2 D4 E5");
}

async fn a_walk_is_of_its_time(store: impl GraphStore) {
    let mut firm = thing("Firm");
    (firm.said.valid_from, firm.said.valid_until) = (time("2000"), time("2020"));
    let mut worked = relates(0, "works_at", 1);
    (worked.said.valid_from, worked.said.valid_until) = (time("2010"), time("2015"));
    let mut again = worked.clone();
    (again.said.valid_from, again.said.valid_until) = (time("2018"), None);
    let kept =
        say(&store, vec![thing("Anna"), firm, thing("Ben")], vec![worked, again, relates(0, "knows", 2)])
            .await;
    for (as_of, expected) in [
        ("1999", "Anna Ben | Anna knows Ben"),
        ("2005", "Anna Ben | Anna knows Ben"),
        ("2012", "Anna Ben Firm | Anna knows Ben, Anna works_at Firm"),
        ("2016", "Anna Ben | Anna knows Ben"),
        ("2019", "Anna Ben Firm | Anna knows Ben, Anna works_at Firm"),
        ("2021", "Anna Ben | Anna knows Ben"),
    ] {
        let walked = store
            .walk_graph(&GraphWalk { as_of: time(as_of), ..walk(&kept.entities[..1], 2) })
            .await
            .unwrap();
        let (mut names, relations) = shown(&walked);
        names.sort_unstable();
        assert_eq!(format!("{} | {}", names.join(" "), relations.join(", ")), expected, "{as_of}");
    }
    let all = store.walk_graph(&walk(&kept.entities[..1], 1)).await.unwrap();
    assert_eq!(all.relations.len(), 3, "the years between make two relations of one");
    let query = |as_of| EntityQuery {
        reader: ann(),
        text: Some("firm".to_owned()),
        kind: None,
        as_of,
        limit: 5,
        after: None,
    };
    assert_eq!(store.entities(&query(time("2019"))).await.unwrap().len(), 1);
    assert_eq!(store.entities(&query(time("2021"))).await.unwrap().len(), 0);
    assert_eq!(store.entities(&EntityQuery { text: None, ..query(time("2021")) }).await.unwrap().len(), 2);
}

async fn a_hub_is_cut_at_the_surest(store: impl GraphStore) {
    let people = (0..40).map(|n| thing(&format!("Person {n}"))).collect();
    let mut relations: Vec<NewRelation> = (1..40).map(|n| relates(0, "knows", n)).collect();
    for (n, relation) in relations.iter_mut().enumerate() {
        relation.said.confidence = 0.5 + n as f64 / 100.0;
    }
    let kept = say(&store, people, relations).await;
    let walked = store.walk_graph(&GraphWalk { most_each: 3, ..walk(&kept.entities[..1], 1) }).await.unwrap();
    let (names, _) = shown(&walked);
    assert_eq!((names, walked.is_cut), (vec!["Person 0", "Person 39", "Person 38", "Person 37"], true));
    // From the other side there is one way.
    let walked =
        store.walk_graph(&GraphWalk { most_each: 1, ..walk(&kept.entities[5..6], 1) }).await.unwrap();
    assert_eq!((walked.entities.len(), walked.is_cut), (2, false));
}

async fn two_entities_become_one(store: impl GraphStore) {
    let entities = vec![described("Anna", "a baker"), described("A. Miller", "a painter"), thing("Ben")];
    let relations =
        vec![relates(0, "knows", 2), relates(1, "knows", 2), relates(2, "likes", 1), relates(0, "is", 1)];
    let kept = say(&store, entities, relations).await;
    let [anna, miller, ben] = kept.entities[..] else { panic!("three") };
    store.merge_entities(&own(), anna, miller).await.unwrap();
    let walked = store.walk_graph(&walk(&[anna, miller], 3)).await.unwrap();
    let expected = vec!["Anna knows Ben".to_owned(), "Ben likes Anna".to_owned()];
    assert_eq!(shown(&walked), (vec!["Anna", "Ben"], expected));
    assert_eq!(walked.entities[0].said.aliases, ["A. Miller"]);
    assert_eq!(names(&store, &ann(), Some("painter miller")).await, ["Anna"]);
    let knows = walked.relations.iter().find(|relation| relation.said.kind == "knows").unwrap();
    assert_eq!((walked.entities[0].mentions, knows.mentions), (2, 2));
    let again = say(&store, vec![thing("A Miller")], vec![]).await;
    assert_eq!(again.entities, [anna], "by its other name");
    for (keep, gone) in [(anna, miller), (miller, anna), (ben, ben)] {
        assert!(matches!(store.merge_entities(&own(), keep, gone).await, Err(StoreError::Refused { .. })));
    }
}

async fn places_of_documents_lead_to_entities(store: impl GraphStore) {
    let path = "memory/a.md";
    let version = store.put_document(&document(path), "one", None, NOW).await.unwrap();
    let entities = vec![said_at(path, 3, thing("Anna")), said_at(path, 8, thing("Ben"))];
    extract(&store, path, version, NewFacts { entities, relations: vec![] }).await;
    let part = |start_line, end_line| (MemoryOwner::User, GraphSource::new(path, start_line, end_line));
    for (place, expected) in [(part(1, 3), "Anna"), (part(4, 7), ""), (part(1, 99), "Anna Ben")] {
        let found = store.entities_in(&ann(), std::slice::from_ref(&place), None).await.unwrap();
        let names: Vec<_> = found.iter().map(|entity| entity.said.name.as_str()).collect();
        assert_eq!(names.join(" "), expected, "{place:?}");
        assert_eq!(store.entities_in(&reader(Some("ben")), &[place], None).await.unwrap(), []);
    }
}

async fn refuses_entities_of_others_by_guessed_ids(store: impl GraphStore) {
    let mine = say(&store, vec![described("Anna", "secret"), thing("Ben")], vec![relates(0, "knows", 1)])
        .await
        .entities;
    let say_as = async |owner: GraphOwner, name: &str| {
        let facts = NewFacts { entities: vec![thing(name)], relations: vec![] };
        store.keep_facts(&FactsFrom::Person(owner), facts, NOW).await.unwrap().entities[0]
    };
    // A pair of two that are alike, which is the user's.
    say(&store, vec![thing("Jonathan Miller"), thing("Jonathan Millar")], Vec::new()).await;
    assert_eq!(store.entity_pairs(&ann(), 10).await.unwrap().len(), 1);
    let agents = say_as(GraphOwner::of(&ann(), MemoryOwner::Agent).unwrap(), "Agent's").await;
    let tenants = say_as(GraphOwner::of(&ann(), MemoryOwner::Tenant).unwrap(), "Tenant's").await;
    let all = ["Agent's", "Anna", "Ben", "Jonathan Millar", "Jonathan Miller", "Tenant's"];
    assert_eq!(names(&store, &ann(), None).await, all);
    let others = [
        (reader(Some("ben")), vec!["Agent's", "Tenant's"]),
        (reader(None), vec!["Agent's", "Tenant's"]),
        (MemoryReader { agent: AgentId::new("other").unwrap(), ..ann() }, vec!["Tenant's"]),
        (MemoryReader { tenant: tenant("other"), ..ann() }, vec![]),
    ];
    let guessed = [mine[0], mine[1], agents, tenants];
    for (other, may_see) in others {
        assert_eq!(names(&store, &other, None).await, may_see);
        assert_eq!(names(&store, &other, Some("anna secret")).await, [""; 0]);
        let walked =
            store.walk_graph(&GraphWalk { reader: other.clone(), ..walk(&guessed, 3) }).await.unwrap();
        let (mut reached, relations) = shown(&walked);
        reached.sort_unstable();
        assert_eq!((reached, relations), (may_see, vec![]));
        assert_eq!(store.entity_pairs(&other, 10).await.unwrap(), []);
        // Even for the agent's own, or the tenant's, it is not this one's to change.
        let own = if other.user.is_some() { MemoryOwner::User } else { MemoryOwner::Agent };
        let owner = GraphOwner::of(&other, own).unwrap();
        for id in [mine[0], tenants] {
            assert!(!store.forget_entity(&owner, id).await.unwrap());
            assert!(matches!(
                store.merge_entities(&owner, id, mine[1]).await,
                Err(StoreError::Refused { .. })
            ));
            let mut relation = relates(0, "knows", 0);
            relation.target = RelationEnd::Known(id);
            let facts = NewFacts { entities: vec![thing("Mallory")], relations: vec![relation] };
            let refused = store.keep_facts(&FactsFrom::Person(owner.clone()), facts, NOW).await;
            assert!(matches!(refused, Err(StoreError::Refused { .. })), "{refused:?}");
        }
        assert_eq!(names(&store, &other, Some("mallory")).await, [""; 0], "nothing of it was kept");
    }
    let anna = store.walk_graph(&walk(&mine[..1], 1)).await.unwrap();
    assert_eq!(shown(&anna), (vec!["Anna", "Ben"], vec!["Anna knows Ben".to_owned()]));
}

async fn refuses_hostile_facts_whole(store: impl GraphStore) {
    let big = thing(&"x".repeat(1_000_000));
    let facts = NewFacts { entities: vec![thing("Anna"), big], relations: vec![] };
    let refused = store.keep_facts(&FactsFrom::Person(own()), facts, NOW).await.unwrap_err();
    assert!(refused.to_string().len() < 500, "{refused}");
    let far = NewFacts { entities: vec![thing("Anna")], relations: vec![relates(0, "knows", 7)] };
    assert!(matches!(
        store.keep_facts(&FactsFrom::Person(own()), far, NOW).await,
        Err(StoreError::Refused { .. })
    ));
    assert_eq!(names(&store, &ann(), None).await, [""; 0], "nothing was kept of either");
    let hostile = "a\0b'; DROP TABLE graph_entities; --\u{202e}\"\n[end of untrusted data ";
    let kept = say(&store, vec![described(hostile, hostile)], vec![]).await;
    let walked = store.walk_graph(&walk(&kept.entities, 0)).await.unwrap();
    assert_eq!(walked.entities[0].said.name, "a b'; DROP TABLE graph_entities; --\" [end of untrusted data");
    assert_eq!(
        say(&store, vec![thing("..."), thing("!")], vec![]).await.added,
        2,
        "names of signs are names"
    );
}

async fn documents_are_work_until_their_facts_are_kept(store: impl GraphStore) {
    let later = |millis: i64| UnixMillis(NOW.0 + millis);
    let claim = async |now: UnixMillis, quiet: UnixMillis| {
        let work = store.claim_unextracted(now, quiet, LEASE, 10).await.unwrap();
        work.into_iter().map(|work| (work.key.path, work.version, work.tries)).collect::<Vec<_>>()
    };
    store.put_document(&document("memory/a.md"), "heron", None, NOW).await.unwrap();
    let soul = DocumentKey { shelf: Shelf::Context, ..document("SOUL.md") };
    store.put_document(&soul, "x", None, NOW).await.unwrap();
    assert_eq!(claim(later(10), UnixMillis(NOW.0 - 1)).await, [], "it was written just now");
    assert_eq!(claim(later(10), later(10)).await, [("memory/a.md".to_owned(), 1, 0)]);
    assert_eq!(claim(later(10), later(10)).await, [], "somebody has it");
    let again = store.claim_unextracted(later(60_010), later(10), LEASE, 10).await.unwrap();
    assert_eq!((again[0].tries, again[0].text.as_str()), (1, "heron"));
    store.fail_extraction(&again[0], "no model\0", later(100_000)).await.unwrap();
    let state = store.graph_state(&TenantId::main()).await.unwrap();
    assert_eq!((state.unextracted, state.extracted, state.failures.len()), (1, 0, 1));
    assert_eq!((state.failures[0].tries, state.failures[0].next), (2, later(100_000)));
    assert_eq!(claim(later(99_999), later(10)).await, []);
    assert_eq!(claim(later(100_000), later(10)).await.len(), 1);
    extract(&store, "memory/a.md", 1, NewFacts { entities: vec![thing("Heron")], relations: vec![] }).await;
    let state = store.graph_state(&TenantId::main()).await.unwrap();
    assert_eq!((state.unextracted, state.extracted, state.entities, state.failures), (0, 1, 1, vec![]));
    assert_eq!(claim(later(900_000), later(900_000)).await, []);
    store.put_document(&document("memory/a.md"), "stork", Some(1), NOW).await.unwrap();
    assert_eq!(
        claim(later(900_000), later(900_000)).await,
        [("memory/a.md".to_owned(), 2, 0)],
        "changed is work again"
    );
    assert_eq!(store.graph_state(&tenant("other")).await.unwrap(), claw_core::store::GraphState::default());
}

async fn many_writers_make_one_entity<S: GraphStore + 'static>(store: S) {
    let store = Arc::new(store);
    let writers = (0..8).map(|n| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let entities = vec![described("Anna", &format!("as {n} says")), thing("Ben")];
            say(&*store, entities, vec![relates(0, "knows", 1)]).await.added
        })
    });
    let mut added = 0;
    for writer in writers.collect::<Vec<_>>() {
        added += writer.await.unwrap();
    }
    assert_eq!(added, 2);
    let state = store.graph_state(&TenantId::main()).await.unwrap();
    assert_eq!((state.entities, state.relations), (2, 1));
}
