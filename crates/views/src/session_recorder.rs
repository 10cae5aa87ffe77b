//! [`SessionRecorder`]: a fold that computes [`Session`]s from the [`AgentEvent`]s of several loops.

use std::collections::HashMap;

use archon_types::{AgentId, LoopId, RunId, SessionId, Timestamp, ToolCallId, Usage};

use crate::{
    agent_event::AgentEvent,
    session::{
        ChildLoopRef, LoopEvent, LoopRecord, LoopStatus, ParallelGroupRecord, Session, SessionFormation,
        SpawnRef,
    },
};

/// The settings of a [`SessionRecorder`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionRecorderConfig {
    /// The rule for new sessions. Default: one session for each session id.
    pub formation_policy: SessionFormationPolicy,
    /// True to record pieces of messages too. Complete messages are always recorded. Default: false.
    pub include_streaming_events: bool,
}

/// The rule by which a loop that starts joins an existing session or begins a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionFormationPolicy {
    /// One session for each session id.
    #[default]
    PerSessionId,
    /// One session for each session id, and a new session when a loop starts in a session that was idle for
    /// longer than the maximum. The new session is named `{session}.2`, then `{session}.3` and so on. Child
    /// loops stay in the session of their caller.
    InactivityTimeout {
        /// The maximum idle time in seconds.
        secs: u64,
    },
}

/// Folds the events of any number of loops into sessions.
///
/// Events of a loop without a start event are ignored.
#[derive(Clone, Debug, Default)]
pub struct SessionRecorder {
    config: SessionRecorderConfig,
    sessions: Vec<Session>,
    /// The open loops, by the loop's id in its events.
    open: HashMap<LoopId, OpenLoop>,
    /// The session and the loop of each run.
    runs: HashMap<RunId, (SessionId, LoopId)>,
    /// The calls that started a run whose loop has not started yet.
    spawned: HashMap<RunId, SpawnRef>,
    /// The groups of parallel loops, by session.
    groups: HashMap<SessionId, Vec<LoopId>>,
}

/// A loop that has started and not ended.
#[derive(Clone, Debug)]
struct OpenLoop {
    session: SessionId,
    /// The id of the loop's record, which differs from the loop's own id if another loop of the session
    /// already has that id.
    record: LoopId,
    /// The number of messages that the loop had before it was resumed.
    before: usize,
    /// The number of events so far, including those that were left out.
    events: u64,
}

impl SessionRecorder {
    /// Creates an empty recorder.
    pub fn new(config: SessionRecorderConfig) -> Self {
        Self { config, ..Self::default() }
    }

