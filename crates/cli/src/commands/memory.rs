//! `archon memory`: adds, finds, lists and removes memories of a collection.

mod forget;
mod upkeep;

use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    path::PathBuf,
};

use archon::{
    memory::{Embedded, Memory},
    types::{Collection, Listing, MemoryFilter, MemoryOrder, MemoryPage, Trust},
};
use clap::Subcommand;
use indicatif::ProgressBar;
use serde_json::json;

use super::EmbedderFlags;
use crate::{
    app::App,
    command_line::{in_data_dir, quoted},
    config::Settings,
    exit::Exit,
    failure::Failure,
    lists::memories,
    memory::open,
    output::Look,
    text::{escaped, visible},
};

#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// Store a text as a memory
    Add {
        #[command(flatten)]
        of: Of,
        /// The text; `-` reads it from standard input
        #[arg(required = true)]
        text: Vec<String>,
    },
    /// Find the memories that fit a question, best first
    Search {
        #[command(flatten)]
        of: Of,
        /// The maximum number of memories
        #[arg(long, value_name = "N", default_value_t = 5)]
        limit: usize,
        /// The question
        #[arg(required = true)]
        question: Vec<String>,
    },
    /// List the latest memories
    List {
        #[command(flatten)]
        of: Of,
        /// The maximum number of memories
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
    },
    /// Forget memories by their ids, and the facts that were learnt from them alone; names the runs that still have
    /// them
    Forget {
        #[command(flatten)]
        of: Of,
        #[command(flatten)]
        what: forget::ForgetFlags,
    },
    /// Count memories by collection and kind
    Stats {
        #[command(flatten)]
        of: Of,
    },
    /// Import the lines of a file that `export` wrote, with their trust levels, unless `--untrusted` is
    /// given
    Import {
        #[command(flatten)]
        of: Of,
        /// Import every line as untrusted, whatever its trust level; without this, each line keeps its trust
        /// level
        #[arg(long)]
        untrusted: bool,
        /// The file; `-` reads standard input
        file: PathBuf,
    },
    /// Forget memories beyond a maximum number or age: those unused longest and least important first; facts
    /// stay
    Evict {
        #[command(flatten)]
        of: Of,
        #[command(flatten)]
        limits: upkeep::LimitFlags,
    },
    /// Merge notes with the same words
    Merge {
        #[command(flatten)]
        of: Of,
    },
    /// Forget everything that was stored before a day, including facts
    Purge {
        #[command(flatten)]
        of: Of,
        #[command(flatten)]
        what: upkeep::PurgeFlags,
    },
    /// Compute vectors for memories without a vector of the chosen embedder, for instance after a change of
    /// the embedder
    Embed {
        #[command(flatten)]
        of: Of,
    },
    /// Write all memories as lines of JSON
    Export {
        #[command(flatten)]
        of: Of,
        /// The file [default: standard output]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

/// The collection of a command.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Of {
    /// The collection, with all within it: `user:anna`, `team:eng`
    #[arg(long = "memory", value_name = "COLLECTION", default_value = "user:local")]
    collection: Collection,
    #[command(flatten)]
    vectors: EmbedderFlags,
}

impl MemoryCommand {
    pub(crate) fn settings(&self) -> Settings {
        let (Self::Add { of, .. }
        | Self::Search { of, .. }
        | Self::List { of, .. }
        | Self::Forget { of, .. }
        | Self::Stats { of }
        | Self::Import { of, .. }
        | Self::Evict { of, .. }
        | Self::Merge { of }
        | Self::Purge { of, .. }
        | Self::Embed { of }
        | Self::Export { of, .. }) = self;
        let mut settings = Settings::default();
        of.vectors.apply(&mut settings);
        settings
    }

    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        match self {
            Self::Add { of, text } => {
                warn_of_collection(app, &text);
                add(app, &of, &to_remember(&text)?).await
            }
            Self::Search { of, limit, question } => {
                memories::search(app, &of.collection, limit, question.join(" ")).await?;
                Ok(Exit::Finished)
            }
            Self::List { of, limit } => {
                memories::list(app, &of.collection, limit).await?;
                Ok(Exit::Finished)
            }
            Self::Forget { of, what } => what.forget(app, &of).await,
            Self::Stats { of } => stats(app, &of).await,
            Self::Import { of, untrusted, file } => {
                let trust = if untrusted { Trust::Untrusted } else { Trust::Trusted };
                import(app, &of, &file, trust).await
            }
            Self::Evict { of, limits } => limits.evict(app, &of).await,
            Self::Merge { of } => upkeep::merge(app, &of).await,
            Self::Purge { of, what } => what.purge(app, &of).await,
            Self::Embed { of } => embed(app, &of).await,
            Self::Export { of, out } => export(app, &of, out).await,
        }
    }
}

async fn add(app: &App, of: &Of, text: &str) -> Result<Exit, Failure> {
    for id in memories::add(app, &of.collection, text).await? {
        app.item(&json!({"id": id}), || id.clone());
    }
    Ok(Exit::Finished)
}

/// Warns if the text begins with a collection's name, since the person may have meant a collection.
fn warn_of_collection(app: &App, words: &[String]) {
    let [first, _, ..] = words else { return };
    let is_name = |part: &str| part.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c));
    if first.contains(':') && first.split(':').all(is_name) && Collection::new(first.as_str()).is_ok() {
        let first = visible(first);
        app.output.warn(format!("{first:?} is stored as text; to set a collection, use --memory {first}"));
    }
}

