use claw_core::port::Quota;
use claw_core::store::{DEEPEST_PATH, FileError, LONGEST_PATH};

use super::{Below, Growth, HEAD, Way};

#[test]
fn a_way_leads_from_the_top_through_each_directory() {
    let levels = |path: &str| -> Vec<String> {
        Way::to("test", path).unwrap().0.into_iter().map(|(_, path)| path).collect()
    };
    assert_eq!(levels("/"), ["/"]);
    assert_eq!(levels("/a"), ["/", "/a"]);
    assert_eq!(levels("/a/b/c"), ["/", "/a", "/a/b", "/a/b/c"]);
}

#[test]
fn what_is_no_path_leads_nowhere() {
    let (long, deep) = (format!("/{}", "x".repeat(LONGEST_PATH)), "/d".repeat(DEEPEST_PATH + 1));
    for path in ["", "a", "a/b", "//", "/a/", "/a//b", "/.", "/a/..", "/../a", "/a/./b", "/a\0", &long, &deep]
    {
        assert!(Way::to("test", path).is_err(), "{path:?}");
    }
    for path in ["/...", "/a b", "/%2e%2e", &long[..LONGEST_PATH], &deep[2..]] {
        assert!(Way::to("test", path).is_ok(), "{path:?}");
    }
}

#[test]
fn below_a_directory_is_what_its_name_and_a_slash_begin() {
    let below = |directory: &str, path: &str| Below::new(directory).contains(path);
    for path in ["/a/b", "/a/b/c", "/a/ ", "/a/\u{10ffff}"] {
        assert!(below("/a", path) && below("/", path), "{path}");
    }
    for path in ["/a", "/a-evil", "/a-evil/x", "/a0", "/a.b/c", "/b", "/", "/A/b"] {
        assert!(!below("/a", path), "{path}");
    }
    assert!(!below("/", "/"));
}

/// The index knows only the beginnings of paths: those below a directory must be within the beginnings of the
/// range.
#[test]
fn what_is_below_begins_within_the_range_that_the_index_is_asked_for() {
    let long = "/ä".repeat(HEAD);
    for directory in ["/", "/a", "/ä/\u{10ffff}", &long[..300], &long] {
        let below = Below::new(directory);
        for name in ["a", "\u{1}", "\u{10ffff}", &"x".repeat(255)] {
            let path = format!("{}/{name}", directory.trim_end_matches('/'));
            assert!(below.contains(&path));
            let head: String = path.chars().take(HEAD).collect();
            assert!(below.first <= head && head <= below.last, "{directory} {name}");
        }
    }
}

#[test]
fn what_takes_away_always_has_room() {
    let quota = Quota { bytes: 10, files: 2 };
    let fits = |bytes, files, held| Growth { bytes, files }.fits(held, quota);
    for (bytes, files, held) in [(1, 0, (9, 2)), (-5, 0, (100, 2)), (0, 1, (100, 1)), (0, 0, (100, 100))] {
        assert!(fits(bytes, files, held).is_ok(), "{bytes} {files} {held:?}");
    }
    for (bytes, files, held) in [(1, 0, (10, 2)), (1, 1, (5, 2)), (0, 1, (0, 2)), (1, 1, (100, 0))] {
        let refused = fits(bytes, files, held).unwrap_err();
        assert!(matches!(refused, FileError::Quota { .. }), "{refused:?}");
    }
}
