//! The request to start a run, with the settings of that run.

use crate::{
    config::{ExecutionLimits, RunKind},
    messages::{AgentMessage, Message},
    tools::SessionMode,
    values::{AgentId, SessionId, TenantId, Timestamp},
};

use super::{earlier_message::MessagePlace, run_error::RunError};

/// A request to start a run. Pass it to [`StartRuns::start`](crate::StartRuns::start).
///
/// ```
/// use archon_types::{
///     ExecutionLimits, Message, MessagePlace, RunKind, SessionMode, StartRun, Timestamp, WhenBusy,
/// };
///
/// let request = StartRun::new("Are there chairs?")
///     .agent("desk")
///     .kind(RunKind::Loop)
///     .key("request-7")
///     .session("anna")
///     .tenant("chair-shop")
///     .when_busy(WhenBusy::Queue)
///     .limits(ExecutionLimits::default().with_max_turns(5))
///     .system("Answer in one sentence.")
///     .tools(["stock"])
///     .mode(SessionMode::Plan);
///
/// // Another message takes the place of an earlier one.
/// let again = StartRun::new("Are there tables?").session("anna").instead_of(MessagePlace::new("run_1", 3));
///
/// // The conversation began in another program.
/// let earlier = vec![Message::user("I am Anna.", Timestamp::default())];
/// let moved = StartRun::new("Who am I?").restored(earlier);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StartRun {
    /// The messages of the prompt.
    pub prompts: Vec<AgentMessage>,
    /// The id under which the agent is registered; `None` for the agent with which the service was built.
    pub agent: Option<AgentId>,
    /// The kind of the run. Default [`RunKind::Loop`]. One agent may be registered for several kinds.
    pub kind: RunKind,
    /// The idempotency key, unique per tenant: a repeated request with the same key starts no second run and gets
    /// the first run. Default none.
    pub key: Option<String>,
    /// The session to continue; `None` for a new session.
    pub session: Option<SessionId>,
    /// The behaviour if the session's newest run works, waits or was interrupted. Default
    /// [`WhenBusy::Refuse`].
    pub when_busy: WhenBusy,
    /// An earlier message of the session that the prompts replace: the run continues the session as it was
    /// before this message. `None` to continue the session at its end. Effects of tools are not undone. The
    /// request is refused if the session is busy, even with [`WhenBusy::Queue`] or [`WhenBusy::Steer`].
    pub instead_of: Option<MessagePlace>,
    /// The tenant on whose behalf the run works; `None` for the tenant `local`.
    pub tenant: Option<TenantId>,
    /// The settings of this run that replace the agent's.
    pub settings: RunSettings,
}

/// The settings of one run that replace those of the agent. The run's log stores them, so they also apply
/// when the run is resumed.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RunSettings {
    /// The limits; `None` for those of the agent.
    pub limits: Option<ExecutionLimits>,
    /// The standing instructions for the model (the system prompt); `None` for those of the agent.
    pub system: Option<String>,
    /// The names of the agent's tools that the run may use; `None` for all.
    pub tools: Option<Vec<String>>,
    /// The mode of the session from this run on; `None` to keep the present mode.
    pub mode: Option<SessionMode>,
    /// Requests a compaction before the first request to the model. The text is a person's instructions for
    /// the summary, and may be empty. `None` for no compaction. The run service sets this field if a person
    /// requested a compaction that the last run of the session did not make.
    pub compaction: Option<String>,
    /// A conversation from outside of the journal, which the model reads before the prompts: messages of people and of
    /// models, the oldest first. The authors of these messages are unknown, whatever their roles say, so the messages
    /// are untrusted. Input filters check them as they check prompts.
    pub restored: Vec<Message>,
}

impl RunSettings {
    /// Checks the settings for a run of `kind` with several agents: refuses settings that only a run of a
    /// single agent can have.
    ///
    /// # Errors
    /// [`RunError::NotForKind`] if instructions, tools, a mode, a compaction or a restored conversation are set.
    pub fn refuse_for(&self, kind: RunKind) -> Result<(), RunError> {
        let what = match self {
            Self { system: Some(_), .. } => "a system text for one run",
            Self { tools: Some(_), .. } => "tools for one run",
            Self { mode: Some(_), .. } => "a mode",
            Self { compaction: Some(_), .. } => "a compaction",
            Self { restored, .. } if !restored.is_empty() => "a restored conversation",
            _ => return Ok(()),
        };
        let instead = "start a loop with it, or give it to each of the agents when they are built";
        Err(RunError::NotForKind { kind, what, instead })
    }
}

