//! The suite of an [`FsBridge`]: reads return what was written, and writes compare before they change.

mod listing;

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use claw_core::port::{Access, Confinement, Expect, FilePlace, FsBridge, Quota, Root, Scope, Version};
use claw_core::tool::{Caller, ErrorKind, Target, ToolError};

use crate::fixture::{self, caller};

/// Runs the suite; `make` creates a bridge, and returns an absolute path where nothing exists yet. The suite
/// uses that path, and paths that begin with it.
///
/// A bridge that is not [`Confinement::Enforced`] is not asked to keep to its scope, and one that cannot list
/// is not asked to walk and search.
pub async fn bridge<B: FsBridge + 'static>(make: impl AsyncFn() -> (B, PathBuf)) {
    let world = async || {
        let (files, root) = make().await;
        World::new(files, root)
    };
    reads_what_was_written(world().await).await;
    makes_directories(world().await).await;
    says_what_is_missing(world().await).await;
    tells_files_from_directories(world().await).await;
    refuses_what_is_no_path(world().await).await;
    takes_paths_in_any_spelling(world().await).await;
    gives_each_content_its_version(world().await).await;
    compares_before_it_writes(world().await).await;
    compares_before_it_removes(world().await).await;
    looks_without_changing(world().await).await;
    lets_one_of_many_write(world().await).await;
    lets_one_of_many_create(world().await).await;
    let enforced = world().await.files.confinement() == Confinement::Enforced;
    listing::shows_windows_of_long_files(world().await).await;
    if listing::can_list(world().await).await {
        listing::lists_what_is_there(world().await).await;
        listing::leaves_out_what_is_ignored(world().await).await;
        listing::gives_the_newest_first(world().await).await;
        listing::finds_what_is_said(world().await).await;
        listing::tells_nothing_of_secrets(world().await).await;
        if enforced {
            listing::lists_nothing_that_is_denied(world().await).await;
        }
    }
    if enforced {
        keeps_to_its_roots(world().await).await;
        hides_what_is_denied(world().await).await;
        keeps_to_its_quota(world().await).await;
    }
}

struct World<B> {
    files: Arc<B>,
    caller: Caller,
    root: PathBuf,
    scope: Scope,
}

impl<B: FsBridge> World<B> {
    fn new(files: B, root: PathBuf) -> Self {
        let scope = Scope::workspace(&root);
        Self { files: Arc::new(files), caller: caller(), root, scope }
    }

    fn place(&self) -> FilePlace<'_> {
        self.expecting(Expect::Anything)
    }

    fn expecting<'a>(&'a self, expect: Expect<'a>) -> FilePlace<'a> {
        FilePlace { caller: &self.caller, directory: &self.root, scope: &self.scope, expect }
    }

    async fn write(&self, path: &str, text: &str) -> Version {
        self.files.write(&self.place(), path, text.as_bytes()).await.unwrap().version
    }

    async fn text(&self, path: &str) -> String {
        String::from_utf8(self.files.read(&self.place(), path).await.unwrap().0).unwrap()
    }

    async fn version(&self, path: &str) -> Version {
        self.files.stat(&self.place(), path).await.unwrap().unwrap().version
    }
}

async fn reads_what_was_written(world: World<impl FsBridge>) {
    let (files, place) = (&world.files, world.place());
    let every_byte: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    for (path, bytes) in [("a.txt", &b"one\ntwo\n"[..]), ("empty", b""), ("deep/er/still", &every_byte)] {
        let written = files.write(&place, path, bytes).await.unwrap();
        let (read, stat) = files.read(&place, path).await.unwrap();
        assert!(read == bytes, "{path} has other bytes than were written");
        assert_eq!(stat, written, "{path}");
        assert_eq!((stat.directory, stat.size), (false, bytes.len() as u64));
        assert_eq!(files.stat(&place, path).await.unwrap(), Some(written));
    }
    world.write("a.txt", "shorter").await;
    assert_eq!(world.text("a.txt").await, "shorter");
}

async fn makes_directories(world: World<impl FsBridge>) {
    let (files, place) = (&world.files, world.place());
    files.mkdirp(&place, "a/b/c").await.unwrap();
    files.mkdirp(&place, "a/b").await.unwrap();
    for path in ["a", "a/b", "a/b/c", "."] {
        assert!(files.stat(&place, path).await.unwrap().unwrap().directory, "{path}");
    }
    world.write("a/b/file", "x").await;
    check(files.mkdirp(&place, "a/b/file").await, ErrorKind::Invalid, "leads through a file");
    check(files.mkdirp(&place, "a/b/file/below").await, ErrorKind::Invalid, "leads through a file");
    assert_eq!(world.text("a/b/file").await, "x");
}

