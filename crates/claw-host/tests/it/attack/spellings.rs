//! Attacks by the spelling of paths.

use claw_core::tool::ErrorKind;

use super::{CANARY, Target};

/// Ways to go up, from the workspace to the directory around it.
const UPS: [&str; 10] = [
    "../",
    "..//",
    ".././",
    "./../",
    "././/../",
    "dir/../../",
    "dir/./.././../",
    "dir/deep/../../../",
    "dir//deep//..//..//..//",
    "../ws/../",
];

/// Suffixes that lead down again, to existing files.
const DOWNS: [&str; 9] = [
    "canary",
    "outside/canary",
    "outside//canary",
    "./outside/canary",
    "outside/./canary",
    "outside/dir/../canary",
    "outside/dir/canary",
    "ws-evil/canary",
    "ws/../canary",
];

/// Paths that look like a way up but are ordinary names.
const LOOKALIKES: [&str; 26] = [
    "%2e%2e/canary",
    "%2e%2e%2fcanary",
    "..%2fcanary",
    "..%5ccanary",
    "%252e%252e%252fcanary",
    "..\\canary",
    "..\\..\\canary",
    ".\\..\\canary",
    "..%c0%afcanary",
    "%c0%ae%c0%ae/canary",
    "..;/canary",
    ".. /canary",
    " ../canary",
    ". ./canary",
    ".../canary",
    "..../canary",
    "....//canary",
    "\u{ff0e}\u{ff0e}/canary",
    "\u{2025}/canary",
    "..\u{2215}canary",
    "..\u{2044}canary",
    "..\u{200b}/canary",
    "\u{202e}../canary",
    "~/canary",
    "$PWD/../../canary",
    "file:///canary",
];

#[tokio::test]
async fn refuses_traversal_in_every_spelling() {
    let mut spellings: Vec<String> =
        UPS.iter().flat_map(|up| DOWNS.map(|down| format!("{up}{down}"))).collect();
    spellings.extend((1..=20).map(|count| format!("{}canary", "../".repeat(count))));
    spellings.extend(["..", "../", "../.", "../..", "dir/../..", "dir/deep/../../.."].map(str::to_owned));
    assert!(spellings.len() >= 60);
    for target in Target::all().await {
        for spelling in &spellings {
            target.refused(spelling, &[ErrorKind::Forbidden]).await;
        }
    }
}

#[tokio::test]
async fn refuses_traversal_from_a_directory_below() {
    for target in Target::all().await {
        let below = target.root.join("dir/deep");
        for path in ["../../../canary", "../../../outside/canary", "../../../ws-evil/canary", "../../.."] {
            let place = claw_core::port::FilePlace { directory: &below, ..target.place() };
            let refused = target.files.read(&place, path).await.unwrap_err();
            assert_eq!(refused.kind, ErrorKind::Forbidden, "{path}");
        }
        let outside = target.around.join("outside");
        let place = claw_core::port::FilePlace { directory: &outside, ..target.place() };
        for path in ["canary", "./canary", "../ws/dir/file"] {
            let refused = target.files.read(&place, path).await.unwrap_err();
            assert_eq!(refused.kind, ErrorKind::Forbidden, "{path}, from a directory outside");
        }
    }
}

#[tokio::test]
async fn look_alikes_of_dots_and_slashes_are_names() {
    for target in Target::all().await {
        for path in LOOKALIKES {
            target.attack(path).await;
        }
    }
}

#[tokio::test]
async fn refuses_absolute_paths() {
    for target in Target::all().await {
        let around = target.around.display();
        let mut paths: Vec<String> = DOWNS.iter().map(|down| format!("{around}/{down}")).collect();
        paths.extend(DOWNS.iter().map(|down| format!("{around}/ws/../{down}")));
        paths.extend(DOWNS.iter().map(|down| format!("//{around}/./{down}")));
        paths.extend(
            ["/", "//", "/.", "/etc/passwd", "/etc/shadow", "//etc/passwd", "/tmp"].map(str::to_owned),
        );
        for path in paths {
            target.refused(&path, &[ErrorKind::Forbidden]).await;
        }
        let inside = format!("{around}/ws/dir/file");
        target.files.write(&target.place(), &inside, b"inside").await.unwrap();
        assert_eq!(target.text(&inside).await.unwrap(), "inside");
    }
}

