//! The suite of [`WorkspaceFiles`]: whole files in a tree, compared and counted before they are changed, however
//! many write at once.

use std::sync::Arc;

use claw_core::TenantId;
use claw_core::port::{Expect, Quota, Stat, UnixMillis, Version};
use claw_core::store::{
    DEEPEST_PATH, FileChange, FileError, LARGEST_FILE, LONGEST_PATH, StoreError, WorkspaceFiles,
};

use crate::fixture::{NOW, digest, tenant};

/// The number of concurrent writers.
const RACERS: usize = 16;

/// Runs the suite of a file store; `make` creates an empty one.
pub async fn workspace_files<S: WorkspaceFiles + 'static>(make: impl AsyncFn() -> S) {
    gives_back_what_was_put(make().await).await;
    makes_the_directories_that_lead_there(make().await).await;
    compares_what_is_there(make().await).await;
    removes_files_alone(make().await).await;
    lists_what_is_below(make().await).await;
    keeps_long_paths(make().await).await;
    refuses_what_cannot_be_kept(make().await).await;
    keeps_to_the_room_there_is(make().await).await;
    keeps_tenants_apart(make().await).await;
    lets_one_of_many_write(Arc::new(make().await)).await;
    lets_no_more_in_than_there_is_room_for(Arc::new(make().await)).await;
    never_puts_a_file_above_another(Arc::new(make().await)).await;
}

fn main() -> TenantId {
    TenantId::main()
}

fn change<'a>(tenant: &'a TenantId, path: &'a str) -> FileChange<'a> {
    FileChange { tenant, path, expect: Expect::Anything, room: None, at: NOW }
}

async fn put(store: &impl WorkspaceFiles, path: &str, bytes: impl AsRef<[u8]>) -> Stat {
    store.put_file(&change(&main(), path), bytes.as_ref()).await.unwrap()
}

async fn bytes(store: &impl WorkspaceFiles, path: &str) -> Option<Vec<u8>> {
    let (stat, bytes) = store.file(&main(), path).await.unwrap()?;
    (!stat.directory).then_some(bytes)
}

async fn paths(store: &impl WorkspaceFiles, directory: &str) -> Vec<String> {
    let below = store.files_below(&main(), directory, usize::MAX).await.unwrap();
    below.into_iter().map(|(path, _)| path).collect()
}

async fn is_directory(store: &impl WorkspaceFiles, path: &str) -> bool {
    store.file_stat(&main(), path).await.unwrap().is_some_and(|stat| stat.directory)
}

/// Names an outcome, for comparison.
fn word<T>(outcome: Result<T, FileError>) -> &'static str {
    match outcome {
        Ok(_) => "done",
        Err(FileError::Missing) => "missing",
        Err(FileError::IsDirectory) => "is a directory",
        Err(FileError::NotDirectory) => "not a directory",
        Err(FileError::Exists) => "exists",
        Err(FileError::Changed) => "changed",
        Err(FileError::Quota { .. }) => "quota",
        Err(FileError::Store(StoreError::Refused { .. })) => "refused",
        Err(FileError::Store(error)) => panic!("{error}"),
    }
}

async fn gives_back_what_was_put(store: impl WorkspaceFiles) {
    let every_byte: Vec<u8> = (0..=255).cycle().take(3_000_000).collect();
    for (path, content) in [("/w/a", &b"one\n"[..]), ("/w/empty", b""), ("/w/ä b/%_\n", &every_byte)] {
        assert_eq!(store.file(&main(), path).await.unwrap(), None);
        let stat = put(&store, path, content).await;
        assert_eq!((stat.directory, stat.size, stat.modified), (false, content.len() as u64, NOW));
        assert_eq!(store.file_stat(&main(), path).await.unwrap(), Some(stat.clone()));
        let (read, found) = store.file(&main(), path).await.unwrap().unwrap();
        assert_eq!(read, stat);
        assert!(found == content, "{path} has other bytes than were put");
    }
    let [first, second] = ["one", "two"].map(|text| (text, digest(text).to_string()));
    for (text, version) in [&first, &second, &first] {
        assert_eq!(put(&store, "/w/a", text).await.version.0, *version, "its version is its content's");
    }
    let (main, at) = (main(), UnixMillis(i64::MAX));
    let later = FileChange { at, ..change(&main, "/w/a") };
    assert_eq!(store.put_file(&later, b"one").await.unwrap().modified, at);
    let asked = ["/w/a", "/w", "/w/empty", "/w/no"].map(str::to_owned);
    let mut found = store.file_contents(&main, &asked).await.unwrap();
    found.sort();
    assert_eq!(found, [("/w/a".to_owned(), b"one".to_vec()), ("/w/empty".to_owned(), Vec::new())]);
    assert_eq!(store.file_contents(&main, &[]).await.unwrap(), []);
}

