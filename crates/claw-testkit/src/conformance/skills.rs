//! The suite of a [`SkillStore`]: versions, grants, acceptances, and uses by sessions.

use std::collections::BTreeMap;

use claw_core::port::{Owner, UnixMillis};
use claw_core::skill::{SkillFile, SkillManifest, SkillTier};
use claw_core::store::{
    AcceptedSkill, NewSkillVersion, SkillChange, SkillGrant, SkillGrantee, SkillStore, SkillUse,
    SkillVisibility, StoreError, Topic,
};
use claw_core::{AgentId, JobId, SkillName, TenantId, UserId};

use crate::fixture::{NOW, digest, owner, session, tenant};

/// Runs the suite of skills; `make` creates an empty store.
pub async fn skills<S: SkillStore + 'static>(make: impl AsyncFn() -> S) {
    stores_versions_and_files(make().await).await;
    pins_and_changes(make().await).await;
    grants_and_revokes(make().await).await;
    removes_everything_of_a_skill(make().await).await;
    remembers_what_was_accepted(make().await).await;
    remembers_what_sessions_use(make().await).await;
    tells_of_changes(make().await).await;
}

/// A name.
fn name(name: &str) -> SkillName {
    SkillName::new(name).expect("a skill name")
}

/// A version with this body, for the tenant `main`.
pub fn version(of: &str, body: &str) -> NewSkillVersion {
    let manifest = SkillManifest {
        name: name(of),
        description: format!("Does {of}, naïvely \u{1f980}."),
        license: Some("MIT".to_owned()),
        compatibility: None,
        metadata: BTreeMap::from([("version".to_owned(), "1".to_owned())]),
        allowed_tools: Some(vec!["Read".to_owned()]),
    };
    let file = |path: &str, executable, bytes: &[u8]| SkillFile {
        path: path.to_owned(),
        executable,
        bytes: bytes.to_vec(),
    };
    NewSkillVersion {
        tenant: TenantId::main(),
        manifest,
        digest: digest(body),
        files: vec![file("SKILL.md", false, body.as_bytes()), file("scripts/x.sh", true, b"\0\xff")],
        visibility: SkillVisibility::Private,
        owner: Some(UserId::new("ann").expect("a user id")),
        findings: vec!["SKILL.md:1: hides something".to_owned()],
        by: "ann".to_owned(),
        at: NOW,
    }
}

async fn stores_versions_and_files(store: impl SkillStore) {
    let main = TenantId::main();
    assert!(store.stored_skills(&main).await.unwrap().is_empty());
    let first = store.publish_skill(version("lint", "one")).await.unwrap();
    assert_eq!((first.newest, first.current.version, first.pinned), (1, 1, None));
    assert_eq!(first.current.manifest, version("lint", "one").manifest);
    assert_eq!((first.current.bytes, first.current.by.as_str()), (5, "ann"));
    assert_eq!(first.current.findings, ["SKILL.md:1: hides something"]);
    // The same again is the same version.
    let again = store.publish_skill(version("lint", "one")).await.unwrap();
    assert_eq!(again, first);
    // Owner and visibility stay as they were.
    let taken =
        NewSkillVersion { owner: None, visibility: SkillVisibility::Tenant, ..version("lint", "two") };
    let second = store.publish_skill(taken).await.unwrap();
    assert_eq!((second.newest, second.current.version), (2, 2));
    assert_eq!(
        (second.owner.as_ref().unwrap().as_str(), second.visibility),
        ("ann", SkillVisibility::Private)
    );
    let versions = store.skill_versions(&main, &name("lint")).await.unwrap();
    assert_eq!(versions.iter().map(|version| version.version).collect::<Vec<_>>(), [2, 1]);
    let files = store.skill_files(&main, &name("lint"), 1).await.unwrap();
    assert_eq!(files, version("lint", "one").files);
    assert!(store.skill_files(&main, &name("lint"), 3).await.unwrap().is_empty());
    // Names are ordered as bytes, and tenants kept apart.
    for other in ["a-b", "a", "a1", "zz"] {
        store.publish_skill(version(other, "x")).await.unwrap();
    }
    let foreign = NewSkillVersion { tenant: tenant("other"), ..version("lint", "theirs") };
    assert_eq!(store.publish_skill(foreign).await.unwrap().newest, 1);
    let all = store.stored_skills(&main).await.unwrap();
    assert_eq!(
        all.iter().map(|skill| skill.name.as_str()).collect::<Vec<_>>(),
        ["a", "a-b", "a1", "lint", "zz"]
    );
    assert_eq!(store.stored_skill(&main, &name("lint")).await.unwrap().as_ref(), Some(&second));
    assert_eq!(store.stored_skill(&main, &name("nothing")).await.unwrap(), None);
}

