//! Numbers that come again with their seed.

/// A SplitMix64 generator.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Creates a generator; the same seed gives the same numbers.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Creates a separate generator for part `n` of `seed`.
    pub fn part(seed: u64, n: u64) -> Self {
        let mut random = Self(seed ^ n.wrapping_mul(0xd6e8_feb8_6659_fd93));
        random.number();
        random
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.number() % bound.max(1) as u64) as usize
    }

    /// True once in `n`.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Picks one of these; `None` if there are none.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len()))
    }

    /// Returns an id of any type.
    pub fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(&mut self) -> T {
        let (high, low) = (self.number(), self.number());
        format!("{high:016x}{low:016x}").parse().expect("32 digits are an id")
    }
}
