//! [`AgentEvents`]: the fold that computes [`AgentEvent`]s, which are not stored, from records and deltas.

use std::collections::HashMap;

use archon_types::{
    AgentMessage, AssistantMessage, CallId, CommandId, ContinuationKind, Delta, DeltaKind, Event, HookPoint,
    LoopId, Message, Origin, Outcome, OutcomeStatus, ParallelBranch, Record, RecordBody, RunId, RunStarted,
    SessionId, StopReason, Timestamp, ToolCall, ToolCallId, ToolResult, TurnTrigger,
};

use crate::agent_event::{AgentEvent, StreamDelta};

/// Folds the events of runs into [`AgentEvent`]s.
///
/// Push the events of each run from its first record on; events of several runs may be interleaved. Each
/// start event has an end event: a turn whose model call failed ends with an empty assistant message that has
/// the error. The one exception is a model call that is retried: its message starts again.
#[derive(Clone, Debug, Default)]
pub struct AgentEvents {
    runs: HashMap<RunId, RunEvents>,
}

impl AgentEvents {
    /// Creates a fold without any event.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event and returns the agent events that follow from it, in order.
    pub fn push(&mut self, event: &Event) -> Vec<AgentEvent> {
        self.runs.entry(event.run().clone()).or_default().push(event)
    }
}

/// Folds the events of one run.
#[derive(Clone, Debug, Default)]
struct RunEvents {
    started: Option<Box<RunStarted>>,
    /// The time at which the loop started, until `AgentStart` is sent: a hook may stop the loop before that.
    unannounced: Option<Timestamp>,
    /// The branches, if the run is a parallel loop. The events of the branches come from their own logs.
    parallel: Option<Vec<ParallelBranch>>,
    turns: u32,
    open_turn: Option<OpenTurn>,
    /// The command and the attempt of the request that the model is answering.
    asking: Option<(CommandId, u32)>,
    /// The reason why the model gave no answer, if a record before the outcome has the reason.
    unanswered: Option<(StopReason, Option<String>)>,
    /// The time of the last record.
    last: Timestamp,
    /// True if `MessageStart` was sent for the current answer.
    streaming: bool,
    /// The messages to send later, because now they would be between two turns or inside another message.
    held: Vec<AgentMessage>,
    messages: Vec<AgentMessage>,
    ended: bool,
    rejection: Option<String>,
}

#[derive(Clone, Debug, Default)]
struct OpenTurn {
    answer: Option<(CommandId, Box<AssistantMessage>)>,
    calls: Vec<OpenCall>,
    /// The time of the last tool result, once all results have arrived. The turn ends after the run's hooks
    /// were called, and with the next record at the latest.
    over: Option<Timestamp>,
}

#[derive(Clone, Debug)]
struct OpenCall {
    /// The call as the model wrote it.
    call: ToolCall,
    /// The [target](ToolCall::target) of `call`, as it is shown to people.
    meant: ToolCall,
    started: bool,
    result: Option<Message>,
}

impl RunEvents {
    fn push(&mut self, event: &Event) -> Vec<AgentEvent> {
        let mut out = Vec::new();
        match event {
            Event::Record { record, .. } => self.record(record, &mut out),
            Event::Delta(delta) => self.delta(delta, &mut out),
            _ => {}
        }
        out
    }

    fn record(&mut self, record: &Record, out: &mut Vec<AgentEvent>) {
        let at = record.at;
        self.close_over(out);
        self.last = at;
        if let (Some(began), Some(started)) = (self.unannounced.take(), &self.started)
            && !matches!(
                record.body,
                RecordBody::StoppedByHook { hook: HookPoint::BeforeLoop }
                    | RecordBody::ParallelStarted { .. }
            )
        {
            out.push(agent_start(started, began));
        }
        if self.parallel.is_some() {
            return self.parallel_record(record, out);
        }
        match &record.body {
            RecordBody::RunStarted(started) => {
                self.unannounced = Some(at);
                self.started = Some(started.clone());
            }
            RecordBody::ParallelStarted { branches, .. } => self.parallel_started(branches, at, out),
            RecordBody::Resumed if self.ended => self.begin_again(at, out),
            // The model reads it in its next request at the earliest, so it is shown there.
            RecordBody::MessageAdded { message, .. } => self.held.push(message.clone()),
            RecordBody::ConversationRestored { messages } => {
                self.messages.extend(messages.iter().cloned().map(AgentMessage::from));
            }
            RecordBody::InputRejected { reason } => {
                out.push(AgentEvent::InputRejected { loop_id: self.loop_id(), reason: reason.clone() });
                self.rejection = Some(reason.clone());
            }
            RecordBody::HintAdded { text } | RecordBody::ContextStatus { text, .. } => {
                self.held.push(Message::user(text.clone(), at).into());
                if self.open_turn.is_some() {
                    self.show_held(out);
                }
            }
            RecordBody::ModelCallStarted { command, attempt, .. } => {
                self.open_turn(at, out);
                (self.asking, self.unanswered) = (Some((*command, *attempt)), None);
            }
            RecordBody::ModelCallFinished { command, attempt, message }
                if self.is_asking(*command, *attempt) =>
            {
                self.answered(*command, message, at, out);
            }
            RecordBody::ToolCallStarted { call, .. } => self.tool_call_started(call, out),
            RecordBody::ToolCallFinished { call, result } | RecordBody::ToolCallRefused { call, result } => {
                self.tool_ended(call, result, at, out);
            }
            RecordBody::RunFinished(outcome) => self.run_finished(outcome, at, out),
            other => self.not_answered(other),
        }
    }

