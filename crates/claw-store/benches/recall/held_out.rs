//! The held-out set: transcripts of long sessions in which people talk past each other, and questions in other words.
//!
//! Answering turns and questions are written by hand (`held_out/notes.txt`, `held_out/questions.txt`); between the answers
//! stand turns about the same people and things that answer nothing, from `held_out/filler.txt` with a seeded generator.
//! Nothing of the ranking was chosen with this set.

use std::collections::BTreeMap;

use super::corpus::{Corpus, Kind, Question, mix};

const NOTES: &str = include_str!("held_out/notes.txt");
const FILLER: &str = include_str!("held_out/filler.txt");
const QUESTIONS: &str = include_str!("held_out/questions.txt");
/// Turns without an answer in each session.
const TURNS: usize = 12;

const THINGS: [&str; 40] = [
    "roof",
    "boiler",
    "insurance",
    "front door",
    "bike shed",
    "cellar",
    "lime tree",
    "cat",
    "pipe",
    "scaffolding",
    "meeting",
    "contract",
    "ticket scanner",
    "booking site",
    "payment",
    "test machine",
    "translation",
    "certificate",
    "passenger list",
    "price list",
    "timetable",
    "server",
    "car",
    "exam",
    "lathe",
    "canary",
    "stamp album",
    "houseboat",
    "hospital bed",
    "piano",
    "Christmas goose",
    "waiting list",
    "hall",
    "concert",
    "conductor's stand",
    "coach",
    "banner",
    "score",
    "rehearsal",
    "stage lamp",
];
const PLACES: [&str; 16] = [
    "the stairwell",
    "the courtyard",
    "the attic",
    "the office",
    "the harbour",
    "the kitchen",
    "Leipzig",
    "Ghent",
    "the workshop",
    "the garage",
    "the parish hall",
    "Rosenhof",
    "the customs house",
    "the bakery",
    "the station",
    "Visby",
];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A session of the set: date, subject, people and the answering turns with their ids.
struct Talk<'a> {
    date: &'a str,
    subject: &'a str,
    people: Vec<&'a str>,
    turns: Vec<(&'a str, &'a str)>,
}

pub(crate) fn corpus() -> Corpus {
    let talks = talks();
    let mut documents = BTreeMap::new();
    let mut count = 0;
    for (number, talk) in talks.iter().enumerate() {
        let slug = talk.subject.to_lowercase().replace(|c: char| !c.is_alphanumeric(), "-");
        let (text, turns) = document(number, talk);
        documents.insert(format!("memory/{}-{slug}.md", talk.date), text);
        count += turns;
    }
    let turns: BTreeMap<&str, &str> = talks.iter().flat_map(|talk| talk.turns.iter().copied()).collect();
    let questions = QUESTIONS.lines().map(|line| question(line, &turns)).collect();
    Corpus { documents, questions, notes: count }
}

fn talks() -> Vec<Talk<'static>> {
    let mut talks: Vec<Talk<'static>> = Vec::new();
    for line in NOTES.lines() {
        if let Some(head) = line.strip_prefix("= ") {
            let mut parts = head.split(" | ");
            let mut next = || parts.next().unwrap();
            let (date, subject, people) = (next(), next(), next().split(' ').collect());
            talks.push(Talk { date, subject, people, turns: Vec::new() });
        } else {
            talks.last_mut().unwrap().turns.push(line.split_once(' ').unwrap());
        }
    }
    talks
}

/// A transcript: a title, two sections, a paragraph for each turn. The answers stand at random among the others.
fn document(number: usize, talk: &Talk<'_>) -> (String, usize) {
    let mut turns: Vec<String> = (0..TURNS).map(|turn| filler(number, turn, &talk.people)).collect();
    for (at, (_, text)) in talk.turns.iter().enumerate() {
        turns.insert(mix(number + 1, at + 91) % (turns.len() + 1), (*text).to_owned());
    }
    let mut text = format!("# {}, {}\n\n", talk.subject, talk.date);
    for (at, turn) in turns.iter().enumerate() {
        if at == turns.len() / 2 {
            text.push_str("## After the break\n\n");
        }
        text.push_str(turn);
        text.push_str("\n\n");
    }
    (text, turns.len())
}

/// A turn about people and things of the set that answers nothing.
fn filler(number: usize, turn: usize, people: &[&str]) -> String {
    let lines: Vec<&str> = FILLER.lines().collect();
    let seed = number * TURNS + turn;
    let pick = |what: usize, most: usize| mix(seed + 17, what * 31 + 5) % most;
    let one = pick(0, people.len());
    let other = (one + 1 + pick(1, people.len() - 1)) % people.len();
    // Each line comes up once before any comes up again.
    lines[(seed * 13 + 7) % lines.len()]
        .replace("{A}", people[one])
        .replace("{B}", people[other])
        .replace("{thing}", THINGS[pick(2, THINGS.len())])
        .replace("{place}", PLACES[pick(3, PLACES.len())])
        .replace("{day}", DAYS[pick(4, DAYS.len())])
        .replace("{month}", MONTHS[pick(5, MONTHS.len())])
        .replace("{number}", &(12 + pick(6, 900)).to_string())
}

fn question(line: &str, turns: &BTreeMap<&str, &str>) -> Question {
    let mut parts = line.split(" | ");
    let mut next = || parts.next().unwrap();
    let kind = match next() {
        "fact" => Kind::Fact,
        "several" => Kind::Several,
        "when" => Kind::When,
        _ => Kind::Open,
    };
    let evidence = next().split(' ').map(|id| turns[id].to_owned()).collect();
    Question { kind, text: next().to_owned(), evidence }
}
