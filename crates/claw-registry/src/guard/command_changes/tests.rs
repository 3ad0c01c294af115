//! Tests of what is held back together.

use super::*;

fn deleted(path: &str, entry: ChangedEntry) -> FileChange {
    FileChange {
        path: path.into(),
        kind: ChangeKind::Deleted,
        entry,
        bytes_before: Some(1),
        bytes_after: None,
        mode: None,
    }
}

#[test]
fn a_deletion_held_back_holds_back_that_of_its_directories() {
    use ChangedEntry::{Directory, File};
    let list = [
        deleted("d", Directory),
        deleted("d/beside", File),
        deleted("d/sub", Directory),
        deleted("d/sub/held", File),
        deleted("other", Directory),
        deleted("other/file", File),
    ];
    let mut held = vec![HeldChange { path: "d/sub/held".into(), reason: "it may not".to_owned() }];
    hold_with_directories(&list, &mut held);
    let mut paths: Vec<_> = held.iter().map(|held| held.path.display().to_string()).collect();
    paths.sort();
    // A directory is deleted whole or not at all.
    assert_eq!(paths, ["d", "d/beside", "d/sub", "d/sub/held"]);
    assert_eq!(held[0].reason, "it may not");

    let mut held = Vec::new();
    hold_with_directories(&list, &mut held);
    assert!(held.is_empty());
}
