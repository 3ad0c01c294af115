//! Ranking short texts for a query: BM25 over names and descriptions, with an index that is built once.

use std::collections::HashMap;

const K1: f64 = 1.2;
const B: f64 = 0.75;
/// The weight of a word in the name; one in the description weighs 1.
const NAME_WEIGHT: u32 = 3;
/// The most words of a query that count; further ones are ignored.
const MOST_ASKED: usize = 32;

/// An index over texts, each a name and a description.
#[derive(Debug, Clone, Default)]
pub struct SearchIndex {
    names: Vec<String>,
    lengths: Vec<u32>,
    /// The texts that contain each word, with its weighted count.
    postings: HashMap<String, Vec<(u32, u32)>>,
    mean: f64,
}

impl SearchIndex {
    /// Indexes texts; results refer to them by position.
    pub fn new<'a>(texts: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut index = Self::default();
        let mut total = 0_u64;
        for (name, about) in texts {
            let at = u32::try_from(index.names.len()).unwrap_or(u32::MAX);
            let mut counts: HashMap<String, u32> = HashMap::new();
            for word in words(name) {
                *counts.entry(word).or_default() += NAME_WEIGHT;
            }
            for word in words(about) {
                *counts.entry(word).or_default() += 1;
            }
            let length: u32 = counts.values().sum();
            total += u64::from(length);
            for (word, count) in counts {
                index.postings.entry(word).or_default().push((at, count));
            }
            index.names.push(name.to_owned());
            index.lengths.push(length);
        }
        index.mean = total as f64 / index.names.len().max(1) as f64;
        index
    }

    /// Returns the positions of the best matches that `keep` accepts, best first and at most `limit`. Ties
    /// are broken by name, so that the same query always has the same answer.
    pub fn best(&self, query: &str, limit: usize, mut keep: impl FnMut(usize) -> bool) -> Vec<usize> {
        let mut scores = vec![0.0_f64; self.names.len()];
        let mut asked = words(query);
        asked.truncate(MOST_ASKED);
        for word in &asked {
            let Some(postings) = self.postings.get(word) else { continue };
            let holding = postings.len() as f64;
            let rarity = (1.0 + (self.names.len() as f64 - holding + 0.5) / (holding + 0.5)).ln();
            for (at, count) in postings {
                let (at, count) = (*at as usize, f64::from(*count));
                let length = f64::from(self.lengths[at]);
                scores[at] += rarity * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length / self.mean));
            }
        }
        let scored = scores.into_iter().enumerate().filter(|(_, score)| *score > 0.0);
        let mut ranked: Vec<(f64, usize)> = scored.map(|(at, score)| (score, at)).collect();
        ranked.sort_unstable_by(|a, b| {
            b.0.total_cmp(&a.0).then_with(|| self.names[a.1].cmp(&self.names[b.1])).then(a.1.cmp(&b.1))
        });
        ranked.into_iter().map(|(_, at)| at).filter(|at| keep(*at)).take(limit).collect()
    }
}

/// Returns the words in lower case, splitting `snake_case` and `camelCase`, with a plural's `s` removed.
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
        let index = SearchIndex::new(texts.iter().copied());
        let found: Vec<_> = index.best(query, 3, |_| true).into_iter().map(|at| texts[at].0).collect();
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

    #[test]
    fn a_text_that_is_not_kept_takes_no_place() {
        let texts = [("a", "lint code"), ("b", "lint code"), ("c", "lint code")];
        let index = SearchIndex::new(texts.into_iter());
        assert_eq!(index.best("lint", 2, |at| at != 0), [1, 2]);
    }
}
