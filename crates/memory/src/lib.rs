//! Memory of agents: conversations, values of a task, long-term memories and facts.
//!
//! Use this crate alone to give any program a memory that can be searched by words and by meaning; it needs
//! no agent.
//!
//! A store (`archon_types::MemoryStore`) keeps entries and returns candidates with raw scores. This crate
//! has a store in RAM; other stores have their own crates. Everything else is in this crate and is the same
//! for every store:
//!
//! | to | use |
//! |---|---|
//! | have all memory of one owner | [`Memory`], on a store that is bound to a collection |
//! | keep the turns of a session | [`ConversationMemory`] |
//! | keep values for a task | [`TaskMemory`] |
//! | keep something permanently, and find it by words and meaning | [`LongTermMemory`] |
//! | keep facts with the time in which they hold | [`Knowledge`], [`Fact`] |
//! | extract facts from texts | [`KnowledgeExtractor`]: [`RuleExtractor`], [`LlmExtractor`] |
//! | fill a prompt within a token budget | [`Recall`] |
//! | let a model answer a question from memories | [`Memory::ask`] |
//! | summarize a conversation that exceeds the context window | [`Compressor`] |
//! | summarize recent memories | [`LongTermMemory::summarize_recent`] |
//! | forget, merge, embed again | [`Memory::evict`], [`Memory::keep_within`], [`Memory::merge_similar`], [`Memory::embed_missing`] |
//! | move memories | [`Memory::export`], [`Memory::import`] |
//! | remember the messages of an agent's runs | [`AgentMemory`] |
//! | keep entries in RAM | [`InMemoryStore`] |
//! | embed without a model | [`HashEmbedder`] |
//! | rank candidates by words and meaning | [`rank`] |
//!
//! Trust levels never rise. A fact never has a higher trust level than its text, an imported line never a
//! higher one than the import, and a summary and its key facts never a higher one than the summarized turns. An
//! entry with a lower trust level never ends, overwrites, hides or outranks an entry with a higher one.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use archon_memory::{HashEmbedder, InMemoryStore, Memory};
//! use archon_testkit::{SeededIds, VirtualClock};
//! use archon_types::{Collection, LongTerm, MemoryQuery};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = InMemoryStore::new().collection(Collection::new("user:alice")?)?;
//! // For tests. A program passes the clock and the ids of the facade (`SystemClock`, `RandomIds`), or its own.
//! let (clock, ids) = (VirtualClock::new(), SeededIds::new(1));
//! let memory = Memory::new(Arc::new(store), Arc::new(clock), Arc::new(ids)).with_embedder(Arc::new(HashEmbedder));
//!
//! let notes = memory.long_term();
//! notes.store("Alice prefers summaries in bullet points.", serde_json::Map::new()).await?;
//! let found = notes.query(&MemoryQuery::new("user preferences")).await?;
//! assert_eq!(found[0].entry.content, "Alice prefers summaries in bullet points.");
//! # Ok(())
//! # }
//! ```

// | concept | file |
// |---|---|
// | all memories of one owner, and their options | `memory.rs`, `options.rs` |
// | the memory of an agent's runs | `agent_memory.rs`, `agent_memory/extraction.rs` |
// | the three kinds of memory | `conversation.rs`, `task_memory.rs`, `long_term.rs` |
// | search: words, vectors | `words.rs`, `embedding.rs` |
// | facts, and which of two is valid | `fact.rs`, `knowledge.rs`, `knowledge/timeline.rs` |
// | extraction of facts | `extract.rs`, `extract/rules.rs`, `extract/llm.rs` |
// | recall into a prompt | `recall.rs`, `marks.rs` |
// | summaries | `compress.rs`, `summarize.rs` |
// | upkeep, export and import | `upkeep.rs`, `transfer.rs` |

mod agent_memory;
mod ask;
mod compress;
mod conversation;
mod embedding;
mod extract;
mod fact;
mod hash_embedder;
mod in_memory;
mod knowledge;
mod long_term;
mod marks;
mod memory;
mod model;
mod options;
mod recall;
mod summarize;
mod task_memory;
mod transfer;
mod upkeep;
mod words;

pub use agent_memory::{AgentMemory, TurnMemory};
pub use archon_memory_rank as rank;
pub use ask::Answered;
pub use compress::Compressor;
pub use conversation::ConversationMemory;
pub use extract::{KnowledgeExtractor, LlmExtractor, Passage, RuleExtractor};
pub use fact::{Fact, Objects};
pub use hash_embedder::HashEmbedder;
pub use in_memory::InMemoryStore;
pub use knowledge::{Entity, Knowledge, Learnt};
pub use long_term::LongTermMemory;
pub use memory::Memory;
pub use options::MemoryOptions;
pub use recall::{BudgetSplit, Recall, RecallStep, RecalledContext};
pub use summarize::Summarized;
pub use task_memory::TaskMemory;
pub use transfer::Imported;
pub use upkeep::{Embedded, EvictionCounts, EvictionLimits};
