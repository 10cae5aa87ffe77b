//! The state that [`Cells`](crate::Cells) keep of one run.

use std::collections::HashMap;

use archon_types::{CallId, CommandId};

use crate::work::Work;

/// The id of a cell: its index in [`Cells::all`](crate::Cells::all), from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellId(pub(super) usize);

/// The state that [`Cells`](crate::Cells) keep of one run.
#[derive(Clone, Debug, Default)]
pub(super) struct RunState {
    /// The sequence number of the next new record; earlier records were applied already.
    next: u64,
    pub(super) work: Work,
    /// The model call under way, and the cell of its answer.
    pub(super) answer: Option<(CommandId, CellId)>,
    /// The text of the last whole answer, which is not shown again at the end.
    pub(super) last_answer: String,
    pub(super) calls: HashMap<CallId, CellId>,
    /// The calls of the turn, if there are several.
    pub(super) batch: Option<Batch>,
    /// The open questions: the call that each is about, and its cell. Several questions of a child run belong to one
    /// call.
    pub(super) questions: Vec<(CallId, CellId)>,
    /// A compaction that a person asked for.
    pub(super) compaction: Option<Wish>,
    /// The last failure of the model; an equal failure is not shown twice.
    pub(super) failure: String,
}

/// The state of a compaction that a person asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Open,
    Done,
}

/// Several calls of one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Batch {
    /// The number of calls without a result.
    pub(super) open: usize,
    /// The number of results that show the diff of a file.
    pub(super) differences: usize,
}

impl RunState {
    /// Returns true if the record with this sequence number is new, and records that it is applied.
    pub(super) fn is_next(&mut self, seq: u64) -> bool {
        let is_new = seq >= self.next;
        if is_new {
            self.next = seq + 1;
        }
        is_new
    }
}
