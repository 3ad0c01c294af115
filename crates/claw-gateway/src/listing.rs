//! Lists in pages: one query and one way of cutting for every list whose entries have a key.

use schemars::JsonSchema;
use serde::Deserialize;

/// The most entries of one page.
const PAGE: usize = 100;

/// A page of a list.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    /// Only entries whose id or name contains this, whatever the case.
    pub(crate) q: Option<String>,
    /// The `next` of the page before.
    pub(crate) cursor: Option<String>,
    /// The most entries; 100 at most.
    pub(crate) limit: Option<usize>,
}

/// A page of a list that is of one agent.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AgentListQuery {
    /// The agent; by default `default`.
    pub(crate) agent_id: Option<String>,
    /// Only entries whose id or name contains this, whatever the case.
    q: Option<String>,
    /// The `next` of the page before.
    cursor: Option<String>,
    /// The most entries; 100 at most.
    limit: Option<usize>,
}

impl AgentListQuery {
    /// The agent, and the page of its list.
    pub(crate) fn split(self) -> (Option<String>, ListQuery) {
        let Self { agent_id, q, cursor, limit } = self;
        (agent_id, ListQuery { q, cursor, limit })
    }
}

impl ListQuery {
    /// The page of these entries, in the order of their keys, and the cursor of the next. `texts` are searched, and nothing else.
    pub(crate) fn page<T>(
        &self,
        mut entries: Vec<T>,
        key: impl Fn(&T) -> String,
        texts: impl Fn(&T) -> String,
    ) -> (Vec<T>, Option<String>) {
        let limit = self.limit.unwrap_or(PAGE).clamp(1, PAGE);
        let sought = self.q.as_ref().map(|sought| sought.to_lowercase());
        entries.retain(|entry| {
            let is_sought = |sought: &String| texts(entry).to_lowercase().contains(sought);
            self.cursor.as_ref().is_none_or(|cursor| key(entry) > *cursor)
                && sought.as_ref().is_none_or(is_sought)
        });
        entries.sort_by_key(&key);
        let is_last = entries.len() <= limit;
        entries.truncate(limit);
        let next = entries.last().filter(|_| !is_last).map(&key);
        (entries, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &ListQuery, expected: &[&str], next: Option<&str>) {
        let entries = ["d", "a", "c", "b"].map(str::to_owned).to_vec();
        let (page, found) = query.page(entries, Clone::clone, |entry| format!("Name of {entry}"));
        assert_eq!(
            (page.as_slice(), found.as_deref()),
            (&expected.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()[..], next)
        );
    }

    #[test]
    fn what_only_sorts_is_not_searched() {
        let query = |q: &str| ListQuery { q: Some(q.to_owned()), ..ListQuery::default() };
        let entries = || vec!["a.md".to_owned(), "b.md".to_owned()];
        let found =
            |q: &str| query(q).page(entries(), |path| format!("{path} user"), Clone::clone).0.join(" ");
        assert_eq!((found("user").as_str(), found("B.m").as_str()), ("", "b.md"));
    }

    #[test]
    fn pages_follow_each_other() {
        let query = |q: Option<&str>, cursor: Option<&str>, limit| ListQuery {
            q: q.map(str::to_owned),
            cursor: cursor.map(str::to_owned),
            limit,
        };
        check(&query(None, None, None), &["a", "b", "c", "d"], None);
        check(&query(None, None, Some(2)), &["a", "b"], Some("b"));
        check(&query(None, Some("b"), Some(2)), &["c", "d"], None);
        check(&query(None, None, Some(0)), &["a"], Some("a"));
        check(&query(None, Some("z"), None), &[], None);
        check(&query(Some("OF C"), None, None), &["c"], None);
        check(&query(Some("nothing"), None, None), &[], None);
    }
}
