//! The assistant: agents from a folder that serve many tenants.
//!
//! `archon assistant FOLDER` is the server of `archon serve` with other agents. Its parts:
//!
//! - The folder has `assistant.md`, the persona of the main agent, and `agents/*.md`, one agent each. [`Folder::load`]
//!   reads all of them, and leaves files with a problem out.
//! - Each agent is built twice over the same parts: as an [`AgentTool`](archon::orchestrator::AgentTool) of the main
//!   agent, which asks for missing fields and for the approval of the call, and as an agent of the run service, whose
//!   runs triggers start. All of them have ids in the logs, so a run that waits goes on after a restart.
//! - A message goes to [`Assistant`](archon::orchestrator::Assistant). Its conversations are runs of the run service.
//!   The open questions that a message can answer are read from the journal, and stored nowhere else.
//! - A trigger of a file is a task of each tenant, with an id that follows from the file. At the start the tasks are
//!   made equal to the files.
//! - A condition of a trigger reads a tool of the agent, without a run. The tool changes nothing, and sees the accounts of
//!   the task's tenant.
//! - The tools of an agent see the accounts at the services that its file names: those of the tenant whose run it is.
//!
//! *Invariants*
//!
//! - A message reaches only runs of the tenant of its token, and answers only questions that its conversation showed.
//! - A run of the assistant is resumed only by the assistant, because only it has the agents.

mod accounts;
mod conversations;
mod description;
mod file_tasks;
mod file_triggers;
mod folder;
mod messages;
mod parts;
mod probes;
mod served;

pub(crate) use folder::Folder;
pub(crate) use served::Assisted;

/// The id of the main agent.
pub(crate) const ASSISTANT: &str = "assistant";

/// Returns the id in logs of the agent that a file with this name describes.
fn id_of(name: &str) -> String {
    format!("{ASSISTANT}/{name}")
}

/// Returns true if this is the id of an agent of an assistant.
pub(crate) fn is_agent(id: &str) -> bool {
    id == ASSISTANT || id.starts_with("assistant/")
}
