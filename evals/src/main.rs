//! `cargo xtask eval memory`: what a model is told of long conversations, and how well memories are found.
//!
//! Three public sets of conversations have questions with the turns that hold their answers. Every turn is kept in a
//! memory, as an agent would keep it, and every question is asked of that memory, as an agent would ask it: `Recall`
//! within 1,000 tokens. Nothing here orders anything but the baselines: what is measured is the memory.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its terminal")]

mod baseline;
mod embedder;
mod homes;
mod measure;
#[path = "../../crates/memory/tests/all/moves.rs"]
mod moves;
mod other_words;
mod table;
mod talk;

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context as _, Result, bail};
use archon_store::SqliteMemory;
use archon_types::Embedder;

use crate::{
    embedder::Remembering,
    homes::Homes,
    measure::{Answer, Kept, Setting},
    other_words::Counts,
    talk::{Conversation, Question, Set},
};

const USAGE: &str =
    "usage: eval_memory FOLDER --models FOLDER [--check] [--gate | [--development] [--ablations] [--sqlite]]";

struct Wanted {
    /// The folder with the sets and the vectors.
    folder: PathBuf,
    models: PathBuf,
    /// Measures only for which questions something is told.
    gate: bool,
    /// Leaves the judging conversations alone.
    development: bool,
    ablations: bool,
    /// In one SQLite database, each conversation a collection of it, and not in a store of this process.
    sqlite: bool,
    check: bool,
}

#[tokio::main]
async fn main() -> Result<()> {
    let wanted = Wanted::read(std::env::args().skip(1))?;
    let mut sets = talk::read(&wanted.folder)?;
    if wanted.development {
        sets.iter_mut().for_each(|set| set.conversations.truncate(set.development));
    }
    let [mini_lm, table] = embedder::both(&wanted.models)?.map(|inner| {
        let file = wanted.folder.join(format!("{}.vectors", inner.id()));
        Arc::new(Remembering::open(inner, file)) as Arc<dyn Embedder>
    });
    if wanted.gate {
        let gates = gate(&sets, [&mini_lm, &table]).await?;
        return if wanted.check { table::check(&[], &gates) } else { Ok(()) };
    }
    let mut results = Vec::new();
    for set in &sets {
        results.push(Results::of(set, [&mini_lm, &table], wanted.sqlite).await?);
    }
    table::shares(&results);
    table::found(&results);
    table::by_kind(&results);
    let gates = gate(&sets, [&mini_lm, &table]).await?;
    if wanted.ablations {
        // Weights are chosen on these conversations alone.
        sets.iter_mut().for_each(|set| set.conversations.truncate(set.development));
        table::ablations_heading(&results);
        for setting in Setting::ablations() {
            let mut rows = Vec::new();
            for set in &sets {
                rows.push(answers(set, &setting, Some(&mini_lm), false).await?);
            }
            table::ablation(setting.name, &rows, &results);
        }
    }
    if wanted.check {
        table::check(&results, &gates)?;
    }
    Ok(())
}

/// The numbers of questions for which something is told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GateCounts {
    /// The number of foreign questions for which a long conversation tells something.
    pub(crate) foreign_told: usize,
    pub(crate) few: Counts,
    pub(crate) homes: Homes,
}

/// Prints for which questions something is told, and returns the numbers with each embedder and without.
async fn gate(sets: &[Set], [mini_lm, table]: [&Arc<dyn Embedder>; 2]) -> Result<[GateCounts; 3]> {
    let mut gates = [GateCounts::default(); 3];
    for (gate, embedder) in gates.iter_mut().zip([Some(mini_lm), Some(table), None]) {
        (gate.foreign_told, gate.few) = foreign(sets, embedder).await?;
        gate.homes = homes::homes(embedder).await?;
    }
    table::gates(&gates);
    Ok(gates)
}

