use std::sync::Arc;

use async_trait::async_trait;
use claw_core::AgentId;
use claw_core::port::{AgentCard, Agents};
use claw_core::tool::ErrorKind;

use super::*;
use crate::fixture::{Fixture, failure, schema, text};

struct Directory(Vec<AgentCard>);

#[async_trait]
impl Agents for Directory {
    async fn list(&self) -> Result<Vec<AgentCard>, ToolError> {
        Ok(self.0.clone())
    }
}

fn card(id: &str, name: &str, about: &str) -> AgentCard {
    AgentCard { id: AgentId::new(id).unwrap(), name: name.to_owned(), about: about.to_owned() }
}

async fn run(agents: Vec<AgentCard>) -> Result<Output, ToolError> {
    let mut fixture = Fixture::new();
    fixture.ports.agents = Some(Arc::new(Directory(agents)));
    fixture.run::<AgentsList>(json!({})).await
}

#[tokio::test]
async fn names_each_agent_and_marks_the_caller() {
    let agents = vec![
        card("billing", "Bill", "Answers questions about invoices."),
        card("main", "Claw", "Talks to people."),
    ];
    let output = run(agents).await.unwrap();
    insta::assert_snapshot!(output.model_text(), @"
    billing (Bill): Answers questions about invoices.
    main (Claw, you): Talks to people.
    ");
    assert_eq!(output.details.unwrap()["agents"][0]["id"], "billing");
}

#[tokio::test]
async fn says_so_where_there_are_none() {
    assert_eq!(text(run(Vec::new()).await), "no agents are configured");
}

#[tokio::test]
async fn fails_without_a_directory() {
    let result = Fixture::new().run::<AgentsList>(json!({})).await;
    assert_eq!(failure(result, ErrorKind::Unavailable), "this call has no `agents` port");
}

#[test]
fn spec() {
    insta::assert_snapshot!(schema::<AgentsList>(), @r#"
    {
      "additionalProperties": false,
      "properties": {},
      "type": "object"
    }
    "#);
}
