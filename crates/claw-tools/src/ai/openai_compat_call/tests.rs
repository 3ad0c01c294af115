use std::sync::Arc;

use super::*;
use crate::fixture::schema;

fn facts(settings: Value) -> Facts {
    Facts { settings: Arc::new(settings), ..Facts::default() }
}

fn args(args: Value) -> Args {
    Args::deserialize(args).unwrap()
}

#[test]
fn names_where_the_endpoint_is() {
    let origin = Origin { scheme: "https".into(), host: "api.example.com".into(), port: 443 };
    let facts = facts(json!({ "origins": { "rank": origin } }));
    let plan = OpenaiCompatCall.plan(&facts, &args(json!({ "endpoint": "rank" })));
    assert_eq!(plan.asks, [Ask::Host { origin }]);
    assert_eq!(plan.effects, Effects::of(&[Effect::Network, Effect::Spend]));
}

#[test]
fn asks_for_nothing_where_it_is_not_known() {
    for settings in [Value::Null, json!({ "origins": { "rank": "https://api.example.com" } })] {
        let plan = OpenaiCompatCall.plan(&facts(settings), &args(json!({ "endpoint": "rank" })));
        assert_eq!(plan, Plan { effects: Effects::NONE, asks: Vec::new(), given: None });
    }
    assert!(OpenaiCompatCall.plan(&facts(Value::Null), &args(json!({}))).asks.is_empty());
}

#[test]
fn spec() {
    insta::assert_snapshot!(schema::<OpenaiCompatCall>(), @r#"
    {
      "additionalProperties": false,
      "properties": {
        "body": {
          "additionalProperties": true,
          "description": "The whole request body, if the endpoint does not define one.",
          "type": [
            "object",
            "null"
          ]
        },
        "endpoint": {
          "description": "Name of the endpoint. Leave out to list them.",
          "type": [
            "string",
            "null"
          ]
        },
        "read": {
          "description": "The field of the answer to return, as a JSON pointer like `/data/0`, instead of the endpoint's.",
          "type": [
            "string",
            "null"
          ]
        },
        "values": {
          "additionalProperties": true,
          "default": {},
          "description": "Values for the placeholders in the endpoint's body, by name.",
          "type": "object"
        }
      },
      "type": "object"
    }
    "#);
}
