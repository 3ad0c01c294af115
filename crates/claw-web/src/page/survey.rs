//! Collects in one walk over a page what later steps need.

use dom_query::{Document, NodeId, NodeRef};

use super::style_sheet::Sheet;

/// The contents of a page, before anything is dropped.
pub(super) struct Survey {
    /// Style sheets in the page itself.
    pub(super) sheet: Sheet,
    /// Elements that name themselves the main region, the best name first.
    pub(super) regions: Vec<NodeId>,
    /// All articles.
    pub(super) articles: Vec<NodeId>,
    /// The first date that the page states for itself.
    pub(super) date: Option<String>,
    title: Option<String>,
    headings: Vec<String>,
    scripts: usize,
    asks_for_scripts: bool,
    has_root: bool,
}

impl Survey {
    pub(super) fn of(document: &Document) -> Self {
        let mut survey = Self {
            sheet: Sheet::default(),
            regions: Vec::new(),
            articles: Vec::new(),
            date: None,
            title: None,
            headings: Vec::new(),
            scripts: 0,
            asks_for_scripts: false,
            has_root: false,
        };
        let mut ranked: Vec<(usize, NodeId)> = Vec::new();
        for node in document.root().descendants_it() {
            let Some(element) = node.element_ref() else { continue };
            let id = element.attrs.iter().find(|attribute| &*attribute.name.local == "id");
            let id = id.map(|attribute| &*attribute.value).unwrap_or_default();
            let role = element.attrs.iter().any(|a| &*a.name.local == "role" && &*a.value == "main");
            let rank = match (&*element.name.local, role, id) {
                ("main", ..) => Some(0),
                (_, true, _) => Some(1),
                (_, _, "main-content") => Some(2),
                (_, _, "content") => Some(3),
                (_, _, "main") => Some(4),
                _ => None,
            };
            ranked.extend(rank.map(|rank| (rank, node.id)));
            survey.has_root |=
                matches!(id, "root" | "app" | "__next" | "__nuxt" | "app-root" | "main-app" | "svelte");
            survey.note(&node, &element.name.local);
        }
        ranked.sort_by_key(|(rank, _)| *rank);
        survey.regions = ranked.into_iter().map(|(_, node)| node).collect();
        survey
    }

    fn note(&mut self, node: &NodeRef<'_>, name: &str) {
        match name {
            "article" => self.articles.push(node.id),
            "link" | "style" => self.sheet.learn(node),
            "title" if self.title.is_none() => self.title = Some(node.text().to_string()),
            "h1" if self.headings.len() < 2 => self.headings.push(node.text().to_string()),
            "time" if self.date.is_none() => {
                self.date = node.attr("datetime").map(|date| date.to_string());
            }
            "script" => {
                let is_data = node.attr("type").is_some_and(|kind| kind.contains("json"));
                self.scripts += usize::from(!is_data && (node.has_attr("src") || node.text().len() > 200));
            }
            "noscript" => self.asks_for_scripts |= node.text().to_lowercase().contains("javascript"),
            "app-root" => self.has_root = true,
            _ => {}
        }
    }

    /// The title of the page, or its only heading.
    pub(super) fn title(&self) -> Option<String> {
        let is_there = |text: &String| !text.trim().is_empty();
        let heading = || match self.headings.as_slice() {
            [only] => Some(only.clone()).filter(is_there),
            _ => None,
        };
        self.title.clone().filter(is_there).or_else(heading)
    }

    /// Returns whether scripts draw the page: without them it has no text.
    pub(super) fn scripts_draw_the_page(&self) -> bool {
        self.scripts > 0 && (self.has_root || self.asks_for_scripts || self.scripts > 2)
    }
}