async fn makes_the_directories_that_lead_there(store: impl WorkspaceFiles) {
    put(&store, "/a/b/c", "file").await;
    for path in ["/", "/a", "/a/b"] {
        let (stat, bytes) = store.file(&main(), path).await.unwrap().unwrap();
        assert!(stat.directory && stat.size == 0 && bytes.is_empty(), "{path}");
    }
    let make = async |path: &str| word(store.put_directory(&change(&main(), path)).await);
    assert_eq!(make("/a/b/deep/er").await, "done");
    assert_eq!(make("/a/b/deep/er").await, "done");
    assert_eq!(make("/").await, "done");
    assert_eq!(make("/a/b/c").await, "not a directory");
    assert_eq!(make("/a/b/c/below").await, "not a directory");
    let write = async |path: &str| word(store.put_file(&change(&main(), path), b"x").await);
    assert_eq!(write("/a/b/c/below/deep").await, "not a directory");
    for directory in ["/", "/a", "/a/b/deep"] {
        assert_eq!(write(directory).await, "is a directory");
        assert!(is_directory(&store, directory).await);
    }
    assert_eq!(bytes(&store, "/a/b/c").await.unwrap(), b"file");
    assert_eq!(paths(&store, "/").await, ["/a", "/a/b", "/a/b/c", "/a/b/deep", "/a/b/deep/er"]);
}

async fn compares_what_is_there(store: impl WorkspaceFiles) {
    let (first, other) = (put(&store, "/a", "first").await.version, Version("x".into()));
    put(&store, "/dir/x", "x").await;
    let write = async |path: &str, expect: Expect<'_>, text: &str| {
        word(store.put_file(&FileChange { expect, ..change(&main(), path) }, text.as_bytes()).await)
    };
    assert_eq!(write("/a", Expect::Absent, "no").await, "exists");
    assert_eq!(write("/a", Expect::Version(&other), "no").await, "changed");
    assert_eq!(write("/a", Expect::Version(&first), "second").await, "done");
    assert_eq!(write("/a", Expect::Version(&first), "no").await, "changed");
    assert_eq!(write("/dir", Expect::Absent, "no").await, "exists");
    assert_eq!(write("/not/there", Expect::Version(&first), "no").await, "changed");
    assert_eq!(store.file_stat(&main(), "/not").await.unwrap(), None, "nothing was made for it");
    assert_eq!(write("/not/there", Expect::Absent, "new").await, "done");
    assert_eq!(bytes(&store, "/a").await.unwrap(), b"second");
}

async fn removes_files_alone(store: impl WorkspaceFiles) {
    let version = put(&store, "/dir/a", "a").await.version;
    let remove = async |path: &str, expect: Expect<'_>| {
        word(store.remove_file(&FileChange { expect, ..change(&main(), path) }).await)
    };
    assert_eq!(remove("/dir/no", Expect::Anything).await, "missing");
    assert_eq!(remove("/dir", Expect::Anything).await, "is a directory");
    assert_eq!(remove("/", Expect::Anything).await, "is a directory");
    assert_eq!(remove("/dir/a", Expect::Absent).await, "exists");
    assert_eq!(remove("/dir/a", Expect::Version(&Version("x".into()))).await, "changed");
    assert_eq!(bytes(&store, "/dir/a").await.unwrap(), b"a");
    assert_eq!(remove("/dir/a", Expect::Version(&version)).await, "done");
    assert_eq!(remove("/dir/a", Expect::Version(&version)).await, "missing");
    assert_eq!(paths(&store, "/").await, ["/dir"], "the directory stays");
}

async fn lists_what_is_below(store: impl WorkspaceFiles) {
    let files = ["/w/b", "/w/B", "/w/a/x", "/w/a.x", "/w/é", "/w-evil/x", "/w0/x", "/W/x", "/w_/x", "/%/x"];
    for path in files {
        put(&store, path, "12").await;
    }
    assert_eq!(paths(&store, "/w").await, ["/w/B", "/w/a", "/w/a.x", "/w/a/x", "/w/b", "/w/é"], "by bytes");
    assert_eq!(paths(&store, "/w/a").await, ["/w/a/x"]);
    assert_eq!(paths(&store, "/%").await, ["/%/x"], "no character stands for others");
    assert_eq!(paths(&store, "/_").await, [""; 0]);
    assert_eq!(paths(&store, "/w/b").await, [""; 0], "nothing is below a file");
    assert_eq!(
        paths(&store, "/").await.len(),
        files.len() + "/w /w/a /w-evil /w0 /W /w_ /%".split(' ').count()
    );
    let two = store.files_below(&main(), "/w", 2).await.unwrap();
    assert_eq!(two.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), ["/w/B", "/w/a"]);
    assert_eq!((two[0].1.size, two[0].1.directory, two[1].1.directory), (2, false, true));
}

