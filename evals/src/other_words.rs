//! Facts, each with a question that shares no word with it but the smallest. Each person's facts are kept in a memory of
//! its own, as an agent keeps them in sessions of their own: with an answer that says nothing.

use std::sync::Arc;

use anyhow::Result;
use archon_types::{Embedder, Timestamp};

use crate::{
    measure::{Kept, Setting},
    talk::{Conversation, Question, Turn},
};

/// Facts and questions of three people: of daily life, of work, and of both.
const PEOPLE: [[(&str, &str); 20]; 3] = [
    [
        ("My sister is called Johanna.", "Do I have any siblings?"),
        ("I play the cello in a quartet on Thursdays.", "Which instrument do I perform on?"),
        ("I'm allergic to peanuts.", "Which foods are dangerous for me?"),
        ("We adopted a beagle named Otto last spring.", "What pet is at our home?"),
        ("My flight to Lisbon leaves on the 4th at seven in the morning.", "When is my plane taking off?"),
        ("I drive a blue Skoda.", "What kind of car is mine?"),
        ("I work as a nurse in a children's hospital.", "What is my profession?"),
        ("I hate cilantro.", "Is there an herb that I can't stand?"),
        ("The wifi code of the cabin is 'larch-93'.", "What do I type to get online there?"),
        (
            "My doctor told me to take the tablets before breakfast.",
            "At what time should the medicine be swallowed?",
        ),
        ("I proposed to Maria on the beach in June.", "Where did I get engaged?"),
        ("Our daughter starts school in September.", "When does our kid enter first grade?"),
        ("I broke my left wrist skiing.", "Which injury did I get in winter sports?"),
        ("I'm saving for a sailing boat.", "What expensive thing am I putting money aside for?"),
        ("My grandmother grew up in Krakow.", "Where did an ancestor of mine spend her childhood?"),
        ("I finished reading Moby-Dick yesterday.", "Which novel have I completed lately?"),
        ("I can't sleep before two o'clock.", "Am I a night owl?"),
        ("The landlord raised our rent by a tenth.", "How much more do we pay for the apartment?"),
        ("I go running along the river every morning.", "What exercise do I get?"),
        ("My bike was stolen in front of the library.", "What was taken by thieves?"),
    ],
    [
        ("The staging database runs on Postgres 16.", "Which SQL server do we use for testing?"),
        ("Our office is on the fourth floor, next to the elevator.", "Where in the building do I sit?"),
        ("The customer wants invoices as PDF files by e-mail.", "How does the client like to be billed?"),
        ("Deploys are frozen from Friday noon on.", "When must I not release anything?"),
        ("Tom approves all purchases above 500 euros.", "Who signs off on expensive orders?"),
        ("I write the backend in Rust.", "Which programming language do I work with?"),
        ("The nightly backup takes three hours.", "How long does saving the data last?"),
        ("Our team meets on Tuesdays at ten.", "When is the weekly get-together of my colleagues?"),
        ("The printer jams when the paper is thick.", "Which device in the office gives us trouble?"),
        ("I prefer short answers without lists.", "How should you reply to me?"),
        ("We moved the tickets from Jira to Linear.", "Which issue tracker is in use?"),
        ("My manager is Priya.", "Who is my boss?"),
        ("The new logo has a green owl.", "Which animal is in our brand image?"),
        ("I'm on parental leave until March.", "When will I be back at work?"),
        ("The API key expires in ninety days.", "How often do credentials need to be replaced?"),
        ("Our budget for servers is 2,000 euros a month.", "How much may we spend on hosting?"),
        ("The login page breaks in Safari.", "Which browser has trouble with signing in?"),
        ("We sell bicycles to cities.", "What does our company offer?"),
        ("My laptop has 16 GB of RAM.", "How much memory is in my computer?"),
        ("The contract with Acme ends in May.", "When does our agreement run out?"),
    ],
    [
        ("I was born in Nairobi.", "What is my hometown?"),
        ("My husband is a firefighter.", "What does my spouse do for a living?"),
        ("I don't drink alcohol.", "Should I be offered wine?"),
        ("Our anniversary is on the 12th of October.", "When did we marry?"),
        ("I'm learning Japanese with an app.", "Which foreign language do I study?"),
        ("The twins turn five on Sunday.", "How old are my children?"),
        ("I collect old cameras.", "What is my hobby?"),
        ("My back hurts after long drives.", "Which health problem do I have?"),
        ("I take my coffee with oat milk.", "How do I want my espresso?"),
        ("I voted for the new tram line.", "What do I think of public transport?"),
        ("We are painting the nursery yellow.", "Which colour will the baby's room get?"),
        ("I lost my wallet in the subway.", "What did I misplace on the train?"),
        ("My favourite season is autumn.", "Which time of the year do I like most?"),
        ("I study marine biology in Bergen.", "What subject is my degree in?"),
        ("Grandpa's old watch needs a new battery.", "What has to be repaired?"),
        ("I'm afraid of spiders.", "What scares me?"),
        ("We go camping in Norway each July.", "Where do we spend our summer holidays?"),
        ("My size in shoes is 43.", "What do I say to a store that sells boots?"),
        ("I promised to bring a salad to the party.", "What is my contribution to the celebration?"),
        ("The neighbour feeds our cat while we travel.", "Who looks after our pet when we are away?"),
    ],
];

