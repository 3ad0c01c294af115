//! Cost of schemas: 100 tools rendered for each provider, and one small call checked.
//!
//! Prints `name<TAB>value<TAB>unit`, the best of several rounds.

use std::hint::black_box;
use std::time::Instant;

use claw_core::id::ToolName;
use claw_core::tool::{Group, Meta, Spec};
use claw_schema::dialect::Dialect;
use claw_schema::validate::{Validator, parse};
use serde_json::{Value, json};

const ROUNDS: usize = 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let specs: Vec<Spec> = (0..100).map(spec).collect::<Result<_, _>>()?;
    for dialect in Dialect::ALL {
        let seconds = best(1, || dialect.tools(&specs));
        println!("schemas of 100 tools, {dialect:?}\t{:.0}\tus", seconds * 1e6);
    }

    let schema = small_schema();
    let validator = Validator::compile(&schema)?;
    let check = |args| validator.check(args, &Value::clone);
    let valid = json!({ "file_path": "src/main.rs", "offset": 10, "limit": 200 });
    let slips = json!({ "filePath": "src/main.rs", "offset": "10", "limit": 200 });
    let wrong = json!({ "file_path": "src/main.rs", "offset": "ten" });
    report("compile a small schema", best(100, || Validator::compile(&schema)));
    report(
        "parse and check a valid call",
        best(10_000, || parse(r#"{"file_path":"src/main.rs","offset":10}"#, 1 << 20).map(check)),
    );
    let copy = best(10_000, || valid.clone());
    report("check a valid call", (best(10_000, || check(valid.clone())) - copy).max(0.0));
    report("check and repair a call", best(10_000, || check(slips.clone())));
    report("explain a wrong call", best(10_000, || check(wrong.clone())));
    Ok(())
}

fn report(name: &str, seconds: f64) {
    println!("{name}\t{:.0}\tns", seconds * 1e9);
}

/// Seconds per run, of the best round.
fn best<T>(runs: u32, mut work: impl FnMut() -> T) -> f64 {
    let round = |_| {
        let start = Instant::now();
        (0..runs).for_each(|_| drop(black_box(work())));
        start.elapsed().as_secs_f64() / f64::from(runs)
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

fn small_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "file_path": { "type": "string", "description": "Path relative to the workspace root." },
            "offset": { "type": ["integer", "null"], "minimum": 1, "description": "First line, counted from 1." },
            "limit": { "type": ["integer", "null"], "minimum": 1, "description": "How many lines." },
        },
        "required": ["file_path"],
        "additionalProperties": false,
    })
}

/// A tool with fields of every kind, as MCP servers have them.
fn spec(index: usize) -> Result<Spec, Box<dyn std::error::Error>> {
    let name = ToolName::new(format!("tool_{index}"))?;
    let mut schema = small_schema();
    schema["properties"]["mode"] = json!({ "oneOf": [
        { "const": "text", "description": "As text." },
        { "const": "hex", "description": "As bytes." },
    ] });
    schema["properties"]["edits"] = json!({ "type": "array", "items": { "$ref": "#/$defs/Edit" } });
    schema["properties"]["filter"] = json!({ "anyOf": [{ "$ref": "#/$defs/Edit" }, { "type": "null" }] });
    schema["$defs"] = json!({ "Edit": {
        "type": "object",
        "properties": {
            "old_text": { "type": "string", "description": "What to replace." },
            "new_text": { "type": "string", "description": "What to put there." },
            "count": { "type": "integer", "description": "How often." },
        },
        "required": ["old_text", "new_text"],
        "additionalProperties": false,
    } });
    let mut meta = Meta::of(name, Group::named("bench"));
    meta.about = "Read and change a file of the workspace, with line numbers and a preview.".into();
    Ok(Spec::with_schema(&meta, schema))
}
