use std::fmt::Write as _;

use claw_core::graph::{Entity, EntityFacts, Relation, RelationFacts};
use claw_core::port::MemoryOwner;
use claw_core::store::RelationEnd;
use claw_core::{EntityId, RelationId};
use serde_json::json;

use super::formats::{GraphFormat, Writer, read};
use super::{facts_of, scrub_facts};

/// Names that other programs would take for something else.
const HOSTILE: [&str; 8] = [
    "=HYPERLINK(\"http://evil\")",
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "'=1",
    "x\"]; evil [label=\"y",
    "back\\slash\\",
    "comma, \"quote\" ; ümlaut",
];

fn entity(n: u8, name: &str) -> Entity {
    let said = EntityFacts {
        aliases: vec![format!("{name} too")],
        description: name.to_owned(),
        external_id: Some(name.to_owned()),
        confidence: 0.25,
        properties: [(name.to_owned(), json!([name]))].into(),
        valid_from: claw_core::graph::time("2020-02-02"),
        ..EntityFacts::new(name, "thing")
    };
    Entity { id: EntityId::from_bytes([n; 16]), owner: MemoryOwner::User, said, sources: vec![], mentions: 1 }
}

fn written(format: GraphFormat) -> String {
    let mut writer = Writer::new(format).unwrap();
    for (name, n) in HOSTILE.iter().zip(1..) {
        writer.entity(&entity(n, name)).unwrap();
    }
    let relation = Relation {
        id: RelationId::new(),
        owner: MemoryOwner::User,
        source: EntityId::from_bytes([1; 16]),
        target: EntityId::from_bytes([2; 16]),
        said: RelationFacts { description: "=1+1".to_owned(), ..RelationFacts::new("=knows") },
        sources: vec![],
        mentions: 1,
    };
    writer.relation(&relation).unwrap();
    writer.end().unwrap()
}

#[test]
fn hostile_names_come_back_as_they_were() {
    for format in [GraphFormat::JsonLines, GraphFormat::Csv] {
        let facts = facts_of(read(format, &written(format)).unwrap()).unwrap();
        let expected: Vec<EntityFacts> = HOSTILE.iter().map(|name| entity(1, name).said).collect();
        let said: Vec<EntityFacts> = facts.entities.into_iter().map(|entity| entity.said).collect();
        assert_eq!(said, expected, "{format:?}");
        let [relation] = facts.relations.as_slice() else { panic!("{:?}", facts.relations) };
        assert_eq!((relation.source, relation.target), (RelationEnd::New(0), RelationEnd::New(1)));
        assert_eq!((relation.said.kind.as_str(), relation.said.description.as_str()), ("=knows", "=1+1"));
    }
}

#[test]
fn refuses_csv_formulas() {
    let text = written(GraphFormat::Csv);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    for record in reader.records() {
        for cell in &record.unwrap() {
            assert!(!cell.starts_with(['=', '+', '-', '@', '\t', '\r']), "{cell}");
        }
    }
}

#[test]
fn refuses_dot_injected_by_a_name() {
    let text = written(GraphFormat::Dot);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("digraph knowledge {"));
    for line in lines.filter(|line| line.contains("label=")) {
        // Outside of quotes there is only what we wrote.
        let (mut outside, mut is_inside, mut is_escaped) = (String::new(), false, false);
        for c in line.chars() {
            match c {
                '"' if !is_escaped => is_inside = !is_inside,
                _ if !is_inside => outside.push(c),
                _ => {}
            }
            is_escaped = is_inside && c == '\\' && !is_escaped;
        }
        assert!(!is_inside, "{line}");
        assert!(["   [label=];", "   ->  [label=];"].contains(&outside.as_str()), "{outside}: {line}");
    }
}

#[track_caller]
fn refused(format: GraphFormat, text: &str, why: &[&str]) {
    let error = read(format, text).and_then(facts_of).unwrap_err().to_string();
    for why in why {
        assert!(error.contains(why), "{error}");
    }
    assert!(error.len() < 2_000, "{}", error.len());
}

#[test]
fn malformed_lines_are_named_and_nothing_is_imported() {
    let lines = concat!(
        "{\"entity\": {\"name\": \"Anna\", \"type\": \"person\"}}\n",
        "\n",
        "{\"entity\": {\"name\": \"Ben\"}}\n",
        "not json\n",
        "{\"entity\": {\"name\": \"C\", \"type\": \"x\", \"admin\": true}}\n",
        "{\"relation\": {\"type\": \"knows\"}, \"source\": \"Anna\", \"target\": \"Nobody\"}\n",
        "{\"relation\": {\"type\": \"knows\"}, \"source\": \"Anna\"}\n",
        "{}\n",
        "{\"entity\": {\"name\": \"Anna\", \"type\": \"person\", \"confidence\": 7}}\n",
    );
    let why = [
        "nothing was imported",
        "line 3: missing field `type`",
        "line 4: expected ident",
        "line 5: unknown field `admin`",
        "line 6: `target` is `Nobody`",
        "line 7: `target` is missing",
        "line 8: it must have either",
        "line 9: `confidence` is 7",
    ];
    refused(GraphFormat::JsonLines, lines, &why);
    let twice = "{\"id\": \"a\", \"entity\": {\"name\": \"A\", \"type\": \"x\"}}\n{\"id\": \"a\", \"entity\": {\"name\": \"B\", \"type\": \"x\"}}";
    refused(GraphFormat::JsonLines, twice, &["line 2: `a` is there twice"]);
    let long = format!("{{\"entity\": {{\"name\": \"{}\", \"type\": \"x\"}}}}", "x".repeat(1_000_000));
    refused(GraphFormat::JsonLines, &long, &["at most 65536 are allowed"]);
    let mut many = String::new();
    for _ in 0..500 {
        let _ = writeln!(many, "[");
    }
    refused(GraphFormat::JsonLines, &many, &["and 490 more"]);
    let deep = "[".repeat(60_000);
    refused(GraphFormat::JsonLines, &deep, &["line 1"]);
    refused(GraphFormat::Csv, "record,name,evil\n", &["`evil` is not a known column"]);
    refused(
        GraphFormat::Csv,
        "record,type,name\nentity,x\nthing,x,y\nentity,x,y,z\n",
        &["line 2", "line 3", "line 4"],
    );
    refused(
        GraphFormat::Csv,
        "record,type,name,valid_from\nentity,x,y,soon\n",
        &["`valid_from` is not a time"],
    );
    refused(GraphFormat::Dot, "digraph {}", &["DOT files can only be exported"]);
}

#[test]
fn every_text_of_facts_is_scrubbed() {
    let line = "{\"entity\": {\"name\": \"sk\", \"type\": \"sk\", \"aliases\": [\"sk\"], \"description\": \"sk\", \"external_id\": \"sk\", \"properties\": {\"a\": [{\"b\": \"sk\"}]}}}";
    let mut facts = facts_of(read(GraphFormat::JsonLines, line).unwrap()).unwrap();
    scrub_facts(&mut facts, &|text| text.replace("sk", "*"));
    assert!(!serde_json::to_string(&facts.entities[0].said).unwrap().contains("sk"));
}
