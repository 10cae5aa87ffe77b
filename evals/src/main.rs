//! `cargo xtask eval memory`: how well memories are found, on the public LoCoMo conversations.
//!
//! Ten long conversations of two people, each of 19 to 32 sessions, and questions with the turns that hold their
//! answers. Every turn is kept in a memory, as an agent would keep it, and every question is asked of that memory, as
//! an agent would ask it. Nothing here orders anything: what is measured is `LongTermMemory`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its terminal")]

mod embedder;
mod locomo;
mod measure;
mod table;

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context as _, Result, bail};
use archon_store::SqliteMemory;
use archon_types::Embedder;

use crate::{embedder::Remembering, locomo::Conversation, measure::Setting};

/// Conversations that the settings were chosen on; the others are for judging.
const DEVELOPMENT: usize = 5;

const USAGE: &str =
    "usage: eval_memory FILE --models FOLDER [--development] [--ablations] [--sqlite] [--check]";

struct Wanted {
    file: PathBuf,
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
    let mut conversations = locomo::read(&wanted.file)?;
    if wanted.development {
        conversations.truncate(DEVELOPMENT);
    }
    let inner = embedder::mini_lm(&wanted.models)?;
    let remembering = Arc::new(Remembering::open(inner, wanted.file.with_extension("vectors")));
    let mut settings = vec![Setting::full()];
    if wanted.ablations {
        settings.extend(Setting::ablations());
    }
    table::heading(&conversations);
    let mut full = None;
    for setting in settings {
        let results = results(&conversations, &setting, &remembering, wanted.sqlite).await?;
        table::rows(setting.name, &results);
        full.get_or_insert(results);
    }
    let full = full.unwrap_or_default();
    table::by_category(&full);
    table::tuned();
    if wanted.check && !table::holds(&full) {
        bail!("less is found than is required");
    }
    Ok(())
}

/// The answers to all questions, conversation by conversation.
async fn results(
    conversations: &[Conversation],
    setting: &Setting,
    embedder: &Arc<Remembering>,
    sqlite: bool,
) -> Result<Vec<Vec<measure::Answer>>> {
    let folder = tempfile::tempdir()?;
    let database = if sqlite { Some(SqliteMemory::open(folder.path().join("memory.db"))?) } else { None };
    let mut all = Vec::new();
    for conversation in conversations {
        let embedder = setting.embeds.then(|| -> Arc<dyn Embedder> { embedder.clone() });
        let answers = measure::conversation(conversation, setting, embedder, database.as_ref()).await;
        all.push(answers.with_context(|| format!("conversation {}", conversation.name))?);
    }
    Ok(all)
}

impl Wanted {
    fn read(words: impl Iterator<Item = String>) -> Result<Self> {
        let (mut files, mut models, mut flags) = (Vec::new(), None, Vec::new());
        let mut words = words.peekable();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--models" => models = words.next(),
                flag if flag.starts_with("--") => flags.push(word),
                _ => files.push(word),
            }
        }
        let mut flag = |name: &str| {
            let found = flags.iter().any(|flag| flag == name);
            flags.retain(|flag| flag != name);
            found
        };
        let (development, ablations) = (flag("--development"), flag("--ablations"));
        let (sqlite, check) = (flag("--sqlite"), flag("--check"));
        let (Some(models), [file], []) = (models, files.as_slice(), flags.as_slice()) else { bail!(USAGE) };
        Ok(Self { file: file.into(), models: models.into(), development, ablations, sqlite, check })
    }
}
