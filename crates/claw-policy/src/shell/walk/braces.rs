//! Brace expansion: `{rm,-rf,/}` is three words.

use std::borrow::Cow;

use crate::shell::syntax::Part;

/// Most words of an expansion; more count as one word that may be anything.
const MOST: usize = 64;

/// A character of a word, or a part that braces do not look into.
#[derive(Clone)]
enum Atom {
    Plain(char),
    Part(Part),
}

/// The words that a word becomes.
pub(super) fn expand(parts: &[Part]) -> Vec<Cow<'_, [Part]>> {
    let plain = |part: &Part| matches!(part, Part::Plain(text) if text.contains('{'));
    if !parts.iter().any(plain) {
        return vec![Cow::Borrowed(parts)];
    }
    // Braces come before parameters: `$V{a,b}` is `$Va` and `$Vb`.
    let joins = |part: &Part| match part {
        Part::Parameter(parameter) => parameter.bare,
        Part::Plain(text) => text.contains('$'),
        _ => false,
    };
    if parts.iter().any(joins) {
        return vec![Cow::Owned(anything(parts))];
    }
    let mut atoms = Vec::new();
    for part in parts {
        match part {
            Part::Plain(text) => atoms.extend(text.chars().map(Atom::Plain)),
            other => atoms.push(Atom::Part(other.clone())),
        }
    }
    match words(&atoms, 0).filter(|_| !is_odd(&atoms)) {
        Some(words) => words.iter().map(|word| Cow::Owned(join(word))).collect(),
        None => vec![Cow::Owned(anything(parts))],
    }
}

/// A part that may be anything, any number of times: an unquoted expansion of a parameter that is never set.
/// Parts of the word that run something are kept, its unquoted text is not.
fn anything(parts: &[Part]) -> Vec<Part> {
    let unknown = || Part::Parameter(Box::default());
    let kept = parts.iter().filter(|part| !matches!(part, Part::Plain(_))).cloned();
    [unknown()].into_iter().chain(kept).chain([unknown()]).collect()
}

/// Returns whether braces are unbalanced: `{a},b}` is `a}` and `b`, but `{}a,b}` is itself. Bash's treatment
/// of such words is not followed.
fn is_odd(atoms: &[Atom]) -> bool {
    let count = |c: char| atoms.iter().filter(|atom| is(atom, c)).count();
    count('{') != count('}') && count(',') + count('.') > 0
}

/// `None` if there are too many.
fn words(atoms: &[Atom], depth: usize) -> Option<Vec<Vec<Atom>>> {
    if depth > 8 {
        return None;
    }
    let Some((start, end, items)) = group(atoms) else { return Some(vec![atoms.to_vec()]) };
    let mut middles = Vec::new();
    for item in items {
        middles.extend(words(&item, depth + 1)?);
        if middles.len() > MOST {
            return None;
        }
    }
    let tails = words(&atoms[end + 1..], depth + 1)?;
    if middles.len() * tails.len() > MOST {
        return None;
    }
    let mut all = Vec::new();
    for middle in &middles {
        for tail in &tails {
            all.push([&atoms[..start], middle.as_slice(), tail.as_slice()].concat());
        }
    }
    Some(all)
}

/// The first valid group: its start, its end and its items.
fn group(atoms: &[Atom]) -> Option<(usize, usize, Vec<Vec<Atom>>)> {
    (0..atoms.len()).filter(|start| is(&atoms[*start], '{')).find_map(|start| {
        let (mut open, mut commas) = (0usize, Vec::new());
        for (at, atom) in atoms.iter().enumerate().skip(start) {
            match atom {
                Atom::Plain('{') => open += 1,
                Atom::Plain('}') => {
                    open -= 1;
                    if open == 0 {
                        let items = items(&atoms[start + 1..at], start, &commas)?;
                        return Some((start, at, items));
                    }
                }
                Atom::Plain(',') if open == 1 => commas.push(at),
                _ => {}
            }
        }
        None
    })
}

fn items(inside: &[Atom], start: usize, commas: &[usize]) -> Option<Vec<Vec<Atom>>> {
    if commas.is_empty() {
        let text: Option<String> =
            inside.iter().map(|atom| if let Atom::Plain(c) = atom { Some(*c) } else { None }).collect();
        return sequence(&text?);
    }
    let mut items = Vec::new();
    let mut from = 0;
    for comma in commas.iter().map(|comma| comma - start - 1).chain([inside.len()]) {
        items.push(inside[from..comma].to_vec());
        from = comma + 1;
    }
    Some(items)
}

/// Expands `1..5` and `a..e`, with or without a step.
fn sequence(text: &str) -> Option<Vec<Vec<Atom>>> {
    let ends: Vec<&str> = text.split("..").collect();
    let ([from, to] | [from, to, _]) = ends.as_slice() else { return None };
    let number = |text: &str| text.parse::<i64>().is_ok();
    let letter = |text: &str| text.len() == 1 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    if !(number(from) && number(to) || letter(from) && letter(to))
        || ends.get(2).is_some_and(|step| !number(step))
    {
        return None;
    }
    // The exact words do not matter: they are several unknown ones.
    Some(vec![vec![Atom::Part(Part::Parameter(Box::default()))]])
}

fn is(atom: &Atom, c: char) -> bool {
    matches!(atom, Atom::Plain(found) if *found == c)
}

fn join(atoms: &[Atom]) -> Vec<Part> {
    let mut parts = Vec::new();
    for atom in atoms {
        match (atom, parts.last_mut()) {
            (Atom::Plain(c), Some(Part::Plain(text))) => text.push(*c),
            (Atom::Plain(c), _) => parts.push(Part::Plain(c.to_string())),
            (Atom::Part(part), _) => parts.push(part.clone()),
        }
    }
    parts
}
