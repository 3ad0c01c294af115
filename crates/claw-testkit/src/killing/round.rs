//! Players as processes: started, killed, started again, and their steps collected.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use claw_core::store::Worker;
use claw_core::{BootId, NodeId};
use serde::{Deserialize, Serialize};

use super::{Model, Operation, Played, Player, Random, Reply, Step, World};
use crate::fixture;

const BRIEF: &str = "CLAWSMITH_KILL_BRIEF";
const PLAYERS: u64 = 3;
/// The most operations of a player.
const OPERATIONS: usize = 30;
/// The prefix that tells a player's lines from other output of its program.
const MARK: &str = "~~ ";

/// The instructions to a player when it is started.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Brief {
    /// The node that it is.
    pub node: NodeId,
    world: u64,
    seed: u64,
}

/// A round: players on one store.
#[derive(Debug)]
pub struct Round {
    seed: u64,
    world: World,
}

/// A summary of rounds, for people.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// The number of rounds.
    pub rounds: usize,
    /// The number of players started.
    pub boots: usize,
    /// The number of players killed.
    pub kills: usize,
    /// The number of operations tried.
    pub tried: usize,
    /// The number of operations acknowledged.
    pub acknowledged: usize,
    /// The number of operations whose outcome is unknown.
    pub unclear: usize,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Reply(Reply),
    Operation(Box<Operation>),
}

impl Round {
    /// Creates the round of this seed.
    pub fn new(seed: u64) -> Self {
        Self { seed, world: World::new(seed) }
    }

    /// Starts players with `command`, kills them and starts some again; returns their steps. The program must
    /// call [`play_if_briefed`].
    pub fn run(&self, command: impl Fn() -> Command + Sync, report: &mut Report) -> Model<'_> {
        let lives: Vec<(Vec<Step>, Report)> = thread::scope(|scope| {
            let live = |n| {
                let command = &command;
                move || self.live(n, command)
            };
            let lives: Vec<_> = (1..=PLAYERS).map(|n| scope.spawn(live(n))).collect();
            lives.into_iter().map(|life| life.join().expect("a life ends")).collect()
        });
        let mut model = Model::new(&self.world);
        report.rounds += 1;
        for (steps, life) in lives {
            report.boots += life.boots;
            report.kills += life.kills;
            report.tried += steps.len();
            report.acknowledged += steps.iter().filter(|step| step.happened().is_some()).count();
            report.unclear += steps.iter().filter(|step| step.is_unclear()).count();
            model.add(steps);
        }
        model
    }

    /// Compares the store with the steps, does the remaining work, and compares again.
    pub async fn check(&self, store: &impl Played, model: &mut Model<'_>) -> Vec<String> {
        let mut findings = model.check(&model.look(store).await.expect("the store can be read"));
        let worker = fixture::worker("drain");
        let steps = Player::new(store, &self.world, worker, Random::part(self.seed, 99)).drain().await;
        model.add(steps);
        let seen = model.look(store).await.expect("the store can be read");
        findings.extend(model.check(&seen));
        findings.extend(model.check_drained(&seen));
        findings
    }

    /// Runs the boots of one player, one after the other.
    fn live(&self, n: u64, command: impl Fn() -> Command) -> (Vec<Step>, Report) {
        let mut random = Random::part(self.seed, n);
        let (mut steps, mut report) = (Vec::new(), Report::default());
        // Two of three share a node: they write one chain, and each reclaims what the other held.
        let node = NodeId::new(format!("node-{}", n / 2)).expect("a node id");
        loop {
            let brief = Brief { node: node.clone(), world: self.seed, seed: random.number() };
            let brief = serde_json::to_string(&brief).expect("a brief is JSON");
            let child = command().env(BRIEF, brief).stdout(Stdio::piped()).spawn().expect("a player starts");
            let kill = (!random.one_in(4))
                .then(|| Kill { lines: 1 + random.below(OPERATIONS * 3 / 2), aim: random.below(200) as u32 });
            let (said, killed) = listen(child, kill);
            steps.extend(said);
            report.boots += 1;
            report.kills += usize::from(killed);
            if !killed || random.one_in(2) {
                return (steps, report);
            }
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rounds, boots, kills, tried, acknowledged, unclear } = self;
        write!(f, "{rounds} rounds: {boots} boots, {kills} killed; {tried} operations tried, ")?;
        write!(f, "{acknowledged} acknowledged, {unclear} unclear")
    }
}

/// The moment to kill a player: after it wrote so many lines, and this far into its next operation, in
/// hundredths of what its operations took. Without an aim all would die at the beginning of an operation.
#[derive(Debug, Clone, Copy)]
struct Kill {
    lines: usize,
    aim: u32,
}

/// Reads a player's lines until it ends or is to be killed. Lines written before it died are read too.
fn listen(mut child: Child, kill: Option<Kill>) -> (Vec<Step>, bool) {
    let mut steps: Vec<Step> = Vec::new();
    let (mut heard, mut killed) = (0, false);
    let mut lines = BufReader::new(child.stdout.take().expect("its output is a pipe"));
    let mut line = String::new();
    let (mut began, mut took) = (Instant::now(), Duration::ZERO);
    while lines.read_line(&mut line).expect("a pipe can be read") > 0 {
        // A last line without its end was not written: the player died in it.
        if let Some(text) = line.strip_prefix(MARK).filter(|text| text.ends_with('\n')) {
            heard += 1;
            match serde_json::from_str(text).expect("a player speaks JSON") {
                Line::Operation(operation) => {
                    began = Instant::now();
                    steps.push(Step { operation: *operation, reply: None });
                }
                Line::Reply(reply) => {
                    took += began.elapsed();
                    steps.last_mut().expect("it tried something").reply = Some(reply);
                }
            }
        }
        if let Some(Kill { aim, .. }) = kill.filter(|kill| !killed && heard >= kill.lines) {
            thread::sleep(took * aim / (100 * u32::try_from(steps.len()).unwrap_or(u32::MAX)));
            child.kill().expect("a player can be killed");
            killed = true;
        }
        line.clear();
    }
    let status = child.wait().expect("a player ends");
    assert!(killed || status.success(), "a player ended by itself: {status}");
    (steps, killed)
}

/// Plays, if this process was started as a player; `open` opens the store. Otherwise does nothing.
pub async fn play_if_briefed<S: Played>(open: impl AsyncFnOnce(&Brief) -> S) {
    let Ok(brief) = std::env::var(BRIEF) else { return };
    let brief: Brief = serde_json::from_str(&brief).expect("a brief");
    // One unbuffered write for each line: it is out, or it is not.
    let mut out = File::from(io::stdout().as_fd().try_clone_to_owned().expect("there is an output"));
    out.write_all(b"\n").expect("someone listens");
    let store = open(&brief).await;
    let world = World::new(brief.world);
    let worker = Worker { node: brief.node, boot: BootId::new() };
    let mut player = Player::new(&store, &world, worker, Random::new(brief.seed));
    let mut say = |line: &Line| {
        let text = format!("{MARK}{}\n", serde_json::to_string(line).expect("a line is JSON"));
        out.write_all(text.as_bytes()).expect("someone listens");
    };
    player
        .play(OPERATIONS, |operation, reply| match reply {
            None => say(&Line::Operation(Box::new(operation.clone()))),
            Some(reply) => say(&Line::Reply(reply.clone())),
        })
        .await;
}
