//! Vectors in memory: how they are written, compared and searched.
//!
//! An [`Index`] keeps the signs of each vector, one bit per number, and its numbers in eight bits. A search
//! compares all signs, then the eight-bit numbers of the nearest twentieth, and returns candidates; the
//! caller compares those exactly with the vectors in the database. So memory holds about 9/32 of the vectors,
//! and the scan reads 1/32 of them. `docs/decisions/0026-memory.md` has the figures.

use claw_core::store::{PassageHash, StoreError};

use crate::row::damaged;

/// Up to so many vectors are all compared by their eight-bit numbers.
const FEW: usize = 4_000;
/// Of more vectors, one of so many is compared.
const SHARE: usize = 20;

/// A vector as bytes: 32-bit numbers, little-endian.
pub(crate) fn encode(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Refuses vectors whose length differs from that of a stored one, which has `known` bytes, or among each other:
/// lengths of one model do not mix.
pub(crate) fn same_length(
    what: &'static str,
    model: &str,
    known: Option<i64>,
    vectors: &[(PassageHash, Vec<f32>)],
) -> Result<(), StoreError> {
    let known = known.and_then(|bytes| usize::try_from(bytes).ok()).map(|bytes| bytes / 4);
    let Some(expected) = known.or_else(|| vectors.first().map(|(_, vector)| vector.len())) else {
        return Ok(());
    };
    match vectors.iter().find(|(_, vector)| vector.len() != expected) {
        None => Ok(()),
        Some((_, other)) => Err(StoreError::Refused {
            what,
            why: format!(
                "the model `{model}` gave a vector of {} numbers, but its earlier vectors have {expected}; serve the \
                 earlier model, or set `memory.embeddings.dimensions` to {}, which indexes the memory anew",
                other.len(),
                other.len()
            ),
        }),
    }
}

/// A vector from its bytes.
pub(crate) fn decode(bytes: &[u8]) -> Result<Vec<f32>, StoreError> {
    let (numbers, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() || numbers.is_empty() {
        return Err(damaged("a vector", format!("it has {} bytes", bytes.len())));
    }
    Ok(numbers.iter().map(|number| f32::from_le_bytes(*number)).collect())
}

/// Returns the dot product of two vectors; 0 if their lengths differ.
pub fn product(one: &[f32], other: &[f32]) -> f32 {
    if one.len() != other.len() {
        return 0.0;
    }
    // Sums of their own let the compiler take several numbers at a time.
    let mut sums = [0.0_f32; 8];
    let (ones, one_rest) = one.as_chunks::<8>();
    let (others, other_rest) = other.as_chunks::<8>();
    for (one, other) in ones.iter().zip(others) {
        for ((sum, one), other) in sums.iter_mut().zip(one).zip(other) {
            *sum += one * other;
        }
    }
    let rest: f32 = one_rest.iter().zip(other_rest).map(|(one, other)| one * other).sum();
    sums.iter().sum::<f32>() + rest
}

/// Vectors of the same length, each with an id.
#[derive(Debug, Default)]
pub struct Index {
    dimensions: usize,
    ids: Vec<i64>,
    /// The signs, in words of 64 bits.
    signs: Vec<u64>,
    /// Numbers in eight bits, scaled so that the largest of a vector is 127.
    small: Vec<i8>,
    scales: Vec<f32>,
}

impl Index {
    /// Returns the number of vectors.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Returns whether it has no vectors.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Returns the bytes that it holds.
    pub fn bytes(&self) -> usize {
        self.ids.len() * 12 + self.signs.len() * 8 + self.small.len()
    }

    /// Adds a vector. A vector of another length than the first is left out.
    pub fn push(&mut self, id: i64, vector: &[f32]) {
        if self.ids.is_empty() {
            self.dimensions = vector.len();
        }
        if vector.len() != self.dimensions || vector.is_empty() {
            return;
        }
        self.ids.push(id);
        self.signs.extend(signs(vector));
        let largest = vector.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
        let scale = if largest > 0.0 { largest / 127.0 } else { 1.0 };
        self.small.extend(vector.iter().map(|number| (number / scale).round() as i8));
        self.scales.push(scale);
    }

    /// Returns the ids of at most `2 * limit + 16` vectors, which very likely include the nearest `limit`. They
    /// are sorted by their eight-bit numbers, nearest first. Empty if the query has another length.
    pub fn candidates(&self, query: &[f32], limit: usize) -> Vec<i64> {
        if query.len() != self.dimensions || self.ids.is_empty() {
            return Vec::new();
        }
        let near = if self.ids.len() <= FEW { (0..self.ids.len()).collect() } else { self.near(query) };
        let largest = query.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
        let scale = if largest > 0.0 { largest / 127.0 } else { 1.0 };
        let query: Vec<i8> = query.iter().map(|number| (number / scale).round() as i8).collect();
        let mut scored: Vec<(f32, i64)> = near
            .into_iter()
            .filter_map(|at| {
                let small = self.small.get(at * self.dimensions..(at + 1) * self.dimensions)?;
                let score = small_product(small, &query) as f32 * self.scales.get(at)?;
                Some((score, *self.ids.get(at)?))
            })
            .collect();
        let most = limit.saturating_mul(2).saturating_add(16).min(scored.len());
        let nearer =
            |one: &(f32, i64), other: &(f32, i64)| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1));
        if most < scored.len() {
            scored.select_nth_unstable_by(most, nearer);
            scored.truncate(most);
        }
        scored.sort_unstable_by(nearer);
        scored.into_iter().map(|(_, id)| id).collect()
    }

    /// Returns the places of vectors whose signs differ least from the query's: about one of [`SHARE`].
    fn near(&self, query: &[f32]) -> Vec<usize> {
        let query: Vec<u64> = signs(query).collect();
        let differences: Vec<u32> = self
            .signs
            .chunks_exact(query.len())
            .map(|signs| signs.iter().zip(&query).map(|(one, other)| (one ^ other).count_ones()).sum())
            .collect();
        let mut counts = vec![0_usize; self.dimensions + 1];
        for difference in &differences {
            if let Some(count) = counts.get_mut(*difference as usize) {
                *count += 1;
            }
        }
        let wanted = FEW.max(self.ids.len() / SHARE);
        let mut sum = 0;
        let most = counts.iter().position(|count| {
            sum += count;
            sum >= wanted
        });
        let most = most.unwrap_or(self.dimensions) as u32;
        let near = differences.iter().enumerate().filter(|(_, difference)| **difference <= most);
        near.map(|(at, _)| at).collect()
    }
}