async fn says_what_is_missing(world: World<impl FsBridge>) {
    let (files, place) = (&world.files, world.place());
    for path in ["no", "no/where", "./no"] {
        assert_eq!(files.stat(&place, path).await.unwrap(), None, "{path}");
        let says = format!("`{path}` does not exist");
        check(files.read(&place, path).await, ErrorKind::NotFound, &says);
        check(files.remove(&place, path).await, ErrorKind::NotFound, &says);
    }
    world.write("there", "x").await;
    check(files.read(&place, "no").await, ErrorKind::NotFound, "`no` does not exist");
    files.remove(&place, "there").await.unwrap();
    assert_eq!(files.stat(&place, "there").await.unwrap(), None);
    check(files.remove(&place, "there").await, ErrorKind::NotFound, "`there` does not exist");
}

async fn tells_files_from_directories(world: World<impl FsBridge>) {
    let (files, place) = (&world.files, world.place());
    world.write("dir/file", "x").await;
    check(files.read(&place, "dir").await, ErrorKind::Invalid, "`dir` is a directory");
    check(files.read(&place, ".").await, ErrorKind::Invalid, "`.` is a directory");
    check(files.write(&place, "dir", b"y").await, ErrorKind::Invalid, "`dir` is a directory");
    check(files.write(&place, ".", b"y").await, ErrorKind::Invalid, "`.` is a directory");
    check(files.remove(&place, "dir").await, ErrorKind::Invalid, "`dir` is a directory");
    check(files.write(&place, "dir/file/below", b"y").await, ErrorKind::Invalid, "leads through a file");
    assert_eq!(files.stat(&place, "dir/file/below").await.unwrap(), None);
    assert_eq!(world.text("dir/file").await, "x");
}

async fn refuses_what_is_no_path(world: World<impl FsBridge>) {
    let (files, place) = (&world.files, world.place());
    let (name, path) = ("n".repeat(256), format!("{}/{}", "d".repeat(4096), "x"));
    let cases = [
        ("", "is not a path"),
        ("\0", "is not a path"),
        ("a\0b", "is not a path"),
        (&name, "is too long for a path"),
        (&path, "is too long for a path"),
    ];
    for (path, says) in cases {
        check(files.stat(&place, path).await, ErrorKind::Invalid, says);
        check(files.read(&place, path).await, ErrorKind::Invalid, says);
        check(files.write(&place, path, b"x").await, ErrorKind::Invalid, says);
        check(files.mkdirp(&place, path).await, ErrorKind::Invalid, says);
        check(files.remove(&place, path).await, ErrorKind::Invalid, says);
        check(files.look(&place, path).await, ErrorKind::Invalid, says);
    }
    for name in
        ["n".repeat(255), "ä".repeat(127), "new\nline".to_owned(), " ".to_owned(), "%2e%2e".to_owned()]
    {
        world.write(&name, "x").await;
        assert_eq!(world.text(&name).await, "x");
    }
}

async fn takes_paths_in_any_spelling(world: World<impl FsBridge>) {
    world.write("a/b.txt", "b").await;
    world.write("c.txt", "c").await;
    let root = world.root.to_str().unwrap();
    let absolute = [format!("{root}/a/b.txt"), format!("{root}//a/./b.txt"), format!("{root}/a/../a/b.txt")];
    let spellings = ["a/b.txt", "./a/b.txt", "a//b.txt", "a/./b.txt", "a/../a/b.txt", "./a/.././a/b.txt"];
    for path in spellings.into_iter().chain(absolute.iter().map(String::as_str)) {
        assert_eq!(world.text(path).await, "b", "{path}");
    }
    let below = world.root.join("a");
    let place = FilePlace { directory: &below, ..world.place() };
    assert_eq!(world.files.read(&place, "b.txt").await.unwrap().0, b"b");
    assert_eq!(world.files.read(&place, "../c.txt").await.unwrap().0, b"c");
}

async fn gives_each_content_its_version(world: World<impl FsBridge>) {
    let mut seen = Vec::new();
    for text in ["one", "two", "three", "", "four"] {
        let version = world.write("a", text).await;
        assert_eq!(world.version("a").await, version, "nothing changed since");
        assert!(!seen.contains(&version), "`{text}` has the version of another content");
        seen.push(version);
    }
    world.files.remove(&world.place(), "a").await.unwrap();
    assert!(!seen[..4].contains(&world.write("a", "four").await));
}

