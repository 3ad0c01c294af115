//! Secrets through the vault: what opens, what does not and what is said then, and another key while others
//! write.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use claw_core::store::{KeyUse, ProgramPlace, ProgramSettings, SecretPlace, Store, StoreError};
use claw_core::{AgentId, NodeId, ProgramName, SecretName, TenantId};
use claw_store::seal::KeySource;
use claw_store::vault::{MOST_SECRET_BYTES, ProgramEnv};
use claw_store::{SqliteStore, Vault};
use claw_testkit::fixture::{NOW, tenant};
use secrecy::{ExposeSecret as _, SecretString};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, SqliteConnection};
use tempfile::TempDir;

use crate::postgres::database::Database;

/// A store in a file, with its keys beside it.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn database(&self) -> PathBuf {
        self.0.path().join("claw.db")
    }

    fn keys(&self) -> PathBuf {
        self.0.path().join("keys/ring")
    }

    async fn try_vault(&self) -> Result<Vault, StoreError> {
        let store = SqliteStore::open(&self.database(), NodeId::local()).await.unwrap();
        Vault::open(Arc::new(store), KeySource::File(self.keys())).await
    }

    /// The vault as one more program opens it.
    async fn vault(&self) -> Vault {
        self.try_vault().await.unwrap()
    }

    /// What somebody does to the database who does not ask the store.
    async fn tamper(&self, sql: &'static str) {
        let mut connection: SqliteConnection =
            SqliteConnectOptions::new().filename(self.database()).connect().await.unwrap();
        sqlx::query("PRAGMA ignore_check_constraints = ON").execute(&mut connection).await.unwrap();
        let changed = sqlx::query(sql).execute(&mut connection).await.unwrap();
        assert!(changed.rows_affected() > 0, "{sql}");
    }
}

fn place(name: &str) -> SecretPlace {
    SecretPlace { tenant: TenantId::main(), agent: None, name: SecretName::new(name).unwrap() }
}

fn gh() -> ProgramPlace {
    ProgramPlace { tenant: TenantId::main(), agent: None, name: ProgramName::new("gh").unwrap() }
}

fn env_of(variables: &[(&str, &str)]) -> Result<ProgramEnv, StoreError> {
    ProgramEnv::new(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())))
}

async fn put(vault: &Vault, name: &str, value: &str) {
    vault.put_secret(&place(name), &value.into(), NOW).await.unwrap();
}

async fn get(vault: &Vault, name: &str) -> Option<String> {
    vault.secret(&place(name)).await.unwrap().map(|value| value.expose_secret().to_owned())
}

/// That it is damage, named, with what to do, and without a word of the value.
#[track_caller]
fn check_damaged(error: &StoreError, expected: &str) {
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    assert_eq!(error.to_string(), expected);
    assert!(!format!("{error:?}").contains("hunter2"));
}

#[tokio::test]
async fn gives_back_what_was_put() {
    let home = Home::new();
    let vault = home.vault().await;
    assert_eq!(get(&vault, "TOKEN").await, None);
    for value in ["hunter2", "", "naïve \u{1f980} \0 end", &"x".repeat(MOST_SECRET_BYTES)] {
        put(&vault, "TOKEN", value).await;
        assert_eq!(get(&vault, "TOKEN").await.as_deref(), Some(value));
        assert_eq!(get(&home.vault().await, "TOKEN").await.as_deref(), Some(value), "another program's too");
    }
    let long = SecretString::from("x".repeat(MOST_SECRET_BYTES + 1));
    let error = vault.put_secret(&place("TOKEN"), &long, NOW).await.unwrap_err().to_string();
    assert!(error.contains("it has 65537 bytes"), "{error}");
}

