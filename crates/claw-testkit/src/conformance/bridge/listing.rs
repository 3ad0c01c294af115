//! Walking, searching and windows, for bridges that can do them.

use claw_core::port::{From, Order, Reading, Search, SearchLine, Searched, Walk, Walked, Window};
use claw_core::redact::{PLACEHOLDER, Redaction, Redactor};

use super::*;

/// Treats text between `<` and `>` as secret.
struct Angles;

impl Redactor for Angles {
    fn find(&self, text: &[u8], found: &mut Vec<Redaction>) {
        let mut at = 0;
        while let Some(open) = text[at..].iter().position(|byte| *byte == b'<') {
            let start = at + open;
            let close = text[start..].iter().position(|byte| *byte == b'>');
            let end = close.map_or(text.len(), |close| start + close + 1);
            found.push(Redaction { range: start..end, kind: "value" });
            at = end;
        }
    }
}

fn redactor() -> Arc<dyn Redactor> {
    Arc::new(Angles)
}

fn all(path: &str) -> Walk {
    fixture::walk(path, 1000)
}

fn text(pattern: &str) -> Search {
    fixture::search(".", pattern, 1000)
}

impl<B: FsBridge> World<B> {
    async fn walked(&self, walk: &Walk) -> Walked {
        self.files.walk(&self.place(), walk).await.unwrap()
    }

    async fn searched(&self, search: &Search) -> Searched {
        self.files.search(&self.place(), search, &redactor()).await.unwrap()
    }

    /// Returns the paths found.
    async fn paths(&self, walk: &Walk) -> Vec<String> {
        self.walked(walk).await.entries.into_iter().map(|entry| entry.path).collect()
    }
}

/// Returns whether a bridge can walk and search at all.
pub(super) async fn can_list(world: World<impl FsBridge>) -> bool {
    world.write("a", "a").await;
    let walked = world.files.walk(&world.place(), &all(".")).await;
    !walked.is_err_and(|error| error.kind == ErrorKind::Unavailable)
}

pub(super) async fn lists_what_is_there(world: World<impl FsBridge>) {
    for path in ["b/one.rs", "b/deep/two.rs", "b.txt", "a.md", ".hidden", ".dot/x"] {
        world.write(path, "text").await;
    }
    assert_eq!(world.paths(&all(".")).await, ["a.md", "b/deep/two.rs", "b/one.rs", "b.txt"]);
    assert_eq!(world.paths(&all("b")).await, ["deep/two.rs", "one.rs"]);
    assert_eq!(world.paths(&all("b/one.rs")).await, [""]);
    assert_eq!(world.paths(&all(".hidden")).await, [""]);
    let directories = world.walked(&Walk { directories: true, hidden: true, ..all(".") }).await;
    let paths: Vec<_> = directories.entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(
        paths,
        [".dot", ".dot/x", ".hidden", "a.md", "b", "b/deep", "b/deep/two.rs", "b/one.rs", "b.txt"]
    );
    assert_eq!((directories.files, directories.directories, directories.stopped), (6, 3, false));
    assert_eq!(
        world.paths(&Walk { depth: Some(1), directories: true, ..all(".") }).await,
        ["a.md", "b", "b.txt"]
    );
    assert_eq!(
        world.paths(&Walk { globs: vec!["*.rs".into()], ..all(".") }).await,
        ["b/deep/two.rs", "b/one.rs"]
    );
    assert_eq!(world.paths(&Walk { globs: vec!["b/*.rs".into()], ..all(".") }).await, ["b/one.rs"]);
    assert_eq!(world.paths(&Walk { globs: vec!["!b".into()], ..all(".") }).await, ["a.md", "b.txt"]);
    assert_eq!(world.paths(&Walk { types: vec!["md".into()], ..all(".") }).await, ["a.md"]);
    let few = world.walked(&Walk { limit: 2, ..all(".") }).await;
    assert_eq!((few.entries.len(), few.entries[1].path.as_str(), few.files), (2, "b/deep/two.rs", 4));
    check(world.files.walk(&world.place(), &all("no")).await, ErrorKind::NotFound, "`no` does not exist");
    check(world.files.walk(&world.place(), &all("..")).await, ErrorKind::Forbidden, "outside");
    let glob = Walk { globs: vec!["a[".into()], ..all(".") };
    check(world.files.walk(&world.place(), &glob).await, ErrorKind::Invalid, "`a[` is not a glob");
}

pub(super) async fn leaves_out_what_is_ignored(world: World<impl FsBridge>) {
    let files = [
        (".gitignore", "*.log\n/build/\n!keep.log\n"),
        ("a.log", ""),
        ("keep.log", ""),
        ("build/x", ""),
        ("src/build/x", ""),
        ("src/.ignore", "*.tmp\n!*.log\n"),
        ("src/a.log", ""),
        ("src/a.tmp", ""),
        ("src/deep/b.tmp", ""),
        (".git/config", ""),
    ];
    for (path, text) in files {
        world.write(path, text).await;
    }
    assert_eq!(world.paths(&all(".")).await, ["keep.log", "src/a.log", "src/build/x"]);
    assert_eq!(world.paths(&all("src")).await, ["a.log", "build/x"], "what is said above holds below");
    let hidden = world.paths(&Walk { hidden: true, ..all(".") }).await;
    assert_eq!(hidden, [".git/config", ".gitignore", "keep.log", "src/.ignore", "src/a.log", "src/build/x"]);
    assert_eq!(world.walked(&Walk { ignored: true, ..all(".") }).await.files, 7);
    assert_eq!(
        world.searched(&Search { within: all("build"), ..text("x") }).await.searched,
        1,
        "asked by name"
    );
}

