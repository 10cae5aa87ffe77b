//! The cells of a conversation: a fold over the records of its runs.

mod answer;
mod asked;
mod call;
mod call_text;
mod child;
mod end;
mod kept;
mod message;
mod meter;
mod note;
mod plan;
mod run;

use std::collections::{BTreeSet, HashMap};

use archon_types::{
    AgentMessage, Answer, ApprovalRequest, AssistantMessage, CallId, CommandId, Delta, DeltaKind,
    ModelErrorCode, ModelFailure, Origin, Outcome, OutcomeStatus, Record, RecordBody, RunId, RunStarted,
    Timestamp, ToolResult, WorkspaceSnapshot, one_line,
};

use crate::{
    row::Row,
    theme::{Look, Page},
    work::Work,
};

pub use answer::AnswerCell;
pub use asked::AskedCell;
pub use call::{CallCell, CallState};
pub use end::EndCell;
pub use message::MessageCell;
pub use meter::Meter;
pub use note::Note;
pub use plan::{PlanCell, PlanStep};

use kept::KeptOutputs;
pub use run::CellId;
use run::{Batch, RunState, Wish};

/// One thing on the screen. A closed cell never changes again, except that the whole output of an old call, which only an
/// unfolded page shows, may be dropped.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Cell {
    /// The number of the cell.
    pub id: CellId,
    /// True if the cell never changes again.
    pub is_closed: bool,
    /// The content.
    pub kind: CellKind,
}

/// The content of a cell.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CellKind {
    /// A message to the agent.
    Message(MessageCell),
    /// An answer of the model.
    Answer(AnswerCell),
    /// A tool call.
    Call(Box<CallCell>),
    /// The list of steps after it changed.
    Plan(PlanCell),
    /// A question to a person.
    Asked(Box<AskedCell>),
    /// A note of the program, or about a record.
    Note(Note),
    /// The end of a run.
    End(EndCell),
}

impl Cell {
    /// Returns the rows of the whole cell for this page.
    pub fn rows(&self, page: &Page) -> Vec<Row> {
        match &self.kind {
            CellKind::Message(cell) => cell.rows(page),
            CellKind::Answer(cell) => cell.rows(page),
            CellKind::Call(cell) => cell.rows(page),
            CellKind::Plan(cell) => cell.rows(page),
            CellKind::Asked(cell) => cell.rows(page),
            CellKind::Note(note) => note.rows(page),
            CellKind::End(cell) => cell.rows(page),
        }
    }
}

/// The cells of a conversation: a fold over the records of its runs. The records of child runs, which calls of
/// these runs started, show their calls below the call that started them, until it ends.
///
/// ```
/// use archon_terminal::Cells;
/// use archon_types::{Record, RecordBody, Timestamp};
///
/// let mut cells = Cells::default();
/// let body = RecordBody::LogUnavailable { reason: "the disk is full".into() };
/// cells.apply(&"run_1".into(), &Record { seq: 0, at: Timestamp::default(), body });
/// assert_eq!(cells.all().len(), 1);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cells {
    cells: Vec<Cell>,
    open: BTreeSet<CellId>,
    /// The cells in the order in which they come on paper: an answer since its request, any other cell since it
    /// was closed. The order follows from the records alone, so that it is the same live and later.
    order: Vec<CellId>,
    runs: HashMap<RunId, RunState>,
    /// The child runs, each with the cell of the call that started it or a run above it, if that is known.
    children: HashMap<RunId, Option<CellId>>,
    /// The newest list of steps of the newest run.
    plan: Option<PlanCell>,
    newest: Option<RunId>,
    meter: Meter,
    kept: KeptOutputs,
}

impl Cells {
    /// Applies a record of a run. A record that was applied already changes nothing.
    pub fn apply(&mut self, run: &RunId, record: &Record) {
        if let RecordBody::LogUnavailable { reason } = &record.body {
            // No log has this record, so its number says nothing.
            let why = one_line(reason, SHOWN);
            return self.note(Note::warning(format!("the log of this run is not stored: {why}")));
        }
        if let RecordBody::RunStarted(started) = &record.body {
            match &started.origin {
                Origin::CalledBy { run: caller, call } => self.child_started(run, caller, *call),
                _ if started.parallel_run.is_some() => _ = self.children.entry(run.clone()).or_default(),
                _ => {}
            }
        }
        if !self.run(run).is_next(record.seq) {
            return;
        }
        if let Some(cell) = self.children.get(run) {
            return self.apply_child(run, *cell, record);
        }
        self.apply_model(run, record);
        self.apply_call(run, record);
        self.apply_run(run, record);
    }

