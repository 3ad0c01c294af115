//! Ranks entities by words.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow::Continue;

use claw_core::graph::EntityFacts;
use serde_json::Value;

use crate::{query_words, words};

/// The weight of a word in a name, against one in a description.
const NAMED: i64 = 3;
/// The most different words of one entity.
const MOST_WORDS: usize = 256;
/// The weight of repetition and the penalty of length: the customary values of BM25.
const K: f64 = 1.2;
const B: f64 = 0.75;

/// Returns the words of an entity, each with its weighted count.
pub(crate) fn words_of(said: &EntityFacts) -> BTreeMap<String, i64> {
    let mut counted: BTreeMap<String, i64> = BTreeMap::new();
    let mut count = |text: &str, times: i64| {
        words::each(text, |word| {
            if let Some(known) = counted.get_mut(word) {
                *known += times;
            } else if counted.len() < MOST_WORDS {
                counted.insert(word.to_owned(), times);
            }
            Continue(())
        });
    };
    for name in [&said.name].into_iter().chain(&said.aliases) {
        count(name, NAMED);
    }
    count(&said.kind, 1);
    count(&said.description, 1);
    count(said.external_id.as_deref().unwrap_or_default(), 1);
    for (name, value) in &said.properties {
        if let Value::String(text) = value {
            count(&format!("{name} {text}"), 1);
        }
    }
    counted
}

/// A word of an entity: the owner's number, the entity, the word, its weighted count, and the number of words
/// of the entity.
pub(crate) type Posting = (i64, String, String, i64, i64);

/// Returns the entities by score, the best first; among equals the older one.
pub(crate) fn best(
    postings: Vec<Posting>,
    counted: &[(String, u64)],
    entities: u64,
    words: f64,
    limit: usize,
) -> Vec<(i64, String)> {
    let weights: HashMap<&str, f64> = counted
        .iter()
        .map(|(word, count)| (word.as_str(), query_words::weight(*count, entities.max(*count))))
        .collect();
    let mut scores: HashMap<(i64, String), f64> = HashMap::new();
    for (owner, entity, word, times, length) in postings {
        let (times, length) = (times as f64, length as f64);
        let weight = weights.get(word.as_str()).copied().unwrap_or_default();
        let score = weight * times * (K + 1.0) / (times + K * (1.0 - B + B * length / words.max(1.0)));
        *scores.entry((owner, entity)).or_default() += score;
    }
    let mut ranked: Vec<((i64, String), f64)> = scores.into_iter().collect();
    ranked.sort_by(|(one, better), (other, worse)| worse.total_cmp(better).then_with(|| one.1.cmp(&other.1)));
    ranked.truncate(limit);
    ranked.into_iter().map(|(entity, _)| entity).collect()
}

/// Returns the text of an entity's words, to find which words of a question it has.
pub(crate) fn text_of(said: &EntityFacts) -> String {
    let mut text = format!("{}\n{}\n{}\n{}", said.name, said.aliases.join("\n"), said.kind, said.description);
    for (name, value) in &said.properties {
        if let Value::String(value) = value {
            text.push_str(&format!("\n{name} {value}"));
        }
    }
    text
}
