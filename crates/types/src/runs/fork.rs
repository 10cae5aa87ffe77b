//! Forks: the options and the result of creating a new run that begins with the records of another run.

use serde::Serialize;

use crate::{
    messages::AgentMessage,
    values::{AgentId, RunId, SessionId},
};

/// The options of a fork: the place in the old run where the new run begins, and the changes for the new run.
/// Default: the end of the old run, without changes.
///
/// ```
/// use archon_types::{Fork, ForkOptions, ManageRuns, RunError, RunId};
///
/// // The turn that has record 12 begins again with another message and another agent.
/// async fn another_way(runs: &dyn ManageRuns, run: &RunId) -> Result<Fork, RunError> {
///     let options = ForkOptions::at_record(12).with_message("Ask the other bank.").with_agent("clerk");
///     runs.fork(run, options).await
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ForkOptions {
    /// The place in the log of the old run at which the fork begins. Default [`ForkPlace::End`].
    pub at: ForkPlace,
    /// A message that the model answers next. It replaces the messages that the old run received after the
    /// last kept turn; if there are none, it is added. If no turn is kept, it replaces the messages with
    /// which the old run began. A message that came while the tools of a turn worked belongs to that turn.
    /// Default none.
    pub message: Option<AgentMessage>,
    /// The agent whose configuration the new run has: its model, tools, instructions and limits. With the id
    /// of the old run's agent, the new run gets the current configuration of this agent. `None` for the
    /// configuration in the log of the old run.
    pub agent: Option<AgentId>,
}

impl ForkOptions {
    /// Creates options for a fork after this number of turns; see [`ForkPlace::Turns`].
    pub fn after(turns: u32) -> Self {
        Self { at: ForkPlace::Turns(turns), ..Self::default() }
    }

    /// Creates options for a fork at the record with this sequence number; see [`ForkPlace::Record`].
    pub fn at_record(seq: u64) -> Self {
        Self { at: ForkPlace::Record(seq), ..Self::default() }
    }
}

crate::setters! {
impl ForkOptions {
    /// Sets the message that the model answers next. Default none.
    pub fn with_message(self, message: impl Into<AgentMessage>) -> Self { self.message = Some(message.into()) }

    /// Sets the agent whose configuration the new run has. Default: the configuration in the log of the old run.
    pub fn with_agent(self, agent: impl Into<AgentId>) -> Self { self.agent = Some(agent.into()) }
}
}

/// The place in a run at which a fork begins: always between two turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForkPlace {
    /// The end of the run. All turns are kept. A tool call without a result gets a result which says that the fork
    /// did not wait for the call, and that nothing is known of its effect.
    #[default]
    End,
    /// After this number of turns, directly before the request of the next turn. After 0 turns, the fork has
    /// only the messages with which the run began.
    Turns(u32),
    /// The beginning of the turn that has the record with this sequence number. But if a tool of this turn
    /// started at or before this record, the fork keeps the turn, so that the effect of the tool is not
    /// repeated. A record after the last turn counts as part of the last turn.
    Record(u64),
}

impl std::fmt::Display for ForkPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::End => f.write_str("at its end"),
            Self::Turns(turns) => write!(f, "after turn {turns}"),
            Self::Record(seq) => write!(f, "at record {seq}"),
        }
    }
}

/// The result of forking a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fork {
    /// The new run. Resume it, or send a prompt to its session.
    pub run: RunId,
    /// The session, to which both runs belong.
    pub session: SessionId,
    /// The run that was forked.
    pub of: RunId,
    /// The number of records that both runs share.
    pub records: u64,
    /// The number of turns that both runs share.
    pub turns: u32,
    /// True if the model answers next when the fork is resumed; false if the fork waits for a prompt.
    pub wants_answer: bool,
}