    /// Fills the open cell of an answer or of a call with a piece that streams. A piece of a closed cell or of an
    /// earlier attempt changes nothing.
    pub fn stream(&mut self, delta: &Delta) {
        let Some(run) = self.runs.get(&delta.run) else { return };
        match &delta.kind {
            DeltaKind::ToolProgress { call, text } => {
                let id = run.calls.get(call).copied();
                self.change_call(id, |cell| cell.progress(text));
            }
            DeltaKind::ToolPartialResult { call, result } => {
                let id = run.calls.get(call).copied();
                self.change_call(id, |cell| cell.progress(&result.text()));
            }
            kind => {
                let id = run.answer.filter(|(command, _)| *command == delta.command).map(|(_, id)| id);
                let Some(CellKind::Answer(answer)) = id.and_then(|id| self.open_kind(id)) else { return };
                match kind {
                    DeltaKind::Text { text } => answer.stream(delta.attempt, delta.offset, text),
                    _ => answer.interrupt(),
                }
            }
        }
    }

    /// Lets a run rest whose log has no end, because its process died or its storage failed. What was streamed of its
    /// answer is final, and its calls wait for the process that resumes the run.
    pub fn stop(&mut self, run: &RunId) {
        let state = self.run(run);
        state.work = Work::Idle;
        let answer = state.answer.take().map(|(_, id)| id);
        let calls: Vec<CellId> = state.calls.values().copied().collect();
        calls.into_iter().for_each(|id| self.change_call(Some(id), CallCell::rest));
        if let Some(id) = answer {
            self.close(id);
        }
    }

    /// Adds a note of the program itself.
    pub fn note(&mut self, note: Note) {
        self.add(CellKind::Note(note));
    }

    /// Adds a text in Markdown, such as a plan that a person decides about.
    pub fn markdown(&mut self, text: &str) {
        let id = self.open(CellKind::Answer(AnswerCell::of(text)));
        self.order.push(id);
        self.close(id);
    }

    /// Returns all cells, in the order in which they began.
    pub fn all(&self) -> &[Cell] {
        &self.cells
    }

    /// Returns what the newest run does now. The draft is not known here; see [`Work::with_draft`].
    pub fn work(&self) -> Work {
        let newest = self.newest.as_ref().and_then(|run| self.runs.get(run));
        match newest.map_or(Work::Idle, |run| run.work) {
            work if work != Work::Idle && self.questions().next().is_some() => {
                if self.is_call_running() {
                    work
                } else {
                    Work::Asking
                }
            }
            work => work,
        }
    }

    /// Returns the tokens, the money and the fill level of the context window.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Returns the open questions in the order in which they were asked. A question of a child run is among the
    /// questions of the run that called it. Paused questions are not shown.
    pub fn questions(&self) -> impl Iterator<Item = &ApprovalRequest> {
        self.open_cells().filter_map(|cell| match &cell.kind {
            CellKind::Asked(asked) if asked.request.paused_at.is_none() => Some(&asked.request),
            _ => None,
        })
    }

    /// Returns the list of steps of the run that works, unless all are completed.
    pub(crate) fn live_plan(&self) -> Option<&PlanCell> {
        self.plan.as_ref().filter(|plan| self.work() != Work::Idle && !plan.is_completed())
    }

    pub(crate) fn get(&self, id: CellId) -> Option<&Cell> {
        self.cells.get(id.0)
    }

    pub(crate) fn open_cells(&self) -> impl Iterator<Item = &Cell> {
        self.open.iter().filter_map(|id| self.cells.get(id.0))
    }

    /// Returns the cells in the order in which they come on paper, from the number `from` on.
    pub(crate) fn in_order(&self, from: usize) -> impl Iterator<Item = &Cell> {
        self.order.iter().skip(from).filter_map(|id| self.cells.get(id.0))
    }

    pub(crate) fn order_len(&self) -> usize {
        self.order.len()
    }

    fn is_call_running(&self) -> bool {
        self.open_cells().any(|cell| matches!(&cell.kind, CellKind::Call(call) if call.is_running()))
    }

    fn run(&mut self, run: &RunId) -> &mut RunState {
        self.runs.entry(run.clone()).or_default()
    }