/// Uses paths longer than an index entry, of letters that do not compress well.
async fn keeps_long_paths(store: impl WorkspaceFiles) {
    let mut state = 7_u64;
    let mut name = || -> String {
        let mut letter = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'a' + u8::try_from((state >> 33) % 26).unwrap())
        };
        (0..250).map(|_| letter()).collect()
    };
    let names: Vec<String> = (0..60).map(|_| name()).collect();
    let long = format!("/{}", names.join("/"));
    let twin = format!("{long}-twin");
    put(&store, &long, "one").await;
    put(&store, &twin, "other").await;
    assert_eq!(bytes(&store, &long).await.unwrap(), b"one");
    assert_eq!(bytes(&store, &twin).await.unwrap(), b"other");
    assert_eq!(paths(&store, "/").await.len(), 61);
    let above = format!("/{}", names[..40].join("/"));
    assert_eq!(paths(&store, &above).await.len(), 21);
    let room = Some((above.as_str(), Quota { bytes: 9, files: 21 }));
    let word = async |path: &str, text: &str| {
        word(store.put_file(&FileChange { room, ..change(&main(), path) }, text.as_bytes()).await)
    };
    assert_eq!(word(&long, "12345").await, "quota", "what is far below counts");
    assert_eq!(word(&long, "1234").await, "done");
    assert_eq!(word(&format!("{above}/new"), "").await, "quota");
}

async fn refuses_what_cannot_be_kept(store: impl WorkspaceFiles) {
    let (long, deep) = (format!("/{}", "x".repeat(LONGEST_PATH)), "/d".repeat(DEEPEST_PATH + 1));
    for path in ["", "a", "/a/", "//a", "/a/../b", "/./a", "/a\0b", &long, &deep] {
        let refused = |outcome: Result<(), StoreError>| matches!(outcome, Err(StoreError::Refused { .. }));
        assert!(refused(store.file_stat(&main(), path).await.map(drop)), "{path:?}");
        assert!(refused(store.file(&main(), path).await.map(drop)), "{path:?}");
        assert!(refused(store.files_below(&main(), path, 1).await.map(drop)), "{path:?}");
        assert!(refused(store.file_contents(&main(), &[path.to_owned()]).await.map(drop)), "{path:?}");
        assert_eq!(word(store.put_file(&change(&main(), path), b"x").await), "refused");
        assert_eq!(word(store.put_directory(&change(&main(), path)).await), "refused");
        assert_eq!(word(store.remove_file(&change(&main(), path)).await), "refused");
    }
    let large = vec![0; LARGEST_FILE + 1];
    assert_eq!(word(store.put_file(&change(&main(), "/large"), &large).await), "refused");
    assert_eq!(store.file_stat(&main(), "/large").await.unwrap(), None);
    assert_eq!(word(store.put_directory(&change(&main(), &deep[2..])).await), "done");
}

async fn keeps_to_the_room_there_is(store: impl WorkspaceFiles) {
    put(&store, "/w/a", "12345").await;
    put(&store, "/w-evil/a", "1234567890").await;
    let room = |bytes, files| Some(("/w", Quota { bytes, files }));
    let write = async |path: &str, text: &str, room| {
        store.put_file(&FileChange { room, ..change(&main(), path) }, text.as_bytes()).await
    };
    match write("/w/b", "123456", room(10, 3)).await {
        Err(FileError::Quota { bytes, files }) => assert_eq!((bytes, files), (11, 2)),
        other => panic!("{other:?}"),
    }
    assert_eq!(store.file_stat(&main(), "/w/b").await.unwrap(), None);
    assert_eq!(word(write("/w/b", "12345", room(10, 3)).await), "done");
    assert_eq!(
        word(write("/w/b", "123456", room(10, 3)).await),
        "quota",
        "what it takes the place of is gone"
    );
    assert_eq!(word(write("/w/d/c", "", room(10, 3)).await), "quota", "a directory is one more");
    assert_eq!(store.file_stat(&main(), "/w/d").await.unwrap(), None, "nothing was made for it");
    assert_eq!(word(write("/elsewhere", "123456789012", room(10, 3)).await), "done", "it is not below");
    let make = async |path: &str, room| {
        word(store.put_directory(&FileChange { room, ..change(&main(), path) }).await)
    };
    assert_eq!(make("/w/d/e", room(10, 3)).await, "quota");
    assert_eq!(make("/w/d", room(10, 3)).await, "done");
    assert_eq!(make("/w/d", room(1, 1)).await, "done", "what is there needs no room");
    assert_eq!(word(write("/w/b", "1234", room(1, 1)).await), "done", "neither does what takes away");
    assert_eq!(word(write("/w/b", "12345", room(1, 100)).await), "quota");
    store.remove_file(&change(&main(), "/w/b")).await.unwrap();
    assert_eq!(word(write("/w/c", "12345", room(10, 3)).await), "done");
}

