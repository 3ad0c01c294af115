//! Lists of tools that somebody sends: how long they may be, and the lint of a policy that has them.
//!
//! They are stored, and a policy is compared with every tool for every kind of caller: lists of any length would fill the
//! memory and keep the processor busy.

use claw_core::counted::counted;
use claw_policy::config::{AgentTools, PolicyConfig, TenantTools};
use claw_policy::lint::{Finding, Severity, lint};
use tokio::sync::Semaphore;

use super::{Error, catalogue};

/// The most bytes of an entry.
const LONGEST_ENTRY: usize = 128;
/// The most entries of one list of rules.
const MOST_ENTRIES: usize = 1_000;
/// The most entries of all lists of an agent.
const MOST_IN_ALL: usize = 4_000;
/// The most providers that an agent has rules for.
const MOST_PROVIDERS: usize = 64;

/// One policy is linted at a time: many at once would take the processor from everything else.
static LINTS: Semaphore = Semaphore::const_new(1);

/// Refuses a list with more than `most` entries, or with one that is too long. `list` is its name in the message.
pub(super) fn check_entries(list: &str, entries: &[String], most: usize) -> Result<(), Error> {
    if entries.len() > most {
        let count = counted(entries.len(), "entry");
        return Err(Error::invalid(format!("{list} has {count}; at most {most} are accepted")));
    }
    match entries.iter().position(|entry| entry.len() > LONGEST_ENTRY) {
        None => Ok(()),
        Some(place) => Err(Error::invalid(format!(
            "entry {} of {list} has {} bytes; at most {LONGEST_ENTRY} are accepted",
            place + 1,
            entries[place].len()
        ))),
    }
}

/// Advises on a list of tools that is too long.
pub(super) fn shorter(error: Error) -> Error {
    error.hint("name groups such as `group:fs`, or patterns such as `read_*`, instead of single tools")
}

/// Refuses rules of an agent that are too long.
pub(super) fn check_agent_rules(rules: &AgentTools) -> Result<(), Error> {
    let AgentTools { allow, deny, also_allow, by_provider } = rules;
    if by_provider.len() > MOST_PROVIDERS {
        let count = counted(by_provider.len(), "provider");
        let what = format!("the agent has rules for {count}; at most {MOST_PROVIDERS} are accepted");
        return Err(
            Error::invalid(what).hint("write rules that hold for all providers in `allow` and `deny`")
        );
    }
    if let Some(name) = by_provider.keys().find(|name| name.len() > LONGEST_ENTRY) {
        let bytes = name.len();
        let what = format!("the name of a provider has {bytes} bytes; at most {LONGEST_ENTRY} are accepted");
        return Err(Error::invalid(what).hint("name a provider as `models.providers` does"));
    }
    let own = [
        ("`allow`".to_owned(), allow.as_deref()),
        ("`deny`".to_owned(), Some(deny.as_slice())),
        ("`also_allow`".to_owned(), Some(also_allow.as_slice())),
    ];
    let of_providers = by_provider
        .iter()
        .map(|(name, rules)| (format!("`by_provider.{name}.allow`"), rules.allow.as_deref()));
    let mut count = 0;
    for (list, entries) in own.into_iter().chain(of_providers) {
        let entries = entries.unwrap_or_default();
        check_entries(&list, entries, MOST_ENTRIES).map_err(shorter)?;
        count += entries.len();
    }
    if count > MOST_IN_ALL {
        let what =
            format!("the agent's lists have {count} entries in all; at most {MOST_IN_ALL} are accepted");
        return Err(shorter(Error::invalid(what)));
    }
    Ok(())
}

/// Refuses rules of a tenant that are too long.
pub(super) fn check_tenant_rules(rules: &TenantTools) -> Result<(), Error> {
    check_entries("`allow`", rules.allow.as_deref().unwrap_or_default(), MOST_ENTRIES).map_err(shorter)?;
    check_entries("`deny`", &rules.deny, MOST_ENTRIES).map_err(shorter)
}

