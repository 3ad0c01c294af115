use serde_json::json;

use super::*;

#[test]
fn the_digest_covers_everything_that_decides() {
    let elsewhere = Facts { workspace: "/w".into(), sandboxed: true, ..Facts::default() };
    let (args, other_args) = (json!({"path": "a.txt"}), json!({"path": "b.txt"}));
    let (plan, other_plan) = (Plan::write("a.txt"), Plan::write("b.txt"));
    let sight = [Sight {
        target: Target::Sandbox,
        path: None,
        identity: Some("host".into()),
        credential: None,
        writable: false,
    }];
    let base = Identity {
        definition: Digest::of_bytes(b"edit"),
        place: Digest::of(&Facts::default()),
        left: Effects::ALL,
        args: &args,
        plan: &plan,
        sights: &[],
    };
    assert_eq!(base.digest(), base.clone().digest());
    let fewer = Plan { effects: Effects::NONE, ..plan.clone() };
    let given = Plan { given: Some(Box::default()), ..plan.clone() };
    let others = [
        Identity { definition: Digest::of_bytes(b"edit2"), ..base },
        Identity { place: Digest::of(&elsewhere), ..base },
        Identity { left: Effects::NONE, ..base },
        Identity { args: &other_args, ..base },
        Identity { plan: &other_plan, ..base },
        Identity { plan: &fewer, ..base },
        Identity { plan: &given, ..base },
        Identity { sights: &sight, ..base },
    ];
    for other in others {
        assert_ne!(base.digest(), other.digest(), "{other:?}");
    }
}

#[test]
fn the_digest_does_not_depend_on_key_order() {
    let a: Value = serde_json::from_str(r#"{"a":1,"b":{"c":2,"d":3}}"#).unwrap();
    let b: Value = serde_json::from_str(r#"{"b":{"d":3,"c":2},"a":1}"#).unwrap();
    assert_eq!(Digest::of(&a), Digest::of(&b));
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
