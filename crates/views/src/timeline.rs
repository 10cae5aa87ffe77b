//! The timeline of a run: its calls, waits, retries, steps and child runs as spans in lanes, computed from the log and not
//! stored.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap},
    sync::Arc,
};

use archon_types::Record;
use serde::Serialize;

use crate::{span::Span, span_fold::SpanFold};

/// The timeline of a run.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_types::Record;
/// use archon_views::{SpanKind, Timeline};
///
/// /// Returns the time in which the models worked, in milliseconds.
/// fn model_time(log: &[Arc<Record>]) -> u64 {
///     let spans = Timeline::of(log).spans;
///     let models = spans.iter().filter(|span| span.kind == SpanKind::Model);
///     models.filter_map(|span| Some(span.to_ms? - span.from_ms)).sum()
/// }
///
/// assert_eq!(model_time(&[]), 0);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Timeline {
    /// The spans, in the order of their beginnings.
    pub spans: Vec<Span>,
    /// The time of the first record, in Unix milliseconds; 0 for an empty log.
    pub from_ms: u64,
    /// The time of the last record, in Unix milliseconds.
    pub to_ms: u64,
    /// True if earlier spans are left out.
    pub is_cut: bool,
}

impl Timeline {
    /// Returns the timeline of a run from its records.
    pub fn of(records: &[Arc<Record>]) -> Self {
        let mut fold = SpanFold::default();
        records.iter().for_each(|record| fold.apply(record));
        let mut spans = fold.into_spans();
        spans.sort_by_key(|span| (span.from_ms, span.seq));
        put_into_lanes(&mut spans);
        let at = |record: Option<&Arc<Record>>| record.map_or(0, |record| record.at.as_millis());
        Self { spans, from_ms: at(records.first()), to_ms: at(records.last()), is_cut: false }
    }

    /// Keeps only the `most` spans that began last. The timeline then begins with the first of these.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use archon_types::Record;
    /// use archon_views::Timeline;
    ///
    /// fn last_hundred(records: &[Arc<Record>]) -> Timeline {
    ///     Timeline::of(records).newest(100)
    /// }
    /// ```
    pub fn newest(mut self, most: usize) -> Self {
        if let Some(first) = self.spans.len().checked_sub(most).filter(|first| *first > 0) {
            self.spans.drain(..first);
            self.from_ms = self.spans.first().map_or(self.to_ms, |span| span.from_ms);
            self.is_cut = true;
        }
        self
    }
}

/// Gives each span the lowest lane that is free when the span begins. A lane is taken for a millisecond at least, so that
/// no two spans of a lane begin at the same time.
fn put_into_lanes(spans: &mut [Span]) {
    let mut taken: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
    let (mut free, mut count) = (BTreeSet::new(), 0);
    for span in spans {
        while let Some(Reverse((end, lane))) = taken.peek().copied()
            && end <= span.from_ms
        {
            taken.pop();
            free.insert(lane);
        }
        span.lane = free.pop_first().unwrap_or_else(|| {
            count += 1;
            count - 1
        });
        let end = span.to_ms.map_or(u64::MAX, |end| end.max(span.from_ms + 1));
        taken.push(Reverse((end, span.lane)));
    }
}
