//! `cargo xtask eval tools`: how well tools are found by words, on the functions and questions of the Berkeley
//! Function Calling Leaderboard; with `--by-meaning` also by an embedder.
//!
//! Every function of its eight single-turn files is a tool. The query is a question as its author wrote it, which is
//! harder than the words that a model would search for; the right answer is the function that the question needs.
#![allow(clippy::print_stdout, reason = "a command-line tool talks to its terminal")]

mod bfcl;
mod search_tool;

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
/// The same with an embedder.
#[cfg(feature = "minilm")]
const REQUIRED_BY_MEANING: [(usize, f64); 2] = [(5, 0.87), (20, 0.95)];
/// The most time that a search may take, on average.
const SLOWEST: Duration = Duration::from_millis(1);

const USAGE: &str = "usage: eval_tools FOLDER [--models FOLDER] [--check]; --models, for the embedder, needs the feature \
                     `minilm`";

fn main() -> Result<()> {
    let (mut check, mut folders, mut models) = (false, Vec::new(), None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--check" => check = true,
            "--models" => models = Some(words.next().context(USAGE)?),
            flag if flag.starts_with("--") => bail!(USAGE),
            _ => folders.push(word),
        }
    }
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
    match models {
        None => by_words(&index, &set, check),
        Some(models) => by_meaning(&index, &set, &PathBuf::from(models), check),
    }
}

/// Measures the search by words.
fn by_words(index: &ToolIndex, set: &Questions, check: bool) -> Result<()> {
    let found = Found::of(set, |query| Ok(index.search(query, AT[3])))?;
    let is_first = |(place, name): &(usize, &str)| index.search(name, 1) == [*place];
    let names = set.tools.iter().map(|tool| tool.name.as_str()).enumerate().filter(is_first).count();
    let mean = found.print(set)?;
    println!("{} µs for a search; {names} of {} exact names first", mean.as_micros(), set.tools.len());
    search_tool::print(set)?;
    if check {
        ensure!(names == set.tools.len(), "a tool is not found first by its name");
        ensure!(mean <= SLOWEST, "a search takes {} µs, more than {}", mean.as_micros(), SLOWEST.as_micros());
        found.check(&REQUIRED)?;
    }
    Ok(())
}

/// Measures the search by words and by meaning, with the embedder in this folder.
#[cfg(feature = "minilm")]
fn by_meaning(index: &ToolIndex, set: &Questions, models: &std::path::Path, check: bool) -> Result<()> {
    let embedder = archon_local_embedder::MiniLm::in_folder(models)?;
    let vectors = archon_tool_search::ToolVectors::new(std::sync::Arc::new(embedder));
    let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
    let search = |query: &str| Ok(runtime.block_on(vectors.search(index, &set.tools, query, AT[3]))?);
    let begun = Instant::now();
    search("the first search, which embeds the most definitions")?;
    println!("{} ms for the first search\n", begun.elapsed().as_millis());
    let found = Found::of(set, search)?;
    println!("{} ms for a search", found.print(set)?.as_millis());
    if check { found.check(&REQUIRED_BY_MEANING) } else { Ok(()) }
}

#[cfg(not(feature = "minilm"))]
fn by_meaning(_: &ToolIndex, _: &Questions, _: &std::path::Path, _: bool) -> Result<()> {
    bail!(USAGE)
}

/// Results of all questions.
struct Found {
    /// For each question the place of its function among the results, if it is there.
    by_file: Vec<(&'static str, Vec<Option<usize>>)>,
    /// Time of all searches.
    time: Duration,
}

impl Found {
    /// Searches for each question.
    fn of(set: &Questions, search: impl Fn(&str) -> Result<Vec<usize>>) -> Result<Self> {
        let (mut by_file, mut time) = (Vec::new(), Duration::ZERO);
        for (file, questions) in &set.by_file {
            let mut places = Vec::new();
            for question in questions {
                let begun = Instant::now();
                let results = search(&question.text)?;
                time += begun.elapsed();
                places.push(results.iter().position(|place| set.tools[*place].name == question.function));
            }
            by_file.push((*file, places));
        }
        Ok(Self { by_file, time })
    }

    fn all(&self) -> Vec<Option<usize>> {
        self.by_file.iter().flat_map(|(_, places)| places).copied().collect()
    }

    /// Prints the table. Returns the mean time of a search.
    fn print(&self, set: &Questions) -> Result<Duration> {
        println!("| questions | R@1 | R@5 | R@10 | R@20 |\n|---|---:|---:|---:|---:|");
        for (file, places) in &self.by_file {
            row(file, places);
        }
        row("all", &self.all());
        println!();
        Ok(self.time / u32::try_from(set.len()).context("too many questions")?)
    }

    fn check(&self, required: &[(usize, f64)]) -> Result<()> {
        for (at, required) in required {
            let share = share(&self.all(), *at);
            ensure!(share >= *required, "R@{at} is {share:.3}, less than {required}");
        }
        Ok(())
    }
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