    /// Takes the next event of any loop, and updates the sessions.
    pub fn on_event(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::AgentStart { .. } => self.start(event),
            AgentEvent::ParallelLoopStart { session_id, loop_ids, .. } => {
                self.groups.insert(session_id.clone(), loop_ids.clone());
            }
            AgentEvent::ParallelLoopEnd {
                session_id,
                selected_loop_id,
                selected_config_index,
                evaluation_usage,
                timestamp,
            } => {
                self.chosen(session_id, selected_loop_id, *selected_config_index, *evaluation_usage);
                self.touch(session_id, *timestamp);
            }
            _ => {}
        }
        self.record(event);
    }

    /// Sets the status of every open loop to aborted. Call this at the end of the program, or if the events break off.
    pub fn flush(&mut self) {
        for (_, open) in std::mem::take(&mut self.open) {
            if let Some(record) = self.record_mut(&open) {
                record.status = LoopStatus::Aborted;
            }
        }
    }

    /// Removes and returns the sessions without an open loop.
    pub fn drain_completed(&mut self) -> Vec<Session> {
        let is_open = |s: &Session| self.open.values().any(|open| open.session == s.session_id);
        let (open, completed) = std::mem::take(&mut self.sessions).into_iter().partition(is_open);
        self.sessions = open;
        completed
    }

    /// Returns all sessions, in the order in which they were created.
    pub fn sessions(&self) -> impl ExactSizeIterator<Item = &Session> {
        self.sessions.iter()
    }

    /// Returns the session with this id.
    pub fn get_session(&self, id: &SessionId) -> Option<&Session> {
        self.sessions.iter().find(|s| s.session_id == *id)
    }

    /// Returns the record of the loop that has not ended and whose events have this loop id.
    pub fn current_loop(&self, id: &LoopId) -> Option<&LoopRecord> {
        let open = self.open.get(id)?;
        self.get_session(&open.session)?.get_loop(&open.record)
    }

    /// Returns all sessions by value.
    pub(crate) fn into_sessions(self) -> Vec<Session> {
        self.sessions
    }

    fn start(&mut self, event: &AgentEvent) {
        let AgentEvent::AgentStart {
            agent_id,
            session_id,
            loop_id: announced,
            run_id,
            parent_loop_id,
            continuation_kind,
            timestamp,
            metadata,
        } = event
        else {
            return;
        };
        if let Some(run) = run_id
            && let Some((session, record)) = self.runs.get(run).cloned()
        {
            return self.start_again(announced, session, record);
        }
        let called = parent_loop_id.is_some() && continuation_kind.is_none();
        let session = self.session_of(session_id, agent_id, *timestamp, called);
        let parent = parent_loop_id.as_ref().map(|parent| self.loop_of(parent));
        let Some(index) = self.sessions.iter().position(|s| s.session_id == session) else { return };
        let loop_id = free_id(&self.sessions[index], announced, run_id.as_ref());
        if let Some((of, parent)) = &parent
            && let Some(record) = self.sessions[index].loop_mut(parent).filter(|_| *of == session)
        {
            record.children_loop_ids.push(loop_id.clone());
        }
        self.sessions[index].loops.push(LoopRecord {
            loop_id: loop_id.clone(),
            run_id: run_id.clone(),
            session_id: session.clone(),
            agent_id: agent_id.clone(),
            parent_loop_id: parent.map(|(_, parent)| parent),
            continuation_kind: continuation_kind.clone(),
            started_at: *timestamp,
            ended_at: None,
            status: LoopStatus::Running,
            rejection: None,
            config: None,
            messages: Vec::new(),
            usage: Usage::default(),
            metadata: metadata.clone(),
            events: Vec::new(),
            children_loop_ids: Vec::new(),
            child_loop_refs: Vec::new(),
            parallel_group: None,
        });
        self.sessions[index].loops.sort_by_key(|l| l.started_at);
        let open = OpenLoop { session: session.clone(), record: loop_id.clone(), before: 0, events: 0 };
        self.open.insert(announced.clone(), open);
        let run = run_id.clone().unwrap_or_else(|| RunId::new(announced.as_str()));
        self.runs.insert(run.clone(), (session, loop_id));
        if let Some(by) = self.spawned.remove(&run) {
            self.link(by, &run);
        }
    }

    /// Reopens a loop that has ended, or whose process died.
    fn start_again(&mut self, loop_id: &LoopId, session: SessionId, record: LoopId) {
        let mut open = OpenLoop { session, record, before: 0, events: 0 };
        let Some(record) = self.record_mut(&open) else { return };
        record.status = LoopStatus::Running;
        record.ended_at = None;
        (open.before, open.events) =
            (record.messages.len(), record.events.last().map_or(0, |last| last.sequence + 1));
        self.open.insert(loop_id.clone(), open);
    }

    /// Returns the session of a loop that starts, and creates the session if needed.
    fn session_of(&mut self, named: &SessionId, agent: &AgentId, at: Timestamp, called: bool) -> SessionId {
        let part = |n: u32| match n {
            1 => named.clone(),
            n => SessionId::new(format!("{named}.{n}")),
        };
        let mut n = 1;
        if self.config.formation_policy != SessionFormationPolicy::PerSessionId {
            while self.get_session(&part(n + 1)).is_some() {
                n += 1;
            }
        }
        let formation = match (self.get_session(&part(n)), self.config.formation_policy) {
            (None, _) => SessionFormation::FirstLoop,
            (Some(session), SessionFormationPolicy::InactivityTimeout { secs })
                if !called && at.since(session.last_active_at).as_secs() > secs =>
            {
                n += 1;
                SessionFormation::InactivityTimeout { secs }
            }
            _ => return part(n),
        };
        let mut session = Session::new(part(n), agent.clone(), at);
        session.formation = formation;
        self.sessions.push(session);
        part(n)
    }

    /// Returns the session and the loop of a run. The session id is empty if the run is unknown.
    fn loop_of(&self, run: &RunId) -> (SessionId, LoopId) {
        let unknown = || (SessionId::new(""), LoopId::new(run.as_str()));
        self.runs.get(run).cloned().unwrap_or_else(unknown)
    }

    fn record(&mut self, event: &AgentEvent) {
        let Some(of) = loop_of_event(event) else { return };
        let Some(open) = self.open.get_mut(of) else { return };
        let sequence = open.events;
        open.events += 1;
        if matches!(event, AgentEvent::MessageUpdate { .. }) && !self.config.include_streaming_events {
            return;
        }
        let open = open.clone();
        if let Some(record) = self.record_mut(&open) {
            record.events.push(LoopEvent { sequence, event: event.clone() });
            apply(record, event, open.before);
        }
        if let Some(at) = time_of(event) {
            self.touch(&open.session, at);
        }
        match event {
            AgentEvent::ToolExecutionEnd { tool_call_id, tool_name, child_loop_id: Some(child), .. } => {
                self.called(&open, tool_call_id, tool_name, child);
            }
            AgentEvent::AgentEnd { loop_id, .. } => {
                self.open.remove(loop_id);
            }
            _ => {}
        }
    }

    /// Records that a call of an open loop started another loop.
    fn called(&mut self, by: &OpenLoop, call: &ToolCallId, tool: &str, child: &RunId) {
        let by = SpawnRef {
            parent_session_id: by.session.clone(),
            parent_loop_id: by.record.clone(),
            tool_call_id: call.clone(),
            tool_name: tool.to_owned(),
        };
        match self.runs.contains_key(child) {
            true => self.link(by, child),
            false => _ = self.spawned.insert(child.clone(), by),
        }
    }

    /// Links a call and the loop of another session that the call started.
    fn link(&mut self, by: SpawnRef, child: &RunId) {
        let (child_session_id, child_loop_id) = self.loop_of(child);
        if child_session_id == by.parent_session_id {
            return; // `children_loop_ids` has it.
        }
        let find = |sessions: &mut Vec<Session>, id: &SessionId| {
            sessions.iter().position(|session| session.session_id == *id)
        };
        if let Some(at) = find(&mut self.sessions, &by.parent_session_id)
            && let Some(record) = self.sessions[at].loop_mut(&by.parent_loop_id)
        {
            record.child_loop_refs.push(ChildLoopRef {
                tool_call_id: by.tool_call_id.clone(),
                tool_name: by.tool_name.clone(),
                child_loop_id,
                child_session_id: child_session_id.clone(),
            });
        }
        if let Some(at) = find(&mut self.sessions, &child_session_id) {
            self.sessions[at].parent_spawn_ref.get_or_insert(by);
        }
    }

    fn chosen(&mut self, session: &SessionId, selected: &LoopId, index: usize, usage: Usage) {
        let all = self.groups.remove(session).unwrap_or_else(|| vec![selected.clone()]);
        for session in &mut self.sessions {
            for record in session.loops.iter_mut().filter(|l| all.contains(&l.loop_id)) {
                record.parallel_group = Some(ParallelGroupRecord {
                    all_loop_ids: all.clone(),
                    selected_loop_id: selected.clone(),
                    selected_config_index: index,
                    evaluation_usage: usage,
                    is_selected: record.loop_id == *selected,
                });
            }
        }
    }

    fn touch(&mut self, session: &SessionId, at: Timestamp) {
        if let Some(session) = self.sessions.iter_mut().find(|s| s.session_id == *session) {
            session.last_active_at = session.last_active_at.max(at);
        }
    }

    fn record_mut(&mut self, open: &OpenLoop) -> Option<&mut LoopRecord> {
        self.sessions.iter_mut().find(|s| s.session_id == open.session)?.loop_mut(&open.record)
    }
}

