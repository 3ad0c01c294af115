//! Rows that one statement writes.

/// The numbers of rows that one statement writes. They are few, so that their statements stay prepared.
const SIZES: [usize; 3] = [32, 8, 1];

/// Splits rows into the parts that one statement each writes.
pub(super) fn parts<T>(rows: &[T]) -> impl Iterator<Item = &[T]> {
    let mut rest = rows;
    std::iter::from_fn(move || {
        let size = SIZES.into_iter().find(|size| *size <= rest.len())?;
        let (part, later) = rest.split_at(size);
        rest = later;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn parts_are_all_rows_in_order() {
        for count in [0, 1, 7, 8, 31, 32, 33, 75] {
            let rows: Vec<usize> = (0..count).collect();
            let split: Vec<&[usize]> = parts(&rows).collect();
            assert_eq!(split.concat(), rows);
            assert!(split.iter().all(|part| super::SIZES.contains(&part.len())));
        }
    }
}
