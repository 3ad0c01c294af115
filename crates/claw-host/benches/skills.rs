//! The cost of skills: searching 10,000 of them, asking which are in use before a call, and taking one up.
//!
//! Prints `name<TAB>value<TAB>unit` lines; times are medians.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up should stop")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use claw_core::port::{Owner, SkillHost as _};
use claw_core::store::{NewSkillVersion, SkillStore as _, SkillVisibility};
use claw_core::{NodeId, SkillName, TenantId, UserId};
use claw_host::SystemClock;
use claw_host::skills::{SkillOptions, SkillShelf};
use claw_store::SqliteStore;
use claw_testkit::conformance::skill_version;
use claw_testkit::fixture::caller;
use tempfile::TempDir;

const SKILLS: usize = 10_000;
const ROUNDS: usize = 300;
const WORDS: [&str; 24] = [
    "review",
    "deploy",
    "invoice",
    "database",
    "migrate",
    "image",
    "report",
    "translate",
    "summarise",
    "schedule",
    "customer",
    "ticket",
    "python",
    "release",
    "security",
    "audit",
    "budget",
    "forecast",
    "contract",
    "legal",
    "onboarding",
    "payroll",
    "garden",
    "kitchen",
];

#[tokio::main]
async fn main() {
    let directory = TempDir::new().unwrap();
    let store = Arc::new(SqliteStore::memory(NodeId::local()).await.unwrap());
    for n in 0..SKILLS {
        let word = |step: usize| WORDS[(n * 7 + n / 24 + step * 5) % WORDS.len()];
        let mut new = skill_version(&format!("{}-{}-{n}", word(0), word(1)), &n.to_string());
        new.manifest.description = format!(
            "Helps to {} the {} of a {} and to {} what came of it. Use when a {} is mentioned.",
            word(2),
            word(3),
            word(4),
            word(5),
            word(6)
        );
        // A third of them are somebody else's.
        let owner = Some(UserId::new(if n % 3 == 0 { "ann" } else { "me" }).unwrap());
        store
            .publish_skill(NewSkillVersion { owner, visibility: SkillVisibility::Private, ..new })
            .await
            .unwrap();
    }
    let options = SkillOptions {
        snapshots: directory.path().join("skills"),
        user: None,
        deployment: Vec::new(),
        tenant: TenantId::main(),
    };
    let shelf = SkillShelf::new(store, Arc::new(SystemClock), options);
    let mut caller = caller();
    caller.workspace = directory.path().to_owned();
    caller.user = Some(UserId::new("me").unwrap());

    let begun = Instant::now();
    assert!(!shelf.search(&caller, "review", 5).await.unwrap().is_empty());
    println!(
        "skills/first search of {SKILLS}, index included\t{:.1}\tms",
        begun.elapsed().as_secs_f64() * 1e3
    );
    for (name, query) in [
        ("one word", "invoice"),
        ("a sentence", "please review the security audit of the customer database before the release"),
        ("no hit", "zebra crossing"),
    ] {
        let time = median(async || drop(black_box(shelf.search(&caller, query, 5).await.unwrap()))).await;
        println!("skills/search of {SKILLS}, {name}\t{:.3}\tms", time / 1e3);
    }
    let owner = Owner { tenant: caller.tenant.clone(), session: caller.session.clone() };
    let time = median(async || drop(black_box(shelf.active(&owner, None).await.unwrap()))).await;
    println!("skills/which are in use, none\t{time:.2}\tµs");
    let name = SkillName::new("review-change").unwrap();
    let time = median(async || drop(black_box(shelf.open(&caller, None, &name).await.unwrap()))).await;
    println!("skills/take one up\t{:.2}\tms", time / 1e3);
    let time = median(async || drop(black_box(shelf.active(&owner, None).await.unwrap()))).await;
    println!("skills/which are in use, one\t{time:.2}\tµs");
}

/// The median time of one, in microseconds.
async fn median(work: impl AsyncFn()) -> f64 {
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        work().await;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}