/// The signs of a vector, in words of 64.
fn signs(vector: &[f32]) -> impl Iterator<Item = u64> {
    vector.chunks(64).map(|numbers| {
        numbers.iter().enumerate().fold(0, |word, (at, number)| word | (u64::from(*number > 0.0) << at))
    })
}

fn small_product(one: &[i8], other: &[i8]) -> i32 {
    one.iter().zip(other).map(|(one, other)| i32::from(i16::from(*one) * i16::from(*other))).sum()
}

#[cfg(test)]
mod tests {
    use claw_core::port::unit_vector as normal;

    use super::{Index, decode, encode, product};

    /// Generates vectors around some centres, the same every time.
    fn vectors(count: usize, dimensions: usize) -> Vec<Vec<f32>> {
        let mut state = 0x5eed_u64;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
        };
        let centres: Vec<Vec<f32>> = (0..50).map(|_| (0..dimensions).map(|_| next()).collect()).collect();
        let around = |n: usize, next: &mut dyn FnMut() -> f32| {
            let centre = &centres[n % centres.len()];
            let vector: Vec<f32> = centre.iter().map(|number| number + next()).collect();
            normal(&vector).unwrap()
        };
        (0..count).map(|n| around(n, &mut next)).collect()
    }

    #[test]
    fn bytes_come_back_as_numbers() {
        let vector = [0.0, -1.5, f32::MIN_POSITIVE];
        assert_eq!(decode(&encode(&vector)).unwrap(), vector);
        assert!(decode(&[]).is_err() && decode(&[1, 2, 3]).is_err());
    }

    #[test]
    fn a_vector_without_direction_is_none() {
        assert_eq!(normal(&[0.0, 0.0]), None);
        assert_eq!(normal(&[f32::NAN]), None);
        assert_eq!(normal(&[3.0, 4.0]).unwrap(), [0.6, 0.8]);
        assert_eq!(product(&[1.0], &[1.0, 2.0]), 0.0);
    }

    #[test]
    fn finds_what_comparing_all_of_them_finds() {
        for (count, dimensions) in [(300, 7), (12_000, 96), (12_000, 384)] {
            let all = vectors(count + 20, dimensions);
            let (known, asked) = all.split_at(count);
            let mut index = Index::default();
            for (vector, id) in known.iter().zip(0..) {
                index.push(id, vector);
            }
            index.push(-1, &[1.0]);
            assert_eq!(index.len(), count);
            let mut found = 0;
            for query in asked {
                let mut exact: Vec<(f32, i64)> =
                    known.iter().zip(0..).map(|(one, id)| (product(one, query), id)).collect();
                exact.sort_by(|one, other| other.0.total_cmp(&one.0));
                let candidates = index.candidates(query, 10);
                found += exact[..10].iter().filter(|(_, id)| candidates.contains(id)).count();
            }
            assert!(found >= 195, "{found} of 200 among {count} of {dimensions}");
        }
        assert!(Index::default().candidates(&[1.0], 3).is_empty());
    }
}