    /// Records the reason why the model gave no answer.
    fn not_answered(&mut self, body: &RecordBody) {
        match body {
            RecordBody::ModelCallFailed { command, attempt, failure }
                if self.is_asking(*command, *attempt) =>
            {
                self.unanswered = Some((StopReason::Error, Some(failure.message.clone())));
                (self.asking, self.streaming) = (None, false);
            }
            RecordBody::ModelCallLost { command, attempt } if self.is_asking(*command, *attempt) => {
                (self.asking, self.streaming) = (None, false);
            }
            RecordBody::CancelRequested { .. } => self.unanswered = Some((StopReason::Aborted, None)),
            RecordBody::LimitReached(limit) => {
                self.unanswered = Some((StopReason::Error, Some(limit.to_string())));
            }
            _ => {}
        }
    }

    fn delta(&mut self, delta: &Delta, out: &mut Vec<AgentEvent>) {
        let update = match &delta.kind {
            DeltaKind::Text { text } => Some(StreamDelta::Text { delta: text.clone() }),
            DeltaKind::Thinking { text } => Some(StreamDelta::Thinking { delta: text.clone() }),
            DeltaKind::ToolCallArguments { text, .. } => {
                Some(StreamDelta::ToolCallDelta { delta: text.clone() })
            }
            DeltaKind::ToolCallStarted { .. } => None,
            DeltaKind::ToolProgress { call, text } => {
                let Some((loop_id, tool_call_id, tool_name)) = self.running(call) else { return };
                return out.push(AgentEvent::ProgressMessage {
                    loop_id,
                    tool_call_id,
                    tool_name,
                    text: text.clone(),
                });
            }
            DeltaKind::ToolPartialResult { call, result } => {
                let Some((loop_id, tool_call_id, tool_name)) = self.running(call) else { return };
                let partial_result = ToolResult::clone(result);
                return out.push(AgentEvent::ToolExecutionUpdate {
                    loop_id,
                    tool_call_id,
                    tool_name,
                    partial_result,
                });
            }
            DeltaKind::TurnEnd => return self.turn_end(out),
            _ => return,
        };
        if self.is_asking(delta.command, delta.attempt) {
            self.start_answer(out);
            out.extend(update.map(|delta| AgentEvent::MessageUpdate { loop_id: self.loop_id(), delta }));
        }
    }

    fn parallel_started(&mut self, branches: &[ParallelBranch], at: Timestamp, out: &mut Vec<AgentEvent>) {
        self.parallel = Some(branches.to_vec());
        out.push(AgentEvent::ParallelLoopStart {
            session_id: self.session_id(),
            loop_ids: branches.iter().map(|branch| branch.loop_id.clone()).collect(),
            timestamp: at,
        });
    }

    /// Sends the warnings about the choice among the branches, and the event for the selected branch.
    fn parallel_record(&mut self, record: &Record, out: &mut Vec<AgentEvent>) {
        let RecordBody::ParallelFinished(choice) = &record.body else { return };
        out.extend(choice.warnings.iter().map(|text| AgentEvent::ProgressMessage {
            loop_id: self.loop_id(),
            tool_call_id: ToolCallId::new("evaluation"),
            tool_name: choice.strategy.clone(),
            text: text.clone(),
        }));
        let index = choice.selected.and_then(|selected| usize::try_from(selected).ok());
        let branch = |index| self.parallel.as_ref().and_then(|branches| branches.get(index));
        if let Some(index) = index
            && let Some(branch) = branch(index)
        {
            out.push(AgentEvent::ParallelLoopEnd {
                session_id: self.session_id(),
                selected_loop_id: branch.loop_id.clone(),
                selected_config_index: index,
                evaluation_usage: choice.usage,
                timestamp: record.at,
            });
        }
    }

