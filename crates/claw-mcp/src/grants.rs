//! Grants of a server: one pure function decides from them which of its tools a caller may use.

use std::collections::BTreeSet;

use claw_core::store::{McpGrant, McpOverrides, McpSubject};
use claw_core::{AgentId, UserId};

/// The tools of a server that a caller may use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Access {
    /// The only tools; `None` for all.
    allow: Option<BTreeSet<String>>,
    deny: BTreeSet<String>,
    /// Settings of the agent's own connection.
    pub overrides: McpOverrides,
}

impl Access {
    /// Returns whether a tool, by the server's name for it, may be used.
    pub fn permits(&self, tool: &str) -> bool {
        !self.deny.contains(tool) && self.allow.as_ref().is_none_or(|allow| allow.contains(tool))
    }
}

/// Decides access to a server from its grants, or says why there is none.
///
/// An enabled grant of the agent or of the user gives access; a disabled one of either refuses. If both give
/// it, allow lists intersect and deny lists add up.
pub fn access(grants: &[McpGrant], agent: &AgentId, user: Option<&UserId>) -> Result<Access, String> {
    let concerns = |grant: &&McpGrant| match &grant.subject {
        McpSubject::Agent(granted) => granted == agent,
        McpSubject::User(granted) => Some(granted) == user,
    };
    let mut access: Option<Access> = None;
    for grant in grants.iter().filter(concerns) {
        if !grant.enabled {
            return Err(format!("the grant of `{}` is disabled", grant.subject));
        }
        let given = access.get_or_insert_with(Access::default);
        given.deny.extend(grant.tool_deny.iter().cloned());
        if let Some(allow) = &grant.tool_allow {
            let allow: BTreeSet<String> = allow.iter().cloned().collect();
            given.allow = Some(match given.allow.take() {
                Some(other) => other.intersection(&allow).cloned().collect(),
                None => allow,
            });
        }
        if matches!(grant.subject, McpSubject::Agent(_)) {
            given.overrides = grant.config_overrides.clone();
        }
    }
    access.ok_or_else(|| "neither the agent nor the user has a grant".to_owned())
}

#[cfg(test)]
mod tests {
    use claw_core::ServerName;
    use proptest::prelude::*;

    use super::*;

    fn grant(subject: &str, allow: Option<Vec<&str>>, deny: Vec<&str>, enabled: bool) -> McpGrant {
        let words = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect();
        McpGrant {
            tool_allow: allow.map(words),
            tool_deny: words(deny),
            enabled,
            ..McpGrant::new(ServerName::new("s").unwrap(), subject.parse().unwrap())
        }
    }

    fn decide(grants: &[McpGrant]) -> Result<Access, String> {
        access(grants, &AgentId::new("a").unwrap(), Some(&UserId::new("u").unwrap()))
    }

    #[test]
    fn no_grant_refuses_and_a_strangers_does_too() {
        assert!(decide(&[]).is_err());
        assert!(
            decide(&[grant("agent:b", None, vec![], true), grant("user:v", None, vec![], true)]).is_err()
        );
        assert!(access(&[grant("user:u", None, vec![], true)], &AgentId::new("a").unwrap(), None).is_err());
    }

    /// A grant's allow list, its deny list and whether it is enabled.
    type Lists = (Option<Vec<&'static str>>, Vec<&'static str>, bool);

    fn lists() -> impl Strategy<Value = Option<Lists>> {
        let tools = || proptest::collection::vec(proptest::sample::select(vec!["x", "y", "z"]), 0..3);
        proptest::option::of((proptest::option::of(tools()), tools(), proptest::bool::weighted(0.8)))
    }

    proptest! {
        #[test]
        fn access_follows_the_rules(agent in lists(), user in lists()) {
            let rows = [("agent:a", &agent), ("user:u", &user)];
            let grants: Vec<_> = rows
                .iter()
                .filter_map(|(subject, row)| {
                    let (allow, deny, enabled) = (*row).clone()?;
                    Some(grant(subject, allow, deny, enabled))
                })
                .collect();
            let decided = decide(&grants);
            for tool in ["x", "y", "z"] {
                let rows: Vec<_> = [&agent, &user].into_iter().flatten().collect();
                let expected = !rows.is_empty()
                    && rows.iter().all(|(allow, deny, enabled)| {
                        *enabled && !deny.contains(&tool) && allow.as_ref().is_none_or(|allow| allow.contains(&tool))
                    });
                prop_assert_eq!(decided.as_ref().is_ok_and(|access| access.permits(tool)), expected);
            }
        }
    }
}