    fn open(&mut self, kind: CellKind) -> CellId {
        let id = CellId(self.cells.len());
        self.cells.push(Cell { id, is_closed: false, kind });
        self.open.insert(id);
        id
    }

    /// Closes a cell, and lets it come on paper if it does not already.
    fn close(&mut self, id: CellId) {
        let Some(cell) = self.cells.get_mut(id.0).filter(|cell| !cell.is_closed) else { return };
        cell.is_closed = true;
        self.open.remove(&id);
        // An answer has its place since its request.
        if !matches!(cell.kind, CellKind::Answer(_)) {
            self.order.push(id);
        }
    }

    fn add(&mut self, kind: CellKind) {
        let id = self.open(kind);
        self.close(id);
    }

    fn open_kind(&mut self, id: CellId) -> Option<&mut CellKind> {
        self.cells.get_mut(id.0).filter(|cell| !cell.is_closed).map(|cell| &mut cell.kind)
    }

    fn change_call(&mut self, id: Option<CellId>, change: impl FnOnce(&mut CallCell)) {
        if let Some(CellKind::Call(call)) = id.and_then(|id| self.open_kind(id)) {
            change(call);
        }
    }
}

/// Cells of the records of model calls.
impl Cells {
    fn apply_model(&mut self, run: &RunId, record: &Record) {
        match &record.body {
            RecordBody::MessageAdded { message, .. } => self.message(run, message),
            RecordBody::ModelCallStarted { command, attempt, .. } => {
                self.model_call_started(run, *command, *attempt)
            }
            RecordBody::ModelCallFinished { command, message, .. } => {
                self.model_call_finished(run, *command, message);
            }
            RecordBody::ModelCallFailed { attempt, failure, .. } => {
                self.model_call_failed(run, *attempt, failure)
            }
            RecordBody::FallbackSelected { fallback, .. } => {
                self.meter.fall_back(fallback);
                self.note(Note::warning(fallback.to_string()));
            }
            RecordBody::ModelCallLost { .. } => {
                self.note(Note::new(Look::Dim, "the last answer was lost: the model is called again"));
            }
            RecordBody::CompactionRequested { .. } => self.run(run).compaction = Some(Wish::Open),
            RecordBody::Compacted(compaction) => {
                let wish = &mut self.run(run).compaction;
                *wish = wish.map(|_| Wish::Done);
                self.meter.compacted(compaction);
                let (before, after) = (compaction.tokens_before, compaction.tokens_after);
                self.note(Note::new(
                    Look::Dim,
                    format!("conversation compacted: {before} to {after} tokens"),
                ));
            }
            RecordBody::InstructionsRead { .. } => self.note(Note::detail("read the project's instructions")),
            RecordBody::HintAdded { text } => self.note(Note::detail(one_line(text, SHOWN))),
            RecordBody::WorkspaceSnapshot(WorkspaceSnapshot { problem: Some(problem), .. }) => {
                self.note(Note::warning(format!("this run cannot be undone: {}", one_line(problem, SHOWN))));
            }
            RecordBody::InputRejected { reason } => {
                self.note(Note::warning(format!("the message was refused: {}", one_line(reason, SHOWN))));
            }
            _ => {}
        }
    }

    fn message(&mut self, run: &RunId, message: &AgentMessage) {
        self.run(run).work = Work::Model;
        if let Some(cell) = MessageCell::of(message) {
            self.add(CellKind::Message(cell));
        }
    }

    fn model_call_started(&mut self, run: &RunId, command: CommandId, attempt: u32) {
        self.run(run).work = Work::Model;
        let known = self.run(run).answer.filter(|(known, _)| *known == command).map(|(_, id)| id);
        let id = match known {
            Some(id) => id,
            None => {
                let id = self.open(CellKind::Answer(AnswerCell::new(command)));
                self.run(run).answer = Some((command, id));
                id
            }
        };
        if let Some(CellKind::Answer(answer)) = self.open_kind(id) {
            answer.begin(attempt);
        }
        if self.order.last() != Some(&id) && !self.is_in_order(id) {
            self.order.push(id);
        }
    }

    /// Returns true if an open answer has its place. Few cells can follow an open answer.
    fn is_in_order(&self, id: CellId) -> bool {
        self.order.iter().rev().any(|known| *known == id)
    }