async fn compares_before_it_writes(world: World<impl FsBridge>) {
    let files = &world.files;
    let first = world.write("a", "first").await;
    let write = async |expect: Expect<'_>, text: &str| {
        files.write(&world.expecting(expect), "a", text.as_bytes()).await
    };
    check(write(Expect::Absent, "no").await, ErrorKind::Conflict, "`a` exists already");
    let second = write(Expect::Version(&first), "second").await.unwrap().version;
    check(write(Expect::Version(&first), "no").await, ErrorKind::Conflict, "`a` has changed");
    assert_eq!(world.text("a").await, "second");
    assert_eq!(world.version("a").await, second, "a refused write changes nothing");
    files.remove(&world.place(), "a").await.unwrap();
    check(write(Expect::Version(&second), "no").await, ErrorKind::Conflict, "`a` has changed");
    assert_eq!(files.stat(&world.place(), "a").await.unwrap(), None);
    write(Expect::Absent, "third").await.unwrap();
    write(Expect::Anything, "fourth").await.unwrap();
    assert_eq!(world.text("a").await, "fourth");
    let deep = files.write(&world.expecting(Expect::Version(&first)), "not/there", b"x").await;
    check(deep, ErrorKind::Conflict, "`not/there` has changed");
    assert_eq!(files.stat(&world.place(), "not").await.unwrap(), None, "nothing was made for it");
}

async fn compares_before_it_removes(world: World<impl FsBridge>) {
    let files = &world.files;
    let first = world.write("a", "first").await;
    let second = world.write("a", "second").await;
    let remove = async |expect: Expect<'_>| files.remove(&world.expecting(expect), "a").await;
    check(remove(Expect::Version(&first)).await, ErrorKind::Conflict, "`a` has changed");
    check(remove(Expect::Absent).await, ErrorKind::Conflict, "`a` exists already");
    assert_eq!(world.text("a").await, "second");
    remove(Expect::Version(&second)).await.unwrap();
    assert_eq!(files.stat(&world.place(), "a").await.unwrap(), None);
}

async fn looks_without_changing(world: World<impl FsBridge>) {
    let (files, place) = (&world.files, world.place());
    for path in ["new", "not/yet/there"] {
        let sight = files.look(&place, path).await.unwrap();
        assert_eq!(sight.target, Target::File { path: path.to_owned() });
        assert_eq!(sight.identity, None);
        assert_eq!(files.stat(&place, path).await.unwrap(), None, "looking makes nothing");
    }
    let version = world.write("a", "one").await;
    let sight = files.look(&place, "./a").await.unwrap();
    assert_eq!(sight.identity.as_deref(), Some(version.0.as_str()), "the identity is the version");
    assert!(Path::new(sight.path.as_deref().unwrap()).ends_with("a"), "{sight:?}");
    assert_eq!(files.look(&place, "./a").await.unwrap(), sight);
    world.write("a", "two").await;
    assert_ne!(files.look(&place, "./a").await.unwrap(), sight);
}

async fn lets_one_of_many_write(world: World<impl FsBridge + 'static>) {
    let version = world.write("a", "old").await;
    let won = race(&world, move |racer| (format!("racer {racer}"), Some(version.clone()))).await;
    assert_eq!(won.len(), 1, "one write finds what it expects");
    assert_eq!(world.text("a").await, won[0]);
}

async fn lets_one_of_many_create(world: World<impl FsBridge + 'static>) {
    let won = race(&world, |racer| (format!("racer {racer}"), None)).await;
    assert_eq!(won.len(), 1, "one write finds nothing");
    assert_eq!(world.text("a").await, won[0]);
}

/// Writes `a` from many tasks at once, and returns the content of the acknowledged writes.
async fn race(
    world: &World<impl FsBridge + 'static>,
    what: impl Fn(usize) -> (String, Option<Version>),
) -> Vec<String> {
    let racers: Vec<_> = (0..16)
        .map(|racer| {
            let (text, version) = what(racer);
            let (files, caller) = (Arc::clone(&world.files), world.caller.clone());
            let (root, scope) = (world.root.clone(), world.scope.clone());
            tokio::spawn(async move {
                let expect = version.as_ref().map_or(Expect::Absent, Expect::Version);
                let place = FilePlace { caller: &caller, directory: &root, scope: &scope, expect };
                match files.write(&place, "a", text.as_bytes()).await {
                    Ok(_) => Some(text),
                    Err(error) => {
                        assert_eq!(error.kind, ErrorKind::Conflict, "{error:?}");
                        None
                    }
                }
            })
        })
        .collect();
    let mut won = Vec::new();
    for racer in racers {
        won.extend(racer.await.unwrap());
    }
    won
}

