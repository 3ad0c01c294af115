//! HTML: the article, with its title, author and date.
//!
//! Readability finds articles. Forums, listings and documentation are no articles to it, so its result is
//! compared with the page's main region, and the region is used if much of it is missing.

use claw_core::port::{ExtractMode, WebPage};
use claw_net::Url;
use dom_query::Document;
use dom_smoothie::{Config, Readability, TextMode};

use super::hidden;
use super::main_region::{self, Region};
use super::survey::Survey;

/// Deepest tree that is parsed; deeper ones are read as plain text, since libraries walk trees by recursion.
const DEEPEST: usize = 600;
/// A page with less text than this, and with scripts, counts as drawn by them.
const SHORTEST: usize = 200;

/// Reads a page.
pub(super) fn read(html: &str, url: &Url, mode: ExtractMode, page: &mut WebPage) {
    let document = Document::from(html);
    let survey = Survey::of(&document);
    let dropped = hidden::drop_by(&document, &survey.sheet);
    page.hidden = dropped.count;
    page.title = survey.title();
    if dropped.depth > DEEPEST {
        page.text = main_region::plain_text(&document);
        return;
    }
    let candidate = Region::of(&document, &survey);
    let text_mode = match mode {
        ExtractMode::Text => TextMode::Formatted,
        _ => TextMode::Markdown,
    };
    let config = Config { text_mode, ..Config::default() };
    let Ok(mut readability) = Readability::with_document(document, Some(url.as_str()), Some(config)) else {
        return;
    };
    let article = readability.parse().ok();
    let found = article.as_ref().map(|article| main_region::words(&article.text_content)).unwrap_or_default();
    if let Some(article) = &article {
        page.author = article.byline.clone();
        page.date = article.published_time.clone().or_else(|| article.modified_time.clone());
        page.site = article.site_name.clone();
        if !article.title.trim().is_empty() {
            page.title = Some(article.title.clone());
        }
    }
    page.date = page.date.take().or_else(|| survey.date.clone());
    page.text = match article {
        Some(article) if !candidate.is_better_than(found) => article.text_content.to_string(),
        _ => candidate.text(&readability.doc, url, mode, page.title.as_deref()),
    };
    let visible = page.text.chars().filter(|c| !c.is_whitespace()).take(SHORTEST).count();
    page.needs_browser = visible < SHORTEST && survey.scripts_draw_the_page();
}
