//! Agents that wait for people: agents as tools with typed fields, the pool of waiting runs, and assistants.
//!
//! Use this crate alone to let an agent of your own ask a person before the agent works, or to answer the
//! messages of many tenants.
//!
//! An [`AgentTool`] is an agent as a tool with typed fields, which can ask a person and wait for the
//! answer. An [`AgentPool`] is an index that finds the waiting runs of a tenant; the logs of the runs
//! remain the truth.
//!
//! An [`Assistant`] answers messages of many tenants. A run that waits for a person gets the message
//! first; otherwise the agent loop does, through the trait [`Conversations`].
//!
//! # Example
//!
//! A call without a journal cannot wait, so a missing field becomes a result that the model reads:
//!
//! ```
//! use std::sync::Arc;
//!
//! use archon_assistant::{AgentTool, FieldKind, InputField};
//! use archon_testkit::{FnAgent, SeededIds, VirtualClock};
//! use archon_types::{Context, RunId, SessionId, Tool, ToolContext};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), archon_types::ToolError> {
//! let mail = AgentTool::new("SendEmailAgent", "Sends an email.", FnAgent::saying("Sent."))
//!     .field(InputField::required("recipient", FieldKind::Text, "Address of the recipient."));
//! let (clock, ids) = (Arc::new(VirtualClock::new()), Arc::new(SeededIds::new(1)));
//! let context = Context::new(RunId::new("run_1"), SessionId::new("s"), clock, ids);
//! let call = ToolContext::new(context, "call_1".into(), "SendEmailAgent");
//!
//! let sent = mail.call(json!({ "recipient": "ann@example.com" }), &call).await?;
//! assert_eq!(sent.text(), "Sent.");
//! let asks = mail.call(json!({}), &call).await?;
//! assert!(asks.text().contains("needs `recipient`"));
//! # Ok(())
//! # }
//! ```

// | question | file |
// |---|---|
// | which fields does an agent need? | `fields.rs` |
// | what is asked before the agent works, and what follows from the answer? | `agent_tool/input.rs` |
// | what asks, runs the agent, and keeps its state? | `agent_tool.rs`, `agent_tool/work.rs` |
// | which runs wait, for how long, and how many may? | `pool.rs` |
// | what happens with a message? | `assistant.rs` |
// | what is recalled before, checked, and stored after? | `Steps`, `assistant/steps.rs` |
// | what time is it for a tenant? | `Zone::named`, `assistant/steps.rs` |
// | which question do a person's words answer? | `assistant/reader.rs` |

mod agent_tool;
mod assistant;
mod fields;
mod pool;

pub use agent_tool::{AgentTool, exposed, fields_of, task_with_fields};
pub use assistant::{
    AnswerReader, Assistant, AssistantError, AssistantReply, Conversations, Incoming, LongTermSteps,
    ModelReader, NextTurn, PlainSteps, RateLimited, Source, StepVerdict, Steps, Swept, TenantContext,
    UnknownZone, WordReader, Zone, conversation_of,
};
pub use fields::{FieldKind, InputField, Validator};
pub use pool::{AgentPool, InMemoryPoolIndex, Noted, PoolOptions};