/// Returns the findings that the policy `after` has and `before` has not; refuses one that cannot work as written. It is
/// linted on a thread for long work, so that requests are answered meanwhile.
pub(super) async fn new_findings(before: PolicyConfig, after: PolicyConfig) -> Result<Vec<Finding>, Error> {
    let unchecked = || Error::failed("the rules could not be checked").hint("try again");
    let turn = LINTS.acquire().await.map_err(|error| unchecked().because(error))?;
    let linted = tokio::task::spawn_blocking(move || {
        // The turn ends with the work, also if nobody waits for it any more.
        let _turn = turn;
        let tools = catalogue();
        let known = lint(&before, &tools);
        let mut found = lint(&after, &tools);
        found.retain(|finding| !known.contains(finding));
        found
    });
    let found = linted.await.map_err(|error| unchecked().because(error))?;
    match found.iter().find(|finding| finding.severity == Severity::Error) {
        Some(error) => {
            Err(Error::invalid(error.without_severity().to_string()).hint("clawsmith tools list --all"))
        }
        None => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use claw_policy::config::AgentProviderTools;

    use super::*;

    fn patterns(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("*{number}*")).collect()
    }

    #[track_caller]
    fn check(rules: &AgentTools, says: Option<&str>) {
        match (check_agent_rules(rules), says) {
            (Ok(()), None) => {}
            (Err(error), Some(says)) => {
                assert!(error.message().contains(says) && error.advice().is_some(), "{error}");
            }
            (found, says) => panic!("{found:?} instead of {says:?}"),
        }
    }

    fn of_providers(count: usize, entries: usize) -> AgentTools {
        let rules = || AgentProviderTools { allow: Some(patterns(entries)) };
        let by_provider = (0..count).map(|number| (format!("p{number}"), rules())).collect();
        AgentTools { by_provider, ..AgentTools::default() }
    }

    #[test]
    fn refuses_half_a_million_patterns_in_a_list() {
        let deny = |count| AgentTools { deny: patterns(count), ..AgentTools::default() };
        check(&deny(500_000), Some("`deny` has 500000 entries; at most 1000 are accepted"));
        check(&deny(1_001), Some("1001 entries"));
        check(&deny(1_000), None);
        check(
            &AgentTools { allow: Some(patterns(1_001)), ..AgentTools::default() },
            Some("`allow` has 1001"),
        );
        check(&AgentTools { also_allow: patterns(1_001), ..AgentTools::default() }, Some("`also_allow`"));
        check(&of_providers(1, 1_001), Some("`by_provider.p0.allow` has 1001"));
        check(&AgentTools::default(), None);
    }

    #[test]
    fn refuses_rules_for_thousands_of_providers() {
        check(&of_providers(64, 1), None);
        check(&of_providers(65, 1), Some("rules for 65 providers; at most 64 are accepted"));
        check(&of_providers(5, 1_000), Some("5000 entries in all; at most 4000"));
        let by_provider = [("p".repeat(129), AgentProviderTools::default())].into();
        check(&AgentTools { by_provider, ..AgentTools::default() }, Some("has 129 bytes"));
    }

    #[test]
    fn refuses_an_entry_of_a_megabyte() {
        let deny =
            |bytes| AgentTools { deny: vec!["a".to_owned(), "*".repeat(bytes)], ..AgentTools::default() };
        check(&deny(128), None);
        check(&deny(129), Some("entry 2 of `deny` has 129 bytes; at most 128 are accepted"));
        check(&deny(1024 * 1024), Some("1048576 bytes"));
    }

    #[test]
    fn refuses_half_a_million_patterns_in_the_rules_of_a_tenant() {
        let deny = |count| TenantTools { deny: patterns(count), ..TenantTools::default() };
        assert!(check_tenant_rules(&deny(1_000)).is_ok());
        assert!(check_tenant_rules(&deny(500_000)).unwrap_err().message().contains("`deny` has 500000"));
        let allow = TenantTools { allow: Some(patterns(1_001)), ..TenantTools::default() };
        assert!(check_tenant_rules(&allow).unwrap_err().message().contains("`allow` has 1001"));
    }

    #[tokio::test]
    async fn the_longest_rules_that_are_accepted_are_linted() {
        let rules = AgentTools { deny: patterns(1_000), ..AgentTools::default() };
        assert!(check_agent_rules(&rules).is_ok());
        let mut after = PolicyConfig::default();
        after.agents.insert("busy".to_owned(), rules);
        let found = new_findings(PolicyConfig::default(), after.clone()).await.unwrap();
        assert!(found.iter().all(|finding| finding.list == "agents.busy.deny"), "{found:?}");
        assert!(!found.is_empty());
        assert_eq!(new_findings(after.clone(), after).await.unwrap(), []);
    }
}
