//! Extraction on pages shaped like real sites, scored by words against what a person would copy, compared
//! with the bare library.
//!
//! Twelve layouts with five topics each; a topic's number changes the structure too: names of classes, wrappers, the place of
//! headings and notices. `cargo test -p claw-web pages -- --nocapture` prints the table.

mod layouts;
mod topics;

use std::collections::HashMap;

use claw_core::port::{ExtractMode, WebPage};
use claw_web::{Source, extract};
use dom_smoothie::{Config, Readability, TextMode};

use layouts::{LAYOUTS, Sample};
use topics::TOPICS;

const URL: &str = "https://site.example/section/page";

fn read(html: &str) -> WebPage {
    let source = Source {
        url: URL.parse().unwrap(),
        content_type: Some("text/html; charset=utf-8".into()),
        body: html.as_bytes().to_vec(),
    };
    extract(&source, ExtractMode::Markdown).unwrap()
}

fn bare(html: &str) -> (String, String) {
    let config = Config { text_mode: TextMode::Markdown, ..Config::default() };
    let parsed = Readability::new(html, Some(URL), Some(config)).unwrap().parse();
    parsed.map(|article| (article.title.clone(), article.text_content.to_string())).unwrap_or_default()
}

/// The words of a text, without addresses of links.
fn words(text: &str) -> HashMap<String, usize> {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        plain.push_str(before);
        plain.push(' ');
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    plain.push_str(rest);
    let mut counts = HashMap::new();
    for word in plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        *counts.entry(word.to_lowercase()).or_default() += 1;
    }
    counts
}

/// The harmonic mean of precision and recall over words, each counted as often as it occurs.
fn f1(got: &str, expected: &str) -> f64 {
    let (got, expected) = (words(got), words(expected));
    let common: usize = got.iter().map(|(word, count)| count.min(expected.get(word).unwrap_or(&0))).sum();
    let total: usize = got.values().sum::<usize>() + expected.values().sum::<usize>();
    if total == 0 { 1.0 } else { 2.0 * common as f64 / total as f64 }
}

#[test]
fn extracts_what_a_person_would_copy() {
    let (mut scores, mut of_bare, mut titles, mut bare_titles) = (Vec::new(), Vec::new(), 0, 0);
    let mut worst = Vec::new();
    for (name, layout) in LAYOUTS {
        for (variant, topic) in TOPICS.iter().enumerate() {
            let Sample { html, expected } = layout(topic, variant);
            let page = read(&html);
            let (bare_title, bare_text) = bare(&html);
            let (score, bare_score) = (f1(&page.text, &expected), f1(&bare_text, &expected));
            println!("{name:>6} {variant}  {score:.3}  bare {bare_score:.3}");
            titles += usize::from(page.title.as_deref() == Some(topic.title));
            bare_titles += usize::from(bare_title == topic.title);
            if page.title.as_deref() != Some(topic.title) {
                println!("        title: {:?}", page.title);
            }
            if score < 0.95 {
                worst.push(format!("{name} {variant}: {score:.3}"));
            }
            scores.push(score);
            of_bare.push(bare_score);
        }
    }
    let mean = |scores: &[f64]| scores.iter().sum::<f64>() / scores.len() as f64;
    let least = |scores: &[f64]| scores.iter().copied().fold(1.0, f64::min);
    println!(
        "pages {}  mean {:.3}  least {:.3}  titles {titles}",
        scores.len(),
        mean(&scores),
        least(&scores)
    );
    println!("bare library  mean {:.3}  least {:.3}  titles {bare_titles}", mean(&of_bare), least(&of_bare));
    assert!(scores.len() >= 40);
    assert!(mean(&scores) > 0.95, "mean {:.3}: {worst:?}", mean(&scores));
    assert!(least(&scores) >= 0.7, "{worst:?}");
    assert_eq!(titles, scores.len());
}
