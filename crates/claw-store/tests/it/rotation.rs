//! Rotating keys while others write, and while the rotating program is killed.

use std::collections::HashMap;
use std::env;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use claw_core::NodeId;
use claw_core::store::{KeyUse, ProgramSettings, SealKeyId, Store};
use claw_store::encryption::KeySource;
use claw_store::{SqliteStore, Vault};
use claw_testkit::fixture::NOW;
use secrecy::ExposeSecret as _;

use crate::postgres::database::Database;
use crate::vault::{Home, env_of, get, gh, place, put};

#[tokio::test]
async fn rotates_and_retires() {
    let home = Home::new();
    let (vault, other) = (home.vault().await, home.vault().await);
    for n in 0..150 {
        put(&vault, &format!("S{n}"), &format!("value {n}")).await;
    }
    let env = env_of(&[("GH_TOKEN", "hunter2")]).unwrap();
    vault.put_program(&gh(), ProgramSettings::new("/usr/bin/gh"), &env, NOW).await.unwrap();
    let old = vault.keys().ring().current();
    let told = AtomicU64::new(0);
    let rotated = vault.rotate(|progress| {
        assert!(progress.done <= progress.all && progress.all == 151, "{progress:?}");
        told.fetch_add(1, Ordering::Relaxed);
    });
    let rotated = rotated.await.unwrap();
    assert!(rotated.is_new && rotated.key != old && rotated.failed.is_empty(), "{rotated:?}");
    assert_eq!((rotated.resealed, told.into_inner()), (151, 4));
    let used = vault.store().key_use().await.unwrap();
    assert_eq!(used, [KeyUse { key: Some(rotated.key), values: 151 }]);
    // A program that was running meets a key that it does not know.
    assert_eq!(get(&other, "S7").await.as_deref(), Some("value 7"));
    let (_, env) = other.program(&gh()).await.unwrap().unwrap();
    assert_eq!(env.get("GH_TOKEN").unwrap().expose_secret(), "hunter2");

    assert_eq!(vault.keys().ring().ids(), [rotated.key, old], "the old one is kept");
    let retired = other.retire(|_| {}).await.unwrap();
    assert_eq!((&retired.unused[..], retired.taken, &retired.kept[..]), (&[old][..], true, &[][..]));
    assert_eq!(home.vault().await.keys().ring().ids(), [rotated.key]);
    // The first has not looked since, and still seals nothing with the key that is gone.
    put(&vault, "S1", "after").await;
    assert_eq!(get(&home.vault().await, "S1").await.as_deref(), Some("after"));
}

#[tokio::test]
async fn a_key_that_something_is_sealed_by_is_not_retired() {
    let home = Home::new();
    let vault = home.vault().await;
    put(&vault, "GOOD", "fine").await;
    put(&vault, "BROKEN", "hunter2").await;
    let old = vault.keys().ring().current();
    home.tamper("UPDATE secrets SET value = CAST(value || x'00' AS BLOB) WHERE name = 'BROKEN'").await;
    let rotated = vault.rotate(|_| {}).await.unwrap();
    assert_eq!((rotated.resealed, rotated.failed.len()), (1, 1), "the others are sealed anew all the same");
    let retired = vault.retire(|_| {}).await.unwrap();
    assert_eq!((retired.unused.len(), retired.taken), (0, false));
    assert_eq!(retired.kept, [KeyUse { key: Some(old), values: 1 }]);
    assert_eq!(vault.keys().ring().ids().len(), 2);
    // A value whose key cannot be told keeps them all.
    home.tamper("UPDATE secrets SET value = CAST(x'02' || substr(value, 2) AS BLOB) WHERE name = 'BROKEN'")
        .await;
    let retired = vault.retire(|_| {}).await.unwrap();
    assert_eq!((retired.taken, retired.kept), (false, vec![KeyUse { key: None, values: 1 }]));
    vault.store().remove_secret(&place("BROKEN")).await.unwrap();
    assert_eq!(vault.retire(|_| {}).await.unwrap().unused, [old]);
}

