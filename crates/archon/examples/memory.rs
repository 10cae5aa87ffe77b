//! An agent that remembers: what fits is told to the model with each question. Without a network: the model is
//! scripted. `cargo run -p archon-agents --features memory --example memory`

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::sync::Arc;

use archon::{
    Archon, RandomIds, SystemClock,
    memory::{InMemoryStore, Memory},
    providers::ScriptedProvider,
    types::{Clock, Collection, MemoryEntry, Trust},
};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Any other `MemoryStore` fits in here: `store::SqliteMemory`, `store::PostgresMemory`, your own.
    let of_anna: Collection = "user:anna".parse()?;
    let store = InMemoryStore::new().collection(of_anna)?;
    let memory = Memory::new(Arc::new(store), Arc::new(SystemClock), Arc::new(RandomIds));
    let mut said = MemoryEntry::new("", "Anna is allergic to peanuts.", SystemClock.now());
    said.trust = Trust::Trusted;
    memory.keep(vec![said]).await?;
    let model = Arc::new(ScriptedProvider::texts(["No peanuts for Anna."]));
    let agent = Archon::builder().provider(model.clone(), "scripted").memory(memory).build()?;
    println!("{}", agent.run("What may Anna not eat: peanuts or apples?").await?.into_text()?);
    let told = model.history().first().map(|request| format!("{request:?}")).unwrap_or_default();
    println!("the model was told of it: {}", told.contains("allergic"));
    Ok(())
}