impl StartRun {
    /// Creates a request for a run in a new session: the agent with which the service was built works on `task`.
    pub fn new(task: impl Into<String>) -> Self {
        Self::with_messages(vec![Message::user(task, Timestamp::default()).into()])
    }

    /// Creates a request with messages of any content, such as texts and pictures. A message without a time gets
    /// the run's start time.
    pub fn with_messages(prompts: Vec<AgentMessage>) -> Self {
        Self {
            prompts,
            agent: None,
            kind: RunKind::Loop,
            key: None,
            session: None,
            when_busy: WhenBusy::default(),
            instead_of: None,
            tenant: None,
            settings: RunSettings::default(),
        }
    }
}

crate::setters! {
impl StartRun {
    /// Sets the id under which the agent is registered. Default: the agent with which the service was built.
    pub fn agent(self, agent: impl Into<AgentId>) -> Self { self.agent = Some(agent.into()) }

    /// Sets the kind of the run. Default [`RunKind::Loop`].
    pub fn kind(self, kind: RunKind) -> Self { self.kind = kind }

    /// Sets the idempotency key: a repeated request with the same key starts no second run. Default none.
    pub fn key(self, key: impl Into<String>) -> Self { self.key = Some(key.into()) }

    /// Sets the session to continue. Default: a new session.
    pub fn session(self, session: impl Into<SessionId>) -> Self { self.session = Some(session.into()) }

    /// Sets the behaviour if the session is busy. Default [`WhenBusy::Refuse`].
    pub fn when_busy(self, choice: WhenBusy) -> Self { self.when_busy = choice }

    /// Sets the earlier message of the session that the prompts replace. Default: the session is continued at its
    /// end.
    pub fn instead_of(self, message: MessagePlace) -> Self { self.instead_of = Some(message) }

    /// Sets the tenant on whose behalf the run works. Default `local`.
    pub fn tenant(self, tenant: impl Into<TenantId>) -> Self { self.tenant = Some(tenant.into()) }

    /// Sets the limits of this run. Default: those of the agent.
    pub fn limits(self, limits: ExecutionLimits) -> Self { self.settings.limits = Some(limits) }

    /// Sets the standing instructions for the model (the system prompt). Default: those of the agent.
    pub fn system(self, instructions: impl Into<String>) -> Self {
        self.settings.system = Some(instructions.into())
    }

    /// Sets the names of the agent's tools that this run may use. Default: all tools of the agent.
    pub fn tools(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.settings.tools = Some(names.into_iter().map(Into::into).collect())
    }

    /// Sets the mode of the session from this run on. Default: the present mode.
    pub fn mode(self, mode: SessionMode) -> Self { self.settings.mode = Some(mode) }

    /// Sets a conversation from outside of the journal, which the model reads before the prompts. Default empty.
    pub fn restored(self, messages: Vec<Message>) -> Self { self.settings.restored = messages }
}
}

/// The behaviour for a message to a session whose newest run works, waits or was interrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenBusy {
    /// The message is refused with [`RunError::SessionBusy`].
    #[default]
    Refuse,
    /// The run reads the message when it would otherwise end, as with
    /// [`AnswerRuns::follow_up`](crate::AnswerRuns::follow_up). If the run ends without reading the message, the
    /// message begins the next run of the session. A repeated request with the same idempotency key does not queue
    /// the message again, if one of the 20 newest runs of the session has it.
    Queue,
    /// The model of the run reads the message in its next request, as with
    /// [`AnswerRuns::steer`](crate::AnswerRuns::steer): running tools finish, and calls that have not started are
    /// skipped. A suspended run is resumed, and the calls that its open questions are about are skipped, too. In
    /// all other respects the same as [`Queue`](Self::Queue).
    Steer,
    /// The message starts a parallel run in the session. Neither run sees the messages of the other.
    Branch,
}
