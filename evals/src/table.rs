//! What is printed.

use anyhow::{Result, bail};

use crate::{Results, baseline::Baseline, homes::Homes, measure::Answer, other_words::Counts};

/// The required shares for the development conversations: of evidence in the prompt, and among the first ten found.
const REQUIRED: [(&str, f64, f64); 3] =
    [("LoCoMo", 0.80, 0.80), ("REALTALK", 0.60, 0.0), ("BEAM 100K", 0.50, 0.0)];

/// The share by which the table of words may tell less than is required.
const SMALL_TIER: f64 = 0.08;

/// The most questions of 120 without an answer for which something may be told.
const MOST_FOREIGN: usize = 60;

/// The parts of a set: for choosing settings, and for judging.
fn parts(results: &Results) -> Vec<(String, usize, usize)> {
    let (first, all) = (results.development.min(results.full.len()), results.full.len());
    let part =
        |from: usize, to: usize, what: &str| (format!("{} {}-{to}{what}", results.name, from + 1), from, to);
    let mut parts = vec![part(0, first, ", to choose settings")];
    if first < all {
        parts.push(part(first, all, ""));
    }
    parts
}

fn mean<T>(answers: &[Vec<T>], value: impl Fn(&T) -> f64) -> f64 {
    let count: usize = answers.iter().map(Vec::len).sum();
    answers.iter().flatten().map(value).sum::<f64>() / count.max(1) as f64
}

/// The first table: the share of the evidence that is told within 1,000 tokens.
pub(crate) fn shares(all: &[Results]) {
    println!("Told within 1,000 tokens: the share of the evidence, the mean over the questions.\n");
    let names = Baseline::ALL.map(Baseline::name).join(" | ");
    println!(
        "| conversations | questions | as it ships | as a whole | memories | tokens | the table of words | no embedder | {names} |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for results in all {
        for (name, from, to) in parts(results) {
            let full = &results.full[from..to];
            let share = |answers: &[Vec<Answer>]| mean(&answers[from..to], |answer| answer.told.share);
            let count: usize = full.iter().map(Vec::len).sum();
            let baselines = [0, 1, 2, 3]
                .map(|nth| format!("{:.3}", mean(&results.baselines[from..to], |all| all[nth].told.share)));
            println!(
                "| {name} | {count} | **{:.3}** | {:.3} | {:.1} | {:.0} | {:.3} | {:.3} | {} |",
                share(&results.full),
                mean(full, |answer| answer.told.whole),
                mean(full, |answer| answer.told.memories as f64),
                mean(full, |answer| answer.told.tokens as f64),
                share(&results.table),
                share(&results.words),
                baselines.join(" | ")
            );
        }
    }
}

/// The order: the share of the evidence among the first five and the first ten.
pub(crate) fn found(all: &[Results]) {
    println!("\nFound among the first 5 / 10: the share of the evidence.\n");
    let names = Baseline::ALL.map(Baseline::name).join(" | ");
    println!("| conversations | as it ships | the table of words | no embedder | {names} |");
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    for results in all {
        for (name, from, to) in parts(results) {
            let both = |answers: &[Vec<Answer>]| {
                [0, 1].map(|nth| format!("{:.3}", mean(answers, |answer| answer.recall[nth]))).join(" / ")
            };
            let baselines = [0, 1, 2, 3].map(|baseline| {
                let of = |nth: usize| mean(&results.baselines[from..to], |all| all[baseline].recall[nth]);
                format!("{:.3} / {:.3}", of(0), of(1))
            });
            println!(
                "| {name} | **{}** | {} | {} | {} |",
                both(&results.full[from..to]),
                both(&results.table[from..to]),
                both(&results.words[from..to]),
                baselines.join(" | ")
            );
        }
    }
}