fn to_remember(words: &[String]) -> Result<String, Failure> {
    let text = super::task::words_or_stdin(words, "the text to remember")?;
    match (text.trim(), words) {
        ("", [word]) if word == "-" => {
            let advice = "pipe text into the command, or give the text to remember as an argument";
            Err(Failure::usage("standard input is empty", advice))
        }
        ("", _) => {
            let advice = "give the text to remember: archon memory add \"Anna prefers tea.\"";
            Err(Failure::usage("the text to remember is empty", advice))
        }
        _ => Ok(text),
    }
}

/// Reads all entries that a filter selects, page by page, oldest first.
async fn for_each_page(
    memory: &Memory,
    filter: MemoryFilter,
    mut each: impl FnMut(MemoryPage),
) -> Result<(), Failure> {
    let mut listing = Listing::new(filter, MemoryOrder::First, 1_000);
    loop {
        let mut page = memory.store().list(&listing).await?;
        listing.after = page.next.take();
        each(page);
        if listing.after.is_none() {
            return Ok(());
        }
    }
}

async fn stats(app: &App, of: &Of) -> Result<Exit, Failure> {
    let memory = open(app, &of.collection).await?;
    let mut counts: BTreeMap<(String, &str), u64> = BTreeMap::new();
    let mut damaged = 0;
    for_each_page(&memory, memories::not_forgotten(), |page| {
        damaged += page.damaged.len();
        for entry in page.entries {
            *counts.entry((entry.collection.to_string(), entry.kind.as_str())).or_default() += 1;
        }
    })
    .await?;
    let embedder = memory.embedder().map(|embedder| embedder.id());
    let lacking = if embedder.is_some() { memory.lacking_vectors().await? } else { 0 };
    if app.json {
        let row = |(of, n): (&(String, &str), &u64)| json!({"collection": of.0, "kind": of.1, "count": n});
        let counts: Vec<_> = counts.iter().map(row).collect();
        let stats = json!({
            "collection": of.collection.to_string(), "counts": counts, "damaged": damaged,
            "embedder": embedder, "lacking": lacking,
        });
        app.item(&stats, String::new);
        return Ok(Exit::Finished);
    }
    if counts.is_empty() && damaged == 0 {
        let add = format!("archon memory add --memory {} TEXT", quoted(of.collection.as_str()));
        app.hint(format!("no memories in {}; `{}` stores one", of.collection, in_data_dir(app, &add)));
    }
    for ((collection, kind), count) in &counts {
        app.output.line(format!("{count:>8}  {kind:<7} {collection}"));
    }
    if let Some(embedder) = embedder.filter(|_| lacking > 0) {
        app.output.line(format!("{lacking:>8}  without a vector of {embedder}: `archon memory embed`"));
    }
    if damaged > 0 {
        app.output.line(format!("{damaged:>8}  damaged"));
    }
    Ok(Exit::Finished)
}

async fn import(app: &App, of: &Of, file: &PathBuf, trust: Trust) -> Result<Exit, Failure> {
    let memory = open(app, &of.collection).await?;
    let mut bytes = Vec::new();
    let read = match file.as_os_str() == "-" {
        true => std::io::stdin().read_to_end(&mut bytes).map(drop),
        false => std::fs::read(file).map(|read| bytes = read),
    };
    read.map_err(|e| Failure::unreadable(file, &e, "check the path"))?;
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
    let bar = ProgressBar::new(lines as u64);
    let imported = memory.import(&bytes, trust, |done| bar.set_position(done as u64)).await;
    bar.finish_and_clear();
    let imported = imported?;
    for (line, problem) in &imported.refused {
        app.output.note(Look::Dim, format!("line {line} is refused: {problem}"));
    }
    let item = json!({"kept": imported.stored, "refused": imported.refused.len()});
    app.item(&item, || format!("{} imported, {} refused", imported.stored, imported.refused.len()));
    match imported.stored == 0 && !imported.refused.is_empty() {
        true => Err(Failure::usage(
            "no line of the file is a memory",
            "give a file that `archon memory export` wrote",
        )),
        false => Ok(Exit::Finished),
    }
}

async fn embed(app: &App, of: &Of) -> Result<Exit, Failure> {
    let memory = open(app, &of.collection).await?;
    let bar = ProgressBar::new(memory.lacking_vectors().await? as u64);
    let embedded = memory.embed_missing(|done| bar.set_position(done as u64)).await;
    bar.finish_and_clear();
    // Finished vectors are kept; the next call makes the rest.
    let Embedded { done, refused, .. } = embedded?;
    app.item(&json!({"embedded": done, "refused": refused}), || {
        format!("{done} embedded, {refused} refused")
    });
    if refused > 0 {
        // The warnings have the reasons.
        let hint = "refused memories stay without a vector and are found by words; the next `archon memory embed` tries them again";
        app.output.note(Look::Dim, hint);
    }
    Ok(Exit::Finished)
}

async fn export(app: &App, of: &Of, out: Option<PathBuf>) -> Result<Exit, Failure> {
    let lines = open(app, &of.collection).await?.export().await?;
    let Some(path) = out else {
        lines.iter().for_each(|line| app.output.json(line));
        return Ok(Exit::Finished);
    };
    let write = || {
        let mut file = std::io::BufWriter::new(std::fs::File::create(&path)?);
        lines.iter().try_for_each(|line| writeln!(file, "{}", escaped(line)))?;
        file.flush()
    };
    write().map_err(|e| Failure::unwritable(&path, &e, "choose another file"))?;
    Ok(Exit::Finished)
}
