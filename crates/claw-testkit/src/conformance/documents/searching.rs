//! Search results: the same on every store, for any query.

use std::collections::BTreeSet;

use claw_core::store::{DocumentKey, Documents, Passage, PassageQuery};

use super::{agent, find, key, passage, question, user};
use crate::fixture::NOW;

pub(super) async fn searching<S: Documents>(make: impl AsyncFn() -> S) {
    finds_by_words(make().await).await;
    finds_nothing_by_operators(make().await).await;
    answers_any_text(make().await).await;
    puts_the_best_first(make().await).await;
    finds_for_the_asker_alone(make().await).await;
    others_change_nothing_of_what_is_found(make().await).await;
    leaves_out_words_that_are_nearly_everywhere(make().await).await;
    counts_exactly_where_a_word_becomes_common(make().await).await;
    indexes_any_text(make().await).await;
}

/// Writes one document and indexes these passages of it, one per line.
async fn index(store: &impl Documents, key: &DocumentKey, passages: &[impl AsRef<str>]) {
    let passages: Vec<Passage> =
        passages.iter().zip(1..).map(|(text, line)| passage(line, text.as_ref())).collect();
    let version = store.put_document(key, "text", None, NOW).await.unwrap();
    assert!(store.index_document(key, version, passages).await.unwrap());
}

/// Returns the lines of the passages found.
async fn lines(store: &impl Documents, text: &str) -> BTreeSet<u64> {
    find(store, text).await.iter().map(|found| found.passage.first_line).collect()
}

async fn finds_by_words(store: impl Documents) {
    let texts = [
        "The deployment runs on Fridays, never on Mondays.",
        "Call parse_config_file() before HttpClient::new; see src/net/httpClient.rs.",
        "Crème brûlée is what Zoë orders in Łódź.",
        "東京都の天気は晴れです。",
        "서울의 날씨는 맑습니다",
        "Версия ЁЛКА готова",
        "release v2.10.3 on 2026-01-31 from 10.0.0.7",
        "don't forget the user's birthday",
        "हिन्दी में लिखा",
    ];
    index(&store, &key("MEMORY.md"), &texts).await;
    for (text, expected) in [
        ("deployment", vec![1]),
        ("DEPLOYMENT?", vec![1]),
        ("when does the deployment run", vec![1]),
        ("deploy", vec![1]),
        ("what was deployed on a Friday", vec![1]),
        ("forgetting birthdays", vec![8]),
        ("January", vec![7]),
        ("fridays birthday", vec![1, 8]),
        ("parse_config_file", vec![2]),
        ("parseConfigFile", vec![2]),
        ("config", vec![2]),
        ("file", vec![2]),
        ("httpclient", vec![2]),
        ("http_client", vec![2]),
        ("client", vec![2]),
        ("src/net", vec![2]),
        ("creme brulee", vec![3]),
        ("CRÈME", vec![3]),
        ("zoe", vec![3]),
        ("lodz", vec![3]),
        ("東京", vec![4]),
        ("京都", vec![4]),
        ("天気", vec![4]),
        ("晴", vec![4]),
        ("大阪", vec![]),
        ("날씨", vec![5]),
        ("елка", vec![6]),
        ("версия", vec![6]),
        ("2.10.3", vec![7]),
        ("2026-01-31", vec![7]),
        ("10.0.0.7", vec![7]),
        ("dont", vec![8]),
        ("don't", vec![8]),
        ("users", vec![8]),
        ("हिन्दी", vec![9]),
        ("the", vec![]),
        ("the of and is", vec![]),
        ("elephants", vec![]),
    ] {
        assert_eq!(lines(&store, text).await, expected.into_iter().collect(), "{text}");
    }
}

async fn finds_nothing_by_operators(store: impl Documents) {
    let texts = ["alpha beta", "alpha gamma", "near words owner 1", "not"];
    index(&store, &key("MEMORY.md"), &texts).await;
    for (text, expected) in [
        ("alpha NOT gamma", vec![1, 2, 4]),
        ("alpha AND gamma", vec![1, 2]),
        ("NEAR(alpha beta, 1)", vec![1, 2, 3]),
        ("\"beta alpha\"", vec![1, 2]),
        ("alp*", vec![]),
        ("alp:*", vec![]),
        ("words:alpha", vec![1, 2, 3]),
        ("owner:1", vec![3]),
        ("@1", vec![3]),
        ("'@1'", vec![3]),
        ("{owner words} : alpha", vec![1, 2, 3]),
        ("alpha & !beta", vec![1, 2]),
        ("alpha <-> gamma", vec![1, 2]),
        ("^beta", vec![1]),
        ("-beta + gamma", vec![1, 2]),
        ("beta:AB", vec![1]),
        ("%", vec![]),
        ("_", vec![]),
        ("*", vec![]),
    ] {
        assert_eq!(lines(&store, text).await, expected.into_iter().collect(), "{text}");
    }
}