async fn pins_and_changes(store: impl SkillStore) {
    let (main, lint) = (TenantId::main(), name("lint"));
    for body in ["one", "two", "three"] {
        store.publish_skill(version("lint", body)).await.unwrap();
    }
    let pin = |version| SkillChange { pinned: Some(version), ..SkillChange::default() };
    let pinned = store.change_skill(&main, &lint, pin(Some(2))).await.unwrap().unwrap();
    assert_eq!((pinned.pinned, pinned.current.version, pinned.newest), (Some(2), 2, 3));
    assert_eq!(pinned.current.digest, digest("two"));
    for wrong in [0, 4, u64::MAX] {
        let refused = store.change_skill(&main, &lint, pin(Some(wrong))).await;
        assert!(matches!(refused, Err(StoreError::Refused { .. })), "{wrong}");
    }
    // A new version is there, and nobody gets it.
    let fourth = store.publish_skill(version("lint", "four")).await.unwrap();
    assert_eq!((fourth.newest, fourth.current.version), (4, 2));
    assert_eq!(store.change_skill(&main, &lint, pin(None)).await.unwrap().unwrap().current.version, 4);
    let open = SkillChange { visibility: Some(SkillVisibility::Tenant), ..SkillChange::default() };
    let open = store.change_skill(&main, &lint, open).await.unwrap().unwrap();
    assert_eq!(open.visibility, SkillVisibility::Tenant);
    assert_eq!(store.change_skill(&tenant("other"), &lint, pin(None)).await.unwrap(), None);
}

async fn grants_and_revokes(store: impl SkillStore) {
    let (main, lint) = (TenantId::main(), name("lint"));
    let agent = SkillGrantee::Agent(AgentId::new("coder").unwrap());
    let user = SkillGrantee::User(UserId::new("bob").unwrap());
    let grant = |grantee: &SkillGrantee, version| SkillGrant { grantee: grantee.clone(), version };
    assert_eq!(store.grant_skill(&main, &lint, grant(&agent, None)).await.unwrap(), None);
    store.publish_skill(version("lint", "one")).await.unwrap();
    store.grant_skill(&main, &lint, grant(&user, None)).await.unwrap().unwrap();
    store.grant_skill(&main, &lint, grant(&agent, Some(1))).await.unwrap().unwrap();
    let granted = store.grant_skill(&main, &lint, grant(&user, Some(1))).await.unwrap().unwrap();
    assert_eq!(granted.grants, [grant(&agent, Some(1)), grant(&user, Some(1))]);
    assert_eq!(store.stored_skills(&main).await.unwrap()[0].grants, granted.grants);
    let refused = store.grant_skill(&main, &lint, grant(&user, Some(2))).await;
    assert!(matches!(refused, Err(StoreError::Refused { .. })));
    assert!(store.revoke_skill(&main, &lint, &user).await.unwrap());
    assert!(!store.revoke_skill(&main, &lint, &user).await.unwrap());
    assert!(!store.revoke_skill(&tenant("other"), &lint, &agent).await.unwrap());
    let left = store.stored_skill(&main, &lint).await.unwrap().unwrap().grants;
    assert_eq!(left, [grant(&agent, Some(1))]);
}

async fn removes_everything_of_a_skill(store: impl SkillStore) {
    let (main, lint) = (TenantId::main(), name("lint"));
    assert!(!store.remove_skill(&main, &lint).await.unwrap());
    store.publish_skill(version("lint", "one")).await.unwrap();
    let grantee = SkillGrantee::User(UserId::new("bob").unwrap());
    store.grant_skill(&main, &lint, SkillGrant { grantee, version: None }).await.unwrap();
    store.use_skill(&owner(), used("lint", SkillTier::Store, NOW)).await.unwrap();
    store.use_skill(&owner(), used("other", SkillTier::Store, NOW)).await.unwrap();
    assert!(store.remove_skill(&main, &lint).await.unwrap());
    assert_eq!(store.stored_skill(&main, &lint).await.unwrap(), None);
    assert!(store.skill_files(&main, &lint, 1).await.unwrap().is_empty());
    assert!(store.skill_versions(&main, &lint).await.unwrap().is_empty());
    let left: Vec<_> = store.skill_uses(&owner()).await.unwrap();
    assert_eq!(left.iter().map(|used| used.name.as_str()).collect::<Vec<_>>(), ["other"], "uses end with it");
    // One that comes after it has nothing of it.
    let new = store.publish_skill(version("lint", "new")).await.unwrap();
    assert_eq!((new.newest, new.grants.len()), (1, 0));
}

