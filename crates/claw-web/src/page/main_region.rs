//! The main region of a page: its content without navigation, notices and the like.

use claw_core::port::ExtractMode;
use claw_net::Url;
use dom_query::{Document, NodeId, NodeRef};

use super::survey::Survey;

/// Marks the region, so that it is found again after readability has changed the document.
const MARK: &str = "data-claw-region";
/// Elements that are never content.
const NEVER: &[&str] = &[
    "nav", "footer", "aside", "button", "input", "textarea", "script", "style", "svg", "head", "link",
    "meta", "dialog", "menu", "label",
];
/// Roles that are not content.
const ROLES: &[&str] = &[
    "navigation",
    "banner",
    "contentinfo",
    "complementary",
    "search",
    "dialog",
    "alert",
    "toolbar",
    "menu",
    "menubar",
    "tablist",
];
/// Words in classes and ids that mark other parts than content.
const WORDS: &[&str] = &[
    "nav",
    "navbar",
    "menu",
    "sidebar",
    "breadcrumb",
    "breadcrumbs",
    "pagination",
    "pager",
    "cookie",
    "cookies",
    "consent",
    "gdpr",
    "newsletter",
    "subscribe",
    "share",
    "sharing",
    "social",
    "related",
    "recommended",
    "recommendations",
    "promo",
    "promoted",
    "advert",
    "advertisement",
    "ad",
    "ads",
    "sponsor",
    "sponsored",
    "banner",
    "popup",
    "modal",
    "toolbar",
    "skip",
    "footer",
    "masthead",
    "toc",
    "tooltip",
    "paywall",
    "login",
    "signup",
    "badge",
    "actions",
    "controls",
    "upsell",
    "announcement",
];

/// The main region.
pub(super) struct Region {
    words: usize,
    is_named: bool,
}

impl Region {
    /// Finds and marks the region.
    pub(super) fn of(document: &Document, survey: &Survey) -> Self {
        let Some((node, words, is_named)) = find(document, survey) else {
            return Self { words: 0, is_named: false };
        };
        node.set_attr(MARK, "");
        Self { words, is_named }
    }

    /// Returns whether an article of so many words misses a large part of the region.
    pub(super) fn is_better_than(&self, words: usize) -> bool {
        let share = if self.is_named { 5 } else { 4 };
        self.words * share / 10 > words || (self.words < 400 && self.words * 8 / 10 > words)
    }

    /// The text of the region.
    pub(super) fn text(
        &self,
        document: &Document,
        url: &Url,
        mode: ExtractMode,
        title: Option<&str>,
    ) -> String {
        let marked = document.select_single(&format!("[{MARK}]"));
        let Some(node) = marked.nodes().first() else { return String::new() };
        let gone: Vec<NodeRef<'_>> = boilerplate(node);
        gone.iter().for_each(NodeRef::remove_from_parent);
        if let Some(heading) = node.descendants_it().find(|node| node.has_name("h1"))
            && title.is_some_and(|title| same_words(title, &heading.text()))
        {
            heading.remove_from_parent();
        }
        for link in node.descendants().iter().filter(|node| node.has_name("a") || node.has_name("img")) {
            let name = if link.has_name("a") { "href" } else { "src" };
            match link.attr(name).map(|value| url.join(&value)) {
                Some(Ok(whole)) if matches!(whole.scheme(), "http" | "https" | "mailto") => {
                    link.set_attr(name, whole.as_str());
                }
                Some(_) => link.remove_attr(name),
                None => {}
            }
        }
        match mode {
            ExtractMode::Text => node.formatted_text().to_string(),
            _ => node.md(None).to_string(),
        }
    }
}

/// The region, the number of its words, and whether the page names it so.
fn find<'a>(document: &'a Document, survey: &Survey) -> Option<(NodeRef<'a>, usize, bool)> {
    let root = document.root().id;
    // A region that was dropped as hidden does not count.
    let is_there = |node: &NodeRef<'_>| node.ancestors_it(None).any(|above| above.id == root);
    let at = |id: &NodeId| Some(NodeRef::new(*id, &document.tree)).filter(is_there);
    for node in survey.regions.iter().filter_map(at) {
        let words = count(&node);
        if words >= 20 {
            return Some((node, words, true));
        }
    }
    let mut articles = survey.articles.iter().filter_map(at);
    let (node, is_named) = match (articles.next(), articles.next()) {
        (Some(only), None) => (only, true),
        _ => (document.body()?, false),
    };
    Some((node, count(&node), is_named))
}

/// The outermost nodes below `root` that are not content.
fn boilerplate<'a>(root: &NodeRef<'a>) -> Vec<NodeRef<'a>> {
    let mut gone = Vec::new();
    let mut stack: Vec<NodeRef<'a>> = root.children();
    while let Some(node) = stack.pop() {
        if !node.is_element() {
            continue;
        }
        if is_boilerplate(&node) {
            gone.push(node);
        } else {
            stack.extend(node.children_it(false));
        }
    }
    gone
}

fn is_boilerplate(node: &NodeRef<'_>) -> bool {
    let Some(element) = node.element_ref() else { return false };
    let name = &*element.name.local;
    if NEVER.contains(&name) {
        return true;
    }
    // A page's header does not belong to an article.
    if name == "header" && node.parent().is_some_and(|parent| parent.has_name("body")) {
        return true;
    }
    if matches!(name, "pre" | "code" | "table" | "p" | "h1" | "h2" | "h3" | "body" | "main" | "article") {
        return false;
    }
    element.attrs.iter().any(|attribute| match &*attribute.name.local {
        "role" => ROLES.contains(&&*attribute.value),
        "class" | "id" => attribute
            .value
            .split([' ', '-', '_'])
            .any(|word| WORDS.iter().any(|known| known.eq_ignore_ascii_case(word))),
        _ => false,
    })
}

/// Counts the words of a region.
fn count(root: &NodeRef<'_>) -> usize {
    let mut total = 0;
    let mut stack = vec![*root];
    while let Some(node) = stack.pop() {
        if node.is_text() {
            total += words(&node.text());
        } else if node.is_element() && (node.id == root.id || !is_boilerplate(&node)) {
            stack.extend(node.children_it(false));
        }
    }
    total
}

/// Counts the words of a text, without links and Markdown syntax.
pub(super) fn words(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count()
}

fn same_words(a: &str, b: &str) -> bool {
    let plain = |text: &str| -> String {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let (a, b) = (plain(a), plain(b));
    !a.is_empty() && (a == b || (a.len() > 8 && b.contains(&a)) || (b.len() > 8 && a.contains(&b)))
}

/// The text of a page without its structure.
pub(super) fn plain_text(document: &Document) -> String {
    let mut lines = Vec::new();
    for node in document.root().descendants_it().filter(|node| node.is_text()) {
        let is_code = node
            .parent()
            .is_some_and(|parent| ["script", "style", "title"].iter().any(|name| parent.has_name(name)));
        let text = node.text();
        if !is_code && !text.trim().is_empty() {
            lines.push(text.trim().to_owned());
        }
    }
    lines.join("\n")
}
