use claw_core::tool::ErrorKind;
use serde_json::json;

use super::*;
use crate::fixture::{OneSkill, failure, text};

#[tokio::test]
async fn lists_what_fits() {
    let found = text(OneSkill::fixture().run::<SkillSearch>(json!({ "query": "pdf" })).await);
    assert_eq!(found, "1 skill found; use it with `use_skill`:\n- pdf-forms (store): Fill PDF forms.");
    let none = text(OneSkill::fixture().run::<SkillSearch>(json!({ "query": "cooking" })).await);
    assert!(none.starts_with("no skill matches `cooking`"), "{none}");
    failure(OneSkill::fixture().run::<SkillSearch>(json!({ "query": " " })).await, ErrorKind::Invalid);
}