    fn model_call_finished(&mut self, run: &RunId, command: CommandId, message: &AssistantMessage) {
        self.meter.model_call_finished(message);
        let state = self.run(run);
        state.failure.clear();
        let answer = state.answer.filter(|(known, _)| *known == command).map(|(_, id)| id);
        if let Some(id) = answer {
            if let Some(CellKind::Answer(answer)) = self.open_kind(id) {
                answer.finish(message);
                let text = answer.text.clone();
                self.run(run).last_answer = text;
            }
            self.close(id);
            self.run(run).answer = None;
        }
        let count = message.tool_calls().count();
        self.run(run).batch = (count > 1).then_some(Batch { open: count, differences: 0 });
        if count > 1 {
            self.note(Note::new(Look::Dim, "Multiple Operations"));
        }
        for (index, call) in (0..).zip(message.tool_calls()) {
            let call_id = CallId::new(command, index);
            let cell = self.open(CellKind::Call(Box::new(CallCell::new(call_id, call))));
            let state = self.run(run);
            state.calls.insert(call_id, cell);
            state.work = Work::Tools;
        }
    }

    fn model_call_failed(&mut self, run: &RunId, attempt: u32, failure: &ModelFailure) {
        let answer = self.run(run).answer.map(|(_, id)| id);
        let is_empty = answer
            .and_then(|id| self.open_kind(id))
            .is_some_and(|kind| matches!(kind, CellKind::Answer(answer) if answer.text.is_empty()));
        // An attempt without text keeps no place, so that notes about it stand before the answer.
        if is_empty && !failure.had_output && self.order.last().copied() == answer {
            self.order.pop();
        }
        let is_repeated = !failure.had_output && self.run(run).failure == failure.message;
        if failure.code == ModelErrorCode::Cancelled || is_repeated {
            return;
        }
        self.run(run).failure.clone_from(&failure.message);
        let void = if failure.had_output { ", its partial answer is void" } else { "" };
        let what = one_line(&failure.message, SHOWN);
        self.note(Note::warning(format!("the model call failed (attempt {}{void}): {what}", attempt + 1)));
    }
}

/// Cells of the records of tool calls and questions.
impl Cells {
    fn apply_call(&mut self, run: &RunId, record: &Record) {
        match &record.body {
            RecordBody::ToolCallStarted { call, child_run, .. } => {
                if let Some(child_run) = child_run {
                    self.mark_delegation(run, *call, child_run);
                }
                self.call_started(run, *call, record.at);
            }
            RecordBody::ToolCallFinished { call, result } | RecordBody::ToolCallRefused { call, result } => {
                self.call_finished(run, *call, result, record.at);
            }
            RecordBody::ApprovalRequested { call, request } => self.question_asked(run, *call, request),
            RecordBody::ApprovalAnswered { call, answer } => self.close_questions(run, *call, Some(answer)),
            RecordBody::LeaseGranted { call, child_run, .. }
            | RecordBody::ChildRunCreated { call, child_run } => {
                self.mark_delegation(run, *call, child_run);
            }
            RecordBody::LeaseSettled { call, spent, .. } => self.meter.lease_settled(run, *call, *spent),
            _ => {}
        }
    }

    fn call_started(&mut self, run: &RunId, call: CallId, at: Timestamp) {
        self.run(run).work = Work::Tools;
        self.close_questions(run, call, None);
        let id = self.run(run).calls.get(&call).copied();
        self.change_call(id, |cell| cell.begin(at));
    }

    fn call_finished(&mut self, run: &RunId, call: CallId, result: &ToolResult, at: Timestamp) {
        self.close_questions(run, call, None);
        let Some(id) = self.run(run).calls.get(&call).copied() else { return };
        let mut plan = None;
        let mut is_diff = false;
        self.change_call(Some(id), |cell| {
            cell.finish(result, at);
            (plan, is_diff) = (cell.plan.take().filter(|_| !result.is_error()), cell.is_diff);
        });
        if plan.is_some() && plan != self.plan {
            self.plan.clone_from(&plan);
            if let (Some(plan), Some(kind)) = (plan, self.open_kind(id)) {
                *kind = CellKind::Plan(plan);
            }
        }
        self.close(id);
        self.keep_output(id);
        self.count_in_batch(run, is_diff);
    }

