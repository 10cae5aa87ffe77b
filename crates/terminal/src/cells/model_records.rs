//! Applies the records of model calls to the cells: messages, answers, and notes about both.

use archon_types::{
    AgentMessage, AssistantMessage, CallId, CommandId, ModelErrorCode, ModelFailure, Record, RecordBody,
    RunId, WorkspaceSnapshot, one_line,
};

use super::{
    AnswerCell, CallCell, CellId, CellKind, Cells, MessageCell, Note, SHOWN,
    run::{Batch, Wish},
};
use crate::{theme::Look, work::Work};

impl Cells {
    pub(super) fn apply_model(&mut self, run: &RunId, record: &Record) {
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

    /// Returns true if an open answer has its place in the order of printing. The search begins at the end, because
    /// few cells can follow an open answer.
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
