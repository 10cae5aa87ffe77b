//! What is printed.

use crate::{DEVELOPMENT, locomo::Conversation, measure::Answer};

/// What is required of the full setting, and what would be good: recall@10, recall@5, sessions.
const REQUIRED: [f64; 3] = [0.63, 0.55, 0.90];
const GOAL: [f64; 3] = [0.75, 0.62, 0.97];

/// Asked of the wrong speaker: many leave these out.
const MISLEADING: u8 = 5;

pub(crate) fn heading(conversations: &[Conversation]) {
    let questions: usize = conversations.iter().map(|conversation| conversation.questions.len()).sum();
    let turns: usize = conversations.iter().map(|conversation| conversation.turns.len()).sum();
    println!("{} conversations, {turns} turns, {questions} questions with evidence\n", conversations.len());
    println!(
        "| setting | conversations | questions | recall@10 | recall@5 | session in 5 | the same without category 5 |"
    );
    println!("|---|---|---:|---:|---:|---:|---|");
    println!("| required | | | {} | |", shown(REQUIRED, " | "));
    println!("| goal | | | {} | |", shown(GOAL, " | "));
}

/// The rows of one setting.
pub(crate) fn rows(name: &str, results: &[Vec<Answer>]) {
    let (first, rest) = results.split_at(results.len().min(DEVELOPMENT));
    row(name, "first five", first);
    if !rest.is_empty() {
        row(name, "other five", rest);
        row(name, "all", results);
    }
}

fn row(name: &str, which: &str, results: &[Vec<Answer>]) {
    let answers: Vec<Answer> = results.concat();
    let fair: Vec<Answer> = answers.iter().filter(|answer| answer.category != MISLEADING).copied().collect();
    let (all, fair) = (mean(&answers), mean(&fair));
    println!("| {name} | {which} | {} | {} | {} |", answers.len(), shown(all, " | "), shown(fair, " / "));
}

/// The full setting by the kind of question, and by conversation.
pub(crate) fn by_category(results: &[Vec<Answer>]) {
    const NAMES: [&str; 5] = ["several turns", "time", "inference", "one turn", "of the wrong speaker"];
    println!("\n| questions | how many | recall@10 | recall@5 | session in 5 |\n|---|---:|---:|---:|---:|");
    let answers: Vec<Answer> = results.concat();
    for (category, name) in (1..).zip(NAMES) {
        let some: Vec<Answer> =
            answers.iter().filter(|answer| answer.category == category).copied().collect();
        println!("| {category}, {name} | {} | {} |", some.len(), shown(mean(&some), " | "));
    }
    for (number, answers) in (1..).zip(results) {
        println!("| of conversation {number} | {} | {} |", answers.len(), shown(mean(answers), " | "));
    }
}

pub(crate) fn tuned() {
    println!(
        "\nAll weights, the pool and the thresholds were chosen on the first five conversations; the other five were \
         only judged. Recall is the mean over questions of the share of their evidence that is returned; each of the \
         ten (five) returned turns counts, neighbours included. The words of a turn are its text and what stands for \
         its picture. No network, no language model."
    );
}

/// Whether the full setting finds what is required, on each half that was measured.
pub(crate) fn holds(results: &[Vec<Answer>]) -> bool {
    let (first, rest) = results.split_at(results.len().min(DEVELOPMENT));
    let enough = |part: &[Vec<Answer>]| {
        part.is_empty()
            || mean(&part.concat()).iter().zip(REQUIRED).all(|(found, required)| *found >= required)
    };
    enough(first) && enough(rest)
}

fn mean(answers: &[Answer]) -> [f64; 3] {
    let of = |value: fn(&Answer) -> f64| answers.iter().map(value).sum::<f64>() / answers.len().max(1) as f64;
    [
        of(|answer| answer.recall_10),
        of(|answer| answer.recall_5),
        of(|answer| f64::from(u8::from(answer.session))),
    ]
}

fn shown(values: [f64; 3], between: &str) -> String {
    values.map(|value| format!("{value:.3}")).join(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_halves_have_to_find_enough() {
        let answer = |recall| Answer { category: 1, recall_10: recall, recall_5: recall, session: true };
        let half = |recall| vec![vec![answer(recall)]; DEVELOPMENT];
        assert!(holds(&half(0.7)));
        assert!(holds(&[half(0.7), half(0.7)].concat()));
        assert!(!holds(&[half(1.0), half(0.5)].concat()));
        assert!(!holds(&[half(0.5), half(1.0)].concat()));
    }
}
