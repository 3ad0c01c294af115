//! Drops elements that a reader would not see: instructions to a model hide there.

use dom_query::{Document, NodeRef};

use super::colour::Rgb;
use super::style::{Look, Variables};
use super::style_sheet::{SelectedElement, Sheet};

/// Marks text that a page hides until a reader opens it.
const FOLDED: &str = "(folded on the page)";

/// Styles that elements inherit.
#[derive(Clone)]
struct Inherited {
    no_size: bool,
    color: Option<Rgb>,
    background: Option<Rgb>,
    variables: Variables,
}

/// The number of dropped elements, and the depth of the tree.
pub(super) struct Dropped {
    /// Removed elements and texts that had words in them.
    pub(super) count: usize,
    /// The depth of the tree, as far as it was not removed.
    pub(super) depth: usize,
}

/// Removes hidden elements, text without size or in the colour of its background, and comments.
pub(super) fn drop_hidden(document: &Document) -> Dropped {
    drop_by(document, &Sheet::of(document))
}

/// The same with the page's own style sheets.
pub(super) fn drop_by(document: &Document, sheet: &Sheet) -> Dropped {
    // Without other style sheets the background is white.
    let background = (!sheet.has_others()).then_some(Rgb::WHITE);
    let first = Inherited { no_size: false, color: None, background, variables: Variables::default() };
    let complex = sheet.matches(document);
    let mut folded: Vec<NodeRef<'_>> = Vec::new();
    let mut stack = vec![(document.root(), first, 0_usize)];
    let mut deepest = 0;
    let (mut gone, mut count): (Vec<NodeRef<'_>>, usize) = (Vec::new(), 0);
    while let Some((node, inherited, depth)) = stack.pop() {
        deepest = deepest.max(depth);
        if node.is_comment() {
            gone.push(node);
            continue;
        }
        if node.is_text() {
            let same =
                inherited.color.zip(inherited.background).is_some_and(|(text, ground)| text.is_near(ground));
            let is_clear = inherited.color.is_some_and(Rgb::is_clear);
            if (inherited.no_size || same || is_clear)
                && node.is_nonempty_text()
                && !node.text().trim().is_empty()
            {
                gone.push(node);
                count += 1;
            }
            continue;
        }
        let mut inherited = inherited;
        if node.is_element() {
            let complex = complex.get(&node.id).map(Vec::as_slice).unwrap_or_default();
            if node.has_name("details") && !node.has_attr("open") {
                folded.push(node);
            }
            match verdict(&node, sheet, complex, &mut inherited.variables) {
                Verdict::Keep => continue,
                Verdict::Drop => {
                    count += usize::from(!node.text().trim().is_empty());
                    gone.push(node);
                    continue;
                }
                Verdict::Look(look) => {
                    inherited.no_size = look.no_size.unwrap_or(inherited.no_size);
                    inherited.color = look.color.or(inherited.color);
                    match look.background {
                        Some(Some(color)) if !color.is_clear() => inherited.background = Some(color),
                        // A picture or a gradient, whose colours are unknown.
                        Some(None) => inherited.background = None,
                        _ => {}
                    }
                }
            }
        }
        stack.extend(node.children_it(false).map(|child| (child, inherited.clone(), depth + 1)));
    }
    folded.iter().for_each(label);
    gone.iter().for_each(NodeRef::remove_from_parent);
    Dropped { count, depth: deepest }
}

/// Marks a closed `details`, whose text is not seen at once.
fn label(details: &NodeRef<'_>) {
    let summary = details.children().into_iter().find(|child| child.has_name("summary"));
    match summary {
        Some(summary) => summary.append_html(format!(" {FOLDED}")),
        None => details.prepend_html(format!("<p>{FOLDED}</p>")),
    }
}

enum Verdict {
    /// The element stays and is not examined: it holds no text of the page.
    Keep,
    Drop,
    Look(Look),
}

fn verdict(node: &NodeRef<'_>, sheet: &Sheet, complex: &[usize], variables: &mut Variables) -> Verdict {
    let Some(element) = node.element_ref() else { return Verdict::Look(Look::default()) };
    let name = &*element.name.local;
    match name {
        // Metadata is read from these; they are never shown.
        "head" | "script" | "style" | "link" | "meta" => return Verdict::Keep,
        "title" if element.name.ns.ends_with("/svg") => return Verdict::Drop,
        "title" => return Verdict::Keep,
        // Their texts stand in for what a browser shows instead, or are never shown.
        "template" | "noscript" | "noframes" | "object" | "embed" | "iframe" | "canvas" | "select"
        | "datalist" | "audio" | "video" | "meter" | "progress" | "rp" | "desc" | "metadata" | "defs"
        | "annotation" | "annotation-xml" => {
            return Verdict::Drop;
        }
        _ => {}
    }
    let (mut own, mut class, mut id) = ("", "", "");
    let (mut color, mut background) = (None, None);
    let mut is_open = false;
    for attribute in &element.attrs {
        let value = &*attribute.value;
        match &*attribute.name.local {
            "hidden" if !value.eq_ignore_ascii_case("until-found") => return Verdict::Drop,
            "aria-hidden" if value.eq_ignore_ascii_case("true") => return Verdict::Drop,
            "type" if name == "input" => return Verdict::Drop,
            "popover" => return Verdict::Drop,
            "open" => is_open = true,
            "style" => own = value,
            "class" => class = value,
            "id" => id = value,
            "color" if name == "font" => color = Rgb::parse(value),
            "bgcolor" => background = Rgb::parse(value),
            _ => {}
        }
    }
    if name == "dialog" && !is_open {
        return Verdict::Drop;
    }
    let is_root = matches!(name, "html" | "body");
    let mut look = Look::of_colours(color, background.map(Some));
    sheet.apply(&mut look, variables, SelectedElement { name, id, class }, complex);
    if is_root {
        // Some pages hide everything until a script has run; what they show then is the page.
        look = Look::of_colours(look.color, look.background);
    }
    sheet.apply_own(&mut look, own, variables);
    if look.is_hidden() && !is_root { Verdict::Drop } else { Verdict::Look(look) }
}