async fn keeps_tenants_apart(store: impl WorkspaceFiles) {
    let other = tenant("other");
    let mine = put(&store, "/w/a", "mine").await;
    assert_eq!(store.file_stat(&other, "/w/a").await.unwrap(), None);
    assert_eq!(store.file(&other, "/w").await.unwrap(), None);
    assert_eq!(store.files_below(&other, "/", 10).await.unwrap(), []);
    assert_eq!(store.file_contents(&other, &["/w/a".to_owned()]).await.unwrap(), []);
    assert_eq!(word(store.remove_file(&change(&other, "/w/a")).await), "missing");
    let absent = FileChange { expect: Expect::Absent, ..change(&other, "/w/a") };
    store.put_file(&absent, b"theirs").await.unwrap();
    // A file of one tenant is a directory of the other, and each has a quota of its own.
    store.put_directory(&change(&other, "/w/b")).await.unwrap();
    let room = Some(("/w", Quota { bytes: 6, files: 2 }));
    store.put_file(&FileChange { room, ..change(&main(), "/w/b") }, b"b").await.unwrap();
    assert_eq!(bytes(&store, "/w/a").await.unwrap(), b"mine");
    store.remove_file(&change(&other, "/w/a")).await.unwrap();
    assert_eq!(store.file_stat(&main(), "/w/a").await.unwrap(), Some(mine));
}

async fn race<S: WorkspaceFiles + 'static>(
    store: &Arc<S>,
    what: impl Fn(usize) -> (String, Option<Version>, Option<Quota>),
) -> Vec<(usize, &'static str)> {
    let racers: Vec<_> = (0..RACERS)
        .map(|racer| {
            let (store, (path, version, quota)) = (Arc::clone(store), what(racer));
            tokio::spawn(async move {
                let expect = version.as_ref().map_or(Expect::Absent, Expect::Version);
                let room = quota.map(|quota| ("/w", quota));
                let main = main();
                let change = FileChange { expect, room, ..change(&main, &path) };
                (racer, word(store.put_file(&change, format!("racer {racer:02}").as_bytes()).await))
            })
        })
        .collect();
    let mut outcomes = Vec::new();
    for racer in racers {
        outcomes.push(racer.await.unwrap());
    }
    outcomes
}

async fn lets_one_of_many_write(store: Arc<impl WorkspaceFiles + 'static>) {
    for version in [None, Some(put(&*store, "/w/there", "old").await.version)] {
        let (path, lost) = match version {
            None => ("/w/deep/er/new", "exists"),
            Some(_) => ("/w/there", "changed"),
        };
        let outcomes = race(&store, |_| (path.to_owned(), version.clone(), None)).await;
        let won: Vec<_> = outcomes.iter().filter(|(_, outcome)| *outcome == "done").collect();
        assert_eq!(won.len(), 1, "{outcomes:?}");
        assert!(outcomes.iter().all(|(_, outcome)| *outcome == "done" || *outcome == lost), "{outcomes:?}");
        assert_eq!(bytes(&*store, path).await.unwrap(), format!("racer {:02}", won[0].0).into_bytes());
    }
}

async fn lets_no_more_in_than_there_is_room_for(store: Arc<impl WorkspaceFiles + 'static>) {
    // Eight bytes each, in a directory each.
    let quota = Quota { bytes: 43, files: 100 };
    let outcomes = race(&store, |racer| (format!("/w/{racer}/file"), None, Some(quota))).await;
    let count = |word| outcomes.iter().filter(|(_, outcome)| *outcome == word).count();
    assert_eq!((count("done"), count("quota")), (5, RACERS - 5), "{outcomes:?}");
    assert_eq!(paths(&*store, "/w").await.len(), 10);
}

async fn never_puts_a_file_above_another(store: Arc<impl WorkspaceFiles + 'static>) {
    for round in 0..8 {
        let path = |racer: usize| format!("/w/{round}{}", "/x".repeat(racer % 4));
        let outcomes = race(&store, |racer| (path(racer), None, None)).await;
        let won: Vec<String> =
            outcomes.iter().filter(|(_, word)| *word == "done").map(|(racer, _)| path(*racer)).collect();
        assert_eq!(won.len(), 1, "all lead through one another: {outcomes:?}");
        for directory in
            (0..won[0].matches("/x").count()).map(|depth| format!("/w/{round}{}", "/x".repeat(depth)))
        {
            assert!(is_directory(&*store, &directory).await, "{directory}");
        }
    }
}