/// The share of evidence in the prompt for each kind of question, over all measured conversations.
pub(crate) fn by_kind(all: &[Results]) {
    println!(
        "\n| kind of question | how many | told | as a whole | among the first 10 |\n|---|---:|---:|---:|---:|"
    );
    for results in all {
        let mut kinds: Vec<&str> = results.full.iter().flatten().map(|answer| answer.kind.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        for kind in kinds {
            let some =
                [results.full.iter().flatten().filter(|answer| answer.kind == kind).collect::<Vec<_>>()];
            println!(
                "| {}, {kind} | {} | {:.3} | {:.3} | {:.3} |",
                results.name,
                some[0].len(),
                mean(&some, |answer| answer.told.share),
                mean(&some, |answer| answer.told.whole),
                mean(&some, |answer| answer.recall[1])
            );
        }
    }
}

/// The numbers of questions for which something is told: of those that nothing can answer, and of those in other words.
pub(crate) fn foreign(counts: &[(usize, Counts); 3], homes: &[Homes; 3]) {
    println!(
        "\nQuestions for which something is told.\n\n| | as it ships | the table of words | no embedder |\n|---|---:|---:|---:|"
    );
    let row = |name: String, value: fn(&(usize, Counts)) -> usize| {
        println!("| {name} | {} |", counts.each_ref().map(|counts| value(counts).to_string()).join(" | "));
    };
    let Counts { facts, foreign, .. } = counts[0].1;
    row(format!("of {foreign} that nothing can answer, a long conversation"), |counts| counts.0);
    row(format!("of {foreign} that nothing can answer, memories of 20 facts"), |counts| {
        counts.1.foreign_told
    });
    row(format!("of {facts} in other words, memories of 20 facts: the fact itself"), |counts| counts.1.told);
    let row = |name: &str, value: fn(&Homes) -> usize| {
        let numbers = homes.each_ref().map(|homes| value(homes).to_string()).join(" | ");
        println!("| of {} for a home after two moves, {name} | {numbers} |", homes[0].asked);
    };
    row("the newest", |homes| homes.newest);
    row("an earlier one as if it held", |homes| homes.stale);
}

pub(crate) fn ablations_heading(all: &[Results]) {
    println!("\nWithout one part: told, and found among the first 5 / 10, less what the whole has.\n");
    let names: Vec<&str> = all.iter().map(|results| results.name).collect();
    println!("| | {} |\n|---|{}", names.join(" | "), "---:|".repeat(names.len()));
}

/// One row: the differences to the full setting on the conversations for choosing settings.
pub(crate) fn ablation(name: &str, rows: &[Vec<Vec<Answer>>], all: &[Results]) {
    let cell = |(row, results): (&Vec<Vec<Answer>>, &Results)| {
        let to = results.development.min(row.len());
        let less = |value: fn(&Answer) -> f64| mean(&row[..to], value) - mean(&results.full[..to], value);
        format!(
            "{:+.3}, {:+.3} / {:+.3}",
            less(|answer| answer.told.share),
            less(|answer| answer.recall[0]),
            less(|answer| answer.recall[1])
        )
    };
    let cells: Vec<String> = rows.iter().zip(all).map(cell).collect();
    println!("| {name} | {} |", cells.join(" | "));
}

/// Fails unless what is required holds.
pub(crate) fn check(all: &[Results], counts: &[(usize, Counts); 3]) -> Result<()> {
    for results in all {
        let first = &results.full[..results.development.min(results.full.len())];
        let meaning = mean(&results.baselines[..first.len()], |all| all[1].recall[1]);
        let (told, found) = (mean(first, |answer| answer.told.share), mean(first, |answer| answer.recall[1]));
        let small = mean(&results.table[..first.len()], |answer| answer.told.share);
        for (name, least_told, least_found) in REQUIRED.iter().filter(|row| row.0 == results.name) {
            if told < *least_told
                || small < least_told - SMALL_TIER
                || found < *least_found
                || found < meaning
            {
                bail!(
                    "{name}: told {told:.3} of {least_told}, with the table of words {small:.3}, found {found:.3} of \
                     {least_found} and of {meaning:.3} by meaning alone"
                );
            }
        }
    }
    for (told, few) in counts {
        if told.max(&few.foreign_told) > &MOST_FOREIGN {
            bail!(
                "something is told for {told} of {} questions that nothing can answer, and for {} of them by memories of \
                 20 facts",
                few.foreign,
                few.foreign_told
            );
        }
    }
    Ok(())
}
