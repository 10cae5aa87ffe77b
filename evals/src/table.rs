//! What is printed.

use anyhow::{Result, bail};

use crate::{Results, baseline::Baseline, measure::Answer};

/// The required shares for the development conversations: of evidence in the prompt, and among the first ten found.
const REQUIRED: [(&str, f64, f64); 3] =
    [("LoCoMo", 0.80, 0.80), ("REALTALK", 0.60, 0.0), ("BEAM 100K", 0.50, 0.0)];

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
        "| conversations | questions | as it ships | as a whole | memories | tokens | no embedder | {names} |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for results in all {
        for (name, from, to) in parts(results) {
            let (full, words) = (&results.full[from..to], &results.words[from..to]);
            let count: usize = full.iter().map(Vec::len).sum();
            let baselines = [0, 1, 2, 3]
                .map(|nth| format!("{:.3}", mean(&results.baselines[from..to], |all| all[nth].told.share)));
            println!(
                "| {name} | {count} | **{:.3}** | {:.3} | {:.1} | {:.0} | {:.3} | {} |",
                mean(full, |answer| answer.told.share),
                mean(full, |answer| answer.told.whole),
                mean(full, |answer| answer.told.memories as f64),
                mean(full, |answer| answer.told.tokens as f64),
                mean(words, |answer| answer.told.share),
                baselines.join(" | ")
            );
        }
    }
}

/// The order: the share of the evidence among the first five and the first ten.
pub(crate) fn found(all: &[Results]) {
    println!("\nFound among the first 5 / 10: the share of the evidence.\n");
    let names = Baseline::ALL.map(Baseline::name).join(" | ");
    println!("| conversations | as it ships | no embedder | {names} |");
    println!("|---|---:|---:|---:|---:|---:|---:|");
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
                "| {name} | **{}** | {} | {} |",
                both(&results.full[from..to]),
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

pub(crate) fn foreign([full, words]: &[Vec<usize>; 2]) {
    let some = |told: &[usize]| told.iter().filter(|memories| **memories > 0).count();
    println!(
        "\nOf {} questions that nothing can answer, something is told for {}; without an embedder for {}.",
        full.len(),
        some(full),
        some(words)
    );
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
pub(crate) fn check(all: &[Results], [full, _]: &[Vec<usize>; 2]) -> Result<()> {
    for results in all {
        let first = &results.full[..results.development.min(results.full.len())];
        let meaning = mean(&results.baselines[..first.len()], |all| all[1].recall[1]);
        let (told, found) = (mean(first, |answer| answer.told.share), mean(first, |answer| answer.recall[1]));
        for (name, least_told, least_found) in REQUIRED.iter().filter(|row| row.0 == results.name) {
            if told < *least_told || found < *least_found || found < meaning {
                bail!(
                    "{name}: told {told:.3} of {least_told}, found {found:.3} of {least_found} and of {meaning:.3} by \
                     meaning alone"
                );
            }
        }
    }
    let told = full.iter().filter(|memories| **memories > 0).count();
    if told > MOST_FOREIGN {
        bail!("something is told for {told} of {} questions that nothing can answer", full.len());
    }
    Ok(())
}
