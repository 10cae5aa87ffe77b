//! The memories of a collection: stored, found and listed.

use archon::{
    SystemClock,
    types::{
        Clock, Collection, Listing, LongTerm, MemoryEntry, MemoryFilter, MemoryKind, MemoryOrder,
        MemoryQuery, Trust,
    },
};

use crate::{
    app::App,
    failure::Failure,
    memory::open,
    output::Look,
    text::{format_time, one_line},
};

/// Stores a text of a person as a memory, and returns the ids of what is stored.
///
/// # Errors
/// The memory cannot be opened or written.
pub(crate) async fn add(app: &App, collection: &Collection, text: &str) -> Result<Vec<String>, Failure> {
    let memory = open(app, collection).await?;
    let mut entry = MemoryEntry::new("", text, SystemClock.now());
    // A person at the keyboard is trusted.
    entry.trust = Trust::Trusted;
    Ok(memory.keep(vec![entry]).await?)
}

/// Prints the memories that fit a question, best first.
///
/// # Errors
/// The question is empty, or the memory cannot be read.
pub(crate) async fn search(
    app: &App,
    collection: &Collection,
    limit: usize,
    question: String,
) -> Result<(), Failure> {
    if question.trim().is_empty() {
        let advice = "give a question: archon memory search \"What does Anna prefer?\"";
        return Err(Failure::usage("the question is empty", advice));
    }
    let mut query = MemoryQuery::new(question);
    query.limit = limit;
    let found = open(app, collection).await?.long_term().query(&query).await?;
    let none = format!("no memory in {collection} fits the question");
    app.list(&found, &none, |hit| format!("{:.2}  {}", hit.score, row(&hit.entry)));
    Ok(())
}

/// Prints the latest memories.
///
/// # Errors
/// The memory cannot be read.
pub(crate) async fn list(app: &App, collection: &Collection, limit: usize) -> Result<(), Failure> {
    let memory = open(app, collection).await?;
    let mut page = memory.store().list(&Listing::new(not_forgotten(), MemoryOrder::Latest, limit)).await?;
    for damaged in &page.damaged {
        app.output.note(Look::Dim, format!("{} is damaged: {}", damaged.id, damaged.problem));
    }
    page.entries.iter_mut().for_each(|entry| entry.embedding = None);
    app.list(&page.entries, &format!("no memories in {collection}"), row);
    Ok(())
}

/// Selects all entries except the markers of forgotten entries.
pub(crate) fn not_forgotten() -> MemoryFilter {
    MemoryFilter::all().of(&MemoryKind::WITH_CONTENT)
}

fn row(entry: &MemoryEntry) -> String {
    let when = format_time(entry.timestamp);
    let (kind, trust) = (entry.kind.as_str(), entry.trust.as_str());
    format!("{}  {when:<16}  {kind:<7} {trust:<9} {}", entry.id, one_line(&entry.content, 100))
}
