use claw_core::tool::ErrorKind;
use serde_json::json;

use super::*;
use crate::fixture::{OneSkill, failure, schema, text};

#[tokio::test]
async fn gives_the_body_the_files_and_the_limits() {
    let told = text(OneSkill::fixture().run::<UseSkill>(json!({ "name": "pdf-forms" })).await);
    insta::assert_snapshot!(told, @r"
    Skill `pdf-forms` (store) is in use. Its instructions:

    # Forms

    Run the script.

    ---
    Its files, read-only in `/data/skills/abc/pdf-forms` (read with `read_file`, run with `exec`; write to the workspace):
    - scripts/fill.py (120 bytes)
    It is made for: Python 3
    While it is in use only these tools may be called: Read, Bash(python3:*). End it with `use_skill` and `end`.
    ");
}

#[tokio::test]
async fn refuses_names_that_are_paths() {
    for name in ["../../etc", "/etc/passwd", "a/b", "", "UPPER", "a\0b"] {
        let told =
            failure(OneSkill::fixture().run::<UseSkill>(json!({ "name": name })).await, ErrorKind::Invalid);
        assert!(told.contains("is not a valid skill name"), "{told}");
    }
    failure(OneSkill::fixture().run::<UseSkill>(json!({ "name": "other" })).await, ErrorKind::NotFound);
}

#[tokio::test]
async fn ends_a_skill() {
    let told = text(OneSkill::fixture().run::<UseSkill>(json!({ "end": true })).await);
    assert_eq!(told, "skill `pdf-forms` is no longer in use");
}

#[test]
fn the_schema_is_small() {
    assert!(schema::<UseSkill>().len() < 700, "{}", schema::<UseSkill>());
}
