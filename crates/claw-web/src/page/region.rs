//! The main region of a page: what stands in it beside navigation, notices and the like.

use claw_core::port::ExtractMode;
use claw_net::Url;
use dom_query::{Document, NodeRef};

/// Marks the region, so that it is found again after readability had the document.
const MARK: &str = "data-claw-region";
/// Elements that are no content wherever they stand.
const NEVER: &[&str] = &[
    "nav", "footer", "aside", "button", "input", "textarea", "script", "style", "svg", "head", "link",
    "meta", "dialog", "menu", "label",
];
/// Roles that are no content.
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
/// Words of classes and ids that name no content.
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
    date: Option<String>,
    is_named: bool,
}

impl Region {
    /// Finds and marks the region.
    pub(super) fn of(document: &Document) -> Self {
        let (node, is_named) = find(document);
        let Some(node) = node else { return Self { words: 0, date: None, is_named: false } };
        node.set_attr(MARK, "");
        let time = document.select_single("time[datetime]");
        let date = time.attr("datetime").map(|date| date.to_string());
        Self { words: count(&node), date, is_named }
    }

    /// Whether an article of so many words lacks much of the region.
    pub(super) fn is_better_than(&self, words: usize) -> bool {
        let share = if self.is_named { 5 } else { 4 };
        self.words * share / 10 > words || (self.words < 400 && self.words * 8 / 10 > words)
    }

    /// The first date that the page states for itself.
    pub(super) fn date(&self) -> Option<String> {
        self.date.clone()
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

fn find(document: &Document) -> (Option<NodeRef<'_>>, bool) {
    for selector in ["main", "[role=main]", "#main-content", "#content", "#main"] {
        if let Some(node) = document.select_single(selector).nodes().first().copied()
            && count(&node) >= 20
        {
            return (Some(node), true);
        }
    }
    let articles = document.select("article");
    if let [article] = articles.nodes() {
        return (Some(*article), true);
    }
    (document.body(), false)
}

/// The outermost nodes below `root` that are no content.
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
    // A page's header is none of an article's.
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

/// The words of a region.
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

/// The words of a text, links and marks of Markdown left out as far as they are words of their own.
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

/// The depth of a document's tree.
pub(super) fn depth(document: &Document) -> usize {
    let mut deepest = 0;
    let mut stack = vec![(document.root(), 0)];
    while let Some((node, depth)) = stack.pop() {
        deepest = deepest.max(depth);
        stack.extend(node.children_it(false).map(|child| (child, depth + 1)));
    }
    deepest
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

/// The heading or title of a page.
pub(super) fn title(document: &Document) -> Option<String> {
    let heading = document.select("h1");
    let heading =
        heading.nodes().first().filter(|_| heading.length() == 1).map(|node| node.text().to_string());
    let of_head = document.select_single("title").text().to_string();
    let is_there = |text: &String| !text.trim().is_empty();
    Some(of_head).filter(is_there).or_else(|| heading.filter(is_there))
}

/// What scripts do to a page.
pub(super) struct Scripts {
    /// Without them there would be no page.
    pub(super) draw_the_page: bool,
}

/// Looks at the scripts of a page, before anything is dropped.
pub(super) fn scripts(document: &Document) -> Scripts {
    let mut scripts = 0;
    let mut asks = false;
    let mut has_root = false;
    for node in document.root().descendants_it().filter(NodeRef::is_element) {
        if node.has_name("script") {
            let is_data = node.attr("type").is_some_and(|kind| kind.contains("json"));
            scripts += usize::from(!is_data && (node.has_attr("src") || node.text().len() > 200));
        } else if node.has_name("noscript") {
            asks |= node.text().to_lowercase().contains("javascript");
        } else if let Some(id) = node.id_attr() {
            has_root |=
                matches!(&*id, "root" | "app" | "__next" | "__nuxt" | "app-root" | "main-app" | "svelte");
        } else if node.has_name("app-root") {
            has_root = true;
        }
    }
    Scripts { draw_the_page: scripts > 0 && (has_root || asks || scripts > 2) }
}
