//! Pages of a list of tools, in the order of their names. A cursor holds the last name of its page, so that tools which come
//! and go between two pages neither repeat others nor skip them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use claw_core::ToolName;
use rmcp::model::ErrorData;

/// The most tools of one page. Clients that read one page alone get most lists whole.
pub(super) const PAGE: usize = 250;

/// The name after which a page begins; `None` for the first page.
pub(super) fn after(cursor: Option<&str>) -> Result<Option<ToolName>, ErrorData> {
    let Some(cursor) = cursor else { return Ok(None) };
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
    let name = bytes.and_then(|bytes| ToolName::new(String::from_utf8(bytes).ok()?).ok());
    name.map(Some).ok_or_else(|| {
        ErrorData::invalid_params("the cursor does not belong to this list; start without a cursor", None)
    })
}

/// The page after this name, and the cursor of the next one.
pub(super) fn page<T>(
    mut all: Vec<T>,
    after: Option<&ToolName>,
    name: impl Fn(&T) -> &ToolName,
) -> (Vec<T>, Option<String>) {
    all.sort_by(|a, b| name(a).cmp(name(b)));
    let begin = after.map_or(0, |after| all.partition_point(|one| name(one) <= after));
    let has_more = all.len() - begin > PAGE;
    let page: Vec<T> = all.into_iter().skip(begin).take(PAGE).collect();
    let next = page.last().filter(|_| has_more).map(|last| URL_SAFE_NO_PAD.encode(name(last).as_str()));
    (page, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<ToolName> {
        (0..count).map(|at| ToolName::new(format!("t{at:05}")).unwrap()).collect()
    }

    /// Reads all pages; `change` changes the list between two.
    fn read(mut all: Vec<ToolName>, mut change: impl FnMut(&mut Vec<ToolName>)) -> (Vec<ToolName>, usize) {
        let (mut seen, mut cursor, mut pages) = (Vec::new(), None, 0);
        loop {
            let begin = after(cursor.as_deref()).unwrap();
            let (page, next) = page(all.clone(), begin.as_ref(), |name| name);
            assert!(page.len() <= PAGE);
            (pages, cursor) = (pages + 1, next);
            seen.extend(page);
            if cursor.is_none() {
                return (seen, pages);
            }
            change(&mut all);
        }
    }

    #[test]
    fn every_tool_is_on_one_page() {
        for (count, pages) in [(0, 1), (1, 1), (PAGE, 1), (PAGE + 1, 2), (2_000, 8)] {
            assert_eq!(read(names(count), |_| {}), (names(count), pages), "{count}");
        }
    }

    #[test]
    fn tools_that_come_and_go_between_pages_move_no_others() {
        let (seen, _) = read(names(1_000), |all| drop(all.remove(0)));
        assert_eq!(seen, names(1_000));
        let gone = names(1_000)[PAGE - 1].clone();
        let (seen, _) = read(names(1_000), |all| all.retain(|name| *name != gone));
        assert_eq!(seen, names(1_000), "the last name of a page may be gone");
    }

    #[test]
    fn refuses_a_cursor_of_its_own_making() {
        for cursor in ["", "!", "1", "AAAA", &URL_SAFE_NO_PAD.encode("no name"), &"A".repeat(1_000)] {
            assert_eq!(after(Some(cursor)).unwrap_err().code.0, -32602, "{cursor}");
        }
    }
}
