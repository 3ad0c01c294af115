use claw_core::port::{MemoryMode, MemoryOwner};
use claw_core::store::{DocumentKey, FoundPassage, Passage, Shelf, SimilarPassage};
use claw_core::{AgentId, TenantId, UserId};

use super::Fused;

fn found(path: &str, owner: MemoryOwner, line: u64, text: &str) -> FoundPassage {
    let agent = (owner != MemoryOwner::Tenant).then(|| AgentId::new("main").unwrap());
    let user = (owner == MemoryOwner::User).then(|| UserId::new("ann").unwrap());
    let key =
        DocumentKey { tenant: TenantId::main(), agent, user, shelf: Shelf::Memory, path: path.to_owned() };
    let last_line = line + text.lines().count() as u64 - 1;
    let passage = Passage { first_line: line, last_line, heading: "Birds".to_owned(), text: text.to_owned() };
    FoundPassage {
        key,
        version: 1,
        provenance: claw_core::provenance::Provenance::default(),
        passage,
        words: vec!["heron".to_owned()],
    }
}

fn similar(found: FoundPassage, similarity: f32) -> SimilarPassage {
    SimilarPassage { found: FoundPassage { words: Vec::new(), ..found }, similarity }
}

fn hits(
    by_words: Vec<FoundPassage>,
    similar: Vec<SimilarPassage>,
    mode: MemoryMode,
    limit: usize,
) -> Vec<claw_core::port::MemoryHit> {
    Fused::new(by_words, similar, limit).hits(mode, Vec::new())
}

fn paths(hits: &[claw_core::port::MemoryHit]) -> Vec<&str> {
    hits.iter().map(|hit| hit.path.as_str()).collect()
}

#[test]
fn what_both_lists_have_comes_first() {
    let agent = MemoryOwner::Agent;
    let [a, b, c] = ["a", "b", "c"].map(|path| found(path, agent, 1, &format!("the {path} note says this")));
    let fused = hits(vec![a, b.clone()], vec![similar(c, 0.9), similar(b, 0.8)], MemoryMode::Hybrid, 10);
    assert_eq!(paths(&fused), ["b", "a", "c"]);
    assert_eq!(fused[0].why.similarity, Some(0.8));
    assert_eq!((fused[1].why.similarity, fused[2].why.words.len()), (None, 0));
    assert!(fused.iter().all(|hit| hit.score > 0.0 && hit.score <= 1.0), "{fused:?}");
}

#[test]
fn the_user_comes_before_the_agent_and_the_agent_before_the_tenant() {
    let [tenant, agent, user] =
        [(MemoryOwner::Tenant, "one"), (MemoryOwner::Agent, "two"), (MemoryOwner::User, "three")]
            .map(|(owner, text)| found("MEMORY.md", owner, 1, &format!("heron number {text} of them")));
    let fused = hits(vec![tenant, agent, user], Vec::new(), MemoryMode::Words, 10);
    let owners: Vec<_> = fused.iter().map(|hit| hit.why.owner).collect();
    assert_eq!(owners, [MemoryOwner::User, MemoryOwner::Agent, MemoryOwner::Tenant]);
    assert!(fused[0].score <= 1.0);
}

#[test]
fn near_duplicates_are_told_once_as_the_nearest_owners() {
    let text = "the grey heron stands in the reeds by the old mill every morning in spring";
    let shared = found("memory/birds.md", MemoryOwner::Tenant, 1, text);
    let own = found("MEMORY.md", MemoryOwner::User, 4, &format!("{}!", text.to_uppercase()));
    let other = found("memory/other.md", MemoryOwner::Tenant, 1, "a heron was seen at the lake once");
    let fused = hits(vec![shared, own, other], Vec::new(), MemoryMode::Words, 10);
    assert_eq!(paths(&fused), ["MEMORY.md", "memory/other.md"]);
}

