//! The suite of an [`ArtifactStore`]: kept texts are complete, readable in parts, and visible to their owner
//! alone.

use claw_core::port::{ArtifactStore, Owner, Part};
use claw_core::tool::{ErrorKind, ToolError};
use claw_core::{ArtifactId, CallId};

use crate::fixture::{owner, session, tenant};

/// Runs the suite; `make` creates an empty store that keeps at least four texts of a session.
pub async fn artifacts<S: ArtifactStore>(make: impl AsyncFn() -> S) {
    reads_a_text_in_parts(make().await).await;
    keeps_every_byte(make().await).await;
    lists_the_newest_first(make().await).await;
    hides_what_belongs_to_another(make().await).await;
}

async fn reads_a_text_in_parts(store: impl ArtifactStore) {
    let text: String = (1..=120).map(|n| format!("line {n} äöü\n")).collect();
    let kept = store.put(&owner(), CallId::new(), &text).await.unwrap();
    assert_eq!((kept.lines, kept.bytes), (120, text.len()));
    let part = store.lines(&owner(), kept.id, 119, 50).await.unwrap();
    let expected =
        Part { text: "line 119 äöü\nline 120 äöü\n".to_owned(), first: 119, count: 2, total: 120 };
    assert_eq!(part, expected);
    assert_eq!(store.lines(&owner(), kept.id, 1, usize::MAX).await.unwrap().text, text);
    assert_eq!(store.lines(&owner(), kept.id, 7, 0).await.unwrap().count, 0);
    for first in [0, 121, usize::MAX] {
        check(store.lines(&owner(), kept.id, first, 1).await, ErrorKind::Invalid, "has 120 lines");
    }
}

async fn keeps_every_byte(store: impl ArtifactStore) {
    for (text, lines) in [
        ("one line", 1),
        ("\n", 1),
        ("\n\n", 2),
        ("a\r\nb\r\n", 2),
        ("a\n\nb", 3),
        ("", 0),
        ("\u{1f980}\0x", 1),
    ] {
        let kept = store.put(&owner(), CallId::new(), text).await.unwrap();
        assert_eq!(kept.lines, lines, "{text:?}");
        if lines == 0 {
            check(store.lines(&owner(), kept.id, 1, 1).await, ErrorKind::Invalid, "is empty");
            continue;
        }
        let part = store.lines(&owner(), kept.id, 1, 10).await.unwrap();
        assert_eq!(part, Part { text: text.to_owned(), first: 1, count: lines, total: lines });
    }
}

async fn lists_the_newest_first(store: impl ArtifactStore) {
    assert_eq!(store.list(&owner()).await.unwrap(), []);
    let mut kept = Vec::new();
    for text in ["a", "b\n", "c\nd"] {
        kept.insert(0, store.put(&owner(), CallId::new(), text).await.unwrap());
    }
    assert_eq!(store.list(&owner()).await.unwrap(), kept);
}

async fn hides_what_belongs_to_another(store: impl ArtifactStore) {
    let kept = store.put(&owner(), CallId::new(), "mine").await.unwrap();
    let others =
        [Owner { session: session("cli:you"), ..owner() }, Owner { tenant: tenant("other"), ..owner() }];
    for other in others {
        assert_eq!(store.list(&other).await.unwrap(), []);
        check(store.lines(&other, kept.id, 1, 1).await, ErrorKind::NotFound, "no kept result");
    }
    check(store.lines(&owner(), ArtifactId::new(), 1, 1).await, ErrorKind::NotFound, "no kept result");
}

#[track_caller]
fn check(result: Result<Part, ToolError>, kind: ErrorKind, says: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind, kind);
    assert!(error.message.contains(says), "{}", error.message);
}
