//! The shelf of skills over a real store and real directories.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use claw_core::port::{Owner, SkillHost as _};
use claw_core::skill::{SkillState, SkillTier};
use claw_core::store::{SkillStore as _, SkillVisibility};
use claw_core::tool::{Caller, ErrorKind};
use claw_core::{JobId, NodeId, SkillName, TenantId, UserId};
use claw_host::SystemClock;
use claw_host::skills::{SkillOptions, SkillShelf};
use claw_store::SqliteStore;
use claw_testkit::fixture::{caller, tenant};
use tempfile::TempDir;

struct Kit {
    directory: TempDir,
    store: Arc<SqliteStore>,
    shelf: SkillShelf,
    caller: Caller,
}

impl Kit {
    async fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let store = Arc::new(SqliteStore::memory(NodeId::local()).await.unwrap());
        let options = SkillOptions {
            snapshots: directory.path().join("data/skills"),
            user: Some(directory.path().join("home")),
            deployment: vec![directory.path().join("deployment")],
            tenant: TenantId::main(),
        };
        let shelf = SkillShelf::new(Arc::clone(&store) as _, Arc::new(SystemClock), options);
        let mut caller = caller();
        caller.workspace = directory.path().join("workspace");
        caller.user = Some(UserId::new("ann").unwrap());
        Self { directory, store, shelf, caller }
    }

    /// Writes a skill and returns nothing: tests name it.
    fn write(&self, place: &str, name: &str, body: &str) {
        write(&self.directory.path().join(place).join(name), name, body);
    }

    async fn body(&self, name: &str) -> Result<String, ErrorKind> {
        let name = SkillName::new(name).unwrap();
        let opened = self.shelf.open(&self.caller, None, &name).await;
        opened.map(|opened| opened.body.trim().to_owned()).map_err(|error| error.kind)
    }

    async fn accept(&self, name: &str) {
        let name = SkillName::new(name).unwrap();
        let package = self.shelf.read_workspace(&self.caller, &name).await.unwrap();
        self.shelf.accept(&self.caller.tenant, &package, "ann").await.unwrap();
    }

    fn owner(&self) -> Owner {
        Owner { tenant: self.caller.tenant.clone(), session: self.caller.session.clone() }
    }
}

fn write(directory: &Path, name: &str, body: &str) {
    fs::create_dir_all(directory).unwrap();
    let text = format!("---\nname: {name}\ndescription: A skill about {name}.\n---\n{body}\n");
    fs::write(directory.join("SKILL.md"), text).unwrap();
}

#[tokio::test]
async fn each_tier_stands_before_the_next() {
    let kit = Kit::new().await;
    let name = "review-change";
    assert!(kit.body(name).await.unwrap().contains("Reviewing a change"), "built in");
    let mut new = claw_testkit::conformance::skill_version(
        name,
        "---\nname: review-change\ndescription: d\n---\nstore\n",
    );
    new.files.truncate(1);
    new.visibility = SkillVisibility::Tenant;
    new.digest = {
        let package = claw_core::skill::SkillPackage {
            manifest: new.manifest.clone(),
            body: String::new(),
            files: new.files.clone(),
        };
        package.digest()
    };
    kit.store.publish_skill(new).await.unwrap();
    assert_eq!(kit.body(name).await.unwrap(), "store");
    for (place, expected) in [
        ("deployment", "deployment"),
        ("home", "home"),
        ("workspace/.claude/skills", "claude"),
        ("workspace/.agents/skills", "agents"),
        ("workspace/skills", "workspace"),
    ] {
        kit.write(place, name, expected);
        if place.starts_with("workspace") {
            assert_ne!(kit.body(name).await.unwrap(), expected, "nobody has accepted it");
            kit.accept(name).await;
        }
        assert_eq!(kit.body(name).await.unwrap(), expected);
    }
    let cards = kit.shelf.inventory(&kit.caller).await.unwrap();
    let tiers: Vec<_> = cards.iter().filter(|card| card.name == name).map(|card| card.tier).collect();
    assert_eq!(
        tiers,
        [
            SkillTier::Workspace,
            SkillTier::Workspace,
            SkillTier::Workspace,
            SkillTier::User,
            SkillTier::Deployment,
            SkillTier::Store,
            SkillTier::BuiltIn
        ]
    );
    let shadowed = cards.iter().filter(|card| matches!(card.state, SkillState::Shadowed { .. }));
    assert_eq!(shadowed.count(), 6);
}