#[tokio::test]
async fn gives_a_program_with_its_variables() {
    let home = Home::new();
    let vault = home.vault().await;
    assert!(vault.program(&gh()).await.unwrap().is_none());
    let env = env_of(&[("GH_TOKEN", "hunter2 \"quoted\" \u{1f980}"), ("GH_HOST", "")]).unwrap();
    let settings =
        ProgramSettings { deny_args: vec![r"auth\s+".to_owned()], ..ProgramSettings::new("/usr/bin/gh") };
    vault.put_program(&gh(), settings.clone(), &env, NOW).await.unwrap();
    let (card, opened) = home.vault().await.program(&gh()).await.unwrap().unwrap();
    assert_eq!(
        (&card.settings, &card.variables[..]),
        (&settings, &["GH_HOST", "GH_TOKEN"].map(String::from)[..])
    );
    let opened: Vec<_> = opened.iter().map(|(name, value)| (name, value.expose_secret())).collect();
    assert_eq!(opened, [("GH_HOST", ""), ("GH_TOKEN", "hunter2 \"quoted\" \u{1f980}")]);
    let listed = vault.store().programs(&TenantId::main()).await.unwrap();
    assert_eq!(listed, [card]);
    assert!(!serde_json::to_string(&listed).unwrap().contains("hunter2"));
}

#[tokio::test]
async fn refuses_variables_and_binaries_that_cannot_be() {
    for (name, value) in [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "hunter2\0")] {
        let error = env_of(&[(name, value)]).unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
    let vault = Home::new();
    let vault = vault.vault().await;
    for binary in ["gh", "", "./gh"] {
        let settings = ProgramSettings::new(binary);
        let error = vault.put_program(&gh(), settings, &ProgramEnv::default(), NOW).await.unwrap_err();
        assert!(error.to_string().contains("give an absolute path"), "{error}");
    }
}

#[tokio::test]
async fn nothing_of_a_value_is_in_the_file_or_in_debug() {
    let home = Home::new();
    let vault = home.vault().await;
    put(&vault, "TOKEN", "hunter2-of-the-token").await;
    let env = env_of(&[("GH_TOKEN", "hunter2-of-the-env")]).unwrap();
    vault.put_program(&gh(), ProgramSettings::new("/usr/bin/gh"), &env, NOW).await.unwrap();
    let store = vault.store();
    let value = store.secret(&place("TOKEN")).await.unwrap();
    let opened = vault.secret(&place("TOKEN")).await.unwrap();
    let rows =
        store.not_sealed_by(claw_core::store::KeyId([0; 8]), claw_core::store::SealedTable::Secrets, None, 9);
    let keys = fs::read_to_string(home.keys()).unwrap();
    let key = keys.trim_end().rsplit_once(':').unwrap().1;
    for shown in [
        format!("{vault:?}"),
        format!("{env:?}"),
        format!("{value:?}"),
        format!("{opened:?}"),
        format!("{:?}", rows.await.unwrap()),
        format!("{:?}", store.program(&gh()).await.unwrap()),
        format!("{:?}", vault.program(&gh()).await.unwrap()),
        format!("{:?}", store.secrets(&TenantId::main()).await.unwrap()),
        format!("{:?}", vault.keys().sealing().await.unwrap()),
    ] {
        assert!(!shown.contains("hunter2") && !shown.contains(key), "{shown}");
        assert!(!shown.contains("104, 117, 110"), "as numbers: {shown}");
    }
    for file in ["claw.db", "claw.db-wal"] {
        let bytes = fs::read(home.0.path().join(file)).unwrap();
        assert!(!bytes.windows(7).any(|window| window == b"hunter2"), "{file}");
    }
}

