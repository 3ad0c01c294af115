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

/// Measures one run, in milliseconds.
pub(crate) async fn time(run: impl Future) -> f64 {
    let begun = Instant::now();
    run.await;
    begun.elapsed().as_secs_f64() * 1e3
}

/// Times of two that took turns, and how they compare in each turn: a disk that is slow for a while meets both.
#[derive(Default)]
pub(crate) struct Pair {
    ours: Times,
    theirs: Times,
    ratios: Times,
}

impl Pair {
    /// Adds a turn of each.
    pub(crate) fn turn(&mut self, ours: Times, theirs: Times) {
        self.ratios.add(ours.median() / theirs.median());
        self.ours.extend(ours);
        self.theirs.extend(theirs);
    }

    /// Prints our time, the other's, and the ratio: the median of the turns, and the range of their middle
    /// half.
    pub(crate) fn print(&self, name: &str, beside: &str, target: &str) {
        self.ours.print(name);
        self.theirs.print(&format!("{name}, {beside}"));
        let (low, ratio, high) = (self.ratios.at(0.25), self.ratios.median(), self.ratios.at(0.75));
        println!("{name} / {beside}\t{ratio:.2}\tx\t{low:.2} to {high:.2}\ttarget {target}");
    }
}

/// The size of a comparison: so many turns of each side, and so many runs in a turn.
#[derive(Clone, Copy)]
pub(crate) struct Rounds {
    pub(crate) turns: usize,
    pub(crate) each: usize,
}

/// Lets two take turns. Both begin with a turn that does not count.
pub(crate) async fn by_turns(
    Rounds { turns, each }: Rounds,
    mut ours: impl AsyncFnMut(),
    mut theirs: impl AsyncFnMut(),
) -> Pair {
    let mut pair = Pair::default();
    for turn in 0..=turns {
        let (mut one, mut other) = (Times::default(), Times::default());
        for _ in 0..each {
            one.add(time(ours()).await);
        }
        for _ in 0..each {
            other.add(time(theirs()).await);
        }
        if turn > 0 {
            pair.turn(one, other);
        }
    }
    pair
}

/// A generator of the same numbers every time.
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
