//! Arguments that are one of a few names.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// The names that an argument may have: each with what `--help` says of it, and its value. Further names that mean the
/// same follow after `|`.
pub(crate) type Choices<T> = &'static [(&'static str, &'static str, T)];

/// Parses one of the names.
pub(crate) fn one_of<T: Clone + Send + Sync>(choices: Choices<T>) -> impl TypedValueParser<Value = T> {
    let named = choices.iter().map(|(names, about, _)| {
        let (name, others) = names.split_once('|').unwrap_or((names, ""));
        let value = PossibleValue::new(name).aliases(others.split('|').filter(|other| !other.is_empty()));
        if about.is_empty() { value } else { value.help(*about) }
    });
    PossibleValuesParser::new(named).try_map(|given| {
        let chosen = choices.iter().find(|(names, ..)| names.split('|').any(|name| name == given));
        chosen.map(|(.., value)| value.clone()).ok_or("it is none of the names")
    })
}
