//! Reduces inflections to one stem: `uses`, `used` and `using` are `us`, and so is `use`.
//!
//! The classes of endings are Porter's, with a list of irregular forms, and endings are removed one after the other until
//! none is left, so that `consideration` and `consider` are one.
//!
//! A stem is a key and not a word of a language: it only has to be the same in the index and in the query.
//! English endings are removed from words of plain letters; other words stay as they are, so no words of
//! other languages are merged that only look alike without accents. `docs/decisions/0026-memory.md` has the
//! figures.

/// Words of fewer letters have no ending; the fewest letters that a long ending leaves.
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
    ("buses", "bus"),
    ("came", "come"),
    ("caught", "catch"),
    ("children", "child"),
    ("chose", "choose"),
    ("chosen", "choose"),
    ("creation", "create"),
    ("creations", "create"),
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
    ("dying", "die"),
    ("eaten", "eat"),
    ("fallen", "fall"),
    ("feb", "february"),
    ("fed", "feed"),
    ("feet", "foot"),
    ("fell", "fall"),
    ("felt", "feel"),
    ("fled", "flee"),
    ("flew", "fly"),
    ("flown", "fly"),
    ("forgot", "forget"),
    ("forgotten", "forget"),
    ("fought", "fight"),
    ("found", "find"),
    ("freed", "free"),
    ("froze", "freeze"),
    ("frozen", "freeze"),
    ("gases", "gas"),
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
    ("tying", "tie"),
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

/// Words that keep their ending, since the rest is another word; sorted.
const KEPT: &[&str] = &["candidate", "customer", "general", "importance", "internal", "template"];

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
    if word.len() >= SHORTEST {
        plural(word);
        tense(word);
        derived(word);
    }
    last_letter(word);
}

