//! The analysis of shell commands against a real bash.
//!
//! Commands of both corpora are mutated and judged; what the judgement does not refuse is run by bash in a
//! throw-away root, where every program only notes how it was started. Each vector of arguments that ran must
//! be in the analysis, or the verdict must not have been "allow".
//!
//! Every mutant is judged twice: by the rules as they are, which is the promise, and with every rule off that
//! can be, so that dangerous commands are run as well and their reading is put to the test.

mod mutate;
mod root;

use std::collections::BTreeMap;

use claw_policy::shell::{Decision, RULES, Rules, ShellConfig, Verdict, analyse, corpus};

use mutate::Mutator;
use root::Root;

/// How many mutants there are unless `CLAWSMITH_ORACLE_MUTANTS` says otherwise.
const MUTANTS: usize = 20_000;
/// How many share a namespace.
const BATCH: usize = 500;
/// How many mutants are between two words about it.
const STEP: usize = 50_000;

struct Subject {
    command: String,
    verdict: Verdict,
    /// With the rules as they are.
    allowed: bool,
}

#[test]
fn every_program_that_ran_is_in_the_analysis() {
    let wanted = match std::env::var("CLAWSMITH_ORACLE_MUTANTS") {
        Ok(number) => number.parse().expect("CLAWSMITH_ORACLE_MUTANTS is a number"),
        Err(_) => MUTANTS,
    };
    let seed = match std::env::var("CLAWSMITH_ORACLE_SEED") {
        Ok(seed) => seed.parse().expect("CLAWSMITH_ORACLE_SEED is a number"),
        Err(_) => 0x5eed,
    };
    let corpus: Vec<String> = corpus::dangerous().chain(corpus::harmless()).collect();
    let Tally { judged, ran, allowed, vectors, mut escapes } = judge(wanted, seed, corpus);
    println!(
        "{judged} mutants judged, {ran} run, {allowed} of them allowed; {vectors} programs ran, {} not foreseen",
        escapes.len()
    );
    assert!(vectors * 4 > judged, "only {vectors} programs ran of {judged} mutants: the root is broken");
    assert!(
        allowed * 10 > judged,
        "only {allowed} of {judged} mutants are allowed: the mutations are too rough"
    );
    escapes.truncate(20);
    assert!(escapes.is_empty(), "seed {seed}: programs ran that were not foreseen\n{}", escapes.join("\n"));
}

/// What came of all mutants so far.
#[derive(Default)]
struct Tally {
    judged: usize,
    ran: usize,
    allowed: usize,
    vectors: usize,
    escapes: Vec<String>,
}

/// Judges the mutants, and runs those that are not held back.
fn judge(wanted: usize, seed: u64, corpus: Vec<String>) -> Tally {
    let root = Root::new(&corpus);
    let (rules, open) = (Rules::default(), everything_off());
    let mut mutator = Mutator::new(seed, corpus);
    let mut tally = Tally::default();
    let mut turns = 1..=wanted;
    while !turns.is_empty() {
        let (mut judged, mut batch) = (0, Vec::new());
        for turn in turns.by_ref().take(BATCH) {
            judged += 1;
            let command = mutator.next(turn);
            let verdict = analyse(&command, &open);
            // Asked even so, or a fork bomb: held back by any rules, and not for running.
            if verdict.decision == Decision::Allow {
                let allowed = analyse(&command, &rules).decision == Decision::Allow;
                batch.push(Subject { command, verdict, allowed });
            }
        }
        let commands: Vec<&str> = batch.iter().map(|subject| subject.command.as_str()).collect();
        let logged = root.run(&commands);
        tally.judged += judged;
        tally.ran += batch.len();
        tally.allowed += batch.iter().filter(|subject| subject.allowed).count();
        for (subject, logged) in batch.iter().zip(logged) {
            tally.vectors += logged.len();
            for argv in logged.into_iter().filter(|argv| !subject.verdict.covers(argv)) {
                tally.escapes.push(format!(
                    "{}{:?}\n  ran {argv:?}\n  found {:?}",
                    if subject.allowed { "ALLOWED " } else { "" },
                    subject.command,
                    shown(&subject.verdict)
                ));
            }
        }
        if tally.judged % STEP < judged {
            println!("{} of {wanted} mutants", tally.judged);
        }
    }
    tally
}

/// Rules that hold nothing back but what cannot be understood, what would not end, and variables that make a
/// shell run their values.
fn everything_off() -> Rules {
    let mut config = ShellConfig::default();
    let groups: BTreeMap<&str, bool> = RULES.iter().map(|rule| (rule.group(), rule.can_be_off())).collect();
    for (group, _) in
        groups.iter().filter(|(group, can)| **can && !matches!(**group, "fork-bomb" | "environment"))
    {
        config.off.insert((*group).to_owned(), "run in a throw-away root".to_owned());
    }
    Rules::compile(&config).expect("groups that can be off")
}

fn shown(verdict: &Verdict) -> Vec<Vec<String>> {
    verdict.commands.iter().map(|simple| simple.argv.iter().map(ToString::to_string).collect()).collect()
}
