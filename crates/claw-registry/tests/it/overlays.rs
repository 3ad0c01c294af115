//! Overlays: the tools of a tenant and of an agent, on top of the common ones.

use std::sync::Arc;

use claw_core::TenantId;
use claw_core::tool::{Caller, Meta};
use claw_policy::config::PolicyConfig;
use claw_registry::{Offer, OverlayScope, Registry, Request, Status};
use serde_json::json;

use crate::attack::says;
use crate::kit::{Bench, Setup, all, caller, done, main_agent, refused};

fn tenant() -> OverlayScope {
    OverlayScope::Tenant(TenantId::main())
}

/// Tools that say where they come from, over the common ones.
fn overlay(bench: &Bench, tools: &[(&str, &'static str)]) -> Arc<Registry> {
    let overlay = Arc::new(Registry::over(bench.executor.registry().clone()));
    for (name, text) in tools {
        overlay.register(says(name, text).0).unwrap();
    }
    overlay
}

fn other(change: impl FnOnce(&mut Caller)) -> Caller {
    let mut caller = caller();
    change(&mut caller);
    caller
}

/// The answers that a caller gets from each tool; `-` if there is none.
#[track_caller]
fn check(heard: &[String], expected: [&str; 3]) {
    assert_eq!(heard, expected);
}

async fn heard(bench: &Bench, caller: Caller) -> Vec<String> {
    let offer = bench.executor.offer(caller).await;
    let mut heard = Vec::new();
    for tool in ["who", "of_tenant", "of_agent"] {
        heard.push(said(bench, &offer, tool).await);
    }
    heard
}

async fn said(bench: &Bench, offer: &Offer, tool: &str) -> String {
    let reply = bench.executor.execute(offer, Request::new(tool, json!({}))).await;
    if reply.is_done() { done(&reply) } else { "-".to_owned() }
}

#[tokio::test]
async fn an_overlay_stands_in_front_and_copies_nothing() {
    let bench = Bench::new(Setup::default());
    let base = bench.executor.registry().clone();
    let overlay = Arc::new(Registry::over(base.clone()));
    overlay.register_with(all().remove(7), |meta| meta.name = "mine".parse().unwrap()).unwrap();
    assert_eq!(overlay.len(), base.len() + 1);
    bench.executor.set_overlay(&main_agent(), Some(overlay.clone()));
    assert_eq!(done(&bench.call("mine", json!({"text": "hi"})).await), "hi");
    assert!(bench.call("say", json!({"text": "hi"})).await.is_done());
    base.unregister("say");
    assert!(!overlay.has("say"));
    bench.executor.set_overlay(&main_agent(), None);
    assert_eq!(refused(&bench.call("mine", json!({})).await).0, "find");
}

#[tokio::test]
async fn an_agents_tools_stand_in_front_of_its_tenants_and_those_in_front_of_the_common_ones() {
    let bench = Bench::new(Setup::default());
    bench.executor.registry().register(says("who", "common").0).unwrap();
    let of_tenant = overlay(&bench, &[("who", "tenant"), ("of_tenant", "tenant")]);
    let of_agent = overlay(&bench, &[("who", "agent"), ("of_agent", "agent")]);
    let set = |scope: &OverlayScope, overlay: Option<&Arc<Registry>>| {
        bench.executor.set_overlay(scope, overlay.cloned());
    };
    let colleague = || other(|caller| caller.agent = "colleague".parse().unwrap());
    let stranger = || other(|caller| caller.tenant = "stranger".parse().unwrap());
    // Both orders of setting them give the same.
    for order in [[tenant(), main_agent()], [main_agent(), tenant()]] {
        for scope in &order {
            set(scope, Some(if *scope == tenant() { &of_tenant } else { &of_agent }));
        }
        check(&heard(&bench, caller()).await, ["agent", "tenant", "agent"]);
        check(&heard(&bench, colleague()).await, ["tenant", "tenant", "-"]);
        check(&heard(&bench, stranger()).await, ["common", "-", "-"]);
        set(&tenant(), None);
        check(&heard(&bench, caller()).await, ["agent", "-", "agent"]);
        check(&heard(&bench, colleague()).await, ["common", "-", "-"]);
        set(&tenant(), Some(&of_tenant));
        set(&main_agent(), None);
        check(&heard(&bench, caller()).await, ["tenant", "tenant", "-"]);
        set(&tenant(), None);
        check(&heard(&bench, caller()).await, ["common", "-", "-"]);
    }
}

#[tokio::test]
async fn what_is_written_to_any_layer_shows_at_once() {
    let bench = Bench::new(Setup::default());
    let (of_tenant, of_agent) = (overlay(&bench, &[]), overlay(&bench, &[]));
    bench.executor.set_overlay(&tenant(), Some(of_tenant.clone()));
    bench.executor.set_overlay(&main_agent(), Some(of_agent.clone()));
    let offer = bench.offer().await;
    of_agent.register(says("of_agent", "agent").0).unwrap();
    of_tenant.register(says("of_tenant", "tenant").0).unwrap();
    bench.executor.registry().register(says("who", "common").0).unwrap();
    check(&heard(&bench, caller()).await, ["common", "tenant", "agent"]);
    // An earlier offer is checked against the current tools.
    assert!(of_tenant.unregister("of_tenant"));
    check(&heard(&bench, caller()).await, ["common", "-", "agent"]);
    assert!(bench.executor.registry().unregister("say"));
    let reply = bench.executor.execute(&offer, Request::new("say", json!({"text": "x"}))).await;
    assert!(refused(&reply).1.contains("has been removed or replaced"));
}

#[tokio::test]
async fn refuses_an_agents_tool_that_takes_the_alias_of_a_denied_tool_of_its_tenant() {
    let mut policy = PolicyConfig::default();
    policy.tools.deny = vec!["pay".into()];
    let bench = Bench::new(Setup { policy, ..Setup::default() });
    let of_tenant = overlay(&bench, &[]);
    let with_alias = |meta: &mut Meta| meta.aliases = vec![String::from("pay")].into();
    of_tenant.register_with(says("payroll", "paid").0, with_alias).unwrap();
    bench.executor.set_overlay(&tenant(), Some(of_tenant));
    assert!(bench.offer().await.meta("payroll").is_none(), "denied by its alias");
    let of_agent = overlay(&bench, &[("pay", "harmless")]);
    bench.executor.set_overlay(&main_agent(), Some(of_agent));
    let offer = bench.offer().await;
    assert!(offer.meta("payroll").is_none(), "a tool of the agent's un-denied the tenant's");
    let list = bench.executor.registry_for(&caller()).await.list();
    let pay = list.iter().find(|line| line.meta.name.as_str() == "pay").unwrap();
    let why = "`pay` is an alias of `payroll`; use another name";
    assert_eq!(pay.status, Status::Unavailable(why.into()), "left out, and nobody says so");
}
