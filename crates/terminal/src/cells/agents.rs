//! The row that counts the agents that work at the same time.

use archon_types::Timestamp;

use super::{CallProgress, Cell, CellKind, Cells, call::seconds};
use crate::{
    row::Row,
    theme::{Look, Page},
};

/// The time between two changes of the row, in milliseconds.
const BEAT_MS: u64 = 500;

impl Cells {
    /// Returns the next time at which the row that counts the working agents changes without a new record. Draw a
    /// frame at that time, with [`Page::at`]. The row changes twice a second while several agents work; otherwise the
    /// result is `None`.
    pub fn next_beat(&self, now: Timestamp) -> Option<Timestamp> {
        let (_, since) = self.agents()?;
        let beats = now.millis_since(since) / BEAT_MS + 1;
        Some(Timestamp::from_millis(since.as_millis() + beats * BEAT_MS))
    }

    /// Returns the row that counts the working agents; `None` unless several agents work.
    pub(crate) fn agents_row(&self, page: &Page) -> Option<Row> {
        let (count, since) = self.agents()?;
        let took = page.now.map(|now| seconds(now.millis_since(since) / BEAT_MS * BEAT_MS));
        let text = format!("{count} Agents Processing{}", took.unwrap_or_default());
        Some(Row::of(text, Look::Dim, page).cut(page.width))
    }

    /// Returns the number of working agents, and the time at which the first of them began; `None` unless several
    /// agents work.
    fn agents(&self) -> Option<(usize, Timestamp)> {
        let since = |cell: &Cell| match &cell.kind {
            CellKind::Call(call) if call.is_delegation => match call.state {
                CallProgress::Running(since) => Some(since),
                _ => None,
            },
            _ => None,
        };
        let running: Vec<Timestamp> = self.open_cells().filter_map(since).collect();
        let first = running.iter().min().filter(|_| running.len() > 1)?;
        Some((running.len(), *first))
    }
}
