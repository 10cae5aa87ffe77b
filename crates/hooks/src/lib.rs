//! Hooks: commands and HTTP endpoints that learn of events of a run, and may deny a call or ask about it.
//!
//! Use this crate around a toolbox of your own, so that people keep the hooks that they have for other agents: files,
//! events and answers have the form that people know. The page "Hooks on events of a run" of the book describes it.
//!
//! An endpoint at an https address needs the cargo feature `tls`: without it, its hook is left out with a [`HookProblem`].
//!
//! *Invariants*
//!
//! - A hook makes a decision about a call stricter, never more lenient.
//! - Every hook ends at its deadline, with all processes that it started.
//! - A hook that is to decide and gives no answer counts as a no.
//!
//! # Example
//!
//! ```
//! # use std::sync::Arc;
//! # use archon_types::{Clock, Toolbox};
//! use archon_hooks::{EventHooks, HookSet};
//!
//! # fn example(tools: Arc<dyn Toolbox>, clock: Arc<dyn Clock>) {
//! let text = r#"{ "hooks": { "PreToolUse": [{ "matcher": "bash", "hooks": [
//!     { "type": "command", "command": "grep -q 'rm -rf' && echo 'No rm -rf.' >&2 && exit 2; exit 0" }
//! ] }] } }"#;
//! let (set, problems) = HookSet::of_person("hooks.json".as_ref(), text);
//! assert!(problems.is_empty());
//! let hooks = EventHooks::new(set, "/srv/app", clock);
//! let guarded: Arc<dyn Toolbox> = Arc::new(hooks.toolbox(tools));
//! # }
//! ```

// | concept | file |
// |---|---|
// | `HookSet`, the hooks of files; `HookDigestError` | `set.rs`, read by `file.rs` |
// | one hook; `HookDescription`, `HookProblem` | `hook.rs` |
// | the hash that a person trusts | `digest.rs` |
// | events and their JSON; which tools a hook is for | `event.rs`, `matcher.rs` |
// | `EventHooks`, which runs hooks | `event_hooks.rs`, with `command.rs` and `endpoint.rs` |
// | hooks at the end of a run, beside a program's own | `end_of_run.rs` |
// | what a hook answers, and several answers as one | `answer.rs`, `verdict.rs` |
// | `HookedToolbox`, calls that pass hooks | `toolbox.rs` |

#![cfg_attr(docsrs, feature(doc_cfg))]

mod answer;
#[cfg(unix)]
mod command;
mod digest;
mod end_of_run;
mod endpoint;
mod event;
mod event_hooks;
mod file;
mod hook;
mod matcher;
mod set;
mod toolbox;
mod verdict;

pub use event_hooks::EventHooks;
pub use hook::{HookDescription, HookProblem};
pub use set::{HookDigestError, HookSet};
pub use toolbox::HookedToolbox;
