//! The state machine of a run: derives the next command from the records alone.
//!
//! Time, randomness and I/O come in with the records only. A record for a command that is not open changes
//! nothing. Whatever the records are, the machine ends within its limits, and no request contains a tool call
//! without its result.

mod answers;
mod approvals;
mod calls;
mod endings;
mod failures;
mod goal;
mod instructions;
mod interruption;
mod leases;
mod person_requests;
mod prompts;
mod snapshots;
mod structured_output;
mod tool_retry;

use std::{collections::BTreeMap, sync::Arc};

use archon_run::{Machine, Next};
use archon_types::{
    AssistantMessage, Attributed, AuxiliaryCall, CallId, CommandId, Compaction, CompactionLevel,
    ContinuationKind, Encoded, HookPoint, LimitReached, Message, Origin, Outcome, OutcomeStatus, ReactState,
    Record, RecordBody, Request, RunConfig, RunId, RunKind, RunStarted, SchemaProblem, SessionMode, Speaker,
    Spending, StopReason, Summary, Timestamp, ToolMode, ToolResult, TurnTrigger,
};
use serde::{Deserialize, Serialize};

use crate::{
    CallState, ContextManager, ContextParts, History, Messages, SummaryDue,
    circuit_breaker::{Breaker, Circuits},
    fallback::{self, Chain},
    limits::Meter,
    queues::Queues,
    repetition::Repetition,
};

use snapshots::Snapshots;

pub(crate) use approvals::in_doubt;
pub use goal::GoalDue;

/// A task that only the machine of a loop (a run of one agent) has.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ReactTask {
    /// Append `ModelCallStarted` and send [`ReactMachine::request`] to the model.
    AskModel {
        /// The command id, which the record of the answer must have.
        command: CommandId,
        /// Number of the attempt, from 0.
        attempt: u32,
        /// Number of the turn, from 0.
        turn: u32,
    },
    /// Ask the model to summarize old turns, then append `Summarized`.
    Summarize(SummaryDue),
    /// Ask the model whether the answer meets the expected output, then append `GoalChecked`.
    CheckGoal(GoalDue),
    /// Check [`ReactMachine::answer`] against its schema, then append `OutputChecked`.
    CheckOutput,
    /// Run each of [`ReactMachine::calls`] that has no result, except calls that wait for a retry.
    RunCalls,
    /// Wait until this time, then append `ClockRead`.
    WaitUntil(Timestamp),
    /// All open calls wait for people, and no person was asked yet: ask the approver of this process and
    /// append the answers. Without an answer, append `Suspended`.
    Decide,
}

/// The next step of a loop.
pub(crate) type Step = Next<ReactTask>;

/// The state of one run, folded from its records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReactMachine {
    run: RunId,
    config: RunConfig,
    system: Option<Arc<Encoded<String>>>,
    window: ContextManager,
    phase: Phase,
    meter: Meter,
    repetition: Repetition,
    chain: Chain,
    circuits: Circuits,
    next_command: u64,
    /// Steering messages and follow-ups that the model has not read yet.
    queues: Queues,
    /// The author of the run's prompts that name no author.
    #[serde(default)]
    prompted_by: Speaker,
    /// True once the run has a message to answer.
    begun: bool,
    /// True if a run without a prompt answers the last message of its conversation.
    answers_history: bool,
    cancelled: bool,
    limit: Option<LimitReached>,
    last_answer: String,
    /// The reason why the model ended its last answer.
    #[serde(default)]
    last_stop: StopReason,
    /// The project's instructions.
    #[serde(default)]
    instructions: String,
    /// Number of answers that the goal check sent back.
    #[serde(default)]
    goal_checks: u32,
    /// Number of answers in a row that did not fit the schema.
    #[serde(default)]
    schema_misses: u32,
    /// Problems of the last answer with its schema.
    #[serde(default)]
    misfits: Vec<SchemaProblem>,
    /// The auxiliary request that was sent to a model, if one is open.
    #[serde(default)]
    auxiliary_call: Option<AuxiliaryCall>,
    #[serde(default)]
    interrupted: interruption::Interrupted,
    /// True if the run is suspended: the approver was asked, and all open calls still wait for people.
    #[serde(default)]
    suspended: bool,
    /// Permission rules of "always allow" answers, valid for the rest of the session.
    #[serde(default)]
    trusted: Vec<String>,
    /// The mode of the session.
    #[serde(default, skip_serializing_if = "is_default")]
    mode: SessionMode,
    /// True if the model knows that the session is in plan mode.
    #[serde(default, skip_serializing_if = "is_default")]
    has_plan_mode_hint: bool,
    /// True if a person agreed to the plan, and the change of the mode is not recorded yet.
    #[serde(default, skip_serializing_if = "is_default")]
    is_plan_agreed: bool,
    /// The instructions of a person for the summary of a requested compaction; may be empty. `None` if no compaction
    /// is to come.
    #[serde(default, skip_serializing_if = "is_default")]
    compaction_request: Option<String>,
    /// True if the run began with a person's request for a compaction; the run then ends after the compaction.
    #[serde(default, skip_serializing_if = "is_default")]
    only_compacts: bool,
    #[serde(default)]
    snapshots: Snapshots,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The phase of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
