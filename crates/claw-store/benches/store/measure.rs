//! Times, and how they are printed.

use std::time::Instant;

/// Times in milliseconds.
#[derive(Default)]
pub(crate) struct Times(Vec<f64>);

impl Times {
    pub(crate) fn add(&mut self, milliseconds: f64) {
        self.0.push(milliseconds);
    }

    pub(crate) fn extend(&mut self, times: Times) {
        self.0.extend(times.0);
    }

    /// The time that this share of all does not exceed.
    pub(crate) fn at(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let place = (sorted.len() as f64 * share).ceil() as usize;
        sorted[place.clamp(1, sorted.len()) - 1]
    }

    pub(crate) fn median(&self) -> f64 {
        self.at(0.5)
    }

    pub(crate) fn most(&self) -> f64 {
        self.at(1.0)
    }

    pub(crate) fn print(&self, name: &str) {
        let (median, late, most) = (self.median(), self.at(0.99), self.most());
        println!("{name}\t{median:.3}\tms median\t{late:.3}\tms p99\t{most:.3}\tms at most");
    }
}

/// How long one run takes, in milliseconds.
pub(crate) async fn time(run: impl Future) -> f64 {
    let begun = Instant::now();
    run.await;
    begun.elapsed().as_secs_f64() * 1e3
}

/// Times of two that take turns, so that what else the machine does meets both. Each begins with a turn that
/// does not count.
pub(crate) async fn by_turns(
    (turns, each): (usize, usize),
    mut ours: impl AsyncFnMut(),
    mut theirs: impl AsyncFnMut(),
) -> (Times, Times) {
    let (mut one, mut other) = (Times::default(), Times::default());
    for turn in 0..=turns {
        for _ in 0..each {
            let took = time(ours()).await;
            if turn > 0 {
                one.add(took);
            }
        }
        for _ in 0..each {
            let took = time(theirs()).await;
            if turn > 0 {
                other.add(took);
            }
        }
    }
    (one, other)
}

/// Prints ours, theirs and the ratio of the medians.
pub(crate) fn compare(name: &str, beside: &str, (ours, theirs): &(Times, Times), target: &str) {
    ours.print(name);
    theirs.print(&format!("{name}, {beside}"));
    println!("{name} / {beside}\t{:.2}\tx\ttarget {target}", ours.median() / theirs.median());
}

/// Numbers that are the same every time.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new() -> Self {
        Self(0x5eed)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