/// Returns an id for a loop that no other loop of its session has. Two branches may announce the same loop id, because
/// a loop id counts the loops of a conversation.
fn free_id(session: &Session, announced: &LoopId, run: Option<&RunId>) -> LoopId {
    match run {
        Some(run) if session.get_loop(announced).is_some() => LoopId::new(format!("{announced}.{run}")),
        _ => announced.clone(),
    }
}

/// Applies an event to the record of its loop. Messages are added as they come; the final list at the end of
/// the loop replaces them.
fn apply(record: &mut LoopRecord, event: &AgentEvent, before: usize) {
    match event {
        AgentEvent::MessageEnd { message, .. } => record.messages.push(message.clone()),
        AgentEvent::InputRejected { reason, .. } => record.rejection = Some(reason.clone()),
        AgentEvent::AgentEnd { messages, usage, timestamp, rejection, .. } => {
            record.messages.truncate(before);
            record.messages.extend(messages.iter().cloned());
            record.usage = *usage;
            record.ended_at = Some(*timestamp);
            if rejection.is_some() {
                record.rejection.clone_from(rejection);
            }
            record.status = match record.rejection {
                Some(_) => LoopStatus::Rejected,
                None => LoopStatus::Completed,
            };
        }
        _ => {}
    }
}

fn loop_of_event(event: &AgentEvent) -> Option<&LoopId> {
    match event {
        AgentEvent::AgentStart { loop_id, .. }
        | AgentEvent::AgentEnd { loop_id, .. }
        | AgentEvent::TurnStart { loop_id, .. }
        | AgentEvent::TurnEnd { loop_id, .. }
        | AgentEvent::MessageStart { loop_id, .. }
        | AgentEvent::MessageUpdate { loop_id, .. }
        | AgentEvent::MessageEnd { loop_id, .. }
        | AgentEvent::ToolExecutionStart { loop_id, .. }
        | AgentEvent::ToolExecutionUpdate { loop_id, .. }
        | AgentEvent::ToolExecutionEnd { loop_id, .. }
        | AgentEvent::ProgressMessage { loop_id, .. }
        | AgentEvent::InputRejected { loop_id, .. } => Some(loop_id),
        AgentEvent::ParallelLoopStart { .. } | AgentEvent::ParallelLoopEnd { .. } => None,
    }
}

fn time_of(event: &AgentEvent) -> Option<Timestamp> {
    match event {
        AgentEvent::AgentStart { timestamp, .. }
        | AgentEvent::AgentEnd { timestamp, .. }
        | AgentEvent::TurnStart { timestamp, .. }
        | AgentEvent::TurnEnd { timestamp, .. } => Some(*timestamp),
        AgentEvent::MessageEnd { message, .. } => message.as_llm().map(archon_types::Message::timestamp),
        _ => None,
    }
}