enum Phase {
    /// The run has no prompt yet.
    Fresh,
    /// The model is asked next, unless a limit is reached.
    Ready,
    /// A request was sent to the model.
    Asking { command: CommandId, attempt: u32 },
    /// A failed request waits for its retry.
    BackingOff { command: CommandId, attempt: u32, until: Timestamp },
    /// The calls of an answer run until each has its result.
    Acting { answer: Box<AssistantMessage>, calls: Vec<CallState> },
    /// The answer is being checked against its schema.
    Matching,
    /// The answer is being compared with the expected output.
    Checking,
    /// The loop adds a note for the model; the phase `then` follows.
    Noting { text: String, then: Box<Phase> },
    /// The outcome is known and must be recorded.
    Finishing(Box<Outcome>),
    /// The outcome is recorded.
    Ended(Box<Outcome>),
}

impl ReactMachine {
    /// Creates the machine of a new run that continues `history`.
    pub fn new(started: &RunStarted, at: Timestamp, history: History) -> Self {
        Self::with_parts(started, at, history, ContextParts::default())
    }

    /// Does the same as [`new`](Self::new), with the program's own token counter and compaction strategy.
    pub fn with_parts(started: &RunStarted, at: Timestamp, history: History, parts: ContextParts) -> Self {
        let mut meter = Meter::default();
        meter.start(at);
        // A fork shares the budget of the run that it leaves; a next prompt has a new budget.
        let is_branch =
            matches!(started.origin, Origin::Continues { continuation: ContinuationKind::Branch { .. }, .. });
        if is_branch {
            meter.carry(history.spent);
        }
        let unanswered = is_branch && history.wants_answer();
        // "Always allow" rules hold only for the next run of the session in the same folder, not for
        // forks or retries.
        let goes_on =
            matches!(started.origin, Origin::Continues { continuation: ContinuationKind::Default, .. })
                && history.workspace == started.config.workspace;
        let trusted = if goes_on { history.trusted.clone() } else { Vec::new() };
        let prompted_by = match (&started.origin, started.first_trigger) {
            (Origin::CalledBy { .. }, _) | (_, TurnTrigger::SubAgent) => Speaker::Model,
            _ => Speaker::Person,
        };
        let mode = history.mode;
        let system = instructions::system(&started.config, "");
        let text = system.as_ref().map(|system| system.as_str());
        let mut machine = Self {
            run: started.run.clone(),
            config: started.config.clone(),
            window: ContextManager::new(&started.config, text, history, parts),
            system,
            phase: Phase::Fresh,
            meter,
            repetition: Repetition::default(),
            chain: Chain::default(),
            circuits: Circuits::default(),
            next_command: 0,
            queues: Queues::default(),
            prompted_by,
            begun: false,
            answers_history: unanswered || started.first_trigger == TurnTrigger::Continuation,
            cancelled: false,
            limit: None,
            last_answer: String::new(),
            last_stop: StopReason::Stop,
            instructions: String::new(),
            goal_checks: 0,
            schema_misses: 0,
            misfits: Vec::new(),
            auxiliary_call: None,
            interrupted: Default::default(),
            suspended: false,
            trusted,
            mode,
            has_plan_mode_hint: mode == SessionMode::Plan,
            is_plan_agreed: false,
            compaction_request: None,
            only_compacts: false,
            snapshots: Snapshots::default(),
        };
        machine.answer_history();
        machine
    }

    fn compacted(&mut self, compaction: &Compaction, at: Timestamp) {
        self.window.compacted(compaction, at);
        if compaction.level != CompactionLevel::CleanUp {
            self.compaction_request = None;
        }
    }

    fn summarized(&mut self, summary: &Summary) {
        self.pay_auxiliary_call(&summary.usage, summary.text.is_some());
        self.window.summarized(summary);
    }
}

