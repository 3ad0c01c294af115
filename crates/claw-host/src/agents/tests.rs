use claw_testkit::fixture::tenant;

use super::*;

#[tokio::test]
async fn lists_the_agents_of_one_tenant_by_id() {
    let card =
        |id: &str| AgentCard { id: AgentId::new(id).unwrap(), name: id.to_owned(), about: String::new() };
    let agents: ConfiguredAgents =
        [(tenant("a"), card("two")), (tenant("b"), card("other")), (tenant("a"), card("one"))]
            .into_iter()
            .collect();
    assert_eq!(agents.list(&tenant("a")).await.unwrap(), [card("one"), card("two")]);
    assert_eq!(agents.list(&tenant("c")).await.unwrap(), []);
}