/// Makes the last letters of a base word what its other forms have: `study` is `studi`, `use` is `us`, `travell` is
/// `travel`. `care` and `plane` keep their `e`, or they would be `car` and `plan`.
fn last_letter(word: &mut String) {
    let bytes = word.as_bytes();
    let (Some(last), Some(before)) = (bytes.last(), bytes.len().checked_sub(2).and_then(|at| bytes.get(at)))
    else {
        return;
    };
    match (before, last) {
        _ if word.len() < 3 => {}
        (before, b'y') if !is_plain_vowel(*before) => {
            word.pop();
            word.push('i');
        }
        // `die`, `toe`, `see`.
        (b'i' | b'o' | b'e', b'e') if word.len() == 3 => {}
        (_, b'e') if !is_short(word, word.len() - 1) => drop(word.pop()),
        (b'l', b'l') if measure(word, word.len() - 1) > 1 => drop(word.pop()),
        _ => {}
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

/// Removes `ied`, `ed` or `ing`, and gives the `e` back that they replaced.
fn tense(word: &mut String) {
    if word.ends_with("ied") {
        // `tried` is `try`, `died` is `die`.
        let is_long = word.len() > 4;
        word.truncate(word.len() - if is_long { 3 } else { 1 });
        word.extend(is_long.then_some('y'));
        return;
    }
    if word.ends_with("eed") {
        // `agreed`, but neither `feed` nor `exceed`.
        if has_vowel(word, word.len() - 3) && !word.ends_with("ceed") {
            word.pop();
        }
        return;
    }
    let end = match word.as_str() {
        word if word.ends_with("ing") => 3,
        word if word.ends_with("ed") => 2,
        _ => return,
    };
    let rest = word.len() - end;
    if rest < 2 || !has_vowel(word, rest) {
        return;
    }
    word.truncate(rest);
    // `planned`, `running`; but `called`, `missed`, `buzzed`.
    if let [.., before, last] = word.as_bytes()
        && before == last
        && !matches!(last, b'l' | b's' | b'z' | b'a' | b'e' | b'i' | b'o' | b'u')
    {
        word.pop();
        return;
    }
    // `translated` is `translate`, `caring` is `care`.
    if word.ends_with("at") || is_short(word, rest) {
        word.push('e');
    }
}

/// Removes endings that change the kind of a word but not its meaning, one after the other, if enough is left.
fn derived(word: &mut String) {
    while KEPT.binary_search(&word.as_str()).is_err()
        && let Some(rest) = underived(word)
    {
        word.truncate(rest);
    }
}

/// Returns the length of a word without its ending.
fn underived(word: &str) -> Option<usize> {
    /// Endings after which four letters are enough.
    const LONG: [&str; 10] =
        ["fulness", "iveness", "ation", "ition", "ator", "ment", "ness", "able", "ful", "ate"];
    /// Short endings, which other words have as well: only after two syllables.
    const SHORT: [&str; 6] = ["ance", "ence", "ion", "er", "or", "al"];
    let rest = |end: &str| word.strip_suffix(end).map(str::len);
    if let Some(rest) = rest("ly") {
        return (rest > 3).then_some(rest);
    }
    for end in LONG {
        let Some(rest) = rest(end).filter(|rest| *rest >= SHORTEST) else { continue };
        // `repeated` has no `ate`, `recreation` no `ation`.
        let is_ate = matches!(end, "ate" | "ation" | "ator");
        if !(is_ate && word[..rest].ends_with(['e', 'o'])) {
            return Some(rest);
        }
    }
    SHORT.iter().find_map(|end| {
        let rest = rest(end).filter(|rest| measure(word, *rest) > 1)?;
        (*end != "ion" || word[..rest].ends_with(['s', 't'])).then_some(rest)
    })
}

/// Counts the groups of vowels that consonants follow, within the first bytes of a word: 0 for `tree`, 1 for `trouble`
/// without its `e`, 2 for `visit`.
fn measure(word: &str, within: usize) -> usize {
    let is_vowel: Vec<bool> = (0..within).map(|at| is_vowel(word, at)).collect();
    is_vowel.windows(2).filter(|pair| *pair == [true, false]).count()
}

/// Returns whether the first bytes of a word are one syllable that ends in consonant, vowel, consonant: `car`, `plan`,
/// `writ`; not `us`, `leav`, `show` or `fix`.
fn is_short(word: &str, within: usize) -> bool {
    let Some(at) = within.checked_sub(3) else { return false };
    let ends = !is_vowel(word, at) && is_vowel(word, at + 1) && !is_vowel(word, at + 2);
    ends && !word[..within].ends_with(['w', 'x', 'y']) && measure(word, within) == 1
}

/// Returns whether a letter is a vowel; `y` is one after a consonant.
fn is_vowel(word: &str, at: usize) -> bool {
    match word.as_bytes().get(at) {
        Some(b'y') => at > 0 && !is_vowel(word, at - 1),
        Some(byte) => is_plain_vowel(*byte),
        None => false,
    }
}

fn has_vowel(word: &str, within: usize) -> bool {
    (0..within).any(|at| is_vowel(word, at))
}

const fn is_plain_vowel(byte: u8) -> bool {
    matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{IRREGULAR, KEPT, stem};

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
            // Short words.
            &["use", "uses", "used", "using"],
            &["try", "tries", "tried", "trying"],
            &["fly", "flies", "flew", "flying"],
            &["cry", "cries", "cried"],
            &["dry", "dries", "dried", "drying"],
            &["die", "dies", "died", "dying"],
            &["tie", "ties", "tied", "tying"],
            &["lie", "lies", "lied", "lying"],
            &["age", "ages", "aged", "aging", "ageing"],
            &["owe", "owes", "owed", "owing"],
            &["ice", "iced", "icing"],
            &["dye", "dyed", "dyeing"],
            &["sue", "sued", "suing"],
            &["see", "sees", "saw", "seen", "seeing"],
            &["toe", "toes"],
            &["shoe", "shoes"],
            &["bus", "buses"],
            // An `e` that an ending took.
            &["care", "cares", "cared", "caring", "careful", "carefully"],
            &["hope", "hopes", "hoped", "hoping", "hopeful"],
            &["leave", "leaves", "left", "leaving"],
            &["glue", "glued", "gluing"],
            &["free", "freed", "freeing"],
            &["agree", "agrees", "agreed", "agreeing", "agreement"],
            &["guarantee", "guaranteed"],
            &["exceed", "exceeds", "exceeded", "exceeding"],
            &["need", "needs", "needed"],
            &["travel", "travels", "travelled", "travelling", "traveled"],
            // Kinds of a word.
            &["operate", "operates", "operated", "operating", "operation", "operator"],
            &["educate", "educated", "educating", "education"],
            &["translate", "translated", "translating", "translation", "translations"],
            &["celebrate", "celebrated", "celebration"],
            &["separate", "separated", "separately", "separation"],
            &["graduate", "graduated", "graduation"],
            &["decorate", "decorating", "decoration"],
            &["create", "created", "creating", "creation"],
            &["repeat", "repeats", "repeated", "repeating"],
            &["format", "formats", "formatted", "formatting"],
            &["perform", "performed", "performance"],
            &["insure", "insured", "insurance"],
            &["arrive", "arrived", "arrival"],
            &["approve", "approved", "approval"],
            &["general", "generally"],
            &["generate", "generated", "generation", "generator"],
            &["final", "finally"],
            &["visit", "visited", "visitor", "visitors"],
            &["manage", "managed", "manager", "management"],
            &["develop", "developed", "developer", "development"],
            &["consider", "considered", "consideration"],
            &["supply", "supplies", "supplied"],
            &["invite", "invited", "invitation"],
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
        for (one, other) in [
            ("car", "care"),
            ("plan", "plane"),
            ("hop", "hope"),
            ("hopped", "hoped"),
            ("filled", "filed"),
            ("win", "wine"),
            ("not", "note"),
            ("cap", "cape"),
            ("pi", "pie"),
            ("see", "seed"),
            ("fee", "feed"),
            ("do", "doe"),
            ("done", "doe"),
            ("dying", "dyeing"),
            ("state", "station"),
            ("miss", "mission"),
            ("port", "portion"),
            ("pass", "passion"),
            ("form", "format"),
            ("habit", "habitat"),
            ("temple", "template"),
            ("flow", "flower"),
            ("show", "shower"),
            ("corn", "corner"),
            ("number", "numb"),
            ("custom", "customer"),
            ("sign", "signal"),
            ("doctor", "doctrine"),
            ("generate", "general"),
            ("import", "importance"),
            ("intern", "internal"),
            ("sent", "sentence"),
        ] {
            assert_ne!(key(one), key(other), "{one} {other}");
        }
        for word in ["v2", "2026", "straße", "über", "as", "is", "7ed", "x1ing"] {
            assert_eq!(key(word), word);
        }
    }

    #[test]
    fn exceptions_are_sorted() {
        assert!(IRREGULAR.is_sorted_by(|one, next| one.0 < next.0));
        assert!(KEPT.is_sorted());
    }

    proptest! {
        #[test]
        fn a_key_is_never_empty_and_only_letters(word in "[a-z]{1,20}") {
            let key = key(&word);
            prop_assert!(!key.is_empty() && key.bytes().all(|byte| byte.is_ascii_lowercase()), "{word} {key}");
        }
    }
}