impl Machine for ReactMachine {
    const KIND: RunKind = RunKind::Loop;
    type Task = ReactTask;

    fn apply(&mut self, record: &Record) {
        use RecordBody as B;
        // Time before a resume, or while people are asked, does not count for the run.
        match self.waits_for_people() || record.body.is_resumption() {
            true => self.meter.resume(record.at),
            false => self.meter.see(record.at),
        }
        self.interrupted.see(&record.body);
        match &record.body {
            B::MessageAdded { message, source } => self.prompted(message, *source),
            B::ConversationRestored { messages } => self.restored(messages),
            B::InputRejected { reason } => {
                self.stopped(OutcomeStatus::Failed, format!("the input was rejected: {reason}"));
            }
            B::StoppedByHook { hook } => self.stopped(OutcomeStatus::Cancelled, vetoed(*hook).to_owned()),
            B::ModelCallStarted { command, attempt, .. } => self.note_model_call(*command, *attempt),
            B::ModelCallFinished { command, attempt, message } if self.is_asking(*command, *attempt) => {
                self.answered(*command, message);
            }
            B::ModelCallFailed { command, attempt, failure } if self.is_asking(*command, *attempt) => {
                self.failed(*command, *attempt, failure, record.at);
            }
            B::FallbackSelected { fallback, .. } => self.fallback_selected(fallback),
            B::ModelCallLost { command, attempt } if self.is_asking(*command, *attempt) => {
                self.model_call_lost(*command, *attempt, record.at)
            }
            B::ToolCallStarted { call, attempt, effect, .. } => {
                self.tool_call_started(*call, *attempt, *effect)
            }
            B::ChildRunCreated { .. } | B::LeaseGranted { .. } | B::LeaseSettled { .. } => {
                self.child_noted(&record.body)
            }
            B::ToolCallFailed { call, attempt, result, jitter } => {
                self.tool_call_failed(*call, *attempt, result, *jitter, record.at)
            }
            B::ToolCallFinished { call, result } => self.tool_call_finished(*call, result, record.at),
            B::ToolCallRefused { call, result } => self.tool_ended(*call, result, record.at),
            B::ApprovalRequested { .. } | B::ApprovalAnswered { .. } => self.consulted(record),
            B::Suspended { .. } => self.suspended = self.waits_for_people(),
            B::ModeChanged { .. } | B::CompactionRequested { .. } => self.apply_person_request(&record.body),
            B::HintAdded { text } => self.noted(text, record.at),
            B::AuxiliaryCallStarted { .. } => self.auxiliary_call_started(&record.body),
            B::Summarized(summary) => self.summarized(summary),
            B::InstructionsRead { text } => self.instructed(text),
            B::WorkspaceSnapshot(snapshot) => self.snapshots.see(snapshot),
            B::GoalChecked(verdict) => self.goal_checked(verdict),
            B::OutputChecked { problems } => self.output_checked(problems),
            B::Compacted(compaction) => self.compacted(compaction, record.at),
            B::ContextStatus { level, text } if !matches!(self.phase, Phase::Ended(_)) => {
                self.window.add_notice(*level, text, record.at);
            }
            B::CancelRequested { .. } => self.cancelled = true,
            B::LimitsRaised(more) => self.limits_raised(more),
            B::Resumed => self.resumed(record.at),
            B::LimitReached(limit) => self.limit_reached(*limit),
            B::ParallelFinished(choice) => self.chosen(choice),
            B::RunFinished(outcome) => self.ended_with(outcome),
            _ => {}
        }
    }

    fn next(&self) -> Step {
        if let Some(change) = self.end_of_plan_mode() {
            return change;
        }
        match &self.phase {
            Phase::Ended(outcome) => Step::Done(Outcome::clone(outcome)),
            Phase::Finishing(outcome) => Step::Append(RecordBody::RunFinished(outcome.clone())),
            Phase::Acting { calls, .. } => self.next_of_calls(calls),
            // The answer is complete, so a cancel does not stop its check.
            Phase::Matching => Step::Do(ReactTask::CheckOutput),
            _ if self.cancelled => self.finish(self.outcome(OutcomeStatus::Cancelled)),
            Phase::Fresh => self.step_without_prompt(),
            Phase::Checking => self.goal_due(),
            Phase::Noting { text, .. } => Step::Append(RecordBody::HintAdded { text: text.clone() }),
            Phase::Ready => self.limit_due().unwrap_or_else(|| self.ask_in_window()),
            Phase::BackingOff { until, .. } if self.meter.now() < *until => {
                Step::Do(ReactTask::WaitUntil(*until))
            }
            Phase::BackingOff { command, attempt, .. } => {
                let due = self.step_due(*command, *attempt).or_else(|| self.window.recovery());
                match due.or_else(|| self.window.refit()) {
                    Some(record) => Step::Append(record),
                    None => self.limit_of_tries().unwrap_or_else(|| self.ask(*command, attempt + 1)),
                }
            }
            // Only a driver that lost its state asks while an answer is open; the wait ends at the
            // deadline.
            Phase::Asking { .. } => Step::Do(ReactTask::WaitUntil(self.deadline())),
        }
    }