#[tokio::test]
async fn refuses_a_sibling_whose_name_begins_like_the_workspace() {
    for target in Target::all().await {
        let root = target.root.display();
        for path in ["-evil/canary", "-evil", "-evil/", "-evil//canary", "-evil/../outside/canary"] {
            target.refused(&format!("{root}{path}"), &[ErrorKind::Forbidden]).await;
        }
        for path in ["../ws-evil/canary", "dir/../../ws-evil/canary"] {
            target.refused(path, &[ErrorKind::Forbidden]).await;
        }
    }
}

#[tokio::test]
async fn refuses_nul_wherever_it_is() {
    for target in Target::all().await {
        for path in
            ["\0", "dir/file\0", "dir/file\0.txt", "\0../canary", "../canary\0", "dir\0/file", "a/\0/b"]
        {
            target.refused(path, &[ErrorKind::Invalid]).await;
        }
        assert_eq!(target.text("dir/file").await.unwrap(), "inside");
    }
}

#[tokio::test]
async fn refuses_names_of_4096_bytes() {
    for target in Target::all().await {
        for length in [256, 4095, 4096, 4097, 100_000] {
            let name = "n".repeat(length);
            for path in
                [name.clone(), format!("dir/{name}"), format!("{name}/file"), format!("{name}/../../canary")]
            {
                target.refused(&path, &[ErrorKind::Invalid, ErrorKind::Forbidden]).await;
            }
        }
        let long = target.text(&"n".repeat(100_000)).await.unwrap_err();
        assert!(long.message.len() < 1000, "a message does not repeat all of it");
    }
}

#[tokio::test]
async fn long_paths_of_short_names_lead_where_they_say() {
    for target in Target::all().await {
        for count in [1, 2000, 5000] {
            let inside = format!("{}file", "./../dir/".repeat(count)).replacen("./../", "", 1);
            assert_eq!(target.text(&inside).await.unwrap(), "inside", "{count}");
            let out = format!("{}../../canary", "dir/../".repeat(count));
            target.refused(&out, &[ErrorKind::Forbidden]).await;
        }
    }
}

#[tokio::test]
async fn a_name_in_another_case_or_unicode_form_is_another_file() {
    for target in Target::all().await {
        let pairs =
            [("Makefile", "makefile"), ("caf\u{e9}", "cafe\u{301}"), ("K", "\u{212a}"), ("ﬁle", "file")];
        for (one, other) in pairs {
            target.files.write(&target.place(), one, one.as_bytes()).await.unwrap();
            assert_eq!(target.text(other).await.unwrap_err().kind, ErrorKind::NotFound, "{other}");
            target.files.write(&target.place(), other, other.as_bytes()).await.unwrap();
            assert_eq!(target.text(one).await.unwrap(), one);
        }
        let shouted = target.root.display().to_string().replace("/ws", "/WS");
        target.refused(&format!("{shouted}/dir/file"), &[ErrorKind::Forbidden]).await;
    }
}

#[tokio::test]
async fn goes_as_deep_as_a_tree_is() {
    for target in Target::all().await {
        // 200 levels, and a path longer than the kernel takes at once.
        for (name, levels) in [("d".to_owned(), 200), ("n".repeat(250), 40)] {
            let directory = format!("{name}/").repeat(levels);
            let file = format!("{directory}file");
            target.files.write(&target.place(), &file, b"deep").await.unwrap();
            assert_eq!(target.text(&file).await.unwrap(), "deep");
            let up = format!("{directory}{}dir/file", "../".repeat(levels));
            assert_eq!(target.text(&up).await.unwrap(), "inside");
            let out = format!("{directory}{}canary", "../".repeat(levels + 1));
            target.refused(&out, &[ErrorKind::Forbidden]).await;
            target.files.remove(&target.place(), &file).await.unwrap();
        }
        assert!(target.outside().await.values().any(|bytes| bytes == CANARY.as_bytes()));
    }
}