async fn keeps_to_its_roots(mut world: World<impl FsBridge>) {
    world.write("in", "inside").await;
    world.write("vendor/lib", "lib").await;
    let read_only = Root { path: world.root.join("vendor"), access: Access::Read };
    world.scope.roots.push(read_only);
    let (files, place) = (&world.files, world.place());
    let name = world.root.file_name().unwrap().to_str().unwrap();
    let sibling = format!("../{name}-evil/x");
    let absolute = format!("{}-evil/x", world.root.display());
    for path in ["..", "../x", "vendor/../../x", "/", "/x", &sibling, &absolute] {
        let says = "outside the workspace";
        check(files.stat(&place, path).await, ErrorKind::Forbidden, says);
        check(files.read(&place, path).await, ErrorKind::Forbidden, says);
        check(files.write(&place, path, b"x").await, ErrorKind::Forbidden, says);
        check(files.mkdirp(&place, path).await, ErrorKind::Forbidden, says);
        check(files.remove(&place, path).await, ErrorKind::Forbidden, says);
        check(files.look(&place, path).await, ErrorKind::Forbidden, says);
    }
    assert_eq!(world.text("vendor/lib").await, "lib");
    for path in ["vendor/lib", "vendor/new", "vendor/deep/new", "./vendor/../vendor/lib"] {
        check(files.write(&place, path, b"x").await, ErrorKind::Forbidden, "is read-only");
    }
    check(files.remove(&place, "vendor/lib").await, ErrorKind::Forbidden, "is read-only");
    check(files.mkdirp(&place, "vendor/deep/er").await, ErrorKind::Forbidden, "is read-only");
    assert_eq!(files.stat(&place, "vendor/deep").await.unwrap(), None);
    let nowhere = Scope::default();
    let place = FilePlace { scope: &nowhere, ..world.place() };
    check(files.read(&place, "in").await, ErrorKind::Forbidden, "outside the workspace");
}

async fn hides_what_is_denied(mut world: World<impl FsBridge>) {
    world.write("secret/deep/key", "k").await;
    world.write("secrets", "other").await;
    world.write("one/file", "f").await;
    world.scope.denied =
        ["secret", "one/file", "later", "one/later"].map(|path| world.root.join(path)).to_vec();
    let (files, place) = (&world.files, world.place());
    for path in
        ["secret", "secret/deep/key", "one/../secret/deep/key", "one/file", "later", "later/x", "one/later"]
    {
        let says = format!("`{path}` does not exist");
        assert_eq!(files.stat(&place, path).await.unwrap(), None, "{path}");
        check(files.read(&place, path).await, ErrorKind::NotFound, &says);
        check(files.write(&place, path, b"x").await, ErrorKind::NotFound, &says);
        check(files.mkdirp(&place, path).await, ErrorKind::NotFound, &says);
        check(files.remove(&place, path).await, ErrorKind::NotFound, &says);
        check(files.look(&place, path).await, ErrorKind::NotFound, &says);
    }
    assert_eq!(world.text("secrets").await, "other");
    world.scope.denied.clear();
    assert_eq!(world.text("secret/deep/key").await, "k");
    assert_eq!(world.files.stat(&world.place(), "later").await.unwrap(), None, "nothing was made");
}

async fn keeps_to_its_quota(mut world: World<impl FsBridge>) {
    world.write("a", "12345").await;
    world.scope.quota = Some(Quota { bytes: 10, files: 3 });
    let write = async |path: &str, text: &str| {
        world.files.write(&world.place(), path, text.as_bytes()).await.map(|_| ())
    };
    check(write("b", "123456").await, ErrorKind::Forbidden, "11 bytes in 2 files");
    check(write("b", "123456").await, ErrorKind::Forbidden, "quota is 10 bytes and 3");
    assert_eq!(world.files.stat(&world.place(), "b").await.unwrap(), None);
    write("b", "12345").await.unwrap();
    write("a", "1").await.unwrap();
    write("b", "123456789").await.unwrap();
    check(write("a", "12").await, ErrorKind::Forbidden, "11 bytes in 2 files");
    check(write("dir/c", "").await, ErrorKind::Forbidden, "4");
    assert_eq!(world.text("a").await, "1");
    world.files.mkdirp(&world.place(), "dir").await.unwrap();
    check(write("c", "").await, ErrorKind::Forbidden, "10 bytes in 4 files");
    world.files.remove(&world.place(), "b").await.unwrap();
    write("dir/c", "123456789").await.unwrap();
}

#[track_caller]
fn check<T: Debug>(result: Result<T, ToolError>, kind: ErrorKind, says: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind, kind, "{error:?}");
    assert!(error.message.contains(says), "`{}` does not say `{says}`", error.message);
}
