//! Commands that test every change of the analysis: dangerous ones and everyday ones.
//!
//! Data for tests, here and in crates that may run a real shell.

const DANGEROUS: &str = include_str!("corpus/dangerous.txt");
const HARMLESS: &str = include_str!("corpus/harmless.txt");
const FOUND: &str = include_str!("corpus/found.txt");

/// Commands that must not be allowed.
pub fn dangerous() -> impl Iterator<Item = String> {
    commands(DANGEROUS)
}

/// Commands that must not be denied.
pub fn harmless() -> impl Iterator<Item = String> {
    commands(HARMLESS)
}

/// Commands that the analysis once misread, which must not be allowed.
pub fn found() -> impl Iterator<Item = String> {
    commands(FOUND)
}

/// Reads one command per line. A line that begins with `$ ` writes its line breaks as `\n` and its
/// backslashes twice.
fn commands(text: &'static str) -> impl Iterator<Item = String> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(|line| {
        let Some(escaped) = line.strip_prefix("$ ") else { return line.to_owned() };
        let mut command = String::new();
        let mut chars = escaped.chars();
        while let Some(c) = chars.next() {
            match (c, chars.clone().next()) {
                ('\\', Some('n')) => command.push('\n'),
                ('\\', Some('\\')) => command.push('\\'),
                _ => {
                    command.push(c);
                    continue;
                }
            }
            chars.next();
        }
        command
    })
}
