//! The registry: names, aliases, factories, sources, overlays, listings.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use claw_core::port::World;
use claw_core::tool::{AnyTool, Effect, Group, Meta, Need, Profile, ToolSource, Unavailable};
use claw_registry::{Discovered, Discovery, Offer, RegisterError, Registry, Request, Status};
use claw_testkit::ManualClock;
use serde_json::json;

use crate::kit::{Bench, Setup, all, caller, refused};

fn empty() -> Registry {
    Registry::new(World::new(Arc::new(ManualClock::default())))
}

#[test]
fn names_and_aliases_are_taken_once() {
    let registry = empty();
    let peek = || all().remove(0);
    registry.register(peek()).unwrap();
    assert!(matches!(registry.register(peek()), Err(RegisterError::NameTaken(_))));
    let renamed = registry.register_with(peek(), |meta| meta.name = "peek2".parse().unwrap());
    assert!(matches!(renamed, Err(RegisterError::AliasTaken { .. })));
    assert!(registry.has("look") && registry.len() == 1);
    assert!(registry.unregister("peek") && !registry.unregister("peek"));
    assert!(!registry.has("look") && registry.is_empty());
    registry.register(peek()).unwrap();
    assert!(registry.unregister("look") && !registry.unregister("look"), "by its alias");
    assert!(!registry.has("peek") && registry.is_empty());
    registry.register(peek()).unwrap();
    registry.clear();
    assert!(registry.is_empty());
}

#[test]
fn a_tool_without_its_port_is_listed_with_the_reason() {
    let registry = empty();
    for tool in all() {
        registry.register(tool).unwrap();
    }
    let list = registry.list();
    let status =
        |name: &str| list.iter().find(|line| line.meta.name.as_str() == name).unwrap().status.clone();
    assert_eq!(
        status("peek"),
        Status::Unavailable("needs `files`: no file bridge is set up in this build".into())
    );
    assert_eq!(status("say"), Status::Ready);
}

#[test]
fn listing_builds_nothing() {
    let registry = empty();
    let built = Arc::new(AtomicUsize::new(0));
    let count = built.clone();
    let factory = move |_: &claw_registry::Context<'_>| {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(all().remove(7))
    };
    registry.register_factory(Meta::new("say", Group::Tools), factory).unwrap();
    assert_eq!(registry.list_by_section().len(), 1);
    assert_eq!(built.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_factory_is_given_its_context_and_its_failure_is_told() {
    let bench = Bench::new(Setup::default());
    let registry = bench.executor.registry();
    let factory = |context: &claw_registry::Context<'_>| {
        if context.caller.workspace.ends_with("w") {
            return Err(Unavailable::because("no key is set; set one"));
        }
        Ok(all().remove(7))
    };
    registry.register_factory(Meta::new("lazy", Group::Tools).effects(&[Effect::Read]), factory).unwrap();
    let status = || {
        let list = registry.list();
        list.iter().find(|line| line.meta.name.as_str() == "lazy").unwrap().status.clone()
    };
    let offer = bench.offer().await;
    assert_eq!(status(), Status::Ready, "nobody has asked for it");
    let (step, reason) =
        refused(&bench.executor.execute(&offer, Request::new("lazy", json!({"text": "x"}))).await);
    assert_eq!((step, reason.as_str()), ("find", "`lazy` is unavailable: no key is set; set one"));
    let mut observed = Vec::new();
    let tools =
        bench.executor.resolve_all(&offer, |meta, why| observed.push(format!("{}: {why}", meta.name)));
    assert_eq!(observed, ["lazy: no key is set; set one"]);
    assert!(tools.iter().all(|tool| tool.meta().name.as_str() != "lazy"));
    let unavailable = |offer: &Offer| {
        let list = offer.unavailable().into_iter();
        list.filter(|(meta, _)| meta.name.as_str() == "lazy").map(|(_, why)| why).collect::<Vec<_>>()
    };
    let reason = "no key is set; set one";
    assert_eq!(status(), Status::Unavailable(reason.into()));
    assert_eq!(unavailable(&offer), [reason], "it failed in this offer");
    assert_eq!(bench.executor.resolve(&offer, "lazy").unwrap_err().0, reason);
    let offer = bench.offer().await;
    assert!(offer.meta("lazy").is_none(), "known to fail before the offer");
    assert_eq!(unavailable(&offer), [reason]);
    assert_eq!(bench.executor.resolve(&offer, "lazy").unwrap_err().0, reason);
    assert!(bench.executor.resolve(&offer, "lzay").unwrap_err().0.contains("not among the tools"));
    // The factory makes it for another caller.
    let mut elsewhere = caller();
    elsewhere.workspace = "/v".into();
    let offer = bench.executor.offer(elsewhere).await;
    assert!(bench.executor.execute(&offer, Request::new("lazy", json!({"text": "x"}))).await.is_done());
    assert_eq!((status(), unavailable(&offer)), (Status::Ready, Vec::new()));
    assert!(bench.executor.resolve(&offer, "lazy").is_ok());
}

