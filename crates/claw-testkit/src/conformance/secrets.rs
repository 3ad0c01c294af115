//! The suites of [`Secrets`] and [`Programs`]: sealed values are stored unchanged, for their own tenant and
//! agent alone, and lists show none of them.

use claw_core::port::UnixMillis;
use claw_core::store::{
    Program, ProgramCard, ProgramPlace, ProgramSettings, Programs, Sealed, SecretPlace, Secrets, Topic,
};
use claw_core::tool::Digest;
use claw_core::{AgentId, ProgramName, SecretName, TenantId};

use crate::fixture::{NOW, tenant};

/// Later than [`NOW`].
const LATER: UnixMillis = UnixMillis(NOW.0 + 1_000);

/// Runs the suite of secrets; `make` creates an empty store.
pub async fn secrets<S: Secrets>(make: impl AsyncFn() -> S) {
    keeps_a_secret(make().await).await;
    keeps_secrets_of_tenants_and_agents_apart(make().await).await;
    lists_secrets_sorted(make().await).await;
    tells_of_secrets(make().await).await;
}

/// Runs the suite of programs; `make` creates an empty store.
pub async fn programs<S: Programs>(make: impl AsyncFn() -> S) {
    keeps_a_program(make().await).await;
    enables_a_program(make().await).await;
    keeps_programs_of_tenants_and_agents_apart(make().await).await;
    lists_programs_sorted(make().await).await;
    tells_of_programs(make().await).await;
}

/// Bytes that have the form of a sealed value; this key byte and this content.
pub(super) fn sealed(key: u8, content: &[u8]) -> Sealed {
    let head = [&[1][..], &[key; 8], &[7; 12]].concat();
    Sealed::from_bytes([&head[..], content, &[0; 16]].concat()).unwrap()
}

pub(super) fn secret(of: &str, agent: Option<&str>, name: &str) -> SecretPlace {
    SecretPlace { tenant: tenant(of), agent: agent.map(agent_id), name: SecretName::new(name).unwrap() }
}

fn agent_id(name: &str) -> AgentId {
    AgentId::new(name).unwrap()
}

async fn keeps_a_secret(store: impl Secrets) {
    let token = secret("main", None, "TOKEN");
    assert_eq!(store.secret(&token).await.unwrap(), None);
    assert!(!store.remove_secret(&token).await.unwrap());
    let every_byte: Vec<u8> = (0..=255).collect();
    for (value, at) in [(sealed(1, &every_byte), NOW), (sealed(2, b""), LATER)] {
        store.put_secret(&token, &value, at).await.unwrap();
        assert_eq!(store.secret(&token).await.unwrap(), Some(value));
    }
    let cards = store.secrets(&TenantId::main()).await.unwrap();
    assert_eq!(cards.len(), 1, "the second is in place of the first");
    assert_eq!((&cards[0].place, cards[0].made, cards[0].at), (&token, NOW, LATER));
    assert!(store.remove_secret(&token).await.unwrap());
    assert_eq!(store.secret(&token).await.unwrap(), None);
    assert_eq!(store.secrets(&TenantId::main()).await.unwrap(), []);
    assert!(!store.remove_secret(&token).await.unwrap());
}

async fn keeps_secrets_of_tenants_and_agents_apart(store: impl Secrets) {
    let places = [
        secret("main", None, "TOKEN"),
        secret("main", Some("a"), "TOKEN"),
        secret("main", Some("b"), "TOKEN"),
        secret("other", None, "TOKEN"),
        secret("other", Some("a"), "TOKEN"),
    ];
    for (n, place) in places.iter().enumerate() {
        assert_eq!(store.secret(place).await.unwrap(), None, "what is written elsewhere is not here");
        store.put_secret(place, &sealed(1, &[n as u8]), NOW).await.unwrap();
    }
    // Another tenant writes and removes under the same name: nothing of the first changes.
    store.put_secret(&places[3], &sealed(1, b"changed"), LATER).await.unwrap();
    assert!(store.remove_secret(&places[4]).await.unwrap());
    for (n, place) in places[..3].iter().enumerate() {
        assert_eq!(store.secret(place).await.unwrap(), Some(sealed(1, &[n as u8])), "{place:?}");
    }
    let listed = store.secrets(&tenant("main")).await.unwrap();
    assert!(listed.iter().all(|card| card.place.tenant == tenant("main") && card.at == NOW), "{listed:?}");
    assert_eq!((listed.len(), store.secrets(&tenant("other")).await.unwrap().len()), (3, 1));
    assert_eq!(store.secrets(&tenant("third")).await.unwrap(), []);
    assert!(!store.remove_secret(&secret("third", None, "TOKEN")).await.unwrap());
}

async fn lists_secrets_sorted(store: impl Secrets) {
    let sorted = [
        secret("main", None, "A"),
        secret("main", None, "a"),
        secret("main", None, "a-b"),
        secret("main", None, "ab"),
        secret("main", Some("X"), "b"),
        secret("main", Some("x"), "a"),
    ];
    for place in sorted.iter().rev() {
        store.put_secret(place, &sealed(1, b"x"), NOW).await.unwrap();
    }
    let listed = store.secrets(&tenant("main")).await.unwrap();
    assert_eq!(listed.into_iter().map(|card| card.place).collect::<Vec<_>>(), sorted);
}

async fn tells_of_secrets(store: impl Secrets) {
    let mut changes = store.changes(Topic::Secrets);
    let token = secret("main", None, "TOKEN");
    store.put_secret(&token, &sealed(1, b"x"), NOW).await.unwrap();
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    store.remove_secret(&token).await.unwrap();
    assert!(changes.has_changed().unwrap());
}

