//! Merges the results of several providers into one list, each address once.

use std::collections::HashMap;

use claw_core::port::SearchResult;
use claw_net::Url;
use smol_str::SmolStr;

/// Reduces the weight of the first places, as usual in rank fusion.
const SOFT: f64 = 60.0;

/// Merges lists by address: a page that several providers found ranks above one that only one of them found.
pub(super) fn merged(lists: Vec<(SmolStr, Vec<SearchResult>)>, count: usize) -> Vec<SearchResult> {
    let mut found: Vec<(f64, SearchResult)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (name, results) in lists {
        for (rank, mut result) in results.into_iter().enumerate() {
            let Some(address) = canonical(&result.url) else { continue };
            let score = 1.0 / (SOFT + rank as f64);
            match places.get(&address).and_then(|place| found.get_mut(*place)) {
                Some((total, before)) => {
                    if before.providers.contains(&name) {
                        continue;
                    }
                    *total += score;
                    before.providers.push(name.clone());
                    if result.excerpt.len() > before.excerpt.len() {
                        before.excerpt = result.excerpt;
                    }
                    before.date = before.date.take().or(result.date);
                }
                None => {
                    places.insert(address, found.len());
                    result.providers = vec![name.clone()];
                    found.push((score, result));
                }
            }
        }
    }
    // Stable: equal scores keep the order of the providers.
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.into_iter().map(|(_, result)| result).take(count).collect()
}

/// The address by which pages are compared; `None` if it is not the address of a page.
fn canonical(text: &str) -> Option<String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let host = url.host_str()?.trim_start_matches("www.");
    let query: Vec<String> = url
        .query_pairs()
        .filter(|(name, _)| !name.starts_with("utm_") && !matches!(&**name, "fbclid" | "gclid"))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    Some(format!("{host}{}?{}", url.path().trim_end_matches('/'), query.join("&")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(name: &str, urls: &[&str]) -> (SmolStr, Vec<SearchResult>) {
        let result = |url: &&str| SearchResult {
            url: (*url).to_owned(),
            title: name.to_owned(),
            ..SearchResult::default()
        };
        (name.into(), urls.iter().map(result).collect())
    }

    #[test]
    fn merges_by_address() {
        let a = list(
            "a",
            &["https://one.example/", "https://two.example/x?utm_source=a", "ftp://three.example/"],
        );
        let b =
            list("b", &["https://four.example/", "http://www.two.example/x/", "https://one.example/#top"]);
        let merged = merged(vec![a, b], 10);
        let shown: Vec<_> = merged.iter().map(|r| (r.url.as_str(), r.providers.len())).collect();
        assert_eq!(
            shown,
            [
                ("https://one.example/", 2),
                ("https://two.example/x?utm_source=a", 2),
                ("https://four.example/", 1)
            ]
        );
    }

    #[test]
    fn gives_as_many_as_are_wanted() {
        let urls: Vec<String> = (0..20).map(|at| format!("https://{at}.example/")).collect();
        let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
        assert_eq!(merged(vec![list("a", &urls)], 3).len(), 3);
    }
}
