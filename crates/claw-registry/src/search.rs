//! Ranking short texts for a query: BM25 over a tool's name and description.

use std::collections::HashMap;

const K1: f64 = 1.2;
const B: f64 = 0.75;
/// A word of the name says more than one of the description.
const NAME_WEIGHT: usize = 3;

/// The positions of the texts that fit best, best first. Each text is a name and a description; ties are
/// broken by name, so that the same question always has the same answer.
pub(crate) fn best<'a>(
    query: &str,
    texts: impl Iterator<Item = (&'a str, &'a str)>,
    limit: usize,
) -> Vec<usize> {
    let documents: Vec<Document> = texts.map(|(name, about)| Document::new(name, about)).collect();
    let wanted = words(query);
    let total: usize = documents.iter().map(|d| d.length).sum();
    let mean = total as f64 / documents.len().max(1) as f64;
    let mut ranked: Vec<(f64, usize)> = Vec::new();
    for (at, document) in documents.iter().enumerate() {
        let score: f64 = wanted.iter().map(|word| document.score(word, &documents, mean)).sum();
        if score > 0.0 {
            ranked.push((score, at));
        }
    }
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| documents[a.1].name.cmp(documents[b.1].name)));
    ranked.into_iter().take(limit).map(|(_, at)| at).collect()
}

struct Document<'a> {
    name: &'a str,
    counts: HashMap<String, usize>,
    length: usize,
}

impl<'a> Document<'a> {
    fn new(name: &'a str, about: &str) -> Self {
        let mut counts = HashMap::new();
        for word in words(name) {
            *counts.entry(word).or_default() += NAME_WEIGHT;
        }
        for word in words(about) {
            *counts.entry(word).or_default() += 1;
        }
        let length = counts.values().sum();
        Self { name, counts, length }
    }

    fn score(&self, word: &str, all: &[Document<'_>], mean: f64) -> f64 {
        let count = self.counts.get(word).copied().unwrap_or(0) as f64;
        if count == 0.0 {
            return 0.0;
        }
        let holding = all.iter().filter(|d| d.counts.contains_key(word)).count() as f64;
        let rarity = (1.0 + (all.len() as f64 - holding + 0.5) / (holding + 0.5)).ln();
        rarity * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * self.length as f64 / mean))
    }
}

/// Lower-case words, also those of `snake_case` and `camelCase`, with a plural's `s` taken off.
fn words(text: &str) -> Vec<String> {
    let mut spaced = String::with_capacity(text.len() + 8);
    let mut previous = ' ';
    for c in text.chars() {
        if c.is_uppercase() && previous.is_lowercase() {
            spaced.push(' ');
        }
        spaced.push(if c.is_alphanumeric() { c } else { ' ' });
        previous = c;
    }
    let words = spaced.split_whitespace().map(str::to_lowercase);
    words.map(|w| if w.len() > 3 { w.strip_suffix('s').map(str::to_owned).unwrap_or(w) } else { w }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, expected: &[&str]) {
        let texts = [
            ("create_image", "Generate images from a text description."),
            ("read_image", "Describe what an image shows."),
            ("web_fetch", "Fetch a page and give its text."),
            ("team_tasks", "The task board of a team."),
            ("cron", "Manage scheduled tasks."),
        ];
        let found: Vec<_> = best(query, texts.iter().copied(), 3).into_iter().map(|at| texts[at].0).collect();
        assert_eq!(found, expected, "{query}");
    }

    #[test]
    fn finds_by_name_and_by_description() {
        check("image", &["read_image", "create_image"]);
        check("fetch page", &["web_fetch"]);
        check("tasks", &["team_tasks", "cron"]);
        check("readImage", &["read_image", "create_image"]);
        check("", &[]);
        check("zzz", &[]);
    }
}