#[test]
fn listings_name_the_profiles_of_each_tool() {
    let registry = empty();
    let mut meta = Meta::of("report".parse().unwrap(), Group::Named(String::from("acme").into()));
    meta.profiles = vec![Profile::Messaging].into();
    registry.register_factory(meta, |_| Err(Unavailable::because("never made"))).unwrap();
    registry.register(all().remove(0)).unwrap();
    let list = registry.list();
    let profiles: Vec<_> =
        list.iter().map(|line| (line.meta.name.as_str(), line.profiles.as_slice())).collect();
    assert_eq!(
        profiles,
        [
            ("peek", [Profile::Full, Profile::Coding].as_slice()),
            ("report", [Profile::Full, Profile::Messaging].as_slice()),
        ]
    );
    let json = serde_json::to_value(&list[1]).unwrap();
    assert_eq!((&json["profiles"], &json["group"]), (&json!(["full", "messaging"]), &json!("acme")));
}

#[tokio::test]
async fn profiles_choose_among_the_offered() {
    let bench = Bench::new(Setup::default());
    let offer = bench.offer().await;
    let tools = bench.executor.resolve_by_profile(&offer, Profile::Coding, |_, _| {});
    let names: Vec<_> = tools.iter().map(|tool| tool.meta().name.as_str()).collect();
    assert_eq!(names, ["peek", "rogue", "save", "sh"]);
    assert_eq!(bench.executor.resolve_by_profile(&offer, Profile::Full, |_, _| {}).len(), offer.len());
}

struct Changing(ArcSwap<Result<usize, String>>);

impl ToolSource for Changing {
    fn name(&self) -> &str {
        "changing"
    }
    fn tools(&self) -> Result<Vec<Arc<dyn AnyTool>>, Unavailable> {
        match self.0.load().as_ref() {
            Ok(count) => Ok(all().into_iter().skip(7).take(*count).collect()),
            Err(why) => Err(Unavailable::because(why)),
        }
    }
}

#[test]
fn a_source_changes_at_run_time() {
    let registry = empty();
    let source = Arc::new(Changing(ArcSwap::from_pointee(Ok(1))));
    assert!(registry.attach(source.clone()).is_empty());
    assert!(registry.has("say"));
    let before = registry.version();
    source.0.store(Arc::new(Err("the server is down".into())));
    registry.refresh("changing");
    // Its tools are not silently gone: they are listed with the reason.
    assert_eq!(registry.list()[0].status, Status::Unavailable("the server is down".into()));
    assert_ne!(registry.version(), before);
    assert_eq!(registry.failed_sources(), [("changing".into(), "the server is down".into())]);
    source.0.store(Arc::new(Ok(2)));
    registry.refresh("changing");
    assert!(registry.has("say") && registry.has("result_read") && registry.failed_sources().is_empty());
    assert!(registry.detach("changing") && registry.is_empty());
}

#[test]
fn discovery_includes_excludes_and_warns() {
    let tools = || {
        [
            Discovered { meta: Meta::new("say", Group::Tools), make: || all().remove(7) },
            Discovered { meta: Meta::new("peek", Group::Fs).needs(&[Need::Files]), make: || all().remove(0) },
        ]
    };
    let check = |discovery: Discovery, expected: &[&str], warnings: usize| {
        let registry = empty();
        let mut warned = Vec::new();
        registry.discover(tools(), &discovery, |warning| warned.push(warning));
        let names: Vec<_> = registry.list().iter().map(|line| line.meta.name.to_string()).collect();
        assert_eq!(names, expected, "{discovery:?}");
        assert_eq!(warned.len(), warnings, "{warned:?}");
        registry.len()
    };
    assert_eq!(check(Discovery::default(), &["peek", "say"], 0), 2);
    let only = |entry: &str| Discovery { include: Some(vec![entry.into()]), ..Discovery::default() };
    check(only("group:fs"), &["peek"], 0);
    check(only("say"), &["say"], 0);
    check(only("sya"), &[], 1);
    check(Discovery { exclude: vec!["group:tools".into()], ..Discovery::default() }, &["peek"], 0);
    assert_eq!(check(Discovery { metadata_only: true, ..Discovery::default() }, &["peek", "say"], 0), 2);
}

#[test]
fn readers_and_writers_do_not_disturb_each_other() {
    let registry = Arc::new(empty());
    registry.register(all().remove(7)).unwrap();
    std::thread::scope(|scope| {
        let churn = registry.clone();
        let writer = scope.spawn(move || {
            for _ in 0..500 {
                churn.register(all().remove(8)).unwrap();
                assert!(churn.unregister("result_read"));
            }
        });
        let reader = registry.clone();
        scope.spawn(move || {
            while !writer.is_finished() {
                assert!(reader.has("say"));
                assert!((1..=2).contains(&reader.list().len()));
                assert!((1..=2).contains(&reader.tool_set().len()));
            }
        });
    });
}
