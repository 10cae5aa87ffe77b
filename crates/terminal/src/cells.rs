//! The cells of a conversation, computed from the records of its runs.

mod agents;
mod answer;
mod asked;
mod call;
mod call_records;
mod call_text;
mod child;
mod end;
mod kept_outputs;
mod message;
mod meter;
mod model_records;
mod note;
mod plan;
mod run;
mod run_records;

use std::collections::{BTreeSet, HashMap};

use archon_types::{ApprovalRequest, Delta, DeltaKind, Origin, Record, RecordBody, RunId, one_line};

use crate::{row::Row, theme::Page, work::Work};

pub use answer::AnswerCell;
pub use asked::AskedCell;
pub use call::{CallCell, CallProgress};
pub use end::EndCell;
pub use message::MessageCell;
pub use meter::Meter;
pub use note::Note;
pub use plan::{PlanCell, PlanStep};

use kept_outputs::KeptOutputs;
pub use run::CellId;
use run::RunState;

/// One thing that a conversation shows on the screen, such as a message or a call. A closed cell never changes again,
/// with one exception: the whole output of an old call, which only an unfolded [`Page`] shows, may be dropped.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Cell {
    /// The id of the cell, which never changes.
    pub id: CellId,
    /// True if the cell never changes again.
    pub is_closed: bool,
    /// The content, such as a message or a call.
    pub kind: CellKind,
}

/// The content of a cell: one variant for each kind of thing that the screen shows.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CellKind {
    /// A message to the agent.
    Message(MessageCell),
    /// An answer of the model.
    Answer(AnswerCell),
    /// A tool call.
    Call(Box<CallCell>),
    /// The step list of an agent, as a call of `update_plan` set it.
    Plan(PlanCell),
    /// A question to a person.
    Asked(Box<AskedCell>),
    /// A note of the program, such as a warning, or a note about a record.
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

/// The cells of a conversation, computed from the records of its runs. The calls of a child run are shown below the
/// call that started the child run, until that call ends.
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
    /// The cells in the order in which they are printed: an answer gets its place at its request, any other cell when
    /// it is closed. The order depends on the records alone, so that it is the same while the run works and when its
    /// log is read later.
    order: Vec<CellId>,
    runs: HashMap<RunId, RunState>,
    /// For each child run, the cell below which its calls are shown: that of the call that started the run or a run
    /// above it. `None` if that cell is not known.
    children: HashMap<RunId, Option<CellId>>,
    /// The newest step list of the newest run.
    plan: Option<PlanCell>,
    newest: Option<RunId>,
    meter: Meter,
    kept: KeptOutputs,
}

impl Cells {
    /// Updates the cells with a record of a run. A record that was applied before changes nothing, except
    /// [`RecordBody::LogUnavailable`], which adds a note each time.
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

    /// Applies a streamed piece (a delta) to the open cell of the answer or the call that the delta names. A delta for
    /// a closed cell, or of an earlier attempt of the model call, changes nothing.
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

    /// Marks a run as idle. Call it if the run's log has no end because its process died or its storage failed. The
    /// streamed part of the answer becomes final, and the run's calls are shown as waiting until a process resumes the
    /// run.
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

    /// Adds a closed answer cell with a text in Markdown, such as a plan that a person decides about.
    pub fn markdown(&mut self, text: &str) {
        let id = self.open(CellKind::Answer(AnswerCell::of(text)));
        self.order.push(id);
        self.close(id);
    }

    /// Returns all cells, in the order in which they began.
    pub fn all(&self) -> &[Cell] {
        &self.cells
    }

    /// Returns the present work of the newest run. The result says nothing about the draft; [`Work::with_draft`] adds
    /// that.
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

    /// Returns the usage of the conversation: the tokens, the money, and the filled share of the context window.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Returns the open questions in the order in which they were asked. A paused question is left out: it is shown to
    /// nobody. A question of a child run counts as a question of the run that called the child run.
    pub fn questions(&self) -> impl Iterator<Item = &ApprovalRequest> {
        self.open_cells().filter_map(|cell| match &cell.kind {
            CellKind::Asked(asked) if asked.request.paused_at.is_none() => Some(&asked.request),
            _ => None,
        })
    }

    /// Returns the step list of the newest run; `None` if the run does not work, or if all steps are completed.
    pub(crate) fn live_plan(&self) -> Option<&PlanCell> {
        self.plan.as_ref().filter(|plan| self.work() != Work::Idle && !plan.is_completed())
    }

    pub(crate) fn get(&self, id: CellId) -> Option<&Cell> {
        self.cells.get(id.0)
    }

    pub(crate) fn open_cells(&self) -> impl Iterator<Item = &Cell> {
        self.open.iter().filter_map(|id| self.cells.get(id.0))
    }

    /// Returns the cells in the order in which they are printed, beginning with the index `from`.
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

    /// Closes a cell, and gives it its place in the order of printing unless it has one.
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

/// The maximum number of characters of a text in a note.
const SHOWN: usize = 400;
