//! Work on a store of memories, for tests that kill it: `killable_memory DIR ingest|embed|compact ROUND`. A line on
//! standard output says what is done, after it is done.

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::{io::Write as _, path::Path, sync::Arc};

use anyhow::{Context as _, Result, bail};
use archon::{
    RandomIds, SystemClock,
    memory::{HashEmbedder, Memory, MemoryOptions},
    store::SqliteMemory,
    types::{
        BoxFuture, Collection, Embedder, MemoryChange, MemoryEntry, MemoryError, MemoryStore, Timestamp,
    },
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [dir, mode, round] = &args[..] else {
        bail!("usage: killable_memory DIR ingest|embed|compact ROUND")
    };
    let round: u64 = round.parse().context("ROUND")?;
    let all = SqliteMemory::open(Path::new(dir).join("memory.db"))?;
    let store = all.collection(Collection::new("user:victim")?)?;
    match mode.as_str() {
        "ingest" => ingest(&store, round).await,
        "embed" => embed(store, round).await,
        "compact" => compact(&all).await,
        other => bail!("{other}: ingest, embed or compact"),
    }
}

/// Batches of three, which belong together.
async fn ingest(store: &SqliteMemory, round: u64) -> Result<()> {
    for batch in 0..200 {
        let entry = |part: u64| {
            let id = format!("r{round}-b{batch}-p{part}");
            let text = format!("content of {} in full", id.replace('-', "x"));
            let vector = HashEmbedder::vector(&text);
            let entry = MemoryEntry::new(id, text, Timestamp::from_millis(batch));
            MemoryChange::put(entry.with_vector(HashEmbedder::ID, vector))
        };
        store.apply((0..3).map(entry).collect()).await?;
        done(&format!("r{round}-b{batch}"))?;
    }
    Ok(())
}

/// Each round has an embedder of its own, so that all is to be embedded again.
async fn embed(store: SqliteMemory, round: u64) -> Result<()> {
    let mut options = MemoryOptions::default();
    options.batch = 8;
    let memory = Memory::new(Arc::new(store), Arc::new(SystemClock), Arc::new(RandomIds));
    let memory = memory.with_options(options).with_embedder(Arc::new(OfRound(format!("round:{round}"))));
    memory.embed_missing(|count| _ = done(&count.to_string())).await?;
    Ok(())
}

struct OfRound(String);

impl Embedder for OfRound {
    fn id(&self) -> &str {
        &self.0
    }

    fn dimensions(&self) -> usize {
        HashEmbedder::DIMENSIONS
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, MemoryError>> {
        HashEmbedder.embed(texts)
    }
}

async fn compact(store: &SqliteMemory) -> Result<()> {
    for n in 0..50 {
        store.compact().await?;
        done(&n.to_string())?;
    }
    Ok(())
}

fn done(what: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{what}")?;
    out.flush().context("nobody listens")
}
