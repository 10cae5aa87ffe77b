//! Work on a store of memories, for tests that kill it: `killable_memory PLACE ingest|embed|compact|learn ROUND`. A place
//! is SQLite's file or, as `postgres:SCHEMA`, a schema of the PostgreSQL that `ARCHON_TEST_POSTGRES` names. A line on
//! standard output says what is done, after it is done.

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::{io::Write as _, sync::Arc};

use anyhow::{Context as _, Result, bail};
use archon::{
    AgentMemory, Archon, RandomIds, SystemClock,
    memory::{Fact, HashEmbedder, KnowledgeExtractor, Memory, MemoryOptions, Passage, RuleExtractor},
    store::SqliteMemory,
    types::{
        BoxFuture, Collection, Embedder, MemoryChange, MemoryEntry, MemoryError, MemoryStore, Timestamp,
    },
};
use archon_testkit::{Ended, FnProvider};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [place, mode, round] = &args[..] else {
        bail!("usage: killable_memory PLACE ingest|embed|compact|learn ROUND")
    };
    let round: u64 = round.parse().context("ROUND")?;
    let store = open(place).await?;
    match mode.as_str() {
        "ingest" => ingest(&*store, round).await,
        "embed" => embed(store, round).await,
        "compact" => compact(&SqliteMemory::open(place)?).await,
        "learn" => learn(store, round).await,
        other => bail!("{other}: ingest, embed, compact or learn"),
    }
}

async fn open(place: &str) -> Result<Arc<dyn MemoryStore>> {
    let victim = Collection::new("user:victim")?;
    let Some(schema) = place.strip_prefix("postgres:") else {
        return Ok(Arc::new(SqliteMemory::open(place)?.collection(victim)?));
    };
    in_postgres(schema, victim).await
}

#[cfg(feature = "postgres")]
async fn in_postgres(schema: &str, collection: Collection) -> Result<Arc<dyn MemoryStore>> {
    let config = std::env::var("ARCHON_TEST_POSTGRES").context("ARCHON_TEST_POSTGRES")?;
    let all = archon::store::PostgresMemory::connect(&config, schema).await?;
    Ok(Arc::new(all.collection(collection)?))
}

#[cfg(not(feature = "postgres"))]
#[allow(clippy::unused_async, reason = "as with the feature")]
async fn in_postgres(schema: &str, _: Collection) -> Result<Arc<dyn MemoryStore>> {
    bail!("{schema}: built without PostgreSQL")
}

/// Batches of three, which belong together.
async fn ingest(store: &dyn MemoryStore, round: u64) -> Result<()> {
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
async fn embed(store: Arc<dyn MemoryStore>, round: u64) -> Result<()> {
    let mut options = MemoryOptions::default();
    options.batch = 8;
    let memory = Memory::new(store, Arc::new(SystemClock), Arc::new(RandomIds));
    let memory = memory.with_options(options).with_embedder(Arc::new(OfRound::new(round)));
    memory.embed_missing(|count| _ = done(&count.to_string())).await?;
    Ok(())
}

/// An embedder whose vectors are of its round too, so that one that another round left is seen for what it is.
struct OfRound {
    id: String,
    round: u64,
}

impl OfRound {
    fn new(round: u64) -> Self {
        Self { id: format!("round:{round}"), round }
    }
}

impl Embedder for OfRound {
    fn id(&self) -> &str {
        &self.id
    }

    fn dimensions(&self) -> usize {
        HashEmbedder::DIMENSIONS
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, MemoryError>> {
        let of_round = |text: &String| HashEmbedder::vector(&format!("{text} round {}", self.round));
        Box::pin(async move { Ok(texts.iter().map(of_round).collect()) })
    }
}

async fn compact(store: &SqliteMemory) -> Result<()> {
    for n in 0..50 {
        store.compact().await?;
        done(&n.to_string())?;
    }
    Ok(())
}

/// An agent hears a text after the other, and when it has kept the one of the round's number, it reads it for ever.
async fn learn(store: Arc<dyn MemoryStore>, round: u64) -> Result<()> {
    let memory = Memory::new(store, Arc::new(SystemClock), Arc::new(RandomIds));
    let model = FnProvider::new(|_, _| FnProvider::text("Noted."));
    let parts = AgentMemory::new(memory).with_extractor(Arc::new(Stuck(round)));
    let agent = Archon::builder().provider(Arc::new(model), "m").memory(parts).build()?;
    for n in 0..=round {
        agent.run(format!("I like thing{n} of round {round}.")).await.ended();
        done(&format!("learnt {n}"))?;
    }
    Ok(())
}

struct Stuck(u64);

impl KnowledgeExtractor for Stuck {
    fn id(&self) -> &str {
        RuleExtractor.id()
    }

    fn extract<'a>(&'a self, passage: &'a Passage) -> BoxFuture<'a, Result<Vec<Fact>, MemoryError>> {
        Box::pin(async move {
            let Self(round) = self;
            if passage.text.contains(&format!("thing{round} of round {round}")) {
                _ = done(&format!("reading {round}"));
                std::future::pending::<()>().await;
            }
            // What another round left is left to the test.
            match passage.text.contains(&format!("of round {round}")) {
                true => RuleExtractor.extract(passage).await,
                false => Err(MemoryError::Unsupported { what: "what is another round's" }),
            }
        })
    }
}

fn done(what: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{what}")?;
    out.flush().context("nobody listens")
}