pub(super) async fn gives_the_newest_first(world: World<impl FsBridge>) {
    for path in ["b", "c", "a"] {
        world.write(path, "text").await;
    }
    let walk = Walk { order: Order::Newest, ..all(".") };
    let entries = world.walked(&walk).await.entries;
    assert!(entries.windows(2).all(|pair| pair[0].modified >= pair[1].modified), "{entries:?}");
    assert_eq!(entries.len(), 3);
}

pub(super) async fn finds_what_is_said(world: World<impl FsBridge>) {
    world.write("a.txt", "one\nTwo\nthree\ntwo four\n").await;
    world.write("b/c.txt", "two\n").await;
    world.write("b/d.bin", "two\0").await;
    let found = world.searched(&Search { before: 1, ..text("two") }).await;
    assert_eq!((found.hits, found.with_hits, found.searched, found.binary), (3, 2, 2, 1));
    let paths: Vec<_> = found.files.iter().map(|file| (file.path.as_str(), file.count)).collect();
    assert_eq!(paths, [("a.txt", 2), ("b/c.txt", 1)]);
    let line = |number, text: &str, hit| SearchLine { number, text: text.into(), hit };
    let lines =
        [line(1, "one", false), line(2, "Two", true), line(3, "three", false), line(4, "two four", true)];
    assert_eq!(found.files[0].lines, lines);
    let few = world.searched(&Search { limit: 1, ..text("two") }).await;
    assert_eq!((few.hits, few.files[0].lines.len(), few.files[1].lines.len()), (3, 1, 0));
    assert_eq!(world.searched(&Search { multiline: true, ..text(r"three\ntwo") }).await.hits, 2);
    assert_eq!(world.searched(&Search { literal: true, ..text("t.o") }).await.hits, 0);
    assert_eq!(world.searched(&Search { within: all("b"), ..text("two") }).await.files[0].path, "c.txt");
    assert_eq!(world.searched(&Search { within: all("b/c.txt"), ..text("two") }).await.files[0].path, "");
    let wrong = world.files.search(&world.place(), &text("a("), &redactor()).await;
    check(wrong, ErrorKind::Invalid, "`a(` is not a regular expression");
}

pub(super) async fn tells_nothing_of_secrets(world: World<impl FsBridge>) {
    world.write("key", "name <hunter2> end\nlong <one\ntwo> end\n").await;
    world.write("other", "nothing\n").await;
    let guesses =
        ["hunter", "<", "name.*", "2> end", "name <h|hu", "one", "two", "^two", "REDACTED", "n.*r2.*d|zzz"];
    for guess in guesses {
        for multiline in [false, true] {
            let found = world.searched(&Search { multiline, ..text(guess) }).await;
            assert_eq!((found.hits, found.with_hits, found.files.len()), (0, 0, 0), "{guess}");
        }
    }
    // Right or wrong, a guess in the other half of an alternation changes nothing.
    for guess in ["hunter2", "hunter3"] {
        assert_eq!(world.searched(&text(&format!("name.*{guess}|name"))).await.hits, 1);
    }
    let found = world.searched(&Search { before: 2, after: 2, ..text("name") }).await;
    let shown: Vec<_> = found.files[0].lines.iter().map(|line| line.text.as_str()).collect();
    let masked =
        [format!("name {PLACEHOLDER} end"), format!("long {PLACEHOLDER}"), format!("{PLACEHOLDER} end")];
    assert_eq!(shown, masked);
}

pub(super) async fn shows_windows_of_long_files(world: World<impl FsBridge>) {
    let lines: String = (1..=60_000).map(|line| format!("line {line} <secret {line}> end\n")).collect();
    world.write("long", &lines).await;
    let view = async |from| {
        let window = Window { from, lines: 1, bytes: 1000 };
        match world.files.window(&world.place(), "long", &window, &redactor()).await.unwrap() {
            Reading::Text(view) => view,
            Reading::Binary(binary) => panic!("{binary:?}"),
        }
    };
    let (first, last) = (view(From::Line(40_000)).await, view(From::End(1)).await);
    assert_eq!((first.text.as_str(), first.first_line), ("line 40000 [REDACTED] end\n", Some(40_000)));
    assert_eq!(last.text, "line 60000 [REDACTED] end\n");
    assert_eq!((last.bytes.end, last.size), (lines.len() as u64, lines.len() as u64));
    let next = view(From::Byte(first.bytes.end)).await;
    assert_eq!(next.text, "line 40001 [REDACTED] end\n");
    assert_eq!(next.version, world.version("long").await);
}

pub(super) async fn lists_nothing_that_is_denied(mut world: World<impl FsBridge>) {
    for path in ["secret/deep/key", "secrets", "one/file", "one/other"] {
        world.write(path, "word").await;
    }
    world.scope.denied = ["secret", "one/file", "later"].map(|path| world.root.join(path)).to_vec();
    let walked = world.walked(&Walk { directories: true, ..all(".") }).await;
    let paths: Vec<_> = walked.entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(paths, ["one", "one/other", "secrets"]);
    assert_eq!((walked.files, walked.directories), (2, 1));
    let found = world.searched(&text("word")).await;
    assert_eq!((found.hits, found.searched, found.failed), (2, 2, 0));
    for path in ["secret", "secret/deep", "one/file"] {
        let says = format!("`{path}` does not exist");
        check(world.files.walk(&world.place(), &all(path)).await, ErrorKind::NotFound, &says);
        let search = Search { within: all(path), ..text("word") };
        check(world.files.search(&world.place(), &search, &redactor()).await, ErrorKind::NotFound, &says);
    }
}
