use serde_json::json;

use super::*;

fn digest(tool: &str, args: Value, plan: &Plan) -> Digest {
    Digest::of_call(tool, &args, plan, &[])
}

#[test]
fn digest_covers_tool_arguments_plan_and_sights() {
    let plan = Plan::write("a.txt");
    let base = digest("edit", json!({"path": "a.txt"}), &plan);
    assert_eq!(base, digest("edit", json!({"path": "a.txt"}), &plan));
    assert_ne!(base, digest("edit2", json!({"path": "a.txt"}), &plan));
    assert_ne!(base, digest("edit", json!({"path": "b.txt"}), &plan));
    assert_ne!(base, digest("edit", json!({"path": "a.txt"}), &Plan::write("b.txt")));
    let sight =
        Sight { target: Target::Sandbox, path: None, identity: Some("host".into()), credential: None };
    assert_ne!(base, Digest::of_call("edit", &json!({"path": "a.txt"}), &plan, &[sight]));
}

#[test]
fn digest_does_not_depend_on_key_order() {
    let a: Value = serde_json::from_str(r#"{"a":1,"b":{"c":2,"d":3}}"#).unwrap();
    let b: Value = serde_json::from_str(r#"{"b":{"d":3,"c":2},"a":1}"#).unwrap();
    assert_eq!(digest("t", a, &Plan::read()), digest("t", b, &Plan::read()));
}

#[test]
fn digest_round_trips_as_text() {
    let digest = Digest::of_bytes(b"x");
    let text = serde_json::to_string(&digest).unwrap();
    assert_eq!(serde_json::from_str::<Digest>(&text).unwrap(), digest);
    for bad in ["\"\"", "\"sha256:00\"", "\"md5:00\"", &format!("\"sha256:{}\"", "é".repeat(32))] {
        assert!(serde_json::from_str::<Digest>(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_tool_that_plans_nothing_is_granted_nothing() {
    const META: Meta = Meta::new("mystery", super::super::Group::Custom);
    let plan = Plan::of(&META);
    assert_eq!(plan.effects, Effects::ALL);
    assert!(plan.asks.is_empty());
}