async fn answers_any_text(store: impl Documents) {
    index(&store, &key("MEMORY.md"), &["alpha beta"]).await;
    let many: String = (0..120_000).map(|n| format!("w{n} ")).collect();
    for nothing in
        ["", " \n", "\0", "\0\0", "\"", "''", "\\", "\\'", "((((", ")", "\u{301}", "\u{fffd}\u{feff}", &many]
    {
        assert_eq!(find(&store, nothing).await, [], "{:?}", nothing.get(..20));
    }
    let long = format!("alpha {many}");
    for text in ["alpha\0", "\0alpha\"", "'alpha'", "\\alpha", "alpha\u{200b}", "(alpha", &long] {
        assert_eq!(find(&store, text).await.len(), 1, "{:?}", text.get(..20));
    }
    let none = PassageQuery { limit: 0, ..question("alpha") };
    assert_eq!(store.search_passages(&none).await.unwrap(), []);
    let most = PassageQuery { limit: usize::MAX, ..question("alpha") };
    assert_eq!(store.search_passages(&most).await.unwrap().len(), 1);
}

async fn puts_the_best_first(store: impl Documents) {
    let mut texts = vec!["plain filler about budget and a schedule".to_owned(); 20];
    texts.push("the invoice and its budget and its deadline".to_owned());
    texts.push("a deadline".to_owned());
    index(&store, &key("MEMORY.md"), &texts).await;
    for (text, first) in [("invoice budget deadline", 21), ("budget deadline", 22), ("which invoice?", 21)] {
        let found = find(&store, text).await;
        let best = found[0].passage.first_line;
        // Both words, or the rarer of them: stores score differently.
        assert!(best == first || (text == "budget deadline" && best == 21), "{text}: {best}");
    }
    let all = find(&store, "budget").await;
    assert_eq!(all.len(), 21);
    assert_eq!(find(&store, "budget").await, all, "the same order every time");
    for limit in [1, 5, 20] {
        let some = store.search_passages(&PassageQuery { limit, ..question("budget") }).await.unwrap();
        assert_eq!(some, all[..limit], "the best of them");
    }
}

async fn finds_for_the_asker_alone(store: impl Documents) {
    let own = key("MEMORY.md");
    let of = |name: &str| DocumentKey { user: Some(user(name)), ..key("MEMORY.md") };
    let foreign = DocumentKey { agent: Some(agent("other")), ..key("MEMORY.md") };
    let shared = DocumentKey { agent: None, ..key("MEMORY.md") };
    let keys = [
        (&own, "own"),
        (&of("ann"), "ann"),
        (&of("ben"), "ben"),
        (&foreign, "foreign"),
        (&shared, "shared"),
        (&DocumentKey { tenant: crate::fixture::tenant("other"), ..shared.clone() }, "stranger"),
    ];
    for (key, text) in keys {
        index(&store, key, &[format!("heron seen by {text}")]).await;
    }
    let seen = async |asked: PassageQuery| -> Vec<String> {
        let found = store.search_passages(&asked).await.unwrap();
        let mut seen: Vec<_> =
            found.into_iter().map(|found| found.passage.text.replace("heron seen by ", "")).collect();
        seen.sort();
        seen
    };
    let heron = question("heron");
    assert_eq!(seen(heron.clone()).await, ["ann", "own", "shared"]);
    assert_eq!(
        seen(PassageQuery { user: Some(user("ben")), ..heron.clone() }).await,
        ["ben", "own", "shared"]
    );
    assert_eq!(seen(PassageQuery { user: Some(user("new")), ..heron.clone() }).await, ["own", "shared"]);
    assert_eq!(seen(PassageQuery { user: None, ..heron.clone() }).await, ["own", "shared"]);
    assert_eq!(seen(PassageQuery { agent: agent("other"), ..heron.clone() }).await, ["foreign", "shared"]);
    assert_eq!(seen(PassageQuery { agent: agent("third"), ..heron }).await, ["shared"]);
    assert_eq!(find(&store, "ben foreign").await, [], "not even by a word that only they have");
    let limited = store.search_passages(&PassageQuery { limit: 2, ..question("heron") }).await.unwrap();
    assert_eq!(limited.len(), 2, "what others have takes no place");
}

