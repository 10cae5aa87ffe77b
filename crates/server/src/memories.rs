//! Memories: pages of a store, and a search by words.

use archon_types::{Collection, Listing, MemoryEntry, MemoryFilter, MemoryOrder, MemorySearch};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use crate::{
    reply::{Reply, json},
    request::Call,
};

/// The default and the maximum number of memories on a page.
const PAGE: (usize, usize) = (50, 500);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MemoriesQuery {
    /// The collection, with the collections within it.
    collection: Option<Collection>,
    key: Option<String>,
    /// The words to search for. A search returns only one page.
    text: Option<String>,
    limit: Option<usize>,
    after: Option<u64>,
}

pub(crate) async fn list(call: Call) -> Reply {
    let query: MemoriesQuery = call.query()?;
    let store = call.memories()?;
    let limit = query.limit.unwrap_or(PAGE.0).clamp(1, PAGE.1);
    let mut filter = MemoryFilter::default();
    filter.collection = query.collection;
    filter.key = query.key;
    let (entries, next): (Vec<MemoryEntry>, Option<u64>) = match query.text {
        Some(text) => {
            let mut search = MemorySearch::words(text, limit);
            search.filter = filter;
            let mut found = store.candidates(&search).await?.candidates;
            found.sort_by(|a, b| b.lexical.unwrap_or_default().total_cmp(&a.lexical.unwrap_or_default()));
            (found.into_iter().map(|found| found.entry).collect(), None)
        }
        None => {
            let mut listing = Listing::new(filter, MemoryOrder::Latest, limit);
            listing.after = query.after;
            let page = store.list(&listing).await?;
            (page.entries, page.next)
        }
    };
    let entries: Vec<_> = entries.into_iter().map(without_vector).collect();
    json(StatusCode::OK, &json!({ "memories": entries, "next": next }))
}

/// Removes the vector of an entry, since people cannot read it.
fn without_vector(mut entry: MemoryEntry) -> MemoryEntry {
    entry.embedding = None;
    entry
}
