//! The text of a conversation: its cells, the part of them that is printed, and the rows of the program between them.

use archon::{
    types::{ApprovalRequest, Event, RunId, RunStatus, SessionId},
    views::{ArgumentSource, TextSources},
};
use archon_terminal::{Cells, Look, Note, Page, Printed, Row};

use super::history_of_session::History;
use crate::failure::Failure;

/// The number of cells of an earlier part of the conversation that are shown.
const SHOWN: usize = 200;

/// The text of a conversation.
#[derive(Default)]
pub(crate) struct Transcript {
    cells: Cells,
    printed: Printed,
    /// The texts that the arguments of a call may come from.
    sources: TextSources,
    /// Rows of the program that are printed before the next rows of cells.
    rows: Vec<String>,
}

impl Transcript {
    pub(crate) fn cells(&self) -> &Cells {
        &self.cells
    }

    pub(crate) fn printed(&self) -> &Printed {
        &self.printed
    }

    /// Returns the texts from which the arguments of a question come.
    pub(crate) fn sources_of(&self, request: &ApprovalRequest) -> Vec<ArgumentSource> {
        self.sources.of_request(request)
    }

    /// Adds a row of the program before the next rows of cells.
    pub(crate) fn row(&mut self, text: String) {
        self.rows.push(text);
    }

    /// Adds a note of the program behind the last cell.
    pub(crate) fn note(&mut self, look: Look, text: &str) {
        self.cells.note(Note::new(look, text.trim_end()));
    }

    /// Adds the difference of a file behind the last cell.
    pub(crate) fn difference(&mut self, diff: &str) {
        self.cells.note(Note::difference(diff));
    }

    /// Adds a text in Markdown behind the last cell.
    pub(crate) fn markdown(&mut self, text: &str) {
        self.cells.markdown(text);
    }

    /// Adds the text of a failure, and its advice.
    pub(crate) fn note_failure(&mut self, failure: &Failure) {
        self.note(Look::Error, &format!("error: {}", failure.what()));
        self.note(
            Look::Plain,
            &failure.advice().iter().map(|line| format!("  {line}\n")).collect::<String>(),
        );
    }

    /// Adds the newest part of an earlier conversation.
    pub(crate) fn add_history(&mut self, history: &History, session: Option<&SessionId>) {
        for (run, record) in &history.records {
            self.cells.apply(run, record);
            self.sources.apply(run, record);
        }
        let left_out = self.printed.leave_out(&self.cells, SHOWN);
        if let Some(session) = session.filter(|_| left_out > 0 || history.earlier > 0) {
            self.row(format!("earlier parts are not shown: archon sessions show {session}"));
        }
        if let Some(newest) = history.newest.as_ref().filter(|newest| newest.status == RunStatus::Interrupted)
        {
            self.stop(&newest.run_id);
            self.note(Look::Warning, "the last run was cut off; it goes on with your next message");
        }
    }

    /// Adds an event of a run.
    pub(crate) fn apply(&mut self, event: &Event) {
        match event {
            Event::Record { run, record } => {
                self.cells.apply(run, record);
                self.sources.apply(run, record);
            }
            Event::Delta(delta) => self.cells.stream(delta),
            _ => {}
        }
    }

    /// Closes the cells of a run that was cut off.
    pub(crate) fn stop(&mut self, run: &RunId) {
        self.cells.stop(run);
    }

    /// Returns the rows to commit now.
    pub(crate) fn commit(&mut self, page: &Page) -> Vec<Row> {
        let rows = self.rows.drain(..).map(|text| Row::of(text, Look::Dim, page).cut(page.width));
        let mut rows: Vec<Row> = rows.collect();
        rows.extend(self.printed.take(&self.cells, page));
        rows
    }
}
