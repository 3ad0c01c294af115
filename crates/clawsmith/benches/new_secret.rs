//! Time from setting a secret in one process until another one hides it, with one tenant and with a thousand.
//!
//! Prints `name<TAB>value<TAB>unit` lines; times are medians. `-- TENANTS` takes another number than a thousand.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up should stop")]

use std::time::{Duration, Instant};

use claw_core::port::Clock as _;
use claw_core::store::{SecretPlace, Tenant};
use claw_core::{SecretName, TenantId};
use claw_host::SystemClock;
use claw_store::Vault;
use claw_testkit::postgres::Database;
use clawsmith::app::{App, Hooks, Setup};
use clawsmith::config::Surroundings;

/// Secrets of each tenant.
const SECRETS: usize = 20;
const ROUNDS: usize = 21;

fn tenant(at: usize) -> TenantId {
    TenantId::new(format!("tenant-{at}")).unwrap()
}

async fn put(vault: &Vault, of: usize, name: &str, value: &str) {
    let place = SecretPlace { tenant: tenant(of), agent: None, name: SecretName::new(name).unwrap() };
    vault.put_secret(&place, &value.into(), SystemClock.now()).await.unwrap();
}

async fn fill(app: &App, vault: &Vault, tenants: usize) {
    for of in 0..tenants {
        let tenant = Tenant {
            id: tenant(of),
            name: format!("Tenant {of}"),
            created: SystemClock.now(),
            disabled: false,
            policy: serde_json::Value::Null,
        };
        assert!(app.store().add_tenant(tenant).await.unwrap());
        for at in 0..SECRETS {
            put(vault, of, &format!("KEY_{at}"), &format!("secret-{of:05}-{at:05}-of-a-tenant")).await;
        }
    }
}

/// Milliseconds until a new secret of the first tenant is hidden, and those of a process that builds its toolbox.
async fn measure(store: &str, tenants: usize) -> (f64, f64) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("config.toml");
    std::fs::write(&file, store).unwrap();
    let directory = home.path().to_owned();
    let around = Surroundings { directory, variables: vec![("HOME".into(), home.path().into())] };
    let setup = Setup::load(Some(&file), &around).unwrap();
    let (app, elsewhere) = (setup.open().await.unwrap(), setup.open().await.unwrap());
    let vault = elsewhere.vault().await.unwrap();
    fill(&elsewhere, &vault, tenants).await;
    let begun = Instant::now();
    let (toolbox, following) = app.followed_toolbox(Hooks::default()).await.unwrap();
    let built = begun.elapsed().as_secs_f64() * 1e3;
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        let value = format!("a-new-secret-{round:05}-of-a-tenant");
        let begun = Instant::now();
        put(&vault, 0, "KEY_0", &value).await;
        while toolbox.scrubbers().for_tenant(&tenant(0)).text(&value).contains(&value) {
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    drop(following);
    app.close().await;
    elsewhere.close().await;
    (times[ROUNDS / 2], built)
}

#[tokio::main]
async fn main() {
    let many = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(1000);
    let database = |_: usize| Database::new();
    for (name, databases) in [("SQLite", [None, None]), ("PostgreSQL", [1, 2].map(database))] {
        let url = |at: usize| {
            databases[at].as_ref().map(|database| format!("[store]\nurl = \"{}\"\n", database.url()))
        };
        if name == "PostgreSQL" && databases[0].is_none() {
            continue;
        }
        let (one, _) = measure(&url(0).unwrap_or_default(), 1).await;
        let (thousand, built) = measure(&url(1).unwrap_or_default(), many).await;
        println!("{name}: a new secret is hidden in another process, 1 tenant\t{one:.1}\tms");
        println!("{name}: a new secret is hidden in another process, {many} tenants\t{thousand:.1}\tms");
        println!("{name}: a new secret, {many} tenants / 1\t{:.2}\tx", thousand / one);
        println!("{name}: building a toolbox with {many} tenants\t{built:.0}\tms");
    }
}