    fn is_stopping(&self) -> bool {
        self.cancelled
    }

    fn knows(&self, report: &RecordBody) -> bool {
        let RecordBody::ChildRunCreated { call, .. } = report else { return false };
        self.call(*call).is_some_and(|state| state.is_begun)
    }

    fn outcome_of_suspension(&self, _: RunId) -> Outcome {
        self.suspended_outcome()
    }
}

impl ReactMachine {
    /// Returns the request of [`ReactTask::AskModel`].
    pub fn request(&self) -> Request {
        let mut request = Request::default();
        self.model().clone_into(&mut request.model);
        request.system.clone_from(&self.system);
        request.messages = self.window.messages().clone();
        request.options = self.request_options();
        request.reads = fallback::reads(&self.config, self.target());
        // A forced summary is an answer, so the request for it offers no tools.
        if self.limit.is_none() && self.config.tool_mode == ToolMode::Native {
            request.tools = self.config.tools.clone();
        }
        request
    }

    /// Returns the conversation so far, as the next request or the next run sees it.
    pub fn messages(&self) -> &Messages {
        self.window.messages()
    }

    /// Returns the context window: the messages that the model sees, and the tokens that they take.
    pub fn window(&self) -> &ContextManager {
        &self.window
    }

    /// Returns all messages so far with their authors, also those that wait to be read.
    pub fn attributed_messages(&self) -> Vec<Attributed> {
        let waiting = self.queues.iter().map(|prompt| Attributed::new(prompt.message.clone(), prompt.by));
        self.window.attributed().chain(waiting).collect()
    }

    /// Returns the history for the next run of the session. Calls without a result are not included.
    pub fn into_history(mut self) -> History {
        let open: Vec<_> = self.calls().iter().filter(|c| c.result().is_none()).map(|c| c.id).collect();
        for call in open {
            self.tool_ended(call, &Arc::new(ToolResult::cancelled(NOT_CARRIED_OVER)), self.meter.now());
        }
        // Messages that the model never read are read with the next prompt.
        let unread = self.queues.take_all();
        self.push_prompts(unread);
        if let (Phase::Ended(_), Some(by)) = (&self.phase, self.interrupted.by()) {
            self.window.push(Message::user(by.marker(), self.meter.now()), Speaker::Program);
        }
        let (spent, trusted, mode) = (self.meter.spent(), self.trusted, self.mode);
        History { spent, trusted, mode, workspace: self.config.workspace, ..self.window.into_history() }
    }

    /// Returns the number of turns of this run.
    pub(crate) fn turns(&self) -> u32 {
        self.meter.turns
    }

    /// Returns the id of the latest model command.
    pub(crate) fn last_command(&self) -> CommandId {
        CommandId(self.next_command.saturating_sub(1))
    }

    /// Returns the snapshots of the workspace.
    pub(crate) fn snapshots(&self) -> &Snapshots {
        &self.snapshots
    }

    /// Returns true if no request, call or check is open.
    pub(crate) fn is_at_rest(&self) -> bool {
        !self.is_in_turn() && !matches!(self.phase, Phase::Matching | Phase::Checking)
    }

    /// Returns the configuration of the run.
    pub fn config(&self) -> &RunConfig {
        &self.config
    }

    /// Returns the time at which the current work must stop, by the time limit of the run. With
    /// [`OnLimit::ForceSummary`](archon_types::OnLimit::ForceSummary), this time is earlier, so that the final summary
    /// can still be made. Once a limit is reached, it is the end of the run's whole time.
    pub fn deadline(&self) -> Timestamp {
        match self.limit {
            // At a limit only the final summary may still take time.
            Some(_) => self.meter.end(&self.config.limits),
            None => self.meter.deadline(&self.config.limits),
        }
    }

    /// Returns the command and the attempt of the open request to the model, if a request is open.
    pub fn open_request(&self) -> Option<(CommandId, u32)> {
        match self.phase {
            Phase::Asking { command, attempt } => Some((command, attempt)),
            _ => None,
        }
    }

