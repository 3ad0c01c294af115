//! The labelled set: notes of long sessions, and questions as people word them later.
//!
//! Notes and questions come from our own templates and share as few words as a person's would: people ask for
//! the meaning of a note. The set is the same every time.

use std::collections::BTreeMap;

/// The kind of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Fact,
    Several,
    When,
    Open,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Fact, Self::Several, Self::When, Self::Open];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fact => "one fact",
            Self::Several => "several notes",
            Self::When => "when",
            Self::Open => "open",
        }
    }
}

/// A question with the notes that answer it.
pub(crate) struct Question {
    pub(crate) kind: Kind,
    pub(crate) text: String,
    pub(crate) evidence: Vec<String>,
}

/// Documents by path, and the questions about them.
pub(crate) struct Corpus {
    pub(crate) documents: BTreeMap<String, String>,
    pub(crate) questions: Vec<Question>,
    pub(crate) notes: usize,
}

const PEOPLE: [&str; 12] =
    ["Ada", "Bruno", "Carla", "Dmitri", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Keiko", "Luca"];
const CITIES: [&str; 12] = [
    "Lisbon", "Krakow", "Oslo", "Naples", "Porto", "Ghent", "Malmo", "Zagreb", "Tallinn", "Bilbao", "Graz",
    "Leeds",
];
const PETS: [(&str, &str); 12] = [
    ("tabby kitten", "Pepper"),
    ("beagle puppy", "Waffles"),
    ("parrot", "Kiwi"),
    ("rabbit", "Clover"),
    ("greyhound", "Dash"),
    ("hamster", "Nugget"),
    ("tortoise", "Atlas"),
    ("terrier", "Biscuit"),
    ("budgie", "Skye"),
    ("ferret", "Noodle"),
    ("collie", "Maple"),
    ("gecko", "Ziggy"),
];
const THINGS: [(&str, &str); 12] = [
    ("cargo bike", "1,840 euros"),
    ("espresso machine", "620 euros"),
    ("telescope", "415 euros"),
    ("sewing machine", "289 euros"),
    ("standing desk", "530 euros"),
    ("accordion", "1,100 euros"),
    ("tent", "240 euros"),
    ("record player", "355 euros"),
    ("kayak", "780 euros"),
    ("loom", "460 euros"),
    ("pizza oven", "310 euros"),
    ("drone", "995 euros"),
];
const JOBS: [(&str, &str); 12] = [
    ("a data analyst", "Norvik Shipping"),
    ("a pastry chef", "the Hotel Bellevue"),
    ("a nurse", "St. Anne's clinic"),
    ("an illustrator", "Papercut Studio"),
    ("a bus driver", "the city transit office"),
    ("a lab technician", "Helixa"),
    ("a translator", "the Court of Appeal"),
    ("a roofer", "Brandt and Sons"),
    ("a librarian", "the Old Town library"),
    ("a sound engineer", "Radio Kanal 4"),
    ("a surveyor", "Terraplan"),
    ("a florist", "Green Thumb"),
];
const INJURIES: [(&str, &str); 12] = [
    ("broke a wrist", "slipping on the icy stairs"),
    ("sprained an ankle", "chasing the bus"),
    ("pulled a muscle", "lifting paving stones"),
    ("got a concussion", "falling off a ladder"),
    ("cut a thumb", "slicing pumpkin"),
    ("bruised a rib", "sparring at judo"),
    ("burned a hand", "draining pasta"),
    ("chipped a tooth", "biting an olive stone"),
    ("twisted a knee", "dancing at the wedding"),
    ("scraped an elbow", "rollerblading"),
    ("strained the back", "rowing the regatta"),
    ("stubbed a toe", "moving the piano"),
];
const HOBBIES: [(&str, &str); 12] = [
    ("pottery", "clay under every fingernail"),
    ("birdwatching", "binoculars always in the bag"),
    ("chess", "solving puzzles on the train"),
    ("baking sourdough", "feeding the starter at six"),
    ("bouldering", "chalk on all the sleeves"),
    ("watercolour", "painting the harbour each Sunday"),
    ("beekeeping", "two hives behind the shed"),
    ("salsa", "new shoes with leather soles"),
    ("stargazing", "driving out to the dark hills"),
    ("calligraphy", "inks in thirty shades"),
    ("foraging", "baskets full of chanterelles"),
    ("knitting", "a jumper for every cousin"),
];
const ALLERGIES: [&str; 12] = [
    "hazelnuts",
    "shellfish",
    "penicillin",
    "latex",
    "celery",
    "sesame",
    "wasp stings",
    "lupin",
    "mustard",
    "kiwis",
    "cat hair",
    "soy",
];
const EVENTS: [(&str, &str); 12] = [
    ("finished the half marathon", "complete the race"),
    ("defended the thesis", "pass the doctoral exam"),
    ("signed the mortgage", "take out the home loan"),
    ("got engaged on the pier", "propose or say yes"),
    ("opened the pop-up bakery", "start the shop"),
    ("passed the driving test", "get the licence"),
    ("launched the podcast", "publish the first episode"),
    ("planted the orchard", "put the fruit trees in"),
    ("closed the old bank account", "leave the bank"),
    ("sold the vintage van", "get rid of the camper"),
    ("welcomed a baby daughter", "become a parent"),
    ("quit smoking for good", "give up cigarettes"),
];
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
const TALK: [&str; 10] = [
    "We talked about the weather for a while and agreed that nobody trusts the forecast.",
    "There was a long detour about train delays, and the plan for next week stayed open.",
    "Somebody joked that the coffee machine has more opinions than the team.",
    "The usual complaints about parking came up again, with no result.",
    "It was mostly small talk, and the call ended ten minutes early.",
    "A reminder to send the photos came up twice, and everybody promised to do it.",
    "The neighbours are renovating, so half of the conversation drowned in drilling.",
    "Nothing was decided about the summer party, except that there should be one.",
    "They compared recipes for soup and could not agree about the salt.",
    "The conversation drifted to films that nobody had seen to the end.",
];

/// The notes of one day.
struct Note {
    day: usize,
    text: String,
}

/// A number that depends on two others and looks like none of them.
pub(crate) fn mix(one: usize, other: usize) -> usize {
    let mut number =
        (one as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (other as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number ^= number >> 29;
    number = number.wrapping_mul(0x94d0_49bb_1331_11eb);
    (number ^ (number >> 32)) as usize
}

pub(crate) fn corpus() -> Corpus {
    let (mut notes, mut questions) = (Vec::new(), Vec::new());
    for person in 0..PEOPLE.len() {
        facts(person, &mut notes, &mut questions);
        several(person, &mut notes, &mut questions);
        when(person, &mut notes, &mut questions);
        open(person, &mut notes, &mut questions);
    }
    let count = notes.len();
    for day in 0..360 {
        notes.push(Note { day, text: TALK[mix(day, 7) % TALK.len()].to_owned() });
        let (one, other) = (PEOPLE[mix(day, 1) % 12], PEOPLE[mix(day, 2) % 12]);
        let text = format!(
            "{one} and {other} called to say hello; {}",
            TALK[mix(day, 3) % TALK.len()].to_lowercase()
        );
        notes.push(Note { day, text });
    }
    Corpus { documents: documents(notes), questions, notes: count + 720 }
}

/// A diary with a file for each week, a heading for each day, a paragraph for each note.
fn documents(mut notes: Vec<Note>) -> BTreeMap<String, String> {
    notes.sort_by_key(|note| (note.day, mix(note.text.len(), note.day)));
    let mut documents: BTreeMap<String, String> = BTreeMap::new();
    let mut last = None;
    for note in notes {
        let (month, day) = (note.day / 30, note.day % 30 + 1);
        let path = format!("memory/2025-{:02}-week-{}.md", month + 1, note.day % 30 / 7 + 1);
        let document = documents.entry(path).or_default();
        if last != Some(note.day) {
            document.push_str(&format!("\n## {day} {} 2025\n\n", MONTHS[month]));
            last = Some(note.day);
        }
        document.push_str(&note.text);
        document.push_str("\n\n");
    }
    documents
}

fn ask(questions: &mut Vec<Question>, kind: Kind, text: String, evidence: &[&Note]) {
    questions.push(Question {
        kind,
        text,
        evidence: evidence.iter().map(|note| note.text.clone()).collect(),
    });
}

fn note(person: usize, what: usize, text: String) -> Note {
    Note { day: mix(person, what) % 360, text }
}

fn facts(person: usize, notes: &mut Vec<Note>, questions: &mut Vec<Question>) {
    let name = PEOPLE[person];
    let at = |what: usize| (person * 5 + what) % 12;
    let (pet, called) = PETS[at(0)];
    let (thing, price) = THINGS[at(1)];
    let (job, firm) = JOBS[at(2)];
    let (hurt, how) = INJURIES[at(3)];
    let street = ["Harbour Lane", "Mill Street", "Station Road", "Chapel Hill"][person % 4];
    let all = [
        (
            format!("{name} adopted a {pet} from the shelter last weekend and decided to name it {called}."),
            format!("What is {name}'s {} called?", pet.split(' ').next_back().unwrap_or(pet)),
        ),
        (
            format!("{name} finally bought the {thing} and paid {price}, after comparing shops for months."),
            format!("How much did {name} spend on the {thing}s?"),
        ),
        (
            format!("{name} accepted the offer and starts as {job} with {firm} after the holidays."),
            format!("Which company hired {name}, and as what?"),
        ),
        (
            format!("{name} {hurt} {how} and has to rest for three weeks."),
            format!("How did {name} get injured?"),
        ),
        (
            format!("{name} moved into the flat on {street} {}, third floor, no lift.", person * 3 + 4),
            format!("What is the address that {name} lives at?"),
        ),
    ];
    for (n, (text, question)) in all.into_iter().enumerate() {
        let note = note(person, n, text);
        ask(questions, Kind::Fact, question, &[&note]);
        notes.push(note);
    }
}

fn several(person: usize, notes: &mut Vec<Note>, questions: &mut Vec<Question>) {
    let name = PEOPLE[person];
    let city = |n: usize| CITIES[(person * 7 + n * 5) % 12];
    let trips = [
        format!("{name} spent the long weekend in {} and came back with a cold.", city(0)),
        format!("{name} flew to {} for a friend's birthday, the hotel was terrible.", city(1)),
        format!("{name} took the night train to {} and walked the old town in the rain.", city(2)),
    ];
    let trips: Vec<Note> = trips.into_iter().zip(20..).map(|(text, n)| note(person, n, text)).collect();
    ask(
        questions,
        Kind::Several,
        format!("Which cities has {name} travelled to?"),
        &trips.iter().collect::<Vec<_>>(),
    );
    let food = ALLERGIES[(person * 5) % 12];
    let other = ALLERGIES[(person * 5 + 3) % 12];
    let health = [
        format!("The doctor told {name} to avoid {food} from now on, after a rash at dinner."),
        format!("{name} reacted badly to {other} and carries tablets in the jacket now."),
    ];
    let health: Vec<Note> = health.into_iter().zip(30..).map(|(text, n)| note(person, n, text)).collect();
    ask(questions, Kind::Several, format!("What is {name} allergic to?"), &health.iter().collect::<Vec<_>>());
    let books = [
        format!(
            "{name} is reading a novel about lighthouse keepers and lent the first volume to a colleague."
        ),
        format!("{name} gave up on the biography of a painter after two chapters, too many footnotes."),
        format!("{name} recommends the essays about walking, best read in the bath."),
    ];
    let books: Vec<Note> = books.into_iter().zip(40..).map(|(text, n)| note(person, n, text)).collect();
    ask(
        questions,
        Kind::Several,
        format!("Which books did {name} read or recommend?"),
        &books.iter().collect::<Vec<_>>(),
    );
    notes.extend(trips.into_iter().chain(health).chain(books));
}

fn when(person: usize, notes: &mut Vec<Note>, questions: &mut Vec<Question>) {
    let name = PEOPLE[person];
    let (event, asked) = EVENTS[person];
    let done = note(person, 50, format!("{name} {event}, and everybody cheered."));
    ask(questions, Kind::When, format!("When did {name} {asked}?"), &[&done]);
    let visit =
        note(person, 51, format!("Parents of {name} came to stay for four days and fixed the shelves."));
    let month = MONTHS[visit.day / 30];
    ask(questions, Kind::When, format!("Who visited {name} in {month}?"), &[&visit]);
    let exam = note(
        person,
        52,
        format!("{name} had the kitchen ceiling repaired because water was dripping through."),
    );
    ask(questions, Kind::When, format!("In which month was the leak at {name}'s fixed?"), &[&exam]);
    notes.extend([done, visit, exam]);
}

fn open(person: usize, notes: &mut Vec<Note>, questions: &mut Vec<Question>) {
    let name = PEOPLE[person];
    let (hobby, sign) = HOBBIES[(person * 5 + 1) % 12];
    let fond = note(person, 60, format!("{name} cannot stop talking about {hobby}: {sign}."));
    ask(
        questions,
        Kind::Open,
        format!("What would be a good present for {name}, given the hobbies {name} talks about?"),
        &[&fond],
    );
    let worry = note(
        person,
        61,
        format!("{name} sleeps badly, is anxious about the audit in spring and asked for advice."),
    );
    ask(questions, Kind::Open, format!("How is {name} feeling, and why might {name} be worried?"), &[&worry]);
    let wish = note(
        person,
        62,
        format!("{name} dreams of a year abroad, somewhere with a harbour, once the loan is gone."),
    );
    ask(questions, Kind::Open, format!("What are {name}'s plans and dreams for the future?"), &[&wish]);
    notes.extend([fond, worry, wish]);
}
