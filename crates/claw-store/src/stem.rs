//! Reduces inflections to one stem: `moves`, `moved` and `moving` are `mov`, and so is `move`.
//!
//! A stem is a key and not a word of a language: it only has to be the same in the index and in the query.
//! English endings are removed from words of plain letters; other words stay as they are, so no words of
//! other languages are merged that only look alike without accents. `docs/decisions/0026-memory.md` has the
//! figures.

/// Words of fewer letters stay as they are.
const SHORTEST: usize = 4;

/// Irregular forms, each with its base word, sorted.
const IRREGULAR: &[(&str, &str)] = &[
    ("apr", "april"),
    ("ate", "eat"),
    ("aug", "august"),
    ("bade", "bid"),
    ("beaten", "beat"),
    ("became", "become"),
    ("began", "begin"),
    ("begun", "begin"),
    ("bent", "bend"),
    ("better", "good"),
    ("bit", "bite"),
    ("bitten", "bite"),
    ("blew", "blow"),
    ("blown", "blow"),
    ("bought", "buy"),
    ("bound", "bind"),
    ("bred", "breed"),
    ("broke", "break"),
    ("broken", "break"),
    ("brought", "bring"),
    ("built", "build"),
    ("came", "come"),
    ("caught", "catch"),
    ("children", "child"),
    ("chose", "choose"),
    ("chosen", "choose"),
    ("dealt", "deal"),
    ("dec", "december"),
    ("done", "do"),
    ("drank", "drink"),
    ("drawn", "draw"),
    ("dreamt", "dream"),
    ("drew", "draw"),
    ("driven", "drive"),
    ("drove", "drive"),
    ("drunk", "drink"),
    ("dug", "dig"),
    ("eaten", "eat"),
    ("fallen", "fall"),
    ("feb", "february"),
    ("fed", "feed"),
    ("feet", "foot"),
    ("fell", "fall"),
    ("felt", "feel"),
    ("flew", "fly"),
    ("flown", "fly"),
    ("forgot", "forget"),
    ("forgotten", "forget"),
    ("fought", "fight"),
    ("found", "find"),
    ("froze", "freeze"),
    ("frozen", "freeze"),
    ("gave", "give"),
    ("geese", "goose"),
    ("given", "give"),
    ("goes", "go"),
    ("going", "go"),
    ("gone", "go"),
    ("got", "get"),
    ("gotten", "get"),
    ("grew", "grow"),
    ("grown", "grow"),
    ("heard", "hear"),
    ("held", "hold"),
    ("hid", "hide"),
    ("hidden", "hide"),
    ("hung", "hang"),
    ("jan", "january"),
    ("jul", "july"),
    ("jun", "june"),
    ("kept", "keep"),
    ("knew", "know"),
    ("knives", "knife"),
    ("known", "know"),
    ("laid", "lay"),
    ("learnt", "learn"),
    ("leaves", "leave"),
    ("led", "lead"),
    ("left", "leave"),
    ("lent", "lend"),
    ("lit", "light"),
    ("lives", "live"),
    ("lost", "lose"),
    ("lying", "lie"),
    ("made", "make"),
    ("mar", "march"),
    ("meant", "mean"),
    ("men", "man"),
    ("met", "meet"),
    ("mice", "mouse"),
    ("nov", "november"),
    ("oct", "october"),
    ("paid", "pay"),
    ("people", "person"),
    ("ran", "run"),
    ("rang", "ring"),
    ("ridden", "ride"),
    ("risen", "rise"),
    ("rode", "ride"),
    ("rose", "rise"),
    ("rung", "ring"),
    ("said", "say"),
    ("sang", "sing"),
    ("sat", "sit"),
    ("saw", "see"),
    ("seen", "see"),
    ("sent", "send"),
    ("sep", "september"),
    ("sept", "september"),
    ("sewn", "sew"),
    ("shaken", "shake"),
    ("shelves", "shelf"),
    ("shook", "shake"),
    ("shot", "shoot"),
    ("shown", "show"),
    ("slept", "sleep"),
    ("sold", "sell"),
    ("sought", "seek"),
    ("spent", "spend"),
    ("spoke", "speak"),
    ("spoken", "speak"),
    ("stole", "steal"),
    ("stolen", "steal"),
    ("stood", "stand"),
    ("stuck", "stick"),
    ("sung", "sing"),
    ("swam", "swim"),
    ("swore", "swear"),
    ("swum", "swim"),
    ("taken", "take"),
    ("taught", "teach"),
    ("teeth", "tooth"),
    ("thought", "think"),
    ("threw", "throw"),
    ("thrown", "throw"),
    ("told", "tell"),
    ("took", "take"),
    ("tore", "tear"),
    ("torn", "tear"),
    ("understood", "understand"),
    ("went", "go"),
    ("wives", "wife"),
    ("woke", "wake"),
    ("woken", "wake"),
    ("women", "woman"),
    ("won", "win"),
    ("wore", "wear"),
    ("worn", "wear"),
    ("wound", "wind"),
    ("wove", "weave"),
    ("written", "write"),
    ("wrote", "write"),
];