/// The answers to all questions of a set, conversation by conversation.
pub(crate) struct Results {
    pub(crate) name: &'static str,
    pub(crate) development: usize,
    /// With MiniLM.
    pub(crate) full: Vec<Vec<Answer>>,
    /// With the table of words.
    pub(crate) table: Vec<Vec<Answer>>,
    /// Without an embedder.
    pub(crate) words: Vec<Vec<Answer>>,
    pub(crate) baselines: Vec<Vec<[Answer; 4]>>,
}

impl Results {
    async fn of(set: &Set, [mini_lm, table]: [&Arc<dyn Embedder>; 2], sqlite: bool) -> Result<Self> {
        let mut baselines = Vec::new();
        for conversation in &set.conversations {
            baselines.push(baseline::answers(conversation, mini_lm).await?);
        }
        Ok(Self {
            name: set.name,
            development: set.development,
            full: answers(set, &Setting::full(), Some(mini_lm), sqlite).await?,
            table: answers(set, &Setting::full(), Some(table), sqlite).await?,
            words: answers(set, &Setting::full(), None, sqlite).await?,
            baselines,
        })
    }
}

async fn answers(
    set: &Set,
    setting: &Setting,
    embedder: Option<&Arc<dyn Embedder>>,
    sqlite: bool,
) -> Result<Vec<Vec<Answer>>> {
    let folder = tempfile::tempdir()?;
    let database = if sqlite { Some(SqliteMemory::open(folder.path().join("memory.db"))?) } else { None };
    let mut all = Vec::new();
    for conversation in &set.conversations {
        let kept = Kept::new(conversation, setting, embedder, database.as_ref()).await?;
        all.push(kept.answers().await.with_context(|| format!("{} {}", set.name, conversation.name))?);
    }
    Ok(all)
}

/// The number of questions of each other set that are asked of a conversation of LoCoMo.
const FOREIGN: usize = 60;

/// The number of questions of the other sets, which the last conversation of LoCoMo cannot answer, for which that
/// conversation tells something; and what the memories of few facts tell.
async fn foreign(sets: &[Set], embedder: Option<&Arc<dyn Embedder>>) -> Result<(usize, Counts)> {
    let (Some(locomo), others) = (sets.first(), sets.get(1..).unwrap_or_default()) else {
        bail!("there are no sets")
    };
    let Some(conversation) = locomo.conversations.last() else { bail!("{} is empty", locomo.name) };
    let questions: Vec<&Question> = others.iter().flat_map(|set| spread(&set.conversations)).collect();
    let kept = Kept::new(conversation, &Setting::full(), embedder, None).await?;
    let mut told = 0;
    for question in &questions {
        told += usize::from(kept.prompt_for(question).await.memories > 0);
    }
    Ok((told, other_words::counts(&questions, embedder).await?))
}

/// Some questions of a set, spread over all of its conversations.
fn spread(conversations: &[Conversation]) -> Vec<&Question> {
    let all: Vec<&Question> = conversations.iter().flat_map(|conversation| &conversation.questions).collect();
    (0..FOREIGN.min(all.len())).map(|nth| all[nth * all.len() / FOREIGN.min(all.len())]).collect()
}

impl Wanted {
    fn read(words: impl Iterator<Item = String>) -> Result<Self> {
        let (mut folders, mut models, mut flags) = (Vec::new(), None, Vec::new());
        let mut words = words.peekable();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--models" => models = words.next(),
                flag if flag.starts_with("--") => flags.push(word),
                _ => folders.push(word),
            }
        }
        let mut flag = |name: &str| {
            let found = flags.iter().any(|flag| flag == name);
            flags.retain(|flag| flag != name);
            found
        };
        let (development, ablations) = (flag("--development"), flag("--ablations"));
        let (gate, sqlite, check) = (flag("--gate"), flag("--sqlite"), flag("--check"));
        let (Some(models), [folder], []) = (models, folders.as_slice(), flags.as_slice()) else {
            bail!(USAGE)
        };
        Ok(Self { folder: folder.into(), models: models.into(), gate, development, ablations, sqlite, check })
    }
}
