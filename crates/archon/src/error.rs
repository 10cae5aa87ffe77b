//! Why an agent could not be put together, or a run not be started.

use archon_react_loop::LoopError;
#[cfg(any(feature = "planner", feature = "orchestrator"))]
use archon_types::RunRefused;
use archon_types::{JournalError, Outcome, RunError, RunId, RunStatus};

/// What went wrong before, or outside of, a run. What goes wrong inside one is its outcome.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The builder was given no model.
    #[error("no model was chosen")]
    NoModel,
    /// The model's name leads nowhere.
    #[cfg(feature = "named-models")]
    #[error(transparent)]
    Model(#[from] archon_providers::SetupError),
    /// A tool could not be registered.
    #[error(transparent)]
    Tool(#[from] archon_tools::Error),
    /// The session's newest run is at work or waits: a message beside it would be missing from the conversation when
    /// that run goes on.
    #[error("the session's run {run} is {status}")]
    SessionBusy {
        /// The run.
        run: RunId,
        /// The state that the run is in.
        status: RunStatus,
    },
    /// The conversation works on something already.
    #[error("run {run} is under way")]
    AlreadyRunning {
        /// The run under way.
        run: RunId,
    },
    /// Messages that were kept elsewhere cannot be read or written.
    #[error("not a list of messages: {0}")]
    Messages(serde_json::Error),
    /// The process takes more memory than new tasks may find; see [`MemoryLimit`](crate::MemoryLimit).
    #[error("the process takes {used} bytes of memory and no task begins above {max}")]
    MemoryPressure {
        /// What it takes, bytes.
        used: u64,
        /// The most, bytes.
        max: u64,
    },
    /// The agent has no tool that was chosen for a run.
    #[error("the agent has no tool `{name}`{}", meant.as_ref().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default())]
    UnknownTool {
        /// The name that was chosen.
        name: String,
        /// The tool that is called about that.
        meant: Option<String>,
    },
    /// A plan, a team or agents side by side were given a setting that is for a run of one agent.
    #[error("{setting} for one run cannot be given where several agents work")]
    RunSetting {
        /// The setting.
        setting: &'static str,
    },
    /// The builder was given something that another part of it leaves no use for.
    #[error("`{setting}` has no effect beside `{beside}`")]
    NoEffect {
        /// What was given.
        setting: &'static str,
        /// Because of what.
        beside: &'static str,
    },
    /// No run was ever started in this journal.
    #[error("there is no run to continue")]
    NothingToContinue,
    /// The run could not be started or taken up.
    #[error(transparent)]
    Run(#[from] LoopError),
    /// There is no plan, or it cannot be followed.
    #[cfg(feature = "planner")]
    #[error(transparent)]
    Plan(archon_planner::PlanRunError),
    /// The team cannot work, or its run cannot be taken up.
    #[cfg(feature = "orchestrator")]
    #[error(transparent)]
    Team(archon_orchestrator::TeamError),
    /// The run is not one of this tenant's.
    #[cfg(feature = "orchestrator")]
    #[error("run {run} is not one of {tenant}")]
    OtherTenant {
        /// The run.
        run: RunId,
        /// Who asked for it.
        tenant: archon_types::TenantId,
    },
    /// The run has no answer of the type that was asked for; see [`Typed`](crate::Typed).
    #[error("run {} has no answer of the type: {problem}", outcome.run)]
    NotTyped {
        /// What does not fit, or why there is no answer.
        problem: String,
        /// How the run ended, with the last answer.
        outcome: Box<Outcome>,
    },
    /// Arguments that a person changed do not fit the tool.
    #[error("the changed arguments cannot be used: {problem}")]
    Edit {
        /// What is wrong with them.
        problem: String,
    },
    /// The run's task ended without an outcome: it panicked, or its runtime was shut down.
    #[error("the run's task ended without an outcome")]
    Lost,
}

impl Error {
    /// What a person can do about it, in a line.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::NoModel => "call `model(\"provider:name\")` or `provider(…)` on the builder",
            #[cfg(feature = "named-models")]
            Self::Model(_) => "name a model as PROVIDER:MODEL, with the key that its service needs",
            Self::Tool(_) => {
                "give every tool a name of its own, an object as its parameters, and a folder that is there"
            }
            Self::SessionBusy { status: RunStatus::Suspended, .. } => {
                "answer its questions and resume it, cancel it, or begin a branch: `RunOptions::branch`"
            }
            Self::SessionBusy { .. } => {
                "say it to the run with `follow_up` or `steer`, wait until it has ended, or begin a branch: `RunOptions::branch`"
            }
            Self::AlreadyRunning { .. } => "steer it, queue a follow-up, or wait until it has ended",
            Self::Messages(_) => "restore what `save` wrote",
            Self::MemoryPressure { .. } => "wait until runs that are under way have ended, or cancel one",
            Self::UnknownTool { .. } => "choose among the tools that the agent was built with",
            Self::RunSetting { .. } => {
                "set it where each of the agents is built; `Archon::to_builder` begins with an agent's parts"
            }
            Self::NoEffect { beside: "provider", .. } => {
                "give the keys to the providers: `provider_with_keys`"
            }
            Self::NoEffect { .. } => "give tools and their options to the toolbox, or leave the toolbox out",
            Self::NothingToContinue => "start a run first",
            Self::Run(e) => e.advice(),
            #[cfg(feature = "planner")]
            Self::Plan(e) => plan_advice(e),
            #[cfg(feature = "orchestrator")]
            Self::Team(e) => team_advice(e),
            #[cfg(feature = "orchestrator")]
            Self::OtherTenant { .. } => "take up runs of the tenant that they were started for",
            Self::NotTyped { .. } => "look at the outcome's answer; a failed or cancelled run can be resumed",
            Self::Edit { .. } => "change them so that they fit the tool, or approve or cancel the call",
            Self::Lost => "resume the run: it is taken up where its log ends",
        }
    }
}

