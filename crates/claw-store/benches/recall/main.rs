//! The recall of memory search: the share of relevant notes that it returns, against FTS5 over chunks of 400
//! tokens.
//!
//! Two sets: the one that the ranking was chosen on, and one that was held out. Prints `name<TAB>value<TAB>unit` lines: the
//! share of the notes that answer, within 5 hits, within 10, and within the first 2,500, 5,000 and 10,000 characters
//! returned; for ours also within as many characters as 5 and
//! 10 chunks of FTS5 with stems have for the same question. Vectors are measured if `CLAWSMITH_BENCH_MODEL` names the
//! directory of a local model (`scripts/with-word-vectors.sh` makes one). `tuning` or `held-out` as an argument measures one set alone.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up should stop")]

mod corpus;
mod held_out;
mod measuring;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use claw_core::port::Embedder;
use claw_llm::LocalEmbedder;

use self::corpus::{Corpus, Kind, Question};
use self::measuring::{Answers, BASELINES, first, fts5, ours, share, within};

/// Characters that a prompt has room for; the second is the one that kinds are compared by.
const ROOMS: [usize; 3] = [2_500, 5_000, 10_000];

/// Shares of evidence: within 5 hits, within 10, within each of [`ROOMS`]; and how many characters 5 hits have.
#[derive(Default, Clone, Copy)]
struct Shares {
    five: f64,
    ten: f64,
    rooms: [f64; 3],
    length: f64,
    questions: f64,
}

impl Shares {
    fn add(&mut self, question: &Question, hits: &[String]) {
        let share = |text: &str| share(question, text);
        self.five += share(&first(hits, 5));
        self.ten += share(&first(hits, 10));
        for (sum, room) in self.rooms.iter_mut().zip(ROOMS) {
            *sum += share(&within(hits, room));
        }
        self.length += first(hits, 5).chars().count() as f64;
        self.questions += 1.0;
    }

    fn print(&self, name: &str) {
        let percent = |sum: f64| 100.0 * sum / self.questions;
        println!("{name}: evidence in 5 hits\t{:.1}\t%", percent(self.five));
        println!("{name}: evidence in 10 hits\t{:.1}\t%", percent(self.ten));
        for (sum, room) in self.rooms.iter().zip(ROOMS) {
            println!("{name}: evidence in {room} characters\t{:.1}\t%", percent(*sum));
        }
        println!("{name}: characters of 5 hits\t{:.0}\t", self.length / self.questions);
    }
}

/// Prints what a search returned; `other` is the search whose lengths it is compared at.
fn print(name: &str, corpus: &Corpus, answers: &Answers, other: Option<&Answers>) {
    let mut all = Shares::default();
    let mut kinds: BTreeMap<Kind, Shares> = BTreeMap::new();
    for (question, hits) in corpus.questions.iter().zip(answers) {
        all.add(question, hits);
        kinds.entry(question.kind).or_default().add(question, hits);
    }
    all.print(name);
    for count in [5, 10] {
        let Some(other) = other else { continue };
        let same = corpus.questions.iter().zip(answers).zip(other).map(|((question, hits), other)| {
            share(question, &within(hits, first(other, count).chars().count()))
        });
        let percent = 100.0 * same.sum::<f64>() / all.questions;
        println!("{name}: evidence in the length of FTS5's first {count} chunks with stems\t{percent:.1}\t%");
    }
    for kind in Kind::ALL {
        if let Some(shares) = kinds.get(&kind) {
            let percent = 100.0 * shares.rooms[1] / shares.questions;
            println!("{name}: {}, evidence in 5000 characters\t{percent:.1}\t%", kind.name());
        }
    }
}

async fn set(name: &str, corpus: &Corpus, embedder: Option<Arc<dyn Embedder>>) {
    println!("{name}: notes\t{}\t", corpus.notes);
    println!("{name}: questions\t{}\t", corpus.questions.len());
    let mut stems = None;
    for baseline in BASELINES {
        let answers = fts5(corpus, baseline).await;
        print(&format!("{name}, FTS5, {}", baseline.name), corpus, &answers, None);
        stems = Some(answers);
    }
    let answers = ours(corpus, None).await;
    print(&format!("{name}, memory_search, words"), corpus, &answers, stems.as_ref());
    if embedder.is_some() {
        let answers = ours(corpus, embedder).await;
        print(&format!("{name}, memory_search, words and vectors"), corpus, &answers, stems.as_ref());
    }
}

#[tokio::main]
async fn main() {
    let model = std::env::var_os("CLAWSMITH_BENCH_MODEL");
    let embedder = model.map(|directory| -> Arc<dyn Embedder> {
        Arc::new(LocalEmbedder::open(Path::new(&directory)).unwrap())
    });
    let is_asked = |name: &str| {
        let sets: Vec<String> =
            std::env::args().filter(|word| ["tuning", "held-out"].contains(&word.as_str())).collect();
        sets.is_empty() || sets.iter().any(|set| set == name)
    };
    if is_asked("tuning") {
        set("tuning", &corpus::corpus(), embedder.clone()).await;
    }
    if is_asked("held-out") {
        set("held-out", &held_out::corpus(), embedder).await;
    }
}