async fn others_change_nothing_of_what_is_found(store: impl Documents) {
    index(&store, &key("MEMORY.md"), &["heron here", "stork here"]).await;
    let before = lines(&store, "heron stork").await;
    let theirs: Vec<String> = (0..1_500).map(|n| format!("heron {n}")).collect();
    index(&store, &DocumentKey { user: Some(user("ben")), ..key("MEMORY.md") }, &theirs).await;
    assert_eq!(lines(&store, "heron stork").await, before, "a word that is common for others is asked here");
}

async fn leaves_out_words_that_are_nearly_everywhere(store: impl Documents) {
    // 1,200 passages, half of them of the user; 1,100 have `status`, 1,050 have `weekly`, 30 have `rare`.
    let text = |n: u64| {
        let mut text = format!("entry{n}");
        for (word, is_in) in [("status", n < 1_100), ("weekly", n >= 150), ("rare", n >= 1_170)] {
            if is_in {
                text.push(' ');
                text.push_str(word);
            }
        }
        text
    };
    let all: Vec<String> = (0..1_200).map(text).collect();
    index(&store, &key("MEMORY.md"), &all[..600]).await;
    index(&store, &DocumentKey { user: Some(user("ann")), ..key("MEMORY.md") }, &all[600..]).await;
    let found = async |text: &str| -> BTreeSet<String> {
        let asked = PassageQuery { limit: 2_000, ..question(text) };
        let found = store.search_passages(&asked).await.unwrap();
        found.into_iter().map(|found| found.passage.text).collect()
    };
    let with = |word: &str| -> BTreeSet<String> {
        all.iter().filter(|text| text.split(' ').any(|one| one == word)).cloned().collect()
    };
    assert_eq!(found("status rare").await, with("rare"));
    assert_eq!(found("what is the weekly status, entry7?").await, with("entry7"));
    assert_eq!(found("status").await, with("status"), "a common word is asked where it is all there is");
    assert_eq!(found("status weekly").await, with("weekly"), "of several the rarest");
    assert_eq!(found("weekly nowhere").await, with("weekly"), "a word that is nowhere is no rarer one");
    // Alone, the agent's own passages are too few for a common word.
    let asked = PassageQuery { limit: 2_000, user: None, ..question("status entry7") };
    assert_eq!(store.search_passages(&asked).await.unwrap().len(), 600);
}

/// Of every 4 passages one has `fourth`, of every 32 the first eight have `header`, as in documents of one
/// form: a database that counts only a sample must not mistake them for words that are everywhere.
async fn counts_exactly_where_a_word_becomes_common(store: impl Documents) {
    let text = |n: u64| {
        let words =
            [("fourth", n.is_multiple_of(4) && n < 4_000), ("header", n % 32 < 8 && n != 0), ("all", true)];
        let words = words.into_iter().filter(|(_, is_in)| *is_in).map(|(word, _)| word);
        words.chain([format!("entry{n}").as_str()]).collect::<Vec<_>>().join(" ")
    };
    let texts: Vec<String> = (0..4_004).map(text).collect();
    index(&store, &key("MEMORY.md"), &texts).await;
    let found = async |text: &str| {
        let asked = PassageQuery { limit: 5_000, ..question(text) };
        store.search_passages(&asked).await.unwrap().len()
    };
    assert_eq!(found("all entry7").await, 1);
    assert_eq!(found("header entry7").await, 1, "1,003 are too many");
    assert_eq!(found("fourth entry7").await, 1_001, "1,000 are not");
    assert_eq!(found("all header").await, 1_003, "the rarest of what is common");
}

async fn indexes_any_text(store: impl Documents) {
    let many: String = (0..100_000).map(|n| format!("w{n} ")).collect();
    let wide: String = (0..20_000).map(|n| format!("{n}{} ", "ж".repeat(60))).collect();
    let texts = [
        String::new(),
        "\0 nul\0word".to_owned(),
        "'quoted' \"twice\" back\\slash ''' \\'".to_owned(),
        "x".repeat(2_000_000),
        many,
        "same ".repeat(50_000),
        wide,
        "\u{301}\u{301}e\u{301}".repeat(1_000),
        "last".to_owned(),
    ];
    index(&store, &key("MEMORY.md"), &texts).await;
    for (text, expected) in
        [("nul", 2), ("word", 2), ("slash", 3), ("twice", 3), ("w7", 5), ("same", 6), ("last", 9)]
    {
        assert_eq!(lines(&store, text).await, BTreeSet::from([expected]), "{text}");
    }
    assert_eq!(lines(&store, &"x".repeat(3_000_000)).await, BTreeSet::from([4]));
    assert_eq!(lines(&store, &format!("7{}", "ж".repeat(60))).await, BTreeSet::from([7]));
}
