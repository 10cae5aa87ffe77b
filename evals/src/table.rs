//! What is printed.

use anyhow::{Result, bail};

use crate::{GateCounts, Results, baseline::Baseline, measure::Answer, moves::RETRACTIONS};

/// The required shares for the development conversations: of evidence in the prompt, and among the first ten found.
const REQUIRED: [(&str, f64, f64); 3] =
    [("LoCoMo", 0.80, 0.80), ("REALTALK", 0.60, 0.0), ("BEAM 100K", 0.50, 0.0)];

/// The share by which the table of words may tell less than is required.
const SMALL_TIER: f64 = 0.08;

/// The most questions of 120 without an answer for which something may be told.
const MOST_FOREIGN: usize = 60;

/// The fewest facts of 20 that are told when they are asked for in other words, with each embedder.
const FEWEST_OF_20: usize = 15;

/// The least percentage of the questions for a home after two moves for which the newest one is told.
const LEAST_NEWEST: usize = 70;

/// The fewest sentences of seven that end a home.
const FEWEST_ENDED: usize = 6;

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

/// The numbers of questions for which something is told: of those that nothing can answer, of those in other words, and
/// of those for a home that changed.
pub(crate) fn gates(gates: &[GateCounts; 3]) {
    println!(
        "\nQuestions for which something is told.\n\n| | as it ships | the table of words | no embedder |\n|---|---:|---:|---:|"
    );
    let row = |name: String, value: fn(&GateCounts) -> usize| {
        println!("| {name} | {} |", gates.each_ref().map(|gate| value(gate).to_string()).join(" | "));
    };
    let GateCounts { few, homes, .. } = gates[0];
    row(format!("of {} that nothing can answer, a long conversation", few.foreign), |gate| gate.foreign_told);
    row(format!("of {} that nothing can answer, memories of 20 facts", few.foreign), |gate| {
        gate.few.foreign_told
    });
    row(format!("of {} in other words, memories of 20 facts: the fact itself", few.facts), |gate| {
        gate.few.told
    });
    row(format!("of {} for a home after two moves, the newest", homes.asked), |gate| gate.homes.newest);
    row(format!("of {} for a home after two moves, an earlier one as if it held", homes.asked), |gate| {
        gate.homes.stale
    });
    row(format!("of {} sentences that end a home: it is told as ended", RETRACTIONS.len()), |gate| {
        gate.homes.ended
    });
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

/// Fails unless what is required holds, with all that does not.
pub(crate) fn check(all: &[Results], gates: &[GateCounts; 3]) -> Result<()> {
    let mut problems: Vec<String> = all.iter().filter_map(problem_of_set).collect();
    let names = ["MiniLM", "the table of words", "no embedder"];
    problems.extend(gates.iter().zip(names).flat_map(|(gate, name)| {
        problems_of_gate(gate, name != names[2])
            .into_iter()
            .map(move |problem| format!("with {name}, {problem}"))
    }));
    if problems.is_empty() { Ok(()) } else { bail!("{}", problems.join("\n")) }
}

fn problem_of_set(results: &Results) -> Option<String> {
    let (name, least_told, least_found) = *REQUIRED.iter().find(|row| row.0 == results.name)?;
    let first = &results.full[..results.development.min(results.full.len())];
    let meaning = mean(&results.baselines[..first.len()], |all| all[1].recall[1]);
    let (told, found) = (mean(first, |answer| answer.told.share), mean(first, |answer| answer.recall[1]));
    let small = mean(&results.table[..first.len()], |answer| answer.told.share);
    let holds =
        told >= least_told && small >= least_told - SMALL_TIER && found >= least_found && found >= meaning;
    (!holds).then(|| {
        format!(
            "{name}: told {told:.3} of {least_told}, with the table of words {small:.3}, found {found:.3} of \
             {least_found} and of {meaning:.3} by meaning alone"
        )
    })
}

/// Returns what a gate lacks. Only an embedder finds facts in other words, and a home by a question that shares no word with it.
fn problems_of_gate(gate: &GateCounts, has_embedder: bool) -> Vec<String> {
    let GateCounts { foreign_told, few, homes } = gate;
    let mut problems = Vec::new();
    if *foreign_told.max(&few.foreign_told) > MOST_FOREIGN {
        problems.push(format!(
            "something is told for {foreign_told} of {} questions that nothing can answer, and for {} of them by \
             memories of 20 facts: {MOST_FOREIGN} at most",
            few.foreign, few.foreign_told
        ));
    }
    if has_embedder && few.told * 20 < few.facts * FEWEST_OF_20 {
        problems.push(format!(
            "{} of {} facts are told in other words: {FEWEST_OF_20} of 20 at least",
            few.told, few.facts
        ));
    }
    if has_embedder && homes.newest * 100 < homes.asked * LEAST_NEWEST {
        problems.push(format!(
            "the newest home is told for {} of {} questions: {LEAST_NEWEST} % at least",
            homes.newest, homes.asked
        ));
    }
    if homes.ended < FEWEST_ENDED {
        problems.push(format!(
            "a home is told as ended after {} of {} sentences: {FEWEST_ENDED} at least",
            homes.ended,
            RETRACTIONS.len()
        ));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{homes::Homes, other_words::Counts};

    #[test]
    fn each_limit_of_a_gate_is_required() {
        let few = Counts { facts: 60, told: 45, foreign: 120, foreign_told: 60 };
        let homes = Homes { asked: 80, newest: 56, stale: 80, ended: 6 };
        let good = GateCounts { foreign_told: 60, few, homes };
        assert!(check(&[], &[good; 3]).is_ok());
        let fewer = GateCounts { few: Counts { told: 44, ..few }, ..good };
        let without =
            GateCounts { few: Counts { told: 0, ..few }, homes: Homes { newest: 54, ..homes }, ..good };
        assert!(check(&[], &[good, good, without]).is_ok());
        for (bad, problem) in [
            (fewer, "44 of 60 facts are told in other words: 15 of 20 at least"),
            (GateCounts { foreign_told: 61, ..good }, "something is told for 61 of 120"),
            (GateCounts { few: Counts { foreign_told: 61, ..few }, ..good }, "for 61 of them by memories"),
            (GateCounts { homes: Homes { newest: 55, ..homes }, ..good }, "for 55 of 80 questions: 70 %"),
            (GateCounts { homes: Homes { ended: 5, ..homes }, ..good }, "after 5 of 7 sentences: 6 at least"),
        ] {
            let error = check(&[], &[good, bad, good]).unwrap_err().to_string();
            assert!(error.starts_with("with the table of words, ") && error.contains(problem), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
