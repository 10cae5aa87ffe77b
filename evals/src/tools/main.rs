//! `cargo xtask eval tools`: how well tools are found by words, on the functions and questions of the Berkeley
//! Function Calling Leaderboard.
//!
//! Every function of its eight single-turn files is a tool. The query is a question as its author wrote it, which is
//! harder than the words that a model would search for; the right answer is the function that the question needs.
#![allow(clippy::print_stdout, reason = "a command-line tool talks to its terminal")]

mod bfcl;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use archon_tool_search::ToolIndex;

use crate::bfcl::Questions;

/// Numbers of results that are looked at.
const AT: [usize; 4] = [1, 5, 10, 20];
/// The share of questions whose function must be among the first 5 and 20 results.
const REQUIRED: [(usize, f64); 2] = [(5, 0.84), (20, 0.93)];
/// The most time that a search may take, on average.
const SLOWEST: Duration = Duration::from_millis(1);

const USAGE: &str = "usage: eval_tools FOLDER [--check]";

fn main() -> Result<()> {
    let (flags, folders): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let check = match flags.as_slice() {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => bail!(USAGE),
    };
    let [folder] = folders.as_slice() else { bail!(USAGE) };
    let set = bfcl::read(&PathBuf::from(folder))?;
    let begun = Instant::now();
    let index = ToolIndex::new(&set.tools);
    println!(
        "{} tools, indexed in {} ms; {} questions\n",
        set.tools.len(),
        begun.elapsed().as_millis(),
        set.len()
    );
    let found = found(&index, &set);
    println!("| questions | R@1 | R@5 | R@10 | R@20 |\n|---|---:|---:|---:|---:|");
    for (file, places) in &found.by_file {
        row(file, places);
    }
    let all: Vec<_> = found.by_file.iter().flat_map(|(_, places)| places).copied().collect();
    row("all", &all);
    let mean = found.time / u32::try_from(set.len()).context("too many questions")?;
    println!(
        "\n{} µs for a search; {} of {} exact names first",
        mean.as_micros(),
        found.names,
        set.tools.len()
    );
    if check {
        ensure!(found.names == set.tools.len(), "a tool is not found first by its name");
        ensure!(mean <= SLOWEST, "a search takes {} µs, more than {}", mean.as_micros(), SLOWEST.as_micros());
        for (at, required) in REQUIRED {
            let share = share(&all, at);
            ensure!(share >= required, "R@{at} is {share:.3}, less than {required}");
        }
    }
    Ok(())
}

/// Results of all questions.
struct Found {
    /// For each question the place of its function among the results, if it is there.
    by_file: Vec<(&'static str, Vec<Option<usize>>)>,
    /// Time of all searches.
    time: Duration,
    /// Number of tools that their name finds first.
    names: usize,
}

fn found(index: &ToolIndex, set: &Questions) -> Found {
    let (mut by_file, mut time) = (Vec::new(), Duration::ZERO);
    for (file, questions) in &set.by_file {
        let mut places = Vec::new();
        for question in questions {
            let begun = Instant::now();
            let results = index.search(&question.text, AT[3]);
            time += begun.elapsed();
            places.push(results.iter().position(|place| set.tools[*place].name == question.function));
        }
        by_file.push((*file, places));
    }
    let is_first = |(place, name): &(usize, &str)| index.search(name, 1) == [*place];
    let names = set.tools.iter().map(|tool| tool.name.as_str()).enumerate().filter(is_first).count();
    Found { by_file, time, names }
}

/// Returns the share of questions whose function is among the first `at` results.
fn share(places: &[Option<usize>], at: usize) -> f64 {
    let hits = places.iter().flatten().filter(|place| **place < at).count();
    hits as f64 / places.len().max(1) as f64
}

fn row(name: &str, places: &[Option<usize>]) {
    let shares = AT.map(|at| format!("{:.3}", share(places, at)));
    println!("| {name} ({}) | {} |", places.len(), shares.join(" | "));
}
