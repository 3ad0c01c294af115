use claw_core::SecretName;
use claw_core::port::Clock as _;
use claw_core::store::SecretPlace;
use claw_host::SystemClock;
use claw_store::encryption::KeySource;

use super::*;
use crate::app::Hooks;
use crate::config::Surroundings;

#[tokio::test]
async fn a_secret_that_cannot_be_decrypted_does_not_uncover_those_of_other_tenants() {
    let home = tempfile::tempdir().unwrap();
    let around = Surroundings {
        directory: home.path().to_owned(),
        variables: vec![("HOME".into(), home.path().into())],
    };
    let app = Setup::load(None, &around).unwrap().open().await.unwrap();
    let [broken, whole] = ["broken", "whole"].map(|name| TenantId::new(name).unwrap());
    for tenant in [&broken, &whole] {
        app.add_tenant(tenant.clone(), None).await.unwrap();
    }
    let own = app.vault().await.unwrap();
    let keys = KeySource::new(None, home.path().join("another/ring")).unwrap();
    let other = Vault::open(Arc::clone(&app.store) as _, keys).await.unwrap();
    let executor = app.toolbox(Hooks::default()).await.unwrap();

    let name = SecretName::new("word").unwrap();
    let place = |tenant: &TenantId| SecretPlace { tenant: tenant.clone(), agent: None, name: name.clone() };
    other.put_secret(&place(&broken), &"sealed-elsewhere-0815".into(), SystemClock.now()).await.unwrap();
    own.put_secret(&place(&whole), &"open-sesame-4711".into(), SystemClock.now()).await.unwrap();
    let error = app.hide_sealed(&executor).await.unwrap_err();
    assert!(error.to_string().contains("tenant `broken`"), "{error}");
    let shown = executor.scrubbers().for_tenant(&whole).text("say open-sesame-4711");
    assert!(!shown.contains("open-sesame-4711"), "{shown}");
    app.close().await;
}