impl Error {
    /// A task that ended without a result.
    pub(crate) fn of_task(error: &tokio::task::JoinError) -> Self {
        tracing::debug!(%error, "the task of a run ended without an outcome");
        Self::Lost
    }
}

#[cfg(any(feature = "planner", feature = "orchestrator"))]
impl Error {
    /// Whether the run cannot be resumed because it has ended.
    pub(crate) fn is_ended(&self) -> bool {
        match self {
            #[cfg(feature = "planner")]
            Self::Plan(archon_planner::PlanRunError::Refused(RunRefused::Ended { .. })) => true,
            #[cfg(feature = "orchestrator")]
            Self::Team(archon_orchestrator::TeamError::Refused(RunRefused::Ended { .. })) => true,
            _ => false,
        }
    }
}

impl From<Error> for RunError {
    fn from(error: Error) -> Self {
        match error {
            Error::Run(error) => error.into(),
            #[cfg(feature = "planner")]
            Error::Plan(error) => error.into(),
            #[cfg(feature = "orchestrator")]
            Error::Team(error) => error.into(),
            Error::SessionBusy { run, status } => Self::SessionBusy { run, status },
            error => {
                let advice = error.advice();
                Self::agent(error, advice)
            }
        }
    }
}

impl From<JournalError> for Error {
    fn from(error: JournalError) -> Self {
        Self::Run(error.into())
    }
}

#[cfg(feature = "planner")]
impl From<archon_planner::PlanRunError> for Error {
    fn from(error: archon_planner::PlanRunError) -> Self {
        match error {
            archon_planner::PlanRunError::Journal(error) => error.into(),
            error => Self::Plan(error),
        }
    }
}

/// What helps where nothing has to be looked up for it; the problems of a plan name their own remedies.
#[cfg(feature = "planner")]
fn plan_advice(error: &archon_planner::PlanRunError) -> &'static str {
    use archon_planner::PlanRunError;
    match error {
        PlanRunError::Journal(e) => e.advice(),
        PlanRunError::Plan(e) => e.advice(),
        PlanRunError::Problems { .. } => "change the plan as its problems say",
        PlanRunError::NotAPlan { .. } => "resume it with `Archon::resume`",
        PlanRunError::Refused(refused) => refused.advice(),
        PlanRunError::ProcessesLeft { .. } => "end them yourself, then resume the run",
        _ => "look at the run's log",
    }
}

#[cfg(feature = "orchestrator")]
impl From<archon_orchestrator::TeamError> for Error {
    fn from(error: archon_orchestrator::TeamError) -> Self {
        match error {
            archon_orchestrator::TeamError::Journal(error) => error.into(),
            error => Self::Team(error),
        }
    }
}

/// What helps where nothing has to be looked up for it; the problems of a team name their own remedies.
#[cfg(feature = "orchestrator")]
fn team_advice(error: &archon_orchestrator::TeamError) -> &'static str {
    use archon_orchestrator::TeamError;
    match error {
        TeamError::Journal(e) => e.advice(),
        TeamError::Problems { .. } => "change the team as its problems say",
        TeamError::Refused(refused) => refused.advice(),
        TeamError::NotATeam { .. } => "resume it with the agent that began it",
        _ => "look at the run's log",
    }
}
