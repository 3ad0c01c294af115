//! The quality of `memory_search`, words alone, on the held-out set of the `recall` bench.

#[path = "../../benches/recall/corpus.rs"]
mod corpus;
#[path = "../../benches/recall/held_out.rs"]
mod held_out;
#[path = "../../benches/recall/measuring.rs"]
mod measuring;

use self::measuring::{Answers, BASELINES, first, fts5, ours, share, within};

/// Characters of a prompt that hits may take.
const ROOM: usize = 5_000;

#[tokio::test]
async fn words_alone_find_as_much_as_fts5_in_the_same_length() {
    assert!(corpus::corpus().notes >= 300, "the set that the ranking was chosen on");
    let corpus = held_out::corpus();
    assert!(corpus.notes >= 300 && corpus.questions.len() >= 150);
    assert!(corpus::Kind::ALL.iter().all(|kind| !kind.name().is_empty()));
    assert!(corpus.questions.iter().any(|question| question.kind == corpus::Kind::Open));
    let ours = ours(&corpus, None).await;
    let found = |answers: &Answers, text: &dyn Fn(usize, &[String]) -> String| {
        let of = corpus.questions.iter().zip(answers).enumerate();
        let sum: f64 = of.map(|(at, (question, hits))| share(question, &text(at, hits))).sum();
        100.0 * sum / corpus.questions.len() as f64
    };
    for baseline in BASELINES {
        let name = baseline.name;
        let theirs = fts5(&corpus, baseline).await;
        let room = |_: usize, hits: &[String]| within(hits, ROOM);
        let (mine, other) = (found(&ours, &room), found(&theirs, &room));
        assert!(mine >= other, "in {ROOM} characters: {mine:.1} %, FTS5, {name}: {other:.1} %");
        for count in [5, 10] {
            let length = |at: usize| first(&theirs[at], count).chars().count();
            let mine = found(&ours, &|at, hits| within(hits, length(at)));
            let other = found(&theirs, &|_, hits| first(hits, count));
            assert!(
                mine >= other,
                "in the length of {count} chunks: {mine:.1} %, FTS5, {name}: {other:.1} %"
            );
        }
    }
}