    fn session_id(&self) -> SessionId {
        self.started.as_ref().map_or_else(|| SessionId::new(""), |s| s.session.clone())
    }

    fn loop_id(&self) -> LoopId {
        self.started.as_ref().map_or_else(|| LoopId::new(""), |s| s.loop_id.clone())
    }

    fn is_asking(&self, command: CommandId, attempt: u32) -> bool {
        self.asking == Some((command, attempt))
    }

    /// Announces a run that continues after its end as a continued loop.
    fn begin_again(&mut self, at: Timestamp, out: &mut Vec<AgentEvent>) {
        self.ended = false;
        let Some(started) = &self.started else { return };
        let mut event = agent_start(started, at);
        if let AgentEvent::AgentStart { continuation_kind, .. } = &mut event {
            *continuation_kind = Some(ContinuationKind::Default);
        }
        out.push(event);
    }

    fn open_turn(&mut self, at: Timestamp, out: &mut Vec<AgentEvent>) {
        if self.open_turn.is_none() {
            self.open_turn = Some(OpenTurn::default());
            let triggered_by = match &self.started {
                Some(s) if self.turns == 0 => TurnTrigger::first(&s.origin, s.first_trigger),
                _ => TurnTrigger::Continuation,
            };
            out.push(AgentEvent::TurnStart {
                loop_id: self.loop_id(),
                turn_index: self.turns,
                timestamp: at,
                triggered_by,
            });
            self.turns += 1;
            self.show_held(out);
        }
    }

    fn show_held(&mut self, out: &mut Vec<AgentEvent>) {
        for message in std::mem::take(&mut self.held) {
            self.whole_message(message, out);
        }
    }

    fn whole_message(&mut self, message: AgentMessage, out: &mut Vec<AgentEvent>) {
        out.push(AgentEvent::MessageStart { loop_id: self.loop_id(), message: message.clone() });
        self.end_message(message, out);
    }

    fn end_message(&mut self, message: AgentMessage, out: &mut Vec<AgentEvent>) {
        out.push(AgentEvent::MessageEnd { loop_id: self.loop_id(), message: message.clone() });
        self.messages.push(message);
    }

    fn start_answer(&mut self, out: &mut Vec<AgentEvent>) {
        if !std::mem::replace(&mut self.streaming, true) {
            let message = Message::Assistant(AssistantMessage::default()).into();
            out.push(AgentEvent::MessageStart { loop_id: self.loop_id(), message });
        }
    }

    fn answered(
        &mut self,
        command: CommandId,
        message: &AssistantMessage,
        at: Timestamp,
        out: &mut Vec<AgentEvent>,
    ) {
        self.start_answer(out);
        self.asking = None;
        self.streaming = false;
        self.end_message(Message::Assistant(message.clone()).into(), out);
        let calls = message.tool_calls().map(|call| OpenCall {
            call: call.clone(),
            meant: call.target(),
            started: false,
            result: None,
        });
        let calls: Vec<_> = calls.collect();
        let over = calls.is_empty();
        self.open_turn =
            Some(OpenTurn { answer: Some((command, Box::new(message.clone()))), calls, over: None });
        if over {
            self.close_turn(at, out);
        }
    }

    fn open_call(&mut self, id: &CallId) -> Option<&mut OpenCall> {
        let turn = self.open_turn.as_mut()?;
        let (command, _) = turn.answer.as_ref()?;
        let call = turn.calls.get_mut(usize::try_from(id.index).ok()?)?;
        (*command == id.command && call.result.is_none()).then_some(call)
    }

    fn tool_call_started(&mut self, id: &CallId, out: &mut Vec<AgentEvent>) {
        let loop_id = self.loop_id();
        let Some(open) = self.open_call(id) else { return };
        // A retry within the engine belongs to the call that watchers already saw start.
        if !std::mem::replace(&mut open.started, true) {
            out.push(AgentEvent::ToolExecutionStart {
                loop_id,
                tool_call_id: open.call.id.clone(),
                tool_name: open.meant.name.clone(),
                args: open.meant.arguments.clone(),
            });
        }
    }

    /// Returns the loop, the id and the tool of a call that runs.
    fn running(&mut self, id: &CallId) -> Option<(LoopId, ToolCallId, String)> {
        let loop_id = self.loop_id();
        let open = self.open_call(id).filter(|call| call.started)?;
        Some((loop_id, open.call.id.clone(), open.meant.name.clone()))
    }