#[test]
fn neighbours_of_one_section_are_joined_with_exact_lines() {
    let agent = MemoryOwner::Agent;
    let second = found("a.md", agent, 5, "second part\nof it");
    let first = found("a.md", agent, 2, "first part");
    let far = found("a.md", agent, 30, "far away from them");
    let elsewhere = found("b.md", agent, 8, "of another document");
    let fused = hits(vec![second, far, first, elsewhere], Vec::new(), MemoryMode::Words, 10);
    assert_eq!(paths(&fused), ["a.md", "a.md", "b.md"]);
    assert_eq!((fused[0].start_line, fused[0].end_line), (2, 6));
    assert_eq!(fused[0].text, "first part\n\n\nsecond part\nof it");
    assert_eq!((fused[1].start_line, fused[1].end_line), (30, 30));
    let mut below = found("a.md", agent, 3, "under another heading");
    below.passage.heading = "Fish".to_owned();
    let fused = hits(vec![found("a.md", agent, 2, "one"), below], Vec::new(), MemoryMode::Words, 10);
    assert_eq!(fused.len(), 2, "a section is not joined with the next");
}

#[test]
fn a_joined_hit_stays_short_and_a_limit_holds() {
    let long = "word ".repeat(200);
    let all: Vec<FoundPassage> = (0..10)
        .map(|n| found("a.md", MemoryOwner::Agent, n + 1, &format!("{n} {long} {n} end {}", n * 7)))
        .collect();
    let fused = hits(all.clone(), Vec::new(), MemoryMode::Words, 3);
    assert!(fused.len() <= 3 && fused.iter().all(|hit| hit.text.len() <= 1_700), "{}", fused.len());
    assert_eq!(hits(all, Vec::new(), MemoryMode::Words, 0), []);
    assert_eq!(hits(Vec::new(), Vec::new(), MemoryMode::Words, 3), []);
}

#[test]
fn a_passage_far_below_lengthens_no_hit() {
    let agent = MemoryOwner::Agent;
    let mut all = vec![found("a.md", agent, 1, "the best passage of all of them")];
    // Other documents rank between the best passage and its neighbour.
    all.extend(
        (0..11).map(|n| found(&format!("{n}.md"), agent, 1, &format!("note {n} about heron number {n}"))),
    );
    all.push(found("a.md", agent, 2, "x"));
    let fused = hits(all.clone(), Vec::new(), MemoryMode::Words, 10);
    assert_eq!(fused[0].text, "the best passage of all of them");
    all.remove(6);
    all.remove(6);
    let fused = hits(all, Vec::new(), MemoryMode::Words, 10);
    assert_eq!((fused[0].start_line, fused[0].end_line), (1, 2), "near enough it joins");
}

#[test]
fn text_beside_hits_fills_up_their_number_in_their_order() {
    let agent = MemoryOwner::Agent;
    let at = |path: &str, line: u64| {
        let text = format!("the note {path} {line} says {} and {}", line * 31, line * 17);
        FoundPassage { words: Vec::new(), ..found(path, agent, line, &text) }
    };
    let all = |limit| {
        let fused = Fused::new(vec![at("a.md", 10), at("b.md", 5)], Vec::new(), limit);
        assert_eq!(fused.missing(), limit - 2);
        let [a, b] = fused.places().try_into().unwrap();
        assert_eq!((a.key.path.as_str(), a.first_line, a.last_line), ("a.md", 10, 10));
        assert_eq!((b.key.path.as_str(), b.version), ("b.md", 1));
        let near_a = [12, 8, 14, 6].map(|line| at("a.md", line)).to_vec();
        // A hit comes up near another one as well, and so does its text elsewhere.
        let mut near_b = [7, 9].map(|line| at("b.md", line)).to_vec();
        near_b.extend([at("a.md", 10), at("b.md", 3)]);
        let hits = fused.hits(MemoryMode::Words, vec![near_a, near_b]);
        hits.iter().map(|hit| (hit.path.clone(), hit.start_line, hit.why.beside)).collect::<Vec<_>>()
    };
    let told = |path: &str, line: u64, beside: bool| (path.to_owned(), line, beside);
    let whole = [
        told("a.md", 10, false),
        told("b.md", 5, false),
        told("a.md", 12, true),
        told("a.md", 8, true),
        told("b.md", 7, true),
        told("b.md", 3, true),
        told("a.md", 14, true),
        told("a.md", 6, true),
        told("b.md", 9, true),
    ];
    assert_eq!(all(20), whole);
    assert_eq!(all(5), whole[..5], "no more than were asked for");
    assert_eq!(all(2), whole[..2]);
}
