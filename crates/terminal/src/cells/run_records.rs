//! Applies the records about a run as a whole to the cells: its start, its suspensions and its end.

use archon_types::{Outcome, OutcomeStatus, Record, RecordBody, RunId, RunStarted};

use super::{CallCell, CellId, CellKind, Cells, EndCell, Note, run::Wish};
use crate::{theme::Look, work::Work};

impl Cells {
    pub(super) fn apply_run(&mut self, run: &RunId, record: &Record) {
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