#[tokio::test]
async fn an_unaccepted_or_invalid_skill_hides_no_accepted_one_of_its_tier() {
    let kit = Kit::new().await;
    for (hidden, place) in
        [("from-agents", "workspace/.agents/skills"), ("from-claude", "workspace/.claude/skills")]
    {
        kit.write(place, hidden, "accepted");
        kit.accept(hidden).await;
        kit.write("workspace/skills", hidden, "planted");
        assert_eq!(kit.body(hidden).await.unwrap(), "accepted");
        let planted = kit.directory.path().join("workspace/skills").join(hidden).join("SKILL.md");
        fs::write(planted, "---\nname: another\n---\n").unwrap();
        assert_eq!(kit.body(hidden).await.unwrap(), "accepted");
        let usable = kit.shelf.skills(&kit.caller).await.unwrap();
        let cards: Vec<_> = usable.iter().filter(|card| card.name == hidden).collect();
        assert!(cards.len() == 1 && cards[0].source.contains(place), "{cards:?}");
        // Both are listed for people, with the reason why the first cannot be used.
        let listed = kit.shelf.inventory(&kit.caller).await.unwrap();
        let states: Vec<_> =
            listed.into_iter().filter(|card| card.name == hidden).map(|card| card.state).collect();
        assert!(matches!(states[..], [SkillState::Invalid { .. }, SkillState::Usable]), "{states:?}");
        // Its change has to be accepted, past the invalid one.
        kit.write(place, hidden, "changed");
        assert_eq!(kit.body(hidden).await, Err(ErrorKind::Forbidden));
        kit.accept(hidden).await;
        assert_eq!(kit.body(hidden).await.unwrap(), "changed");
    }
}

#[tokio::test]
async fn another_tenant_sees_neither_the_users_skills_nor_what_was_accepted() {
    let mut kit = Kit::new().await;
    kit.write("home", "mine", "mine");
    kit.write("workspace/skills", "theirs", "theirs");
    kit.accept("theirs").await;
    assert_eq!(kit.body("mine").await.unwrap(), "mine");
    assert_eq!(kit.body("theirs").await.unwrap(), "theirs");
    kit.caller.tenant = tenant("other");
    assert_eq!(kit.body("mine").await, Err(ErrorKind::NotFound));
    assert_eq!(kit.body("theirs").await, Err(ErrorKind::Forbidden));
}

#[tokio::test]
async fn a_change_after_acceptance_is_noticed_however_it_is_made() {
    let kit = Kit::new().await;
    kit.write("workspace/skills", "careful", "as accepted");
    kit.accept("careful").await;
    assert_eq!(kit.body("careful").await.unwrap(), "as accepted");
    // The same length, and the same time of change.
    let file = kit.directory.path().join("workspace/skills/careful/SKILL.md");
    let before = fs::metadata(&file).unwrap().modified().unwrap();
    let text = fs::read_to_string(&file).unwrap().replace("as accepted", "evil things");
    fs::write(&file, text).unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_modified(before).unwrap();
    assert_eq!(kit.body("careful").await, Err(ErrorKind::Forbidden));
    assert!(!kit.shelf.skills(&kit.caller).await.unwrap().iter().any(|card| card.name == "careful"));
    assert!(kit.shelf.search(&kit.caller, "careful", 5).await.unwrap().is_empty());
}

#[tokio::test]
async fn the_skill_that_was_taken_up_last_narrows_its_run_alone() {
    let kit = Kit::new().await;
    let directory = kit.directory.path().join("deployment/narrow");
    fs::create_dir_all(&directory).unwrap();
    let text = "---\nname: narrow\ndescription: d\nallowed-tools: Read\n---\nx\n";
    fs::write(directory.join("SKILL.md"), text).unwrap();
    kit.write("deployment", "wide", "x");
    let (narrow, wide) = (SkillName::new("narrow").unwrap(), SkillName::new("wide").unwrap());
    let run = Some(JobId::new());
    kit.shelf.open(&kit.caller, run, &narrow).await.unwrap();
    let active = kit.shelf.active(&kit.owner(), run).await.unwrap();
    assert_eq!(active.narrowing.as_ref().unwrap().tools, ["Read"]);
    assert_eq!(active.directories.len(), 1);
    // Another run of the session reads its files and is not narrowed.
    let other = kit.shelf.active(&kit.owner(), Some(JobId::new())).await.unwrap();
    assert_eq!((other.directories.len(), &other.narrowing), (1, &None));
    kit.shelf.open(&kit.caller, run, &wide).await.unwrap();
    assert_eq!(kit.shelf.active(&kit.owner(), run).await.unwrap().narrowing, None);
    kit.shelf.open(&kit.caller, run, &narrow).await.unwrap();
    assert_eq!(kit.shelf.end(&kit.caller, run).await.unwrap(), Some(narrow));
    assert_eq!(kit.shelf.active(&kit.owner(), run).await.unwrap().narrowing, None);
}

#[tokio::test]
async fn only_its_owner_publishes_another_version() {
    let mut kit = Kit::new().await;
    kit.write("workspace/skills", "shared", "one");
    let publish = async |kit: &Kit| {
        let package = kit.shelf.pack(&kit.caller, "skills/shared").await.unwrap();
        kit.shelf.publish(&kit.caller, package, SkillVisibility::Private, Vec::new()).await
    };
    assert_eq!(publish(&kit).await.unwrap().version, 1);
    kit.write("workspace/skills", "shared", "two");
    for stranger in [Some("bob"), None] {
        kit.caller.user = stranger.map(|user| UserId::new(user).unwrap());
        assert_eq!(publish(&kit).await.unwrap_err().kind, ErrorKind::Forbidden);
    }
    kit.caller.user = Some(UserId::new("ann").unwrap());
    assert_eq!(publish(&kit).await.unwrap().version, 2);
    for path in ["../x", "/etc", "", ".."] {
        assert!(kit.shelf.pack(&kit.caller, path).await.is_err(), "{path}");
    }
}