#[tokio::test(flavor = "multi_thread")]
async fn loses_no_write_while_it_rotates() {
    let home = Home::new();
    let open = async || home.vault().await;
    loses_no_write(open).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn loses_no_write_while_it_rotates_on_postgres() {
    let (database, home) = (Database::create().await, Home::new());
    let open = async || {
        let store: Arc<dyn Store> = Arc::new(database.store("a").await);
        Vault::open(store, KeySource::File(home.keys())).await.unwrap()
    };
    loses_no_write(open).await;
}

/// Writers with their own vaults write and read continuously while keys are made and retired.
async fn loses_no_write(open: impl AsyncFn() -> Vault) {
    const WRITERS: u64 = 4;
    let rotating = open().await;
    for n in 0..100 {
        put(&rotating, &format!("REST{n}"), &format!("rest {n}")).await;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let (vault, stop) = (open().await, Arc::clone(&stop));
        writers.push(tokio::spawn(async move {
            let (mut last, mut n) = (HashMap::new(), 0_u64);
            while !stop.load(Ordering::Relaxed) {
                let name = format!("W{writer}-{}", n % 10);
                put(&vault, &name, &format!("{writer} {n}")).await;
                last.insert(name, format!("{writer} {n}"));
                let (name, value) = last.iter().next().unwrap();
                assert_eq!(get(&vault, name).await.as_ref(), Some(value), "a writer reads what it wrote");
                n += 1;
            }
            last
        }));
    }
    let mut keys = Vec::new();
    for _ in 0..6 {
        let rotated = rotating.rotate(|_| {}).await.unwrap();
        assert!(rotated.failed.is_empty(), "{rotated:?}");
        keys.push(rotated.key);
        let retired = rotating.retire(|_| {}).await.unwrap();
        assert!(retired.rotated.failed.is_empty() && retired.kept.is_empty(), "{retired:?}");
    }
    stop.store(true, Ordering::Relaxed);
    let fresh = open().await;
    for writer in writers {
        let last = writer.await.unwrap();
        assert!(!last.is_empty());
        for (name, value) in last {
            assert_eq!(get(&fresh, &name).await, Some(value), "{name}");
        }
    }
    for n in 0..100 {
        assert_eq!(get(&fresh, &format!("REST{n}")).await, Some(format!("rest {n}")));
    }
    keys.dedup();
    assert_eq!(keys.len(), 6, "each was a new key");
    assert_eq!(fresh.keys().ring().ids(), [*keys.last().unwrap()]);
}

#[tokio::test]
async fn a_rotation_that_was_given_up_is_finished_by_the_next() {
    let home = Home::new();
    let vault = home.vault().await;
    for n in 0..200 {
        put(&vault, &format!("S{n}"), &format!("value {n}")).await;
    }
    let old = vault.keys().ring().current();
    let (told, heard) = tokio::sync::oneshot::channel();
    let told = std::sync::Mutex::new(Some(told));
    let rotating = vault.rotate(|_| {
        if let Some(told) = told.lock().unwrap().take() {
            told.send(()).unwrap();
        }
    });
    tokio::select! {
        biased;
        _ = heard => {}
        rotated = rotating => panic!("it ended before it was given up: {rotated:?}"),
    }
    let used = vault.store().key_use().await.unwrap();
    assert!(used.iter().any(|used| used.key == Some(old) && used.values < 200), "{used:?}");
    check_finished(&home, old, 200).await;
}

#[test]
fn a_rotation_that_was_killed_is_finished_by_the_next() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for lines in [0, 1, 2] {
        let home = Home::new();
        let old = runtime.block_on(async {
            let vault = home.vault().await;
            for n in 0..200 {
                put(&vault, &format!("S{n}"), &format!("value {n}")).await;
            }
            vault.keys().ring().current()
        });
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["rotation::rotating_player", "--exact", "--nocapture"])
            .env(PLACE, home.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // It says each batch and goes on at once, so it dies anywhere after this many.
        let said = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(said.filter(|line| line.ends_with("batch")).nth(lines).is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        runtime.block_on(check_finished(&home, old, 200));
    }
}

const PLACE: &str = "CLAWSMITH_ROTATE_PLACE";

/// Not a test: the code of the killed process.
#[tokio::test]
async fn rotating_player() {
    let Ok(directory) = env::var(PLACE) else { return };
    let directory = Path::new(&directory);
    let store = SqliteStore::open(&directory.join("claw.db"), NodeId::local()).await.unwrap();
    let source = KeySource::File(directory.join("keys/ring"));
    let vault = Vault::open(Arc::new(store), source).await.unwrap();
    loop {
        vault.rotate(|_| println!("batch")).await.unwrap();
    }
}

/// Asserts that everything opens, and that the next rotation leaves one key in use.
async fn check_finished(home: &Home, old: SealKeyId, values: usize) {
    let vault = home.vault().await;
    for n in 0..values {
        assert_eq!(get(&vault, &format!("S{n}")).await, Some(format!("value {n}")));
    }
    let rotated = vault.rotate(|_| {}).await.unwrap();
    assert!(rotated.failed.is_empty() && rotated.key != old, "{rotated:?}");
    let used = vault.store().key_use().await.unwrap();
    assert_eq!(used, [KeyUse { key: Some(rotated.key), values: values as u64 }]);
    for n in 0..values {
        assert_eq!(get(&vault, &format!("S{n}")).await, Some(format!("value {n}")));
    }
    assert!(vault.retire(|_| {}).await.unwrap().taken);
    assert_eq!(home.vault().await.keys().ring().ids(), [rotated.key]);
}
