//! The operations of an operator: the status of a store, the result of a migration, the owner of a store.

use std::fs;

use claw_core::store::{Ledger as _, StoreError};
use claw_core::{CallId, InstallationId, NodeId};
use claw_store::{Backend as _, SqliteStore, StoreLocation, StoreOptions, exists, migrate, open, status};
use claw_testkit::fixture::refused;
use tempfile::TempDir;

use crate::postgres::database::Database;

/// A place that holds nothing yet.
enum Empty {
    File(TempDir),
    Postgres(Database),
}

impl Empty {
    async fn both() -> [Self; 2] {
        [Self::File(TempDir::new().unwrap()), Self::Postgres(Database::create().await)]
    }

    fn place(&self) -> StoreLocation {
        match self {
            Self::File(directory) => StoreLocation::File(directory.path().join("data/claw.db")),
            Self::Postgres(database) => database.url().parse().unwrap(),
        }
    }
}

fn of(installation: InstallationId) -> StoreOptions {
    StoreOptions { installation: Some(installation), ..StoreOptions::default() }
}

#[tokio::test]
async fn looking_at_a_store_that_is_not_there_makes_none() {
    for empty in Empty::both().await {
        let place = empty.place();
        assert_eq!(status(&place).await.unwrap(), None);
        assert!(!exists(&place).await.unwrap());
        if let StoreLocation::File(path) = &place {
            assert!(!path.parent().unwrap().exists());
        }
    }
}

#[tokio::test]
async fn a_migration_says_what_it_applied_and_does_it_once() {
    for empty in Empty::both().await {
        let (place, options) = (empty.place(), StoreOptions::default());
        let applied = migrate(&place, &options).await.unwrap();
        assert_eq!((applied[0].version, applied[0].name), (1, "calls"));
        assert_eq!(applied.last().unwrap().name, "sealed_marks");
        assert_eq!(migrate(&place, &options).await.unwrap(), []);
        let store = open(&place, NodeId::local(), &options).await.unwrap();
        assert!(!store.installation().is_new, "the migration settled whose it is");
    }
}

#[tokio::test]
async fn tells_how_a_store_stands() {
    for empty in Empty::both().await {
        let place = empty.place();
        let store = open(&place, NodeId::local(), &StoreOptions::default()).await.unwrap();
        for _ in 0..3 {
            store.refuse(refused(CallId::new())).await.unwrap();
        }
        let stands = status(&place).await.unwrap().unwrap();
        assert!(exists(&place).await.unwrap());
        assert_eq!(stands.installation, Some(store.installation().id));
        assert_eq!(stands.schema.applied, Some(stands.schema.known));
        assert!(stands.schema.pending.is_empty() && stands.schema.newer.is_empty());
        let rows = |name: &str| stands.tables.iter().find(|table| table.name == name).unwrap().rows;
        assert_eq!((rows("ledger"), rows("ledger_head"), rows("installation")), (3, 1, 1));
        assert!(stands.tables.iter().all(|table| !table.name.contains("sqlx")), "{stands:?}");
        assert!(stands.bytes > 0 && !stands.version.is_empty());
        match &empty {
            Empty::File(_) => assert_eq!(stands.journal.unwrap().mode, "wal"),
            Empty::Postgres(_) => assert_eq!(stands.journal, None),
        }
    }
}

#[tokio::test]
async fn a_store_keeps_its_installation() {
    for empty in Empty::both().await {
        let place = empty.place();
        let first = open(&place, NodeId::local(), &StoreOptions::default()).await.unwrap().installation();
        assert!(first.is_new);
        let again = open(&place, NodeId::local(), &of(first.id)).await.unwrap().installation();
        assert_eq!((again.id, again.is_new), (first.id, false));
    }
}

#[tokio::test]
async fn the_store_of_another_installation_is_left_alone() {
    for empty in Empty::both().await {
        let (place, other) = (empty.place(), InstallationId::new());
        for refused in [
            open(&place, NodeId::local(), &of(other)).await.map(drop),
            migrate(&place, &of(other)).await.map(drop),
        ] {
            let error = refused.unwrap_err();
            assert!(
                matches!(error, StoreError::OtherInstallation { node, store: None } if node == other),
                "{error}"
            );
        }
        assert!(!exists(&place).await.unwrap(), "nothing was made of it");

        let its = open(&place, NodeId::local(), &StoreOptions::default()).await.unwrap().installation().id;
        let error = open(&place, NodeId::local(), &of(other)).await.map(drop).unwrap_err().to_string();
        assert!(error.contains(&other.to_string()) && error.contains(&its.to_string()), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_open_an_empty_store_together_agree_on_its_installation() {
    for empty in Empty::both().await {
        let place = empty.place();
        let opening: Vec<_> = (0..4)
            .map(|_| {
                let place = place.clone();
                tokio::spawn(async move {
                    open(&place, NodeId::local(), &StoreOptions::default()).await.unwrap().installation()
                })
            })
            .collect();
        let mut opened = Vec::new();
        for task in opening {
            opened.push(task.await.unwrap());
        }
        assert!(opened.iter().all(|installation| installation.id == opened[0].id), "{opened:?}");
        assert_eq!(opened.iter().filter(|installation| installation.is_new).count(), 1);
    }
}

#[tokio::test]
async fn a_closed_file_has_no_data_beside_it() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("claw.db");
    let store = SqliteStore::open(&path, NodeId::local()).await.unwrap();
    store.refuse(refused(CallId::new())).await.unwrap();
    assert!(directory.path().join("claw.db-wal").exists());
    store.disconnect().await;
    let mut left: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    // The mark tells other processes of changes and holds no data.
    assert_eq!(left, ["claw.db", "claw.db-mark"]);
}