#[tokio::test]
async fn names_a_value_that_was_changed_cut_off_or_is_plain() {
    let changed = "the secret `TOKEN` (tenant `main`) is damaged: it was changed, or was sealed for another place; \
                   set it again, or remove it";
    let said = |what: &str| {
        format!("the secret `TOKEN` (tenant `main`) is damaged: {what}; set it again, or remove it")
    };
    let plain = said("it is not sealed: something wrote a plain value into the database");
    for (sql, expected) in [
        (
            "UPDATE secrets SET value = CAST(substr(value, 1, 30) || x'00' || substr(value, 32) AS BLOB)",
            changed,
        ),
        ("UPDATE secrets SET value = substr(value, 1, length(value) - 1)", changed),
        ("UPDATE secrets SET value = CAST(value || x'00' AS BLOB)", changed),
        ("UPDATE secrets SET value = CAST('hunter2' AS BLOB)", &plain),
        ("UPDATE secrets SET value = CAST('hunter2 hunter2 hunter2 hunter2 hunter2' AS BLOB)", &plain),
        ("UPDATE secrets SET value = substr(value, 1, 36)", &said("it is cut off")),
        ("UPDATE secrets SET value = x''", &said("it is empty")),
        (
            "UPDATE secrets SET value = CAST(x'02' || substr(value, 2) AS BLOB)",
            &said("it was sealed in form 2, which this Clawsmith does not know"),
        ),
    ] {
        let home = Home::new();
        let vault = home.vault().await;
        put(&vault, "TOKEN", "hunter2 and much more than that").await;
        put(&vault, "OTHER", "fine").await;
        vault.store().remove_secret(&place("OTHER")).await.unwrap();
        home.tamper(sql).await;
        check_damaged(&vault.secret(&place("TOKEN")).await.unwrap_err(), expected);
        assert_eq!(vault.store().secrets(&TenantId::main()).await.unwrap().len(), 1, "it is still listed");
        // What to do works, without a restart.
        put(&vault, "TOKEN", "again").await;
        assert_eq!(get(&vault, "TOKEN").await.as_deref(), Some("again"));
    }
}

#[tokio::test]
async fn the_database_refuses_a_plain_value() {
    let home = Home::new();
    let vault = home.vault().await;
    put(&vault, "TOKEN", "hunter2").await;
    let mut connection = SqliteConnectOptions::new().filename(home.database()).connect().await.unwrap();
    for sql in [
        "UPDATE secrets SET value = 'hunter2 hunter2 hunter2 hunter2 hunter2'",
        "UPDATE secrets SET value = CAST('hunter2 hunter2 hunter2 hunter2 hunter2' AS BLOB)",
        "UPDATE secrets SET value = x'01'",
    ] {
        sqlx::query(sql).execute(&mut connection).await.unwrap_err();
    }
    assert_eq!(get(&vault, "TOKEN").await.as_deref(), Some("hunter2"));
}

#[tokio::test]
async fn refuses_a_value_that_was_moved() {
    let home = Home::new();
    let vault = home.vault().await;
    let (theirs, agents) = (
        SecretPlace { tenant: tenant("other"), ..place("TOKEN") },
        SecretPlace { agent: Some(AgentId::new("a").unwrap()), ..place("TOKEN") },
    );
    for (value, to) in
        [("mine", &place("TOKEN")), ("other name", &place("X")), ("theirs", &theirs), ("agent's", &agents)]
    {
        vault.put_secret(to, &value.into(), NOW).await.unwrap();
    }
    for from in [
        "UPDATE secrets SET value = (SELECT value FROM secrets WHERE tenant = 'other')
         WHERE tenant = 'main' AND agent = '' AND name = 'TOKEN'",
        "UPDATE secrets SET value = (SELECT value FROM secrets WHERE agent = 'a')
         WHERE tenant = 'main' AND agent = '' AND name = 'TOKEN'",
        "UPDATE secrets SET value = (SELECT value FROM secrets WHERE name = 'X')
         WHERE tenant = 'main' AND agent = '' AND name = 'TOKEN'",
    ] {
        home.tamper(from).await;
        let error = vault.secret(&place("TOKEN")).await.unwrap_err();
        assert!(error.to_string().contains("sealed for another place"), "{error}");
    }
    assert_eq!(get(&vault, "X").await.as_deref(), Some("other name"));
}

#[tokio::test]
async fn does_not_give_credentials_to_another_binary() {
    let home = Home::new();
    let vault = home.vault().await;
    let env = env_of(&[("GH_TOKEN", "hunter2")]).unwrap();
    vault.put_program(&gh(), ProgramSettings::new("/usr/bin/gh"), &env, NOW).await.unwrap();
    home.tamper("UPDATE programs SET settings = replace(settings, '/usr/bin/gh', '/tmp/gh')").await;
    check_damaged(
        &vault.program(&gh()).await.unwrap_err(),
        "the env of program `gh` (tenant `main`) is damaged: it was sealed for another binary than the one that is \
         set now; set it again, or remove it",
    );
}

