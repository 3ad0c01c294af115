//! Numbers of things in messages: `1 file`, `2 files`.

/// Returns a number with its noun, which is given in the singular: `1 entry`, `2 entries`.
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    if count == 1 {
        return format!("1 {noun}");
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{count} {stem}ies"),
        None if noun.ends_with(['s', 'x', 'h']) => format!("{count} {noun}es"),
        _ => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_thing_is_singular() {
        let check = |count: usize, noun: &str, expected: &str| assert_eq!(counted(count, noun), expected);
        check(1, "tool", "1 tool");
        check(0, "tool", "0 tools");
        check(2, "more file", "2 more files");
        check(2, "entry", "2 entries");
        check(3, "key", "3 keys");
        check(2, "process", "2 processes");
        check(1, "process", "1 process");
    }
}
