//! Moves of people in natural sentences, with turns about other things between them; and ends of a home.

/// Sentences of a person who lives in a place, and then moves twice.
pub(crate) const MOVES: [[&str; 3]; 7] = [
    [
        "At the moment I live in {} with two friends.",
        "Guess what, we've moved to {} over the weekend!",
        "It took a while, but I now live in {}.",
    ],
    [
        "I've been living in {} since my studies.",
        "The movers came on Friday, and now I live in {}.",
        "I packed everything up and moved to {} in May.",
    ],
    [
        "I live in {}, close to the station.",
        "We bought a house in {} and the garden is huge.",
        "I have relocated to {} for the new position.",
    ],
    [
        "We live in {}, and the rent is high.",
        "I finally settled in {} after months of searching.",
        "Last week I got an apartment in {}.",
    ],
    [
        "I'm based in {} for now.",
        "Since March I'm living in {}, near my parents.",
        "After the winter we moved to {} for the mountains.",
    ],
    [
        "My home is in {}.",
        "I moved to {} last month, the boxes are still everywhere.",
        "I just moved to {}, and everything is new.",
    ],
    [
        "As you know I live in {}.",
        "My new flat is in {}, on the third floor.",
        "Good news: we are now living in {}.",
    ],
];

/// Places to live in.
pub(crate) const PLACES: [&str; 12] = [
    "Lyon",
    "Pisa",
    "Bern",
    "Graz",
    "Porto",
    "Bergen",
    "Turku",
    "Kassel",
    "Leeds",
    "Malmö",
    "Tartu",
    "San Sebastián",
];

/// Questions for the home, the last of which shares no word with the sentences.
pub(crate) const QUESTIONS: [&str; 4] = [
    "Where do I live now?",
    "Which city do I currently live in?",
    "Can you find a dentist near where I live?",
    "What is my current address?",
];

/// Returns the sentences of a person: a home and two moves, each with 90 turns about other things after it; and the three
/// homes.
pub(crate) fn sentences_of(person: usize) -> (Vec<String>, [&'static str; 3]) {
    let homes = [0, 5, 10].map(|step| PLACES[(person * 7 + step) % PLACES.len()]);
    let mut sentences = Vec::new();
    for (nth, home) in homes.iter().enumerate() {
        sentences.push(MOVES[(person + nth) % MOVES.len()][nth].replace("{}", home));
        sentences.extend((90 * nth..90 * (nth + 1)).map(other));
    }
    (sentences, homes)
}

fn other(n: usize) -> String {
    match n % 5 {
        0 => format!("The build of branch {n} takes {} minutes now.", n % 17),
        1 => format!("Please move ticket {n} to the current sprint."),
        2 => format!("My sister called, and we talked about film number {n}."),
        3 => format!("I like mornings such as this one, run {n} went well."),
        _ => format!("Remind me to order {n} new chairs for the office."),
    }
}

/// Returns true if a prompt tells one of these homes as one that holds.
pub(crate) fn tells(told: &str, homes: &[&str]) -> bool {
    let holds =
        |line: &str| !line.contains(", no longer so]") && homes.iter().any(|home| line.contains(home));
    told.lines().any(holds)
}

/// The home that each of [`RETRACTIONS`] ends.
pub(crate) const HOME: &str = "I live in Bern.";

/// Sentences after which nobody lives in Bern.
pub(crate) const RETRACTIONS: [&str; 7] = [
    "I no longer live in Bern.",
    "I left Bern for good.",
    "I moved to Basel last week.",
    "I don't live in Bern anymore.",
    "Bern is no longer my home.",
    "I used to live in Bern.",
    "We have moved away from Bern.",
];

/// The question for the home.
pub(crate) const HOME_QUESTION: &str = "Do I live in Bern?";

/// Returns true if a prompt tells the home with the mark of a fact that has ended.
pub(crate) fn tells_end_of_home(told: &str) -> bool {
    let line = told.lines().find(|line| line.ends_with(&format!("] {HOME}")));
    line.is_some_and(|line| line.contains(", no longer so]"))
}
