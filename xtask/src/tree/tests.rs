use super::Tree;

#[track_caller]
fn check(path: &str, expected: bool) {
    let lib = "mod real;\n#[cfg(test)]\nmod fixture;\n";
    let deep = "#[cfg(test)]\nmod sample;\n";
    let tree = Tree::of(&[("crates/a/src/lib.rs", lib), ("crates/a/src/real.rs", deep), (path, "")]);
    assert_eq!(tree.file(path).unwrap().is_test(), expected, "{path}");
}

#[test]
fn files_for_tests_are_told_apart() {
    check("crates/a/src/fixture.rs", true);
    check("crates/a/src/fixture/world.rs", true);
    check("crates/a/src/fixtures.rs", false);
    check("crates/a/src/real/sample.rs", true);
    check("crates/a/src/sample.rs", false);
    check("crates/a/src/real/tests.rs", true);
    check("crates/a/tests/it/main.rs", true);
    check("crates/a/benches/road.rs", true);
    check("crates/claw-testkit/src/lib.rs", true);
    check("crates/a/examples/loop.rs", false);
}
