use claw_testkit::fixture::tenant;

use super::*;

#[tokio::test]
async fn lists_the_agents_of_one_tenant_by_id() {
    let agent = |id: &str| AgentId::new(id).unwrap();
    let entry = |of: &str, id: &str| (tenant(of), agent(id), AgentEntry::default());
    let agents: AgentResolver =
        [entry("a", "two"), entry("b", "other"), entry("a", "one")].into_iter().collect();
    let ids = async |of: &str| -> Vec<String> {
        let listed = agents.list(&tenant(of)).await.unwrap();
        listed.into_iter().map(|agent| agent.id.to_string()).collect()
    };
    assert_eq!(ids("a").await, ["one", "two"]);
    assert_eq!(ids("c").await, Vec::<String>::new());
    assert!(agents.agent(&tenant("a"), &agent("one")).await.unwrap().is_some());
    assert!(
        agents.agent(&tenant("b"), &agent("one")).await.unwrap().is_none(),
        "another tenant's agent is not seen"
    );
}
