//! The cost of the store against the bare driver doing the same work in the same run; its cost when it holds
//! much; the time until a worker wakes; its memory and disk usage.
//!
//! Prints `name<TAB>value<TAB>unit` lines. PostgreSQL is measured if `CLAWSMITH_TEST_POSTGRES` names one; its
//! databases are dropped at the end. Words after `--` choose what runs: `append`, `syncs`, `claim`, `wake`,
//! `growth`, `idle`, `sqlite`, `postgres`.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up should stop")]

mod append;
mod bare;
mod claim;
mod database;
mod fill;
mod growth;
mod idle;
mod measure;
mod syncs;
mod wake;

use database::Server;

const PARTS: [&str; 6] = ["append", "syncs", "claim", "wake", "growth", "idle"];
const BACKENDS: [&str; 2] = ["sqlite", "postgres"];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    if arguments.first().is_some_and(|word| word == idle::CHILD) {
        return idle::child(&arguments[1..]);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(run(&arguments));
}

async fn run(words: &[String]) {
    let chosen = |among: &[&str], word: &str| {
        let mut said = words.iter().filter(|word| among.contains(&word.as_str())).peekable();
        said.peek().is_none() || said.any(|said| said == word)
    };
    let server = Server::named();
    let server = server.as_ref().filter(|_| chosen(&BACKENDS, "postgres"));
    if server.is_none() {
        println!("postgres: not measured; CLAWSMITH_TEST_POSTGRES names none, or it was not chosen");
    }
    for part in PARTS.into_iter().filter(|part| chosen(&PARTS, part)) {
        if chosen(&BACKENDS, "sqlite") {
            match part {
                "append" => append::sqlite().await,
                "syncs" => syncs::sqlite().await,
                "claim" => claim::sqlite().await,
                "wake" => wake::sqlite().await,
                "growth" => growth::sqlite().await,
                _ => idle::sqlite().await,
            }
        }
        if let Some(server) = server {
            match part {
                "append" => append::postgres(server).await,
                // PostgreSQL shares its syncs by itself.
                "syncs" => {}
                "claim" => claim::postgres(server).await,
                "wake" => wake::postgres(server).await,
                "growth" => growth::postgres(server).await,
                _ => idle::postgres(server).await,
            }
        }
    }
}
