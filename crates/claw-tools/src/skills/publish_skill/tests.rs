use claw_core::tool::Effects;
use serde_json::json;

use super::*;
use crate::fixture::{OneSkill, text};

#[tokio::test]
async fn tells_the_version_and_the_lines_that_a_person_was_shown() {
    let args = json!({ "path": "skills/pdf-forms", "visibility": "tenant" });
    let told = text(OneSkill::fixture().run::<PublishSkill>(args).await);
    insta::assert_snapshot!(told, @r"
    skill `pdf-forms` is published as version 3 (tenant); a person was shown these lines:
    - SKILL.md:4: hides something: silently
    ");
}

#[test]
fn its_plan_names_the_directory() {
    let args: Args = serde_json::from_value(json!({ "path": "skills/x" })).unwrap();
    assert_eq!(args.visibility, SkillVisibility::Private);
    let plan = PublishSkill.plan(&Facts::default(), &args);
    assert_eq!(plan.asks, [Ask::Publish { path: "skills/x".to_owned() }]);
    assert!(Effects::of(&[Effect::Write]).within(plan.all_effects(PublishSkill::META.effects)));
}