/// The facts of each person as a conversation.
pub(crate) fn conversations() -> Vec<Conversation> {
    (1..).zip(&PEOPLE).map(|(person, facts)| conversation(person, facts)).collect()
}

fn conversation(person: usize, facts: &[(&str, &str)]) -> Conversation {
    let turn = |nth: usize, speaker: &str, text: &str| Turn {
        id: format!("{nth} {speaker}"),
        session: nth.to_string(),
        speaker: speaker.to_owned(),
        text: text.to_owned(),
        at: Timestamp::from_millis(1_750_000_000_000 + nth as u64 * 3_600_000),
    };
    let turns = facts.iter().enumerate();
    let turns =
        turns.flat_map(|(nth, (fact, _))| [turn(nth, "user", fact), turn(nth, "assistant", "Noted.")]);
    let question = |(nth, (_, question)): (usize, &(&str, &str))| Question {
        text: (*question).to_owned(),
        evidence: [format!("{nth} user")].into(),
        kind: "in other words".to_owned(),
    };
    Conversation {
        name: format!("person {person}"),
        turns: turns.collect(),
        questions: facts.iter().enumerate().map(question).collect(),
    }
}

/// The number of facts that are told, and of those questions that nothing in the memory answers for which something is
/// told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) facts: usize,
    pub(crate) told: usize,
    pub(crate) foreign: usize,
    pub(crate) foreign_told: usize,
}

/// Asks for each fact, and each foreign question of one of the memories in turn.
pub(crate) async fn counts(foreign: &[&Question], embedder: Option<&Arc<dyn Embedder>>) -> Result<Counts> {
    let conversations = conversations();
    let mut counts = Counts { foreign: foreign.len(), ..Counts::default() };
    for (person, conversation) in conversations.iter().enumerate() {
        let kept = Kept::new(conversation, &Setting::full(), embedder, None).await?;
        for question in &conversation.questions {
            counts.facts += 1;
            counts.told += usize::from(kept.prompt_for(question).await.share > 0.0);
        }
        for question in foreign.iter().skip(person).step_by(conversations.len()) {
            counts.foreign_told += usize::from(kept.prompt_for(question).await.memories > 0);
        }
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use archon_memory::rank::Analyzer;

    use super::*;

    #[test]
    fn questions_share_no_word_with_their_facts() {
        let analyzer = Analyzer::default();
        for (fact, question) in PEOPLE.as_flattened() {
            let said = analyzer.terms(fact);
            let shared: Vec<String> =
                analyzer.terms(question).into_iter().filter(|term| said.contains(term)).collect();
            assert_eq!(shared, [""; 0], "{fact}");
        }
    }
}
