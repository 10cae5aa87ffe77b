//! Kinds of runs: each kind has a machine of its own, and the first record of a log names it.

use serde::{Deserialize, Serialize};

use crate::{Origin, RunError};

/// The kind of a run. Names in logs, JSON and messages are stable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunKind {
    /// A model that thinks and acts in turns.
    #[default]
    Loop,
    /// Several loops side by side, and a choice among their answers.
    Parallel,
    /// A goal, broken down into a plan that is followed.
    Plan,
    /// A team whose members do the work.
    Team,
    /// A call of an agent with typed fields, which may wait for people.
    AgentCall,
}

impl RunKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Loop, Self::Parallel, Self::Plan, Self::Team, Self::AgentCall];

    /// Its name, as in logs and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Loop => "loop",
            Self::Parallel => "parallel",
            Self::Plan => "plan",
            Self::Team => "team",
            Self::AgentCall => "agent_call",
        }
    }

    /// The kind of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Refuses a run of this kind that is to go on in a session: for kinds that continue no conversation.
    ///
    /// # Errors
    /// [`RunError::Unsupported`], of the run that would be continued.
    pub fn refuse_session(self, origin: &Origin) -> Result<(), RunError> {
        match origin {
            Origin::Continues { run, .. } => Err(RunError::Unsupported {
                run: run.clone(),
                kind: self,
                action: "go on in a session that has runs",
                instead: "start it in a session of its own",
            }),
            _ => Ok(()),
        }
    }
}

impl std::fmt::Display for RunKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}
