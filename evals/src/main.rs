//! `cargo xtask eval memory`: what a model is told of long conversations, and how well memories are found.
//!
//! Three public sets of conversations have questions with the turns that hold their answers. Every turn is kept in a
//! memory, as an agent would keep it, and every question is asked of that memory, as an agent would ask it: `Recall`
//! within 1,000 tokens. Nothing here orders anything but the baselines: what is measured is the memory.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its terminal")]

mod baseline;
mod embedder;
mod measure;
mod table;
mod talk;

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context as _, Result, bail};
use archon_store::SqliteMemory;
use archon_types::Embedder;

use crate::{
    embedder::Remembering,
    measure::{Answer, Kept, Setting},
    talk::{Conversation, Question, Set},
};

const USAGE: &str =
    "usage: eval_memory FOLDER --models FOLDER [--development] [--ablations] [--sqlite] [--check]";

struct Wanted {
    /// The folder with the sets and the vectors.
    folder: PathBuf,
    models: PathBuf,
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
    let inner = embedder::mini_lm(&wanted.models)?;
    let file = wanted.folder.join(format!("{}.vectors", inner.id()));
    let embedder: Arc<dyn Embedder> = Arc::new(Remembering::open(inner, file));
    let mut results = Vec::new();
    for set in &sets {
        results.push(Results::of(set, &embedder, wanted.sqlite).await?);
    }
    table::shares(&results);
    table::found(&results);
    table::by_kind(&results);
    let foreign = foreign(&sets, &embedder).await?;
    table::foreign(&foreign);
    if wanted.ablations {
        // Weights are chosen on these conversations alone.
        sets.iter_mut().for_each(|set| set.conversations.truncate(set.development));
        table::ablations_heading(&results);
        for setting in Setting::ablations() {
            let mut rows = Vec::new();
            for set in &sets {
                rows.push(answers(set, &setting, &embedder, false).await?);
            }
            table::ablation(setting.name, &rows, &results);
        }
    }
    if wanted.check {
        table::check(&results, &foreign)?;
    }
    Ok(())
}

/// The answers to all questions of a set, conversation by conversation.
pub(crate) struct Results {
    pub(crate) name: &'static str,
    pub(crate) development: usize,
    pub(crate) full: Vec<Vec<Answer>>,
    pub(crate) words: Vec<Vec<Answer>>,
    pub(crate) baselines: Vec<Vec<[Answer; 4]>>,
}

impl Results {
    async fn of(set: &Set, embedder: &Arc<dyn Embedder>, sqlite: bool) -> Result<Self> {
        let mut baselines = Vec::new();
        for conversation in &set.conversations {
            baselines.push(baseline::answers(conversation, embedder).await?);
        }
        Ok(Self {
            name: set.name,
            development: set.development,
            full: answers(set, &Setting::full(), embedder, sqlite).await?,
            words: answers(set, &Setting::words(), embedder, sqlite).await?,
            baselines,
        })
    }
}

async fn answers(
    set: &Set,
    setting: &Setting,
    embedder: &Arc<dyn Embedder>,
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

/// The number of memories told for questions of the other sets, which the last conversation of LoCoMo cannot
/// answer: with the embedder and without.
async fn foreign(sets: &[Set], embedder: &Arc<dyn Embedder>) -> Result<[Vec<usize>; 2]> {
    let (Some(locomo), others) = (sets.first(), sets.get(1..).unwrap_or_default()) else {
        bail!("there are no sets")
    };
    let Some(conversation) = locomo.conversations.last() else { bail!("{} is empty", locomo.name) };
    let mut told = [Vec::new(), Vec::new()];
    for (told, setting) in told.iter_mut().zip([Setting::full(), Setting::words()]) {
        let kept = Kept::new(conversation, &setting, embedder, None).await?;
        for set in others {
            for question in spread(&set.conversations) {
                told.push(kept.prompt_for(question).await.memories);
            }
        }
    }
    Ok(told)
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
        let (sqlite, check) = (flag("--sqlite"), flag("--check"));
        let (Some(models), [folder], []) = (models, folders.as_slice(), flags.as_slice()) else {
            bail!(USAGE)
        };
        Ok(Self { folder: folder.into(), models: models.into(), development, ablations, sqlite, check })
    }
}