async fn remembers_what_was_accepted(store: impl SkillStore) {
    let main = TenantId::main();
    let accepted = |of: &str, body: &str, by: &str| AcceptedSkill {
        digest: digest(body),
        name: name(of),
        by: by.to_owned(),
        at: NOW,
    };
    assert!(store.accepted_skills(&main).await.unwrap().is_empty());
    store.accept_skill(&main, accepted("lint", "two", "ann")).await.unwrap();
    store.accept_skill(&main, accepted("lint", "two", "eve")).await.unwrap();
    store.accept_skill(&main, accepted("build", "one", "ann")).await.unwrap();
    store.accept_skill(&tenant("other"), accepted("lint", "three", "eve")).await.unwrap();
    let all = store.accepted_skills(&main).await.unwrap();
    assert_eq!(all, [accepted("build", "one", "ann"), accepted("lint", "two", "ann")], "the first stands");
    store.use_skill(&owner(), used("lint", SkillTier::Workspace, NOW)).await.unwrap();
    store.use_skill(&owner(), used("build", SkillTier::Store, NOW)).await.unwrap();
    assert_eq!(store.forget_skill(&main, &name("lint")).await.unwrap(), 1);
    assert_eq!(store.forget_skill(&main, &name("lint")).await.unwrap(), 0);
    assert_eq!(store.forget_skill(&main, &name("build")).await.unwrap(), 1);
    let left = store.skill_uses(&owner()).await.unwrap();
    assert_eq!(
        left.iter().map(|used| used.name.as_str()).collect::<Vec<_>>(),
        ["build"],
        "a stored one stays"
    );
    assert_eq!(store.accepted_skills(&tenant("other")).await.unwrap().len(), 1);
}

fn used(of: &str, tier: SkillTier, at: UnixMillis) -> SkillUse {
    let allowed = Some(vec!["Read".to_owned()]);
    SkillUse { name: name(of), digest: digest(of), tier, run: None, allowed, at }
}

async fn remembers_what_sessions_use(store: impl SkillStore) {
    assert!(store.skill_uses(&owner()).await.unwrap().is_empty());
    let run = Some(JobId::new());
    let at = |ms: i64| UnixMillis(NOW.0 + ms);
    let in_run = SkillUse { run, ..used("b", SkillTier::BuiltIn, at(1)) };
    store.use_skill(&owner(), used("a", SkillTier::Store, at(0))).await.unwrap();
    store.use_skill(&owner(), in_run.clone()).await.unwrap();
    let all = store.skill_uses(&owner()).await.unwrap();
    assert_eq!(all, [in_run.clone(), used("a", SkillTier::Store, at(0))], "newest first");
    // Taken up again, it is the newest.
    store.use_skill(&owner(), used("a", SkillTier::Store, at(2))).await.unwrap();
    assert_eq!(store.skill_uses(&owner()).await.unwrap()[0].name.as_str(), "a");
    // Ending those of a run leaves the others.
    store.end_skills(&owner(), run).await.unwrap();
    let all = store.skill_uses(&owner()).await.unwrap();
    assert_eq!(all[1].allowed, None);
    assert!(all[0].allowed.is_some());
    for foreign in
        [Owner { tenant: tenant("other"), ..owner() }, Owner { session: session("cli:other"), ..owner() }]
    {
        assert!(store.skill_uses(&foreign).await.unwrap().is_empty());
    }
    for n in 0..=SkillUse::MOST {
        let n = i64::try_from(n).unwrap();
        store.use_skill(&owner(), used(&format!("s{n}"), SkillTier::Store, at(10 + n))).await.unwrap();
    }
    let all = store.skill_uses(&owner()).await.unwrap();
    assert_eq!((all.len(), all[0].name.as_str()), (SkillUse::MOST, "s32"));
    assert_eq!(all.last().unwrap().name.as_str(), "s1", "the oldest are forgotten");
}

async fn tells_of_changes(store: impl SkillStore) {
    let mut changes = store.changes(Topic::Skills);
    changes.mark_unchanged();
    store.publish_skill(version("lint", "one")).await.unwrap();
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    store.remove_skill(&TenantId::main(), &name("lint")).await.unwrap();
    assert!(changes.has_changed().unwrap());
}