    fn tool_ended(&mut self, id: &CallId, result: &ToolResult, at: Timestamp, out: &mut Vec<AgentEvent>) {
        let loop_id = self.loop_id();
        let Some(open) = self.open_call(id) else { return };
        let message = Message::tool_result(&open.call, result, at);
        if open.started {
            out.push(AgentEvent::ToolExecutionEnd {
                loop_id,
                tool_call_id: open.call.id.clone(),
                tool_name: open.meant.name.clone(),
                result: result.clone(),
                is_error: result.is_error(),
                child_loop_id: result.child_run.clone(),
            });
        }
        open.result = Some(message.clone());
        self.whole_message(message.into(), out);
        if let Some(turn) = &mut self.open_turn
            && turn.calls.iter().all(|call| call.result.is_some())
        {
            turn.over = Some(at);
        }
    }

    /// Ends the turn, after the hooks were called for everything that happened in it.
    fn turn_end(&mut self, out: &mut Vec<AgentEvent>) {
        match &self.open_turn {
            Some(OpenTurn { answer: None, .. }) => {
                let (reason, why) = self.unanswered.take().unwrap_or((StopReason::Error, None));
                self.end_unanswered(reason, why, self.last, out);
            }
            _ => self.close_over(out),
        }
    }

    /// Ends the open turn, in which the model gave no answer.
    fn end_unanswered(
        &mut self,
        reason: StopReason,
        why: Option<String>,
        at: Timestamp,
        out: &mut Vec<AgentEvent>,
    ) {
        let message = self.no_answer(reason, why, at);
        let command = self.asking.map_or(CommandId(0), |(command, _)| command);
        self.answered(command, &message, at, out);
    }

    /// Ends the turn if all its calls have their results.
    fn close_over(&mut self, out: &mut Vec<AgentEvent>) {
        if let Some(at) = self.open_turn.as_ref().and_then(|turn| turn.over) {
            self.close_turn(at, out);
        }
    }

    fn close_turn(&mut self, at: Timestamp, out: &mut Vec<AgentEvent>) {
        let Some(OpenTurn { answer: Some((_, answer)), calls, .. }) = self.open_turn.take() else { return };
        out.push(AgentEvent::TurnEnd {
            loop_id: self.loop_id(),
            usage: answer.usage,
            message: Message::Assistant(*answer).into(),
            timestamp: at,
            tool_results: calls.into_iter().filter_map(|c| c.result).collect(),
        });
    }

    fn run_finished(&mut self, outcome: &Outcome, at: Timestamp, out: &mut Vec<AgentEvent>) {
        if let Some(turn) = &self.open_turn {
            if turn.answer.is_none() {
                let (reason, why) = match outcome.status {
                    OutcomeStatus::Cancelled => (StopReason::Aborted, None),
                    OutcomeStatus::Limit(limit) => (StopReason::Error, Some(limit.to_string())),
                    _ => (StopReason::Error, outcome.error.clone()),
                };
                self.end_unanswered(reason, why, at, out);
            } else {
                self.close_turn(at, out);
            }
        }
        self.show_held(out);
        self.asking = None;
        self.ended = true;
        out.push(AgentEvent::AgentEnd {
            loop_id: self.loop_id(),
            messages: std::mem::take(&mut self.messages),
            usage: outcome.usage,
            timestamp: at,
            rejection: self.rejection.take(),
        });
    }

    /// Returns the message for a turn in which the model gave no answer.
    fn no_answer(&self, stop_reason: StopReason, why: Option<String>, at: Timestamp) -> AssistantMessage {
        let config = self.started.as_ref().map(|s| &s.config);
        AssistantMessage {
            stop_reason,
            error_message: why,
            engine: None,
            model: config.map(|c| c.model.clone()).unwrap_or_default(),
            provider: config.map(|c| c.provider.clone()).unwrap_or_default(),
            timestamp: at,
            ..AssistantMessage::default()
        }
    }
}

fn agent_start(started: &RunStarted, at: Timestamp) -> AgentEvent {
    let (parent, continuation) = match &started.origin {
        Origin::Continues { run, continuation, .. } => (Some(run), Some(continuation.clone())),
        Origin::CalledBy { run, .. } => (Some(run), None),
        _ => (None, None),
    };
    AgentEvent::AgentStart {
        agent_id: started.agent.clone(),
        session_id: started.session.clone(),
        loop_id: started.loop_id.clone(),
        run_id: Some(started.run.clone()),
        parent_loop_id: parent.cloned(),
        continuation_kind: continuation,
        timestamp: at,
        metadata: None,
    }
}
