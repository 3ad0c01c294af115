//! The analysis of shell commands against a real bash.
//!
//! Commands of both corpora are mutated and judged; those that are not refused are run by bash in a
//! throw-away root, where every program only records how it was started. Each argument vector that ran must
//! be in the analysis, or the verdict must not have been "allow".
//!
//! Every mutant is judged twice: by the rules as they are, which is the promise, and with every rule off that
//! can be, so that dangerous commands are run as well and their reading is put to the test.

mod mutate;
mod root;
pub(crate) mod stub;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};
use std::thread;

use claw_policy::shell::{Decision, RULES, Rules, ShellConfig, Verdict, analyse, corpus};

use mutate::Mutator;
use root::Root;

/// The number of mutants, unless `CLAWSMITH_ORACLE_MUTANTS` sets it.
const MUTANTS: usize = 20_000;
/// The number of mutants of one seed: these are judged one after the other, in parallel with other seeds.
const LANE: usize = 5_000;
/// The number of mutants that share a namespace.
const BATCH: usize = 500;
/// The number of mutants between two progress messages.
const STEP: usize = 50_000;

struct Subject {
    command: String,
    verdict: Verdict,
    /// True if the default rules allow it.
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
    let corpus: Vec<String> = corpus::dangerous().chain(corpus::harmless()).chain(corpus::found()).collect();
    let Tally { judged, ran, allowed, vectors, mut escapes } = judge(wanted, seed, &corpus);
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

/// The result of all mutants so far.
#[derive(Default)]
struct Tally {
    judged: usize,
    ran: usize,
    allowed: usize,
    vectors: usize,
    escapes: Vec<String>,
}

impl Tally {
    fn add(&mut self, other: Self, wanted: usize) {
        let before = self.judged / STEP;
        self.judged += other.judged;
        self.ran += other.ran;
        self.allowed += other.allowed;
        self.vectors += other.vectors;
        self.escapes.extend(other.escapes);
        if self.judged / STEP > before {
            println!("{} of {wanted} mutants, {} not foreseen", self.judged, self.escapes.len());
        }
    }
}

/// Judges the mutants, and runs those that are not held back. The mutants are the same for any number of
/// processors.
fn judge(wanted: usize, seed: u64, corpus: &[String]) -> Tally {
    let (tally, lanes) = (Mutex::<Tally>::default(), AtomicUsize::new(0));
    let judges = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for judge in 0..judges {
            let (tally, lanes) = (&tally, &lanes);
            scope.spawn(move || {
                let root = Root::new(corpus, judge);
                loop {
                    let lane = lanes.fetch_add(1, Ordering::Relaxed);
                    let mut turns = lane * LANE..wanted.min((lane + 1) * LANE);
                    if turns.is_empty() {
                        return;
                    }
                    let mut mutator = Mutator::new(seed.wrapping_add(lane as u64), corpus.to_vec());
                    while !turns.is_empty() {
                        let batch = turns.by_ref().take(BATCH).map(|turn| mutator.next(turn)).collect();
                        let done = judge_batch(&root, batch);
                        tally.lock().unwrap().add(done, wanted);
                    }
                }
            });
        }
    });
    tally.into_inner().unwrap()
}

fn judge_batch(root: &Root, mutants: Vec<String>) -> Tally {
    static RULES_BY_DEFAULT: LazyLock<Rules> = LazyLock::new(Rules::default);
    static EVERYTHING_OFF: LazyLock<Rules> = LazyLock::new(everything_off);
    let mut tally = Tally { judged: mutants.len(), ..Tally::default() };
    let mut batch = Vec::new();
    for command in mutants {
        let verdict = analyse(&command, &EVERYTHING_OFF);
        // Asked even so, or a fork bomb: held back by any rules, and not for running.
        if verdict.decision == Decision::Allow {
            let allowed = analyse(&command, &RULES_BY_DEFAULT).decision == Decision::Allow;
            batch.push(Subject { command, verdict, allowed });
        }
    }
    let commands: Vec<&str> = batch.iter().map(|subject| subject.command.as_str()).collect();
    let logged = root.run(&commands);
    tally.ran = batch.len();
    tally.allowed = batch.iter().filter(|subject| subject.allowed).count();
    for (subject, logged) in batch.iter().zip(logged) {
        tally.vectors += logged.len();
        for argv in logged.into_iter().filter(|argv| !subject.verdict.covers(argv)) {
            let escape = format!(
                "{}{:?}\n  ran {argv:?}\n  found {:?}",
                if subject.allowed { "ALLOWED " } else { "" },
                subject.command,
                shown(&subject.verdict)
            );
            println!("{escape}");
            tally.escapes.push(escape);
        }
    }
    tally
}

/// Returns rules that hold nothing back but unintelligible commands, endless ones, and variables whose values
/// a shell runs.
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