#[tokio::test]
async fn names_the_key_that_is_missing() {
    let home = Home::new();
    let vault = home.vault().await;
    put(&vault, "TOKEN", "hunter2").await;
    let id = vault.keys().ring().current();
    drop(vault);
    // A file of other keys, as another installation has.
    let other = Home::new();
    drop(other.vault().await);
    fs::copy(other.keys(), home.keys()).unwrap();
    let vault = home.vault().await;
    check_damaged(
        &vault.secret(&place("TOKEN")).await.unwrap_err(),
        &format!(
            "the secret `TOKEN` (tenant `main`) is damaged: key `{id}`, which sealed it, is not among the keys; put it \
             back from a copy, or set the value again"
        ),
    );
    let rotated = vault.rotate(|_| {}).await.unwrap();
    assert_eq!((rotated.resealed, rotated.failed.len()), (0, 1));
    assert!(rotated.failed[0].why.contains(&id.to_string()), "{:?}", rotated.failed);
}

#[tokio::test]
async fn keys_that_are_gone_or_open_to_others_are_named_and_put_right() {
    let home = Home::new();
    let vault = home.vault().await;
    put(&vault, "TOKEN", "hunter2").await;
    drop(vault);
    let away = home.0.path().join("away");
    fs::rename(home.keys(), &away).unwrap();
    let error = home.try_vault().await.unwrap_err().to_string();
    assert!(error.contains("it is not there, and 1 values are sealed with"), "{error}");
    assert!(!home.keys().exists(), "no other key is made in its place");
    fs::rename(&away, home.keys()).unwrap();

    fs::set_permissions(home.keys(), fs::Permissions::from_mode(0o644)).unwrap();
    let error = home.try_vault().await.unwrap_err();
    assert!(matches!(&error, StoreError::Keys { .. }), "{error:?}");
    assert!(error.to_string().contains("mode 0644"), "{error}");
    fs::set_permissions(home.keys(), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(get(&home.vault().await, "TOKEN").await.as_deref(), Some("hunter2"));
}

#[tokio::test]
async fn keys_of_a_variable() {
    let home = Home::new();
    let store = || async { SqliteStore::open(&home.database(), NodeId::local()).await.unwrap() };
    let vault = async |text: &str| {
        let source = KeySource::new(Some(text.into()), home.keys()).unwrap();
        Vault::open(Arc::new(store().await), source).await
    };
    let (first, second) = ("11".repeat(32), "22".repeat(32));
    let one = vault(&first).await.unwrap();
    put(&one, "TOKEN", "hunter2").await;
    let old = one.keys().ring().current();
    assert!(!home.keys().exists());
    let rotated = one.rotate(|_| {}).await.unwrap();
    assert_eq!(
        (rotated.is_new, rotated.resealed, rotated.key),
        (false, 0, old),
        "a variable is not ours to change"
    );

    let both = vault(&format!("{second},{first}")).await.unwrap();
    let rotated = both.rotate(|_| {}).await.unwrap();
    assert_eq!((rotated.is_new, rotated.resealed), (false, 1));
    let retired = both.retire(|_| {}).await.unwrap();
    assert_eq!((retired.unused, retired.taken), (vec![old], false));
    assert_eq!(get(&vault(&second).await.unwrap(), "TOKEN").await.as_deref(), Some("hunter2"));
    let error = vault("hunter2").await.unwrap_err().to_string();
    assert!(error.contains("`CLAWSMITH_KEYS`") && !error.contains("hunter2"), "{error}");
}

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

/// Writers with vaults of their own write and read without a break while keys are made and retired.
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
            .args(["vault::rotating_player", "--exact", "--nocapture"])
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

/// Not a test: what the killed process runs.
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

/// Everything opens after whatever happened, and the next rotation leaves one key in use.
async fn check_finished(home: &Home, old: claw_core::store::KeyId, values: usize) {
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