pub(super) fn program(of: &str, agent: Option<&str>, name: &str, env: Sealed) -> Program {
    let place = ProgramPlace {
        tenant: tenant(of),
        agent: agent.map(agent_id),
        name: ProgramName::new(name).unwrap(),
    };
    let settings = ProgramSettings::new(format!("/usr/bin/{name}"));
    let card = ProgramCard { place, settings, variables: vec!["GH_TOKEN".to_owned()], at: NOW };
    Program { card, env }
}

async fn keeps_a_program(store: impl Programs) {
    let mut gh = program("main", None, "gh", sealed(1, b"x"));
    let place = gh.card.place.clone();
    assert_eq!(store.program(&place).await.unwrap(), None);
    assert!(!store.remove_program(&place).await.unwrap());
    store.put_program(&gh).await.unwrap();
    let stored = store.program(&place).await.unwrap();
    assert_eq!(stored.as_ref(), Some(&gh));
    assert_eq!(
        stored.map(|program| program.card.settings.timeout_secs),
        Some(30),
        "as nothing else was said"
    );

    gh.env = sealed(2, b"other");
    gh.card.variables = vec!["A\0B".to_owned(), "É".to_owned()];
    gh.card.at = LATER;
    gh.card.settings = ProgramSettings {
        binary: "/opt/\u{1f980}/\0gh".to_owned(),
        digest: Some(Digest::of_bytes(b"gh")),
        helpers: vec!["git".to_owned(), "../lib/\u{1f980}".to_owned()],
        deny_args: vec![r"auth\s+".to_owned(), "ssh-key".to_owned()],
        deny_verbose: vec!["--verbose".to_owned(), "-v".to_owned()],
        timeout_secs: u32::MAX,
        tips: "GitHub CLI: 'gh api', \"gh issue\"\n\0".to_owned(),
        enabled: false,
    };
    store.put_program(&gh).await.unwrap();
    assert_eq!(store.program(&place).await.unwrap().as_ref(), Some(&gh));
    assert_eq!(store.programs(&tenant("main")).await.unwrap(), [gh.card]);
    assert!(store.remove_program(&place).await.unwrap());
    assert_eq!(store.program(&place).await.unwrap(), None);
    assert!(!store.remove_program(&place).await.unwrap());
}

async fn enables_a_program(store: impl Programs) {
    let mut gh = program("main", None, "gh", sealed(1, b"x"));
    store.put_program(&gh).await.unwrap();
    for enabled in [false, true, true] {
        assert!(store.enable_program(&gh.card.place, enabled, LATER).await.unwrap());
        (gh.card.settings.enabled, gh.card.at) = (enabled, LATER);
        assert_eq!(store.program(&gh.card.place).await.unwrap().as_ref(), Some(&gh));
    }
    let missing = program("main", None, "aws", sealed(1, b"x")).card.place;
    assert!(!store.enable_program(&missing, true, LATER).await.unwrap());
    assert_eq!(store.programs(&tenant("main")).await.unwrap().len(), 1);
}

async fn keeps_programs_of_tenants_and_agents_apart(store: impl Programs) {
    let all = [
        program("main", None, "gh", sealed(1, b"0")),
        program("main", Some("a"), "gh", sealed(1, b"1")),
        program("main", Some("b"), "gh", sealed(1, b"2")),
        program("other", None, "gh", sealed(1, b"3")),
        program("other", Some("a"), "gh", sealed(1, b"4")),
    ];
    for program in &all {
        assert_eq!(store.program(&program.card.place).await.unwrap(), None);
        store.put_program(program).await.unwrap();
    }
    // Another tenant writes, disables and removes under the same name: nothing of the first changes.
    store.put_program(&program("other", None, "gh", sealed(9, b"changed"))).await.unwrap();
    assert!(store.enable_program(&all[3].card.place, false, LATER).await.unwrap());
    assert!(store.remove_program(&all[4].card.place).await.unwrap());
    for program in &all[..3] {
        assert_eq!(store.program(&program.card.place).await.unwrap().as_ref(), Some(program));
    }
    let listed = store.programs(&tenant("main")).await.unwrap();
    assert_eq!(listed, all[..3].iter().map(|program| program.card.clone()).collect::<Vec<_>>());
    assert_eq!(store.programs(&tenant("other")).await.unwrap().len(), 1);
    let third = program("third", None, "gh", sealed(1, b"x")).card.place;
    assert!(!store.remove_program(&third).await.unwrap());
    assert!(!store.enable_program(&third, false, LATER).await.unwrap());
}

async fn lists_programs_sorted(store: impl Programs) {
    let sorted = [
        program("main", None, "Gh", sealed(1, b"x")),
        program("main", None, "aws", sealed(1, b"x")),
        program("main", None, "g-h", sealed(1, b"x")),
        program("main", None, "gh", sealed(1, b"x")),
        program("main", Some("X"), "gh", sealed(1, b"x")),
        program("main", Some("x"), "aws", sealed(1, b"x")),
    ];
    for program in sorted.iter().rev() {
        store.put_program(program).await.unwrap();
    }
    let listed = store.programs(&tenant("main")).await.unwrap();
    assert_eq!(listed, sorted.map(|program| program.card));
}

async fn tells_of_programs(store: impl Programs) {
    let mut changes = store.changes(Topic::Secrets);
    let gh = program("main", None, "gh", sealed(1, b"x"));
    store.put_program(&gh).await.unwrap();
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    store.enable_program(&gh.card.place, false, NOW).await.unwrap();
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    store.remove_program(&gh.card.place).await.unwrap();
    assert!(changes.has_changed().unwrap());
}
