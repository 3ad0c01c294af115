//! The token budget, searching for tools that it left out, and the stable order of the listed tools.

use std::collections::HashMap;

use claw_core::ToolName;
use claw_policy::config::PolicyConfig;
use claw_policy::pipeline::Policy;
use claw_registry::{Offer, OfferOptions, Request};
use serde_json::json;

use crate::kit::{Bench, Setup, caller, done, refused};

fn names(offer: &Offer) -> Vec<String> {
    offer.names().iter().map(ToString::to_string).collect()
}

fn name(text: &str) -> ToolName {
    ToolName::new(text).unwrap()
}

async fn tight(bench: &Bench, previous: Vec<ToolName>) -> Offer {
    let whole = bench.offer().await.tokens();
    let uses = HashMap::from([(name("save"), 9), (name("wait"), 5)]);
    let options = OfferOptions { previous, uses, token_budget: Some(whole / 2) };
    bench.executor.offer_with(caller(), options).await
}

#[tokio::test]
async fn what_exceeds_the_budget_is_deferred_and_can_be_found() {
    let bench = Bench::new(Setup::default());
    let whole = bench.offer().await;
    assert!(!names(&whole).contains(&"tool_search".to_owned()), "nothing to find");
    let offer = tight(&bench, Vec::new()).await;
    assert!(offer.tokens() <= whole.tokens() / 2);
    assert!(offer.deferred() > 0 && offer.len() + offer.deferred() == whole.len() + 1);
    let listed = names(&offer);
    assert!(listed.contains(&"save".to_owned()) && listed.contains(&"tool_search".to_owned()), "{listed:?}");
    assert!(!listed.contains(&"sh".to_owned()), "{listed:?}");
    let (step, reason) = refused(&bench.executor.execute(&offer, Request::new("sh", json!({}))).await);
    assert_eq!(step, "authorise");
    assert!(reason.contains("tool_search"), "{reason}");
    let found =
        bench.executor.execute(&offer, Request::new("tool_search", json!({"query": "run command"}))).await;
    assert!(done(&found).starts_with("sh"), "{}", done(&found));
    assert_eq!(refused(&bench.executor.execute(&offer, Request::new("sh", json!({}))).await).0, "validate");
    // Found tools are appended: the prompt before them stays the same.
    assert_eq!(names(&offer)[..listed.len()], listed);
}

#[tokio::test]
async fn what_was_offered_before_stays_first_and_is_never_deferred() {
    let bench = Bench::new(Setup::default());
    let offer = tight(&bench, vec![name("sh"), name("crash")]).await;
    assert_eq!(names(&offer)[..2], ["sh", "crash"]);
}

#[tokio::test]
async fn a_withdrawn_tool_stays_listed_and_is_refused() {
    let bench = Bench::new(Setup::default());
    let mut policy = PolicyConfig::default();
    policy.tools.deny = vec!["peek".into()];
    bench.executor.set_policy(Policy::compile(&policy).unwrap());
    let options = OfferOptions { previous: vec![name("say"), name("peek")], ..OfferOptions::default() };
    let offer = bench.executor.offer_with(caller(), options).await;
    assert_eq!(names(&offer)[..2], ["say", "peek"]);
    let (step, reason) =
        refused(&bench.executor.execute(&offer, Request::new("peek", json!({"file_path": "a.txt"}))).await);
    assert_eq!(step, "authorise");
    assert!(reason.contains("tools.deny"), "{reason}");
}