/// Replaces a word, which is in lower case, by its stem.
pub(crate) fn stem(word: &mut String) {
    if word.len() < 3 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return;
    }
    if let Ok(at) = IRREGULAR.binary_search_by(|(form, _)| form.cmp(&word.as_str()))
        && let Some((_, base)) = IRREGULAR.get(at)
    {
        word.clear();
        word.push_str(base);
    }
    if word.len() < SHORTEST {
        return;
    }
    plural(word);
    if !tense(word) {
        derived(word);
    }
    // `study` as `studi`, `move` as `mov`: what is left of their other forms.
    if word.len() > 2 && word.ends_with('y') && !ends_in_vowel(word, 1) {
        word.pop();
        word.push('i');
    } else if word.len() > 3 && word.ends_with('e') {
        word.pop();
    }
}

/// `ies`, `es`, `s`.
fn plural(word: &mut String) {
    if !word.ends_with('s') || word.ends_with("ss") || word.ends_with("us") || word.ends_with("is") {
        return;
    }
    if word.ends_with("ies") && word.len() > 4 {
        word.truncate(word.len() - 3);
        word.push('y');
    } else if ["sses", "xes", "ches", "shes", "zes", "oes"].iter().any(|end| word.ends_with(end))
        && word.len() > 4
    {
        word.truncate(word.len() - 2);
    } else {
        word.pop();
    }
}

/// Removes `ied`, `ed` or `ing`; returns whether there was one.
fn tense(word: &mut String) -> bool {
    if word.ends_with("ied") && word.len() > 4 {
        word.truncate(word.len() - 3);
        word.push('y');
        return true;
    }
    let end = if word.ends_with("ing") {
        3
    } else if word.ends_with("ed") && !word.ends_with("eed") {
        2
    } else {
        return false;
    };
    let rest = word.len() - end;
    if rest < 2 || !has_vowel(word, rest) {
        return false;
    }
    word.truncate(rest);
    // `planned`, `running`; but `called`, `missed`, `buzzed`.
    let bytes = word.as_bytes();
    if let [.., before, last] = bytes
        && before == last
        && !matches!(last, b'l' | b's' | b'z' | b'a' | b'e' | b'i' | b'o' | b'u')
    {
        word.pop();
    }
    true
}

/// Removes endings that change the kind of a word but not its meaning, if enough is left.
fn derived(word: &mut String) {
    const ENDS: [(&str, usize); 9] = [
        ("fulness", 4),
        ("iveness", 4),
        ("ation", 4),
        ("ition", 4),
        ("ment", 4),
        ("ness", 4),
        ("ally", 4),
        ("able", 4),
        ("ful", 4),
    ];
    for (end, least) in ENDS {
        if word.ends_with(end) && word.len() - end.len() >= least {
            word.truncate(word.len() - end.len());
            return;
        }
    }
    if (word.ends_with("tion") || word.ends_with("sion")) && word.len() > 6 {
        word.truncate(word.len() - 3);
    } else if word.ends_with("ly") && word.len() > 5 {
        word.truncate(word.len() - 2);
    }
}

fn has_vowel(word: &str, within: usize) -> bool {
    word.bytes().take(within).any(|byte| matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u' | b'y'))
}

fn ends_in_vowel(word: &str, before: usize) -> bool {
    let at = word.len().checked_sub(before + 1).and_then(|at| word.as_bytes().get(at));
    at.is_some_and(|byte| matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{IRREGULAR, stem};

    fn key(word: &str) -> String {
        let mut word = word.to_owned();
        stem(&mut word);
        word
    }

    #[test]
    fn forms_of_a_word_are_one_word() {
        for forms in [
            &["move", "moves", "moved", "moving"][..],
            &["study", "studies", "studied", "studying"],
            &["plan", "plans", "planned", "planning"],
            &["call", "calls", "called", "calling"],
            &["go", "goes", "went", "gone", "going"],
            &["buy", "buys", "bought", "buying"],
            &["box", "boxes"],
            &["watch", "watches", "watched", "watching"],
            &["child", "children"],
            &["deploy", "deploys", "deployed", "deployment", "deployments"],
            &["recommend", "recommended", "recommendation", "recommendations"],
            &["adopt", "adopted", "adoption"],
            &["quick", "quickly"],
            &["january", "jan"],
            &["write", "wrote", "written", "writing", "writes"],
        ] {
            let keys: Vec<String> = forms.iter().map(|form| key(form)).collect();
            assert!(keys.iter().all(|key| *key == keys[0]), "{forms:?}: {keys:?}");
        }
    }

    #[test]
    fn different_words_stay_apart_and_others_stay_as_they_are() {
        let words = [
            "heron", "hero", "bus", "business", "analysis", "status", "news", "new", "thing", "king", "sing",
        ];
        for (n, one) in words.iter().enumerate() {
            for other in &words[n + 1..] {
                let (a, b) = (key(one), key(other));
                assert!(a != b || (*one == "news" && *other == "new"), "{one} {other}: {a}");
            }
        }
        for word in ["v2", "2026", "straße", "über", "as", "is", "7ed", "x1ing"] {
            assert_eq!(key(word), word);
        }
    }

    #[test]
    fn irregular_forms_are_sorted() {
        assert!(IRREGULAR.is_sorted_by(|one, next| one.0 < next.0));
    }

    proptest! {
        #[test]
        fn a_key_is_never_empty_and_only_letters(word in "[a-z]{1,20}") {
            let key = key(&word);
            prop_assert!(!key.is_empty() && key.bytes().all(|byte| byte.is_ascii_lowercase()), "{word} {key}");
        }
    }
}