    /// Returns the calls of the current turn, with the results so far.
    pub fn calls(&self) -> &[CallState] {
        match &self.phase {
            Phase::Acting { calls, .. } => calls,
            _ => &[],
        }
    }

    pub(crate) fn call(&self, id: CallId) -> Option<&CallState> {
        self.calls().iter().find(|call| call.id == id)
    }

    /// Returns the outcome; `None` while no outcome is recorded.
    pub fn ended(&self) -> Option<&Outcome> {
        match &self.phase {
            Phase::Ended(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// Returns true if a steering message waits. Calls that have not started are then skipped.
    pub fn is_steered(&self) -> bool {
        self.queues.is_steered()
    }

    /// Returns true while a turn is open: the model was asked, and results are still missing.
    pub fn is_in_turn(&self) -> bool {
        matches!(self.phase, Phase::Asking { .. } | Phase::BackingOff { .. } | Phase::Acting { .. })
    }

    /// Returns the states of the circuit breakers of tools whose last call failed, by tool name.
    pub fn breakers(&self, now: Timestamp) -> BTreeMap<String, Breaker> {
        self.circuits.states(now)
    }

    /// Returns the tokens of all model calls so far.
    pub fn usage(&self) -> archon_types::Usage {
        self.meter.usage
    }

    /// Returns the spending of the run including its child runs. Model calls and child runs under way count with the
    /// amount reserved for them.
    pub fn spending(&self) -> Spending {
        self.meter.spending()
    }

    /// Returns the state of the run for people.
    pub fn state(&self) -> ReactState {
        match &self.phase {
            Phase::Fresh => ReactState::Idle,
            Phase::Asking { .. } | Phase::BackingOff { .. } | Phase::Matching | Phase::Checking => {
                ReactState::Thinking
            }
            Phase::Acting { .. } => ReactState::Acting,
            Phase::Ready | Phase::Noting { .. } => ReactState::Observing,
            Phase::Finishing(o) | Phase::Ended(o) if o.is_finished() => ReactState::Finished,
            Phase::Finishing(_) | Phase::Ended(_) => ReactState::Error,
        }
    }

    fn is_asking(&self, command: CommandId, attempt: u32) -> bool {
        self.open_request() == Some((command, attempt))
    }

    fn ask(&self, command: CommandId, attempt: u32) -> Step {
        Step::Do(ReactTask::AskModel { command, attempt, turn: self.meter.turns })
    }

    /// Returns the next request, or the compaction, summary or notice that the window needs first.
    fn ask_in_window(&self) -> Step {
        let now = self.meter.now();
        if let Some(record) = self.window.cleanup_due() {
            return Step::Append(record);
        }
        if let Some(text) = self.mode_hint() {
            return Step::Append(RecordBody::HintAdded { text: text.to_owned() });
        }
        if let Some(step) = self.compaction_step() {
            return step;
        }
        if let Some(due) = self.window.summary_due(now) {
            return self.auxiliary_command(AuxiliaryCall::Summary, Step::Do(ReactTask::Summarize(due)));
        }
        match self.window.due(now) {
            Some(record) => Step::Append(record),
            None => self.ask(CommandId(self.next_command), 0),
        }
    }

    fn finish(&self, outcome: Outcome) -> Step {
        Step::Append(RecordBody::RunFinished(Box::new(outcome)))
    }

    fn note_model_call(&mut self, command: CommandId, attempt: u32) {
        let expected = match self.phase {
            Phase::Ready => command.0 == self.next_command && attempt == 0,
            Phase::BackingOff { command: open, attempt: before, .. } => {
                command == open && attempt == before + 1
            }
            _ => false,
        };
        if expected {
            self.next_command = command.0 + 1;
            if attempt == 0 {
                self.chain.reset_counts();
            }
            self.auxiliary_call = None;
            // A requested compaction that did not make the conversation smaller is given up.
            self.compaction_request = None;
            self.reserve_cost(self.cost_estimate());
            self.window.note_request();
            self.queues.note_request();
            self.phase = Phase::Asking { command, attempt };
        }
    }
}

/// The result that a call without a result gets in the conversation of a later run.
const NOT_CARRIED_OVER: &str = "Not carried over: this call had no result when the conversation went on \
                                without it. Nothing is known of its effect.";

fn vetoed(hook: HookPoint) -> &'static str {
    match hook {
        HookPoint::BeforeLoop => "a hook stopped the run before it began",
        _ => "a hook stopped the run before its next turn",
    }
}
