//! Secrets and credentials in plain: the store and the keys together.
//!
//! This is the one place where sealed values are opened. Code that needs a secret asks the [`Vault`]; the
//! store alone gives only encrypted bytes.

mod credentials;
mod custom;
mod env;
mod rotate;

use std::sync::Arc;

use claw_core::TenantId;
use claw_core::port::UnixMillis;
use claw_core::store::{
    CustomToolCard, CustomToolPlace, Program, ProgramCard, ProgramPlace, ProgramSettings, Sealed,
    SealedPlace, SecretPlace, Store, StoreError, StoredCustomTool,
};
pub use rotate::{Failed, Progress, Retired, Rotated};
use secrecy::{ExposeSecret as _, SecretString};
use zeroize::Zeroizing;

pub use credentials::StoredCredentials;
pub use custom::CustomToolValues;
pub use env::ProgramEnv;

use crate::encryption::{KeyRing, KeySource, Unopened};
use crate::row::damaged;

/// A secret is a password, a token or a key, not a file.
pub const MOST_SECRET_BYTES: usize = 64 * 1024;

/// Opens and seals the values in a store.
pub struct Vault {
    store: Arc<dyn Store>,
    keys: Arc<KeyRing>,
}

/// Returns the texts in a JSON document whose keys mark them as secret.
fn secrets_within(text: &str) -> Vec<SecretString> {
    fn collect(value: &serde_json::Value, is_secret: bool, found: &mut Vec<SecretString>) {
        match value {
            serde_json::Value::String(text) if is_secret => found.push(text.clone().into()),
            serde_json::Value::Object(fields) => {
                for (key, value) in fields {
                    collect(value, SECRET_KEYS.iter().any(|word| key.contains(word)), found);
                }
            }
            serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, is_secret, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    if text.starts_with('{')
        && let Ok(document) = serde_json::from_str(text)
    {
        collect(&document, false, &mut found);
    }
    found
}

/// Parts of keys in a JSON document that mark a value as secret.
const SECRET_KEYS: [&str; 5] = ["_token", "secret", "password", "private_key", "verifier"];

impl Vault {
    /// Combines a store with its keys. A missing key file is created, unless the store holds values sealed by
    /// an earlier key.
    pub async fn open(store: Arc<dyn Store>, keys: KeySource) -> Result<Self, StoreError> {
        let sealed = store.key_use().await?;
        let keys = crate::encryption::blocking(move || KeyRing::open(&keys, &sealed)).await?;
        Ok(Self { store, keys: Arc::new(keys) })
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The keys.
    pub fn keys(&self) -> &Arc<KeyRing> {
        &self.keys
    }

    /// The secret at exactly this place.
    pub async fn secret(&self, place: &SecretPlace) -> Result<Option<SecretString>, StoreError> {
        let at = SealedPlace::from(place);
        let mut attempt = Attempt::First;
        let plain = loop {
            let Some(value) = self.store.secret(place).await? else { return Ok(None) };
            if let Some(plain) = self.opened(&at, &value, attempt).await? {
                break plain;
            }
            attempt = Attempt::Second;
        };
        let text = String::from_utf8(without_wiping(plain));
        let text = text.map_err(|error| {
            drop(Zeroizing::new(error.into_bytes()));
            damaged(&at.to_string(), "it is not text; set it again, or remove it")
        })?;
        Ok(Some(text.into()))
    }

    /// Returns all secrets of a tenant and its agents. A secret that is a JSON document, such as a login with
    /// its tokens, is followed by the secrets in it.
    pub async fn secrets(&self, tenant: &TenantId) -> Result<Vec<SecretString>, StoreError> {
        let mut opened = Vec::new();
        for card in self.store.secrets(tenant).await? {
            let Some(secret) = self.secret(&card.place).await? else { continue };
            let within = secrets_within(secret.expose_secret());
            opened.push(secret);
            opened.extend(within);
        }
        Ok(opened)
    }

    /// Seals a secret and writes it, replacing the stored one.
    pub async fn put_secret(
        &self,
        place: &SecretPlace,
        value: &SecretString,
        at: UnixMillis,
    ) -> Result<(), StoreError> {
        let plain = value.expose_secret();
        if plain.len() > MOST_SECRET_BYTES {
            let why = format!("it has {} bytes; a secret has at most {MOST_SECRET_BYTES}", plain.len());
            return Err(refused("could not store the secret", why));
        }
        let turn = self.keys.sealing().await?;
        let sealed = turn.ring.seal(&place.into(), plain.as_bytes())?;
        self.store.put_secret(place, &sealed, at).await
    }

    /// The program at exactly this place, with its variables.
    pub async fn program(
        &self,
        place: &ProgramPlace,
    ) -> Result<Option<(ProgramCard, ProgramEnv)>, StoreError> {
        let at = SealedPlace::from(place);
        let mut attempt = Attempt::First;
        let (card, plain) = loop {
            let Some(Program { card, env }) = self.store.program(place).await? else { return Ok(None) };
            if let Some(plain) = self.opened(&at, &env, attempt).await? {
                break (card, plain);
            }
            attempt = Attempt::Second;
        };
        let env = ProgramEnv::read(&plain, &card.settings)
            .map_err(|why| damaged(&at.to_string(), format_args!("{why}; set it again, or remove it")))?;
        Ok(Some((card, env)))
    }

    /// Seals a program's variables and writes the program, replacing the stored one. The seal covers the
    /// binary's path and digest too: if the binary is changed in the store, the program does not get the
    /// variables.
    pub async fn put_program(
        &self,
        place: &ProgramPlace,
        settings: ProgramSettings,
        env: &ProgramEnv,
        at: UnixMillis,
    ) -> Result<(), StoreError> {
        const WHAT: &str = "could not store the program";
        if !settings.binary.starts_with('/') {
            let why = format!("its binary is `{}`; give an absolute path", settings.binary);
            return Err(refused(WHAT, why));
        }
        let plain = env.write(&settings)?;
        if plain.len() > MOST_SECRET_BYTES {
            let why =
                format!("its variables have {} bytes; at most {MOST_SECRET_BYTES} are allowed", plain.len());
            return Err(refused(WHAT, why));
        }
        let turn = self.keys.sealing().await?;
        let sealed = turn.ring.seal(&place.into(), &plain)?;
        let card = ProgramCard { place: place.clone(), settings, variables: env.names(), at };
        self.store.put_program(&Program { card, env: sealed }).await
    }

    /// Opens the values of a custom tool that was read from the store.
    pub async fn custom_tool_values(&self, tool: &StoredCustomTool) -> Result<CustomToolValues, StoreError> {
        let StoredCustomTool { card, env } = tool;
        let at = SealedPlace::from(&card.place);
        let mut read = (card.clone(), env.clone());
        let mut attempt = Attempt::First;
        let plain = loop {
            if let Some(plain) = self.opened(&at, &read.1, attempt).await? {
                break plain;
            }
            attempt = Attempt::Second;
            // Sealed anew meanwhile, perhaps.
            let Some(now) = self.store.custom_tool(&card.place).await? else {
                return Err(damaged(&at.to_string(), "it was removed"));
            };
            read = (now.card, now.env);
        };
        CustomToolValues::read(&plain, &read.0.definition)
            .map_err(|why| damaged(&at.to_string(), format_args!("{why}; set it again, or remove it")))
    }

    /// The custom tool at exactly this place, with its values.
    pub async fn custom_tool(
        &self,
        place: &CustomToolPlace,
    ) -> Result<Option<(CustomToolCard, CustomToolValues)>, StoreError> {
        let Some(tool) = self.store.custom_tool(place).await? else { return Ok(None) };
        let values = self.custom_tool_values(&tool).await?;
        Ok(Some((tool.card, values)))
    }

    /// Seals the values of a custom tool and writes it; returns its new version. The seal covers the tool's
    /// command and grants: if the command is changed in the store, the tool does not get the values.
    pub async fn put_custom_tool(
        &self,
        mut card: CustomToolCard,
        values: &CustomToolValues,
        seen: Option<u64>,
    ) -> Result<u64, StoreError> {
        let plain = values.write(&card.definition)?;
        if plain.len() > MOST_SECRET_BYTES {
            let why =
                format!("its values have {} bytes; at most {MOST_SECRET_BYTES} are allowed", plain.len());
            return Err(refused("could not store the custom tool", why));
        }
        card.variables = values.names();
        let turn = self.keys.sealing().await?;
        let env = turn.ring.seal(&(&card.place).into(), &plain)?;
        self.store.put_custom_tool(&StoredCustomTool { card, env }, seen).await
    }

    /// Opens a value; `None` if it should be read again first: its key is not known, may have been made
    /// since, and the value may have been resealed. At the second attempt an unknown key is an error.
    async fn opened(
        &self,
        place: &SealedPlace,
        sealed: &Sealed,
        attempt: Attempt,
    ) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
        match (self.keys.ring().open(place, sealed), attempt) {
            (Ok(plain), _) => Ok(Some(plain)),
            (Err(Unopened::NoKey(_)), Attempt::First) => self.keys.refresh().await.map(|_| None),
            (Err(unopened), _) => Err(damaged(&place.to_string(), why(unopened))),
        }
    }
}

/// The number of the attempt to read a value.
#[derive(Clone, Copy)]
enum Attempt {
    First,
    Second,
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vault").field("keys", &self.keys).finish_non_exhaustive()
    }
}

/// Takes the bytes out of their wiping container; the caller must wipe them.
fn without_wiping(mut plain: Zeroizing<Vec<u8>>) -> Vec<u8> {
    std::mem::take(&mut *plain)
}

/// Explains why a value could not be opened, and what to do.
fn why(unopened: Unopened) -> String {
    match unopened {
        Unopened::NoKey(id) => format!(
            "it is encrypted with key `{id}`, which is missing; restore the key from a copy, or set the \
             value again"
        ),
        Unopened::Changed => {
            "it was changed, or was encrypted for another place; set it again, or remove it".to_owned()
        }
    }
}

fn refused(what: &'static str, why: String) -> StoreError {
    StoreError::Database { what, why, transient: false }
}