    /// Ends a batch of calls with the number of differences, after its last call.
    fn count_in_batch(&mut self, run: &RunId, is_diff: bool) {
        let Some(batch) = &mut self.run(run).batch else { return };
        batch.open = batch.open.saturating_sub(1);
        batch.differences += usize::from(is_diff);
        let Batch { open: 0, differences } = *batch else { return };
        self.run(run).batch = None;
        if differences > 0 {
            let text = format!("Previewed {differences} file modification(s) above");
            self.note(Note::new(Look::Dim, text));
        }
    }

    fn question_asked(&mut self, run: &RunId, call: CallId, request: &ApprovalRequest) {
        for (_, id) in self.run(run).questions.clone() {
            if let Some(CellKind::Asked(asked)) = self.open_kind(id)
                && asked.request.request_id == request.request_id
            {
                asked.request = request.clone();
                return;
            }
        }
        let cell = AskedCell { call, request: request.clone(), answer: None };
        let id = self.open(CellKind::Asked(Box::new(cell)));
        self.run(run).questions.push((call, id));
    }

    /// Closes the questions about a call: with their answer, or because the call goes on without one, as after an
    /// answer to a child run.
    fn close_questions(&mut self, run: &RunId, call: CallId, answer: Option<&Answer>) {
        let questions = std::mem::take(&mut self.run(run).questions);
        let (about, others) = questions.into_iter().partition(|(known, _)| *known == call);
        self.run(run).questions = others;
        for (_, id) in about {
            if let Some(CellKind::Asked(asked)) = self.open_kind(id) {
                asked.answer = answer.cloned();
            }
            self.close(id);
        }
    }
}

/// Cells of the records of a run as a whole.
impl Cells {
    fn apply_run(&mut self, run: &RunId, record: &Record) {
        match &record.body {
            RecordBody::RunStarted(started) => self.run_started(run, started),
            RecordBody::Suspended { .. } => self.run(run).work = Work::Asking,
            RecordBody::Resumed => self.resumed(run),
            RecordBody::LimitsRaised(more) => {
                self.meter.limits_raised(more);
                self.resumed(run);
            }
            RecordBody::StoppedByHook { hook } => {
                self.note(Note::warning(format!("a hook of the program stopped the run ({hook:?})")));
            }
            RecordBody::RunFinished(outcome) => self.run_finished(run, outcome),
            _ => {}
        }
    }

    fn run_started(&mut self, run: &RunId, started: &RunStarted) {
        // A run whose process died may have open cells. Nothing that is shown below may wait for them.
        let older: Vec<RunId> = self.runs.keys().filter(|known| *known != run).cloned().collect();
        older.iter().for_each(|older| self.close_all(older));
        self.meter.run_started(started);
        self.plan = None;
        self.run(run).work = Work::Model;
        self.newest = Some(run.clone());
    }

    fn resumed(&mut self, run: &RunId) {
        self.newest = Some(run.clone());
        let has_calls = self.open_cells().any(|cell| matches!(cell.kind, CellKind::Call(_)));
        self.run(run).work = if has_calls { Work::Tools } else { Work::Model };
    }

    fn run_finished(&mut self, run: &RunId, outcome: &Outcome) {
        self.close_all(run);
        let state = self.run(run);
        state.work = Work::Idle;
        let is_without_answer = matches!(outcome.status, OutcomeStatus::Finished) && outcome.turns == 0;
        match state.compaction.take().filter(|_| is_without_answer) {
            Some(Wish::Done) => return,
            Some(Wish::Open) => {
                return self.note(Note::new(Look::Dim, "the conversation is too short to be compacted"));
            }
            None => {}
        }
        let cell = EndCell::of(outcome, &state.last_answer);
        state.last_answer.clear();
        if let Some(cell) = cell {
            self.add(CellKind::End(cell));
        }
    }

    /// Closes all cells of a run that works no longer.
    fn close_all(&mut self, run: &RunId) {
        let state = self.run(run);
        state.work = Work::Idle;
        state.batch = None;
        let mut open: Vec<CellId> = state.answer.take().map(|(_, id)| id).into_iter().collect();
        open.extend(std::mem::take(&mut state.calls).into_values());
        open.extend(std::mem::take(&mut state.questions).into_iter().map(|(_, id)| id));
        open.sort_unstable();
        for id in open {
            self.change_call(Some(id), CallCell::give_up);
            self.close(id);
        }
    }
}

/// The maximum number of characters of a text in a note.
const SHOWN: usize = 400;
