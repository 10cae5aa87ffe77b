//! Applies the records of tool calls, and of the questions about them, to the cells.

use archon_types::{Answer, ApprovalRequest, CallId, Record, RecordBody, RunId, Timestamp, ToolResult};

use super::{AskedCell, CellKind, Cells, Note, run::Batch};
use crate::{theme::Look, work::Work};

impl Cells {
    pub(super) fn apply_call(&mut self, run: &RunId, record: &Record) {
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

    /// Counts a call of the batch as ended. After the last call, adds a note with the number of diffs, if there are
    /// any.
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

    /// Closes the questions about a call. `answer` is `None` if the call goes on without an answer in its run's log,
    /// for instance because a person answered the child run.
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
