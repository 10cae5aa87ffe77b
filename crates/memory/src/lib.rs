//! Memories: what was said, what is at hand, and what is kept for good.
//!
//! A store (`archon_types::MemoryStore`) holds entries and gives back candidates with raw scores; there is one in this
//! crate, for this process, and others live in crates of their own. All else is here, the same for every store:
//!
//! | to | there is |
//! |---|---|
//! | hold everything of one owner | [`Memory`], on a store that is bound to a collection |
//! | keep what is said in a session | [`Conversation`] |
//! | have values at hand for a task | [`TaskMemory`] |
//! | keep something for good, and find it by words and meaning | [`LongTermMemory`] |
//! | know who stands in which relation to what, and since when | [`Knowledge`], [`Fact`] |
//! | find facts in texts | [`KnowledgeExtractor`]: [`RuleExtractor`], [`LlmExtractor`] |
//! | fill a prompt under a budget | [`Recall`] |
//! | have a question answered by a model | [`Memory::ask`] |
//! | sum up what outgrows the window | [`Compressor`] |
//! | sum up what was kept last | [`LongTermMemory::summarize_recent`] |
//! | forget, merge, embed again | [`Memory::evict`], [`Memory::merge_similar`], [`Memory::embed_missing`] |
//! | move memories | [`Memory::export`], [`Memory::import`] |
//! | keep entries in this process | [`InMemoryStore`] |
//! | have vectors without a model | [`HashEmbedder`] |
//! | order candidates of words and of meaning into one list | [`rank`] |
//!
//! What is untrusted stays so: an extractor's facts are believed no more than their text, an import's lines no more
//! than the import, a summary and its key facts no more than what it sums up; and what is believed less never closes,
//! overwrites, hides or outranks what is believed more.

mod ask;
mod compress;
mod conversation;
mod embedding;
mod extract;
mod hash_embedder;
mod in_memory;
mod knowledge;
mod long_term;
mod memory;
mod model;
mod options;
pub mod rank;
mod recall;
mod summarize;
mod task_memory;
mod transfer;
mod upkeep;
mod words;

pub use ask::Answered;
pub use compress::Compressor;
pub use conversation::Conversation;
pub use extract::{KnowledgeExtractor, LlmExtractor, Passage, RuleExtractor};
pub use hash_embedder::HashEmbedder;
pub use in_memory::InMemoryStore;
pub use knowledge::{Entity, Fact, Knowledge, Learnt, Objects};
pub use long_term::LongTermMemory;
pub use memory::Memory;
pub use options::{MemoryOptions, Shown};
pub use recall::{BudgetSplit, Recall, RecallStep, RecalledContext};
pub use summarize::Summarized;
pub use task_memory::TaskMemory;
pub use transfer::Imported;
pub use upkeep::{Embedded, Kept, Limits};

pub(crate) use long_term::Remembered;
