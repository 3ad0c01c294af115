//! Secrets through the vault: values that open, values that do not, and the errors.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use claw_core::store::{ProgramPlace, ProgramSettings, SealKeyId, SealedTable, SecretPlace, StoreError};
use claw_core::{AgentId, NodeId, ProgramName, SecretName, TenantId};
use claw_store::encryption::KeySource;
use claw_store::vault::{MOST_SECRET_BYTES, ProgramEnv};
use claw_store::{SqliteStore, Vault};
use claw_testkit::fixture::{NOW, tenant};
use secrecy::{ExposeSecret as _, SecretString};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, SqliteConnection};
use tempfile::TempDir;

/// A store in a file, with its keys beside it.
pub(crate) struct Home(pub(crate) TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.0.path().join("claw.db")
    }

    pub(crate) fn keys(&self) -> PathBuf {
        self.0.path().join("keys/ring")
    }

    async fn try_vault(&self) -> Result<Vault, StoreError> {
        let store = SqliteStore::open(&self.database(), NodeId::local()).await.unwrap();
        Vault::open(Arc::new(store), KeySource::File(self.keys())).await
    }

    /// Opens the vault as another program would.
    pub(crate) async fn vault(&self) -> Vault {
        self.try_vault().await.unwrap()
    }

    /// Changes the database behind the store's back.
    pub(crate) async fn tamper(&self, sql: &'static str) {
        let mut connection: SqliteConnection =
            SqliteConnectOptions::new().filename(self.database()).connect().await.unwrap();
        sqlx::query("PRAGMA ignore_check_constraints = ON").execute(&mut connection).await.unwrap();
        let changed = sqlx::query(sql).execute(&mut connection).await.unwrap();
        assert!(changed.rows_affected() > 0, "{sql}");
    }
}

pub(crate) fn place(name: &str) -> SecretPlace {
    SecretPlace { tenant: TenantId::main(), agent: None, name: SecretName::new(name).unwrap() }
}

pub(crate) fn gh() -> ProgramPlace {
    ProgramPlace { tenant: TenantId::main(), agent: None, name: ProgramName::new("gh").unwrap() }
}

pub(crate) fn env_of(variables: &[(&str, &str)]) -> Result<ProgramEnv, StoreError> {
    ProgramEnv::new(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())))
}

pub(crate) async fn put(vault: &Vault, name: &str, value: &str) {
    vault.put_secret(&place(name), &value.into(), NOW).await.unwrap();
}

pub(crate) async fn get(vault: &Vault, name: &str) -> Option<String> {
    vault.secret(&place(name)).await.unwrap().map(|value| value.expose_secret().to_owned())
}

/// Asserts that the error is damage, with its name and advice, and without a part of the value.
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
    let rows = store.not_sealed_by(SealKeyId([0; 8]), SealedTable::Secrets, None, 9);
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
    let changed = "the secret `TOKEN` (tenant `main`) is damaged: it was changed, or was encrypted for \
                   another place; set it again, or remove it";
    let said = |what: &str| {
        format!("the secret `TOKEN` (tenant `main`) is damaged: {what}; set it again, or remove it")
    };
    let plain = said("it is not encrypted: something wrote a plain value into the database");
    for (sql, expected) in [
        (
            "UPDATE secrets SET value = CAST(substr(value, 1, 30) || iif(substr(value, 31, 1) = x'00', x'01', x'00') || substr(value, 32) AS BLOB)",
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
            &said("it was encrypted in form 2, which this Clawsmith does not know"),
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
        // The advice works, without a restart.
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
        assert!(error.to_string().contains("encrypted for another place"), "{error}");
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
        "the env of program `gh` (tenant `main`) is damaged: it was encrypted for another binary than the \
         current one; set it again, or remove it",
    );
}

#[tokio::test]
async fn does_not_give_credentials_to_a_helper_that_was_added_in_the_database() {
    let home = Home::new();
    let vault = home.vault().await;
    let env = env_of(&[("GH_TOKEN", "hunter2")]).unwrap();
    let settings = ProgramSettings { helpers: vec!["git".to_owned()], ..ProgramSettings::new("/usr/bin/gh") };
    vault.put_program(&gh(), settings.clone(), &env, NOW).await.unwrap();
    assert_eq!(vault.program(&gh()).await.unwrap().unwrap().0.settings, settings);
    home.tamper(r#"UPDATE programs SET settings = replace(settings, '"git"', '"git","sh"')"#).await;
    check_damaged(
        &vault.program(&gh()).await.unwrap_err(),
        "the env of program `gh` (tenant `main`) is damaged: it was encrypted for other helpers than the \
         current ones; set it again, or remove it",
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
            "the secret `TOKEN` (tenant `main`) is damaged: it is encrypted with key `{id}`, which is \
             missing; restore the key from a copy, or set the value again"
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
    assert!(error.contains("it is missing, and values are encrypted with `"), "{error}");
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
