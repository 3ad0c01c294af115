use super::*;

/// Rules by directory, top first; then what each path is taken for.
#[track_caller]
fn check(sources: &[(&str, &str)], repositories: &[&str], cases: &[(&str, bool)]) {
    for (path, expected) in cases {
        assert_eq!(is_out(sources, repositories, path), *expected, "{path} under {sources:?}");
    }
}

/// As a walk does: an entry is out if it or a directory on the way is.
fn is_out(sources: &[(&str, &str)], repositories: &[&str], path: &str) -> bool {
    let mut rules = Rules::default();
    let mut at = String::new();
    let directory_itself = path.ends_with('/');
    let names: Vec<_> = path.trim_end_matches('/').split('/').collect();
    for (index, name) in names.iter().enumerate() {
        let here = if at.is_empty() { "/" } else { &at };
        let of = |kind: &str| {
            let wanted = format!("{}/{kind}", at.trim_start_matches('/'));
            let found = sources.iter().find(|(path, _)| *path == wanted.trim_start_matches('/'));
            found.map(|(_, text)| text.as_bytes().to_vec())
        };
        let repository = repositories.contains(&at.trim_start_matches('/'));
        rules = rules
            .with(Path::new(here), &Sources { gitignore: of(GITIGNORE), ignore: of(IGNORE), repository });
        at = format!("{at}/{name}");
        let directory = index + 1 < names.len() || directory_itself;
        if rules.judge(Path::new(&at), directory) == Verdict::Out {
            return true;
        }
    }
    false
}

#[test]
fn patterns_mean_what_git_says() {
    check(
        &[(".gitignore", "*.log\n!keep.log\n")],
        &[],
        &[
            ("a.log", true),
            ("deep/er/a.log", true),
            ("keep.log", false),
            ("deep/keep.log", false),
            ("a.logs", false),
        ],
    );
    check(
        &[(".gitignore", "/top\nsub/inner\nonly/\n")],
        &[],
        &[
            ("top", true),
            ("a/top", false),
            ("top/x", true),
            ("sub/inner", true),
            ("a/sub/inner", false),
            ("only", false),
            ("only/", true),
            ("a/only/x", true),
        ],
    );
    check(
        &[(".gitignore", "a/**/z\n**/cache\nlogs/**\n")],
        &[],
        &[
            ("a/z", true),
            ("a/b/c/z", true),
            ("b/a/z", false),
            ("x/cache", true),
            ("logs/", false),
            ("logs/x", true),
        ],
    );
    check(
        &[(".gitignore", "# no\n\n\\#yes\n\\!bang\nspace\\ \ntrail   \n[ab].c\n?x\n")],
        &[],
        &[
            ("# no", false),
            ("#yes", true),
            ("!bang", true),
            ("space ", true),
            ("trail", true),
            ("a.c", true),
            ("c.c", false),
            ("1x", true),
            ("x", false),
        ],
    );
}

#[test]
fn what_is_in_an_ignored_directory_cannot_be_taken_back() {
    check(&[(".gitignore", "build/\n!build/keep\n")], &[], &[("build/keep", true)]);
    check(&[(".gitignore", "build/*\n!build/keep\n")], &[], &[("build/keep", false), ("build/x", true)]);
}

#[test]
fn the_innermost_file_counts() {
    let sources = [(".gitignore", "*.o\n"), ("lib/.gitignore", "!*.o\n/x\n")];
    check(
        &sources,
        &[],
        &[("a.o", true), ("lib/a.o", false), ("lib/x", true), ("lib/sub/x", false), ("x", false)],
    );
}

#[test]
fn ignore_counts_before_gitignore_at_any_height() {
    let sources = [(".ignore", "!*.o\n*.md\n"), ("lib/.gitignore", "*.o\n!*.md\n")];
    check(&sources, &[], &[("lib/a.o", false), ("lib/a.md", true)]);
}

#[test]
fn a_repository_within_has_rules_of_its_own() {
    let sources = [(".gitignore", "*.o\n"), (".ignore", "*.tmp\n"), ("sub/.gitignore", "*.a\n")];
    check(
        &sources,
        &["sub", "bare"],
        &[("sub/x.o", false), ("sub/x.a", true), ("sub/x.tmp", true), ("bare/x.o", false), ("x.o", true)],
    );
}

#[test]
fn nonsense_says_nothing() {
    let many = "[\n".repeat(20_000);
    check(&[(".gitignore", "a[\n{b\n*.log\n")], &[], &[("x.log", true), ("b", false)]);
    check(&[(".gitignore", &many)], &[], &[("x", false)]);
    check(&[(".gitignore", "\u{feff}*.log\r\n*.tmp\r\n")], &[], &[("a.log", true), ("a.tmp", true)]);
}

#[test]
fn rules_as_deep_as_a_tree_need_no_stack() {
    let mut rules = Rules::default();
    let sources = Sources { gitignore: Some(b"x".to_vec()), ..Sources::default() };
    for _ in 0..100_000 {
        rules = rules.with(Path::new("/"), &sources);
    }
    assert_eq!(rules.judge(Path::new("/x"), false), Verdict::Out);
    drop(rules);
}
