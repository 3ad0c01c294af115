use std::fs;
use std::os::unix::fs::PermissionsExt;

use claw_core::CallId;
use claw_core::port::{ArtifactStore, Owner};
use claw_core::tool::ErrorKind;
use claw_testkit::fixture::{owner, session, tenant};
use tempfile::TempDir;

use super::*;

const SMALL: ArtifactLimits = ArtifactLimits { count: 3, bytes: 10 };

#[track_caller]
fn check(sizes: &[usize], expected: usize) {
    assert_eq!(SMALL.fitting(sizes.iter().copied()), expected, "{sizes:?}");
}

#[test]
fn the_newest_fit_as_far_as_count_and_bytes_go() {
    check(&[], 0);
    check(&[1, 1, 1, 1], 3);
    check(&[5, 5, 1], 2);
    check(&[10], 1);
    check(&[9, 2, 0], 1);
}

async fn drops_the_oldest(store: impl ArtifactStore) {
    let mut ids = Vec::new();
    for text in ["one", "two", "three", "four"] {
        ids.push(store.put(&owner(), CallId::new(), text).await.unwrap().id);
    }
    let kept: Vec<_> = store.list(&owner()).await.unwrap().iter().map(|kept| kept.id).collect();
    assert_eq!(kept, [ids[3], ids[2]], "three more bytes would be too many");
    let gone = store.lines(&owner(), ids[0], 1, 1).await.unwrap_err();
    assert_eq!(gone.kind, ErrorKind::NotFound);
    let large = store.put(&owner(), CallId::new(), "elevenbytes").await.unwrap_err();
    assert_eq!(
        large.to_string(),
        "the result has 11 bytes and at most 10 can be kept; ask for less at a time"
    );
    assert_eq!(store.list(&owner()).await.unwrap().len(), 2, "nothing was dropped for what is refused");
}

#[tokio::test]
async fn the_oldest_make_room() {
    let directory = TempDir::new().unwrap();
    drops_the_oldest(FileArtifacts::new(directory.path(), SMALL)).await;
    drops_the_oldest(MemoryArtifacts::new(SMALL)).await;
}

#[tokio::test]
async fn the_tenant_that_keeps_most_makes_room() {
    let store = MemoryArtifacts::within(ArtifactLimits::default(), SMALL);
    let of = |name: &str, key: &str| Owner { tenant: tenant(name), session: session(key) };
    let put = async |owner: &Owner, text: &str| store.put(owner, CallId::new(), text).await;
    let kept = async |owner: &Owner| store.list(owner).await.unwrap().len();
    let (mine, greedy, other) = (of("a", "cli:me"), of("b", "cli:1"), of("b", "cli:2"));
    put(&mine, "four").await.unwrap();
    put(&greedy, "fives").await.unwrap();
    put(&other, "sixes!").await.unwrap();
    assert_eq!([kept(&mine).await, kept(&greedy).await, kept(&other).await], [1, 0, 1], "by bytes");
    let error = put(&greedy, "seven..").await.unwrap_err().to_string();
    assert_eq!(error, "there is no room to keep the result; ask for less at a time");
    assert_eq!([kept(&mine).await, kept(&other).await], [1, 1], "nothing was dropped for what is refused");
    for _ in 0..4 {
        put(&other, "").await.unwrap();
    }
    assert_eq!([kept(&mine).await, kept(&other).await], [1, 2], "by count");
}

#[tokio::test]
async fn says_how_many_lines_there_are() {
    let store = MemoryArtifacts::default();
    let id = store.put(&owner(), CallId::new(), &"x\n".repeat(120)).await.unwrap().id;
    let error = store.lines(&owner(), id, 500, 1).await.unwrap_err();
    assert_eq!(error.to_string(), format!("the kept result `{id}` has 120 lines; ask from line 1"));
}

#[tokio::test]
async fn only_its_owner_may_read_it_and_it_is_there_after_a_restart() {
    let directory = TempDir::new().unwrap();
    let open = || FileArtifacts::new(directory.path(), ArtifactLimits::default());
    let kept = open().put(&owner(), CallId::new(), "a\nb").await.unwrap();
    assert_eq!(open().list(&owner()).await.unwrap(), [kept]);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let session =
        fs::read_dir(directory.path().join("artifacts/main")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(mode(&session), 0o700);
    let file = fs::read_dir(&session).unwrap().next().unwrap().unwrap().path();
    assert_eq!(mode(&file), 0o600);
}

#[tokio::test]
async fn a_directory_that_cannot_be_written_is_named_in_the_log_alone() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("file"), "").unwrap();
    let store = FileArtifacts::new(directory.path().join("file"), ArtifactLimits::default());
    let error = store.put(&owner(), CallId::new(), "text").await.unwrap_err();
    assert_eq!(
        (error.kind, error.for_model().as_str()),
        (ErrorKind::Unavailable, "kept results cannot be reached")
    );
    assert!(error.for_log().contains(directory.path().to_str().unwrap()), "{}", error.for_log());
}
