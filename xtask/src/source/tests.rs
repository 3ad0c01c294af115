use super::{code, production, test_modules, words};

#[track_caller]
fn check_code(source: &str, expected: &str) {
    let code = code(source);
    assert_eq!(code, expected);
    assert_eq!(code.len(), source.len());
}

#[test]
fn comments_are_blanked() {
    check_code("a // b\nc", "a     \nc");
    check_code("a /* b /* c */ d */ e", "a                   e");
    check_code("a / b", "a / b");
}

#[test]
fn strings_are_blanked_and_keep_their_quotes() {
    check_code(r#"f("a//b", c)"#, r#"f("    ", c)"#);
    check_code(r#"f("a\"b") // x"#, r#"f("    ")     "#);
    check_code("f(r#\"a\"b\"#) + g", "f(r#\"   \"#) + g");
    check_code("f(br\"ab\") + g", "f(br\"  \") + g");
    check_code("\"a\nb\"", "\" \n \"");
    check_code("r#fn + for \"x\"", "r#fn + for \" \"");
}

#[test]
fn characters_are_blanked_and_lifetimes_are_not() {
    check_code("'\"' + b", "' ' + b");
    check_code(r"'\'' + b'\\' + c", r"'  ' + b'  ' + c");
    check_code("'é' + c", "'  ' + c");
    check_code("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}");
    check_code("'outer: loop {}", "'outer: loop {}");
}

#[test]
fn unfinished_literals_end_with_the_file() {
    check_code("\"ab", "\" b");
    check_code("/* ab", "     ");
    check_code("r#\"ab", "r#\"  ");
    check_code("'", "'");
    check_code("'\\", "'\\");
}

#[test]
fn test_items_are_no_production_code() {
    let source =
        "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { c(); } }\nfn d() {}\n#[cfg(test)]\nmod tests;\ne";
    let production = production(source);
    assert!(production.contains("fn a") && production.contains("fn d") && production.ends_with('e'));
    assert!(!production.contains('b') && !production.contains("mod"));
}

#[test]
fn words_are_whole() {
    let count = |code, word| words(code, word).count();
    assert_eq!(count("std::fs::read(std::fs)", "std::fs"), 2);
    assert_eq!(count("std::fsx my_std::fs", "std::fs"), 0);
    assert_eq!(count("x.await; x.awaited", ".await"), 1);
    assert_eq!(count("todo!() my_todo!()", "todo!"), 1);
}

#[test]
fn modules_for_tests_are_known_by_name() {
    let source =
        "mod a;\n#[cfg(test)]\nmod b;\n#[cfg(test)]\npub(crate) mod c;\n#[cfg(test)]\nmod d { mod e; }\n";
    assert_eq!(test_modules(source), ["b", "c"]);
}
