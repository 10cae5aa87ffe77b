//! Ranks the memories that a store found for a question, by words, meaning, time and neighbouring turns.
//!
//! Use this crate alone to order search results of your own; it has no store and does no I/O. `archon-memory` exports it
//! as its module `rank`.
//!
//! A store finds the best candidates by words and the nearest by vector, and each store scores words in its
//! own way. The score of one memory alone is not enough: an answer often shares no word with its question,
//! but comes right after a turn that does. So candidates are ranked here, in the same way for every store. A
//! memory `m` of session `s` gets
//!
//! ```text
//! score(m) = around(m) + 0.5 · time(m) + 0.2 · speaker(m) + 0.02 · recency(m)
//! around(m) = own(m) + 0.2 · (own(m−1) + own(m+1)) + 0.1 · (own(m−2) + own(m+2))     within s
//! own(m)    = coverage(m) + meaning(m)
//! ```
//!
//! | part | is |
//! |---|---|
//! | coverage | the share of the question's stemmed words that the memory has, by BM25 over the candidates, 0 to 1 |
//! | meaning | cosine of the two vectors, 0 to 1; 0 for all without an embedder |
//! | time | 1 for a time that the question names, halved for each four days of distance ([`TimeHint`]) |
//! | speaker | 1 if the question contains the speaker's name, −1 if an assistant or a tool said it |
//! | recency | 1 now, halved for each 30 days; only if the question has a time of asking |
//!
//! A message of an assistant or a tool neither gives a share to its neighbours nor gets one. A question for the
//! first or the latest adds up to 0.2 for the order in time.
//!
//! Values of the working memory add words to the question, with a weight of 0.3
//! ([`RankQuestion::with_context`]). Scores are sums of values rather than of ranks, because a rank does not
//! show the distance to the best. The weights were chosen on conversations of people and of a person with an
//! assistant; `docs/benchmarks.md` has the results on these and on others.
//!
//! # Example
//!
//! ```
//! use archon_memory_rank::{Item, Ranker};
//!
//! let ranker = Ranker::default();
//! let mut items = [Item::default(); 3];
//! items[0].text = "Alice prefers summaries in bullet points.";
//! items[1].text = "The build takes four minutes.";
//! items[2].text = "Bob prefers tea.";
//! let hits = ranker.rank(&ranker.question("what does Alice prefer?"), &items);
//! assert_eq!(hits[0].item, 0);
//! ```

// | concept | file |
// |---|---|
// | the question: terms, names, times | `question.rs`, `dates.rs` |
// | the terms of a text | `words.rs`, `accents.rs` |
// | the score, and its weights | `ranker.rs`, `lexical.rs`, `weights.rs` |

mod accents;
mod dates;
mod lexical;
mod question;
mod ranker;
mod weights;
mod words;

pub use dates::{TimeHint, time_hints};
pub use question::{RankQuestion, ends_of, only_asks};
pub use ranker::{Item, Ranked, Ranker, SESSION};
pub use weights::Weights;
pub use words::Analyzer;
